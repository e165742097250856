"""A grid battery that trades on day-ahead electricity prices: a problem, and two years of real prices."""

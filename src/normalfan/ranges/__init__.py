"""How far may the loss move before the plan changes: along a line, in a plane, in all coefficients at once."""

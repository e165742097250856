"""A grid battery that trades on day-ahead electricity prices: a problem, and two years of real prices."""

from normalfan.battery.ercot import ercot_prices
from normalfan.battery.model import Battery

__all__ = ["Battery", "ercot_prices"]

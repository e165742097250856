"""A priced stream as one page that works offline, and slices of the fan."""

from normalfan.report.fan import Plane, draw_fan
from normalfan.report.page import write_fan, write_ranges, write_regret_curve, write_report

__all__ = ["Plane", "draw_fan", "write_fan", "write_ranges", "write_regret_curve", "write_report"]

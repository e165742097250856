from .fan import Plane, draw_fan
from .page import write_fan, write_ranges, write_regret_curve, write_report

__all__ = ["Plane", "draw_fan", "write_fan", "write_ranges", "write_regret_curve", "write_report"]

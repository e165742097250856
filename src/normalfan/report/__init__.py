"""What a priced stream has to say, on one page that needs nothing else.

>>> from normalfan.report import write_report
>>> write_report("battery.html", mdp, losses, motion, title="A battery", unit="$")      # doctest: +SKIP
"""

from normalfan.report.fan_page import write_fan
from normalfan.report.page import write_report

__all__ = ["write_fan", "write_report"]

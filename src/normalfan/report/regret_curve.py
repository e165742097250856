"""Regret against re-plans as one HTML page that works offline, like a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.replan.curve import HINDSIGHT, PENS, REPLANS, RegretCurve
from normalfan.report.content import rounded
from normalfan.report.page import write_page
from normalfan.text import amount


def write_regret_curve(
    path: str | Path,
    curve: RegretCurve,
    *,
    title: str,
    unit: str = "",
    sentences: Sequence[str] = (),
) -> None:
    """Write what re-planning a stream costs as one HTML page that works offline.

    Parameters
    ----------
    path, curve : str or Path, RegretCurve
    title, unit : str
        The heading, and the unit of the losses such as "$".
    sentences : sequence of str
        Shown above the chart, such as a recommendation.

    Raises
    ------
    InputError
        If `normalfan[report]` is not installed.

    Examples
    --------
    >>> import normalfan as nf
    >>> costs = nf.replan.HoldingCosts(np.triu(np.ones((3, 3)), k=1), np.zeros(3), "before", 1)
    >>> curve = nf.replan.regret_curve(costs, cost=2.0, detectors=False)
    >>> write_regret_curve("curve.html", curve, title="Three days")  # doctest: +SKIP
    """
    shown = np.flatnonzero(curve.least_regrets[1:] > 0) + 1
    lines = [{"name": HINDSIGHT, "x": shown.tolist(), "y": rounded(curve.least_regrets[shown])}]
    for family, corners in curve.lines().items():
        x, y = zip(*corners, strict=True)
        pen = dict(zip(("colour", "dash", "width"), PENS[family], strict=True))
        lines.append({"name": family, "x": list(x), "y": rounded(np.array(y)), **pen})
    data = {
        "unit": unit,
        "lines": lines,
        "marks": [{"name": name, "x": k, "y": y} for name, (k, y) in curve.marks(unit).items()],
        "heights": np.log10(curve.heights()).tolist(),
        "xTitle": REPLANS,
    }
    rows = [
        (name, run.replans, amount(run.regret, unit), amount(run.total(curve.cost), unit))
        for name, run in curve.schedules.items()
    ]
    about = f"{curve.costs.description}; a re-plan costs {amount(curve.cost, unit)}"
    write_page(path, "regret_curve.html", data, title=title, note=about, sentences=sentences, rows=rows)

"""Regret against re-plans as one HTML page that works offline, like a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.replan.curve import PENS, REPLANS, RegretCurve
from normalfan.report.content import rounded
from normalfan.report.page import write_page


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
    lines = []
    for name, corners in curve.lines().items():
        pen = dict(zip(("colour", "dash", "width"), PENS.get(name, ()), strict=False))
        line = {"x": [k for k, _ in corners], "y": rounded([regret for _, regret in corners])}
        lines.append({"name": name, **line, **pen})
    data = {
        "unit": unit,
        "lines": lines,
        "marks": [{"name": name, "x": k, "y": y} for name, (k, y) in curve.marks(unit).items()],
        "heights": np.log10(curve.heights()).tolist(),
        "xTitle": REPLANS,
    }
    texts = {"title": title, "note": curve.caption(unit), "sentences": sentences, "rows": curve.rows(unit)}
    write_page(path, "regret_curve.html", data, **texts)

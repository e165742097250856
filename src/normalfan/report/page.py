"""The report, a slice of the fan and regret against re-plans: HTML files that carry all they need.

Texts and table can be read, searched and printed without running anything; the charts are drawn from the data
by plotly, which is embedded. The page asks the network for nothing, and its content-security policy forbids
it. The same input gives the same bytes. A slice can also be a figure (.png, .pdf).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, Any

import numpy as np

from normalfan.errors import InputError, check_installed, check_whole
from normalfan.files import check_target, written_atomically
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.plots import new_figure
from normalfan.pricing.dynamics import rounds_again
from normalfan.pricing.motion import PricedMotion, norm_name
from normalfan.pricing.summary import Summary, summarise
from normalfan.problem.losses import Losses, factors_of
from normalfan.problem.mdp import MDP
from normalfan.ranges.radius import Radius, radius
from normalfan.ranges.ranging import Ranging, ranging
from normalfan.regret import Decomposition
from normalfan.replan.curve import PENS, REPLANS, RegretCurve
from normalfan.report import content
from normalfan.report.costliest import LISTED, fold, read_costliest, rows_of
from normalfan.report.fan import COLOURS, FanPicture, slice_through
from normalfan.report.ranges import LISTED_IN_REPORT, MOST_IN_REPORT, chart_and_table
from normalfan.text import amount, as_script, counted, printable

PICTURES = (".html", ".png", ".pdf")


def write_report(
    path: str | Path,
    mdp: MDP | Sequence[MDP],
    losses: Losses,
    motion: PricedMotion,
    *,
    title: str,
    unit: str = "",
    note: str = "",
    norm: str | float = "l1",
    top: int = LISTED,
    summary: Summary | None = None,
    decomposition: Decomposition | None = None,
    ties: TieRule = DEFAULT_TIES,
) -> None:
    """Write a priced stream as one HTML page that works offline.

    Parameters
    ----------
    path : str or Path
    mdp : MDP or sequence of MDP
    losses : array [T, H, S, A] or LossStream
    motion : PricedMotion
        What `price_stream(mdp, losses, ties=ties)` was given and returned; some losses are read again.
    title, unit, note : str
        The heading, the unit of the losses such as "$", and a sentence under the title, such as a source.
    norm : str or float
        Of the loss variation beside the price: "l1", "l2" or "linf"; 1, 2 and inf mean the same.
    top : int
        How many of the costliest rounds the table lists, with their plans.
    summary, decomposition : Summary, Decomposition, optional
        Of this stream and norm, if at hand; of a learner's run on it, drawn instead of cumulative values.
    ties : TieRule

    Raises
    ------
    InputError
        If `normalfan[report]` is not installed, `top` is below 1, or losses, motion and summary are not of
        one whole stream.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[2.0, 1.5]]]]
    >>> motion = nf.price_stream(arms, losses)
    >>> write_report("arms.html", arms, losses, motion, title="Two arms")  # doctest: +SKIP
    """
    check_page_packages()
    check_whole("top", top, "ask for at least one round")
    variation = motion.variation(norm)  # refuses an unknown norm, and a motion without details
    norm = norm_name(norm)

    problem_of, stream = rounds_again(mdp, losses, motion)
    costliest = read_costliest(mdp, losses, motion, ties, top)
    shown, last_problem = problem_of(costliest.centre), problem_of(len(motion.prices) - 1)
    if summary is None:
        summary = summarise(mdp, losses, motion, norm=norm, ties=ties)
    elif (summary.rounds, summary.norm) != (len(motion.prices), norm):
        raise InputError(
            f"summary is of {summary.rounds} rounds in the norm {summary.norm}, but the report is of "
            f"{len(motion.prices)} rounds in the norm {norm}: make it from the same motion and norm."
        )
    paid = fold(costliest.attribution, motion.by_step.sum(axis=0), shown.labels)
    words = {
        "unit": unit,
        "norm": content.norm_symbol(norm),
        "sense": content.sense(motion.rewards),
        "plan": motion.plans.short,
    }
    data: dict[str, Any] = words | {
        "time": content.time_charts(motion, variation, decomposition),
        "rounds": content.every_round(motion, norm),
        "attribution": {
            "z": content.rounded(paid.paid),
            "byStep": content.rounded(paid.by_step),
            "steps": list(paid.steps),
            "states": list(paid.states),
        },
        "fan": None,
        "ranges": None,
    }
    captions = {
        "time": content.time_caption(motion, variation, unit),
        "cumulative": content.cumulative_caption(motion, decomposition, unit),
        "attribution": content.attribution_caption(motion, costliest, paid, unit),
        "margins": content.margins_caption(motion),
        "fan": "",
    }
    names = {t: content.name_of(motion, t) for t in costliest.around}
    # The slice shows what the plan of the round before costs.
    if motion.plans.age == 1 and (
        sliced := slice_through(shown, costliest.around, costliest.centre, names, ties)
    ):
        fan, up = sliced
        before, at = names[costliest.centre - 1], names[costliest.centre]
        stops = list(names.values()), motion.prices[list(names)].tolist()
        data["fan"] = content.fan_chart(fan, f"from {before} to {at}", up, *stops)
        captions["fan"] = content.fan_caption(fan, before, at, up, unit)
    ranges: dict[str, Any] = {"range_table": None, "sentences": ()}
    factors = factors_of(stream)
    if factors is not None and factors.features.shape[0] <= MOST_IN_REPORT:
        last = ranging(last_problem, stream, ties=ties), radius(last_problem, stream, ties=ties)
        data["ranges"], ranges = chart_and_table(*last, unit, LISTED_IN_REPORT)
    write_page(
        path,
        "report.html",
        data,
        title=title,
        note=" ".join(note.split()),  # lines are wrapped anyway
        summary=content.summary_paragraphs(summary, unit),
        captions=captions,
        rows=rows_of(motion, variation, costliest.changes, unit),
        amount=lambda value: amount(value, unit),
        chooses_round=content.input_of_rounds(motion),
        most_points=content.MOST_POINTS,
        most_carried=content.MOST_CARRIED,
        n_rounds=len(motion.prices),
        size=", ".join(
            counted(n, one) for n, one in zip(shown.shape, ("step", "state", "action"), strict=True)
        ),
        what_a_price_is=content.what_a_price_is(motion.plans),
        **words,
        **ranges,
    )


def write_fan(
    path: str | Path,
    fan: FanPicture,
    *,
    title: str,
    unit: str = "",
    right: str = "x",
    up: str = "y",
    stops: Sequence[str] = (),
    prices: Sequence[float] = (),
) -> None:
    """Write a slice of the fan to a file.

    Parameters
    ----------
    path, fan : str or Path, FanPicture
        The file, .html (needs `normalfan[report]`), .png or .pdf (need `normalfan[plot]`), and the slice.
    title, unit, right, up : str
        The heading, the unit of the losses such as "$", and the titles of the axes.
    stops, prices : sequence of str, sequence of float
        Names and prices of the losses on the path.

    Raises
    ------
    InputError
        If the name ends otherwise, or a package is missing.

    Examples
    --------
    >>> import normalfan as nf, numpy as np
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> e = np.eye(2).reshape(2, 1, 1, 2)
    >>> picture = nf.report.draw_fan(arms, nf.report.Plane(0 * e[0], e[0], e[1]))
    >>> write_fan("fan.html", picture, title="Two arms")  # doctest: +SKIP
    """
    check_picture(path)
    suffix = Path(path).suffix
    if suffix == ".html":
        data = {"unit": unit, "fan": content.fan_chart(fan, right, up, stops, prices)}
        write_page(path, "fan.html", data, title=title, sentences=content.fan_sentences(fan, unit))
    else:
        with written_atomically(path) as file:
            _draw(file, suffix[1:], fan, title, right, up)


def check_picture(path: str | Path, name: str = "path") -> None:
    """Refuse a file that cannot be written, or whose packages are missing; ask before any long work."""
    check_target(name, path, PICTURES)
    if Path(path).suffix == ".html":
        check_page_packages()
    else:
        check_installed("matplotlib", f"a {Path(path).suffix} picture needs it", "plot")


def _draw(file: IO[bytes], kind: str, fan: FanPicture, title: str, right: str, up: str) -> None:
    figure, axes = new_figure(title, x=right, y=up, size=(6.4, 5.2))
    from matplotlib.collections import PolyCollection

    fills = [COLOURS[colour] for colour in fan.colours]
    polygons = PolyCollection(fan.regions.polygons, facecolors=fills, edgecolors="#6b675f", linewidths=0.5)
    axes.add_collection(polygons)
    axes.plot(*fan.path.T, color="#0065a8", linewidth=1.2)
    for inside, fill in ((False, "white"), (True, "#0065a8")):
        some = fan.path[fan.in_plane == inside]
        axes.plot(*some.T, "o", markersize=5, markerfacecolor=fill, markeredgecolor="#0065a8")
    axes.set(xlim=fan.regions.window[0], ylim=fan.regions.window[1])
    # No date within: the same picture is the same file.
    figure.savefig(file, format=kind, dpi=150, metadata={"CreationDate": None} if kind == "pdf" else None)


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
    title, unit, sentences : str, str, sequence of str
        The heading, the unit of the losses such as "$", and what is said above the chart, such as advice.

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
        line = {"x": [k for k, _ in corners], "y": content.rounded([regret for _, regret in corners])}
        lines.append({"name": name, **line, **pen})
    data = {
        "unit": unit,
        "lines": lines,
        "marks": [{"name": name, "x": k, "y": y} for name, (k, y) in curve.marks(unit).items()],
        "heights": np.log10(curve.heights()).tolist(),
        "xTitle": REPLANS,
    }
    texts: dict[str, Any] = {"note": curve.caption(unit), "rows": curve.rows(unit)}
    write_page(path, "regret_curve.html", data, title=title, sentences=sentences, **texts)


def write_ranges(
    path: str | Path,
    found: Ranging,
    reach: Radius,
    *,
    title: str,
    unit: str = "",
    top: int | None = None,
) -> None:
    """Write how far each coefficient may move as one HTML page that works offline.

    Parameters
    ----------
    path, found, reach : str or Path, Ranging, Radius
        The file, and what `ranging` and `radius` found for one round and tolerance.
    title, unit : str
        As in `write_report`.
    top : int, optional
        How many to list, the narrowest first; all, if they are few, in their own order by default.

    Raises
    ------
    InputError
        If `normalfan[report]` is not installed.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]])
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> write_ranges("ranges.html", nf.ranging(arms, losses), nf.radius(arms, losses), title="Two arms")
    ... # doctest: +SKIP
    """
    chart, texts = chart_and_table(found, reach, unit, top)
    write_page(path, "ranges.html", {"unit": unit, "ranges": chart}, title=title, **texts)


def check_page_packages() -> None:
    """Refuse to write a page where a package for it is missing; ask before any long work."""
    for package in ("jinja2", "plotly"):
        check_installed(package, "a report page needs it", "report")


def write_page(path: str | Path, template: str, data: dict[str, Any], note: str = "", **texts: Any) -> None:
    """Render a template of the package with its data embedded; text is printable and escaped throughout."""
    check_page_packages()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    def asset(name: str) -> Markup:
        """A style sheet or script of the package, to be embedded as it is."""
        source = resources.files("normalfan.report") / "assets" / name
        return Markup(source.read_text(encoding="utf-8"))  # noqa: S704

    environment = Environment(
        loader=PackageLoader("normalfan.report", "assets"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    scripts = {"plotly": Markup(get_plotlyjs()), "data": Markup(as_script(data))}  # noqa: S704
    page = environment.get_template(template).render(note=note, **texts, **scripts, asset=asset)
    with written_atomically(path) as file:
        file.write(page.encode())

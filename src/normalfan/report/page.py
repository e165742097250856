"""The report: one HTML file that carries its data, styles, scripts and texts.

Texts and table can be read, searched and printed without running anything; the charts are drawn from the data
by plotly, which is embedded. The page asks the network for nothing, and its content-security policy forbids
it. The same input gives the same bytes.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from normalfan.errors import InputError, check_installed
from normalfan.files import written_atomically
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.motion import PricedMotion, norm_name
from normalfan.pricing.summary import Summary, summarise
from normalfan.problem.losses import Losses
from normalfan.problem.mdp import MDP
from normalfan.regret.decompose import Decomposition
from normalfan.report.attribution_map import fold, read_costliest
from normalfan.report.charts import MOST_POINTS, attribution_chart, fan_chart, time_charts
from normalfan.report.fan import slice_through
from normalfan.report.page_text import captions, norm_symbol, summary_paragraphs
from normalfan.report.table import rows_of
from normalfan.text import amount, as_script, counted, printable


def write_report(
    path: str | Path,
    mdp: MDP,
    losses: Losses,
    motion: PricedMotion,
    *,
    title: str,
    unit: str = "",
    note: str = "",
    norm: str | float = "l1",
    summary: Summary | None = None,
    decomposition: Decomposition | None = None,
    ties: TieRule = DEFAULT_TIES,
) -> None:
    """Write a priced stream as one HTML page that works offline.

    Parameters
    ----------
    path : str or Path
        The file to write.
    mdp, losses, motion : MDP, array [T, H, S, A] or LossStream, PricedMotion
        What `price_stream(mdp, losses, ties=ties)` was given and returned; some losses are read again.
    title, unit, note : str
        The heading, the unit of the losses such as "$", and a sentence under the title, such as a source.
    norm : str or float
        Of the loss variation beside the price: "l1", "l2" or "linf"; 1, 2 and inf mean the same.
    summary, decomposition : Summary, Decomposition, optional
        Of this stream and norm, if at hand; of a learner's run on it, drawn instead of cumulative values.
    ties : TieRule
        The tie rule that the stream was priced with.

    Raises
    ------
    InputError
        If `normalfan[report]` is not installed, or losses, motion and summary are not of one whole stream.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[2.0, 1.5]]]]
    >>> motion = nf.price_stream(arms, losses)
    >>> write_report("arms.html", arms, losses, motion, title="Two arms")  # doctest: +SKIP
    """
    check_page_packages()
    variation = motion.variation(norm)  # refuses an unknown norm, and a motion without details
    norm = norm_name(norm)

    def name_of(t: int) -> str:
        return motion.round_name(t) if motion.round_names else f"round {t}"

    costliest = read_costliest(mdp, losses, motion, ties)
    if summary is None:
        summary = summarise(mdp, losses, motion, norm=norm, ties=ties)
    elif (summary.rounds, summary.norm) != (len(motion.prices), norm):
        raise InputError(
            f"summary is of {summary.rounds} rounds in the norm {summary.norm}, but the report is of "
            f"{len(motion.prices)} rounds in the norm {norm}: make it from the same motion and norm."
        )
    fan = slice_through(mdp, costliest.around, costliest.centre, name_of, ties)
    paid = fold(costliest.attribution, motion.by_step.sum(axis=0), mdp.labels)
    stops = fan.stops if fan else ()
    crossed = [name_of(t) for t in stops], [float(motion.prices[t]) for t in stops]
    data = {
        "unit": unit,
        "norm": norm_symbol(norm),
        "time": time_charts(motion, variation, decomposition),
        "attribution": attribution_chart(paid),
        "fan": fan_chart(fan.picture, fan.right, fan.up, *crossed) if fan else None,
    }
    write_page(
        path,
        "report.html",
        data,
        title=title,
        note=" ".join(note.split()),  # lines are wrapped anyway
        summary=summary_paragraphs(summary, unit),
        captions=captions(motion, variation, costliest, paid, fan, decomposition, name_of, unit),
        rows=rows_of(motion, variation, costliest.changes, unit),
        amount=lambda value: amount(value, unit),
        most_points=MOST_POINTS,
        n_rounds=len(motion.prices),
        size=", ".join(
            counted(n, one) for n, one in zip(mdp.shape, ("step", "state", "action"), strict=True)
        ),
        norm=norm_symbol(norm),
    )


def check_page_packages() -> None:
    """Refuse to write a page where a package for it is missing; ask before any long work."""
    for package in ("jinja2", "plotly"):
        check_installed(package, "a report page needs it", "report")


def write_page(path: str | Path, template: str, data: dict[str, Any], **texts: Any) -> None:
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
    page = environment.get_template(template).render(**texts, **scripts, asset=asset)
    with written_atomically(path) as file:
        file.write(page.encode())

"""Run experiments, judge them, draw them, and keep the books.

    folder/ledger.md, ledger.html, ledger.json     every claim with its verdict
    folder/fan.html                                a page to play with
    folder/figures/*.pdf, *.png
    folder/data/<experiment>.parquet               what the verdicts were computed from
    folder/times.json                              CPU and wall seconds of every experiment
    folder/cells/                                  finished cells; may be deleted when all is done

A run that ends early continues where it ended when it is started again.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.jobs import Cell, Cluster, Processes, Serial, Store, run_cells
from normalfan_paper.experiment import Experiment, LedgerRow, Scale
from normalfan_paper.fan_page import to_fan_page
from normalfan_paper.ledger import Ledger, Section
from normalfan_paper.ledger_page import to_html, to_markdown

if TYPE_CHECKING:
    import polars

QUICK_SEEDS = 4
LIBRARIES = ("numpy", "scipy", "numba", "polars", "matplotlib")
"""What decides digits and pictures, beside this package and Python."""


def run_experiments(
    experiments: Sequence[Experiment],
    scale: Scale,
    folder: str | Path,
    engine: Serial | Processes | Cluster,
    *,
    command: str,
    progress: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Ledger:
    """Run `experiments` at a `scale`, with everything written to `folder`.

    `command` is what the ledger says it was run by; `tell` is called with a line after each experiment.
    """
    _require_libraries()
    target = Path(folder)
    store = Store(target / "cells")
    sections = []
    for number, experiment in enumerate(experiments, start=1):
        label = f"{experiment.id} ({number} of {len(experiments)})"
        sections.append(_run(experiment, scale, target, store, engine, progress, label))
        tell(_in_a_line(sections[-1]))
    ledger = Ledger(
        command=command,
        seeds=scale.seeds,
        quick=scale.quick,
        workers=_where(engine),
        versions=_versions(),
        sections=tuple(sections),
    )
    _write(ledger, target)
    return ledger


def _run(
    experiment: Experiment,
    scale: Scale,
    target: Path,
    store: Store,
    engine: Serial | Processes | Cluster,
    progress: bool,
    label: str,
) -> Section:
    cells = [Cell(experiment.task, settings) for settings in experiment.cells(scale)]
    begun = time.perf_counter()
    outcome = run_cells(cells, store, engine, progress=progress, label=label)
    rows: tuple[LedgerRow, ...] = ()
    figures: tuple[str, ...] = ()
    if not outcome.failed:
        frame = _concatenated(cells, store)
        _write_frame(frame, target / "data" / f"{experiment.id}.parquet")
        rows = tuple(experiment.check(frame))
        drawn = experiment.draw(frame, target / "figures")
        figures = tuple(path.name for path in drawn if path.suffix == ".png")
    return Section(
        id=experiment.id,
        title=experiment.title,
        rows=rows,
        choices=experiment.choices,
        figures=figures,
        cells=len(cells),
        reused=outcome.reused,
        cpu_seconds=sum(store.seconds(cell) for cell in cells if cell in store),
        wall_seconds=time.perf_counter() - begun,
        failures=tuple(f"{cell}: {message}" for cell, message in outcome.failures),
    )


def _concatenated(cells: Sequence[Cell], store: Store) -> polars.DataFrame:
    import polars

    return polars.concat([store.read(cell) for cell in cells])


def _write_frame(frame: polars.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    _write_bytes(path, content.getvalue())


def _write(ledger: Ledger, target: Path) -> None:
    times = {
        section.id: {"cpu_seconds": section.cpu_seconds, "wall_seconds": section.wall_seconds}
        for section in ledger.sections
    }
    pages = {
        "ledger.json": _json(ledger.to_document()),
        "times.json": _json(times),
        "ledger.md": to_markdown(ledger),
        "ledger.html": to_html(ledger, target / "figures"),
        "fan.html": to_fan_page(),
    }
    for name, text in pages.items():
        _write_bytes(target / name, text.encode())


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _write_bytes(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as file:
        file.write(content)


def _in_a_line(section: Section) -> str:
    if section.failures:
        return f"{section.id}: {len(section.failures)} of {section.cells} cells failed"
    return (
        f"{section.id}: {len(section.rows)} rows from {section.cells} cells, {section.reused} of them reused"
    )


def _where(engine: Serial | Processes | Cluster) -> str:
    from normalfan.jobs.engines import usable_cores

    if isinstance(engine, Processes):
        return f"{engine.workers or usable_cores()} processes of one machine"
    return "one process" if isinstance(engine, Serial) else "a Dask cluster"


def _versions() -> dict[str, str]:
    import normalfan

    found = {"normalfan": normalfan.__version__, "Python": platform.python_version()}
    return found | {library: importlib.metadata.version(library) for library in LIBRARIES}


def _require_libraries() -> None:
    """Said before hours of work, not after them."""
    for library, purpose in (("matplotlib", "the figures need"), ("jinja2", "the ledger's pages need")):
        if importlib.util.find_spec(library) is None:
            raise InputError(
                f"{library} is not installed, but {purpose} it: pip install normalfan-paper, which brings it."
            )

"""A tiny experiment whose cells leave a trace each time they are computed."""

from __future__ import annotations

import time
from pathlib import Path

import polars

from normalfan_paper.experiment import Choice, Experiment, LedgerRow, Scale, Settings, Verdict

GATED = 3


def run_cell(settings: Settings) -> polars.DataFrame:
    while settings["number"] == GATED and settings["gate"] and not Path(settings["gate"]).exists():
        time.sleep(0.01)
    if settings["number"] == settings["broken"]:
        raise ValueError("this cell is broken")
    with Path(settings["trace"]).open("a") as trace:
        trace.write(f"{settings['number']}\n")
    return polars.DataFrame({"number": [settings["number"]]})


def _check(frame: polars.DataFrame) -> list[LedgerRow]:
    total = int(frame["number"].sum())
    verdict = Verdict.HOLDS if total == sum(range(len(frame))) else Verdict.FALSE
    return [
        LedgerRow("stub/sum", "It adds | up.", f"The sum is {total}.", verdict, "Counted.", {"sum": total})
    ]


def _draw(frame: polars.DataFrame, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "stub.pdf", folder / "stub.png"]
    for path in paths:
        path.write_bytes(bytes(frame["number"].to_list()))  # drawing takes long, and is tested elsewhere
    return paths


def stub(trace: Path, *, cells: int = 4, gate: Path | None = None, broken: int = -1) -> Experiment:
    """With a `gate`, the cell `GATED` waits until that file exists."""
    base = {"trace": str(trace), "gate": str(gate or ""), "broken": broken}

    def all_cells(scale: Scale) -> list[Settings]:
        return [{**base, "number": n, "seeds": scale.seeds} for n in range(cells)]

    return Experiment(
        id="stub",
        title="A stub",
        cells=all_cells,
        task="stub_experiment:run_cell",
        check=_check,
        draw=_draw,
        choices=(Choice("stub/way", "Which <way>?", "this one", ("that one",), ("stub/sum",)),),
    )

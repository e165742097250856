"""Losses as tables: what a plain loop reads."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.io.cell_tables import every_round
from normalfan.problem.losses import names_of_rounds
from normalfan.problem.mdp import Labels

MDP = nf.MDP(
    np.array([[0, 1, 0], [1, 0, 0]]),
    0,
    2,
    labels=Labels(("dawn", "dusk"), ("home", "away"), ("stay", "go", "rest")),
)


@pytest.mark.parametrize(
    "lacking", [(), ("step",), ("state",), ("step", "action"), ("step", "state", "action")]
)
def test_a_shuffled_table_is_what_a_loop_reads(
    lacking: tuple[str, ...], rng: np.random.Generator, tmp_path: Path
) -> None:
    path = tmp_path / "losses.csv"
    nf.io.save_losses(
        nf.ArrayLosses(rng.normal(size=(3, *MDP.shape)), round_names=("b", "a", "c")), MDP, path
    )
    keys = [name for name in ("round", "step", "state", "action") if name not in lacking]
    frame = pl.read_csv(path).drop(lacking).unique(keys, keep="first")
    frame = frame.select(rng.permutation(frame.columns).tolist()).sample(fraction=1, shuffle=True, seed=1)
    frame.write_csv(path)
    back = nf.io.open_losses(path, MDP)
    names = names_of_rounds(back)
    assert names == tuple(frame["round"].unique(maintain_order=True))
    rounds = every_round(back, MDP)
    labels = {
        "step": MDP.labels.steps,
        "state": MDP.labels.states,
        "action": MDP.labels.actions,
    }
    with path.open() as file:
        for row in csv.DictReader(file):
            assert names is not None
            place = tuple(
                slice(None) if name in lacking else known.index(row[name])  # type: ignore[union-attr]
                for name, known in labels.items()
            )
            assert (rounds[(names.index(row["round"]), *place)] == float(row["loss"])).all()


def test_rounds_by_number_are_put_in_order_on_request(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text(
        "round,action,loss\n" + "".join(f"{t},{a},{t}\n" for t in (10, 9, 8) for a in ("stay", "go", "rest"))
    )
    check_refusal(lambda: nf.io.open_losses(path, MDP), "losses.csv has round 9 after round 10")
    losses = nf.io.open_losses(path, MDP, order="sorted")
    assert names_of_rounds(losses) == ("8", "9", "10")
    assert np.array_equal(every_round(losses, MDP)[:, 0, 0, 0], [8, 9, 10])
    assert names_of_rounds(nf.io.open_losses(path, MDP, order="file")) == ("10", "9", "8")
    path.write_text(path.read_text().replace("10,", "2,").replace("9,", "1,").replace("8,", "0,"))
    assert names_of_rounds(nf.io.open_losses(path, MDP, order="sorted")) is None  # they are the indices


def test_a_default_stands_for_missing_cells(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("round,step,state,action,loss\nmon,dawn,home,go,2\ntue,dusk,away,rest,3\n")
    rounds = every_round(nf.io.open_losses(path, MDP, default=-1), MDP)
    expected = np.full((2, *MDP.shape), -1.0)
    expected[0, 0, 0, 1], expected[1, 1, 1, 2] = 2, 3
    assert np.array_equal(rounds, expected)
    path.write_text("round,action,loss\nmon,go,0.5\n")
    assert every_round(nf.io.open_losses(path, MDP, default=0), MDP)[0, 0, 0].tolist() == [0.0, 0.5, 0.0]
    path.write_text("round,step,state,action,loss\nmon,dawn,home,go,2\n")
    check_refusal(
        lambda: nf.io.open_losses(path, MDP), "no loss for round mon, step dawn, state home, action stay"
    )


def test_cells_that_are_left_out_must_fit_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("round,action,loss\nmon,go,1\ntue,go,1\n")
    check_refusal(lambda: nf.io.open_losses(path, MDP, default=0, max_memory=40), "losses.csv takes 48 bytes")


@pytest.mark.parametrize("default", ["0", True, [0]])
def test_a_default_is_a_number(default: object, tmp_path: Path) -> None:
    (tmp_path / "losses.csv").write_text("round,action,loss\nmon,go,1\n")
    check_refusal(
        lambda: nf.io.open_losses(tmp_path / "losses.csv", MDP, default=default),  # type: ignore[arg-type]
        f"default is {default!r}",
    )


def test_features_may_lack_columns_and_cells(tmp_path: Path) -> None:
    """Power is paid by action at every step and state, tolls at one place, the rest nowhere."""
    (tmp_path / "f.csv").write_text("feature,action,value\npower,go,2\npower,rest,-1\n")
    (tmp_path / "wide.csv").write_text("round,power\nmon,10\ntue,20\n")
    (tmp_path / "long.csv").write_text("round,feature,coefficient\nmon,power,10\ntue,power,20\n")
    expected = np.zeros((2, *MDP.shape))
    expected[..., 1], expected[..., 2] = 2, -1
    expected *= np.array([10, 20])[:, None, None, None]
    for name in ("wide.csv", "long.csv"):
        losses = nf.io.open_losses(tmp_path / name, MDP, features=tmp_path / "f.csv")
        assert names_of_rounds(losses) == ("mon", "tue")
        assert np.array_equal(every_round(losses, MDP), expected)
    (tmp_path / "wide.csv").write_text("power,round\n20,2\n10,1\n")
    losses = nf.io.open_losses(tmp_path / "wide.csv", MDP, features=tmp_path / "f.csv", order="sorted")
    assert names_of_rounds(losses) == ("1", "2")
    assert np.array_equal(every_round(losses, MDP), expected)
    (tmp_path / "f.csv").write_text("feature,step,state,action,value\npower,dusk,away,go,2\n")
    losses = nf.io.open_losses(tmp_path / "wide.csv", MDP, features=tmp_path / "f.csv", order="sorted")
    assert np.count_nonzero(every_round(losses, MDP)[0]) == 1
    assert every_round(losses, MDP)[1, 1, 1, 1] == 40


def test_features_along_every_choice_of_columns(rng: np.random.Generator, tmp_path: Path) -> None:
    columns = {"step": MDP.labels.steps, "state": MDP.labels.states, "action": MDP.labels.actions}
    (tmp_path / "c.csv").write_text("round,f\n0,1\n")
    for choice in range(8):
        kept = [name for i, name in enumerate(columns) if choice >> i & 1]
        sizes = [len(columns[name]) if name in kept else 1 for name in columns]  # type: ignore[arg-type]
        values = rng.normal(size=sizes)
        rows = [
            ",".join(
                ["f", *(columns[n][place[list(columns).index(n)]] for n in kept), repr(float(values[place]))]
            )  # type: ignore[index]
            for place in np.ndindex(*sizes)
        ]
        (tmp_path / "f.csv").write_text("\n".join([",".join(["feature", *kept, "value"]), *rows]) + "\n")
        losses = nf.io.open_losses(tmp_path / "c.csv", MDP, features=tmp_path / "f.csv")
        assert np.array_equal(every_round(losses, MDP)[0], np.broadcast_to(values, MDP.shape))


def test_several_features_may_be_the_same_everywhere() -> None:
    features = pl.DataFrame({"feature": ["power", "toll"], "value": [2.0, 3.0]})
    coefficients = pl.DataFrame({"round": ["mon", "tue"], "power": [1.0, 10.0], "toll": [0.0, 1.0]})
    losses = nf.io.open_losses(coefficients, MDP, features=features)
    everywhere = np.broadcast_to(np.array([2.0, 23.0])[:, None, None, None], (2, *MDP.shape))
    assert np.array_equal(every_round(losses, MDP), everywhere)

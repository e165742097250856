"""Losses through files: every format gives the same rounds, and tables what a plain loop reads."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.io.loss_tables import every_round
from normalfan.problem.labels import Labels
from normalfan.problem.losses import names_of_rounds, rounds_of

SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
MDP = nf.MDP(
    np.array([[0, 1, 0], [1, 0, 0]]),
    0,
    2,
    labels=Labels(("dawn", "dusk"), ("home", "away"), ("stay", "go", "rest")),
)


def spoken(rng: np.random.Generator, n_rounds: int = 3) -> np.ndarray:
    return rng.normal(size=(n_rounds, *MDP.shape))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_arrays_come_back(suffix: str, rng: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / f"losses{suffix}"
    for _ in range(10):
        problem = random_problem(rng)
        mdp, array = problem.mdp(), problem.losses + rng.normal(size=problem.losses.shape)
        names = [f"day {i}" for i in rng.permutation(len(array))]
        for losses in (nf.ArrayLosses(array), nf.ArrayLosses(array, round_names=names)):
            nf.io.save_losses(losses, mdp, path)
            back = nf.io.open_losses(path, mdp)
            assert np.array_equal(every_round(back, mdp), array)
            if suffix != ".npy":  # which has no room for names
                assert names_of_rounds(back) == losses.round_names


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_factored_losses_come_back(suffix: str, rng: np.random.Generator, tmp_path: Path) -> None:
    features = rng.normal(size=(3, *MDP.shape)) * (rng.random((3, *MDP.shape)) < 0.5)
    features[:, 0, 0, 0] = 1.0  # no feature may vanish: a table could not name it
    losses = nf.FactoredLosses(rng.normal(size=(4, 3)), features, round_names=list("wxyz"))
    tabled = suffix in (".csv", ".parquet")
    where = tmp_path / f"features{suffix}" if tabled else None
    nf.io.save_losses(losses, MDP, tmp_path / f"losses{suffix}", features=where)
    back = nf.io.open_losses(tmp_path / f"losses{suffix}", MDP, features=where)
    assert isinstance(back, nf.FactoredLosses) == (suffix != ".npy")
    assert np.array_equal(every_round(back, MDP), every_round(losses, MDP))


def test_a_npy_file_is_mapped_and_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "losses.npy", np.zeros((5, *MDP.shape), dtype=np.float32))
    losses = nf.io.open_losses(tmp_path / "losses.npy", MDP)
    assert isinstance(losses, nf.ArrayLosses)
    assert isinstance(losses.array, np.ndarray)
    assert isinstance(losses.array if isinstance(losses.array, np.memmap) else losses.array.base, np.memmap)


@pytest.mark.parametrize(("axes", "shape"), [("THSA", (2, 2, 2, 3)), ("TSA", (2, 2, 3)), ("TA", (2, 3))])
def test_arrays_may_lack_axes(axes: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "losses.npy", np.zeros(shape))
    losses = nf.io.open_losses(tmp_path / "losses.npy", MDP, axes=axes)
    assert isinstance(losses, nf.ArrayLosses)
    assert losses.axes == axes
    if axes != "THSA":
        check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.npy", MDP), "--axes TSA")


def test_axes_are_for_arrays_and_never_guessed(tmp_path: Path) -> None:
    np.save(tmp_path / "losses.npy", np.zeros((2, 2, 3)))  # T, H, A as well as T, S, A
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.npy", MDP), "losses.npy has shape [2, 2, 3]")
    assert nf.io.open_losses(tmp_path / "losses.npy", MDP, axes="THA").axes == "THA"  # type: ignore[union-attr]
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.npy", MDP, axes="THS"), "[·, 2, 3]")
    (tmp_path / "losses.csv").write_text("round,loss\n0,1\n")
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.csv", MDP, axes="T"), "axes is 'T'")
    np.savez(tmp_path / "factored.npz", coefficients=np.ones((2, 1)), features=np.ones((1, *MDP.shape)))
    check_refusal(lambda: nf.io.open_losses(tmp_path / "factored.npz", MDP, axes="TSA"), "axes is 'TSA'")


@pytest.mark.parametrize(
    "lacking", [(), ("step",), ("state",), ("step", "action"), ("step", "state", "action")]
)
def test_a_shuffled_table_is_what_a_loop_reads(
    lacking: tuple[str, ...], rng: np.random.Generator, tmp_path: Path
) -> None:
    path = tmp_path / "losses.csv"
    nf.io.save_losses(nf.ArrayLosses(spoken(rng), round_names=("b", "a", "c")), MDP, path)
    keys = [name for name in ("round", "step", "state", "action") if name not in lacking]
    frame = pl.read_csv(path).drop(lacking).unique(keys, keep="first")
    frame = frame.select(rng.permutation(frame.columns).tolist()).sample(fraction=1, shuffle=True, seed=1)
    frame.write_csv(path)
    losses = nf.io.open_losses(path, MDP)
    names = names_of_rounds(losses)
    assert names == tuple(frame["round"].unique(maintain_order=True))
    rounds = every_round(losses, MDP)
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


def test_rounds_by_number_are_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text(
        "round,action,loss\n" + "".join(f"{t},{a},{t}\n" for t in (10, 9, 8) for a in ("stay", "go", "rest"))
    )
    losses = nf.io.open_losses(path, MDP)
    assert names_of_rounds(losses) == ("8", "9", "10")
    assert np.array_equal(every_round(losses, MDP)[:, 0, 0, 0], [8, 9, 10])
    path.write_text(path.read_text().replace("10,", "2,").replace("9,", "1,").replace("8,", "0,"))
    assert names_of_rounds(nf.io.open_losses(path, MDP)) is None  # they are the indices


def test_a_default_stands_for_missing_cells(tmp_path: Path) -> None:
    path = tmp_path / "losses.csv"
    path.write_text("round,step,state,action,loss\nmon,dawn,home,go,2\ntue,dusk,away,rest,3\n")
    rounds = every_round(nf.io.open_losses(path, MDP, default=-1), MDP)
    expected = np.full((2, *MDP.shape), -1.0)
    expected[0, 0, 0, 1], expected[1, 1, 1, 2] = 2, 3
    assert np.array_equal(rounds, expected)
    check_refusal(
        lambda: nf.io.open_losses(path, MDP), "no loss for round mon, step dawn, state home, action stay"
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
    losses = nf.io.open_losses(tmp_path / "wide.csv", MDP, features=tmp_path / "f.csv")
    assert names_of_rounds(losses) == ("1", "2")
    assert np.array_equal(every_round(losses, MDP), expected)
    (tmp_path / "f.csv").write_text("feature,step,state,action,value\npower,dusk,away,go,2\n")
    losses = nf.io.open_losses(tmp_path / "wide.csv", MDP, features=tmp_path / "f.csv")
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


def test_some_rounds_of_a_stream(rng: np.random.Generator) -> None:
    array = spoken(rng, 5)
    factored = nf.FactoredLosses(rng.normal(size=(5, 2)), rng.normal(size=(2, *MDP.shape)))
    for stream in (nf.ArrayLosses(array), factored, nf.rewards(factored), nf.ArrayLosses(array[:, 0], "TSA")):
        some = every_round(rounds_of(stream, 2, 4), MDP)
        assert np.array_equal(some, every_round(stream, MDP)[2:4])
    check_refusal(lambda: rounds_of(nf.IterableLosses(iter(array)), 0, 2), "IterableLosses")


def test_arrays_open_without_their_problem_and_tables_do_not(tmp_path: Path) -> None:
    losses = np.arange(24.0).reshape(2, 3, 2, 2)
    np.save(tmp_path / "losses.npy", losses)
    np.savez(tmp_path / "losses.npz", losses=losses)
    for name in ("losses.npy", "losses.npz"):
        np.testing.assert_array_equal(nf.io.open_losses(tmp_path / name).array, losses)
    (tmp_path / "losses.csv").write_text("round,loss\n0,1\n")
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.csv"), "losses.csv is opened without its mdp")

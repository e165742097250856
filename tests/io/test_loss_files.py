"""Losses through files: every format gives the same rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.io.cell_tables import every_round
from normalfan.problem.losses import names_of_rounds, rounds_of
from normalfan.problem.mdp import Labels

SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
MDP = nf.MDP(
    np.array([[0, 1, 0], [1, 0, 0]]),
    0,
    2,
    labels=Labels(("dawn", "dusk"), ("home", "away"), ("stay", "go", "rest")),
)


def some_losses(rng: np.random.Generator, n_rounds: int = 3) -> np.ndarray:
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


def test_some_rounds_of_a_stream(rng: np.random.Generator) -> None:
    array = some_losses(rng, 5)
    factored = nf.FactoredLosses(rng.normal(size=(5, 2)), rng.normal(size=(2, *MDP.shape)))
    for stream in (nf.ArrayLosses(array), factored, nf.rewards(factored), nf.ArrayLosses(array[:, 0], "TSA")):
        some = every_round(rounds_of(stream, slice(2, 4)), MDP)
        assert np.array_equal(some, every_round(stream, MDP)[2:4])
    check_refusal(lambda: rounds_of(nf.IterableLosses(iter(array)), [0, 1]), "IterableLosses")


def test_arrays_open_without_their_problem_and_tables_do_not(tmp_path: Path) -> None:
    losses = np.arange(24.0).reshape(2, 3, 2, 2)
    np.save(tmp_path / "losses.npy", losses)
    np.savez(tmp_path / "losses.npz", losses=losses)
    for name in ("losses.npy", "losses.npz"):
        np.testing.assert_array_equal(nf.io.open_losses(tmp_path / name).array, losses)
    (tmp_path / "losses.csv").write_text("round,loss\n0,1\n")
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.csv"), "losses.csv is opened without its mdp")


def test_a_frame_and_a_folder_of_parts_are_tables_too(rng: np.random.Generator, tmp_path: Path) -> None:
    array = some_losses(rng, 6)
    nf.io.save_losses(nf.ArrayLosses(array), MDP, tmp_path / "whole.parquet")
    frame = polars.read_parquet(tmp_path / "whole.parquet")
    parts = tmp_path / "member=a.npy"  # its name is no suffix
    parts.mkdir()
    frame.head(20).with_columns(member=polars.lit("a")).write_parquet(parts / "0.parquet")
    frame.tail(-20).with_columns(member=polars.lit("a")).write_parquet(parts / "1.parquet")
    for source in (frame, parts, str(parts)):
        assert np.array_equal(every_round(nf.io.open_losses(source, MDP), MDP), array)
    coefficients = polars.DataFrame({"round": ["x", "y"], "power": [1.0, 2.0]})
    features = tmp_path / "features.csv"
    features.write_text("feature,action,value\npower,go,3\n")
    factored = nf.io.open_losses(coefficients, MDP, features=features)
    assert every_round(factored, MDP)[1, 0, 0].tolist() == [0.0, 6.0, 0.0]


def test_bad_frames_and_folders_are_refused(tmp_path: Path) -> None:
    def opened(source: object) -> Callable[[], object]:
        return lambda: nf.io.open_losses(source, MDP)  # type: ignore[arg-type]

    frame = polars.DataFrame({"round": [0, 0], "loss": [1.0, None]})
    check_refusal(opened(frame), "the frame, row 2 has nothing as loss")
    check_refusal(opened(frame.rename({"loss": "cost"})), "the frame has the columns round, cost")
    check_refusal(lambda: nf.io.open_losses(frame), "the frame is opened without its mdp")
    check_refusal(opened(tmp_path), "has no .parquet file")
    frame.write_parquet(tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_bytes(b"no table")
    check_refusal(opened(tmp_path), f"{tmp_path} cannot be read")


def test_stored_factored_losses_keep_the_names_of_their_features(tmp_path: Path) -> None:
    names = {"round_names": ["mon", "tue"], "feature_names": ["power"]}
    nf.io.save_losses(
        nf.FactoredLosses(np.ones((2, 1)), np.ones((1, *MDP.shape)), **names), MDP, tmp_path / "days.npz"
    )
    read = nf.io.open_losses(tmp_path / "days.npz", MDP)
    assert isinstance(read, nf.FactoredLosses)
    assert (read.round_names, read.feature_names) == (("mon", "tue"), ("power",))

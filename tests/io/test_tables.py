"""What every table allows: order, types and names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import normalfan as nf
from normalfan.problem.mdp import Labels

HEADER = "state,action,next_state,probability\n"


def test_whole_numbers_keep_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_text(HEADER + "10,0,2,1\n2,0,10,1\n\n 2 , 1, 2, 1\n10,1,10,1\n")
    mdp = nf.io.load_mdp(path, horizon=2, start=10)
    assert mdp.labels == Labels(states=("10", "2"))
    assert np.array_equal(mdp.initial, [1, 0])
    assert np.array_equal(mdp.transitions.expect(0, np.array([7.0, 5.0])), [[5, 7], [7, 5]])


def test_a_parquet_table_may_have_numbers_and_categories(tmp_path: Path) -> None:
    frame = pl.DataFrame({"state": [1, 0], "action": ["a", "a"], "next_state": [0, 1], "probability": [1, 1]})
    frame.with_columns(pl.col("action").cast(pl.Categorical)).write_parquet(tmp_path / "m.parquet")
    mdp = nf.io.load_mdp(tmp_path / "m.parquet", horizon=2, start=0)
    assert mdp.labels == Labels(states=("1", "0"), actions=("a",))
    assert np.array_equal(mdp.transitions.expect(0, np.array([5.0, 7.0])), [[7], [5]])


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_any_text_may_be_a_name(suffix: str, tmp_path: Path) -> None:
    labels = Labels(states=('a "b", c', "naïve → 'x'", "1e5"), actions=("-1", "0,5"))
    mdp = nf.MDP(np.array([[0, 1], [2, 1], [2, 0]]), 0, 2, labels=labels)
    nf.io.save_mdp(mdp, tmp_path / f"m{suffix}")
    assert nf.io.load_mdp(tmp_path / f"m{suffix}").labels == labels


def test_names_of_files_are_taken_literally(tmp_path: Path) -> None:
    path = tmp_path / "shop[1].csv"
    path.write_text(HEADER + "open,sell,closed,1\n")
    assert nf.io.load_mdp(path, horizon=1, start="open").n_states == 2

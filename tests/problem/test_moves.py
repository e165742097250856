"""Lists of moves become the form of transitions that fits them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.problem.transitions import FULL_ENOUGH, transitions_of_moves


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_stationary_problem_stays_one_kernel(suffix: str, tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), [0.25, 0.75], 5)
    nf.io.save_mdp(mdp, tmp_path / f"model{suffix}")
    back = nf.io.load_mdp(tmp_path / f"model{suffix}")
    assert back.transitions.n_kernels == 1
    assert repr(back) == repr(mdp)
    assert back.fingerprint == mdp.fingerprint


@pytest.mark.parametrize(("n_states", "kind"), [(2, "Dense"), (9, "Sparse")])
def test_the_form_fits_the_problem(n_states: int, kind: str, tmp_path: Path) -> None:
    kernel = np.zeros((n_states, 1, n_states))
    kernel[:, 0, :2] = 0.5
    assert (2 / n_states >= FULL_ENOUGH) == (kind == "Dense")
    nf.io.save_mdp(nf.MDP(kernel, 0, 2), tmp_path / "m.csv")
    assert kind in repr(nf.io.load_mdp(tmp_path / "m.csv"))


def test_only_single_moves_of_probability_one_are_certain() -> None:
    rows, nexts = np.array([0, 0, 1]), np.array([0, 1, 0])
    certain = transitions_of_moves(rows, nexts, np.array([0.0, 1.0, 1.0]), (1, 2, 1))
    assert certain.tolist() == [[1], [0]]
    doubled = transitions_of_moves(rows, nexts, np.array([0.5, 1.0, 1.0]), (1, 2, 1))
    check_refusal(lambda: nf.MDP(doubled, 0, 1), "sums to 1.5")

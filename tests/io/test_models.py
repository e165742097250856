"""Problems through files: the same problem back, and tables read as a plain loop reads them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.problem.labels import Labels

SUFFIXES = (".npz", ".csv", ".parquet")
HEADER = "state,action,next_state,probability\n"
SHOP = HEADER + "open,sell,open,0.75\nopen,sell,closed,0.25\nopen,wait,open,1\n"


def named(mdp: nf.MDP, rng: np.random.Generator) -> nf.MDP:
    """The same problem with names, in no alphabetical order."""
    names = ([f"{kind}{i}" for i in rng.permutation(n)] for kind, n in zip("hsa", mdp.shape, strict=True))
    return nf.MDP(mdp.transitions, mdp.initial, mdp.horizon, labels=Labels(*(tuple(kind) for kind in names)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_problem_comes_back(suffix: str, rng: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    for _ in range(20):
        problem = random_problem(rng)
        for kind in problem.kinds():
            plain = problem.mdp(kind)
            for mdp in (plain, named(plain, rng)):
                nf.io.save_mdp(mdp, path)
                back = nf.io.load_mdp(path)
                assert back.fingerprint == mdp.fingerprint
                assert back.labels == mdp.labels


def test_a_shuffled_table_is_what_a_loop_reads(rng: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    for _ in range(10):
        mdp = named(random_problem(rng).mdp(), rng)
        nf.io.save_mdp(mdp, path)
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], *rng.permutation(lines[1:])]) + "\n")
        back = nf.io.load_mdp(path)
        with path.open() as file:
            for row in csv.DictReader(file):
                assert back.labels.steps is not None
                h = back.labels.steps.index(row["step"])
                s, j = (list(map(back.labels.state, range(back.n_states))).index(row[name])
                        for name in ("state", "next_state"))  # fmt: skip
                a = list(map(back.labels.action, range(back.n_actions))).index(row["action"])
                kernel = back.transitions.csr(h)
                assert kernel[s * back.n_actions + a, j] == float(row["probability"])
                assert back.initial[s] == float(row["start"])
        assert sum(back.transitions.csr(h).nnz for h in range(back.horizon)) == len(lines) - 1


def test_states_without_rows_are_ends(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(SHOP)
    shop = nf.io.load_mdp(tmp_path / "shop.csv", horizon=3, start="open")
    assert shop.labels == Labels(states=("open", "closed"), actions=("sell", "wait"))
    dense = shop.transitions.csr(0).toarray().reshape(2, 2, 2)
    assert np.array_equal(dense, [[[0.75, 0.25], [1, 0]], [[0, 1], [0, 1]]])
    assert np.array_equal(nf.io.load_mdp(tmp_path / "shop.csv", horizon=3, start=1).initial, [0, 1])


def test_states_need_rows_only_where_they_can_be_reached(tmp_path: Path) -> None:
    """`late` has rows at dusk only, where it can be; without them the table has a hole."""
    path = tmp_path / "day.csv"
    rows = ["dawn,early,go,late,1", "dusk,late,go,early,1"]
    header = "step," + HEADER
    path.write_text(header + "\n".join(rows) + "\n")
    mdp = nf.io.load_mdp(path, start="early")
    assert mdp.labels.steps == ("dawn", "dusk")
    path.write_text(header + "\n".join([*rows, "night,late,go,late,1"]) + "\n")
    check_refusal(lambda: nf.io.load_mdp(path, start="early"), "no row for state early at step night")


def test_horizon_and_start_override_what_is_stored(tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, 5, labels=Labels(states=("a", "b")))
    nf.io.save_mdp(mdp, tmp_path / "m.npz")
    other = nf.io.load_mdp(tmp_path / "m.npz", horizon=2, start="b")
    assert other.horizon == 2
    assert np.array_equal(other.initial, [0, 1])
    assert other.labels == mdp.labels
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "m.npz", horizon=0), "horizon is 0")


@pytest.mark.parametrize("kind", ["dense", "sparse", "deterministic"])
def test_arrays_that_do_not_fit_are_refused(kind: str, rng: np.random.Generator, tmp_path: Path) -> None:
    """Each array of a stored problem in turn gives way to one of the wrong shape or kind."""
    problem = next(
        p for p in iter(lambda: random_problem(rng), None) if kind in p.kinds() and p.shape[1] == 3
    )
    nf.io.save_mdp(named(problem.mdp(kind), rng), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        arrays = dict(file)
    odd = (np.array("x"), np.zeros(0), np.full((2, 2, 2, 2), np.nan), np.array([-7, 99]), np.array(np.inf))
    for name in arrays:
        for wrong in odd:
            np.savez(tmp_path / "bad.npz", **arrays | {name: wrong})
            check_refusal(lambda: nf.io.load_mdp(tmp_path / "bad.npz"), "bad.npz")


def test_only_known_suffixes_are_written(tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0]]), 0, 1)
    check_refusal(lambda: nf.io.save_mdp(mdp, tmp_path / "m.txt"), "'.txt'")
    assert not list(tmp_path.iterdir())

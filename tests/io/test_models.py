"""Problems through files: the same problem back, and tables read as a plain loop reads them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from flips import flips
from problems import random_problem
from scipy.sparse import csr_array
from sentences import check_refusal

import normalfan as nf
from normalfan.array_files import read_npz, unpack_arrays
from normalfan.problem.mdp import Labels, mdp_from_arrays

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
    assert np.array_equal(nf.io.load_mdp(tmp_path / "shop.csv", horizon=3, start="closed").initial, [0, 1])


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
    arrays = read_npz(tmp_path / "good.npz")
    odd = (np.array("x"), np.zeros(0), np.full((2, 2, 2, 2), np.nan), np.array([-7, 99]), np.array(np.inf))
    for name in arrays:
        for wrong in odd:
            np.savez(tmp_path / "bad.npz", **arrays | {name: wrong})
            check_refusal(lambda: nf.io.load_mdp(tmp_path / "bad.npz"), "bad.npz")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_numbers_keep_their_order(
    suffix: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    """The hours of a night, and states that are numbers: the same problem and the same prices."""
    labels = Labels(steps=("22", "23", "0", "1"), states=("10", "5"), actions=("1", "0"))
    night = nf.MDP(rng.dirichlet(np.ones(2), size=(4, 2, 2)), 0, labels=labels)
    losses = nf.ArrayLosses(rng.normal(size=(5, *night.shape)))
    prices = nf.price_stream(night, losses).prices
    nf.io.save_mdp(night, tmp_path / f"night{suffix}")
    back = nf.io.load_mdp(tmp_path / f"night{suffix}")
    assert back.labels == labels
    assert back.fingerprint == night.fingerprint
    for other in (".csv", ".parquet"):
        nf.io.save_losses(losses, night, tmp_path / f"losses{other}")
        opened = nf.io.open_losses(tmp_path / f"losses{other}", back)
        assert np.array_equal(nf.price_stream(back, opened).prices, prices)
    nf.io.save_losses(losses, night, tmp_path / "losses.npy")
    refused = "action 1 is the model's number 0"
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.npy", back), refused)


def test_a_label_is_a_label(tmp_path: Path) -> None:
    shop = nf.MDP(np.array([[0], [1], [2], [3]]), 0, 2, labels=Labels(states=("0", "5", "10", "15")))
    for suffix in SUFFIXES:
        path = tmp_path / f"shop{suffix}"
        nf.io.save_mdp(shop, path)
        assert np.flatnonzero(nf.io.load_mdp(path, start="10").initial).tolist() == [2]
        assert np.flatnonzero(nf.io.load_mdp(path, start=10).initial).tolist() == [2]
        for start in ("3", 3, True, 10.0, "05"):
            check_refusal(lambda: nf.io.load_mdp(path, start=start), "the states are called 0, 5, 10, 15")  # noqa: B023
    nf.io.save_mdp(nf.MDP(np.array([[0], [1]]), 0, 2), tmp_path / "unnamed.csv")
    assert np.array_equal(nf.io.load_mdp(tmp_path / "unnamed.csv", start=1).initial, [0, 1])


def test_numbered_steps_in_no_order_are_refused(tmp_path: Path) -> None:
    """Sorted by state, the table would begin with step 1: file order would be a different problem."""
    path = tmp_path / "day.csv"
    path.write_text("step," + HEADER + "1,late,go,late,1\n0,early,go,late,1\n1,early,go,early,1\n")
    check_refusal(lambda: nf.io.load_mdp(path, start="early"), "line 4 goes back to step 1")
    path.write_text("step," + HEADER + "0,early,go,late,1\n1,early,go,early,1\n1,late,go,late,1\n")
    assert nf.io.load_mdp(path, start="early").labels.steps is None  # they are the indices


@pytest.mark.parametrize("horizon", [2.7, True, "3"])
def test_a_horizon_is_a_whole_number(horizon: object, tmp_path: Path) -> None:
    nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), 0, 2), tmp_path / "m.npz")
    load = nf.io.load_mdp
    check_refusal(lambda: load(tmp_path / "m.npz", horizon=horizon), f"horizon is {horizon!r}")  # type: ignore[arg-type]
    np.savez(tmp_path / "odd.npz", **read_npz(tmp_path / "m.npz") | {"horizon": np.array(horizon)})
    check_refusal(lambda: load(tmp_path / "odd.npz"), "odd.npz")


def test_a_flipped_bit_of_a_stored_problem(tmp_path: Path) -> None:
    """An error of ours, or the same problem where the format ignores the bit."""
    mdp = nf.MDP(csr_array([[0.0, 1.0], [1.0, 0.0]]), 0, 2)
    path = tmp_path / "m.npz"
    nf.io.save_mdp(mdp, path)
    whole = path.read_bytes()
    refused = []
    for damaged in flips(whole):
        try:
            back = mdp_from_arrays(unpack_arrays(damaged, "m.npz"))
        except nf.InputError:
            refused.append(True)
        else:
            refused.append(False)
            assert (back.fingerprint, back.labels) == (mdp.fingerprint, mdp.labels), len(refused)
    assert np.mean(refused) > 0.5


def test_what_is_declared_must_fit_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    nf.io.save_mdp(nf.MDP(np.array([[0, 0]]), 0, 2), path)
    check_refusal(lambda: nf.io.load_mdp(path, horizon=10**15), "m.npz takes ")
    check_refusal(lambda: nf.io.load_mdp(path, max_memory=100), "m.npz takes ")
    (tmp_path / "shop.csv").write_text(SHOP)
    check_refusal(
        lambda: nf.io.load_mdp(tmp_path / "shop.csv", horizon=10**15, start="open"), "shop.csv takes "
    )


def test_only_known_suffixes_are_written(tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0]]), 0, 1)
    check_refusal(lambda: nf.io.save_mdp(mdp, tmp_path / "m.txt"), "'.txt'")
    assert not list(tmp_path.iterdir())

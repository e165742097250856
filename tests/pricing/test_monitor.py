"""One loss at a time: the same numbers as the batch, across restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flips import flips
from hypothesis import given
from hypothesis import strategies as st
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.array_files import pack_arrays, unpack_arrays


@given(st.integers(0, 2**32 - 1))
def test_monitor_equals_batch_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=12)
    mdp = problem.mdp(str(rng.choice(problem.kinds())))
    losses = problem.losses + rng.choice([0.0, 1e-13, 0.3]) * rng.normal(size=problem.losses.shape)
    motion = nf.price_stream(mdp, losses)
    monitor = nf.Monitor(mdp)
    for t, loss in enumerate(losses):
        step = monitor.update(loss)
        assert step.round == t
        for name, column in motion.columns().items():
            assert getattr(step, name) == column[t], name
        assert step.by_step == tuple(motion.by_step[t])
    assert monitor.total == motion.total
    assert monitor.rounds == len(losses)


def test_saved_and_resumed_at_every_round(tmp_path: Path, rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=8)
    path = tmp_path / "monitor.npz"
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        uninterrupted = nf.Monitor(mdp, ties=nf.TieRule(relative=1e-9))
        nf.Monitor(mdp, ties=nf.TieRule(relative=1e-9)).save(path)
        for loss in problem.losses:
            resumed = nf.Monitor.load(path)
            assert resumed.update(loss) == uninterrupted.update(loss)
            assert resumed.total == uninterrupted.total
            resumed.save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_small_snapshots_need_their_problem(tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=2)
    monitor = nf.Monitor(mdp)
    monitor.update(np.zeros((2, 2, 2)))
    monitor.save(tmp_path / "small.npz", with_problem=False)
    assert nf.Monitor.load(tmp_path / "small.npz", mdp).rounds == 1
    with pytest.raises(nf.InputError, match="without its problem"):
        nf.Monitor.load(tmp_path / "small.npz")


def test_a_snapshot_of_another_problem_is_refused(tmp_path: Path) -> None:
    nexts = np.array([[0, 1], [1, 0]])
    nf.Monitor(nf.MDP(nexts, 0, horizon=2)).save(tmp_path / "a.npz")
    with pytest.raises(nf.InputError, match="another problem"):
        nf.Monitor.load(tmp_path / "a.npz", nf.MDP(nexts, 1, horizon=2))


def test_files_that_are_no_snapshot_are_refused(tmp_path: Path) -> None:
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=2)
    whole = tmp_path / "whole.npz"
    nf.Monitor(mdp).save(whole)
    (tmp_path / "truncated.npz").write_bytes(whole.read_bytes()[:200])
    (tmp_path / "text.npz").write_text("not a snapshot")
    (tmp_path / "empty.npz").touch()
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    np.save(tmp_path / "array.npy", np.ones(3))
    names = ("missing.npz", "truncated.npz", "text.npz", "empty.npz", "other.npz", "array.npy")
    for name in names:
        with pytest.raises(nf.InputError, match=name):
            nf.Monitor.load(tmp_path / name)


def test_a_refused_loss_leaves_the_monitor_as_it_was() -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
    monitor = nf.Monitor(mdp)
    monitor.update([[[0.0, 1.0]]])
    for bad in ([[[np.nan, 0.0]]], [[0.0, 1.0]], "loss"):
        with pytest.raises(nf.InputError):
            monitor.update(bad)
    assert monitor.update([[[1.0, 0.0]]]).price == 1.0
    assert monitor.rounds == 2


def test_the_monitor_keeps_no_hold_on_the_callers_array() -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
    monitor = nf.Monitor(mdp)
    loss = np.array([[[0.0, 1.0]]])
    monitor.update(loss)
    loss[...] = [1.0, 0.0]
    assert monitor.update(loss).price == 1.0


def test_a_failed_save_leaves_the_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = nf.MDP(np.array([[0, 0]]), 0, horizon=1)
    path = tmp_path / "monitor.npz"
    monitor = nf.Monitor(mdp)
    monitor.save(path)
    monitor.update([[[0.0, 1.0]]])

    def disk_full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("normalfan.array_files.pack_arrays", disk_full)
    with pytest.raises(OSError, match="no space"):
        monitor.save(path)
    assert nf.Monitor.load(path).rounds == 0
    assert list(tmp_path.iterdir()) == [path]


def small_monitor() -> nf.Monitor:
    monitor = nf.Monitor(nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=2))
    monitor.update(np.zeros((2, 2, 2)))
    monitor.update(np.arange(8.0).reshape(2, 2, 2))
    return monitor


def test_a_flipped_bit_of_a_snapshot_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    monitor, path = small_monitor(), tmp_path / "s.npz"
    monitor.save(path, with_problem=False)
    same = {name: array.tolist() for name, array in monitor.to_arrays().items()}
    outcomes = []
    for flipped in flips(path.read_bytes()):
        path.write_bytes(flipped)
        try:
            loaded = nf.Monitor.load(path, monitor.mdp)
        except nf.InputError:
            outcomes.append("refused")
        else:
            outcomes.append("the same")
            assert {name: array.tolist() for name, array in loaded.to_arrays().items()} == same
    assert outcomes.count("refused") > 0.6 * len(outcomes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ties", value) for value in (None, np.array([0.0, 1.0]), np.array([0.0, np.nan, 1.0]))),
        *(("rounds", value) for value in (None, np.array([1, 2]), np.array(-7), np.array(2.9))),
        *(("sum", np.array(value)) for value in ("abc", "1/0", "-1", "1e400", "nan", 3)),
        *(("exact_when_ambiguous", value) for value in (None, np.array("x"), np.array(2))),
        *(("snapshot_schema", value) for value in (None, np.array("x"), np.array([1, 1]), np.array(9))),
        *(("fingerprint", value) for value in (None, np.array(3), np.array("other"))),
        *(("previous", value) for value in (np.zeros(3), np.full((2, 2, 2), np.inf), np.array("x"))),
        *((f"problem_{name}", None) for name in ("horizon", "initial", "nexts", "schema")),
        ("problem_horizon", np.array([1, 2])),
    ],
)
def test_a_malformed_snapshot_is_refused_by_name(name: str, value: Any, tmp_path: Path) -> None:
    small_monitor().save(tmp_path / "s.npz")
    arrays = unpack_arrays((tmp_path / "s.npz").read_bytes(), "s")
    changed = {key: array for key, array in (arrays | {name: value}).items() if array is not None}
    (tmp_path / "s.npz").write_bytes(pack_arrays(changed))
    check_refusal(lambda: nf.Monitor.load(tmp_path / "s.npz"), "")


def test_a_total_beyond_all_floats_is_refused_and_the_monitor_goes_on() -> None:
    monitor = nf.Monitor(nf.MDP(np.array([[0, 0]]), 0, horizon=1))
    for loss in ([0.0, 8e307], [8e307, 0.0], [0.0, 8e307]):
        monitor.update([[loss]])
    before = monitor.to_arrays()
    check_refusal(lambda: monitor.update([[[8e307, 0.0]]]), "round 3 add up")
    for name, array in monitor.to_arrays().items():
        assert np.array_equal(array, before[name]), name
    assert monitor.update([[[1.0, 0.0]]]).price == 1

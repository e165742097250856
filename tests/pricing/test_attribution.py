"""Where a price is paid: one rule, whoever asks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.motion import CostliestCell
from normalfan.pricing.summary import summarise
from normalfan.problem.mdp import Labels
from normalfan.report.costliest import read_costliest, rows_of

START, GOOD, BAD = range(3)
JUMP, DISCHARGE, REST = range(3)


@pytest.fixture
def battery() -> tuple[nf.MDP, np.ndarray]:
    """Yesterday jump, discharge and rest were optimal; today each of them pays 5, and a jump 3 more later."""
    labels = Labels(
        ("dawn", "dusk"), ("start", "good", "bad"), ("jump", "discharge", "rest", "sell it", "sell")
    )
    nexts = np.repeat(np.arange(3)[:, None], 5, axis=1)
    nexts[START] = [BAD, GOOD, GOOD, GOOD, GOOD]
    mdp = nf.MDP(nexts, START, horizon=2, labels=labels)
    yesterday, today = np.zeros(mdp.shape), np.zeros(mdp.shape)
    yesterday[0, START, 3:] = 9
    yesterday[1, :, 1:] = 1
    today[0, START, :3] = 5
    today[1, BAD, JUMP] = 3
    return mdp, np.stack([yesterday, today])


def test_price_watch_and_report_name_the_same_cell(battery: tuple[nf.MDP, np.ndarray]) -> None:
    mdp, losses = battery
    face = nf.optimal_face(mdp, losses[0])
    crossing = nf.price(face, losses[1])

    # Three plausible rules disagree here: the first old action of the same advantage is a jump (which pays
    # more later), the plan that was found discharges, and the shortest name for what it does is rest.
    advantages = optimal_backup(mdp, losses[1]).advantages[0, START]
    paying = advantages == advantages[DISCHARGE]
    assert int((face.mask[0, START] & paying).argmax()) == JUMP
    assert int(crossing.policy[0, START].argmax()) == DISCHARGE

    expected = CostliestCell("dawn", "start", "rest", "sell", 5.0, 0, START, REST, 4)
    motion = nf.price_stream(mdp, losses)
    assert [motion.costliest_cell(t) for t in range(2)] == [None, expected]
    assert motion.to_frame()["costliest_action"].to_list() == [None, "rest"]
    assert [one.cell for one in summarise(mdp, losses, motion).costliest] == [expected]

    changes = read_costliest(mdp, losses, motion, DEFAULT_TIES).changes
    (row,) = rows_of(motion, motion.variation(), changes, "")
    assert row.where == "dawn, start: rest → sell"
    assert row.plan[0].old.text == "rest at start"

    monitor = nf.Monitor(mdp)
    assert [monitor.update(loss).costliest for loss in losses] == [None, expected]


def test_the_cell_has_the_largest_part_and_an_optimal_action() -> None:
    paid = 0
    for seed in range(60):
        mdp, losses = random_stream(seed)
        motion = nf.price_stream(mdp, losses)
        for t, (old, new) in enumerate(pairwise(losses), start=1):
            crossing, cell = nf.price(nf.optimal_face(mdp, old), new), motion.costliest_cell(t)
            if crossing.price == 0:
                assert cell is None
                continue
            assert cell is not None
            parts = crossing.attribution.sum(axis=2)
            h, s = cell.step_index, cell.state_index
            assert cell.paid == pytest.approx(parts[h, s], rel=1e-12) == pytest.approx(parts.max(), rel=1e-12)
            assert not (parts.ravel()[: h * mdp.n_states + s] > cell.paid * (1 + 1e-9)).any()
            advantages = optimal_backup(mdp, new).settled(mdp, DEFAULT_TIES)[h, s]
            assert advantages[cell.best_action_index] == 0
            mine = int(crossing.policy[h, s].argmax())
            assert advantages[cell.action_index] == pytest.approx(advantages[mine])
            assert advantages[mine] > 0
            paid += 1
    assert paid > 60


@pytest.mark.parametrize("arms", [1, 7, 8, 19])
def test_the_cell_of_a_bandit_is_its_arms(arms: int) -> None:
    rng = np.random.default_rng(arms)
    losses = rng.integers(0, 4, (200, 1, 1, arms)).astype(float)
    motion = nf.price_stream(nf.MDP(np.zeros((1, arms), int), 0, horizon=1), losses)
    for t in range(1, 200):
        before, now = losses[t - 1].ravel(), losses[t].ravel()
        held = np.where(before == before.min(), now, np.inf)
        cell = motion.costliest_cell(t)
        if motion.prices[t] == 0:
            assert cell is None
            continue
        assert cell is not None
        assert (cell.paid, now[cell.best_action_index]) == (motion.prices[t], now.min())
        assert now[cell.action_index] == held.min()  # or another arm that costs the same: one move

"""Where a price is paid: one rule, whoever asks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import random_stream

import normalfan as nf
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.attribution import CostliestCell, costliest_cell
from normalfan.pricing.summary import summarise
from normalfan.problem.labels import Labels
from normalfan.report.attribution_map import read_costliest
from normalfan.report.table import rows_of
from normalfan.watch.cells import CostliestCells

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
    assert costliest_cell(mdp, crossing, losses[1]) == expected

    motion = nf.price_stream(mdp, losses)
    assert [one.cell for one in summarise(mdp, losses, motion).costliest] == [expected]

    changes = read_costliest(mdp, losses, motion, DEFAULT_TIES).changes
    (row,) = rows_of(motion, motion.variation(), changes, "")
    assert row.where == "dawn, start: rest"
    assert row.plan[0].old.text == "rest at start"

    cells = CostliestCells(nf.Monitor(mdp).pricer.reader)
    record = {"step": "dawn", "state": "start", "action": "rest", "price": 5.0}
    assert cells.find(losses[0], losses[1]) == record


def test_the_cell_has_the_largest_part_and_an_optimal_action() -> None:
    paid = 0
    for seed in range(60):
        mdp, losses = random_stream(seed)
        for old, new in pairwise(losses):
            crossing = nf.price(nf.optimal_face(mdp, old), new)
            cell = costliest_cell(mdp, crossing, new)
            if crossing.price == 0:
                assert cell is None
                continue
            assert cell is not None
            parts = crossing.attribution.sum(axis=2)
            h, s = cell.step_index, cell.state_index
            assert cell.paid == parts[h, s] == parts.max()
            assert not (parts.ravel()[: h * mdp.n_states + s] == cell.paid).any()
            advantages = optimal_backup(mdp, new).settled(mdp, DEFAULT_TIES)[h, s]
            assert advantages[cell.best_action_index] == 0
            mine = int(crossing.policy[h, s].argmax())
            assert advantages[cell.action_index] == advantages[mine] > 0
            assert new[h, s, cell.action_index] == new[h, s, mine]
            paid += 1
    assert paid > 60

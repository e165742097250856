"""Plans from tables: what was written is read, what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from problems import random_problem
from sentences import check_refusal

import normalfan as nf

SHOP = nf.MDP(
    [[0, 1], [1, 1]],
    initial=0,
    horizon=2,
    labels=nf.Labels(("am", "pm"), ("open", "closed"), ("wait", "close")),
)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("lots", [False, True])
def test_a_plan_comes_back(suffix: str, lots: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / f"plan{suffix}"
    for _ in range(10):
        problem = random_problem(rng, rounds=3)
        mdp = problem.mdp()
        weights = rng.integers(0, 3, problem.shape) + 0.0
        weights[~weights.any(axis=2), 0] = 1
        plan = weights / weights.sum(axis=2, keepdims=True)
        if not lots:
            plan = np.eye(mdp.n_actions)[plan.argmax(axis=2)]
        nf.io.save_plan(plan, mdp, path)
        again = nf.io.read_plan(path, mdp)
        np.testing.assert_allclose(nf.occupancy(mdp, again), nf.occupancy(mdp, plan), atol=1e-15)
        np.testing.assert_allclose(
            nf.price_stream(mdp, problem.losses, against=again).prices,
            nf.price_stream(mdp, problem.losses, against=plan).prices,
            atol=1e-12,
        )


def test_columns_may_be_left_out_and_unreached_states_too() -> None:
    closes_in_the_afternoon = pl.DataFrame(
        {"step": ["am", "pm"], "state": ["open", "open"], "action": ["wait", "close"]}
    )
    plan = nf.io.read_plan(closes_in_the_afternoon, SHOP)
    assert plan[:, 0].tolist() == [[1, 0], [0, 1]]
    assert plan[:, 1].tolist() == [[0.5, 0.5]] * 2  # never there
    always = nf.io.read_plan(pl.DataFrame({"state": ["open"], "action": ["wait"]}), SHOP)
    assert always[:, 0].tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ({"state": ["open"], "action": ["close"]}, "no action for state closed at step pm"),
        ({"state": ["shut"], "action": ["close"]}, "names the state 'shut'"),
        ({"state": ["open", "open"], "action": ["close", "wait"]}, "row 2 repeats state open"),
        ({"state": ["open"], "action": ["wait"], "probability": [0.4]}, "sum to 0.4"),
        ({"state": ["open"], "action": ["wait"], "probability": [-1]}, "has probability -1"),
        ({"state": ["open"], "action": ["wait"], "day": ["mon"]}, "a column 'day'"),
        ({"state": ["open"]}, "needs state, action"),
    ],
)
def test_what_is_no_plan_is_refused(rows: dict[str, list[object]], where: str) -> None:
    check_refusal(lambda: nf.io.read_plan(pl.DataFrame(rows), SHOP), where)


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    plan = nf.io.read_plan(pl.DataFrame({"state": ["open"], "action": ["wait"]}), SHOP)
    check_refusal(lambda: nf.io.save_plan(plan, SHOP, tmp_path / "plan.txt"), "ends in '.txt'")

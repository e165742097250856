"""What is not allowed, against lists of all policies that are: under fixed masks, and moving ones."""

from __future__ import annotations

import numpy as np
import pytest
from forbidden import Listed, listed
from soaking import repeated

import normalfan as nf
from normalfan.learners import FaceTracker, Oracle, RandomPoint, RandomVertex

CHUNKS, IN_CHUNK = repeated(2, 5), 110
COLUMNS = (
    "prices",
    "values",
    "crossed",
    "dimensions",
    "by_step",
    "margins",
    "lowest_prices",
    "highest_prices",
)


def compare(problem: Listed, mdp: nf.MDP, losses: np.ndarray) -> dict[str, int]:
    """Every number of a stream against the list; returns how often the interesting cases were met."""
    motion = nf.price_stream(mdp, losses)
    quick = nf.price_stream(mdp, losses, detail="prices")
    seen = {"priced": 0, "lost": 0, "closed": 0, "degenerate": 0}
    for t, loss in enumerate(losses):
        mask = problem.face(t)
        face = nf.optimal_face(mdp, loss)
        np.testing.assert_array_equal(face.mask, mask)
        dimension = mask.sum() - mask.any(axis=2).sum()
        assert motion.dimensions[t] == quick.dimensions[t] == dimension
        assert motion.values[t] == pytest.approx(problem.from_the_start(t).min(), abs=1e-12)
        margin, exact = problem.margin(t), nf.cone_margin(mdp, loss)
        for found, is_exact in (
            (exact.value, exact.kind == "exact"),
            (motion.margins[t], motion.margin_exact[t]),
        ):
            assert found == pytest.approx(margin, rel=1e-12) if is_exact else found <= margin * (1 + 1e-12)
        seen["degenerate"] += dimension > 0
        seen["closed"] += (~problem.allowed[t].any(axis=2)).any()
        if t == 0:
            assert motion.prices[0] == 0
            continue
        expected = problem.price(t)
        crossing = nf.price(nf.optimal_face(mdp, losses[t - 1]), loss)
        for found in (motion.prices[t], quick.prices[t], crossing.price, motion.by_step[t].sum()):
            assert found == pytest.approx(expected, rel=1e-12, abs=0)
        assert crossing.attribution.sum() == pytest.approx(expected, rel=1e-12, abs=0)
        np.testing.assert_allclose(motion.by_step[t], crossing.by_step, rtol=1e-12, atol=1e-12)
        assert motion.lowest_prices[t] <= motion.prices[t] <= motion.highest_prices[t]
        assert motion.crossed[t] == quick.crossed[t] == (mask != problem.face(t - 1)).any()
        able = problem.allowed[t].any(axis=2, keepdims=True)
        assert not crossing.policy[~problem.allowed[t] & able].any()
        assert not face.plan[~problem.allowed[t]].any()
        seen["priced"] += expected > 0
        seen["lost"] += (problem.face(t - 1) & ~problem.allowed[t]).any()
    return seen


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("moving", [False, True])
def test_streams_agree_with_lists_of_allowed_policies(chunk: int, moving: bool) -> None:
    seen: dict[str, int] = {}
    for seed in range(chunk * IN_CHUNK, (chunk + 1) * IN_CHUNK):
        problem = listed(seed, moving=moving)
        kind = problem.kinds[seed % len(problem.kinds)]
        mdp, losses = problem.mdp(kind), problem.losses
        for name, times in compare(problem, mdp, losses).items():
            seen[name] = seen.get(name, 0) + int(times)
        if not moving:  # told to the problem, or by every loss: the same bits
            told = problem.mdp(kind, problem.allowed[0])
            mine, other = nf.price_stream(mdp, losses), nf.price_stream(told, problem.costs)
            for column in COLUMNS[:6]:  # intervals may be narrower, of fewer states
                np.testing.assert_array_equal(getattr(mine, column), getattr(other, column))
    assert min(seen["priced"], seen["degenerate"], seen["closed"]) > 20
    assert seen["lost"] > 20 if moving else seen["lost"] == 0


@pytest.mark.parametrize("kind", ["dense", "sparse", "deterministic"])
@pytest.mark.parametrize("rounds", [9, 130])
def test_long_streams_are_their_crossings(kind: str, rounds: int) -> None:
    """Across the blocks of the sweeps, in threads, round by round; next to rounds that forbid nothing."""
    found = 0
    for seed in range(repeated(5, 12)):
        problem = listed(seed * 7 + 1, rounds=rounds)
        if kind not in problem.kinds:
            continue
        found += 1
        problem.allowed[rounds // 3 : rounds // 2] = True
        mdp, losses = problem.mdp(kind), problem.losses
        motion = nf.price_stream(mdp, losses)
        for t in range(1, rounds):
            crossing = nf.price(nf.optimal_face(mdp, losses[t - 1]), losses[t])
            assert motion.prices[t] == pytest.approx(crossing.price, rel=1e-12, abs=0)
            pair = nf.price_stream(mdp, losses[t - 1 : t + 1])
            for column in COLUMNS:
                np.testing.assert_array_equal(getattr(pair, column)[1], getattr(motion, column)[t])
            both = np.isfinite(losses[t - 1]) & np.isfinite(losses[t])
            moved = np.abs(losses[t][both] - losses[t - 1][both])
            assert motion.variation("l1")[t] == pytest.approx(moved.sum())
            assert motion.variation("l2")[t] == pytest.approx(np.sqrt((moved**2).sum()))
            assert motion.variation("linf")[t] == moved.max(initial=0.0)
    assert found > 1


def test_near_ties_of_what_is_allowed_are_read_carefully() -> None:
    """A tie that rounding hides, beside what is not allowed: the intervals contain the exact price."""
    unclear = 0
    for seed in range(300):
        problem = listed(seed, rounds=4)
        rng = np.random.default_rng([seed, 5])
        noise = rng.choice([0.0, 1e-15, 1e-13, 1e-11], size=problem.costs.shape)
        losses = problem.losses / 10 + noise
        mdp = problem.mdp("dense")
        motion = nf.price_stream(mdp, losses)
        decided = nf.price_stream(mdp, losses, exact_when_ambiguous=True)
        for t in range(1, 4):
            exact = nf.certify(mdp, losses[t - 1], losses[t]).price
            assert motion.lowest_prices[t] <= exact <= motion.highest_prices[t]
            unclear += motion.ambiguous[t]
            if motion.ambiguous[t]:
                assert decided.prices[t] == pytest.approx(float(exact), rel=1e-12, abs=0)
    assert unclear > 20


@pytest.mark.parametrize("selector", [None, RandomVertex, RandomPoint, Oracle])
def test_the_regret_of_a_tracker_still_splits(selector: type | None) -> None:
    rng = np.random.default_rng(8)
    erring = 0
    for seed in range(150):
        problem = listed(seed, rounds=5)
        mdp = problem.mdp("dense", problem.allowed.any(axis=0))
        chosen = selector(rng=rng) if selector in (RandomVertex, RandomPoint) else selector and selector()
        log = nf.run(mdp, FaceTracker(mdp, chosen), problem.losses, keep="policies")
        split = nf.decompose(log)
        assert split.exact
        np.testing.assert_allclose(split.residual, 0.0, atol=1e-12)
        assert (split.selection >= -1e-12).all()
        np.testing.assert_allclose(log.prices, nf.price_stream(mdp, problem.losses).prices, rtol=1e-12)
        np.testing.assert_allclose(log.losses_paid - log.values, log.regrets, atol=1e-9)
        able = problem.allowed.any(axis=3, keepdims=True)
        assert not log.plays[~problem.allowed & able].any()
        erring += (split.selection > 1e-9).sum()
    assert (erring > 20) == (selector is not Oracle)


def test_a_monitor_and_its_snapshot_know_what_is_not_allowed(tmp_path) -> None:
    for seed in range(40):
        problem = listed(seed, rounds=5)
        mdp = problem.mdp(problem.kinds[-1], problem.allowed.any(axis=0))
        motion, monitor = nf.price_stream(mdp, problem.losses), nf.Monitor(mdp)
        for t, loss in enumerate(problem.losses):
            priced = monitor.update(loss)
            assert (priced.price, priced.value, priced.margin) == (
                motion.prices[t],
                motion.values[t],
                motion.margins[t],
            )
            monitor.save(tmp_path / "snapshot")
            monitor = nf.Monitor.load(tmp_path / "snapshot")
            if mdp.allowed is not None:
                np.testing.assert_array_equal(monitor.mdp.allowed, mdp.allowed)


def grid() -> nf.MDP:
    labels = nf.Labels(steps=("morning", "noon"), states=("home", "shop"), actions=("stay", "go"))
    return nf.MDP([[0, 1], [1, 0]], initial=0, horizon=2, labels=labels)


def test_a_round_without_a_way_on_is_refused_by_its_names() -> None:
    losses = np.zeros((9, 2, 2, 2))
    losses[7, 1, 1] = np.inf
    sentence = "losses\\[7\\] leaves no action at step noon, state shop, but some policy can be there"
    with pytest.raises(nf.InputError, match=sentence):
        nf.price_stream(grid(), losses)
    with pytest.raises(nf.InputError, match=sentence):
        nf.run(grid(), FaceTracker(grid()), losses)
    losses[7, 0, 0, 1] = np.inf  # now nobody can be in the shop
    assert nf.price_stream(grid(), losses).prices.max() == 0.0
    with pytest.raises(nf.InputError, match="step 0, state 0"):
        nf.price_stream(nf.MDP([[0, 0, 0]], 0, 1), [[[[np.inf, np.inf, np.inf]]]])


@pytest.mark.parametrize("wrong", [np.nan, -np.inf])
@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 1, 9), (2, 9, 3)])
def test_what_is_no_number_is_found_beside_what_is_not_allowed(wrong: float, shape) -> None:
    steps, states, actions = shape
    kernel = np.zeros((states, actions), dtype=int)
    for mdp in (nf.MDP(kernel, 0, steps), nf.MDP(np.eye(states)[kernel], 0, steps)):
        for t in range(3):
            losses = np.zeros((3, *shape))
            losses[:, 0, 0, 1] = np.inf
            losses[t, 0, 0, 1] = wrong
            with pytest.raises(
                nf.InputError, match=rf"losses\[{t}, 0, 0, 1\] is {wrong}, but every loss must"
            ):
                nf.price_stream(mdp, losses)
            told = nf.MDP(kernel, 0, steps, allowed=np.arange(actions) != np.ones((states, 1)))
            with pytest.raises(nf.InputError, match=r"losses\[\d, 0, 0, 1\]"):
                nf.price_stream(told, losses)


def test_overflow_beside_what_is_not_allowed_is_overflow() -> None:
    losses = np.zeros((2, 2, 1, 3))
    losses[1, :, 0, :2] = 1.5e308
    losses[1, :, 0, 2] = np.inf
    for mdp in (nf.MDP([[0, 0, 0]], 0, 2), nf.MDP([[[1.0], [1.0], [1.0]]], 0, 2)):
        with pytest.raises(nf.InputError, match="losses of round 1 add up beyond the range"):
            nf.price_stream(mdp, losses)


def test_an_arm_that_is_closed_leaves_the_best_of_the_others() -> None:
    arms = nf.MDP([[0, 0, 0]], 0, 1)
    motion = nf.price_stream(arms, [[[[1.0, 2.0, 3.0]]], [[[np.inf, 2.0, 3.0]]], [[[0.0, 2.0, np.inf]]]])
    np.testing.assert_array_equal(motion.prices, [0.0, 0.0, 2.0])
    np.testing.assert_array_equal(motion.margins, [1.0, 1.0, 2.0])


def test_a_plan_of_ones_own_does_what_is_allowed_of_it() -> None:
    """One action a state: the price is that of the plan's own face, by the list of what it may do instead."""
    lost = 0
    for seed in range(200):
        problem = listed(seed, rounds=4)
        mdp, losses = problem.mdp(problem.kinds[-1]), problem.losses
        plan = np.random.default_rng([seed, 3]).integers(mdp.n_actions, size=mdp.shape[:2])
        policy = np.eye(mdp.n_actions)[plan]
        motion = nf.price_stream(mdp, losses, against=policy)
        for t, loss in enumerate(losses):
            expected = problem.price_of(policy > 0, t)
            assert motion.prices[t] == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert motion.by_step[t].sum() == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert motion.lowest_prices[t] <= motion.prices[t] <= motion.highest_prices[t]
            assert nf.price(nf.Face(mdp, policy > 0), loss).price == pytest.approx(
                expected, rel=1e-12, abs=1e-12
            )
            lost += expected > 0 and bool((~problem.allowed[t] & (policy > 0)).any())
    assert lost > 20


def test_chances_of_what_is_not_allowed_go_to_the_rest() -> None:
    arms = nf.MDP([[0, 0, 0]], 0, 1)
    motion = nf.price_stream(arms, [[[[1.0, 3.0, np.inf]]]], against=[[[0.25, 0.25, 0.5]]])
    assert motion.prices[0] == 1.0


def test_holding_costs_of_plans_that_are_not_allowed_any_more() -> None:
    """The plan takes the first of what is best; on each day, by the list, what it may do instead."""
    lost = 0
    for seed in range(120):
        problem = listed(seed, rounds=4)
        mdp, losses = problem.mdp(problem.kinds[-1]), problem.losses
        first = [tied & (tied.cumsum(axis=2) == 1) for tied in map(problem.ties, range(4))]
        expected = [[problem.price_of(plan, t) for t in range(4)] for plan in first]
        later = np.where(np.tri(4, k=-1, dtype=bool), np.nan, expected)
        np.testing.assert_allclose(nf.replan.holding_costs(mdp, losses).costs, later, rtol=1e-12, atol=1e-12)
        one = nf.replan.plan_library(mdp, losses, most=1).choices[0]
        assert one.cost == pytest.approx(np.sum(expected, axis=1).min(), abs=1e-12)
        visits = [
            nf.occupancy(mdp, nf.price(nf.Face(mdp, plan), losses[j]).policy) for j, plan in enumerate(first)
        ]
        lost += sum(bool(q[~problem.allowed[t]].any()) for q in visits for t in range(4))
    assert lost > 100


def test_a_model_that_forbids_something_else_is_infinitely_wrong() -> None:
    arms = nf.MDP([[0, 0, 0]], 0, 1)
    loss, model = [[[1.0, 1.5, np.inf]]], [[[1.25, 1.0, np.inf]]]
    assert nf.value_error(arms, loss, model) == 0.5
    assert nf.value_error(arms, loss, [[[1.0, 1.5, 2.0]]]) == np.inf
    assert nf.cone_margin(arms, [[[1.0, np.inf, np.inf]]]).value == np.inf


@pytest.mark.parametrize("name", ["Hedge", "OptimisticHedge", "EuclideanMirrorDescent", "MirrorDescent"])
def test_learners_that_play_every_action_refuse_what_forbids_one(name: str) -> None:
    arms = nf.MDP([[0, 0]], 0, 1)
    with pytest.raises(
        nf.InputError, match=rf"{name} plays every action, but loss\[0, 0, 1\] is not allowed"
    ):
        nf.run(arms, getattr(nf.learners, name)(arms), [[[[0.0, np.inf]]]])

"""Dynamics that move: every statement against the list of all policies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from forbidden import listed, open_dead_ends
from listed_policies import dyadic_rows
from moving import Day, random_days, readings, remembering_price, support_grows
from scipy.sparse import csr_array
from soaking import repeated

import normalfan as nf
from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.geometry.change import effective_loss, transition_variation, value_error_bound

STREAMS = range(repeated(36, 84))
"""With 26 days, or 25 pairs, each: three streams of every shape, or with `SOAK=1` 2,100 pairs."""


@pytest.mark.parametrize("seed", STREAMS)
def test_prices_are_those_of_all_policies_listed(seed):
    days = random_days(seed, 26)
    motion = nf.price_stream((day.mdp(), day.loss) for day in days)
    grown = 0
    for t in range(1, len(days)):
        before, after = days[t - 1], days[t]
        optimal, on_plan, perfect = readings(before, after)
        assert motion.prices[t] == perfect
        assert motion.lowest_prices[t] <= perfect <= motion.highest_prices[t]
        assert motion.until_surprise[t] <= optimal <= on_plan <= perfect
        if support_grows(before, after):
            grown += 1
        else:
            assert motion.until_surprise[t] == optimal == on_plan == perfect
        if (before.ties & before.follow(before.ties)[:, :, None]).sum(axis=2).max() == 1:
            assert optimal == on_plan
        market = before.with_loss(after.loss)
        dynamics = after.with_loss(before.loss)
        alone = market.regret(market.within(before.ties)), dynamics.regret(dynamics.within(before.ties))
        assert (motion.market_alone[t], motion.dynamics_alone[t]) == alone
        assert motion.interaction[t] == perfect - sum(alone)
        assert sum(both[t] for both in motion.shapley()) == perfect
        assert motion.by_step[t].sum() == perfect
        _check_the_theory(before, after, perfect, bool(motion.crossed[t]))
    assert grown > 0 or before.kernel.shape[1] == 1


def _check_the_theory(before, after, perfect, crossed):
    old, new = before.mdp(), after.mdp()
    face = nf.optimal_face(old, before.loss).under(new)
    # Transport: the face is that of yesterday's ties, followed today.
    assert np.array_equal(face.mask, before.ties & after.follow(before.ties)[:, :, None])
    assert crossed == (face != nf.optimal_face(new, after.loss))
    # Zero test.
    assert (perfect == 0) == face.meets(nf.optimal_face(new, after.loss))
    # Attribution: where it is paid is where the minimiser goes, and its advantages add up to the price.
    crossing = nf.price(face, after.loss)
    advantages = optimal_backup(new, after.loss).advantages
    assert crossing.price == perfect == (occupancy(new, crossing.policy) * advantages).sum()
    # Effective loss: with the old transitions, the advantages of the new problem.
    effective = effective_loss(old, new, after.loss)
    assert np.array_equal(optimal_backup(old, effective).advantages, advantages)
    # Bounds.
    error = np.abs(after.paid - before.paid).max()
    assert perfect <= 2 * error
    assert value_error_bound(new, after.loss, old, before.loss) >= error
    per_row = np.abs(after.kernel - before.kernel).sum(axis=3)
    assert transition_variation(old, new) == per_row.max(axis=(1, 2)).sum()


@pytest.mark.parametrize("seed", range(300))
def test_until_surprise_is_the_least_of_all_policies_that_remember_their_way(seed):
    before, after = random_days(seed, 2, shape=[(2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3)][seed % 4])
    motion = nf.price_stream([(before.mdp(), before.loss), (after.mdp(), after.loss)])
    assert motion.until_surprise[1] == remembering_price(before, after)


# --- the same whatever the form ---------------------------------------------------------------------------


def _in_form(day, kind):
    steps, states = day.kernel.shape[:2]
    if kind == "sparse":
        return nf.MDP([csr_array(rows) for rows in day.kernel.reshape(steps, -1, states)], day.start)
    return nf.MDP(day.kernel.argmax(axis=-1), day.start) if kind == "deterministic" else day.mdp()


def _same_numbers(one, other, names=None):
    for name, column in one.columns().items():
        if names is None or name in names:
            assert np.array_equal(column, other.columns()[name], equal_nan=True), name


@pytest.mark.parametrize("seed", range(12))
def test_a_list_of_problems_is_the_same_stream_as_pairs_and_threads_change_nothing(seed):
    days = random_days(seed, 5)
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 3, size=(60, *days[0].loss.shape)).astype(float)
    of_round = rng.integers(5, size=60)
    problems = [day.mdp() for day in days]
    pairs = [(problems[k], loss) for k, loss in zip(of_round, losses, strict=True)]
    motion = nf.price_stream(problems, losses, dynamics_of_round=of_round)
    told = set(motion.columns()) - {"dynamics"}
    _same_numbers(motion, nf.price_stream(pairs), told)
    _same_numbers(motion, nf.price_stream(problems, iter(losses), dynamics_of_round=of_round, threads=2))
    quick = nf.price_stream(problems, losses, dynamics_of_round=of_round, detail="prices")
    _same_numbers(quick, motion)
    if motion.moved is not None:
        for name in ("market_alone", "dynamics_alone", "transition_variations"):
            with pytest.raises(nf.InputError, match=f"{name} is asked for"):
                getattr(quick, name)


@pytest.mark.parametrize("seed", range(24))
def test_representations_agree(seed):
    days = random_days(seed, 12)
    certain = seed % 2 == 0
    if certain:
        states = range(days[0].kernel.shape[1])
        days = [
            Day(1.0 * (day.kernel.argmax(axis=-1)[..., None] == states), day.start, day.loss) for day in days
        ]
    first = nf.price_stream((_in_form(day, "dense"), day.loss) for day in days)
    for kind in ("sparse", "deterministic") if certain else ("sparse",):
        mixed = [(_in_form(day, kind if t % 3 else "dense"), day.loss) for t, day in enumerate(days)]
        _same_numbers(nf.price_stream(mixed), first)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_dynamics_that_do_not_move_give_the_same_bits(kind):
    day = random_days(5, 1, shape=(4, 5, 3))[0]
    mdp, again = _in_form(day, kind), _in_form(day, kind)
    losses = np.random.default_rng(3).normal(size=(70, 4, 5, 3)).round(1)
    fixed = nf.price_stream(mdp, losses)
    assert np.array_equal(fixed.until_surprise, fixed.prices)
    assert np.array_equal(fixed.market_alone, fixed.prices)
    assert not fixed.dynamics_alone.any()
    assert not fixed.transition_variations.any()
    listed = nf.price_stream([mdp, again], losses, dynamics_of_round=[0, 1] * 35)
    _same_numbers(fixed, listed)
    paired = nf.price_stream((mdp if t % 2 else again, loss) for t, loss in enumerate(losses))
    _same_numbers(fixed, paired)
    assert np.array_equal(paired.until_surprise, fixed.prices)


def test_runs_of_one_problem_are_those_of_the_problem_alone():
    one, other = random_days(8, 2, shape=(3, 4, 3))
    losses = np.random.default_rng(4).integers(0, 4, size=(40, 3, 4, 3)).astype(float)
    motion = nf.price_stream([one.mdp(), other.mdp()], losses, dynamics_of_round=[0] * 17 + [1] * 23)
    alone = nf.price_stream(one.mdp(), losses[:17]), nf.price_stream(other.mdp(), losses[17:])
    for name, column in alone[0].columns().items():
        assert np.array_equal(motion.columns()[name][:17], column)
        assert np.array_equal(motion.columns()[name][18:], alone[1].columns()[name][1:])


# --- the split by source ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sign", [1, -1])
def test_the_split_by_source_is_that_of_prices_against_equipment(seed, sign):
    days = random_days(seed, 3)
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 3, size=(3, 2, *days[0].loss.shape))
    prices = rng.integers(0, 3, size=(20, 2))
    of_round = np.sort(rng.integers(3, size=20))
    streams = [nf.FactoredLosses(prices, own) for own in features]
    if sign < 0:
        streams = [nf.rewards(stream) for stream in streams]
    problems = [day.mdp() for day in days]
    motion = nf.price_stream(problems, streams, dynamics_of_round=of_round)
    assert motion.rewards == (sign < 0)

    def loss(t, k):
        return sign * np.tensordot(prices[t], features[k], axes=1).astype(float)

    for t in range(1, 20):
        then, now = of_round[t - 1], of_round[t]
        before = days[then].with_loss(loss(t - 1, then))
        corners = [days[k].with_loss(loss(when, k)) for when, k in ((t, now), (t, then), (t - 1, now))]
        expected = [corner.regret(corner.within(before.ties)) for corner in corners]
        expected[2] = expected[2] if then != now else 0.0
        assert [motion.prices[t], motion.market_alone[t], motion.dynamics_alone[t]] == expected
        assert motion.values[t] == sign * corners[0].paid.min()


def test_equal_dynamics_with_other_quantities_are_another_source():
    arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    quantities = [[[[[1.0, 0.0]]], [[[0.0, 1.0]]]], [[[[3.0, 0.0]]], [[[0.0, 1.0]]]]]
    streams = [nf.FactoredLosses([[1.0, 2.0], [1.0, 2.0]], own) for own in quantities]
    motion = nf.price_stream([arms, arms], streams, dynamics_of_round=[0, 1])
    assert motion.prices[1] == motion.dynamics_alone[1] == 1.0
    assert motion.market_alone[1] == 0.0


# --- what is not allowed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_a_plan_is_completed_across_dynamics_as_within_them(seed):
    before, after = listed(seed, rounds=1), listed(seed + 1000, rounds=1)
    if before.kernel.shape != after.kernel.shape:
        after = _resized(after, before, seed)
    price = after.price_of(before.ties(0), 0)
    for own in (False, True):  # said by the loss, or by the problem
        days = [
            (day.mdp("dense", day.allowed[0] if own else None), day.costs[0] if own else day.losses[0])
            for day in (before, after)
        ]
        motion = nf.price_stream(days)
        assert motion.prices[1] == price
        assert motion.lowest_prices[1] <= price <= motion.highest_prices[1]
        assert motion.until_surprise[1] <= price
        proof = nf.certify(days[1][0], days[0][1], days[1][1], previous_mdp=days[0][0])
        assert proof.price == price
        assert nf.check_certificate(proof)


def _resized(after, before, seed):
    rng = np.random.default_rng([seed, 3])
    steps, states, actions, _ = before.kernel.shape
    kernel = dyadic_rows(rng, steps * states * actions, states).reshape(before.kernel.shape)
    start, costs = dyadic_rows(rng, 1, states)[0], rng.integers(0, 4, size=(1, steps, states, actions)) * 1.0
    allowed = rng.random(costs.shape) < 0.6
    open_dead_ends(rng, kernel, start, allowed[0])
    return type(after)(kernel, start, costs, allowed)


# --- near-ties --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_the_exact_price_of_the_floats_is_in_the_interval(seed):
    rng = np.random.default_rng([seed, 9])
    steps, states, actions = (int(n) for n in rng.integers(1, 4, size=3))
    shape = (steps, states, actions)
    unit = [0.1, 1 / 3, 1e-14, 1.0][seed % 4]
    kernels = rng.dirichlet(np.ones(states), size=(6, *shape)).round(1 + seed % 2) + 1e-3
    kernels /= kernels.sum(axis=-1, keepdims=True)
    losses = rng.integers(0, 3, size=(6, *shape)) * unit + rng.integers(0, 2, size=(6, *shape)) * 1e-16
    problems = [nf.MDP(kernel, 0) for kernel in kernels]
    motion = nf.price_stream(zip(problems, losses, strict=True))
    exactly = nf.price_stream(zip(problems, losses, strict=True), exact_when_ambiguous=True)
    for t in range(1, 6):
        proof = nf.certify(problems[t], losses[t - 1], losses[t], previous_mdp=problems[t - 1])
        assert nf.check_certificate(proof)
        assert proof.matches(problems[t], losses[t - 1], losses[t], previous_mdp=problems[t - 1])
        same = problems[t].fingerprint == problems[t - 1].fingerprint
        assert proof.matches(problems[t], losses[t - 1], losses[t]) == same
        for one in (motion, exactly):
            assert Fraction(one.lowest_prices[t]) <= proof.price <= Fraction(one.highest_prices[t])
        if exactly.decided_exactly[t]:
            assert exactly.prices[t] == pytest.approx(float(proof.price), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("seed", range(repeated(4, 8)))
def test_sums_that_only_rounding_tells_apart_are_enclosed(seed):
    """Tenths add up to numbers that are equal but for rounding, and some losses are off in the last bit."""
    open_ties = 0
    for shape in ((3, 3, 2), (4, 2, 2), (3, 4, 3), (4, 3, 3)):
        days = random_days(seed, 14, shape=shape)
        rng = np.random.default_rng([seed, 10])
        losses = 0.1 * np.stack([day.loss for day in days]) + 0.3 * rng.integers(0, 2, size=(14, *shape))
        losses[rng.random(losses.shape) < 0.2] *= 1 + 2.0**-52
        problems = [day.mdp() for day in days]
        motion = nf.price_stream(zip(problems, losses, strict=True))
        exactly = nf.price_stream(zip(problems, losses, strict=True), exact_when_ambiguous=True)
        for t in range(1, 14):
            price = nf.certify(problems[t], losses[t - 1], losses[t], previous_mdp=problems[t - 1]).price
            for one in (motion, exactly):
                assert Fraction(one.lowest_prices[t]) <= price <= Fraction(one.highest_prices[t])
            if not motion.ambiguous[t] or exactly.decided_exactly[t]:
                assert exactly.prices[t] == pytest.approx(float(price), rel=1e-12, abs=1e-15)
            open_ties += bool(motion.ambiguous[t])
    assert open_ties > 0


def test_a_near_tie_where_only_tomorrow_leads_is_open_too():
    """Nobody is in state 1 yesterday, where 0.3 and 0.1 + 0.2 tie but for rounding; today everybody is."""
    stays, leaves = nf.MDP([[0, 0], [1, 1]], 0, horizon=2), nf.MDP([[1, 1], [1, 1]], 0, horizon=2)
    losses = np.zeros((2, 2, 2, 2))
    losses[0, :, 1] = [0.3, 0.1 + 0.2]
    losses[1, :, 1] = [1.0, 0.0]
    motion = nf.price_stream([stays, leaves], losses, dynamics_of_round=[0, 1])
    assert motion.ambiguous[1]
    assert (motion.prices[1], motion.lowest_prices[1]) == (0.0, 0.0)
    assert motion.highest_prices[1] >= 1.0
    proof = nf.certify(leaves, losses[0], losses[1], previous_mdp=stays)
    assert proof.price == 1


def test_an_absolute_tie_rule_is_not_widened_by_its_band():
    mdp = nf.MDP([[0, 0]], initial=0, horizon=2)
    losses = np.array([[0.0, 1.0], [2.0, 0.0]])[:, None, None, :].repeat(2, axis=1)
    motion = nf.price_stream(mdp, losses, ties=nf.TieRule(absolute=0.05))
    assert motion.prices.tolist() == [0.0, 4.0]
    assert motion.crossed.tolist() == [False, True]


# --- refusals ---------------------------------------------------------------------------------------------

ARMS = nf.MDP([[0, 0]], initial=0, horizon=1)
TWO_ROUNDS = np.zeros((2, 1, 1, 2))


@pytest.mark.parametrize(
    ("problems", "options", "sentence"),
    [
        ([ARMS, ARMS], {"losses": TWO_ROUNDS}, "dynamics_of_round is missing"),
        (ARMS, {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 0]}, "one problem takes losses and no"),
        (ARMS, {}, "one problem takes losses and no"),
        ([ARMS, 3], {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 1]}, "problems must be one MDP"),
        ([ARMS, ARMS], {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 2]}, r"dynamics_of_round\[1\] is 2"),
        ([ARMS, ARMS], {"losses": TWO_ROUNDS, "dynamics_of_round": [0.0, 1.0]}, "pass T integers"),
        (
            [ARMS, ARMS],
            {"losses": TWO_ROUNDS, "dynamics_of_round": [0]},
            "of 1 rounds, but the losses have 2",
        ),
        ([ARMS, ARMS], {"losses": iter(TWO_ROUNDS), "dynamics_of_round": [0] * 3}, "but the losses have 2"),
        ([ARMS, ARMS], {"losses": iter(TWO_ROUNDS), "dynamics_of_round": [0]}, "but the losses have more"),
        (
            [ARMS, nf.MDP([[0]], initial=0, horizon=1)],
            {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 1]},
            r"problems\[1\] has shape \[1, 1, 1\]",
        ),
        (
            [ARMS, nf.MDP([[0, 0]], initial=0, horizon=1, labels=nf.Labels(actions=("a", "b")))],
            {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 1]},
            r"problems\[1\] calls its steps, states or actions by other names",
        ),
        ([ARMS], {"losses": TWO_ROUNDS, "dynamics_of_round": [0, 0], "against": "first"}, "against is not"),
        ([(ARMS, TWO_ROUNDS[0]), 5], {}, "round 1 is of type int"),
        ([], {}, "losses have no round"),
        (
            [ARMS, ARMS],
            {"losses": [nf.ArrayLosses(TWO_ROUNDS)], "dynamics_of_round": [0, 1]},
            "losses are 1 streams for 2 problems",
        ),
        (
            [ARMS, ARMS],
            {
                "losses": [nf.FactoredLosses([[x], [1]], np.ones((1, 1, 1, 2))) for x in (1, 2)],
                "dynamics_of_round": [0, 1],
            },
            r"losses\[1\] have other coefficients",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(problems, options, sentence):
    with pytest.raises(nf.InputError, match=sentence):
        nf.price_stream(problems, **options)


@pytest.mark.parametrize("wrong", [np.nan, -np.inf, np.inf])
def test_a_wrong_loss_is_called_by_its_round(wrong):
    other = nf.MDP([[0, 0]], initial=0, horizon=1, allowed=[[True, False]])
    losses = np.zeros((9, 1, 1, 2))
    losses[6] = wrong
    with pytest.raises(nf.InputError, match=r"losses\[6"):
        nf.price_stream([ARMS, other], losses, dynamics_of_round=[0, 1, 0, 0, 1, 1, 0, 1, 0])


def test_a_loss_that_only_tomorrow_can_meet_is_checked_too():
    stays, leaves = nf.MDP([[0], [1]], initial=0, horizon=2), nf.MDP([[1], [1]], initial=0, horizon=2)
    losses = np.zeros((2, 2, 2, 1))
    losses[0, 1, 1] = np.nan
    with pytest.raises(nf.InputError, match=r"losses\[0, 1, 1, 0\] is nan"):
        nf.price_stream([stays, leaves], losses, dynamics_of_round=[0, 1], detail="prices")


def test_a_corner_that_does_not_exist_has_no_price():
    """Today's loss closes a state that only yesterday's dynamics reach: it has no price in them."""
    stays, leaves = nf.MDP([[0], [1]], initial=0, horizon=2), nf.MDP([[1], [1]], initial=0, horizon=2)
    losses = np.zeros((2, 2, 2, 1))
    losses[1, 1, 0] = np.inf
    motion = nf.price_stream([stays, leaves], losses, dynamics_of_round=[0, 1])
    assert motion.prices[1] == motion.dynamics_alone[1] == 0.0
    assert np.isnan(motion.market_alone[1])

"""The four regimes on the simplex are what they say, and their learners pay what they should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playing import bandit, paid
from sentences import check_refusal

import normalfan as nf
from normalfan.learners import EuclideanMirrorDescent, OptimisticHedge
from normalfan_paper.environments import simplex_regimes
from normalfan_paper.environments.constructions import Instance
from normalfan_paper.simulation import simulate_euclidean_mirror_descent, simulate_optimistic_hedge

GAMMA = 0.25


# --- the regimes ------------------------------------------------------------------------


def rows_of(instance: Instance) -> np.ndarray:
    return instance.losses[:, 0, 0]


@pytest.mark.parametrize("drift", ["walk", "step", "redraw", "offset"])
def test_a_drift_within_a_cone_is_free(drift: simplex_regimes.DriftKind, rng: np.random.Generator) -> None:
    instance = simplex_regimes.within_cone(300, 7, GAMMA, drift=drift, rng=rng)
    rows = rows_of(instance)
    best = rows[0].argmin()
    others = np.delete(rows, best, axis=1) - rows[:, [best]]
    assert (others >= GAMMA - 1e-12).all()
    assert (others <= 1 + 1e-12).all()
    motion = nf.price_stream(*instance)
    assert motion.total == 0.0
    assert not motion.crossed.any()
    assert (motion.variation("linf")[1:] > 0).all()


def test_strides_of_the_drifts(rng: np.random.Generator) -> None:
    moved = {
        drift: np.diff(
            rows_of(simplex_regimes.within_cone(4000, 9, GAMMA, drift=drift, stride=0.01, rng=rng)), axis=0
        )
        for drift in ("walk", "step", "offset")
    }
    # Away from the mirrors a step keeps its length; they shorten few of these short ones.
    assert np.median(np.sqrt((moved["step"] ** 2).sum(axis=1))) == pytest.approx(0.01, rel=1e-6)
    assert np.sqrt((moved["step"] ** 2).sum(axis=1)).max() <= 0.01 + 1e-12
    assert moved["walk"][:, np.ptp(moved["walk"], axis=0) > 0].std() == pytest.approx(0.01, rel=0.03)
    np.testing.assert_allclose(np.ptp(moved["offset"], axis=1), 0.0, atol=1e-12)
    assert moved["offset"].std() == pytest.approx(0.01, rel=0.05)


def test_reflection_by_hand() -> None:
    walk = np.array([0.25, 0.5, 1.0, 1.25, 1.75, 2.0, 0.0, -0.5])
    np.testing.assert_allclose(
        simplex_regimes.reflected(walk, 0.25, 1.0), [0.25, 0.5, 1.0, 0.75, 0.25, 0.5, 0.5, 1.0]
    )


def test_the_wall_is_crossed_cheaply_by_two_arms(rng: np.random.Generator) -> None:
    instance = simplex_regimes.wall(3000, 6, GAMMA, rng=rng)
    rows = rows_of(instance)
    motion = nf.price_stream(*instance)
    assert set(motion.dimensions.tolist()) == {0}
    assert len(np.unique(rows.argmin(axis=1))) == 2
    assert motion.crossed.sum() > 20
    assert 0 < motion.prices.max() < GAMMA / 2
    assert (rows.min(axis=1) == 0).all()
    assert (np.sort(rows, axis=1)[:, 2:] >= GAMMA).all()


def test_the_other_arms_at_the_wall_move_as_told() -> None:
    steps = {}
    for others in ("held", "walk", "redrawn"):
        instance = simplex_regimes.wall(3000, 6, GAMMA, rng=np.random.default_rng(4), others=others)  # type: ignore[arg-type]
        rows = rows_of(instance)
        two = np.unique(rows.argmin(axis=1))
        rest = np.delete(rows, two, axis=1)
        assert (rest >= GAMMA).all()
        steps[others] = np.abs(np.diff(rest, axis=0)).mean()
        prices = nf.price_stream(*instance).prices
        assert 0 < prices.max() < GAMMA / 2  # the two that change places do as before
    assert 5 * steps["held"] < steps["walk"] < steps["redrawn"]
    # A Gaussian step of standard deviation γ is √(2/π) γ long on average, less what reflection folds back.
    assert steps["walk"] == pytest.approx(np.sqrt(2 / np.pi) * GAMMA, rel=0.25)


@pytest.mark.parametrize("between", ["held", "walk", "redrawn"])
@pytest.mark.parametrize("regime", [simplex_regimes.crossings, simplex_regimes.rotating])
def test_crossings_come_at_their_rate_and_cost_at_least_gamma(
    regime: Callable[..., Instance], between: str, rng: np.random.Generator
) -> None:
    instance = regime(2000, 5, GAMMA, rate=0.2, between=between, rng=rng)
    rows, motion = rows_of(instance), nf.price_stream(*instance)
    assert (rows.min(axis=1) == 0).all()
    assert (np.sort(rows, axis=1)[:, 1] >= GAMMA).all()
    best = rows.argmin(axis=1)
    moved = np.append(False, best[1:] != best[:-1])
    np.testing.assert_array_equal(motion.crossed, moved)
    assert moved.mean() == pytest.approx(0.2, abs=0.03)
    # The closed form: the new cost of the arm that was best.
    np.testing.assert_array_equal(motion.prices[1:], rows[np.arange(1, 2000), best[:-1]])
    still = (rows[1:] == rows[:-1]).all(axis=1)
    assert still.any() == (between == "held")
    if regime is simplex_regimes.rotating:
        assert set(np.flatnonzero(moved) % 5) == {0}
        assert set(((best[1:] - best[:-1]) % 5)[moved[1:]].tolist()) == {1}


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_extreme_rates(rate: float, rng: np.random.Generator) -> None:
    for regime in (simplex_regimes.crossings, simplex_regimes.rotating):
        crossed = nf.price_stream(*regime(50, 2, GAMMA, rate=rate, rng=rng)).crossed
        assert crossed[1:].mean() == rate


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "one arm": (lambda: simplex_regimes.wall(5, 1, 0.2, rng=np.random.default_rng()), "arms is 1"),
    "gamma": (lambda: simplex_regimes.wall(5, 3, 1.5, rng=np.random.default_rng()), "gamma is 1.5"),
    "rate": (lambda: simplex_regimes.rotating(5, 3, 0.2, rate=2.0, rng=np.random.default_rng()), "rate is 2"),
    "drift": (
        lambda: simplex_regimes.within_cone(5, 3, 0.2, drift="jump", rng=np.random.default_rng()),  # type: ignore[arg-type]
        "drift is 'jump'",
    ),
    "between": (
        lambda: simplex_regimes.crossings(5, 3, 0.2, rate=1.0, between="x", rng=np.random.default_rng()),  # type: ignore[arg-type]
        "between is 'x'",
    ),
    "steps": (lambda: simulate_optimistic_hedge(nf.MDP([[0], [1]], 0, 2), [], [1.0]), "2 states"),
    "eta": (
        lambda: simulate_euclidean_mirror_descent(bandit(2), np.zeros((1, 1, 1, 2)), [0.0]),
        "etas[0] is 0",
    ),
    "no run": (lambda: simulate_optimistic_hedge(bandit(2), np.zeros((1, 1, 1, 2)), []), "no run"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_a_sentence(case: str) -> None:
    check_refusal(*BAD[case])


# --- the learners -----------------------------------------------------------------------


@pytest.mark.parametrize(("n_arms", "n_runs"), [(1, 1), (2, 3), (5, 8), (33, 9)])
def test_optimistic_hedge_pays_what_the_learner_pays(
    n_arms: int, n_runs: int, rng: np.random.Generator
) -> None:
    mdp, etas = bandit(n_arms), np.geomspace(0.04, 1, n_runs)
    losses = rng.random((60, *mdp.shape)).round(1) - 0.3
    expected = [paid(OptimisticHedge(mdp, eta), losses) for eta in etas]
    np.testing.assert_allclose(simulate_optimistic_hedge(mdp, losses, etas), expected, 1e-12, 1e-13)


@pytest.mark.parametrize(("n_arms", "n_runs"), [(1, 1), (2, 3), (5, 8), (33, 9)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
def test_euclidean_pays_what_the_learner_pays(
    n_arms: int, n_runs: int, scale: float, rng: np.random.Generator
) -> None:
    """Small steps keep all arms in play, large ones a single one; rounded losses make ties."""
    mdp, etas = bandit(n_arms), np.geomspace(0.01, 3, n_runs)
    losses = scale * (rng.random((60, *mdp.shape)).round(1) - 0.3)
    expected = [paid(EuclideanMirrorDescent(mdp, eta), losses) for eta in etas]
    found = simulate_euclidean_mirror_descent(mdp, losses, etas)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-13 * scale)


@pytest.mark.parametrize("regime", ["within_cone", "crossings"])
def test_long_streams_stay_exact(regime: str, rng: np.random.Generator) -> None:
    options = {"rate": 0.05} if regime == "crossings" else {}
    mdp, losses = getattr(simplex_regimes, regime)(1000, 16, GAMMA, rng=rng, **options)
    for simulate, learner in (
        (simulate_optimistic_hedge, OptimisticHedge),
        (simulate_euclidean_mirror_descent, EuclideanMirrorDescent),
    ):
        expected = [paid(learner(mdp, eta), losses) for eta in (0.04, 1.0)]
        np.testing.assert_allclose(simulate(mdp, losses, [0.04, 1.0]), expected, 1e-9, 1e-11)


def test_large_losses_leave_the_play_its_digits(rng: np.random.Generator) -> None:
    losses = 2.0**30 + rng.integers(0, 4, (50, 1, 1, 5)) / 2
    for simulate in (simulate_optimistic_hedge, simulate_euclidean_mirror_descent):
        near_zero = simulate(bandit(5), losses - 2.0**30, [0.3])
        np.testing.assert_allclose(simulate(bandit(5), losses, [0.3]) - 2.0**30, near_zero, 0, 1e-6)


def test_threads_and_neighbours_change_nothing(rng: np.random.Generator) -> None:
    mdp, etas = bandit(4), np.geomspace(0.04, 1, 19)
    losses = rng.random((30, *mdp.shape))
    for simulate in (simulate_optimistic_hedge, simulate_euclidean_mirror_descent):
        together = simulate(mdp, losses, etas)
        np.testing.assert_array_equal(simulate(mdp, losses, etas, threads=2), together)
        np.testing.assert_array_equal(simulate(mdp, losses, etas[10:11])[0], together[10])

"""Ranging where it is easy to get wrong: own plans, rewards, forbidden actions, ties, words, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import random_problem
from scipy.sparse import csr_array
from sentences import check_refusal

import normalfan as nf
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.ranges.today import Today

ARMS = nf.MDP([[0, 0]], initial=0, horizon=1)
SHOP = nf.FactoredLosses(
    [[3.0, 5.0, 1.0], [6.0, 5.0, 1.0]],
    [[[[1, 0]]], [[[0, 1]]], [[[1, 1]]]],
    round_names=["mon", "tue"],
    feature_names=["buy", "make", "rent"],
)


# --- the kernel and its readable twin --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_is_a_backup_with_its_slope(seed: int) -> None:
    problem = random_problem(np.random.default_rng([seed, 3]), rounds=4)
    base, value, slope, other = problem.losses.astype(float)
    features = csr_array(np.stack([value, slope]).reshape(2, -1))
    for kind in problem.kinds():
        mdp = problem.mdp(kind)
        today = Today(
            mdp=mdp,
            loss=base,
            round_name="",
            features=features,
            now=np.zeros(2),
            names=("0", "1"),
            sign=1.0,
            ties=DEFAULT_TIES,
        )
        policy = nf.optimal_face(mdp, other).minimise(other)[1]
        plan = today.plan_of(policy)
        n = seed % 11 + 1
        along = np.tile([0.0, 1.0], (n, 1))
        moves = np.linspace(-2, 2, n)[:, None] * [1.0, 0.0]
        for side in (1.0, -1.0):
            swept = today.backups(moves, along, plan=plan, side=side)
            for i, (t, _) in enumerate(moves):
                backup = optimal_backup(mdp, base + t * value)
                visits = nf.occupancy(mdp, policy)
                np.testing.assert_allclose(swept.values[i], backup.value(mdp), atol=1e-12)
                np.testing.assert_allclose(swept.gaps[i], np.vdot(visits, backup.advantages), atol=1e-12)
                best = nf.optimal_face(mdp, base + t * value).minimise(-side * slope)[0] * -side
                np.testing.assert_allclose(swept.slopes[i], best, atol=1e-12)
                np.testing.assert_allclose(swept.rises[i], np.vdot(visits, slope) - best, atol=1e-12)
        followed = today.follow(swept.picks)
        np.testing.assert_allclose(
            followed[0].reshape(-1, 8)[:, 0],
            nf.occupancy(mdp, today.policy_at(moves[0], along[0])).reshape(-1),
            atol=1e-15,
        )


# --- words and corners -----------------------------------------------------------------------------------


def test_words() -> None:
    found = nf.ranging(ARMS, SHOP, at="mon", tolerance=0.5)
    assert found.words(0) == ("up to 5", "up to 5.5")
    assert found.words(1) == ("from 3 on", "from 2.5 on")
    assert found.words(2) == ("no effect: it costs every plan the same",) * 2
    assert found.optimal[2].tolist() == [-np.inf, np.inf]
    assert found.matters.tolist() == [True, True, False]
    assert found.beyond(2, "high") is None
    assert "no effect" in repr(found)
    assert found._repr_html_().startswith("<table>")
    frame = found.to_frame()
    assert frame.columns[:2] == ["name", "now"]
    assert frame["within_to"].to_list() == [5.5, np.inf, np.inf]
    assert found.nearest_wall() == ("make", 5.0, 2.5, -2.5, 0.5)
    assert found.narrowest == [1, 0, 2]
    bars = found.bars()
    assert (bars.order, bars.relative, bars.edge) == ([1, 0], True, 4.0 * (0.5 + 2.5 / 3) / 2)
    np.testing.assert_allclose(bars.within, [[-0.5, bars.edge], [-bars.edge, 2.5 / 3]])
    ticks = [label.get_text() for label in found.plot().axes[0].get_yticklabels()]
    assert ticks == [found.names[i] for i in bars.order]


def test_nothing_ends_where_every_plan_costs_the_same() -> None:
    found = nf.ranging(ARMS, nf.FactoredLosses([[3.0]], [[[[1, 1]]]]), tolerance=0)
    assert found.nearest_wall() is None
    assert found.bars().order == []
    assert found.plot() is not None


def test_rounds_by_name_number_and_default() -> None:
    ends = [nf.ranging(ARMS, SHOP, at=at).optimal[0, 0] for at in ("tue", 1, -1, None)]
    assert ends == [5.0] * 4
    assert nf.ranging(ARMS, SHOP, at=0).today.round_name == "mon"


def test_a_share_of_the_value() -> None:
    found = nf.ranging(ARMS, SHOP, at="mon", tolerance="25 %")
    assert (found.value, found.tolerance, found.within[0, 1]) == (4.0, 1.0, 6.0)


def test_rewards_have_the_same_ends_and_the_sign_of_rewards() -> None:
    earned = nf.rewards(
        nf.FactoredLosses(SHOP.coefficients, -SHOP.features, feature_names=SHOP.feature_names)
    )
    lost, found = nf.ranging(ARMS, SHOP), nf.ranging(ARMS, earned)
    np.testing.assert_array_equal(found.within, lost.within)
    np.testing.assert_array_equal(found.exposures, -lost.exposures)
    assert found.value == -lost.value
    plain = nf.ranging(ARMS, nf.rewards([[[[-3.0, -5.0]]]]), directions="entries", tolerance=1)
    assert plain.within.tolist() == [[-6.0, np.inf], [-np.inf, -2.0]]
    line = nf.breakpoints(ARMS, earned, direction="buy", within=(0, 10))
    assert line.exposures.tolist() == [-1.0, 0.0]
    assert line.values[0] == -1.0
    plane = nf.regions(ARMS, earned, directions=["buy", "make"], window=4)
    assert plane.price(2.0, 5.0) == 3.0


def test_a_plan_of_ones_own() -> None:
    wrong = np.array([[[0.0, 1.0]]])
    found = nf.ranging(ARMS, SHOP, at="mon", tolerance=0.5, plan=wrong)
    assert found.optimal.tolist()[:2] == [[5.0, np.inf], [-np.inf, 3.0]]  # today is outside
    mixed = np.array([[[0.5, 0.5]]])
    never = nf.ranging(ARMS, SHOP, at="mon", directions=["rent"], tolerance=0.5, plan=mixed)
    assert np.isnan(never.within).all()
    narrow = nf.ranging(ARMS, SHOP, at="mon", directions=["buy"], tolerance=0.25, plan=mixed)
    assert narrow.optimal.tolist() == [[5.0, 5.0]]
    np.testing.assert_allclose(narrow.within, [[4.5, 5.5]])
    assert never.share([1.0]) == np.inf


def test_an_empty_range_is_said_in_words() -> None:
    three = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    losses = nf.FactoredLosses([[1.0, 1.0]], [[[[1, 0, 5]]], [[[0, 0, 1]]]])
    found = nf.ranging(three, losses, tolerance=0, plan=[[[0.0, 0.0, 1.0]]], directions=["1"])
    assert found.words(0) == ("up to −5", "up to −5")
    dominated = nf.FactoredLosses([[1.0, 1.0]], [[[[0, 1, 0]]], [[[0, 0, 3]]]])
    found = nf.ranging(three, dominated, tolerance=0, plan=[[[0.0, 1.0, 0.0]]], directions=["1"])
    assert found.words(0) == ("nowhere", "nowhere")


def test_forbidden_actions_are_never_the_next_plan() -> None:
    three = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    found = nf.ranging(three, [[[1.0, np.inf, 4.0]]], directions="entries", tolerance=0)
    assert found.names == ("0, 0, 0", "0, 0, 2")
    assert found.optimal.tolist() == [[-np.inf, 4.0], [1.0, np.inf]]
    closed = nf.FactoredLosses([[1.0, np.inf, 4.0]], np.eye(3).reshape(3, 1, 1, 3))
    ranged = nf.ranging(three, closed, tolerance=0)
    assert ranged.optimal[0].tolist() == [-np.inf, 4.0]
    assert np.isnan(ranged.optimal[1]).all()
    assert ranged.words(1)[0] == "it is infinite: it forbids actions, and cannot move"
    assert ranged.share([1.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert ranged.share([0.0, 1.0, 0.0]) == np.inf
    assert nf.radius(three, closed, tolerance=3.0, relative=False).lower == 3.0


def test_a_huge_penalty_elsewhere_blurs_nothing() -> None:
    losses = nf.FactoredLosses([[1.0, 1e12]], [[[[1, 0, 0]]], [[[0, 0, 1]]]])
    three = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    found = nf.ranging(three, losses, tolerance=0, plan=[[[1.0, 0.0, 0.0]]])
    assert found.optimal[0].tolist() == [-np.inf, 0.0]


def test_a_tiny_chance_decides_without_a_tolerance() -> None:
    """A state of probability 2^-70 has a say in whether the plan is optimal, exactly."""
    rare = 2.0**-70
    kernel = np.zeros((2, 3, 2, 3))
    kernel[:, :, :, 0] = 1.0
    kernel[0, 0] = [1 - rare, rare, 0.0]
    features = np.zeros((2, 2, 3, 2))
    features[0, 1, 1, 0] = features[1, 1, 1, 1] = 1.0
    losses = nf.FactoredLosses([[1.0, 3.0]], features)
    found = nf.ranging(nf.MDP(kernel, 0), losses, tolerance=1e-3)
    np.testing.assert_allclose(found.optimal, [[-np.inf, 3.0], [1.0, np.inf]])
    assert np.isinf(found.within).all()  # 2^-70 of anything reasonable is tolerable


def test_no_loss_at_all() -> None:
    losses = nf.FactoredLosses([[0.0, 0.0]], [[[[1, 0]]], [[[0, 1]]]])
    found = nf.ranging(ARMS, losses, tolerance=0)
    assert found.words(0) == ("anywhere", "anywhere")  # whatever moves, one of today's plans is best
    assert found.matters.all()
    assert found.exposures.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert found.share([1.0, 0.0]) == np.inf  # but no single one of them
    assert nf.radius(ARMS, losses, tolerance=0, relative=False).upper == 0.0
    assert nf.radius(ARMS, losses, tolerance=0).lower == np.inf  # shares of 0 are 0


def test_directions_of_every_form_agree() -> None:
    rng = np.random.default_rng(5)
    problem = random_problem(rng, rounds=3)
    mdp, features = problem.mdp(), problem.losses.astype(float)
    theta = np.array([2.0, 1.0, -1.0])
    factored = nf.FactoredLosses(theta[None], features)
    loss = np.tensordot(theta, features, axes=1)
    by_name = nf.ranging(mdp, factored, tolerance=0.5)
    for losses, directions in ((factored, np.eye(3)), (factored, features), (loss, features)):
        found = nf.ranging(mdp, losses, directions=directions, tolerance=0.5)
        np.testing.assert_allclose(found.within + theta[:, None], by_name.within, atol=1e-9)
    one = nf.ranging(mdp, loss[None], directions=features[1], tolerance=0.5)
    np.testing.assert_allclose(one.within[0] + 1.0, by_name.within[1], atol=1e-9)


def test_many_entries_are_ranged_in_parts() -> None:
    mdp = nf.MDP(np.zeros((100, 1), dtype=int) + np.arange(2) % 1, initial=0, horizon=90)
    loss = np.tile([0.0, 1.0], (90, 100, 1))
    found = nf.ranging(mdp, loss, directions="entries", tolerance=0)
    assert len(found.names) == 180 > 64 * 2
    np.testing.assert_array_equal(found.optimal[::2, 1], 1.0)
    np.testing.assert_array_equal(found.optimal[1::2, 0], 0.0)


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.lists(st.integers(-64, 64).map(lambda n: n / 64), min_size=3, max_size=3),  # 5e-324 / share is inexact
)
def test_the_100_percent_rule_keeps_its_promise(seed: int, tolerance: float, error: list[float]) -> None:
    problem = random_problem(np.random.default_rng(seed), rounds=3)
    mdp, features = problem.mdp(), problem.losses.astype(float)
    theta = np.array([1.0, 1.0, 0.0])
    found = nf.ranging(mdp, nf.FactoredLosses(theta[None], features), tolerance=tolerance)
    share = found.share(error)
    if not 0 < share < np.inf:
        return
    moved = np.array(error) / share * (1 - 1e-9)
    assert found.allows(moved)
    assert not found.allows(moved * 1.1)
    loss = np.tensordot(theta + moved, features, axes=1)
    paid = np.vdot(nf.occupancy(mdp, found.today.policy), optimal_backup(mdp, loss).advantages)
    assert paid <= tolerance + 1e-9


# --- refusals --------------------------------------------------------------------------------------------

RANGED: dict[str, tuple[dict[str, Any], str]] = {
    "no such round": ({"at": "wed"}, "'mon' to 'tue'"),
    "round too far": ({"at": 2}, "0 to 1"),
    "a truth as a round": ({"at": True}, "at is True"),
    "negative tolerance": ({"tolerance": -1.0}, "tolerance is -1.0"),
    "a number as text": ({"tolerance": "5"}, "tolerance is '5'"),
    "no number": ({"tolerance": "a%"}, "tolerance is 'a%'"),
    "infinite tolerance": ({"tolerance": np.inf}, "tolerance is inf"),
    "unknown feature": ({"directions": ["buy", "sell"]}, "'sell'"),
    "a feature twice": ({"directions": ["buy", "buy"]}, "each once"),
    "no feature": ({"directions": []}, "at least one"),
    "wrong number of coefficients": ({"directions": [1.0, 0.0]}, "directions has shape"),
    "wrong axes": ({"directions": np.zeros((2, 1, 2))}, "directions has shape"),
    "too many axes": ({"directions": np.zeros((1, 1, 1, 1, 2))}, "[1, 1, 1, 1, 2]"),
    "a direction that is no number": ({"directions": [1.0, 0.0, np.nan]}, "directions[2]"),
    "a plan of another shape": ({"plan": [[[1.0]]]}, "policy has shape"),
}


@pytest.mark.parametrize("case", RANGED)
def test_refusals(case: str) -> None:
    options, where = RANGED[case]
    check_refusal(lambda: nf.ranging(ARMS, SHOP, **options), where)


OTHERS: dict[str, tuple[Callable[[], object], str]] = {
    "a single loss has no rounds": (lambda: nf.ranging(ARMS, [[[1.0, 2.0]]], at=0), "at is 0"),
    "a loss has no features": (lambda: nf.ranging(ARMS, [[[1.0, 2.0]]]), "factored"),
    "rounds that cannot be read again": (lambda: nf.ranging(ARMS, iter([[[[1.0, 2.0]]]])), "read"),
    "no round": (lambda: nf.ranging(ARMS, np.zeros((0, 1, 1, 2)), directions="entries"), "no round"),
    "a forbidden plan": (
        lambda: nf.ranging(ARMS, [[[1.0, np.inf]]], directions="entries", plan=[[[0.0, 1.0]]]),
        "plan takes an action",
    ),
    "an unknown norm": (lambda: nf.radius(ARMS, SHOP, norm="l2"), "norm is 'l2'"),  # type: ignore[arg-type]
    "two lines": (lambda: nf.breakpoints(ARMS, SHOP, direction=["buy", "make"], within=(0, 1)), "a line"),
    "an empty line": (lambda: nf.breakpoints(ARMS, SHOP, direction="buy", within=(1, 1)), "within is (1, 1)"),
    "an endless line": (lambda: nf.breakpoints(ARMS, SHOP, direction="buy", within=(0, np.inf)), "within"),
    "one axis": (lambda: nf.region(ARMS, SHOP, directions=["buy"], window=1), "a plane has two"),
    "no window": (lambda: nf.regions(ARMS, SHOP, directions=["buy", "make"], window=0), "window"),
    "half a window": (
        lambda: nf.regions(ARMS, SHOP, directions=["buy", "make"], window=(0, 1)),
        "window has shape",
    ),
    "a point off the line": (
        lambda: nf.breakpoints(ARMS, SHOP, direction="buy", within=(0, 9)).price(10.0),
        "at is 10.0",
    ),
    "a point off the window": (
        lambda: nf.regions(ARMS, SHOP, directions=["buy", "make"], window=1).price(0.0, 0.0),
        "the point (0.0, 0.0)",
    ),
    "a price where one plan is known": (
        lambda: nf.region(ARMS, SHOP, directions=["buy", "make"], window=1).price(6.0, 5.0),
        "nf.regions",
    ),
    "an error that is no number": (lambda: nf.ranging(ARMS, SHOP).share([1.0, np.nan, 0.0]), "error[1]"),
    "an unknown end": (lambda: nf.ranging(ARMS, SHOP).beyond(0, "up"), "end is 'up'"),  # type: ignore[arg-type]
    "an error of another length": (lambda: nf.ranging(ARMS, SHOP).share([1.0]), "error has shape"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_refusals(case: str) -> None:
    check_refusal(*OTHERS[case])

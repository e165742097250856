"""The paper's constructions, priced in exact rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from normalfan import InputError, certify, check_certificate, cone_margin, optimal_face, price_stream
from normalfan.learners.selectors import FaceTracker, Lexicographic
from normalfan.regret import decompose, run
from normalfan_paper.environments.constructions import (
    Instance,
    degenerate_selection,
    large_variation,
    layered_tree,
    lower_bound_adversary,
    single_mdp_separation,
    variation_separation,
)

GAMMA, KAPPA = 0.25, 0.0625  # dyadic: floats hold every number of the constructions exactly


def certified_price(instance: Instance, t: int = 1) -> Fraction:
    certificate = certify(instance.mdp, instance.losses[t - 1], instance.losses[t])
    assert check_certificate(certificate)
    return certificate.price


def old_face_is_a_vertex(instance: Instance) -> bool:
    """Read off the certificate's mask, not off floats."""
    mask = np.array(certify(instance.mdp, *instance.losses[:2]).mask)
    return bool((mask.sum(axis=2)[mask.any(axis=2)] == 1).all())


def changed_entries(instance: Instance) -> np.ndarray:
    before, after = instance.losses
    return np.abs(after - before)[after != before]


@pytest.mark.parametrize("stride", [1.0, 1e6])
def test_large_variation_at_zero_price(stride: float) -> None:
    instance = large_variation(rounds=6, stride=stride, horizon=3)
    log = run(instance.mdp, FaceTracker(instance.mdp), instance.losses)
    assert log.variation("linf")[1:].tolist() == [stride] * 5
    assert log.variation("l1")[1:].tolist() == [6 * stride] * 5
    assert all(certified_price(instance, t) == 0 for t in range(1, 6))
    assert log.regrets[1:].tolist() == [0.0] * 5
    assert not price_stream(*instance).crossed.any()


@pytest.mark.parametrize("horizon", [3, 4, 7, 20])
def test_variation_cannot_see_the_crossing_layer(horizon: int) -> None:
    late, early = variation_separation(horizon, GAMMA, KAPPA)
    trigger = GAMMA * (horizon - 1)
    for instance in (late, early):
        assert changed_entries(instance).tolist() == [trigger]
        assert old_face_is_a_vertex(instance)
    gamma, kappa = Fraction(1, 4), Fraction(1, 16)
    assert certified_price(late) == gamma
    assert certified_price(early) == gamma * (horizon - 1) - kappa
    assert certified_price(early) / certified_price(late) == horizon - 1 - kappa / gamma
    for instance in (late, early):
        split = decompose(run(instance.mdp, FaceTracker(instance.mdp), instance.losses))
        assert split.regret[1] == split.price[1] == certified_price(instance)
        assert split.selection[1] == 0.0


def test_the_late_instance_fails_as_written_at_two_layers() -> None:
    late, early = variation_separation(2, GAMMA, KAPPA)
    assert not old_face_is_a_vertex(late)
    assert certified_price(late) == 0  # the theorem says γ
    assert old_face_is_a_vertex(early)
    assert certified_price(early) == Fraction(1, 4) - Fraction(1, 16)


def test_what_the_paper_leaves_open_in_the_early_instance_matters() -> None:
    """A free way out of the toll node, or a free second action on the line: not the theorem's prices."""
    _, (mdp, losses) = variation_separation(6, GAMMA, KAPPA)
    toll, expensive = 1, 2
    way_out = losses.copy()
    way_out[:, 1, toll, 0] = 0.0
    assert certified_price(Instance(mdp, way_out)) != certified_price(Instance(mdp, losses))
    second_action = losses.copy()
    second_action[:, 1:, expensive, 1] = GAMMA
    assert not old_face_is_a_vertex(Instance(mdp, second_action))


@pytest.mark.parametrize("horizon", [3, 5, 40])
def test_one_problem_opens_the_same_gap(horizon: int) -> None:
    cheap, costly = single_mdp_separation(horizon, GAMMA, KAPPA)
    assert cheap.mdp is costly.mdp
    assert changed_entries(cheap).tolist() == changed_entries(costly).tolist() == [GAMMA * (horizon - 1)]
    assert old_face_is_a_vertex(cheap)
    assert old_face_is_a_vertex(costly)
    ratio = certified_price(costly) / certified_price(cheap)
    assert ratio == horizon - 1 - Fraction(1, 4)
    # What no problem does: the price never exceeds the change of the one entry.
    assert certified_price(costly) <= GAMMA * (horizon - 1)


def test_the_adversary_flips_a_fair_coin_at_full_margin() -> None:
    mdp, losses = lower_bound_adversary(GAMMA, 4000, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(losses[:, 0, 0], axis=1), [[0.0, GAMMA]] * 4000)
    assert (losses[:, 0, 0, 0] == 0).mean() == pytest.approx(0.5, abs=0.03)
    assert {cone_margin(mdp, loss).value for loss in losses[:20]} == {GAMMA}
    crossings = price_stream(mdp, losses).prices[1:]
    assert set(crossings.tolist()) == {0.0, GAMMA}
    assert crossings.mean() == pytest.approx(GAMMA / 2, abs=0.01)


def test_equal_prices_and_different_regret() -> None:
    one, other = degenerate_selection(GAMMA)
    assert certified_price(one) == certified_price(other) == Fraction(1, 4)
    first, second = (
        decompose(run(instance.mdp, FaceTracker(instance.mdp, Lexicographic()), instance.losses))
        for instance in (one, other)
    )
    assert (first.regret[1], second.regret[1]) == (GAMMA, 2 * GAMMA)
    assert (first.selection[1], second.selection[1]) == (0.0, GAMMA)
    assert first.exact
    assert second.exact
    faces = [optimal_face(instance.mdp, instance.losses[1]) for instance in (one, other)]
    assert not faces[0].meets(faces[1])  # they require opposite suffixes


def test_the_tree_charges_every_step_after_the_common_prefix() -> None:
    horizon = 4
    strings = np.array(list(product((0, 1), repeat=horizon)))
    mdp, losses = layered_tree(horizon, GAMMA, strings)
    for loss, best in zip(losses, strings, strict=True):
        for path in strings:
            state, total = 0, 0.0
            for h, action in enumerate(path):
                total += loss[h, state, action]
                state = int(mdp.transitions.nexts[0, state, action])
            differing = np.flatnonzero(path != best)
            prefix = differing[0] if len(differing) else horizon
            assert total == GAMMA * (horizon - prefix)


def test_causal_anisotropy_on_the_tree() -> None:
    """From b to a string that first differs on layer h the price is (H − h + 1)γ, and so is the length."""
    horizon = 6
    base = np.array([0, 1, 1, 0, 1, 0])
    for layer in range(1, horizon + 1):
        turned = base.copy()
        turned[layer - 1] ^= 1
        instance = layered_tree(horizon, GAMMA, [base, turned])
        assert certified_price(instance) == (horizon - layer + 1) * Fraction(1, 4)
        log = run(instance.mdp, FaceTracker(instance.mdp), instance.losses)
        assert log.causal_path_lengths[1] == horizon - layer + 1
        assert log.path_lengths[1] == 2 * (horizon - layer + 1)


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (lambda: variation_separation(1, 1.0, 0.5), "horizon is 1"),
        (lambda: variation_separation(5, 1.0, 1.5), "kappa is 1.5"),
        (lambda: single_mdp_separation(2, 1.0, 0.5), "horizon is 2"),
        (lambda: layered_tree(3, 1.0, [[0, 1]]), r"paths has shape \[1, 2\]"),
        (lambda: layered_tree(2, 1.0, [[0, 1], [0, 2]]), r"paths\[1, 1\] is 2"),
        (lambda: layered_tree(0, 1.0, np.zeros((1, 0), dtype=int)), "horizon is 0"),
    ],
)
def test_parameters_out_of_range_are_named(attempt, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        attempt()

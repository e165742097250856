"""prop-largevar, thm-varsep, rem-twomdps, cor-causal, disc-path: price against variation and path length."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from normalfan.exact.certify import certify
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import optimal_face
from normalfan.learners.selectors import first_vertex
from normalfan.pricing.stream import price_stream
from normalfan_paper.environments.constructions import (
    Instance,
    large_variation,
    layered_tree,
    variation_separation,
)
from normalfan_paper.experiments.statements import counterexamples
from normalfan_paper.experiments.statements.counterexamples import GAMMA, KAPPA, certified
from normalfan_paper.experiments.statements.decomposition import ROUNDING
from normalfan_paper.experiments.statements.finding import Finding, assuming, reading, reported, written
from normalfan_paper.experiments.statements.instances import SEED, cases

HORIZONS = (2, 3, 4, 5, 6, 8, 10, 12)
TREE_HORIZONS = (4, 5, 6, 7, 8)
NEAR_TWO = 0.25
"""How far from 2 a ratio may be and still be called near two."""


def large_variation_zero_price(instances: int) -> Iterator[Finding]:
    """V grows with the stride, Γ stays 0; and what the weighted estimate does."""
    largest = 0.0
    for i, stride in enumerate(np.logspace(0, 9, min(instances, 40))):
        mdp, losses = large_variation(rounds=16, stride=float(stride), horizon=3)
        motion = price_stream(mdp, losses)
        variation = float(motion.variation("linf").sum())
        grows = motion.total == 0.0 and variation >= 15 * stride * (1 - ROUNDING)
        yield written("prop-largevar", "variation", variation, grows, i)
        largest = max(largest, motion.total)
    yield reported("prop-largevar", "price", largest)
    found = counterexamples.weighted_estimate_inside_a_cone()
    grows = found["weighted_estimate"] > found["price"]
    yield written("prop-largevar/estimate", "weighted estimate", found["weighted_estimate"], grows)
    for name, value in found.items():
        yield reported("prop-largevar/estimate", name, value)
    for i, rise in enumerate(2.0 ** np.arange(0, 40, 2)):
        other = counterexamples.weighted_estimate_across_a_wall(float(rise))
        grows = other["crossing_price"] == 1.0 and other["crossing_estimate"] >= 2.0 * rise
        yield assuming("prop-largevar/estimate", "estimate", other["crossing_estimate"], grows, i)
    yield reported("prop-largevar/estimate", "crossing_price", other["crossing_price"])


def variation_separations(instances: int) -> Iterator[Finding]:
    """The theorem by our own pair, the paper's construction, and what it leaves open."""
    for horizon in HORIZONS:
        found = counterexamples.exact_gap(horizon)
        exact = found["ratio"] == horizon - 1 and found["largest_dimension"] == 0
        yield written("thm-varsep", "ratio", found["ratio"], exact, horizon)

        late, early = variation_separation(horizon, GAMMA, KAPPA)
        prices = certified(late), certified(early)
        as_claimed = prices == (GAMMA, GAMMA * (horizon - 1) - KAPPA)
        yield written("thm-varsep/construction", "late price", prices[0], as_claimed, horizon)
        if horizon >= 3:
            yield assuming("thm-varsep/construction", "early price", prices[1], as_claimed, horizon)
            yield reported("thm-varsep/construction", f"ratio_{horizon}", prices[1] / prices[0])
            lengths = [_path_length(instance) for instance in (late, early)]
            registers = lengths == [2.0, 2.0 * horizon]
            yield written("thm-varsep/path-length", "early length", lengths[1], registers, horizon)
            yield from _within_unit_losses(horizon)
    two = counterexamples.separation_at_two_layers()
    yield reported("thm-varsep/construction", "late_at_2", two["late_price"])
    yield reported("thm-varsep/construction", "dimension_at_2", two["late_face_dimension"])
    for name, found in (
        ("free_toll_action", counterexamples.toll_node_left_open()),
        ("undercut", counterexamples.toll_node_at_no_cost()),
    ):
        yield reported("thm-varsep/construction", name, found["price"])
    yield from _literal_ratio(instances)


def _path_length(instance: Instance) -> float:
    """How far the comparator moves, in L1: both faces are vertices."""
    first, second = (
        occupancy(instance.mdp, optimal_face(instance.mdp, loss).minimise(loss)[1])
        for loss in instance.losses
    )
    return float(np.abs(first - second).sum())


def _within_unit_losses(horizon: int) -> Iterator[Finding]:
    """Whether the pair's losses fit into [0, 1], up to a constant: with γ = ¼, and with γ(H−1) + κ ≤ 1."""
    for gamma, role in ((GAMMA, written), (2.0 ** -math.floor(math.log2(horizon - 1) + 1), assuming)):
        pair = variation_separation(horizon, gamma, gamma / 4)
        spread = max(float(np.ptp(instance.losses)) for instance in pair)
        prices = [certified(instance) for instance in pair]
        as_claimed = prices == [gamma, gamma * (horizon - 1) - gamma / 4]
        fits = spread <= 1.0 and as_claimed and prices[1] <= 1.0
        yield role("thm-varsep/bounded", "spread of the losses", spread, fits, horizon)
        if role is assuming:
            yield reported("thm-varsep/bounded", f"early_{horizon}", prices[1])
            yield reported("thm-varsep/bounded", f"late_{horizon}", prices[0])


def _literal_ratio(instances: int) -> Iterator[Finding]:
    """Γ / |change| when one entry changes, in random problems: the price cannot exceed the change."""
    for case in cases("rem-twomdps", instances):
        loss = case.previous.copy()
        change = float(case.rng.choice([-1, 1])) * 2.0 ** float(case.rng.integers(-2, 4))
        loss.reshape(-1)[case.rng.integers(loss.size)] += change
        ratio = float(certify(case.mdp, case.previous, loss).price) / abs(change)
        yield reading(
            "rem-twomdps/two", "price over change", ratio, abs(ratio - 2.0) <= NEAR_TWO, case.instance
        )
        yield written("rem-twomdps/small-constant", "price over change", ratio, ratio <= 1.0, case.instance)


def one_problem_or_two(_: int) -> Iterator[Finding]:
    """Whether one problem can open the gap, and which readings of the figure give two."""
    for horizon in HORIZONS[1:]:
        ratio = counterexamples.single_mdp_gap(horizon)["ratio"]
        late, early = variation_separation(horizon, GAMMA, KAPPA)
        two_problems = certified(early) / certified(late)
        yield written("rem-twomdps", "one problem's ratio", ratio, ratio < two_problems, horizon)
        yield reported("rem-twomdps", f"one_{horizon}", ratio)
        yield reported("rem-twomdps", f"two_{horizon}", two_problems)
    for horizon in TREE_HORIZONS:
        ratio = counterexamples.single_tree_gap(horizon)["ratio"]
        yield written("rem-twomdps", "one tree's ratio", ratio, ratio < horizon - 1, horizon)
        yield reported("rem-twomdps", f"tree_{horizon}", ratio)
        found = counterexamples.readings_of_two(horizon)
        for name, words in (
            ("restored_least", "change over price with the lead restored"),
            ("restored_most", "change over price with the lead restored"),
            ("late_over_early", "late price over early price"),
        ):
            near = abs(found[name] - 2.0) <= NEAR_TWO
            yield reading("rem-twomdps/two", words, found[name], near, horizon)
        for name, value in found.items():
            yield reported("rem-twomdps/two", f"{name}_{horizon}", value)


def causal_anisotropy(instances: int) -> Iterator[Finding]:
    """Γ/γ = H − h + 1 on the tree at every layer, and on a separable chain, where it is 1."""
    rng = np.random.default_rng(np.random.SeedSequence([SEED, 5]))
    worst = 0.0
    for i in range(instances):
        horizon = int(rng.integers(1, 7))
        layer = int(rng.integers(1, horizon + 1))
        old = rng.integers(2, size=horizon)
        new = rng.integers(2, size=horizon)
        new[: layer - 1], new[layer - 1] = old[: layer - 1], 1 - old[layer - 1]
        tree, losses = layered_tree(horizon, GAMMA, np.stack([old, new]))
        ratio = float(certify(tree, *losses).price) / GAMMA
        yield assuming("cor-causal", "tree", ratio, ratio == horizon - layer + 1, i)
        tree, losses = layered_tree(horizon, 0.2, np.stack([old, new]))
        summed = price_stream(tree, losses).prices[1] / 0.2
        worst = max(worst, abs(float(summed) - (horizon - layer + 1)))
        chain = counterexamples.separable_flip(horizon, layer)
        agrees = chain["price_over_margin"] == chain["claimed"]
        yield written("cor-causal", "separable chain", chain["price_over_margin"], agrees, i)
    yield reported("cor-causal", "rounding", worst)


def path_length(instances: int) -> Iterator[Finding]:
    """Zero price with a growing path: over ties it happens, between vertices it cannot."""
    found = counterexamples.free_path()
    grows = found["price"] == 0.0 and found["path_length"] > 0.0
    yield assuming("disc-path", "path length over ties", found["path_length"], grows)
    yield reported("disc-path", "price", found["price"])
    yield reported("disc-path", "path_length", found["path_length"])
    for case in cases("disc-path", instances):
        old, new = (optimal_face(case.mdp, loss) for loss in (case.previous, case.loss))
        if not (old.is_vertex and new.is_vertex):
            continue
        free = certify(case.mdp, case.previous, case.loss).price == 0
        start, end = (occupancy(case.mdp, first_vertex(face)) for face in (old, new))
        moved = float(np.abs(end - start).sum())
        if free:
            yield written("disc-path", "path length of a free move", moved, moved > 0.0, case.instance)

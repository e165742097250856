"""Where a statement fails as written: each failure is an instance one can run.

Every function builds its instance, computes, and returns the numbers that show the failure (and, beside
them, what would repair it). Prices are certified in exact rationals wherever the instance is dyadic.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from normalfan.exact.certify import certify
from normalfan.geometry.bellman import occupancy, optimal_backup
from normalfan.geometry.cone import cone_margin, detect
from normalfan.geometry.face import optimal_face, whole_polytope
from normalfan.learners.mirror import MirrorDescent
from normalfan.learners.selectors import FaceTracker, Predictive
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.regret import run
from normalfan_paper.bounds.gate_bound import gate_bound, suppression
from normalfan_paper.bounds.selection_bounds import detector_bound
from normalfan_paper.bounds.splitting import loss_distances, policy_backup, split_regret
from normalfan_paper.bounds.spread import entropy_spread, euclidean_spread
from normalfan_paper.environments.constructions import (
    Instance,
    degenerate_selection,
    layered_tree,
    lower_bound_adversary,
    one_state,
    single_mdp_separation,
    variation_separation,
)
from normalfan_paper.learners.sticky import StickyEntropy

Numbers: TypeAlias = dict[str, float]

GAMMA, KAPPA = 0.25, 0.0625  # dyadic, so that floats hold every number of the constructions exactly


def certified(instance: Instance) -> float:
    """The price of the instance's one crossing, from a certificate in rationals."""
    return float(certify(instance.mdp, *instance.losses).price)


def arms(*losses: tuple[float, float]) -> Instance:
    """One state, one step, two actions, and these losses."""
    return Instance(one_state(1, 2), np.array(losses).reshape(len(losses), 1, 1, 2))


def off_face_gain() -> Numbers:
    """thm-decomp: a play off the old face beats all of its points, and r − Γ is negative."""
    mdp, (before, after) = arms((0.0, 1.0), (1.0, 0.0))
    visits, advantages = np.array([[[0.0, 1.0]]]), optimal_backup(mdp, after).advantages
    price, selection = split_regret(optimal_face(mdp, before), advantages, visits)
    return {"regret": float((visits * advantages).sum()), "price": price, "selection": selection}


def one_backup_is_not_enough() -> Numbers:
    """thm-bellman: the new loss and its backup are the same, the prices differ."""
    new = (0.0, 1.0)
    return {
        "price_from_first": certified(arms((0.0, 1.0), new)),
        "price_from_second": certified(arms((1.0, 0.0), new)),
    }


def jump_at_a_tie(step: float = 2.0**-40) -> Numbers:
    """thm-bellman: the previous loss moves by `step` across a tie, the price by 1."""
    new = (1.0, 0.0)
    return {
        "step": step,
        "price_at_tie": certified(arms((0.0, 0.0), new)),
        "price_beside_tie": certified(arms((0.0, step), new)),
    }


def weighted_estimate_inside_a_cone(stride: float = 1e6) -> Numbers:
    """prop-largevar: the loss travels inside its cone; Σ‖v_{t−1} − v_t‖·‖ℓ_t − ℓ_{t−1}‖ does not grow."""
    instance = arms((0.0, 1.0), (stride, stride + 1.0))
    first, second = (occupancy(instance.mdp, optimal_face(instance.mdp, loss).minimise(loss)[1])
                     for loss in instance.losses)  # fmt: skip
    variation = loss_distances(instance.losses[1], instance.losses[0])[2]
    return {
        "variation": float(variation),
        "price": certified(instance),
        "weighted_estimate": float(np.abs(first - second).sum()) * float(variation),
        "diameter_times_variation": 2.0 * float(variation),
    }


def weighted_estimate_across_a_wall(rise: float = 1e6) -> Numbers:
    """prop-largevar, repaired: (0, 1) → (M+1, M) crosses by 1 while both rise by M."""
    instance = arms((0.0, 1.0), (rise + 1.0, rise))
    return {
        "crossing_price": certified(instance),
        "crossing_estimate": 2.0 * float(loss_distances(instance.losses[1], instance.losses[0])[2]),
    }


def separation_at_two_layers() -> Numbers:
    """thm-varsep: at H = 2 the late instance starts on a wall, and costs nothing."""
    late, early = variation_separation(2, GAMMA, KAPPA)
    return {
        "late_price": certified(late),
        "early_price": certified(early),
        "claimed_late_price": GAMMA,
        "late_face_dimension": optimal_face(late.mdp, late.losses[0]).dimension,
    }


def toll_node_left_open(horizon: int = 6) -> Numbers:
    """thm-varsep: if action 0 at the toll node is free and joins the cheap line, nothing is left to pay.

    The round-1 optimum then goes through the toll node already, and the toll's fall changes nothing.
    """
    _, early = variation_separation(horizon, GAMMA, KAPPA)
    nexts = np.array([[2, 1], [3, 3], [2, 2], [3, 3]])
    losses = early.losses.copy()
    losses[:, 1, 1, 0] = 0.0
    return {
        "price": certified(Instance(MDP(nexts, 0, horizon), losses)),
        "completed_price": certified(early),
    }


def toll_node_at_no_cost(horizon: int = 6) -> Numbers:
    """thm-varsep: the same action joins the expensive line, but does not itself pay γ: it undercuts."""
    _, early = variation_separation(horizon, GAMMA, KAPPA)
    losses = early.losses.copy()
    losses[:, 1, 1, 0] = 0.0
    instance = Instance(early.mdp, losses)
    committed = np.zeros(early.mdp.shape)
    committed[..., 0] = 1.0
    on_face = optimal_face(early.mdp, losses[0]).contains(occupancy(early.mdp, committed))
    return {
        "price": certified(instance),
        "claimed_price": GAMMA * (horizon - 1) - KAPPA,
        "committed_path_optimal": float(on_face),
    }


def single_mdp_gap(horizon: int) -> Numbers:
    """rem-twomdps: one problem, two sequences, one entry each by the same amount, the theorem's ratio."""
    cheap, costly = single_mdp_separation(horizon, GAMMA, KAPPA)
    changes = [float(np.abs(np.diff(i.losses, axis=0)).sum()) for i in (cheap, costly)]
    return {
        "cheap_price": certified(cheap),
        "costly_price": certified(costly),
        "cheap_change": changes[0],
        "costly_change": changes[1],
        "ratio": certified(costly) / certified(cheap),
    }


def single_tree_gap(horizon: int) -> Numbers:
    """rem-twomdps, on the paper's own tree: one base loss, one entry that falls by (H+1)γ, prices Hγ and γ.

    The entry is the last step of the path that leaves the optimal one at the last layer, or at the first.
    """
    fall = (horizon + 1) * GAMMA
    late, early = _tree_price(horizon, horizon, fall), _tree_price(horizon, 1, fall)
    return {"late_price": late, "early_price": early, "ratio": late / early, "change": fall}


def exact_gap(horizon: int) -> Numbers:
    """thm-varsep, repaired: a chain of H layers on which one entry moves by γ(H−1) + κ, in two ways.

    The last layer goes (0, R−γ) → (0, −γ) or (0, κ) → (0, κ−R). Both old faces are vertices, at H = 2
    as well, and the prices γ and γ(H−1) differ by H − 1 exactly.
    """
    change = GAMMA * (horizon - 1) + KAPPA
    chain = one_state(horizon, 2)
    losses = np.zeros((2, 2, horizon, 1, 2))  # sequence, round
    losses[:, :, :-1, 0, 1] = KAPPA
    losses[0, :, -1, 0, 1] = [change - GAMMA, -GAMMA]
    losses[1, :, -1, 0, 1] = [KAPPA, KAPPA - change]
    late, early = (Instance(chain, pair) for pair in losses)
    dimensions = [optimal_face(chain, i.losses[0]).dimension for i in (late, early)]
    return {
        "late_price": certified(late),
        "early_price": certified(early),
        "ratio": certified(early) / certified(late),
        "largest_dimension": max(dimensions),
        "change": change,
    }


def separable_flip(horizon: int, layer: int) -> Numbers:
    """cor-causal: one bit of a separable chain flips at `layer` (from 1); the old path errs there only."""
    losses = np.tile(np.array([0.0, GAMMA]), (2, horizon, 1, 1))
    losses[1, layer - 1, 0] = [GAMMA, 0.0]
    price = certified(Instance(one_state(horizon, 2), losses))
    return {"price_over_margin": price / GAMMA, "claimed": float(horizon - layer + 1)}


def readings_of_two(horizon: int) -> Numbers:
    """rem-twomdps: what "price-to-trigger ratio" may mean, on the uniform tree.

    A single entry, the last step of the path that leaves the old one at layer h, falls by Δ.
    *restored*: Δ gives the new path the lead that the old one had; the extremes of Δ/Γ over h.
    *late_over_early*: Δ = 2Hγ at h = H and at h = 1, and the ratio of the prices.
    *literal*: Γ/Δ of the larger of these two.
    """
    leads = {layer: 2.0 * GAMMA * (horizon - layer + 1) for layer in range(1, horizon + 1)}
    restored = [fall / _tree_price(horizon, layer, fall) for layer, fall in leads.items()]
    fall = 2.0 * GAMMA * horizon
    late, early = _tree_price(horizon, horizon, fall), _tree_price(horizon, 1, fall)
    return {
        "restored_least": min(restored),
        "restored_most": max(restored),
        "late_over_early": late / early,
        "literal": late / fall,
    }


def _tree_price(horizon: int, layer: int, fall: float) -> float:
    """The price when the path that leaves 0…0 at `layer` becomes cheaper by `fall` on its last step."""
    mdp, (before,) = layered_tree(horizon, GAMMA, np.zeros((1, horizon), dtype=np.int64))
    after = before.copy()
    leaf = 1 << (horizon - layer)  # the action string 0…010…0 as a number: its state, then its action
    after[-1, leaf >> 1, leaf & 1] -= fall
    return certified(Instance(mdp, np.stack([before, after])))


def frozen_by_the_boundary() -> Numbers:
    """prop-bregsel: with an entropy and a vertex as previous representative, R is infinite."""
    face = whole_polytope(one_state(1, 2))
    vertex = np.array([[[1.0, 0.0]]])
    return {
        "entropy_spread": entropy_spread(face, vertex).value,
        "euclidean_spread": euclidean_spread(face, vertex).value,
        "mixed_entropy_spread": entropy_spread(face, np.array([[[0.99, 0.01]]])).value,
    }


def rare_state(probability: float = 1e-6) -> Numbers:
    """prop-conedetect: every wrong action costs 1, yet the margin is the probability of a rare state.

    The model is off by the same amount everywhere, so its plans are right; the test cannot say so.
    """
    kernel = np.array([[[1.0 - probability, probability]] * 2, [[0.0, 1.0]] * 2])
    mdp = MDP(kernel, 0, horizon=2)
    loss = np.tile(np.array([0.0, 1.0]), (2, 2, 1))
    model = loss + 0.01  # one per cent off, everywhere, in the same direction
    found, floored = detect(mdp, loss, model), detect(mdp, loss, model, floor=0.1)
    return {
        "margin": found.margin.value,
        "advantage_gap": found.margin.advantage_gap,
        "error": found.error,
        "resolved": float(found.resolved),
        "resolved_with_floor": float(floored.resolved),
        "lost": detector_bound(mdp, model, loss).left,
    }


def faces_of_model_and_loss() -> Numbers:
    """prop-gate: a resolved round on which model and loss expose different faces."""
    mdp, (loss, model) = _three_arms([0.0, 0.0, 1.0], [0.0, 0.125, 1.0])
    of_loss, of_model = optimal_face(mdp, loss), optimal_face(mdp, model)
    return {
        "resolved": float(detect(mdp, loss, model).guaranteed),
        "same_face": float(of_loss == of_model),
        "included": float(bool((of_loss.mask | ~of_model.mask).all())),
    }


def _three_arms(*losses: list[float]) -> tuple[MDP, FloatArray]:
    return one_state(1, 3), np.array(losses).reshape(len(losses), 1, 1, 3)


def sticky_on_a_free_round(weight: float = 0.5) -> Numbers:
    """prop-gate: faces meet and the prediction is perfect, yet the sticky selector errs."""
    mdp, losses = arms((0.0, 1.0), (0.0, 0.0), (1.0, 0.0))

    selector = StickyEntropy(lambda history: losses[len(history)], weight=weight)
    log = run(mdp, FaceTracker(mdp, selector), losses)
    return {
        "resolved": float(detect(mdp, losses[2], losses[2]).guaranteed),
        "price": float(log.prices[2]),
        "selection": float(log.selections[2]),
    }


def range_of_one_round() -> Numbers:
    """prop-gate: with the objective's range of the last round in place of B the bound fails."""
    mdp, losses = arms((0.0, 0.0), (0.0, 9.0), (0.0, 0.25))
    # Everything was optimal in round 0; the model then points to the wrong arm, once.
    models = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 0.25]]).reshape(3, 1, 1, 2)
    tracker = FaceTracker(mdp, Predictive(lambda history: models[len(history)]))
    bound = gate_bound(mdp, losses, models, run(mdp, tracker, losses), norm="linf")
    return {
        "regret": bound.left,
        "bound_with_last_range": bound.right_with(float(bound.ranges[-1])),
        "bound_with_own_ranges": bound.right,
    }


def penalty_beyond_the_ceiling(penalty: float = 1000.0) -> Numbers:
    """prop-gate: ηg ≤ 1, but a large penalty meets the ceiling 1/(1 − e^{−ηg}) of the speed-up."""
    found = suppression(beta=0.2, penalty=penalty, horizon=20, layer=1, eta=0.6)
    return {
        "plain_step": 0.6 * found.gap,
        "claimed": found.claimed,
        "measured": found.measured,
        "ceiling": found.ceiling,
    }


def gap_while_learning(horizon: int = 8, rounds: int = 400, eta: float = 0.6) -> Numbers:
    """prop-gate: mirror descent on one fixed tree; the gap at the root goes from about 2γ to β = Hγ."""
    tree, (loss,) = layered_tree(horizon, GAMMA, np.zeros((1, horizon), dtype=np.int64))
    learner = MirrorDescent(tree, eta)
    gaps = []
    for t in range(rounds):
        _, q = policy_backup(tree, learner.act(t), loss)
        gaps.append(float(q[0, 0, 1] - q[0, 0, 0]) / GAMMA)
        learner.observe(t, loss)
    return {"first_gap": gaps[0], "last_gap": gaps[-1], "claimed_gap": 1.0, "advantage": float(horizon)}


def margin_of_the_coin(rounds: int = 64) -> Numbers:
    """prop-lower: the adversary is hard although every margin is γ."""
    mdp, losses = lower_bound_adversary(GAMMA, rounds, rng=np.random.default_rng(0))
    margins = [cone_margin(mdp, loss).value for loss in losses]
    return {"smallest_margin": min(margins), "largest_margin": max(margins), "gamma": GAMMA}


def best_points_differ() -> Numbers:
    """prop-degsel: the two sequences share the best value on the old face and not the best point."""
    values, points = [], []
    for mdp, (before, after) in degenerate_selection(GAMMA):
        value, policy = optimal_face(mdp, before).minimise(after)
        values.append(value)
        points.append(occupancy(mdp, policy))
    return {"value_gap": abs(values[0] - values[1]), "distance": float(np.abs(points[0] - points[1]).sum())}


def free_path(rounds: int = 64) -> Numbers:
    """disc-path: over a tie the comparator wanders between two arms, free of charge."""
    turn = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, 0.0)]
    mdp, losses = arms(*(turn[t % 4] for t in range(rounds)))
    log = run(mdp, FaceTracker(mdp), losses)
    return {"price": float(log.prices.sum()), "path_length": float(log.path_lengths.sum())}

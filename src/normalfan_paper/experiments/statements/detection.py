"""prop-conedetect, prop-gate, prop-lower: when a prediction error cannot matter, and when it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np

from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.cone import cone_margin
from normalfan.geometry.face import optimal_face, whole_polytope
from normalfan.learners.learner import ExponentialAverage, Learner
from normalfan.learners.mirror import Hedge
from normalfan.learners.selectors import FaceTracker, Predictive
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.regret import run
from normalfan_paper.bounds.gate_bound import gate_bound, suppression, tree_gap
from normalfan_paper.bounds.lower_bound import lower_bound
from normalfan_paper.bounds.selection_bounds import detector_bound
from normalfan_paper.bounds.splitting import policy_backup
from normalfan_paper.environments.constructions import layered_tree, lower_bound_adversary
from normalfan_paper.experiments.statements import counterexamples
from normalfan_paper.experiments.statements.counterexamples import GAMMA
from normalfan_paper.experiments.statements.finding import Finding, assuming, reported, written
from normalfan_paper.experiments.statements.instances import SEED, Case, cases
from normalfan_paper.experiments.statements.oracles import listed_values
from normalfan_paper.experiments.statements.selection import prediction_of

SMOOTHING = 0.8  # of the tracker's model, an exponential average
MARGIN_TOLERANCE = 1e-9

# What the paper's tables and constructions name: step sizes, penalties, margins and horizons.
PAPER_ETAS, PAPER_PENALTIES = (0.04, 0.08, 0.15, 0.3, 0.6, 1.0), (0.35, 0.7)
PAPER_MARGINS, PAPER_HORIZONS = (0.2, 0.25), (8, 12, 16, 20, 30)

ROUNDS = 100  # against the coin
LEARNERS: Mapping[str, Callable[[MDP], Learner]] = {
    "tracker": FaceTracker,
    "Hedge": lambda mdp: Hedge(mdp, eta=0.5),
    "sluggish Hedge": lambda mdp: Hedge(mdp, eta=0.01),
}


def cone_detector(instances: int) -> Iterator[Finding]:
    """An optimum of the model loses at most 2ε, and nothing where 2ε < Δ; Δ against the list of vertices."""
    for case in cases("prop-conedetect", instances):
        bound = detector_bound(case.mdp, prediction_of(case), case.loss)
        yield written("prop-conedetect", "worst model optimum", bound.left, bound.holds, case.instance)
        margin = cone_margin(case.mdp, case.loss)
        gap = abs(margin.value - listed_margin(case)) if np.isfinite(margin.value) else 0.0
        exact = margin.kind == "exact" and gap <= MARGIN_TOLERANCE
        yield written("prop-conedetect", "margin against the list", gap, exact, case.instance)
    for exponent in range(7):
        found = counterexamples.rare_state(10.0**-exponent)
        resolved = found["resolved"] == 1.0
        yield written("prop-conedetect/thin", "margin", found["margin"], resolved, exponent)
        if exponent == 0:
            yield assuming("prop-conedetect/thin", "margin without rare states", found["margin"], resolved)
        yield reported("prop-conedetect/thin", f"floored_{exponent}", found["resolved_with_floor"])
    for name in ("margin", "advantage_gap", "error", "lost"):
        yield reported("prop-conedetect/thin", name, found[name])


def listed_margin(case: Case) -> float:
    """Δ by its definition: the least that a vertex off the optimal face loses."""
    lost = listed_values(whole_polytope(case.mdp), case.loss)
    lost -= lost.min()
    return float(lost[lost > MARGIN_TOLERANCE].min(initial=np.inf))


def gate(instances: int) -> Iterator[Finding]:
    """The bound of the gate, and the steps of its proof."""
    included: list[bool] = []
    for case in cases("prop-gate", instances):
        losses, models = _drift(case)
        tracker = FaceTracker(case.mdp, Predictive(ExponentialAverage(SMOOTHING)))
        log = run(case.mdp, tracker, losses)
        bound = gate_bound(case.mdp, losses, models, log)
        slack = bound.right - bound.left
        yield assuming("prop-gate", "slack with B inside the sum", slack, bound.holds, case.instance)
        for t in range(1, len(losses)):
            if not bound.resolved[t]:
                continue
            of_loss, of_model = (optimal_face(case.mdp, loss) for loss in (losses[t], models[t]))
            number = case.instance * len(losses) + t
            same = of_loss == of_model
            inside = bool((of_loss.mask | ~of_model.mask).all())
            yield written("prop-gate/same-face", "same", float(same), same, number)
            if of_loss.is_vertex:
                yield assuming("prop-gate/same-face", "same as a vertex", float(same), same, number)
            included.append(inside)
            if optimal_face(case.mdp, losses[t - 1]).meets(of_loss):
                error = float(log.selections[t])
                yield assuming(
                    "prop-gate/free-round", "selection, λ = 0", error, error <= MARGIN_TOLERANCE, number
                )
    yield reported("prop-gate/same-face", "included", float(np.mean(included)))
    yield from _gate_counterexamples()


def _drift(case: Case) -> tuple[FloatArray, FloatArray]:
    """Losses that mostly repeat and sometimes jump, and the tracker's prediction of each."""
    few = np.repeat(np.stack([case.previous, case.loss]), 4, axis=0)
    losses = few + 0.01 * case.rng.integers(-1, 2, size=few.shape)
    model = ExponentialAverage(SMOOTHING)
    models = [np.zeros(case.mdp.shape)]
    for loss in losses[:-1]:
        model.update(loss)
        prediction = model.predict()
        models.append(models[0] if prediction is None else prediction)
    return losses, np.array(models)


def _gate_counterexamples() -> Iterator[Finding]:
    found = counterexamples.range_of_one_round()
    holds = found["regret"] <= found["bound_with_last_range"]
    yield written("prop-gate", "bound with the last B", found["bound_with_last_range"], holds)
    for name, value in found.items():
        yield reported("prop-gate", name, value)
    found = counterexamples.faces_of_model_and_loss()
    yield written("prop-gate/same-face", "same", found["same_face"], found["same_face"] == 1.0)
    found = counterexamples.sticky_on_a_free_round()
    yield written("prop-gate/free-round", "selection", found["selection"], found["selection"] == 0.0)
    yield reported("prop-gate/free-round", "selection", found["selection"])


def gate_speed(instances: int) -> Iterator[Finding]:
    """The suppression factor under the paper's condition ηg ≤ 1, and at the paper's own settings."""
    rng = np.random.default_rng(np.random.SeedSequence([SEED, 11]))
    for i in range(5 * instances):
        horizon = int(rng.integers(1, 21))
        found = suppression(
            beta=float(10 ** rng.uniform(-0.5, 0.5)),
            penalty=float(10 ** rng.uniform(-2, 2)),
            horizon=horizon,
            layer=int(rng.integers(1, horizon + 1)),
            eta=float(10 ** rng.uniform(-2, 0.5)),
        )
        share = found.measured / found.claimed
        if found.ceiling >= 1.0 / -np.expm1(-1.0):  # ηg ≤ 1
            yield written("prop-gate/speed", "measured over claimed", share, found.holds, i)
        if found.step <= 1.0:
            yield assuming("prop-gate/speed", "small steps, measured over claimed", share, found.holds, i)
    tried = 0
    for eta, penalty, gamma, horizon in product(PAPER_ETAS, PAPER_PENALTIES, PAPER_MARGINS, PAPER_HORIZONS):
        for layer in range(1, horizon + 1):
            beta = gamma * (horizon - layer + 1)
            found = suppression(beta=beta, penalty=penalty, horizon=horizon, layer=layer, eta=eta)
            share, tried = found.measured / found.claimed, tried + 1
            yield assuming("prop-gate/speed", "the paper's own settings", share, found.holds, 10**6 + tried)
    yield reported("prop-gate/speed", "own_settings", tried)
    for name, value in counterexamples.penalty_beyond_the_ceiling().items():
        yield reported("prop-gate/speed", name, value)
    yield from _gap()


def _gap() -> Iterator[Finding]:
    """The gap under the played policy on the tree, against β/(H−h+1); and the causal factor."""
    penalty, worst = PAPER_PENALTIES[1], 0.0
    for horizon in (2, 4, 6, 8):
        tree, (loss,) = layered_tree(horizon, GAMMA, np.zeros((1, horizon), dtype=np.int64))
        for k, right in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
            policy = np.tile([right, 1.0 - right], (*tree.shape[:2], 1))
            _, q = policy_backup(tree, policy, loss)
            advantages = optimal_backup(tree, loss).advantages
            for layer in range(1, horizon + 1):
                gap, beta = float(q[layer - 1, 0, 1] - q[layer - 1, 0, 0]), float(advantages[layer - 1, 0, 1])
                true = tree_gap(GAMMA, horizon=horizon, layer=layer, right=right)
                worst = max(worst, abs(gap - true))
                as_claimed = abs(gap - beta / (horizon - layer + 1)) <= MARGIN_TOLERANCE
                number = 100 * horizon + 10 * k + layer
                yield written("prop-gate/gap", "gap over γ", gap / GAMMA, as_claimed, number)
        factors = [
            suppression(
                beta=GAMMA * (horizon - layer + 1), penalty=penalty, horizon=horizon, layer=layer, eta=0.1
            ).claimed
            for layer in (1, horizon)
        ]
        early = factors[0] > factors[1] * (1 + MARGIN_TOLERANCE)
        ratio = factors[0] / factors[1]
        yield written("prop-gate/causal-factor", "first over last layer", ratio, early, horizon)
        true_factors = [
            1.0 + penalty / tree_gap(GAMMA, horizon=horizon, layer=layer, right=0.5) for layer in (1, horizon)
        ]
        yield reported("prop-gate/causal-factor", f"true_{horizon}", true_factors[0] / true_factors[1])
        yield reported("prop-gate/causal-factor", f"claimed_{horizon}", factors[0])
    yield reported("prop-gate/gap", "formula_error", worst)
    for name, value in counterexamples.gap_while_learning().items():
        yield reported("prop-gate/gap", name, value)


def coin(instances: int) -> Iterator[Finding]:
    """E[DReg] ≥ γT/2, an equality: round by round over both sides of the coin, and in the mean of runs."""
    for i, (name, learner) in enumerate(LEARNERS.items()):
        rng = np.random.default_rng(np.random.SeedSequence([SEED, 13, i]))
        mdp, losses = lower_bound_adversary(GAMMA, ROUNDS, rng=rng)
        policies = learner_policies(learner(mdp), losses)
        both_sides = GAMMA * np.eye(2)  # the loss of each arm on each side of the coin; the optimum is 0
        expected = float((policies @ both_sides).mean(axis=1).sum())
        gap = abs(expected / (GAMMA * ROUNDS / 2) - 1.0)
        yield written("prop-lower", "relative gap", gap, gap <= MARGIN_TOLERANCE, i)
        played = lower_bound(GAMMA, ROUNDS, runs=max(instances, 8), rng=rng, learner=learner)
        yield reported("prop-lower", f"ratio_{i}", played.right / played.left)
        yield reported("prop-lower", f"error_{i}", played.standard_error / played.left)
        if name == "tracker":
            yield written("prop-lower", "tracker's mean", played.right / played.left, played.holds)
    found = counterexamples.margin_of_the_coin()
    thin = found["smallest_margin"] < GAMMA / 2
    yield written("prop-lower/margin", "smallest margin", found["smallest_margin"], thin)
    for name, value in found.items():
        yield reported("prop-lower/margin", name, value)


def learner_policies(learner: Learner, losses: FloatArray) -> FloatArray:
    """What a learner plays against losses of one state and step, [T, A]."""
    played = []
    for t, loss in enumerate(losses):
        played.append(learner.act(t)[0, 0])
        learner.observe(t, loss)
    return np.array(played)

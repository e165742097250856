"""Each inequality on hundreds of cases, and each refuted by a wrong ingredient."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from listed_policies import instance, totals
from oracles import exact_value
from problems import random_problem

from normalfan import MDP, Face, InputError, occupancy, optimal_face, value_error
from normalfan.geometry.bellman import optimal_backup
from normalfan.geometry.face import whole_polytope
from normalfan.learners.learner import ExponentialAverage, LastLoss
from normalfan.learners.selectors import FaceTracker, Predictive
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import follow
from normalfan.regret import run
from normalfan_paper.bounds.gate_bound import CONSTANT, gate_bound, objective_range, suppression, tree_gap
from normalfan_paper.bounds.lower_bound import lower_bound
from normalfan_paper.bounds.selection_bounds import bregman_bound, detector_bound, predictive_bound
from normalfan_paper.bounds.splitting import policy_backup
from normalfan_paper.bounds.spread import Spread, entropy_spread, euclidean_spread
from normalfan_paper.environments.constructions import layered_tree
from normalfan_paper.learners.sticky import StickyEntropy, StickyEuclidean

NONE = Spread(0.0, "exact")


def cases(
    seed: int, count: int, noise: tuple[float, float] = (-3.0, 0.5)
) -> Iterator[tuple[Face, FloatArray, FloatArray, np.random.Generator]]:
    """Degenerate faces with a loss and a model of it, off by 10**U, U in `noise`."""
    rng = np.random.default_rng(seed)
    while count:
        H, S, A = (int(n) for n in rng.integers(1, 4, size=3))
        kernel = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
        if rng.random() < 0.4:
            kernel = np.eye(S)[kernel.argmax(axis=-1)]
        mdp = MDP(kernel, np.eye(S)[0] if rng.random() < 0.5 else rng.dirichlet(np.ones(S)))
        mask = rng.random((H, S, A)) < 0.7
        mask[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = True
        face = Face(mdp, follow(mdp, mask)[0])
        if 1 < face.n_policies <= 60:
            count -= 1
            loss = rng.normal(size=face.mask.shape)
            yield face, loss, loss + rng.normal(size=loss.shape) * 10 ** rng.uniform(*noise), rng


class Constant:
    def __init__(self, loss: FloatArray) -> None:
        self.loss = loss

    def update(self, loss: FloatArray) -> None:
        pass

    def predict(self) -> FloatArray:
        return self.loss


# --- selection -------------------------------------------------------------------------------------------


def listed_error(face: Face, policy: FloatArray, loss: FloatArray) -> float:
    return float((occupancy(face.mdp, policy) * loss).sum() - min((v * loss).sum() for v in face.vertices()))


def test_predictive_selection() -> None:
    tightest, refuted, errors = Counter(), Counter(), 0
    for face, loss, model, _ in cases(1, 200, noise=(-1.5, 1.0)):
        bound = predictive_bound(face, model, loss)
        chosen = Predictive(Constant(model)).select(face, np.zeros(face.mask.shape))
        assert bound.left == pytest.approx(listed_error(face, chosen, loss), abs=1e-12)
        assert bound.holds
        visits = np.array(list(face.vertices())).reshape(-1, loss.size)
        for pair, order, dual in zip(bound.pairs, (1, 2, np.inf), (np.inf, 2, 1), strict=True):
            assert pair.distance == pytest.approx(np.linalg.norm((model - loss).ravel(), dual))
            apart = np.linalg.norm(visits[:, None] - visits[None], order, axis=2).max()
            assert pair.diameter.value >= apart - 1e-12
            assert pair.right == pair.diameter.value * pair.distance
        tightest[min(bound.pairs, key=lambda pair: pair.right).norm] += 1
        errors += bound.left > 1e-9
        # Not the minimiser: the worst policy of the face. A model said to be better than it is.
        worst = face.minimise(-model)[1]
        refuted["policy"] += not predictive_bound(face, model, loss, worst).holds
        claimed_better = loss + 0.01 * (model - loss)
        refuted["model"] += not predictive_bound(face, claimed_better, loss, chosen).holds
        point = dataclasses.replace(
            bound, pairs=tuple(dataclasses.replace(pair, right=0.0) for pair in bound.pairs)
        )
        refuted["diameter"] += not point.holds
    assert errors > 50
    assert min(tightest["l1"], tightest["l2"], tightest["linf"]) > 5
    assert min(refuted[key] for key in ("policy", "model", "diameter")) > 20


def entropy_at(visits: FloatArray, reference: FloatArray) -> float:
    """D(u, z) term by term."""
    total = 0.0
    for h, s in np.argwhere(visits.sum(axis=2) > 0):
        for a in np.flatnonzero(visits[h, s]):
            share = visits[h, s, a] / visits[h, s].sum()
            total += visits[h, s, a] * np.log(share / reference[h, s, a])
    return total


def test_spreads_are_those_of_the_list() -> None:
    kinds = Counter()
    for face, _, _, rng in cases(2, 100):
        z = rng.dirichlet(np.ones(face.mdp.n_actions), size=face.mask.shape[:2])
        vertices = list(face.vertices())
        weights = rng.dirichlet(np.ones(len(vertices)), size=30)
        points = vertices + list(np.tensordot(weights, vertices, axes=1))
        at = [entropy_at(u, z) for u in points]
        spread = entropy_spread(face, z)
        assert spread.value >= max(at) - min(at) - 1e-9
        soft = StickyEntropy(lambda _: np.zeros(face.mask.shape), 1.0, mixing=1e-12)  # noqa: B023
        nearest = occupancy(face.mdp, soft.select(face, z))
        assert spread.value == pytest.approx(max(at) - entropy_at(nearest, z), abs=1e-8)
        q = occupancy(face.mdp, z)
        half = [0.5 * ((u - q) ** 2).sum() for u in points]
        exact = euclidean_spread(face, q)
        assert exact.kind == "exact"
        assert exact.value >= max(half) - min(half) - 1e-12
        closest = occupancy(face.mdp, StickyEuclidean(None, 1.0).select(face, z))
        assert exact.value == pytest.approx(max(half) - 0.5 * ((closest - q) ** 2).sum(), abs=1e-9)
        bounded = euclidean_spread(face, q, enumerate_up_to=0)
        assert bounded.value >= exact.value - 1e-12
        if bounded.kind == "exact":
            assert bounded.value == pytest.approx(exact.value, abs=1e-12)
        kinds[bounded.kind] += 1
    assert min(kinds["exact"], kinds["upper bound"]) > 20


@pytest.mark.parametrize("geometry", ["entropy", "euclidean"])
def test_bregman_selection(geometry: str) -> None:
    needed = refuted = 0
    for face, loss, model, rng in cases(3, 200):
        played = rng.dirichlet(np.full(face.mdp.n_actions, 0.3), size=face.mask.shape[:2])
        weight = float(10 ** rng.uniform(-2, 1))
        if geometry == "entropy":
            selector = StickyEntropy(Constant(model), weight)
            spread = entropy_spread(face, selector.reference(face, played))
        else:
            selector = StickyEuclidean(Constant(model), weight)
            spread = euclidean_spread(face, occupancy(face.mdp, played))
        chosen = selector.select(face, played)
        bound = bregman_bound(face, model, loss, chosen, weight=weight, spread=spread)
        assert bound.left == pytest.approx(listed_error(face, chosen, loss), abs=1e-9)
        assert bound.holds
        assert bound.right == pytest.approx(
            min(pair.diameter.value * pair.distance for pair in bound.pairs) + weight * spread.value
        )
        needed += not bregman_bound(face, model, loss, chosen, weight=weight, spread=NONE).holds
        refuted += not bregman_bound(face, model, loss, chosen, weight=weight / 100, spread=spread).holds
    assert min(needed, refuted) > 20


def test_an_entropy_at_the_boundary_bounds_nothing() -> None:
    mdp = MDP([[0, 0]], 0, horizon=1)
    face, vertex = whole_polytope(mdp), np.array([[[1.0, 0.0]]])
    spread = entropy_spread(face, vertex)
    assert spread.value == np.inf
    zero = np.zeros(mdp.shape)
    assert bregman_bound(face, zero, zero, vertex, weight=0.1, spread=spread).right == np.inf
    # Weighted by nothing it adds nothing: 0 · ∞ does not make the bound undefined.
    assert bregman_bound(face, zero, zero, vertex, weight=0.0, spread=spread).right == 0.0
    assert euclidean_spread(face, vertex).value == 1.0
    mixed = StickyEntropy(LastLoss(), 1.0, mixing=0.5).reference(face, vertex)
    assert entropy_spread(face, mixed).value == pytest.approx(math.log(4))  # from log 1 to −log ¼


# --- detection -------------------------------------------------------------------------------------------


def test_the_detector() -> None:
    seen, refuted = Counter(), 0
    rng = np.random.default_rng(4)
    for _ in range(300):
        problem = random_problem(rng, rounds=2)
        mdp, loss = problem.mdp(), problem.losses[0].astype(float)
        model = loss + rng.normal(size=loss.shape) * 10 ** rng.uniform(-3, 0.5)
        bound = detector_bound(mdp, model, loss)
        listed = optimal_face(mdp, model).vertices(10**6)
        worst = max((v * loss).sum() for v in listed) - float(exact_value(problem, problem.losses[0]))
        assert bound.left == pytest.approx(worst, abs=1e-11)
        assert bound.detection.error == value_error(mdp, loss, model)
        assert bound.holds
        seen[bound.detection.resolved, bound.left > 1e-9] += 1
        # A model claimed to err a hundred times less than it does is caught by the other's regret.
        better = detector_bound(mdp, loss + 0.01 * (model - loss), loss).detection
        refuted += not dataclasses.replace(bound, detection=better).holds
    assert seen[True, True] == 0
    assert min(seen[True, False], seen[False, True], seen[False, False]) > 20
    assert refuted > 20


def test_the_factor_two_of_the_detector_is_needed() -> None:
    mdp = MDP([[0, 0]], 0, horizon=1)
    bound = detector_bound(mdp, model=[[[0.5625, 0.4375]]], loss=[[[0.0, 1.0]]])
    assert (bound.left, bound.right, bound.detection.resolved) == (1.0, 2 * 0.5625, False)
    assert bound.holds


# --- the gate --------------------------------------------------------------------------------------------


def drifting(seed: int) -> tuple[MDP, FloatArray, FloatArray]:
    """A problem, losses that drift with jumps, and a prediction of each from those before it."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=8)
    losses = problem.losses.astype(float)
    if rng.random() < 0.7:  # mostly small steps: many rounds resolve their margin
        losses = np.repeat(losses[:2], 4, axis=0) + 0.01 * rng.integers(-1, 2, size=losses.shape)
    model = ExponentialAverage(0.8)
    models = [np.zeros(losses[0].shape)]
    for loss in losses[:-1]:
        model.update(loss)
        models.append(model.predict())
    return problem.mdp(), losses, np.array(models)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_gate_bounds_the_regret_of_the_predictive_tracker(norm: str) -> None:
    resolved = unresolved = refuted = 0
    for seed in range(70):
        mdp, losses, models = drifting(seed)
        log = run(mdp, FaceTracker(mdp, Predictive(ExponentialAverage(0.8))), losses)
        bound = gate_bound(mdp, losses, models, log, norm=norm)
        assert bound.holds
        assert bound.left == log.total_regret
        resolved += int(bound.resolved[1:].sum())
        unresolved += int((~bound.resolved).sum())
        # Round by round, too: this is what the proof adds up.
        selection = log.selections[1:][bound.resolved[1:]]
        assert (selection <= bound.selection[1:][bound.resolved[1:]] + 1e-9).all()
        assert bound.right <= bound.right_with(float(bound.ranges.max())) + 1e-12
        no_price = dataclasses.replace(bound, price=0.0, ranges=np.zeros(len(losses)))
        refuted += not no_price.holds
    assert min(resolved, unresolved) > 50
    assert refuted > 5


def test_the_gate_with_a_sticky_selector() -> None:
    weight = 0.5
    for seed in range(40):
        mdp, losses, models = drifting(seed)
        selector = StickyEntropy(ExponentialAverage(0.8), weight)
        log = run(mdp, FaceTracker(mdp, selector), losses, keep="policies")
        assert log.plays is not None
        spreads = np.zeros(len(losses))
        for t in range(1, len(losses)):
            face = optimal_face(mdp, losses[t - 1])
            spreads[t] = entropy_spread(face, selector.reference(face, log.plays[t - 1])).value
        bound = gate_bound(mdp, losses, models, log, weight=weight, spreads=spreads)
        assert bound.holds
        allowed = bound.selection[bound.resolved] + 1e-9
        assert (log.selections[bound.resolved] <= allowed).all()


def test_a_sticky_selector_errs_on_rounds_that_are_called_free() -> None:
    """Faces meet and the prediction is perfect, yet ε > 0: "a free round" needs λ = 0."""
    mdp = MDP([[0, 0]], 0, horizon=1)
    losses = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    selector = StickyEntropy(lambda history: losses[len(history)], weight=0.5)
    log = run(mdp, FaceTracker(mdp, selector), losses, keep="policies")
    assert log.plays is not None
    spread = entropy_spread(
        optimal_face(mdp, losses[1]), selector.reference(whole_polytope(mdp), log.plays[1])
    )
    bound = gate_bound(mdp, losses, losses, log, weight=0.5, spreads=np.array([0.0, 0.0, spread.value]))
    assert bound.resolved.all()
    assert log.prices.tolist() == [0.0, 0.0, 0.0]
    assert log.selections[2] > 0.5
    assert bound.holds
    assert not gate_bound(mdp, losses, losses, log).holds


def test_the_range_in_the_gate_belongs_inside_the_sum() -> None:
    """With the range of the last round alone the bound fails."""
    mdp = MDP([[0, 0]], 0, horizon=1)
    losses = np.array([[0.0, 1.0], [9.0, 0.0], [9.0, 0.0], [0.0, 0.25]]).reshape(4, 1, 1, 2)
    models = np.roll(losses, 1, axis=0)
    log = run(mdp, FaceTracker(mdp), losses)
    bound = gate_bound(mdp, losses, models, log)
    assert bound.ranges.tolist() == [1.0, 9.0, 9.0, 0.25]
    assert bound.resolved.tolist() == [True, False, True, False]
    assert bound.holds
    assert bound.right == 0.5 + 9.25 + 9.0 + 0.25
    assert bound.right_with(9.0) == 0.5 + 9.25 + 2 * 9.0
    assert dataclasses.replace(bound, price=0.0).right_with(0.25) < bound.left


def test_ranges_are_those_of_the_list_and_survive_a_large_offset() -> None:
    for seed in range(200):
        problem, visits = instance(seed)
        spread = np.ptp(totals(visits, problem.loss))
        assert objective_range(problem.mdp, problem.loss) == pytest.approx(spread, abs=1e-12)
    assert objective_range(MDP([[0, 0]], 0, horizon=1), [[[1e8, 1e8 + 0.25]]]) == 0.25


def test_gate_ingredients_must_fit() -> None:
    mdp, losses, models = drifting(0)
    log = run(mdp, FaceTracker(mdp), losses)
    with pytest.raises(InputError, match="7 models"):
        gate_bound(mdp, losses, models[1:], log)
    with pytest.raises(InputError, match="without spreads"):
        gate_bound(mdp, losses, models, log, weight=0.5)


def test_suppression_against_summed_odds() -> None:
    """The closed form is the ratio of the series themselves; the claim needs η(g+λ) ≲ 1."""
    rng = np.random.default_rng(5)
    verdicts = Counter()
    for _ in range(400):
        horizon = int(rng.integers(1, 21))
        layer = int(rng.integers(1, horizon + 1))
        beta, penalty = 10 ** rng.uniform(-0.5, 0.5), 10 ** rng.uniform(-2, 2)
        eta = 10 ** rng.uniform(-1, 0.5)
        found = suppression(beta=beta, penalty=penalty, horizon=horizon, layer=layer, eta=eta)
        g = beta / (horizon - layer + 1)
        rounds = np.arange(20_000)
        series = np.exp(-eta * g * rounds).sum(), np.exp(-eta * (g + penalty) * rounds).sum()
        assert found.measured == pytest.approx(series[0] / series[1], rel=1e-6)
        assert found.claimed == pytest.approx(1 + penalty * (horizon - layer + 1) / beta)
        assert found.measured <= min(found.claimed, found.ceiling) * (1 + 1e-12)
        if eta * (g + penalty) <= 1:
            assert found.holds
        verdicts[eta * g <= 1, eta * (g + penalty) <= 1, found.holds] += 1
    assert verdicts[True, True, True] > 50
    assert verdicts[True, False, False] > 50  # the paper's condition is met and the claim fails
    assert pytest.approx(0.632, abs=1e-3) == CONSTANT


@pytest.mark.parametrize("right", [0.0, 0.25, 0.5, 1.0])
def test_the_gap_on_the_tree_is_that_of_the_policy(right: float) -> None:
    for horizon in range(1, 7):
        tree, (loss,) = layered_tree(horizon, 0.25, np.zeros((1, horizon), dtype=int))
        policy = np.tile([right, 1 - right], (*tree.shape[:2], 1))  # on the path 0…0, and anywhere
        _, q = policy_backup(tree, policy, loss)
        advantages = optimal_backup(tree, loss).advantages
        for layer in range(1, horizon + 1):
            gap = q[layer - 1, 0, 1] - q[layer - 1, 0, 0]
            assert gap == pytest.approx(tree_gap(0.25, horizon=horizon, layer=layer, right=right), rel=1e-14)
            assert advantages[layer - 1, 0, 1] == 0.25 * (horizon - layer + 1)


def test_suppression_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="layer=4 of 3"):
        suppression(beta=1.0, penalty=1.0, horizon=3, layer=4, eta=1.0)


# --- the lower bound -------------------------------------------------------------------------------------


class Fixed:
    """Always the first action."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp

    def act(self, round: int) -> FloatArray:
        return np.array([[[1.0, 0.0]]])

    def observe(self, round: int, loss: FloatArray) -> None:
        pass


class Cheat(Fixed):
    """Looks ahead: no lower bound binds it."""

    def foresee(self, loss: FloatArray) -> None:
        self.loss = loss

    def act(self, round: int) -> FloatArray:
        return np.eye(2)[self.loss.argmin(axis=2)]


@pytest.mark.parametrize("learner", [FaceTracker, Fixed])
def test_nobody_beats_the_coin(learner: type) -> None:
    found = lower_bound(0.25, 100, runs=60, rng=np.random.default_rng(6), learner=learner)
    assert found.left == 12.5
    assert found.holds
    # An equality, not only a bound; the deviation of a sum of fair coins is known.
    sigma = 0.25 * math.sqrt(100) / 2
    assert found.regrets.std() == pytest.approx(sigma, rel=0.3)
    assert found.right == pytest.approx(12.5, abs=4 * sigma / math.sqrt(60))


def test_whoever_looks_ahead_is_caught() -> None:
    found = lower_bound(0.25, 50, runs=5, rng=np.random.default_rng(7), learner=Cheat)
    assert found.right == 0.0
    assert not found.holds
    with pytest.raises(InputError, match="runs is 1"):
        lower_bound(0.25, 50, runs=1, rng=np.random.default_rng(7))

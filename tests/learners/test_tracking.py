"""The tracker and its selectors against their definitions: enumeration, scipy, plain loops."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Problem, random_problem
from scipy.optimize import minimize

from normalfan import MDP, Face, InputError, TieRule, learners, occupancy, optimal_face
from normalfan.geometry.face import canonical
from normalfan.learners import euclidean
from normalfan.learners.models import ExponentialAverage, LastLoss
from normalfan.learners.protocol import Clairvoyant
from normalfan.learners.selectors import (
    Lexicographic,
    Oracle,
    Predictive,
    RandomPoint,
    RandomVertex,
    Selector,
    first_vertex,
    uniform_policy,
)
from normalfan.learners.sticky import StickyEntropy, StickyEuclidean
from normalfan.learners.tracker import FaceTracker
from normalfan.regret.decompose import decompose
from normalfan.regret.run import run

SELECTORS: dict[str, Callable[[], Selector]] = {
    "Oracle": Oracle,
    "Predictive": lambda: Predictive(ExponentialAverage(0.4)),
    "StickyEntropy": lambda: StickyEntropy(ExponentialAverage(0.4), weight=0.3),
    "StickyEuclidean": lambda: StickyEuclidean(ExponentialAverage(0.4), weight=0.3),
    "Lexicographic": Lexicographic,
    "RandomVertex": lambda: RandomVertex(rng=np.random.default_rng(1)),
    "RandomPoint": lambda: RandomPoint(rng=np.random.default_rng(2)),
}


class Constant:
    """A model that always predicts the same."""

    def __init__(self, loss: np.ndarray) -> None:
        self.loss = loss

    def update(self, loss: np.ndarray) -> None:
        pass

    def predict(self) -> np.ndarray:
        return self.loss


def test_every_selector_of_the_package_is_tried() -> None:
    public = {name: getattr(learners, name) for name in learners.__all__}
    assert {name for name, member in public.items() if hasattr(member, "select")} == {*SELECTORS, "Selector"}


def problems(seed: int, count: int, **settings: int) -> Iterator[Problem]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield random_problem(rng, **settings)


@pytest.mark.parametrize("name", SELECTORS)
def test_plays_lie_on_the_face_and_regret_splits(name: str) -> None:
    degenerate = erring = 0
    for problem in problems(5, 60, rounds=6):
        mdp = problem.mdp()
        log = run(mdp, FaceTracker(mdp, SELECTORS[name]()), problem.losses, keep="occupancies")
        split = decompose(log)
        assert split.exact
        # The regret from raw values, the other two from advantages: three formulas, one identity.
        raw = (log.plays * problem.losses).sum(axis=(1, 2, 3)) - log.values
        np.testing.assert_allclose(raw[1:], (split.price + split.selection)[1:], rtol=0, atol=1e-12)
        np.testing.assert_allclose(split.residual, 0.0, rtol=0, atol=1e-12)
        assert (split.selection >= 0.0).all()
        for t in range(1, len(problem.losses)):
            face = optimal_face(mdp, problem.losses[t - 1])
            assert face.contains(log.plays[t], tolerance=1e-12)
            degenerate += not face.is_vertex
            erring += split.selection[t] > 1e-6
    assert degenerate > 100
    assert (erring > 20) == (name != "Oracle")


@pytest.mark.parametrize("name", SELECTORS)
def test_policies_are_uniform_where_the_face_never_is(name: str) -> None:
    elsewhere = 0
    for problem in problems(6, 30, rounds=4):
        mdp = problem.mdp()
        plays = run(mdp, FaceTracker(mdp, SELECTORS[name]()), problem.losses, keep="policies").plays
        assert plays is not None
        np.testing.assert_array_equal(plays[0], 1.0 / mdp.n_actions)
        for t in range(1, len(plays)):
            off = ~optimal_face(mdp, problem.losses[t - 1]).reached
            np.testing.assert_array_equal(plays[t][off], 1.0 / mdp.n_actions)
            elsewhere += off.sum()
    assert elsewhere > 100


def test_a_tracker_is_clairvoyant_exactly_when_its_selector_is() -> None:
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    for name, build in SELECTORS.items():
        tracker = FaceTracker(mdp, build())
        assert isinstance(tracker, Clairvoyant) == (name == "Oracle")
        twin = copy.deepcopy(tracker)
        if isinstance(twin, Clairvoyant):
            twin.foresee(np.zeros(mdp.shape))
            twin.observe(0, np.zeros(mdp.shape))  # forgets what it foresaw
            with pytest.raises(InputError, match="not shown the coming loss"):
                twin.act(1)


def test_asked_twice_a_tracker_answers_the_same_and_then_draws_afresh() -> None:
    mdp = MDP(np.zeros((1, 50), dtype=int), 0, horizon=1)
    tracker = FaceTracker(mdp, RandomPoint(rng=np.random.default_rng(0)))
    draws = []
    for t in range(3):
        tracker.observe(t, np.zeros(mdp.shape))
        draws.append(tracker.act(t + 1))
        np.testing.assert_array_equal(tracker.act(t + 1), draws[-1])
        assert not draws[-1].flags.writeable
    assert len({draw.tobytes() for draw in draws}) == 3


def test_the_tracker_obeys_its_tie_rule() -> None:
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    loss = np.array([[[0.01, 0.0]]])
    plain, lenient = FaceTracker(mdp), FaceTracker(mdp, ties=TieRule(absolute=0.1))
    for tracker in (plain, lenient):
        tracker.observe(0, loss)
    assert plain.act(1).tolist() == [[[0.0, 1.0]]]
    assert lenient.act(1).tolist() == [[[1.0, 0.0]]]


# --- random faces, small enough to list -----------------------------------------------------------


def random_faces(
    seed: int, count: int, most: int = 40, n_states: int | None = None
) -> Iterator[tuple[Face, np.random.Generator]]:
    """Degenerate faces of random problems, with at most `most` deterministic policies."""
    rng = np.random.default_rng(seed)
    while count:
        H, S, A = (int(n) for n in rng.integers(1, 4, size=3))
        S = S if n_states is None else n_states
        kernel = rng.dirichlet(np.full(S, 0.6), size=(H, S, A))
        kernel = np.where(kernel < 0.05, 0.0, kernel)
        mdp = MDP(kernel / kernel.sum(axis=-1, keepdims=True), rng.dirichlet(np.ones(S)))
        mask = rng.random((H, S, A)) < 0.7
        mask[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = True
        face = Face(mdp, canonical(mdp, mask))
        if 1 < face.n_policies <= most:
            count -= 1
            yield face, rng


def random_policy(face: Face, rng: np.random.Generator, *, sharp: bool) -> np.ndarray:
    policy = rng.dirichlet(np.ones(face.mdp.n_actions), size=face.mask.shape[:2])
    return np.eye(face.mdp.n_actions)[policy.argmax(axis=2)] if sharp else policy


def test_the_oracle_attains_the_least_loss_of_the_list() -> None:
    for face, rng in random_faces(1, 100):
        loss = rng.normal(size=face.mask.shape)
        oracle = Oracle()
        oracle.foresee(loss)
        mine = (occupancy(face.mdp, oracle.select(face, uniform_policy(face.mdp))) * loss).sum()
        assert mine == pytest.approx(min((v * loss).sum() for v in face.vertices()), abs=1e-12)


def test_the_predictive_choice_is_least_in_the_list_under_the_model() -> None:
    for face, rng in random_faces(2, 100):
        model = rng.normal(size=face.mask.shape)
        chosen = occupancy(face.mdp, Predictive(Constant(model)).select(face, uniform_policy(face.mdp)))
        assert (chosen * model).sum() == pytest.approx(
            min((v * model).sum() for v in face.vertices()), abs=1e-12
        )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_predicting_the_last_loss_is_the_lexicographic_rule(seed: int) -> None:
    """The last loss is constant on its own face: even rounding must not decide anything there."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, rounds=5)
    mdp = problem.mdp()
    losses = problem.losses * 0.1 + rng.normal()  # tenths do not add up exactly
    by_last = run(mdp, FaceTracker(mdp, Predictive(LastLoss())), losses, keep="policies").plays
    by_rule = run(mdp, FaceTracker(mdp, Lexicographic()), losses, keep="policies").plays
    np.testing.assert_array_equal(by_last, by_rule)


def test_lexicographic_takes_the_lowest_kept_action() -> None:
    for face, rng in random_faces(3, 50):
        policy = Lexicographic().select(face, random_policy(face, rng, sharp=False))
        for h, s in np.argwhere(face.reached):
            lowest = min(a for a in range(face.mdp.n_actions) if face.mask[h, s, a])
            assert policy[h, s].tolist() == [float(a == lowest) for a in range(face.mdp.n_actions)]
        np.testing.assert_array_equal(policy, first_vertex(face))


# --- random draws ------------------------------------------------------------------------------------


def two_layer_face() -> Face:
    """Action 0 leads to a state with two free actions, action 1 to one with none to choose."""
    mdp = MDP(np.array([[1, 2], [1, 1], [2, 2]]), 0, horizon=2)
    mask = np.ones(mdp.shape, dtype=bool)
    mask[1, 2, 1] = False
    return Face(mdp, canonical(mdp, mask))


def test_random_vertices_are_drawn_by_actions_not_by_vertices() -> None:
    face, draws = two_layer_face(), 4000
    selector = RandomVertex(rng=np.random.default_rng(0))
    assert len(list(face.vertices())) == 3
    drawn = Counter(
        occupancy(face.mdp, selector.select(face, uniform_policy(face.mdp))).tobytes() for _ in range(draws)
    )
    counts = sorted(count / draws for count in drawn.values())
    assert counts == pytest.approx([1 / 4, 1 / 4, 1 / 2], abs=0.03)  # not 1/3 each


def test_random_selectors_differ_but_have_the_same_mean() -> None:
    face, draws = two_layer_face(), 6000
    kept = face.mask / np.maximum(face.mask.sum(axis=2, keepdims=True), 1)
    kept[~face.reached] = 0.5
    centre = occupancy(face.mdp, kept)
    spreads = {}
    for name, build in (("vertex", RandomVertex), ("point", RandomPoint)):
        selector = build(rng=np.random.default_rng(3))
        visits = [occupancy(face.mdp, selector.select(face, uniform_policy(face.mdp))) for _ in range(draws)]
        np.testing.assert_allclose(np.mean(visits, axis=0), centre, atol=0.03)
        spreads[name] = np.var(visits, axis=0)[0, 0, 0]
    assert spreads["vertex"] == pytest.approx(1 / 4, abs=0.02)  # a coin
    assert spreads["point"] == pytest.approx(1 / 12, abs=0.01)  # a uniform number


# --- sticky selectors ----------------------------------------------------------------------------------


def entropy_objective(
    face: Face, policy: np.ndarray, model: np.ndarray, z: np.ndarray, weight: float
) -> float:
    """⟨u, m⟩ + λ Σ u KL(π_u ‖ π_z), followed forward with plain loops."""
    H, S, A = face.mask.shape
    reach, total = face.mdp.initial, 0.0
    for h in range(H):
        mass = np.zeros((S, A))
        for s in range(S):
            for a in range(A):
                if reach[s] > 0 and policy[h, s, a] > 0:
                    mass[s, a] = reach[s] * policy[h, s, a]
                    total += mass[s, a] * (model[h, s, a] + weight * np.log(policy[h, s, a] / z[h, s, a]))
        reach = face.mdp.transitions.push(h, mass)
    return total


@pytest.mark.parametrize("sharp", [False, True])
def test_the_entropic_choice_is_the_minimum(sharp: bool) -> None:
    for face, rng in random_faces(11 + sharp, 12, most=12):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=sharp)
        weight = float(10 ** rng.uniform(-0.5, 1))
        selector = StickyEntropy(Constant(model), weight, mixing=0.05)
        z = selector.reference(face, previous)
        np.testing.assert_allclose(z.sum(axis=2), 1.0, rtol=1e-12)
        chosen = selector.select(face, previous)
        free = face.mask.nonzero()

        def policy_of(logits: np.ndarray, face: Face = face, free: tuple = free) -> np.ndarray:
            scores = np.full(face.mask.shape, -np.inf)
            scores[free] = logits
            scores[~face.reached] = 0.0
            weights = np.exp(scores - scores.max(axis=2, keepdims=True))
            return weights / weights.sum(axis=2, keepdims=True)

        def objective(logits: np.ndarray, face: Face = face, z: np.ndarray = z) -> float:
            return entropy_objective(face, policy_of(logits), model, z, weight)  # noqa: B023

        found = minimize(objective, np.zeros(len(free[0])), method="BFGS")
        mine = entropy_objective(face, chosen, model, z, weight)
        assert mine <= found.fun + 1e-12
        assert mine == pytest.approx(found.fun, abs=1e-6)
        often = occupancy(face.mdp, chosen).sum(axis=2) > 0.05
        np.testing.assert_allclose(chosen[often], policy_of(found.x)[often], atol=2e-3)


def test_the_entropic_choice_is_proven_by_its_gradient() -> None:
    """The objective is convex and its gradient m + λ log(π_u/π_z): no vertex lies downhill."""
    for face, rng in random_faces(13, 150):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=bool(rng.integers(2)))
        weight = float(10 ** rng.uniform(-1, 1))
        selector = StickyEntropy(Constant(model), weight, mixing=0.1)
        z = selector.reference(face, previous)
        chosen = selector.select(face, previous)
        visits = occupancy(face.mdp, chosen)
        ratio = np.divide(chosen, z, out=np.ones_like(z), where=face.mask)
        gradient = np.where(face.mask, model + weight * np.log(ratio), 0.0)
        slopes = [(gradient * (v - visits)).sum() for v in face.vertices()]
        assert min(slopes) >= -1e-10
        assert max(slopes) <= 1e-10  # an interior minimum is flat in every direction of the face


@pytest.mark.parametrize("sharp", [False, True])
def test_the_euclidean_choice_is_the_minimum(sharp: bool) -> None:
    boundary = interior = 0
    for face, rng in random_faces(17 + sharp, 60):
        model = rng.normal(size=face.mask.shape)
        previous = random_policy(face, rng, sharp=sharp)
        weight = float(10 ** rng.uniform(-1, 2))
        chosen = occupancy(face.mdp, StickyEuclidean(Constant(model), weight).select(face, previous))
        z = occupancy(face.mdp, previous)
        vertices = np.array(list(face.vertices()))

        def objective(w: np.ndarray, vertices: np.ndarray = vertices, z: np.ndarray = z) -> float:
            u = np.tensordot(w, vertices, axes=1)
            return float((u * model).sum() + weight / 2 * ((u - z) ** 2).sum())  # noqa: B023

        mine = float((chosen * model).sum() + weight / 2 * ((chosen - z) ** 2).sum())
        start = np.full(len(vertices), 1 / len(vertices))
        found = minimize(
            objective,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(vertices),
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"maxiter": 300, "ftol": 1e-12},
        )
        assert mine <= found.fun + 1e-9
        assert mine == pytest.approx(found.fun, rel=1e-5, abs=1e-5)
        gradient = model + weight * (chosen - z)
        assert min((gradient * (v - chosen)).sum() for v in vertices) >= -1e-9 * (1 + weight)
        boundary += bool((chosen[face.mask] == 0).any())
        interior += bool((chosen[face.mask] > 0).all())
    assert boundary > 10
    assert interior > 2


def test_one_state_is_projected_by_sorting_as_by_searching() -> None:
    for face, rng in random_faces(23, 60, n_states=1):
        target = rng.normal(size=face.mask.shape) * 10 ** rng.uniform(-2, 2)
        sorted_out = euclidean.nearest_point(face, target)
        searched = np.zeros(face.mask.shape)
        searched[face.mask] = euclidean._wolfe(face, target[face.mask])
        np.testing.assert_allclose(sorted_out, searched, atol=1e-9)
        assert face.contains(sorted_out, tolerance=1e-12)


def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    face, _ = next(random_faces(29, 1, n_states=2))
    monkeypatch.setattr(euclidean, "GAP", -1.0)
    monkeypatch.setattr(euclidean, "MOST_STEPS", 3)
    with pytest.raises(ArithmeticError, match="duality gap is still"):
        euclidean.nearest_point(face, np.zeros(face.mask.shape))


@pytest.mark.parametrize("build", [StickyEntropy, StickyEuclidean])
def test_sticky_stays_where_it_was_if_it_can(build: Callable[..., Selector]) -> None:
    """With the last loss as model sticky is pure memory, and λ does not matter."""
    mdp = MDP(np.array([[0, 0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.array([[[1.0, 1.0, 2.0]]]))
    previous = np.array([[[0.3, 0.7, 0.0]]])
    choices = []
    for weight in (0.01, 1.0, 100.0):
        selector = build(LastLoss(), weight)
        selector.observe(np.array([[[1.0, 1.0, 2.0]]]))
        choices.append(selector.select(face, previous))
    np.testing.assert_allclose(choices, [previous] * 3, atol=0.005)
    np.testing.assert_allclose(choices[0], choices[2], atol=1e-12)


def test_mixing_decides_how_far_a_boundary_reference_lets_go() -> None:
    """All mass was on an arm that the model now dislikes by 1: more mixing, more mass moves."""
    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.zeros((1, 1, 2)))
    previous = np.array([[[1.0, 0.0]]])
    moved = [
        StickyEntropy(Constant(np.array([[[1.0, 0.0]]])), 1.0, mixing=mixing).select(face, previous)[0, 0, 1]
        for mixing in (1e-12, 1e-3, 0.5)
    ]
    assert moved[0] < 1e-11 < moved[1] < 1e-2 < moved[2]
    exact = 0.25 * np.e / (0.25 * np.e + 0.75)
    assert moved[2] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: StickyEntropy(LastLoss(), 1.0, mixing=0.0), "mixing is 0.0"),
        (lambda: StickyEntropy(LastLoss(), 1.0, mixing=1.5), "mixing is 1.5"),
        (lambda: StickyEntropy(LastLoss(), 0.0), "weight is 0.0"),
        (lambda: StickyEuclidean(LastLoss(), float("nan")), "weight is nan"),
        (lambda: StickyEuclidean(LastLoss(), float("inf")), "weight is inf"),
    ],
)
def test_settings_without_meaning_are_refused(build: Callable[[], Selector], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build()


def test_a_reference_that_shuns_the_face_is_refused() -> None:
    from normalfan.learners.sticky import soft_backup

    mdp = MDP(np.array([[0, 0]]), 0, horizon=1)
    face = optimal_face(mdp, np.array([[[0.0, 1.0]]]))
    with pytest.raises(InputError, match=r"reference\[0, 0\] gives no probability"):
        soft_backup(face, np.zeros(mdp.shape), np.array([[[0.0, 1.0]]]), 1.0)

"""The run loop and its accounts against a slow loop in exact rationals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from oracles import exact_mask, exact_price, exact_value
from problems import Problem, random_problem

from normalfan import MDP, InputError, TieRule, occupancy, optimal_face, price_stream
from normalfan._kernels.accounting import compare
from normalfan.geometry.bellman import optimal_backup
from normalfan.learners.selectors import FaceTracker, RandomPoint, uniform_policy
from normalfan.pricing.kernels import whole_problem
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import ArrayLosses
from normalfan.regret import RunLog, decompose, run

ARMS = MDP(np.array([[0, 0]]), 0, horizon=1)


def arms(*rounds: tuple[float, ...]) -> np.ndarray:
    return np.array(rounds).reshape(len(rounds), 1, 1, -1)


class Drawn:
    """Plays a random policy each round, of which some actions have no mass: on and off any face."""

    def __init__(self, mdp: MDP, seed: int) -> None:
        self.mdp = mdp
        self.rng = np.random.default_rng(seed)

    def act(self, round: int) -> np.ndarray:
        weights = self.rng.random(self.mdp.shape) * (self.rng.random(self.mdp.shape) < 0.5)
        weights[..., 0] += 1e-3
        return weights / weights.sum(axis=2, keepdims=True)

    def observe(self, round: int, loss: np.ndarray) -> None:
        pass


class Prophet:
    """Plays an optimum of the coming loss: no regret, and off the old face wherever that matters."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp

    def foresee(self, loss: np.ndarray) -> None:
        self.policy = np.eye(self.mdp.n_actions)[optimal_backup(self.mdp, loss).advantages.argmin(axis=2)]

    def act(self, round: int) -> np.ndarray:
        return self.policy

    def observe(self, round: int, loss: np.ndarray) -> None:
        pass


# --- the slow loop -------------------------------------------------------------------------------------

Pairs = dict[tuple[int, int, int], Fraction]


def exact_visits(problem: Problem, policy: np.ndarray) -> Pairs:
    """Occupancy of a policy read as fractions, followed forward state by state."""
    visits: Pairs = {}
    arriving = problem.initial()
    for h in range(problem.shape[0]):
        ahead: dict[int, Fraction] = {}
        for s, mass in arriving.items():
            for a, share in enumerate(policy[h, s].tolist()):
                if share:
                    visits[h, s, a] = mass * Fraction(share)
                    for j, p in problem.probability(h, s, a).items():
                        ahead[j] = ahead.get(j, Fraction(0)) + visits[h, s, a] * p
        arriving = ahead
    return visits


def first_actions(problem: Problem, mask: np.ndarray) -> np.ndarray:
    return np.eye(problem.shape[2])[mask.argmax(axis=2)]


def parting(problem: Problem, mine: np.ndarray, other: np.ndarray) -> Fraction:
    """Σ over paths that end where the two comparators first part, of probability · steps left."""
    horizon, total = problem.shape[0], Fraction(0)
    paths = [(0, s, p) for s, p in problem.initial().items()]
    while paths:
        h, s, p = paths.pop()
        if h == horizon:
            continue
        a, b = int(mine[h, s].argmax()), int(other[h, s].argmax())
        if a != b:
            total += p * (horizon - h)
        else:
            paths += [(h + 1, j, p * r) for j, r in problem.probability(h, s, a).items()]
    return total


def slow_loop(problem: Problem, plays: np.ndarray) -> Iterator[dict[str, Fraction]]:
    previous = None
    for loss, policy in zip(problem.losses, plays, strict=True):
        visits = exact_visits(problem, policy)
        paid = sum((q * int(loss[i]) for i, q in visits.items()), Fraction(0))
        value = exact_value(problem, loss)
        row = {"losses_paid": paid, "values": value, "regrets": paid - value}
        mask = exact_mask(problem, loss)
        comparator = first_actions(problem, mask)
        if previous is None:
            row |= dict.fromkeys(
                ("prices", "selections", "off_face_masses", "path_lengths", "causal_path_lengths"), 0
            )
        else:
            old_loss, old_mask, old_comparator = previous
            row["prices"] = exact_price(problem, old_loss, loss)
            row["selections"] = row["regrets"] - row["prices"]
            row["off_face_masses"] = sum((q for i, q in visits.items() if not old_mask[i]), Fraction(0))
            new, old = exact_visits(problem, comparator), exact_visits(problem, old_comparator)
            row["path_lengths"] = sum(abs(new.get(i, 0) - old.get(i, 0)) for i in new.keys() | old.keys())
            row["causal_path_lengths"] = parting(problem, comparator, old_comparator)
        row["dimensions"] = int(mask.sum()) - int(mask.any(axis=2).sum())
        previous = loss, mask, comparator
        yield row


@pytest.mark.parametrize("learner", ["tracker", "random point", "drawn", "prophet"])
def test_accounts_are_those_of_the_slow_loop(learner: str, rng: np.random.Generator) -> None:
    on, off, negative, moved = 0, 0, 0, 0
    for seed in range(60):
        problem = random_problem(rng)
        for kind in problem.kinds():
            mdp = problem.mdp(kind)
            build = {
                "tracker": lambda mdp: FaceTracker(mdp),
                "random point": lambda mdp: FaceTracker(mdp, RandomPoint(rng=np.random.default_rng(0))),
                "drawn": lambda mdp, seed=seed: Drawn(mdp, seed),
                "prophet": Prophet,
            }[learner]
            log = run(mdp, build(mdp), problem.losses, keep="policies")
            assert log.plays is not None
            for t, row in enumerate(slow_loop(problem, log.plays)):
                for name, exact in row.items():
                    assert getattr(log, name)[t] == pytest.approx(float(exact), abs=1e-12), (name, t)
                assert log.on_face[t] == (row["off_face_masses"] < Fraction(1, 10**9))
        on += int(log.on_face[1:].sum())
        off += int((~log.on_face).sum())
        negative += int((log.selections < -1e-9).sum())
        moved += int((log.causal_path_lengths > 0).sum())
    assert moved > 30
    assert (off == negative == 0) == (learner in ("tracker", "random point"))
    if learner in ("drawn", "prophet"):
        assert min(on, off) > 20
        assert negative > 10


def test_a_learner_off_the_face_is_flagged_and_never_clipped(rng: np.random.Generator) -> None:
    for _ in range(40):
        problem = random_problem(rng, rounds=6)
        mdp = problem.mdp()
        split = decompose(run(mdp, Prophet(mdp), problem.losses))
        np.testing.assert_array_equal(split.regret, 0.0)
        np.testing.assert_allclose(split.selection, -split.price, rtol=0, atol=1e-12)
        assert not split.on_face[split.price > 0].any()
        assert split.exact == split.on_face.all()


def test_prices_and_variations_are_those_of_the_stream(rng: np.random.Generator) -> None:
    for _ in range(40):
        problem = random_problem(rng, rounds=8)
        mdp = problem.mdp()
        log, motion = run(mdp, FaceTracker(mdp), problem.losses), price_stream(mdp, problem.losses)
        np.testing.assert_allclose(log.prices, motion.prices, rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(log.dimensions, motion.dimensions)
        for norm in ("l1", "l2", "linf"):
            np.testing.assert_allclose(log.variation(norm), motion.variation(norm), rtol=1e-12)


def test_the_tie_rule_of_the_accounts_is_used() -> None:
    losses = arms((0.0, 0.01), (0.0, 1.0))
    assert run(ARMS, FaceTracker(ARMS), losses).dimensions.tolist() == [0, 0]
    assert run(ARMS, FaceTracker(ARMS), losses, ties=TieRule(absolute=0.1)).dimensions.tolist() == [1, 0]


# --- the loop --------------------------------------------------------------------------------------------


class Recorder:
    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        self.calls: list[tuple[str, float]] = []

    def act(self, round: int) -> np.ndarray:
        self.calls.append(("act", round))
        return uniform_policy(self.mdp)

    def observe(self, round: int, loss: np.ndarray) -> None:
        assert not loss.flags.writeable
        self.calls.append(("observe", round))
        self.calls.append(("loss", float(loss.max())))


class Seer(Recorder):
    def foresee(self, loss: np.ndarray) -> None:
        self.calls.append(("foresee", float(loss.max())))


def test_the_loop_owns_the_counter_and_keeps_the_order() -> None:
    losses = arms((0.0, 7.0), (8.0, 0.0))
    plain, seer = Recorder(ARMS), Seer(ARMS)
    assert not run(ARMS, plain, losses).clairvoyant
    assert run(ARMS, seer, losses).clairvoyant
    rounds = [[("act", 0), ("observe", 0), ("loss", 7.0)], [("act", 1), ("observe", 1), ("loss", 8.0)]]
    assert plain.calls == rounds[0] + rounds[1]
    assert seer.calls == [("foresee", 7.0), *rounds[0], ("foresee", 8.0), *rounds[1]]


def test_an_adversary_may_look_at_the_learner() -> None:
    """A generator is asked for a round only when the round before is over."""
    learner = Recorder(ARMS)

    def adversary() -> Iterator[np.ndarray]:
        for t in range(4):
            assert learner.calls.count(("observe", t - 1)) == min(t, 1)
            assert ("act", t) not in learner.calls
            yield np.array([[[0.0, 1.0 + t]]])

    log = run(ARMS, learner, adversary())
    assert log.losses_paid.tolist() == [0.5, 1.0, 1.5, 2.0]


def test_every_source_of_losses_gives_the_same_log(rng: np.random.Generator) -> None:
    mdp = random_problem(rng, rounds=2).mdp()
    theta, features = rng.normal(size=(70, 2)), rng.normal(size=(2, *mdp.shape))
    losses = np.einsum("tk,khsa->thsa", theta, features)
    logs = [
        run(mdp, FaceTracker(mdp), source)
        for source in (
            losses,
            list(losses),
            iter(losses),
            ArrayLosses(losses),
            FactoredLosses(theta, features),
        )
    ]
    for log in logs[1:]:
        np.testing.assert_allclose(log.regrets, logs[0].regrets, rtol=1e-9, atol=1e-12)
        assert log.n_rounds == 70


def test_long_streams_are_read_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No round is lost or played twice where one block ends and the next begins."""
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(200, 1, 1, 2))
    whole = run(ARMS, FaceTracker(ARMS), losses)
    monkeypatch.setattr("normalfan.regret.block_rounds", lambda *_, **__: 7)
    pieces = run(ARMS, FaceTracker(ARMS), losses)
    np.testing.assert_array_equal(pieces.regrets, whole.regrets)
    np.testing.assert_array_equal(pieces.variations, whole.variations)


@pytest.mark.parametrize("keep", ["nothing", "policies", "occupancies"])
def test_plays_are_kept_as_asked(keep: str, rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=4)
    mdp = problem.mdp()
    log = run(mdp, Drawn(mdp, 3), problem.losses, keep=keep)
    again = Drawn(mdp, 3)
    policies = [again.act(t) for t in range(4)]
    assert log.kept == keep
    if keep == "nothing":
        assert log.plays is None
    elif keep == "policies":
        np.testing.assert_array_equal(log.plays, policies)
    else:
        np.testing.assert_array_equal(log.plays, [occupancy(mdp, policy) for policy in policies])


def test_logs_cannot_be_written_to(rng: np.random.Generator) -> None:
    problem = random_problem(rng, rounds=3)
    mdp = problem.mdp()
    log = run(mdp, FaceTracker(mdp), problem.losses, keep="policies")
    for name in RunLog.__dataclass_fields__:
        column = getattr(log, name)
        if isinstance(column, np.ndarray):
            assert len(column) == 3
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 0


class Broken(Recorder):
    def act(self, round: int) -> np.ndarray:
        return uniform_policy(self.mdp) * (2.0 if round else 1.0)


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (
            lambda: run(ARMS, Broken(ARMS), arms((0, 1), (0, 1))),
            r"in round 1, of Broken: policy.* sums",
        ),
        (lambda: run(ARMS, Recorder(MDP([[0, 0]], 0, horizon=2)), arms((0, 1))), "another problem"),
        (lambda: run(ARMS, Recorder(ARMS), arms((0, 1)), keep="all"), "keep is 'all'"),
        (lambda: run(ARMS, Recorder(ARMS), iter(())), "have no round"),
        (lambda: run(ARMS, Recorder(ARMS), arms((0, 1), (0, np.nan))), r"losses\[1, 0, 0, 1\] is nan"),
        (lambda: run(ARMS, Recorder(ARMS), arms((0, 1))).variation("l3"), "norm is 'l3'"),
    ],
)
def test_mistakes_are_named(attempt, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        attempt()


def test_losses_beyond_float64_are_named() -> None:
    mdp = MDP([[0, 0]], 0, horizon=3)
    with pytest.raises(InputError, match="losses of round 0 add up beyond"):
        run(mdp, Recorder(mdp), np.full((1, 3, 1, 2), 1e308))


# --- the decomposition -----------------------------------------------------------------------------------


def test_totals_and_frames(rng: np.random.Generator) -> None:
    for _ in range(20):
        problem = random_problem(rng, rounds=6)
        mdp = problem.mdp()
        log = run(mdp, FaceTracker(mdp), problem.losses)
        split = decompose(log)
        assert split.first_regret == log.regrets[0]
        assert split.price[0] == split.selection[0] == split.residual[0] == 0.0
        whole = math.fsum([split.first_regret, split.total_price, split.total_selection])
        assert split.total_regret == pytest.approx(whole, rel=1e-14, abs=1e-14)
        assert split.total_regret == log.total_regret
        frame = split.to_frame()
        assert frame["round"].to_list() == list(range(6))
        columns = {"regret": "regrets", "on_face": "on_face", "dimension": "dimensions"}
        columns |= {"price": "prices", "selection": "selections", "path_length": "path_lengths"}
        for name, array in columns.items():
            np.testing.assert_array_equal(frame[name].to_numpy(), getattr(log, array))
        np.testing.assert_array_equal(frame["variation_l2"].to_numpy(), log.variation("l2"))
        sums = split.cumulative()
        assert sums["regret"][-1] == pytest.approx(split.total_regret)
        np.testing.assert_allclose(np.diff(sums["causal_path_length"]), log.causal_path_lengths[1:])


def test_the_names_and_the_figure_of_a_split() -> None:
    losses = ArrayLosses(arms((0.0, 1.0), (1.0, 0.0)), round_names=("2021-02-14", "2021-02-15"))
    split = decompose(run(ARMS, FaceTracker(ARMS), losses))
    assert split.to_frame()["round"].to_list() == ["2021-02-14", "2021-02-15"]
    (axes,) = split.plot().axes
    for line, name in zip(axes.lines, ("regret", "price", "selection"), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), split.cumulative()[name])


def test_a_large_offset_costs_no_digits() -> None:
    """Regret, price and selection are sums of advantages, not differences of values near 1e9."""
    mdp = MDP(np.array([[0, 0, 0]]), 0, horizon=1)
    losses = arms((0.0, 0.0, 1.0), (0.75, 0.5, 0.25))
    plain, shifted = (decompose(run(mdp, FaceTracker(mdp), losses + c)) for c in (0.0, 2.0**20))
    np.testing.assert_array_equal(plain.regret, shifted.regret)
    np.testing.assert_array_equal(plain.price, shifted.price)
    np.testing.assert_array_equal(plain.selection, shifted.selection)
    assert plain.price.tolist() == [0.0, 0.25]
    assert plain.selection.tolist() == [0.0, 0.25]


def test_random_policies_part_as_late_as_they_can() -> None:
    half, whole = np.full((2, 1, 2), 0.5), np.tile([1.0, 0.0], (2, 1, 1))
    mdp = MDP([[0, 0]], 0, horizon=2)
    problem, no_plan = whole_problem(mdp), np.zeros(mdp.shape, dtype=bool)
    before, *_ = compare(problem, no_plan, half, None)
    assert compare(problem, no_plan, half, before)[1:] == (0.0, 0.0)
    assert compare(problem, no_plan, whole, before)[2] == 0.5 * 2 + 0.25 * 1


def test_a_face_that_did_not_move_has_no_path_length() -> None:
    """Between two losses with the same degenerate face the comparator stays, whatever the variation."""
    log = run(ARMS, FaceTracker(ARMS), arms((1.0, 1.0), (5.0, 5.0), (0.0, 1.0)))
    assert log.path_lengths.tolist() == [0.0, 0.0, 0.0]
    assert log.variation("l1").tolist() == [0.0, 8.0, 9.0]
    assert optimal_face(ARMS, [[[1.0, 1.0]]]).dimension == log.dimensions[0] == 1

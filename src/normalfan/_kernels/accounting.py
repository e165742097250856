"""What a round of a run is measured by: the optimum of its loss, the face of the last one, and the accounts.

The same as `geometry.bellman`, `geometry.ties` and `geometry.face` say of one loss. Arrays are flat, entry
(h, s, a) at (h·S + s)·A + a, and only the states of the problem are read. An action of loss inf is not
allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import Problem, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.memory import item
from normalfan._kernels.playing import begin_step, mean_ahead, push_row, tables, visits_of


@inlined
def _three_ahead(rows, indptr, indices, weights, first, i, ahead, means):
    """The means of value, size and error ahead, [S, 3] flat, for row i of the step."""
    value = size = error = 0.0
    if rows is not None:
        value, size, error = item(means, 3 * i), item(means, 3 * i + 1), item(means, 3 * i + 2)
    if indices is not None:
        if weights is not None:
            for p in range(item(indptr, first + i), item(indptr, first + i + 1)):
                weight, at = item(weights, p), 3 * np.int64(item(indices, p))
                value += weight * item(ahead, at)
                size += weight * item(ahead, at + 1)
                error += weight * item(ahead, at + 2)
        else:
            at = 3 * np.int64(item(indices, first + i))
            value, size, error = item(ahead, at), item(ahead, at + 1), item(ahead, at + 2)
    return value, size, error


@kernel
def _back_up(problem, rows, indptr, indices, weights, loss, rule, values, advantages, tied):
    steps, states, actions = problem.shape
    absolute, relative, rounding = rule
    layers, means = np.zeros((2, states, 3)), np.empty((states * actions, 3))
    sizes, errors = np.empty(actions), np.empty(actions)
    for h in range(steps - 1, -1, -1):
        first, layer, here = h * problem.per_step, layers[(h + 1) & 1], layers[h & 1]
        begin_step(rows, first, layer, means)
        ahead, known = layer.reshape(-1), means.reshape(-1)
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            cell = (h * states + s) * actions
            best, is_open = np.inf, False
            for a in range(actions):
                own, i = item(loss, cell + a), s * actions + a
                is_open |= own < np.inf
                q, size, error = _three_ahead(rows, indptr, indices, weights, first, i, ahead, known)
                q = own + q if own < np.inf else np.inf
                advantages[np.uint64(cell + a)] = q
                sizes[np.uint64(a)], errors[np.uint64(a)] = size, error
                best = min(best, q)
            if not is_open:  # then no policy is here
                best = 0.0
            most = worst = 0.0
            for a in range(actions):
                own, d = abs(item(loss, cell + a)), item(advantages, cell + a) - best
                advantages[np.uint64(cell + a)] = d
                met = own + abs(best) + d
                if own == np.inf:  # what is not allowed is no size
                    own, met = 0.0, abs(best)
                size, error = max(own, item(sizes, a)), rounding * met + item(errors, a)
                sizes[np.uint64(a)], errors[np.uint64(a)] = size, error
                most, worst = max(most, size if d == 0.0 else 0.0), max(worst, error if d == 0.0 else 0.0)
            for a in range(actions):
                threshold = absolute + relative * max(item(sizes, a), most) + (item(errors, a) + worst)
                # Not "<=": where losses overflow advantages are NaN, and some action must still be kept.
                tied[np.uint64(cell + a)] = not item(advantages, cell + a) > threshold
            values[np.uint64(h * states + s)] = best
            here[s, 0], here[s, 1], here[s, 2] = best, most, worst


def settle(
    problem: Problem, loss: np.ndarray, rule: tuple[float, float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The optimal values [H+1, S] of a loss [H, S, A], its advantages, and which count as none, [H, S, A].

    ``rule`` is that of `TieRule.thresholds`: absolute, relative, and the share that rounding may take.
    Advantages are written at the problem's states alone.
    """
    steps, states, _ = problem.shape
    values, advantages = np.zeros((steps + 1, states)), np.empty(problem.shape)
    tied = np.zeros(problem.shape, np.bool_)
    found = (array.reshape(-1) for array in (values, advantages, tied))
    _back_up(problem, *tables(problem), frozen(loss, np.float64), rule, *found)
    return values, advantages, tied


@kernel
def _mark(problem, rows, indptr, indices, weights, plan, loss, kept):
    steps, states, actions = problem.shape
    reached = np.zeros((steps + 1) * states)
    reached[:states] = problem.initial
    dimension = 0
    for h in range(steps):
        later = reached[(h + 1) * states : (h + 2) * states]
        for s in range(states):
            if item(reached, h * states + s) > 0.0:
                cell = (h * states + s) * actions
                some = False
                for a in range(actions):
                    some |= item(plan, cell + a) and item(loss, cell + a) < np.inf
                dimension -= 1
                for a in range(actions):
                    keep = item(loss, cell + a) < np.inf and (item(plan, cell + a) or not some)
                    kept[np.uint64(cell + a)] = keep
                    if keep:
                        dimension += 1
                        row = h * problem.per_step + s * actions + a
                        push_row(rows, indptr, indices, weights, row, 1.0, later)
        # Whether something arrives is all that counts; as mass it could underflow.
        for s in range(states):
            later[s] = 1.0 if later[s] > 0.0 else 0.0
    return dimension


def follow_plan(problem: Problem, plan: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, int]:
    """The mask [H, S, A] of a plan where it leads under a loss, and the dimension of that face.

    Kept are the plan's actions that are allowed; where there are none, all that are.
    """
    kept = np.zeros(problem.shape, np.bool_)
    given = plan.reshape(-1), frozen(loss, np.float64)
    return kept, _mark(problem, *tables(problem), *given, kept.reshape(-1))


@kernel
def _paid(problem, mass, policy, loss):
    steps, states, actions = problem.shape
    total = 0.0
    for h in range(steps):
        of_step = 0.0
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            at = h * states + np.int64(item(problem.idx, j))
            of_state = 0.0
            for i in range(at * actions, (at + 1) * actions):
                own = item(loss, i)
                of_state += item(mass, at) * item(policy, i) * own if own < np.inf else 0.0
            of_step += of_state
        total += of_step
    return total


def loss_paid(problem: Problem, mass: np.ndarray, policy: np.ndarray, loss: np.ndarray) -> float:
    """What a policy [H, S, A] pays that is in the states as often as `mass` [H, S] says."""
    paid: float = _paid(problem, *(frozen(array, np.float64) for array in (mass, policy, loss)))
    return paid


class Accounts(NamedTuple):
    """What the play of a round adds up to, by the columns of a run's log."""

    losses_paid: float
    regrets: float
    prices: float
    selections: float
    off_face_masses: float


@kernel
def _hold(problem, rows, indptr, indices, weights, advantages, tied, kept, worth):
    """Fill worth [H+1, S] with the least cost of staying in the mask, 0 elsewhere; returns the price."""
    steps, states, actions = problem.shape
    means = np.empty(states * actions)
    worth[:] = 0.0
    for h in range(steps - 1, -1, -1):
        first, ahead = h * problem.per_step, worth[(h + 1) * states : (h + 2) * states]
        begin_step(rows, first, ahead, means)
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            least = np.inf
            for a in range(actions):
                i, cell = s * actions + a, (h * states + s) * actions + a
                if item(kept, cell):
                    onward = mean_ahead(rows, indptr, indices, weights, first, i, ahead, means)
                    least = min(least, (0.0 if item(tied, cell) else item(advantages, cell)) + onward)
            worth[np.uint64(h * states + s)] = 0.0 if least == np.inf else least
    price = 0.0
    for s in range(states):
        price += problem.initial[s] * worth[s]
    return price


@kernel
def _split(problem, rows, indptr, indices, weights, policy, advantages, tied, kept, mass, worth):
    """The regret of a play, its selection error, and how often it is off the mask."""
    steps, states, actions = problem.shape
    means = np.empty(states * actions)
    regret = selection = off = 0.0
    for h in range(steps):
        first, ahead = h * problem.per_step, worth[(h + 1) * states : (h + 2) * states]
        begin_step(rows, first, ahead, means)
        step_regret = step_selection = 0.0
        for j in range(problem.ptr[h], problem.ptr[h + 1]):
            s = np.int64(item(problem.idx, j))
            at = h * states + s
            arrived = item(mass, at)
            if arrived == 0.0:
                continue
            own_regret = own_selection = 0.0
            for a in range(actions):
                i, cell = s * actions + a, at * actions + a
                visits = arrived * item(policy, cell)
                d = 0.0 if item(tied, cell) else item(advantages, cell)
                onward = mean_ahead(rows, indptr, indices, weights, first, i, ahead, means)
                own_regret += visits * d if d < np.inf else 0.0
                own_selection += visits * (d + onward - item(worth, at)) if d < np.inf else 0.0
                off += 0.0 if item(kept, cell) else visits
            step_regret += own_regret
            step_selection += own_selection
        regret += step_regret
        selection += step_selection
    return regret, selection, off


def account(
    problem: Problem,
    policy: np.ndarray,
    loss: np.ndarray,
    advantages: np.ndarray,
    tied: np.ndarray,
    kept: np.ndarray,
) -> Accounts:
    """The accounts of a policy, settled by `settle`, against the mask of the last face; all [H, S, A]."""
    steps, states, _ = problem.shape
    given, mass, worth = (
        (problem, *tables(problem)),
        visits_of(problem, policy),
        np.empty((steps + 1) * states),
    )
    face = frozen(advantages, np.float64), tied.reshape(-1), kept.reshape(-1)
    price = _hold(*given, *face, worth)
    regret, *others = _split(*given, frozen(policy, np.float64), *face, mass.reshape(-1), worth)
    return Accounts(loss_paid(problem, mass, policy, loss), regret, price, *others)


@inner
def _chance(plan, fallback, cell, actions, a):
    """How likely the first vertex of a plan takes an action; where the plan keeps none, by the fallback."""
    for b in range(actions):
        if item(plan, cell + b):
            return 1.0 if a == b else 0.0
    return item(fallback, cell + a)


@kernel
def _walk(problem, rows, indptr, indices, weights, now, past, mass):
    steps, states, actions = problem.shape
    plan, fallback = now
    old_plan, old_fallback, old_mass = past
    together = np.zeros((steps + 1) * states)
    together[:states] = problem.initial
    mass[:] = 0.0
    mass[:states] = problem.initial
    apart = distance = 0.0
    for h in range(steps):
        parted = 0.0
        for s in range(states):
            at, row = h * states + s, h * problem.per_step + s * actions
            here, there, common = item(mass, at), item(old_mass, at), item(together, at)
            if here == 0.0 and there == 0.0 and common == 0.0:
                continue
            shared = 0.0
            for a in range(actions):
                chance = _chance(plan, fallback, at * actions, actions, a)
                other = _chance(old_plan, old_fallback, at * actions, actions, a)
                apart += abs(here * chance - there * other)
                both = min(chance, other)
                shared += both
                if h + 1 < steps and here * chance > 0.0:
                    later = mass[(h + 1) * states : (h + 2) * states]
                    push_row(rows, indptr, indices, weights, row + a, here * chance, later)
                if h + 1 < steps and common * both > 0.0:
                    later = together[(h + 1) * states : (h + 2) * states]
                    push_row(rows, indptr, indices, weights, row + a, common * both, later)
            parted += common * max(1.0 - shared, 0.0)  # exactly 0 where certain policies agree
        distance += parted * (steps - h)
    return apart, distance


class Comparator(NamedTuple):
    """The first vertex of a face: the first action of its plan, or, where that keeps none, by a fallback."""

    plan: np.ndarray  # bool [H·S·A]
    fallback: np.ndarray  # float64 [H·S·A]
    mass: np.ndarray  # float64 [H·S]: how likely it is in each state


def compare(
    problem: Problem, plan: np.ndarray, fallback: np.ndarray, past: Comparator | None
) -> tuple[Comparator, float, float]:
    """The comparator of a plan, and how far it is from the last one; 0 if there is none.

    By L1 of the visits, and by how much of the horizon is redirected: the number of steps, on average, after
    the two first disagree.
    """
    now = plan.reshape(-1), frozen(fallback, np.float64)
    mass = np.empty(problem.shape[0] * problem.shape[1])
    found = Comparator(*now, mass)
    return found, *_walk(problem, *tables(problem), now, tuple(past or found), mass)

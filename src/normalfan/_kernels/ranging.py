"""Backups on dual numbers: the value of a loss and its slope along another, eight pairs of losses at a time.

    Q  = ℓ  + E[V'],    V = min_a Q,    A = Q − V, zero where tied          ℓ  = u·base + Σ_k α_k Φ_k
    Q' = ℓ' + E[D'],    D = Q' of the tied action with the largest side·Q'  ℓ' = p·base + Σ_k β_k Φ_k

A lane has its own α and β. With the visits q of a plan, Σ q·A is what the plan costs beyond the optimum,
Σ q·(Q' − D) the slope of that: sums over what it visits, no differences of large values. Actions are tied by
the rule of `geometry.ties`, state by state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.compiling import inlined, kernel
from normalfan._kernels.lanes import (
    LANES,
    absolute,
    any_bit,
    at_most,
    broadcast,
    fma,
    maximum,
    minimum,
    select,
    zero_lanes,
)
from normalfan._kernels.memory import item, load, store

MAX = np.finfo(np.float64).max


class Model(NamedTuple):
    """A problem, a loss and features; row (h, s, a) of `allowed`, `base` and `ptr` is (h·S + s)·A + a."""

    shape: tuple[int, int, int, int]  # H, S, A, K
    per_step: int  # rows of the transitions from one step to the next: S·A, or 0 if all steps share them
    states_ptr: np.ndarray  # int64 [H+1], of the states that some policy can reach
    states: np.ndarray  # int32
    initial: np.ndarray  # float64 [S]
    indptr: np.ndarray  # int64 [rows+1]
    indices: np.ndarray  # int32
    weights: np.ndarray  # float64
    base: np.ndarray  # float64 [H·S·A]
    ptr: np.ndarray  # int64 [H·S·A+1] offsets into the features of a row
    features: np.ndarray  # int32 which
    amounts: np.ndarray  # float64 how much


@inlined
def _is(pick, a):
    """The lanes whose pick is action a."""
    return at_most(absolute(pick - broadcast(float(a))), zero_lanes())


@inlined
def _tied(scratch, a, best, size, rule):
    """How far an action is behind the best, and where that counts as nothing."""
    behind = load(scratch, a * 3 * LANES) - best
    met = maximum(load(scratch, (a * 3 + 2) * LANES), size)
    return behind, at_most(behind, fma(broadcast(rule[1]), met, broadcast(rule[0])))


@kernel
def backups(model, allowed, scales, alpha, beta, active, rule, side, visits, forced, picks, out):
    """Back up every active block of lanes: ``scales`` are u and p, ``alpha`` and ``beta`` [blocks·K·LANES].

    ``visits`` [1 or blocks, H·S·A·LANES] are a plan's, or empty. With ``forced`` [blocks, H·S·LANES] actions
    are not chosen but given. Filled are ``picks``, of the same shape,
    and ``out`` [4, blocks·LANES]: value, its slope, the plan's cost beyond it, the slope of that.
    """
    # Arrays are taken out of their tuple once, before the loops: each access would count references.
    (steps, states, actions, count), per_step, states_ptr, states_of, initial = model[:5]
    indptr, indices, weights, base, ptr, features, amounts = model[5:]
    zero, infinite, largest = zero_lanes(), broadcast(np.inf), broadcast(MAX)
    u, p, sense = broadcast(scales[0]), broadcast(scales[1]), broadcast(side)
    is_forced, has_plan = len(forced) > 0, len(visits) > 0
    values, scratch = np.zeros(2 * states * 3 * LANES), np.zeros(actions * 3 * LANES)
    for b in range(len(active)):
        if not active[b]:
            continue
        picked, given = picks[b], forced[b] if is_forced else picks[b]
        mass = visits[b if len(visits) > 1 else 0] if has_plan else values
        gap = rise = zero
        for h in range(steps - 1, -1, -1):
            here, ahead = (h % 2) * states * 3 * LANES, (1 - h % 2) * states * 3 * LANES
            for i in range(states_ptr[h], states_ptr[h + 1]):
                s = np.int64(item(states_of, i))
                cell = h * states + s
                first = cell * actions
                best, size = infinite, zero
                for a in range(actions):
                    if not item(allowed, first + a):
                        continue
                    loss = broadcast(item(base, first + a))
                    q, d = u * loss, p * loss
                    for f in range(item(ptr, first + a), item(ptr, first + a + 1)):
                        amount = broadcast(item(amounts, f))
                        place = (b * count + item(features, f)) * LANES
                        q = fma(amount, load(alpha, place), q)
                        d = fma(amount, load(beta, place), d)
                    met, further = absolute(q), zero
                    move = h * per_step + s * actions + a
                    for e in range(item(indptr, move), item(indptr, move + 1) if h + 1 < steps else 0):
                        weight = broadcast(item(weights, e))
                        place = ahead + item(indices, e) * 3 * LANES
                        q = fma(weight, load(values, place), q)
                        d = fma(weight, load(values, place + LANES), d)
                        further = fma(weight, load(values, place + 2 * LANES), further)
                    met = maximum(met, further)
                    store(scratch, a * 3 * LANES, q)
                    store(scratch, (a * 3 + 1) * LANES, d)
                    store(scratch, (a * 3 + 2) * LANES, met)
                    met = select(at_most(best, q), maximum(met, size), met)  # of two that are best the larger
                    size = select(at_most(q, best), met, size)
                    best = minimum(q, best)
                choice, key = broadcast(-1.0), broadcast(-np.inf)
                if is_forced:
                    choice = load(given, cell * LANES)
                for a in range(actions):
                    if not item(allowed, first + a):
                        continue
                    growth = sense * load(scratch, (a * 3 + 1) * LANES)
                    if is_forced:
                        best = select(_is(choice, a), load(scratch, a * 3 * LANES), best)
                        key = select(_is(choice, a), growth, key)
                    else:
                        _, tied = _tied(scratch, a, best, size, rule)
                        growth = select(tied, growth, broadcast(-np.inf))
                        choice = select(at_most(growth, key), choice, broadcast(float(a)))
                        key = maximum(growth, key)
                is_open = at_most(best, largest)  # where nothing is allowed no policy is
                best, slope = select(is_open, best, zero), select(is_open, sense * key, zero)
                store(values, here + s * 3 * LANES, best)
                store(values, here + (s * 3 + 1) * LANES, slope)
                store(values, here + (s * 3 + 2) * LANES, size)
                store(picked, cell * LANES, choice)
                if has_plan:
                    for a in range(actions):
                        taken = load(mass, (first + a) * LANES)
                        if not (item(allowed, first + a) and any_bit(taken)):
                            continue
                        behind, tied = _tied(scratch, a, best, size, rule)
                        if not is_forced:
                            behind = select(tied, zero, behind)
                        gap = fma(taken, behind, gap)
                        rise = fma(taken, load(scratch, (a * 3 + 1) * LANES) - slope, rise)
        value = growth = zero
        for i in range(states_ptr[0], states_ptr[1]):
            s = np.int64(item(states_of, i))
            start = broadcast(item(initial, s))
            value = fma(start, load(values, s * 3 * LANES), value)
            growth = fma(start, load(values, (s * 3 + 1) * LANES), growth)
        for k, result in enumerate((value, growth, gap, rise)):
            store(out[k], b * LANES, result)

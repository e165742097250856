"""Mirror descent advanced together: one run a lane, all of them in the same round.

Settings of one learner meet the same losses. They are the lanes, in blocks of eight (see ``hedge_lanes``).
What is kept of a policy has the layout [row, run block, a, lane], row one of the (h, s) that some policy
reaches:

    without a floor   the logarithm of weights whose largest is 1: what was unlearned can be learned again
    with a floor      the probabilities themselves: they never fall below it, so nothing is lost

Either way a round takes one exponential an action and no logarithm; an optimistic round takes two. A state is
evaluated and updated in one visit: backward in time Q(h, s) is final once V(h+1) is, and an episode reads the
policy of a state once. The optimistic play is the same, since the secondary iterate's values under the loss
before are a backup of their own that runs along. What the near set needs, the optimal advantages of the loss
and the slack of the tie rule, is the same for all runs and found once an episode.

A recorded run keeps what it played and walks forward over it: visits, and from them the regret by step,
Σ_s d_h(s) Σ_a π(a|s) A*(s,a), and the mass near the walls of the fan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from normalfan._kernels.buffers import States, aligned_zeros, frozen
from normalfan._kernels.compiling import inlined, inner, kernel
from normalfan._kernels.lanes import LANES, at_most, broadcast, fma, maximum, minimum, select, zero_lanes
from normalfan._kernels.memory import item, load, store
from normalfan_paper._kernels.exponential import weight
from normalfan_paper._kernels.hedge_lanes import whole_lanes

WALL_MEASURES = 3  # 0 < A* <= width; A* <= width; states with an action of the first kind


class Runs(NamedTuple):
    """The settings, a column each, padded to whole lanes."""

    etas: np.ndarray
    thresholds: np.ndarray
    charges: np.ndarray  # what an action outside the near set loses in log-odds
    optimal: np.ndarray  # 1 where the optimal advantages drive the step instead of Q, else 0
    floors: np.ndarray


class Modes(NamedTuple):
    """What holds for all runs of a call."""

    floored: bool
    optimistic: bool
    advantages: bool  # some run needs the optimal advantages of the loss it sees
    noisy: bool  # the loss that is judged is not the one that is seen
    recorded: bool


class MirrorRoom(NamedTuple):
    """Work space."""

    kept: np.ndarray  # [rows, runs, A] the policies, as said above, and [A, lanes] for an optimistic play
    values: np.ndarray  # [3, S, runs] of the play under the loss seen: even steps, odd steps, zeros
    judged: np.ndarray  # the same under the loss that is judged
    expected: np.ndarray  # the same of the secondary iterate under the loss before
    costs: np.ndarray  # [A, lanes]
    plain: np.ndarray  # [2, S] the optimal values of a loss
    played: np.ndarray  # [rows, runs, A] probabilities, if recorded
    visits: np.ndarray  # [2, S, lanes]


@inner
def _advantage_table(
    losses, start, loss_step, nexts, per_step, shape, ptr, idx, ties, values, advantages, slack
):
    """The optimal advantages [row, a] of one loss, and by how much each row may exceed a threshold.

    The same operations as ``optimal_backup`` and ``TieRule.allowance``: near means the same to the bit.
    """
    steps, states, actions = shape
    absolute, relative = ties
    values[(steps & 1) * states : (steps & 1) * states + states] = 0.0
    ahead = 0.0
    for h in range(steps - 1, -1, -1):
        here, later = (h & 1) * states, (h + 1 & 1) * states
        largest = 0.0
        for row in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, row))
            best = np.inf
            for a in range(actions):
                onward = item(values, later + item(nexts, h * per_step + s * actions + a))
                q = item(losses, start + h * loss_step + s * actions + a) + onward
                advantages[row * actions + a] = q
                best = min(best, q)
            for a in range(actions):
                advantages[row * actions + a] -= best
            values[here + s] = best
            slack[row] = absolute + relative * (abs(best) + ahead)
            largest = max(largest, abs(best))
        ahead += largest


@inlined
def _step(kept, place, actions, costs, least, floored, floor, at):
    """The mirror step from what is kept at ``place``, by costs [A, lanes], to ``at``, maybe the same."""
    zero = zero_lanes()
    if floored:
        mass = zero
        for a in range(actions):
            w = load(kept, place + a * LANES) * weight(least - load(costs, a * LANES))
            store(kept, at + a * LANES, w)
            mass = mass + w
        share = (broadcast(1.0) - broadcast(float(actions)) * floor) / mass
        for a in range(actions):
            store(kept, at + a * LANES, fma(load(kept, at + a * LANES), share, floor))
    else:
        top = broadcast(-np.inf)
        for a in range(actions):
            moved = load(kept, place + a * LANES) - (load(costs, a * LANES) - least)
            store(kept, at + a * LANES, moved)
            top = maximum(moved, top)
        for a in range(actions):
            store(kept, at + a * LANES, load(kept, at + a * LANES) - top)


@inlined
def _weight(kept, place, floored):
    w = load(kept, place)
    return w if floored else weight(w)


@inlined
def _look_ahead(
    place,
    loss,
    successor,
    here,
    ahead,
    first,
    actions,
    runs,
    floored,
    losses,
    nexts,
    kept,
    expected,
    costs,
    play,
):
    """The optimistic play of one state, to ``play``; its value under the loss before goes on."""
    zero = zero_lanes()
    etas, _, _, _, floors = runs
    width = len(etas)
    eta = load(etas, first)
    weighed, mass = zero, zero
    least = broadcast(np.inf)
    for a in range(actions):
        onward = load(expected, ahead + item(nexts, successor + a) * width + first)
        q = broadcast(item(losses, loss + a)) + onward
        w = _weight(kept, place + a * LANES, floored)
        weighed = fma(w, q, weighed)
        mass = mass + w
        cost = eta * q
        store(costs, a * LANES, cost)
        least = minimum(cost, least)
    store(expected, here, weighed / mass)
    floor = load(floors, first)
    _step(kept, place, actions, costs, least, floored, floor, play)


@inlined
def _visit(
    row, place, at, loss, successor, here, ahead, first, actions, runs, modes, table, losses, means, nexts,
    kept, values, judged, costs, played,
):  # fmt: skip
    """Evaluate one state under the played policies of eight runs, and take their mirror steps.

    ``place`` is where what they keep begins and ``at`` what they play; ``loss`` and ``successor`` say where
    the state's losses and successors do, ``here`` where its value goes, ``ahead`` where the layer of the
    next step begins. ``first`` is the first of the runs.
    """
    zero = zero_lanes()
    advantages, slack = table
    etas, thresholds, charges, optimal, floors = runs
    floored, _, thresholded, noisy, recorded = modes
    width = len(etas)
    eta = load(etas, first)
    # Before the loop: the compiler cannot know that what is stored in it leaves these alone.
    edge, charge = (
        load(thresholds, first) + broadcast(item(slack, row)),
        load(charges, first),
    )
    by_policy = at_most(load(optimal, first), zero)
    weighed, mass, mean = zero, zero, zero
    least = broadcast(np.inf)
    for a in range(actions):
        onward = ahead + item(nexts, successor + a) * width + first
        q = broadcast(item(losses, loss + a)) + load(values, onward)
        w = _weight(kept, at + a * LANES, floored)
        weighed = fma(w, q, weighed)
        mass = mass + w
        if noisy:
            truly = broadcast(item(means, loss + a)) + load(judged, onward)
            mean = fma(w, truly, mean)
        if recorded:
            store(played, place + a * LANES, w)
        cost = eta * q
        if thresholded:
            far = broadcast(item(advantages, row * actions + a))
            cost = select(by_policy, cost, eta * far) + select(at_most(far, edge), zero, charge)
        store(costs, a * LANES, cost)
        least = minimum(cost, least)
    store(values, here, weighed / mass)
    if noisy:
        store(judged, here, mean / mass)
    if recorded:
        for a in range(actions):
            store(played, place + a * LANES, load(played, place + a * LANES) / mass)
    _step(kept, place, actions, costs, least, floored, load(floors, first), place)


@inner
def _walk(
    t, first, nexts, per_step, shape, ptr, idx, initial, wall, marks, width, played, visits, by_step, masses
):
    """Forward over what eight runs played: fills their regret by step and their mass near the walls."""
    steps, states, actions = shape
    zero = zero_lanes()
    advantages, slack = marks
    layer = states * LANES
    for row in range(ptr[0], ptr[1]):
        s = np.int64(item(idx, row))
        store(visits, s * LANES, broadcast(initial[s]))
    near, close, thin = zero, zero, zero
    for h in range(steps):
        here, later = (h & 1) * layer, (h + 1 & 1) * layer
        if h + 1 < steps:
            for row in range(ptr[h + 1], ptr[h + 2]):
                store(visits, later + np.int64(item(idx, row)) * LANES, zero)
        regret = zero
        for row in range(ptr[h], ptr[h + 1]):
            s = np.int64(item(idx, row))
            reached = load(visits, here + s * LANES)
            is_thin = False
            for a in range(actions):
                mass = reached * load(played, (row * width + first) * actions + a * LANES)
                far = item(advantages, row * actions + a)
                regret = fma(mass, broadcast(far), regret)
                if far <= wall + slack[row]:
                    close = close + mass
                    if far > slack[row]:
                        near = near + mass
                        is_thin = True
                if h + 1 < steps:
                    to = later + item(nexts, h * per_step + s * actions + a) * LANES
                    store(visits, to, load(visits, to) + mass)
            if is_thin:
                thin = thin + reached
        store(by_step, (t * steps + h) * width + first, regret)
    store(masses, (t * WALL_MEASURES + 0) * width + first, near)
    store(masses, (t * WALL_MEASURES + 1) * width + first, close)
    store(masses, (t * WALL_MEASURES + 2) * width + first, thin)


@kernel
def mirror_kernel(
    losses, means, loss_step, nexts, per_step, shape, ptr, idx, initial, runs, modes, ties, wall,
    room, table, marks, paid, seen, by_step, masses,
):  # fmt: skip
    """Mirror descent on losses [T, H or 1, S, A] and deterministic successors; fills paid [T, runs].

    ``loss_step`` and ``per_step`` are the numbers of losses and of successors from one step to the next (0
    when all steps share them). ``means`` is what is judged; if it is not what is seen, ``seen`` [T, runs]
    takes what would be paid by the losses seen. ``table`` and ``marks`` take the advantages of
    the two.
    """
    steps, states, actions = shape
    # By name once: an array read from a tuple is counted, which in the visits would cost as much as they do.
    kept, values, judged, expected, costs, plain, played, visits = room
    floored, optimistic, thresholded, noisy, recorded = modes
    zero = zero_lanes()
    width = len(runs.etas)
    layer = states * width
    size = max(loss_step * steps, states * actions)
    play = ptr[steps] * width * actions
    for t in range(len(paid) // width):
        begin = t * size
        if thresholded or (recorded and not noisy):
            _advantage_table(
                losses, begin, loss_step, nexts, per_step, shape, ptr, idx, ties, plain, table[0], table[1]
            )
        for h in range(steps - 1, -1, -1):
            here = (h & 1) * layer
            ahead = 2 * layer if h + 1 == steps else layer - here
            for row in range(ptr[h], ptr[h + 1]):
                s = np.int64(item(idx, row))
                loss = begin + h * loss_step + s * actions
                successor = h * per_step + s * actions
                for first in range(0, width, LANES):
                    place = (row * width + first) * actions
                    at, value = place, here + s * width + first
                    if optimistic and t > 0:
                        at = play
                        _look_ahead(
                            place, loss - size, successor, value, ahead, first, actions, runs, floored,
                            losses, nexts, kept, expected, costs, play,
                        )  # fmt: skip
                    _visit(
                        row, place, at, loss, successor, value, ahead, first, actions, runs, modes, table,
                        losses, means, nexts, kept, values, judged, costs, played,
                    )  # fmt: skip
        for first in range(0, width, LANES):
            outcome, apparent = zero, zero
            for row in range(ptr[0], ptr[1]):
                s = np.int64(item(idx, row))
                if initial[s] > 0.0:
                    v = load(values, s * width + first)
                    if noisy:
                        apparent = fma(broadcast(initial[s]), v, apparent)
                        v = load(judged, s * width + first)
                    outcome = fma(broadcast(initial[s]), v, outcome)
            store(paid, t * width + first, outcome)
            if noisy:
                store(seen, t * width + first, apparent)
        if recorded:
            if noisy:
                _advantage_table(
                    means, begin, loss_step, nexts, per_step, shape, ptr, idx, ties, plain, marks[0], marks[1]
                )
            for first in range(0, width, LANES):
                _walk(
                    t, first, nexts, per_step, shape, ptr, idx, initial, wall, marks, width, played, visits,
                    by_step, masses,
                )  # fmt: skip


def run_mirror_descent(
    losses: np.ndarray,
    means: np.ndarray | None,
    nexts: np.ndarray,
    states: States,
    initial: np.ndarray,
    horizon: int,
    runs: Runs,
    optimistic: bool,
    ties: tuple[float, float],
    wall: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What each run pays in each round, [runs, T], on losses [T, 1 or H, S, A] and successors [1 or H, S, A].

    ``means`` of the same shape are judged if given; the second result is what is paid by the losses seen.
    With ``wall``, the width of the strip along the walls, also regret by step [runs, T, H] and masses
    [runs, T, WALL_MEASURES]; empty without. Either all floors are positive or none.
    """
    rounds, loss_steps, n_states, n_actions = losses.shape
    n_runs = len(runs.etas)
    padded = Runs(*(whole_lanes(column) for column in runs))
    width, rows = len(padded.etas), len(states.idx)
    noisy, recorded, floored = means is not None, wall is not None, bool((padded.floors > 0).all())
    charged = (padded.charges > 0) & (padded.thresholds < np.inf)
    modes = Modes(floored, optimistic, bool((charged | (padded.optimal > 0)).any()), noisy, recorded)
    policies = aligned_zeros((rows * width + LANES) * n_actions)
    if floored:
        policies[:] = 1.0 / n_actions
    layers = 3 * n_states * width
    room = MirrorRoom(
        kept=policies,
        values=aligned_zeros(layers),
        judged=aligned_zeros(layers if noisy else 0),
        expected=aligned_zeros(layers if optimistic else 0),
        costs=aligned_zeros(n_actions * LANES),
        plain=np.zeros(2 * n_states),
        played=aligned_zeros(rows * n_actions * width if recorded else 0),
        visits=aligned_zeros(2 * n_states * LANES),
    )
    table = (np.empty(rows * n_actions), np.empty(rows))
    marks = (np.empty(rows * n_actions), np.empty(rows)) if noisy else table
    paid = np.empty(rounds * width)
    apparent = np.empty(rounds * width if noisy else 0)
    by_step = np.empty(rounds * horizon * width if recorded else 0)
    masses = np.empty(rounds * WALL_MEASURES * width if recorded else 0)
    seen = frozen(losses, np.float64)
    mirror_kernel(
        seen, frozen(means, np.float64) if noisy else seen, 0 if loss_steps == 1 else n_states * n_actions,
        frozen(nexts, np.int32), 0 if len(nexts) == 1 else n_states * n_actions,
        (horizon, n_states, n_actions),
        states.ptr, states.idx, frozen(initial, np.float64),
        padded, modes,
        ties, wall if recorded else 0.0, room, table, marks, paid, apparent, by_step, masses,
    )  # fmt: skip

    def by_run(column: np.ndarray, *shape: int) -> np.ndarray:
        return np.moveaxis(column.reshape(*shape, width), -1, 0)[:n_runs]

    payments = by_run(paid, rounds), by_run(apparent, rounds) if noisy else by_run(paid, rounds)
    if not recorded:
        return *payments, by_step, masses
    return *payments, by_run(by_step, rounds, horizon), by_run(masses, rounds, WALL_MEASURES)

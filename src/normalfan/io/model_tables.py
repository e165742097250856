"""A problem as a table: one row for each thing that can happen.

    step, state, action, next_state, probability, start

- Without `step` the problem is the same at every step, and the horizon has to be given.
- Every state has the same actions; give an action that is impossible in a state a large loss.
- A state that never appears as `state` is an end: it stays where it is, whatever the action.
- A state that appears as `state` needs rows for all actions, at every step at which it can be reached.
- `start`, if there, is the probability of beginning in the row's `state`; otherwise a start has to be given.
- Rows of probability 0 may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalfan.errors import InputError
from normalfan.io.kernels import Moves
from normalfan.io.starts import state_index
from normalfan.io.tables import Table, in_order, names_or_none, read_table, write_table
from normalfan.problem.arrays import PROBABILITY_TOLERANCE, FloatArray, first_index
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP

REQUIRED = ("state", "action", "next_state", "probability")
OPTIONAL = ("step", "start")


def read_model_table(path: str | Path, *, horizon: int | None = None, start: str | int | None = None) -> MDP:
    import polars

    table = read_table(path, REQUIRED, OPTIONAL)
    states = in_order(polars.concat([table.text("state"), table.text("next_state")]))
    actions = in_order(table.text("action"))
    steps = in_order(table.text("step")) if "step" in table.columns else None
    labels = Labels(names_or_none(steps or ()), names_or_none(states), names_or_none(actions))
    moves = _read_moves(table, steps or ("every step",), states, actions)
    filled = _fill_ends(table, moves, (steps, states, actions))
    if start is None and "start" not in table.columns:
        raise InputError(
            f"{path} has no column start, but a problem begins somewhere: pass a start state "
            f"(--start), or add the probability of beginning in each state."
        )
    initial = _read_start(table, states) if start is None else state_index(start, states)
    mdp = MDP(filled.transitions(), initial, _fit_horizon(table, steps, horizon), labels=labels)
    _check_gaps(table, mdp, moves)
    return mdp


def write_model_table(mdp: MDP, path: Path) -> None:
    """The table that `read_model_table` reads back as the same problem."""
    import polars

    transitions, labels = mdp.transitions, mdp.labels
    kernels = [transitions.csr(k).tocoo() for k in range(transitions.n_kernels)]
    kernels = kernels * (mdp.horizon // len(kernels))  # the table tells the horizon by its steps
    rows = np.concatenate([kernel.row for kernel in kernels])
    sources = rows // mdp.n_actions
    steps, states, actions = (
        np.array([name(i) for i in range(size)])
        for name, size in zip((labels.step, labels.state, labels.action), mdp.shape, strict=True)
    )
    columns = {
        "step": steps.repeat([kernel.nnz for kernel in kernels]),
        "state": states[sources],
        "action": actions[rows % mdp.n_actions],
        "next_state": states[np.concatenate([kernel.col for kernel in kernels])],
        "probability": np.concatenate([kernel.data for kernel in kernels]),
        "start": mdp.initial[sources],
    }
    write_table(polars.DataFrame(columns), path)


def _fit_horizon(table: Table, steps: Sequence[str] | None, horizon: int | None) -> int | None:
    """The number of steps, where the table tells it."""
    if steps is None and horizon is None:
        raise InputError(
            f"{table.path} has no column step, but a problem needs a horizon: pass one (--horizon), or add "
            f"the column."
        )
    if steps is None:
        return horizon
    if horizon not in (None, len(steps)):
        raise InputError(
            f"horizon is {horizon}, but {table.path} names its steps, {len(steps)} in all: leave it out."
        )
    return len(steps)


def _read_moves(table: Table, steps: Sequence[str], states: Sequence[str], actions: Sequence[str]) -> Moves:
    shape = (len(steps), len(states), len(actions))
    kernel = table.codes("step", steps) if "step" in table.columns else np.int64(0)
    rows = (kernel * shape[1] + table.codes("state", states)) * shape[2] + table.codes("action", actions)
    nexts = table.codes("next_state", states)
    weights = table.numbers("probability")
    if (weights < 0).any():
        row = int((weights < 0).argmax())
        raise InputError(
            f"{table.where(row)} has the probability {weights[row]:g}, but a probability cannot be "
            f"negative: correct it."
        )
    keys = [name for name in ("step", "state", "action", "next_state") if name in table.columns]
    table.check_no_repeats(rows * len(states) + nexts, keys)
    return Moves(rows, nexts, weights, shape)


def _fill_ends(
    table: Table,
    moves: Moves,
    names: tuple[Sequence[str] | None, Sequence[str], Sequence[str]],
) -> Moves:
    """The moves, with states that have none at a step staying where they are."""
    sums, counts = moves.sums(), moves.counts()
    resting = np.broadcast_to((counts == 0).all(axis=2, keepdims=True), sums.shape)
    wrong = ~resting & (np.abs(sums - 1) > PROBABILITY_TOLERANCE)
    if wrong.any():
        k, s, a = first_index(wrong)
        steps, states, actions = names
        at = f"state {states[s]}, action {actions[a]}" + (f" at step {steps[k]}" if steps else "")
        if counts[k, s, a] == 0:
            raise InputError(
                f"{table.path} has no row for {at}, but every state that has one action needs all of "
                f"them: add it (an impossible action may stay where it is, at a large loss)."
            )
        raise InputError(
            f"{table.path} gives {at} probabilities that sum to {sums[k, s, a]:.12g}, but they must sum to "
            f"1 within {PROBABILITY_TOLERANCE:g}: add the missing rows or more digits."
        )
    _, n_states, n_actions = moves.shape
    stays = np.flatnonzero(resting)
    return Moves(
        rows=np.concatenate([moves.rows, stays]),
        nexts=np.concatenate([moves.nexts, stays // n_actions % n_states]),
        weights=np.concatenate([moves.weights, np.ones(len(stays))]),
        shape=moves.shape,
    )


def _check_gaps(table: Table, mdp: MDP, moves: Moves) -> None:
    """Refuse a state that can be reached at a step at which it has no rows, though it has at others."""
    lacking = (moves.counts() == 0).all(axis=2)  # [K, S]
    gaps = mdp.reachable & lacking & ~lacking.all(axis=0)
    if gaps.any():
        h, s = first_index(gaps)
        raise InputError(
            f"{table.path} has no row for state {mdp.labels.state(s)} at step {mdp.labels.step(h)}, but it "
            f"can be reached then: add its rows at that step."
        )


def _read_start(table: Table, states: Sequence[str]) -> FloatArray:
    weights, sources = table.numbers("start"), table.codes("state", states)
    initial = np.zeros(len(states))
    initial[sources] = weights
    other = initial[sources] != weights
    if other.any():
        row = int(other.argmax())
        raise InputError(
            f"{table.where(row)} has start {weights[row]:g} for state {states[sources[row]]}, but another of "
            f"its rows has {initial[sources[row]]:g}: give the same start in all rows of a state."
        )
    if (initial < 0).any() or abs(initial.sum() - 1) > PROBABILITY_TOLERANCE:
        raise InputError(
            f"{table.path} has a column start that sums to {initial.sum():.12g} over the states, but it must "
            f"be a probability distribution: correct it, or pass a start state (--start)."
        )
    return initial

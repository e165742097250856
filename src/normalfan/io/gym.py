"""Tabular Gymnasium environments as problems.

Toy-text environments (FrozenLake, CliffWalking, Taxi) carry their dynamics as a table
`P[state][action] = [(probability, next state, reward, terminated), …]`. Successors listed twice are summed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from normalfan.errors import InputError, check_installed
from normalfan.io.moves import Moves
from normalfan.io.tables import state_index
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP

PREFIX = "gym:"
TERMINATED = "terminated"


def from_gymnasium(env: Any, horizon: int | None = None, start: str | int | None = None) -> MDP:
    """Read the dynamics of a tabular Gymnasium environment.

    An episode that terminated stays where it ended, and the losses of that state are still charged. If other
    episodes pass through it, the end gets a state of its own, the last one, called "terminated".

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with a table `P`, or the id of one.
    horizon, start : int, str or int, optional
        By default the environment's own limit on the length of an episode, and its own distribution.

    Returns
    -------
    MDP
        The problem; states go by their numbers.

    Raises
    ------
    InputError
        If the environment is unknown, has no table `P`, or leaves the horizon or the start open.

    Examples
    --------
    >>> from_gymnasium("FrozenLake-v1", horizon=12)
    MDP(horizon=12, states=16, actions=4, Sparse)
    """
    world = _read_world(env, start)
    steps = horizon if horizon is not None else world.limit
    if steps is None:
        raise InputError(
            f"{world.name} sets no limit to its episodes, but a problem needs a horizon: pass one "
            f"(--horizon)."
        )
    pairs, which = np.unique(world.rows * world.n_states + world.nexts, return_inverse=True)
    summed = np.asarray(np.bincount(which, world.weights, minlength=len(pairs)), dtype=np.float64)
    moves = Moves(*np.divmod(pairs, world.n_states), summed, (1, world.n_states, world.n_actions))
    added = world.n_states - len(world.initial)
    names = (*map(str, range(len(world.initial))), TERMINATED) if added else None
    initial = np.append(world.initial, np.zeros(added))
    return MDP(moves.transitions(), initial, steps, labels=Labels(states=names))


def expected_rewards(env: Any, start: str | int | None = None) -> FloatArray:
    """Compute the mean reward of each state and action of a tabular environment.

    Parameters
    ----------
    env, start
        As for `from_gymnasium`; the start may decide which states are ends.

    Returns
    -------
    ndarray
        [S, A], for the states of `from_gymnasium`; 0 after the end of an episode.

    Raises
    ------
    InputError
        As for `from_gymnasium`.

    Examples
    --------
    >>> expected_rewards("CliffWalking-v1")[[0, 25]].tolist()       # stepping down from 25 is into the cliff
    [[-1.0, -1.0, -1.0, -1.0], [-1.0, -1.0, -100.0, -1.0]]
    """
    world = _read_world(env, start)
    shape = (world.n_states, world.n_actions)
    earned = np.bincount(world.rows, world.weights * world.rewards, minlength=int(np.prod(shape)))
    return np.asarray(earned, dtype=np.float64).reshape(shape)


@dataclass(frozen=True, slots=True)
class _World:
    """An environment, and what can happen in it: the entries of `P` of positive probability."""

    name: str
    limit: int | None
    initial: FloatArray  # [S]
    n_states: int
    n_actions: int
    rows: IntArray  # [n]  state · A + action
    weights: FloatArray  # [n]
    nexts: IntArray  # [n]
    rewards: FloatArray  # [n]
    terminated: BoolArray  # [n]

    @property
    def sources(self) -> IntArray:
        return self.rows // self.n_actions


def _read_world(env: Any, start: str | int | None) -> _World:
    made = _make(env) if isinstance(env, str) else env
    inner = getattr(made, "unwrapped", made)
    spec = getattr(made, "spec", None)
    name = str(spec.id) if spec is not None else type(inner).__name__
    table = getattr(inner, "P", None)
    if not table:
        raise InputError(
            f"{name} is not a tabular environment, but a problem needs its transitions: choose one that "
            f"carries a table P, like FrozenLake-v1, or write a model table."
        )
    try:
        columns = _columns(table)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"{name} has a table P of another form, but it must list P[state][action] = [(probability, next "
            f"state, reward, terminated), …] for states and actions from 0 on: write a model table instead."
        ) from None
    initial = _initial(name, getattr(inner, "initial_state_distrib", None), len(table), start)
    limit = None if spec is None else spec.max_episode_steps
    return _with_ends(_World(name, limit, initial, len(table), len(table[0]), *columns))


def _columns(table: Any) -> tuple[IntArray, FloatArray, IntArray, FloatArray, BoolArray]:
    """What P lists with positive probability: rows, weights, next states, rewards, ends."""
    n_states, n_actions = len(table), len(table[0])
    entries = [
        (s * n_actions + a, *entry)
        for s in range(n_states)
        for a, _ in zip(range(n_actions), table[s], strict=True)
        for entry in table[s][a]
        if entry[0]
    ]
    rows, weights, nexts, rewards, terminated = np.array(entries, dtype=np.float64).T
    if not ((nexts >= 0) & (nexts < n_states)).all():
        raise ValueError("a next state is not a state")
    return rows.astype(np.int64), weights, nexts.astype(np.int64), rewards, terminated.astype(bool)


def _make(name: str) -> Any:
    check_installed("gymnasium", "a gym: model needs it", "gym")
    import gymnasium

    try:
        return gymnasium.make(name)
    except (gymnasium.error.Error, ImportError) as error:
        reason = str(error).splitlines()[0].rstrip(".?: ")
        raise InputError(
            f"{name} cannot be made by Gymnasium ({reason}), but a gym: model must be an id it knows: "
            f"check the name and its version, e.g. gym:FrozenLake-v1."
        ) from None


def _initial(name: str, own: Any, n_states: int, start: str | int | None) -> FloatArray:
    """[S]: the chosen start, or the environment's own distribution."""
    if start is not None:
        chosen = np.zeros(n_states)
        chosen[state_index(start, [str(s) for s in range(n_states)])] = 1.0
        return chosen
    if own is None:
        raise InputError(
            f"{name} does not say where it starts, but a problem must start somewhere: pass a start state "
            f"(--start)."
        )
    initial = np.array(own, dtype=np.float64)
    if initial.shape != (n_states,):
        raise InputError(
            f"{name} starts in {list(initial.shape)} states, but must give a distribution over its "
            f"{n_states}: pass a start state (--start)."
        )
    return initial


def _with_ends(world: _World) -> _World:
    """Redirect what terminates, and let the states it ends in stay."""
    n_states, n_actions = world.n_states, world.n_actions
    alive = _visited(world)[world.sources]
    ending, passing = (np.zeros(n_states, dtype=bool) for _ in range(2))
    ending[world.nexts[alive & world.terminated]] = True
    passing[world.nexts[alive & ~world.terminated]] = True
    passing |= world.initial > 0
    both = ending & passing
    absorbing = np.append(ending & ~passing, True) if both.any() else ending
    kept = ~absorbing[world.sources]
    stays = np.flatnonzero(np.repeat(absorbing, n_actions))
    nexts = np.where(world.terminated & both[world.nexts], n_states, world.nexts)
    return replace(
        world,
        n_states=len(absorbing),
        rows=np.concatenate([world.rows[kept], stays]),
        weights=np.concatenate([world.weights[kept], np.ones(len(stays))]),
        nexts=np.concatenate([nexts[kept], stays // n_actions]),
        rewards=np.concatenate([world.rewards[kept], np.zeros(len(stays))]),
        terminated=np.concatenate([world.terminated[kept], np.ones(len(stays), dtype=bool)]),
    )


def _visited(world: _World) -> BoolArray:
    """[S]: the states that an episode can pass through before it terminates."""
    visited = world.initial > 0
    while True:
        reached = visited.copy()
        reached[world.nexts[~world.terminated & visited[world.sources]]] = True
        if np.array_equal(reached, visited):
            return visited
        visited = reached

"""Tabular Gymnasium environments as problems.

Toy-text environments (FrozenLake, CliffWalking, Taxi) carry their dynamics as a table
`P[state][action] = [(probability, next state, reward, terminated), …]`. Successors listed twice are summed.

An episode that terminated stays where it ended: that state becomes absorbing. Its losses are charged at every
step that is left, so give it zero there unless ending early should cost or pay. If a state that ends
episodes can also be passed through, the end gets a state of its own, the last one, called "terminated".

The horizon is the environment's own limit on the length of an episode, if it has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from normalfan.errors import InputError
from normalfan.io.kernels import Moves
from normalfan.io.starts import state_index
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.labels import Labels
from normalfan.problem.mdp import MDP

PREFIX = "gym:"
TERMINATED = "terminated"


def from_gymnasium(env: Any, horizon: int | None = None, start: str | int | None = None) -> MDP:
    """The dynamics of an environment with a table `P`, or of the one with this id.

    `start`: a state's index; without it the environment's own distribution of starts.
    """
    listed = _read_listed(env)
    steps = horizon if horizon is not None else listed.limit
    if steps is None:
        raise InputError(
            f"{listed.name} sets no limit to its episodes, but a problem needs a horizon: pass one "
            f"(--horizon)."
        )
    initial = _initial(listed, start)
    ended = _ends(listed, initial)
    moves = ended.moves()
    padded = np.append(initial, np.zeros(moves.shape[1] - len(initial)))
    names = None if len(padded) == len(initial) else (*map(str, range(len(initial))), TERMINATED)
    return MDP(moves.transitions(), padded, steps, labels=Labels(states=names))


def expected_rewards(env: Any, start: str | int | None = None) -> FloatArray:
    """[S, A]: the environment's own mean reward for each state and action of `from_gymnasium`.

    Nothing is earned after the end.
    """
    listed = _read_listed(env)
    ended = _ends(listed, _initial(listed, start))
    n_rows = ended.n_states * listed.n_actions
    earned = np.bincount(ended.rows, ended.weights * ended.rewards, minlength=n_rows)
    return np.asarray(earned, dtype=np.float64).reshape(ended.n_states, listed.n_actions)


@dataclass(frozen=True, slots=True)
class _Listed:
    """The entries of a table `P` that can happen, one after the other."""

    name: str
    limit: int | None
    initial: FloatArray | None  # [S]
    n_states: int
    n_actions: int
    rows: IntArray  # [n]  state · A + action
    nexts: IntArray  # [n]
    weights: FloatArray  # [n]
    rewards: FloatArray  # [n]
    terminated: BoolArray  # [n]


@dataclass(frozen=True, slots=True)
class _Ended:
    """The same, with its ends absorbing."""

    n_states: int
    n_actions: int
    rows: IntArray
    nexts: IntArray
    weights: FloatArray
    rewards: FloatArray

    def moves(self) -> Moves:
        pairs, which = np.unique(self.rows * self.n_states + self.nexts, return_inverse=True)
        summed = np.bincount(which, self.weights, minlength=len(pairs))
        rows, nexts = np.divmod(pairs, self.n_states)
        return Moves(rows, nexts, np.asarray(summed, dtype=np.float64), (1, self.n_states, self.n_actions))


def _read_listed(env: Any) -> _Listed:
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
    initial = getattr(inner, "initial_state_distrib", None)
    try:
        listed = _Listed(
            name,
            None if spec is None else spec.max_episode_steps,
            None if initial is None else np.array(initial, dtype=np.float64),
            len(table),
            len(table[0]),
            *_columns(table),
        )
    except (LookupError, TypeError, ValueError):
        listed = None
    if listed is None or not ((listed.nexts >= 0) & (listed.nexts < listed.n_states)).all():
        raise InputError(
            f"{name} has a table P of another form, but it must list P[state][action] = [(probability, next "
            f"state, reward, terminated), …] for states and actions from 0 on: write a model table instead."
        )
    return listed


def _columns(table: Any) -> tuple[IntArray, IntArray, FloatArray, FloatArray, BoolArray]:
    """What P lists with positive probability: rows, next states, weights, rewards, ends."""
    n_actions = len(table[0])
    entries = [
        (s * n_actions + a, *entry)
        for s in range(len(table))
        for a, _ in zip(range(n_actions), table[s], strict=True)
        for entry in table[s][a]
        if entry[0]
    ]
    rows, weights, nexts, rewards, terminated = zip(*entries, strict=True)
    return (
        np.array(rows, dtype=np.int64),
        np.array(nexts, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        np.array(rewards, dtype=np.float64),
        np.array(terminated, dtype=bool),
    )


def _make(name: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise InputError(
            "gymnasium is not installed, but a gym: model needs it: pip install 'normalfan[gym]'."
        ) from None
    try:
        return gymnasium.make(name)
    except (gymnasium.error.Error, ImportError) as error:
        reason = str(error).splitlines()[0].rstrip(".?: ")
        raise InputError(
            f"{name} cannot be made by Gymnasium ({reason}), but a gym: model must be an id it knows: "
            f"check the name and its version, e.g. gym:FrozenLake-v1."
        ) from None


def _initial(listed: _Listed, start: str | int | None) -> FloatArray:
    if start is not None:
        chosen = np.zeros(listed.n_states)
        chosen[state_index(start, [str(s) for s in range(listed.n_states)])] = 1.0
        return chosen
    if listed.initial is None:
        raise InputError(
            f"{listed.name} does not say where it begins, but a problem needs a start: pass one (--start)."
        )
    if listed.initial.shape != (listed.n_states,):
        raise InputError(
            f"{listed.name} begins in {list(listed.initial.shape)} states, but must give a distribution over "
            f"its {listed.n_states}: pass a start state (--start)."
        )
    return listed.initial


def _ends(listed: _Listed, initial: FloatArray) -> _Ended:
    """Redirect what terminates, and let the states it ends in stay."""
    n_states, n_actions = listed.n_states, listed.n_actions
    visited = _visited(listed, initial)
    alive = visited[listed.rows // n_actions]
    ending, passing = (np.zeros(n_states, dtype=bool) for _ in range(2))
    ending[listed.nexts[alive & listed.terminated]] = True
    passing[listed.nexts[alive & ~listed.terminated]] = True
    passing |= initial > 0
    both = ending & passing
    absorbing = np.append(ending & ~passing, True) if both.any() else ending
    size = len(absorbing)
    nexts = np.where(listed.terminated & both[listed.nexts], n_states, listed.nexts)
    kept = ~absorbing[listed.rows // n_actions]
    stays = np.flatnonzero(np.repeat(absorbing, n_actions))
    return _Ended(
        n_states=size,
        n_actions=n_actions,
        rows=np.concatenate([listed.rows[kept], stays]),
        nexts=np.concatenate([nexts[kept], stays // n_actions]),
        weights=np.concatenate([listed.weights[kept], np.ones(len(stays))]),
        rewards=np.concatenate([listed.rewards[kept], np.zeros(len(stays))]),
    )


def _visited(listed: _Listed, initial: FloatArray) -> BoolArray:
    """[S]: the states that an episode can pass through before it terminates."""
    visited = initial > 0
    while True:
        reached = visited.copy()
        reached[listed.nexts[~listed.terminated & visited[listed.rows // listed.n_actions]]] = True
        if np.array_equal(reached, visited):
            return visited
        visited = reached

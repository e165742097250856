"""Tabular Gymnasium environments (FrozenLake, CliffWalking, Taxi) as problems.

They carry a table `P[state][action] = [(probability, next state, reward, terminated), …]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_installed
from normalfan.io.tables import state_index
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, check_shape, first_index, read_numbers
from normalfan.problem.losses import ArrayLosses, LossStream, rewards
from normalfan.problem.mdp import MDP, Labels
from normalfan.problem.transitions import transitions_of_moves

PREFIX = "gym:"
TERMINATED = "terminated"
MOVE = np.dtype([("row", "i8"), ("weight", "f8"), ("next", "i8"), ("reward", "f8"), ("ends", "?")])
"""An entry of P, with positive probability, in the row state · A + action."""


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
    n_states = len(world.initial)
    # Summed in the order of the table: a sparse matrix would sum long rows in another, to other bits.
    pairs, which = np.unique(world.moves["row"] * n_states + world.nexts, return_inverse=True)
    summed = np.asarray(np.bincount(which, world.moves["weight"], len(pairs)), dtype=np.float64)
    shape = (1, n_states, world.n_actions)
    moves = transitions_of_moves(*np.divmod(pairs, n_states), summed, shape, stays=world.stays)
    return MDP(moves, world.initial, steps, labels=world.labels)


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
    return world.mean(world.moves["reward"])


def gymnasium_losses(
    env: Any,
    reward_of_round: Callable[[Any, int, int, int], float],
    rounds: int | Iterable[Any],
    start: str | int | None = None,
) -> LossStream:
    """Let the rewards of a tabular environment move: a stream for the problem of `from_gymnasium`.

    Parameters
    ----------
    env, start
        As for `from_gymnasium`.
    reward_of_round : callable (round, state, action, next_state) -> float
        The reward of a move, by the environment's own numbers. After the end of an episode nothing is earned.
    rounds : int or iterable
        What is passed as `round`: dates, prices, or for a number n the rounds 0 to n - 1.

    Returns
    -------
    LossStream
        A stream of rewards (see `rewards`).

    Raises
    ------
    InputError
        As for `from_gymnasium`; if there is no round, or a reward is not a finite number.

    Examples
    --------
    >>> import normalfan as nf
    >>> wind = [0.0, 1.0, 0.5]
    >>> losses = gymnasium_losses("CliffWalking-v1", lambda w, s, a, s2: -1 - w * (a == 0), wind)
    >>> nf.price_stream(from_gymnasium("CliffWalking-v1", 15), losses).prices
    array([0., 0., 0.])
    """
    world = _read_world(env, start)
    listed = list(range(rounds) if isinstance(rounds, int | np.integer) else rounds)
    if not listed:
        raise InputError(f"rounds is {rounds!r}, but there must be one or more: pass their number or a list.")
    states, actions = np.divmod(world.moves["row"], world.n_actions)
    places = list(zip(states.tolist(), actions.tolist(), world.moves["next"].tolist(), strict=True))
    means = []
    for one in listed:
        numbers = read_numbers("rewards", [reward_of_round(one, *place) for place in places])
        remedy = "return a number for each move"
        check_shape(f"rewards of round {one}", numbers.shape, world.moves.shape, remedy)
        if not np.isfinite(numbers).all():
            at = first_index(~np.isfinite(numbers))[0]
            s, a, arrival = places[at]
            raise InputError(
                f"reward_of_round gives {numbers[at]} in round {one} for state {s}, action {a}, next state "
                f"{arrival}, but a reward is a finite number: return one."
            )
        means.append(world.mean(numbers))
    names = None if isinstance(rounds, int | np.integer) else list(map(str, listed))
    return rewards(ArrayLosses(np.stack(means), "TSA", round_names=names))


@dataclass(frozen=True, slots=True)
class _World:
    """What can happen in an environment until an episode terminates, and where it stays then."""

    name: str
    limit: int | None
    labels: Labels
    n_actions: int
    initial: FloatArray  # [S]
    moves: npt.NDArray[Any]  # [n]  of MOVE, by the environment's own numbers
    nexts: IntArray  # [n]  where they lead, if the end has a state of its own
    stays: BoolArray  # [S·A]  the rows after the end, which are not among the others

    def mean(self, earned: FloatArray) -> FloatArray:
        """[S, A]: the expectation of what each move earns."""
        shape = (len(self.initial), self.n_actions)
        sums = np.bincount(self.moves["row"], self.moves["weight"] * earned, math.prod(shape))
        return np.asarray(sums, dtype=np.float64).reshape(shape)


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
        moves = _read_moves(table)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"{name} has a table P of another form, but it must list P[state][action] = [(probability, next "
            f"state, reward, terminated), …] for states and actions from 0 on: write a model table instead."
        ) from None
    n_states, n_actions = len(table), len(table[0])
    initial = _initial(name, getattr(inner, "initial_state_distrib", None), n_states, start)
    sources, nexts, terminated = moves["row"] // n_actions, moves["next"], moves["ends"]
    passed, reached = np.zeros(n_states, dtype=bool), initial > 0
    while not np.array_equal(reached, passed):  # the states of an episode that has not terminated
        passed = reached.copy()
        reached[nexts[~terminated & passed[sources]]] = True
    ending = np.isin(np.arange(n_states), nexts[terminated & passed[sources]])
    both = ending & passed
    absorbing, labels = ending, Labels()
    if both.any():
        absorbing = np.append(ending & ~passed, True)
        labels = Labels(states=(*map(str, range(n_states)), TERMINATED))
    kept = ~absorbing[sources]
    redirected = np.where(terminated & both[nexts], n_states, nexts)
    return _World(
        name,
        None if spec is None else spec.max_episode_steps,
        labels,
        n_actions,
        initial=np.append(initial, np.zeros(len(absorbing) - n_states)),
        moves=moves[kept],
        nexts=redirected[kept],
        stays=np.repeat(absorbing, n_actions),
    )


def _read_moves(table: Any) -> npt.NDArray[Any]:
    n_states, n_actions = len(table), len(table[0])
    entries = [
        (s * n_actions + a, *entry)
        for s in range(n_states)
        for a, _ in zip(range(n_actions), table[s], strict=True)
        for entry in table[s][a]
        if entry[0]
    ]
    moves = np.array(entries, dtype=MOVE)
    if not len(moves) or moves["next"].min() < 0 or moves["next"].max() >= n_states:
        raise ValueError("a next state is not a state")
    return moves


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

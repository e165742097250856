"""The fixed decision problem: transitions, a start, a horizon, names; and its arrays, as they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError
from normalfan.problem import arrays
from normalfan.problem.arrays import BoolArray, FloatArray, Shape, SparseMatrix
from normalfan.problem.transitions import Dense, Deterministic, Transitions, read_transitions
from normalfan.text import html_table

SCHEMA = 1  # of stored problems
_LABELS = {"steps": "step_labels", "states": "state_labels", "actions": "action_labels"}


@dataclass(frozen=True, slots=True, repr=False)
class Labels:
    """Names for steps, states and actions; what has none is called by its index.

    Examples
    --------
    >>> labels = Labels(states=("empty", "full"))
    >>> labels.state(1), labels.action(1)
    ('full', '1')
    """

    steps: tuple[str, ...] | None = None  # [H], all different
    states: tuple[str, ...] | None = None  # [S]
    actions: tuple[str, ...] | None = None  # [A]

    def __repr__(self) -> str:
        counts = ((kind, getattr(self, kind)) for kind in _LABELS)
        return f"Labels({', '.join(f'{len(names)} {kind}' for kind, names in counts if names)})"

    def step(self, h: int) -> str:
        """The name, or the index as text."""
        return self.steps[h] if self.steps else str(h)

    def state(self, s: int) -> str:
        """The name, or the index as text."""
        return self.states[s] if self.states else str(s)

    def action(self, a: int) -> str:
        """The name, or the index as text."""
        return self.actions[a] if self.actions else str(a)


class MDP:
    """A finite-horizon Markov decision process without its loss, validated once.

    Parameters
    ----------
    transitions : array_like, scipy sparse, or list of scipy sparse
        Where actions lead: probabilities [H, S, A, S], or [S, A, S] for every step; scipy sparse [S·A, S],
        row s·A + a, for every step, or a list of H of them; integer next states [H, S, A], or [S, A].
        Axes are read in this order: with as many actions as states nothing tells [A, S, S] from [S, A, S].
        All arrays are copied. Rows that sum to 1 within 1e-6 are divided by their sum.
    initial : array_like [S] or int
        The distribution of the first state, or that state's index.
    horizon : int, optional
        The number of steps H; needed when one kernel serves all steps.
    labels : Labels, optional
    allowed : array_like of bool [H, S, A] or [S, A], optional
        Which actions may be taken, in every round; a single loss can forbid more, by being `inf`. Rows of
        `transitions` that are not allowed must be there, but are never followed.

    Raises
    ------
    InputError
        If shapes or `horizon` do not fit, a row is not a distribution, a next state does not exist, or no
        action is allowed where some policy can be.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.MDP([[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]], initial=0, horizon=3)
    MDP(horizon=3, states=2, actions=2, Dense)
    >>> nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2).reachable.tolist()      # integers: next states
    [[True, False], [True, True]]
    """

    def __init__(
        self,
        transitions: npt.ArrayLike | SparseMatrix | Sequence[SparseMatrix] | Transitions,
        initial: npt.ArrayLike,
        horizon: int | None = None,
        *,
        labels: Labels | None = None,
        allowed: npt.ArrayLike | None = None,
    ) -> None:
        self.transitions, self.horizon = read_transitions(transitions, horizon)
        self.initial: FloatArray = _read_initial(initial, self.n_states)
        self.labels = labels or Labels()
        for kind, size in zip(_LABELS, self.shape, strict=True):
            read_names(f"labels.{kind}", getattr(self.labels, kind), size)
        self.allowed: BoolArray | None = _read_allowed(allowed, self.shape)  # [H, S, A]; None: everything
        if self.allowed is not None:
            check_way_on(self, self.allowed, "allowed")

    @property
    def n_states(self) -> int:
        """The number of states S."""
        return self.transitions.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions A."""
        return self.transitions.n_actions

    @property
    def shape(self) -> Shape:
        """The shape [H, S, A] of a loss, a policy, a mask and an occupancy measure."""
        return self.horizon, self.n_states, self.n_actions

    @cached_property
    def reachable(self) -> BoolArray:
        """[H, S]: whether some policy is in s at step h with positive probability."""
        return follow(self, np.ones(self.shape, dtype=bool) if self.allowed is None else self.allowed)[1]

    @cached_property
    def has_certain_start(self) -> bool:
        """Whether every round begins in the same state."""
        return int(np.count_nonzero(self.initial)) == 1

    @cached_property
    def is_certain(self) -> bool:
        """Whether nothing is left to chance: one start state, and one successor of every move."""
        return self.has_certain_start and self.most_successors == 1

    @cached_property
    def most_successors(self) -> int:
        """The largest number of states that one action can lead to."""
        return max(int(np.diff(kernel.indptr).max()) for kernel in self.transitions.all_csr())

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of the content: equal problems agree, whatever their representation."""
        kernels = []
        for matrix in self.transitions.all_csr():
            digest = hashlib.sha256(matrix.indptr.astype(np.int64).tobytes())
            digest.update(matrix.indices.astype(np.int64).tobytes())
            digest.update(matrix.data.tobytes())
            kernels.append(digest.digest())
        content = hashlib.sha256(repr(self.shape).encode())
        content.update(self.initial.tobytes())
        for h in range(self.horizon):
            content.update(kernels[h % len(kernels)])
        if self.allowed is not None:
            content.update(self.allowed.tobytes())
        return content.hexdigest()

    def __repr__(self) -> str:
        kind = type(self.transitions).__name__
        return f"MDP(horizon={self.horizon}, states={self.n_states}, actions={self.n_actions}, {kind})"

    def _repr_html_(self) -> str:
        starts = np.flatnonzero(self.initial)
        start = f"state {self.labels.state(starts[0])}" if len(starts) == 1 else f"{len(starts)} states"
        row = (*self.shape, type(self.transitions).__name__.lower(), start)
        return html_table("Decision problem", ("steps", "states", "actions", "transitions", "start"), [row])


def follow(mdp: MDP, mask: BoolArray) -> tuple[BoolArray, BoolArray]:
    """What a mask keeps where it leads, [H, S, A], and where it leads, [H, S]; or of n masks [H, S, A, n]."""
    kept, reached = np.zeros(mask.shape, dtype=bool), np.zeros(mask.shape[:2] + mask.shape[3:], dtype=bool)
    arriving = mdp.initial.reshape(-1, *(1 for _ in mask.shape[3:]))
    for h in range(mdp.horizon):
        reached[h] = arriving > 0
        kept[h] = mask[h] & reached[h, :, None]
        arriving = mdp.transitions.push(h, kept[h].astype(float))
    return arrays.read_only(kept), arrays.read_only(reached)


def check_way_on(
    mdp: MDP, allowed: BoolArray, name: str, remedy: str = "allow one there, or nothing that leads there"
) -> None:
    closed = ~allowed.any(axis=2)
    if not closed.any():
        return
    stuck = closed & follow(mdp, allowed)[1]
    if stuck.any():
        h, s = arrays.first_index(stuck)
        raise InputError(
            f"{name} leaves no action at step {mdp.labels.step(h)}, state {mdp.labels.state(s)}, but some "
            f"policy can be there: {remedy}."
        )


def mdp_to_arrays(mdp: MDP) -> dict[str, npt.NDArray[Any]]:
    """A problem as it is stored in `.npz` files, whose arrays docs/how-to/files.md lists."""
    stored: dict[str, npt.NDArray[Any]] = {
        "schema": np.array(SCHEMA),
        "horizon": np.array(mdp.horizon),
        "initial": mdp.initial,
    }
    match mdp.transitions:
        case Dense(kernels=kernels):
            stored["dense"] = kernels
        case Deterministic(nexts=nexts):
            stored["nexts"] = nexts
        case transitions:
            matrices = transitions.all_csr()
            stored["indptr"] = np.stack([matrix.indptr for matrix in matrices]).astype(np.int64)
            stored["indices"] = np.concatenate([matrix.indices for matrix in matrices])
            stored["weights"] = np.concatenate([matrix.data for matrix in matrices])
    if mdp.allowed is not None:
        stored["allowed"] = mdp.allowed
    names = {kind: getattr(mdp.labels, kind) for kind in _LABELS}
    return stored | {_LABELS[kind]: np.array(given) for kind, given in names.items() if given}


def mdp_from_arrays(stored: Mapping[str, npt.NDArray[Any]]) -> MDP:
    """The problem that `mdp_to_arrays` wrote, validated like any other input."""
    missing = [name for name in ("schema", "horizon", "initial") if name not in stored]
    if missing or not ({"dense", "nexts", "indptr"} & set(stored)):
        name = missing[0] if missing else "transitions"
        raise InputError(
            f"the file holds no {name}, but a stored problem needs it: write the file with save_mdp."
        )
    if int(stored["schema"]) != SCHEMA:
        raise InputError(
            f"the file has schema {int(stored['schema'])}, but this version reads schema {SCHEMA}: "
            f"write it again, or install the version of normalfan that wrote it."
        )
    horizon, initial = stored["horizon"].tolist(), stored["initial"]  # 2.7 is for the MDP to refuse
    transitions: Any = stored.get("dense", stored.get("nexts"))
    if transitions is None:
        transitions = _sparse_kernels(stored)
    names = {kind: tuple(map(str, stored[name])) for kind, name in _LABELS.items() if name in stored}
    further: Any = {"labels": Labels(**names), "allowed": stored.get("allowed")}
    if len(transitions) == 1:
        return MDP(transitions[0], initial, horizon, **further)
    told = None if len(transitions) == horizon else horizon  # integers with a horizon may be probabilities
    return MDP(transitions, initial, told, **further)


def _sparse_kernels(stored: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    kernels, start = [], 0
    for indptr in stored["indptr"]:
        stop = start + int(indptr[-1])
        kernel = sparse.csr_array((len(indptr) - 1, len(stored["initial"])))
        # Set one by one, so that it is the MDP that refuses them if they do not fit together.
        kernel.data, kernel.indices = stored["weights"][start:stop], stored["indices"][start:stop]
        kernel.indptr = indptr
        kernels.append(kernel)
        start = stop
    return kernels


def _read_initial(initial: npt.ArrayLike, n_states: int) -> FloatArray:
    numbers = arrays.read_numbers("initial", initial)
    if numbers.ndim == 0:
        if numbers.dtype.kind not in "iu" or not 0 <= int(numbers) < n_states:
            raise InputError(
                f"initial is {numbers[()]}, but a start state must be an index from 0 to "
                f"{n_states - 1}: pass one, or a distribution over the {n_states} states."
            )
        start = np.zeros(n_states)
        start[int(numbers)] = 1.0
        return arrays.read_only(start)
    remedy = "give a chance for each state, or one state's index"
    arrays.check_shape("initial", numbers.shape, (n_states,), remedy)
    return arrays.read_only(arrays.read_distributions("initial", numbers))


def _read_allowed(allowed: npt.ArrayLike | None, shape: Shape) -> BoolArray | None:
    """[H, S, A], or None if everything is allowed."""
    if allowed is None:
        return None
    mask = arrays.read_numbers("allowed", allowed)
    if mask.dtype != np.bool_:
        raise InputError(
            f"allowed has dtype {mask.dtype}, but must say true or false of every action: convert it first, "
            f"e.g. with np.asarray(allowed, dtype=bool)."
        )
    if mask.shape not in (shape, shape[1:]):
        raise InputError(
            f"allowed has shape {list(mask.shape)}, but the problem needs {list(shape)}, or "
            f"{list(shape[1:])} for every step: reorder the axes (steps, states, actions)."
        )
    return None if mask.all() else arrays.read_only(np.array(np.broadcast_to(mask, shape)))


def read_names(option: str, given: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    """Names as text; those that do not name each of `count` things exactly once are refused."""
    if given is None:
        return None
    names = tuple(map(str, given))
    if len(names) != count:
        raise InputError(f"{option} hold {len(names)} names, but {count} are needed: give one name for each.")
    if len(set(names)) != count:
        places = dict[str, int]()
        again = next(i for i, name in enumerate(names) if places.setdefault(name, i) != i)
        raise InputError(
            f"{option}[{again}] is {names[again]!r}, but that name is taken by index "
            f"{places[names[again]]}: names must differ."
        )
    return names

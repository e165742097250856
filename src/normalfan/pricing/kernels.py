"""From a problem to the compiled sweep that prices its rounds.

The only place that asks which representation the transitions have. Every sweep takes a block of losses
[B, H, S, A] with any strides and gives the same columns; its first round has no round before it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray, IntArray
from normalfan.problem.factored import FactoredBlock
from normalfan.problem.mdp import MDP
from normalfan.problem.transitions import Dense, Deterministic

if TYPE_CHECKING:
    from normalfan._kernels.buffers import Problem, States, Swept

NO_LENGTHS = np.zeros(0, np.int64)

UNIT = 2.0**-53
"""The relative error of one rounding."""

_PROBLEMS: WeakKeyDictionary[MDP, Problem] = WeakKeyDictionary()


class Tables:
    """The transitions of a problem as kernels read them, each form laid out once, when it is needed."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        kinds = mdp.transitions.n_kernels
        self.per_step = 0 if kinds == 1 else mdp.n_states * mdp.n_actions  # rows from one step to the next

    @cached_property
    def twins(self) -> Any:
        """For each row of the transitions, the first action of its state with the same row."""
        from normalfan._kernels.reading import first_twins

        twins = np.empty((self.mdp.transitions.n_kernels, self.mdp.n_states * self.mdp.n_actions), np.int32)
        for k, out in enumerate(twins):
            kernel = self.mdp.transitions.csr(k)
            first_twins(kernel.indptr, kernel.indices, kernel.data, self.mdp.n_actions, out)
        return twins.reshape(-1)

    def shortest_named(self, losses: FloatArray, steps: IntArray, cells: IntArray) -> IntArray:
        """Of the actions that cost and do what an action does, the one with the shortest name, for each [n].

        `losses` [n, A] are those of the step and state of each; `cells` [n, 2] are state and action.
        """
        rows = self.twins.reshape(-1, self.mdp.n_states, self.mdp.n_actions)
        twins = rows[steps % len(rows), cells[:, 0]]
        each, actions = np.arange(len(cells)), cells[:, 1]
        same = (twins == twins[each, actions][:, None]) & (losses == losses[each, actions][:, None])
        longer = self.name_lengths.max() + 1
        shortest: IntArray = np.where(same, self.name_lengths, longer).argmin(axis=1)
        return shortest

    @cached_property
    def name_lengths(self) -> IntArray:
        """The lengths of the actions' names, [A]."""
        return np.array([len(self.mdp.labels.action(a)) for a in range(self.mdp.n_actions)], np.int64)

    @cached_property
    def rows(self) -> tuple[Any, Any, Any]:
        """The transitions as sparse rows, of one kernel after the other: indptr, indices, weights."""
        from normalfan._kernels.buffers import ASKED_AHEAD, frozen

        kernels = [self.mdp.transitions.csr(k) for k in range(self.mdp.transitions.n_kernels)]
        lengths = np.concatenate([np.diff(kernel.indptr) for kernel in kernels])
        more = np.zeros(ASKED_AHEAD, np.int32)  # so that who looks ahead need not look where the rows end
        return (
            frozen(np.append(0, np.cumsum(lengths)), np.int64),
            frozen(np.concatenate([*(kernel.indices for kernel in kernels), more]), np.int32),
            frozen(np.concatenate([kernel.data for kernel in kernels]), np.float64),
        )

    @cached_property
    def problem(self) -> Problem:
        from normalfan._kernels.buffers import Problem, frozen

        transitions = self.mdp.transitions
        form: dict[str, Any]
        if isinstance(transitions, Dense):
            form = {"rows": frozen(transitions.kernels, np.float64).reshape(-1, self.mdp.n_states)}
        elif isinstance(transitions, Deterministic):
            form = {"indices": frozen(transitions.nexts, np.int32)}
        else:
            form = dict(zip(("indptr", "indices", "weights"), self.rows, strict=True))
        return Problem(
            self.mdp.shape,
            self.per_step,
            *reachable_states(self.mdp),
            frozen(self.mdp.initial, np.float64),
            self.mdp.is_certain,
            frozen(self.twins, np.int32),
            self.name_lengths,
            **form,
        )


class Sweeper:
    """The sweep of a problem."""

    def __init__(self, tables: Tables, ties: TieRule, *, details: Collection[str] = ()) -> None:
        self.options = {"walks": not {"variations"}.issuperset(details), "moves": "variations" in details}
        self.problem = tables.problem
        self.is_bandit = tables.mdp.shape[:2] == (1, 1)
        self.rule = near_ties(tables.mdp, ties)

    @property
    def forms_losses(self) -> bool:
        """Whether factored losses need not be formed for it."""
        return not self.is_bandit and self.problem.rows is None

    def __call__(self, losses: FloatArray | FactoredBlock, *, named: bool = True) -> Swept:
        """Price rounds; unless ``named``, moves are not called by their shortest names."""
        from normalfan._kernels import bandit, dense, successors
        from normalfan._kernels.losses import factors, given

        problem = self.problem if named else self.problem._replace(lengths=NO_LENGTHS)
        swept: Swept
        if isinstance(losses, FactoredBlock):
            place, found = factors(losses.by_entry, losses.coefficients, losses.sign)
            swept = successors.sweep(problem, len(losses), place, self.rule, factors=found, **self.options)
        elif self.is_bandit:
            swept = bandit.sweep(problem, losses, self.rule, detail=any(self.options.values()))
        else:
            kernel = successors if problem.rows is None else dense
            swept = kernel.sweep(problem, len(losses), given(losses), self.rule, **self.options)
        swept.crossed[0] = False  # nothing came before
        return swept


def whole_problem(mdp: MDP) -> Problem:
    """The problem with all its states, whether some policy can reach them or not; laid out once."""
    from normalfan._kernels.buffers import frozen

    if mdp not in _PROBLEMS:
        every = np.arange(mdp.horizon * mdp.n_states)
        _PROBLEMS[mdp] = Tables(mdp).problem._replace(
            ptr=frozen(np.append(every[:: mdp.n_states], every.size), np.int64),
            idx=frozen(every % mdp.n_states, np.int32),
        )
    return _PROBLEMS[mdp]


def reachable_problem(mdp: MDP) -> Problem:
    """The same with the states that some policy can reach."""
    ptr, idx = reachable_states(mdp)
    return whole_problem(mdp)._replace(ptr=ptr, idx=idx)


def near_ties(mdp: MDP, ties: TieRule) -> tuple[float, float, float]:
    """Up to which advantage a tie is in doubt: floor + slope · |loss| + rounding · |value|.

    By the rule that is d ≤ a + r · (size of the losses ahead). No loss that a best action meets is more than
    the largest |V| of its step and of the next together; that of the action at hand is at most d more.
    """
    # What rounding can explain is in doubt, however narrow the rule.
    rounding = 0.0 if mdp.shape[:2] == (1, 1) else 8 * (2 * mdp.most_successors + 4) * UNIT
    share = max(ties.relative * ties.band, rounding)
    if share >= 0.5:  # so wide a rule leaves everything in doubt
        return np.inf, 0.0, 0.0
    return ties.absolute * ties.band / (1.0 - share), share * (1.0 + 2.0**-20) / (1.0 - share), rounding


def reachable_states(mdp: MDP) -> States:
    from normalfan._kernels.buffers import States, frozen

    counts = mdp.reachable.sum(axis=1)
    return States(
        ptr=frozen(np.append(0, np.cumsum(counts)), np.int64),
        idx=frozen(np.nonzero(mdp.reachable)[1], np.int32),
    )

"""From a problem to the compiled sweep that prices its rounds.

The only place that asks which representation the transitions have. Every sweep takes a block of losses
[B, H, S, A] with any strides and gives the same columns; its first round has no round before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray
from normalfan.problem.mdp import MDP
from normalfan.problem.transitions import Dense, Deterministic, Sparse

if TYPE_CHECKING:
    from normalfan._kernels.buffers import States, Swept
    from normalfan._kernels.successors import Tables

Sweep: TypeAlias = "Callable[[FloatArray], Swept]"
Kernel: TypeAlias = "Callable[[FloatArray, tuple[float, float], bool], Swept]"

Twins: TypeAlias = npt.NDArray[np.int32]

UNIT = 2.0**-53
"""The relative error of one rounding."""


def twins_of(mdp: MDP) -> Twins:
    """[K·S·A]: for each row of the transitions, the first action of its state with the same row."""
    from normalfan._kernels.reading import first_twins

    twins = np.empty((mdp.transitions.n_kernels, mdp.n_states * mdp.n_actions), dtype=np.int32)
    for k, out in enumerate(twins):
        kernel = mdp.transitions.csr(k)
        first_twins(kernel.indptr, kernel.indices, kernel.data, mdp.n_actions, out)
    return twins.reshape(-1)


def sweep_for(mdp: MDP, twins: Twins, ties: TieRule, *, full: bool) -> Sweep:
    """The sweep of a problem, with its tables laid out once for all blocks."""
    from normalfan._kernels import bandit

    is_bandit = mdp.shape[:2] == (1, 1)
    kernel = bandit.sweep if is_bandit else _kernel_of(mdp.transitions, mdp, twins)
    # What rounding can explain is in doubt, however narrow the rule.
    rounding = 0.0 if is_bandit else 8 * (2 * mdp.most_successors + 4) * UNIT
    rule = (ties.absolute * ties.band, max(ties.relative * ties.band, rounding))

    def sweep(losses: FloatArray) -> Swept:
        swept = kernel(losses, rule, full)
        swept.crossed[0] = False  # nothing came before
        return swept

    return sweep


@singledispatch
def _kernel_of(transitions: object, mdp: MDP, twins: Twins) -> Kernel:  # noqa: ARG001
    raise TypeError(f"no sweep is known for transitions of type {type(transitions).__name__}")


@_kernel_of.register(Dense)
def _(transitions: Dense, mdp: MDP, twins: Twins) -> Kernel:
    from normalfan._kernels import dense

    whole = transitions.kernels.reshape(len(transitions.kernels), -1, mdp.n_states)
    states = reachable_states(mdp)
    return lambda losses, rule, full: dense.sweep(
        losses, whole, twins, states, mdp.reachable, mdp.initial, rule, mdp.is_certain, full
    )


@_kernel_of.register(Deterministic)
def _(transitions: Deterministic, mdp: MDP, twins: Twins) -> Kernel:
    from normalfan._kernels.successors import Tables

    return _successor_sweep(Tables(twins, transitions.nexts), mdp)


@_kernel_of.register(Sparse)
def _(transitions: Sparse, mdp: MDP, twins: Twins) -> Kernel:
    from normalfan._kernels.successors import Tables

    kernels = transitions.kernels
    starts = np.cumsum([0] + [kernel.nnz for kernel in kernels[:-1]])
    tables = Tables(
        twins,
        indices=np.concatenate([kernel.indices for kernel in kernels]).astype(np.int32),
        indptr=np.stack([kernel.indptr + start for kernel, start in zip(kernels, starts, strict=True)]),
        weights=np.concatenate([kernel.data for kernel in kernels]),
    )
    return _successor_sweep(tables, mdp)


def _successor_sweep(tables: Tables, mdp: MDP) -> Kernel:
    from normalfan._kernels import successors

    states = reachable_states(mdp)
    return lambda losses, rule, full: successors.sweep(
        losses, tables, states, mdp.initial, rule, mdp.is_certain, full
    )


def reachable_states(mdp: MDP) -> States:
    from normalfan._kernels.buffers import States

    counts = mdp.reachable.sum(axis=1)
    return States(
        ptr=np.append(0, np.cumsum(counts)).astype(np.int64),
        idx=np.nonzero(mdp.reachable)[1].astype(np.int32),
    )

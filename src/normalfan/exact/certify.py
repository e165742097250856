"""The price as an exact rational, with no tolerance anywhere: docs/details/certificates.md.

The same backup for the previous loss, the new one (V), and that on the old face (U): W = U − V, Γ = ρ·W₁.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_whole
from normalfan.exact.certificate import Certificate, ExactProblem, Kernel, Loss, Values, advantages_of, scaled
from normalfan.geometry.change import check_same_spaces
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP

Choices: TypeAlias = Sequence[Sequence[Sequence[int]]]  # [H][S] actions; none where never reached


def certify(
    mdp: MDP,
    previous_loss: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    max_denominator: int | None = None,
    previous_mdp: MDP | None = None,
) -> Certificate:
    """Price the crossing from `previous_loss` to `loss` as an exact fraction, with a proof.

    Parameters
    ----------
    mdp : MDP
        Up to some thousands of (h, s, a). Its probabilities are divided by their exact sums.
    previous_loss, loss : array_like [H, S, A]
        The loss that the kept plan was made for, and the one that it is judged by.
    max_denominator : int, optional
        Read each number as the nearest fraction with a denominator of at most this; integer losses are never
        rounded. Without it floats are read at their exact binary value.
    previous_mdp : MDP, optional
        The dynamics that the kept plan was made for, if they were others: the certificate holds both.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If a loss does not fit or is no number, or `max_denominator` is not positive or makes a chance zero.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.certify(arms, [[[0.3, 0.1]]], [[[0.1, 0.3]]], max_denominator=10).price
    Fraction(1, 5)
    """
    problem = read_exactly(
        mdp, previous_loss, loss, max_denominator=max_denominator, previous_mdp=previous_mdp
    )
    previous_values, optimal = _backup(problem.before, problem.previous_loss)
    values, _ = _backup(problem, problem.loss)
    kept = _old_face(problem, optimal)
    keeping_values, cheapest = _backup(problem, problem.loss, kept)
    crossing = tuple(
        tuple(u - v if actions else None for u, v, actions in zip(*layer, strict=True))
        for layer in zip(keeping_values, values, kept, strict=True)
    )
    return Certificate(
        problem=problem,
        input_hash=problem.digest(),
        previous_values=previous_values,
        values=values,
        mask=tuple(
            tuple(tuple(a in actions for a in range(problem.n_actions)) for actions in layer)
            for layer in kept
        ),
        crossing_values=crossing,
        policy=tuple(tuple(best[0] if best else None for best in layer) for layer in cheapest),
        price=sum((p * (w or 0) for p, w in zip(problem.initial, crossing[0], strict=True)), Fraction(0)),
    )


def exact_advantages(mdp: MDP, loss: Any) -> FloatArray:
    """[H, S, A]: Q − V in rationals, each rounded once, so that 0 is said of exact zeros only; or inf."""
    problem = read_exactly(mdp, loss, loss)
    values, _ = _backup(problem, problem.loss)
    exact = advantages_of(problem, problem.loss, values)
    least = np.finfo(np.float64).smallest_subnormal

    def rounded(d: Fraction | None) -> float:
        return math.inf if d is None else max(float(d), least) if d else 0.0

    return np.array([[[rounded(d) for d in s] for s in h] for h in exact])


def read_exactly(
    mdp: MDP,
    previous_loss: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    max_denominator: int | None = None,
    previous_mdp: MDP | None = None,
) -> ExactProblem:
    """The problem in rationals; each row of probabilities is divided by its exact sum."""
    if max_denominator is not None:
        remedy = "pass one such as 1000, or None for exact binary values"
        check_whole("max_denominator", max_denominator, remedy)
        max_denominator = int(max_denominator)  # a NumPy integer is not one of Python's
    read = _reader(max_denominator)
    before = mdp if previous_mdp is None else previous_mdp
    check_same_spaces(mdp, before, "previous_mdp")
    now = _read_dynamics(mdp, read)
    then = now if before.fingerprint == mdp.fingerprint else _read_dynamics(before, read)
    previous_initial, previous_kernels = then if then != now else (None, None)
    return ExactProblem(
        horizon=mdp.horizon,
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        max_denominator=max_denominator,
        initial=now[0],
        kernels=now[1],
        previous_loss=_read_loss(before, previous_loss, "previous_loss", read),
        loss=_read_loss(mdp, loss, "loss", read),
        previous_initial=previous_initial,
        previous_kernels=previous_kernels,
    )


def _reader(max_denominator: int | None) -> Callable[[Any], Fraction]:
    @cache
    def read(number: Any) -> Fraction:
        if isinstance(number, Integral):
            return Fraction(int(number))
        exact = Fraction(float(number))
        return exact if max_denominator is None else exact.limit_denominator(max_denominator)

    return read


def _read_loss(mdp: MDP, loss: npt.ArrayLike, name: str, read: Callable[[Any], Fraction]) -> Loss:
    forbidden = as_loss(mdp, loss, name) == np.inf
    # As Python objects, whole numbers keep the digits that the float64 of as_loss rounds away.
    entries = np.array(loss, dtype=object)
    entries[forbidden] = None
    return tuple(
        tuple(tuple(None if own is None else read(own) for own in actions) for actions in layer)
        for layer in entries.tolist()
    )


def _read_dynamics(
    mdp: MDP, read: Callable[[Any], Fraction]
) -> tuple[tuple[Fraction, ...], tuple[Kernel, ...]]:
    initial, kernels = _read_distribution(mdp.initial, read, "initial"), []
    for step, matrix in enumerate(mdp.transitions.all_csr()):
        nexts, weights = (np.split(part, matrix.indptr[1:-1]) for part in (matrix.indices, matrix.data))
        kernel = []
        for index, states in enumerate(nexts):
            s, a = divmod(index, mdp.n_actions)
            name = f"transitions of step {step} at state {s}, action {a}"
            chances = _read_distribution(weights[index], read, name)
            kernel.append(tuple(zip(states.tolist(), chances, strict=True)))
        kernels.append(tuple(kernel))
    # One canonical form: a kernel that never changes is stored once, however it was passed.
    return initial, tuple(kernels[:1] if all(kernel == kernels[0] for kernel in kernels) else kernels)


def _read_distribution(
    probabilities: npt.NDArray[np.float64], read: Callable[[Any], Fraction], name: str
) -> tuple[Fraction, ...]:
    floats = probabilities.tolist()
    fractions = [read(p) for p in floats]
    for given, fraction in zip(floats, fractions, strict=True):
        if given > 0 and fraction == 0:
            raise InputError(
                f"{name} holds the probability {given:g}, which max_denominator rounds to zero, "
                f"but a possible move must stay possible: pass at least 1/{given:g}, or None."
            )
    total = sum(fractions)
    return tuple(p / total for p in fractions)


def _backup(problem: ExactProblem, loss: Loss, choices: Choices | None = None) -> tuple[Values, Choices]:
    """V_h(s) = min of ℓ_h(s,a) + E[V_{h+1}(s')] over the a of `choices`, or all allowed; and the best a."""
    # In units of 1/D, D their common denominator, the values of a layer are integers, and candidates of the
    # layer before have *short* denominators: cheap to add and compare.
    numbers, unit = [0] * problem.n_states, 1
    values, optimal = list[tuple[Fraction, ...]](), []
    for h in reversed(range(len(loss))):
        least, best = [], []
        for s, losses in enumerate(loss[h]):
            candidates = {}
            for a, (own, (weights, total)) in enumerate(zip(losses, problem.rows(h, s), strict=True)):
                if own is not None and (choices is None or a in choices[h][s]):
                    ahead = Fraction(sum(weight * numbers[state] for state, weight in weights), total)
                    candidates[a] = own * unit + ahead
            least.append(min(candidates.values(), default=Fraction(0)))
            best.append(tuple(a for a, value in candidates.items() if value == least[-1]))
        values.append(tuple(number / unit for number in least))
        numbers, unit = scaled(values[-1])
        optimal.append(tuple(best))
    return tuple(reversed(values)), tuple(reversed(optimal))


def _old_face(problem: ExactProblem, optimal: Choices) -> list[list[Sequence[int]]]:
    """Of optimal actions those that are allowed now, or else all that are, at states that these reach."""
    reached = {s for s, p in enumerate(problem.initial) if p > 0}
    kept: list[list[Sequence[int]]] = []
    for h, layer in enumerate(optimal):
        kept.append([()] * problem.n_states)
        for s in reached:
            allowed = [a for a, own in enumerate(problem.loss[h][s]) if own is not None]
            kept[h][s] = [a for a in layer[s] if a in allowed] or allowed
        moves = [problem.rows(h, s)[a][0] for s in reached for a in kept[h][s]]
        reached = {state for row in moves for state, _ in row}
    return kept

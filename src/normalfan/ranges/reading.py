"""What users pass to every question about ranges: a round of losses, ways to move it, tolerances, windows.

Whatever the user gives, a way to move is a feature Φ_k with a coefficient that stands somewhere now: a price
of factored losses, an entry of a loss, or a direction, which stands at 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray, SparseMatrix, check_finite, check_shape, read_numbers
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import (
    Losses,
    LossStream,
    are_rewards,
    as_loss,
    as_stream,
    factors_of,
    names_of_rounds,
    rounds_of,
)
from normalfan.problem.mdp import MDP
from normalfan.ranges.today import Today

Directions: TypeAlias = str | Sequence[str] | npt.ArrayLike | None
"""Names of features, "entries", coefficients [K] or [n, K], or losses [H, S, A] or [n, H, S, A]."""

Tolerance: TypeAlias = float | str


def read_today(
    mdp: MDP, losses: Losses, at: int | str | None, directions: Directions, ties: TieRule
) -> Today:
    """One round of what a user may pass as losses, and the ways in which it is to move."""
    is_one = False
    if isinstance(losses, np.ndarray | list | tuple):
        numbers = read_numbers("losses", losses)
        is_one = numbers.ndim == 3
        losses = numbers[None] if is_one else losses
    if is_one and at is not None:
        raise InputError(
            f"at is {at!r}, but losses are a single loss [H, S, A], which has no rounds: leave it out."
        )
    stream = as_stream(losses)
    chosen, names = _round_of(stream, at), names_of_rounds(stream)
    row = rounds_of(stream, slice(chosen, chosen + 1))
    loss = as_loss(mdp, next(row.blocks(mdp.shape, 1))[0], "losses")
    sign = -1.0 if are_rewards(stream) else 1.0
    features, now, ways = _read_directions(mdp, loss, sign, factors_of(row), directions)
    return Today(
        mdp=mdp,
        loss=loss,
        round_name="" if is_one else names[chosen] if names else str(chosen),
        features=sign * features,
        now=now,
        names=ways,
        sign=sign,
        ties=ties,
    )


def check_ways(today: Today, name: str, count: int, rule: str) -> None:
    """Refuse another number of ways to move, or a coefficient that is infinite now."""
    if len(today.now) != count:
        raise InputError(f"{name} gives {len(today.now)} ways to move, but {rule}: give as many.")
    if np.isinf(today.now).any():
        raise InputError(
            f"{name} moves a coefficient that is infinite now, but only numbers can move: choose another."
        )


def read_tolerance(today: Today, tolerance: Tolerance) -> float:
    """A tolerance in the unit of the losses: a number, or a share of |value| such as "1%"."""
    share = re.fullmatch(r"\s*([0-9.eE+-]+)\s*%\s*", tolerance) if isinstance(tolerance, str) else None
    value = abs(today.value) if share else 0.0
    try:
        amount = float(share[1]) / 100 * value if share else float(tolerance)
    except (TypeError, ValueError):
        amount = math.nan
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not ((share or is_number) and math.isfinite(amount) and amount >= 0):
        raise InputError(
            f"tolerance is {tolerance!r}, but must be a finite number of at least 0 or a share of the "
            f'value: pass e.g. 250.0 or "1%".'
        )
    return amount


def read_window(name: str, given: Any) -> tuple[float, float]:
    """An interval of finite numbers."""
    ends = read_numbers(name, given).astype(np.float64)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise InputError(
            f"{name} is {given!r}, but must be two finite numbers, the lower first: pass (low, high)."
        )
    return float(ends[0]), float(ends[1])


def _round_of(stream: LossStream, at: int | str | None) -> int:
    names, count = names_of_rounds(stream), stream.n_rounds
    if count is None:
        rounds_of(stream, slice(1))  # which says what is wrong with it
        raise InputError("losses have no known number of rounds, but a round must be chosen: pass an array.")
    if count == 0:
        raise InputError("losses have no round, but ranges are those of a round: check the source.")
    if at is None:
        return count - 1
    if isinstance(at, str) and names and at in names:
        return names.index(at)
    if isinstance(at, Integral) and not isinstance(at, bool) and -count <= at < count:
        return int(at) % count
    known = f"called {names[0]!r} to {names[-1]!r} or " if names else ""
    raise InputError(
        f"at is {at!r}, but the rounds are {known}numbered from 0 to {count - 1}: choose one of them."
    )


def _read_directions(
    mdp: MDP, loss: FloatArray, sign: float, factored: FactoredLosses | None, given: Any
) -> tuple[SparseMatrix, FloatArray, tuple[str, ...]]:
    """Features [K, H·S·A] as the user counts them, where their coefficients stand, and their names."""
    from scipy import sparse

    known: tuple[str, ...] = ()
    if factored is not None:
        known = factored.feature_names or tuple(map(str, range(factored.features.shape[0])))
    are_names = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    if isinstance(given, str) and given == "entries" and "entries" not in known:
        free = np.flatnonzero((loss < np.inf) & mdp.reachable[:, :, None])
        features = sparse.csr_array(
            (np.ones(len(free)), (np.arange(len(free)), free)), shape=(len(free), loss.size)
        )
        cells = zip(*np.unravel_index(free, mdp.shape), strict=True)
        label = mdp.labels
        names = tuple(f"{label.step(h)}, {label.state(s)}, {label.action(a)}" for h, s, a in cells)
        return features, sign * loss.reshape(-1)[free], names
    if given is None or isinstance(given, str) or are_names:
        if factored is None:
            raise InputError(
                f"directions are {given!r}, but only factored losses have features to move: pass "
                f'"entries", or arrays [n, H, S, A].'
            )
        chosen = known if given is None else (given,) if isinstance(given, str) else tuple(given)
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise InputError(
                f"directions name {unknown[0]!r}, but the features are {known[0]!r} to {known[-1]!r}: "
                f"choose among them."
            )
        if len(set(chosen)) < len(chosen) or not chosen:
            raise InputError(
                f"directions are {given!r}, but must name at least one feature, and each once: drop repeats."
            )
        places = [known.index(name) for name in chosen]
        return factored.features[places], factored.coefficients[0, places], chosen
    numbers = read_numbers("directions", given).astype(np.float64)
    check_finite("directions", numbers)
    if numbers.ndim in (1, 2) and factored is not None:
        rows = np.atleast_2d(numbers)
        check_shape("directions", rows.shape, (len(rows), len(known)), "give one number for each feature")
        features = sparse.csr_array(rows) @ factored.features
    elif numbers.ndim in (3, 4):
        rows = numbers[None] if numbers.ndim == 3 else numbers
        check_shape("directions", rows.shape, (len(rows), *mdp.shape), "reorder the axes [n, H, S, A]")
        features = sparse.csr_array(rows.reshape(len(rows), -1))
    else:
        raise InputError(
            f"directions have shape {list(numbers.shape)}, but must be losses [H, S, A] or [n, H, S, A], or, "
            f"for factored losses, coefficients [K] or [n, K]: reshape them."
        )
    if not len(rows):
        raise InputError("directions are empty, but there must be at least one: give one, or None.")
    return sparse.csr_array(features), np.zeros(len(rows)), tuple(f"direction {i}" for i in range(len(rows)))

"""Losses: one of them, or a stream of them in blocks.

A stream hands out its rounds as float64 arrays [B, H, S, A] with any strides. Consecutive blocks share
one round (a block begins with the last round of the block before it), because the price of a round
needs the face of the round before: blocks can then be priced independently, in any order, by any
thread. Nothing is copied that need not be, so a memory-mapped file is read page by page.

Everything is a loss and minimised. Rewards are negated at this edge, by name: `rewards(…)`.

    >>> prices = ArrayLosses(np.array([[1.0, 2.0], [3.0, 0.0]]), axes="TA")     # a bandit's losses
    >>> [block.shape for block in prices.blocks((1, 1, 2), rounds=8)]
    [(2, 1, 1, 2)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, check_finite, read_numbers
from normalfan.problem.mapped import release_pages
from normalfan.problem.mdp import MDP

Shape: TypeAlias = tuple[int, int, int]


@runtime_checkable
class LossStream(Protocol):
    """Rounds of losses, read in order, in blocks that overlap by one round."""

    @property
    def n_rounds(self) -> int | None:
        """How many rounds there are, or None if only reading them can tell."""
        ...

    @property
    def is_view(self) -> bool:
        """Whether blocks are views of memory that exists anyway, so that large ones cost nothing."""
        ...

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        """Blocks of at most `rounds` new rounds each, for losses of shape [H, S, A]."""
        ...


Losses: TypeAlias = LossStream | npt.ArrayLike | Iterable[npt.ArrayLike]
"""What may be passed as losses: a stream, an array [T, H, S, A], or rounds [H, S, A] one by one."""


class ArrayLosses:
    """An array of losses, in memory or memory-mapped, of any real dtype.

    `axes` names the axes that the array has, in this order, out of T, H, S, A; the loss is constant
    along those it lacks. "TSA" is a loss that is the same at every step, "TA" a bandit's. `round_names`
    are for reports (dates, say).
    """

    def __init__(self, array: Any, axes: str = "THSA", *, round_names: Sequence[str] | None = None) -> None:
        _check_axes(axes, among="THSA", first="T")
        self.array = read_numbers("losses", array)
        self.axes = axes
        if self.array.ndim != len(axes):
            raise InputError(
                f"losses have shape {list(self.array.shape)}, but {len(axes)} axes ({axes}) were "
                f'announced: pass [T, H, S, A], or name the axes with ArrayLosses(array, axes="TSA").'
            )
        self.round_names = _read_names("round_names", round_names, self.n_rounds)

    @property
    def n_rounds(self) -> int:
        return len(self.array)

    @property
    def is_view(self) -> bool:
        return bool(self.array.dtype == np.float64)

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        for start in range(0, self.n_rounds, rounds):
            rows = self.array[max(start - 1, 0) : start + rounds]
            sizes = dict(zip("THSA", (len(rows), *shape), strict=True))
            yield _expand("losses", rows, self.axes, sizes)
            release_pages(rows)


class IterableLosses:
    """Losses that arrive one round at a time, from any iterable; read once, as they come."""

    is_view = False

    def __init__(self, source: Iterable[Any], axes: str = "HSA") -> None:
        _check_axes(axes, among="HSA")
        self.source = source
        self.axes = axes

    @property
    def n_rounds(self) -> None:
        return None

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        sizes = dict(zip("HSA", shape, strict=True))
        arriving = iter(self.source)
        first, held = 0, list[FloatArray]()
        while fresh := list(islice(arriving, rounds)):
            for t, loss in enumerate(fresh, start=first):
                name = f"losses of round {t}"
                held.append(_expand(name, read_numbers(name, loss), self.axes, sizes))
            yield np.stack(held)
            first, held = first + len(fresh), held[-1:]


class FactoredLosses:
    """ℓ_t = Σ_k θ_t[k] · Φ_k: a few coefficients a round (prices) times fixed features (quantities).

    `coefficients`: [T, K]. `features`: [K, H, S, A], or scipy sparse [K, H·S·A]. `round_names` and
    `feature_names` are for reports and files.
    """

    is_view = False

    def __init__(
        self,
        coefficients: Any,
        features: Any,
        *,
        round_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.coefficients: FloatArray = read_numbers("coefficients", coefficients).astype(np.float64)
        if self.coefficients.ndim != 2:
            raise InputError(
                f"coefficients have shape {list(self.coefficients.shape)}, but must be [T, K]: "
                f"one row per round, one column per feature."
            )
        check_finite("coefficients", self.coefficients)
        self.features = _read_features(features)
        if self.features.shape[0] != self.coefficients.shape[1]:
            raise InputError(
                f"features hold {self.features.shape[0]} rows, but coefficients have "
                f"{self.coefficients.shape[1]} columns: both must count the same K features."
            )
        self.round_names = _read_names("round_names", round_names, self.n_rounds)
        self.feature_names = _read_names("feature_names", feature_names, self.features.shape[0])

    @property
    def n_rounds(self) -> int:
        return len(self.coefficients)

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        if self.features.shape[1] != np.prod(shape):
            raise InputError(
                f"features have {self.features.shape[1]} entries each, but the problem's losses have "
                f"H·S·A = {np.prod(shape)} ({list(shape)}): flatten each feature as [H, S, A]."
            )
        transposed = self.features.T.tocsr()
        for start in range(0, self.n_rounds, rounds):
            theta = self.coefficients[max(start - 1, 0) : start + rounds]
            # Summed feature by feature for each entry: the same bits whatever the block.
            yield (transposed @ theta.T).T.reshape(len(theta), *shape)


class Negated:
    """The negative of another stream."""

    is_view = False

    def __init__(self, stream: LossStream) -> None:
        self.stream = stream
        self.round_names = names_of_rounds(stream)

    @property
    def n_rounds(self) -> int | None:
        return self.stream.n_rounds

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        for block in self.stream.blocks(shape, rounds):
            yield -block


def rewards(source: Any) -> Negated:
    """Rewards, to be maximised, as the losses that the rest of the package minimises."""
    return Negated(as_stream(source))


def as_stream(losses: Any) -> LossStream:
    """What a user may pass as losses: an array, a stream, or any iterable of rounds."""
    if isinstance(losses, LossStream):
        return losses
    if isinstance(losses, np.ndarray | list | tuple):
        return ArrayLosses(losses)
    if isinstance(losses, Iterable):
        return IterableLosses(losses)
    raise InputError(
        f"losses are of type {type(losses).__name__}, but must be an array [T, H, S, A], a loss stream "
        f"or an iterable of rounds [H, S, A]: see normalfan.losses."
    )


def names_of_rounds(stream: LossStream) -> tuple[str, ...] | None:
    """What the rounds of a stream are called, or None if they are numbered."""
    names: tuple[str, ...] | None = getattr(stream, "round_names", None)
    return names


def rounds_of(stream: LossStream, first: int, stop: int) -> LossStream:
    """The rounds from `first` up to `stop` of a stream that can be read more than once."""
    match stream:
        case ArrayLosses():
            return ArrayLosses(stream.array[first:stop], stream.axes)
        case FactoredLosses():
            return FactoredLosses(stream.coefficients[first:stop], stream.features)
        case Negated():
            return Negated(rounds_of(stream.stream, first, stop))
    raise InputError(
        f"losses are {type(stream).__name__}, but looking at a round again needs losses that can be read "
        f"again: pass an array, a file or factored losses."
    )


def as_loss(mdp: MDP, loss: Any, name: str = "loss") -> FloatArray:
    """One loss [H, S, A], validated, as a contiguous float64 array."""
    numbers = read_numbers(name, loss)
    _check_shape(name, numbers.shape, mdp.shape)
    check_finite(name, numbers)
    return np.ascontiguousarray(numbers, dtype=np.float64)


def _read_names(option: str, names: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != count:
        raise InputError(
            f"{option} hold {len(names)} names, but there are {count} to give: give one name for each."
        )
    return tuple(map(str, names))


def _expand(name: str, array: npt.NDArray[Any], axes: str, sizes: dict[str, int]) -> FloatArray:
    """`array`, which has the named axes, as a float64 view that has all of `sizes`."""
    _check_shape(name, array.shape, tuple(sizes[axis] for axis in axes))
    lacking = tuple(i for i, axis in enumerate(sizes) if axis not in axes)
    numbers = array.astype(np.float64, copy=False)
    return np.broadcast_to(np.expand_dims(numbers, lacking), tuple(sizes.values()))


def _check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise InputError(
            f"{name} has shape {list(shape)}, but the problem needs {list(expected)}: "
            f"check the order of the axes (rounds, steps, states, actions)."
        )


def _check_axes(axes: str, *, among: str, first: str = "") -> None:
    ordered = "".join(axis for axis in among if axis in axes)
    if not axes or axes != ordered or not axes.startswith(first):
        raise InputError(
            f"axes is {axes!r}, but must name, in this order and without repeats, some of {among}"
            f"{' and begin with ' + first if first else ''}: transpose the array if need be."
        )


def _read_features(features: Any) -> Any:
    from scipy import sparse

    if sparse.issparse(features):
        matrix = sparse.csr_array(features, dtype=np.float64)
    else:
        numbers = read_numbers("features", features)
        if numbers.ndim != 4:
            raise InputError(
                f"features have shape {list(numbers.shape)}, but must be [K, H, S, A] or scipy sparse "
                f"[K, H·S·A]: one feature per row."
            )
        matrix = sparse.csr_array(numbers.reshape(len(numbers), -1).astype(np.float64))
    check_finite("features.data", matrix.data)
    return matrix

"""Losses: one of them, or a stream of them in blocks of float64 arrays [B, H, S, A] with any strides.

A block begins with the last round of the block before it, because a price needs the face of the round before:
so blocks can be priced independently. Nothing is copied that need not be: a mapped file is read page by page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.problem import arrays
from normalfan.problem.arrays import ALL_AXES, FloatArray, Shape
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.mdp import MDP, check_way_on, read_names


@runtime_checkable
class LossStream(Protocol):
    """Rounds of losses, read in order, in blocks; implement it to price a source of your own.

    Examples
    --------
    >>> class Ramp(LossStream):                                 # in round t everything costs t
    ...     def blocks(self, shape, rounds):
    ...         return IterableLosses(np.full(shape, float(t)) for t in range(3)).blocks(shape, rounds)
    """

    @property
    def n_rounds(self) -> int | None:
        """The number of rounds, or None if only reading them can tell."""

    @property
    def is_view(self) -> bool:
        """Whether blocks are views of memory that exists anyway, so that large ones cost nothing."""
        return False

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        """Yield blocks [B, H, S, A] of at most `rounds` new rounds, each after the last round so far."""


Losses: TypeAlias = npt.ArrayLike | LossStream | Iterable[npt.ArrayLike]
"""What may be passed as losses: an array [T, H, S, A], a stream, or an iterable of rounds [H, S, A]."""


class ArrayLosses(LossStream):
    """Losses in one array, in memory or memory-mapped, of any real dtype.

    Parameters
    ----------
    array : array_like
    axes : str, default "THSA"
        The axes of `array`, in this order; along those that are missing the loss is the same.
    round_names : sequence of str, optional
        What the rounds are called in frames and reports, such as dates.

    Raises
    ------
    InputError
        If `array` is not numeric or has another number of axes, or names and rounds differ in number.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.ArrayLosses([[1.0, 2.0], [3.0, 0.0]], axes="TA", round_names=["monday", "tuesday"])
    ArrayLosses(T=2, A=2, float64)
    """

    def __init__(
        self, array: npt.ArrayLike, axes: str = ALL_AXES, *, round_names: Sequence[str] | None = None
    ) -> None:
        self.array = arrays.read_numbers("losses", array)
        self.axes = axes
        arrays.check_axes("losses", self.array.shape, axes)
        self.round_names = read_names("round_names", round_names, self.n_rounds)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis}={size}" for axis, size in zip(self.axes, self.array.shape, strict=True))
        return f"ArrayLosses({sizes}, {self.array.dtype})"

    @property
    def n_rounds(self) -> int:
        return len(self.array)

    @property
    def is_view(self) -> bool:
        return bool(self.array.dtype in (np.float64, np.float32))  # sweeps read the latter as they are

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        return self.stored_blocks(shape, rounds, float32=False)

    def stored_blocks(self, shape: Shape, rounds: int, *, float32: bool = True) -> Iterator[FloatArray]:
        """The same, but in float32 if the array is."""
        kind = np.float32 if float32 and self.array.dtype == np.float32 else np.float64
        for start in range(0, self.n_rounds, rounds):
            rows = self.array[max(start - 1, 0) : start + rounds]
            yield arrays.expand_axes("losses", rows.astype(kind, copy=False), self.axes, (len(rows), *shape))
            arrays.release_pages(rows)


class IterableLosses(LossStream):
    """Losses that arrive one round at a time, from any iterable; read once, as they come.

    Parameters
    ----------
    source : iterable of array_like
    axes : str, default "HSA"
        The axes that a round has, as in `ArrayLosses`.

    Raises
    ------
    InputError
        If `axes` is not made of H, S and A in this order.

    Examples
    --------
    >>> import normalfan as nf
    >>> arriving = nf.IterableLosses(([t % 2, 0.5] for t in range(4)), axes="A")
    >>> nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), arriving).prices
    array([0. , 0.5, 0.5, 0.5])
    """

    def __init__(self, source: Iterable[npt.ArrayLike], axes: str = "HSA") -> None:
        arrays.check_order(axes, "HSA")
        self.source = source
        self.axes = axes

    def __repr__(self) -> str:
        return f"IterableLosses({type(self.source).__name__}, axes={self.axes!r})"

    n_rounds = None

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        def read(t: int, loss: npt.ArrayLike) -> FloatArray:
            name = f"losses of round {t}"
            # A copy: the source may fill the same buffer again for the next round.
            numbers = np.array(arrays.read_numbers(name, loss), dtype=np.float64)
            return arrays.expand_axes(name, numbers, self.axes, shape)

        arriving, last = enumerate(self.source), list[FloatArray]()
        while new := [read(t, loss) for t, loss in islice(arriving, rounds)]:
            yield np.stack(last + new)
            last = new[-1:]


class Negated(LossStream):
    """The negative of another stream, which holds rewards."""

    def __init__(self, stream: LossStream) -> None:
        self.stream = stream
        self.round_names = names_of_rounds(stream)

    def __repr__(self) -> str:
        return f"Negated({self.stream!r})"

    @property
    def n_rounds(self) -> int | None:
        return self.stream.n_rounds

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        return (-block for block in self.stream.blocks(shape, rounds))


def rewards(source: Losses) -> LossStream:
    """Turn rewards, to be maximised, into the losses that the rest of the package minimises.

    Parameters
    ----------
    source : array_like [T, H, S, A], LossStream, or iterable of array_like [H, S, A]

    Returns
    -------
    LossStream

    Raises
    ------
    InputError
        If `source` is none of these, or is a stream of rewards already.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.rewards(nf.ArrayLosses([[1, 0], [0, 1]], axes="TA"))
    Negated(ArrayLosses(T=2, A=2, int64))
    """
    if isinstance(source, Negated):
        raise InputError(
            "source is a stream of rewards already, but they can be negated only once: pass it as it is."
        )
    return Negated(as_stream(source))


def as_stream(losses: Losses) -> LossStream:
    if isinstance(losses, LossStream):
        return losses
    if isinstance(losses, np.ndarray | list | tuple):
        return ArrayLosses(losses)
    if isinstance(losses, Iterable):
        return IterableLosses(losses)
    raise InputError(
        f"losses are of type {type(losses).__name__}, but must be an array [T, H, S, A], a loss stream "
        f"or an iterable of rounds [H, S, A]: see help(normalfan.ArrayLosses)."
    )


def are_rewards(stream: LossStream) -> bool:
    return isinstance(stream, Negated)


def factors_of(stream: LossStream) -> FactoredLosses | None:
    """The factors of losses or rewards, as the user counts them; None if they are not factored."""
    given = stream.stream if isinstance(stream, Negated) else stream
    return given if isinstance(given, FactoredLosses) else None


def stored_blocks(stream: LossStream, shape: Shape, rounds: int, *, unformed: bool) -> Iterator[Any]:
    """Blocks as sweeps can read them: float32 as it is stored and, where `unformed`, `FactoredBlock`s."""
    if isinstance(stream, ArrayLosses):
        return stream.stored_blocks(shape, rounds)
    if unformed and (factored := factors_of(stream)) is not None:
        return factored.unformed_blocks(shape, rounds, -1.0 if are_rewards(stream) else 1.0)
    return stream.blocks(shape, rounds)


def names_of_rounds(stream: LossStream) -> tuple[str, ...] | None:
    """What the rounds of a stream are called, or None if they are numbered."""
    return getattr(stream, "round_names", None)


def rounds_of(
    stream: LossStream, rows: slice | Sequence[int], names: Sequence[str] | None = None
) -> LossStream:
    """Some rounds of a stream that can be read more than once, and what they are called."""
    match stream:
        case ArrayLosses():
            return ArrayLosses(stream.array[rows], stream.axes, round_names=names)
        case FactoredLosses():
            some = copy(stream)
            some.coefficients = stream.coefficients[rows]
            some.round_names = read_names("round_names", names, some.n_rounds)
            return some
        case Negated():
            return Negated(rounds_of(stream.stream, rows, names))
    if (part := getattr(stream, "part", None)) is not None:
        return part(rows, names)  # type: ignore[no-any-return]
    raise InputError(
        f"losses are {type(stream).__name__}, but looking at a round again needs losses that can be read "
        f"again: pass an array, a file or factored losses."
    )


def numbered(blocks: Iterable[FloatArray]) -> Iterator[tuple[int, int, FloatArray]]:
    """Each block with the number of its first round and of the rounds it shares with the last."""
    done = 0
    for block in blocks:
        shared = min(done, 1)
        yield done - shared, shared, block
        done += len(block) - shared


def each_round(mdp: MDP, stream: LossStream, at_once: int) -> Iterator[FloatArray]:
    """The losses [H, S, A] of a stream, each once and validated; `at_once` are read together."""
    block = None
    for first, shared, block in numbered(stream.blocks(mdp.shape, at_once)):
        arrays.check_losses("losses", block, offset=(first,))
        for number, loss in enumerate(block[shared:], first + shared):
            yield as_allowed(mdp, loss, f"losses[{number}]")
    if block is None:
        raise InputError("losses have no round, but at least one is needed: check the source.")


def as_allowed(mdp: MDP, loss: FloatArray, name: str) -> FloatArray:
    """A checked loss [H, S, A], with inf where an action is not allowed; refused if none is left."""
    loss = forbid(mdp, loss)
    if loss.max() == np.inf:
        check_way_on(mdp, loss < np.inf, name)
    return loss


def as_loss(mdp: MDP, loss: npt.ArrayLike, name: str = "loss") -> FloatArray:
    """One loss [H, S, A], validated, as a contiguous float64 array; inf where an action is not allowed."""
    numbers = arrays.read_numbers(name, loss)
    arrays.check_shape(name, numbers.shape, mdp.shape, "reorder the axes (steps, states, actions)")
    arrays.check_losses(name, numbers)
    return as_allowed(mdp, np.ascontiguousarray(numbers, dtype=np.float64), name)


def as_finite_loss(mdp: MDP, loss: npt.ArrayLike, who: str, name: str = "loss") -> FloatArray:
    """The same for somebody who cannot do without any action."""
    numbers = as_loss(mdp, loss, name)
    forbidden = numbers == np.inf
    if forbidden.any():
        raise InputError(
            f"{who}, but {name}{list(arrays.first_index(forbidden))} is not allowed: "
            f"build the problem without such actions."
        )
    return numbers


def forbid(mdp: MDP, losses: FloatArray) -> FloatArray:
    """Losses [..., H, S, A] with inf where the problem does not allow an action."""
    if mdp.allowed is None:
        return losses
    with np.errstate(invalid="ignore"):  # inf - inf
        # Added, not written over, so that what is no number stays none; adding -0.0 changes no bit.
        return losses + np.where(mdp.allowed, -0.0, np.inf)

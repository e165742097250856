"""Which dynamics a round has: K problems and the number of each round's, or pairs of problem and loss.

Losses are given once, or as prices times quantities of each problem: ℓ_t = Σ_k θ_t[k] Φ_k with Φ of the
problem of round t. Then θ and (P, Φ) are two *sources* that can be told apart where a price is split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, count, islice
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.change import check_same_spaces
from normalfan.pricing.motion import PricedMotion
from normalfan.problem.arrays import (
    FloatArray,
    IntArray,
    Shape,
    check_entries,
    check_losses,
    read_numbers,
    read_only,
)
from normalfan.problem.factored import FactoredBlock
from normalfan.problem.losses import (
    IterableLosses,
    Losses,
    LossStream,
    Negated,
    are_rewards,
    as_allowed,
    as_stream,
    factors_of,
    names_of_rounds,
    numbered,
)
from normalfan.problem.mdp import MDP

Problems: TypeAlias = MDP | Sequence[MDP] | Iterable[tuple[MDP, npt.ArrayLike]]
"""One problem, K of them, or pairs of a problem and a loss [H, S, A], one for each round."""

MovingBlock: TypeAlias = tuple[int, int, FloatArray, tuple[MDP, ...]]
"""Its first round, how many rounds it shares with the last block, losses [B, H, S, A], and their problems."""

PAIRS_AT_ONCE = 56

NO_ROUND = "losses have no round, but a stream needs at least one: check the source."


class MovingStream:
    """A stream whose rounds have problems of their own."""

    def __init__(
        self, problems: Sequence[MDP], losses: Losses, dynamics_of_round: npt.ArrayLike | None
    ) -> None:
        if dynamics_of_round is None:
            raise InputError(
                "dynamics_of_round is missing, but several problems do not tell which one a round has: pass "
                "the index of each round's."
            )
        self.problems = same_once(problems)
        self.of_round = _read_numbers_of_problems(dynamics_of_round, len(problems))
        self.by_source: LossesOfProblems | None = None
        if isinstance(losses, list | tuple) and losses and isinstance(losses[0], LossStream):
            self.problems = tuple(map(copy, self.problems))  # equal dynamics may have other features
            self.by_source = LossesOfProblems(self.problems, losses, self.of_round)
            losses = Negated(self.by_source) if are_rewards(losses[0]) else self.by_source
        else:
            first = [self.problems.index(problem) for problem in self.problems]
            self.of_round = read_only(np.array(first)[self.of_round])
        self.losses = as_stream(losses)
        if self.losses.n_rounds not in (None, len(self.of_round)):
            raise _other_length(len(self.of_round), str(self.losses.n_rounds))

    @property
    def is_one_problem(self) -> bool:
        """Whether no round has another problem, and no more has to be read to know that."""
        return len({*self.problems}) == 1 and self.losses.n_rounds is not None

    def blocks(self, rounds: int) -> Iterator[MovingBlock]:
        """Blocks of at most `rounds` new rounds, each after the last round so far."""
        done, of_round = 0, self.of_round.tolist()
        for first, shared, block in numbered(self.losses.blocks(self.problems[0].shape, rounds)):
            done = first + len(block)
            if done > len(of_round):
                raise _other_length(len(of_round), "more")
            yield first, shared, block, tuple(self.problems[k] for k in of_round[first:done])
        if done < len(of_round):
            raise _other_length(len(of_round), str(done))

    def rounds(self, at_once: int) -> Iterator[tuple[MDP, FloatArray]]:
        """Each round's problem and validated loss; `at_once` are read together."""
        for first, shared, block, problems in self.blocks(at_once):
            check_losses("losses", block, offset=(first,))
            for row in range(shared, len(block)):
                yield problems[row], as_allowed(problems[row], block[row], f"losses[{first + row}]")

    def at_source(self, rounds: Sequence[int], problem: MDP) -> FloatArray | None:
        """[n, H, S, A]: the losses that `problem` would have had in these rounds; None if not told apart."""
        if self.by_source is None:
            return None
        losses = self.by_source.under(self.problems.index(problem), rounds)
        return -losses if are_rewards(self.losses) else losses


class ArrivingPairs:
    """Rounds that are pairs of problem and loss, read as they arrive."""

    is_one_problem = False  # as far as one can know
    at_source = None

    def __init__(self, pairs: Iterable[tuple[MDP, npt.ArrayLike]]) -> None:
        arriving = map(_read_pair, count(), pairs)
        begin = list(islice(arriving, 1))
        if not begin:
            raise InputError(NO_ROUND)
        self.problems = (begin[0][0],)
        self.losses = IterableLosses(self._losses(chain(begin, arriving)))
        self.of_round: Any = list[int]()  # of the rounds read so far
        self._of_block = list[MDP]()  # the problems of the block that is being read

    def blocks(self, rounds: int) -> Iterator[MovingBlock]:
        """As of `MovingStream`."""
        losses = self.losses.blocks(self.problems[0].shape, min(rounds, PAIRS_AT_ONCE))
        for first, shared, block in numbered(losses):
            yield first, shared, block, tuple(self._of_block)
            del self._of_block[:-1]

    def _losses(self, pairs: Iterable[tuple[MDP, Any]]) -> Iterator[Any]:
        known, numbers = WeakValueDictionary[str, MDP](), dict[str, int]()  # equal ones are one object
        for t, (problem, loss) in enumerate(pairs):
            check_same_spaces(self.problems[0], problem, f"the problem of round {t}")
            self._of_block.append(known.setdefault(problem.fingerprint, problem))
            self.of_round.append(numbers.setdefault(problem.fingerprint, len(numbers)))
            yield loss


class LossesOfProblems(LossStream):
    """Factored losses whose features are those of the problem of the round; the coefficients are shared."""

    def __init__(self, problems: Sequence[MDP], streams: Sequence[Any], of_round: IntArray) -> None:
        factored: list[Any] = [factors_of(one) for one in streams]
        if len(streams) != len(problems) or None in factored:
            raise InputError(
                f"losses are {len(streams)} streams for {len(problems)} problems, but must be factored, one "
                f"for each problem: pass [nf.FactoredLosses(prices, quantities) for quantities in …]."
            )
        for k, one in enumerate(factored):
            mixed = are_rewards(streams[k]) != are_rewards(streams[0])
            if mixed or not np.array_equal(one.coefficients, factored[0].coefficients):
                raise InputError(
                    f"losses[{k}] have other coefficients than losses[0], but prices are those of the round, "
                    f"whatever the problem: give all the same, as rewards or none."
                )
        self.coefficients = factored[0].coefficients
        self.by_entry = [one.by_entry for one in factored]
        self.of_round = of_round
        self.shape = problems[0].shape
        self.round_names = names_of_rounds(streams[0])

    @property
    def n_rounds(self) -> int:
        return len(self.coefficients)

    def under(self, k: int, rounds: Sequence[int] | IntArray) -> FloatArray:
        """[n, H, S, A]: these rounds' coefficients with the features of problem k."""
        return FactoredBlock(self.by_entry[k], self.coefficients, self.shape)[rounds]

    def part(self, rows: slice | Sequence[int], names: Sequence[str] | None) -> LossesOfProblems:
        """Some of the rounds, as `rounds_of` asks for them."""
        some = copy(self)
        some.coefficients, some.of_round = self.coefficients[rows], self.of_round[rows]
        some.round_names = None if names is None else tuple(names)
        return some

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        for start in range(0, self.n_rounds, rounds):
            numbers = np.arange(max(start - 1, 0), min(start + rounds, self.n_rounds))
            block = np.empty((len(numbers), *shape))
            own = self.of_round[numbers]
            for k in np.unique(own).tolist():
                block[own == k] = self.under(k, numbers[own == k])
            yield block


def rounds_again(
    problems: Problems, losses: Losses, motion: PricedMotion
) -> tuple[Callable[[int], MDP], LossStream]:
    """The problem of each round, and the losses, of what `price_stream` was given and returned."""
    if isinstance(problems, MDP):
        return lambda _: problems, as_stream(losses)
    every: Any = tuple(problems)
    of_round = np.zeros(len(motion.prices), dtype=int) if motion.moved is None else motion.moved.dynamics
    moving = MovingStream(every, losses, of_round)
    return lambda t: moving.problems[moving.of_round[t]], moving.losses


def same_once(problems: Sequence[MDP]) -> tuple[MDP, ...]:
    """The problems, where two are the same the first of them twice; all of one shape and with one naming."""
    if not problems or not all(isinstance(problem, MDP) for problem in problems):
        raise InputError(
            "problems must be one MDP, a list of them with dynamics_of_round, or pairs of an MDP and a loss: "
            "pass one of these."
        )
    known: dict[str, MDP] = {}
    for k, problem in enumerate(problems):
        check_same_spaces(problems[0], problem, f"problems[{k}]")
        known.setdefault(problem.fingerprint, problem)
    return tuple(known[problem.fingerprint] for problem in problems)


def _read_numbers_of_problems(dynamics_of_round: npt.ArrayLike, count: int) -> IntArray:
    numbers = read_numbers("dynamics_of_round", dynamics_of_round)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError(
            f"dynamics_of_round is {numbers.dtype} of shape {list(numbers.shape)}, but must name the problem "
            f"of each round by its index: pass T integers."
        )
    rule = f"a problem has an index from 0 to {count - 1}: check the numbering"
    check_entries("dynamics_of_round", numbers, (numbers >= 0) & (numbers < count), rule)
    return read_only(numbers.astype(np.int64))


def _read_pair(number: int, pair: Any) -> tuple[MDP, Any]:
    if isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], MDP):
        return pair[0], pair[1]
    raise InputError(
        f"round {number} is of type {type(pair).__name__}, but without losses= every round must be a pair of "
        f"an MDP and a loss [H, S, A]: pass losses=, or such pairs."
    )


def _other_length(told: int, found: str) -> InputError:
    return InputError(
        f"dynamics_of_round names the problems of {told} rounds, but the losses have {found}: give one for "
        f"each round."
    )

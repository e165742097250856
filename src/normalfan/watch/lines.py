"""Lines as they arrive, and what they hold: one line in, one line out, both JSON.

A feed is an iterator of lines with None, a pause, wherever no further input is waiting: the moment to commit
what was priced. A request to stop (SIGTERM, SIGINT) ends the feed between two lines, as if the input had
ended there.

A line in is `{"round": 7, "loss": [[[…]]]}`, or `reward` instead of `loss`, or `{"round": 7, "theta": […]}`
for factored losses, with coefficients in the order of the features, or by their names. Numbers of a line out
read back to the bit; what is infinite is written as null.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import select
import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray, check_finite
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import as_loss, rewards
from normalfan.problem.mdp import MDP
from normalfan.ranges.ranging import ranging
from normalfan.ranges.reading import Tolerance
from normalfan.text import as_json, each_key_once

CHUNK = 2**16  # bytes read at a time: the capacity of a pipe
LONGEST_LINE = 2**24  # bytes that a line may have, unless the user allows more
GRACE = 1.0  # seconds for which a full pipe is waited for after the request to stop
STOPPING = (signal.SIGTERM, signal.SIGINT)

LARGEST_ROUND = 2**53  # above it, readers of JSON that know only floats disagree about integers
KEYS = ("loss", "reward", "theta")  # what a line may hold

_LARGE = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{309}")  # in numbers that may be beyond the range of float64


@dataclass(eq=False)
class Feed:
    """Lines from a file descriptor; only the main thread may open it by `with`, as that sets signal handlers.

    Former handlers come back. A line that is too long is cut, so that the rest of it takes no memory.
    """

    source: int  # the file descriptor
    _: KW_ONLY
    longest: int = LONGEST_LINE  # longer lines are cut one byte above that
    patience: float | None = None  # seconds after which there is a pause while nothing arrives, if any
    _stopped: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        self._wake, self._waker = os.pipe()
        self._former = {number: signal.signal(number, self.stop) for number in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._waker)

    def stop(self, *_: object) -> None:
        """End the feed before its next line; can be called from a signal handler."""
        if not self._stopped:
            self._stopped = True
            os.write(self._waker, b".")

    def __iter__(self) -> Iterator[bytes | None]:
        begun, paused = bytearray(), True
        while not self._stopped:
            # Waiting for both wakes us when a signal arrives; reading alone would go on waiting.
            ready, _, _ = select.select([self.source, self._wake], [], [], self.patience if paused else 0)
            if self.source not in ready:
                paused = True
                yield None
                continue
            chunk = os.read(self.source, CHUNK)
            # At the end, a line that its sender did not finish is not JSON, and is reported as that.
            *ends, rest = chunk.split(b"\n") if chunk or not begun else (b"", b"")
            for end in ends:
                if self._stopped:
                    return
                begun += end[: self.longest + 1 - len(begun)]
                yield bytes(begun)
                begun.clear()
                paused = False
            begun += rest[: self.longest + 1 - len(begun)]
            if not chunk:
                yield None
                return

    def write(self, target: int, data: bytes) -> int:
        """Write, however slow the reader is; returns how many bytes went before a request to stop."""
        done = 0
        while done < len(data):
            sources, patience = ([], GRACE) if self._stopped else ([self._wake], None)
            _, free, _ = select.select(sources, [target], [], patience)
            if free:  # a pipe with room takes so much without waiting
                done += os.write(target, data[done : done + select.PIPE_BUF])
            elif not sources:
                break
        return done


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose form is right; its numbers are not checked yet."""

    round: int
    key: str  # one of `KEYS`
    numbers: Any
    of_rewards: bool
    model: str  # the name of its model, empty if it names none

    @property
    def name(self) -> str:
        """What refusals call its numbers."""
        return f"{self.key} of round {self.round}"


def read_line(line: bytes, longest: int, models: Collection[str] = (), *, rewards: bool = False) -> Line:
    """Read the round number of a line, and check its length, its keys and the model that it names.

    The numbers are checked by `LineModel.loss`: a round that was priced before is skipped by its number.
    """
    if len(line) > longest:
        raise InputError(
            f"the line is longer than {longest:,} bytes, but that is the limit: check it, or raise "
            f"the limit with --max-line."
        )
    document = _parsed(line)
    model = document.pop("model", "") if models else ""
    if not isinstance(model, str) or (model and model not in models):
        known = ", ".join(map(repr, models))
        raise InputError(
            f"model is {str(model)[:40]!r}, but the models are {known}: name one of them, or none."
        )
    keys = sorted(set(document) - {"round"})
    if "round" not in document or len(keys) != 1 or keys[0] not in KEYS:
        shown = ", ".join(repr(key)[:40] for key in list(document)[:4]) or "nothing"
        raise InputError(
            f"the line holds {shown}, but must hold 'round' and one of {', '.join(map(repr, KEYS))}, "
            f'and nothing else: write {{"round": 7, "loss": [[[…]]]}}.'
        )
    (key,), number = keys, document["round"]
    if type(number) is not int or abs(number) > LARGEST_ROUND:
        is_one = not isinstance(number, list | dict)
        shown = json.dumps(number)[:40] if is_one else f"a {type(number).__name__}"
        raise InputError(
            f"round is {shown}, but must be an integer (of at most 2^53): "
            f"number the rounds in the order in which they happen."
        )
    return Line(number, key, document[key], rewards or key == "reward", model)


class LineModel:
    """A model of lines, and the features that their coefficients multiply in it.

    >>> model = LineModel(MDP(np.array([[0, 0]]), initial=0, horizon=1))
    >>> model.loss(read_line(b'{"round": 7, "loss": [[[0, 1.5]]]}', longest=100))
    array([[[0. , 1.5]]])
    """

    def __init__(
        self, mdp: MDP, features: npt.ArrayLike | None = None, feature_names: Sequence[str] = ()
    ) -> None:
        self.mdp = mdp
        self.feature_names = tuple(feature_names)
        self.features: Any = None  # a sparse matrix [H·S·A, K]
        if features is not None:
            stream = FactoredLosses(np.zeros((1, np.shape(features)[0])), features)
            next(stream.blocks(mdp.shape, rounds=1))  # refuses, before the first line, what does not fit
            self.features = stream.features.T.tocsr()

    def digest_of_meaning(self, *, rewards: bool) -> str:
        """What tells the meaning of numbers from others: features, their names, whether they are rewards."""
        meaning = "rewards" if rewards else ""
        if self.features is None:
            return meaning
        digest = hashlib.sha256(json.dumps(self.feature_names).encode())
        for part in (self.features.indptr, self.features.indices, self.features.data):
            digest.update(part.astype(np.float64).tobytes())
        return meaning + digest.hexdigest()

    def loss(self, line: Line) -> FloatArray:
        """[H, S, A]: the loss of a line, with its numbers checked; of rewards, their negative."""
        if line.key == "theta":
            # As in `FactoredLosses`, whose blocks of one round give the same bits as those of many.
            numbers = (self.features @ self._coefficients(line)[:, None]).reshape(self.mdp.shape)
        else:
            numbers = _array(line.name, line.numbers)
        # Before the check, which knows forbidden actions by a loss of inf; and not −, which makes −0 of 0.
        return as_loss(self.mdp, 0.0 - numbers if line.of_rewards else numbers, line.name)

    def nearest_wall(self, line: Line, tolerance: Tolerance, ties: TieRule) -> dict[str, Any] | None:
        """The feature whose move to the end of its range is least; None without coefficients or an end."""
        if line.key != "theta":
            return None
        theta = self._coefficients(line)
        round_of_one = FactoredLosses(theta[None], self.features.T, feature_names=self.feature_names or None)
        losses = rewards(round_of_one) if line.of_rewards else round_of_one
        wall = ranging(self.mdp, losses, tolerance=tolerance, ties=ties).nearest_wall()
        return None if wall is None else wall._asdict()

    def _coefficients(self, line: Line) -> FloatArray:
        name, given = line.name, line.numbers
        if self.features is None:
            raise InputError(
                f"{name} is given, but there are no features to multiply it with: pass --features FILE."
            )
        if isinstance(given, dict):
            if odd := set(given) ^ set(self.feature_names):
                raise InputError(
                    f"{name} {'has' if min(odd) in given else 'lacks'} {min(odd)[:40]!r}, but must hold one "
                    f"coefficient for each feature, by its name: compare it with the table of features."
                )
            given = [given[feature] for feature in self.feature_names]
        numbers = _array(name, given)
        if numbers.shape != self.features.shape[1:]:
            raise InputError(
                f"{name} has shape {list(numbers.shape)}, but there are {self.features.shape[1]} features: "
                f"give a flat list with one coefficient for each."
            )
        check_finite(name, numbers)
        return np.asarray(numbers, dtype=np.float64)


def as_line(record: dict[str, Any]) -> bytes:
    # Half of a surrogate pair, which a line may hold as an escape, is written as an escape again.
    return as_json(record).encode(errors="backslashreplace") + b"\n"


def digest_of_round(loss: FloatArray, model: str) -> int:
    """64 bits that tell a loss, and the model that it names, from others; signed."""
    digest = hashlib.blake2b(loss.data, digest_size=8)
    digest.update(model.encode(errors="backslashreplace"))
    return int.from_bytes(digest.digest(), signed=True)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parse = _number_in_range if _LARGE.search(line) else None
        document = json.loads(line.decode(), object_pairs_hook=each_key_once, parse_float=parse)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the line cannot be read as JSON ({error}), but must be one JSON object: "
            f'write {{"round": 7, "loss": [[[…]]]}} on a line of its own.'
        ) from None
    if not isinstance(document, dict):
        raise InputError(
            f"the line is a JSON {type(document).__name__}, but must be an object: "
            f'write {{"round": 7, "loss": [[[…]]]}}.'
        )
    return document


def _number_in_range(text: str) -> float:
    """1e999 is no float; read as infinity it would mean that an action is not allowed."""
    if math.isinf(number := float(text)):
        raise ValueError(f"{text:.20} is beyond the range of float64")
    return number


def _array(name: str, numbers: Any) -> Any:
    try:
        array = np.asarray(numbers)
    except ValueError:
        raise InputError(
            f"{name} has lists of different lengths, but must be a full array: fill in what is missing."
        ) from None
    if array.dtype.kind not in "fiu":
        raise InputError(
            f"{name} holds something other than numbers, but must be an array of numbers: "
            f"check it for null, text, true and false."
        )
    return array

"""One line in, one line out, both JSON.

A line in is `{"round": 7, "loss": [[[…]]]}`, or `{"round": 7, "theta": […]}` for factored losses. The
coefficients theta come in the order of the features, or by their names: `{"power": 31.5, "wear": 1}`.

A line out says what a round cost, and where, in the user's own names. Numbers are written so that they read
back to the bit. JSON has no infinity: an infinite margin (there is no other face) is written as null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.pricing.monitor import PricedRound
from normalfan.problem.arrays import FloatArray, check_finite
from normalfan.problem.losses import FactoredLosses, as_loss
from normalfan.problem.mdp import MDP
from normalfan.text import as_json
from normalfan.watch.feed import LONGEST_LINE

LARGEST_ROUND = 2**53  # above it, readers of JSON that know only floats disagree about integers


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose form is right; its numbers are not checked yet."""

    round: int
    key: str  # "loss" or "theta"
    numbers: Any


class LineReader:
    """Reads the lines that arrive for one problem.

    A line is read in two steps, `read` and `loss`: a round that was priced before is skipped by its number,
    and then its loss need not be checked.

    >>> reader = LineReader(MDP(np.array([[0, 0]]), initial=0, horizon=1))
    >>> line = reader.read(b'{"round": 7, "loss": [[[0, 1.5]]]}')
    >>> line.round, reader.loss(line)
    (7, array([[[0. , 1.5]]]))
    """

    def __init__(
        self,
        mdp: MDP,
        features: npt.ArrayLike | None = None,
        feature_names: Sequence[str] = (),
        longest: int = LONGEST_LINE,
    ) -> None:
        self.mdp = mdp
        self.longest = longest
        self.feature_names = tuple(feature_names)
        self.features = None if features is None else _checked_features(mdp, features)

    def digest_of_features(self) -> str:
        """What tells features from others, names included; empty without features."""
        if self.features is None:
            return ""
        digest = hashlib.sha256(json.dumps(self.feature_names).encode())
        for part in (self.features.indptr, self.features.indices, self.features.data):
            digest.update(part.astype(np.float64).tobytes())
        return digest.hexdigest()

    def read(self, line: bytes) -> Line:
        """Read the round number of a line, and check which keys it has."""
        if len(line) > self.longest:
            raise InputError(
                f"the line is longer than {self.longest:,} bytes, but that is the limit: check it, or raise "
                f"the limit with --max-line."
            )
        document = _parsed(line)
        keys = sorted(set(document) - {"round"})
        if "round" not in document or keys not in (["loss"], ["theta"]):
            shown = ", ".join(repr(key)[:40] for key in list(document)[:4]) or "nothing"
            raise InputError(
                f"the line holds {shown}, but must hold 'round' and one of 'loss' and 'theta', "
                f'and nothing else: write {{"round": 7, "loss": [[[…]]]}}.'
            )
        number = document["round"]
        if type(number) is not int or abs(number) > LARGEST_ROUND:
            raise InputError(
                f"round is {_shown(number)}, but must be an integer (of at most 2^53): "
                f"number the rounds in the order in which they happen."
            )
        return Line(number, keys[0], document[keys[0]])

    def loss(self, line: Line) -> FloatArray:
        """[H, S, A]: the loss of a line, with its numbers checked."""
        name = f"{line.key} of round {line.round}"
        if line.key == "loss":
            return as_loss(self.mdp, _array(name, line.numbers), name)
        if self.features is None:
            raise InputError(
                f"{name} is given, but there are no features to multiply it with: pass --features FILE."
            )
        by_name = isinstance(line.numbers, dict)
        numbers = _array(name, self._in_order(name, line.numbers) if by_name else line.numbers)
        if numbers.shape != self.features.shape[1:]:
            raise InputError(
                f"{name} has shape {list(numbers.shape)}, but there are {self.features.shape[1]} features: "
                f"give a flat list with one coefficient for each."
            )
        check_finite(name, numbers)
        # As in `FactoredLosses`, whose blocks of one round give the same bits as those of many.
        loss = self.features @ numbers.astype(np.float64)[:, None]
        return as_loss(self.mdp, loss.reshape(self.mdp.shape), name)

    def _in_order(self, name: str, coefficients: dict[str, Any]) -> list[Any]:
        """Coefficients by name, in the order of the features."""
        if set(coefficients) != set(self.feature_names):
            odd = min(set(coefficients) ^ set(self.feature_names))
            raise InputError(
                f"{name} {'has' if odd in coefficients else 'lacks'} {odd[:40]!r}, but must hold one "
                f"coefficient for each feature, by its name: compare it with the table of features."
            )
        return [coefficients[feature] for feature in self.feature_names]


def round_record(
    step: PricedRound,
    *,
    since: int | None,
    costliest: dict[str, Any] | None,
    total: float,
    alarms: Sequence[str],
) -> bytes:
    """The line for a round that was priced against the round `since`."""
    record: dict[str, Any] = {"round": step.round, "since": since}
    record |= {field.name: getattr(step, field.name) for field in fields(step)}
    record |= {"costliest": costliest, "total": total}
    if alarms:
        record["alarms"] = list(alarms)
    return as_line(record)


def error_record(line: int, error: Exception) -> bytes:
    return as_line({"line": line, "error": str(error)})


def as_line(record: dict[str, Any]) -> bytes:
    # Half of a surrogate pair, which a line may hold as an escape, is written as an escape again.
    return as_json(record).encode(errors="backslashreplace") + b"\n"


def digest_of_loss(loss: FloatArray) -> int:
    """64 bits that tell a loss from another, signed."""
    return int.from_bytes(hashlib.blake2b(loss.data, digest_size=8).digest(), signed=True)


def _checked_features(mdp: MDP, features: npt.ArrayLike) -> Any:
    """The features as a sparse matrix [H·S·A, K]; refused here, before the first line, if they do not fit."""
    stream = FactoredLosses(np.zeros((1, np.shape(features)[0])), features)
    next(stream.blocks(mdp.shape, rounds=1))
    return stream.features.T.tocsr()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line.decode(), object_pairs_hook=_without_repeats)
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key comes twice")
    return document


def _shown(item: Any) -> str:
    return f"a {type(item).__name__}" if isinstance(item, list | dict) else json.dumps(item)[:40]


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

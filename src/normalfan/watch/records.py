"""One line in, one line out, both JSON.

A line in is `{"round": 7, "loss": [[[…]]]}`, or `reward` instead of `loss`, or `{"round": 7, "theta": […]}`
for factored losses. The coefficients theta come in the order of the features, or by their names:
`{"power": 31.5, "wear": 1}`.

A line out says what a round cost, and where, in the user's own names. Numbers are written so that they read
back to the bit. JSON has no infinity: an infinite margin (there is no other face) is written as null.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.ties import TieRule
from normalfan.problem.arrays import FloatArray, check_finite
from normalfan.problem.losses import FactoredLosses, as_loss, rewards
from normalfan.problem.mdp import MDP
from normalfan.ranges.ranging import ranging
from normalfan.ranges.reading import Tolerance
from normalfan.text import as_json, each_key_once
from normalfan.watch.feed import LONGEST_LINE

LARGEST_ROUND = 2**53  # above it, readers of JSON that know only floats disagree about integers
KEYS = ("loss", "reward", "theta")  # what a line may hold

_LARGE = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{309}")  # in numbers that may be beyond the range of float64


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose form is right; its numbers are not checked yet."""

    round: int
    key: str  # one of `KEYS`
    numbers: Any
    model: str = ""  # the name of its model, if it names one


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
        *,
        rewards: bool = False,
        models: Collection[str] = (),
    ) -> None:
        self.mdp = mdp
        self.models = models  # that a line may name
        self.rewards = rewards
        self.longest = longest
        self.feature_names = tuple(feature_names)
        self.features: Any = None if features is None else _checked_features(mdp, features)

    def digest_of_meaning(self) -> str:
        """What tells the meaning of numbers from others: features, their names, whether they are rewards."""
        meaning = "rewards" if self.rewards else ""
        if self.features is None:
            return meaning
        digest = hashlib.sha256(json.dumps(self.feature_names).encode())
        for part in (self.features.indptr, self.features.indices, self.features.data):
            digest.update(part.astype(np.float64).tobytes())
        return meaning + digest.hexdigest()

    def read(self, line: bytes) -> Line:
        """Read the round number of a line, and check which keys it has."""
        if len(line) > self.longest:
            raise InputError(
                f"the line is longer than {self.longest:,} bytes, but that is the limit: check it, or raise "
                f"the limit with --max-line."
            )
        document = _parsed(line)
        model = document.pop("model", "") if self.models else ""
        if not isinstance(model, str) or (model and model not in self.models):
            known = ", ".join(map(repr, self.models))
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
        number = document["round"]
        if type(number) is not int or abs(number) > LARGEST_ROUND:
            is_one = not isinstance(number, list | dict)
            shown = json.dumps(number)[:40] if is_one else f"a {type(number).__name__}"
            raise InputError(
                f"round is {shown}, but must be an integer (of at most 2^53): "
                f"number the rounds in the order in which they happen."
            )
        return Line(number, keys[0], document[keys[0]], model)

    def is_of_rewards(self, line: Line) -> bool:
        """Whether the numbers of a line are rewards."""
        return self.rewards or line.key == "reward"

    def loss(self, line: Line) -> FloatArray:
        """[H, S, A]: the loss of a line, with its numbers checked; of rewards, their negative."""
        name = f"{line.key} of round {line.round}"
        numbers = self._numbers(name, line)
        # Before the check, which knows forbidden actions by a loss of inf; and not −, which makes −0 of 0.
        return as_loss(self.mdp, 0.0 - numbers if self.is_of_rewards(line) else numbers, name)

    def nearest_wall(self, line: Line, tolerance: Tolerance, ties: TieRule) -> dict[str, Any] | None:
        """The feature whose move to the end of its range is least; None without coefficients or an end."""
        if line.key != "theta":
            return None
        theta = self._coefficients(f"theta of round {line.round}", line)
        round_of_one = FactoredLosses(theta[None], self.features.T, feature_names=self.feature_names or None)
        losses = rewards(round_of_one) if self.rewards else round_of_one
        wall = ranging(self.mdp, losses, tolerance=tolerance, ties=ties).nearest_wall()
        return None if wall is None else wall._asdict()

    def _numbers(self, name: str, line: Line) -> Any:
        if line.key != "theta":
            return _array(name, line.numbers)
        # As in `FactoredLosses`, whose blocks of one round give the same bits as those of many.
        loss = self.features @ self._coefficients(name, line)[:, None]
        return loss.reshape(self.mdp.shape)

    def _coefficients(self, name: str, line: Line) -> FloatArray:
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
        return np.asarray(numbers, dtype=np.float64)

    def _in_order(self, name: str, coefficients: dict[str, Any]) -> list[Any]:
        """Coefficients by name, in the order of the features."""
        if set(coefficients) != set(self.feature_names):
            odd = min(set(coefficients) ^ set(self.feature_names))
            raise InputError(
                f"{name} {'has' if odd in coefficients else 'lacks'} {odd[:40]!r}, but must hold one "
                f"coefficient for each feature, by its name: compare it with the table of features."
            )
        return [coefficients[feature] for feature in self.feature_names]


def as_line(record: dict[str, Any]) -> bytes:
    # Half of a surrogate pair, which a line may hold as an escape, is written as an escape again.
    return as_json(record).encode(errors="backslashreplace") + b"\n"


def digest_of_round(loss: FloatArray, model: str) -> int:
    """64 bits that tell a loss, and the model that it names, from others; signed."""
    digest = hashlib.blake2b(loss.data, digest_size=8)
    digest.update(model.encode(errors="backslashreplace"))
    return int.from_bytes(digest.digest(), signed=True)


def _checked_features(mdp: MDP, features: npt.ArrayLike) -> Any:
    """The features as a sparse matrix [H·S·A, K]; refused here, before the first line, if they do not fit."""
    stream = FactoredLosses(np.zeros((1, np.shape(features)[0])), features)
    next(stream.blocks(mdp.shape, rounds=1))
    return stream.features.T.tocsr()


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

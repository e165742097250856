"""One line in, one line out, both JSON.

A line in is `{"round": 7, "loss": [[[…]]]}`, or `{"round": 7, "theta": […]}` for factored losses. The
coefficients theta come in the order of the features, or by their names: `{"power": 31.5, "wear": 1}`.

A line out says what a round cost, and where, in the user's own names. Numbers are written so that they read
back to the bit. JSON has no infinity: an infinite margin (there is no other face) is written as null.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.face import optimal_face
from normalfan.pricing.attribution import costliest_cell
from normalfan.pricing.crossing import price
from normalfan.pricing.monitor import PricedRound
from normalfan.problem.arrays import FloatArray, check_finite
from normalfan.problem.losses import FactoredLosses, as_loss
from normalfan.problem.mdp import MDP
from normalfan.text import as_json

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
        self, mdp: MDP, features: npt.ArrayLike | None = None, feature_names: Sequence[str] = ()
    ) -> None:
        self.mdp = mdp
        self.feature_names = tuple(feature_names)
        self.features = None if features is None else _checked_features(mdp, features)

    def read(self, line: bytes) -> Line:
        """Read the round number of a line, and check which keys it has."""
        document = _parsed(line)
        keys = sorted(set(document) - {"round"})
        if "round" not in document or keys not in (["loss"], ["theta"]):
            shown = ", ".join(map(repr, document)) or "nothing"
            raise InputError(
                f"the line holds {shown}, but must hold 'round' and one of 'loss' and 'theta', "
                f'and nothing else: write {{"round": 7, "loss": [[[…]]]}}.'
            )
        number = document["round"]
        if type(number) is not int or abs(number) > LARGEST_ROUND:
            raise InputError(
                f"round is {json.dumps(number)[:40]}, but must be an integer (of at most 2^53): "
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
        if numbers.shape != (self.features.shape[0],):
            raise InputError(
                f"{name} has shape {list(numbers.shape)}, but there are {self.features.shape[0]} features: "
                f"give a flat list with one coefficient for each."
            )
        check_finite(name, numbers)
        # A stream of one round gives the same bits as a stream of many.
        (loss,) = next(FactoredLosses(numbers[None], self.features).blocks(self.mdp.shape, rounds=1))
        return np.asarray(loss)

    def _in_order(self, name: str, coefficients: dict[str, Any]) -> list[Any]:
        """Coefficients by name, in the order of the features."""
        if set(coefficients) != set(self.feature_names):
            odd = min(set(coefficients) ^ set(self.feature_names))
            raise InputError(
                f"{name} {'has' if odd in coefficients else 'lacks'} {odd!r}, but must hold one coefficient "
                f"for each feature, by its name: compare it with the table of features."
            )
        return [coefficients[feature] for feature in self.feature_names]


def round_record(
    mdp: MDP,
    step: PricedRound,
    *,
    since: int | None,
    total: float,
    alarms: Sequence[str],
    old: FloatArray | None,
    new: FloatArray,
) -> bytes:
    """The line for a round that was priced against the round `since`; `old` and `new` are their losses."""
    record: dict[str, Any] = {"round": step.round, "since": since, **asdict(step)}
    record["costliest"] = None if old is None or step.price == 0 else costliest(mdp, old, new)
    record["total"] = total
    if alarms:
        record["alarms"] = list(alarms)
    return as_line(record)


def error_record(line: int, error: Exception) -> bytes:
    return as_line({"line": line, "error": str(error)})


def as_line(record: dict[str, Any]) -> bytes:
    return as_json(record).encode() + b"\n"


def costliest(mdp: MDP, old: FloatArray, new: FloatArray) -> dict[str, Any] | None:
    """The step, state and action at which most of a price is paid, by name, with the part paid there."""
    cell = costliest_cell(mdp, price(optimal_face(mdp, old), new), new)
    if cell is None:
        return None
    return {"step": cell.step, "state": cell.state, "action": cell.action, "price": cell.paid}


def _checked_features(mdp: MDP, features: npt.ArrayLike) -> Any:
    """The features as a sparse matrix [K, H·S·A]; refused here, before the first line, if they do not fit."""
    stream = FactoredLosses(np.zeros((1, np.shape(features)[0])), features)
    next(stream.blocks(mdp.shape, rounds=1))
    return stream.features


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line.decode())
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

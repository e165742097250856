"""Tables of labels and numbers, and the arrays that their rows describe. Rules: docs/how-to/files.md.

A column that nobody asked for is refused: a misspelt `state` would mean "the same in every state".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars

from normalfan.errors import InputError
from normalfan.io.frames import Dialect, TableSource, is_csv, path_of, read_frame
from normalfan.problem.arrays import PROBABILITY_TOLERANCE, BoolArray, FloatArray, IntArray, first_index
from normalfan.problem.losses import LossStream, names_of_rounds
from normalfan.problem.mdp import MDP

Names: TypeAlias = Mapping[str, Sequence[str]]
"""The labels along the axes of an array, by the columns that they are in."""

AXES = {"step": "H", "state": "S", "action": "A"}
FORBIDDEN = "forbidden"  # stands for the number of a cell whose action is not allowed
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_PLACE = "__place__"  # the column with each row's line or row number


@dataclass(frozen=True, slots=True)
class Table:
    path: Path
    frame: polars.DataFrame
    columns: list[str]  # but that of `_PLACE`
    decimal: str

    def __len__(self) -> int:
        return len(self.frame)

    def where(self, row: int) -> str:
        noun = "line" if is_csv(self.path) else "row"
        return f"{self.path}, {noun} {self.frame[_PLACE][row]}"

    def refuse(self, bad: Any, sentence: Callable[[int], str]) -> None:
        """Refuse the first row that is bad; `sentence` says of a row, after where it is, what is wrong."""
        flags = np.asarray(bad)
        if flags.any():
            row = int(flags.argmax())
            raise InputError(f"{self.where(row)} {sentence(row)}")

    def text(self, column: str) -> polars.Series:
        given = self.frame[column]
        if given.dtype.is_nested() or given.dtype in (polars.Binary, polars.Duration):
            raise self._unreadable(column, "names are text, numbers or dates")
        labels = _dates(given) if given.dtype == polars.Datetime else given.cast(polars.String)
        rule = f"has no {column}, but every row needs one: fill it in or drop the row."
        self.refuse(labels.fill_null("") == "", lambda _: rule)
        return labels

    def names(self, *columns: str) -> list[str]:
        """Each label of these columns once, as they first appear."""
        labels = polars.concat([self.text(column) for column in columns])
        return list(labels.unique(maintain_order=True))

    def names_along(self, mdp: MDP) -> dict[str, list[str]]:
        """What the problem calls its steps, states and actions, of those that the table has columns for."""
        return {column: names for column, names in names_along(mdp).items() if column in self.columns}

    def flags(self, column: str) -> BoolArray:
        """A column of true and false, or 1 and 0."""
        entries = self.text(column).str.to_lowercase()
        known = entries.replace_strict(_FLAGS, default=None, return_dtype=polars.Boolean)
        rule = f"as {column}, but it is true or false, or 1 or 0: correct it."
        self.refuse(known.is_null(), lambda row: f"has {entries[row]!r} {rule}")
        return known.to_numpy()

    def forbidden(self, column: str, number: float = np.inf) -> BoolArray:
        """The rows that have, instead of a number, the word forbidden or an infinite `number`."""
        given = self.frame[column]
        if not (given.dtype.is_float() or given.dtype == polars.String):
            return np.zeros(len(given), dtype=bool)
        words = given.cast(polars.String).str.to_lowercase()
        return words.is_in([FORBIDDEN, str(number), f"{number:+}"]).fill_null(False).to_numpy()

    def numbers(
        self, column: str, forbidden: float | None = None, allowed: BoolArray | None = None
    ) -> FloatArray:
        """A column of finite numbers; `forbidden` where a row, or `allowed`, says that it is not allowed."""
        given = self.frame[column]
        if not (given.dtype.is_numeric() or given.dtype in (polars.String, polars.Null)):
            raise self._unreadable(column, "it must have numbers")
        text = given
        if self.decimal == "," and given.dtype == polars.String:
            # A point could group digits, so that no number may have one.
            text = given.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
        numbers = text.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy()
        bad = ~np.isfinite(numbers)
        if forbidden is not None:
            marked = self.forbidden(column, forbidden)
            if allowed is not None:
                rule = f"as {column}, but these are opposites: correct one of the two."
                self.refuse(marked & allowed, lambda row: f"is allowed and has {given[row]!r} {rule}")
                marked = ~allowed
            bad &= ~marked
            numbers = np.where(marked, forbidden, numbers)

        def not_finite(row: int) -> str:
            shown = "nothing" if given[row] is None else repr(given[row])
            remedy = "correct it or drop the row"
            if self.decimal == "." and "," in shown:
                remedy = "if the comma is a decimal one, pass --decimal , (decimal=',')"
            return f"has {shown} as {column}, but every {column} must be a finite number: {remedy}."

        self.refuse(bad, not_finite)
        return np.ascontiguousarray(numbers)

    def probabilities(self) -> FloatArray:
        weights = self.numbers("probability")
        rule = "but none can be negative: correct it."
        self.refuse(weights < 0, lambda row: f"has probability {weights[row]:g}, {rule}")
        return weights

    def codes(self, column: str, names: Sequence[str]) -> IntArray:
        """The index in `names` of each label of a column; a label that is not there is refused."""
        labels = self.text(column)
        codes = labels.cast(polars.Enum(names), strict=False).to_physical()
        rule = f"but the known ones are {first_few(names)}: correct the label."
        self.refuse(codes.is_null(), lambda row: f"names the {column} {labels[row]!r}, {rule}")
        return codes.cast(polars.Int64).to_numpy()

    def cells(self, names: Names) -> IntArray:
        """[n]: each row's place in the array with these columns as axes, flattened; no two rows share one."""
        codes = [self.codes(column, known) for column, known in names.items()]
        cells = np.ravel_multi_index(codes, [len(known) for known in names.values()])

        def repeats(row: int) -> str:
            before = self.where(int((cells == cells[row]).argmax())).rpartition(", ")[2]
            rule = "but each may appear once: drop one of the two rows."
            return f"repeats {self._labels(names, row)} of {before}, {rule}"

        self.refuse(~polars.Series(cells).is_first_distinct(), repeats)
        return cells

    def cells_of(self, mdp: MDP) -> IntArray:
        """[n or 1, m]: the cells [H, S, A] of a problem, flattened, that each row, or any row, stands for."""
        rows, *every = np.ogrid[tuple(slice(size) for size in (len(self), *mdp.shape))]
        codes = {axis: self.codes(axis, known)[rows] for axis, known in self.names_along(mdp).items()}
        along = tuple(codes.get(axis, each) for axis, each in zip(AXES, every, strict=True))
        cells = np.ravel_multi_index(along, mdp.shape)
        return cells.reshape(len(cells), -1)

    def agreed(self, column: str, entries: npt.NDArray[Any], of: Names) -> npt.NDArray[Any]:
        """The entries [n] as an array with `of` along its axes; rows of the same labels must agree."""
        shape = tuple(map(len, of.values()))
        codes = tuple(self.codes(name, known) for name, known in of.items())
        said = np.zeros(shape, dtype=entries.dtype)
        said[codes] = entries

        def differs(row: int) -> str:
            others = f"another row of {self._labels(of, row)} has {said[codes][row]}"
            return f"has {column} {entries[row]}, but {others}: give the same in all of them."

        self.refuse(said[codes] != entries, differs)
        return said

    def check_sums(self, sums: FloatArray, given: BoolArray, names: Names) -> None:
        """Refuse probabilities that are `given` and do not sum to 1; `names` are along the axes of both."""
        wrong = given & (np.abs(sums - 1) > PROBABILITY_TOLERANCE)
        if wrong.any():
            where = first_index(wrong)
            in_percent = abs(sums[where] - 100) < 1
            remedy = "divide percentages by 100" if in_percent else "add the missing rows or more digits"
            raise InputError(
                f"{self.path} gives {labels_at(where, names)} probabilities that sum to {sums[where]:.12g}, "
                f"but they must sum to 1 within {PROBABILITY_TOLERANCE:g}: {remedy}."
            )

    def _labels(self, columns: Iterable[str], row: int) -> str:
        return ", ".join(f"{column} {self.frame[column][row]}" for column in columns)

    def _unreadable(self, column: str, rule: str) -> InputError:
        return InputError(
            f"{self.path} has a column {column!r} of type {self.frame[column].dtype}, but {rule}: convert it."
        )


def read_table(
    source: TableSource, required: Sequence[str], optional: Sequence[str] | None, dialect: Dialect
) -> Table:
    """A table with a row and the `required` columns; `optional` are others it may have (None: any)."""
    path, frame = path_of(source), read_frame(source, dialect)
    check_columns(path, frame.columns, required, optional)
    placed = frame.with_row_index(_PLACE, offset=2 if is_csv(path) else 1)
    filled = placed.filter(~polars.all_horizontal(polars.col(frame.columns).is_null()))
    if not len(filled):
        raise InputError(f"{path} has no rows, but a table needs at least one: check how it was written.")
    return Table(path, filled, frame.columns, dialect.decimal)


def state_index(start: str | int, states: Sequence[str]) -> int:
    """A state by its label; states without labels go by their index, as text."""
    if str(start) not in states:
        raise InputError(
            f"start is {start!r}, but the states are called {first_few(states)}: name one of them."
        )
    return list(states).index(str(start))


def names_or_none(names: Sequence[str]) -> tuple[str, ...] | None:
    """None where the names say no more than the indices do."""
    return None if list(names) == [str(i) for i in range(len(names))] else tuple(names)


def rounds_named(losses: LossStream, n_rounds: int | None = None) -> list[str]:
    """What the rounds are called; numbers if they have no names, `n_rounds` if the stream cannot tell."""
    return list(names_of_rounds(losses) or map(str, range(n_rounds or losses.n_rounds or 0)))


def names_along(mdp: MDP) -> dict[str, list[str]]:
    sizes = zip(AXES, mdp.shape, strict=True)
    return {axis: [getattr(mdp.labels, axis)(i) for i in range(size)] for axis, size in sizes}


def labels_at(where: Iterable[int], names: Names) -> str:
    """What an index of an array is called that has these names along its axes."""
    return ", ".join(f"{axis} {known[i]}" for (axis, known), i in zip(names.items(), where, strict=True))


def label_columns(names: Names, codes: Iterable[IntArray]) -> dict[str, polars.Series]:
    """A column of labels for each kind of name, from their indices: what `Table.codes` reads back."""
    return {
        column: polars.Series(known, dtype=polars.String).gather(code)
        for (column, known), code in zip(names.items(), codes, strict=True)
    }


def first_few(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:4])) + (", …" if len(names) > 4 else "")


def _dates(times: polars.Series) -> polars.Series:
    """Days if that is all they are, else days and times, in ISO format."""
    days = times.cast(polars.Date)
    if (days.cast(times.dtype) == times).all():
        return days.cast(polars.String)
    zone = "%:z" if getattr(times.dtype, "time_zone", None) else ""
    return times.dt.to_string("%Y-%m-%dT%H:%M:%S%.f" + zone)


def check_columns(
    path: Path, columns: Sequence[str], required: Sequence[str], optional: Sequence[str] | None
) -> None:
    for name in required:
        if name not in columns:
            raise InputError(
                f"{path} has the columns {first_few(columns)}, but needs {first_few(required)}: add or "
                f"rename {name}."
            )
    for name in columns:
        if optional is not None and name not in {*required, *optional}:
            also = f" and may have {', '.join(optional)}" if optional else ""
            raise InputError(
                f"{path} has a column {name!r}, but it needs {first_few(required)}{also}: rename or "
                f"drop that column."
            )

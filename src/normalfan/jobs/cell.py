"""A cell: one computation, named by its content.

>>> cell = Cell("normalfan.jobs.cell:echo", {"seed": 3})
>>> cell.key == Cell("normalfan.jobs.cell:echo", {"seed": 3}).key != Cell(cell.task, {"seed": 4}).key
True
>>> cell.compute()["seed"].item()
3
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from normalfan.errors import InputError
from normalfan.jobs.version import code_version

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Cell:
    """A task and what it is to be called with.

    The task is a function `settings -> polars.DataFrame` that returns the same frame whenever it is called
    with the same settings and finds the same content in what it reads: it draws from seeds in its settings
    only. Large data are named in the settings by path, and by the digest of their content in `inputs`.
    """

    task: str  # "package.module:function"
    settings: Mapping[str, Any]  # plain JSON
    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> digest of content
    _digest: str = field(init=False, repr=False, compare=False)  # of the settings, which may be long

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+(\.\w+)*:\w+", self.task):
            raise InputError(
                f'task is {self.task!r}, but must name a function of a module as "package.module:function": '
                f"pass its name, not the function."
            )
        object.__setattr__(self, "_digest", _digest_of(self.settings))

    @property
    def key(self) -> str:
        """The address of the result: a digest of all that decides it, the code of this process included."""
        return _digest_of([self.task, self._digest, self.inputs, code_version(self.task)])

    def compute(self) -> polars.DataFrame:
        import polars

        module, _, function = self.task.partition(":")
        result = getattr(importlib.import_module(module), function)(self.settings)
        if not isinstance(result, polars.DataFrame):
            raise InputError(
                f"{self.task} returned {type(result).__name__}, but a task must return a polars.DataFrame: "
                f"wrap its result."
            )
        return result

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.task} {_canonical(self.settings)}"


def echo(settings: Mapping[str, Any]) -> polars.DataFrame:
    """The smallest task: its settings, as a frame of one row."""
    import polars

    return polars.DataFrame([dict(settings)])


def _digest_of(content: Any) -> str:
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def _canonical(content: Any) -> str:
    """One text for one content, whatever the order of its keys."""
    try:
        return json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"settings hold something that is not plain JSON ({error}), but a cell is named by them: use "
            f"finite numbers, strings, lists and mappings, and pass arrays by the path of a file."
        ) from None

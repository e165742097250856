"""A cell: one computation, named by its content."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from normalfan.errors import InputError
from normalfan.sources import digest_of_code

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True, repr=False)
class Cell:
    """A task and what it is called with.

    Parameters
    ----------
    task : str
        ``"package.module:function"``: takes the settings, returns a ``polars.DataFrame``; random numbers come
        from seeds in the settings only.
    settings, inputs : mapping
        Plain JSON, large data named by path; and digests, by name, of the content of the files it names.

    Examples
    --------
    >>> Cell("normalfan.jobs.cell:echo", {"seed": 3}).compute()["seed"].item()
    3
    """

    task: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)
    _digest: str = field(init=False, compare=False)  # of the settings, which may be long

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+(\.\w+)*:\w+", self.task):
            raise InputError(
                f'task is {self.task!r}, but must name a function of a module as "package.module:function": '
                f"pass its name, not the function."
            )
        object.__setattr__(self, "_digest", _digest_of(self.settings))

    @property
    def key(self) -> str:
        """The name of the result: a digest of all that decides it, with the task's code in this process."""
        code = digest_of_module(self.task.partition(":")[0])
        return _digest_of([self.task, self._digest, self.inputs, code])

    def compute(self) -> polars.DataFrame:
        """Call the task, here and now."""
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

    def __repr__(self) -> str:
        return f"Cell({self.task!r}, {reprlib.repr(dict(self.settings))})"

    def __str__(self) -> str:
        return f"{self.task} {_canonical(self.settings)}"


def digest_of_module(module: str) -> str:
    try:
        return digest_of_code(module)
    except ModuleNotFoundError:
        raise InputError(
            f"the module {module!r} was not found, but every process must import it by that name: install "
            f"its package, or put its folder on PYTHONPATH."
        ) from None


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

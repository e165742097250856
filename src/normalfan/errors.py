"""What can go wrong, in one place.

    ValueError
    └── InputError        an input breaks a rule
    RuntimeError
    └── WorkStopped       long work cannot go on, through no fault of its input

The message of an `InputError` is one sentence for the person who supplied the input: what is wrong,
where (the first offender's index), the rule it breaks, and the remedy. That of a `WorkStopped` says what
happened, and how to continue; what was finished before stays.
"""

from __future__ import annotations


class InputError(ValueError):
    """An input breaks a rule; the message says which, where, and what to do."""


class WorkStopped(RuntimeError):  # noqa: N818  a full disk is nobody's error
    """Long work cannot go on; the message says what happened and how to continue."""

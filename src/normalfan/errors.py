"""What can go wrong, in one place.

    ValueError
    └── InputError        an input breaks a rule

The message of an `InputError` is one sentence for the person who supplied the input: what is wrong,
where (the first offender's index), the rule it breaks, and the remedy.
"""

from __future__ import annotations


class InputError(ValueError):
    """An input breaks a rule; the message says which, where, and what to do."""

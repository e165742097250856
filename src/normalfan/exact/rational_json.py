"""Exact numbers in JSON, and the strict reading of them back.

JSON has no rationals, so a fraction travels as the string "p/q" in lowest terms, "-3/8" or "2/1".
Long integers are written in hexadecimal, "0x1f…/0x3…": Python refuses to print or parse decimals
beyond 4,300 digits (the conversion takes quadratic time), and the exact values of a long horizon
have more. Tuples become arrays, frozen dataclasses become objects.

Reading is the reverse, with nothing assumed. A *reader* takes a decoded JSON value and the place
where it stood, and returns the Python value or raises an `InputError` that names the place. Readers
compose: `array_of(array_of(read_fraction))` reads a matrix.

    >>> encode((Fraction(1, 3), None, 2))
    ['1/3', None, 2]
    >>> array_of(read_fraction)(["1/3", "-0x2/0x5"], "row")
    (Fraction(1, 3), Fraction(-2, 5))
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from normalfan.errors import InputError

T = TypeVar("T")
Reader = Callable[[object, str], T]

_LONGEST_DECIMAL_BITS = 1024
_FRACTION = re.compile(r"(-?(?:[0-9]+|0x[0-9a-f]+))/([0-9]+|0x[0-9a-f]+)")
_REMEDY = "write the certificate anew with to_json()"


def encode(value: Any) -> Any:
    """Turn dataclasses, tuples and fractions, nested at will, into what `json.dumps` takes."""
    if isinstance(value, Fraction):
        longest = max(value.numerator.bit_length(), value.denominator.bit_length())
        style = "d" if longest <= _LONGEST_DECIMAL_BITS else "#x"
        return f"{value.numerator:{style}}/{value.denominator:{style}}"
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def canonical_text(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(text: str) -> object:
    """Decode JSON text, with every way of failing turned into an `InputError`."""
    try:
        decoded: object = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise InputError(f"The certificate is not JSON text ({error}): {_REMEDY}.") from error
    return decoded


def read_integer(value: object, where: str) -> int:
    """Read an integer; ``true`` is not one, though Python would let it pass."""
    if type(value) is not int:
        raise _unexpected(value, where, "an integer")
    return value


def read_boolean(value: object, where: str) -> bool:
    """Read ``true`` or ``false``."""
    if type(value) is not bool:
        raise _unexpected(value, where, "true or false")
    return value


def read_string(value: object, where: str) -> str:
    """Read a string."""
    if type(value) is not str:
        raise _unexpected(value, where, "a string")
    return value


def read_fraction(value: object, where: str) -> Fraction:
    """Read ``"p/q"`` in lowest terms with q > 0, so that each number has one spelling per base."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise _unexpected(value, where, 'a fraction "p/q"')
    try:
        numerator, denominator = int(match[1], 0), int(match[2], 0)
    except ValueError as error:  # leading zeros, or too many decimal digits
        raise _unexpected(value, where, 'a fraction "p/q"') from error
    if denominator == 0 or math.gcd(numerator, denominator) != 1:
        raise _unexpected(value, where, 'a fraction "p/q" in lowest terms with q > 0')
    return Fraction(numerator, denominator)


def optional(read: Reader[T]) -> Reader[T | None]:
    """Let a reader accept ``null`` as well."""
    return lambda value, where: None if value is None else read(value, where)


def array_of(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """Read an array whose items one reader understands."""

    def read_array(value: object, where: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise _unexpected(value, where, "an array")
        return tuple(read(item, f"{where}[{i}]") for i, item in enumerate(value))

    return read_array


def pair_of(first: Reader[Any], second: Reader[Any]) -> Reader[tuple[Any, Any]]:
    """Read an array of exactly two items."""

    def read_pair(value: object, where: str) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            raise _unexpected(value, where, "an array of two items")
        return first(value[0], f"{where}[0]"), second(value[1], f"{where}[1]")

    return read_pair


def record_of(build: Callable[..., T], fields: Mapping[str, Reader[Any]]) -> Reader[T]:
    """Read an object with exactly these fields and build ``build(**fields)`` from it."""

    def read_record(value: object, where: str) -> T:
        if not isinstance(value, dict):
            raise _unexpected(value, where, "an object")
        odd = min(value.keys() ^ fields.keys(), default=None)
        if odd is not None:
            state = "is missing from" if odd in fields else "does not belong in"
            raise InputError(f"The field {odd!r} {state} {where}: {_REMEDY}.")
        return build(**{name: read(value[name], f"{where}.{name}") for name, read in fields.items()})

    return read_record


def _unexpected(value: object, where: str, rule: str) -> InputError:
    shown = repr(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    return InputError(f"{where} is {shown}, but must be {rule}: {_REMEDY}.")

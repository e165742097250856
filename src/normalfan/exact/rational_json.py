"""Exact numbers in JSON, and the strict reading of them back: annotations of dataclasses are the grammar.

A fraction travels as the string "p/q" in lowest terms, long integers in hexadecimal, because Python refuses
decimals beyond 4,300 digits. What is not exactly of the annotated type is refused, with its place.

    >>> decode(tuple[Fraction, ...], ["1/3", "-0x2/0x5"], "row")
    (Fraction(1, 3), Fraction(-2, 5))
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from normalfan.errors import InputError
from normalfan.text import each_key_once

_LONGEST_DECIMAL_BITS = 1024
_FRACTION = re.compile(r"(-?(?:[0-9]+|0x[0-9a-f]+))/([0-9]+|0x[0-9a-f]+)")
_PLAIN = {int: "an integer", bool: "true or false", str: "a string"}
_REMEDY = "write the certificate again with to_json()"


def encode(value: Any) -> Any:
    """Turn dataclasses, tuples and fractions, nested at will, into what `json.dumps` takes."""
    if isinstance(value, Fraction):
        longest = max(value.numerator.bit_length(), value.denominator.bit_length())
        style = "d" if longest <= _LONGEST_DECIMAL_BITS else "#x"
        return f"{value.numerator:{style}}/{value.denominator:{style}}"
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if dataclasses.is_dataclass(value):
        # What may be left out is, so that it changes no text written before there was such a field.
        told = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name: encode(own) for name, own in told.items() if own is not None or not _may_lack(value, name)
        }
    return value


def canonical_text(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_text(kind: Any, text: str, where: str) -> Any:
    """Read JSON text as a `kind`, with every way of failing turned into an `InputError`."""
    try:
        parsed = json.loads(text, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError, TypeError) as error:
        raise InputError(
            f"the certificate is not JSON text with each field once ({error}), but must be: {_REMEDY}."
        ) from error
    return decode(kind, parsed, where)


def decode(kind: Any, value: object, where: str) -> Any:
    """Read a parsed JSON value as a `kind`: a number, text, a tuple, a dataclass, or any of them or None."""
    if kind is Fraction:
        return _decode_fraction(value, where)
    if kind in _PLAIN:
        if type(value) is not kind:  # `true` is no integer, though Python would let it pass
            raise _unexpected(value, where, _PLAIN[kind])
        return value
    if dataclasses.is_dataclass(kind):
        return _decode_record(kind, value, where)
    parts = get_args(kind)
    if get_origin(kind) is UnionType:
        return None if value is None else decode(parts[0], value, where)
    if not isinstance(value, list):
        raise _unexpected(value, where, "an array")
    if parts[-1] is Ellipsis:
        parts = (parts[0],) * len(value)
    if len(value) != len(parts):
        raise _unexpected(value, where, f"an array of {len(parts)} items")
    return tuple(
        decode(part, item, f"{where}[{i}]") for i, (part, item) in enumerate(zip(parts, value, strict=True))
    )


def _decode_fraction(value: object, where: str) -> Fraction:
    """Read ``"p/q"`` in lowest terms with q > 0, so that each number has one spelling per base."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    try:
        numerator, denominator = (int(match[1], 0), int(match[2], 0)) if match else (0, 0)
    except ValueError:  # leading zeros, or too many decimal digits
        numerator, denominator = 0, 0
    if denominator == 0 or math.gcd(numerator, denominator) != 1:
        raise _unexpected(value, where, 'a fraction "p/q" in lowest terms with q > 0')
    return Fraction(numerator, denominator)


def _decode_record(kind: Any, value: object, where: str) -> Any:
    fields = _fields_of(kind)
    if not isinstance(value, dict):
        raise _unexpected(value, where, "an object")
    lacking = {name for name in fields if _may_lack(kind, name)}
    odd = min((value.keys() | lacking) ^ fields.keys(), default=None)
    if odd is not None:
        state = "is missing from" if odd in fields else "does not belong in"
        raise InputError(
            f"the field {odd!r} {state} {where}, but a certificate has its own fields: {_REMEDY}."
        )
    given = {name: part for name, part in fields.items() if name in value}
    return kind(**{name: decode(part, value[name], f"{where}.{name}") for name, part in given.items()})


def _may_lack(kind: Any, name: str) -> bool:
    return kind.__dataclass_fields__[name].default is None


_fields_of = cache(get_type_hints)


def _unexpected(value: object, where: str, rule: str) -> InputError:
    shown = repr(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    return InputError(f"{where} is {shown}, but must be {rule}: {_REMEDY}.")

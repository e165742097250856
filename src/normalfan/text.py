"""Numbers as text: for people, for scripts (JSON), for notebooks.

>>> amount(1234567.8, "$"), amount(0.01234, "MWh"), amount(-12.5, "€"), amount(3, "")
('$1,234,568', '0.01234 MWh', '−€12.5', '3')
"""

from __future__ import annotations

import html
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

CURRENCIES = "$€£¥"


def number(value: float) -> str:
    """Four digits, or all of those before the point."""
    size = abs(value)
    digits = f"{size:,.0f}" if 1000 <= size < 1e15 else f"{size:.4g}"
    return f"−{digits}" if value < 0 and digits != "0" else digits


def amount(value: float, unit: str) -> str:
    """A number with its unit: before it if that is a currency's sign, else after."""
    if unit in CURRENCIES:  # or empty
        written = number(value)
        return f"−{unit}{written[1:]}" if written.startswith("−") else f"{unit}{written}"
    return f"{number(value)} {unit}"


def percent(share: float) -> str:
    """A share of one.

    >>> percent(0.4567), percent(0.00123), percent(1.0)
    ('46 %', '0.12 %', '100 %')
    """
    return f"{100 * share:,.0f} %" if share >= 0.1 or not share else f"{100 * share:.2g} %"


def counted(n: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(1234, "round")
    ('1 round', '1,234 rounds')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def printable(text: object) -> str:
    r"""Text as a terminal may show it: what would move the cursor or reorder letters is escaped.

    >>> printable("zoë\x1b[2J"), printable("a\nb")
    ('zoë\\x1b[2J', 'a\\nb')
    """
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def as_json(document: Any, *, indent: int | None = None) -> str:
    """Strict JSON: infinities and NaN, which it cannot write, become null.

    >>> as_json({"price": 1.5, "margin": float("inf")})
    '{"price": 1.5, "margin": null}'
    """
    return json.dumps(_finite(document), indent=indent, ensure_ascii=False, allow_nan=False)


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`, which would keep the last of two values where another reader keeps the first."""
    document = dict(pairs)
    if len(document) < len(pairs):
        ((name, times),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{name!r:.40} is there {times} times")
    return document


def as_script(document: Any) -> str:
    """Compact JSON of printable texts, inert inside an HTML script element, whatever labels contain."""
    text = json.dumps(_finite(document, printable), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(item: Any, write: Callable[[str], str] = str) -> Any:
    if isinstance(item, dict):
        return {key: _finite(entry, write) for key, entry in item.items()}
    if isinstance(item, list | tuple):
        return [_finite(entry, write) for entry in item]
    if isinstance(item, str):
        return write(item)
    return None if isinstance(item, float) and not math.isfinite(item) else item


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A small table for notebooks; every text is printable and escaped."""

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(printable(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(cells, "td") for cells in rows)
    return f"<table><caption>{html.escape(printable(caption))}</caption>{line(head, 'th')}{body}</table>"

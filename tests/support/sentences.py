"""What every refusal must look like: one sentence with what and where, the rule, the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import normalfan as nf

SENTENCE = r"[^\n]*, but [^\n]*: [^\n]*\."


def check_refusal(provoke: Callable[[], object], where: str) -> None:
    """`provoke` must raise an `InputError` that names `where`: «…, but …: … .»"""
    with pytest.raises(nf.InputError) as caught:
        provoke()
    message = str(caught.value)
    assert where in message
    assert re.fullmatch(SENTENCE, message), message

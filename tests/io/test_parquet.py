"""Damaged Parquet files: a sentence, whoever wrote them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from flips import flips
from sentences import check_refusal

import normalfan as nf
from normalfan.io import frames
from normalfan.io.frames import checksums


def test_a_flipped_bit_of_our_files_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    mdp = nf.MDP(np.array([[0, 1], [1, 0]]), 0, 1)
    nf.io.save_mdp(mdp, path)
    whole = path.read_bytes()
    ignored = []
    for damaged in flips(whole):
        stored, _, digest = checksums(damaged)
        ignored.append(stored == digest)  # the flip hid the checksum itself
        if ignored[-1]:
            path.write_bytes(damaged)
            with suppress(nf.InputError):
                assert nf.io.load_mdp(path).fingerprint == mdp.fingerprint, len(ignored)
    assert 0 < sum(ignored) < 100 * len(ignored) / len(whole)
    path.write_bytes(whole.replace(b"probability", b"probabilitx"))
    check_refusal(lambda: nf.io.load_mdp(path), "m.parquet is damaged")


@pytest.mark.parametrize("panic", [pl.exceptions.PanicException, RuntimeError, MemoryError, UnicodeError])
def test_a_reader_that_panics_is_reported_as_a_sentence(
    panic: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise panic("assertion failed: offset + length <= self.length\nnote: details")

    (tmp_path / "m.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(frames, "read_parquet", fail)
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "m.parquet"), "cannot be read (assertion failed")

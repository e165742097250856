"""Files with random damage: our error, or a result; what carries a checksum is never silently different.

Half a second for each kind of file; with `SOAK=1`, as in `make soak`, two minutes for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from soaking import repeated

import normalfan as nf

SECONDS = repeated(0.5, 120.0)
SHOP = nf.MDP(np.array([[0, 1], [1, 0]]), 0, 2, labels=nf.Labels(states=("open", "closed")))
LOSSES = nf.ArrayLosses(np.arange(24.0).reshape(3, 2, 2, 2), round_names=("mon", "tue", "wed"))


def snapshot(path: Path) -> None:
    monitor = nf.Monitor(SHOP)
    monitor.update(LOSSES.array[0])
    monitor.save(path)


def resumed(path: Path) -> object:
    monitor = nf.Monitor.load(path)
    return monitor.rounds, monitor.total, monitor.mdp.fingerprint, monitor.update(LOSSES.array[1])


def certificate(path: Path) -> None:
    path.write_text(nf.certify(SHOP, LOSSES.array[0], LOSSES.array[1]).to_json())


def certified(path: Path) -> object:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return None
    read = nf.Certificate.from_json(text)
    proves = nf.check_certificate(read) and read.matches(SHOP, LOSSES.array[0], LOSSES.array[1])
    return read.price if proves else None


def prices(path: Path) -> object:
    return nf.price_stream(SHOP, nf.io.open_losses(path, SHOP)).prices.tolist()


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object], bool]] = {
    "model.npz": (lambda p: nf.io.save_mdp(SHOP, p), lambda p: nf.io.load_mdp(p).fingerprint, True),
    "model.csv": (lambda p: nf.io.save_mdp(SHOP, p), lambda p: nf.io.load_mdp(p, horizon=2), False),
    "losses.npz": (lambda p: nf.io.save_losses(LOSSES, SHOP, p), prices, True),
    "losses.csv": (lambda p: nf.io.save_losses(LOSSES, SHOP, p), prices, False),
    "snapshot.npz": (snapshot, resumed, True),
    "certificate.json": (certificate, certified, False),
}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three of: a flipped bit, a byte replaced, a piece cut out, doubled or swapped with another."""
    for _ in range(int(rng.integers(1, 4))):
        at, size = int(rng.integers(len(content))), int(rng.integers(1, 9))
        piece = content[at : at + size]
        content = [
            lambda c=content, at=at: c[:at] + bytes([c[at] ^ (1 << int(rng.integers(8)))]) + c[at + 1 :],
            lambda c=content, at=at: c[:at] + rng.bytes(1) + c[at + 1 :],
            lambda c=content, at=at, size=size: c[:at] + c[at + size :],
            lambda c=content, at=at, piece=piece: c[:at] + piece + c[at:],
            lambda c=content, at=at: c[at:] + c[:at],
        ][int(rng.integers(5))]() or b"\0"
    return content


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_refused_or_makes_no_difference(name: str, tmp_path: Path) -> None:
    write, read, has_checksum = KINDS[name]
    path = tmp_path / name
    write(path)
    whole, expected = path.read_bytes(), read(path)
    rng, tries, refusals = np.random.default_rng(7), 0, list[str]()
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        path.write_bytes(damaged(whole, rng))
        tries += 1
        try:
            found = read(path)
        except nf.InputError as error:
            refusals.append(str(error))
            continue
        if has_checksum:
            assert found == expected
        if name == "certificate.json":
            assert found in (None, expected)
    assert len(refusals) > tries / 10
    assert not any("\n" in sentence for sentence in refusals)
    if target := os.environ.get("SOAK_FIGURES"):
        with Path(target).open("a") as file:
            file.write(json.dumps({"file": name, "mutations": tries, "refused": len(refusals)}) + "\n")

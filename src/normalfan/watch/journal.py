"""Exactly once, whatever is killed when.

Two files belong together: the *output*, to which records are only ever appended, and the *state*, a snapshot
that is replaced as a whole. The state holds the monitor (with the last loss, which the next price needs), how
long the output is and its checksum, and the *pending* records: those that it has counted and that the output
may not show yet. A commit of freshly priced rounds is

    1  the output so far is forced to disk            (the next state vouches for it)
    2  a state is written beside the old one, forced to disk, and takes its name
    3  the directory is forced to disk                (now the rounds are priced, whatever happens)
    4  the pending records are appended to the output

Killed before 2 is complete, the old state stands, and the rounds were never priced. Killed after it, the
next process finds an output that lacks its pending records, or a part of them, and writes them. So nothing is
priced twice, nothing is lost, and a record that was ever seen in the output stays there: its state was on
disk before. This holds for a killed process and for a power cut, as far as the disk does what it reports.

A lock keeps a second process away; the system drops it when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.files import remove_drafts, written_atomically
from normalfan.pricing.monitor import Monitor, read_snapshot
from normalfan.problem.mdp import MDP
from normalfan.watch.tally import Progress, Tally
from normalfan.watch.targets import check_can_be_written

BLOCK = 2**20


class Journal:
    """A state and its output, open and locked; see `open_journal`."""

    def __init__(self, mdp: MDP, state: Path, out: IO[bytes]) -> None:
        self.state = state
        self.out = out
        if state.exists():
            arrays = _read_state(state)
            self.monitor = Monitor.from_arrays(arrays, mdp, state)
            self.progress = _progress(arrays)
            self._length, self._checksum = int(arrays["length"]), int(arrays["checksum"])
            self._recover(arrays["pending"].tobytes())
        else:
            self.monitor, self.progress = Monitor(mdp), Progress()
            self._length, self._checksum = 0, 0
            self._check_output(b"")

    def commit(self, records: bytes, progress: Progress) -> None:
        """Make records that `monitor` has counted permanent, and show them in the output."""
        os.fsync(self.out.fileno())
        counters = {f"progress_{name}": np.array(getattr(progress, name)) for name in ("crossings", "alarms")}
        if progress.last_round is not None:
            counters["progress_last_round"] = np.array(progress.last_round)
        with written_atomically(self.state) as file:
            np.savez(
                file,
                allow_pickle=False,
                **self.monitor.to_arrays(),
                **counters,
                length=np.array(self._length),
                checksum=np.array(self._checksum),
                pending=np.frombuffer(records, dtype=np.uint8),
            )
        _sync_directory(self.state.parent)
        self.progress = progress
        self._append(records)

    def _recover(self, pending: bytes) -> None:
        """Show what the last process counted and may not have lived to show."""
        self._check_output(pending)
        self._append(pending)

    def _append(self, records: bytes) -> None:
        shown = 0
        while shown < len(records):
            shown += os.pwrite(self.out.fileno(), records[shown:], self._length + shown)
        self._length += len(records)
        self._checksum = zlib.crc32(records, self._checksum)

    def _check_output(self, pending: bytes) -> None:
        """Refuse an output that is not the one the state speaks of: it would be damaged."""
        size = os.fstat(self.out.fileno()).st_size
        found = 0
        for start in range(0, min(self._length, size), BLOCK):
            block = os.pread(self.out.fileno(), min(BLOCK, self._length - start), start)
            found = zlib.crc32(block, found)
        if not self._length <= size <= self._length + len(pending) or found != self._checksum:
            raise InputError(
                f"{self.out.name} holds {size} bytes, but is not the output that {self.state} vouches for "
                f"({self._length} bytes, unchanged): give the output and the state of one watch, or two new "
                f"paths to begin afresh."
            )


@contextmanager
def open_journal(mdp: MDP, state: str | Path, out: str | Path) -> Iterator[Journal]:
    """Take possession of a state and its output, and finish what their last owner began."""
    state = Path(state)
    _check_pair(state, Path(out))
    with ExitStack() as stack:
        lock = stack.enter_context(_opened(state.with_name(state.name + ".lock")))
        _lock(lock, state)
        output = stack.enter_context(_opened(Path(out)))
        _lock(output, Path(out))
        _sync_directory(Path(out).parent)
        remove_drafts(state)
        journal = Journal(mdp, state, output)
        yield journal
        os.fsync(output.fileno())


def read_progress(state: str | Path) -> Tally:
    """What a state has counted; may be asked at any time, also while a process owns the state."""
    if not Path(state).exists():
        return Tally(Progress(), rounds=0, total=0.0)
    arrays = _read_state(Path(state))
    total = float(Fraction(str(arrays["sum"])))
    return Tally(_progress(arrays), int(arrays["rounds"]), total)


def _check_pair(state: Path, out: Path) -> None:
    """Refuse what can be seen to be wrong before any file is made."""
    check_can_be_written(state)
    check_can_be_written(out)
    if state.resolve() == out.resolve():
        raise InputError(
            f"{out} is given as the state and as the output, but they are two files: choose another path."
        )
    if state.exists():
        _read_state(state)


def _read_state(state: Path) -> Mapping[str, npt.NDArray[Any]]:
    arrays = read_snapshot(state)
    if "pending" not in arrays:
        raise InputError(
            f"{state} is a monitor's snapshot, but not the state of a watch: give the file that an earlier "
            f"watch wrote, or a new path."
        )
    return arrays


def _progress(arrays: Mapping[str, npt.NDArray[Any]]) -> Progress:
    last = arrays.get("progress_last_round")
    counted = Progress(crossings=int(arrays["progress_crossings"]), alarms=int(arrays["progress_alarms"]))
    return counted if last is None else replace(counted, last_round=int(last))


def _opened(path: Path) -> IO[bytes]:
    """`path` for reading and writing, made if need be, with its content left alone."""
    try:
        path.touch()
        return path.open("r+b", buffering=0)
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened ({error.strerror}), but must be a file that can be written: "
            f"check its permissions or choose another path."
        ) from error


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path} is in use, but a state and its output belong to one process at a time: "
            f"stop the other watch first, or give this one paths of its own."
        ) from None


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

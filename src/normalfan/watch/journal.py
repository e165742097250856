"""Each round exactly once, whatever is killed and when.

Two files belong together: the *output*, to which records are only ever appended, and the *state*, a snapshot
that is replaced as a whole and that also holds the *pending* records: counted, but perhaps not in the output
yet. Why the order in which `commit` forces them to disk is enough: docs/details/journal.md. A lock keeps a
second process away; the system removes it.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from normalfan.array_files import write_npz
from normalfan.errors import InputError, WorkStopped
from normalfan.files import check_target, remove_drafts
from normalfan.pricing.monitor import Monitor, read_snapshot, stored, stored_count, stored_sum
from normalfan.problem.mdp import MDP
from normalfan.watch.rules import Service

BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Progress:
    """What all processes that share a state have counted together."""

    last_round: int | None = None
    rounds: int = 0
    total: float = 0.0
    crossings: int = 0
    alarms: int = 0
    features: str = field(default="", repr=False)  # a digest of what the numbers of a line mean
    # The last rounds, each with a digest of its loss.
    recent: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    service: Service | None = None  # the plan in service, if a rule watches it


class Journal:
    """A state and its output, open and locked; `monitor` and `progress` are those of the last commit."""

    def __init__(self, mdp: MDP, state: Path, out: IO[bytes], others: Sequence[MDP] = ()) -> None:
        self.state = state
        self.out = out
        if state.exists():
            arrays = _read_state(state)
            last = stored(arrays, "fingerprint", "U", state)
            now = next((one for one in others if one.fingerprint == last), mdp)
            self.monitor = Monitor.from_arrays(arrays, now, state)
            self.progress = _progress(arrays, state)
            self._length, self._checksum = (stored_count(arrays, n, state) for n in ("length", "checksum"))
            pending = arrays["pending"].tobytes()
        else:
            self.monitor, self.progress = Monitor(mdp), Progress()
            self._length, self._checksum, pending = 0, 0, b""
        self._check_output(pending)
        self._append(pending)  # the last process may have been killed before it did

    def commit(self, records: bytes, progress: Progress) -> None:
        """Make permanent what `monitor` has priced since the last commit: these lines, and this progress."""
        self.check_unmoved()
        os.fsync(self.out.fileno())  # the next state relies on it
        names = ("last_round", "crossings", "alarms", "features")
        arrays = {
            **self.monitor.to_arrays(),
            **(progress.service.to_arrays() if progress.service else {}),
            **{f"progress_{name}": np.array(getattr(progress, name)) for name in names},
            "progress_recent": np.array(progress.recent, dtype=np.int64).reshape(-1, 2),
            "length": np.array(self._length),
            "checksum": np.array(self._checksum),
            "pending": np.frombuffer(records, dtype=np.uint8),
        }
        write_npz(arrays, self.state)
        _sync_directory(self.state.parent)  # now the rounds are priced, whatever happens
        self.progress = progress
        self._append(records)

    def check_unmoved(self) -> None:
        """Stop if the output is not where it was, or not as long: nobody would read its records."""
        mine, path = os.fstat(self.out.fileno()), Path(self.out.name)
        is_there = path.exists() and os.path.samestat(path.stat(), mine)
        if not is_there or mine.st_size != self._length:
            raise WorkStopped(
                f"{path} was moved, deleted or changed in length while the watch was running, but only the "
                f"watch may write to its output: put back the file with its {self._length} bytes and start "
                f"again; nothing was priced since the last record in it."
            )

    def _append(self, records: bytes) -> None:
        written = 0
        while written < len(records):
            written += os.pwrite(self.out.fileno(), records[written:], self._length + written)
        self._length += len(records)
        self._checksum = zlib.crc32(records, self._checksum)

    def _check_output(self, pending: bytes) -> None:
        """Refuse an output that does not belong to the state: it would be damaged."""
        size = os.fstat(self.out.fileno()).st_size
        found = 0
        for start in range(0, min(self._length, size), BLOCK):
            block = os.pread(self.out.fileno(), min(BLOCK, self._length - start), start)
            found = zlib.crc32(block, found)
        if not self._length <= size <= self._length + len(pending) or found != self._checksum:
            raise InputError(
                f"{self.out.name} holds {size} bytes, but is not the output that belongs to {self.state} "
                f"({self._length} bytes, unchanged): give the output and the state of the same watch, or two "
                f"new paths to start again."
            )


@contextmanager
def open_journal(
    mdp: MDP, state: str | Path, out: str | Path, *, others: Sequence[MDP] = ()
) -> Iterator[Journal]:
    """Open and lock a state and its output, and finish what the last process began.

    Parameters
    ----------
    mdp : MDP
        The problem whose losses arrive.
    state, out : str or Path
        Made if they do not exist.
    others : sequence of MDP
        Further models that lines may name: the last round may have had one of them.

    Yields
    ------
    Journal
        Its `monitor`, `progress` and `commit` are what a `Watcher` needs.

    Raises
    ------
    InputError
        If a file cannot be written, is in use, or the two do not belong to each other and to `mdp`.

    Examples
    --------
    >>> import tempfile
    >>> folder, mdp = Path(tempfile.mkdtemp()), MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> with open_journal(mdp, folder / "state.npz", folder / "prices.jsonl") as journal:
    ...     print(journal.monitor)
    Monitor: 0 rounds, total 0
    """
    state, out = Path(state), Path(out)
    # Refuse what can be seen to be wrong before any file is made.
    check_target("the state", state)
    check_target("the output", out)
    if state.resolve() == out.resolve():
        raise InputError(f"{out} is both the state and the output, but they are two files: choose two paths.")
    if state.exists():
        _read_state(state)
    with _locked(state.with_name(state.name + ".lock"), state), _locked(out, out) as output:
        _sync_directory(out.parent)
        remove_drafts(state)
        journal = Journal(mdp, state, output, others)
        yield journal
        journal.check_unmoved()
        os.fsync(output.fileno())


def read_progress(state: str | Path) -> Progress:
    """What a state has counted; works at any time, also while a process uses the state."""
    return _progress(_read_state(Path(state)), state) if Path(state).exists() else Progress()


def _read_state(state: Path) -> Mapping[str, npt.NDArray[Any]]:
    arrays = read_snapshot(state)
    pending, recent = arrays.get("pending"), arrays.get("progress_recent")
    is_state = pending is not None and pending.dtype == np.uint8 and pending.ndim == 1
    if not is_state or recent is None or recent.dtype != np.int64 or recent.shape[1:] != (2,):
        raise InputError(
            f"{state} is the snapshot of a monitor, but not the state of a watch: give the file that an "
            f"earlier watch wrote, or a new path."
        )
    return arrays


def _progress(arrays: Mapping[str, npt.NDArray[Any]], state: str | Path) -> Progress:
    names = ("rounds", "progress_crossings", "progress_alarms")
    rounds, crossings, alarms = (stored_count(arrays, name, state) for name in names)
    return Progress(
        last_round=stored(arrays, "progress_last_round", "i", state) if rounds else None,
        rounds=rounds,
        total=float(stored_sum(arrays, state)),
        crossings=crossings,
        alarms=alarms,
        features=stored(arrays, "progress_features", "U", state),
        recent=tuple(map(tuple, arrays["progress_recent"].tolist())),
        service=Service.from_arrays(arrays, state),
    )


@contextmanager
def _locked(path: Path, guarded: Path) -> Iterator[IO[bytes]]:
    """`path` for reading and writing, made if it does not exist, and locked for the use of `guarded`."""
    try:
        path.touch()
        file = path.open("r+b", buffering=0)
    except OSError as error:
        raise InputError(
            f"{path} cannot be opened ({error.strerror}), but must be a file that can be written: "
            f"check its permissions or choose another path."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{guarded} is in use, but only one process at a time may use a state and its output: "
                f"stop the other watch first, or give this one its own paths."
            ) from None
        yield file


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""The commit protocol: a crash at each of its steps, and a power cut with each image the disk may keep."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from flips import flips
from sentences import check_refusal

import normalfan as nf
from normalfan.array_files import pack_arrays, unpack_arrays
from normalfan.watch import Watcher, open_journal
from normalfan.watch.journal import read_progress

MDP = nf.MDP(np.array([[0, 1], [1, 0]]), 0, horizon=2)
LOSSES = np.random.default_rng(5).integers(0, 4, size=(5, *MDP.shape))
LINES = [json.dumps({"round": 10 + t, "loss": loss.tolist()}).encode() for t, loss in enumerate(LOSSES)]
BATCHES = [*LINES[:2], None, LINES[2], None, *LINES[3:], None]  # three commits


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def watch(folder: Path, lines: list[bytes | None]) -> None:
    with open_journal(MDP, folder / "state", folder / "out") as journal:
        watcher = Watcher(journal.monitor, journal.commit, progress=journal.progress, latency=math.inf)
        watcher.run(lines)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The output of a watch that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    watch(folder, BATCHES)
    return (folder / "out").read_bytes()


class Crash(BaseException):
    """The process ends here."""


class Machine:
    """Counts the steps that change files, dies at one of them, and knows what is on disk by then.

    A step is a call into the system; it is cut before it begins, in the middle (a write of which half
    arrives), or after it. What was not forced to disk may be lost in a power cut.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, die_at: int | None) -> None:
        self.folder = folder
        self.steps = 0
        self.die_at = die_at
        self.forced: dict[str, bytes | None] = {"out": None, "state": None}
        write, fsync, replace, make = os.pwrite, os.fsync, Path.replace, os.open

        def pwrite(file: int, data: bytes, at: int) -> int:
            if self.moment():
                write(file, data[: len(data) // 2], at)
                raise Crash
            return self.step(lambda: write(file, data, at))

        def forced(file: int) -> None:
            self.step(lambda: fsync(file))
            if same(file, folder):  # names are safe now
                self.forced["state"] = read(folder / "state")
            elif same(file, folder / "out"):
                self.forced["out"] = read(folder / "out")

        patch.setattr(os, "pwrite", pwrite)
        patch.setattr(os, "fsync", forced)
        patch.setattr(Path, "replace", lambda draft, to: self.step(lambda: replace(draft, to)))
        patch.setattr(os, "open", lambda *options: self.step(lambda: make(*options)))

    def moment(self) -> bool:
        self.steps += 1
        return self.steps == self.die_at

    def step(self, work: Callable[[], object]) -> object:
        if self.moment():
            raise Crash
        done = work()
        if self.moment():
            raise Crash
        return done

    def images(self) -> Iterator[dict[str, bytes | None]]:
        """What a power cut may leave: each file as it was forced to disk last, or as it is now."""
        now = {name: read(self.folder / name) for name in self.forced}
        for kept in product((True, False), repeat=2):
            yield {n: now[n] if k else self.forced[n] for n, k in zip(now, kept, strict=True)}
        if (now["out"] or b"") != (self.forced["out"] or b""):
            lost = len(now["out"] or b"") - len(self.forced["out"] or b"")
            yield now | {"out": (self.forced["out"] or b"") + bytes(lost)}  # the length came, the data not


def same(file: int, path: Path) -> bool:
    return os.path.samestat(os.fstat(file), path.stat())


def read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def crash_points(tmp_path: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "count").mkdir()
        machine = Machine(tmp_path / "count", patch, None)
        watch(tmp_path / "count", BATCHES)
    return machine.steps


def run_until(folder: Path, die_at: int, lines: list[bytes | None]) -> Machine:
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(folder, patch, die_at)
        with pytest.raises(Crash):
            watch(folder, lines)
    return machine


def unseen(out: bytes | None) -> list[bytes | None]:
    """The lines that a feeder must send who has read the output and takes it at its word."""
    seen = [json.loads(line)["round"] for line in (out or b"").split(b"\n")[:-1]]
    return [line for line in LINES if json.loads(line)["round"] not in seen]


def test_a_crash_at_every_step(tmp_path: Path, whole: bytes) -> None:
    points = crash_points(tmp_path)
    assert points > 30
    tried = set()
    for die_at in range(1, points + 1):
        folder = tmp_path / str(die_at)
        machine = run_until(folder, die_at, BATCHES)
        seen = read(folder / "out")
        assert whole.startswith(seen or b"")
        for image, resend in product(machine.images(), (unseen(seen), LINES)):
            # Many steps leave the same files; trying them once is enough.
            case = (*image.values(), len(resend))
            if case not in tried:
                tried.add(case)
                disk = new_disk(tmp_path / "disk", image)
                watch(disk, [*resend, None])
                assert (disk / "out").read_bytes() == whole, die_at
    assert len(tried) > 20


def test_a_crash_at_every_step_of_the_recovery(tmp_path: Path, whole: bytes) -> None:
    tried = set()
    for die_at in range(1, crash_points(tmp_path) + 1):
        machine = run_until(tmp_path / str(die_at), die_at, BATCHES)
        image = next(machine.images())
        if tuple(image.values()) in tried:
            continue
        tried.add(tuple(image.values()))
        for again in range(1, 20):
            disk = new_disk(tmp_path / "disk", image)
            try:
                run_until(disk, again, [])
            except pytest.fail.Exception:  # the recovery has fewer steps than that
                break
            watch(disk, [*unseen(read(disk / "out")), None])
            assert (disk / "out").read_bytes() == whole, (die_at, again)
        assert 4 < again < 19


def new_disk(folder: Path, image: dict[str, bytes | None]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in image.items():
        if content is not None:
            (folder / name).write_bytes(content)
    return folder


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".state.abcd1234", ".state.notes", ".other.abcd1234"):
        (tmp_path / name).touch()
    watch(tmp_path, BATCHES)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".state.notes", ".other.abcd1234", "out", "state", "state.lock"}


def test_the_status_is_that_of_the_output(tmp_path: Path, whole: bytes) -> None:
    assert read_progress(tmp_path / "state").last_round is None
    watch(tmp_path, BATCHES)
    progress, records = read_progress(tmp_path / "state"), [json.loads(line) for line in whole.splitlines()]
    assert progress.last_round == records[-1]["round"] == 14
    assert progress.total == records[-1]["total"] == nf.price_stream(MDP, LOSSES).total
    assert progress.rounds == 5
    assert progress.crossings == sum(record["crossed"] for record in records)


def reopened(folder: Path, mdp: nf.MDP = MDP) -> None:
    with open_journal(mdp, folder / "state", folder / "out"):
        pass


def test_a_state_and_an_output_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    watch(tmp_path, BATCHES)
    out, state = tmp_path / "out", tmp_path / "state"
    good = out.read_bytes()
    for bad in (b"", good[:100], good + b"x", good.replace(b"round", b"r0und")):
        out.write_bytes(bad)
        check_refusal(lambda: reopened(tmp_path), "out holds")
        assert out.read_bytes() == bad
    out.write_bytes(good)
    check_refusal(
        lambda: reopened(tmp_path, nf.MDP(np.array([[0, 1], [1, 0]]), 1, horizon=2)), "another problem"
    )
    nf.Monitor(MDP).save(state)
    check_refusal(lambda: reopened(tmp_path), "not the state of a watch")
    state.unlink()
    check_refusal(lambda: reopened(tmp_path), "out holds")  # a state that is gone does not make it new
    assert out.read_bytes() == good


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with open_journal(MDP, tmp_path / "state", tmp_path / "out"):
        check_refusal(lambda: reopened(tmp_path), "state is in use")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "out").symlink_to(tmp_path / "out")
        check_refusal(lambda: reopened(tmp_path / "other"), "out is in use")
    reopened(tmp_path)


@pytest.mark.slow
def test_a_flipped_bit_of_a_state_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    watch(tmp_path, BATCHES[:1])
    state = tmp_path / "state"
    whole, same = state.read_bytes(), read_progress(state)
    outcomes = []
    for flipped in flips(whole):
        state.write_bytes(flipped)
        try:
            assert read_progress(state) == same
        except nf.InputError:
            outcomes.append("refused")
        else:
            outcomes.append("the same")
    assert outcomes.count("refused") > 0.6 * len(outcomes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((f"progress_{name}", None) for name in ("last_round", "crossings", "alarms", "features", "recent")),
        *((name, None) for name in ("pending", "length", "checksum", "rounds", "sum")),
        *(("length", np.array(value)) for value in (-1, 2.5, "x", [1])),
        *(("pending", np.array(value)) for value in (1, [1.5], "x")),
        *(("progress_recent", np.array(value)) for value in (1, [1, 2], [[1, 2, 3]], "x")),
    ],
)
def test_a_malformed_state_is_refused_by_name(name: str, value: object, tmp_path: Path) -> None:
    watch(tmp_path, BATCHES)
    arrays = unpack_arrays((tmp_path / "state").read_bytes(), "state")
    changed = {key: array for key, array in (arrays | {name: value}).items() if array is not None}
    (tmp_path / "state").write_bytes(pack_arrays(changed))
    check_refusal(lambda: reopened(tmp_path), "state")

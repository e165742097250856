"""Files that appear whole or not at all, and array files that are never trusted."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from flips import flips
from sentences import check_refusal

import normalfan as nf
from normalfan.array_files import pack_arrays, unpack_arrays
from normalfan.files import check_target, written_atomically


def test_the_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "numbers.csv"
    target.write_text("old")
    with written_atomically(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "numbers.csv"
    target.write_text("old")

    def fail() -> None:
        with written_atomically(target) as file:
            file.write(b"half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_others_may_read_it_as_far_as_the_user_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with written_atomically(tmp_path / "page.html") as file:
            file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.touch()
    target.chmod(0o604)
    with written_atomically(target) as file:
        file.write(b"x")
    assert target.stat().st_mode & 0o777 == 0o604


def test_an_error_names_the_file_that_was_meant(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "numbers.csv"
    with pytest.raises(FileNotFoundError) as caught, written_atomically(target):
        pass
    assert caught.value.filename == str(target)


def test_what_cannot_be_written_is_refused_in_time(tmp_path: Path) -> None:
    (tmp_path / "old.csv").touch()
    for good in (None, tmp_path / "new.csv", str(tmp_path / "old.csv")):
        check_target("--out", good, (".csv", ".parquet"))
    check_target("--out", tmp_path / "new")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name, rule in {
        "new.txt": "new.txt, but it must end in one of .csv, .parquet: ",
        "folder.csv": "folder.csv, but that is a directory: ",
        "pipe.csv": "pipe.csv, but that is not a regular file: ",
        "nowhere/new.csv": "nowhere/new.csv, but there is no directory ",
        "old.csv/new.csv": "old.csv/new.csv, but there is no directory ",
    }.items():
        check_refusal(lambda: check_target("--out", tmp_path / name, (".csv", ".parquet")), rule)  # noqa: B023
    assert len(list(tmp_path.iterdir())) == 3


ARRAYS = {"numbers": np.arange(6.0).reshape(2, 3), "names": np.array(["a", "ü"]), "count": np.array(3)}


def same(arrays: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> bool:
    return arrays.keys() == others.keys() and all(
        a.dtype == others[name].dtype and np.array_equal(a, others[name]) for name, a in arrays.items()
    )


def test_arrays_come_back_also_from_a_file_of_numpy() -> None:
    turned = ARRAYS | {"turned": np.asfortranarray(ARRAYS["numbers"])}
    assert same(unpack_arrays(pack_arrays(turned), "x"), turned)
    file = io.BytesIO()
    np.savez(file, **ARRAYS)  # type: ignore[arg-type]
    assert same(unpack_arrays(file.getvalue(), "x"), ARRAYS)


def test_a_flipped_bit_is_refused_or_changes_nothing() -> None:
    packed = pack_arrays(ARRAYS)
    for number, damaged in enumerate(flips(packed)):
        try:
            found = unpack_arrays(damaged, "x.npz")
        except nf.InputError as error:
            assert str(error).startswith("x.npz ")  # noqa: PT017
        else:
            assert same({name: found[name] for name in ARRAYS}, ARRAYS), number


def test_a_sound_archive_with_other_content_fails_its_checksum() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(pack_arrays(ARRAYS))) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, content.replace(b"\x03", b"\x04") if member == "count.npy" else content)
    check_refusal(lambda: unpack_arrays(file.getvalue(), "x.npz"), "x.npz is damaged (its checksum")


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.ljust(117).encode() + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return file.getvalue()


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
        "((((((",
    ],
)
def test_what_a_header_declares_is_not_believed(header: str) -> None:
    check_refusal(lambda: unpack_arrays(npy(header, b"12345678"), "x.npz"), "x.npz is damaged")


def test_an_archive_larger_than_memory_is_refused_before_it_is_read() -> None:
    bomb = pack_arrays({"zeros": np.zeros(10**6)})
    assert len(bomb) < 10**4
    check_refusal(lambda: unpack_arrays(bomb, "x.npz", max_memory=10**6), "x.npz takes 8,00")
    lying = bytearray(bomb)
    at = lying.rindex(b"PK\x01\x02") + 24
    lying[at : at + 4] = (10**5).to_bytes(4, "little")  # the directory says that it is small
    check_refusal(lambda: unpack_arrays(bytes(lying), "x.npz", max_memory=10**6), "x.npz is damaged")

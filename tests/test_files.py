"""Files that appear whole or not at all, and whether they can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sentences import check_refusal

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

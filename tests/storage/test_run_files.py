"""Files by name below one place: written whole, listed without following links, read if regular."""

import os
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from ckcv_ray.errors import InputError, RunError
from ckcv_ray.storage import files as module
from ckcv_ray.storage.files import LocalFiles


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    (tmp_path / "run" / "log").mkdir(parents=True)
    return LocalFiles(tmp_path / "run")


def test_more_than_is_allowed_is_not_read(files: LocalFiles) -> None:
    files.write("a", b"x" * 3)
    with pytest.raises(ValueError, match="larger than"):
        files.read("a", 2)
    os.truncate(files.path("a"), module.MAX_FILE_BYTES + 1)
    with pytest.raises(ValueError, match="larger than"):
        files.open("a").__enter__()


@pytest.mark.parametrize("new", [b"", b"longer than before"])
def test_a_file_that_is_replaced_while_it_is_opened_is_read_whole(files, monkeypatch, new):
    """Its size is that of the file that is open, and never that of one before."""
    real = os.open

    def replace(path: Path, flags: int, *more: int) -> int:
        if not flags & os.O_CREAT:
            monkeypatch.setattr(os, "open", real)
            files.write("a", new)
        return real(path, flags, *more)

    def read_when_replaced(read: Callable[[str], object]) -> object:
        files.write("a", b"before")
        monkeypatch.setattr(os, "open", replace)
        return read("a")

    assert read_when_replaced(lambda name: files.read(name, 99)) == new
    if new:
        with pytest.raises(ValueError, match="larger than"):
            read_when_replaced(lambda name: files.read(name, len(new) - 1))


def test_links_to_folders_are_not_followed(files: LocalFiles, tmp_path: Path) -> None:
    """Neither round in circles nor out of the folder."""
    files.write("log/plain", b"1")
    files.path("log/here").symlink_to(files.root)
    files.path("log/above").symlink_to(tmp_path)
    files.path("log/self").symlink_to("self")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    files.path("out").symlink_to(tmp_path / "outside")
    assert list(files.walk()) == files.list("log/") == ["log/plain"]
    assert sorted(files.walk(regular=False)) == ["log/plain", "log/self"]


def test_a_name_is_inside_or_outside_wherever_links_lead(files: LocalFiles, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files.root)
    (files.root / "away").symlink_to(tmp_path / "other")
    (files.root / "self").symlink_to("self")
    assert files.inside(tmp_path / "link" / "a" / ".." / "b") == "b"
    assert files.inside(files.root / "away") is None
    assert files.inside(files.root / "self") == "self"
    assert files.inside(tmp_path / "run-2") is None
    assert LocalFiles(tmp_path / "link").inside(files.root / "log" / "x") == "log/x"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(files, monkeypatch, call):
    files.write("a", b"old")
    monkeypatch.setattr(os, call, Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(RunError, match="No space"):
        files.write("a", b"new")
    monkeypatch.undo()
    assert files.read("a", 3) == b"old"
    assert sorted(os.listdir(files.root)) == ["a", "log"]


def test_a_place_where_nothing_can_be_written_is_told_first(files: LocalFiles, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing" / "there")
    for place in ("file/run", "link/run"):
        with pytest.raises(InputError, match="is not a folder in which you may write"):
            LocalFiles(tmp_path / place).check_writable()
    LocalFiles(tmp_path / "new" / "run").check_writable()
    files.check_writable()
    assert not (tmp_path / "new").exists()

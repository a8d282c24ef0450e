"""Where run folders are: on a disk, or on an object store. The one place that tells them apart by address."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ckcv_ray.errors import CKCVError, InputError
from ckcv_ray.storage.files import Files, LocalFiles
from ckcv_ray.storage.journal import COMMITS
from ckcv_ray.storage.object_files import ObjectFiles
from ckcv_ray.tables.objects import Bucket, ask_at_once, is_address, parse_address
from ckcv_ray.validation import as_path

RUN = re.compile(rf"(?:(.+?)/)?{COMMITS}[0-9]+")


def open_files(address: Any, error: type[CKCVError] = InputError) -> Files:
    """Return the files of a folder; nothing is accessed yet.

    Args:
        address: a path, or an address such as s3://bucket/runs/patients.
        error: raised for a path that no file can have.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return ObjectFiles(Bucket(parse_address("out", address)))
    return LocalFiles(as_path("out", address, error))


def locate(name: str, address: Any) -> str:
    """Return an address that means the same from any working directory.

    Args:
        name: of the option, for messages.
        address: a path, or an address such as s3://bucket/runs/patients.

    Raises:
        InputError: it is neither.
    """
    if is_address(address):
        return str(parse_address(name, address))
    return str(as_path(name, address).absolute())


def find_run_folders(place: Any, file: str) -> Iterator[tuple[str, float]]:
    """Yield the address of each run folder in a folder and below it, and when it was written last.

    Folders inside a run folder are parts of it. Links are not followed.

    Args:
        place: a path, or an address such as s3://bucket/runs or s3://bucket.
        file: name of the file that every run folder on a disk has.

    Raises:
        InputError: there is no such folder, or bucket.
    """
    if is_address(place):
        yield from _find_in_store(Bucket(parse_address("folder", place, least=0)))
        return
    root = as_path("folder", place)
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}: name one that has run folders in it")
    for folder, inner, files in os.walk(root):
        inner.sort()
        if file in files:
            inner.clear()
            times = [0.0]
            with suppress(OSError):
                times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(folder)]
            yield str(Path(folder)), max(times)


def find_next_to(address: str, file: str) -> dict[str, str]:
    """Return the addresses of the other run folders in the parent folder of one, by name, the newest first.

    Links are not followed.

    Args:
        address: of the run folder, which need not exist: an absolute path, or such as s3://bucket/runs/x.
        file: name of the file that finished run folders on a disk have, which says when they were written.

    Raises:
        OSError: the parent folder cannot be read.
        CKCVError: the store does not answer, or refuses.
    """
    if is_address(address):
        place = parse_address("out", address)
        parent, _, name_here = place.key.rpartition("/")
        bucket = Bucket(place._replace(key=parent))
        names = sorted(bucket.folders("") - {name_here})
        commits = ask_at_once(*(partial(bucket.list, f"{name}/{COMMITS}") for name in names))
        written = {
            name: max((entry.modified.timestamp() for entry in listed.result()), default=None)
            for name, listed in zip(names, commits, strict=True)
        }
        found = {name: str(bucket.address.inside(name)) for name in names}
    else:
        own_path = Path(address)
        paths = own_path.parent.iterdir() if own_path.parent.is_dir() else ()
        found = {path.name: str(path) for path in paths if path != own_path and not path.is_symlink()}
        written = {name: _find_time(Path(path) / file) for name, path in found.items()}
    times = {name: time for name, time in written.items() if time is not None}
    return {name: found[name] for name in sorted(times, key=lambda name: (-times[name], name))}


def _find_time(file: Path) -> float | None:
    """Return when a file was written; None if there is none, and 0 if that cannot be seen."""
    try:
        return file.lstat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0.0


def _find_in_store(bucket: Bucket) -> Iterator[tuple[str, float]]:
    """Yield the run folders that a store lists, by their journals."""
    found: dict[str, float] = {}
    for entry in bucket.list():  # sorted: a folder's commits come before those of the folders in it
        if match := RUN.fullmatch(entry.name):
            folder = match[1] or ""
            found[folder] = max(found.get(folder, 0.0), entry.modified.timestamp())
    for folder, written in found.items():
        if not any(folder.startswith(f"{outside}/".lstrip("/")) for outside in found if outside != folder):
            yield str(bucket.address.inside(folder)), written

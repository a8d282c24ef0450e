"""Copy a run from one place to another, disk or object store, with every digest checked."""

import hashlib
from os import PathLike
from typing import NamedTuple

from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import MOST_FILE_BYTES
from ckcv_ray.storage.folder import MANIFEST, RunFolder


class Copied(NamedTuple):
    """What was copied."""

    run_id: str  # of the run
    to: str  # where it is now, too
    files: int  # number of files
    bytes: int  # their bytes


def copy_run(source: str | PathLike[str], to: str | PathLike[str]) -> Copied:
    """Copy a run, finished or not; the copy is finished once all of its files are there, and are the same.

    A copy that was interrupted is completed by the same call.

    Args:
        source: run folder, a path or an address such as s3://bucket/runs/patients.
        to: where to copy it: an empty place, or one that holds the same run, which becomes as the source is.

    Raises:
        StoreError: there is no run, it is being written or damaged; or the place holds something else.
        InputError: the place cannot be written, or is the run folder itself.
    """
    origin, target = RunFolder(source), RunFolder(to)
    identity = origin.require()
    if origin.files.is_same(target.files):
        raise InputError(f"{str(origin)!r} is the run folder itself: name another place")
    if origin.files.lock.busy:
        raise StoreError(f"{str(origin)!r} is being written by a run: wait for it, or stop it")
    target.files.check_writable()
    target.holds(identity.run_id)
    files, size = _copy_folder(origin, target)
    return Copied(identity.run_id, str(target), files, size)


def _copy_folder(origin: RunFolder, target: RunFolder) -> tuple[int, int]:
    """Copy a run folder; return the number of files and of bytes."""
    finished = origin.finished  # asked once: a run that ends meanwhile is copied as one that goes on
    manifest = origin.manifest() if finished else {}
    names = origin.list_copied()
    target.acquire()
    try:
        target.reopen()
        for name in target.list_copied():
            if name not in names:
                formats.delete(target.files, name)
        written = {name: _copy_file(origin, target, name, manifest.get(name)) for name in names}
        there = RunFolder(str(target))  # read once more from where they are now
        if wrong := [name for name, (digest, _) in written.items() if there.sha256(name) != digest]:
            raise StoreError(f"{target.files.path(wrong[0])} is not what was copied: copy the run again")
        if finished:
            written[MANIFEST] = _copy_file(origin, target, MANIFEST, None)
    finally:
        target.release()
    return len(written), sum(size for _, size in written.values())


def _copy_file(origin: RunFolder, target: RunFolder, name: str, expected: str | None) -> tuple[str, int]:
    """Copy a file; return its SHA-256 and size.

    Raises:
        StoreError: it is damaged, or not as the manifest says.
    """
    with formats.guard_reading(origin.files, name):
        content = origin.files.read(name, MOST_FILE_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    if expected not in (None, digest):
        raise StoreError(
            f"{origin.files.path(name)} does not match the manifest: the copy is not finished; the command "
            "that made the run repairs it"
        )
    formats.write(target.files, name, content)
    return digest, len(content)

"""Files written from a run that are not part of it: the HTML report in its folder, and files elsewhere.

A report or form has a checksum in its last line, a comment, by which this package recognises its own files:
it replaces no others.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path

from ckcv_ray.errors import InputError, as_path
from ckcv_ray.storage.files import Files, LocalFiles, open_regular, write_atomically

REPORT = "report.html"
MAX_REPORT_BYTES = 1 << 28


def write_report(files: Files, page: str, out: str | PathLike[str] | None = None) -> str:
    """Write the HTML report with a checksum to ``out``, or into the folder, and return its path.

    The checksum is a last line with the SHA-256 of everything before it.

    Raises:
        InputError: it cannot be written, or would replace something other than a report.
    """
    content = add_checksum(page.encode())
    if out is None and not isinstance(files, LocalFiles):
        files.write(REPORT, content)
        return str(files.path(REPORT))
    final = files.path(REPORT) if out is None else out
    write_page(files, final, content, "a report")
    return str(final)


def is_written(file: Path) -> bool:
    """Return whether a file is a report, or a form, as it was written."""
    with suppress(OSError, ValueError), open_regular(file, MAX_REPORT_BYTES) as stream:
        return _is_intact(stream.read())
    return False


def report_intact(files: Files) -> bool:
    """Return whether the folder's report, if there is one, matches its checksum."""
    with suppress(OSError, ValueError):
        return REPORT not in files.list(REPORT) or _is_intact(files.read(REPORT, MAX_REPORT_BYTES))
    return False


def _is_intact(page: bytes) -> bool:
    return page == add_checksum(page[: -len(add_checksum(b""))])


def write_page(
    files: Files | None,
    out: str | PathLike[str],
    content: bytes,
    what: str,
    is_ours: Callable[[Path], bool] = is_written,
) -> None:
    """Write a file that is not part of the run; see ``check_page``.

    Raises:
        InputError: it cannot be written.
    """
    check_page(files, out, what, is_ours)
    try:
        write_atomically(Path(out), content)
    except OSError as error:
        raise InputError(f"cannot write {str(out)!r}: {error.strerror or error}") from None


def write_new(option: str, out: str | PathLike[str], content: bytes) -> None:
    """Write a file that an option names, which must not exist.

    Raises:
        InputError: it exists, even as a link that leads nowhere, or cannot be written.
    """
    final = as_path(option, out)
    if os.path.lexists(final):
        raise InputError(f"{option}={str(final)!r} exists: name another file, or remove it")
    try:
        write_atomically(final, content)
    except OSError as error:
        raise InputError(f"{option}={str(final)!r} cannot be written: {error.strerror or error}") from None


def check_page(
    files: Files | None, out: str | PathLike[str], what: str, is_ours: Callable[[Path], bool] = is_written
) -> None:
    """Raise InputError if writing a file would replace anything not written by this package.

    Args:
        files: files of the run folder; None if the page belongs to no run.
        out: path of the file.
        what: what such a file is, for the message.
        is_ours: returns whether a file may be replaced. The report in the folder always may.

    Raises:
        InputError: see above; or it is not a regular file, or is in the run folder.
    """
    final = as_path("out", out)
    if not final.is_file() and final.exists():
        raise InputError(f"cannot write {str(out)!r}: it is not a file")
    inside = None if files is None else files.inside(final)
    if inside not in (None, REPORT):
        raise InputError(f"out={str(out)!r} is in the run folder, where it can only be {REPORT}")
    if inside is None and final.is_file() and not is_ours(final):
        raise InputError(
            f"out={str(out)!r} exists, and is not {what} as ckcv wrote it: choose another name, or remove it"
        )


def add_checksum(page: bytes) -> bytes:
    """Return a page with a last line, an HTML comment, that has the SHA-256 of everything before it."""
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()

"""Files written from a run that are not part of it: the HTML report in its folder, and files elsewhere.

A report, and a form, has a checksum in a last line that is a comment, by which this package knows its own
files: it replaces no others.
"""

import hashlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import pyarrow as pa

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import Files, LocalFiles, check_regular, write_atomically
from ckcv_ray.validation import as_path

REPORT = "report.html"
MAX_REPORT_BYTES = 1 << 28


def write_report(files: Files, page: str, out: str | PathLike[str] | None = None) -> str:
    """Write the HTML report with a checksum to ``out``, or into the folder, and return its path.

    The checksum is a last line with the SHA-256 of everything before it.

    Raises:
        InputError: it cannot be written, or would replace something else than a report.
    """
    content = _with_checksum(page.encode())
    if out is None and not isinstance(files, LocalFiles):
        files.write(REPORT, content)
        return str(files.path(REPORT))
    final = str(files.path(REPORT)) if out is None else str(as_path("out", out))
    write_page(files, final, content, is_written, "a report")
    return final


def check_report(files: Files, out: str | PathLike[str] | None) -> None:
    """Raise InputError if a report cannot be written to ``out``, before it is made."""
    if out is not None:
        check_page(files, str(as_path("out", out)), is_written, "a report")


def is_written(file: Path) -> bool:
    """Return whether a file is a report, or a form, as it was written."""
    try:
        check_regular(file, MAX_REPORT_BYTES)
        return _is_intact(file.read_bytes())
    except (OSError, ValueError):
        return False


def report_intact(files: Files) -> bool:
    """Return whether the folder's report, if there is one, matches its checksum."""
    if REPORT not in files.list(REPORT):
        return True
    try:
        return _is_intact(files.read(REPORT, MAX_REPORT_BYTES))
    except (OSError, ValueError):
        return False


def _is_intact(page: bytes) -> bool:
    return page == _with_checksum(page[: -len(_with_checksum(b""))])


def write_form(files: Files, content: bytes, out: str | PathLike[str]) -> None:
    """Write a form with a checksum.

    Raises:
        InputError: it cannot be written, or would replace something else than a form.
    """
    write_page(files, str(as_path("out", out)), _with_checksum(content), is_written, "a form")


def check_form(files: Files, out: str | PathLike[str]) -> None:
    """Raise InputError if a form cannot be written to ``out``, before it is made."""
    check_page(files, str(as_path("out", out)), is_written, "a form")


def write_new(files: Files, option: str, content: bytes, out: str | PathLike[str]) -> str:
    """Write a file that does not exist yet, outside of the run folder, and return its path.

    Raises:
        InputError: it exists, is in the run folder, or cannot be written.
    """
    final = as_path(option, out)
    if final.exists() or final.is_symlink():
        raise InputError(f"{option}={str(out)!r} exists, and is not replaced: choose another name")
    write_page(files, str(final), content, is_written, "a form")
    return str(final)


def write_page(
    files: Files, out: str, content: bytes | pa.Buffer, is_ours: Callable[[Path], bool], what: str
) -> None:
    """Write a file that is not part of the run; see ``check_page``.

    Raises:
        InputError: it cannot be written.
    """
    check_page(files, out, is_ours, what)
    try:
        write_atomically(Path(out), content)
    except OSError as error:
        raise InputError(f"cannot write {out!r}: {error.strerror or error}") from None


def check_page(files: Files, out: str, is_ours: Callable[[Path], bool], what: str) -> None:
    """Raise InputError if writing a file would replace anything but one that this package wrote.

    Args:
        files: of the run folder.
        out: path of the file.
        is_ours: returns whether a file is one that may be replaced. The report in the folder always may.
        what: what such a file is, for the message.

    Raises:
        InputError: see above; or it is no regular file, or in the run folder.
    """
    final = as_path("out", out)
    if not final.is_file() and final.exists():
        raise InputError(f"cannot write {out!r}: it is not a file")
    inside = files.inside(final)
    if inside not in (None, REPORT):
        raise InputError(f"out={out!r} is in the run folder, where it can only be {REPORT}")
    if inside is None and final.is_file() and not is_ours(final):
        raise InputError(
            f"out={out!r} exists, and is not {what} as ckcv wrote it: choose another name, or remove it"
        )


def _with_checksum(page: bytes) -> bytes:
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()

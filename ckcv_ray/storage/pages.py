"""Files written from a run that are not part of it: the HTML report in its folder, and files elsewhere."""

import hashlib
from os import PathLike

import pyarrow as pa

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import Files, is_replaceable, write_atomically
from ckcv_ray.validation import as_path

REPORT = "report.html"
MOST_REPORT_BYTES = 1 << 28


def write_report(files: Files, page: str, out: str | PathLike[str] | None = None) -> str:
    """Write the HTML report with a checksum to ``out``, or into the folder, and return its path.

    The checksum is a last line with the SHA-256 of everything before it.

    Raises:
        InputError: it cannot be written, or would replace a file of the run.
    """
    final = str(files.path(REPORT)) if out is None else str(as_path("out", out))
    write_page(files, final, _with_checksum(page.encode()))
    return final


def report_intact(files: Files) -> bool:
    """Return whether the folder's report, if there is one, matches its checksum."""
    if REPORT not in files.list(REPORT):
        return True
    try:
        content = files.read(REPORT, MOST_REPORT_BYTES)
    except (OSError, ValueError):
        return False
    return content == _with_checksum(content[: -len(_with_checksum(b""))])


def write_page(files: Files, out: str, content: bytes | pa.Buffer) -> None:
    """Write a file that is not part of the run.

    Raises:
        InputError: it cannot be written, is not a regular file, or would replace a file of the run.
    """
    final = as_path("out", out)
    if not is_replaceable(final):
        raise InputError(f"cannot write {out!r}: it is not a file")
    if files.name_of(final) not in (None, REPORT):
        raise InputError(f"out={out!r} is in the run folder, where it can only be {REPORT}")
    try:
        write_atomically(final, content)
    except OSError as error:
        raise InputError(f"cannot write {out!r}: {error.strerror or error}") from None


def _with_checksum(page: bytes) -> bytes:
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()

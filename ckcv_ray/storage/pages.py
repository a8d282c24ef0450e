"""Files beside a run's own: the HTML page in its folder, and what is written elsewhere from it."""

import hashlib
from os import PathLike

import pyarrow as pa

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import Files, is_replaceable, write_whole
from ckcv_ray.validation import as_path

REPORT = "report.html"
MOST_REPORT_BYTES = 1 << 28


def write_report(files: Files, page: str, out: str | PathLike[str] | None = None) -> str:
    """Write the HTML page, sealed, to ``out``, or into the folder; where it is now.

    The seal is a last line with the SHA-256 of all before it.

    Raises:
        InputError: it cannot be written, or would replace a file of the run.
    """
    final = str(files.path(REPORT)) if out is None else str(as_path("out", out))
    write_beside(files, final, _sealed(page.encode()))
    return final


def report_whole(files: Files) -> bool:
    """Tell whether the folder's report, if there is one, is as it was written."""
    if REPORT not in files.list(REPORT):
        return True
    try:
        content = files.read(REPORT, MOST_REPORT_BYTES)
    except (OSError, ValueError):
        return False
    return content == _sealed(content[: -len(_sealed(b""))])


def write_beside(files: Files, out: str, content: bytes | pa.Buffer) -> None:
    """Write a file that is none of the run's.

    Raises:
        InputError: it cannot be written, is no regular file, or would be one of the run's.
    """
    final = as_path("out", out)
    if not is_replaceable(final):
        raise InputError(f"cannot write {out!r}: it is not a file")
    if files.name_of(final) not in (None, REPORT):
        raise InputError(f"out={out!r} lies in the run folder: there it can only be {REPORT}")
    try:
        write_whole(final, content)
    except OSError as error:
        raise InputError(f"cannot write {out!r}: {error.strerror or error}") from None


def _sealed(page: bytes) -> bytes:
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()

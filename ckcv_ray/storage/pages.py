"""Files written from a run that are not part of it: the HTML report in its folder, and files elsewhere.

A report, and a form, has a checksum, by which this package knows its own files: it replaces no others. A text
has it in a last line that is a comment, a Word document in the comment of the archive that it is.
"""

import hashlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import pyarrow as pa

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import Files, LocalFiles, check_regular, is_replaceable, write_atomically
from ckcv_ray.validation import as_path

REPORT = "report.html"
MOST_REPORT_BYTES = 1 << 28
ARCHIVE, NO_COMMENT = (
    b"PK",
    b"\0\0",
)  # how a zip archive begins; and its last bytes, the length of its comment


def write_report(files: Files, page: str, out: str | PathLike[str] | None = None) -> str:
    """Write the HTML report with a checksum to ``out``, or into the folder, and return its path.

    The checksum is a last line with the SHA-256 of everything before it.

    Raises:
        InputError: it cannot be written, or would replace something else than a report.
    """
    content = _with_checksum(page.encode())
    if out is None and not isinstance(files, LocalFiles):
        return _write_inside(files, content)
    final = str(files.path(REPORT)) if out is None else str(as_path("out", out))
    write_page(files, final, content, is_report, "a report")
    return final


def _write_inside(files: Files, content: bytes) -> str:
    """Write the report into a folder on an object store, which only its writer may do."""
    files.lock.acquire()
    try:
        files.write(REPORT, content)
    finally:
        files.lock.release()
    return str(files.path(REPORT))


def write_pdf(files: Files, content: bytes, out: str | PathLike[str]) -> None:
    """Write a report as a PDF, with a checksum behind its end, which readers of PDF do not look at.

    Raises:
        InputError: it cannot be written, or would replace something else than such a PDF.
    """
    write_page(files, str(as_path("pdf", out)), _with_mark(content), is_pdf, "a PDF")


def check_pdf_path(files: Files, out: str | PathLike[str] | None) -> None:
    """Raise InputError if a PDF cannot be written to ``out``, before it is made."""
    if out is None:
        return
    if files.find_name(as_path("pdf", out)) is not None:
        raise InputError(f"pdf={str(out)!r} is in the run folder, which holds no PDF: choose another place")
    check_page(files, str(as_path("pdf", out)), is_pdf, "a PDF")


def is_pdf(file: Path) -> bool:
    """Return whether a file is a report as ``write_pdf`` wrote it."""
    content = _read_page(file)
    return content.startswith(b"%PDF-") and content == _with_mark(content[: -len(_with_mark(b""))])


def check_report(files: Files, out: str | PathLike[str] | None) -> None:
    """Raise InputError if a report cannot be written to ``out``, before it is made."""
    if out is not None:
        check_page(files, str(as_path("out", out)), is_report, "a report")


def is_report(file: Path) -> bool:
    """Return whether a file is a report as it was written."""
    return _is_intact(_read_page(file))


def report_intact(files: Files) -> bool:
    """Return whether the folder's report, if there is one, matches its checksum."""
    if REPORT not in files.list(REPORT):
        return True
    try:
        content = files.read(REPORT, MOST_REPORT_BYTES)
    except (OSError, ValueError):
        return False
    return _is_intact(content)


def _read_page(file: Path) -> bytes:
    """Return what a file holds; nothing, as no page does, if it cannot be read."""
    try:
        check_regular(file, MOST_REPORT_BYTES)
        return file.read_bytes()
    except (OSError, ValueError):
        return b""


def _is_intact(page: bytes) -> bool:
    return page == _with_checksum(page[: -len(_with_checksum(b""))])


def write_form(files: Files, content: bytes, out: str | PathLike[str]) -> None:
    """Write a form, a text or an archive without a comment, with a checksum.

    Raises:
        InputError: it cannot be written, or would replace something else than a form.
    """
    write_page(files, str(as_path("out", out)), _seal(content), is_intact_form, "a form")


def check_form(files: Files, out: str | PathLike[str]) -> None:
    """Raise InputError if a form cannot be written to ``out``, before it is made."""
    check_page(files, str(as_path("out", out)), is_intact_form, "a form")


def is_intact_form(file: Path) -> bool:
    """Return whether a file is a form as it was written."""
    content = _read_page(file)
    if not content.startswith(ARCHIVE):
        return _is_intact(content)
    return content == _seal(content[: -len(_describe_archive(b"")) - len(NO_COMMENT)] + NO_COMMENT)


def write_new(files: Files, option: str, content: bytes, out: str | PathLike[str]) -> str:
    """Write a file that does not exist yet, outside of the run folder, and return its path.

    Raises:
        InputError: it exists, is in the run folder, or cannot be written.
    """
    final = as_path(option, out)
    if final.exists() or final.is_symlink():
        raise InputError(f"{option}={str(out)!r} exists, and is not replaced: choose another name")
    write_page(files, str(final), content, is_intact_form, "a form")
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
    if not is_replaceable(final):
        raise InputError(f"cannot write {out!r}: it is not a file")
    inside = files.find_name(final)
    if inside not in (None, REPORT):
        raise InputError(f"out={out!r} is in the run folder, where it can only be {REPORT}")
    if inside is None and final.is_file() and not is_ours(final):
        raise InputError(
            f"out={out!r} exists, and is not {what} as ckcv wrote it: choose another name, or remove it"
        )


def _seal(content: bytes) -> bytes:
    """Return a text, or an archive without a comment, with its checksum."""
    if not content.startswith(ARCHIVE):
        return _with_checksum(content)
    comment = _describe_archive(content)
    return content[: -len(NO_COMMENT)] + len(comment).to_bytes(2, "little") + comment


def _describe_archive(content: bytes) -> bytes:
    return b"SHA-256 without this comment: " + hashlib.sha256(content).hexdigest().encode()


def _with_mark(content: bytes) -> bytes:
    return (
        content
        + b"%% ckcv report, SHA-256 of all before: %s\n" % hashlib.sha256(content).hexdigest().encode()
    )


def _with_checksum(page: bytes) -> bytes:
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()

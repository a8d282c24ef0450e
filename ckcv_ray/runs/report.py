"""The HTML page of a run folder, made from the folder alone: nothing is unpickled, downloaded or executed."""

from os import PathLike

from ckcv_ray.runs.load import load, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_report, write_report


def report(folder: str | PathLike[str], out: str | PathLike[str] | None = None) -> str:
    """Write an HTML report of a finished run, or of the scores of a procedure; return its path.

    The report is made from the run folder alone. Nothing is unpickled; the page loads nothing and contains no
    script.

    Args:
        folder: run folder.
        out: file to write; by default report.html in the folder.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
        InputError: the report cannot be written, or would replace a file that is no report.
    """
    run = RunFolder(folder)
    run.require()
    check_report(run.files, out)
    return write_report(run.files, make_page(folder), out)


def make_page(out: str | PathLike[str], result: Result | None = None) -> str:
    """Return the HTML page of the finished run in ``out``.

    Args:
        out: run folder.
        result: its result, if already loaded.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
    """
    result = result or load(out)
    log = None if result.finished is None else replay(out, result.problem)
    from ckcv_ray.reports.page import page  # matplotlib is slow to import, and creates folders

    return page(result, log, RunFolder(out).sha256(MANIFEST))

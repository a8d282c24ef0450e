"""The HTML page of a run and its figures."""

from os import PathLike

from ckcv_ray.runs.load import load_run
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import write_report


def report(folder: str | PathLike[str], out: str | PathLike[str] | None = None) -> str:
    """Write one HTML page about a finished run; return where it is.

    Made from the folder's files alone; nothing is unpickled, and the page loads nothing and runs no script.

    Args:
        folder: the run folder.
        out: the file to write; by default report.html in the folder.

    Raises:
        StoreError: there is no finished run, or it is damaged.
        InputError: the page cannot be written, or would replace a file of the run.
    """
    result = load_run(folder)
    from ckcv_ray.reports.page import page  # matplotlib is slow to import, and makes folders of its own

    return write_report(RunFolder(folder).files, page(folder, result), out)


__all__ = ["report"]

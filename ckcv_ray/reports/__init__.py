"""HTML report of a run, and its figures."""

from os import PathLike

from ckcv_ray.runs.load import load_run, load_scores
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_report, write_report
from ckcv_ray.study import SCORED


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
    identity = run.require()
    check_report(run.files, out)
    if identity.study.kind == SCORED:
        scores = load_scores(folder)
        from ckcv_ray.reports.scores_page import scores_page

        return write_report(run.files, scores_page(folder, scores), out)
    result = load_run(folder)
    from ckcv_ray.reports.page import page  # matplotlib is slow to import, and creates folders

    return write_report(run.files, page(folder, result), out)


__all__ = ["report"]

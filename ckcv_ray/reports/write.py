"""The HTML page of a run, written from its folder alone: nothing is unpickled, downloaded or fitted."""

from os import PathLike

from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.reports.about import NOTHING_SAID, About
from ckcv_ray.reports.page import page
from ckcv_ray.runs.load import load, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.storage import formats
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_report, write_report


def report(
    folder: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    title: str = "",
    author: str = "",
    purpose: str = "",
    short: bool = False,
) -> str:
    """Write an HTML report of a finished run, or of the scores of a procedure; return its path.

    The report is made from the run folder alone. Nothing is unpickled or fitted; the page loads nothing and
    contains no script.

    Args:
        folder: run folder.
        out: file to write; by default report.html in the folder.
        title: heading; by default one with the target and the table.
        author: who answers for the report.
        purpose: what the model is for, paragraphs with empty lines between them.
        short: make a single page: the number, its conditions, the rows and the performance.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
        InputError: the report cannot be written, or would replace a file that is no report, or a text is too
            long.
    """
    run = RunFolder(folder)
    about = About(title, author, purpose, short)
    about.check()
    run.require()
    check_report(run.files, out)
    return write_report(run.files, make_page(folder, about=about), out)


def make_page(out: str | PathLike[str], result: Result | None = None, about: About = NOTHING_SAID) -> str:
    """Return the HTML page of the finished run in ``out``.

    Args:
        out: run folder.
        result: its result, if already loaded.
        about: what a person says of the report.

    Raises:
        StoreError: the folder holds no finished run, or it is damaged.
    """
    result = result or load(out)
    log = None if result.finished is None else replay(out, result.problem)
    folder = RunFolder(out)
    digest, held_out = folder.sha256(MANIFEST), None
    if result.study.save_predictions:
        columns = list_held_out_columns(result.problem)
        held_out = formats.read_table(folder.files, HELD_OUT, result.run_id, columns)
    return page(result, log, digest, about, held_out)

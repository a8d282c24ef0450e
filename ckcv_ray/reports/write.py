"""The page of a run, written from its folder alone: nothing is unpickled, downloaded or fitted."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.reports.about import NOTHING_SAID, About
from ckcv_ray.reports.facts import facts
from ckcv_ray.reports.figures import Picture, draw_performance, draw_scores, draw_search
from ckcv_ray.reports.render import make_title, render_markdown, render_page
from ckcv_ray.reports.sections import tell_failures
from ckcv_ray.runs.judged import judge_rows, read_judged
from ckcv_ray.runs.load import load, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.settings import rank_settings
from ckcv_ray.storage import formats
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_report, write_report

MARKDOWN = ".md"


def report(
    folder: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    title: str = "",
    author: str = "",
    purpose: str = "",
    short: bool = False,
) -> str:
    """Write a report of a finished run, or of the scores of a procedure, as HTML; return its path.

    The report is made from the run folder alone. Nothing is unpickled or fitted; the page loads nothing and
    contains no script.

    Args:
        folder: run folder.
        out: file to write; by default report.html in the folder. A name that ends in .md is one of Markdown,
            without figures.
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
    if out is not None and Path(out).suffix.lower() == MARKDOWN:
        return write_report(run.files, make_markdown(folder, about), out)
    return write_report(run.files, make_page(folder, about=about), out)


def make_markdown(folder: str | PathLike[str], about: About = NOTHING_SAID) -> str:
    """Return all that a finished run in a folder tells as Markdown, without figures; see ``make_page``."""
    result = load(folder)
    return render_markdown(make_title(result, about), facts(result, manifest=_seal(folder)), about)


def _seal(folder: str | PathLike[str]) -> dict[str, str]:
    return {MANIFEST: RunFolder(folder).sha256(MANIFEST)}


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
    folder = RunFolder(out)
    held_out = None
    if result.study.save_predictions:
        columns = list_held_out_columns(result.problem)
        held_out = formats.read_table(folder.files, HELD_OUT, result.run_id, columns)
    if result.finished is None:
        judged, pictures = read_judged(result, held_out), dict[str, list[Picture]]()
        settings, failures = rank_settings(result), result.failures
        for score in result.scores:
            pictures[f"score-{score.name}"] = [*draw_scores(result, score, settings)]
    else:
        queue = replay(out, result.problem)
        judged, failures = judge_rows(result), tuple(queue.failures())
        pictures = {} if result.task.has_numbers else draw_search(result, queue)
    pictures["performance"] = [*draw_performance(result, judged)]
    told = [*facts(result, judged, _seal(out)), *tell_failures(failures, result.problem)]
    drawn = [replace(section, figures=pictures.get(section.name, ())) for section in told]
    return render_page(result, drawn, about)

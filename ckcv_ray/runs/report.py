"""What is written of a run folder from the folder alone: nothing is unpickled, downloaded or fitted.

It is an HTML page, or the form of a reporting guideline, with a file for the answers that only people have.
"""

from os import PathLike
from pathlib import Path

from ckcv_ray.errors import InputError, explain_removed
from ckcv_ray.records.judged import HELD_OUT, list_held_out_columns
from ckcv_ray.reports.about import NOTHING_SAID, About
from ckcv_ray.reports.facts import Stored
from ckcv_ray.reports.forms import (
    ANSWER_SUFFIXES,
    FORM_WRITERS,
    FilledForm,
    Form,
    fill_items,
    parse_answers,
    read_form,
    write_template,
)
from ckcv_ray.runs.load import load, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import check_regular
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import check_form, check_report, write_form, write_new, write_report
from ckcv_ray.study import CERTIFIED
from ckcv_ray.validation import as_path, quote


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
    from ckcv_ray.reports.page import page  # matplotlib is slow to import, and creates folders

    digest, held_out = folder.sha256(MANIFEST), None
    if result.study.save_predictions:
        columns = list_held_out_columns(result.problem)
        held_out = formats.read_table(folder.files, HELD_OUT, result.run_id, columns)
    return page(result, log, digest, about, held_out)


FilePath = str | PathLike[str]
MAX_ANSWERS_BYTES = 1 << 22


def fill_form(folder: FilePath, name: str, out: FilePath, answers: FilePath | None = None) -> FilledForm:
    """Fill the form of a guideline from a finished run and from a person's answers, and write it.

    It is made from the run folder alone: nothing is fitted, and no model is applied.

    Args:
        folder: run folder.
        name: of the guideline: "tripod-ai", "annex-iv", "stard-ai", "ts-4213" or "model-card".
        out: file to write; its suffix tells the format: .md or .html.
        answers: file with answers to items, .toml or .md; see ``write_answers``.

    Raises:
        InputError: there is no such guideline, format or item, the answers cannot be read, or ``out``
            cannot be written or exists and is no form.
        StoreError: the folder holds no finished run with a certification, or it is damaged.
    """
    form, suffix = read_form(name), check_suffix("out", out, tuple(FORM_WRITERS))
    run = RunFolder(folder)
    run.require(CERTIFIED)
    check_form(run.files, out)
    given = {} if answers is None else read_answers(answers, form)
    result = load(folder, CERTIFIED)
    if result.task.has_numbers:
        raise InputError(
            f"{str(folder)!r} predicts numbers, and these forms are about classifiers: ckcv report describes "
            "it"
        )
    filled = fill_items(form, Stored(result, run.manifest_digest()), given)
    write_form(run.files, FORM_WRITERS[suffix](filled), out)
    return filled


def write_answers(folder: FilePath, name: str, out: FilePath) -> str:
    """Write a file for the answers to every item of a form that only a person can fill; return its path.

    Args:
        folder: run folder, in which nothing is written.
        name: of the guideline, as for ``fill_form``.
        out: file to write, .toml or .md, which must not exist: it may hold answers.

    Raises:
        InputError: there is no such guideline or format, or the file exists or cannot be written.
    """
    form, suffix = read_form(name), check_suffix("template", out, ANSWER_SUFFIXES)
    return write_new(RunFolder(folder).files, "template", write_template(suffix, form).encode(), out)


def read_answers(file: FilePath, form: Form) -> dict[str, str]:
    """Return the answers in a file as ``write_answers`` makes one, by the numbers of items."""
    path, _ = as_path("answers", file), check_suffix("answers", file, ANSWER_SUFFIXES)
    try:
        check_regular(path, MAX_ANSWERS_BYTES)
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"answers={str(file)!r} cannot be read: {error}") from None
    return parse_answers(path.name, text, form)


def check_suffix(option: str, file: FilePath, allowed: tuple[str, ...]) -> str:
    """Return the suffix of a file, which tells its format, if it is one of those allowed."""
    suffix = Path(file).suffix.lower()
    if suffix not in allowed:
        gone, ends = explain_removed(f"{option}={suffix}"), " or ".join(allowed)
        raise InputError(gone or f"{option}={quote(str(file))}: the name has to end in {ends}")
    return suffix

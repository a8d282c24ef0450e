"""Forms of reporting guidelines for the run in a folder, and files for the answers that only people have."""

from os import PathLike
from pathlib import Path

from ckcv_ray.errors import InputError
from ckcv_ray.removed import explain_removed
from ckcv_ray.reports.answers import ANSWER_SUFFIXES, parse_answers, write_template
from ckcv_ray.reports.facts import Stored
from ckcv_ray.reports.form_pages import FORM_WRITERS
from ckcv_ray.reports.forms import FilledForm, Form, fill_items, read_form
from ckcv_ray.runs.load import load
from ckcv_ray.storage.files import check_regular
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pages import check_form, write_form, write_new
from ckcv_ray.study import CERTIFIED
from ckcv_ray.validation import as_path, quote

FilePath = str | PathLike[str]
MOST_ANSWERS_BYTES = 1 << 22


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
    stored = Stored(result, run.manifest_digest())
    filled = fill_items(form, stored, given)
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
    """Return the answers in a file, by the numbers of items.

    Raises:
        InputError: the file cannot be read, or is not as ``write_answers`` makes one.
    """
    path, _ = as_path("answers", file), check_suffix("answers", file, ANSWER_SUFFIXES)
    try:
        check_regular(path, MOST_ANSWERS_BYTES)
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"answers={str(file)!r} cannot be read: {error}") from None
    return parse_answers(path.name, text, form)


def check_suffix(option: str, file: FilePath, allowed: tuple[str, ...]) -> str:
    """Return the suffix of a file, which tells its format.

    Raises:
        InputError: it is not one of those allowed.
    """
    suffix = Path(file).suffix.lower()
    if suffix not in allowed:
        if gone := explain_removed(f"{option}={suffix}"):
            raise InputError(gone)
        raise InputError(f"{option}={quote(str(file))}: the name has to end in {' or '.join(allowed)}")
    return suffix

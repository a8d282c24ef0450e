"""Commands report and export, with the options of a report's page and of the form of a guideline."""

import os
import tomllib
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ckcv_ray import errors
from ckcv_ray.apps import forms
from ckcv_ray.claims.rules import ONE_MODEL, find_member
from ckcv_ray.cli.data import choose_rule
from ckcv_ray.cli.options import Folder, make_flag, make_option
from ckcv_ray.cli.output import say
from ckcv_ray.errors import InputError, RunError, check_choice, convert_errors, plain, pluralize, quote
from ckcv_ray.learners.base import Model
from ckcv_ray.learners.choice import PreparedModel
from ckcv_ray.learners.sklearn.store import FittedEstimator
from ckcv_ray.reports.facts import facts
from ckcv_ray.reports.render import report as write_report
from ckcv_ray.runs.finished import load
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.folder import MANIFEST, RunFolder
from ckcv_ray.storage.pages import add_checksum, check_page, write_new, write_page
from ckcv_ray.study.study import Study

PANEL, PAGE_PANEL = "Forms", "Page"
MAX_TEXT_BYTES = 1 << 22
CHECKED_ROWS, SEED = 10_000, 0
MIN_EQUAL = 0.99  # share of rows on which an exported file has to agree with the model
FilePath = str | Path


def read_text(option: str, file: FilePath) -> str:
    """Return the text of a file that an option names.

    Raises:
        InputError: it cannot be read, is not UTF-8 text, or is too long.
    """
    message = f"{option}={str(file)!r} cannot be read"
    with convert_errors(InputError, message), Path(file).open("rb") as opened:
        content = opened.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise ValueError(f"it has more than {MAX_TEXT_BYTES >> 20} MiB")
        return content.decode()


def report(
    folder: Folder,
    title: str = make_option("Heading of the report.", "the target and the table", PAGE_PANEL, value=""),
    author: str = make_option(
        "Who answers for the report, such as 'Dr. A. Meier'.", panel=PAGE_PANEL, value=""
    ),
    purpose: Path | None = make_option(
        "Text file that says what the model is for; an empty line begins a paragraph.", panel=PAGE_PANEL
    ),
    short: bool = make_flag(
        "--short", "Make one page: the number, its conditions, the rows and the performance.", PAGE_PANEL
    ),
    form: str | None = typer.Option(
        None,
        "--for",
        metavar="GUIDELINE",
        help="Fill the form of a guideline instead: tripod-ai, annex-iv (of the EU AI Act), stard-ai, "
        "ts-4213 (ISO/IEC) or model-card. It is not a statement of conformity.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
    answers: Path | None = make_option(
        "Answers to items that only a person can fill: a .toml file.", panel=PANEL
    ),
    template: Path | None = make_option("Write a .toml file with those items, for --answers.", panel=PANEL),
    strict: bool = make_flag(
        "--strict", "End with code 1 if items are left that a person has to fill.", PANEL
    ),
    out: Path | None = make_option("File to write: .html, or .md for Markdown.", "report.html in the folder"),
) -> None:
    """Write an HTML report of a finished run, or the form of a reporting guideline.

    The report is one file, made from the run folder alone: the number to quote, data, performance, claims,
    figures, time. It loads nothing and contains no script; nothing is unpickled or fitted. A form has the
    items of a guideline, filled from the run or marked as a person's to fill.

        ckcv report runs/patients
        ckcv report runs/patients --author 'Dr. A. Meier' --purpose aim.txt
        ckcv report runs/patients --short --out summary.html
        ckcv report runs/patients --for tripod-ai --template answers.toml
        ckcv report runs/patients --for tripod-ai --answers answers.toml --strict
    """
    of_form = {"answers": answers, "template": template, "strict": strict}
    of_page = {"title": title, "author": author, "purpose": purpose, "short": short}
    if lost := [name for name, value in (of_page if form else of_form).items() if value]:
        about = "the page: leave it out, or --for" if form else "a form: add a guideline, as --for tripod-ai"
        raise InputError(f"--{lost[0]} is about {about}")
    if form is not None:
        return _make_form(folder, form, out, answers, template, strict)
    text = "" if purpose is None else read_text("purpose", purpose)
    os.environ.pop("MPLBACKEND", None)  # a page needs no backend of matplotlib, and this may name none
    page = write_report(folder, out, title=title, author=author, purpose=text, short=short)
    return say(f"report: {page}")


def _make_form(
    folder: str, form: str, out: Path | None, answers: Path | None, template: Path | None, strict: bool
) -> None:
    if out is None and template is None:
        raise InputError(f"for={form!r} needs --out, the form to write: a name ending in .md or .html")
    if template is not None:
        asked = forms.read_form(form)
        if os.path.lexists(errors.as_path("template", template)):
            raise InputError(f"template={str(template)!r} exists: name another file, or remove it")
        lines = [f"# Answers to items of {asked.title}. An empty answer leaves an item open.\n"]
        lines += [f'\n# {one.text}\n# {one.ask}\n"{one.number}" = ""\n' for one in asked.item if one.ask]
        write_page(RunFolder(folder).files, template, "".join(lines).encode(), "a form")
        say(f"template: {template}")
    if out is not None:
        filled = fill_form(folder, form, out, answers)
        say(f"form: {out}: {filled.counts}")
        if strict and (left := filled.open_numbers):
            say(f"{pluralize(len(left), 'item')} that a person has to fill: {', '.join(left)}")
            raise typer.Exit(1)


def fill_form(
    folder: FilePath, name: str, out: FilePath, answers: FilePath | None = None
) -> forms.FilledForm:
    """Fill the form of a guideline from a finished run and from a file of answers, and write it.

    The form is made from the run folder alone: nothing is fitted, and no model is applied. A person answers
    in TOML, with one text for each number of an item: ``"5a" = "..."``. An empty answer is no answer.

    Raises:
        InputError: there is no such guideline, format or item, the answers cannot be read, or ``out``
            cannot be written, or exists and is not a form.
        StoreError: the folder holds no finished run with a certification, or it is damaged.
    """
    form, suffix = forms.read_form(name), Path(out).suffix.lower()
    if suffix not in forms.SUFFIXES:
        raise InputError(f"out={quote(str(out))}: the name has to end in {' or '.join(forms.SUFFIXES)}")
    given: dict[str, str] = {}
    if answers is not None:
        text, file = read_text("answers", answers), Path(answers).name
        with convert_errors(InputError, f"answers={file!r} is not TOML with quoted text for each item"):
            found = errors.read_as(dict[str, str], tomllib.loads(text))
        given = {number: answer for number, answer in found.items() if answer.strip()}
    run = RunFolder(folder)
    check_page(run.files, out, "a form")
    result = load(folder, Study.kind)
    if not result.task.classes:
        raise InputError(
            f"{str(folder)!r} predicts numbers, and these forms are about classifiers: ckcv report describes "
            "it"
        )
    told = facts(result, manifest={MANIFEST: run.manifest_digest()})
    filled = forms.fill_items(form, result.run_id, told, given, suffix)
    write_page(run.files, out, add_checksum(filled.content), "a form")
    return filled


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="File to write.", show_default=False)],
    to: str = make_option("Format: skops.", "skops", value="skops"),
    refit: bool = make_flag("--refit", "The model fitted on all rows that were not held out."),
    full: bool = make_flag("--full", "The model fitted on all rows."),
    member: int | None = make_option("The member of F* of split N."),
) -> None:
    """Write a single model of a finished run or evaluation as a file for other programs.

    That is the model that ckcv predict uses after --certify holdout and after ckcv evaluate --refit best, or
    the one that is named. The file takes the columns that were learned from, as numbers in their order, and
    gives class numbers. It is compared with the model on 10,000 rows. Nothing is proven about what other
    programs make of it.

        ckcv export patients_run --out model.skops
        ckcv export patients_run --full --out model.skops
    """
    check_choice("to", to, ["skops"])
    by, _ = choose_rule(vote=False, member=member, all_members=False, refit=refit, full=full, seed=None)
    result = load(folder)
    agreed = errors.format_percent(write_model(result, out, by))
    say(f"{result.rule(by).classifier()}: {out}, in the format {to}")
    if full:
        say(result.claim_for(result.rule("full")))
    say(f"agrees with the model on {agreed} of {CHECKED_ROWS:,} rows like those of the table")
    say(f"columns, in this order: {plain(', '.join(result.task.features))}")
    if result.task.classes:
        listed = ", ".join(f"{number} = {label}" for number, label in enumerate(result.task.classes))
        say(f"classes: {plain(listed)}")


def convert_model(model: Model) -> object:
    """Return a fitted estimator of scikit-learn that predicts class numbers, or numbers, as a model does.

    A Gaussian SVM becomes a scaling and an SVC, fitted on two rows, with the same support vectors and
    coefficients put in their place.

    Raises:
        InputError: there is none; the message says why.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from ckcv_ray.learners.svm.model import SVMModel  # imports numba

    while isinstance(model, PreparedModel):
        if model.encoder is not None:
            raise InputError(
                "the model's columns are encoded (categories, dates or gaps), which an exported file would "
                "lack: use ckcv predict, or run on columns of numbers without gaps"
            )
        model = model.model
    if isinstance(model, FittedEstimator) and not model.foreign:
        return model.estimator
    if not isinstance(model, SVMModel) or model.n_classes != 2:
        kind = type(model.estimator if isinstance(model, FittedEstimator) else model).__name__
        raise InputError(
            f"a model of {kind} cannot be exported: estimators of scikit-learn can, and the SVM of two "
            "classes"
        )
    scaler = StandardScaler()
    centre, scale = model.scaling
    scaler.mean_, scaler.scale_, scaler.var_ = centre, scale, scale**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(centre), len(model.vectors)
    (dual_coef,), vectors = model.dual_coef, model.scaling.apply(model.vectors)
    positive = dual_coef > 0
    order = np.argsort(positive, kind="stable")  # the first class comes first
    svc = SVC(C=model.C, gamma=model.gamma).fit(vectors[[positive.argmin(), positive.argmax()]], [0, 1])
    vars(svc).update(
        _n_support=np.bincount(positive).astype(np.int32),
        support_=model.support[order].astype(np.int32),
        support_vectors_=vectors[order],
        dual_coef_=dual_coef[None, order],
        _dual_coef_=-dual_coef[None, order],  # libsvm takes the first class as +1
        intercept_=model.offset,
        _intercept_=-model.offset,
        shape_fit_=vectors.shape,
    )
    return make_pipeline(scaler, svc)


def write_model(result: Result, out: str | Path, by: str = "auto") -> float:
    """Write a single model of a finished run as an estimator for skops, and compare the file with it.

    Return the share of ``CHECKED_ROWS`` rows on which the file agrees with the model. The rows are drawn from
    the table; half of them have noise added to each column, a tenth of its deviation.

    Args:
        result: the run's result.
        out: the file to write.
        by: which model: "auto" for what rows are classified with, "refit", "full" or "member:7".

    Raises:
        InputError: it is not a single model, or cannot be written in this way.
        RunError: the file gives other labels than the model.
    """
    import skops.io

    rule = result.rule(by)
    if rule.cut_off is not None:
        raise InputError(
            "what is proven is about a cut-off of the model's scores, which the file would lack: --refit "
            "exports the model with its own cut-off"
        )
    number = find_member(rule.name)
    if number < 0 and rule.name not in ONE_MODEL:
        raise InputError(
            f"{rule.classifier()} is not a single model: choose --member 0 or --refit after --certify holdout"
        )
    model = rule.ensemble(result.models).members[max(0, number)].model
    content = skops.io.dumps(convert_model(model))
    written = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    X, rng = result.task.X, np.random.default_rng(SEED)
    rows = X[rng.integers(len(X), size=CHECKED_ROWS)]
    rows[::2] += rng.normal(size=rows[::2].shape) * X.std(axis=0) / 10
    share = float(np.mean(np.isclose(rule.predict(result.models, rows).label, written.predict(rows))))
    if share < MIN_EQUAL:
        raise RunError(
            f"not written: the file agrees with the model on only {errors.format_percent(share)} of the rows"
        )
    write_new("out", out, content)
    return share

"""Options of studies, with a certification and without, from the fields of their parts (``core.options``)."""

from collections.abc import Iterable, Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from ckcv_ray.cli.options import flag, make_option
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, options
from ckcv_ray.core.resampling.parse import FORMS
from ckcv_ray.core.scores import SCORE_NAMES
from ckcv_ray.learners import AnyEstimator
from ckcv_ray.study import SLOTS, Study, list_options, list_parts, read_toml
from ckcv_ray.validation import boolean

RESAMPLING = (
    "How rows are divided. In ckcv run, with a certification: complete (random splits for each k, the "
    "paper's method) or rotation (the k splits of one shuffle, conventional k-fold cross validation). In "
    f"ckcv evaluate, without one: {FORMS}; those that are nested select settings inside each training set, "
    "by --select-by."
)
NUMBERS = {Kind.REGRESSION}
SLOT_PARTS = {
    "learner": (
        "Learner to fit: {}; or any other of scikit-learn, such as sklearn.naive_bayes:BernoulliNB. Several, "
        "such as a,b, are compared with each other; all compares those that suit the size of the table.",
        "Study",
    ),
    "resampling": (RESAMPLING, "Study"),
    "criterion": (
        "What is minimised over the candidates. error: the bound on the error, the paper's. balanced: the "
        "mean of the bounds on each class's error. cost:sick=10,healthy=1: the bound on a decision's cost. "
        "mean_error: the share of wrong rows itself, which is no bound.",
        "Study",
    ),
    "search": (
        "How candidates are compared: {}. race drops a candidate once it is provably beaten: its winner is "
        "the best of all. budget compares them in rounds within an effort, and says how many it has not "
        "excluded. auto races where that is cheap by the number of rows and candidates.",
        "Study",
    ),
    "certify": (
        "Source of the proven bound. auto: holdout if 30 rows or more are held out, else occam. occam: the "
        "run's own counts; it costs nothing and is always computed. "
        "holdout: a share of the rows, unused until the end; gives a close bound. nested: the selection is "
        "repeated in each of several outer splits, and the ensemble of what was selected is certified.",
        "Certificate",
    ),
}


def make_study(study: Path | None = None, **given: Any) -> Study:
    """Make a study from options, which take precedence over those of a TOML file.

    Raises:
        InputError: an option is unknown, out of its range, or does not apply to the chosen parts.
    """
    values = read_toml(study) if study else {}
    values |= {name: value for name, value in given.items() if value is not None}
    make = Study.paper if boolean("paper", values.pop("paper", False)) else Study.of
    return make(**values)


def make_procedure(
    resampling: Annotated[
        str,
        typer.Option(help=RESAMPLING, rich_help_panel="Procedure"),
    ] = "kfold:10",
    measure: Annotated[
        str | None,
        make_option(
            f"What is measured on every split, such as accuracy,auc: {', '.join(SCORE_NAMES)}, or any "
            "scorer of scikit-learn.",
            "zero_one, of numbers rmse",
            "Procedure",
        ),
    ] = None,
    select_by: Annotated[
        str | None,
        make_option(
            "Measure by which a nested resampling selects settings.", "the first measure", "Procedure"
        ),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            help="What is selected: one setting, the best on average over all splits, or another in each.",
            rich_help_panel="Procedure",
        ),
    ] = "one",
    stratify: Annotated[
        bool, flag("--stratify", "Give each part of a split the same share of every class.", "Procedure")
    ] = False,
    permutations: Annotated[
        int,
        typer.Option(
            help="How many times the target is permuted, such as 100, to test every mean score: p is the "
            "share of permutations whose mean is as good or better, the target as it is among them.",
            rich_help_panel="Procedure",
        ),
    ] = 0,
    interval: Annotated[
        str | None,
        make_option(
            "An approximate 95 % interval around every mean score, which is not proven: corrected_t (folds, "
            "sub-sampling), conservative_z (paired_subsampling), wald (zero_one and accuracy of holdout, "
            "kfold, loo), nested_cv (paired_folds), or bbc (of the best setting, with --save-predictions; "
            "kfold, drawn_folds, loo).",
            "none",
            "Procedure",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the splits.", rich_help_panel="Procedure")] = 0,
    refit: Annotated[
        str | None,
        make_option(
            "best: score every setting of the learner's search space, or those that you name, and fit one on "
            "all rows, for ckcv predict.",
            "no model is kept",
            "Procedure",
        ),
    ] = None,
    choose: Annotated[
        str | None,
        make_option(
            "With --refit: the setting that is best by the first measure, or the simplest within one_se (one "
            "standard error) or tolerance:2% of it.",
            "best",
            "Procedure",
        ),
    ] = None,
    save_predictions: Annotated[
        bool,
        flag(
            "--save-predictions",
            "Keep predictions for the rows that each split scores (predictions.parquet), and the splits: of "
            "the setting that is chosen, or else of every one.",
            "Procedure",
        ),
    ] = False,
    **learner: Any,
) -> Study:
    """Make a study without a certification from options.

    Raises:
        InputError: an option is unknown or out of its range.
    """
    given = {name: value for name, value in learner.items() if value is not None}
    return Study.without_certification(
        resampling,
        measure,
        select_by,
        select,
        seed,
        stratify,
        refit=refit,
        choose=choose,
        permutations=permutations,
        interval=interval,
        save_predictions=save_predictions,
        **given,
    )


def list_offered(slot: str, numbers: bool = False) -> dict[str, Any]:
    """Return the parts that ``--help`` names; an estimator is chosen by its class, as in "module:Class".

    Learners of numbers are among them if ``numbers``.
    """
    named = {name: part for name, part in list_parts(slot).items() if part is not AnyEstimator}
    if slot != "learner" or numbers:
        return named
    return {name: part for name, part in named.items() if part.kinds != NUMBERS}


def _parameters(slots: Iterable[str], of_study: Iterable[str], numbers: bool = False) -> Iterator[Parameter]:
    """Generate a parameter for each choice of a part, each option of the parts, and some of a study.

    With ``numbers`` for a procedure, which has learners of numbers too, and may select nothing.
    """
    for slot in slots:
        text, panel = SLOT_PARTS[slot]
        if len(choices := list_offered(slot, numbers)) > 1:
            names = " or ".join(choices)
            yield _parameter(slot, str, make_option(text.format(names), next(iter(choices)), panel))
    parts = [part for slot in slots for part in list_offered(slot, numbers).values()]
    declared = [declaration for part in parts for declaration in options(part).items()]
    declared += [(name, declaration) for name, declaration in list_options().items() if name in of_study]
    first: dict[str, Any] = {}
    for name, declaration in declared:  # several learners may have an option
        first.setdefault(name, declaration)
    for name, declaration in first.items():
        yield _declare(name, declaration.metadata["option"], alone=numbers)


def _study_parameters() -> Iterator[Parameter]:
    """Generate a parameter for each choice of a part, and for each option of the parts and of a study."""
    yield from _parameters(SLOTS, list_options())
    text = "TOML file with study options; those on the command line take precedence."
    yield _parameter("study", Path, make_option(text, None, "Study"))
    text = (
        "Algorithm 1 as published, on all rows: an exact race over every k from 3 to n, 20 splits, and the "
        "bound from the run's own counts. Other options take precedence."
    )
    yield _parameter("paper", bool, flag("--paper", text, "Study"))


def _declare(name: str, declared: Option, alone: bool = False) -> Parameter:
    """Return the parameter of an option; ``alone``: where a learner may be used at one setting."""
    if declared.kind is bool:
        return _parameter(name, bool, flag(f"--{name.replace('_', '-')}", declared.help, declared.panel))
    shown = declared.default_text
    if alone and declared.single_default is not None:
        shown = f"{declared.single_default}; {shown} where one is selected"
    return _parameter(
        name, declared.kind, make_option(declared.help, shown, declared.panel, hidden=declared.hidden)
    )


def _parameter(name: str, kind: type, shown: Any) -> Parameter:
    annotation = Annotated[kind | None, shown]  # type: ignore[valid-type]
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


make_procedure.__signature__ = signature(make_procedure).replace(  # type: ignore[attr-defined]
    parameters=[
        *(parameter for name, parameter in signature(make_procedure).parameters.items() if name != "learner"),
        *_parameters(["learner"], ("encode", "fill", "rare", "balance"), numbers=True),
    ]
)
make_study.__signature__ = signature(make_study).replace(parameters=list(_study_parameters()))  # type: ignore[attr-defined]

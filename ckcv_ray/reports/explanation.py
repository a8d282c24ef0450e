"""What the page explains: what was asked, the method, the models in the folder, and every symbol."""

from typing import Any

from ckcv_ray.claims.percent import format_level
from ckcv_ray.claims.wording import say_minimised
from ckcv_ray.core.resampling.complete import Rotation
from ckcv_ray.errors import pluralize
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Holdout

METHOD_SOURCES = {  # of the method, by whether there is a certification
    True: "D. Anguita, L. Ghelardoni, A. Ghio, L. Oneto, S. Ridella: The ‘K’ in K-fold Cross Validation, "
    "ESANN 2012.",
    False: "S. Arlot, A. Celisse: A survey of cross-validation procedures for model selection, Statistics "
    "Surveys 4, 2010.",
}


def describe_method(result: ResultValues) -> list[str]:
    """Return three sentences on the method of a study."""
    return _describe_selection(result) if result.finished is not None else _describe_scoring(result)


def _describe_selection(result: ResultValues) -> list[str]:
    winner, sample = result.certificate.winner, result.certificate.sample
    unit = "rows" if sample.groups is None else "groups"
    divided = f"the {unit} were divided at random {pluralize(winner.n_splits, 'time')} into"
    if result.study.resampling.name == Rotation.name:
        divided = f"the {unit} were shuffled and cut into k parts, which in turn were"
    refit = ", and one more model was fitted on all rows that were not held out" if sample.n_held else ""
    members = pluralize(len(result.ensemble.members), "model")
    minimised = say_minimised(winner.criterion, winner.bound, winner.delta).partition(" (")[0]
    return [
        f"For every candidate, a setting of the learner with a number of folds k, {divided} a part to "
        "learn from, a part to select by and a part to estimate on.",
        f"The candidate with the smallest {minimised} won, and was fitted again on each of its splits; these "
        f"{members} are the ensemble F*{refit}.",
        _describe_proof(result),
    ]


def _describe_proof(result: ResultValues) -> str:
    sample, first = result.certificate.sample, result.certificate.claims.first
    level = format_level(first["delta"])
    independent = f"a limit for independent {'rows' if sample.groups is None else 'groups'}"
    if first["certification"] == Holdout.name:
        if sample.numbers is not None:
            return (
                f"The bound comes from {sample.n_held:,} rows that nothing used before: how far off the "
                f"predictions for them are, and {independent} at {level}."
            )
        limit = independent if sample.groups else "the exact binomial limit of Clopper and Pearson"
        return (
            f"The bound comes from {sample.n_held:,} rows that nothing used before: how many of them are "
            f"judged wrongly, and {limit} at {level}."
        )
    return (
        "The bound comes from the parts to estimate on, and pays for the selection: each candidate has "
        f"its share of the probability to fail, so that it holds at {level} whichever was selected."
    )


def _describe_scoring(result: ResultValues) -> list[str]:
    splits = "one split" if result.n_splits == 1 else f"each of {result.n_splits:,} splits"
    chosen = (
        f"Settings were selected inside the training rows of each split, by {result.study.select_by}."
        if result.chosen is not None
        else "No setting was selected: every line of the tables is fitted as it is named."
    )
    return [
        f"The rows were divided by {result.study.resampling}: on {splits} a learner is fitted on some rows "
        "and scored on others.",
        chosen,
        "A figure is the mean over splits, an estimate of what a model fitted on as many rows scores on "
        "new rows of the same source.",
    ]


def describe_question(result: ResultValues) -> str:
    """Say what was asked of a study, in a sentence."""
    learners, target = ", ".join(result.problem.learners), result.task.target
    if result.finished is None:
        names = ", ".join(score.name for score in result.scores)
        return f"How well is {target} predicted by {learners}, as measured by {names}?"
    numbers, of = result.task.has_numbers, "rows of new groups" if result.task.grouped else "new rows"
    return (
        f"Which setting of {learners}, with which number of folds, predicts {target} best among "
        f"{len(result.candidates):,} candidates, and how {'far off' if numbers else 'often'} is it "
        f"{'' if numbers else 'wrong '}at most on {of}?"
    )


def describe_models(result: ResultValues) -> list[tuple[str, Any]]:
    """Return what models the folder holds, by name."""
    if result.finished is None:
        kept = result.kept
        return [
            ("model", "none: the study keeps scores" if kept is None else f"{kept.name}, fitted on all rows")
        ]
    models, winner = result.models, result.certificate.winner
    found: list[tuple[str, Any]] = [
        (
            "F*",
            f"{pluralize(len(models.best.members), 'model')}, each fitted on the rows of its split but "
            f"those that estimate; k = {winner.k}",
        )
    ]
    if models.refit is not None:
        found.append(
            ("refit", "one model at the winner's setting, fitted on all rows that were not held out")
        )
    if models.full is not None:
        found.append(
            ("full", "one model at the winner's setting, fitted on all rows; nothing is proven for it alone")
        )
    return found

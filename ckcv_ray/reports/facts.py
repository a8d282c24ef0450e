"""Facts about a finished run, by name, as sentences: what forms of reporting guidelines are filled with.

Every fact is a function of the stored run alone: nothing is fitted, and no model is applied.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import at_most, nearest
from ckcv_ray.claims.weighted import describe_weights
from ckcv_ray.claims.wording import L_EE_IS, say_minimised
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.steps import EQUALLY
from ckcv_ray.reports.answer import list_cautions, make_answer, name_search
from ckcv_ray.reports.summary import (
    CONFUSION_IS,
    ERROR_IS,
    describe_baseline,
    describe_edges,
    describe_learner,
    describe_shares,
    name_judged,
)
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Candidate, describe_setting

MAX_COLUMNS = 40  # that are named
MAX_NAMED_CLASSES = 20  # whose confusion is listed


class Stored(NamedTuple):
    """What is stored of a finished run.

    Attributes:
        result: its winner, claims and models.
        manifest: SHA-256 of its manifest.
    """

    result: ResultValues
    manifest: str

    @property
    def certificate(self) -> Certificate:
        """The certificate of the run."""
        return self.result.certificate


def _tell_target(run: Stored) -> Iterator[str]:
    task = run.result.task
    labels = ", ".join(map(repr, task.classes[:MAX_NAMED_CLASSES]))
    more = (
        f" and {len(task.classes) - MAX_NAMED_CLASSES} more" if len(task.classes) > MAX_NAMED_CLASSES else ""
    )
    yield f"Predicted is the column {task.target!r}, with {len(task.classes)} classes: {labels}{more}."


def _tell_shares(run: Stored) -> Iterator[str]:
    sample = run.certificate.sample
    yield f"Shares of the classes among all {sample.n_rows:,} rows: {describe_shares(sample)}."


def _tell_rows(run: Stored) -> Iterator[str]:
    sample, task = run.certificate.sample, run.result.task
    columns = pluralize(len(task.features), "column")
    yield f"The table has {sample.n_rows:,} rows, and {columns} to predict from."
    if sample.n_held:
        yield (
            f"{sample.n_held:,} rows were held out before anything was fitted or selected; "
            f"{task.n:,} were learned from."
        )
    for label, rows in zip(sample.labels[:MAX_NAMED_CLASSES], sample.class_rows, strict=False):
        yield f"Rows of class {label!r}: {rows:,}."


def _tell_columns(run: Stored) -> Iterator[str]:
    schema = list(run.result.problem.all_rows.schema)
    shown = [f"{column.name!r} ({column.kind})" for column in schema[:MAX_COLUMNS]]
    more = f", and {len(schema) - MAX_COLUMNS} more" if len(schema) > MAX_COLUMNS else ""
    yield f"Columns to predict from, as they were understood: {', '.join(shown)}{more}."


def _tell_gaps(run: Stored) -> Iterator[str]:
    rows = run.result.problem.all_rows
    missing = np.isnan(rows.X).sum(axis=0)
    gaps = {name: int(n) for name, n in zip(rows.features, missing, strict=True) if n}
    if not gaps:
        yield f"No value is missing in the {rows.n:,} rows."
        return
    listed = [f"{name!r} {count:,} ({nearest(count / rows.n)})" for name, count in gaps.items()]
    more = f", and {len(listed) - MAX_COLUMNS} more columns" if len(listed) > MAX_COLUMNS else ""
    yield f"Missing values by column, of {rows.n:,} rows: {', '.join(listed[:MAX_COLUMNS])}{more}."
    yield (
        f"In numbers and dates a gap is filled with the {run.result.study.encoding.gaps} of the training "
        "rows of each split, and a column of its own says where it was; in categories a gap is a category."
    )


def _tell_repeats(run: Stored) -> Iterator[str]:
    sample = run.certificate.sample
    if not sample.repeats:
        yield "No row equals another in every column that does not number the rows."
    yield from run.certificate.describe_repeats()


def _tell_groups(run: Stored) -> Iterator[str]:
    groups = run.certificate.sample.groups
    if groups is None:
        yield "Rows are taken as independent: no column was named whose rows belong together."
        return
    yield (
        f"Rows belong together in {groups['count']:,} groups by the column {groups['column']!r}, which are "
        "taken as independent and are never divided."
    )


def _tell_weights(run: Stored) -> Iterator[str]:
    yield describe_weights(run.result.problem) or "All rows weigh the same."


def _tell_encoding(run: Stored) -> Iterator[str]:
    problem, study = run.result.problem, run.result.study
    if problem.all_rows.schema.plain:
        yield "All columns are numbers without gaps, and are taken as they are."
    else:
        yield (
            f"Categories became numbers by the method {str(study.encoding.categories)!r}; those with less "
            f"than {nearest(study.encoding.rare)} of the training rows are joined."
        )
    yield (
        "Whatever is estimated from rows (scaling, filling, encoding) is estimated inside each split from "
        "its training rows alone, so the claims cover it."
    )


def _tell_learner(run: Stored) -> Iterator[str]:
    for label, learner in run.result.study.learner.by_label.items():
        values = learner.space.settings()
        lists = [f"{name} in {_list_values(column.tolist())}" for name, column in values.items()]
        count = sum(learner.space.lengths)
        yield f"Learner {label}: {pluralize(count, 'setting')}{'; ' if lists else ''}{'; '.join(lists)}."


def _list_values(values: list[object]) -> str:
    distinct = list(dict.fromkeys(map(str, values)))
    shown = ", ".join(distinct[:MAX_NAMED_CLASSES])
    return f"{{{shown}{', ...' if len(distinct) > MAX_NAMED_CLASSES else ''}}}"


def _tell_resampling(run: Stored) -> Iterator[str]:
    winner, groups = run.certificate.winner, run.certificate.sample.groups
    units = "rows" if groups is None else "groups"
    ks = [size.k for size in run.result.problem.sizes]
    shown = ", ".join(map(str, ks[:MAX_NAMED_CLASSES])) + (", ..." if len(ks) > MAX_NAMED_CLASSES else "")
    yield (
        "Complete k-fold cross validation with tuned k (Anguita and others, ESANN 2012): in each split one "
        "part trains, one selects and one estimates; they share no row."
    )
    yield f"Numbers of folds that were compared: {shown}."
    yield (
        f"At the selected k = {winner.k}: {winner.n_splits} random splits into {winner.n_train:,} {units} "
        f"that train, {winner.n_select:,} that select and {winner.n_select:,} that estimate."
    )


def _tell_selection(run: Stored) -> Iterator[str]:
    winner = run.certificate.winner
    minimised = say_minimised(winner.criterion, winner.bound, winner.delta).partition(" (minimised")[0]
    yield f"Minimised was the {minimised}."
    yield f"Search: {name_search(run.result)}."


def _tell_learners(run: Stored) -> Iterator[str]:
    rows = run.result.per_learner()
    yield from (f"{row['learner']}: {describe_learner(row)}." for row in rows if len(rows) > 1)


def _tell_winner(run: Stored) -> Iterator[str]:
    result = run.result
    yield f"Selected: {Candidate(result.setting, result.k)}."
    yield from (f"{sentence}." for sentence in describe_edges(result.problem, result.setting))


def _tell_model(run: Stored) -> Iterator[str]:
    models, first = run.result.models, run.certificate.claims.first
    members = pluralize(len(models.best.members), "member")
    yield (
        f"The ensemble F* has {members}, one for each split, at the selected setting "
        f"({describe_setting(run.result.setting)})."
    )
    if models.refit is not None:
        yield "Besides, one model is fitted on all rows that were not held out, and one on all rows."
    rule, certification = first["classifier"], first["certification"]
    yield f"The first claim is about the rule {rule!r}, by the certification {certification!r}."
    yield "All models are stored in the run folder as tables, and ckcv predict applies them to new rows."


def _tell_first_claim(run: Stored) -> Iterator[str]:
    yield run.certificate.claims.first["statement"]


def _tell_claims(run: Stored) -> Iterator[str]:
    yield from (claim["statement"] for claim in run.certificate.claims)


def _tell_error(run: Stored) -> Iterator[str]:
    counts, winner = run.certificate.counts, run.certificate.winner
    if measured := dict(make_answer(run.result).facts).get("measured"):
        yield f"Measured, of what the first claim is about: {measured}."
    yield f"Error: {nearest(counts.error)}, {ERROR_IS}."
    yield f"L_EE: {at_most(winner.l_ee)}, {L_EE_IS[winner.criterion][winner.bound]}."


def _tell_classes(run: Stored) -> Iterator[str]:
    labels, counts = run.certificate.sample.labels, run.result.class_counts
    if counts is None:
        return
    yield f"By class, measured: {name_judged(run.result)}."
    lines = list(zip(labels, counts.tolist(), range(len(labels)), strict=True))[:MAX_NAMED_CLASSES]
    for label, line, number in lines:
        right = f", recall {nearest(line[number] / sum(line))}" if sum(line) else ""
        yield f"Class {label!r}, measured: {sum(line) - line[number]:,} of {sum(line):,} rows wrong{right}."
    if len(labels) <= MAX_NAMED_CLASSES:
        yield f"Confusion, {CONFUSION_IS}:"
        for label, line, _ in lines:
            cells = [
                f"{predicted!r} {nearest(count / max(1, sum(line)))}"
                for predicted, count in zip(labels, line, strict=False)
            ]
            yield f"{label!r} predicted as {', '.join(cells)}."


def _tell_baseline(run: Stored) -> Iterator[str]:
    sample = run.certificate.sample
    for baseline in sample.baselines:
        yield f"Baseline: {nearest(baseline['error'])}, {describe_baseline(sample, baseline)}."


def _tell_cautions(run: Stored) -> Iterator[str]:
    cautions = [*run.certificate.list_cautions(), *list_cautions(run.result)]
    yield from cautions or ["The run itself found no reason to doubt what it claims."]


def _tell_conditions(run: Stored) -> Iterator[str]:
    yield from run.certificate.wording.assumptions
    yield f"Not covered: {'; '.join(run.certificate.wording.not_covered)}."


def _tell_balance(run: Stored) -> Iterator[str]:
    study = run.result.study
    method = str(study.balancing)
    yield (
        "Training rows were not balanced." if method == "none" else f"Training rows were balanced: {method}."
    )
    weights = {getattr(learner, "class_weight", EQUALLY) for learner in study.learner.by_label.values()}
    yield from (f"Classes were weighted: {weight}." for weight in sorted(map(str, weights - {EQUALLY})))
    criterion = run.certificate.winner.criterion
    if criterion in ("balanced", "cost"):
        yield f"What was minimised counts the classes separately: criterion {criterion!r}."


def _tell_threshold(run: Stored) -> Iterator[str]:
    required = run.result.problem.required
    if required is None:
        yield (
            "No cut-off was tuned: a row gets the class that the model names, and claims are about that "
            "class."
        )
        return
    chosen = [claim["cut_off"] for claim in run.certificate.claims if "cut_off" in claim]
    said = f"it is {chosen[0]:.6g}" if chosen else "none qualified"
    yield f"A cut-off of the scores was chosen on the held-out rows for {required}: {said}."


def _tell_failures(run: Stored) -> Iterator[str]:
    counts = run.result.execution["evaluations"]
    yield f"{counts['failed']:,} of {counts['planned']:,} planned evaluations failed."
    if run.certificate.winner.provisional:
        yield "The result is provisional: a better candidate might have been missed."
    if (stopped := run.result.execution["not_converged"]) > 0:
        yield f"{stopped:,} fits were stopped at their limit of iterations."


def _tell_software(run: Stored) -> Iterator[str]:
    execution = run.result.execution
    environment = execution["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    yield f"ckcv-ray {execution['package']}, Python {environment['python']}; {packages}."


def _tell_hardware(run: Stored) -> Iterator[str]:
    execution = run.result.execution
    environment = execution["environment"]
    yield f"Computed on {environment['processor']}, {environment['system']}."
    yield (
        f"{execution['fits']:,} fits in {execution['seconds']:.1f} s with "
        f"{pluralize(execution['workers'], 'worker')} ({execution['backend']})."
    )


def _tell_origin(run: Stored) -> Iterator[str]:
    origin, study = run.certificate.origin, run.result.study
    yield f"Run {origin.run_id}, seed {study.seed}; the same study on the same table has the same run number."
    yield f"SHA-256 of the data: {origin.digests['data']}; of the manifest of all files: {run.manifest}."
    yield "ckcv verify recomputes the result from the run folder; with --refit from the data."


def _tell_source(run: Stored) -> Iterator[str]:
    yield f"The rows were read from {run.result.execution['source']!r}."


def _tell_test(run: Stored) -> Iterator[str]:
    test = run.result.execution["test"]
    if test is None:
        yield "The run was measured on no separate test rows."
    else:
        rate = nearest(test["error"])
        yield f"On {test['rows']:,} separate test rows F* errs on {rate}; no claim covers this."


FACTS: dict[str, Callable[[Stored], Iterator[str]]] = {
    "target": _tell_target,
    "shares": _tell_shares,
    "rows": _tell_rows,
    "columns": _tell_columns,
    "gaps": _tell_gaps,
    "repeats": _tell_repeats,
    "groups": _tell_groups,
    "weights": _tell_weights,
    "encoding": _tell_encoding,
    "learner": _tell_learner,
    "resampling": _tell_resampling,
    "selection": _tell_selection,
    "learners": _tell_learners,
    "winner": _tell_winner,
    "model": _tell_model,
    "first_claim": _tell_first_claim,
    "claims": _tell_claims,
    "error": _tell_error,
    "classes": _tell_classes,
    "baseline": _tell_baseline,
    "cautions": _tell_cautions,
    "conditions": _tell_conditions,
    "balance": _tell_balance,
    "threshold": _tell_threshold,
    "failures": _tell_failures,
    "software": _tell_software,
    "hardware": _tell_hardware,
    "origin": _tell_origin,
    "source": _tell_source,
    "test": _tell_test,
}


def tell(run: Stored, name: str) -> tuple[str, ...]:
    """Return the sentences of a fact about a run; none if there is nothing to say."""
    return tuple(FACTS[name](run))

"""Facts about a finished run, by name, as sentences: what forms of reporting guidelines are filled with.

Every fact is a function of the stored run alone: nothing is fitted, and no model is applied.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.weighted import describe_weights
from ckcv_ray.claims.wording import L_EE_IS, describe_minimised
from ckcv_ray.core.percent import ceil_percent, format_percent
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
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.study import Candidate, describe_setting

MAX_COLUMNS = 40  # that are named
MAX_NAMED_CLASSES = 20  # whose confusion is listed


class Stored(NamedTuple):
    """What is stored of a finished run, and what it tells: ``_tell_rows`` yields the sentences of "rows".

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

    def _tell_target(self) -> Iterator[str]:
        task, n = self.result.task, len(self.result.task.classes)
        labels = ", ".join(map(repr, task.classes[:MAX_NAMED_CLASSES]))
        more = f" and {n - MAX_NAMED_CLASSES} more" if n > MAX_NAMED_CLASSES else ""
        yield f"Predicted is the column {task.target!r}, with {n} classes: {labels}{more}."

    def _tell_shares(self) -> Iterator[str]:
        sample = self.certificate.sample
        yield f"Shares of the classes among all {sample.n_rows:,} rows: {describe_shares(sample)}."

    def _tell_rows(self) -> Iterator[str]:
        sample, task = self.certificate.sample, self.result.task
        columns = pluralize(len(task.features), "column")
        yield f"The table has {sample.n_rows:,} rows, and {columns} to predict from."
        if sample.n_held:
            yield (
                f"{sample.n_held:,} rows were held out before anything was fitted or selected; "
                f"{task.n:,} were learned from."
            )
        for label, rows in zip(sample.labels[:MAX_NAMED_CLASSES], sample.class_rows, strict=False):
            yield f"Rows of class {label!r}: {rows:,}."

    def _tell_columns(self) -> Iterator[str]:
        schema = list(self.result.problem.all_rows.schema)
        shown = [f"{column.name!r} ({column.kind})" for column in schema[:MAX_COLUMNS]]
        more = f", and {len(schema) - MAX_COLUMNS} more" if len(schema) > MAX_COLUMNS else ""
        yield f"Columns to predict from, as they were understood: {', '.join(shown)}{more}."

    def _tell_gaps(self) -> Iterator[str]:
        rows = self.result.problem.all_rows
        missing = np.isnan(rows.X).sum(axis=0)
        gaps = {name: int(n) for name, n in zip(rows.features, missing, strict=True) if n}
        if not gaps:
            yield f"No value is missing in the {rows.n:,} rows."
            return
        listed = [f"{name!r} {count:,} ({format_percent(count / rows.n)})" for name, count in gaps.items()]
        more = f", and {len(listed) - MAX_COLUMNS} more columns" if len(listed) > MAX_COLUMNS else ""
        yield f"Missing values by column, of {rows.n:,} rows: {', '.join(listed[:MAX_COLUMNS])}{more}."
        yield (
            f"In numbers and dates a gap is filled with the {self.result.study.encoding.gaps} of the "
            "training rows of each split, and a column of its own says where it was; in categories a gap is "
            "a category."
        )

    def _tell_repeats(self) -> Iterator[str]:
        none = "No row equals another in every column that does not number the rows."
        yield from self.certificate.describe_repeats() or [none]

    def _tell_groups(self) -> Iterator[str]:
        groups = self.certificate.sample.groups
        if groups is None:
            yield "Rows are taken as independent: no column was named whose rows belong together."
            return
        yield (
            f"Rows belong together in {groups['count']:,} groups by the column {groups['column']!r}, which "
            "are taken as independent and are never divided."
        )

    def _tell_weights(self) -> Iterator[str]:
        yield describe_weights(self.result.problem) or "All rows weigh the same."

    def _tell_encoding(self) -> Iterator[str]:
        problem, study = self.result.problem, self.result.study
        if problem.all_rows.schema.plain:
            yield "All columns are numbers without gaps, and are taken as they are."
        else:
            yield (
                f"Categories became numbers by the method {str(study.encoding.categories)!r}; those with "
                f"less than {format_percent(study.encoding.rare)} of the training rows are joined."
            )
        yield (
            "Whatever is estimated from rows (scaling, filling, encoding) is estimated inside each split "
            "from its training rows alone, so the claims cover it."
        )

    def _tell_learner(self) -> Iterator[str]:
        for label, learner in self.result.study.learner.by_label.items():
            values = learner.space.settings()
            distinct = {name: [*dict.fromkeys(map(str, column.tolist()))] for name, column in values.items()}
            lists = [f"; {name} in {{{_list_first(found)}}}" for name, found in distinct.items()]
            yield f"Learner {label}: {pluralize(sum(learner.space.lengths), 'setting')}{''.join(lists)}."

    def _tell_resampling(self) -> Iterator[str]:
        winner, groups = self.certificate.winner, self.certificate.sample.groups
        units = "rows" if groups is None else "groups"
        ks = [size.k for size in self.result.problem.sizes]
        yield (
            "Complete k-fold cross validation with tuned k (Anguita and others, ESANN 2012): in each split "
            "one part trains, one selects and one estimates; they share no row."
        )
        yield f"Numbers of folds that were compared: {_list_first(ks)}."
        yield (
            f"At the selected k = {winner.k}: {winner.n_splits} random splits into {winner.n_train:,} "
            f"{units} that train, {winner.n_select:,} that select and {winner.n_select:,} that estimate."
        )

    def _tell_selection(self) -> Iterator[str]:
        winner = self.certificate.winner
        minimised = describe_minimised(winner.criterion, winner.bound, winner.delta).partition(" (minimised")[
            0
        ]
        yield f"Minimised was the {minimised}."
        yield f"Search: {name_search(self.result)}."

    def _tell_learners(self) -> Iterator[str]:
        rows = self.result.per_learner()
        yield from (f"{row['learner']}: {describe_learner(row)}." for row in rows if len(rows) > 1)

    def _tell_winner(self) -> Iterator[str]:
        result = self.result
        yield f"Selected: {Candidate(result.setting, result.k)}."
        yield from (f"{sentence}." for sentence in describe_edges(result.problem, result.setting))

    def _tell_model(self) -> Iterator[str]:
        models, first = self.result.models, self.certificate.claims.first
        members = pluralize(len(models.best.members), "member")
        yield (
            f"The ensemble F* has {members}, one for each split, at the selected setting "
            f"({describe_setting(self.result.setting)})."
        )
        if models.refit is not None:
            yield "Besides, one model is fitted on all rows that were not held out, and one on all rows."
        rule, certification = first.classifier, first.certification
        yield f"The first claim is about the rule {rule!r}, by the certification {certification!r}."
        yield "All models are stored in the run folder as tables, and ckcv predict applies them to new rows."

    def _tell_first_claim(self) -> Iterator[str]:
        yield self.certificate.claims.first.statement

    def _tell_claims(self) -> Iterator[str]:
        yield from (claim.statement for claim in self.certificate.claims)

    def _tell_error(self) -> Iterator[str]:
        counts, winner = self.certificate.counts, self.certificate.winner
        if measured := dict(make_answer(self.result).facts).get("measured"):
            yield f"Measured, of what the first claim is about: {measured}."
        yield f"Error: {format_percent(counts.error)}, {ERROR_IS}."
        yield f"L_EE: {ceil_percent(winner.l_ee)}, {L_EE_IS[winner.criterion][winner.bound]}."

    def _tell_classes(self) -> Iterator[str]:
        labels, counts = self.certificate.sample.labels, self.result.class_counts
        if counts is None:
            return
        yield f"By class, measured: {name_judged(self.result)}."
        lines = list(zip(labels, counts.tolist(), range(len(labels)), strict=True))[:MAX_NAMED_CLASSES]
        for label, line, number in lines:
            rows = sum(line)
            right = f", recall {format_percent(line[number] / rows)}" if rows else ""
            yield f"Class {label!r}, measured: {rows - line[number]:,} of {rows:,} rows wrong{right}."
        if len(labels) <= MAX_NAMED_CLASSES:
            yield f"Confusion, {CONFUSION_IS}:"
            for label, line, _ in lines:
                cells = [
                    f"{predicted!r} {format_percent(count / max(1, sum(line)))}"
                    for predicted, count in zip(labels, line, strict=False)
                ]
                yield f"{label!r} predicted as {', '.join(cells)}."

    def _tell_baseline(self) -> Iterator[str]:
        sample = self.certificate.sample
        for baseline in sample.baselines:
            yield f"Baseline: {format_percent(baseline['error'])}, {describe_baseline(sample, baseline)}."

    def _tell_cautions(self) -> Iterator[str]:
        cautions = [*self.certificate.list_cautions(), *list_cautions(self.result)]
        yield from cautions or ["The run itself found no reason to doubt what it claims."]

    def _tell_conditions(self) -> Iterator[str]:
        yield from self.certificate.wording.assumptions
        yield f"Not covered: {'; '.join(self.certificate.wording.not_covered)}."

    def _tell_balance(self) -> Iterator[str]:
        study, method = self.result.study, str(self.result.study.balancing)
        yield f"Training rows were {'not balanced' if method == 'none' else f'balanced: {method}'}."
        weights = {getattr(learner, "class_weight", EQUALLY) for learner in study.learner.by_label.values()}
        yield from (f"Classes were weighted: {weight}." for weight in sorted(map(str, weights - {EQUALLY})))
        criterion = self.certificate.winner.criterion
        if criterion in ("balanced", "cost"):
            yield f"What was minimised counts the classes separately: criterion {criterion!r}."

    def _tell_threshold(self) -> Iterator[str]:
        required = self.result.problem.required
        if required is None:
            named = "a row gets the class that the model names"
            yield f"No cut-off was tuned: {named}, and claims are about that class."
            return
        chosen = [claim.cut_off for claim in self.certificate.claims if claim.cut_off is not None]
        said = f"it is {chosen[0]:.6g}" if chosen else "none qualified"
        yield f"A cut-off of the scores was chosen on the held-out rows for {required}: {said}."

    def _tell_failures(self) -> Iterator[str]:
        counts = self.result.execution["evaluations"]
        yield f"{counts['failed']:,} of {counts['planned']:,} planned evaluations failed."
        if self.certificate.winner.provisional:
            yield "The result is provisional: a better candidate might have been missed."
        if (stopped := self.result.execution["not_converged"]) > 0:
            yield f"{stopped:,} fits were stopped at their limit of iterations."

    def _tell_software(self) -> Iterator[str]:
        execution, environment = self.result.execution, self.result.execution["environment"]
        packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
        yield f"ckcv-ray {execution['package']}, Python {environment['python']}; {packages}."

    def _tell_hardware(self) -> Iterator[str]:
        execution, environment = self.result.execution, self.result.execution["environment"]
        yield f"Computed on {environment['processor']}, {environment['system']}."
        yield (
            f"{execution['fits']:,} fits in {execution['seconds']:.1f} s with "
            f"{pluralize(execution['workers'], 'worker')} ({execution['backend']})."
        )

    def _tell_origin(self) -> Iterator[str]:
        origin, study = self.certificate.origin, self.result.study
        same = "the same study on the same table has the same run number"
        yield f"Run {origin.run_id}, seed {study.seed}; {same}."
        yield f"SHA-256 of the data: {origin.digests['data']}; of the manifest of all files: {self.manifest}."
        yield "ckcv verify recomputes the result from the run folder; with --refit from the data."

    def _tell_source(self) -> Iterator[str]:
        yield f"The rows were read from {self.result.execution['source']!r}."

    def _tell_test(self) -> Iterator[str]:
        test = self.result.execution["test"]
        if test is None:
            yield "The run was measured on no separate test rows."
        else:
            rate = format_percent(test["error"])
            yield f"On {test['rows']:,} separate test rows F* errs on {rate}; no claim covers this."


def _list_first(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:MAX_NAMED_CLASSES]))
    return f"{shown}{', ...' if len(values) > MAX_NAMED_CLASSES else ''}"


def tell(run: Stored, name: str) -> tuple[str, ...]:
    """Return the sentences of a fact about a run; none if there is nothing to say."""
    return tuple(getattr(run, f"_tell_{name}")())

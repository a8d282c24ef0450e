"""Text summary of a finished study, as the command line prints it."""

from collections.abc import Iterator, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.baseline import Baseline, name_constant
from ckcv_ray.claims.certificate import Certificate, Sample
from ckcv_ray.claims.confusion import list_mistakes
from ckcv_ray.claims.intervals import describe_intervals
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.claims.weighted import describe_weights
from ckcv_ray.claims.wording import (
    L_EE_IS,
    PROVISIONAL,
    describe_equal_rows,
    describe_minimised,
    says_nothing,
)
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.intervals import INTERVALS, MISS
from ckcv_ray.core.measures import Score
from ckcv_ray.core.options import get_values
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_percent, round_bound
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.steps import Balance
from ckcv_ray.records.judged import describe_judged
from ckcv_ray.reports.answer import (
    NEW_ROWS,
    describe_answer,
    describe_share,
    list_figures,
    list_subgroups,
    name_search,
)
from ckcv_ray.runs.settings import rank_settings
from ckcv_ray.runs.values import SCORE_DELTA, Figures, PermutationTest, ResultValues, format_setting
from ckcv_ray.study import Candidate, Holdout, Problem, describe_setting
from ckcv_ray.tables.columns.formats import ColumnKind
from ckcv_ray.tables.target import Label
from ckcv_ray.validation import quote

MAX_LISTED_CLASSES = 5
MAX_LISTED_SETTINGS = 10  # of those among which one is chosen
MAX_TEXT_COLUMNS = 10  # of a confusion matrix in text
MAX_MISTAKES = 10
MAX_LABEL = 12  # characters of a label in a table of text
CONFUSION_IS = "% of the rows of each class (a line) predicted as each class (a column)"
CHOSEN = {
    "best": "the best",
    "one_se": "the simplest within one standard error of the best",
    "tolerance": "the simplest within {} of the best",
}
NOT_AVAILABLE = "not available"
RELATIVE = frozenset({"mape", "neg_mean_absolute_percentage_error"})
EXPLAINED = frozenset({"r2", "cor2"})
FEW_SCORED_ROWS = 20  # of a split, about whose mean little can be said
ERROR_IS = "mean error of the members on their estimate sets (an estimate, not a bound)"


def summarize(result: ResultValues, details: bool = False, folder: str = "") -> str:
    """Return the summary of a finished study as text: what may be quoted, or the scores.

    Args:
        result: the study.
        details: whether what was counted, and every claim, follows what may be quoted.
        folder: where it is kept, for commands to paste; "" without one.
    """
    if result.finished is None:
        return "\n".join([*_summarize_scores(result), *_summarize_inner(result)])
    more = ["", *_summarize_run(result)] if details else []
    return "\n".join([*describe_answer(result, folder, everything=details), *more])


def describe_edges(problem: Problem, setting: Setting) -> list[str]:
    """Return one sentence for each grid, a list of numbers, that has the winner's setting on its edge."""
    _, learner = problem.find_learner(setting)
    values = ((name, known, setting.get(name)) for name, known in get_values(learner).items())
    return [
        f"{name} = {value:g} is on the edge of its grid: {NEW_ROWS}, widen --{name.replace('_', '-')} beyond "
        f"{value:g}"
        for name, known, value in values
        if isinstance(known, tuple) and isinstance(value, int | float) and len(known) > 1
        if value in (known[0], known[-1])
    ]


def _summarize_run(result: ResultValues) -> Iterator[str]:
    problem, certificate, per_learner = result.problem, result.certificate, result.per_learner()
    if certificate.sample.numbers is None:
        yield from _describe_winner(result)
        for number, interval in enumerate(result.intervals):
            yield f"{'' if number else 'measured':<15}{interval.describe()}"
        if result.intervals:
            yield f"{'':<15}{describe_intervals(certificate.winner.delta)}"
    else:
        yield from _describe_numbers(result)
    if len(per_learner) > 1:
        yield from (f"learner        {row['learner']}: {describe_learner(row)}" for row in per_learner)
    yield from _describe_reported(result)
    if result.finished is not None and result.finished.judged is not None:
        yield f"judged         {describe_judged(result.finished.judged)}"
    yield f"search         {name_search(result)}"
    yield from _describe_cost(result.execution)
    yield from (f"scaling        {sentence}" for sentence in problem.scaling)
    yield from (f"note           {sentence}" for sentence in describe_edges(problem, result.setting))
    yield ""
    said = {PROVISIONAL, *certificate.list_cautions(), describe_weights(problem)}
    yield from (sentence for sentence in certificate.wording.statements if sentence not in said)


def _describe_winner(result: ResultValues) -> Iterator[str]:
    problem, c = result.problem, result.certificate
    winner, sample, groups = c.winner, c.sample, c.sample.groups
    labels, criterion = sample.labels, winner.criterion
    classes = f"classes {labels[0]!r} and {labels[1]!r}" if len(labels) == 2 else f"{len(labels)} classes"
    held_out = f" (and {sample.n_held} held out)" if sample.n_held else ""
    features, units = pluralize(len(problem.task.features), "feature"), "rows"
    if groups is not None:
        held_out += f" in {groups['count']} groups by {groups['column']!r}"
        held_out += f" ({groups['held']} of them held out)" if groups["held"] else ""
        units = "groups"
    sizes = f"train {winner.n_train}, select {winner.n_select}, estimate {winner.n_select} {units}"
    yield f"run {c.origin.run_id}: {problem.task.n} rows{held_out}, {features}, {classes}"
    yield f"classes        {describe_shares(sample)}"
    yield f"best           {Candidate(winner.setting, winner.k)}   ({sizes}; {winner.n_splits} splits)"
    yield _format_line(
        "L_MS", ceil_percent(winner.l_ms), describe_minimised(criterion, winner.bound, winner.delta)
    )
    yield _format_line("L_EE", ceil_percent(winner.l_ee), L_EE_IS[criterion][winner.bound])
    yield _format_line("error", format_percent(c.counts.error), ERROR_IS)
    for claim in c.claims:
        yield _describe_claim(claim, criterion, sample.baseline)
    errors = [claim for claim in c.claims if str(claim.quantity) == "error"]
    if sample.n_held and errors:
        of_groups = f" ({groups['held']} of {groups['count']} groups)" if groups is not None else ""
        not_learned = f"which {errors[0].classifier} has not learned from, prove"
        rows = f"{sample.n_held} of {sample.n_rows} rows{of_groups}"
        yield f"held out       {rows}, {not_learned} {errors[0].limit}"
    every, learned, unit = problem.all_rows.n_units, problem.task.n_units, problem.all_rows.unit
    if 2 * (every - learned) > every + 1:  # half of an odd number is rounded
        yield (
            f"share          {every - learned} of {every} {unit}s certify and {learned} are learned from: "
            "the bound is closer the more certify, and the model errs more the fewer it has learned from"
        )
    for baseline in sample.baselines:
        yield _format_line("baseline", format_percent(baseline["error"]), describe_baseline(sample, baseline))
    yield from _describe_classes(result)
    yield from _list_subgroups(c)


def _list_subgroups(c: Certificate) -> Iterator[str]:
    of = "of" if c.sample.numbers is None else "on"  # a share of rows, or a mean over them
    for line in list_subgroups(c):
        rows = pluralize(line.rows, "row")
        yield f"  {line.subgroup}, {line.quantity}:  {line.measured} {of} {rows}, proven {line.proven}"


def _describe_numbers(result: ResultValues) -> Iterator[str]:
    """Yield the lines about the winner of a study that predicts numbers."""
    c, task = result.certificate, result.task
    held_out = f" (and {c.sample.n_held} held out)" if c.sample.n_held else ""
    if (groups := c.sample.groups) is not None:
        held_out += f" in {groups['count']} groups by {groups['column']!r}"
    yield (
        f"run {c.origin.run_id}: {task.n} rows{held_out}, {pluralize(len(task.features), 'feature')}, numbers"
    )
    yield from (f"{name:<14} {text}" for name, text in list_figures(c))
    for claim in c.claims:
        level = format_level(claim.delta)
        yield (
            f"{'proven':<14} {claim.limit}, {claim.name} at most; {claim.certification}, "
            f"{claim.classifier} ({claim.counted}): with probability {level}, selection "
            "included"
        )
    yield from _list_subgroups(c)


def describe_shares(sample: Sample) -> str:
    """Format the shares of the classes in the full table: "'benign' 62.74 %, 'malignant' 37.26 %"."""
    shares = [
        f"{label!r} {format_percent(rows / sample.n_rows)}"
        for label, rows in zip(sample.labels, sample.class_rows, strict=True)
    ]
    more = f" and {len(shares) - MAX_LISTED_CLASSES} more" if len(shares) > MAX_LISTED_CLASSES else ""
    return f"{', '.join(shares[:MAX_LISTED_CLASSES])}{more}"


def describe_baseline(sample: Sample, baseline: Baseline) -> str:
    """Say what a baseline is: a constant, and the rows that it is wrong on."""
    errors, rows = baseline["errors"], baseline["rows"]
    constant = name_constant(baseline, sample.labels)
    mean = "" if sample.groups is None else ", mean over the groups"
    return f"error of {constant}{mean} ({errors:,} of {rows:,} {baseline['on']})"


def _format_line(name: str, percent: str, what: str) -> str:
    return f"{name:<14}{percent:>9}   {what}"


def describe_learner(row: dict[str, Any]) -> str:
    """Say what came of a learner, given its entry in ``Result.per_learner``."""
    failed = f"; {row['failed']:,} of {row['candidates']:,} candidates failed" if row["failed"] else ""
    if row["setting"] is None:
        return f"{row['state']}, L_MS at least {floor_percent(row['lower_bound'])}{failed}"
    setting = {name: value for name, value in row["setting"].items() if name != "learner"}
    return f"{row['state']}, L_MS {ceil_percent(row['l_ms'])}   {Candidate(setting, row['k'])}{failed}"


def _describe_classes(result: ResultValues) -> Iterator[str]:
    """Yield what became of the rows of each class that the first claim counts, at its rule."""
    labels, counts = result.task.classes, result.class_counts
    if counts is None:
        return
    yield f"by class       {name_judged(result)}"
    for number, row in enumerate(counts):
        other = repr(labels[1 - number]) if len(labels) == 2 else "another class"
        wrong = describe_share(row.sum() - row[number], row.sum())
        yield f"  {labels[number]!r} predicted as {other}:  {wrong}"
    if len(labels) > MAX_TEXT_COLUMNS:
        yield from _list_mistakes(labels, counts)
    elif len(labels) > 2:
        yield from _show_confusion(labels, counts)


def name_judged(result: ResultValues) -> str:
    """Say which rows the first claim counts, and by which rule: what figures by class are of."""
    first = result.certificate.claims.first
    if first.certification != Holdout.name:
        return "rows of all estimate sets, each by the member of its split"
    cut_off = f" with cut-off {first.cut_off:.6g}" if first.cut_off is not None else ""
    return f"held-out rows, by {first.classifier}{cut_off}"


def _show_confusion(labels: Sequence[Label], counts: NDArray[np.int64]) -> Iterator[str]:
    shown = [cut(repr(label), MAX_LABEL) for label in labels]
    width = max(9, *(len(label) + 1 for label in shown))
    undecided = bool(counts[:, -1].any())
    columns = [*shown, *(["undecided"] if undecided else [])]
    yield f"confusion      {CONFUSION_IS}"
    yield " " * (width + 2) + "".join(f"{column:>{width}}" for column in columns)
    for label, line in zip(shown, counts.tolist(), strict=True):
        shares = (format_percent(count / sum(line)) if count else "0" for count in line[: len(columns)])
        yield f"  {label:<{width}}" + "".join(f"{share:>{width}}" for share in shares)


def _list_mistakes(labels: Sequence[Label], counts: NDArray[np.int64]) -> Iterator[str]:
    """Yield the mistakes that are made most often, of more classes than a matrix can show."""
    found = list_mistakes(counts[:, :-1].tolist(), counts.sum(axis=1).tolist())
    heading = f"the most frequent of {pluralize(len(found), 'kind')} of mistake"
    yield f"confusion      {heading}, in % of the rows of the actual class"
    for actual, predicted, _, share in found[:MAX_MISTAKES]:
        to = "no class" if predicted is None else repr(labels[predicted])
        yield f"  {labels[actual]!r} predicted as {to}:  {format_percent(share)}"


def _describe_reported(result: ResultValues) -> Iterator[str]:
    """Yield a line about the best candidate of each reported k that is complete."""
    tests = (result.execution.get("test") or {}).get("reported", {})
    per_k = result.per_k()
    for k in result.study.report_k if result.problem.clip is None else ():
        row = next(row for row in per_k if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is not None:
            l_ee = ceil_percent(row["l_ee"]) if row["l_ee"] is not None else NOT_AVAILABLE
            test = tests.get(str(k))
            measured = f", test error {_format_known(test['error'])}" if test else ""
            setting = describe_setting(row["setting"])
            yield f"k = {k:<10} L_MS {ceil_percent(row['l_ms'])}, L_EE {l_ee}   {setting}{measured}"


def _describe_cost(execution: dict[str, Any]) -> Iterator[str]:
    counts = execution["evaluations"]
    yield (
        f"evaluations    {counts['computed']:,} of {counts['planned']:,} computed "
        f"({format_percent(counts['computed'] / counts['planned'])}), {counts['dropped']:,} dropped as "
        f"provably beaten, {counts['failed']:,} failed"
    )
    yield f"fits           {execution['fits']:,} in {execution['seconds']:.1f} s"
    if execution["not_converged"]:
        yield f"not converged  {execution['not_converged']:,} fits stopped at the iteration limit"
    if test := execution.get("test"):
        yield (
            f"test error     {_format_known(test['error'])} on {test['rows']:,} rows by a random member "
            f"of F*, {_format_known(test['vote_error'])} by majority vote (as reported by the run)"
        )


def _describe_claim(claim: Claim, criterion: str, baseline: Baseline) -> str:
    """Return a claim as one line, which says what it bounds if that is not what was minimised."""
    about, worth = "" if criterion == MeanBound.name else "the error, ", ""
    level = format_level(claim.delta)
    seen = f" ({claim.counted})" if claim.counted else ""
    source = f"{claim.certification}, {claim.classifier}{seen}"
    if str(claim.quantity) != "error":
        about = f"{claim.name} {claim.side}; "
    elif says_nothing(claim, baseline):
        worth = (
            "; not proven better than a constant" if claim.gate is not None else "; not below the baseline"
        )
    what = f"{about}{source}: with probability {level}, selection included{worth}"
    return _format_line("proven", claim.limit, what)


def _format_known(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else format_percent(value)


def describe_score(result: ResultValues, score: Score) -> str:
    """Return a score's name, of which class it is if of one, and what is better."""
    task, better = result.task, "larger" if score.greater else "smaller"
    of_class = f"of {task.classes[1]!r}; " if score.of_second and task.n_classes == 2 else ""
    return f"{score.name} ({of_class}{better} is better)"


def list_doubts(result: ResultValues) -> list[str]:
    """Say what may make scores too good and bounds untrue: rows that repeat, or seem to belong together."""
    task, repeats, sentences = result.task, result.repeats, []
    if repeats.rows:
        sentences.append(
            f"CAUTION: {describe_equal_rows(repeats.rows, task.n, task.grouped)}: if they have the same "
            f"origin (one patient, one document), up to {ceil_percent(repeats.copies / task.n_units)} of "
            "what is scored is not new, a share of wrong rows may be too small by as much, and no bound is "
            "proven."
        )
    dates = [(c.name, task.X[:, i]) for i, c in enumerate(task.schema) if c.kind is ColumnKind.DATE]
    ascends = any(np.all(np.diff(values[~np.isnan(values)]) >= 0) for _, values in dates)
    if result.study.resampling.in_order and dates and not ascends:
        names = " or ".join(quote(name) for name, _ in dates)
        sentences.append(
            f"CAUTION: {result.study.resampling} takes the order of the table as that of time, and rows are "
            f"not in ascending order of {names}: splits learn from rows that come after those that are "
            "scored. Sort the table by its date."
        )
    if task.question:
        sentences.append(f"QUESTION: {task.question}")
    return [*sentences, *_doubt_scores(result)]


def _doubt_scores(result: ResultValues) -> Iterator[str]:
    """Say which scores are not what they seem: divided by 0, infinite, or of few rows."""
    named = {score.name: score for score in result.scores}
    if (zeros := int(np.sum(result.task.y == 0))) and (relative := RELATIVE & named.keys()):
        yield (
            f"CAUTION: {min(relative)} divides by the target, which is 0 in {pluralize(zeros, 'row')}: by "
            f"{np.finfo(np.float64).eps:.1g} there, as in scikit-learn, so that these rows decide the mean. "
            "Choose absolute or rmse."
        )
    if any(result.figures(entry, score).undefined for entry in result.entries for score in result.scores):
        yield (
            "CAUTION: a score that is not defined on a split, such as AUC where all rows scored are of one "
            "class, has no mean; one that is infinite on a split counts as not defined there."
        )
    if (explained := named.keys() & EXPLAINED) and result.n_splits > 1:
        least, names = int(result.rows[result.counted, 1].min()), " and ".join(sorted(explained))
        grouped = " (and so also explains what differs between groups)" if result.task.grouped else ""
        if least < FEW_SCORED_ROWS:
            yield (
                f"CAUTION: {names}: a split is compared with the mean of the rows that it scores, {least} in "
                "the smallest: read the pooled figure, which is compared with the mean of all scored "
                f"rows{grouped}."
            )


def describe_kept(result: ResultValues) -> str:
    """Say which setting was fitted on all rows, by what it was chosen, and what that says of new rows."""
    kept, score, study = result.kept, result.scores[0], result.study
    if kept is None:
        return f"no setting has {score.name} on every split, so none was fitted on all rows"
    mean = format_score(result.figures(kept, score).mean, "")
    measured = f"its mean {score.name} by {study.resampling} is {mean}"
    if len(result.entries) == 1:
        return f"{kept.name}; {measured}"
    how, _, tolerance = study.choose.partition(":")
    return (
        f"{kept.name}, {CHOSEN[how].format(tolerance)} of {len(result.entries):,} settings; {measured}, "
        "which is too good: it was chosen by it. To see what the choice is worth: --resampling nested:5:5 "
        f"--select-by {score.name}"
    )


def _summarize_scores(result: ResultValues) -> Iterator[str]:
    splits = pluralize(int(result.counted.sum()), "split")
    resampling, how = result.study.resampling, result.study.balance
    balanced = "" if how == Balance.NONE else f"; training rows are balanced by class ({how})"
    yield f"{resampling.name}: {splits} of {pluralize(result.task.n, 'row')}{balanced}"
    tested = bounded = False
    for score in result.scores:
        yield from _tabulate_score(result, score)
        if result.n_splits == 1:
            side, level = "at least" if score.greater else "at most", f"{100 * (1 - SCORE_DELTA):g} %"
            for entry in result.entries:
                (bound,) = result.bounds(entry, score)
                if bound == bound:
                    bounded = True
                    limit = f"{side} {round_bound(bound, up=not score.greater)}"
                    yield f"  {entry.name}: {limit} on new rows, with probability {level}"
        for entry, best, test in result.compare_entries(score):
            tested = True
            yield (
                f"  {entry.name} - {best.name}: {format_score(test.difference, '+')}, 95 % interval "
                f"{format_score(test.low, '+')} to {format_score(test.high, '+')}, "
                f"{f'p {test.p:.3f}' if not test.p < 0.0005 else 'p < 0.001'}"
            )
    if resampling.note:
        yield f"\n{resampling.note}"
    if weights := result.task.weighting.describe():
        yield f"\n{weights}"
    if about := describe_interval(result):
        yield f"\n{about}"
    yield from (f"\nScaling: {sentence}." for sentence in result.problem.scaling)
    yield from (f"\n{sentence}" for sentence in list_doubts(result))
    if result.study.choose:
        yield f"\nModel on all {result.task.n:,} rows: {describe_kept(result)}."
    if bounded:
        yield (
            "\nA bound holds for one model, of a line that was named before its score was seen, on "
            "rows\nthat are independent."
        )
    if result.unbounded and any(score.bound for score in result.scores):
        yield f"\nNo bound is proven for any model on new rows: {result.unbounded}."
    if tested:
        yield (
            "\nThe test is the corrected resampled t-test (Nadeau, Bengio 2003), a heuristic: splits "
            "share\nrows. A difference found among many comparisons may be chance."
        )


def _tabulate_score(result: ResultValues, score: Score) -> Iterator[str]:
    """Yield a line for each entry with the figures of a score, and one for each permutation test."""
    width = max(len(entry.name) for entry in result.entries)
    yield f"\n{describe_score(result, score)}"
    heading = f"  approximate {format_level(MISS)}" if result.study.interval else ""
    yield f"  {'':<{width}}  {'mean':>9}  {'sd':>9}  {'se':>9}  {'pooled':>9}{heading}"
    shown = list(result.entries)
    if result.study.choose and len(shown) > MAX_LISTED_SETTINGS:
        shown = [entry for entry, _ in result.rank(score)[:MAX_LISTED_SETTINGS]]
    for entry in shown:
        figures = _format_figures(result.figures(entry, score))
        if result.study.interval:
            low, high = result.interval(entry, score)
            figures += f"  {format_score(low, '')} to {format_score(high, '')}" if low == low else ""
        yield f"  {entry.name:<{width}}  {figures}".rstrip()
    if more := len(result.entries) - len(shown):
        yield f"  and {pluralize(more, 'setting')} more (ckcv report)"
    for entry in result.entries:
        if (test := result.test_by_permutations(entry, score)) is not None:
            yield f"  {entry.name}: {describe_permutations(test)}"


def describe_permutations(test: PermutationTest) -> str:
    """Return a phrase with the p-value of a permutation test."""
    if test.p != test.p:
        return "no p, since there is no mean"
    counted = f"; {test.undefined:,} without a mean count as if they were" if test.undefined else ""
    return (
        f"p {test.p:.4g}: {test.as_good:,} of {test.n:,} permutations of the target are as good or "
        f"better{counted}"
    )


def describe_interval(result: ResultValues) -> str:
    """Say what the intervals are, if the study has any."""
    if not result.study.interval:
        return ""
    interval = INTERVALS[result.study.interval]
    if interval.exact:
        return (
            f"{format_level(MISS)} intervals: {interval.about}, and for a line that was named before its "
            "score was seen."
        )
    best = "" if interval.choosing else ", and do for the best of several lines"
    return (
        f"Approximate {format_level(MISS)} intervals: {interval.about}. They may fail more often than that "
        f"says{best}."
    )


def _format_figures(found: Figures) -> str:
    if found.missing or found.undefined:
        counts = (found.missing, "failed"), (found.undefined, "not defined")
        lost = ", ".join(f"{count} {what}" for count, what in counts if count)
        unknown = found.pooled is None or found.pooled != found.pooled
        return f"incomplete: {lost}{'' if unknown else f'; pooled {found.pooled:.4g}'}"
    pooled = nan if found.pooled is None else found.pooled
    figures = found.mean, found.deviation, found.error, pooled
    return "  ".join(format_score(figure) if figure == figure else " " * 9 for figure in figures)


def format_score(value: float, layout: str = "9") -> str:
    """Format a number with four decimals, or with four digits where these show it badly."""
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:{layout}.4{'f' if usual else 'g'}}"


MAX_SUMMARIZED = 10  # settings of a nested resampling


def _summarize_inner(result: ResultValues) -> Iterator[str]:
    """Yield lines about the best settings on the inner splits of a nested resampling, if there is one."""
    name = result.study.select_by
    if result.computed is None or name is None:
        return
    settings = [row for row in rank_settings(result) if row.places[name].rank is not None]
    settings.sort(key=lambda row: row.places[name].rank or 0)
    shown = settings[:MAX_SUMMARIZED]
    names = [
        f"{row.learner} ({text})" if (text := format_setting(row.setting)) else row.learner for row in shown
    ]
    of = f", the best {len(shown)} of {len(settings):,} settings" if len(settings) > len(shown) else ""
    yield f"\nInner splits by {name}{of}"
    yield f"  {'':<{max(map(len, names), default=0)}}  {'mean':>9}  {'sd':>9}  {'rank':>5}"
    for row, label in zip(shown, names, strict=True):
        mean, deviation, rank = row.places[name]
        spread = f"{deviation:9.4f}" if deviation == deviation else " " * 9
        yield f"  {label:<{max(map(len, names))}}  {mean:9.4f}  {spread}  {rank:>5}"

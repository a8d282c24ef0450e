"""Text summary of a finished run, as the command line prints it."""

from collections.abc import Sequence
from typing import Any

from ckcv_ray.claims.baseline import Baseline, name_constant, says_nothing, select_baseline
from ckcv_ray.claims.certificate import Certificate, ClassCounts, ModelCounts, Sample
from ckcv_ray.claims.percent import at_least, at_most, format_level, nearest
from ckcv_ray.claims.wording import (
    ERROR,
    L_EE_IS,
    MINIMISED,
    Claim,
    describe_counts,
    find_claim_of_all_members,
    limit,
    quantity,
)
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.study import Candidate, Holdout, Problem, listed
from ckcv_ray.tables.target import Label

MOST_CLASSES = 5
MOST_COLUMNS = 10  # of a confusion matrix in text
MOST_MISTAKES = 10
MOST_LABEL = 12  # characters of a label in a table of text
CONFUSION_IS = (
    "% of the rows of each class (a line) predicted as each class (a column), over all estimate sets"
)
UNKNOWN = "not available"
ERROR_IS = "mean error of the members on their estimate sets (an estimate, not a bound)"


def summary(
    problem: Problem,
    certificate: Certificate,
    execution: dict[str, Any],
    per_k: Sequence[dict[str, Any]],
    per_learner: Sequence[dict[str, Any]],
    edges: Sequence[str],
) -> str:
    """Return the summary as text.

    Args:
        problem: the problem that was solved.
        certificate, execution: of the result.
        per_k: state and result of every fold size.
        per_learner: state and result of every learner, shown if there are several.
        edges: one sentence for each grid that has the winner on its edge.
    """
    lines = [
        *_headline(problem, certificate),
        *(_of_learner(row) for row in per_learner if len(per_learner) > 1),
        *_reported(problem, execution, per_k),
        *_cost(execution),
        *(f"note           {sentence}" for sentence in edges),
    ]
    shown = certificate.list_cautions()
    statements = [statement for statement in certificate.wording.statements if statement not in shown]
    return "\n".join([*lines, "", *statements])


def _headline(problem: Problem, c: Certificate) -> list[str]:
    winner, sample, groups = c.winner, c.sample, c.sample.groups
    level, labels, criterion = format_level(winner.delta), sample.labels, winner.criterion
    classes = f"classes {labels[0]!r} and {labels[1]!r}" if len(labels) == 2 else f"{len(labels)} classes"
    held_out = f" (and {sample.n_held} held out)" if sample.n_held else ""
    features, units = pluralize(len(problem.task.features), "feature"), "rows"
    asked = problem.all_rows.question
    if groups is not None:
        held_out += f" in {groups['count']} groups by {groups['column']!r}"
        held_out += f" ({groups['held']} of them held out)" if groups["held"] else ""
        units = "groups"
    sizes = f"train {winner.n_train}, select {winner.n_select}, estimate {winner.n_select} {units}"
    return [
        f"run {c.origin.run_id}: {problem.task.n} rows{held_out}, {features}, {classes}",
        f"classes        {class_shares(sample)}",
        f"best           {Candidate(winner.setting, winner.k)}   ({sizes}; {winner.n_splits} splits)",
        _figure("L_MS", at_most(winner.l_ms), MINIMISED[criterion].format(level)),
        _figure("L_EE", at_most(winner.l_ee), L_EE_IS[criterion][winner.bound]),
        _figure("error", nearest(c.counts.error), ERROR_IS),
        *(_claimed(claim, criterion, select_baseline(claim, sample.baselines)) for claim in c.claims),
        *_held_out(c),
        *(_figure("baseline", nearest(one["error"]), baseline_is(sample, one)) for one in sample.baselines),
        *(f"CAUTION        {sentence}" for sentence in c.list_cautions()),
        *([f"QUESTION       {asked}"] if asked else []),
        *(
            f"  {_mistaken(labels, number)}:  {nearest(side['errors'] / max(1, side['rows']))}"
            f" of these rows on average{_bounded(side, level)}"
            for number, side in enumerate(c.counts.by_class)
        ),
        *(_confusion(labels, c.counts) if len(labels) > 2 else []),
    ]


def _bounded(side: ClassCounts, level: str) -> str:
    """Say what the mean bound of a class is, if there is one: with groups there is none."""
    return "" if side["bound"] is None else f", mean {level} bound {at_most(side['bound'])}"


def class_shares(sample: Sample) -> str:
    """Format the shares of the classes in the full table: "'benign' 62.74 %, 'malignant' 37.26 %"."""
    shares = [
        f"{label!r} {nearest(rows / sample.n_rows)}"
        for label, rows in zip(sample.labels, sample.class_rows, strict=True)
    ]
    more = f" and {len(shares) - MOST_CLASSES} more" if len(shares) > MOST_CLASSES else ""
    return f"{', '.join(shares[:MOST_CLASSES])}{more}"


def baseline_is(sample: Sample, baseline: Baseline) -> str:
    """Say what a baseline is: a constant, and the rows that it is wrong on."""
    errors, rows = baseline["errors"], baseline["rows"]
    constant = name_constant(baseline, sample.labels)
    mean = "" if sample.groups is None else ", mean over the groups"
    return f"error of {constant}{mean} ({errors:,} of {rows:,} {baseline['on']})"


def _figure(name: str, percent: str, what: str) -> str:
    """Return a line with a percentage."""
    return f"{name:<14}{percent:>9}   {what}"


def _held_out(c: Certificate) -> list[str]:
    """Say what holding out rows costs and brings."""
    sample, groups = c.sample, c.sample.groups
    errors = [claim for claim in c.claims if claim["quantity"] == ERROR]
    first = next(claim for claim in errors if claim["classifier"] != "full")  # full has learned from them
    every = find_claim_of_all_members(c.claims)
    if not sample.n_held or first["certification"] != Holdout.name:
        return []
    of_groups = f" ({groups['held']} of {groups['count']} groups)" if groups is not None else ""
    rows = f"{sample.n_held} of {sample.n_rows} rows{of_groups}"
    return [
        f"held out       {rows}, which {first['classifier']} has not learned from, prove "
        f"{at_most(first['bound'])}; occam, which needs none, proves {at_most(every['bound'])} for F*",
    ]


def _mistaken(labels: Sequence[Label], number: int) -> str:
    """Name the kind of error made on a class."""
    if len(labels) == 2:
        return f"{labels[number]!r} predicted as {labels[1 - number]!r}"
    return f"{labels[number]!r} predicted as another class"


def _of_learner(row: dict[str, Any]) -> str:
    """Return a line about a learner: its best candidate, or what all its candidates are at least."""
    return f"learner        {row['learner']}: {outcome_of_learner(row)}"


def outcome_of_learner(row: dict[str, Any]) -> str:
    """Say what came of a learner, given its entry in ``Result.per_learner``."""
    failed = f"; {row['failed']:,} of {row['candidates']:,} candidates failed" if row["failed"] else ""
    if row["setting"] is None:
        return f"{row['state']}, L_MS at least {at_least(row['lower_bound'])}{failed}"
    own = {name: value for name, value in row["setting"].items() if name != "learner"}
    return f"{row['state']}, L_MS {at_most(row['l_ms'])}   {Candidate(own, row['k'])}{failed}"


def _confusion(labels: Sequence[Label], counts: ModelCounts) -> list[str]:
    """Return the confusion matrix of several classes; of many, the mistakes that are made most often."""
    if len(labels) > MOST_COLUMNS:
        return _most_frequent(labels, counts)
    shown = [cut(repr(label), MOST_LABEL) for label in labels]
    width = max(9, *(len(label) + 1 for label in shown))
    columns = [*shown, *(["undecided"] if counts.undecided else [])]
    lines = [
        f"confusion      {CONFUSION_IS}",
        " " * (width + 2) + "".join(f"{one:>{width}}" for one in columns),
    ]
    for label, line, rows in zip(shown, counts.confusion_matrix, counts.class_totals, strict=True):
        cells = [*line, *([rows - sum(line)] if counts.undecided else [])]
        shares = (nearest(count / max(1, rows)) if count else "0" for count in cells)
        lines.append(f"  {label:<{width}}" + "".join(f"{share:>{width}}" for share in shares))
    return lines


def _most_frequent(labels: Sequence[Label], counts: ModelCounts) -> list[str]:
    """Return the mistakes that are made most often, a line each."""
    found = counts.list_mistakes()
    heading = f"the most frequent of {pluralize(len(found), 'kind')} of mistake"
    return [
        f"confusion      {heading}, in % of the rows of the actual class",
        *(
            f"  {labels[one.actual]!r} predicted as "
            f"{'no class' if one.predicted is None else repr(labels[one.predicted])}:  {nearest(one.share)}"
            for one in found[:MOST_MISTAKES]
        ),
    ]


def _reported(problem: Problem, execution: dict[str, Any], per_k: Sequence[dict[str, Any]]) -> list[str]:
    tests = (execution.get("test") or {}).get("reported", {})
    lines = []
    for k in problem.study.report_k:
        row = next(row for row in per_k if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is None:
            continue
        setting, l_ee = listed(row["setting"]), at_most(row["l_ee"]) if row["l_ee"] is not None else UNKNOWN
        line = f"k = {k:<10} L_MS {at_most(row['l_ms'])}, L_EE {l_ee}   {setting}"
        test = tests.get(str(k))
        lines.append(f"{line}, test error {_estimated(test['error'])}" if test else line)
    return lines


def _cost(execution: dict[str, Any]) -> list[str]:
    counts = execution["evaluations"]
    lines = [
        f"evaluations    {counts['computed']:,} of {counts['planned']:,} computed "
        f"({nearest(counts['computed'] / counts['planned'])}), {counts['dropped']:,} dropped as provably "
        f"beaten, {counts['failed']:,} failed",
        f"fits           {execution['fits']:,} in {execution['seconds']:.1f} s",
    ]
    if execution["not_converged"]:
        lines.append(f"not converged  {execution['not_converged']:,} fits stopped at the iteration limit")
    if test := execution.get("test"):
        lines.append(
            f"test error     {_estimated(test['error'])} on {test['rows']:,} rows by a random member of F*, "
            f"{_estimated(test['vote_error'])} by majority vote (as reported by the run)"
        )
    return lines


def _claimed(claim: Claim, criterion: str, baseline: Baseline) -> str:
    """Return a claim as one line, which says what it bounds if that is not what was minimised."""
    about = "" if criterion == MeanBound.name else "the error, "
    level = format_level(claim["delta"])
    prefix = f", best prefix of {pluralize(len(claim['splits']), 'split')}" if claim["splits"] else ""
    seen = f" ({describe_counts(claim)})" if describe_counts(claim) else ""
    source = f"{claim['certification']}, {claim['classifier']}{prefix}{seen}"
    if claim["quantity"] != ERROR:
        what = f"{quantity(claim)} at least; {source}: with probability {level}, selection included"
        return _figure("proven", limit(claim), what)
    worth = "; not below the baseline" if says_nothing(claim["bound"], baseline) else ""
    what = f"{about}{source}: with probability {level}, selection included{worth}"
    return _figure("proven", at_most(claim["bound"]), what)


def _estimated(value: float | None) -> str:
    return UNKNOWN if value is None else nearest(value)

"""Text summary of a finished run, as the command line prints it."""

from collections.abc import Sequence
from typing import Any

from ckcv_ray.claims.baseline import Baseline, name_constant, says_nothing
from ckcv_ray.claims.certificate import Certificate, Side
from ckcv_ray.claims.percent import at_least, at_most, level_of, nearest
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
from ckcv_ray.errors import counted, cut
from ckcv_ray.study import Candidate, Holdout, Problem, listed

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
    shown = certificate.cautions()
    statements = [statement for statement in certificate.statements if statement not in shown]
    return "\n".join([*lines, "", *statements])


def _headline(problem: Problem, c: Certificate) -> list[str]:
    level, winner = level_of(c.delta), Candidate(c.setting, c.k)
    two = len(c.labels) == 2
    classes = f"classes {c.labels[0]!r} and {c.labels[1]!r}" if two else f"{len(c.labels)} classes"
    held_out = f" (and {c.n_held} held out)" if c.n_held else ""
    features, units = counted(len(problem.task.features), "feature"), "rows"
    asked = problem.all_rows.question
    if c.groups is not None:
        held_out += f" in {c.groups['count']} groups by {c.groups['column']!r}"
        held_out += f" ({c.groups['held']} of them held out)" if c.groups["held"] else ""
        units = "groups"
    return [
        f"run {c.run_id}: {problem.task.n} rows{held_out}, {features}, {classes}",
        f"classes        {class_shares(c)}",
        f"best           {winner}"
        f"   (train {c.n_train}, select {c.n_select}, estimate {c.n_select} {units}; {c.n_splits} splits)",
        _figure("L_MS", at_most(c.l_ms), MINIMISED[c.criterion].format(level)),
        _figure("L_EE", at_most(c.l_ee), L_EE_IS[c.criterion][c.bound]),
        _figure("error", nearest(c.error), ERROR_IS),
        *(_claimed(claim, c.criterion, c.select_baseline(claim)) for claim in c.claims),
        *_held_out(c),
        *(_figure("baseline", nearest(one["error"]), baseline_is(c, one)) for one in c.baselines),
        *(f"CAUTION        {sentence}" for sentence in c.cautions()),
        *([f"QUESTION       {asked}"] if asked else []),
        *(
            f"  {_mistaken(c, number)}:  {nearest(side['errors'] / max(1, side['rows']))}"
            f" of these rows on average{_bounded(side, level)}"
            for number, side in enumerate(c.by_class)
        ),
        *(_confusion(c) if len(c.labels) > 2 else []),
    ]


def _bounded(side: Side, level: str) -> str:
    """Say what the mean bound of a class is, if there is one: with groups there is none."""
    return "" if side["bound"] is None else f", mean {level} bound {at_most(side['bound'])}"


def class_shares(c: Certificate) -> str:
    """Format the shares of the classes in the full table: "'benign' 62.74 %, 'malignant' 37.26 %"."""
    shares = [
        f"{label!r} {nearest(rows / c.n_rows)}" for label, rows in zip(c.labels, c.class_rows, strict=True)
    ]
    more = f" and {len(shares) - MOST_CLASSES} more" if len(shares) > MOST_CLASSES else ""
    return f"{', '.join(shares[:MOST_CLASSES])}{more}"


def baseline_is(c: Certificate, baseline: Baseline) -> str:
    """Say what a baseline is: a constant, and the rows that it is wrong on."""
    errors, rows = baseline["errors"], baseline["rows"]
    mean = "" if c.groups is None else ", mean over the groups"
    return f"error of {name_constant(baseline, c.labels)}{mean} ({errors:,} of {rows:,} {baseline['on']})"


def _figure(name: str, percent: str, what: str) -> str:
    """Return a line with a percentage."""
    return f"{name:<14}{percent:>9}   {what}"


def _held_out(c: Certificate) -> list[str]:
    """Say what holding out rows costs and brings."""
    errors = [claim for claim in c.claims if claim["quantity"] == ERROR]
    first = next(claim for claim in errors if claim["classifier"] != "full")  # full has learned from them
    every = find_claim_of_all_members(c.claims)
    if not c.n_held or first["certification"] != Holdout.name:
        return []
    groups = f" ({c.groups['held']} of {c.groups['count']} groups)" if c.groups is not None else ""
    rows = f"{c.n_held} of {c.n_rows} rows{groups}, which {first['classifier']} has not learned from"
    return [
        f"held out       {rows}, prove {at_most(first['bound'])}; occam, which needs none, proves "
        f"{at_most(every['bound'])} for F*",
    ]


def _mistaken(c: Certificate, number: int) -> str:
    """Name the kind of error made on a class."""
    if len(c.labels) == 2:
        return f"{c.labels[number]!r} predicted as {c.labels[1 - number]!r}"
    return f"{c.labels[number]!r} predicted as another class"


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


def _confusion(c: Certificate) -> list[str]:
    """Return the confusion matrix of several classes; of many, the mistakes that are made most often."""
    if len(c.labels) > MOST_COLUMNS:
        return _most_frequent(c)
    shown = [cut(repr(label), MOST_LABEL) for label in c.labels]
    width = max(9, *(len(label) + 1 for label in shown))
    columns = [*shown, *(["undecided"] if c.undecided else [])]
    lines = [
        f"confusion      {CONFUSION_IS}",
        " " * (width + 2) + "".join(f"{one:>{width}}" for one in columns),
    ]
    for label, counts, side in zip(shown, c.confusion_matrix, c.by_class, strict=True):
        cells = [*counts, *([side["rows"] - sum(counts)] if c.undecided else [])]
        shares = (nearest(count / max(1, side["rows"])) if count else "0" for count in cells)
        lines.append(f"  {label:<{width}}" + "".join(f"{share:>{width}}" for share in shares))
    return lines


def _most_frequent(c: Certificate) -> list[str]:
    """Return the mistakes that are made most often, a line each."""
    found = c.mistakes()
    heading = f"the most frequent of {counted(len(found), 'kind')} of mistake"
    return [
        f"confusion      {heading}, in % of the rows of the actual class",
        *(
            f"  {c.labels[one.actual]!r} predicted as "
            f"{'no class' if one.predicted is None else repr(c.labels[one.predicted])}:  {nearest(one.share)}"
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
    level = level_of(claim["delta"])
    prefix = f", best prefix of {counted(len(claim['splits']), 'split')}" if claim["splits"] else ""
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

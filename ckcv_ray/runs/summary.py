"""Text summary of a finished run, as the command line prints it."""

from collections.abc import Sequence
from typing import Any

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.wording import Claim, at_most, level_of, repeats_statement
from ckcv_ray.errors import counted
from ckcv_ray.study import Candidate, Problem, listed

L_EE_IS = {
    "clopper_pearson": "the same mean on the estimate sets (the paper's figure)",
    "stevens": "mean randomised bound (Stevens) on the estimate sets",
    "safe": "averaging-safe bound on the estimate sets",
    "catoni": "Catoni's bound on the estimate sets",
}


def summary(
    problem: Problem,
    certificate: Certificate,
    execution: dict[str, Any],
    per_k: Sequence[dict[str, Any]],
    edges: Sequence[str],
) -> str:
    """Return the summary as text.

    Args:
        problem: the problem that was solved.
        certificate, execution: of the result.
        per_k: state and result of every fold size.
        edges: one sentence for each grid that has the winner on its edge.
    """
    lines = [
        *_headline(problem, certificate),
        *_reported(problem, execution, per_k),
        *_cost(execution),
        *(f"note           {sentence}" for sentence in edges),
    ]
    shown = repeats_statement(certificate.repeats, certificate.n_rows)
    statements = [statement for statement in certificate.statements if statement not in shown]
    return "\n".join([*lines, "", *statements])


def _headline(problem: Problem, c: Certificate) -> list[str]:
    level, winner = level_of(c.delta), Candidate(c.setting, c.k)
    two = len(c.labels) == 2
    classes = f"classes {c.labels[0]!r} and {c.labels[1]!r}" if two else f"{len(c.labels)} classes"
    held_out = f" (and {c.n_held} held out)" if c.n_held else ""
    features = counted(len(problem.task.features), "feature")
    return [
        f"run {c.run_id}: {problem.task.n} rows{held_out}, {features}, {classes}",
        f"best           {winner}"
        f"   (train {c.n_train}, select {c.n_select}, estimate {c.n_select} rows; {c.n_splits} splits)",
        f"L_MS           {100 * c.l_ms:6.2f} %   mean {level} bound on the select sets (minimised)",
        f"L_EE           {100 * c.l_ee:6.2f} %   {L_EE_IS[c.bound]}",
        *map(_claimed, c.claims),
        *(f"CAUTION        {sentence}" for sentence in repeats_statement(c.repeats, c.n_rows)),
        *(
            f"  {_mistaken(c, number)}:  {100 * side['errors'] / max(1, side['rows']):.2f} %"
            f" of these rows on average, mean {level} bound {100 * side['bound']:.2f} %"
            for number, side in enumerate(c.by_class)
        ),
    ]


def _mistaken(c: Certificate, number: int) -> str:
    """Name the kind of error made on a class."""
    if len(c.labels) == 2:
        return f"{c.labels[number]!r} predicted as {c.labels[1 - number]!r}"
    return f"{c.labels[number]!r} predicted as another class"


def _reported(problem: Problem, execution: dict[str, Any], per_k: Sequence[dict[str, Any]]) -> list[str]:
    tests = (execution.get("test") or {}).get("reported", {})
    lines = []
    for k in problem.study.report_k:
        row = next(row for row in per_k if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is None:
            continue
        setting, l_ee = listed(row["setting"]), _percent(row["l_ee"])
        line = f"k = {k:<10} L_MS {100 * row['l_ms']:.2f} %, L_EE {l_ee}   {setting}"
        test = tests.get(str(k))
        lines.append(f"{line}, test error {_percent(test['error'])}" if test else line)
    return lines


def _cost(execution: dict[str, Any]) -> list[str]:
    counts = execution["evaluations"]
    lines = [
        f"evaluations    {counts['computed']:,} of {counts['planned']:,} computed "
        f"({100 * counts['computed'] / counts['planned']:.1f} %), {counts['dropped']:,} dropped as provably "
        f"beaten, {counts['failed']:,} failed",
        f"fits           {execution['fits']:,} in {execution['seconds']:.1f} s",
    ]
    if execution["not_converged"]:
        lines.append(f"not converged  {execution['not_converged']:,} fits stopped at the iteration limit")
    if test := execution.get("test"):
        lines.append(
            f"test error     {_percent(test['error'])} on {test['rows']:,} rows by a random member of F*, "
            f"{_percent(test['vote_error'])} by majority vote (as reported by the run)"
        )
    return lines


def _claimed(claim: Claim) -> str:
    """Return a claim as one line."""
    level = level_of(claim["delta"])
    prefix = f", best prefix of {counted(len(claim['splits']), 'split')}" if claim["splits"] else ""
    source = f"{claim['certification']}, {claim['classifier']}{prefix}"
    return (
        f"proven        {at_most(claim['bound'], 2):>9}   "
        f"{source}: with probability {level}, selection included"
    )


def _percent(value: float | None) -> str:
    return "not available" if value is None else f"{100 * value:.2f} %"

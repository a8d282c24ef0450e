"""The first screen of the page, in answers to six questions.

They are what the number is, whether it may be quoted, what it is about, what voids it, how it is checked, and
what to do next.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.claim import Claim, describe_counts, limit, name_side, quantity
from ckcv_ray.errors import cut, pluralize
from ckcv_ray.reports.about import About
from ckcv_ray.reports.answer import describe_passed_over, make_answer
from ckcv_ray.reports.summary import describe_edges
from ckcv_ray.reports.values import Entry, ResultValues
from ckcv_ray.study import ERROR

MOST_LABELS, MOST_LABEL = 3, 40


class ShellCommand(NamedTuple):
    """What to do: the command, without the program's name, and what to know of it, a sentence each."""

    command: str
    sentences: Sequence[str]


class Opening(NamedTuple):
    """The answers to what a reader asks first.

    Attributes:
        state: "quote", "worthless", "provisional" or "estimate".
        kicker: heading of the number.
        number: the number as text; "" if none may be quoted.
        name: what it is of, in a few words.
        statement: the sentence to quote with it; "" if there is none.
        quotable: whether and how it may be quoted, a sentence each.
        notes: what to look at before, a sentence each.
        subject: what it is about, a sentence each.
        voids: what makes it invalid, a phrase each.
        check: how it is checked.
        advice: what to do next.
    """

    state: str
    kicker: str
    number: str
    name: str
    statement: str
    quotable: Sequence[str]
    notes: Sequence[str]
    subject: Sequence[str]
    voids: Sequence[str]
    check: ShellCommand
    advice: ShellCommand


def make_title(result: ResultValues, about: About) -> str:
    """Return the title of a report: the one that was asked for, or one with the target and the table."""
    source = result.execution.get("source") or result.task.source
    of_table = f" from {source}" if source and source != "arrays" else ""
    return about.title or f"Prediction of {result.task.target}{of_table}"


def open_run(result: ResultValues) -> Opening:
    """Return the answers about a study with a certification."""
    certificate, answer = result.certificate, make_answer(result)
    quoted, worthless, facts = answer.quoted, answer.quoted is None, dict(answer.facts)
    return Opening(
        _find_state(certificate, worthless),
        _name_number(certificate, worthless),
        "" if quoted is None else limit(quoted),
        "" if quoted is None else _name_claim(result, quoted),
        "" if quoted is None else quoted["statement"],
        [
            *([f"{answer.decided}."] if answer.decided else []),
            f"{answer.verdict.removesuffix('.')}.",
            *answer.cautions,
        ],
        list_notes(result),
        [
            _describe_rows(result),
            *(
                f"{name.capitalize()}: {facts[name]}."
                for name in ("measured", "baseline", "better")
                if name in facts
            ),
        ],
        [
            *certificate.wording.not_covered,
            "a study repeated with other seeds, grids or data until it looked good",
        ],
        ShellCommand(
            "verify RUN_FOLDER",
            [
                "It recomputes the number from the run folder; with --refit it also fits again what the "
                "number rests on."
            ],
        ),
        _advise_run(result, answer.advice, worthless),
    )


def _name_claim(result: ResultValues, claim: Claim) -> str:
    """Say in a few words what the number of a claim is of, and by what it is proven."""
    what = "wrong" if claim["quantity"] == ERROR else quantity(claim)
    counts = f"; {describe_counts(claim)}" if describe_counts(claim) else ""
    return f"{what} on {_name_units(result)}, {name_side(claim)}; proven, by {claim['certification']}{counts}"


def open_scores(result: ResultValues, doubts: Sequence[str]) -> Opening:
    """Return the answers about a study without a certification."""
    score, several = result.scores[0], len(result.entries) > 1
    entry = result.kept or result.rank(score)[0][0]
    found = result.figures(entry, score)
    known = found.mean == found.mean
    spread = "" if found.deviation != found.deviation else f"; standard deviation {found.deviation:.4f}"
    splits = pluralize(int(result.counted.sum()), "split")
    quotable = [
        "As an estimate, with its name and the splits it is of. It is no bound, and nothing is proven by it."
    ]
    if several:
        quotable.append(
            f"It is the best of {len(result.entries):,}, chosen by this very figure, so it is too good."
        )
    if not known:
        quotable = ["No: a fit failed, or the score is not defined on a split, so there is no mean."]
    return Opening(
        "estimate" if known else "worthless",
        "An estimate, not a bound",
        _format_score(found.mean) if known else "–",
        f"mean {score.name} of {entry.name} over {splits}{spread}",
        "",
        quotable,
        list(doubts),
        [
            _describe_rows(result),
            f"Each split fits on some rows and scores others ({result.study.resampling}).",
        ],
        [
            "rows that belong together, such as visits of one patient, in different parts of a split",
            "scaling or a choice of columns made on the full table before the splits",
            *(["a choice among many lines by the figure that is quoted"] if several else []),
            "new rows from another source than these",
        ],
        ShellCommand(
            "verify RUN_FOLDER",
            ["It recomputes every figure from the log; with --refit it also fits again."],
        ),
        _advise_scores(result, entry),
    )


def _format_score(value: float) -> str:
    """Format a number with four decimals, or with four digits where these show it badly."""
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:.4f}" if usual else f"{value:.4g}"


def list_notes(result: ResultValues) -> list[str]:
    """List what to look at before quoting the bound."""
    asked = result.problem.all_rows.question
    notes = [note for note in (asked, describe_passed_over(result)) if note]
    if not_converged := result.execution["not_converged"]:
        notes.append(f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}")
    if failed := result.execution["evaluations"]["failed"]:
        notes.append(f"{failed:,} evaluations failed; their tracebacks are below")
    return notes


def _find_state(certificate: Certificate, worthless: bool) -> str:
    if certificate.winner.provisional:
        return "provisional"
    return "worthless" if worthless else "quote"


def _name_number(certificate: Certificate, worthless: bool) -> str:
    if certificate.winner.provisional:
        return "Provisional: evaluations failed; the bound is proven nevertheless"
    return "Nothing to quote yet" if worthless else "The number to quote"


def _describe_rows(result: ResultValues) -> str:
    table, task = result.problem.all_rows, result.task
    held = table.n - task.n
    of_groups = f" of {task.n_units:,} groups by {table.group}" if table.grouped else ""
    of_held = f" of {table.n_units - task.n_units:,} groups" if table.grouped else ""
    held_out = f", and judged by {held:,} others{of_held}, which were held out" if held else ""
    what = f"a number, {task.target}," if task.has_numbers else f"{task.target} ({_list_labels(result)})"
    columns = pluralize(len(table.features), "feature")
    learned = f"{task.n:,} rows{of_groups}, {columns}"
    return f"Prediction of {what} for {_name_units(result)}, learned from {learned}{held_out}."


def _name_units(result: ResultValues) -> str:
    return "rows of new groups" if result.task.grouped else "new rows"


def _list_labels(result: ResultValues) -> str:
    labels = [cut(str(label), MOST_LABEL) for label in result.task.classes]
    if len(labels) > MOST_LABELS:
        return f"{', '.join(labels[: MOST_LABELS - 1])} and {len(labels) - MOST_LABELS + 1} more classes"
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


def _advise_run(result: ResultValues, advice: Sequence[str], worthless: bool) -> ShellCommand:
    """Say what to do next: apply the model, or get a bound that says something, with what to expect of it."""
    if worthless:
        return ShellCommand("run … --out NEW_FOLDER", [f"{text}." for text in advice])
    closer = [f"For a closer bound {text}." for text in advice]
    closer += [
        f"{edge}: a better candidate may be there." for edge in describe_edges(result.problem, result.setting)
    ]
    does = "predicts" if result.task.has_numbers else "classifies"
    return ShellCommand(
        "predict RUN_FOLDER NEW_ROWS.csv",
        [f"It {does} new rows by the very rule that the number is about.", *closer],
    )


def _advise_scores(result: ResultValues, entry: Entry) -> ShellCommand:
    if result.kept is not None:
        sentence = f"It predicts new rows with the model fitted on all rows ({entry.name})."
        return ShellCommand("predict RUN_FOLDER NEW_ROWS.csv", [sentence])
    if result.task.has_numbers:
        return ShellCommand(
            "evaluate … --refit best", ["It fits the best line on all rows, to predict new ones."]
        )
    sentence = "It makes a study with a certificate, for a number that may be quoted as a bound."
    return ShellCommand("run … --out NEW_FOLDER", [sentence])

"""The first screen of a finished run: what may be quoted, what it rests on, and what to do next.

At most fifteen lines as a rule: what is left out is under ``--details`` and in the report. The same sentences
are used by the summary and the page, as are the figures of a study that predicts numbers, and the lines of a
table about subgroups.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import ceil, inf, sqrt
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.claims.baseline import Baseline, describe_error, name_constant
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.quantity import MIN_OF_SUBGROUP, Claim, Quantity, describe_decisions
from ckcv_ray.claims.rare_classes import name_classes
from ckcv_ray.claims.weighted import describe_weights
from ckcv_ray.claims.wording import (
    L_EE_IS,
    PROVISIONAL,
    describe_gate,
    describe_least,
    describe_worthless_bound,
    says_nothing,
)
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.percent import (
    ceil_percent,
    format_level,
    format_number,
    format_percent,
    round_bound,
)
from ckcv_ray.errors import cut, cut_list, plain, pluralize
from ckcv_ray.learners.sklearn.spec import list_foreign
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.storage.execution import Before, EarlierRun
from ckcv_ray.study import MIN_HELD_OUT, Candidate, Holdout
from ckcv_ray.tables.survey import describe_sorted
from ckcv_ray.validation import quote


def list_figures(c: Certificate) -> Iterator[tuple[str, str]]:
    """Yield what was selected, measured and minimised, by name; all errors are in units of the target."""
    winner, sample, counts = c.winner, c.sample, c.counts
    assert sample.numbers is not None
    clip, level = sample.numbers["clip"], format_level(winner.delta)
    bounds = f"mean error, of which at most {format_number(clip)} counts, with a {level} margin"
    units, groups = "rows" if sample.groups is None else "groups", sample.groups
    of_groups = "" if groups is None else f" of {groups['held']:,} groups"
    held = f"{sample.n_held:,} rows{of_groups}, not used before the end" if sample.n_held else "none"
    yield "best", str(Candidate(winner.setting, winner.k))
    yield "selected by", f"{round_bound(clip * winner.l_ms)}, {bounds}, on the select sets (minimised)"
    yield "estimated", f"{round_bound(clip * winner.l_ee)}, the same on the estimate sets; no bound"
    error = format_number(clip * counts.error)
    yield "mean error", f"{error} on the estimate sets (an estimate, not a bound)"
    for baseline in sample.baselines:
        by = name_constant(baseline, ())
        yield "baseline", f"{describe_error(baseline)} by {by} on the {baseline['on']}"
    yield "held out", held
    parts = f"{winner.n_train:,} {units} to train, {winner.n_select:,} to select"
    yield "splits", f"{winner.n_splits:,}, each of {parts}, {winner.n_select:,} to estimate"


def describe_errors(c: Certificate) -> dict[str, Any]:
    """Return what the page shows of such a study."""
    known = {claim.statement for claim in c.claims} | {*c.list_cautions()}
    return {
        "certificate": c,
        "figures": list(list_figures(c)),
        "claims": [(claim, c.sample.baseline) for claim in c.claims],
        "remarks": [sentence for sentence in c.wording.statements if sentence not in known],
    }


class SubgroupLine(NamedTuple):
    """A line of the table of subgroups.

    Attributes:
        subgroup: its name.
        quantity: "error", "mean error" of numbers, or the class that a recall is about.
        rows: held-out rows of the subgroup, of this class for a recall.
        measured, proven: in words; "–" where there is nothing.
    """

    subgroup: str
    quantity: str
    rows: int
    measured: str
    proven: str


def list_subgroups(certificate: Certificate) -> list[SubgroupLine]:
    """Return a line for the error and each recall of every subgroup; of small ones, one that says so."""
    lines = list[SubgroupLine]()
    for claim in certificate.claims.subgroups or ():
        name = "mean error" if claim.quantity.is_mean else "error"
        name = name if claim.label is None else f"recall of {claim.label}"
        if claim.bound is not None or claim.label is None:
            lines.append(SubgroupLine(claim.subgroup, name, claim.rows, claim.rate, claim.limit))
    return lines


def describe_worst(certificate: Certificate) -> str:
    """Say of which subgroup the largest error is proven, for the first screen; "" without subgroups."""
    claimed = [claim for claim in certificate.claims.subgroups or () if claim.label is None]
    known = [claim for claim in claimed if claim.bound is not None]
    if not claimed:
        return ""
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {MIN_OF_SUBGROUP} held-out rows: nothing is proven of them"
    worst = max(known, key=lambda claim: claim.bound or 0.0)
    of, limit = f"in the worst of {len(known)} ({worst.subgroup}:", worst.quantity.format(worst.bound or 0.0)
    if worst.quantity.is_mean:
        counted = f"{worst.rate} measured on {worst.rows:,} rows"
        return f"off by at most {limit} on average {of} {counted}){small}"
    return f"at most {limit} wrong {of} {worst.errors:,} of {worst.rows:,} measured){small}"


ROOM = 1.15  # of the scale of a card, times the largest share
LINE_WIDTH = 80  # characters of a line
INDENT = 10
MAX_LINES = 15
OWN_CUT_OFF = "; at the learner's own cut-off, not the one chosen"
COUNTED = re.compile(r" \([^()]*(\([^()]*\)[^()]*)*\)\.$")  # at the end of a claim: how it was counted
WORST = 5
MAX_RUNS = 3  # folders that are named
LONGEST_LABEL = 24  # characters
NEW_ROWS = "on new rows, none of these"  # what is selected again by judged rows is not covered
SAME_RATE = "assuming the same error rate (then with probability about one half)"
BETTER_DATA = "more of them, better columns, or other learners"


class Answer(NamedTuple):
    """What the first screen says, in a terminal and in a notebook.

    Attributes:
        verdict: what may be quoted, or why nothing may.
        sentence: the claim in words; "" if nothing may be quoted.
        facts: what it rests on: a name and a text each.
        cautions: what may void it, the gravest first.
        question: about a column that looks like groups; "" if there is none.
        advice: how a closer bound can be had.
        shares: the errors to compare: "proven" at most, "measured" and "baseline"; empty if the first claim
            is about something else.
        decided: whether the conditions of the study are met; "" if it has none.
        quoted: the claim that may be quoted; None if nothing may.
    """

    verdict: str
    sentence: str
    facts: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    question: str
    advice: tuple[str, ...]
    shares: dict[str, float]
    decided: str = ""
    quoted: Claim | None = None


def make_answer(result: ResultValues) -> Answer:
    """Return what the first screen says of a study with a certification."""
    c = result.certificate
    first, baseline = c.claims.first, c.sample.baseline
    nothing = describe_worthless_bound(first, baseline, c.sample.labels)
    if first.bound is None:
        nothing = [first.statement]
    elif not first.quantity.is_error and not first.says_something:
        nothing = [f"The {first.name} is proven to be {first.says}, which is nothing."]
    asked = _find_asked(result) if nothing and first.quantity.is_error else None
    provisional = [PROVISIONAL] if c.winner.provisional else []
    earlier, repeats = _describe_earlier(result), c.describe_repeats()
    gravest_first = dict.fromkeys(
        [*provisional, *earlier, *repeats, *list_cautions(result), *c.list_cautions()]
    )
    cautions = tuple(sentence for sentence in gravest_first if asked or sentence not in nothing)
    question, worst = result.problem.all_rows.question, describe_worst(c)
    chosen = any(claim.cut_off is not None for claim in c.claims)
    required = result.problem.required
    lack = "" if required is None else c.claims.explain_lack_of_cut_off(required)
    advice = tuple(_advise(result, first, baseline)) or ((BETTER_DATA,) if nothing else ())
    compared = [claim for claim in c.claims if claim.quantity.reference]
    facts = (
        ("required", "" if lack == first.statement else lack),
        ("measured", _describe_measured(result)),
        ("baseline", _describe_baseline(c, baseline)),
        ("better", describe_gate(first, baseline, c.sample.labels)),
        ("proven", "" if asked else _describe_other_claims(c)),
        ("by class", _describe_classes(result)),
        ("answered", _describe_answered(c)),
        ("compared", "; ".join(claim.quantity.describe(claim) for claim in compared)),
        ("subgroups", f"{worst}{OWN_CUT_OFF if chosen else ''}" if worst else ""),
        ("model", _describe_model(result)),
        ("search", name_search(result) if c.winner.search is not None else ""),
        ("weights", describe_weights(result.problem)),
        ("unread", describe_passed_over(result)),
    )
    shares = {"proven": first.risk, "measured": result.measured_error, "baseline": baseline["error"]}
    quoted = asked if nothing else first
    verdict = _describe_verdict(c, bool(cautions or question))
    if nothing:
        verdict = f"Nothing can be quoted yet. {nothing[0]}"
    if asked:
        verdict = f"The error cannot be quoted; proven are: {_describe_other_claims(c)}"
    return Answer(
        verdict,
        "" if quoted is None else COUNTED.sub(".", quoted.statement),
        tuple((name, text) for name, text in facts if text),
        cautions,
        question,
        tuple(f"{NEW_ROWS}: {text}" for text in advice),
        shares if first.quantity.is_error and c.sample.numbers is None else {},
        describe_decisions(result.decisions),
        quoted,
    )


def _find_asked(result: ResultValues) -> Claim | None:
    """Return the first claim, apart from the error, that the study asks for and that is proven; None without.

    It asks for what the cut-off was chosen for, and for the conditions to accept the result that are met.
    """
    names = {decision.condition.name for decision in result.decisions if decision.met}
    if result.problem.required is not None:
        names.add(result.problem.required.name)
    claims = (claim for claim in result.certificate.claims if str(claim.quantity) in names)
    proven = (claim for claim in claims if claim.says_something)
    return next((claim for claim in proven if not claim.quantity.is_error), None)


def list_cautions(result: ResultValues) -> list[str]:
    """Return the cautions that the certificate does not have."""
    problem, task, counts = result.problem, result.task, result.class_counts
    said, learned = [*_describe_earlier(result)], np.isin(range(task.n_classes), task.y)
    if problem.held is not None and not task.has_numbers:
        held = np.bincount(problem.all_rows.y[problem.held], minlength=task.n_classes)
        if listed := name_classes(task, np.flatnonzero(~learned), held):
            said.append(f"All rows held out, so never predicted, and all count as wrong: {listed}.")
    if counts is not None and len(counts) > 2:  # else it is said by class
        never = np.flatnonzero(learned & counts.any(axis=1) & (counts.diagonal() == 0))
        if listed := name_classes(task, never, counts.sum(axis=1)):
            said.append(f"Never found, so that every row of theirs counts as wrong: {listed}.")
    return [*said, *describe_sorted(problem.all_rows, result.study.seed)]


def _describe_earlier(result: ResultValues) -> Iterator[str]:
    """Yield a sentence if earlier runs judged rows that this one judges, and one if some saw them."""
    before: Before | None = result.execution.get("before")
    if before is None:
        return
    judged = [run for run in before["runs"] if run["judged"]]
    seen = [run for run in before["runs"] if not run["judged"]]
    some, these = "Rows equal to some", f"of these {pluralize(before['rows'], 'row')} were"
    if judged:
        some_of = some if any(run["twins"] for run in judged) else "Some"
        first, number = judged[0], len(judged) + 1
        later = f" and {pluralize(number - 2, 'later one')}" if number > 2 else ""
        which = "both were named before either" if number == 2 else f"all {number} were named before any"
        yield (
            f"{some_of} {these} judged before, by {_name_run(first)}{later}. Quote {plain(first['run_id'])}. "
            f"This one is covered only if {which} was seen and each had delta/{number}."
        )
    if seen:
        some_of = some if any(run["twins"] for run in seen) else "Some"
        names = ", ".join(cut_list(list(map(_name_run, seen)), "more", MAX_RUNS))
        yield (
            f"{some_of} {these} seen before, by {names}: this bound is not covered if what "
            f"{'it' if len(seen) == 1 else 'they'} showed led to this study; --learner a,b compares them "
            "within the learning rows."
        )


def _name_run(run: EarlierRun) -> str:
    return f"{plain(run['command'])} {plain(run['run_id'])} ({quote(run['folder'])})"


def describe_passed_over(result: ResultValues) -> str:
    """Say which folders next to a run were not looked at for rows that it judges; "" if all were."""
    before: Before | None = result.execution.get("before")
    if before is None:
        return ""
    passed = [f"{quote(name)} ({cut(plain(why), LINE_WIDTH)})" for name, why in before["passed_over"].items()]
    listed = cut_list(passed, "more", MAX_RUNS)
    listed += [f"{pluralize(before['older'], 'older run')}"] if before["older"] else []
    return f"{', '.join(listed)}: not known is whether these rows were judged there" if listed else ""


def describe_answer(result: ResultValues, folder: str = "", everything: bool = False) -> list[str]:
    """Return the lines of the first screen of a study with a certification.

    Args:
        result: the finished study.
        folder: where it is kept, for commands to paste; "" without one.
        everything: whether all cautions are listed, however long they are.
    """
    answer, name = make_answer(result), shlex.quote(folder)
    above = [
        *_wrap(answer.decided),
        *_wrap(answer.verdict),
        *_wrap(answer.sentence, "  "),
        *(line for fact, text in answer.facts for line in _wrap(text, fact)),
    ]
    ckcv = " ".join(["ckcv", *(f"--trust {package}" for package in list_foreign(result.study.learner))])
    predict = f"{ckcv} predict {name}"
    commands = [f"{ckcv} report {name}", *([f"{predict} NEW.csv"] if answer.sentence else [])]
    command = f"{ckcv} status {name} --details" if folder else "summary(details=True)"
    for advice in (answer.advice, answer.advice[:1]):  # the second is left out where there is no room
        below = [
            *_wrap(answer.question, "QUESTION"),
            *(line for i, text in enumerate(advice) for line in _wrap(text, "or" if i else "next")),
            *([f"{'then':<{INDENT}}{'; '.join(commands)}"] if folder else []),
        ]
        room = inf if everything else MAX_LINES - len(above) - len(below)
        cautions = _list_cautions(answer.cautions, room, command)
        if len(cautions) <= room:
            break
    return [*above, *cautions, *below]


def _wrap(text: str, name: str = "") -> list[str]:
    """Return text in lines, the first with a name before it; a percent sign stays with its number."""
    first = f"{name:<{INDENT}}" if name.strip() else name
    rest = " " * len(first)
    joined = text.replace(" %", "\u00a0%")
    lines = wrap(joined, LINE_WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]


def _list_cautions(cautions: Sequence[str], room: float, command: str) -> list[str]:
    """Return cautions, at least one whole, and where there is no room for all how to see the others."""
    lines = list[str]()
    for i, caution in enumerate(cautions):
        wrapped = _wrap(caution, "CAUTION")
        if i and len(lines) + len(wrapped) > room:
            more = f"{pluralize(len(cautions) - i, 'caution')} more: {command}"
            return [*lines, *_wrap(more, "CAUTION")]
        lines += wrapped
    return lines


def _describe_verdict(c: Certificate, cautions: bool) -> str:
    first = c.claims.first
    quote = "Quote with CAUTION" if cautions else "May be quoted"
    says = first.quantity.headline(first, c.sample.groups is not None)
    return f"{quote}: {says}, with probability {format_level(first.delta)}"


def _describe_measured(result: ResultValues) -> str:
    """Say what was measured of what the first claim is about: an estimate, which the bound allows for."""
    c, counts = result.certificate, result.class_counts
    first = c.claims.first
    on = "held-out rows" if first.held_out else "scored rows"
    if c.sample.numbers is not None and first.held_out:
        on = f"{c.sample.n_held:,} {on}"
    if first.bound is None and not first.quantity.is_error:
        return ""
    if first.quantity.made_of:
        return _describe_predictive(result, first.quantity, on)
    if first.label is not None:
        if counts is None:
            return ""
        # the claim of a recall that a cut-off guarantees counts the rows that it may miss
        number = result.task.classes.index(first.label)
        rows = int(counts[number].sum())
        first = replace(first, errors=rows - int(counts[number, number]), rows=rows)
    said = first.quantity.measure(first, on, result.measured_error, c.sample.groups is not None)
    papers = not first.held_out and "paper" in L_EE_IS[c.winner.criterion][c.winner.bound]
    papers = papers and c.sample.groups is None and c.sample.numbers is None
    return f"{said}; the paper's L_EE {ceil_percent(c.winner.l_ee)}" if papers else said


def _describe_predictive(result: ResultValues, quantity: Quantity, on: str) -> str:
    """Say what a predictive value or net benefit of the first claim is by the recalls that were measured."""
    counts, positive = result.class_counts, result.problem.positive
    if counts is None or not counts.sum(axis=1).all():
        return ""
    (found, right), (positives, negatives) = (
        values[[positive, 1 - positive]].tolist() for values in (counts.diagonal(), counts.sum(axis=1))
    )
    said = f"{found:,} of {positives:,} positive {on} and {right:,} of {negatives:,} others right"
    return f"{quantity.measure_recalls(found / positives, right / negatives)} ({said})"


def _describe_baseline(c: Certificate, baseline: Baseline) -> str:
    """Say what the error of the constant is, on the rows that the first claim rests on."""
    mean = "" if c.sample.groups is None else ", mean over groups"
    on = "same rows" if c.claims.first.certification == Holdout.name else baseline["on"]
    by = f"on the {on} by {name_constant(baseline, c.sample.labels)}{mean}"
    error = describe_error(baseline)
    return f"{error} {by}" if c.sample.numbers is None else f"off by {error} on average {by}"


def _describe_other_claims(c: Certificate) -> str:
    """Say what is proven besides of what the first claim is about; "" if nothing is."""
    first = c.claims.first
    proven = [
        f"{claim.name} {claim.says}{_name_cut_off(claim, first)}"
        for claim in c.claims
        if not claim.quantity.is_error
        and not claim.quantity.answers
        and not claim.quantity.reference
        and claim is not first
        and claim.says_something  # a recall of at least 0 % is nothing
        and claim.classifier == first.classifier
    ]
    shown = [cut(text, 2 * LINE_WIDTH) for text in proven]
    ends = np.cumsum([len(text) for text in shown])
    return "; ".join(cut_list(shown, "more: --details", max(1, int(np.sum(ends <= 3 * LINE_WIDTH)))))


def _name_cut_off(claim: Claim, first: Claim) -> str:
    """Return the cut-off that a claim is about and the first claim is not; "" without one."""
    value = claim.cut_off
    return "" if value is None or value == first.cut_off else f" with cut-off {value:.6g}"


def _describe_answered(c: Certificate) -> str:
    """Say what is proven of the rows answered, and what was counted; "" if all rows are answered."""
    answered = [claim for claim in c.claims if claim.quantity.answers]
    if not answered:
        return ""
    error, share = sorted(answered, key=lambda claim: not claim.quantity.at_most)
    if error.least_confidence is None:
        return "" if error is c.claims.first else error.statement
    return (
        f"{share.limit} of new rows or more, with {error.says} of them wrong; measured: "
        f"{error.rows:,} of {share.rows:,} held-out rows, {error.errors:,} of them wrong"
    )


def _describe_classes(result: ResultValues) -> str:
    """Return how many rows of each class the rule of the first claim has wrong, the worst first.

    They are the rows that this claim counts: with one about the error they add up to what is measured.
    """
    if (counts := result.class_counts) is None:
        return ""
    first, rows = result.certificate.claims.first, counts.sum(axis=1)
    wrong = rows - counts.diagonal()
    worst = sorted(range(len(rows)), key=lambda number: -wrong[number] / max(1, rows[number]))
    said = ", ".join(
        f"{cut(repr(result.task.classes[i]), LONGEST_LABEL)} {describe_share(wrong[i], rows[i])}"
        for i in worst[:WORST]
    )
    more = f", {len(worst) - WORST} classes more" if len(worst) > WORST else ""
    every = first.label is None and first.rows not in (None, rows.sum())
    unchosen = any(claim.cut_off is not None for claim in result.certificate.claims) and first.cut_off is None
    of = f"{f', of all {rows.sum():,} rows' if every else ''}{OWN_CUT_OFF if unchosen else ''}"
    return f"{said} wrong{more}{of}"


def describe_share(part: int, whole: int) -> str:
    """Format a count with the share that it is: "1 of 66 (1.52 %)"."""
    return f"{part:,} of {whole:,}{f' ({format_percent(part / whole)})' if whole else ''}"


def _describe_model(result: ResultValues) -> str:
    sample = result.certificate.sample
    held = f", {sample.n_held:,} held out" if sample.n_held else ""
    groups = "" if sample.groups is None else f" in {sample.groups['count']:,} groups"
    features = pluralize(len(result.task.features), "column")
    chosen = Candidate(result.setting, result.k)
    several = f", {len(sample.labels)} classes" if len(sample.labels) > 2 else ""
    kind = ", numbers" if sample.numbers is not None else several  # of two both are named by class
    return f"{chosen}; {sample.n_rows:,} rows{groups}{held}, {features}{kind}"


def name_search(result: ResultValues) -> str:
    """Say how candidates were compared, and how many were left of which one may be better."""
    search, candidates = result.certificate.winner.search, len(result.candidates)
    if search is None:
        return f"race: the best of {candidates:,} candidates"
    left, least, numbers = search["not_excluded"], search["least"], result.certificate.sample.numbers
    clip = None if numbers is None else numbers["clip"]
    budget = f"budget, effort {search['effort']:,}"
    if least is None:
        return f"{budget}: the best of {candidates:,} candidates, of which all others are excluded"
    could = f"the best of them could still have {describe_least(least, clip)}"
    return f"{budget}: {left:,} of {candidates:,} candidates were not excluded; {could}"


def _advise(result: ResultValues, first: Claim, baseline: Baseline) -> Iterator[str]:
    """Yield how a closer bound can be had, with what it is expected to be: by rows held out, or by more."""
    c, error, delta = result.certificate, result.measured_error, first.delta
    sample = c.sample
    if sample.numbers is not None or sample.groups is not None:
        yield from _advise_losses(result, first, baseline)
        return
    if not first.quantity.is_error:
        return
    worthless = says_nothing(first, baseline)
    if worthless and not _is_measured_better(first, baseline, error):
        yield "--learner all, or other columns: as measured, this is not better than a constant"
    elif not sample.n_held and (held := _count_held_out(sample.n_rows)):
        bound = _expect_bound(error, held, delta)
        if bound < min(first.risk, baseline["error"]):
            yield f"--certify holdout: about {ceil_percent(bound)}"
    by_class = any(claim.label is not None for claim in c.claims)
    if worthless and sample.n_held and len(sample.labels) == 2 and not by_class:
        yield "--criterion balanced --claim refit,sensitivity,specificity: proven for each class"
    if sample.n_held and not worthless:
        bound = _expect_bound(error, 2 * sample.n_held, delta)
        rows = f"{float(f'{2 * sample.n_rows:.2g}'):,.0f} rows"
        yield f"with {rows}: about {ceil_percent(bound)}, {SAME_RATE}"


def _count_held_out(units: int) -> int:
    """Return how many of these units are held out by default; 0 if they are too few."""
    share = Holdout().canonical(units).holdout_share
    assert isinstance(share, float)
    held = int(share * units)
    return held if held >= MIN_HELD_OUT else 0


def _advise_losses(result: ResultValues, first: Claim, baseline: Baseline) -> Iterator[str]:
    """Yield how a closer bound can be had of the errors of numbers, or of groups.

    Which bound is the closest depends on losses one by one, which are not known of other rows: of rows held
    out it is expected by their total alone, and of more rows with a distance from the mean that shrinks as
    the root of their number grows.
    """
    sample, error = result.certificate.sample, result.measured_error
    groups = sample.groups
    if not first.quantity.is_error or first.risk <= error:
        return
    units, name = (sample.n_rows, "rows") if groups is None else (groups["count"], "groups")
    worthless, clip = says_nothing(first, baseline), sample.numbers and sample.numbers["clip"]
    show = ceil_percent if clip is None else lambda bound: round_bound(clip * bound)
    if worthless and not _is_measured_better(first, baseline, error):
        yield "another --learner, or other columns: as measured, this is not better than a constant"
        return
    if not sample.n_held and (held := _count_held_out(units)):
        bound = bound_mean_loss([ceil(error * held * ONE)], held, first.delta)
        of = f"with {held:,} of {units:,} {name} held out"
        if bound < min(first.risk, baseline["error"]):
            yield f"--certify holdout: about {show(bound)}, {of}"
        elif worthless:
            yield f"--certify holdout: closer where {name} are about equally far off, {of}"
    if sample.n_held and not worthless:
        bound = error + (first.risk - error) / sqrt(2)
        condition = (
            "assuming the same error rate (then with probability about one half)"
            if clip is None
            else "if they are as far off as these"
        )
        yield f"with {float(f'{2 * units:.2g}'):,.0f} {name}: about {show(bound)}, {condition}"


def _expect_bound(error: float, rows: int, delta: float) -> float:
    """Return the bound that held-out rows prove if as many are wrong as were measured."""
    return float(clopper_pearson(ceil(error * rows), rows, delta))


def _is_measured_better(first: Claim, baseline: Baseline, error: float) -> bool:
    """Return whether fewer rows were wrong than by the constant that is hardest to beat."""
    return first.gate.lost < first.gate.won if first.gate is not None else error < baseline["error"]


def make_card(result: ResultValues) -> str:
    """Return the card of a study with a certification, as an element of an HTML page."""
    answer = make_answer(result)
    most = max([*answer.shares.values(), 1e-9]) * ROOM
    bars = [
        (
            name,
            ceil_percent(share) if name == "proven" else format_percent(share),
            round(100 * share / most, 2),
        )
        for name, share in answer.shares.items()
    ]
    return _load_template().render(answer=answer, bars=bars, run_id=result.run_id)


@cache
def _load_template() -> Template:
    loader = PackageLoader("ckcv_ray.reports")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("card.html")

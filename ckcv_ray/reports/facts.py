"""What a finished study tells: each fact once, in the order in which a reader asks for it.

What the number is and whether it may be quoted, what it is about, what voids it, how it is checked and what
to do next; then performance by class, claims, data, method and search, and as an appendix the paper's
figures, the models and the options.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.claims.certificate import PROVISIONAL, Certificate, describe_least
from ckcv_ray.claims.error import describe_weights
from ckcv_ray.claims.quantity import (
    MIN_OF_SUBGROUP,
    SAME_RATE,
    Claim,
    MeasuredInterval,
    Quantity,
    describe_decisions,
    describe_intervals,
    is_fixed_for,
)
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.options import get_values
from ckcv_ray.core.percent import (
    ceil_percent,
    floor_percent,
    format_about,
    format_level,
    format_number,
    format_percent,
    round_bound,
)
from ckcv_ray.core.resampling.complete import Rotation
from ckcv_ray.errors import cut, cut_list, plain, pluralize
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.sklearn.spec import list_foreign
from ckcv_ray.learners.steps import EQUALLY
from ckcv_ray.records.judged import describe_judged
from ckcv_ray.reports.scores import tell_scores
from ckcv_ray.reports.sections import (
    BINARY_QUANTITIES,
    CAUTION,
    DETAILS,
    FIRST,
    FOLDER,
    PAGE,
    QUESTION,
    ByClass,
    Fact,
    FactTable,
    Section,
    describe_share,
    describe_subject,
    list_first,
    name_units,
    tell_classes,
    tell_cost,
    tell_data,
    tell_options,
    tell_origin,
)
from ckcv_ray.runs.judged import Judged
from ckcv_ray.runs.values import ResultValues
from ckcv_ray.storage.execution import Before
from ckcv_ray.study.parts import MIN_HELD_OUT, Holdout
from ckcv_ray.study.problem import Candidate, Problem, describe_setting
from ckcv_ray.tables.columns import Label
from ckcv_ray.tables.questions import describe_sorted
from ckcv_ray.tables.task import name_classes
from ckcv_ray.validation import quote

NO_DIGEST: Mapping[str, str] = {}
OWN_CUT_OFF = "; at the learner's own cut-off, not the one chosen"
COUNTED = re.compile(r" \([^()]*(\([^()]*\)[^()]*)*\)\.$")  # at the end of a claim: how it was counted
WORST = 5  # classes
MAX_RUNS = 3  # folders that are named
LONGEST_LABEL, LONGEST_REASON, LONGEST_CLAIM = 24, 80, 160  # characters
LONGEST_CLAIMS = 240  # together
NEW_ROWS = "on new rows, none of these"  # what is selected again by judged rows is not covered
HELD_OUT, ESTIMATED = "held-out rows", "rows of all estimate sets, each by the member of its split"
CHECKED = (
    "It recomputes the number from the run folder; with --refit it also fits again what the number rests on."
)
NOT_AVAILABLE = "not available"
ERROR_IS = "mean error of the members on their estimate sets (an estimate, not a bound)"
PAPER_IS = (
    "Anguita, Ghelardoni, Ghio, Oneto, Ridella: The ‘K’ in K-fold Cross Validation, ESANN 2012: in each "
    "split one part trains, one selects and one estimates; they share no row."
)


def facts(
    result: ResultValues,
    judged: Judged | None = None,
    manifest: Mapping[str, str] = NO_DIGEST,
    most: int = PAGE,
) -> list[Section]:
    """Return what a finished study tells, in the order of the page.

    Args:
        result: what it knows.
        judged: the rows that figures show; without a certification, the predictions that its folder keeps.
        manifest: SHA-256 of the manifest of its folder, by its name.
        most: the largest level that is told; what takes long and is above it is left out.
    """
    if result.finished is None:
        return [*tell_scores(result, judged, most), *tell_origin(result, manifest)]
    c, options, numbers = result.certificate, result.study.options(), result.task.has_numbers
    options["k"] = options["k"] or f"3:{result.task.n_units} (all)"
    return [
        _tell_quote(result),
        Section("subject", "What is it about?", [*_tell_subject(result)]),
        Section("voids", "What voids it?", [*_tell_conditions(c)]),
        Section("check", "How do I check it?", [Fact(f"ckcv verify {FOLDER}", CHECKED)]),
        Section("next", "What do I do next?", [*_tell_next(result)]),
        Section(
            "performance", f"Performance{'' if numbers else ' by class'}", *_tell_performance(result, judged)
        ),
        Section("claims", "Claims and assumptions", [*_tell_claims(result)]),
        tell_data(result, c.sample.repeats, most),
        Section("method", "Method", [*_tell_method(result)]),
        Section("search", "Search", [*_tell_search(result)]),
        Section(
            "means", f"Appendix: {'means over splits' if numbers else 'L_MS and L_EE'}", *_tell_means(result)
        ),
        Section("models", "Models", [*_tell_models(result)]),
        Section("cost", "Time spent", tell_cost(result.execution)),
        tell_options({f"--{name.replace('_', '-')}": value for name, value in options.items()}),
        *tell_origin(result, {**c.origin.digests, **manifest}),
    ]


# The first screen


def find_quoted(result: ResultValues) -> tuple[Claim | None, str]:
    """Return the claim that may be quoted, and why the first may not be if it may not; None if none may.

    If the error says nothing it is the first claim that the study asks for and that is proven: what the
    cut-off was chosen for, or a condition to accept the result that is met.
    """
    c = result.certificate
    first = c.claims.first
    nothing = c.compare(first).caution
    if first.bound is None:
        nothing = first.statement
    elif not first.quantity.is_error and not first.says_something:
        nothing = f"The {first.name} is proven to be {first.says}, which is nothing."
    if not nothing:
        return first, ""
    asked = {decision.condition.name for decision in result.decisions if decision.met}
    if result.problem.required is not None:
        asked.add(result.problem.required.name)
    proven = (claim for claim in c.claims if str(claim.quantity) in asked and claim.says_something)
    asked_for = next((claim for claim in proven if not claim.quantity.is_error), None)
    return asked_for if first.quantity.is_error else None, nothing


def _tell_quote(result: ResultValues) -> Section:
    c, (quoted, nothing) = result.certificate, find_quoted(result)
    cautions = [text for text in _list_cautions(result) if quoted or text != nothing]
    kicker = "Nothing to quote yet" if quoted is None else "The number to quote"
    if c.winner.provisional:
        kicker = "Provisional: evaluations failed; the bound is proven nevertheless"
    question = result.problem.all_rows.question
    verdict = _give_verdict(
        result, quoted, nothing, "Quote with CAUTION" if cautions or question else "May be quoted"
    )
    first = c.claims.first  # of an error, its bound is compared with what was measured
    share = first.risk if first.quantity.is_error and c.sample.numbers is None else None
    told = [
        *([] if quoted is None else _tell_number(result, quoted)),
        Fact("accepted", describe_decisions(result.decisions), FIRST, result.decisions),
        Fact(
            "verdict",
            verdict,
            FIRST,
            share,
        ),
        Fact("claim", "" if quoted is None else COUNTED.sub(".", quoted.statement), FIRST),
        *(Fact(CAUTION, text, FIRST) for text in cautions),
        Fact(QUESTION, question, FIRST),
        Fact("unread", _describe_passed_over(result), FIRST),
        *(Fact("note", text, DETAILS) for text in _list_notes(result)),
    ]
    return Section("quote", kicker, [fact for fact in told if fact.text])


def _tell_number(result: ResultValues, quoted: Claim) -> Iterator[Fact]:
    """Yield the number to quote, and a few words on what it is of and by what it is proven."""
    new, counts = name_units(result), f"; {quoted.counted}" if quoted.counted else ""
    said = f"{quoted.name} on {new} in the long run, {quoted.side}"
    yield Fact("number", quoted.limit, PAGE, quoted.bound, *_find_basis(quoted))
    yield Fact("of", f"{said}; proven, by {quoted.certification}{counts}")


class Basis(NamedTuple):
    """The rule that a claim is about and the rows that it rests on, as all that stands beside it."""

    rule: str
    rows: str


def _find_basis(claim: Claim) -> Basis:
    cut_off = "" if claim.cut_off is None else f" with cut-off {claim.cut_off:.6g}"
    return Basis(f"{claim.classifier}{cut_off}", HELD_OUT if claim.held_out else ESTIMATED)


def _give_verdict(result: ResultValues, quoted: Claim | None, nothing: str, may: str) -> str:
    first, grouped = result.certificate.claims.first, result.certificate.sample.groups is not None
    if quoted is None:
        return f"Nothing can be quoted yet. {nothing}"
    if nothing:
        return f"The error cannot be quoted; proven are: {_list_other_claims(result.certificate)}"
    says = first.quantity.headline(first, grouped)
    return f"{may}: {says}, with probability {format_level(first.delta)}"


def _list_cautions(result: ResultValues) -> list[str]:
    """Return what may void the number, the gravest first."""
    c, problem, task, counts = result.certificate, result.problem, result.task, result.class_counts
    said, learned = list[str](), np.isin(range(task.n_classes), task.y)
    if problem.held is not None and not task.has_numbers:
        held = np.bincount(problem.all_rows.y[problem.held], minlength=task.n_classes)
        if listed := name_classes(task, np.flatnonzero(~learned), held):
            said.append(f"All rows held out, so never predicted, and all count as wrong: {listed}.")
    if counts is not None and len(counts) > 2:  # else it is said by class
        never = np.flatnonzero(learned & counts.any(axis=1) & (counts.diagonal() == 0))
        if listed := name_classes(task, never, counts.sum(axis=1)):
            said.append(f"Never found, so that every row of theirs counts as wrong: {listed}.")
    provisional = [PROVISIONAL] if c.winner.provisional else []
    said += [*describe_sorted(problem.all_rows, result.study.seed), *c.list_cautions()]
    return [*dict.fromkeys([*provisional, *_list_earlier(result), *c.describe_repeats(), *said])]


def _list_earlier(result: ResultValues) -> Iterator[str]:
    """Yield a sentence if earlier runs judged rows that this one judges, and one if some saw them."""
    before: Before | None = result.execution.get("before")
    for judged in (True, False):
        runs = [run for run in before["runs"] if run["judged"] == judged] if before is not None else []
        if before is None or not runs:
            continue
        some = "Rows equal to some" if any(run["twins"] for run in runs) else "Some"
        names = [f"{plain(run['command'])} {plain(run['run_id'])} ({quote(run['folder'])})" for run in runs]
        these, number = f"{some} of these {pluralize(before['rows'], 'row')} were", len(runs) + 1
        if judged:
            later = f" and {pluralize(number - 2, 'later one')}" if number > 2 else ""
            which = "both were named before either" if number == 2 else f"all {number} were named before any"
            yield (
                f"{these} judged before, by {names[0]}{later}. Quote {plain(runs[0]['run_id'])}. This one is "
                f"covered only if {which} was seen and each had delta/{number}."
            )
        else:
            yield (
                f"{these} seen before, by {', '.join(cut_list(names, 'more', MAX_RUNS))}: this bound is not "
                f"covered if what {'it' if number == 2 else 'they'} showed led to this study; --learner a,b "
                "compares them within the learning rows."
            )


def _describe_passed_over(result: ResultValues) -> str:
    """Say which folders next to a run were not looked at for rows that it judges; "" if all were."""
    before: Before | None = result.execution.get("before")
    if before is None:
        return ""
    passed = [
        f"{quote(name)} ({cut(plain(why), LONGEST_REASON)})" for name, why in before["passed_over"].items()
    ]
    listed = cut_list(passed, "more", MAX_RUNS)
    listed += [f"{pluralize(before['older'], 'older run')}"] if before["older"] else []
    return f"{', '.join(listed)}: not known is whether these rows were judged there" if listed else ""


def _list_notes(result: ResultValues) -> Iterator[str]:
    execution = result.execution
    if not_converged := execution["not_converged"]:
        yield f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}"
    if failed := execution["evaluations"]["failed"]:
        yield f"{failed:,} evaluations failed; their tracebacks are in the report"
    every, learned, unit = result.problem.all_rows.n_units, result.task.n_units, result.problem.all_rows.unit
    if 2 * (every - learned) > every + 1:  # half of an odd number is rounded
        yield (
            f"{every - learned} of {every} {unit}s certify and {learned} are learned from: the bound is "
            "closer the more certify, and the model errs more the fewer it has learned from"
        )


def _tell_next(result: ResultValues) -> Iterator[Fact]:
    """Yield how a closer bound can be had, and the commands that apply and show the result."""
    quoted, nothing = find_quoted(result)
    advice = [*_advise(result)] or (["more of them, better columns, or other learners"] if nothing else [])
    for number, text in enumerate(advice):
        yield Fact("or" if number else "next", f"{NEW_ROWS}: {text}", FIRST)
    yield from (
        Fact("note", f"{edge}: a better candidate may be there", DETAILS)
        for edge in list_edges(result.problem, result.setting)
    )
    ckcv = " ".join(["ckcv", *(f"--trust {package}" for package in list_foreign(result.study.learner))])
    predict = "" if quoted is None else f"; {ckcv} predict {FOLDER} NEW.csv"
    yield Fact("then", f"{ckcv} report {FOLDER}{predict}", FIRST)
    if quoted is not None:
        does = "predicts" if result.task.has_numbers else "classifies"
        yield Fact("", f"ckcv predict {does} new rows with exactly the model the number is about.")


def list_edges(problem: Problem, setting: Setting) -> list[str]:
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


def _advise(result: ResultValues) -> Iterator[str]:
    """Yield how a closer bound can be had, with what it is expected to be: by rows held out, or by more.

    Which bound of losses is the closest depends on them one by one, which are not known of other rows: of
    rows held out it is expected by their total alone, and of more rows with a distance from the mean that
    shrinks as the root of their number grows.
    """
    c, error = result.certificate, result.measured_error
    first, sample, groups, baseline = c.claims.first, c.sample, c.sample.groups, c.sample.baseline
    counted = sample.numbers is None and groups is None
    if not first.quantity.is_error or not (counted or first.risk > error):
        return
    units, name = (sample.n_rows, "rows") if groups is None else (groups["count"], "groups")
    worthless = c.compare(first).worthless
    better = error < baseline.error if first.gate is None else first.gate.lost < first.gate.won
    if worthless and not better:
        learner = "--learner all" if counted else "another --learner"
        yield f"{learner}, or other columns: as measured, this is not better than a constant"
    elif not sample.n_held and (held := _count_held_out(units)):
        of = "" if counted else f", with {held:,} of {units:,} {name} held out"
        bound = _expect_bound(error, held, first.delta, counted)
        if bound < min(first.risk, baseline.error):
            yield f"--certify holdout: about {first.quantity.format(bound)}{of}"
        elif worthless and not counted:
            yield f"--certify holdout: closer where {name} are about equally far off{of}"
    by_class = any(claim.label is not None for claim in c.claims)
    if worthless and counted and sample.n_held and len(sample.labels) == 2 and not by_class:
        yield "--criterion balanced --claim refit,sensitivity,specificity: proven for each class"
    if sample.n_held and not worthless:
        bound = error + (first.risk - error) / sqrt(2)
        if counted:
            bound = _expect_bound(error, 2 * sample.n_held, first.delta, counted)
        condition = SAME_RATE if sample.numbers is None else "if they are as far off as these"
        about = f"about {first.quantity.format(bound)}"
        yield f"with {format_about(2 * units)} {name}: {about}, {condition}"


def _count_held_out(units: int) -> int:
    """Return how many of these units are held out by default; 0 if they are too few."""
    share = Holdout().canonical(units).holdout_share
    assert isinstance(share, float)
    held = int(share * units)
    return held if held >= MIN_HELD_OUT else 0


def _expect_bound(error: float, units: int, delta: float, counted: bool) -> float:
    """Return the bound that units held out prove if as many are wrong, or as far off, as were measured."""
    if counted:
        return float(clopper_pearson(ceil(error * units), units, delta))
    return bound_mean_loss([ceil(error * units * ONE)], units, delta)


# What it is about


def _tell_subject(result: ResultValues) -> Iterator[Fact]:
    c, problem = result.certificate, result.problem
    first, basis = c.claims.first, _find_basis(c.claims.first)
    quoted, nothing = find_quoted(result)
    required = problem.required
    lack = "" if required is None else c.claims.explain_lack_of_cut_off(required)
    compared = [claim for claim in c.claims if claim.quantity.reference]
    proven = "" if quoted is not None and nothing else _list_other_claims(c)
    wrong = None if result.class_counts is None else result.class_counts.tolist()
    told = [
        Fact("", describe_subject(result)),
        Fact("required", "" if lack == first.statement else lack, FIRST),
        Fact("measured", _describe_measured(result), FIRST, result.measured_error, *basis),
        Fact("baseline", _describe_baseline(c), FIRST, c.sample.baseline.error, *basis),
        Fact(
            "better",
            c.compare(first).better,
            FIRST,
            first.gate,
            *basis,
        ),
        Fact("proven", proven, FIRST, None, *basis),
        Fact("by class", _describe_classes(result), FIRST, wrong, *basis),
        Fact("answered", _describe_answered(c), FIRST),
        Fact("compared", "; ".join(claim.quantity.describe(claim) for claim in compared), FIRST),
        Fact("subgroups", _describe_worst(c), FIRST),
        Fact("model", _describe_model(result), FIRST),
        Fact("search", _name_search(result), DETAILS if c.winner.search is None else FIRST, c.winner.search),
        Fact("weights", describe_weights(problem), FIRST),
    ]
    yield from (fact for fact in told if fact.text)


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
    papers = not first.held_out and "paper" in result.problem.criterion.estimated
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
    return f"{format_percent(quantity.compute(found / positives, right / negatives))} ({said})"


def _describe_baseline(c: Certificate) -> str:
    """Say what the error of the constant is, on the rows that the first claim rests on."""
    baseline, off = c.sample.baseline, "" if c.sample.numbers is None else "off by "
    mean = "" if c.sample.groups is None else ", mean over groups"
    on = "same rows" if c.claims.first.held_out else baseline.on
    always = f"if {baseline.quote(c.sample.labels)} were always predicted"
    return f"{off}{baseline.figure}{' on average' if off else ''} on the {on} {always}{mean}"


def _list_other_claims(c: Certificate) -> str:
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
    shown = [cut(text, LONGEST_CLAIM) for text in proven]
    ends = np.cumsum([len(text) for text in shown])
    return "; ".join(cut_list(shown, "more: --details", max(1, int(np.sum(ends <= LONGEST_CLAIMS)))))


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
    unchosen = _has_cut_off(result.certificate) and first.cut_off is None
    of = f"{f', of all {rows.sum():,} rows' if every else ''}{OWN_CUT_OFF if unchosen else ''}"
    return f"{said} wrong{more}{of}"


def _has_cut_off(c: Certificate) -> bool:
    return any(claim.cut_off is not None for claim in c.claims)


def _describe_worst(c: Certificate) -> str:
    """Say of which subgroup the largest error is proven; "" without subgroups."""
    claimed = [claim for claim in c.claims.subgroups or () if claim.label is None]
    known = [claim for claim in claimed if claim.bound is not None]
    if not claimed:
        return ""
    own = OWN_CUT_OFF if _has_cut_off(c) else ""
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {MIN_OF_SUBGROUP} held-out rows: nothing is proven of them{own}"
    worst = max(known, key=lambda claim: claim.bound or 0.0)
    of, limit = f"in the worst of {len(known)} ({worst.subgroup}:", worst.quantity.format(worst.bound or 0.0)
    if worst.quantity.is_mean:
        counted = f"{worst.rate} measured on {worst.rows:,} rows"
        return f"off by at most {limit} on average {of} {counted}){small}{own}"
    counted = f"{worst.errors:,} of {worst.rows:,} measured"
    return f"at most {limit} wrong {of} {counted}){small}{own}"


def _describe_model(result: ResultValues) -> str:
    sample = result.certificate.sample
    held = f", {sample.n_held:,} held out" if sample.n_held else ""
    groups = "" if sample.groups is None else f" in {sample.groups['count']:,} groups"
    features = pluralize(len(result.task.features), "column")
    chosen = Candidate(result.setting, result.k)
    several = f", {len(sample.labels)} classes" if len(sample.labels) > 2 else ""
    kind = ", numbers" if sample.numbers is not None else several  # of two both are named by class
    return f"{chosen}; {sample.n_rows:,} rows{groups}{held}, {features}{kind}"


def _name_search(result: ResultValues) -> str:
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


def _tell_conditions(c: Certificate) -> Iterator[Fact]:
    for text in (
        *c.wording.not_covered,
        "a study repeated with other seeds, grids or data until it looked good",
    ):
        yield Fact("not covered", text)


# Further sections


def _tell_performance(result: ResultValues, judged: Judged | None) -> tuple[list[Fact], list[FactTable]]:
    """Return what was measured by class with the rule of the first claim, in words and tables."""
    c, counts = result.certificate, result.class_counts
    basis, finished = _find_basis(c.claims.first), result.finished
    told, tables = (
        [Fact("operating point", f"{basis.rows}, by {basis.rule}", DETAILS, None, *basis)],
        list[FactTable](),
    )
    if counts is not None:
        fixed, delta = _list_fixed(result), result.study.delta
        proven = [_find_proven(result, label) for label in result.task.classes]
        level = format_level(c.claims.first.delta) if any(proven) else ""
        wrong, tables = tell_classes(result, counts, ByClass(fixed, delta, proven, level))
        told.append(wrong)
    for baseline in c.sample.baselines[:-1]:
        counted = "" if c.sample.numbers is not None else f" ({baseline.errors:,} of {baseline.rows:,})"
        always = f"if {baseline.quote(c.sample.labels)} were always predicted"
        said = f"{baseline.figure}{counted} on the {baseline.on} {always}"
        told.append(Fact("baseline", said, DETAILS, baseline.error, rows=baseline.on))
    if subgroups := _list_subgroups(c):
        tables.append(subgroups)
    others = [each for each in result.intervals if not _shares_basis(each, c.claims.first)]
    told += [Fact("measured", interval.describe(), DETAILS) for interval in others]
    if others:
        told.append(Fact("intervals", describe_intervals(c.winner.delta), DETAILS))
    if finished is not None and finished.judged is not None:
        told.append(Fact("judged", describe_judged(finished.judged), DETAILS))
    if judged is not None:
        told.append(Fact("figures", f"of {judged.rows}"))
    return told, tables


def _shares_basis(interval: MeasuredInterval, first: Claim) -> bool:
    return (interval.classifier, interval.cut_off) == (first.classifier, first.cut_off)


def _list_fixed(result: ResultValues) -> frozenset[str]:
    """Return which of ``BINARY_QUANTITIES`` have binomial counts: the classifier is fixed for held-out rows.

    A cut-off that was chosen depends on the labels of these rows, so PPV and NPV at it have none.
    """
    first = result.certificate.claims.first
    if result.certificate.sample.groups is not None or not first.held_out:
        return frozenset()
    if first.cut_off is None:
        return frozenset(BINARY_QUANTITIES)
    return frozenset(name for name in BINARY_QUANTITIES[:2] if is_fixed_for(name, result.problem.required))


def _find_proven(result: ResultValues, label: Label) -> str:
    """Return what is claimed of the recall of a class by the rule of the first claim; "" if nothing is."""
    claims = result.certificate.claims
    claimed = [
        claim
        for claim in claims
        if claim.quantity.by_class and claim.label == label and claim.shares_rule(claims.first)
    ]
    return f"at least {claimed[0].limit}" if claimed and claimed[0].bound is not None else ""


def _list_subgroups(c: Certificate) -> FactTable | None:
    """Return the error and each recall of every subgroup; of small ones, one line that says so."""
    rows = list[tuple[str, ...]]()
    for claim in c.claims.subgroups or ():
        name = "mean error" if claim.quantity.is_mean else "error"
        name = name if claim.label is None else f"recall of {claim.label}"
        if claim.bound is not None or claim.label is None:
            rows.append((claim.subgroup, name, f"{claim.rows:,}", claim.rate, claim.limit))
    if not rows:
        return None
    own = "" if c.sample.numbers is not None else ", at the model's own cut-off"
    note = (
        f"Named before the run: {pluralize(len({row[0] for row in rows}), 'subgroup')} of the rows held out. "
        f"What is proven of them holds for all of them together{own}."
    )
    return FactTable("Subgroups", ("subgroup", "figure", "rows", "measured", "proven"), rows, note, DETAILS)


def _tell_claims(result: ResultValues) -> Iterator[Fact]:
    c = result.certificate
    for claim in c.claims:
        yield Fact("proven", claim.statement, DETAILS, claim.bound, *_find_basis(claim))
    told = {PROVISIONAL, describe_weights(result.problem), *c.list_cautions()}
    told |= {claim.statement for claim in c.claims}
    yield from (Fact("remark", text, DETAILS) for text in c.wording.statements[1:] if text not in told)
    yield from (Fact("assumption", text) for text in c.wording.assumptions)


def _tell_method(result: ResultValues) -> Iterator[Fact]:
    c, study, problem = result.certificate, result.study, result.problem
    winner, unit = c.winner, "rows" if c.sample.groups is None else "groups"
    divided = f"the {unit} were divided at random {pluralize(winner.n_splits, 'time')} into"
    if study.resampling.name == Rotation.name:
        divided = f"the {unit} were shuffled and cut into k parts, which in turn were"
    refit = ", and one more model was fitted on all rows that were not held out" if c.sample.n_held else ""
    minimised = problem.criterion.describe_minimised().partition(" (")[0]
    numbers = result.task.has_numbers
    yield Fact(
        "question",
        f"Which setting of {', '.join(problem.learners)}, with which number of folds, predicts "
        f"{result.task.target} best among {len(result.candidates):,} candidates, and how "
        f"{'far off' if numbers else 'often'} is it {'' if numbers else 'wrong '}at most on "
        f"{name_units(result)}?",
    )
    yield Fact(
        "selection",
        f"For every candidate, a setting of the learner with a number of folds k, {divided} a part to learn "
        f"from, a part to select by and a part to estimate on. The candidate with the smallest {minimised} "
        "won, and was fitted again on each of its splits; these "
        f"{pluralize(len(result.ensemble.members), 'model')} are the ensemble F*{refit}.",
    )
    yield Fact("proof", _describe_proof(result))
    for label, learner in study.learner.by_label.items():
        values = learner.space.settings()
        distinct = {name: [*dict.fromkeys(map(str, column.tolist()))] for name, column in values.items()}
        lists = [f"; {name} in {{{list_first(found)}}}" for name, found in distinct.items()]
        yield Fact("settings", f"{label}: {pluralize(sum(learner.space.lengths), 'setting')}{''.join(lists)}")
    yield Fact("folds", f"k in {{{list_first([size.k for size in problem.sizes])}}}")
    yield from _tell_preparation(result)
    yield Fact("reference", PAPER_IS)


def _describe_proof(result: ResultValues) -> str:
    sample, first = result.certificate.sample, result.certificate.claims.first
    level = format_level(first.delta)
    if not first.held_out:
        return (
            "The bound comes from the parts to estimate on, and pays for the selection: each candidate has "
            f"its share of the probability to fail, so that it holds at {level} whichever was selected."
        )
    limit = f"a limit for independent {'rows' if sample.groups is None else 'groups'}"
    if sample.numbers is None and not sample.groups:
        limit = "the exact binomial limit of Clopper and Pearson"
    wrong = "how many of them are judged wrongly"
    if sample.numbers is not None:
        wrong = "how far off the predictions for them are"
    used = f"The bound comes from {sample.n_held:,} rows that nothing used before"
    return f"{used}: {wrong}, and {limit} at {level}."


def _tell_preparation(result: ResultValues) -> Iterator[Fact]:
    """Yield what was done to rows before fits, and to scores after them."""
    problem, study = result.problem, result.study
    encoding = "all columns are numbers without gaps, and are taken as they are"
    if not problem.all_rows.schema.plain:
        encoding = (
            f"categories became numbers by the method {str(study.encoding.categories)!r}, those with less "
            f"than {format_percent(study.encoding.rare)} of the training rows joined; a gap in a number or "
            f"date is filled with the {study.encoding.gaps} of the training rows of each split, and a column "
            "of its own says where it was; in categories a gap is a category"
        )
    yield Fact("encoding", encoding)
    yield Fact(
        "preparation",
        "whatever is estimated from rows (scaling, filling, encoding) is estimated inside each split from "
        "its training rows alone, so the claims cover it",
    )
    yield from (Fact("scaling", text, DETAILS) for text in problem.scaling)
    weights = sorted(
        {str(getattr(learner, "class_weight", EQUALLY)) for learner in study.learner.by_label.values()}
    )
    balanced = [f"training rows balanced: {study.balance}"] * (study.balance != "none")
    balanced += [f"classes weighted: {weight}" for weight in weights if weight != str(EQUALLY)]
    balanced += [f"criterion {result.certificate.winner.criterion!r} counts the classes separately"] * (
        result.certificate.winner.criterion in ("balanced", "cost")
    )
    yield Fact("balance", "; ".join(balanced) or "none")
    chosen = [claim.cut_off for claim in result.certificate.claims if claim.cut_off is not None]
    cut_off = "none tuned: a row gets the class that the model names, and claims are about that class"
    if problem.required is not None:
        said = f"it is {chosen[0]:.6g}" if chosen else "none qualified"
        cut_off = f"chosen on the held-out rows for {problem.required}: {said}"
    if not result.task.has_numbers:
        yield Fact("cut-off", cut_off)


def _tell_search(result: ResultValues) -> Iterator[Fact]:
    """Yield what was selected, and what came of each learner and of each reported k."""
    winner, unit = result.certificate.winner, "rows" if result.certificate.sample.groups is None else "groups"
    per_learner, execution = result.per_learner(), result.execution
    yield Fact("best", str(Candidate(winner.setting, winner.k)), DETAILS, winner.setting)
    parts = (
        f"{winner.n_train:,} {unit} to train, {winner.n_select:,} to select, {winner.n_select:,} to estimate"
    )
    yield Fact("splits", f"{winner.n_splits:,}, each of {parts}", DETAILS, winner.n_splits)
    for row in per_learner if len(per_learner) > 1 else []:
        yield Fact("learner", f"{row['learner']}: {_describe_learner(row)}", DETAILS)
    yield from _tell_reported(result)
    if test := execution.get("test"):
        error, vote = (
            NOT_AVAILABLE if test[name] is None else format_percent(test[name])
            for name in ("error", "vote_error")
        )
        yield Fact(
            "test error",
            f"{error} on {test['rows']:,} rows by a random member of F*, {vote} by majority vote (as "
            "reported by the run); no claim covers this",
            DETAILS,
            test["error"],
        )


def _describe_learner(row: Mapping[str, Any]) -> str:
    """Say what came of a learner, given its entry in ``Result.per_learner``."""
    failed = f"; {row['failed']:,} of {row['candidates']:,} candidates failed" if row["failed"] else ""
    if row["setting"] is None:
        return f"{row['state']}, L_MS at least {floor_percent(row['lower_bound'])}{failed}"
    setting = {name: value for name, value in row["setting"].items() if name != "learner"}
    return f"{row['state']}, L_MS {ceil_percent(row['l_ms'])}, {Candidate(setting, row['k'])}{failed}"


def _tell_reported(result: ResultValues) -> Iterator[Fact]:
    """Yield the best candidate of each reported k that is complete."""
    tests = (result.execution.get("test") or {}).get("reported", {})
    per_k = result.per_k()
    for k in result.study.report_k if result.problem.clip is None else ():
        row = next(row for row in per_k if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is not None:
            l_ee = ceil_percent(row["l_ee"]) if row["l_ee"] is not None else NOT_AVAILABLE
            test = tests.get(str(k))
            measured = (
                f", test error {format_percent(test['error'])}" if test and test["error"] is not None else ""
            )
            setting = describe_setting(row["setting"])
            yield Fact(
                f"k = {k}",
                f"L_MS {ceil_percent(row['l_ms'])}, L_EE {l_ee}, {setting}{measured}",
                DETAILS,
                row["l_ms"],
            )


def _tell_means(result: ResultValues) -> tuple[list[Fact], list[FactTable]]:
    """Return the means over splits that the winner was selected by, of whose rows nothing is proven."""
    c = result.certificate
    winner, counts, n_splits = c.winner, c.counts, f"{c.winner.n_splits:,}"
    figure = Fact("remark", c.wording.statements[0], DETAILS)
    if c.sample.numbers is not None:
        clip, level = c.sample.numbers["clip"], format_level(winner.delta)
        bounds = f"mean error, of which at most {format_number(clip)} counts, with a {level} margin"
        error = f"{format_number(clip * counts.error)} on the estimate sets (an estimate, not a bound)"
        return [
            Fact(
                "selected by",
                f"{round_bound(clip * winner.l_ms)}, {bounds}, on the select sets (minimised)",
                DETAILS,
                winner.l_ms,
            ),
            Fact(
                "estimated",
                f"{round_bound(clip * winner.l_ee)}, the same on the estimate sets; no bound",
                DETAILS,
                winner.l_ee,
            ),
            Fact("mean error", error, DETAILS, counts.error),
            figure,
        ], []
    criterion = result.problem.criterion
    told = [
        Fact("L_MS", f"{ceil_percent(winner.l_ms)}, {criterion.describe_minimised()}", DETAILS, winner.l_ms),
        Fact(
            "L_EE",
            f"{ceil_percent(winner.l_ee)}, {criterion.estimated}",
            DETAILS,
            winner.l_ee,
        ),
        Fact("error of F*", f"{format_percent(counts.error)}, {ERROR_IS}", DETAILS, counts.error),
        figure,
    ]
    rows = [
        (
            str(label), f"{side['rows']:,}", f"{side['errors']:,}",
            format_percent(side["errors"] / side["rows"] if side["rows"] else 0.0),
            "–" if side["bound"] is None else ceil_percent(side["bound"]),
        )
        for label, side in zip(c.sample.labels, counts.by_class, strict=True)
    ]  # fmt: skip
    note = f"Rows and errors are summed over all {n_splits} estimate sets, which share rows. "
    note += (
        "There is no bound: rows of one group are related."
        if c.sample.groups
        else "The bound is the mean over the splits."
    )
    heads = ("class", "rows", "wrong", "share", f"mean {format_level(winner.delta)} bound")
    return told, [FactTable("The winner on its estimate sets, by class", heads, rows, note)]


def _tell_models(result: ResultValues) -> Iterator[Fact]:
    models, one = result.models, "one model at the winner's setting, fitted on all rows"
    members = f"{pluralize(len(models.best.members), 'model')}, each fitted on the rows of its split"
    yield Fact("F*", f"{members} but those that estimate; k = {result.k}")
    if models.refit is not None:
        yield Fact("refit", f"{one} that were not held out")
    if models.full is not None:
        yield Fact("full", f"{one}; nothing is proven for it alone")

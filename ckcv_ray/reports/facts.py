"""What a finished study tells: each fact once, in the order in which a reader asks for it.

What the number is and whether it may be quoted, what it is about, what voids it, how it is checked and what
to do next; then performance by class, claims, data, method and search, and as an appendix the paper's
figures, the models and the options.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, sqrt
from typing import cast

import numpy as np

from ckcv_ray.claims.certificate import PROVISIONAL, Baseline, Certificate, describe_least
from ckcv_ray.claims.error import describe_weights
from ckcv_ray.claims.quantity import (
    MIN_OF_SUBGROUP,
    SAME_RATE,
    Claim,
    describe_decisions,
    describe_intervals,
    is_fixed_for,
)
from ckcv_ray.core.arrays import ONE
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.options import get_values, list_inside
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
    BY_CLASS,
    CAUTION,
    DETAILS,
    FIRST,
    FOLDER,
    PAGE,
    QUESTION,
    Fact,
    FactTable,
    Section,
    describe_subject,
    format_row,
    list_first,
    name_units,
    tell_classes,
    tell_cost,
    tell_data,
    tell_options,
    tell_origin,
)
from ckcv_ray.runs.judged import Judged
from ckcv_ray.runs.result import Certified, Result
from ckcv_ray.runs.scored import Scored
from ckcv_ray.storage.execution import Before
from ckcv_ray.study.parts import MIN_HELD_OUT, Holdout
from ckcv_ray.study.problem import Candidate, Problem, describe_setting
from ckcv_ray.tables.questions import describe_sorted
from ckcv_ray.validation import quote

NO_DIGEST: Mapping[str, str] = {}
OWN_CUT_OFF = "; at the learner's own cut-off, not the one chosen"
COUNTED = re.compile(r" \([^()]*(\([^()]*\)[^()]*)*\)\.$")  # at the end of a claim: how it was counted
BESIDE = {"measured", "baseline", "better", "proven", "by class"}  # facts of the rule of the first claim
WORST = 5  # classes
MAX_RUNS = 3  # folders that are named
LONGEST_LABEL, LONGEST_REASON, LONGEST_CLAIM = 24, 80, 160  # characters
LONGEST_CLAIMS = 240  # together
NEW_ROWS = "on new rows, none of these"  # what is selected again by judged rows is not covered
HELD_OUT, ESTIMATED = "held-out rows", "rows of all estimate sets, each by the member of its split"
CHECKED = (
    "It fits the models of the run folder again and recomputes the number; with --rerun the whole study."
)
REPEATED = "a study repeated with other seeds, grids or data until it looked good"
NOT_AVAILABLE = "not available"
ERROR_IS = "mean error of the members on their estimate sets (an estimate, not a bound)"
INSIDE = (
    "whatever is estimated from rows (scaling, filling, encoding) is estimated inside each split from its "
    "training rows alone, so the claims cover it"
)
NOT_HELD_OUT = (
    "The bound comes from the parts to estimate on, and pays for the selection: each candidate has its share "
    "of the probability to fail, so that it holds at {} whichever was selected."
)
PAPER_IS = (
    "Anguita, Ghelardoni, Ghio, Oneto, Ridella: The ‘K’ in K-fold Cross Validation, ESANN 2012: in each "
    "split one part trains, one selects and one estimates; they share no row."
)


def facts(
    result: Result,
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
    if not isinstance(result, Certified):
        return [*tell_scores(cast(Scored, result), judged, most), *tell_origin(result, manifest)]
    c, options = result.certificate, result.study.options()
    options["k"] = options["k"] or f"3:{result.task.n_units} (all)"
    means = f"Appendix: {result.task.target.word('L_MS and L_EE', 'means over splits')}"
    not_covered = [Fact("not covered", text) for text in (*c.wording.not_covered, REPEATED)]
    return [
        _tell_quote(result),
        Section("subject", "What is it about?", [*_tell_subject(result)]),
        Section("voids", "What voids it?", not_covered),
        Section("check", "How do I check it?", [Fact(f"ckcv verify {FOLDER}", CHECKED)]),
        Section("next", "What do I do next?", [*_tell_next(result)]),
        _tell_performance(result, judged),
        Section("claims", "Claims and assumptions", [*_tell_claims(result)]),
        tell_data(result, c.sample.repeats, most),
        Section("method", "Method", [*_tell_method(result)]),
        Section("search", "Search", [*_tell_search(result)]),
        Section("means", means, [*_tell_means(result)], [_tabulate_means(c)] if result.task.classes else []),
        Section("models", "Models", [*_tell_models(result)]),
        Section("cost", "Time spent", tell_cost(result.execution)),
        tell_options({f"--{name.replace('_', '-')}": value for name, value in options.items()}),
        *tell_origin(result, {**c.origin.digests, **manifest}),
    ]


# The first screen


def find_quoted(result: Certified) -> tuple[Claim | None, str]:
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


def _tell_quote(result: Certified) -> Section:
    c, (quoted, nothing) = result.certificate, find_quoted(result)
    first, question, told = c.claims.first, result.problem.all_rows.units.question, list[Fact]()
    cautions = [text for text in _list_cautions(result) if quoted or text != nothing]
    kicker = "Nothing to quote yet" if quoted is None else "The number to quote"
    if c.winner.provisional:
        kicker = "Provisional: evaluations failed; the bound is proven nevertheless"
    if quoted is not None:
        said = f"{quoted.name} on {name_units(result)} in the long run, {quoted.side}; proven, by "
        counts = f"; {quoted.counted}" if quoted.counted else ""
        told.append(Fact("number", quoted.limit, PAGE, quoted.bound, *_find_basis(quoted)))
        told.append(Fact("of", f"{said}{quoted.certification}{counts}"))
    told.append(Fact("accepted", describe_decisions(result.decisions), FIRST, result.decisions))
    may = "Quote with CAUTION" if cautions or question else "May be quoted"
    if quoted is None:
        verdict = f"Nothing can be quoted yet. {nothing}"
    elif nothing:
        verdict = f"The error cannot be quoted; proven are: {_list_other_claims(c)}"
    else:
        headline = first.quantity.headline(first, result.task.units)
        verdict = f"{may}: {headline}, with probability {format_level(first.delta)}"
    # of an error, its bound is compared with what was measured
    share = first.risk if first.quantity.is_error and c.sample.numbers is None else None
    told.append(Fact("verdict", verdict, FIRST, share))
    told.append(Fact("claim", "" if quoted is None else COUNTED.sub(".", quoted.statement), FIRST))
    told += [Fact(CAUTION, text, FIRST) for text in cautions]
    told += [Fact(QUESTION, question, FIRST), Fact("unread", _describe_passed_over(result), FIRST)]
    told += [Fact("note", text, DETAILS) for text in _list_notes(result)]
    return Section("quote", kicker, [fact for fact in told if fact.text])


def _find_basis(claim: Claim) -> tuple[str, str]:
    """Return the rule that a claim is about and the rows that it rests on, as all that stands beside it."""
    cut_off = "" if claim.cut_off is None else f" with cut-off {claim.cut_off:.6g}"
    return f"{claim.classifier}{cut_off}", HELD_OUT if claim.held_out else ESTIMATED


def _list_cautions(result: Certified) -> list[str]:
    c, problem, task, counts = result.certificate, result.problem, result.task, result.class_counts
    said, learned = list[str](), np.isin(range(task.n_classes), task.y)
    if problem.held is not None and task.classes:
        held = np.bincount(problem.all_rows.y[problem.held], minlength=task.n_classes)
        if listed := task.target.name_classes(np.flatnonzero(~learned), held):
            said.append(f"All rows held out, so never predicted, and all count as wrong: {listed}.")
    if counts is not None and len(counts) > 2:  # else it is said by class
        never = np.flatnonzero(learned & counts.any(axis=1) & (counts.diagonal() == 0))
        if listed := task.target.name_classes(never, counts.sum(axis=1)):
            said.append(f"Never found, so that every row of theirs counts as wrong: {listed}.")
    provisional = [PROVISIONAL] if c.winner.provisional else []
    said += [*describe_sorted(problem.all_rows, result.study.seed), *c.list_cautions()]
    return [*dict.fromkeys([*provisional, *_list_earlier(result), *c.describe_repeats(), *said])]


def _list_earlier(result: Certified) -> Iterator[str]:
    """Yield a sentence if earlier runs judged rows that this one judges, and one if some saw them."""
    before: Before | None = result.execution.get("before")
    if before is None:
        return
    for judged in (True, False):
        runs = [run for run in before["runs"] if run["judged"] == judged]
        names = [f"{plain(run['command'])} {plain(run['run_id'])} ({quote(run['folder'])})" for run in runs]
        some = "Rows equal to some" if any(run["twins"] for run in runs) else "Some"
        these, number = f"{some} of these {pluralize(before['rows'], 'row')} were", len(runs) + 1
        if runs and judged:
            later = f" and {pluralize(number - 2, 'later one')}" if number > 2 else ""
            which = "both were named before either" if number == 2 else f"all {number} were named before any"
            yield (
                f"{these} judged before, by {names[0]}{later}. Quote {plain(runs[0]['run_id'])}. This one is "
                f"covered only if {which} was seen and each had delta/{number}."
            )
        elif runs:
            yield (
                f"{these} seen before, by {', '.join(cut_list(names, 'more', MAX_RUNS))}: this bound is not "
                f"covered if what {'it' if number == 2 else 'they'} showed led to this study; --learner a,b "
                "compares them within the learning rows."
            )


def _describe_passed_over(result: Certified) -> str:
    before: Before | None = result.execution.get("before")
    if before is None:
        return ""
    passed = before["passed_over"].items()
    folders = [f"{quote(name)} ({cut(plain(why), LONGEST_REASON)})" for name, why in passed]
    listed = cut_list(folders, "more", MAX_RUNS)
    listed += [f"{pluralize(before['older'], 'older run')}"] if before["older"] else []
    return f"{', '.join(listed)}: not known is whether these rows were judged there" if listed else ""


def _list_notes(result: Certified) -> Iterator[str]:
    execution, all_rows = result.execution, result.problem.all_rows
    if not_converged := execution["not_converged"]:
        yield f"{not_converged:,} fits did not converge: {result.problem.learner.convergence_advice}"
    if failed := execution["evaluations"]["failed"]:
        yield f"{failed:,} evaluations failed; their tracebacks are in the report"
    every, learned = all_rows.n_units, result.task.n_units
    if 2 * (every - learned) > every + 1:  # half of an odd number is rounded
        yield (
            f"{every - learned} of {every} {all_rows.unit}s certify and {learned} are learned from: the "
            "bound is closer the more certify, and the model errs more the fewer it has learned from"
        )


def _tell_next(result: Certified) -> Iterator[Fact]:
    quoted, nothing = find_quoted(result)
    advice = [*_advise(result)] or (["more of them, better columns, or other learners"] if nothing else [])
    for number, text in enumerate(advice):
        yield Fact("or" if number else "next", f"{NEW_ROWS}: {text}", FIRST)
    for edge in list_edges(result.problem, result.setting):
        yield Fact("note", f"{edge}: a better candidate may be there", DETAILS)
    ckcv = " ".join(["ckcv", *(f"--trust {package}" for package in list_foreign(result.study.learner))])
    predict = "" if quoted is None else f"; {ckcv} predict {FOLDER} NEW.csv"
    yield Fact("then", f"{ckcv} report {FOLDER}{predict}", FIRST)
    if quoted is not None:
        does = result.task.target.word("classifies", "predicts")
        yield Fact("", f"ckcv predict {does} new rows with exactly the model the number is about.")


def list_edges(problem: Problem, setting: Setting) -> list[str]:
    """Return one sentence for each grid, a list of numbers, that has the winner's setting on its edge."""
    _, learner = problem.find_learner(setting)
    inside = list_inside(learner, "param")
    values = ((name, known, setting.get(name)) for name, known in get_values(learner).items())
    return [
        f"{name} = {value:g} is on the edge of its grid: {NEW_ROWS}, widen "
        f"--{'param ' * (name in inside)}{name.replace('_', '-')} beyond {value:g}"
        for name, known, value in values
        if isinstance(known, tuple) and isinstance(value, int | float) and len(known) > 1
        if value in (known[0], known[-1])
    ]


def _advise(result: Certified) -> Iterator[str]:
    """Yield how a closer bound can be had, with what it is expected to be: by rows held out, or by more.

    Which bound of losses is the closest depends on them one by one, which are not known of other rows: of
    rows held out it is expected by their total alone, and of more rows with a distance from the mean that
    shrinks as the root of their number grows.
    """
    c, error = result.certificate, result.measured_error
    first, sample, groups, baseline = c.claims.first, c.sample, c.sample.groups, c.sample.baseline
    counted = sample.numbers is None and groups is None

    def expect(held: int) -> float:  # the bound if as many are wrong, or as far off, as were measured
        if counted:
            return float(clopper_pearson(ceil(error * held), held, first.delta))
        return bound_mean_loss([ceil(error * held * ONE)], held, first.delta)

    if not first.quantity.is_error or not (counted or first.risk > error):
        return
    units, name = (sample.n_rows, "rows") if groups is None else (groups["count"], "groups")
    worthless, share = c.compare(first).worthless, Holdout().canonical(units).holdout_share
    held = int(float(share) * units)  # by default
    better = error < baseline.error if first.gate is None else first.gate.lost < first.gate.won
    if worthless and not better:
        learner = "--learner all" if counted else "another --learner"
        yield f"{learner}, or other columns: as measured, this is not better than a constant"
    elif not sample.n_held and held >= MIN_HELD_OUT:
        of = "" if counted else f", with {held:,} of {units:,} {name} held out"
        if (bound := expect(held)) < min(first.risk, baseline.error):
            yield f"--certify holdout: about {first.quantity.format(bound)}{of}"
        elif worthless and not counted:
            yield f"--certify holdout: closer where {name} are about equally far off{of}"
    by_class = any(claim.label is not None for claim in c.claims)
    if worthless and counted and sample.n_held and len(sample.labels) == 2 and not by_class:
        yield "--criterion balanced --claim refit,sensitivity,specificity: proven for each class"
    if sample.n_held and not worthless:
        bound = expect(2 * sample.n_held) if counted else error + (first.risk - error) / sqrt(2)
        condition = SAME_RATE if sample.numbers is None else "if they are as far off as these"
        yield f"with {format_about(2 * units)} {name}: about {first.quantity.format(bound)}, {condition}"


# What it is about


def _tell_subject(result: Certified) -> Iterator[Fact]:
    c, problem, counts = result.certificate, result.problem, result.class_counts
    quoted, nothing = find_quoted(result)
    first, required, baseline = c.claims.first, problem.required, c.sample.baseline
    lack = "" if required is None else c.claims.explain_lack_of_cut_off(required)
    compared = [claim for claim in c.claims if claim.quantity.reference]
    yield Fact("", describe_subject(result))
    for name, text, value in (
        ("required", "" if lack == first.statement else lack, None),
        ("measured", _describe_measured(result), result.measured_error),
        ("baseline", _describe_baseline(c), baseline.error),
        ("better", c.compare(first).better, first.gate),
        ("proven", "" if quoted is not None and nothing else _list_other_claims(c), None),
        ("by class", _describe_classes(result), None if counts is None else counts.tolist()),
        ("answered", _describe_answered(c), None),
        ("compared", "; ".join(claim.quantity.describe(claim) for claim in compared), None),
        ("subgroups", _describe_worst(c), None),
        ("model", _describe_model(result), None),
        ("search", _name_search(result), c.winner.search),
        ("weights", describe_weights(problem), None),
    ):
        level = DETAILS if name == "search" and value is None else FIRST
        if text:
            yield Fact(name, text, level, value, *(_find_basis(first) if name in BESIDE else ()))


def _describe_measured(result: Certified) -> str:
    """Say what was measured of what the first claim is about: an estimate, which the bound allows for."""
    c, counts, positive = result.certificate, result.class_counts, result.problem.positive
    first, numbers = c.claims.first, c.sample.numbers is not None
    on = HELD_OUT if first.held_out else "scored rows"
    on = f"{c.sample.n_held:,} {on}" if numbers and first.held_out else on
    if first.bound is None and not first.quantity.is_error:
        return ""
    if first.quantity.made_of:  # a predictive value or net benefit, by the recalls that were measured
        if counts is None or not counts.sum(axis=1).all():
            return ""
        (found, right), (positives, negatives) = (
            values[[positive, 1 - positive]].tolist() for values in (counts.diagonal(), counts.sum(axis=1))
        )
        said = f"{found:,} of {positives:,} positive {on} and {right:,} of {negatives:,} others right"
        return f"{format_percent(first.quantity.compute(found / positives, right / negatives))} ({said})"
    if first.label is not None:
        if counts is None:
            return ""
        # the claim of a recall that a cut-off guarantees counts the rows that it may miss
        number = result.task.classes.index(first.label)
        rows = int(counts[number].sum())
        first = replace(first, errors=rows - int(counts[number, number]), rows=rows)
    said = first.quantity.measure(first, on, result.measured_error, result.task.units)
    papers = not first.held_out and "paper" in result.problem.criterion.estimated
    papers = papers and c.sample.groups is None and not numbers
    return f"{said}; the paper's L_EE {ceil_percent(c.winner.l_ee)}" if papers else said


def _describe_baseline(c: Certificate) -> str:
    baseline, off = c.sample.baseline, "" if c.sample.numbers is None else "off by "
    mean = "" if c.sample.groups is None else ", mean over groups"
    on = "same rows" if c.claims.first.held_out else baseline.on
    average = " on average" if off else ""
    return f"{off}{baseline.figure}{average} on the {on} {_name_constant(c, baseline)}{mean}"


def _name_constant(c: Certificate, baseline: Baseline) -> str:
    return f"if {baseline.quote(c.sample.labels)} were always predicted"


def _list_other_claims(c: Certificate) -> str:
    first, shown = c.claims.first, list[str]()
    for claim in c.claims:
        kind = claim.quantity
        other = not (kind.is_error or kind.answers or kind.reference or claim is first)
        if other and claim.says_something and claim.classifier == first.classifier:
            named = claim.cut_off is not None and claim.cut_off != first.cut_off
            at = f" with cut-off {claim.cut_off:.6g}" if named else ""
            shown.append(cut(f"{claim.name} {claim.says}{at}", LONGEST_CLAIM))
    ends = np.cumsum([len(text) for text in shown])
    return "; ".join(cut_list(shown, "more: --details", max(1, int(np.sum(ends <= LONGEST_CLAIMS)))))


def _describe_answered(c: Certificate) -> str:
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


def _describe_classes(result: Certified) -> str:
    """Return how many rows of each class the rule of the first claim has wrong, the worst first.

    They are the rows that this claim counts: with one about the error they add up to what is measured.
    """
    if (counts := result.class_counts) is None:
        return ""
    first, rows = result.certificate.claims.first, counts.sum(axis=1)
    wrong, said = rows - counts.diagonal(), list[str]()
    worst = sorted(range(len(rows)), key=lambda number: -wrong[number] / max(1, rows[number]))
    for i in worst[:WORST]:
        share = f" ({format_percent(wrong[i] / rows[i])})" if rows[i] else ""
        label = cut(repr(result.task.classes[i]), LONGEST_LABEL)
        said.append(f"{label} {wrong[i]:,} of {rows[i]:,}{share}")
    more = f", {len(worst) - WORST} classes more" if len(worst) > WORST else ""
    every = first.label is None and first.rows not in (None, rows.sum())
    own = _note_cut_off(result.certificate) if first.cut_off is None else ""
    return f"{', '.join(said)} wrong{more}{f', of all {rows.sum():,} rows' if every else ''}{own}"


def _note_cut_off(c: Certificate) -> str:
    """Say that figures are at the learner's own cut-off, where another one was chosen."""
    return OWN_CUT_OFF if any(claim.cut_off is not None for claim in c.claims) else ""


def _describe_worst(c: Certificate) -> str:
    claimed = [claim for claim in c.claims.subgroups or () if claim.label is None]
    known = [claim for claim in claimed if claim.bound is not None]
    if not claimed:
        return ""
    own = _note_cut_off(c)
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {MIN_OF_SUBGROUP} held-out rows: nothing is proven of them{own}"
    worst = max(known, key=lambda claim: claim.bound or 0.0)
    said, counted = "at most {} wrong", f"{worst.errors:,} of {worst.rows:,} measured"
    if worst.quantity.is_mean:
        said, counted = "off by at most {} on average", f"{worst.rate} measured on {worst.rows:,} rows"
    says = said.format(worst.quantity.format(worst.bound or 0.0))
    return f"{says} in the worst of {len(known)} ({worst.subgroup}: {counted}){small}{own}"


def _describe_model(result: Certified) -> str:
    sample = result.certificate.sample
    held = f", {sample.n_held:,} held out" if sample.n_held else ""
    groups = "" if sample.groups is None else f" in {sample.groups['count']:,} groups"
    several = f", {len(sample.labels)} classes" if len(sample.labels) > 2 else ""
    kind = ", numbers" if sample.numbers is not None else several  # of two both are named by class
    chosen, features = Candidate(result.setting, result.k), pluralize(len(result.task.features), "column")
    return f"{chosen}; {sample.n_rows:,} rows{groups}{held}, {features}{kind}"


def _name_search(result: Certified) -> str:
    search, candidates = result.certificate.winner.search, len(result.candidates)
    if search is None:
        return f"race: the best of {candidates:,} candidates"
    left, least, numbers = search["not_excluded"], search["least"], result.certificate.sample.numbers
    budget = f"budget, effort {search['effort']:,}"
    if least is None:
        return f"{budget}: the best of {candidates:,} candidates, of which all others are excluded"
    could = describe_least(least, None if numbers is None else numbers["clip"])
    not_excluded = f"{left:,} of {candidates:,} candidates were not excluded"
    return f"{budget}: {not_excluded}; the best of them could still have {could}"


# Further sections


def _tell_performance(result: Certified, judged: Judged | None) -> Section:
    c, counts, tables = result.certificate, result.class_counts, list[FactTable]()
    first = c.claims.first
    rule, rows = _find_basis(first)
    told = [Fact("operating point", f"{rows}, by {rule}", DETAILS, None, rule, rows)]
    if counts is not None:
        recalls = [each for each in c.claims if each.quantity.by_class and each.shares_rule(first)]
        limits = {each.label: f"at least {each.limit}" for each in recalls if each.bound is not None}
        proven = [limits.get(label, "") for label in result.task.classes]
        level, fixed = format_level(first.delta) if any(proven) else "", [*BY_CLASS]
        if first.cut_off is not None:  # it depends on the labels of these rows: so do PPV and NPV at it
            fixed = [name for name in fixed[:2] if is_fixed_for(name, result.problem.required)]
        fixed = fixed if first.held_out and c.sample.groups is None else []
        wrong, tables = tell_classes(result, counts, result.study.delta, fixed, proven, level)
        told.append(wrong)
    for baseline in c.sample.baselines[:-1]:
        counted = "" if c.sample.numbers is not None else f" ({baseline.errors:,} of {baseline.rows:,})"
        said = f"{baseline.figure}{counted} on the {baseline.on} {_name_constant(c, baseline)}"
        told.append(Fact("baseline", said, DETAILS, baseline.error, rows=baseline.on))
    if c.claims.subgroups:
        tables.append(_tabulate_subgroups(c))
    others = [
        interval.describe()
        for interval in result.intervals
        if (interval.classifier, interval.cut_off) != (first.classifier, first.cut_off)
    ]
    told += [Fact("measured", said, DETAILS) for said in others]
    if others:
        told.append(Fact("intervals", describe_intervals(c.winner.delta), DETAILS))
    if result.judged is not None:
        told.append(Fact("judged", describe_judged(result.judged), DETAILS))
    if judged is not None:
        told.append(Fact("figures", f"of {judged.rows}"))
    title = result.task.target.word("Performance by class", "Performance")
    return Section("performance", title, told, tables)


def _tabulate_subgroups(c: Certificate) -> FactTable:
    rows = list[tuple[str, ...]]()
    for claim in c.claims.subgroups or ():
        name = "mean error" if claim.quantity.is_mean else "error"
        name = name if claim.label is None else f"recall of {claim.label}"
        if claim.bound is not None or claim.label is None:
            rows.append((claim.subgroup, name, f"{claim.rows:,}", claim.rate, claim.limit))
    own = "" if c.sample.numbers is not None else ", at the model's own cut-off"
    note = (
        f"Named before the run: {pluralize(len({row[0] for row in rows}), 'subgroup')} of the rows held out. "
        f"What is proven of them holds for all of them together{own}."
    )
    return FactTable("Subgroups", ("subgroup", "figure", "rows", "measured", "proven"), rows, note, DETAILS)


def _tell_claims(result: Certified) -> Iterator[Fact]:
    c = result.certificate
    for claim in c.claims:
        yield Fact("proven", claim.statement, DETAILS, claim.bound, *_find_basis(claim))
    told = {PROVISIONAL, describe_weights(result.problem), *c.list_cautions()}
    told |= {claim.statement for claim in c.claims}
    yield from (Fact("remark", text, DETAILS) for text in c.wording.statements[1:] if text not in told)
    yield from (Fact("assumption", text) for text in c.wording.assumptions)


def _tell_method(result: Certified) -> Iterator[Fact]:
    c, study, problem = result.certificate, result.study, result.problem
    winner, level = c.winner, format_level(c.claims.first.delta)
    divided = f"the {_name_splits(c)} were divided at random {pluralize(winner.n_splits, 'time')} into"
    if study.resampling.name == Rotation.name:
        divided = f"the {_name_splits(c)} were shuffled and cut into k parts, which in turn were"
    refit = ", and one more model was fitted on all rows that were not held out" if c.sample.n_held else ""
    minimised = problem.criterion.describe_minimised().partition(" (")[0]
    how, wrong = result.task.target.word("often", "far off"), result.task.target.word("wrong ", "")
    yield Fact(
        "question",
        f"Which setting of {', '.join(problem.learners)}, with which number of folds, predicts "
        f"{result.task.target.name} best among {len(result.candidates):,} candidates, and how {how} is it "
        f"{wrong}at most on {name_units(result)}?",
    )
    yield Fact(
        "selection",
        f"For every candidate, a setting of the learner with a number of folds k, {divided} a part to learn "
        f"from, a part to select by and a part to estimate on. The candidate with the smallest {minimised} "
        "won, and was fitted again on each of its splits; these "
        f"{pluralize(len(result.ensemble.members), 'model')} are the ensemble F*{refit}.",
    )
    counted = COUNTED.search(c.claims.first.statement)
    held_out = f"The bound comes from {c.sample.n_held:,} rows that nothing used before, and holds at {level}"
    held_out += "." if counted is None else counted[0]
    yield Fact("proof", held_out if c.claims.first.held_out else NOT_HELD_OUT.format(level))
    for label, learner in study.learner.by_label.items():
        values = learner.space.settings()
        distinct = {name: [*dict.fromkeys(map(str, column.tolist()))] for name, column in values.items()}
        lists = [f"; {name} in {{{list_first(found)}}}" for name, found in distinct.items()]
        yield Fact("settings", f"{label}: {pluralize(sum(learner.space.lengths), 'setting')}{''.join(lists)}")
    yield Fact("folds", f"k in {{{list_first([size.k for size in problem.sizes])}}}")
    yield from _tell_preparation(result)
    yield Fact("reference", PAPER_IS)


def _name_splits(c: Certificate) -> str:
    return "rows" if c.sample.groups is None else "groups"


def _tell_preparation(result: Certified) -> Iterator[Fact]:
    problem, study, criterion = result.problem, result.study, result.certificate.winner.criterion
    encoding = "all columns are numbers without gaps, and are taken as they are"
    if not problem.all_rows.schema.plain:
        encoding = (
            f"categories became numbers by the method {str(study.encoding.categories)!r}, those with less "
            f"than {format_percent(study.encoding.rare)} of the training rows joined; a gap in a number or "
            f"date is filled with the {study.encoding.gaps} of the training rows of each split, and a column "
            "of its own says where it was; in categories a gap is a category"
        )
    yield Fact("encoding", encoding)
    yield Fact("preparation", INSIDE)
    yield from (Fact("scaling", text, DETAILS) for text in problem.scaling)
    learners = study.learner.by_label.values()
    weights = sorted(
        {str(getattr(learner, "class_weight", EQUALLY)) for learner in learners} - {str(EQUALLY)}
    )
    balanced = [f"training rows balanced: {study.balance}"] * (study.balance != "none")
    balanced += [f"classes weighted: {weight}" for weight in weights]
    separately = f"criterion {criterion!r} counts the classes separately"
    balanced += [separately] * (criterion in ("balanced", "cost"))
    yield Fact("balance", "; ".join(balanced) or "none")
    chosen = [claim.cut_off for claim in result.certificate.claims if claim.cut_off is not None]
    cut_off = "none tuned: a row gets the class that the model names, and claims are about that class"
    if problem.required is not None:
        said = f"it is {chosen[0]:.6g}" if chosen else "none qualified"
        cut_off = f"chosen on the held-out rows for {problem.required}: {said}"
    if result.task.classes:
        yield Fact("cut-off", cut_off)


def _tell_search(result: Certified) -> Iterator[Fact]:
    winner, learners, test = result.certificate.winner, result.per_learner(), result.execution.get("test")
    yield Fact("best", str(Candidate(winner.setting, winner.k)), DETAILS, winner.setting)
    trained = f"{winner.n_train:,} {_name_splits(result.certificate)} to train"
    parts = f"{trained}, {winner.n_select:,} to select, {winner.n_select:,} to estimate"
    yield Fact("splits", f"{winner.n_splits:,}, each of {parts}", DETAILS, winner.n_splits)
    for row in learners if len(learners) > 1 else []:
        came = f"L_MS at least {floor_percent(row['lower_bound'])}"
        if row["setting"] is not None:
            setting = {name: value for name, value in row["setting"].items() if name != "learner"}
            came = f"L_MS {ceil_percent(row['l_ms'])}, {Candidate(setting, row['k'])}"
        lost = f"; {row['failed']:,} of {row['candidates']:,} candidates failed" if row["failed"] else ""
        yield Fact("learner", f"{row['learner']}: {row['state']}, {came}{lost}", DETAILS)
    spans, on_test = result.per_k(), (test or {}).get("reported", {})
    for k in result.study.report_k if result.problem.clip is None else ():
        row = next(row for row in spans if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is not None:
            l_ee = ceil_percent(row["l_ee"]) if row["l_ee"] is not None else NOT_AVAILABLE
            error = (on_test.get(str(k)) or {}).get("error")
            tested = f", test error {format_percent(error)}" if error is not None else ""
            said = (
                f"L_MS {ceil_percent(row['l_ms'])}, L_EE {l_ee}, {describe_setting(row['setting'])}{tested}"
            )
            yield Fact(f"k = {k}", said, DETAILS, row["l_ms"])
    if test:
        error, vote = (
            NOT_AVAILABLE if share is None else format_percent(share)
            for share in (test["error"], test["vote_error"])
        )
        said = f"{error} on {test['rows']:,} rows by a random member of F*, {vote} by majority vote"
        covered = "(as reported by the run); no claim covers this"
        yield Fact("test error", f"{said} {covered}", DETAILS, test["error"])


def _tell_means(result: Certified) -> Iterator[Fact]:
    c, winner, numbers = result.certificate, result.certificate.winner, result.certificate.sample.numbers
    if numbers is None:
        minimised = result.problem.criterion.describe_minimised()
        same, error = result.problem.criterion.estimated, f"{format_percent(c.counts.error)}, {ERROR_IS}"
        names, write, scale = ("L_MS", "L_EE", "error of F*"), ceil_percent, 1.0
    else:
        scale, level = numbers["clip"], format_level(winner.delta)
        minimised = (
            f"mean error, of which at most {format_number(scale)} counts, with a {level} margin, on the "
            "select sets (minimised)"
        )
        same = "the same on the estimate sets; no bound"
        error = f"{format_number(scale * c.counts.error)} on the estimate sets (an estimate, not a bound)"
        names, write = ("selected by", "estimated", "mean error"), round_bound
    yield Fact(names[0], f"{write(scale * winner.l_ms)}, {minimised}", DETAILS, winner.l_ms)
    yield Fact(names[1], f"{write(scale * winner.l_ee)}, {same}", DETAILS, winner.l_ee)
    yield Fact(names[2], error, DETAILS, c.counts.error)
    yield Fact("remark", c.wording.statements[0], DETAILS)


def _tabulate_means(c: Certificate) -> FactTable:
    rows = [
        format_row(str(label), side["rows"], side["errors"], side["errors"] / max(1, side["rows"]),
                   None if side["bound"] is None else ceil_percent(side["bound"]))
        for label, side in zip(c.sample.labels, c.counts.by_class, strict=True)
    ]  # fmt: skip
    bound = "The bound is the mean over the splits."
    if c.sample.groups:
        bound = "There is no bound: rows of one group are related."
    sets = f"all {c.winner.n_splits:,} estimate sets, which share rows"
    heads = ("class", "rows", "wrong", "share", f"mean {format_level(c.winner.delta)} bound")
    note = f"Rows and errors are summed over {sets}. {bound}"
    return FactTable("The winner on its estimate sets, by class", heads, rows, note)


def _tell_models(result: Certified) -> Iterator[Fact]:
    models, one = result.models, "one model at the winner's setting, fitted on all rows"
    members = f"{pluralize(len(models.best.members), 'model')}, each fitted on the rows of its split"
    yield Fact("F*", f"{members} but those that estimate; k = {result.k}")
    if models.refit is not None:
        yield Fact("refit", f"{one} that were not held out")
    if models.full is not None:
        yield Fact("full", f"{one}; nothing is proven for it alone")

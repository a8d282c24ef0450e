"""What a finished study tells: each fact once, in the order in which readers ask.

What the number is and whether it may be quoted, what it is about, what voids it, how it is checked and what
to do next; then performance by class, claims, data, method and search, and as an appendix the paper's
figures, the models and the options. Without a certification: tables of scores, doubts, and what they are
worth. The terminal, the page, Markdown, cards and forms show the same facts, as many as each has room for:
see ``render``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, nan, sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims import quantity
from ckcv_ray.claims.certificate import PROVISIONAL, Compared, describe_equal_rows, describe_least
from ckcv_ray.claims.error import describe_weights
from ckcv_ray.claims.quantity import Acceptance, Claim, describe_intervals, format_ends
from ckcv_ray.core.bounds.betting import bound_mean_loss
from ckcv_ray.core.bounds.binomial import bound_both_sides, clopper_pearson
from ckcv_ray.core.intervals import INTERVALS, MISS
from ckcv_ray.core.measures import OF_SECOND, Score
from ckcv_ray.core.options import get_values, list_inside, present
from ckcv_ray.core.resampling.complete import Rotation
from ckcv_ray.errors import (
    NOT_SET,
    ONE,
    Label,
    Values,
    ceil_percent,
    cut,
    cut_list,
    floor_percent,
    format_about,
    format_level,
    format_number,
    format_percent,
    format_row,
    format_score,
    plain,
    pluralize,
    quote,
    round_bound,
)
from ckcv_ray.learners.sklearn.spec import list_foreign
from ckcv_ray.learners.steps import EQUALLY, Balance
from ckcv_ray.records.candidates import per_k, per_learner
from ckcv_ray.records.record import Failure
from ckcv_ray.runs import result as results
from ckcv_ray.runs.judged import Calibration, Judged, calibrate
from ckcv_ray.runs.result import Certified, Entry, Result, Scored
from ckcv_ray.storage.execution import Before
from ckcv_ray.study.parts import MIN_HELD_OUT, Holdout
from ckcv_ray.study.problem import Candidate, Problem, describe_setting
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.tables.questions import describe_sorted
from ckcv_ray.tables.task import Task

FIRST, DETAILS, PAGE = 1, 2, 3  # levels: the first screen, --details, the page alone
CAUTION, QUESTION = "CAUTION", "QUESTION"  # facts that are set apart from others
NEW = "new rows", "rows of new groups"
FOLDER = "RUN_FOLDER"  # stands for the folder in commands
MAX_NAMED = 20  # columns, values or classes in a sentence
MAX_DESCRIBED = 200  # columns
MAX_OPEN_COLUMNS = 25  # up to which a table is not folded
MAX_LABELS, MAX_LABEL = 3, 40
MAX_CONFUSED, MAX_MISTAKES = 12, 10  # classes of a confusion matrix; otherwise, mistakes listed
BY_CLASS = {  # with more than two classes, the first and the third are shown for each
    "sensitivity": "sensitivity: ‘{}’ found",
    "specificity": "specificity: ‘{}’ found",
    "ppv": "PPV: ‘{}’ predicted, and right",
    "npv": "NPV: ‘{}’ predicted, and right",
}
TYPICAL_IS = (
    "Typical: the median and the quartiles, or the most common category and its share. Values: distinct ones."
)
KINDS = {ColumnKind.NUMBER: "numbers", ColumnKind.CATEGORY: "categories", ColumnKind.DATE: "dates"}
OWN_CUT_OFF = "; at the learner's own cut-off, not the one chosen"
WORST = 5  # classes
MAX_RUNS = 3  # folders named
LONGEST_LABEL, LONGEST_REASON, LONGEST_CLAIM = 24, 80, 160  # characters
LONGEST_CLAIMS = 240  # all claims together
NEW_ROWS = "on new rows, none of these"  # what is selected again by judged rows is not covered
HELD_OUT, ESTIMATED = "held-out rows", "rows of all estimate sets, each by the member of its split"
CHECKED = (
    "It fits the models of the run folder again and recomputes the number; with --rerun the whole study."
)
REPEATED = "a study repeated with other seeds, grids or data until it looked good"
ERROR_IS = "mean error of the members on their estimate sets (an estimate, not a bound)"
INSIDE = (
    "whatever is estimated from rows (scaling, filling, encoding) is estimated inside each split from its "
    "training rows alone, so the claims cover it"
)
PAPER_IS = (
    "Anguita, Ghelardoni, Ghio, Oneto, Ridella: The ‘K’ in K-fold Cross Validation, ESANN 2012: in each "
    "split one part trains, one selects and one estimates; they share no row."
)
MAX_LISTED_SETTINGS = 10  # settings listed in a terminal if one of them is chosen
MAX_INNER = 50  # settings listed with their inner splits
FEW_SPLITS = 40  # up to which every score is listed
FEW_SCORED_ROWS = 20  # of a split: its mean says little
KEEP = "The folder keeps no predictions by row: ckcv evaluate --save-predictions keeps them."
REFERENCE = (
    "S. Arlot, A. Celisse: A survey of cross-validation procedures for model selection, Statistics Surveys "
    "4, 2010."
)
SCORES_CHECKED = "It recomputes every figure from the log; with --rerun it runs the whole study again."
FIGURE_IS = (
    "A figure is the mean over splits, an estimate of what a model fitted on as many rows scores on new rows "
    "of the same source."
)
ESTIMATE_IS = "As an estimate, with its name and its splits. It is not a bound, and nothing is proven by it."
NO_MEAN = "No: a fit failed, or the score is not defined on a split, so there is no mean."
INCOMPLETE = (
    "Some scores are incomplete: a fit failed, or a score is not defined on a split. They have no mean."
)
TEST_IS = (
    "The test is the corrected resampled t-test (Nadeau, Bengio 2003), a heuristic: splits share rows. A "
    "difference found among many comparisons may be chance."
)
BOUND_IS = (
    "A bound holds for one model, of a line that was named before its score was seen, on rows that are "
    "independent."
)
BOUNDS_ARE = (
    "On new rows the score of each split's model is {} its bound, with probability 95 %: from the rows that "
    "the split scores (Clopper-Pearson; for a clipped error a bet), if rows are independent. Each holds by "
    "itself, for a split and a line that were named before the scores were seen."
)
INNER_ARE = (
    "Means over outer splits of the mean over the splits inside, and the standard deviation over all of "
    "these. A setting is selected by such figures, so the best of them is too optimistic."
)
NOT_COVERED = (
    "rows that belong together, such as visits of one patient, in different parts of a split",
    "scaling or a choice of columns made on the full table before the splits",
    "a choice among many lines by the figure that is quoted",
    "new rows from another source than these",
)


@dataclass(frozen=True, eq=False)
class Fact:
    """One thing worth telling about a result. Facts side by side share one rule and one set of rows."""

    name: str  # in a word or two, unique to facts of one kind; "" for a sentence that needs none
    text: str  # in words, without the name, and with a full stop only if it is a sentence
    level: int = PAGE  # ``FIRST``, ``DETAILS`` or ``PAGE``: where it first appears
    value: Any = None  # what the text says, as in ``Result.to_json``; None if that is not a single value
    rule: str = ""  # the rule that it is about; "" without one
    rows: str = ""  # the rows that it is counted on; "" without any


@dataclass(frozen=True)
class FactTable:
    """Facts shown side by side."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell of each names it
    note: str = ""  # what to know about it, or a traceback of several lines
    level: int = PAGE
    folded: bool = False  # whether a reader of the page has to unfold it
    most: int | None = None  # rows that a terminal shows; all of them by default


@dataclass(frozen=True)
class Section:
    """Facts that belong together, except those without text; with pictures where these are drawn."""

    name: str  # identifies it
    title: str
    facts: Iterable[Fact] = ()
    tables: Sequence[FactTable] = ()
    figures: Sequence[Any] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", [fact for fact in self.facts if fact.text])


def _describe_subject(result: Result) -> str:
    """Return what is predicted, and for which rows."""
    labels = [cut(str(label), MAX_LABEL) for label in result.task.classes]
    named, name = ", ".join(cut_list(labels, "more classes", MAX_LABELS)), result.task.target.name
    what = f"{name} ({named})" if labels else f"a number, {name},"
    return f"Prediction of {what} for {result.task.units.word(*NEW)}."


def tell_data(result: Result, repeats: int, most: int) -> Section:
    """Tell about the table, including the rows held out; ``repeats`` of its rows equal another.

    Its columns take long with many rows, and are left out if ``most`` is below the level of the page.
    """
    task, columns, divided = result.problem.all_rows, result.problem.all_rows.schema.columns, ""
    if held := task.n - result.task.n:
        where = result.problem.certification.where
        how = "at random" if where is None else f"by {where.describe()}"
        divided = f": {result.task.n:,} to learn from, {held:,} held out {how}"
    groups = Fact("groups", "none: rows are taken as independent")
    if not task.units.independent:
        sizes = np.bincount(task.row_units)
        each = " to ".join(f"{size:,}" for size in sorted({sizes.min(), sizes.max()}))
        by = f"{task.units.name} (rows in each: {each})"
        said = f"{len(sizes):,}, by {by}; groups are independent, their rows may not be"
        groups = Fact("groups", said, DETAILS, len(sizes))
    kinds = [column.kind for column in columns]
    counted = [pluralize(kinds.count(kind), str(kind), many) for kind, many in KINDS.items() if kind in kinds]
    if task.classes:
        rows = zip(task.classes, np.bincount(task.y, minlength=task.n_classes).tolist(), strict=True)
        shares = [f"{name!r} {n:,} ({format_percent(n / task.n)})" for name, n in rows]
        target = f"{pluralize(len(shares), 'class', 'classes')}: {_list_first(shares)}"
    else:
        target = f"a number, median (and quartiles) {_describe_typical(task.y)}"
    missing = dict(zip(task.features, np.isnan(task.X).sum(axis=0).tolist(), strict=True))
    lacking = [f"{name} {n:,} ({format_percent(n / task.n)})" for name, n in missing.items() if n]
    cells, size = sum(missing.values()), task.X.size
    gaps = f"{cells:,} of {size:,} cells ({format_percent(cells / size)}): {_list_first(lacking)}"
    equal = f"{repeats:,} rows equal another one" if repeats else "no row equals another"
    named = f"{len(kinds):,} ({', '.join(counted)}): {_list_first(task.features)}"
    told = [
        Fact("run", result.run_id, DETAILS, result.run_id),
        Fact("table", task.source or result.execution["source"] or "arrays"),
        Fact("rows", f"{task.n:,}{divided}", DETAILS, task.n),
        groups,
        Fact("columns", named, DETAILS, len(kinds)),
        Fact("target", f"{task.target.name}: {target}", DETAILS),
        Fact("gaps", gaps if cells else "none", DETAILS, cells),
        Fact("repeats", equal, DETAILS, repeats),
        Fact("weights in fits", f"by {task.weighting.column}" if task.weighting.columns else "", DETAILS),
    ]
    described = list[tuple[str, ...]]()
    for i, column in enumerate(columns[:MAX_DESCRIBED] if most == PAGE else ()):
        known = task.X[~np.isnan(task.X[:, i]), i]
        lost, typical = task.n - len(known) or None, _describe_typical(known, column.kind, column.levels)
        found = lost, lost and lost / task.n, len(np.unique(known)), typical
        described.append(format_row(column.name, str(column.kind), *found))
    title = f"Columns: the first {len(described)} of {len(columns):,}"
    title = title if len(described) < len(columns) else "Columns"
    heads = ("column", "kind", "gaps", "share", "values", "typical")
    table = FactTable(title, heads, described, TYPICAL_IS, folded=len(columns) > MAX_OPEN_COLUMNS)
    return Section("data", "The data", told, [table] * (most == PAGE))


def _describe_typical(known: Values, kind: ColumnKind = ColumnKind.NUMBER, levels: Sequence[str] = ()) -> str:
    if not len(known):
        return ""
    if kind is ColumnKind.CATEGORY:
        counts = np.bincount(known.astype(np.intp))
        best = int(np.argmax(counts))
        return f"{levels[best]} ({format_percent(counts[best] / len(known))})"
    quartiles = np.quantile(known, (0.25, 0.5, 0.75))
    said = [f"{number:.4g}" for number in quartiles]
    if kind is ColumnKind.DATE:  # in milliseconds
        said = np.floor(quartiles).astype("datetime64[ms]").astype("datetime64[D]").astype(str).tolist()
    return f"{said[1]} ({said[0]} to {said[2]})"


def tell_failures(failures: Sequence[Failure], problem: Problem) -> list[Section]:
    """Tell which paths failed, by their tracebacks; nothing if none did."""
    groups, heads = dict[str, list[tuple[str, ...]]](), ("stage", "k", "split", "from", "to")
    for failure in failures:
        steps = failure.first, failure.stop - 1
        ends = [results.shorten_setting(problem.learner.space.setting(failure.path, step)) for step in steps]
        stage, k = "estimate" if failure.estimate else "select", problem.folds[failure.size].k
        groups.setdefault(failure.traceback, []).append((stage, str(k), str(failure.split), *ends))
    tables = list[FactTable]()
    for traceback, paths in groups.items():
        title = f"{pluralize(len(paths), 'path')} failed with this traceback"
        tables.append(FactTable(title, heads, paths, traceback, folded=True))
    return [Section("failures", "Failures", (), tables)] if tables else []


def drop_empty(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return heads and rows of a table without the columns in which nothing is known."""
    kept = [i for i in range(len(heads)) if not i or any(row[i] != NOT_SET for row in rows)]
    return [heads[i] for i in kept], [tuple(row[i] for i in kept) for row in rows]


def _list_first(texts: Sequence[object]) -> str:
    """List the first of some texts, and count the others."""
    more = f" and {len(texts) - MAX_NAMED:,} more" if len(texts) > MAX_NAMED else ""
    return f"{', '.join(map(str, texts[:MAX_NAMED]))}{more}"


def flatten(values: object, name: str = "") -> Iterator[Fact]:
    """Yield a fact for each of nested JSON values, by its dotted name.

    Items of a list are named by their ``name``, or counted from 1.
    """
    if isinstance(values, list | tuple) and values and all(isinstance(value, dict) for value in values):
        values = {str(value.get("name", i)): value for i, value in enumerate(values, start=1)}
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flatten(value, f"{name}.{key}" if name else str(key))
        return
    said = list[str]()
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, bool):
            said.append("yes" if value else "no")
        elif isinstance(value, Mapping):  # a function among measures is put in words
            said.append(" ".join(value.values()))
        else:
            form = ".12g" if isinstance(value, float) else "," if isinstance(value, int) else ""
            said.append(NOT_SET if value is None or value == "" else f"{value:{form}}")
    yield Fact(name, ", ".join(said) or "none")


def tell_classes(
    labels: Sequence[Label],
    positive: int,
    counts: NDArray[np.int64],
    delta: float,
    fixed: Collection[str] = (),
    claims: Sequence[Claim] = (),
) -> tuple[Fact, list[FactTable]]:
    """Tell how a rule classifies the rows of each class, and which classes it confuses.

    Args:
        labels, positive: the classes, and the number of the positive one if they are two.
        counts: rows by class and predicted class, the undecided last, (n_classes, n_classes + 1).
        delta: probability with which an interval may miss.
        fixed: which of ``BY_CLASS`` have exact intervals.
        claims: claims about the rule; those about single classes stand beside their figures.
    """

    def bound(part: int, whole: int) -> str | None:
        return format_ends(*bound_both_sides(part, whole, delta)) if fixed and whole else None

    order, names = [*range(len(labels))], ["sensitivity"] * len(labels) + ["ppv"] * len(labels)
    if len(labels) == 2:
        order, names = [positive, 1 - positive], [*BY_CLASS]
    beside = [c for c in claims if c.bound is not None and (c.quantity.by_class or c.quantity.of_flagged)]
    proven = {(c.label, c.quantity.by_class): c.says for c in beside}  # without label: the positive class
    rows, recalls = list[tuple[str, ...]](), ("sensitivity", "specificity")
    wholes = [int(whole[i]) for whole in (counts.sum(axis=1), counts.sum(axis=0)) for i in order]
    for name, i, whole in zip(names, order * 2, wholes, strict=True):
        figure, part = BY_CLASS[name].format(labels[i]), int(counts[i, i])
        measured, interval = part / whole if whole else None, bound(part, whole) if name in fixed else None
        of_it = proven.get((None if (name, i) == ("ppv", positive) else labels[i], name in recalls))
        rows.append(format_row(figure, f"{part:,} of {whole:,}", measured, interval, of_it))
    heads = drop_empty(("figure", "rows", "measured", "interval", "proven"), rows)
    total, wrong = int(counts.sum()), int(counts.sum() - counts.diagonal().sum())
    exact = f", {bound(wrong, total)}" if fixed and set(fixed) >= set(BY_CLASS) else ""
    intervals = f" The intervals are {describe_intervals(delta)}." if fixed else ""
    levels = " and ".join(dict.fromkeys(format_level(claim.delta) for claim in beside))
    sure = f"Only what is ‘proven’ carries the {levels} statement" if levels else "Nothing here is proven"
    note = f"{sure}. PPV and NPV are those at the prevalence of these rows.{intervals}"
    tables, called = [FactTable("By class", *heads, note, DETAILS)], [*map(str, labels), "undecided"]
    if len(labels) <= MAX_CONFUSED:
        shown = len(labels) + bool(counts[:, -1].any())
        rows = [format_row(name, *line[:shown]) for name, line in zip(called, counts.tolist(), strict=False)]
        columns, title = ("actual \\ predicted", *called[:shown]), "Confusion matrix, in rows"
    else:  # the most frequent mistakes, among the rows of a class
        shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
        mistakes = [(i, j) for i, j in np.argwhere(counts).tolist() if i != j]
        most = sorted(mistakes, key=lambda mistake: -shares[mistake])[:MAX_MISTAKES]
        rows = [format_row(called[i], called[j], int(counts[i, j]), float(shares[i, j])) for i, j in most]
        columns = ("actual", "predicted", "rows", "share of the class")
        title = f"The most frequent of {pluralize(len(mistakes), 'kind')} of mistake"
    tables.append(FactTable(title, columns, rows, level=DETAILS))
    (share,) = format_row(wrong / total if total else None)
    return Fact("wrong", f"{wrong:,} of {total:,} rows ({share}{exact})", DETAILS, wrong), tables


def facts(
    result: Result, judged: Judged | None = None, manifest: Mapping[str, str] | None = None, most: int = PAGE
) -> list[Section]:
    """Return what a finished study tells, in the order of the page.

    Args:
        result: what the study knows.
        judged: the rows that figures show; without a certification, the predictions that its folder keeps.
        manifest: SHA-256 of the manifest of its folder, by the manifest's name; None without a folder.
        most: the largest level told; what takes long and lies above it is left out.
    """
    execution, digests = result.execution, {**(manifest or {})}
    if isinstance(result, Certified):
        told, digests = _tell_certified(result, judged, most), result.certificate.digests | digests
        given = result.study.options()
        given["k"] = given["k"] or f"3:{result.task.n_units} (all)"
        options = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    else:
        told, options = _tell_scores(cast(Scored, result), judged, most), result.study.to_json()
    counts = execution["evaluations"]
    evaluations = (
        f"{counts['computed']:,} of {counts['planned']:,} computed "
        f"({format_percent(counts['computed'] / counts['planned'])}), {counts['dropped']:,} dropped as "
        f"provably beaten, {counts['failed']:,} failed"
    )
    cost = [
        Fact("evaluations", evaluations, DETAILS, counts),
        Fact("fits", f"{execution['fits']:,} in {execution['seconds']:.1f} s", DETAILS, execution["fits"]),
        Fact("workers", f"{execution['workers']} ({execution['backend']})"),
    ]
    environment = flatten({"package": execution["package"]} | execution["environment"])
    files = [Fact(f"SHA-256.{name}", digest) for name, digest in digests.items()]
    return [
        *told,
        Section("cost", "Time spent", cost),
        Section("study", "Options", flatten(options)),
        Section("environment", "Environment", environment),
        Section("files", "How to verify it", files),
    ]


# What is certified


def _tell_certified(result: Certified, judged: Judged | None, most: int) -> list[Section]:
    found = calibrate(result) if judged is None else judged.calibration
    c, criterion = result.certificate, result.problem.criterion
    not_covered = [Fact("not covered", text) for text in (*c.not_covered, REPEATED)]
    told = {PROVISIONAL, describe_weights(result.problem), *c.list_cautions()}
    told |= {claim.statement for claim in c.claims}
    claims = [
        *(Fact("proven", one.statement, DETAILS, one.bound, *_find_basis(one)) for one in c.claims),
        *(Fact("remark", text, DETAILS) for text in c.statements[1:] if text not in told),
        *(Fact("assumption", text) for text in c.assumptions),
    ]
    one, members = "one model at the winner's setting, fitted on all rows", result.models.best.members
    each = f"{pluralize(len(members), 'model')}, each fitted on the rows of its split"
    models = [Fact("F*", f"{each} but those that estimate; k = {result.k}")]
    models += [Fact("refit", f"{one} that were not held out")] * (result.models.refit is not None)
    models += [Fact("full", f"{one}; nothing is proven for it alone")] * (result.models.full is not None)
    scale, names, write, average = 1.0, ("L_MS", "L_EE", "error of F*"), ceil_percent, format_percent
    minimised = criterion.describe_minimised()
    if c.numbers is not None:
        scale, names = c.numbers["clip"], ("selected by", "estimated", "mean error")
        write, average, level = round_bound, format_number, format_level(c.delta)
        minimised = f"mean error, of which at most {format_number(scale)} counts, with a {level} margin, "
        minimised += "on the select sets (minimised)"
    means = [
        Fact(names[0], f"{write(scale * c.l_ms)}, {minimised}", DETAILS, c.l_ms),
        Fact(names[1], f"{write(scale * c.l_ee)}, {criterion.estimated}", DETAILS, c.l_ee),
        Fact(names[2], f"{average(scale * c.error)}, {ERROR_IS}", DETAILS, c.error),
        Fact("remark", c.statements[0], DETAILS),
    ]
    appendix = result.task.target.word("L_MS and L_EE", "means over splits")
    return [
        tell_verdict(result),
        Section("subject", "What is it about?", _tell_subject(result, found)),
        Section("voids", "What voids it?", not_covered),
        Section("check", "How do I check it?", [Fact(f"ckcv verify {FOLDER}", CHECKED)]),
        Section("next", "What do I do next?", _tell_next(result)),
        _tell_performance(result, judged, found, most),
        Section("claims", "Claims and assumptions", claims),
        tell_data(result, c.repeats, most),
        Section("method", "Method", _tell_method(result)),
        Section("search", "Search", _tell_search(result)),
        Section("means", f"Appendix: {appendix}", means),
        Section("models", "Models", models),
    ]


def tell_verdict(result: Certified) -> Section:
    """Tell what of a result may be quoted, as ``tell_quote`` does, and which folders were not read."""
    c, all_rows, scope = result.certificate, result.problem.all_rows, result.problem.certification.scope
    known = *results.find_quoted(result), list_cautions(result), result.decisions
    told = tell_quote(c, result.task, *known, all_rows.units.question, scope)
    kicker = "Provisional: evaluations failed; the bound is proven nevertheless"
    shown = [*told.facts, Fact("failed", results.describe_failed(result), FIRST)]
    before: Before | None = result.execution.get("before")
    if before is not None:
        folders = list[str]()
        for name, why in before["passed_over"].items():
            need = why.rpartition(" not here: ")[2].rpartition(" trust it, ")[2]
            folders.append(f"{quote(name)} ({cut(plain(need), LONGEST_REASON)})")
        unread = cut_list(folders, "more", MAX_RUNS)
        unread += [f"{pluralize(before['older'], 'older run')}"] if before["older"] else []
        unknown = "it is not known whether these rows were judged there"
        shown.append(Fact("unread", f"{', '.join(unread)}: {unknown}" if unread else "", FIRST))
    if not_converged := result.execution["not_converged"]:
        advice = result.problem.learner.trainer.convergence_advice
        shown.append(Fact("note", f"{not_converged:,} fits did not converge: {advice}", DETAILS))
    every, learned = all_rows.n_units, result.task.n_units
    if 2 * (every - learned) > every + 1:  # half of an odd number is rounded
        many = (
            f"{every - learned} of {every} {all_rows.unit}s certify and {learned} are learned from: the more "
            "certify, the tighter the bound, but the fewer are learned from, the more the model errs"
        )
        shown.append(Fact("note", many, DETAILS))
    return replace(told, title=kicker if c.provisional else told.title, facts=shown)


def tell_quote(
    c: Compared,
    task: Task,
    quoted: Claim | None,
    nothing: str,
    cautions: Sequence[str],
    decisions: Sequence[Acceptance],
    question: str = "",
    scope: str = "",
) -> Section:
    """Tell which claim may be quoted, if any, or why the first may not; and what to know before."""
    told, first, cautions = list[Fact](), c.first, [text for text in cautions if quoted or text != nothing]
    if quoted is not None:
        of = f"{quoted.name} on {task.units.word(*NEW)} in the long run, {quoted.quantity.side}"
        told.append(Fact("number", quoted.limit, PAGE, quoted.bound, *_find_basis(quoted)))
        told.append(Fact("of", f"{of}{scope}; proven, by {quoted.method}"))
    failed, reasons = [decision for decision in decisions if not decision.met], list[str]()
    for one in failed or decisions:
        lack = "" if one.met else " (the contrary is proven)" if one.refuted else " (not yet proven)"
        reasons.append(f"{one.condition}: {one.proven}{lack}")
    accepted = f"{'NOT ACCEPTED' if failed else 'ACCEPTED'}: {'; '.join(reasons)}" if reasons else ""
    told.append(Fact("accepted", accepted, FIRST, decisions))
    may, others = "Quote with CAUTION" if cautions or question else "May be quoted", list_other_claims(c)
    if quoted is None:
        lacking = f"The {first.name} cannot be quoted." if others else "Nothing can be quoted yet."
        verdict = f"{lacking} {nothing}"
    elif nothing:
        verdict = f"The {first.name} cannot be quoted; what is proven{scope}: {others}"
    else:
        headline = first.quantity.word(first.quantity.quoted, first, task)
        verdict = f"{may}: {headline}, with probability {format_level(first.delta)}{scope}"
    # for an error, its bound is compared with what was measured
    share = first.risk if first.quantity.is_error and task.classes else None
    told.append(Fact("verdict", verdict, FIRST, share))
    stated = "" if quoted is None else quoted.statement.replace(f" ({quoted.method}).", ".")
    told.append(Fact("claim", stated, FIRST))
    told += [Fact(CAUTION, text, FIRST) for text in cautions]
    told.append(Fact(QUESTION, question, FIRST))
    return Section("quote", "The number to quote" if quoted else "Nothing to quote yet", told)


def _find_basis(claim: Claim) -> tuple[str, str]:
    """Return the rule that a claim is about and the rows that it rests on, as all that is shown beside it."""
    cut_off = "" if claim.cut_off is None else f" with cut-off {claim.cut_off:.6g}"
    return f"{claim.classifier}{cut_off}", HELD_OUT if claim.held_out else ESTIMATED


def list_cautions(result: Certified) -> list[str]:
    """Return a sentence for each reason not to rely on what is proven, the gravest first."""
    c, problem, task = result.certificate, result.problem, result.task
    first = [text for text in (present("alarm", result), PROVISIONAL * c.provisional) if text]
    before: Before | None = result.execution.get("before")
    for judged in (True, False):  # earlier runs judged rows that this one judges, or saw them
        if before is None or not (runs := [run for run in before["runs"] if run["judged"] == judged]):
            continue
        folders = dict[str, list[str]]()
        for run in runs:  # a copy of a folder holds the same run
            name = f"{plain(run['command'])} {plain(run['run_id'])}"
            folders.setdefault(name, []).append(quote(run["folder"]))
        names = [f"{name} ({', '.join(copies)})" for name, copies in folders.items()]
        some = "Rows equal to some" if any(run["twins"] for run in runs) else "Some"
        these, number = f"{some} of these {pluralize(before['rows'], 'row')} were", len(names) + 1
        listed = ", ".join(cut_list(names, "more", MAX_RUNS))
        if judged:
            instead = f"{these} judged before, by {listed}. Quote {plain(runs[0]['run_id'])} if it may be."
            only = f"only if all runs were named before any was seen, and each had delta/{number}."
            first.append(f"{instead} This one is covered {only}")
        else:
            seen = f"{these} seen before, by {listed}: this bound is not covered if what was shown led to"
            first.append(f"{seen} this study; --learner a,b compares them within the learning rows.")
    said, learned = list[str](), np.isin(range(task.n_classes), task.y)
    if problem.held is not None and task.classes:
        held = np.bincount(problem.all_rows.y[problem.held], minlength=task.n_classes)
        if listed := task.target.name_classes(np.flatnonzero(~learned), held):
            said.append(f"Never predicted, with all rows held out, so that all count as wrong: {listed}.")
    counts = results.tabulate_claimed(result)
    if counts is not None and len(counts) > 2:  # otherwise it is said by class
        never = np.flatnonzero(learned & counts.any(axis=1) & (counts.diagonal() == 0))
        if listed := task.target.name_classes(never, counts.sum(axis=1)):
            said.append(f"Never predicted correctly, so that all their rows count as wrong: {listed}.")
    said += [*describe_sorted(problem.all_rows, result.study.seed), *c.list_cautions()]
    return [*dict.fromkeys([*first, *c.describe_repeats(), *said])]


def _tell_next(result: Certified) -> Iterator[Fact]:
    quoted, nothing = results.find_quoted(result)
    advice = [*_advise(result)] or (["more of them, better columns, or other learners"] if nothing else [])
    for number, text in enumerate(advice):
        yield Fact("or" if number else "next", f"{NEW_ROWS}: {text}", FIRST)
    _, learner = result.problem.find_learner(result.setting)
    inside = list_inside(learner, "param")
    for name, grid in get_values(learner).items():
        value = result.setting.get(name)
        ends = (grid[0], grid[-1]) if isinstance(grid, tuple) and len(grid) > 1 else ()
        if isinstance(value, int | float) and value in ends:
            edge = f"{name} = {value:g} is on the edge of its grid: {NEW_ROWS}, widen"
            option = f"--{'param ' * (name in inside)}{name.replace('_', '-')}"
            yield Fact("note", f"{edge} {option} beyond {value:g}: a better candidate may be there", DETAILS)
    ckcv = " ".join(["ckcv", *map("--trust {}".format, list_foreign(result.study.learner.by_label.values()))])
    predict = "" if quoted is None else f"; {ckcv} predict {FOLDER} NEW.csv"
    yield Fact("then", f"{ckcv} report {FOLDER}{predict}", FIRST)
    if quoted is not None:
        does = result.task.target.word("classifies", "predicts")
        yield Fact("", f"ckcv predict {does} new rows with exactly the model the number is about.")


def _advise(result: Certified) -> Iterator[str]:
    """Yield how a tighter bound can be had, with what it is expected to be: by rows held out, or by more.

    Which bound on losses is tightest depends on each loss, and losses are unknown for other rows: for rows
    held out the bound is expected from the total alone, and for more rows by assuming that its distance from
    the mean shrinks as the root of their number grows.
    """
    c, error = result.certificate, results.measure_error(result)
    first, baseline, counted = c.first, c.baseline, not result.problem.has_losses

    def expect(held: int) -> float:  # the bound if as many are wrong, or as far off, as measured
        if counted:
            return float(clopper_pearson(ceil(error * held), held, first.delta))
        return bound_mean_loss([ceil(error * held * ONE)], held, first.delta)

    if not first.quantity.is_error or not (counted or first.risk > error):
        return
    units, name = result.problem.all_rows.n_units, f"{result.task.unit}s"
    worthless, share = c.is_worthless(first), Holdout().canonical(units).holdout_share
    held = int(float(share) * units)  # by default
    better = error < baseline.error if first.gate is None else first.gate.lost < first.gate.won
    if worthless and not better:
        learner = "--learner all" if counted else "another --learner"
        yield f"{learner}, or other columns: as measured, this is not better than a constant"
    elif not c.n_held and held >= MIN_HELD_OUT and expect(held) < min(first.risk, baseline.error):
        of = "" if counted else f", with {held:,} of {units:,} {name} held out"
        yield f"--certify holdout: about {first.quantity.format(expect(held))}{of}"
    by_class = any(claim.label is not None for claim in c.claims)
    if worthless and counted and c.n_held and len(c.labels) == 2 and not by_class:
        yield "--criterion balanced --claim refit,sensitivity,specificity: proven for each class"
    if c.n_held and not worthless:
        bound = expect(2 * c.n_held) if counted else error + (first.risk - error) / sqrt(2)
        condition = result.task.target.word(quantity.SAME_RATE, "if they are as far off as these")
        more = f"{format_about(2 * units)} {name}"
        yield f"with {more}: about {first.quantity.format(bound)}, {condition}"


def _tell_subject(result: Certified, found: Calibration | None) -> Iterator[Fact]:
    c, task, required = result.certificate, result.task, result.problem.required
    first, (quoted, nothing), candidates = c.first, results.find_quoted(result), len(result.candidates)
    basis, lack = _find_basis(first), "" if required is None else c.explain_lack_of_cut_off(required)
    yield Fact("", _describe_subject(result))
    yield Fact("required", "" if lack == first.statement else lack, FIRST)
    yield Fact("measured", _describe_measured(result), FIRST, results.measure_error(result), *basis)
    yield from tell_comparison(c, task)
    others = "" if quoted is not None and nothing else list_other_claims(c)
    yield Fact("proven", others, FIRST, None, *basis)
    if (counts := results.tabulate_claimed(result)) is not None:
        # rows that the first claim counts: if it is about the error, they add up to what is measured
        rows, said = counts.sum(axis=1), list[str]()
        wrong = rows - counts.diagonal()
        worst = sorted(range(len(rows)), key=lambda number: -wrong[number] / max(1, rows[number]))
        for i in worst[:WORST]:
            share = f" ({format_percent(wrong[i] / rows[i])})" if rows[i] else ""
            said.append(f"{cut(repr(task.classes[i]), LONGEST_LABEL)} {wrong[i]:,} of {rows[i]:,}{share}")
        more = f", {len(worst) - WORST} more classes" if len(worst) > WORST else ""
        every = first.label is None and first.rows not in (None, rows.sum())
        of_all = f", of all {rows.sum():,} rows" if every else ""
        chosen = any(claim.cut_off is not None for claim in c.claims)
        own = OWN_CUT_OFF if first.cut_off is None and chosen else ""
        by_class = f"{', '.join(said)} wrong{more}{of_all}{own}"
        yield Fact("by class", by_class, FIRST, counts.tolist(), *basis)
    yield Fact("calibration", found.verdict if found is not None and found.n_outside else "", FIRST)
    if answered := [claim for claim in c.claims if claim.quantity.answers]:
        error, answers = sorted(answered, key=lambda claim: not claim.quantity.at_most)
        statement = "" if error is first else error.statement
        if error.least_confidence is not None:
            statement = (
                f"{answers.limit} of new rows or more, with {error.says} of them wrong; measured: "
                f"{error.rows:,} of {answers.rows:,} held-out rows, {error.errors:,} of them wrong"
            )
        yield Fact("answered", statement, FIRST)
    yield Fact("compared", "; ".join(one.comparison for one in c.claims if one.quantity.reference), FIRST)
    yield Fact("subgroups", describe_worst(c), FIRST)
    held = f", {c.n_held:,} held out" if c.n_held else ""
    groups = task.units.word("", f" in {result.problem.all_rows.n_units:,} groups")
    several = f", {len(c.labels)} classes" if len(c.labels) > 2 else ""
    kind = task.target.word(several, ", numbers")  # if there are two, both are named by class
    model, features = Candidate(result.setting, result.k), pluralize(len(task.features), "column")
    yield Fact("model", f"{model}; {c.n_rows:,} rows{groups}{held}, {features}{kind}", FIRST)
    if (search := c.search) is None:
        yield Fact("search", f"race: the best of {candidates:,} candidates", DETAILS)
    else:
        outcome = f"the best of {candidates:,} candidates; all others are excluded, or failed"
        if (least := search["least"]) is not None:
            outcome = f"{search['not_excluded']:,} of {candidates:,} candidates were not excluded; the best "
            outcome += f"could still have an L_MS of {describe_least(least, result.problem.clip)}"
        yield Fact("search", f"budget, effort {search['effort']:,}: {outcome}", FIRST, search)
    yield Fact("weights", describe_weights(result.problem), FIRST)


def _describe_measured(result: Certified) -> str:
    """Return what was measured of what the first claim is about: an estimate, which the bound allows for."""
    c, counts, positive = result.certificate, results.tabulate_claimed(result), result.problem.positive
    first, on = c.first, "scored rows"
    if first.held_out:
        on = HELD_OUT if result.task.classes or first.rows else f"{c.n_held:,} {HELD_OUT}"
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
        # the claim on a recall that a cut-off guarantees counts the rows that it may miss
        number = result.task.classes.index(first.label)
        rows = int(counts[number].sum())
        first = replace(first, errors=rows - int(counts[number, number]), rows=rows)
    said = first.quantity.measure(first, on, results.measure_error(result), result.task)
    papers = "paper" in result.problem.criterion.estimated and not result.problem.has_losses
    return said if first.held_out or not papers else f"{said}; the paper's L_EE {ceil_percent(c.l_ee)}"


def tell_comparison(c: Compared, task: Task, by_group: bool = True) -> Iterator[Fact]:
    """Tell the constant's error, and whether the rule of the first claim is better than every constant.

    With groups it is the mean over these, unless rows count alike in any group (not ``by_group``).
    """
    baseline, first, off = c.baseline, c.first, task.target.word("", "off by ")
    alike = first.quantity.guarded or bool(off)  # otherwise the claim is, say, on the rows of one class
    on = "the same rows" if alike and first.held_out else f"{'the' if alike else 'all'} {baseline.on}"
    figure = f"{baseline.figure}{' on average' if off else ' wrong' * (not alike)}"
    mean = task.units.word("", ", mean over groups") if by_group else ""
    said = f"{off}{figure} on {on} if {baseline.quote(c.labels)} were always predicted{mean}"
    yield Fact("baseline", said, FIRST, baseline.error, *_find_basis(first))
    if first.gate is not None and first.gate.passed:
        yield Fact("better", c.describe_gate(first, first.gate), FIRST, first.gate, *_find_basis(first))


def list_other_claims(c: Compared) -> str:
    """Return what else is proven about the rule of the first claim, and may be quoted."""
    first, shown = c.first, list[str]()
    for claim in c.claims:
        kind = claim.quantity
        other = not (kind.answers or kind.reference or claim is first)
        says = claim.says_something and not c.refuse(claim)
        if other and says and claim.classifier == first.classifier:
            named = claim.cut_off is not None and claim.cut_off != first.cut_off
            at = f" with cut-off {claim.cut_off:.6g}" if named else ""
            shown.append(cut(f"{claim.name} {claim.says}{at}", LONGEST_CLAIM))
    ends = np.cumsum([len(text) for text in shown])
    return "; ".join(cut_list(shown, "more: --details", max(1, int(np.sum(ends <= LONGEST_CLAIMS)))))


def describe_worst(c: Compared) -> str:
    """Return what is proven of the worst subgroup; "" without any."""
    claimed = [claim for claim in c.subgroups or () if claim.label is None]
    known = [claim for claim in claimed if claim.bound is not None]
    if not claimed:
        return ""
    own = OWN_CUT_OFF if any(claim.cut_off is not None for claim in c.claims) else ""
    small = f"; {len(claimed) - len(known)} too small to say" if len(known) < len(claimed) else ""
    if not known:
        return f"each has fewer than {quantity.MIN_OF_SUBGROUP} held-out rows: nothing is proven of them{own}"
    worst = max(known, key=lambda claim: claim.risk)
    said, counted = f"{worst.says} wrong", f"{worst.errors:,} of {worst.rows:,} measured"
    if worst.quantity.is_mean:
        said, counted = f"off by {worst.says} on average", f"{worst.rate} measured on {worst.rows:,} rows"
    return f"{said} in the worst of {len(known)} ({worst.subgroup}: {counted}){small}{own}"


def _tell_performance(
    result: Certified, judged: Judged | None, found: Calibration | None, most: int
) -> Section:
    c, counts, tables = result.certificate, results.tabulate_claimed(result), list[FactTable]()
    first, target = c.first, result.task.target
    rule, rows = _find_basis(first)
    told = [Fact("operating point", f"{rows}, by {rule}", DETAILS, None, rule, rows)]
    if counts is not None:
        fixed, same = [*BY_CLASS], [claim for claim in c.claims if claim.shares_rule(first)]
        if first.cut_off is not None:  # it depends on the labels of these rows, as do PPV and NPV at it
            fixed = [name for name in fixed[:2] if quantity.is_fixed_for(name, result.problem.required)]
        fixed = fixed if first.held_out and result.task.units.independent else []
        positive, delta = result.problem.positive, result.study.delta
        wrong, tables = tell_classes(result.task.classes, positive, counts, delta, fixed, same)
        told.append(wrong)
    for baseline in c.baselines[:-1]:
        counted = target.word(f" ({baseline.errors:,} of {baseline.rows:,})", "")
        constant = f"if {baseline.quote(c.labels)} were always predicted"
        said = f"{baseline.figure}{counted} on the {baseline.on} {constant}"
        told.append(Fact("baseline", said, DETAILS, baseline.error, rows=baseline.on))
    if c.subgroups:
        columns, cells = ("subgroup", "figure", "rows", "measured", "proven"), list[tuple[str, ...]]()
        for claim in c.subgroups:
            name = "mean error" if claim.quantity.is_mean else "error"
            name = name if claim.label is None else f"recall of {claim.label}"
            if claim.bound is not None or claim.label is None:
                lacks = f": takes {quantity.MIN_OF_SUBGROUP} rows" * (claim.bound is None)
                proven = claim.says if claim.says_something else f"nothing{lacks}"
                cells.append((claim.subgroup or "", name, f"{claim.rows:,}", claim.rate, proven))
        level, own = format_level(c.delta), target.word(", at the learner's own cut-off", "")
        note = (
            f"Named before the run: {pluralize(len({cell for cell, *_ in cells}), 'subgroup')} of the rows "
            f"held out. What is proven holds for all of them together, with probability {level}{own}."
        )
        tables.append(FactTable("Subgroups", columns, cells, note, DETAILS))
    for claim, *ends in result.intervals:
        if not claim.shares_rule(first):
            counted = f"{claim.rate} ({claim.part:,} of {claim.rows:,} {HELD_OUT})"
            said = f"{claim.name} {counted}, {format_ends(*ends)} ({_find_basis(claim)[0]})"
            told.append(Fact("measured", said, DETAILS))
    if any(fact.name == "measured" for fact in told):
        told.append(Fact("intervals", describe_intervals(c.delta), DETAILS))
    if judged is not None:  # otherwise a figure shows it
        told.append(Fact("figures", f"of {judged.rows}"))
    elif found is not None:
        heads, bins = drop_empty(*found.tabulate(result.task.classes))
        if len(bins) > MAX_OPEN_COLUMNS:  # a terminal shows the first of them
            bins.sort(key=lambda cells: cells[-1] == "inside")
        tables.append(FactTable("Calibration", heads, bins, found.note, DETAILS, most=MAX_OPEN_COLUMNS))
        if not found.n_outside:
            told.append(Fact("calibration", found.verdict, DETAILS))
    elif result.task.classes and most >= DETAILS:
        told.append(Fact("calibration", results.explain_no_probabilities(), DETAILS))
    return Section("performance", target.word("Performance by class", "Performance"), told, tables)


def _tell_method(result: Certified) -> Iterator[Fact]:
    c, study, problem = result.certificate, result.study, result.problem
    units, learners = f"{result.task.unit}s", study.learner.by_label
    divided = f"the {units} were divided at random {pluralize(c.n_splits, 'time')} into"
    if study.resampling.name == Rotation.name:
        divided = f"the {units} were shuffled and cut into k parts, which in turn were"
    refit = ", and one more model was fitted on all rows that were not held out" if c.n_held else ""
    minimised = problem.criterion.describe_minimised().partition(" (")[0]
    yield Fact(
        "selection",
        f"For every candidate, a setting of the learner with a number of folds k, {divided} a part to learn "
        "from, a part to select by and a part to estimate on. The winner is the candidate with the smallest "
        f"{minimised}; it was fitted again on each of its splits, and these "
        f"{pluralize(len(result.ensemble.members), 'model')} are the ensemble F*{refit}.",
    )
    for label, learner in learners.items():
        values = learner.space.settings()
        distinct = {name: [*dict.fromkeys(map(str, column.tolist()))] for name, column in values.items()}
        lists = [f"; {name} in {{{_list_first(found)}}}" for name, found in distinct.items()]
        yield Fact("settings", f"{label}: {pluralize(sum(learner.space.lengths), 'setting')}{''.join(lists)}")
    yield Fact("folds", f"k in {{{_list_first([size.k for size in problem.sizes])}}}")
    encoding = "all columns are numbers without gaps, and are taken as they are"
    if not problem.all_rows.schema.plain:
        encoding = (
            f"categories were encoded as numbers by the method {str(study.encoding.categories)!r}, those "
            f"with less than {format_percent(study.encoding.rare)} of the training rows joined; a gap in a "
            f"number or date is filled with the {study.encoding.gaps} of the training rows of each split, "
            "and a separate column says where it was; among categories a gap is a category of its own"
        )
    yield Fact("encoding", encoding)
    yield Fact("preparation", INSIDE)
    yield from (Fact("scaling", text, DETAILS) for text in problem.scaling)
    weights = {str(getattr(learner, "class_weight", EQUALLY)) for learner in learners.values()}
    balanced = [f"training rows balanced: {study.balance}"] * (study.balance != "none")
    balanced += [f"classes weighted: {weight}" for weight in sorted(weights - {str(EQUALLY)})]
    separately = f"criterion {c.criterion!r} counts the classes separately"
    balanced += [separately] * (c.criterion in ("balanced", "cost"))
    yield Fact("balance", "; ".join(balanced) or "none")
    cut_off = "none tuned: a row gets the class that the model names, and claims are about that class"
    if problem.required is not None:
        positive = result.task.classes[problem.positive]
        chosen = [claim.cut_off for claim in c.claims if claim.cut_off is not None]
        said = f"it is {chosen[0]}; scores are larger for {positive!r}" if chosen else "none qualified"
        cut_off = f"chosen on the held-out rows for {problem.required}: {said}"
    yield Fact("cut-off", result.task.target.word(cut_off, ""))
    yield Fact("reference", PAPER_IS)


def _tell_search(result: Certified) -> Iterator[Fact]:
    c, test = result.certificate, result.execution["test"]
    learners = per_learner(result.candidates, result.problem)
    yield Fact("best", str(Candidate(c.setting, c.k)), DETAILS, c.setting)
    trained = f"{c.n_train:,} {result.task.unit}s to train"
    parts = f"{trained}, {c.n_select:,} to select, {c.n_select:,} to estimate"
    yield Fact("splits", f"{c.n_splits:,}, each of {parts}", DETAILS, c.n_splits)
    for row in learners if len(learners) > 1 else []:
        came = f"L_MS at least {floor_percent(row['lower_bound'])}"
        if row["setting"] is not None:
            setting = {name: value for name, value in row["setting"].items() if name != "learner"}
            came = f"L_MS {ceil_percent(row['l_ms'])}, {Candidate(setting, row['k'])}"
        lost = f"; {row['failed']:,} of {row['candidates']:,} candidates failed" if row["failed"] else ""
        yield Fact("learner", f"{row['learner']}: {row['state']}, {came}{lost}", DETAILS)
    spans, on_test = per_k(result.candidates, result.problem), (test or {}).get("reported", {})
    for k in result.study.search.report_k if result.problem.clip is None else ():
        row = next(row for row in spans if row["k_first"] <= k <= row["k_last"])
        if row["l_ms"] is not None:
            l_ee = "not available" if row["l_ee"] is None else ceil_percent(row["l_ee"])
            said = f"L_MS {ceil_percent(row['l_ms'])}, L_EE {l_ee}, {describe_setting(row['setting'])}"
            if str(k) in on_test:
                said += f", test error {format_percent(on_test[str(k)]['error'])}"
            yield Fact(f"k = {k}", said, DETAILS, row["l_ms"])
    if test:
        error, vote = format_percent(test["error"]), format_percent(test["vote_error"])
        said = f"{error} on {test['rows']:,} rows by a random member of F*, {vote} by majority vote"
        covered = "(as reported by the run); no claim covers this"
        yield Fact("test error", f"{said} {covered}", DETAILS, test["error"])


# Scores


def _tell_scores(result: Scored, judged: Judged | None, most: int) -> list[Section]:
    study, task, several = result.study, result.task, len(result.entries) > 1
    splits, rows = pluralize(len(results.find_shown(result)[1]), "split"), pluralize(task.n, "row")
    balanced = f"; training rows are balanced by class ({study.balance})" * (study.balance != Balance.NONE)
    named = study.resampling.name if study.resampling.column is None else study.resampling
    divided = f"{named}: {splits} of {rows}{balanced}"
    entry = results.find_kept(result) or results.rank_entries(result, result.scores[0])[0][0]
    not_covered = [text for text in NOT_COVERED if several or text != NOT_COVERED[2]]
    certify = "It makes a study with a certificate, for a number that may be quoted as a bound."
    advice = Fact("ckcv run … --out NEW_FOLDER", certify)
    if results.find_kept(result) is not None:
        does = f"It predicts new rows with the model fitted on all rows ({entry.name})."
        advice = Fact(f"ckcv predict {FOLDER} NEW.csv", does)
    elif not task.classes:
        fits = "It fits the best line on all rows, to predict new ones."
        advice = Fact("ckcv evaluate … --refit best", fits)
    chosen = f"Settings were selected inside the training rows of each split, by {study.select_by}."
    if result.computed.chosen is None:
        chosen = "No setting was selected: every line of the tables is fitted as it is named."
    method = [Fact("selection", chosen), Fact("figures", FIGURE_IS), Fact("reference", REFERENCE)]
    performance = Section("performance", "Performance by class", [Fact("", KEEP)])
    if judged is not None and task.classes:
        counts = results.tabulate_predictions(judged.y, judged.label, task.n_classes)
        wrong, tables = tell_classes(task.classes, result.problem.positive, counts, MISS)
        performance = replace(performance, facts=[Fact("operating point", judged.rows), wrong], tables=tables)
    elif judged is not None:
        performance = Section("performance", "Performance", [Fact("operating point", judged.rows)])
    return [
        Section("scores", "Scores", [Fact("splits", divided, FIRST, result.computed.n_splits)]),
        *(_tell_score(result, score) for score in result.scores),
        *_tell_inner(result),
        Section("quote", "An estimate, not a bound", _tell_estimate(result, entry, splits)),
        Section("subject", "What is it about?", _tell_subject_of_scores(result)),
        Section("voids", "What voids it?", [Fact("not covered", text) for text in not_covered]),
        Section("check", "How do I check it?", [Fact(f"ckcv verify {FOLDER}", SCORES_CHECKED)]),
        Section("next", "What do I do next?", [advice]),
        performance,
        tell_data(result, results.count_repeats(result).rows, most),
        Section("method", "Method", method),
    ]


def _tell_score(result: Scored, score: Score) -> Section:
    """Return the figures of a score; where one of many settings is chosen, best mean first."""
    task, choose, entries, told = result.task, result.study.choose, list(result.entries), list[Fact]()
    better, side = ("larger", "at least") if score.greater else ("smaller", "at most")
    of_class = f"of {task.classes[1]!r}; " if score.name in OF_SECOND and task.n_classes == 2 else ""
    title, rows = f"{score.name} ({of_class}{better} is better)", list[tuple[str, ...]]()
    ranks = dict(zip(entries, (row.places[score.name].rank for row in result.settings), strict=False))
    ranks = ranks if results.lists_settings(result) else {}
    if choose and len(entries) > MAX_LISTED_SETTINGS:
        entries = [entry for entry, _ in results.rank_entries(result, score)]
    for entry in entries:
        found, rank = result.figures(entry, score), ranks.get(entry)
        low, high = result.interval(entry, score) if result.study.interval else (nan, nan)
        lacking = (found.missing, "failed"), (found.undefined, "not defined")
        figures = map(format_score, (found.mean, found.deviation, found.error, found.pooled))
        interval = f"{format_score(low)} to {format_score(high)}" if low == low else NOT_SET
        lost = ", ".join(f"{count} {what}" for count, what in lacking if count) or NOT_SET
        rows.append((entry.name, NOT_SET if rank is None else f"{rank}", *figures, interval, lost))
    kind = INTERVALS.get(result.study.interval)
    interval = f"{'exact' if kind is not None and kind.exact else 'approximate'} {format_level(MISS)}"
    heads = drop_empty(("learner", "rank", "mean", "sd", "se", "pooled", interval, "lacking"), rows)
    tables = [FactTable(title, *heads, level=FIRST, most=MAX_LISTED_SETTINGS if choose else None)]
    for entry in result.entries:
        if (test := results.judge_by_permutations(result, entry, score)) is not None:
            counted = f"; {test.undefined:,} without a mean count as if they were" if test.undefined else ""
            good = f"{test.as_good:,} of {test.n:,} permutations of the target are as good or better"
            known = "no p, since there is no mean" if test.p != test.p else f"p {test.p:.4g}: {good}{counted}"
            told.append(Fact(entry.name, known, FIRST, test.p))
    if result.computed.n_splits <= FEW_SPLITS:
        columns = "line", f"splits 0 to {result.computed.n_splits - 1}"
        values, bounds = list[tuple[str, ...]](), list[tuple[str, ...]]()
        for name, entry in zip(results.list_short_names(result), result.entries, strict=True):
            values.append((name, ", ".join(map(format_score, result.of_splits(entry, score).tolist()))))
            found = result.bounds(entry, score).tolist()
            proven = [NOT_SET if one != one else round_bound(one, up=not score.greater) for one in found]
            bounds.append((name, ", ".join(proven)))
            if len(proven) == 1 and proven != [NOT_SET]:
                sure = f"with probability {100 * (1 - results.SCORE_DELTA):g} %"
                told.append(Fact(entry.name, f"{side} {proven[0]} on new rows, {sure}", FIRST))
        tables.append(FactTable("Every split", columns, values, folded=True))
        if score.bound and not results.explain_no_bound(result):
            note = BOUNDS_ARE.format(side)
            tables.append(FactTable("Bounds for single models", columns, bounds, note, folded=True))
    for entry, best, compared in results.compare_entries(result, score):
        p = f"p {compared.p:.3f}" if not compared.p < 0.0005 else "p < 0.001"
        difference, *ends = (format_score(value, "+") for value in compared[:3])
        said = f"{difference}, 95 % interval {' to '.join(ends)}, {p}"
        told.append(Fact(f"{entry.name} - {best.name}", said, FIRST, compared.difference))
    return Section(f"score-{score.name}", title, told, tables)


def _tell_inner(result: Scored) -> Iterator[Section]:
    if result.computed.chosen is None:
        return
    settings, by, heads = result.settings, str(result.study.select_by), ("setting", "mean", "sd", "rank")
    ranked = [row for row in settings if row.places[by].rank is not None]
    ranked.sort(key=lambda row: row.places[by].rank or 0)
    rows = list[tuple[str, ...]]()
    for row in ranked[:MAX_INNER]:
        setting, place = results.format_setting(row.setting), row.places[by]
        name = f"{row.learner} ({setting})" if setting else row.learner
        rows.append((name, format_score(place.mean), format_score(place.deviation), f"{place.rank}"))
    of = f", the best {len(rows)} of {len(settings):,} settings" if len(settings) > len(rows) else ""
    title, most = f"Inner splits by {by}{of}", MAX_LISTED_SETTINGS
    tables = [FactTable(title, heads, rows, level=FIRST, most=most)]
    if result.computed.n_splits <= FEW_SPLITS:
        selected = [
            (entry.learner, str(split), "nothing" if setting is None else results.format_setting(setting))
            for entry in result.entries
            for split, setting in enumerate(entry.settings)
        ]
        tables.append(FactTable("What was selected", ("learner", "split", "setting"), selected))
    yield Section("inner", "Settings on inner splits", [Fact("", INNER_ARE)], tables)


def _tell_estimate(result: Scored, entry: Entry, splits: str) -> Iterator[Fact]:
    score, n, task, doubts = result.scores[0], len(result.entries), result.task, list[str]()
    found = result.figures(entry, score)
    known = found.mean == found.mean
    if known:
        spread = f"; standard deviation {found.deviation:.4f}" if found.deviation == found.deviation else ""
        yield Fact("number", format_score(found.mean), value=found.mean)
        yield Fact("of", f"mean {score.name} of {entry.name} over {splits}{spread}")
    yield Fact("verdict", ESTIMATE_IS if known else NO_MEAN)
    best = f"It is the best of {n:,}, chosen by this very figure, so it is too optimistic."
    yield Fact(CAUTION, best if known and n > 1 else "")
    yield Fact(CAUTION, "" if result.complete else INCOMPLETE)
    names, repeats = {one.name for one in result.scores}, results.count_repeats(result)
    if repeats.rows:
        doubts.append(
            f"{describe_equal_rows(repeats.rows, task.n, task.units.independent)}: if they have the same "
            f"origin (one patient, one document), up to {ceil_percent(repeats.copies / task.n_units)} of "
            "what is scored is not new, a share of wrong rows may be too small by as much, and no bound is "
            "proven."
        )
    dates = [(c.name, task.X[:, i]) for i, c in enumerate(task.schema) if c.kind is ColumnKind.DATE]
    ascends = any(np.all(np.diff(values[~np.isnan(values)]) >= 0) for _, values in dates)
    if result.study.resampling.in_order and dates and not ascends:
        doubts.append(
            f"{result.study.resampling} takes the order of the table to be that of time, but rows are not in "
            f"ascending order of {' or '.join(quote(name) for name, _ in dates)}: splits learn from rows "
            "that come after those that are scored. Say --time, or sort the table by its date."
        )
    zeros, relative = int(np.sum(task.y == 0)), names & {"mape", "neg_mean_absolute_percentage_error"}
    if zeros and relative:
        doubts.append(
            f"{min(relative)} divides by the target, which is 0 in {pluralize(zeros, 'row')}: by "
            f"{np.finfo(np.float64).eps:.1g} there, as in scikit-learn, so that these rows decide the mean. "
            "Choose absolute or rmse."
        )
    if any(result.figures(entry, score).undefined for entry in result.entries for score in result.scores):
        doubts.append(
            "A score that is not defined on a split, such as AUC where all rows scored are of one class, has "
            "no mean; one that is infinite on a split counts as not defined there."
        )
    explained, least = names & {"r2", "cor2"}, int(results.find_shown(result)[1].min())
    if explained and result.computed.n_splits > 1 and least < FEW_SCORED_ROWS:
        between = task.units.word("", " (and so also explains what differs between groups)")
        doubts.append(
            f"{' and '.join(sorted(explained))}: a split is compared with the mean of the rows that it "
            f"scores, {least} in the smallest: read the pooled figure, which is compared with the mean of "
            f"all scored rows{between}."
        )
    yield from (Fact(CAUTION, text, FIRST) for text in doubts)
    yield Fact(QUESTION, task.units.question, FIRST)


def _tell_subject_of_scores(result: Scored) -> Iterator[Fact]:
    scores, resampling = result.scores, result.study.resampling
    bound = BOUND_IS if result.computed.n_splits == 1 else ""
    if reason := results.explain_no_bound(result):
        bound = f"No bound is proven for any model on new rows: {reason}."
    fitted = f"fitted on all {result.task.n:,} rows: " if results.find_kept(result) is not None else ""
    kept = fitted + results.describe_kept(result) if result.study.choose else ""
    yield Fact("", _describe_subject(result))
    grouped = result.task.split_by.column and not result.task.units.independent
    apart = " It fits on no row of a group that it scores." if grouped else ""
    yield Fact("", f"Each split fits on some rows and scores others ({resampling}).{apart}")
    yield Fact("failed", results.describe_failed(result), FIRST)
    yield Fact("note", resampling.note, FIRST)
    yield Fact("weights", result.task.weighting.describe(), FIRST)
    if result.study.interval:
        interval, level = INTERVALS[result.study.interval], format_level(MISS)
        kind, of_line = f"Approximate {level}", ". They may fail more often than that says"
        of_line += "." if interval.choosing else ", and do for the best of several lines."
        if interval.exact:
            kind, of_line = level, ", and for a line that was named before its score was seen."
        yield Fact("intervals", f"{kind} intervals: {interval.about}{of_line}", FIRST)
    yield from (Fact("scaling", f"{text}.", FIRST) for text in result.problem.scaling)
    yield Fact("model", kept, FIRST)
    yield Fact("bound", bound if any(score.bound for score in scores) else "", FIRST)
    compared = any(results.compare_entries(result, score) for score in scores)
    yield Fact("test", TEST_IS if compared else "", FIRST)

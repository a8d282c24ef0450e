"""What the scores of a study without a certification tell: tables, doubts, and what they are worth."""

from collections.abc import Iterator, Sequence
from math import nan

import numpy as np

from ckcv_ray.claims.certificate import describe_equal_rows
from ckcv_ray.core.intervals import INTERVALS, MISS
from ckcv_ray.core.measures import Score
from ckcv_ray.core.percent import ceil_percent, format_level, round_bound
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.steps import Balance
from ckcv_ray.reports.sections import (
    CAUTION,
    FIRST,
    FOLDER,
    NOT_SET,
    PAGE,
    QUESTION,
    Fact,
    FactTable,
    Section,
    describe_subject,
    drop_empty,
    tell_classes,
    tell_cost,
    tell_data,
    tell_options,
)
from ckcv_ray.runs.judged import Judged
from ckcv_ray.runs.result import format_setting, tabulate_predictions
from ckcv_ray.runs.scored import SCORE_DELTA, Entry, Scored
from ckcv_ray.runs.settings import SettingScores, list_differing
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.validation import quote

MAX_LISTED_SETTINGS = 10  # in a terminal, of those among which one is chosen
MAX_INNER = 50  # settings listed by their inner splits
FEW_SPLITS = 40  # of which every score is listed
MAX_COLUMNS_OF_SPLITS = 8  # lines as columns of such a table; more are rows
FEW_SCORED_ROWS = 20  # of a split, about whose mean little can be said
CHOSEN = {
    "best": "the best",
    "one_se": "the simplest within one standard error of the best",
    "tolerance": "the simplest within {} of the best",
}
RELATIVE = frozenset({"mape", "neg_mean_absolute_percentage_error"})
EXPLAINED = frozenset({"r2", "cor2"})
KEEP = "The folder keeps no predictions by row: ckcv evaluate --save-predictions keeps them."
REFERENCE = (
    "S. Arlot, A. Celisse: A survey of cross-validation procedures for model selection, Statistics Surveys "
    "4, 2010."
)
CHECKED = "It recomputes every figure from the log; with --rerun it runs the whole study again."
ESTIMATE_IS = (
    "As an estimate, with its name and the splits it is of. It is no bound, and nothing is proven by it."
)
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
    "What the score of each split's model is {} on new rows, with probability 95 %: from the rows that the "
    "split scores (Clopper-Pearson; for a clipped error a bet), if rows are independent. Each holds by "
    "itself, for a split and a line that were named before the scores were seen."
)
INNER_ARE = (
    "Means over outer splits of the mean over the splits inside, and the standard deviation over all of "
    "these. A setting is selected by such figures, so the best of them is too good."
)
NOT_COVERED = (
    "rows that belong together, such as visits of one patient, in different parts of a split",
    "scaling or a choice of columns made on the full table before the splits",
    "a choice among many lines by the figure that is quoted",
    "new rows from another source than these",
)


def tell_scores(result: Scored, judged: Judged | None, most: int) -> list[Section]:
    """Return what is told of a study without a certification.

    Args:
        result: what it knows.
        judged: the predictions that its folder keeps; None if it keeps none.
        most: as for ``facts``.
    """
    settings, study, several = result.settings, result.study, len(result.entries) > 1
    splits, rows = pluralize(int(result.counted.sum()), "split"), pluralize(result.task.n, "row")
    balanced = f"; training rows are balanced by class ({study.balance})" * (study.balance != Balance.NONE)
    divided = f"{study.resampling.name}: {splits} of {rows}{balanced}"
    entry = result.kept or result.rank(result.scores[0])[0][0]
    not_covered = [text for text in NOT_COVERED if several or text != NOT_COVERED[2]]
    return [
        Section("scores", "Scores", [Fact("splits", divided, FIRST, result.n_splits)]),
        *(_tell_score(result, score, settings) for score in result.scores),
        *_tell_inner(result, settings),
        Section("quote", "An estimate, not a bound", [*_tell_estimate(result, entry, splits)]),
        Section("subject", "What is it about?", [*_tell_subject(result)]),
        Section("voids", "What voids it?", [Fact("not covered", text) for text in not_covered]),
        Section("check", "How do I check it?", [Fact(f"ckcv verify {FOLDER}", CHECKED)]),
        Section("next", "What do I do next?", [_advise(result, entry)]),
        _tell_performance(result, judged),
        tell_data(result, result.repeats.rows, most),
        Section("method", "Method", [*_tell_method(result)]),
        Section("cost", "Time spent", tell_cost(result.execution)),
        tell_options(study.to_json()),
    ]


def format_score(value: float | None, layout: str = "") -> str:
    """Format a number with four decimals, or four digits where these show it badly; "–" if unknown."""
    if value is None or value != value:
        return NOT_SET
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:{layout}.4{'f' if usual else 'g'}}"


def _tell_score(result: Scored, score: Score, settings: Sequence[SettingScores]) -> Section:
    """Return a score of every entry: its figures, what was compared, and every split."""
    task, better = result.task, "larger" if score.greater else "smaller"
    of_class = f"of {task.classes[1]!r}; " if score.of_second and task.n_classes == 2 else ""
    title = f"{score.name} ({of_class}{better} is better)"
    tables = [_tabulate_score(result, score, settings, title)]
    if result.n_splits <= FEW_SPLITS:
        values = [[*map(format_score, result.of_splits(entry, score).tolist())] for entry in result.entries]
        tables.append(_tabulate_splits(result, "Every split", values))
        if score.bound and not result.unbounded:
            bounds = [_format_bounds(result, entry, score) for entry in result.entries]
            note = BOUNDS_ARE.format(_name_side(score))
            tables.append(_tabulate_splits(result, "Bounds for single models", bounds, note))
    return Section(f"score-{score.name}", title, [*_tell_tests(result, score)], tables)


def _name_side(score: Score) -> str:
    return "at least" if score.greater else "at most"


def _tabulate_score(result: Scored, score: Score, settings: Sequence[SettingScores], title: str) -> FactTable:
    """Return the figures of a score; where one of many settings is chosen, that with the best mean first."""
    listed = result.chosen is None and not result.one_each
    ranks = dict(zip(result.entries, (row.places[score.name].rank for row in settings), strict=False))
    entries, choose, rows = list(result.entries), result.study.choose, []
    if choose and len(entries) > MAX_LISTED_SETTINGS:
        entries = [entry for entry, _ in result.rank(score)]
    for entry in entries:
        found = result.figures(entry, score)
        low, high = result.interval(entry, score) if result.study.interval else (nan, nan)
        lacking = (found.missing, "failed"), (found.undefined, "not defined")
        rows.append(
            (
                entry.name,
                f"{ranks[entry]}" if listed and ranks[entry] is not None else NOT_SET,
                *map(format_score, (found.mean, found.deviation, found.error, found.pooled)),
                f"{format_score(low)} to {format_score(high)}" if low == low else NOT_SET,
                ", ".join(f"{count} {what}" for count, what in lacking if count) or NOT_SET,
            )
        )
    interval = f"approximate {format_level(MISS)}"
    heads = ("learner", "rank", "mean", "sd", "se", "pooled", interval, "lacking")
    most = MAX_LISTED_SETTINGS if choose else None
    return FactTable(title, *drop_empty(heads, rows), level=FIRST, most=most)


def _tabulate_splits(
    result: Scored, title: str, values: Sequence[Sequence[str]], note: str = ""
) -> FactTable:
    names = name_entries(result)
    if len(names) > MAX_COLUMNS_OF_SPLITS:
        lines = [(name, ", ".join(line)) for name, line in zip(names, values, strict=True)]
        return FactTable(title, ("line", f"splits 0 to {result.n_splits - 1}"), lines, note, folded=True)
    rows = [(str(split), *line) for split, line in enumerate(zip(*values, strict=True))]
    return FactTable(title, ("split", *names), rows, note, folded=result.n_splits > 1)


def _format_bounds(result: Scored, entry: Entry, score: Score) -> list[str]:
    bounds = result.bounds(entry, score).tolist()
    return [NOT_SET if bound != bound else round_bound(bound, up=not score.greater) for bound in bounds]


def _tell_tests(result: Scored, score: Score) -> Iterator[Fact]:
    """Yield what is known of the mean of each entry by itself, and of its difference from the best."""
    for entry in result.entries:
        if (test := result.test_by_permutations(entry, score)) is not None:
            counted = f"; {test.undefined:,} without a mean count as if they were" if test.undefined else ""
            good = f"{test.as_good:,} of {test.n:,} permutations of the target are as good or better"
            known = "no p, since there is no mean" if test.p != test.p else f"p {test.p:.4g}: {good}{counted}"
            yield Fact(entry.name, known, FIRST, test.p)
    for entry in result.entries if result.n_splits == 1 else ():
        (bound,) = _format_bounds(result, entry, score)
        if bound != NOT_SET:
            said = f"{_name_side(score)} {bound} on new rows, with probability {100 * (1 - SCORE_DELTA):g} %"
            yield Fact(entry.name, said, FIRST)
    for entry, best, compared in result.compare_entries(score):
        p = f"p {compared.p:.3f}" if not compared.p < 0.0005 else "p < 0.001"
        difference, low, high = (format_score(value, "+") for value in compared[:3])
        said = f"{difference}, 95 % interval {low} to {high}, {p}"
        yield Fact(f"{entry.name} - {best.name}", said, FIRST, compared.difference)


def name_entries(result: Scored) -> list[str]:
    """Return a short name for each entry: its learner, and its values of what differs."""
    if result.one_each:
        return [entry.name for entry in result.entries]
    settings, names = [entry.settings[0] or {} for entry in result.entries], list[str]()
    differing = list_differing(settings)
    for entry, setting in zip(result.entries, settings, strict=True):
        values = ", ".join(str(setting[name]) for name in differing if name in setting)
        names.append(f"{entry.learner}: {values}" if len(result.problem.learners) > 1 else values)
    return names


def _tell_inner(result: Scored, settings: Sequence[SettingScores]) -> Iterator[Section]:
    """Yield the settings by the inner splits of a nested resampling, and which were selected."""
    if result.chosen is None:
        return
    tables, heads = list[FactTable](), ("setting", "mean", "sd", "rank")
    for name in settings[0].places:
        ranked = [row for row in settings if row.places[name].rank is not None]
        ranked.sort(key=lambda row: row.places[name].rank or 0)
        rows = [
            (
                f"{row.learner} ({text})" if (text := format_setting(row.setting)) else row.learner,
                *map(format_score, row.places[name][:2]),
                f"{row.places[name].rank}",
            )
            for row in ranked[:MAX_INNER]
        ]
        of = f", the best {len(rows)} of {len(settings):,} settings" if len(settings) > len(rows) else ""
        level, most = (FIRST, MAX_LISTED_SETTINGS) if name == result.study.select_by else (PAGE, None)
        tables.append(FactTable(f"Inner splits by {name}{of}", heads, rows, level=level, most=most))
    if result.n_splits <= FEW_SPLITS:
        selected = [
            (entry.learner, str(split), text)
            for entry in result.entries
            for split, text in enumerate(result.list_settings(entry))
        ]
        tables.append(FactTable("What was selected", ("learner", "split", "setting"), selected))
    yield Section("inner", "Settings on inner splits", [Fact("", INNER_ARE)], tables)


def _tell_estimate(result: Scored, entry: Entry, splits: str) -> Iterator[Fact]:
    score, n = result.scores[0], len(result.entries)
    found = result.figures(entry, score)
    known = found.mean == found.mean
    if known:
        spread = f"; standard deviation {found.deviation:.4f}" if found.deviation == found.deviation else ""
        yield Fact("number", format_score(found.mean), value=found.mean)
        yield Fact("of", f"mean {score.name} of {entry.name} over {splits}{spread}")
    yield Fact("verdict", ESTIMATE_IS if known else NO_MEAN)
    if known and n > 1:
        best = f"It is the best of {n:,}, chosen by this very figure, so it is too good."
        yield Fact(CAUTION, best)
    if not result.complete:
        yield Fact(CAUTION, INCOMPLETE)
    yield from (Fact(CAUTION, text, FIRST) for text in _list_doubts(result))
    if result.task.units.question:
        yield Fact(QUESTION, result.task.units.question, FIRST)


def _list_doubts(result: Scored) -> Iterator[str]:
    """Yield what may make scores too good and bounds untrue, or not what they seem."""
    task, repeats, names = result.task, result.repeats, {score.name for score in result.scores}
    if repeats.rows:
        yield (
            f"{describe_equal_rows(repeats.rows, task.n, task.units.independent)}: if they have the same "
            f"origin (one patient, one document), up to {ceil_percent(repeats.copies / task.n_units)} of "
            "what is scored is not new, a share of wrong rows may be too small by as much, and no bound is "
            "proven."
        )
    dates = [(c.name, task.X[:, i]) for i, c in enumerate(task.schema) if c.kind is ColumnKind.DATE]
    ascends = any(np.all(np.diff(values[~np.isnan(values)]) >= 0) for _, values in dates)
    if result.study.resampling.in_order and dates and not ascends:
        yield (
            f"{result.study.resampling} takes the order of the table as that of time, and rows are not in "
            f"ascending order of {' or '.join(quote(name) for name, _ in dates)}: splits learn from rows "
            "that come after those that are scored. Sort the table by its date."
        )
    if (zeros := int(np.sum(task.y == 0))) and (relative := RELATIVE & names):
        yield (
            f"{min(relative)} divides by the target, which is 0 in {pluralize(zeros, 'row')}: by "
            f"{np.finfo(np.float64).eps:.1g} there, as in scikit-learn, so that these rows decide the mean. "
            "Choose absolute or rmse."
        )
    if any(result.figures(entry, score).undefined for entry in result.entries for score in result.scores):
        yield (
            "A score that is not defined on a split, such as AUC where all rows scored are of one class, has "
            "no mean; one that is infinite on a split counts as not defined there."
        )
    explained, least = names & EXPLAINED, int(result.rows[result.counted, 1].min())
    if explained and result.n_splits > 1 and least < FEW_SCORED_ROWS:
        between = task.units.word("", " (and so also explains what differs between groups)")
        yield (
            f"{' and '.join(sorted(explained))}: a split is compared with the mean of the rows that it "
            f"scores, {least} in the smallest: read the pooled figure, which is compared with the mean of "
            f"all scored rows{between}."
        )


def _tell_subject(result: Scored) -> Iterator[Fact]:
    scores, resampling = result.scores, result.study.resampling
    bounded, bound = any(score.bound for score in scores), ""
    if bounded and result.unbounded:
        bound = f"No bound is proven for any model on new rows: {result.unbounded}."
    elif bounded and result.n_splits == 1:
        bound = BOUND_IS
    model = f"fitted on all {result.task.n:,} rows: {describe_kept(result)}" if result.study.choose else ""
    yield Fact("", describe_subject(result))
    yield Fact("", f"Each split fits on some rows and scores others ({resampling}).")
    for name, text in (
        ("note", resampling.note),
        ("weights", result.task.weighting.describe()),
        ("intervals", _describe_interval(result)),
        *(("scaling", f"{text}.") for text in result.problem.scaling),
        ("model", model),
        ("bound", bound),
        ("test", TEST_IS if any(map(result.compare_entries, scores)) else ""),
    ):
        if text:
            yield Fact(name, text, FIRST)


def _describe_interval(result: Scored) -> str:
    """Say what the intervals are, if the study has any."""
    if not result.study.interval:
        return ""
    interval, level = INTERVALS[result.study.interval], format_level(MISS)
    if interval.exact:
        return (
            f"{level} intervals: {interval.about}, and for a line that was named before its score was seen."
        )
    best = "" if interval.choosing else ", and do for the best of several lines"
    return f"Approximate {level} intervals: {interval.about}. They may fail more often than that says{best}."


def describe_kept(result: Scored) -> str:
    """Say which setting was fitted on all rows, by what it was chosen, and what that says of new rows."""
    kept, score, study = result.kept, result.scores[0], result.study
    if kept is None:
        return f"no setting has {score.name} on every split, so none was fitted on all rows"
    mean = format_score(result.figures(kept, score).mean)
    measured = f"its mean {score.name} by {study.resampling} is {mean}"
    if len(result.entries) == 1:
        return f"{kept.name}; {measured}"
    how, _, tolerance = study.choose.partition(":")
    return (
        f"{kept.name}, {CHOSEN[how].format(tolerance)} of {len(result.entries):,} settings; {measured}, "
        "which is too good: it was chosen by it. To see what the choice is worth: --resampling nested:5:5 "
        f"--select-by {score.name}"
    )


def _advise(result: Scored, entry: Entry) -> Fact:
    if result.kept is not None:
        said = f"It predicts new rows with the model fitted on all rows ({entry.name})."
        return Fact(f"ckcv predict {FOLDER} NEW.csv", said)
    if not result.task.classes:
        return Fact("ckcv evaluate … --refit best", "It fits the best line on all rows, to predict new ones.")
    said = "It makes a study with a certificate, for a number that may be quoted as a bound."
    return Fact("ckcv run … --out NEW_FOLDER", said)


def _tell_performance(result: Scored, judged: Judged | None) -> Section:
    if judged is None:
        return Section("performance", "Performance by class", [Fact("", KEEP)])
    counted = Fact("operating point", judged.rows)
    if not result.task.classes:
        return Section("performance", "Performance", [counted])
    counts = tabulate_predictions(judged.y, judged.label, result.task.n_classes)
    wrong, tables = tell_classes(result, counts, MISS)
    return Section("performance", "Performance by class", [counted, wrong], tables)


def _tell_method(result: Scored) -> Iterator[Fact]:
    names, learners = ", ".join(score.name for score in result.scores), ", ".join(result.problem.learners)
    yield Fact(
        "question", f"How well is {result.task.target.name} predicted by {learners}, as measured by {names}?"
    )
    chosen = f"Settings were selected inside the training rows of each split, by {result.study.select_by}."
    if result.chosen is None:
        chosen = "No setting was selected: every line of the tables is fitted as it is named."
    yield Fact("selection", chosen)
    yield Fact(
        "figures",
        "A figure is the mean over splits, an estimate of what a model fitted on as many rows scores on new "
        "rows of the same source.",
    )
    yield Fact("reference", REFERENCE)

"""Sections of the page about a study with a certification: claims, candidates, the winner's splits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.claims.certificate import Certificate, ModelCounts, Winner
from ckcv_ray.claims.percent import at_most, format_level
from ckcv_ray.claims.wording import L_EE_IS, say_minimised
from ckcv_ray.core.criteria import MeanBound, MeanError
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import ABSENT, Leader
from ckcv_ray.engine.race import RaceQueue
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.base import Space
from ckcv_ray.reports.answer import name_search
from ckcv_ray.reports.figures import Axis, Landscape, Span, draw_folds, draw_landscape, draw_spread
from ckcv_ray.reports.summary import (
    ERROR_IS,
    describe_baseline,
    describe_learner,
    describe_shares,
)
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Candidate

STEP, PATH = "setting of a series", "series of settings"  # of a search space whose axes have no names
MOST_PAGE_COLUMNS = 30  # of a confusion matrix; of more classes, as many mistakes are listed
DOTS = {  # what is drawn for each split
    "error": "the {} Clopper-Pearson bound",
    "balanced": "the mean of the classes' {} Clopper-Pearson bounds",
    "cost": "Clopper-Pearson's {} formula at the cost of the decisions, in % of the largest cost,",
    "mean_error": "the share of wrong rows",
    "groups": "Clopper-Pearson's {} formula at the groups' shares of wrong rows",
}


class OneSplit(NamedTuple):
    """Errors of the winner on the select and the estimate set of one split, and their bounds."""

    split: int
    select_errors: int
    select_bound: float
    estimate_errors: int
    estimate_bound: float


class Share(NamedTuple):
    """A cell of the confusion matrix: rows, their share of the actual class, whether they are right."""

    rows: int
    share: float
    right: bool


def describe_run(result: ResultValues, queue: RaceQueue) -> dict[str, Any]:
    """Return what the page shows of a study with a certification, whose log was replayed.

    Raises:
        StoreError: the log does not lead to the certificate's winner.
    """
    certificate, leader = result.certificate, queue.selection.winner()
    if leader is None or queue.problem.candidate(leader) != Candidate(result.setting, result.k):
        raise StoreError("the log does not lead to the certificate's winner: see ckcv verify")
    at, spans = make_landscape(result.candidates, queue, leader), list_spans(result.per_k())
    splits, winner, sample = _list_splits(result, queue, leader), certificate.winner, certificate.sample
    known, labels = [claim["statement"] for claim in certificate.claims], sample.labels
    known += certificate.list_cautions()
    grouped = sample.groups is not None and winner.criterion == MeanBound.name
    return {
        "certificate": certificate,
        "search": name_search(result),
        "sample": sample,
        "best": Candidate(result.setting, result.k),
        "winner": winner,
        "claims": [(claim, sample.baseline) for claim in certificate.claims],
        "remarks": [sentence for sentence in certificate.wording.statements if sentence not in known],
        "units": "rows" if sample.groups is None else "groups",
        "error_is": ERROR_IS,
        "baselines": [(baseline, describe_baseline(sample, baseline)) for baseline in sample.baselines],
        "shares": describe_shares(sample),
        "l_ms_is": say_minimised(winner.criterion, winner.bound, winner.delta),
        "l_ee_is": L_EE_IS[winner.criterion][winner.bound],
        "dot": DOTS["groups" if grouped else winner.criterion].format(format_level(winner.delta)),
        "mean_is": "L_EE",
        "split_value": _name_value(winner),
        "at": at,
        "over": name_landscape(at),
        "spans": spans,
        "learners": [(row["learner"], describe_learner(row)) for row in result.per_learner()],
        "splits": splits,
        "landscape": draw_landscape(at, _describe_landscape(result, at)),
        "folds": draw_folds(
            spans,
            f"L_MS or its lower bound, and L_EE, against k from {spans[0].first} to {spans[-1].last}. "
            f"The winner is k = {result.k} with L_MS {at_most(result.l_ms)} and L_EE {at_most(result.l_ee)}. "
            "All values are in the table below the figure.",
        ),
        "spread": _draw_spread(result, splits),
        "classes": [
            {"actual": label, "predicted": labels[1 - number] if len(labels) == 2 else None, **side}
            for number, (label, side) in enumerate(zip(labels, certificate.counts.by_class, strict=True))
        ],
        "confusion": _tabulate_confusion(certificate.counts),
        "mistakes": _list_mistakes(certificate),
    }


def make_landscape(candidates: pa.Table, queue: RaceQueue, leader: Leader) -> Landscape:
    """Return L_MS, or its lower bound from the log, over all settings of the winner's learner at its k.

    The log can hold more splits of a beaten candidate than the table of candidates, which keeps only a proof.
    """
    fold, problem = queue.selection.sizes[leader.size], queue.problem
    number, learner = problem.find_learner(problem.candidate(leader).setting)
    paths = np.flatnonzero(problem.learner_of_paths == number)
    first, here = int(paths[0]), np.s_[int(paths[0]) : int(paths[-1]) + 1, : max(learner.space.lengths)]
    exists = fold.values[0] != ABSENT
    value = np.full(exists.shape, np.nan)
    for path, step in np.argwhere(exists):
        if path in paths:
            value[path, step] = fold.exact_low(path, step)
    of_size = pc.equal(candidates["k_first"], problem.sizes[leader.size].k_first)
    failed, left_open = (np.zeros(exists.shape, np.bool_) for _ in range(2))
    for state, mask in (("failed", failed), ("open", left_open)):
        rows = candidates.filter(pc.and_(of_size, pc.equal(candidates["state"], state)))
        mask[rows["path"].to_numpy(), rows["step"].to_numpy()] = True
    best = leader.path - first, leader.step
    return Landscape(
        *name_axes(learner.space),
        value[here],
        fold.prefix[here],
        failed[here],
        left_open[here],
        fold.n_splits,
        best,
    )


def name_axes(space: Space) -> tuple[Axis, Axis]:
    """Return the axes of a search space: that of its steps and that of its paths.

    An axis is named by the hyperparameters that determine the step, or the path; if there are none, settings
    are counted.
    """
    lengths = list(space.lengths)
    ends = np.cumsum(lengths)
    columns = {name: np.split(values, ends[:-1]) for name, values in space.settings().items()}
    longest = int(np.argmax(lengths))
    steps = {
        name: parts[longest]
        for name, parts in columns.items()
        if all(np.array_equal(part, parts[longest][: len(part)]) for part in parts)
    }
    step = _find_axis(steps, STEP, max(lengths))
    paths = {
        name: np.array([part[0] for part in parts])
        for name, parts in columns.items()
        if name != step.name and all((part == part[0]).all() for part in parts)
    }
    return step, _find_axis(paths, PATH, len(lengths))


def list_spans(rows: Sequence[dict[str, Any]]) -> list[Span]:
    """Convert the rows of ``Result.per_k`` to spans."""
    return [
        Span(
            row["k_first"],
            row["k_last"],
            row["n_select"],
            row["state"],
            row["lower_bound"],
            shorten_setting(row["setting"]),
            row["l_ms"],
            row["l_ee"],
        )
        for row in rows
    ]


def _list_splits(result: ResultValues, queue: RaceQueue, leader: Leader) -> list[OneSplit]:
    fold, certificate = queue.selection.sizes[leader.size], result.certificate
    at = [(False, leader.size, split, leader.path, leader.step) for split in range(fold.n_splits)]
    n_classes = len(certificate.sample.labels)
    counts = [sum((queue.ledger.totals(*place) or ())[:n_classes]) for place in at]
    totals = np.array([member.totals for member in result.ensemble.members])
    bounds = result.problem.criterion.value(
        totals, result.problem.units(Stage.ESTIMATE, leader.size)
    ).tolist()
    select = fold.prefix_values(leader.path, leader.step)
    rows = zip(counts, select, certificate.counts.errors, bounds, strict=True)
    return [OneSplit(i, *row) for i, row in enumerate(rows)]


def _find_axis(known: dict[str, NDArray[Any]], name: str, count: int) -> Axis:
    """Return the axis of the first hyperparameter with distinct values, or of those that have them together.

    If there are none it is an axis of positions, called ``name``.
    """
    for hyperparameter, values in known.items():
        if len({str(value) for value in values.tolist()}) == count:
            return Axis(hyperparameter, tuple(map(_short, values)))
    differing = [column for column, values in known.items() if len(set(map(str, values.tolist()))) > 1]
    together = [
        ", ".join(map(_short, row)) for row in zip(*(known[column] for column in differing), strict=True)
    ]
    if len(set(together)) == count:
        return Axis(", ".join(differing), tuple(together))
    return Axis(name, tuple(str(i + 1) for i in range(count)), counted=True)


def _short(value: Any) -> str:
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)


def shorten_setting(setting: Mapping[str, Any] | None) -> str:
    """Format hyperparameters with three digits; "" if there are none."""
    return ", ".join(f"{name} = {_short(value)}" for name, value in (setting or {}).items())


def _tabulate_confusion(counts: ModelCounts) -> list[list[Share]]:
    """Return the confusion matrix by actual and predicted class, the undecided last if there are any.

    Empty for two classes, whose errors say the same, and for more than a page can show.
    """
    if not 2 < len(counts.by_class) <= MOST_PAGE_COLUMNS:
        return []
    lines = []
    for number, (line, rows) in enumerate(zip(counts.confusion_matrix, counts.class_totals, strict=True)):
        cells = [*line, *([rows - sum(line)] if counts.undecided else [])]
        lines.append([Share(count, count / max(1, rows), i == number) for i, count in enumerate(cells)])
    return lines


def _list_mistakes(certificate: Certificate) -> list[dict[str, Any]]:
    """Return the most frequent mistakes of more classes than a confusion matrix can show."""
    labels = certificate.sample.labels
    if len(labels) <= MOST_PAGE_COLUMNS:
        return []
    return [
        {
            **mistake._asdict(),
            "actual": labels[mistake.actual],
            "predicted": "undecided" if mistake.predicted is None else labels[mistake.predicted],
        }
        for mistake in certificate.counts.list_mistakes()[:MOST_PAGE_COLUMNS]
    ]


def _name_value(winner: Winner) -> str:
    if winner.criterion == MeanError.name:
        return "error rate"
    return "value" if winner.bound == "loss" else "bound"


def name_landscape(at: Landscape) -> str:
    """Name what is drawn over all settings: L_MS over the hyperparameters that are axes."""
    axes = " and ".join(axis.name for axis in (at.steps, at.paths) if not axis.absent)
    return f"L_MS over {axes}" if axes else "L_MS"


def _describe_landscape(result: ResultValues, at: Landscape) -> str:
    exists = ~np.isnan(at.value)
    complete = int(np.sum((at.splits == at.n_splits) & exists))
    left_open = int(np.sum(at.left_open))
    more = f"; {left_open} were not excluded" if left_open else ""
    return (
        f"{name_landscape(at)} at k = {result.k}. Minimum: {at_most(result.l_ms)} "
        f"at {shorten_setting(result.setting)}. {complete} of {int(np.sum(exists))} candidates have "
        f"all {at.n_splits} splits; for the others a lower bound is drawn{more}. All values are in the table "
        "below the figure."
    )


def _draw_spread(result: ResultValues, splits: Sequence[OneSplit]) -> str:
    value = _name_value(result.certificate.winner)
    select, estimate = [s.select_bound for s in splits], [s.estimate_bound for s in splits]
    label = (
        f"{value.capitalize()}s of the {len(splits)} splits. On the select sets from "
        f"{at_most(min(select))} to "
        f"{at_most(max(select))}, mean L_MS {at_most(result.l_ms)}; on the estimate sets from "
        f"{at_most(min(estimate))} to {at_most(max(estimate))}, mean "
        f"{at_most(sum(estimate) / len(estimate))}. "
        "All values are in the table below the figure."
    )
    return draw_spread(select, estimate, label, value)

"""F*: the models refitted on TR + MS of every split at the winning candidate, and how they predict.

A prediction for one row does not depend on the others. If a model is undecided, the first class is predicted.
"""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.draws import seed_members
from ckcv_ray.core.measures import Measure, Output
from ckcv_ray.errors import Classes, Rows, RunError, Values
from ckcv_ray.learners.base import Learner, Model, check_filled
from ckcv_ray.tables.task import Task

PICKLE_PROTOCOL = 5
PICKLES = "model-*.pkl"
COUNTS = pa.list_(pa.int64())
MEMBER_COLUMNS = pa.schema(
    [("k", pa.int64()), ("split", pa.int64()), ("errors", COUNTS), ("n_estimate", COUNTS)]
)
GROUP_COLUMNS = pa.schema([*MEMBER_COLUMNS, ("loss", pa.int64())])


@dataclass(frozen=True)
class Member:
    """One model of the ensemble.

    Attributes:
        k, split: the split it was fitted on.
        model: the fitted model.
        totals: totals of the criterion's measure on its estimate set: misclassified rows of each class, and
            with groups, or numbers to predict, the loss.
        n_estimate: number of rows in its estimate set, by class.
    """

    k: int
    split: int
    model: Any
    totals: tuple[int, ...]
    n_estimate: tuple[int, ...]

    @property
    def errors(self) -> tuple[int, ...]:
        """Misclassified rows in its estimate set, by class."""
        return self.totals[: len(self.n_estimate)]

    @property
    def loss(self) -> int:
        """Number of misclassified rows; with groups the sum of their shares in each, and with numbers the
        sum of the clipped errors, in units of 2**-32.
        """
        return sum(self.totals[len(self.n_estimate) :] or self.totals)


class Prediction(NamedTuple):
    """Per row: the class number, or the number predicted; the split of the member that decided (-1: the
    majority, or a model of no split); its score (nan with numbers); and the share of the ensemble that
    predicts this class (nan with numbers, and for a model of no split).
    """

    label: NDArray[Any]
    member: NDArray[np.int64]
    score: NDArray[np.float64]
    share: NDArray[np.float64]


@dataclass(frozen=True)
class Ensemble:
    """The members of F* in the order of their splits."""

    members: tuple[Member, ...]

    @property
    def has_losses(self) -> bool:
        """Whether the members have a loss that is not a count of rows, as with groups or numbers."""
        return len(self.members[0].totals) > len(self.members[0].n_estimate)

    def predict(self, X: Rows) -> tuple[Classes | Values, Values]:
        """Return class numbers and scores of every member, or numbers without scores, each (n_members, rows).

        Raises:
            RunError: a member predicts a class that does not exist.
        """
        if not self.members[0].errors:  # without classes, numbers are predicted
            values = np.array([predict_numbers(member.model, X) for member in self.members])
            return values, np.full(values.shape, np.nan)
        predicted = [member.model.predict(X) for member in self.members]
        for member, outcome in zip(self.members, predicted, strict=True):
            check_predicted(member, outcome.label)
        labels = np.maximum(np.array([outcome.label for outcome in predicted]), 0)
        return labels, np.array([outcome.score for outcome in predicted])

    def random(self, X: Rows, seed: int | np.random.Generator) -> Prediction:
        """Classify each row with a member drawn for it independently, as the paper and the mean risk assume.

        Args:
            X: rows (rows, d).
            seed: a seed, which draws the same members at each call, so that rows given one by one all get
                the same member; or a generator (``core.draws.seed_members``), which moves on.
        """
        draws = seed if isinstance(seed, np.random.Generator) else seed_members(seed)
        return self.by_member(X, draws.integers(len(self.members), size=len(X)))  # the same row by row

    def vote(self, X: Rows) -> Prediction:
        """Classify each row by majority vote; a tie goes to the first class, and the score is the mean.

        If the error of the members is bounded on average by r, the error of the majority is bounded by 2 r.
        """
        labels, scores = self.predict(X)
        label, share = find_majority(labels)
        mean = sum(scores, np.zeros(len(X))) / len(scores)  # summed in order: the same bits in any batch
        return Prediction(label, np.full(len(X), -1), mean, share)

    def by_member(self, X: Rows, member: NDArray[np.int64]) -> Prediction:
        """Classify row i of X [rows, d] with the member at position ``member[i]``."""
        labels, scores = self.predict(X)
        rows, share = np.arange(len(X)), np.full(len(X), np.nan)
        label = labels[member, rows]
        if self.members[0].errors:
            share = np.mean(labels == label, axis=0)
        return Prediction(label, member, scores[member, rows], share)

    def alone(self, X: Rows) -> Prediction:
        """Classify every row with the only member, which belongs to no split, so there is no share."""
        of_member = self.by_member(X, np.zeros(len(X), dtype=np.int64))
        return of_member._replace(member=np.full(len(X), -1), share=np.full(len(X), np.nan))

    def probabilities(self, X: Rows, member: NDArray[np.int64]) -> Values:
        """Return the probability of each class for every row, (rows, n_classes), by models that have them.

        Args:
            X: rows (rows, d).
            member: position of the member whose probabilities are taken for each row, as in ``Prediction``;
                -1 for the mean over all members.
        """
        needs = frozenset({Output.PROBABILITY})
        found = np.array([known.model.predict_outputs(X, needs).probability for known in self.members])
        return np.where(member[:, None] < 0, found.mean(axis=0), found[member, np.arange(len(X))])


@dataclass(frozen=True)
class Models:
    """The models of a finished run; an ensemble that its study does not have is None.

    Attributes:
        best: F*; without members if there is no certification.
        refit: one model at the selected setting, fitted on all rows that were not held out; its errors are
            those on the held-out rows.
        full: the same, fitted on all rows; it has no errors, since no rows are left.
        references: one model for each learner that the winner is compared with, at the learner's own best
            setting, fitted on all rows that were not held out.
    """

    best: Ensemble = Ensemble(())
    refit: Ensemble | None = None
    full: Ensemble | None = None
    references: Ensemble | None = None


def judge(model: Model, X: Rows, y: Classes | Values, measure: Measure, n_classes: int) -> tuple[int, ...]:
    """Return the totals of one model on rows X [rows, d], y [rows]; an undecided row counts as an error.

    Without classes, numbers are predicted.
    """
    predicted = model.predict(X).label if n_classes else predict_numbers(model, X)
    return tuple(measure.totals(y, predicted, n_classes).tolist())


def predict_numbers(model: Model, X: Rows) -> Values:
    """Return the numbers that a model predicts for rows X [rows, d].

    Raises:
        RunError: it does not predict numbers.
    """
    if not len(X):  # estimators refuse this
        return np.zeros(0)
    value = model.predict_outputs(X, frozenset({Output.VALUE})).value
    if value is None:
        raise RunError(f"{type(model).__name__} predicts no numbers: its learner is wrong")
    return np.asarray(value, np.float64)


def count_classes(y: Classes, n_classes: int) -> tuple[int, ...]:
    """Count the rows of each class; with numbers there are none."""
    return tuple(np.bincount(y, minlength=n_classes).tolist()) if n_classes else ()


def make_schema(learner: Learner, task: Task, losses: bool = False) -> pa.Schema:
    """Return the columns of a table of members: those of every member, then those of the learner.

    Args:
        learner, task: what is fitted, and to what.
        losses: whether members have a loss that is not a count of rows, as with groups.
    """
    return pa.schema([*(GROUP_COLUMNS if losses else MEMBER_COLUMNS), *learner.codec.columns(task)])


def to_arrow(ensemble: Ensemble, learner: Learner, task: Task) -> pa.Table:
    """Return a table with the columns of ``make_schema`` and a row for each member."""
    own = GROUP_COLUMNS if ensemble.has_losses else MEMBER_COLUMNS
    columns = {name: [getattr(member, name) for member in ensemble.members] for name in own.names}
    models = learner.codec.table([member.model for member in ensemble.members], task)
    arrays = [*pa.table(columns, own).columns, *models.columns]
    return pa.table(arrays, schema=make_schema(learner, task, ensemble.has_losses))


def from_arrow(rows: pa.Table, learner: Learner, task: Task, losses: bool = False) -> Ensemble:
    """Return the ensemble stored in a table of members; ``losses`` is as for ``make_schema``.

    Raises:
        ValueError: the rows do not describe members on this task.
        IndexError: a row number does not exist in the task.
    """
    own = rows.select((GROUP_COLUMNS if losses else MEMBER_COLUMNS).names).to_pylist()
    check_filled(*own)
    members = []
    for row, model in zip(own, learner.codec.from_table(rows, task), strict=True):
        errors, n_estimate = tuple(row["errors"]), tuple(row["n_estimate"])
        pairs = zip(errors, n_estimate, strict=False)
        if len(errors) != len(n_estimate) or not all(0 <= wrong <= n for wrong, n in pairs):
            raise ValueError(f"model of split {row['split']}: it has more errors than rows, or fewer than 0")
        totals = (*errors, *([row["loss"]] if losses else []))
        members.append(Member(row["k"], row["split"], model, totals, n_estimate))
    return Ensemble(tuple(members))


def to_pickles(ensemble: Ensemble, learner: Learner, task: Task) -> dict[str, bytes]:
    """Return the file name and content of a self-contained pickle for each member.

    Members are converted to Arrow and back first: arrays that went through Ray pickle to different bytes.
    """
    return {
        PICKLES.replace("*", f"{m.split:05d}"): pickle.dumps(m, protocol=PICKLE_PROTOCOL)
        for m in from_arrow(to_arrow(ensemble, learner, task), learner, task, ensemble.has_losses).members
    }


def from_pickles(contents: Iterable[bytes]) -> Ensemble:
    """Return the ensemble from the pickles of its members. Loading a pickle executes the code in it."""
    members = (pickle.loads(content) for content in contents)
    return Ensemble(tuple(sorted(members, key=lambda member: member.split)))


def find_only_class(member: Member) -> int | None:
    """Return the only class that a member was right about, if it was scored on several; else None.

    On the rows that it was scored on, it is then no better than a constant.
    """
    right = [rows > wrong for wrong, rows in zip(member.errors, member.n_estimate, strict=True)]
    return right.index(True) if sum(right) == 1 and sum(map(bool, member.n_estimate)) > 1 else None


def check_predicted(member: Member, labels: Classes) -> None:
    """Raise RunError if a member predicts a class that does not exist."""
    n_classes = len(member.errors)
    if (most := labels.max(initial=0)) >= n_classes:
        raise RunError(
            f"the model of split {member.split} predicts class number {most}, but there are {n_classes} "
            "classes: its file was changed (see ckcv verify), or its learner is wrong"
        )


def find_majority(labels: Classes | Values) -> tuple[Classes, NDArray[np.float64]]:
    """Return each row's majority class from labels (n_members, rows), the first if tied, and its share."""
    votes = np.stack([np.sum(labels == c, axis=0) for c in range(int(labels.max(initial=0)) + 1)])
    label = np.argmax(votes, axis=0).astype(np.int32)
    return label, np.max(votes, axis=0) / len(labels)

"""A run's result: what ``run``, ``evaluate`` and ``load_run`` return, whichever kind of study it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.quantity import Acceptance, Claim
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.arrays import Classes, Values
from ckcv_ray.core.measures import PROBABILITY, Outputs, make_score
from ckcv_ray.core.shown import present
from ckcv_ray.errors import InputError, explain_removed
from ckcv_ray.learners.base import LEARNERS, ZOO, Setting
from ckcv_ray.learners.ensemble import Models, Prediction
from ckcv_ray.records.record import Records
from ckcv_ray.study.problem import Problem, describe_setting
from ckcv_ray.study.study import AnyStudy
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task, make_rows, make_scored_rows

DRAWING = ("auto", "random")  # rules that draw members


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of a study: its values, predictions, and both as text and as JSON.

    ``run`` and ``load_run`` return a ``Certified`` one, ``evaluate`` and ``load_scores`` a ``Scored`` one.

    Attributes:
        problem: the study on its task.
        execution: what depends on the run: seconds, fits, evaluations, environment, error on test rows.
        models: the models that it keeps: F* and others, or the one fitted on all rows, or none.
        records: of all evaluations; None unless they were asked for.
    """

    problem: Problem
    execution: dict[str, Any]
    models: Models
    records: Records | None = field(default=None, kw_only=True)

    if not TYPE_CHECKING:  # for which it would have all names

        def __getattr__(self, name: str) -> Any:
            """Say what to write instead of a name that was removed; else raise what was raised before."""
            if removed := explain_removed(f"result.{name}"):
                raise AttributeError(removed)
            return object.__getattribute__(self, name)

    @property
    def study(self) -> AnyStudy:
        """The study, in its canonical form for the task."""
        return self.problem.asked

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.problem.task

    @property
    def run_id(self) -> str:
        """Identifier of the study and the data."""
        return self.problem.run_id

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is proven: nothing, unless it is ``Certified``."""
        return ()

    @property
    def decisions(self) -> tuple[Acceptance, ...]:
        """Whether what is proven meets each of the study's conditions, if it has any."""
        return ()

    @property
    def complete(self) -> bool:
        """Whether nothing failed that has a part in it."""
        raise NotImplementedError

    @property
    def setting(self) -> Setting:
        """The hyperparameters of the models by name."""
        raise NotImplementedError

    def table(self) -> pa.Table:
        """Return the candidates, or a row for each entry and split: learner, setting, rows, every score."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return ``table`` as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            return self.table().to_pandas()
        except ImportError:
            raise InputError("to_frame needs pandas: pip install pandas, or use .table() (Arrow)") from None

    def predict(self, X: ArrayLike, by: str = "auto", seed: int | None = None) -> NDArray[np.generic]:
        """Predict the original labels of X [rows, d], or numbers, by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        return self.task.labelled(self.predictions(X, self.rule(by, seed)).label)

    def score(self, X: ArrayLike, y: ArrayLike, by: str = "auto", seed: int | None = None) -> float:
        """Return how good ``predict`` is on rows X [rows, d] with labels, or numbers, y [rows].

        As estimators of scikit-learn have it: the accuracy, in [0, 1], or of numbers R², at most 1. It is an
        estimate on these rows, too good on those that were learned from; what is proven is in ``claims``.

        Raises:
            InputError: as ``predict``, or y has a label that is none of the classes.
        """
        rows, target = make_scored_rows(X, y, self.task), self.task.target
        label = self.rule(by, seed).predict(self.models, rows.X).label
        score = make_score(target.word("accuracy", "r2"), target.kind)
        return score.of(rows.y, Outputs(label=label, value=label))

    def rule(self, by: str = "auto", seed: int | None = None) -> Rule:
        """Return how rows are classified: by the rule of the first claim, unless another is requested.

        Args:
            by: "auto", after a holdout certification the rule of its first claim; otherwise, and with a seed,
                "random".
                "random", a member drawn independently for each row from all members of F*, as the paper does.
                "vote", the majority of F*.
                "member:7", the model of split 7.
                "refit", the model fitted on all rows that were not held out.
                "full", the model fitted on all rows.
            seed: for repeating a call that draws members: every call with it draws the same members, so rows
                given one by one would all meet one of them, and what is proven of independent draws is about
                one call. None draws afresh.

        Raises:
            InputError: the seed is not an integer of 0 or more, or the rule draws nothing; ``by`` names no
                rule, there is no such member, or no row was held out.
        """
        raise NotImplementedError

    def predictions(self, X: ArrayLike, rule: Rule) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row.

        A rule that draws members has a seed: used for several calls, it repeats its draws in each.
        """
        return rule.predict(self.models, make_rows(X, self.task))

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        raise NotImplementedError

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values; what is not known is null."""
        raise NotImplementedError

    def summary(self, details: bool = False, folder: str = "") -> str:
        """Return the result for people: what may be quoted and what to do next, or the scores.

        Args:
            details: whether every figure and every claim follows.
            folder: where the run is kept, for commands to paste; "" without one.
        """
        summary: str = present("summary", self, details, folder)
        return summary

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the result for a notebook: a card with the bound drawn, or the scores."""
        card: str = present("card", self)
        return card


def compute_probabilities(result: Result, rows: Rows, rule: Rule, predicted: Prediction) -> Values:
    """Return the probability of each class, (rows, n_classes), as the models give it.

    It is that of the member that decided, and for a majority the mean over the members. Nothing is proven of
    it.

    Raises:
        InputError: the learner has no probabilities, or numbers are predicted.
    """
    _, learner = result.problem.find_learner(result.setting)
    if PROBABILITY not in learner.outputs:
        raise InputError(
            f"probabilities: {explain_no_probabilities()}: choose one of these learners, or leave them out"
        )
    return rule.ensemble(result.models).probabilities(rows, predicted.member)


def explain_no_probabilities() -> str:
    """Say that models give no probabilities, and which learners do."""
    *names, last = [name for name in ZOO if PROBABILITY in LEARNERS[name]().outputs]
    return f"the models give no probabilities; those of {', '.join(names)} and {last} do"


def format_setting(setting: Setting) -> str:
    """Format hyperparameters, without the learner that they are of."""
    return describe_setting({name: value for name, value in setting.items() if name != "learner"})


def write_values(value: object) -> Any:
    """Return a value for JSON: named tuples as objects, arrays as lists, nan and infinity as null."""
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {name: write_values(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return [write_values(part) for part in value.tolist()]
    return None if isinstance(value, float) and not isfinite(value) else value


def tabulate_predictions(y: Classes, label: Classes, n_classes: int) -> NDArray[np.int64]:
    """Return rows by class y and predicted class, the undecided (-1) last, (n_classes, n_classes + 1)."""
    counts = np.zeros((n_classes, n_classes + 1), np.int64)
    np.add.at(counts, (y, np.where(label < 0, n_classes, label)), 1)
    return counts

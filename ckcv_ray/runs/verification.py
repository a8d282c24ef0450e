"""What a verification finds, and what errors say of the run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

import numpy as np

from ckcv_ray.core.measures import VALUE
from ckcv_ray.errors import CKCVError, LackingError, cut, pluralize
from ckcv_ray.learners.base import Model, Predicted
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Rows
from ckcv_ray.tables.task import Task

LONGEST_REASON = 200
MODEL_ROUNDING = 1e-9  # see Codec.same: other processors and versions round differently
# Of the largest score, or of the deviation of numbers: a solver stops within it, wherever rounding leads it.
MAX_APART = 1e-3


@dataclass
class Verification:
    """What a verification found.

    Attributes:
        differences: everything that is not as it should be, one sentence each; empty if the run is verified.
        recomputed: what was computed again, from the data or from the log.
        trusted: what was taken on trust.
        unverified: what has to be computed and could not be here, one sentence each with its reason. A run
            with any is not verified, whatever else agrees.
        unchecked: number of evaluations whose results, which figures follow from, were taken on trust.
        assumed: what else figures rest on that was taken on trust, a phrase each.
        notes: what no figure rests on and is not as it was, or was not compared, a phrase each.
    """

    differences: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    unchecked: int = 0
    assumed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and nothing that has to be computed was left out."""
        return not self.differences and not self.unverified

    @property
    def verdict(self) -> str:
        """What the verification says of the figures, as a clause, if nothing differs."""
        evaluations = pluralize(self.unchecked, "evaluation")
        counts = [f"the results of {evaluations} (--refit)"] if self.unchecked else []
        on_trust = ", ".join([*counts, *self.assumed])
        says = f"nothing contradicts the files; taken on trust: {on_trust}"
        return "; ".join([says if on_trust else "every figure follows from the data", *self.notes])


@dataclass(frozen=True)
class Limit:
    """How long a verification may take."""

    seconds: float = inf  # the limit; it is looked at between fits
    say: Callable[[str], object] | None = None  # told about the cost before anything is fitted
    began: float = field(default_factory=monotonic)  # on that clock, in seconds

    def announce(self, fits: int, task: Task, execution: Mapping[str, Any]) -> None:
        """Say what is fitted again at most, and compare what it took in the run with the limit.

        Args:
            fits: the largest number of fits.
            task: the learning rows.
            execution: what the folder says of ``fits`` and of their ``worker_seconds``.

        Raises:
            LackingError: it is expected to take longer than allowed.
        """
        expected = fits * execution["worker_seconds"] / max(1, execution["fits"])
        rows, columns = task.X.shape
        cost = (
            f"at most {pluralize(fits, 'fit')} on up to {rows:,} rows and {pluralize(columns, 'column')}, "
            f"about {expected:,.1f} s by what the run took"
        )
        if self.say is not None:
            self.say(f"to verify: {cost}; limit {self.seconds:,.0f} s (--limit)")
        if expected > self.seconds:
            raise LackingError(f"it needs {cost}: more than the limit of {self.seconds:,.0f} s (--limit)")

    def check(self) -> None:
        """Raise LackingError if the time is over."""
        if monotonic() - self.began > self.seconds:
            raise LackingError(
                f"it was stopped after {self.seconds:,.0f} s, its limit: allow more with --limit"
            )


@contextmanager
def note_errors(result: Verification, *passed: type[CKCVError]) -> Iterator[None]:
    """Note what is raised as a difference, or as what could not be verified; ``passed`` is raised."""
    try:
        yield
    except passed:
        raise
    except LackingError as error:
        result.unverified.append(str(error))
    except CKCVError as error:
        result.differences.append(str(error))
    except Exception as error:  # a stranger's models and learners may raise anything
        result.unverified.append(cut(f"the verification ended with {type(error).__name__}: {error}"))


def describe_difference(problem: Problem, stored: Model, computed: Model, X: Rows) -> str:
    """Return how a stored model differs from the one fitted again, as a clause; "" if by rounding alone.

    Alike on rows X [rows, d] is not enough: a forged model is right there, and wrong elsewhere.
    """
    has_numbers = problem.task.has_numbers
    before, again = (_predict(model, X, has_numbers) for model in (stored, computed))
    if otherwise := int(np.sum(before.label != again.label)):
        return f"it classifies {otherwise:,} of {len(X):,} rows otherwise"
    with np.errstate(invalid="ignore"):  # infinite scores
        apart = np.abs(before.score - again.score)
    most = apart[~np.isnan(apart)].max(initial=0.0)
    largest = np.abs(again.score[np.isfinite(again.score)]).max(initial=0.0)
    if most > MAX_APART * (np.std(problem.task.y) if has_numbers else largest):
        alike = (
            "what it predicts" if has_numbers else f"it classifies all {len(X):,} rows alike, but its score"
        )
        return f"{alike} differs by up to {most:.2g}, which is more than rounding"
    if problem.learner.codec.same(stored, computed, MODEL_ROUNDING):
        return ""
    return f"it predicts all {len(X):,} rows alike, but its content differs by more than rounding"


def note_other(sentence: str, elsewhere: bool, differences: list[str], unverified: list[str]) -> None:
    """Note that a model, or a bound, is not the one computed again, to which other versions may have led."""
    if elsewhere:
        unverified.append(f"{sentence}; here versions or processor are not those of the run")
    else:
        differences.append(sentence)


def _predict(model: Model, X: Rows, has_numbers: bool) -> Predicted:
    if not has_numbers:
        return model.predict(X)
    value = model.predict_outputs(X, frozenset({VALUE})).value
    assert value is not None
    return Predicted(np.zeros(len(X), np.int32), value)

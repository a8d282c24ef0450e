"""Decision stumps: a learner with text among its settings, to mix with the numbers of another learner.

A stump divides the rows at one feature: at its mean or its median (``rule``), over all rows or over the first
``shrinkage`` of them, in the words of the setting. Each side predicts its more common class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.extend import (
    Kind,
    Model,
    Predicted,
    RowTrainer,
    Setting,
    SimpleLearner,
    check_choice,
    option,
    register,
    sequence,
)

TEXT, INT, FLOAT = pa.string(), pa.int64(), pa.float64()
RULES = {"mean": np.mean, "median": np.median}
AMOUNTS = {"whole": 1, "half": 2}  # of how many rows the first is taken


@dataclass(frozen=True)
class Stump(Model):
    """Predicts ``below`` where the feature is less than the threshold, else ``above``."""

    rule: str
    shrinkage: str
    feature: int
    threshold: float
    below: int
    above: int

    def predict(self, X: Any) -> Predicted:
        left = X[:, self.feature] < self.threshold
        label = np.where(left, self.below, self.above).astype(np.int32)
        return Predicted(label, np.full(len(X), np.nan))


def _names(name: str, values: Any) -> tuple[str, ...]:
    listed = sequence(name, values.split(",") if isinstance(values, str) else values, least=1)
    return tuple(check_choice(name, one, RULES) for one in listed)


class StumpTrainer(RowTrainer):
    """Fits stumps; they say that a fit takes a thousand times as long as other learners' fits."""

    convergence_advice = "there is none"

    def cost(self, n_train: int) -> float:
        return 1000.0 * n_train


@register
@dataclass(frozen=True)
class DecisionStump(SimpleLearner):
    """The best of the stumps with a threshold at the mean, and at the median."""

    name = "stump"
    kinds = frozenset({Kind.BINARY, Kind.MULTICLASS})
    model = Stump
    schema = pa.schema(
        {"rule": TEXT, "shrinkage": TEXT, "feature": INT, "threshold": FLOAT, "below": INT, "above": INT}
    )
    rules: tuple[str, ...] = option(("mean", "median"), _names, "Where to divide the rows.")

    @property
    def paths(self) -> Sequence[Sequence[Setting]]:
        return [[{"rule": rule, "shrinkage": amount} for amount in AMOUNTS] for rule in self.rules]

    trainer = property(StumpTrainer)

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Stump]:
        return [self._best(X, y, setting) for setting in settings]

    def _best(self, X: Any, y: Any, setting: Setting) -> Stump:
        few = X[: max(1, len(X) // AMOUNTS[setting["shrinkage"]])]
        thresholds = RULES[setting["rule"]](few, axis=0)
        stumps = [self._at(X, y, setting, j, float(at)) for j, at in enumerate(thresholds)]
        return min(stumps, key=lambda stump: int(np.sum(stump.predict(X).label != y)))

    def _at(self, X: Any, y: Any, setting: Setting, feature: int, threshold: float) -> Stump:
        left = X[:, feature] < threshold
        sides = [np.bincount(y[rows], minlength=1) for rows in (left, ~left)]
        below, above = (int(np.argmax(side)) for side in sides)
        return Stump(**setting, feature=feature, threshold=threshold, below=below, above=above)

"""Nearest centroids, for any number of classes: a learner with two paths, the shorter with a single step.

The path "pooled" shrinks the centroids towards the mean of all rows, feature by feature, in units of the
standard deviation within the classes; "plain" does not. A class without rows is never predicted.

Reference: Tibshirani, Hastie, Narasimhan, Chu, PNAS 99 (2002), 6567-6572.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray.extend import Kind, Model, Predicted, Setting, SimpleLearner, grid, option, register


@dataclass(frozen=True)
class Centroids(Model):
    """The centroid of each of the ``classes`` that had rows, and the scale of each feature."""

    metric: str
    shrinkage: float
    classes: Any
    centres: Any
    scale: Any

    def predict(self, X: Any) -> Predicted:
        """Predict the class of the nearest centroid; the score is how much farther the next one is."""
        squares = [np.sum(((X - centre) / self.scale) ** 2, axis=1) for centre in self.centres]
        distances = np.sqrt(np.stack(squares, axis=1))
        score = np.diff(np.sort(distances, axis=1), append=np.nan)[:, 0]
        return Predicted(self.classes[np.argmin(distances, axis=1)].astype(np.int32), score)


@register
@dataclass(frozen=True)
class NearestCentroid(SimpleLearner):
    """The nearest shrunken centroid, and the nearest centroid."""

    name = "centroid"
    kinds = frozenset({Kind.BINARY, Kind.MULTICLASS})
    model = Centroids
    schema = pa.schema(
        [
            ("metric", pa.string()),
            ("shrinkage", pa.float64()),
            ("classes", pa.list_(pa.int32())),
            ("centres", pa.list_(pa.list_(pa.float64()))),
            ("scale", pa.list_(pa.float64())),
        ]
    )
    shrinkage: tuple[float, ...] = option((0.1, 0.3, 1.0, 3.0), grid, "Shrinkage of centroids.")

    @property
    def paths(self) -> Sequence[Sequence[Setting]]:
        shrunken = [{"metric": "pooled", "shrinkage": amount} for amount in self.shrinkage]
        return shrunken, [{"metric": "plain", "shrinkage": 0.0}]

    def fit(self, X: Any, y: Any, settings: Sequence[Setting]) -> list[Centroids]:
        classes, class_index, count = np.unique(y, return_inverse=True, return_counts=True)
        means = np.stack([X[y == number].mean(axis=0) for number in classes])
        within = np.sqrt(np.sum((X - means[class_index]) ** 2, axis=0) / max(1, len(X) - len(classes)))
        pooled, away = within + np.median(within), means - X.mean(axis=0)
        unit = np.sqrt(1 / count - 1 / len(X))[:, None] * pooled
        scale = {"pooled": np.where(pooled > 0, pooled, 1.0), "plain": np.ones(X.shape[1])}
        moved = [np.sign(away) * np.maximum(np.abs(away) - s["shrinkage"] * unit, 0) for s in settings]
        return [
            Centroids(**setting, classes=classes, centres=X.mean(axis=0) + by, scale=scale[setting["metric"]])
            for setting, by in zip(settings, moved, strict=True)
        ]

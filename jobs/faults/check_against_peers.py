"""Figures of ``evaluate`` against those of R's caret (6.0.93, R 4.2.2) on the same splits.

Caret's are in ``caret.csv``: for classes (two, and three) and for numbers, the scores of linear and
nearest neighbour learners on every split of four resamplings, their means and deviations. Scores of
scikit-learn are compared by ``tests/runs/test_assess.py``.

    python -m jobs.faults.check_against_peers
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, Procedure, Task
from ckcv_ray.runs.run import assess

CLOSE = 1e-12
CARET = Path(__file__).with_name("caret.csv")
RESAMPLINGS = ("kfold:10", "repeated_kfold:5x2", "subsampling:8:0.25", "bootstrap:8")
TABLES = {
    "two_classes": (load_breast_cancer, 6),
    "three_classes": (load_iris, 2),
    "numbers": (load_diabetes, 5),
}
METHODS = {
    ("numbers", "lm"): LinearRegression(),
    ("numbers", "knn"): make_pipeline(StandardScaler(), KNeighborsRegressor(9)),
    ("three_classes", "lda"): LinearDiscriminantAnalysis(),
    ("two_classes", "lda"): LinearDiscriminantAnalysis(),
    ("two_classes", "knn"): make_pipeline(StandardScaler(), KNeighborsClassifier(7)),
}
CONVENTIONS = {  # caret's figures with another convention, which are not compared
    ("numbers", "knn", "kfold"): "knn of R takes distances that differ by 1e-4 for equal: split 8 has two",
    ("three_classes", "lda", "bootstrap"): "lda of R divides by n - 3, scikit-learn's by n: a row of split 2",
}


def sensitivity(y: Any, predicted: Any) -> float:
    """Return the share of the rows of the first class that is classified as such, caret's sensitivity."""
    return float(np.mean(predicted[y == "a"] == "a"))


def squared_correlation(y: Any, predicted: Any) -> float:
    """Return the squared correlation, which caret calls Rsquared."""
    return float(np.corrcoef(y, predicted)[0, 1] ** 2)


MEASURES: dict[str, Any] = {
    "RMSE": "rmse",
    "MAE": "absolute",
    "Rsquared": squared_correlation,
    "Accuracy": "accuracy",
    "ROC": "auc",
    "Sens": sensitivity,
    "Spec": "recall",
}


class Compared(NamedTuple):
    """How far figures are from those of a peer: their number, the largest difference, and what differs."""

    figures: int = 0
    largest: float = 0.0
    differing: tuple[str, ...] = ()

    def add(self, ours: Any, theirs: Any, what: str) -> "Compared":
        """Return it with more figures added; nan, an undefined score, has to be nan on both sides."""
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        both = np.isnan(ours) & np.isnan(theirs)
        with np.errstate(invalid="ignore"):
            apart = np.where(both, 0.0, np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)))
        largest = float(np.max(np.nan_to_num(apart, nan=np.inf), initial=0.0))
        differing = self.differing if largest <= CLOSE else (*self.differing, f"{what}: {largest:.2g}")
        return Compared(self.figures + ours.size, max(self.largest, largest), differing)


def read_tables() -> dict[str, tuple[Any, Any]]:
    """Return the rows that caret was given, and their targets: letters for classes."""
    rng, tables = np.random.default_rng(np.random.SeedSequence(7)), {}
    for name, (load, step) in TABLES.items():
        X, y = load(return_X_y=True)
        rows = rng.permutation(len(y))[::step]
        tables[name] = X[rows], y[rows] if name == "numbers" else np.array(list("abc"))[y[rows]]
    return tables


def compare() -> Compared:
    """Compare every split, mean and deviation; without a salt the splits are those that caret was given."""
    with CARET.open(newline="") as file:
        rows = list(csv.DictReader(file))
    compared, tables = Compared(), read_tables()
    for (name, method), learner in METHODS.items():
        for resampling in RESAMPLINGS:
            key = name, method, resampling.partition(":")[0]
            theirs = [row for row in rows if (row["table"], row["method"], row["resampling"]) == key]
            names = list(dict.fromkeys(row["measure"] for row in theirs))
            if not names or key in CONVENTIONS:
                continue
            measures = [MEASURES[caret] for caret in names]
            study = Procedure.of(resampling=resampling, learner=learner, measure=measures)
            task = Task.of(*tables[name], numbers=study.predicts_numbers)
            result = assess(study, replace(task, salt=""), None, Execution("serial"))
            (entry,) = result.entries
            for caret, score in zip(names, result.scores, strict=True):
                figures, values = result.figures(entry, score), result.of_splits(entry, score)
                expected = [float(row["value"]) for row in theirs if row["measure"] == caret]
                what = f"{', '.join(key)}, {caret}"
                compared = compared.add([*values, figures.mean, figures.deviation], expected, what)
    return compared


def main() -> None:
    """Compare every figure, and end with 1 if one differs by more than 1e-12."""
    compared = compare()
    print(f"{compared.figures:,} figures of caret, largest difference {compared.largest:.1g}")
    for case, why in CONVENTIONS.items():
        print(f"not compared: {', '.join(case)}: {why}")
    print("\n".join(compared.differing) or "no figure differs by more than 1e-12")
    raise typer.Exit(bool(compared.differing))


if __name__ == "__main__":
    typer.run(main)

"""Every figure of ``evaluate`` against those of scikit-learn and of caret, on the same splits.

For classes (two, and three) and for numbers, ten learners each are scored by every resampling and every
measure that the task has, with groups and with weights of rows as well; ``cross_validate`` fits clones of the
same estimators to the same rows. Figures of R's caret (6.0.93, R 4.2.2) on the splits of this job are kept in
``caret.csv``, and compared with what ``evaluate`` gives now: ``check_against_peers.R`` makes them again.

    python -m jobs.faults.check_against_peers
"""

import csv
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from sklearn import discriminant_analysis, dummy, ensemble, linear_model, naive_bayes, neighbors, svm, tree
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from ckcv_ray import Execution, Procedure, Task, evaluate
from ckcv_ray.core.schedule import Stage
from ckcv_ray.runs.run import assess
from ckcv_ray.study.problem import OUTER, Problem

SERIAL = Execution("serial")
CLOSE = 1e-12
RESAMPLINGS = (
    *("holdout:0.3", "kfold:5", "kfold:4:last", "repeated_kfold:3x2", "drawn_folds:4", "time:4", "time:3:2"),
    *("loo", "subsampling:4:0.25", "bootstrap:4", "bootstrap632:3", "bootstrap632plus:3", "optimism:2"),
    *("nested_halves:3", "nested:3:2"),
)
OF_GROUPS = ("holdout:0.3", "kfold:5", "repeated_kfold:3x2", "loo", "subsampling:4:0.25", "bootstrap:4")
OF_WEIGHTS = ("kfold:5", "subsampling:4:0.25")
STRATIFIED = ("holdout:0.3", "kfold:5", "repeated_kfold:3x2", "subsampling:4:0.25")
SCORERS = {  # of scikit-learn, by the name of the measure where that is another; losses have the other sign
    "auc": "roc_auc",
    "log_loss": "neg_log_loss",
    "brier": "neg_brier_score",
    "squared": "neg_mean_squared_error",
    "absolute": "neg_mean_absolute_error",
    "rmse": "neg_root_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
}
OF_ROWS = {"zero_one", "accuracy", "log_loss", "brier", "squared", "absolute", "mape"}  # means over rows
OF_CLASSES = ("zero_one", "accuracy", "balanced_accuracy", "log_loss")
OF_TWO = (*OF_CLASSES, "f1", "auc", "average_precision", "brier", "matthews_corrcoef", "precision", "recall")
OF_THREE = (*OF_CLASSES, "f1_macro", "f1_weighted", "roc_auc_ovr", "roc_auc_ovo_weighted")
OF_NUMBERS = (
    *("squared", "absolute", "rmse", "mape", "r2", "neg_max_error", "explained_variance"),
    "neg_median_absolute_error",
)
CLASSIFIERS = (
    make_pipeline(StandardScaler(), linear_model.LogisticRegression(max_iter=1000)),
    make_pipeline(StandardScaler(), svm.SVC(C=2.0)),
    naive_bayes.GaussianNB(),
    make_pipeline(StandardScaler(), neighbors.KNeighborsClassifier(7)),
    tree.DecisionTreeClassifier(min_samples_leaf=3, random_state=1),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    ensemble.RandomForestClassifier(15, random_state=2),
    ensemble.HistGradientBoostingClassifier(max_iter=10, early_stopping=False),
    linear_model.RidgeClassifier(),
    dummy.DummyClassifier(strategy="prior"),
)
REGRESSORS = (
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    make_pipeline(StandardScaler(), linear_model.Lasso()),
    linear_model.BayesianRidge(),
    make_pipeline(StandardScaler(), neighbors.KNeighborsRegressor(9)),
    tree.DecisionTreeRegressor(min_samples_leaf=3, random_state=1),
    ensemble.RandomForestRegressor(15, random_state=2),
    ensemble.HistGradientBoostingRegressor(max_iter=10, early_stopping=False),
    make_pipeline(StandardScaler(), svm.SVR(C=10.0)),
    dummy.DummyRegressor(),
)
CARET = Path(__file__).with_name("caret.csv")
CARET_RESAMPLINGS = ("kfold:10", "repeated_kfold:5x2", "subsampling:8:0.25", "bootstrap:8")
CARET_METHODS = {
    ("numbers", "lm"): REGRESSORS[0],
    ("numbers", "knn"): REGRESSORS[4],
    ("three classes", "lda"): CLASSIFIERS[5],
    ("two classes", "lda"): CLASSIFIERS[5],
    ("two classes", "knn"): CLASSIFIERS[3],
}
CONVENTIONS = {  # figures of caret that another convention explains, and that are not compared
    ("numbers", "knn", "kfold"): "knn of R takes distances that differ by 1e-4 for equal: split 8 has two",
    (
        "three classes",
        "lda",
        "bootstrap",
    ): "lda of R divides by n - 3, scikit-learn's by n: one row of split 2",
}


class Table(NamedTuple):
    """A table and how it is scored."""

    name: str
    X: Any
    y: Any
    learners: tuple[Any, ...]
    measures: tuple[str, ...]  # every measure that it has
    resamplings: tuple[str, ...] = RESAMPLINGS
    groups: Any = None  # of rows that stay together, if any
    weights: Any = None  # of rows in the fits, if any


def list_tables() -> Iterator[Table]:
    """Generate the tables, of few rows each so that leave-one-out takes seconds."""
    rng = np.random.default_rng(np.random.SeedSequence(7))
    for name, load, step, learners, measures in (
        ("two classes", load_breast_cancer, 6, CLASSIFIERS, OF_TWO),
        ("three classes", load_iris, 2, CLASSIFIERS, OF_THREE),
        ("numbers", load_diabetes, 5, REGRESSORS, OF_NUMBERS),
    ):
        X, y = load(return_X_y=True)
        rows = rng.permutation(len(y))[::step]
        yield Table(name, X[rows], y[rows], learners, measures)


def vary(table: Table) -> Iterator[Table]:
    """Generate a table and what is made of it: groups of rows, and rows with weights."""
    yield table
    n, rng = len(table.y), np.random.default_rng(np.random.SeedSequence(8))
    groups = rng.integers(n // 4, size=n)
    yield table._replace(name=f"{table.name}, groups", resamplings=OF_GROUPS, groups=groups)
    weighed = tuple(learner for learner in table.learners if has_fit_parameter(learner, "sample_weight"))
    weights = rng.uniform(0.5, 2.0, n)
    name = f"{table.name}, weights"
    yield table._replace(name=name, learners=weighed, resamplings=OF_WEIGHTS, weights=weights)


class Compared(NamedTuple):
    """How far figures are from those of a peer: their number, the largest difference, and what differs."""

    figures: int = 0
    largest: float = 0.0
    differing: tuple[str, ...] = ()

    def add(self, ours: Any, theirs: Any, what: str) -> "Compared":
        """Return it with more figures; nan, a score that is not defined, has to be nan on both sides."""
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        both = np.isnan(ours) & np.isnan(theirs)
        with np.errstate(invalid="ignore"):
            apart = np.where(both, 0.0, np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)))
        largest = float(np.max(np.nan_to_num(apart, nan=np.inf), initial=0.0))
        differing = self.differing if largest <= CLOSE else (*self.differing, f"{what}: {largest:.2g}")
        return Compared(self.figures + ours.size, max(self.largest, largest), differing)


def lose_log(learner: Any, X: Any, y: Any) -> float:
    """Return scikit-learn's log loss, negative, of all probabilities that a learner gives.

    Of two classes its own scorer takes the second one's, so that a small one of the first is lost in 1 - p;
    and it does not score rows of a single class.
    """
    return -float(log_loss(y, learner.predict_proba(X), labels=learner.classes_))


def compare(table: Table, resampling: str, stratify: bool, learner: Any) -> Compared:
    """Score one learner by one resampling here and by scikit-learn, measure by measure."""
    compared, name = Compared(), type(learner[-1] if hasattr(learner, "steps") else learner).__name__
    names = [measure for measure in table.measures if _has(learner, measure)]
    if resampling.startswith("bootstrap632plus"):
        names = [measure for measure in names if measure in OF_ROWS]
    result = evaluate(
        table.X,
        table.y,
        learner=learner,
        resampling=resampling,
        stratify=stratify,
        measure=names,
        groups=table.groups,
        sample_weight=table.weights,
        execution=SERIAL,
    )
    problem, (entry,) = result.problem, result.entries
    splits = [problem.rows(Stage.SELECT, OUTER, number) for number in range(result.n_splits)]
    scoring = {measure: SCORERS.get(measure, measure) for measure in names} | {
        "zero_one": "accuracy",
        "log_loss": lose_log,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cross_validate(
            clone(learner),
            table.X,
            table.y,
            cv=splits,
            scoring={measure: scoring[measure] for measure in names},
            params=None if table.weights is None else {"sample_weight": table.weights},
        )
    for score in result.scores:
        expected = found[f"test_{score.name}"]
        if score.name == "zero_one":
            expected = 1.0 - expected
        elif SCORERS.get(score.name, "").startswith("neg_"):
            expected = -expected
        what = f"{table.name}, {name}, {resampling}, {score.name}"
        compared = compared.add(result.of_splits(entry, score), expected, what)
    return compared


def sensitivity(y: Any, predicted: Any) -> float:
    """Return the share of the rows of the first class that is classified so, as caret calls it."""
    return float(np.mean(predicted[y == "a"] == "a"))


def squared_correlation(y: Any, predicted: Any) -> float:
    """Return the squared correlation, which caret calls Rsquared."""
    return float(np.corrcoef(y, predicted)[0, 1] ** 2)


CARET_MEASURES: dict[str, Any] = {
    "RMSE": "rmse",
    "MAE": "absolute",
    "Rsquared": squared_correlation,
    "Accuracy": "accuracy",
    "ROC": "auc",
    "Sens": sensitivity,
    "Spec": "recall",
}


def name_classes(table: Table) -> Any:
    """Return the target as caret gets it: classes as letters."""
    return table.y if table.name == "numbers" else np.array(list("abc"))[table.y]


def draw_splits(table: Table, resampling: str, **options: Any) -> tuple[Procedure, Task]:
    """Return a procedure and a task with the splits that caret was given, which the seed alone draws."""
    study = Procedure.of(resampling=resampling, **{"learner": table.learners[0], **options})
    return study, replace(Task.of(table.X, name_classes(table), numbers=study.predicts_numbers), salt="")


def export(folder: Path) -> None:
    """Write tables and splits for caret."""
    for table in list_tables():
        name = table.name.replace(" ", "_")
        frame = pd.DataFrame(table.X).add_prefix("x").assign(y=name_classes(table))
        frame.to_csv(folder / f"{name}.csv", index=False)
        for resampling in CARET_RESAMPLINGS:
            problem = Problem.of(*draw_splits(table, resampling))
            numbers = range(problem.sizes[OUTER].n_splits)
            splits = [problem.rows(Stage.SELECT, OUTER, number) for number in numbers]
            text = [":".join(",".join(map(str, part + 1)) for part in split) for split in splits]
            (folder / f"{name}.{resampling.partition(':')[0]}.txt").write_text("\n".join(text) + "\n")


def compare_caret() -> Compared:
    """Compare with the figures of caret: every split, mean and deviation."""
    with CARET.open(newline="") as file:
        rows = list(csv.DictReader(file))
    compared, tables = Compared(), {table.name: table for table in list_tables()}
    for (name, method), learner in CARET_METHODS.items():
        table = tables[name]
        for resampling in CARET_RESAMPLINGS:
            word = resampling.partition(":")[0]
            key = (name.replace(" ", "_"), method, word)
            theirs = [row for row in rows if (row["table"], row["method"], row["resampling"]) == key]
            names = list(dict.fromkeys(row["measure"] for row in theirs))
            if not names or (name, method, word) in CONVENTIONS:
                continue
            measures = [CARET_MEASURES[caret] for caret in names]
            asked = draw_splits(table, resampling, learner=learner, measure=measures)
            result = assess(*asked, None, SERIAL)
            (entry,) = result.entries
            for caret, score in zip(names, result.scores, strict=True):
                figures, values = result.figures(entry, score), result.of_splits(entry, score)
                ours = [*values, figures.mean, figures.deviation]
                expected = [float(row["value"]) for row in theirs if row["measure"] == caret]
                compared = compared.add(ours, expected, f"caret, {name}, {method}, {word}, {caret}")
    return compared


def _has(learner: Any, measure: str) -> bool:
    """Return whether an estimator gives what a measure is computed from."""
    if measure in ("log_loss", "brier") or measure.startswith("roc_auc_o"):
        return hasattr(learner, "predict_proba")
    if measure in ("auc", "average_precision"):
        return hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")
    return True


def main(
    export_to: Annotated[
        Path | None, typer.Option("--export", help="Write what caret needs to this folder, and end.")
    ] = None,
) -> None:
    """Compare every figure, and end with 1 if one differs by more than 1e-12."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    if export_to is not None:
        return export(export_to)
    every = {"caret": compare_caret()}
    for table in chain.from_iterable(map(vary, list_tables())):
        for resampling in table.resamplings:
            stratified = resampling in STRATIFIED and (table.groups is None or "kfold" in resampling)
            for stratify in (False, True) if stratified and table.measures is not OF_NUMBERS else (False,):
                for learner in table.learners:
                    found = compare(table, resampling, stratify, learner)
                    kind = table.name.partition(",")[0]
                    before = every.get(kind, Compared())
                    every[kind] = Compared(
                        before.figures + found.figures,
                        max(before.largest, found.largest),
                        before.differing + found.differing,
                    )
    differing = [what for compared in every.values() for what in compared.differing]
    for name, compared in every.items():
        print(f"{name:14} {compared.figures:7,} figures, largest difference {compared.largest:.1g}")
    for case, why in CONVENTIONS.items():
        print(f"not compared: {', '.join(case)}: {why}")
    print("\n".join(differing) or "no figure differs by more than 1e-12")
    raise typer.Exit(bool(differing))


if __name__ == "__main__":
    typer.run(main)

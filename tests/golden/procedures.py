"""Golden values of procedures of cross validation (``evaluate``): scores, settings, records and files.

Which rows are fitted and scored, which settings are selected, and how many rows are wrong is the same on
every processor; all other scores are so on one kind of processor with one set of versions.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from exact import BITS, Values, digest, digest_files, digest_log, exact
from pyarrow import parquet
from samples import Sample, cloud, clouds, lattice, patients, prices, visits, wards
from sklearn.model_selection import GroupKFold, ShuffleSplit

from ckcv_ray import Execution, KFold, NestedSplits, evaluate
from ckcv_ray.extend import Subsampling

SERIAL = Execution("serial")
COUNTS = ("zero_one", "accuracy")  # scores that are shares of rows
THREE = {
    "learner": "svm,linear,tree",
    "C": (0.1, 1.0, 10.0),
    "gamma": (0.1, 1.0),
    "linear.param": {"C": [0.1, 1.0]},
    "tree.param": {"ccp_alpha": [0.0, 0.02], "criterion": ["gini"], "min_samples_leaf": [1, 5]},
}
BAYES = {"learner": "naive_bayes", "param": {"var_smoothing": [1e-9, 1e-2, 1.0]}}


class Golden(NamedTuple):
    """A table, and the options of ``evaluate``."""

    sample: Sample
    options: dict[str, Any]


# Its name and its source are part of what is hashed: a change of its text changes the run_id.
def largest_miss(y: Any, predicted: Any) -> float:
    return float(abs(y - predicted).max())


PROCEDURES = {
    "k folds, several learners": Golden(
        cloud(48),
        {
            **THREE,
            "C": (1.0,),
            "gamma": (0.1,),
            "linear.param": {"C": [1.0]},
            "tree.param": {"ccp_alpha": [0.02], "criterion": ["gini"], "min_samples_leaf": [5]},
            "resampling": "kfold:4",
            "measure": "zero_one,accuracy,auc,balanced_accuracy,f1",
        },
    ),
    "k folds, every setting, probabilities": Golden(
        cloud(40), {**BAYES, "resampling": "kfold:5", "measure": "zero_one,log_loss,brier,roc_auc"}
    ),
    "nested, a new setting in each split": Golden(
        cloud(48),
        {
            **THREE,
            "resampling": "nested:3:2",
            "measure": "zero_one,auc",
            "select_by": "auc",
            "select": "each",
            "seed": 4,
        },
    ),
    "nested halves, one setting": Golden(
        lattice(48),
        {**THREE, "resampling": "nested_halves:4", "measure": "accuracy", "select_by": "zero_one"},
    ),
    "nested, other parts": Golden(
        cloud(40),
        {
            **BAYES,
            "resampling": NestedSplits(Subsampling(3, 0.3), KFold(3, remainder="last")),
            "select_by": "log_loss",
            "select": "each",
        },
    ),
    "groups": Golden(visits(80), {"learner": "linear", "resampling": "kfold:4", "measure": "zero_one,auc"}),
    "groups, drawn with replacement": Golden(
        visits(60), {**BAYES, "resampling": "bootstrap:5", "measure": "zero_one,brier"}
    ),
    "numbers": Golden(
        prices(40),
        {
            "learner": "ridge,tree_regressor,mean",
            "resampling": "repeated_kfold:4x2",
            "measure": ["rmse", "r2", "absolute", "clipped:2.5", largest_miss],
        },
    ),
    "numbers, nested": Golden(
        prices(40),
        {
            "learner": "ridge,lasso",
            "ridge.param": {"alpha": (0.1, 1.0, 10.0)},
            "lasso.param": {"alpha": [0.01, 0.1]},
            "resampling": "nested:3:3",
            "select_by": "squared",
        },
    ),
    "splits that were given": Golden(
        cloud(36), {**BAYES, "resampling": ShuffleSplit(4, test_size=0.3, random_state=3)}
    ),
    "splits of groups that were given": Golden(visits(48), {**BAYES, "resampling": GroupKFold(3)}),
    "classes, stratified": Golden(
        clouds(60, 4),
        {**BAYES, "resampling": "kfold:4", "stratify": True, "measure": "zero_one,f1_macro,log_loss"},
    ),
    "an untidy table": Golden(
        patients(60),
        {"learner": "linear,tree", "encode": "target", "fill": "most_frequent", "resampling": "kfold:3"},
    ),
    "rare categories, a column for each other one": Golden(
        wards(48),
        {
            "learner": "linear,naive_bayes",
            "encode": "onehot",
            "resampling": "kfold:4",
            "measure": "zero_one,log_loss",
        },
    ),
    "rare categories, joined up to a share": Golden(
        wards(48),
        {
            "learner": "linear,tree",
            "encode": "ordinal",
            "rare": 0.1,
            "resampling": "subsampling:3:0.3",
            "measure": "zero_one,log_loss",
        },
    ),
    "splits that were given, fits of few rows fail": Golden(
        cloud(30),
        {
            "learner": "sklearn.neighbors:KNeighborsClassifier",
            "param": {"n_neighbors": [3, 9]},
            "resampling": [(range(size), range(15, 30)) for size in (5, 10, 15)],
        },
    ),
    "one row left out": Golden(lattice(24), {**BAYES, "resampling": "loo"}),
    "drawn folds": Golden(cloud(30), {**BAYES, "resampling": "drawn_folds:4"}),
    "a holdout": Golden(cloud(30), {**BAYES, "resampling": "holdout:0.4", "stratify": True}),
    "a forest": Golden(
        cloud(30),
        {
            "learner": "forest",
            "param": {"n_estimators": [5, 9], "max_features": ["sqrt"], "min_samples_leaf": [1]},
            "resampling": "kfold:3",
        },
    ),
}
NAMES = tuple(PROCEDURES)


def observe(name: str) -> Values:
    """Run a golden procedure in this process; return its values, from the files of its folder."""
    sample, options = PROCEDURES[name]
    with TemporaryDirectory() as folder:
        out = Path(folder)
        evaluate(sample.X, sample.y, out, SERIAL, groups=sample.groups, **options)
        summary = json.loads((out / "scores.json").read_text())
        splits = parquet.read_table(out / "scores.parquet").to_pylist()
        return {
            "splits without a score": sum(None in row.values() for row in splits),
            "rows": digest([[row["split"], row["rows_fitted"], row["rows_scored"]] for row in splits]),
            "settings": digest([[row["learner"], row["setting"]] for row in splits]),
            "counts": digest([[row[score] for score in COUNTS if score in row] for row in splits]),
            **{f"{BITS}{entry} {score}": value for entry, score, value in _scores(summary)},
            f"{BITS}comparisons": digest(summary["comparisons"]),
            f"{BITS}table of scores": digest(splits),
            f"{BITS}records": digest_log(out),
            **digest_files(out),
        }


def _scores(summary: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return for each entry and score the mean, the figure of all rows, and a digest of all there is."""
    return [
        (
            f"entry {number} ({entry['learner']})",
            score,
            exact([found["mean"], found["pooled"], digest(found)]),
        )
        for number, entry in enumerate(summary["entries"])
        for score, found in entry["scores"].items()
    ]

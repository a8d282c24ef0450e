"""Golden values of procedures of cross validation (``evaluate``): scores, settings, records and files.

Which rows are fitted and scored, which settings are selected, and how many rows are wrong is the same on
every processor; all other scores are the same on one kind of processor with one set of versions.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
SMALL_TREE = {"ccp_alpha": [0.02], "criterion": ["gini"], "min_samples_leaf": [5]}
BAYES = {"learner": "naive_bayes", "param": {"var_smoothing": [1e-9, 1e-2, 1.0]}}


def golden(sample: Sample, resampling: Any, /, **options: Any) -> tuple[Sample, dict[str, Any]]:
    """Return a table, and the options of ``evaluate``."""
    return sample, options | {"resampling": resampling}


# Its name and its source are part of what is hashed: a change of its text changes the run_id.
def largest_miss(y: Any, predicted: Any) -> float:
    return float(abs(y - predicted).max())


PROCEDURES = {
    "k folds, several learners": golden(
        cloud(48),
        "kfold:4",
        **{"linear.param": {"C": [1.0]}, "tree.param": SMALL_TREE},
        learner="svm,linear,tree",
        C=1.0,
        gamma=0.1,
        measure="zero_one,accuracy,auc,balanced_accuracy,f1",
    ),
    "k folds, every setting, probabilities": golden(
        cloud(40), "kfold:5", **BAYES, measure="zero_one,log_loss,brier,roc_auc"
    ),
    "nested, a new setting in each split": golden(
        cloud(48), "nested:3:2", **THREE, measure="zero_one,auc", select_by="auc", select="each", seed=4
    ),
    "nested halves, one setting": golden(
        lattice(48), "nested_halves:4", **THREE, measure="accuracy", select_by="zero_one"
    ),
    "nested, other parts": golden(
        cloud(40),
        NestedSplits(Subsampling(3, 0.3), KFold(3, remainder="last")),
        **BAYES,
        select_by="log_loss",
        select="each",
    ),
    "groups": golden(visits(80), "kfold:4", learner="linear", measure="zero_one,auc"),
    "groups, drawn with replacement": golden(visits(60), "bootstrap:5", **BAYES, measure="zero_one,brier"),
    "numbers": golden(
        prices(40),
        "repeated_kfold:4x2",
        learner="ridge,tree_regressor,mean",
        measure=["rmse", "r2", "absolute", "clipped:2.5", largest_miss],
    ),
    "numbers, nested": golden(
        prices(40),
        "nested:3:3",
        **{"ridge.param": {"alpha": (0.1, 1.0, 10.0)}, "lasso.param": {"alpha": [0.01, 0.1]}},
        learner="ridge,lasso",
        select_by="squared",
    ),
    "splits that were given": golden(cloud(36), ShuffleSplit(4, test_size=0.3, random_state=3), **BAYES),
    "splits of groups that were given": golden(visits(48), GroupKFold(3), **BAYES),
    "classes, stratified": golden(
        clouds(60, 4), "kfold:4", **BAYES, stratify=True, measure="zero_one,f1_macro,log_loss"
    ),
    "an untidy table": golden(
        patients(60), "kfold:3", learner="linear,tree", encode="target", fill="most_frequent"
    ),
    "rare categories, a column for each other one": golden(
        wards(48), "kfold:4", learner="linear,naive_bayes", encode="onehot", measure="zero_one,log_loss"
    ),
    "rare categories, joined up to a share": golden(
        wards(48),
        "subsampling:3:0.3",
        learner="linear,tree",
        encode="ordinal",
        rare=0.1,
        measure="zero_one,log_loss",
    ),
    "splits that were given, fits of few rows fail": golden(
        cloud(30),
        [(range(size), range(15, 30)) for size in (5, 10, 15)],
        learner="sklearn.neighbors:KNeighborsClassifier",
        param={"n_neighbors": [3, 9]},
    ),
    "one row left out": golden(lattice(24), "loo", **BAYES),
    "drawn folds": golden(cloud(30), "drawn_folds:4", **BAYES),
    "a holdout": golden(cloud(30), "holdout:0.4", **BAYES, stratify=True),
    "a forest": golden(
        cloud(30),
        "kfold:3",
        learner="forest",
        param={"n_estimators": [5, 9], "max_features": ["sqrt"], "min_samples_leaf": [1]},
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
    """Return for each entry and score the mean, the figure of all rows, and a digest of everything."""
    return [
        (
            f"entry {number} ({entry['learner']})",
            score,
            exact([found["mean"], found["pooled"], digest(found)]),
        )
        for number, entry in enumerate(summary["entries"])
        for score, found in entry["scores"].items()
    ]

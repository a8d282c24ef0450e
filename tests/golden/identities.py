"""The JSON and the run_id of studies and procedures: what names a run folder, in which a run is continued.

The text is what is hashed. Tables are of whole numbers and words, the same on every processor.
"""

import hashlib
import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from exact import Values, digest
from samples import counts
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import KFold, NestedSplits, Procedure, Study, Task
from ckcv_ray.extend import Bootstrap, Splits
from ckcv_ray.study.problem import Problem

N = 48


class Golden(NamedTuple):
    """Options of a study, or of a procedure if it is not certified; and the name of a table."""

    options: dict[str, Any]
    table: str = "two classes"
    certified: bool = True


# Its name and its source are part of what is hashed: a change of its text changes the run_id.
def asymmetric(y: Any, predicted: Any, factor: float = 3.0) -> float:
    return float(np.mean(np.where(predicted > y, factor, 1.0) * abs(predicted - y)))


def study(table: str = "two classes", /, **options: Any) -> Golden:
    """Return a study of ``run``."""
    return Golden(options, table)


def procedure(table: str = "two classes", /, **options: Any) -> Golden:
    """Return a procedure of ``evaluate``."""
    return Golden(options, table, certified=False)


IDENTITIES = {
    # studies: certifications
    "default": study(),
    "holdout": study(certify="holdout", holdout_share=0.33),
    "holdout, auto share, several claims": study(
        certify="holdout",
        holdout_share="auto",
        claim="vote,sensitivity,specificity",
        positive=0,
    ),
    # resamplings, criteria
    "rotation": study(resampling="rotation", k="3,5,10"),
    "every k said": study(k=tuple(range(3, N + 1)), n_splits=7),
    "balanced": study(criterion="balanced", delta=0.01),
    "costs": study(criterion="cost:1=10,0=2.5"),
    "mean error": study(criterion="mean_error"),
    "reported k, exhaustive, a long seed": study(report_k="5,10", exhaustive=True, seed=2**100 + 1),
    # searches
    "a budget": study(search="budget"),
    "a budget, every option": study(
        search="budget:keep=0.5,survivors=3,least_splits=2", effort=2000, report_k=(3,)
    ),
    # learners
    "every option of the svm": study(
        C="log:-1:2:4",
        gamma=(0.3, 1 / 3),
        scale="none",
        param={"tolerance": 1e-4, "max_iter": 5000},
        class_weight="balanced",
    ),
    "landmarks": study(learner="svm_nystroem", param={"landmarks": 9}, C=(1.0, 10.0)),
    "weights by label": study(class_weight={0: 2.5, 1: 1}),
    "a named learner": study(learner="boosting"),
    "a named learner, other values": study(
        learner="forest", param={"n_estimators": [10, 20], "max_features": [None, "sqrt", 0.5]}
    ),
    "a neural network": study(learner="mlp"),
    "a sample of a distribution": study(learner="linear", param=("C=loguniform:1e-3:1e2",), sample=5),
    "a sample of values": study(learner="tree", sample=4, class_weight="1=2"),
    "several learners": study(learner="svm,linear,constant", C=(1.0, 10.0), linear={"param": {"C": [0.1]}}),
    "labels of learners": study(
        learner="soft,hard",
        **{"soft.learner": "svm", "hard.learner": "svm", "soft.C": 0.1, "hard.C": (10, 100)},
    ),
    "all learners": study(learner="all"),
    "an estimator by name": study(learner="sklearn.linear_model:Perceptron", param={"alpha": [1e-4, 1e-2]}),
    "an estimator": study(
        learner=make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=300)),
        param={"C": [0.1, 1]},
    ),
    # tables
    "three classes": study("three classes", class_weight="balanced", criterion="balanced"),
    "groups": study("groups", certify="holdout", holdout_share=0.65),
    "columns that are not numbers": study("categories, gaps, dates", learner="tree,linear"),
    "one column for each category": study("categories, gaps, dates", encode="onehot", rare=0.2),
    "shares of classes, means for gaps": study(
        "categories, gaps, dates", encode="target", fill="mean", certify="holdout", holdout_share=0.33
    ),
    "numbers of categories": study("categories, gaps, dates", encode="ordinal", fill="most_frequent"),
    # procedures: resamplings
    "k folds": procedure(),
    "k folds, the rest in the last": procedure(resampling=KFold(5, remainder="last")),
    "stratified": procedure(resampling="kfold:4", stratify=True, seed=2**62),
    "holdout of rows": procedure(resampling="holdout:0.4"),
    "repeated k folds": procedure(resampling="repeated_kfold:4x3"),
    "drawn folds": procedure(resampling="drawn_folds:6"),
    "forward in time": procedure(resampling="time:4"),
    "forward in time, with a gap": procedure(resampling="time:4:2"),
    "by a column of times": procedure("by times", resampling="time:2", time="admitted", gap="3d"),
    "folds of a column": procedure("by folds", resampling="column:smokes"),
    "the .632 bootstrap": procedure(resampling="bootstrap632:30"),
    "the .632+ bootstrap": procedure(resampling="bootstrap632plus:30"),
    "the optimism bootstrap": procedure(resampling="optimism:30"),
    "one row left out": procedure(resampling="loo"),
    "sub-sampling": procedure(resampling="subsampling:20:0.2"),
    "bootstrap": procedure(resampling="bootstrap:30"),
    "the best of several, with an interval": procedure(interval="bbc", save_predictions=True),
    "splits that were given": procedure(
        resampling=Splits.of([(range(24), range(24, 48)), (range(24, 48), range(24))], N)
    ),
    "nested k folds": procedure(resampling="nested:5:3", select_by="zero_one"),
    "nested, a new setting in each split": procedure(
        learner="svm,tree",
        resampling="nested_halves:4",
        select_by="auc",
        select="each",
        measure="zero_one,accuracy",
    ),
    "nested, other parts": procedure(
        resampling=NestedSplits(Bootstrap(9), KFold(4, stratify=True)), select_by="f1"
    ),
    # and measures, learners, tables
    "measures": procedure(
        learner="linear,forest", measure="zero_one,balanced_accuracy,auc,log_loss,brier,f1_macro,roc_auc"
    ),
    "a function": procedure(measure=["zero_one", asymmetric]),
    "an estimator, evaluated": procedure(learner=RandomForestClassifier(20, random_state=3)),
    "three classes, evaluated": procedure("three classes", learner="naive_bayes"),
    "groups, evaluated": procedure("groups", learner="linear,lda"),
    "an untidy table, evaluated": procedure(
        "categories, gaps, dates", learner="linear,forest", encode="target", fill="mean"
    ),
    "numbers, certified": study(
        "numbers", learner="ridge", clip=5, certify="holdout", holdout_share=0.33, claim="refit,within:0.5"
    ),
    "numbers": procedure("numbers", learner="ridge"),
    "numbers, several learners": procedure(
        "numbers",
        learner="ridge,lasso,linear_regression,neighbors_regressor,tree_regressor,forest_regressor,svr,mean",
        ridge={"param": {"alpha": (0.1, 1.0)}},
        measure=["rmse", "r2", "absolute", "mape", "clipped:2", asymmetric],
    ),
    "numbers, nested": procedure(
        "numbers", learner="boosting_regressor", resampling="nested:4:4", select_by="squared", select="each"
    ),
}
NAMES = tuple(IDENTITIES)


@cache
def make_task(table: str) -> Task:
    """Return a task of whole numbers and words."""
    X, y, _ = counts(N, 3 if table == "three classes" else 2)
    match table:
        case "groups":
            return Task.of(X, y, groups=[f"patient {i // 3}" for i in range(N)])
        case "numbers":
            return Task.of(X, X @ [2.0, -1.0] + y, numbers=True)
        case "categories, gaps, dates":
            return Task.of(untidy(X, y), np.where(y == 1, "ill", "well"))
        case "by times" | "by folds":
            return Task.of(untidy(X, y), y, split_by="admitted" if table == "by times" else "smokes")
    return Task.of(X, y)


def untidy(X: Any, y: Any) -> pa.Table:
    """Return columns of numbers with gaps, categories, truth values, and dates."""
    days = np.datetime64("2024-01-01") + X[:, 0].astype(int) * np.timedelta64(3, "D")
    return pa.table(
        {
            "dose": pa.array(X[:, 1], mask=X[:, 0] == 3),
            "ward": [("north", "south", None, "größe")[int(one) % 4] for one in X[:, 1]],
            "smokes": [bool(one % 2) for one in X[:, 0]],
            "admitted": pa.array(days),
        }
    )


def observe(name: str) -> Values:
    """Return the run_id of a study on its table, the JSON text that it is the SHA-256 of, and all JSON."""
    options, table, certified = IDENTITIES[name]
    asked = Study.paper(**options) if certified else Procedure.of(**options)
    problem = Problem.of(asked, make_task(table))
    content = {
        "study" if certified else "procedure": problem.asked.to_json(fixed=True),
        "data": problem.data_digest,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == problem.run_id
    return {
        "run_id": problem.run_id,
        "hashed": text,
        "digest of all of its JSON": digest(problem.asked.to_json()),
    }

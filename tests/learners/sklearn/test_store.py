"""Files of estimators: equal bytes for equal estimators, and nothing in them is run or followed blindly."""

import functools
import io
import json
import operator
import os
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest, SelectPercentile, chi2, mutual_info_classif
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators
from stores import read_all

from ckcv_ray import Execution, InputError, Study, evaluate, load_scores, run
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.sklearn import store
from ckcv_ray.learners.sklearn.spec import as_spec, list_classes
from ckcv_ray.learners.sklearn.store import pack, unpack
from ckcv_ray.study.problem import OUTER

X, Y = make_classification(80, 5, random_state=0)
X = np.abs(X)
OPTIONS: dict[str, Any] = {"resampling": "kfold:3", "execution": Execution("serial")}
OTHERS = {  # they need other rows, or estimators to hold
    *("ClassifierChain", "MultiOutputClassifier", "TunedThresholdClassifierCV", "FixedThresholdClassifier"),
    *("OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier", "SelfTrainingClassifier"),
    *("StackingClassifier", "VotingClassifier"),
}
CLASSIFIERS = {name: kind for name, kind in all_estimators("classifier") if name not in OTHERS}
TWO = [("machine", SVC()), ("tree", DecisionTreeClassifier(max_depth=2))]
FEW: dict[str, Any] = {"n_estimators": 5, "max_iter": 60, "random_state": 0}
SAME: dict[str, Any] = {  # with and without us
    "chi2": make_pipeline(SelectPercentile(chi2, percentile=50), GaussianNB()),
    "logarithm": make_pipeline(FunctionTransformer(np.log1p, inverse_func=np.expm1), GaussianNB()),
    "positions": make_pipeline(ColumnTransformer([("a", StandardScaler(), np.arange(3))]), GaussianNB()),
    "infinity": make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, max_iter=1000)),
}
HELD: dict[str, Any] = {
    **SAME,
    "mutual information": make_pipeline(SelectKBest(mutual_info_classif, k=2), GaussianNB()),
    "a machine for each class": OneVsRestClassifier(SVC()),
    "a stack of machines": StackingClassifier(TWO, GaussianNB(), cv=2),
    "neighbours in a vote": VotingClassifier([("near", KNeighborsClassifier()), TWO[1]]),
    "KNNImputer": make_pipeline(KNNImputer(), GaussianNB()),
    "trees of polynomials": make_pipeline(PolynomialFeatures(), GradientBoostingClassifier(n_estimators=2)),
}


def quietly(fit: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_of_scikit_learn_can_be_stored(name: str) -> None:
    estimator = quietly(CLASSIFIERS[name])
    estimator.set_params(**{n: v for n, v in FEW.items() if n in estimator.get_params()})
    one, other = (quietly(lambda: clone(estimator).fit(X, Y)) for _ in range(2))
    before = quietly(lambda: one.predict(X))
    content = pack(one)
    assert content == pack(other)
    classes = quietly(lambda: [*list_classes(as_spec("estimator", estimator))])
    again = quietly(lambda: unpack(content, classes))
    assert pack(again) == content
    for stored in (one, again):  # packing leaves it as it is
        assert np.array_equal(quietly(lambda fitted=stored: fitted.predict(X)), before)


@pytest.mark.parametrize("name", HELD)
def test_what_holds_others_is_scored_stored_and_predicts_alike(name: str, tmp_path: Path) -> None:
    result = evaluate(X, Y, out=tmp_path / "scores", learner=HELD[name], refit="best", **OPTIONS)
    again = load_scores(tmp_path / "scores")
    assert again.study == result.study
    assert np.array_equal(again.predict(X), result.predict(X))
    if name in SAME:
        splits = [result.problem.rows(Stage.SELECT, OUTER, i) for i in range(3)]
        pooled = result.figures(result.entries[0], result.scores[0]).pooled
        assert np.mean(cross_val_predict(SAME[name], X, Y, cv=splits) != Y) == pytest.approx(pooled)


REFUSED = {
    "thresholds": (TunedThresholdClassifierCV(GaussianNB(), cv=2), r"_CurveScorer, which no fit of"),
    "splines": (make_pipeline(SplineTransformer(3), GaussianNB()), "Untrusted types .*BSpline"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_the_fits_and_scored_without_a_model(name: str, tmp_path: Path) -> None:
    learner, why = REFUSED[name]
    with pytest.raises(InputError, match=f"cannot be stored: .*{why}"):
        evaluate(X, Y, out=tmp_path / "model", learner=learner, refit="best", **OPTIONS)
    assert not (tmp_path / "model").exists()
    result = evaluate(X, Y, out=tmp_path / "scores", learner=learner, **OPTIONS)
    assert np.all(np.isfinite(result.of_splits(result.entries[0], result.scores[0])))


# What a stranger may have put into a file


LOGISTIC = "sklearn.linear_model:LogisticRegression"
PIPELINE = "sklearn.pipeline:Pipeline"


class Own(LogisticRegression):
    pass


def put(**values: Any) -> Callable[[Any], Any]:
    return lambda estimator: vars(estimator).update(values)


def forge(owner: Callable[[Any], Any], field: str, value: int) -> Callable[[Any], Any]:
    """Another first value of a field of the nodes of a tree."""

    def change(estimator: Any) -> None:
        tree = owner(estimator)
        if hasattr(tree, "nodes"):
            tree.nodes[field][0] = value
            return
        state = tree.__getstate__()
        state["nodes"][field][0] = value
        tree.__setstate__(state)

    return change


def swap(name: str, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda estimator: setattr(estimator, name, make(getattr(estimator, name)))


def in_a_set(forest: RandomForestClassifier) -> None:
    put(n_features_in_=6)(forest.estimators_[0])
    forest.estimators_ = set(forest.estimators_)


FEW_TREES = RandomForestClassifier(2)
STAGES = GradientBoostingClassifier(n_estimators=2)
HISTOGRAMS = HistGradientBoostingClassifier(max_iter=3)
TREE = DecisionTreeClassifier()
NEAR = KNeighborsClassifier(algorithm="brute")
MORE_COLUMNS = put(n_features_in_=6)
REPEAT_COLUMNS = swap("estimators_", lambda trees: np.repeat(trees, 3, axis=1))
HOLD_OTHER = swap("_predictors", lambda rounds: [[StandardScaler()], *rounds[1:]])
ALONE, FIRST = operator.attrgetter("tree_"), lambda forest: forest.estimators_[0].tree_
OF_ROUND = lambda boosting: boosting._predictors[0][0]  # noqa: E731
OTHER = "a tree has another number of columns"
FOLLOWED: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "a child outside": (TREE, forge(ALONE, "left_child", 10**6), "a tree has a node whose child"),
    "a child before the first": (TREE, forge(ALONE, "right_child", -7), "a tree has a node whose child"),
    "a child that is its parent": (TREE, forge(ALONE, "left_child", 0), "a tree has a node whose child"),
    "a column that is none": (TREE, forge(ALONE, "feature", 5), "a tree tests a column that does not exist"),
    "a column before the first": (TREE, forge(ALONE, "feature", -3), "a tree tests a column that does not"),
    "a tree of a forest": (FEW_TREES, forge(FIRST, "right_child", 10**6), "a tree has a node whose child"),
    "histograms: a circle": (HISTOGRAMS, forge(OF_ROUND, "right", 0), "a tree has a node whose child"),
    "histograms: a column": (HISTOGRAMS, forge(OF_ROUND, "feature_idx", 5), "a tree tests a column that"),
    "histograms: categories": (HISTOGRAMS, forge(OF_ROUND, "is_categorical", 1), "a tree has categories"),
    "histograms of no columns": (HISTOGRAMS, lambda h: delattr(h, "n_features_in_"), OTHER),
    "histograms of text": (HISTOGRAMS, put(_preprocessor=StandardScaler()), "a tree has categories"),
    "no histogram": (HISTOGRAMS, HOLD_OTHER, OTHER),
    "a tree of other columns": (TREE, MORE_COLUMNS, OTHER),
    "a tree that is none": (TREE, put(tree_=StandardScaler()), OTHER),
    "a tree in a set": (FEW_TREES, in_a_set, OTHER),
    "a stage of other columns": (STAGES, lambda s: MORE_COLUMNS(s.estimators_[1, 0]), OTHER),
    "more trees than classes": (STAGES, REPEAT_COLUMNS, "its trees are not those of its classes"),
    "too few coefficients": (SVC(), swap("_dual_coef_", lambda c: c[:, :1].copy()), "do not belong together"),
    "another kind of machine": (SVC(), put(_impl="nu_svr"), "do not belong together"),
    "columns as a kernel": (SVC(), put(kernel="precomputed"), "do not belong together"),
    "neighbours of no class": (NEAR, put(_y=np.full(80, 10**6)), "its neighbours are not of its classes"),
    "more neighbours than rows": (NEAR, put(n_samples_fit_=10**9), "are not rows of numbers"),
    "a metric that is called": (NEAR, put(effective_metric_params_={"func": [1]}), "not described by"),
    "a sparse matrix": (LogisticRegression(), put(coef_=csr_matrix(np.eye(5)[:1])), "Untrusted .*csr_mat"),
    "a billion threads": (FEW_TREES, put(n_jobs=10**9), "predictions take one thread"),
    "another estimator": (TREE, put(tree_=KMeans(1)), "it holds .*KMeans, which no fit"),
    "a reader of files": (
        make_pipeline(StandardScaler(), GaussianNB()),
        lambda fitted: fitted.steps.insert(0, ("a", HashingVectorizer(input="filename"))),
        "it holds .*HashingVectorizer, which no fit",
    ),
    "a function": (LogisticRegression(), put(coef_=os.system), r"Untrusted types .*'posix\.system'"),
    "a call": (LogisticRegression(), put(coef_=functools.partial(os.system)), "Untrusted .*partial"),
    "a method": (LogisticRegression(), put(coef_=GaussianNB().fit), "which no fit|Untrusted types"),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_a_damaged_or_forged_model_would_do_is_found_before_it_predicts(name: str) -> None:
    estimator, change, messages = FOLLOWED[name]
    fitted = quietly(lambda: clone(estimator).fit(X, Y))
    classes = [*list_classes(as_spec("estimator", estimator))]
    assert quietly(lambda: unpack(pack(fitted), classes)) is not None
    change(fitted)
    with pytest.raises((ValueError, TypeError), match=messages):
        quietly(lambda: unpack(pack(fitted), classes))


@pytest.mark.parametrize(
    ("fitted", "classes"),
    [
        (LogisticRegression(), [PIPELINE, LOGISTIC]),  # not itself, but a part
        (make_pipeline(KMeans(2)), [PIPELINE, LOGISTIC]),
        (RandomForestClassifier(2), ["sklearn.tree:DecisionTreeClassifier"]),
        (Own(), [LOGISTIC]),
    ],
)
def test_another_estimator_than_the_study_s_is_refused_before_it_is_built(fitted, classes, monkeypatch):
    content = pack(fitted.fit(X, Y))
    monkeypatch.setattr(BaseEstimator, "__setstate__", lambda self, state: pytest.fail("it was built"))
    with pytest.raises(ValueError, match="which no fit of sklearn"):
        unpack(content, classes)


def nest(schema: Any) -> str:
    node = '{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": ['
    return node * 900 + json.dumps(schema) + "]}" * 900


def rewrite(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """The archive with another schema."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(sink, "w") as new:
        for info in old.infolist():
            inside: Any = old.read(info)
            if info.filename == "schema.json":
                inside = change(json.loads(inside))
            new.writestr(info, inside if isinstance(inside, bytes | str) else json.dumps(inside))
    return sink.getvalue()


def name_base(schema: Any) -> Any:
    text = json.dumps(schema).replace("csr_matrix", "spmatrix").replace("sparse._csr", "sparse._matrix")
    return json.loads(text)


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "a function of another module": lambda content: rewrite(
        content, lambda schema: {**schema, "__class__": "system", "__module__": "os"}
    ),
    "nested deeply": lambda content: rewrite(content, nest),
    "a sparse matrix by the name of its base": lambda _: rewrite(
        pack(LogisticRegression().fit(X, Y).sparsify()), name_base
    ),
    "no schema": lambda content: rewrite(content, lambda schema: []),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused(name: str) -> None:
    content = pack(LogisticRegression().fit(X, Y))
    with pytest.raises(Exception) as refused:
        unpack(HOSTILE[name](content), [LOGISTIC])
    assert not isinstance(refused.value, MemoryError)  # others are turned into one of a damaged file


def test_a_model_that_unfolds_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_MODEL_BYTES", 100)
    with pytest.raises(ValueError, match="it is too large"):
        unpack(pack(GaussianNB()))


def test_a_command_does_with_a_folder_what_the_guide_on_security_says(tmp_path, ckcv, monkeypatch) -> None:
    out, new = tmp_path / "run", tmp_path / "new.csv"
    run(Study.of(learner=GaussianNB(), k=3, n_splits=2), X, Y, out=out, execution=OPTIONS["execution"])
    new.write_text("x0,x1,x2,x3,x4\n1,2,3,4,5\n")
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "security.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in guide.splitlines() if line.startswith("| `")]
    says = {command: row[1:] for row in rows for command in row[0].replace("`", "").split(", ")}
    fit, fits = GaussianNB.fit, list[Any]()
    monkeypatch.setattr(GaussianNB, "fit", lambda self, *rows: fits.append(self) or fit(self, *rows))
    for command, more in {"status": (), "report": (), "predict": (new,), "verify": ()}.items():
        _, _, fitted, imported, written = says[command]
        fits.clear()
        before = read_all(out)
        assert ckcv(command, out, *more)[0] == 0
        after = read_all(out)
        assert bool(fits) == (fitted != "nothing"), command
        assert after.keys() - before.keys() == {*re.findall(r"report\.html", written)}
        assert {file: after[file] for file in before} == before
        assert imported.startswith("nothing")

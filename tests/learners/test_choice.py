"""A choice among learners: what it consists of, how its models are stored; and which learners, estimators
and options are impossible, alone or together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from decision_stump import DecisionStump
from learner_contract import clouds
from nearest_centroid import NearestCentroid
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, GaussianSVM, InputError, Study, Task, evaluate, run
from ckcv_ray.core.measures import Kind, Output
from ckcv_ray.extend import NystroemSVM
from ckcv_ray.learners.base import ALL, LEARNERS, ZOO
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.ensemble import Ensemble, Member, from_arrow, to_arrow
from ckcv_ray.study.problem import Problem

SVM = GaussianSVM(C=(0.1, 1.0), gamma=(0.1, 1.0, 10.0))
CENTROID, STUMP = NearestCentroid((0.5, 2.0)), DecisionStump()
CHOICE = Choice((SVM, CENTROID, STUMP))
TASK = clouds(40, 2)
EVERY = np.arange(40)
TRAIN, SCORE = EVERY[:30], EVERY[30:]


@dataclass(frozen=True)
class Binary(DecisionStump):
    """A learner of two classes only."""

    kinds = frozenset({Kind.BINARY})


def models(choice: Choice = CHOICE) -> list[Any]:
    """A model of every setting."""
    block = choice.trainer.prepare(choice.trainer.share(TASK), TRAIN, SCORE)
    every = [(block.fit(path, length), length) for path, length in enumerate(choice.space.lengths)]
    return [fits.model(step) for fits, length in every for step in range(length)]


def ensemble(of: list[Any]) -> Ensemble:
    return Ensemble(tuple(Member(3, i, model, (0, 0), (5, 5)) for i, model in enumerate(of)))


def test_a_learner_of_another_kind_is_refused_by_its_name() -> None:
    two = Binary()
    assert Choice((CENTROID, two), ("mine", "other")).kinds == {Kind.BINARY}
    assert CHOICE.kinds == Choice((CENTROID, STUMP)).kinds == {Kind.BINARY, Kind.MULTICLASS}
    with pytest.raises(
        InputError, match=r"learner mine is for two classes, and .* has 3 classes \(0, 1, 2\): leave it out"
    ):
        Problem.of(Study(learner=Choice((two, CENTROID), ("mine", "other"))), clouds(60, 3))


def test_scores_rank_if_those_of_every_learner_do() -> None:
    assert Output.RANK not in CHOICE.outputs
    assert Choice((SVM, GaussianSVM()), ("a", "b")).outputs == {Output.RANK}
    study = Study(learner=CHOICE).replace(certify="holdout", claim="auc")
    with pytest.raises(InputError, match="needs scores that order the rows, and learner centroid gives none"):
        Problem.of(study, TASK)


def forged(change: Any) -> pa.Table:
    table = to_arrow(ensemble([models()[i] for i in (0, 7, 12)]), CHOICE, TASK)
    change(rows := table.to_pylist())
    return pa.Table.from_pylist(rows, schema=pa.schema([*table.schema]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update({"learner": "no"}), "learner 'no' is none of svm, centroid, stump"),
        (lambda rows: rows[1].update({"svm.C": 1.0}), "svm.C has a value in a row of centroid"),
        (lambda rows: rows[0].update({"svm.offset": None}), "svm.offset has empty cells"),
        (lambda rows: rows[1].update({"centroid.scale": [None, 1.0, 1.0]}), "centroid.scale has empty cells"),
        (lambda rows: rows[2].update({"k": None}), "k has empty cells"),
    ],
)
def test_a_table_with_cells_of_another_learner_or_without_its_own_is_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        from_arrow(forged(change), CHOICE, TASK)


OF_ALL = Study.paper(learner=ALL, k=(3,), n_splits=2)


def noise(n: int, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    return Task.of(rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % 2))


def names_of(study: Study) -> tuple[str, ...]:
    assert isinstance(study.learner, Choice)
    return tuple(study.learner.by_label)


@pytest.mark.parametrize("n", sorted({rows for rows in ZOO.values() if rows < 10**6}))
def test_a_learner_is_left_out_of_tables_larger_than_it_is_for(n: int) -> None:
    for rows in (n, n + 1):
        kept = names_of(Problem.of(OF_ALL, noise(rows)).study)
        assert kept == tuple(name for name, most in ZOO.items() if rows <= most)
    assert len(kept) >= 2


def test_the_simplest_of_equals_wins() -> None:
    """A column that tells nothing: nothing is better than the commonest class, and some are as good."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 1)), (rng.random(60) < 0.1).astype(int)
    study = Study.paper(learner=ALL, k=(3,), n_splits=2, param=["n_estimators=5", "boosting.max_iter=2"])
    result = run(study, X, y, execution=Execution("serial"))
    assert result.setting["learner"] == next(iter(ZOO)) == "constant"


# What cannot be, alone or together


SERIAL = Execution("serial")
TREE, BAYES, NEAR = LEARNERS["tree"](), LEARNERS["naive_bayes"](), KNeighborsClassifier()
PIPELINE = make_pipeline(StandardScaler(with_mean=False), BaggingClassifier(LogisticRegression()))
RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3))
LABELS, ONES = np.where(X[:, 0] + RNG.normal(size=150) > 1.3, "ill", "well"), np.ones(150)


@dataclass(frozen=True)
class Clashing(NearestCentroid):
    """A learner with a hyperparameter called learner."""

    name = "clashing"

    @property
    def paths(self):
        return [[{"learner": "mine", **setting} for setting in path] for path in super().paths]


def choose(learners, labels=None, **more):
    return lambda: Choice(learners, labels, **more)


def study(learner="linear", param=None, **options):
    return lambda: Study.paper(learner=learner, param=param, **options)


def score(learner="svm", y=LABELS, **options):
    return lambda: evaluate(X, y, learner=learner, execution=SERIAL, **options)


REFUSED = [
    # choices
    (choose(()), "learners is empty"),
    (choose((SVM,)), "learners: there is only one: give it directly"),
    (choose((SVM, "centroid")), "learners: 'centroid' is not a single learner"),
    (choose((SVM, GaussianSVM())), "svm is named twice: leave one out, or give each a label"),
    (choose((SVM, CENTROID), ("a",)), "labels: got 1 for 2 learners"),
    (choose((SVM, CENTROID), ("a", "b,c")), "labels='b,c': a label is text of at most 100 printable"),
    (choose((SVM, CENTROID), ("a", "b\x1b")), r"labels='b\\x1b': a label is text"),
    (choose((SVM, Clashing())), "a hyperparameter of clashing is called learner"),
    (choose((TREE, BAYES), most_rows=(5,)), "most_rows: got 1 for 2 learners: give one for each"),
    (
        lambda: Choice((TREE, BAYES), most_rows=(5, 100)).canonical(clouds(60, 2)),
        "most_rows leaves 1 learners for 60 rows",
    ),
    # estimators
    (study("sklearn.ensemble:RandomForest"), "sklearn.ensemble:RandomForestClassifier"),
    (study("os:system"), "is not the class of an estimator"),
    (study("sklearn.decomposition:PCA"), "predicts neither classes nor numbers"),
    (study("sklearn.multiclass:OneVsRestClassifier"), "missing 1 required positional"),
    # their parameters
    (study("forest", "max_featurs=1"), "did you mean max_features"),
    (study("forest", "C=1"), "'C' is not a parameter of Random"),
    (study("linear", "C="), "expected a parameter and its values"),
    (study("linear", {"C": [float("nan")]}), "numbers, inf, text"),
    (study("linear", "C=loguniform:1:9"), "give sample"),
    (study("linear", "C=uniform:2:1", sample=2), "smaller first"),
    (study("forest", {n: (*range(2, 802),) for n in ("max_depth", "max_leaf_nodes")}), "at most 100,000"),
    (study(PIPELINE, {"memory": ["somewhere"]}), "memory='somewhere' cannot be part of a study"),
    (study(PIPELINE, {"standardscaler": ["os.system"]}), "its name and an estimator, drop or passthrough"),
    (study(PIPELINE, {"baggingclassifier__estimator__solver": ["exit()"]}), "cannot be part of a study"),
    (study(PIPELINE, {"steps": [["passthrough"]]}), "param: "),
    # options of others
    (study("forest", gamma=1.0), "svm or svm_nystroem, not forest; parameters of forest are given by param$"),
    (
        lambda: NystroemSVM(C=(1e300,), class_weight={0: 1e10}).canonical(clouds(60, 2)),
        "the product of C and a weight",
    ),
    # times and weights
    (lambda: Execution("ray", fit_timeout=float("nan")), "fit_timeout"),
    (study("sklearn.neighbors:KNeighborsClassifier", class_weight="balanced"), "has no class weights"),
    (study("neighbors", class_weight="balanced"), "class_weight='balanced' requires learner"),
    *(
        (score(learner, sample_weight=ONES), "does not use weights of rows: choose one .*linear, ")
        for learner in ("svm", NEAR, BaggingClassifier(NEAR))
    ),
    (score(GridSearchCV(Lasso(), {}), X[:, 0], sample_weight=ONES), "weights of rows: choose one .*ridge, "),
    # balanced rows
    (score("ridge", X[:, 0], balance="up"), "balance=up is for classes, and the target .* has numbers"),
    (
        score("svm_nystroem", param={"landmarks": 100}, balance="down"),
        "landmarks=100: they are drawn from the training rows of a split",
    ),
    *(
        (ask, "balance=up draws rows again, and a stored model of learner svm")
        for ask in (
            score(balance="up", refit="best"),
            lambda: run(Study.of(k=(3,), balance="up"), X, LABELS, execution=SERIAL),
        )
    ),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(ask, message):
    with pytest.raises(InputError, match=message) as refused:
        ask()
    assert "\n" not in str(refused.value)

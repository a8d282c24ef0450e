"""Learners, estimators and options that cannot be, alone or together: refused in one sentence."""

from dataclasses import dataclass

import numpy as np
import pytest
from learner_contract import clouds
from nearest_centroid import NearestCentroid
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ckcv_ray import Execution, GaussianSVM, InputError, Study, evaluate, run
from ckcv_ray.extend import Choice, NystroemSVM
from ckcv_ray.learners.base import LEARNERS

SERIAL = Execution("serial")
SVM, CENTROID = GaussianSVM(C=(0.1, 1.0), gamma=(0.1, 1.0, 10.0)), NearestCentroid((0.5, 2.0))
TREE, BAYES, NEAR = LEARNERS["tree"](), LEARNERS["naive_bayes"](), KNeighborsClassifier()
PIPELINE = make_pipeline(StandardScaler(with_mean=False), BaggingClassifier(LogisticRegression()))
FOREST = "sklearn.ensemble:RandomForestClassifier"
RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3))
LABELS, ONES = np.where(X[:, 0] + RNG.normal(size=150) > 1.3, "ill", "well"), np.ones(150)


@dataclass(frozen=True)
class Clashing(NearestCentroid):
    """A learner with a hyperparameter that is called learner."""

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
    (choose((SVM,)), "learners: there is a single one: give it itself"),
    (choose((SVM, "centroid")), "learners: 'centroid' is not a single learner"),
    (choose((SVM, Choice((SVM, CENTROID)))), "is not a single learner"),
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
    (study("no_such_package:Model"), "No module named 'no_such_package'"),
    (study("os:system"), "is not the class of an estimator"),
    (study("sklearn.decomposition:PCA"), "predicts neither classes nor numbers"),
    (study("own_estimators:NeedsAnArgument"), "missing 1 required positional"),
    (study("estimator"), "estimator is not given"),
    (study(FOREST, estimator=FOREST), "given twice"),
    # their parameters
    (study("forest", "max_featurs=1"), "did you mean max_features"),
    (study("forest", "C=1"), "'C' is not a parameter of Random"),
    (study("forest", "max_features=sqrt,sq"), "lists, or log2, sqrt"),
    (study("linear", "C="), "expected a parameter and its values"),
    (study("linear", "C=1,1"), "has a value twice"),
    (study("linear", {"C": []}), "param C is empty"),
    (study("linear", {"C": [float("nan")]}), "numbers, inf, text"),
    (study("linear", "C=loguniform:1:9"), "give sample"),
    (study("linear", "C=uniform:2:1", sample=2), "smaller first"),
    (study("forest", {n: (*range(2, 802),) for n in ("max_depth", "max_leaf_nodes")}), "at most 100,000"),
    (study(PIPELINE, {"memory": ["somewhere"]}), "memory='somewhere' cannot be part of a study"),
    (study(PIPELINE, {"standardscaler": ["os.system"]}), "its name and an estimator, drop or passthrough"),
    (study(PIPELINE, {"baggingclassifier__estimator__solver": ["exit()"]}), "cannot be part of a study"),
    (study(PIPELINE, {"steps": [["passthrough"]]}), "param: "),
    # options of others
    (study("svm", "C=1"), "C is an option of its own"),
    (study("forest", gamma=1.0), "svm or svm_nystroem, not forest; parameters of forest are given by param$"),
    (study("svm_nystroem", {"landmarks": 0}), "landmarks=0"),
    (
        lambda: NystroemSVM(C=(1e300,), class_weight={0: 1e10}).canonical(clouds(60, 2)),
        "the product of C and a weight",
    ),
    # times and weights
    (lambda: Execution("ray", fit_timeout=float("nan")), "fit_timeout"),
    (study("sklearn.neighbors:KNeighborsClassifier", class_weight="balanced"), "has no class weights"),
    (study("tree", "class_weight=balanced", class_weight="balanced"), "class_weight is given twice"),
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

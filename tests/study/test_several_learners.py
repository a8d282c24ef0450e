"""Studies of several learners from named options: names, routing of options, changes, differences."""

from pathlib import Path
from typing import Any

import pytest
from decision_stump import DecisionStump
from nearest_centroid import NearestCentroid
from sklearn.naive_bayes import BernoulliNB

from ckcv_ray.core.options import get_values
from ckcv_ray.errors import InputError
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.study.study import Study, read_toml

SVM = GaussianSVM(C=(1.0, 10.0))
LABELLED = Study(
    learner=Choice((SVM, GaussianSVM(C=(1.0, 10.0), class_weight="balanced")), ("equal", "balanced"))
)


@pytest.mark.parametrize("named", ["svm,centroid", "svm, centroid", ["svm", "centroid"], ("svm", "centroid")])
def test_options_go_to_the_learners_that_have_them(named: Any) -> None:
    study = Study.paper(learner=named, C=(1, 10), shrinkage=(0.5,), k=(3, 5))
    assert study.learner == Choice((SVM, NearestCentroid((0.5,))))
    assert study.resampling.k == (3, 5)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"learner": "svm,"}, "learner='' is not known: choose from svm"),
        ({"learner": ""}, "learner='' is not known: choose from svm"),
        ({"learner": []}, r"learner=\[\] is not known: choose from svm"),
        ({"learner": "svm,centroid,svm"}, "learners: svm is named twice: leave one out"),
        ({"learner": "svm,choice"}, "learner='choice' is not known"),
        ({"learner": "svm,centroid", "rules": "mean"}, "='mean' requires learner stump, not svm,centroid"),
        ({"learner": "svm,centroid", "shrink": 1}, "option 'shrink' of a study: .*did you mean shrinkage"),
        ({"learner": "svm,centroid", "svm": {"shrinkage": 1}}, "unknown option 'shrinkage' of svm"),
        ({"learner": "svm,centroid", "stump": {"rules": "mean"}}, "stump.rules='mean' requires learner st"),
        ({"learner": "svm,centroid", "svm": {"C": 1}, "svm.C": 2}, "svm.C is given twice"),
        ({"learner": "svm,centroid", "learners": ()}, "unknown option 'learners' of a study"),
    ],
)
def test_what_is_wrong_is_named(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Study.paper(**asked)


def test_an_option_can_be_given_to_one_learner_alone_in_a_file_by_a_table(tmp_path: Path) -> None:
    options = {"svm": {"C": (1, 10), "param": {"max_iter": 500}}, "centroid": {"shrinkage": 2}}
    (tmp_path / "study.toml").write_text(
        "learner = ['svm', 'centroid']\nC = [1, 10]\nk = 3\ncentroid.shrinkage = 2\n"
        "[svm]\nparam = {max_iter = 500}\n"
    )
    for asked in ({"learner": "svm,centroid", **options}, read_toml(tmp_path / "study.toml")):
        made = Study.paper(**asked).learner
        assert made == Choice((GaussianSVM(C=(1, 10), max_iter=500), NearestCentroid((2.0,))))
    assert Study.paper(learner="svm", svm={"C": (1, 10)}) == Study(learner=SVM)


def test_a_label_can_stand_for_any_learner() -> None:
    options = {"equal": {"learner": "svm"}, "balanced": {"learner": "svm", "class_weight": "balanced"}}
    assert Study.paper(learner="equal,balanced", C=(1, 10), **options) == LABELLED
    assert Study.paper(**LABELLED.options()) == LABELLED
    with pytest.raises(InputError, match=r"balanced.learner='jungle' is not known: choose from svm"):
        Study.paper(learner="svm,balanced", balanced={"learner": "jungle"})
    with pytest.raises(InputError, match="learner='balanced' is not known"):
        Study.paper(learner="balanced", balanced={"learner": "svm"})


def test_parameters_go_to_the_learners_that_have_them() -> None:
    study = Study.paper(
        learner="svm,tree,forest,neighbors",
        param={"min_samples_leaf": (2, 4), "forest.max_features": ("sqrt",), "n_neighbors": (1, 2)},
    )
    svm, tree, forest, neighbors = study.learner.learners
    assert svm == GaussianSVM()
    assert tree.param == {"min_samples_leaf": (2, 4)}
    assert forest.param == {"max_features": ("sqrt",), "min_samples_leaf": (2, 4)}
    assert neighbors.param == {"n_neighbors": (1, 2)}
    table = Study.paper(
        learner="tree,forest", param=["min_samples_leaf=2,4"], forest={"param": {"max_features": 0.5}}
    )
    assert table.learner.learners[1].param == {"max_features": (0.5,), "min_samples_leaf": (2, 4)}
    assert study.replace(seed=1).learner == study.learner
    assert study.replace(learner="forest,svm").learner == Choice((forest, svm))
    for param, message in {
        "min_sample_leaf": "none of .* has it; did you mean min_samples_leaf?",
        "svm.C": "param 'C': of svm it takes solver, tolerance, max_iter; C is an option of its own",
        "forest.depth": "param 'depth' is not a parameter of RandomForestClassifier",
    }.items():
        with pytest.raises(InputError, match=message):
            Study.paper(learner="svm,tree,forest", param={param: (1,)})


def test_estimators_can_be_among_the_learners() -> None:
    text = Study.paper(learner="svm,sklearn.naive_bayes:BernoulliNB", C=(1, 10), param={"alpha": (1.0,)})
    listed = Study.paper(learner=["svm", BernoulliNB()], C=(1, 10), param={"alpha": (1.0,)})
    estimator = AnyEstimator(estimator=BernoulliNB(), param={"alpha": (1.0,)})
    assert text == listed == Study(learner=Choice((SVM, estimator), ("svm", "BernoulliNB")))
    assert text.learner.names == ("svm", "BernoulliNB")
    assert Study.paper(**text.options()) == text
    assert Study.from_json(text.to_json()) == text
    assert text.replace(BernoulliNB={"sample": 1}).learner.learners[1].sample == 1
    with pytest.raises(InputError, match="BernoulliNB is named twice"):
        Study.paper(learner=[BernoulliNB(), BernoulliNB(alpha=2.0)])
    assert Study.paper(learner=[BernoulliNB()]) == Study.paper(learner=BernoulliNB())


def test_other_options_are_kept_when_some_are_changed() -> None:
    study = Study.paper(learner="svm,centroid", C=(1, 10), shrinkage=2, seed=4)
    assert study.replace() == study
    assert study.replace(seed=5).learner == study.learner
    assert study.replace(C=7).learner == Choice((GaussianSVM(C=7), NearestCentroid((2.0,))))
    assert study.replace(learner="centroid,svm").learner == Choice((NearestCentroid((2.0,)), SVM))
    assert study.replace(learner="centroid") == Study.paper(learner="centroid", shrinkage=2, seed=4)
    assert study.replace(learner="svm").replace(learner="stump,svm").learner == Choice((DecisionStump(), SVM))
    assert LABELLED.replace(seed=1).learner == LABELLED.learner
    assert get_values(LABELLED.replace(learner="balanced").learner)["class_weight"] == "balanced"


def test_a_choice_in_json_holds_single_learners() -> None:
    content = Study().to_json()
    for inside, message in (
        ({"name": "jungle"}, "learner='jungle' is not known"),
        ({"name": "choice", "learners": []}, "learners: a choice cannot hold another one"),
        (3, "learner=3 is not a mapping"),
    ):
        with pytest.raises(InputError, match=message):
            Study.from_json(content | {"learner": {"name": "choice", "learners": [{"name": "svm"}, inside]}})

"""Study and Execution: what is hashed, what is refused, and which parts go together."""

import json
import tomllib
from dataclasses import dataclass, fields
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from decision_stump import DecisionStump
from nearest_centroid import NearestCentroid
from sklearn.naive_bayes import BernoulliNB

from ckcv_ray import KFold, Task, assess, plan, run
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.options import get_values, list_names
from ckcv_ray.core.resampling.complete import Complete, Rotation
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import LEARNERS, register
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.study.parts import Holdout, Paper, Race
from ckcv_ray.study.study import (
    SLOTS,
    Execution,
    Procedure,
    Study,
    format_toml,
    list_parts,
    read_toml,
    run_id,
)

DIGEST = "0" * 64

# One value for each option that differs from the default. An option added to a part needs its row here.
PERTURBED: dict[str, Any] = {
    "encode": "ordinal",
    "fill": "mean",
    "rare": 0.05,
    "balance": "down",
    "learner": "another",
    "C": (1.0, 10.0),
    "gamma": (0.5,),
    "scale": "none",
    "class_weight": "balanced",
    "param": {"tolerance": 1e-4, "max_iter": 99},
    "sample": 2,
    "estimator": {"class": "sklearn.naive_bayes:BernoulliNB"},
    "resampling": "rotation",
    "search": "budget",
    "effort": 99,
    "k": (3, 4, 5),
    "n_splits": 21,
    "criterion": "balanced",
    "delta": 0.1,
    "clip": 5.0,
    "certify": "holdout",
    "holdout_share": 0.2,
    "claim": ("vote",),
    "positive": "sick",
    "require": "sensitivity>=0.9",
    "accept": ("error<=0.3",),
    "subgroups": ("sex", "age:3"),
    "answer": "error<=0.05",
    "holdout_bound": "stevens",
    "holdout_where": "site=B",
    "seed": 1,
    "report_k": (3,),
    "exhaustive": True,
}
OF_PART = {
    "certify": {"seed": 9},
    "holdout_share": {"certify": "holdout"},
    "claim": {"certify": "holdout"},
    "positive": {"certify": "holdout", "claim": "sensitivity"},
    "require": {"certify": "holdout", "claim": "sensitivity,specificity"},
    "accept": {"certify": "holdout"},
    "subgroups": {"certify": "holdout"},
    "answer": {"certify": "holdout", "answer": "error<=0.1"},
    "holdout_bound": {"certify": "holdout"},
    "holdout_where": {"certify": "holdout"},
    "effort": {"search": "budget"},
    "clip": {"criterion": "clipped", "clip": 2.0},
    "sample": {"learner": "forest"},
    "estimator": {"learner": "sklearn.naive_bayes:GaussianNB"},
}
INSIDE = [  # of each value that is written inside another one: a study, and what else it has
    ({"learner": "ridge"}, {"param": {"alpha": (0.5,)}}),
    ({}, {"param": {"tolerance": 1e-4}}),
    ({}, {"param": {"max_iter": 99}}),
    ({"learner": "svm_nystroem"}, {"param": {"landmarks": 40}}),
    ({"learner": "forest"}, {"param": {"max_features": (0.5,)}}),
    ({"search": "budget"}, {"search": "budget:keep=0.5"}),
    ({"search": "budget"}, {"search": "budget:survivors=3"}),
    ({"search": "budget"}, {"search": "budget:least_splits=2"}),
    ({"criterion": "cost:a=1,b=2"}, {"criterion": "cost:a=3,b=0"}),
    ({"certify": "holdout", "require": "ppv:0.02>=0.3"}, {"require": "ppv:0.05>=0.3"}),
]
GROWING = {"effort"}  # may be raised in an existing run folder, and have no part in the run_id
FIXED = [name for name in PERTURBED if name not in GROWING]


def base(name: str) -> Study:
    """A study in which the option of that name can be changed alone."""
    return Study.paper(**OF_PART[name], delta=0.2) if name in OF_PART else Study()


@dataclass(frozen=True)
class AnotherSVM(GaussianSVM):
    name: ClassVar[str] = "another"


@pytest.fixture
def other_parts(monkeypatch):
    """A second learner with the same options."""
    monkeypatch.setitem(LEARNERS, "another", AnotherSVM)


ODD = [  # what is not in the tables above: several names, numbers of all digits, labels with any character
    {"resampling": "rotation", "search": "auto", "k": "auto", "seed": 10**30, "C": (1 / 3, 1e5)},
    {"class_weight": {"a, b=c": 1e-6, "ill": 3}, "criterion": "balanced", "delta": 1 / 3},
    {"criterion": 'cost:"a, b=c=0.1",d=0', "certify": "holdout", "holdout_share": 1 / 3},
    {"criterion": "mean_error", "search": "budget:keep=0.1,survivors=3,least_splits=2", "effort": 10**9},
    {"criterion": "clipped", "clip": 1 / 3, "learner": "ridge"},
    {"certify": "holdout", "claim": "vote,specificity,auc,ppv:0.02", "subgroups": ("age:3", "a, b:2")},
    {"certify": "holdout", "require": "npv:0.02>=0.9"},
    {"search": "auto", "exhaustive": True, "report_k": (3, 5)},
    {"learner": "svm,linear,forest", "C": "1,2"},
    {"learner": "all"},
    {"learner": "a,b", "a.learner": "tree", "b.learner": "tree", "a.param": {"max_depth": [1, 2]}},
    {"learner": "sklearn.svm:SVC", "param": ["kernel=poly,rbf", "C=loguniform:0.1:10"], "sample": 3},
    {"criterion": "cost:ill=5,wéll=1", "class_weight": "ill=2,wéll=1", "seed": "random"},
]


def test_the_table_of_perturbations_names_every_option():
    every = [part for slot in SLOTS for part in list_parts(slot).values()]
    parts = [part for part in every if part.__module__.startswith("ckcv_ray.")]  # none of another test's
    assert set(PERTURBED) == set(SLOTS) | {
        name for part in (Study, Race, *parts) for name in list_names(part)
    }
    assert all(base(name).options()[name] != value for name, value in PERTURBED.items())


@pytest.mark.usefixtures("other_parts")
def test_every_option_changes_the_run_id_and_no_two_alike():
    changed = [(base(name), {name: PERTURBED[name]}) for name in FIXED if name != "param"]
    changed += [(Study.paper(**asked, delta=0.2), others) for asked, others in INSIDE]
    ids = [run_id(study.replace(**others), DIGEST) for study, others in changed]
    bases = {run_id(study, DIGEST) for study, _ in changed}
    assert len({*bases, *ids}) == len(changed) + len(bases)


def test_what_may_grow_in_a_folder_has_no_part_in_the_run_id():
    for name in GROWING:
        few, many = base(name), base(name).replace(**{name: PERTURBED[name]})
        assert few != many
        assert run_id(few, DIGEST) == run_id(many, DIGEST)
        assert few.to_json() != many.to_json()
        assert few.to_json(fixed=True) == many.to_json(fixed=True)
        assert few.differences(many) == []
        assert set(few.options()) - set(few.options(fixed=True)) == {name}


@pytest.mark.usefixtures("other_parts")
@pytest.mark.parametrize("name", FIXED)
def test_differences_names_the_one_option_that_differs(name):
    other = base(name).replace(**{name: PERTURBED[name]})
    (line,) = base(name).differences(other)
    assert line.startswith(f"{name}: requested ")
    (back,) = other.differences(base(name))
    assert back.startswith(f"{name}: requested ")
    assert not other.differences(other)


def test_the_same_question_in_other_types_has_the_same_id():
    plain = Study.paper(C=(1.0, 10.0), gamma=(2.0,), k=(3, 4), delta=0.5, n_splits=5)
    typed = Study.paper(
        C=np.array([10, 1, 10]),
        gamma=[np.float32(2)],
        k=np.array([4, 3]),
        delta=np.float64(0.5),
        n_splits=np.int64(5),
    )
    written = Study.paper(C="1,10", gamma="2", k="3:4", delta=0.5, n_splits=5)
    parts = Study(GaussianSVM(C=[1, 10], gamma=2.0), Complete([3, 4], 5), criterion=MeanBound(0.5))
    for other in (typed, written, parts):
        assert other == plain
        assert run_id(other, DIGEST) == run_id(plain, DIGEST)
        assert hash(other) == hash(plain)


@pytest.mark.usefixtures("other_parts")
def test_a_study_survives_json_and_toml_and_is_made_of_its_options():
    studies = [Study.of(**asked) for asked in ODD]
    every = product(SLOTS["resampling"], SLOTS["certify"], SLOTS["search"])
    studies += [Study.paper(resampling=r, certify=certify, search=search) for r, certify, search in every]
    studies += [base(name).replace(**{name: PERTURBED[name]}) for name in FIXED]
    studies += [Study.paper(**asked).replace(**others) for asked, others in INSIDE]
    for study in studies:
        again = Study.from_json(json.loads(json.dumps(study.to_json(), allow_nan=False)))
        assert again == study
        assert run_id(again, DIGEST) == run_id(study, DIGEST)
        assert Study.paper(**study.options()) == Study.of(**tomllib.loads(format_toml(study))) == study
        assert study.replace() == Study().replace(**study.options()) == study
        assert not {field.name for field in fields(Execution)} & set(study.options())


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("odd", [None, "svm", {}, {"name": "unheard"}, {"name": 1}, {"n": "svm"}], ids=str)
def test_json_without_a_part_that_is_known_is_refused(slot, odd):
    with pytest.raises(InputError, match=f"^{slot}="):
        Study.from_json(Study().to_json() | {slot: odd})


@pytest.mark.usefixtures("other_parts")
def test_a_learner_that_is_registered_is_known_by_its_name(monkeypatch):
    monkeypatch.delitem(LEARNERS, "another")
    study = Study(learner=GaussianSVM(C=2.0))
    with pytest.raises(InputError, match="learner='another' is not known: choose from svm"):
        Study.paper(learner="another")
    with pytest.raises(InputError, match=r"learner=.* is not one of svm"):
        study.with_learner(AnotherSVM())
    assert register(AnotherSVM) is AnotherSVM
    again = Study.from_json(study.with_learner(AnotherSVM(C=2.0)).to_json())
    assert again.learner == AnotherSVM(C=2.0)
    assert again != study


@pytest.mark.parametrize("name", ["scaling", "K", ""])
def test_an_unknown_option_is_named_with_those_that_are_known(name):
    for make in (Study.of, Study().replace):
        with pytest.raises(InputError) as refused:
            make(**{"seed": 1, name: 1})
        text = str(refused.value)
        assert f"unknown option {name!r} of a study" in text
        assert all(option in text for option in PERTURBED)


MISPLACED = [
    (slot, other, name)
    for slot in SLOTS
    for other, part in list_parts(slot).items()
    for name in PERTURBED.keys() - {*SLOTS, "estimator", *list_names(part)}
    if any(name in list_names(kind) for kind in list_parts(slot).values())
]


@pytest.mark.parametrize(("slot", "other", "name"), sorted(MISPLACED))
def test_what_does_not_go_with_the_parts_chosen_names_both(slot, other, name):
    owners = [part for part, kind in list_parts(slot).items() if name in list_names(kind)]
    said = f"{name}={PERTURBED[name]!r} requires {slot} {' or '.join(owners)}, not {other}"
    if "param" in list_names(list_parts(slot)[other]):
        said += f"; parameters of {other} are given by param"
    for make in (Study.of, Study().replace):
        with pytest.raises(InputError) as refused:
            make(**{slot: other, name: PERTURBED[name]})
        assert str(refused.value) == said


def test_a_resampling_says_which_kind_of_study_it_is_for():
    """Nothing but folds that shrink with k are certified, and those belong to no procedure."""
    with pytest.raises(InputError, match="certify=paper requires resampling complete or rotation, not kfold"):
        Study(resampling=KFold(3))
    with pytest.raises(InputError, match=r"requires resampling complete or .* ckcv evaluate has"):
        Study.paper(resampling="nested_halves:4")
    with pytest.raises(InputError, match="resampling=rotation requires a certification, which ckcv run has"):
        Procedure.of(resampling="rotation")
    with pytest.raises(InputError, match=r"resampling=.* is not text such as kfold:10, or a Resampling"):
        Procedure(resampling=5)


def test_a_study_of_the_other_kind_is_refused():
    scored, certified = Procedure.of(learner="tree"), Study()
    X, y = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    for refused in (lambda: run(scored, X, y), lambda: plan(scored, X, y)):
        with pytest.raises(InputError, match="a procedure is computed by evaluate, and a study"):
            refused()
    with pytest.raises(InputError, match="a study is computed by run, and a procedure"):
        assess(certified, Task.of(X, y))


def test_replacing_a_part_keeps_the_options_that_the_new_one_has():
    study = Study.paper(C=(1,), k=(3, 4), n_splits=7, certify="holdout", claim="vote", seed=3)
    rotation = study.replace(resampling="rotation")
    assert rotation.resampling == Rotation((3, 4))
    assert rotation.certification == study.certification
    assert rotation.replace(resampling="complete").resampling == Complete((3, 4), 20)
    assert study.replace(certify="paper").certification == Paper()
    assert study.replace(certify="paper").replace(certify="holdout").certification == Holdout()


NOT_NUMBERS = [True, "1", None, [1], 1j, b"1"]
NOT_WHOLE = [True, "1.0", None, 1.0, nan]
HUGE = 10**400  # TOML and JSON know integers of any length
BAD_VALUES = [
    ("delta tolerance", [*NOT_NUMBERS], "=.*is not a number"),
    ("C gamma", [[1.0, value] for value in NOT_NUMBERS], "=.*is not a number"),
    ("n_splits max_iter seed", NOT_WHOLE, "=.*is not a whole number"),
    ("k report_k", [[3, value] for value in NOT_WHOLE], "=.*is not a whole number"),
    ("C gamma k report_k", [b"1", {}, np.array(3), Execution()], "=.*is not a sequence"),
    ("C gamma k report_k", [True, nan, "a", ""], "="),
    ("C gamma k", [()], " is empty"),
    ("C gamma", [[1.0, value] for value in (0, -0.0, -1e-9, inf, nan)], "=.*positive and finite"),
    ("C gamma", [[HUGE]], ""),
    ("delta tolerance", [HUGE], ""),
    ("delta tolerance", [0, 1.0, -0.1, inf, nan], r"=.*outside \(0, 1\)"),
    ("n_splits max_iter", [0, -5], "=.* is below 1"),
    ("seed", [-1], "=-1 is below 0"),
    ("exhaustive", [0, "yes", None], "=.*true or false"),
]


@pytest.mark.parametrize(("names", "values", "said"), BAD_VALUES, ids=str)
def test_a_value_that_cannot_be_is_refused_by_its_name(names, values, said):
    for name, value in product(names.split(), values):
        make = GaussianSVM if name in ("tolerance", "max_iter") else Study.paper
        with pytest.raises(InputError, match=f"^{name}{said}"):
            make(**{name: value})


@pytest.mark.parametrize(("given", "seconds"), [(60, 60.0), ("60", 60.0), ("1.5m", 90.0)])
def test_a_limit_on_fits_is_seconds_or_a_time(given: object, seconds: float) -> None:
    assert Execution(fit_timeout=given).fit_timeout == seconds  # type: ignore[arg-type]


SVM = GaussianSVM(C=(1.0, 10.0))
LABELLED = Study(
    learner=Choice((SVM, GaussianSVM(C=(1.0, 10.0), class_weight="balanced")), ("equal", "balanced"))
)


@pytest.mark.parametrize("named", ["svm, centroid", ["svm", "centroid"]])
def test_options_go_to_the_learners_that_have_them(named: Any) -> None:
    study = Study.paper(learner=named, C=(1, 10), shrinkage=(0.5,), k=(3, 5))
    assert study.learner == Choice((SVM, NearestCentroid((0.5,))))
    assert study.resampling.k == (3, 5)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"learner": "svm,"}, "learner='' is not known: choose from svm"),
        ({"learner": []}, r"learner=\[\] is not known: choose from svm"),
        ({"learner": "svm,centroid,svm"}, "learners: svm is named twice: leave one out"),
        ({"learner": "svm,centroid", "rules": "mean"}, "='mean' requires learner stump, not svm,centroid"),
        ({"learner": "svm,centroid", "shrink": 1}, "option 'shrink' of a study: .*did you mean shrinkage"),
        ({"learner": "svm,centroid", "svm": {"shrinkage": 1}}, "unknown option 'shrinkage' of svm"),
        ({"learner": "svm,centroid", "stump": {"rules": "mean"}}, "stump.rules='mean' requires learner st"),
        ({"learner": "svm,centroid", "svm": {"C": 1}, "svm.C": 2}, "svm.C is given twice"),
        ({"learner": ["a:b,c", "svm"], "a:b,c.learner": "tree"}, "labels='a:b,c': a label is text"),
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
    with pytest.raises(InputError, match=r"none of .* has it; did you mean min_samples_leaf\?"):
        Study.paper(learner="svm,tree,forest", param={"min_sample_leaf": (1,)})


def test_estimators_can_be_among_the_learners() -> None:
    text = Study.paper(learner="svm,sklearn.naive_bayes:BernoulliNB", C=(1, 10), param={"alpha": (1.0,)})
    listed = Study.paper(learner=["svm", BernoulliNB()], C=(1, 10), param={"alpha": (1.0,)})
    estimator = AnyEstimator(estimator=BernoulliNB(), param={"alpha": (1.0,)})
    assert text == listed == Study(learner=Choice((SVM, estimator), ("svm", "BernoulliNB")))
    assert tuple(text.learner.by_label) == ("svm", "BernoulliNB")
    assert Study.paper(**text.options()) == text
    assert Study.from_json(text.to_json()) == text
    assert text.replace(BernoulliNB={"sample": 1}).learner.learners[1].sample == 1
    with pytest.raises(InputError, match="BernoulliNB is named twice"):
        Study.paper(learner=[BernoulliNB(), BernoulliNB(alpha=2.0)])
    with pytest.raises(InputError, match=r"GaussianSVM\(\.\.\.\) is a learner as an object"):
        Study.paper(learner=GaussianSVM())
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
    learners = [{"name": "svm"}, {"name": "choice", "learners": []}]
    with pytest.raises(InputError, match="learners: a choice cannot hold another one"):
        Study.from_json(Study().to_json() | {"learner": {"name": "choice", "learners": learners}})

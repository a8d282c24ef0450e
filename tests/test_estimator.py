"""CKCVClassifier: scikit-learn's own checks, and that it says and does what the run does."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.utils.estimator_checks import (
    check_all_zero_sample_weights_error,
    check_sample_weights_list,
    check_sample_weights_not_an_array,
    check_sample_weights_not_overwritten,
    check_sample_weights_pandas_series,
    check_sample_weights_shape,
    parametrize_with_checks,
)

from ckcv_ray import CKCVClassifier, Execution, Study, clopper_pearson, load_run, run, verify
from ckcv_ray.errors import InputError
from ckcv_ray.study import parts as searches
from ckcv_ray.study.parts import Budget, Race

SMALL = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0)}


def small(**options) -> CKCVClassifier:
    return CKCVClassifier(**{"params": SMALL, "k": (3, 5), "n_splits": 5, **options})


NO_ZEROS = "weights are positive: a row of weight zero is to be left out"
NOT_OF_SVM = "the support vector machine uses no weights of rows"
OF_ZEROS = {
    "check_classifiers_one_label_sample_weights": NO_ZEROS,
    "check_sample_weight_equivalence_on_dense_data": NO_ZEROS,
}
OF_WEIGHTS = (
    check_sample_weights_pandas_series,
    check_sample_weights_not_an_array,
    check_sample_weights_list,
    check_all_zero_sample_weights_error,
    check_sample_weights_shape,
    check_sample_weights_not_overwritten,
)


def list_expected_failures(estimator: CKCVClassifier) -> dict[str, str]:
    """Return which checks the default learner, which uses no weights, fails, and why."""
    used = {check.__name__: NOT_OF_SVM for check in OF_WEIGHTS}
    used.pop("check_all_zero_sample_weights_error")  # zeros are refused first
    return OF_ZEROS | used


@pytest.mark.filterwarnings("ignore:nothing is claimed")  # of fewer than 20 rows
@parametrize_with_checks(
    [small(), small(rule="random", random_state=0)], expected_failed_checks=list_expected_failures
)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:nothing is claimed")
@pytest.mark.parametrize("check", OF_WEIGHTS)
def test_it_takes_weights_as_estimators_do(check):
    check("CKCVClassifier", small(learner="linear", params={"C": (1.0,)}, k=(3,)))


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(iris) -> CKCVClassifier:
    return small().fit(*iris)


def test_it_is_the_run(iris, fitted):
    X, y = iris
    result = run(Study.of(**SMALL, k=(3, 5), n_splits=5), X, y, execution=Execution("serial"))
    assert fitted.certificate_["claims"] == result.certificate.to_json()["claims"]
    assert fitted.best_k_ == result.k
    assert fitted.best_params_ == dict(result.setting)
    assert np.array_equal(fitted.predict(X), result.predict(X, by="refit"))
    assert fitted.error_bound_ == result.proven
    assert "Pipeline" in fitted.certificate_["condition"]
    assert fitted.score(X, y) == result.score(X, y)


@pytest.mark.parametrize(
    "options", [{"rule": "vote"}, {"learner": "linear", "params": {"C": (0.1, 1.0)}}], ids=["vote", "refit"]
)
def test_probabilities_and_decisions_agree_with_the_labels(options, iris):
    X, y = iris
    three, two = small(**options).fit(X, y), small(**options).fit(X[:100], y[:100])
    shares = three.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1)
    for values in (shares, three.decision_function(X)):
        assert np.array_equal(three.classes_[np.argmax(values, axis=1)], three.predict(X))
    assert np.array_equal(two.decision_function(X[:100]) > 0, two.predict(X[:100]) == 1)


def test_what_the_refitted_model_does_not_give_is_named_with_both_ways_out(iris, fitted):
    X, y = iris
    two = small().fit(X[:100], y[:100])
    assert two.decision_function(X).shape == (150,)
    for one, name in ((two, "predict_proba"), (fitted, "predict_proba"), (fitted, "decision_function")):
        assert not hasattr(one, name)
        with pytest.raises(AttributeError) as lacking:
            getattr(one, name)
        assert 'learner="linear", or rule="vote"' in str(lacking.value.__cause__)


@pytest.mark.parametrize(
    ("certify", "rule", "applied"),
    [
        ("paper", "auto", "vote"),
        ("paper", "random", "random"),
        ("holdout", "auto", "refit"),
        ("holdout", "vote", "held vote"),
        ("holdout", "refit", "refit"),
    ],
)
def test_the_bound_is_about_the_rule(certify, rule, applied, iris):
    X, y = iris
    one = small(certify=certify, rule=rule, k=(3,)).fit(X, y)
    proven = one.result_.proven
    expected = {"vote": min(1.0, 2 * proven), "random": proven}
    if (held := one.result_.problem.take_held_rows()) is not None:
        wrong = int(np.sum(one.predict(held.X) != one.classes_[held.y]))
        expected["held vote"] = expected["refit"] = clopper_pearson(wrong, len(held.y), one.delta)
    assert one.error_bound_ == expected[applied]
    assert hasattr(one, "predict_proba") == (applied in ("vote", "held vote"))
    assert one.score(X, y) > 0.8


def test_rows_are_held_out_by_their_number_alone(iris):
    X, y = iris
    one = small(k=(3,), n_splits=3).fit(X[::7][:20], y[::7][:20])
    assert len(one.result_.problem.held) == 10
    few, labels = X[::8], y[::8]
    with pytest.warns(UserWarning, match="nothing is claimed: 19 rows are too few to hold some out") as told:
        one.fit(few, labels)
    assert len(told) == 1
    assert (one.error_bound_, one.certificate_["claims"], one.certificate_["proven"]) == (1.0, [], None)
    assert one.predict_proba(X).shape == one.decision_function(X).shape == (150, 3)
    assert one.score(few, labels) > 0.5
    with pytest.raises(InputError, match="requires that rows are held out: of 19 rows none are"):
        small(rule="refit").fit(few, labels)


def test_the_candidates_are_listed_as_by_gridsearchcv(iris):
    X, y = iris
    one = small().fit(X, y)
    found = one.cv_results_
    n = len(found["params"])
    assert n == 2 * 3 * 2
    scores = np.array([found[f"split{i}_test_score"] for i in range(5)])
    complete = ~np.isnan(scores).any(axis=0)
    assert complete.any()
    assert np.allclose(found["mean_test_score"][complete], scores[:, complete].mean(axis=0))
    assert np.allclose(found["std_test_score"][complete], scores[:, complete].std(axis=0))
    assert np.isnan(found["mean_test_score"][~complete]).all()
    assert found["rank_test_score"].min() == 1
    assert (found["rank_test_score"][~complete] > found["rank_test_score"][complete].max()).all()
    at = found["params"].index({**one.best_params_, "k": one.best_k_})
    assert complete[at]
    assert found["param_k"][at] == one.best_k_ == one.result_.ensemble.members[0].k
    assert one.result_.problem.n_evaluations == 5 * n


def test_a_fitted_one_is_saved_as_a_run(tmp_path, iris, fitted):
    fitted.save(tmp_path / "run")
    assert not verify(tmp_path / "run", rerun=True).differences
    again = load_run(tmp_path / "run")
    assert again.certificate.to_json()["claims"] == fitted.certificate_["claims"]
    assert again.execution["evaluations"]["computed"] == fitted.result_.execution["evaluations"]["computed"]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"rule": "best"}, "rule='best' is not known: choose from auto, vote, random, refit"),
        ({"rule": "refit", "certify": "paper"}, "rows are held out: certify='paper' holds none out"),
        ({"random_state": np.random.RandomState(0)}, "is not a whole number"),
        ({"params": {"C": (1.0,), "gama": (1.0,)}}, "gama"),
    ],
)
def test_what_is_wrong_is_said(options, messages, iris):
    with pytest.raises(InputError) as refused:
        small(**options).fit(*iris)
    assert messages in str(refused.value)


def test_parameters_reach_every_learner_that_has_them(iris):
    X, y = iris
    both = CKCVClassifier(learner="svm,linear", params={"C": (1.0,), "gamma": (0.1,)}, k=(3,), n_splits=3)
    results = both.fit(X, y).cv_results_
    assert set(results["param_C"].compressed()) == {1.0}
    assert set(results["param_gamma"].compressed()) == {0.1}
    assert np.ma.getmaskarray(results["param_gamma"]).any()
    for value in (1.0, "log:-1:1:3", [0.1, 1.0]):
        assert CKCVClassifier(params={"C": value, "gamma": [0.1]}, k=(3,), n_splits=3).fit(X, y)


@pytest.mark.parametrize("label", [None, 1])
def test_labels_that_cannot_be_sorted_are_refused(label):
    with pytest.raises(InputError, match="labels of one type, without gaps: '<' not supported"):
        CKCVClassifier().fit(np.arange(24.0)[:, None], np.array(["a", label, "b"] * 8, object))


@pytest.fixture(scope="module")
def drawing():
    """A classifier that draws members of very different errors, and 400 rows that it has not seen."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(16,)))
    X, y = rng.normal(size=(436, 2)), rng.integers(2, size=436)
    X[:, 0] += 1.5 * y
    one = CKCVClassifier(learner="tree", params={"max_depth": (2,)}, k=(3,), n_splits=5, rule="random")
    return one.set_params(random_state=0).fit(X[:36], y[:36]), X[36:], y[36:]


def test_rows_predicted_one_by_one_have_the_error_of_members_drawn_for_each(drawing):
    """And not that of one member, as where every call begins the same draws."""
    fitted, X, y = drawing
    one = pickle.loads(pickle.dumps(fitted))
    wrong = one.ensemble_.predict(X)[0] != y  # of each member, on each row
    share = wrong.mean(axis=0)
    deviation = np.sqrt(np.sum(share * (1 - share)))
    alone = [np.abs(np.sum(member) - np.sum(share)) > 4 * deviation for member in wrong]
    errors = np.sum([one.predict(row[None])[0] != label for row, label in zip(X, y, strict=True)])
    assert np.abs(errors - np.sum(share)) < 3 * deviation
    assert alone[fitted.ensemble_.random(X[:1], 0).member[0]]  # the one that every call would draw first
    again, parts = copy.deepcopy(fitted), (X[:1], X[1:2], X[2:9], X[9:])
    few_at_a_time = np.concatenate([again.predict(part) for part in parts])
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), few_at_a_time)


def test_many_rows_are_searched_within_a_budget_where_a_race_is_too_much(monkeypatch):
    """And cv_results_ has no score of a part of a split's rows."""
    X, y = make_classification(1500, 4, flip_y=0.2, random_state=0)  # a tenth cannot be told apart
    params = {"var_smoothing": np.logspace(-9, 1, 60).tolist()}
    model = CKCVClassifier(learner="naive_bayes", params=params, k=(3, 5), random_state=1)
    exact = clone(model).fit(X, y)
    monkeypatch.setattr(searches, "RACE_WORK", 0.0)
    one = model.fit(X, y)
    problem, result = one.result_.problem, one.result_
    assert isinstance(exact.result_.study.search, Race)
    assert isinstance(result.study.search, Budget)
    assert result.study.certify == exact.result_.study.certify == "holdout"
    held = problem.take_held_rows()
    wrong = int(np.sum(one.predict(held.X) != one.classes_[held.y]))
    assert one.error_bound_ == clopper_pearson(wrong, len(held.y), 0.05)

    on_parts = result.records["size"] >= len(problem.sizes)
    assert on_parts.any()
    found = one.cv_results_
    scores = np.array([found[f"split{i}_test_score"] for i in range(20)])
    selected = result.records[~result.records["estimate"] & ~on_parts]
    assert np.sum(~np.isnan(scores)) == len(np.unique(selected[["size", "split", "path", "step"]]))
    winner = found["params"].index({**one.best_params_, "k": one.best_k_})
    assert found["mean_test_score"][winner] == scores[:, winner].mean()


@pytest.mark.parametrize("dtype", ["float32", "bool", "object"])
def test_labels_go_back_in_their_type(dtype: str) -> None:
    y = np.repeat(["2", "10"], 20).astype(int)
    y = (y == 10 if dtype == "bool" else y.astype(str) if dtype == "object" else y).astype(dtype)
    model = CKCVClassifier(learner="tree", k=3, n_splits=2).fit(np.arange(40.0)[:, None], y)
    assert model.classes_.dtype == model.predict([[0.0]]).dtype == y.dtype
    assert np.mean(model.predict(np.arange(40.0)[:, None]) == y) > 0.9

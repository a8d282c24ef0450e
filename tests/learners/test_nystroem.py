"""The SVM on Nyström features: what is approximated, what it depends on, what is refused."""

import numpy as np
import pytest
from learner_contract import clouds
from sklearn.kernel_approximation import Nystroem

from ckcv_ray import InputError, Study, Task
from ckcv_ray.learners.nystroem import NystroemBlock, NystroemModel, NystroemSVM, NystroemTrainer
from ckcv_ray.study.problem import Problem

GAMMA = 0.2
TRAIN, SCORE = (np.flatnonzero(np.arange(60) % 4 // 2 == part) for part in (0, 1))


def make_trainer(**changes: object) -> NystroemTrainer:
    return NystroemSVM(**{"C": (0.1, 1.0, 10.0), "gamma": (GAMMA,), "landmarks": 8, **changes}).trainer  # type: ignore[arg-type]


def prepare(task: Task, train: np.ndarray = TRAIN, **changes: object) -> NystroemBlock:
    return make_trainer(**changes).prepare(task, train, SCORE)


def fit(task: Task, train: np.ndarray = TRAIN, **changes: object) -> NystroemModel:
    return prepare(task, train, **changes).fit(0, 3).model(2)


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_features_are_those_of_scikit_learn(scale: str) -> None:
    """Up to a rotation, which no product of two rows depends on."""
    task = clouds(60, 2)
    landmarks = prepare(task, scale=scale).landmarks
    Z = landmarks.compute_features(task.X, SCORE, GAMMA, landmarks.find_normalisation(GAMMA))
    scaled = landmarks.scaling.apply(task.X)
    theirs = Nystroem(gamma=GAMMA, n_components=8).fit(scaled[landmarks.rows]).transform(scaled[SCORE])
    np.testing.assert_allclose(Z[:, :-1] @ Z[:, :-1].T, theirs @ theirs.T, rtol=0, atol=1e-12)
    assert np.all(Z[:, -1] == 1.0)


def test_landmarks_depend_on_the_numbers_of_the_training_rows_alone() -> None:
    task = clouds(60, 2)
    drawn = prepare(task).landmarks.rows
    assert len(np.unique(drawn)) == 8
    assert set(drawn.tolist()) <= set(TRAIN.tolist())
    other = Task.of(task.X[::-1] * 3, 1 - task.y)
    assert prepare(other, C=(5.0,), gamma=(9.0,)).landmarks.rows.tolist() == drawn.tolist()
    assert make_trainer().prepare(task, TRAIN, SCORE[:3]).landmarks.rows.tolist() == drawn.tolist()
    assert prepare(task, TRAIN[1:]).landmarks.rows.tolist() != drawn.tolist()


def test_every_training_row_is_drawn_equally_often() -> None:
    """Each of 30 rows is one of 8 in 400 draws with probability 8 / 30: 5.2 deviations are allowed."""
    task, counts = clouds(500, 2), np.zeros(30)
    for start in range(400):
        rows = np.arange(start, start + 30)
        counts[prepare(task, rows).landmarks.rows - start] += 1
    expected, deviation = 400 * 8 / 30, np.sqrt(400 * 8 / 30 * 22 / 30)
    assert np.all(np.abs(counts - expected) < 5.2 * deviation)


def test_repeated_training_rows_count_repeatedly_and_are_drawn_once() -> None:
    task = clouds(60, 2)
    repeated = np.sort(np.append(TRAIN, TRAIN[:10]))
    landmarks = prepare(task, repeated, landmarks=30).landmarks
    assert landmarks.rows.tolist() == TRAIN.tolist()
    assert landmarks.scaling.centre.tolist() == task.X[repeated].mean(axis=0).tolist()
    with pytest.raises(ValueError, match="31 landmarks cannot be drawn from 30 training rows"):
        prepare(task, repeated, landmarks=31)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"landmarks": 0}, "landmarks=0"),
        ({"landmarks": 10_001}, "landmarks=10001"),
        ({"landmarks": "many"}, "landmarks='many'"),
        ({"C": (0.0,)}, "C"),
        ({"scale": "robust"}, "scale='robust'"),
        ({"C": (1e300,), "class_weight": {0: 1e10}}, "the product of C and a weight"),
    ],
)
def test_bad_options_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NystroemSVM(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("certify", "fewest"), [("paper", 20), ("holdout", 10)])
def test_more_landmarks_than_training_rows_are_refused_before_any_fit(certify: str, fewest: int) -> None:
    task = clouds(60, 2)
    study = Study.of(learner="svm_nystroem", k=(3, 5), n_splits=2, certify=certify)
    allowed = Problem.of(study.replace(param={"landmarks": fewest}), task)
    assert min(size.n_train for size in allowed.sizes) == fewest
    with pytest.raises(InputError, match=rf"landmarks={fewest + 1}: .* may be only {fewest}: give at most"):
        Problem.of(study.replace(param={"landmarks": fewest + 1}), task)

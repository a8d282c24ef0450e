"""The SVM on Nyström features: what is approximated, what it depends on, what is refused."""

import numpy as np
import pytest
from learner_contract import clouds
from sklearn.kernel_approximation import Nystroem

from ckcv_ray import InputError, Study, Task
from ckcv_ray.core.measures import ZERO_ONE
from ckcv_ray.learners import nystroem
from ckcv_ray.learners.base import STATUSES, Status
from ckcv_ray.learners.nystroem import BATCH, NystroemBlock, NystroemModel, NystroemSVM, NystroemTrainer
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


def test_distances_of_columns_far_from_zero_keep_their_digits() -> None:
    """Without scaling too: |x|^2 is then 10^12 times as large as a distance."""
    task = clouds(60, 2)
    far = Task.of(task.X + 1e6, task.y)
    near, moved = (fit(rows, scale="none") for rows in (task, far))
    np.testing.assert_allclose(moved.predict(far.X).score, near.predict(task.X).score, atol=1e-6)


def test_equal_landmarks_are_of_one_direction() -> None:
    """A kernel matrix of rank 3 has 3 features, and any number of rows may be equal."""
    X = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 1.0]])[np.arange(60) % 3]
    task = Task.of(X, (np.arange(60) % 3 == 1).astype(int))
    block = prepare(task, landmarks=12)
    assert block.landmarks.find_normalisation(GAMMA).shape == (12, 3)
    assert block.fit(0, 3).totals(ZERO_ONE).sum() == 0


def test_values_do_not_depend_on_how_rows_are_batched() -> None:
    task = clouds(2 * BATCH + 37, 3)
    model = fit(task)
    every = model.landmarks.evaluate(task.X, np.arange(task.n), model.gamma, model.dual_coef, model.offset)
    for rows in (np.arange(BATCH - 3, BATCH + 5), np.arange(task.n)[::-7]):
        some = model.landmarks.evaluate(task.X, rows, model.gamma, model.dual_coef, model.offset)
        assert some.tobytes() == every[rows].tobytes()
    alone = model.landmarks.evaluate(
        task.X, np.arange(9), model.gamma, model.dual_coef[1:2], model.offset[1:2]
    )
    assert alone[:, 0].tobytes() == every[:9, 1].tobytes()


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


def test_weights_of_classes_are_factors_of_their_losses() -> None:
    """A weight of 3 is three copies of a row, where the scaling does not see copies."""
    task = clouds(60, 2)
    copies = np.concatenate([TRAIN, *[TRAIN[task.y[TRAIN] == 1]] * 2])
    block = prepare(task, scale="none", class_weight={1: 3.0})
    copied = block._replace(trainer=make_trainer(scale="none"), train=copies)
    weighted, repeated = (one.fit(0, 3).model(2).predict(task.X).score for one in (block, copied))
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)
    assert not np.allclose(weighted, fit(task, scale="none").predict(task.X).score, atol=1e-3)


def test_a_fit_that_is_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystroem, "MAX_STEPS", 1)
    fits = prepare(clouds(60, 2)).fit(0, 3)
    assert STATUSES[fits.status[2]] is Status.NOT_CONVERGED


def test_a_class_without_training_rows_is_never_predicted() -> None:
    task = clouds(60, 3)
    for number in range(3):
        model = fit(task, TRAIN[task.y[TRAIN] != number])
        assert number not in model.predict(task.X).label
        alone = fit(task, TRAIN[task.y[TRAIN] == number])
        assert set(alone.predict(task.X).label.tolist()) == {number}


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


def test_groups_have_the_rows_of_the_smallest_of_them() -> None:
    task, sizes = clouds(60, 2), [1, 1, 1, 1, 1, 5, 10, 20, 20]
    grouped = Task.of(task.X, task.y, groups=np.repeat(np.arange(9), sizes))
    study = Study.of(learner="svm_nystroem", k=(3,), n_splits=2, certify="paper")
    Problem.of(study.replace(param={"landmarks": 3}), grouped)  # 3 of 9 groups train
    with pytest.raises(InputError, match=r"landmarks=4: .* may be only 3"):
        Problem.of(study.replace(param={"landmarks": 4}), grouped)

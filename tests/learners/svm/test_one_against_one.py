"""More than two classes: votes by their definition, labels and decisions of scikit-learn's SVC, the table."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.svm import SVC

from ckcv_ray import GaussianSVM, Task
from ckcv_ray.core.draws import Draws
from ckcv_ray.core.measures import UNDECIDED as NEITHER
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.core.resampling.complete import Complete
from ckcv_ray.learners.base import STATUSES, Status
from ckcv_ray.learners.steps import compute_weights
from ckcv_ray.learners.svm import blocks, kernels, trainer
from ckcv_ray.learners.svm.model import elect, list_pairs
from ckcv_ray.learners.svm.trainer import MORE_CLASSES, SVMCodec

COSTS = (0.01, 0.1, 1.0, 10.0, 1000.0)
GAMMAS = (1e-3, 0.01, 0.1, 1.0)
OPEN = [0.0, -0.0, 1e-9, -1e-9, 1e-10]


def clouds(n, n_classes, seed, spread=1.2):
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, n_classes)))
    y = rng.integers(0, n_classes, n)
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    return Task.of(rng.normal(size=(n, 3)) + spread * rng.normal(size=(n_classes, 3))[y], y)


TASKS = {
    "iris": Task.of(*datasets.load_iris(return_X_y=True)),
    "part of digits": Task.of(*(part[:500] for part in datasets.load_digits(return_X_y=True))),
    "three clouds": clouds(120, 3, 1),
    "five clouds": clouds(150, 5, 2),
}


def block_of(learner, task, train, score):
    return learner.trainer.prepare(learner.trainer.share(task), train, score)


def a_split(task):
    (size,) = Complete((4,)).fold_sizes(task.n)
    return Complete((4,), 4).split(Strata(task.n), size, 0, Draws(0))


def winner_of(n_classes, f):
    """The winner by LIBSVM's count, given each pair's decision value, none of which is open."""
    votes = np.zeros(n_classes, int)
    for (first, second), value in zip(combinations(range(n_classes), 2), f, strict=True):
        votes[second if value > 0 else first] += 1
    return int(np.argmax(votes))


def by_definition(n_classes, f):
    """The winner, or -1 if some way to decide the open pairs gives another one than another way."""
    ways = product(*([-1.0, 1.0] if abs(value) <= 1e-9 else [value] for value in f))
    winners = {winner_of(n_classes, way) for way in ways}
    return winners.pop() if len(winners) == 1 else NEITHER


@settings(max_examples=limit_examples(150), deadline=None)
@given(st.integers(2, 5), st.integers(0, 10**6), st.floats(0, 0.6))
def test_a_row_is_undecided_only_if_open_pairs_could_change_its_winner(n_classes, seed, share):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(len(list_pairs(n_classes)), 12))
    f = np.where(rng.random(f.shape) < share, rng.choice(OPEN, f.shape), f)
    expected = [by_definition(n_classes, column) for column in f.T]
    assert elect(n_classes, f).tolist() == expected


def is_determined(model, weights):
    """Whether every pair has a support vector that is between its bounds by more than rounding.

    It decides the offset. Without one the offset may be any of an interval: its middle, or an end if rounding
    keeps a row from its bound.
    """
    for (first, second), dual_coef in zip(list_pairs(model.n_classes), model.dual_coef, strict=True):
        bound = model.C * np.where(dual_coef > 0, weights[second], weights[first])
        size = np.abs(dual_coef)
        if not np.any(np.minimum(size, bound - size) > 1e-6 * bound):
            return False
    return True


def theirs(model, task, train, class_weight):
    X = model.scaling.apply(task.X[train])
    options = {"tol": 1e-8, "class_weight": class_weight, "decision_function_shape": "ovo"}
    return SVC(C=model.C, gamma=model.gamma, **options).fit(X, task.y[train])


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 2: 0.2}], ids=str)
def test_labels_and_decisions_are_those_of_svc(name, class_weight):
    task = TASKS[name]
    learner = GaussianSVM(COSTS, GAMMAS, tolerance=1e-8, class_weight=class_weight).canonical(task)
    split = a_split(task)
    block, compared = block_of(learner, task, split.train, split.select), 0
    weights = compute_weights(learner.class_weight, task.classes, task.y[split.train])
    for path in range(len(GAMMAS)):
        fits = block.fit(path, len(COSTS))
        labels = fits.predict()
        for step in range(len(COSTS)):
            model = fits.model(step)
            if not is_determined(model, weights):
                continue
            svc = theirs(model, task, split.train, class_weight)
            new = model.scaling.apply(task.X[split.select])
            assert np.array_equal(labels[step], svc.predict(new))
            ((_, f),) = model.decisions(task.X[split.select])
            np.testing.assert_allclose(f.T, -svc.decision_function(new), atol=2e-3)
            compared += 1
    assert compared >= len(COSTS) * len(GAMMAS) // 3


@pytest.mark.parametrize("missing", [(0,), (3,), (0, 2), (0, 1, 3)], ids=str)
def test_without_some_classes_it_is_the_svc_of_the_others(missing):
    task, class_weight = clouds(120, 4, 5), "balanced"
    learner = GaussianSVM((0.3, 5.0), (0.2,), tolerance=1e-8, class_weight=class_weight)
    split = a_split(task)
    train = split.train[~np.isin(task.y[split.train], missing)]
    fits = block_of(learner, task, train, split.select).fit(0, 2)
    for step in range(2):
        model = fits.model(step)
        found = model.predict(task.X[split.select]).label
        assert np.array_equal(found, fits.predict()[step])
        if len(missing) == 3:
            assert set(found.tolist()) == {2}
        else:
            svc = theirs(model, task, train, class_weight)
            assert np.array_equal(found, svc.predict(model.scaling.apply(task.X[split.select])))


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_however_the_kernel_is_held_no_bit_changes(scale, monkeypatch):
    """Distances that are shared or not, a matrix or strips of it, votes in any number of parts."""
    task, learner = clouds(200, 4, 6), GaussianSVM((0.3, 5.0), (0.05, 0.5), scale, tolerance=1e-6)
    split, shared = a_split(task), learner.trainer.share(task)
    assert (shared[1] is None) == (scale == "standard")

    def fit(shared=shared):
        block = learner.trainer.prepare(shared, split.train, split.select)
        every = [block.fit(path, 2) for path in range(2)]
        assert isinstance(block.kernel, blocks.Dense if blocks.DENSE_BYTES else blocks.Points)
        models = [fits.model(step) for fits in every for step in range(2)]
        return models, np.stack([fits.predict() for fits in every]), every

    models, labels, known = fit()

    def check(again, others, _):
        assert all(map(learner.codec.same, models, again))
        assert np.array_equal(labels, others)

    check(*fit((task, None)))
    for most in (1, 70, 10 * (len(split.select) - 1)):
        monkeypatch.setattr(trainer, "MAX_VALUES", most)
        check(*fit())
    monkeypatch.setattr(blocks, "DENSE_BYTES", 0)
    monkeypatch.setattr(kernels, "STRIP", 500)
    check(*fit())
    monkeypatch.setattr(blocks, "WHOLE_BYTES", 0)  # solved on the points, to the same tolerance
    _, others, found = fit()
    assert np.array_equal(labels, others)
    for one, other in zip(found, known, strict=True):
        for a, b in zip(one.pairs, other.pairs, strict=True):
            np.testing.assert_allclose(a.b, b.b, atol=1e-3)


def test_a_fit_has_not_converged_if_a_pair_has_not():
    task = clouds(120, 3, 11, spread=0.2)
    split = a_split(task)
    fits = block_of(GaussianSVM((1.0,), (1.0,), max_iter=9), task, split.train, split.select).fit(0, 1)
    converged = [bool(pair.converged[0]) for pair in fits.pairs]
    assert STATUSES[fits.status[0]] is (Status.CONVERGED if all(converged) else Status.NOT_CONVERGED)
    assert not all(converged)
    assert fits.n_iter[0] == sum(pair.n_iter[0] for pair in fits.pairs)
    plenty = block_of(GaussianSVM((1.0,), (1.0,)), task, split.train, split.select).fit(0, 1)
    assert STATUSES[plenty.status[0]] is Status.CONVERGED


def of_first(change):
    """Change what a row says of the first pair of classes."""
    return lambda pairs: [change(pairs[0]), *pairs[1:]]


ORDER = "ascending order, with one coefficient each"
WRONG = [
    *((name, lambda pairs: pairs[:-1], "each of 6 pairs") for name in ("support", "dual_coef", "offset")),
    *((name, lambda numbers: [*numbers, 1.0], "do not have 3 features") for name in ("centre", "scale")),
    ("support", of_first(lambda rows: rows[::-1]), ORDER),
    ("support", of_first(lambda rows: [*rows[:-1], 80]), "out of bounds"),
    ("dual_coef", of_first(lambda numbers: numbers[1:]), ORDER),
    ("dual_coef", of_first(lambda numbers: [np.inf, *numbers[1:]]), "not finite"),
    ("centre", lambda numbers: [np.inf] * 3, "not finite"),
    *((name, lambda number: np.inf, "not finite") for name in ("C", "gamma")),
    ("C", lambda number: 0.0, "positive"),
    ("gamma", lambda number: -1.0, "positive"),
    ("scale", lambda numbers: [0.0] * 3, "positive"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_row_that_is_no_model_of_the_task_is_refused(name, change, message):
    task, rows = clouds(80, 4, 12), np.arange(60)
    model = block_of(GaussianSVM((2.0,), (0.4,)), task, rows, rows[:1]).fit(0, 1).model(0)
    (row,) = SVMCodec().table([model], task).to_pylist()
    with pytest.raises((ValueError, IndexError), match=message):
        SVMCodec().from_table(pa.Table.from_pylist([row | {name: change(row[name])}], MORE_CLASSES), task)

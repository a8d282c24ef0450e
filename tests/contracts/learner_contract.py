"""What every learner has to do, as a test suite that can be run on any learner.

    from learner_contract import LearnerContract

    class TestMine(LearnerContract):
        learner = Mine(...)     # short lists of options, so that each test is quick
        task = Task.of(X, y)    # about 30 rows, with as many classes as it can learn

The fixture ``ray_session`` connects to Ray: tests/conftest.py has one. How workers find the module of a
learner is in docs/contributing/extending.md.
"""

import io
import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from moved import last_place, more, moved
from numpy.typing import NDArray
from pyarrow import parquet

from ckcv_ray.core.draws import Draws
from ckcv_ray.core.measures import ZERO_ONE, Kind, Measure, Output, ZeroOne
from ckcv_ray.core.options import get_values, options
from ckcv_ray.core.resampling.base import Strata
from ckcv_ray.core.resampling.complete import Complete
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import evaluate
from ckcv_ray.errors import Classes
from ckcv_ray.learners.base import LEARNERS, STATUSES
from ckcv_ray.learners.ensemble import MEMBER_COLUMNS, Ensemble, Member, judge, to_pickles
from ckcv_ray.records.candidates import FIGURES, SIZE_COLUMNS
from ckcv_ray.records.record import Outcome
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import SLOTS, Execution, Study
from ckcv_ray.tables.task import Task

FILES = (
    "candidates.parquet",
    "certificate.json",
    "study.json",
    "data.parquet",
    "ensemble/models.parquet",
    "ensemble/model-00000.pkl",
)
OTHER_COLUMNS = {"k", "path", "step", *SIZE_COLUMNS, *dict(FIGURES)}
SIZES, ROUNDING = (100, 200, 400), 1e-9


class Predicted(ZeroOne):
    """A measure that no learner knows: how often each class is predicted."""

    def totals(self, y: Classes, predicted: Classes, n_classes: int) -> NDArray[np.int64]:
        """Count predictions; see ``Measure``."""
        return np.stack([np.sum(predicted == c, axis=-1) for c in range(n_classes)], axis=-1)


PREDICTED = Predicted()


class Unruly(SerialBackend):
    """Evaluates batches in random order, path by path, and returns some outcomes twice."""

    window = 5

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def wait(self) -> list[Outcome]:
        self.queue.rotate(int(self.rng.integers(len(self.queue))))
        units = [unit._replace(paths=(path,)) for unit in self.queue.popleft().units for path in unit.paths]
        outcomes = [evaluate(self.inputs, [units[i]]) for i in self.rng.permutation(len(units))]
        return [*outcomes, outcomes[0]]


def clouds(n: int, n_classes: int, d: int = 3, seed: int = 0) -> Task:
    """Return overlapping clouds with equally many rows of each class."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, n_classes, d)))
    y = np.arange(n) % n_classes
    return Task.of(rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y], y)


def check_rounding(learner: Any, task: Task, model: Any) -> None:
    """Models whose numbers are moved by a unit in the last place are the same with rounding, others never."""
    same = learner.codec.same
    rounded, other = (moved(learner, task, model, by) for by in (last_place, more))
    assert same(model, moved(learner, task, model, lambda values: values))
    assert not same(model, rounded)
    for one, two in ((model, rounded), (rounded, model)):
        assert same(one, two, ROUNDING)
    for one, two in ((model, other), (other, model)):
        assert not same(one, two, ROUNDING)


def same_files(one: Path, other: Path) -> bool:
    """Return whether two run folders hold the same result, in every bit."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


class ShortContract:
    """The tests of what each learner does by itself: names, JSON, paths, totals, tables and checks of models.

    Enough for a learner that shares the rest of its code with one that passes ``LearnerContract``.
    """

    learner: Any
    task: Task

    def test_it_is_known_by_its_name(self) -> None:
        assert LEARNERS[self.learner.name] is type(self.learner)
        assert self.task.target.kind in self.learner.kinds <= set(Kind)

    def test_its_names_do_not_clash_with_others(self) -> None:
        others = [part for slot in SLOTS if slot != "learner" for part in SLOTS[slot].values()]
        taken = {name for part in (*others, Study) for name in options(part)} | set(SLOTS)
        assert not taken & set(options(self.learner))
        assert not OTHER_COLUMNS & set(self.learner.space.settings())
        assert not set(MEMBER_COLUMNS.names) & set(self.learner.codec.columns(self.task).names)

    def test_it_round_trips_through_json_and_pickle(self) -> None:
        content = json.loads(json.dumps(Study(learner=self.learner).to_json(), allow_nan=False))
        assert Study.from_json(content).learner == self.learner
        assert type(self.learner)(**get_values(self.learner)) == self.learner
        assert pickle.loads(pickle.dumps(self.learner)) == self.learner

    def test_a_fit_does_not_depend_on_later_steps(self) -> None:
        for path, length in enumerate(self.learner.space.lengths):
            full = self.block().fit(path, length)
            assert len(full.status) == len(full.n_iter) == length
            for stop in range(1, length + 1):
                part = self.block().fit(path, stop)
                for name in ("status", "n_iter"):
                    assert np.array_equal(getattr(part, name), getattr(full, name)[:stop])
                assert np.array_equal(part.totals(ZERO_ONE), full.totals(ZERO_ONE)[:stop])
                assert self.learner.codec.same(part.model(stop - 1), full.model(stop - 1))
            assert set(np.asarray(full.status).tolist()) <= set(range(len(STATUSES)))
            assert np.all(np.asarray(full.n_iter) >= 0)

    def test_totals_are_those_of_its_models(self) -> None:
        for measure in (ZERO_ONE, PREDICTED):
            self.check_totals(*self.split(), measure)

    def test_a_class_may_be_missing_from_the_training_rows_or_the_scored_ones(self) -> None:
        train, score = self.split()
        for number in range(self.task.n_classes):
            few_train, few_score = (rows[self.task.y[rows] != number] for rows in (train, score))
            self.check_totals(train, few_score)
            self.check_totals(few_train, score)
            models = self.models(few_train)
            assert all(map(self.learner.codec.same, self.stored(models), models))

    def test_its_scores_rank_rows_of_two_classes_if_it_says_so(self) -> None:
        if Output.RANK not in self.learner.outputs or self.task.n_classes > 2:
            return
        for model in self.models():
            predicted = model.predict(self.task.X)
            low, high = (predicted.score[predicted.label == c] for c in (0, 1))
            assert not np.isnan(predicted.score).any()
            assert low.max(initial=-np.inf) <= high.min(initial=np.inf)

    def test_its_models_round_trip_through_parquet(self) -> None:
        models = list(self.models())
        again = self.stored(models)
        for model, other, at in zip(models, again, self.positions(), strict=True):
            assert self.learner.codec.same(model, other)
            assert self.learner.codec.setting(other) == self.learner.space.setting(*at)
            one, two = model.predict(self.task.X), other.predict(self.task.X)
            assert (one.label.tobytes(), one.score.tobytes()) == (two.label.tobytes(), two.score.tobytes())
        assert self.pickled(models) == self.pickled(again)

    def test_a_table_with_nan_is_refused(self) -> None:
        table = self.learner.codec.table(list(self.models())[:1], self.task)
        for column, field in enumerate(table.schema):
            forged = _with_nan(table[field.name].to_pylist()[0])
            if forged is not None:
                rows = table.set_column(column, field, pa.array([forged], field.type))
                with pytest.raises((ValueError, IndexError)):
                    self.learner.codec.from_table(rows, self.task)

    def test_weights_of_classes_are_those_of_the_training_rows(self) -> None:
        """Labels of other rows have no part in balanced ones, a class that is not named weighs 1, and of a
        class that weighs more fewer rows are missed.
        """
        if not hasattr(self.learner, "class_weight") or self.learner.name == "estimator":
            return
        _, score = self.split()
        other, last = replace(self.task, y=self.task.y.copy()), self.task.classes[-1]
        other.y[score] = (other.y[score] + 1) % self.task.n_classes
        named = dict.fromkeys(self.task.classes, 1) | {last: 7}
        assert all(map(self.learner.codec.same, self.weighted("balanced"), self.weighted("balanced", other)))
        assert all(map(self.learner.codec.same, self.weighted({last: 7}), self.weighted(named)))
        number = self.task.n_classes - 1
        rows = self.task.X[self.task.y == number]
        heavy, light = (
            sum(np.sum(model.predict(rows).label != number) for model in self.weighted({last: weight}))
            for weight in (7, 1 / 7)
        )
        assert heavy < light

    def test_one_unit_in_the_last_place_is_no_other_model_and_more_is(self) -> None:
        check_rounding(self.learner, self.task, self.models()[0])

    # helpers

    def run(self, out: Path, execution: Execution) -> Result:
        study = Study(learner=self.learner, resampling=Complete((3, 5), 4), seed=3)
        return run_job(Job(study, self.task, out), execution)

    def positions(self) -> list[tuple[int, int]]:
        lengths = self.learner.space.lengths
        return [(path, step) for path, length in enumerate(lengths) for step in range(length)]

    def split(self) -> tuple[Any, Any]:
        """Return the training rows and the scored rows of a refit on three folds."""
        drawn = Complete((3,), 5)
        return drawn.split(Strata(self.task.n), drawn.fold_sizes(self.task.n)[0], 0, Draws(1)).merge_select()

    def block(self, train: Any = None, score: Any = None) -> Any:
        split = self.split() if train is None else (train, score)
        return self.learner.trainer.prepare(self.learner.trainer.share(self.task), *split)

    def every_fit(self, train: Any = None, score: Any = None) -> list[tuple[Any, int]]:
        block = self.block(train, score)
        return [(block.fit(path, length), length) for path, length in enumerate(self.learner.space.lengths)]

    def models(self, train: Any = None) -> list[Any]:
        fitted = self.every_fit() if train is None else self.every_fit(train, self.split()[1])
        return [fits.model(step) for fits, length in fitted for step in range(length)]

    def weighted(self, class_weight: Any, task: Task | None = None) -> list[Any]:
        """Return its models with weights of classes, on the split of the task or of another task."""
        other = type(self)()
        other.task = task or self.task
        other.learner = replace(self.learner, class_weight=class_weight).canonical(other.task)
        return other.models()

    def check_totals(self, train: Any, score: Any, measure: Measure = ZERO_ONE) -> None:
        X, y, n_classes = self.task.X[score], self.task.y[score], self.task.n_classes
        for fits, length in self.every_fit(train, score):
            judged = [judge(fits.model(step), X, y, measure, n_classes) for step in range(length)]
            assert list(map(tuple, fits.totals(measure))) == judged

    def stored(self, models: Sequence[Any]) -> list[Any]:
        sink = io.BytesIO()
        parquet.write_table(self.learner.codec.table(models, self.task), sink)
        return list(self.learner.codec.from_table(parquet.read_table(sink), self.task))

    def pickled(self, models: Sequence[Any]) -> dict[str, bytes]:
        counts = (0,) * self.task.n_classes
        members = (Member(3, i, model, counts, counts) for i, model in enumerate(models))
        return to_pickles(Ensemble(tuple(members)), self.learner, self.task)

    def check_same(self, models: Sequence[Any], fits: Any) -> None:
        assert all(self.learner.codec.same(model, fits.model(step)) for step, model in enumerate(models))


class LearnerContract(ShortContract):
    """All the tests; see the module docstring."""

    # properties it declares

    def test_each_position_has_a_distinct_setting(self) -> None:
        settings = [self.learner.space.setting(*at) for at in self.positions()]
        assert json.loads(json.dumps([dict(setting) for setting in settings], allow_nan=False)) == settings
        columns = {name: list(column) for name, column in self.learner.space.settings().items()}
        for at, row in enumerate(zip(*columns.values(), strict=True)):
            assert set(settings[at]) <= set(columns)
            assert row == tuple(settings[at].get(name) for name in columns)
        assert all(settings.count(setting) == 1 for setting in settings)
        strings = [value for setting in settings for value in setting.values() if isinstance(value, str)]
        assert all(map(str.isprintable, strings))  # a certificate with others is refused when it is read

    def test_it_can_be_thinned(self) -> None:
        thinned = self.learner.thinned(2)
        assert type(thinned) is type(self.learner)
        assert 1 <= sum(thinned.space.lengths) <= sum(self.learner.space.lengths)
        assert self.learner.thinned(10**6) == self.learner

    def test_its_canonical_form_is_canonical(self) -> None:
        whole = self.learner.canonical(self.task)
        assert whole.canonical(self.task) == whole

    def test_more_rows_cost_no_less(self) -> None:
        costs = [self.learner.trainer.cost(n) for n in SIZES]
        memory = [self.learner.trainer.memory(n, n, 3) for n in SIZES]
        assert 0 < costs[0] <= costs[1] <= costs[2]
        assert 0 < memory[0] <= memory[1] <= memory[2]

    # its fits

    def test_a_path_does_not_depend_on_paths_fitted_before(self) -> None:
        block = self.block()
        for path in reversed(range(len(self.learner.space.lengths))):
            length = self.learner.space.lengths[path]
            used, fresh = block.fit(path, length), self.block().fit(path, length)
            self.check_same([used.model(step) for step in range(length)], fresh)

    def test_its_inputs_may_be_read_only_and_are_not_changed(self) -> None:
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(self.learner.trainer.share(self.task), 5, buffer_callback=buffers.append)
        contents = [bytes(buffer.raw()) for buffer in buffers]
        shared, rows = pickle.loads(pickled, buffers=contents), self.split()  # as from Ray's object store
        block = self.learner.trainer.prepare(shared, *rows)
        for path, length in enumerate(self.learner.space.lengths):
            models = [block.fit(path, length).model(step) for step in range(length)]
            self.check_same(models, self.block().fit(path, length))
        assert contents == [bytes(buffer.raw()) for buffer in buffers]
        assert all(map(np.array_equal, rows, self.split()))

    # its models

    def test_a_prediction_for_a_row_does_not_depend_on_other_rows(self) -> None:
        X = self.task.X.copy()
        X.flags.writeable = False
        for model in self.models():
            forward, backward = model.predict(X), model.predict(np.ascontiguousarray(X[::-1]))
            singly = [model.predict(X[i : i + 1]) for i in range(len(X))]
            for name in ("label", "score"):
                values = getattr(forward, name)
                assert values.shape == (len(X),)
                assert values.tobytes() == np.ascontiguousarray(getattr(backward, name)[::-1]).tobytes()
                assert values.tobytes() == np.concatenate([getattr(one, name) for one in singly]).tobytes()
            assert forward.label.dtype == np.int32
            assert set(forward.label.tolist()) <= set(range(-1, self.task.n_classes))

    # its runs

    @pytest.mark.usefixtures("ray_session")
    def test_ray_gives_the_same_bits(self, tmp_path: Path) -> None:
        self.run(tmp_path / "serial", Execution("serial"))
        self.run(tmp_path / "ray", Execution("ray", workers=2))
        assert same_files(tmp_path / "serial", tmp_path / "ray")


def _with_nan(value: Any) -> Any:
    """Return the value with its first float replaced by nan; None if it has no float."""
    if isinstance(value, float):
        return float("nan")
    if isinstance(value, list) and value and (first := _with_nan(value[0])) is not None:
        return [first, *value[1:]]
    return None

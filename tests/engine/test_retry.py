"""What is sent again: the same batch a few times, then its halves, until a single path stands accused."""

from collections import deque

import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.retry import ATTEMPTS, Batch, halves, instead
from ckcv_ray.runs.run import run_table
from ckcv_ray.study import Execution, Stage, Study, Task

STUDY = Study(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=4, exhaustive=True)
TABLE = blobs(40, seed=3)

paths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5, unique=True)
tasks = st.lists(
    st.builds(Task, st.just(Stage.SELECT), st.integers(3, 9), st.integers(0, 9), paths.map(tuple)),
    min_size=1,
    max_size=9,
).map(tuple)


def parts(batch: tuple[Task, ...]) -> list[tuple[int, int, tuple[int, int]]]:
    return [(task.k, task.mc_index, path) for task in batch for path in task.paths]


@given(tasks)
def test_halves_hold_all_the_paths_and_neither_is_empty(batch):
    both = halves(batch)
    assert [path for half in both for path in parts(half)] == (parts(batch) if len(parts(batch)) > 1 else [])
    assert all(parts(half) for half in both)


@given(tasks, st.data())
def test_one_poisoned_path_is_isolated_and_all_else_gets_through(batch, data):
    """Whatever holds the poisoned path is lost every time."""
    poison = data.draw(st.sampled_from(parts(batch)))
    queue, done, failed, sent = deque([Batch(batch)]), [], [], 0
    while queue:
        one, sent = queue.popleft(), sent + 1
        if poison not in parts(one.tasks):
            done += parts(one.tasks)
        elif others := instead(one):
            queue.extend(others)
        else:
            failed += parts(one.tasks)
    assert set(failed) == {poison}
    assert sorted(done + failed) == sorted(parts(batch))
    assert sent <= 2 * ATTEMPTS * len(parts(batch))


class Poisoned(SerialBackend):
    """Every worker dies that is given gamma number 1 of split 2 at k = 4; others die now and then."""

    def start(self, *arguments):
        self.sent, self.lost = deque(), 0
        return super().start(*arguments)

    def submit(self, tasks):
        self.sent.append(Batch(tuple(tasks)))

    def in_flight(self):
        return len(self.sent)

    def wait(self):
        batch = self.sent.popleft()
        self.lost += 1
        dies = self.lost % 3 == 0 and batch.lost == 0
        dies |= any(t.k == 4 and t.mc_index == 2 and g == 1 for t in batch.tasks for g, _ in t.paths)
        if not dies:
            return [worker.evaluate(batch.tasks, self.study, self.data)]
        others = instead(batch)
        self.sent.extend(others)
        return [] if others else [worker.failed(batch.tasks, self.study, "Traceback: the worker died")]


def test_a_run_survives_a_split_that_kills_and_names_it():
    whole = run_table(STUDY, TABLE, execution=Execution("serial"))
    result = run_table(STUDY, TABLE, backend=Poisoned())
    assert {tuple(failure[:3]) for failure in result.execution["failures"]} == {(1.0, 4, 2)}
    lost = [(row["gamma"], row["k"]) for row in result.triples.to_pylist() if row["state"] == "failed"]
    assert set(lost) <= {(1.0, 4)}
    if not result.certificate.provisional:
        assert (result.C, result.gamma, result.k) == (whole.C, whole.gamma, whole.k)


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_limit_is_kept(attempts):
    batch, lost = Batch((Task(Stage.SELECT, 3, 0, ((0, 1),)),)), 1
    while others := instead(batch, attempts):
        (batch,), lost = others, lost + 1
    assert lost == attempts

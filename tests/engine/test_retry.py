"""What is sent again: the same batch a few times, then its halves, until a single path stands accused."""

from collections import deque

from conftest import blobs
from doubles import run_with
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.evaluate import evaluate, make_failures
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.ray_backend import MAX_ATTEMPTS, halves, replacements
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import Execution, Study

STUDY = Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=4, exhaustive=True)
TASK = blobs(40, seed=3)

paths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=5, unique=True)
units = st.lists(
    st.builds(Unit, st.just(Stage.SELECT), st.integers(0, 6), st.integers(0, 9), paths.map(tuple)),
    min_size=1,
    max_size=9,
).map(tuple)


def parts(batch: tuple[Unit, ...]) -> list[tuple[int, int, tuple[int, int]]]:
    return [(unit.size, unit.split, path) for unit in batch for path in unit.paths]


@given(units)
def test_halves_hold_all_the_paths_and_neither_is_empty(batch):
    both = halves(batch)
    assert [path for half in both for path in parts(half)] == (parts(batch) if len(parts(batch)) > 1 else [])
    assert all(parts(half) for half in both)


@given(units, st.data())
def test_one_poisoned_path_is_isolated_and_all_else_gets_through(batch, data):
    """Whatever holds the poisoned path is lost every time."""
    poison = data.draw(st.sampled_from(parts(batch)))
    queue, done, failed, sent = deque([Batch(batch)]), [], [], 0
    while queue:
        one, sent = queue.popleft(), sent + 1
        if poison not in parts(one.units):
            done += parts(one.units)
        elif others := replacements(one):
            queue.extend(others)
        else:
            failed += parts(one.units)
    assert set(failed) == {poison}
    assert sorted(done + failed) == sorted(parts(batch))
    assert sent <= 2 * MAX_ATTEMPTS * len(parts(batch))


class Poisoned(SerialBackend):
    """Every worker dies that is given path 1 of split 2 at k = 4; others die now and then."""

    def start(self, inputs):
        self.sent, self.lost = deque(), 0
        super().start(inputs)

    def submit(self, batch):
        self.sent.append(batch)

    def in_flight(self):
        return len(self.sent)

    def wait(self):
        batch = self.sent.popleft()
        self.lost += 1
        dies = self.lost % 3 == 0 and batch.lost == 0
        dies |= any(u[1:3] == (1, 2) and path == 1 for u in batch.units for path, _ in u.paths)
        if not dies:
            return [evaluate(batch.units, self.inputs)]
        others = replacements(batch)
        self.sent.extend(others)
        return [] if others else [make_failures(batch.units, 2, "Traceback: the worker died")]


def test_a_run_survives_a_split_that_kills_and_names_it():
    whole = run_job(Job(STUDY, TASK), Execution("serial"))
    result = run_with(Poisoned(), STUDY, TASK)
    assert {tuple(failure[:3]) for failure in result.execution["failures"]} == {(1, 4, 2)}
    lost = [
        (row["path"], row["k_first"]) for row in result.candidates.to_pylist() if row["state"] == "failed"
    ]
    assert set(lost) <= {(1, 4)}
    if not result.certificate.winner.provisional:
        assert (result.setting, result.k) == (whole.setting, whole.k)

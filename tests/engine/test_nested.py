"""How far a run with inner selections has come: one count of evaluations, one time left."""

from pathlib import Path
from threading import Lock

import pytest
from conftest import blobs

from ckcv_ray.engine.nested import OverallProgress
from ckcv_ray.engine.progress import Progress
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study import Execution, Problem, Study

NESTED = Study.paper(
    C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5, certify="nested", outer_splits=3
)
PROBLEM = Problem.of(NESTED, blobs(60))
OWN, INNER = 3 * 5 * 4, 3 * 5 * 4  # values of k, splits, settings
SERIAL = Execution("serial")


class Heard:
    """Takes every moment; finds out whether two came at once."""

    def __init__(self) -> None:
        self.moments: list[Progress] = []
        self.one_at_a_time = True
        self._lock = Lock()

    def __call__(self, moment: Progress) -> None:
        self.one_at_a_time &= self._lock.acquire(blocking=False)
        self.moments.append(moment)
        self._lock.release()

    def check(self, planned: int) -> None:
        """Whether they tell of one run that comes to its end."""
        assert self.one_at_a_time
        assert {one.planned for one in self.moments} == {planned}
        done = [one.computed + one.dropped + one.failed for one in self.moments]
        assert done == sorted(done)
        assert (done[-1], self.moments[-1].left) == (planned, 0.0)
        assert all(one.left > 0 for one, count in zip(self.moments, done, strict=True) if count < planned)


@pytest.mark.parametrize("execution", [SERIAL, Execution("ray", 2)], ids=["serial", "ray"])
def test_inner_selections_are_part_of_the_whole(execution: Execution, request: pytest.FixtureRequest) -> None:
    if execution.backend == "ray":
        request.getfixturevalue("ray_session")
    heard = Heard()
    run_job(Job(NESTED, blobs(60), listen=heard), execution)
    heard.check(OWN + 3 * INNER)


def test_what_is_read_from_its_folder_is_part_of_it_too(tmp_path: Path) -> None:
    run_job(Job(NESTED, blobs(60), tmp_path), SERIAL)
    (tmp_path / "manifest.json").unlink()
    heard = Heard()
    run_job(Job(NESTED, blobs(60), tmp_path, listen=heard), SERIAL)
    heard.check(OWN + 3 * INNER)


def test_the_evaluations_are_counted_by_hand() -> None:
    assert PROBLEM.n_evaluations == OWN
    assert [PROBLEM.inner(i).n_evaluations for i in range(3)] == [INNER] * 3


def test_a_selection_not_begun_is_taken_to_cost_what_the_first_did_for_fewer_rows() -> None:
    messages: list[Progress] = []
    whole = OverallProgress(PROBLEM, messages.append)
    whole.own(Progress(OWN, spent=3.0, left=6.0))
    assert messages[-1].left == pytest.approx(6.0 + 3 * (3.0 + 6.0) * (40 / 60) ** 2)
    whole.inner(1)(Progress(INNER, spent=1.0, left=0.5))
    assert messages[-1].left == pytest.approx(6.0 + 0.5 + 2 * (3.0 + 6.0) * (40 / 60) ** 2)
    assert messages[-1].spent == 4.0


def test_with_half_of_the_rows_inside_a_selection_is_expected_to_cost_less() -> None:
    messages: list[Progress] = []
    problem = Problem.of(NESTED.replace(outer_share="half"), blobs(60))
    OverallProgress(problem, messages.append).own(Progress(OWN, spent=3.0, left=6.0))
    assert messages[-1].left == pytest.approx(6.0 + 3 * (3.0 + 6.0) * (30 / 60) ** 2)
    assert [problem.inner(i).task.n for i in range(3)] == [30] * 3


def test_without_inner_selections_the_whole_is_the_run_itself() -> None:
    messages: list[Progress] = []
    moment = Progress(OWN, computed=7, spent=3.0, left=6.0)
    OverallProgress(PROBLEM.with_study(NESTED), messages.append).own(moment)
    assert messages == [moment]

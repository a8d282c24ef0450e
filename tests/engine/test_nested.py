"""How far a run with inner selections has come: one count of cells from nothing to all, one time left."""

from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest
from conftest import blobs

from ckcv_ray.engine.aggregator import Progress
from ckcv_ray.engine.nested import Whole
from ckcv_ray.runs import run as driver
from ckcv_ray.study import Execution, Study

NESTED = Study(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5, protocol="nested", outer_splits=3)
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
        assert all(one.left > 0 for one, cells in zip(self.moments, done, strict=True) if cells < planned)


def planned(study: Study, n: int) -> int:
    """Cells of the selection and of three inner ones on two thirds of the rows."""
    return study.cells(n) + 3 * study.inner().cells(2 * n // 3)


@pytest.mark.parametrize("execution", [SERIAL, Execution("ray", 2)], ids=["serial", "ray"])
def test_inner_selections_are_part_of_the_whole(execution: Execution, request: pytest.FixtureRequest) -> None:
    if execution.backend == "ray":
        request.getfixturevalue("ray_session")
    heard, table = Heard(), blobs(60)
    driver.run_table(NESTED, table, execution=execution, listen=heard)
    heard.check(planned(NESTED, 60))


def test_what_is_read_from_its_folder_is_part_of_it_too(tmp_path: Path) -> None:
    driver.run_table(NESTED, blobs(60), tmp_path, SERIAL)
    (tmp_path / "manifest.json").unlink()
    heard = Heard()
    driver.run_table(NESTED, blobs(60), tmp_path, SERIAL, heard)
    heard.check(planned(NESTED, 60))


def test_a_selection_not_begun_is_taken_to_cost_what_the_first_did_for_fewer_rows() -> None:
    told: list[Progress] = []
    whole = Whole(NESTED, 60, told.append)
    whole.own(Progress(NESTED.cells(60), spent=3.0, left=6.0))
    assert told[-1].left == pytest.approx(6.0 + 3 * (3.0 + 6.0) * (40 / 60) ** 2)
    whole.inner(1)(Progress(NESTED.inner().cells(40), spent=1.0, left=0.5))
    assert told[-1].left == pytest.approx(6.0 + 0.5 + 2 * (3.0 + 6.0) * (40 / 60) ** 2)
    assert told[-1].spent == 4.0


def test_without_inner_selections_the_whole_is_the_run_itself() -> None:
    told: list[Progress] = []
    plain = replace(NESTED, protocol="paper", outer_splits=None)
    moment = Progress(plain.cells(60), computed=7, spent=3.0, left=6.0)
    Whole(plain, 60, told.append).own(moment)
    assert told == [moment]

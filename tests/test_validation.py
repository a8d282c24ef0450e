"""What is checked at the door; that every entry checks it is in ``test_bad_arguments``."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from ckcv_ray import Execution, InputError, StoreError, Study, load_run
from ckcv_ray.data.task import read, table_from_arrays
from ckcv_ray.reports.page import page
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import read_toml
from ckcv_ray.validation import as_array, as_path, number, told, whole

DIGITS = 10**5000


def test_text_and_path_are_taken_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, serial = Study(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=2), Execution("serial")
    table = table_from_arrays(np.arange(16.0).reshape(8, 2), [0, 1] * 4)
    Path("a.csv").write_text("a,y\n1,2\n")
    Path("a.toml").write_text("seed = 3")
    for kind in (str, Path):
        out = kind("run")
        run_id = run_table(study, table, out, serial).run_id
        assert load_run(out).run_id == replay(out).run_id == run_id
        assert verify(out).differences == []
        assert run_id in page(out)
        assert read(kind("a.csv")).learn.num_rows == 1
        assert read(kind("twonorm:9:0")).learn.num_rows == 9
        assert read_toml(kind("a.toml")) == {"seed": 3}


def test_a_path_need_not_be_there_but_could_be(tmp_path):
    (tmp_path / "file").touch()
    for name in ("new", "new/below", "file", "file/below"):
        assert as_path("out", str(tmp_path / name)) == tmp_path / name
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("", "a\0b", "x" * 256, "a/" * 2040, "\ud800", str(tmp_path / "loop")):
        with pytest.raises(InputError, match=r"^out=.*no file can have this name"):
            as_path("out", name)
        with pytest.raises(StoreError):
            as_path("out", name, StoreError)


def test_a_message_holds_any_value():
    assert told("a\n") == r"'a\n'"
    assert len(told(list(range(1000)))) < 300
    for value in (DIGITS, [DIGITS], np.array([DIGITS], object)):
        assert told(value) == "<a number of thousands of digits>"


def test_numbers_come_back_in_python_own_types():
    assert type(whole("seed", np.int64(3), 0, 9)) is int
    assert type(number("delta", np.float32(0.5))) is float
    for value in (True, "3", None, 3.0, np.array(3)):
        with pytest.raises(InputError, match=r"^seed=.*is not a whole number"):
            whole("seed", value, 0, 9)


@pytest.mark.parametrize("values", [np.ma.masked_equal([1, 2], 1), csr_matrix([[1, 2]]), [[1], [2, 3]]])
def test_no_array_loses_a_mask_or_its_shape(values):
    with pytest.raises(InputError, match=r"^X is"):
        as_array("X", values)

"""What is compared where a run is read again: what can change bits, not what happens to be loaded."""

import subprocess
import sys

import pytest

from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.storage import execution
from ckcv_ray.storage.execution import VARIABLES, find_changes, read_environment

LEARNER = GaussianSVM()
READ = """
import sys
for name in sys.argv[1:]:
    __import__(name)
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.storage.execution import read_environment
print(read_environment(GaussianSVM()))
"""


def test_what_else_is_loaded_makes_no_difference() -> None:
    """scikit-learn brings OpenMP, torch and matplotlib bring others: none of it changes a bit of a result."""
    found = {
        subprocess.run(
            [sys.executable, "-c", READ, *names], capture_output=True, text=True, check=True
        ).stdout
        for names in ((), ("sklearn.svm", "sklearn.ensemble"), ("scipy.linalg", "numba"))
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_that_chooses_other_code_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_environment(LEARNER)
    monkeypatch.setenv(name, "generic")
    execution._common.cache_clear()
    try:
        assert find_changes(before, read_environment(LEARNER)) == [f"{name} was None, here it is generic"]
    finally:
        execution._common.cache_clear()


def test_every_part_that_can_change_bits_is_compared_by_name() -> None:
    here = read_environment(LEARNER)
    there = {
        **here,
        "processor": "another",
        "blas": {**here["blas"], "scipy": "mkl 2025"},
        "packages": {**here["packages"], "numba": "0.1"},
        "learner": {"machine_code": "another's"},
    }
    messages = find_changes(there, here)
    assert len(messages) == 4
    assert any(sentence.startswith("processor was another") for sentence in messages)
    assert any(sentence.startswith("scipy's BLAS was mkl 2025") for sentence in messages)
    assert any(sentence.startswith("numba was 0.1") for sentence in messages)
    assert any(sentence.startswith("machine_code was another's") for sentence in messages)
    assert find_changes(here, read_environment(LEARNER)) == []

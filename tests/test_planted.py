"""Faults planted in a copy of the project, each of which tests of the day have to find."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = {  # file of the package, what is there, what is planted, and the tests that find it
    "a bound": ("core/bounds/binomial", "x, 1.0), delta)", "x, 1.0), 2 * delta)", "core/test_bounds"),
    "pruning": ("core/selection", "(self.low <= each)", "(1.02 * self.low <= each)", "golden/test_golden"),
    "a key": ("core/resampling/complete", "at(m, number)", "at(number + 1, m)", "golden/test_golden"),
    "the salt": ("core/draws", "if self.salt:", "if len(self.salt) > 64:", "golden/test_golden"),
    "the lock": ("storage/files", "  self._lock.acquire()\n", "  pass\n", "storage/test_folder"),
    "fsync": ("storage/files", "  os.fsync(file.fileno())", "  pass", "storage/test_disk"),
    "a sum": ("storage/folder", "there.get(name) != digest]", "name not in there]", "storage/test_folder"),
    "encoding": (
        "learners/choice",
        "(self._task, train)",
        "(self._task, np.r_[:9])",
        "learners/test_encoded",
    ),
    "a rule": ("runs/result", "first.make_rule(self.problem)", "Rule('refit')", "claims/test_thresholds"),
    "rounding": ("errors", "ceil(SCALE * bound - SLACK)", "round(SCALE * bound)", "claims/test_better"),
    "a limit": ("tables/columns", "> MAX_TABLE_BYTES:", "> 1 << 50:", "storage/test_foreign_folders"),
    "rows": ("reports/facts", "off = c.baseline,", "off = c.baselines[0],", "reports/test_facts"),
    "resume": ("engine/recorder", ", (), ()))\n         ", "[1:], (), ()))\n         ", "runs/test_run"),
    "imports": ("learners/sklearn/spec", "not in _trusted:", "in ():", "learners/sklearn/test_spec"),
    "the gate": ("claims/quantity", "self.bound < 0.5\n", "self.bound <= 1\n", "claims/test_quantities"),
}


def run_tests(project: Path, *files: str) -> int:
    """Return how files of tests of the day end, which stop at the first failure."""
    ours = ("PYTEST_", "COV_CORE_", "CKCV_TESTS")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    return subprocess.run(command, cwd=project, env=others | {"PYTHONPATH": str(project)}).returncode


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, in which these tests find nothing."""
    copy = tmp_path_factory.mktemp("planted") / "main"
    shutil.copytree(Path(__file__).parents[1], copy, ignore=shutil.ignore_patterns(".*", "build", "__py*"))
    assert run_tests(copy, *sorted({f"tests/{tests}.py" for *_, tests in FAULTS.values()})) == 0
    return copy


@pytest.mark.night
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_day(fault: str, copied: Path) -> None:
    name, there, planted, tests = FAULTS[fault]
    text = (file := copied / f"ckcv_ray/{name}.py").read_text()
    assert text.count(there) == 1, "this line is another now: plant the fault again"
    file.write_text(text.replace(there, planted))
    try:
        assert run_tests(copied, f"tests/{tests}.py") == 1
    finally:
        file.write_text(text)

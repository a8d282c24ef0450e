"""The same machine code, and so the same bits, however the compiler's cache came about."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ckcv_ray
from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm import compile as compiler
from ckcv_ray.learners.svm import newton
from ckcv_ray.learners.svm.trainer import signatures

PACKAGE = Path(ckcv_ray.__file__).parent
FIT = """
import sys
import numpy as np
from ckcv_ray.learners.svm import blocks
from ckcv_ray.tables.task import Task
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import Execution, Study

def models(study):
    result = run_job(Job(study, task), Execution("serial"))
    machines = [member.model for member in result.ensemble.members]
    return [m.dual_coef[0].tobytes().hex() + m.offset.tobytes().hex() for m in machines]

rng = np.random.default_rng(0)
y = np.where(np.arange(150) % 2, 1, -1)
task = Task.of(rng.normal(size=(150, 3)) + y[:, None] / 2, y)
study = Study.paper(C=(10.0, 100.0), gamma=(10.0, 30.0), k=(10,), n_splits=3)  # many free variables
found = {}
for which in sys.argv[1:]:
    blocks.DENSE_BYTES = blocks.WHOLE_BYTES = 0 if which == "points" else 1 << 30
    found[which] = models(study)
print(found["whole"], found["points"])
"""


def fitted(package: Path, cache: Path, *words: str, python: tuple[str, ...] = (), **variables: str) -> str:
    """The models of a small study, in every digit, made by a copy of the package with its own cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)} | variables
    command = [sys.executable, *python, "-P", "-c", FIT, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(file: Path) -> list[bytes]:
    content = compiler.open_sealed(file.read_bytes())
    assert content
    return [made[0][2][0] for made in pickle.loads(content)]


def test_compiled_cached_edited_optimised_and_in_any_company_the_bits_are_the_same(tmp_path: Path) -> None:
    copy, cache = tmp_path / "ckcv_ray", tmp_path / "cache"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    cold = fitted(copy, cache, "whole", "points", PYTHONHASHSEED="7")
    (first,) = cache.glob("*.bin")
    assert fitted(copy, cache, "points", "whole", python=("-O",), PYTHONHASHSEED="8") == cold
    assert fitted(copy, cache, "whole", "points", python=("-OO",)) == cold
    assert list(cache.glob("*.bin")) == [first]
    with (copy / "learners/svm/newton.py").open("a") as source:
        source.write("# what git pull may bring\n")
    assert fitted(copy, cache, "whole", "points", PYTHONHASHSEED="9") == cold
    (second,) = set(cache.glob("*.bin")) - {first}
    assert objects(second) == objects(first)


def test_a_comment_in_any_source_or_a_setting_of_numba_names_another_file_and_threads_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, copy = compiler.file_name(), tmp_path / "svm"
    shutil.copytree(compiler.SOLVER_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with monkeypatch.context() as changed:
        changed.setattr(compiler.config, "NUMBA_NUM_THREADS", 77)
        assert compiler.file_name() == before
        changed.setattr(compiler, "SOLVER_FOLDER", copy)
        assert compiler.file_name() == before
        with (copy / "newton.py").open("a") as source:
            source.write("# a comment\n")
        assert compiler.file_name() != before
    for setting in ("OPT", "CPU_NAME"):
        with monkeypatch.context() as changed:
            changed.setattr(compiler.config, setting, "another")
            assert compiler.file_name() != before


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the functions were compiled, were it not that what is there already is taken."""
    compiler.load_code()
    code, calls = compiler._code(), [0]

    def build() -> bytes:
        calls[0] += 1
        return code

    monkeypatch.setattr(compiler, "_build", build)
    monkeypatch.setattr(compiler.config, "CACHE_DIR", str(tmp_path))
    return calls


def test_a_damaged_file_is_made_again(built: list[int], tmp_path: Path) -> None:
    content = compiler._code()
    (file,) = tmp_path.glob("*.bin")
    whole = file.read_bytes()
    assert compiler._code() == content
    assert built == [1]
    flipped = whole[:50] + bytes([whole[50] ^ 1]) + whole[51:]
    for i, damaged in enumerate([b"", whole[:20], whole[:32], whole[:-1], whole[: len(whole) // 2], flipped]):
        file.write_bytes(damaged)
        assert compiler._code() == content
        assert file.read_bytes() == whole
        assert built == [i + 2]
    file.unlink()
    assert compiler._code() == content
    assert file.read_bytes() == whole


def test_a_file_that_others_may_write_is_not_opened(built: list[int], tmp_path: Path) -> None:
    content = compiler._code()
    (file,) = tmp_path.glob("*.bin")
    file.write_bytes(compiler.seal(b"anything, and the digest is no secret"))
    file.chmod(0o666)
    assert compiler._code() == content
    assert built == [2]
    assert file.stat().st_mode & 0o022 == 0
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert compiler._code() == content
        assert built == [3]
        assert file.stat().st_uid == 0


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.config, "DISABLE_JIT", 1)
    compiler.load_code.cache_clear()
    with pytest.raises(RunError, match="NUMBA_DISABLE_JIT"):
        compiler.load_code()


def test_a_compiler_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler, "BUILD", "import nothing_such")
    with pytest.raises(RunError, match="nothing_such"):
        compiler._code()


def test_nothing_is_compiled_on_its_own() -> None:
    compiler.load_code()
    U = np.eye(3, dtype=np.float32)
    with pytest.raises(TypeError, match=r"trainer\.py lists them"):
        newton.solve(U, np.ones(3), np.ones(3), 3)
    for function, types in signatures():
        assert types in function.overloads

"""Every command the README shows, run in the order shown (long ones in small), and its Python block."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import blobs
from pyarrow import csv

from ckcv_ray.study import Holdout, Study, read_toml

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent
SMALLER = {
    f"python jobs/{command}": f"python jobs/{smaller}"
    for command, smaller in (
        ("paper/table1.py --seeds 3", "paper/table1.py --sets thyroid --realizations 2"),
        ("paper/table1.py --conventional", "paper/table1.py --conventional --sets titanic --realizations 1"),
        ("faults/chaos.py --rounds 24 --seed 603", "faults/chaos.py --rounds 1 --seed 1 --kinds recorder"),
        ("faults/fuzz.py --minutes 10", "faults/fuzz.py --minutes 0.1 --only words,toml"),
        ("benchmarks/plan.py", "benchmarks/plan.py --sets titanic --most 1000"),
        ("benchmarks/scale.py --workers 64", "benchmarks/scale.py --workers 2 --source twonorm:60:0"),
        ("benchmarks/simulate.py", "benchmarks/simulate.py --workers 2,8 --source twonorm:60:0 --fits 2000"),
        ("benchmarks/long.py", "benchmarks/long.py --evaluations 20000 --least 0"),
        *(
            (
                f"nightly --only studies,algorithm --repeats 2 --night 2026-08-0{night}",
                f"nightly --plan tiny --only studies --repeats 1 --threshold 9 --commit x --night {night}",
            )
            for night in (1, 2)
        ),
        (
            "paper/bound_coverage.py --runs 500",
            "paper/bound_coverage.py --sources twonorm --rows 100 --runs 4",
        ),
        ("paper/losses.py", "paper/losses.py --sets titanic --backend serial"),
        ("benchmarks/solver.py --repeats 5", "benchmarks/solver.py --sets twonorm --repeats 1"),
        (
            "benchmarks/solver.py --repeats 5 --scaling standard",
            "benchmarks/solver.py --sets twonorm --repeats 1 --scaling standard",
        ),
        (
            "benchmarks/solver.py --repeats 1 --sets twonorm4000",
            "benchmarks/solver.py --repeats 1 --sets ringnorm",
        ),
        ("benchmarks/algorithm.py --repeats 5", "benchmarks/algorithm.py --sets heart --repeats 1"),
        ("benchmarks/overhead.py", "benchmarks/overhead.py --sets titanic --workers 1"),
        ("benchmarks/memory.py --baseline", "benchmarks/memory.py --rows 3000 --baseline"),
    )
}
NAMED_IDA = (
    *(
        "ida:",
        "runs/banana",
        "paper_seeds",
        "table1",
        "losses",
        "runs/nested",
        "runs/holdout",
        "runs/stevens",
    ),
    *("benchmarks/solver", "benchmarks/algorithm", "benchmarks/overhead", "benchmarks/plan"),
)


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def placeholders() -> list[str]:
    return re.findall(r"@@[A-Z]+@@", README)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo has been, in small."""
    place = tmp_path_factory.mktemp("readme")
    (place / "jobs").symlink_to(ROOT / "jobs")
    patients = blobs(40, seed=1, shift=2.0).columns().rename_columns(["age", "dose", "outcome"])
    csv.write_csv(patients, place / "patients.csv")
    csv.write_csv(patients.drop_columns(["outcome"]), place / "new.csv")
    small = "ckcv run sklearn:breast_cancer --C 1,10 --gamma 0.01 --k 3,4 --n-splits 3 --out runs/demo"
    shell(small, place)
    return place


def shell(command: str, place: Path) -> str:
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    words = shlex.split(command)
    done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_readme_is_complete() -> None:
    assert not placeholders()
    assert commands()[:2] == ["./jobs/demo", "./jobs/check"]


@pytest.mark.parametrize("command", [c for c in commands() if not c.startswith("./jobs/")])
def test_a_command_of_the_readme_runs(command: str, place: Path, request: pytest.FixtureRequest) -> None:
    """In order: later ones use what earlier ones left. Demo and check are run by CI itself, and
    try_cluster.sh takes minutes and the rights of an administrator.
    """
    if any(part in command for part in NAMED_IDA):
        request.getfixturevalue("ida")
    shell(SMALLER.get(command, command), place)


def test_the_python_block_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "block.py").write_text(block)
    shell(f"{sys.executable} block.py", tmp_path)


def test_the_layout_names_every_module() -> None:
    layout = README.split("## The layout of the code")[1]
    for file in (ROOT / "ckcv_ray").rglob("*.py"):
        if file.stem not in ("__init__", "__main__"):
            assert re.search(rf"\b{file.stem}\b", layout), f"{file.stem} is not in the README's layout"


def test_the_study_file_of_the_readme_is_one(tmp_path):
    (tmp_path / "patients.toml").write_text(re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1])
    study = Study.of(**read_toml(tmp_path / "patients.toml"))
    assert (len(study.learner.C), study.learner.gamma) == (13, (0.01, 0.1, 1.0))
    assert (len(study.resampling.k), study.resampling.n_splits) == (18, 50)
    assert study.certification == Holdout(claim=("random", "member:3"))

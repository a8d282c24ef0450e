"""Opening a run folder, by this and by another commit alternately: CPU seconds and peak memory of a process.

Each commit makes its own folders of four studies of 569 rows, and opens them by ``status``, ``report``,
``predict`` (200 rows) and ``load_run``; the least of the rounds counts.

    python jobs/benchmarks/opening.py --against e20c9ff
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import os
import subprocess
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from ckcv_ray.version import VERSION
from jobs.benchmarks.commits import ROOT, checked_out

MAKE = """
import csv, sys
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from ckcv_ray import Execution, Study, run

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
make_study = getattr(Study, "paper", Study.of)  # before there was one, of was the paper's
few = {"k": (3, 5), "n_splits": 10}
studies = {
    "svm": make_study(k=(3, 5, 10)),
    "forest": make_study(learner="forest", param={"n_estimators": (20, 50)}, **few),
    "pipeline": make_study(learner=pipeline, param={"C": (0.1, 1.0, 10.0)}, certify="holdout", **few),
    "neighbors": make_study(learner="neighbors", **few),
}
for name, study in studies.items():
    run(study, X, y, out=f"{sys.argv[1]}/{name}", execution=Execution("serial"))
with open(f"{sys.argv[1]}/new.csv", "w") as file:
    csv.writer(file).writerows([[f"x{i}" for i in range(X.shape[1])], *X[:200].tolist()])
"""
LOAD = "import sys; from ckcv_ray import load_run; load_run(sys.argv[1])"
STUDIES = ("svm", "forest", "pipeline", "neighbors")


class Cost(NamedTuple):
    """CPU seconds, and MiB at most."""

    seconds: float
    mib: float


def start(tree: Path, words: list[str]) -> Cost:
    """Run Python with the package of a commit, and not with that of the working directory.

    Raises:
        RuntimeError: it failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    child = subprocess.Popen([sys.executable, "-P", *words], env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(words[:4])} ended with {child.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def list_commands(folder: Path, study: str) -> dict[str, list[str]]:
    """Return what is run, by name."""
    ckcv = {name: ["-m", "ckcv_ray", name, str(folder / study)] for name in ("status", "report", "predict")}
    ckcv["predict"].append(str(folder / "new.csv"))
    return {**ckcv, "load_run": ["-c", LOAD, str(folder / study)]}


def main(
    against: Annotated[str, typer.Option(help="The other commit.")],
    rounds: Annotated[int, typer.Option(help="How often each process is started.")] = 3,
) -> None:
    """Print seconds and memory of both, and their ratios: below 1, this code takes less."""
    with TemporaryDirectory() as scratch, checked_out(against) as there:
        folders = {ROOT: Path(scratch) / "here", there: Path(scratch) / "there"}
        for tree, folder in folders.items():
            folder.mkdir()
            start(tree, ["-c", MAKE, str(folder)])
        print(f"{against} -> {VERSION} here")
        for study in STUDIES:
            commands = {tree: list_commands(folder, study) for tree, folder in folders.items()}
            for name in commands[ROOT]:
                costs: dict[Path, list[Cost]] = {tree: [] for tree in folders}
                for _ in range(rounds):
                    for tree in folders:
                        costs[tree].append(start(tree, commands[tree][name]))
                here, other = (Cost(*map(min, zip(*costs[tree], strict=True))) for tree in folders)
                print(
                    f"{study:<10}{name:<10}{other.seconds:6.2f} -> {here.seconds:5.2f} s  "
                    f"{here.seconds / other.seconds:.2f}   {other.mib:5.0f} -> {here.mib:4.0f} MiB  "
                    f"{here.mib / other.mib:.2f}"
                )


if __name__ == "__main__":
    typer.run(main)

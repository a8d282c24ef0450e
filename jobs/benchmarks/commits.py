"""Two commits timed alternately on the same studies, each study in a separate process.

The other commit is checked out into a temporary folder, and PYTHONPATH points its processes there. The order
of the two changes from round to round.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("one_study.py")
PLUG_IN = Path("jobs", "paper", "src")  # of each commit its own: it imports that commit's package


class Compared(NamedTuple):
    """Seconds of one study in each round, here and at the other commit, and whether all answers are equal."""

    here: list[float]
    there: list[float]
    same: bool

    @property
    def ratio(self) -> float:
        """Shortest time here over the shortest there: below 1, this code is faster."""
        return min(self.here) / min(self.there)

    @property
    def ratio_medians(self) -> float:
        """The same ratio of the medians."""
        return median(self.here) / median(self.there)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder.

    Raises:
        CalledProcessError: git does not know the commit.
    """
    git = ["git", "-C", str(ROOT), "worktree"]
    with TemporaryDirectory(prefix="ckcv-commit-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def timed(tree: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Time one study with the package in ``tree``.

    Raises:
        RuntimeError: the process imported the package from elsewhere.
        CalledProcessError: the process failed.
    """
    path = os.pathsep.join((str(tree), str(tree / PLUG_IN)))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-P", str(SCRIPT), *arguments]
    done = subprocess.run(command, env=environment, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    timing: dict[str, Any] = json.loads(done.stdout)
    if not Path(timing["package"]).is_relative_to(tree):
        raise RuntimeError(f"the package was imported from {timing['package']}, not from {tree}")
    return timing


def compare(tree: Path, arguments: Sequence[str], rounds: int) -> Compared:
    """Time one study by this and by the other commit, alternately."""
    timings: dict[Path, list[dict[str, Any]]] = {ROOT: [], tree: []}
    for i in range(rounds):
        for folder in (ROOT, tree) if i % 2 else (tree, ROOT):
            timings[folder].append(timed(folder, arguments))
    answers = [one["answer"] for times in timings.values() for one in times]
    here, there = ([one["seconds"] for one in timings[folder]] for folder in (ROOT, tree))
    return Compared(here, there, all(answer == answers[0] for answer in answers))

"""Two states of the code timed in turns on the same studies, each study in a process of its own.

The other commit is checked out into a temporary folder, and PYTHONPATH leads its processes there. Which of
the two comes first changes from round to round.
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


class Compared(NamedTuple):
    """Seconds of one study in each round, here and in the other state, and whether all answers are equal."""

    here: list[float]
    there: list[float]
    same: bool

    @property
    def ratio(self) -> float:
        """Shortest time here over the shortest there: below 1 is faster than it was."""
        return min(self.here) / min(self.there)

    @property
    def ratio_medians(self) -> float:
        """The same of the medians."""
        return median(self.here) / median(self.there)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder.

    Raises:
        CalledProcessError: git does not know it.
    """
    git = ["git", "-C", str(ROOT), "worktree"]
    with TemporaryDirectory(prefix="ckcv-commit-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def timed(tree: Path, words: Sequence[str]) -> dict[str, Any]:
    """Time one study by the package in ``tree``.

    Raises:
        RuntimeError: the process took the package from elsewhere.
        CalledProcessError: it failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-P", str(SCRIPT), *words]
    done = subprocess.run(command, env=environment, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if not Path(found["package"]).is_relative_to(tree):
        raise RuntimeError(f"the package was taken from {found['package']}, not from {tree}")
    return found


def compare(tree: Path, words: Sequence[str], rounds: int) -> Compared:
    """Time one study here and in the other state, in turns."""
    found: dict[Path, list[dict[str, Any]]] = {ROOT: [], tree: []}
    for i in range(rounds):
        for place in (ROOT, tree) if i % 2 else (tree, ROOT):
            found[place].append(timed(place, words))
    answers = [one["answer"] for times in found.values() for one in times]
    here, there = ([one["seconds"] for one in found[place]] for place in (ROOT, tree))
    return Compared(here, there, all(answer == answers[0] for answer in answers))

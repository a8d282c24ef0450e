"""What tests of the command line share."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ckcv_ray.cli import main as cli

Ran = tuple[int, str, str]  # exit code, standard output, standard error
Command = Callable[..., Ran]
SMALL = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--n-splits", "4")
RUN = ("run", "twonorm:40:0", "--k", "3,4", "--backend", "serial", *SMALL)
KEYS = {
    "repeats", "rows", "groups", "question",
    "run_id", "state", "setting", "k", "l_ms", "l_ee", "error", "proven",
    "accepted", "measured", "baseline", "below_baseline", "constant", "classes", "confusion", "per_learner",
    "search", "before", "per_k", "evaluations", "fits", "not_converged", "seconds", "test_error",
}  # fmt: skip


def call(*words: object) -> int:
    """Run a command in this process, for fixtures that outlive a test; return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ckcv", *map(str, words)])
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def shell(line: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which "$@" is the command."""
    command = ["bash", "-c", line, "-", sys.executable, "-m", "ckcv_ray", *words]
    return subprocess.run([os.fsencode(str(word)) for word in command], capture_output=True)

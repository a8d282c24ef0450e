"""What tests of the command line share."""

import os
import subprocess
import sys
from collections.abc import Callable

from conftest import Ran

Command = Callable[..., Ran]
SMALL = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--n-splits", "4")
RUN = ("run", "twonorm:40:0", "--k", "3,4", "--backend", "serial", *SMALL)


def shell(line: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which "$@" is the command."""
    command = ["bash", "-c", line, "-", sys.executable, "-m", "ckcv_ray", *words]
    return subprocess.run([os.fsencode(str(word)) for word in command], capture_output=True)

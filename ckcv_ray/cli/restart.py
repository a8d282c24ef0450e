"""Restarting a command that was killed or failed: a run resumes from what its folder holds."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ckcv_ray.cli.output import results_descriptor
from ckcv_ray.cli.signals import list_stop_signals

PACKAGE = Path(__file__).resolve().parents[1]
PARENT = "CKCV_PARENT"  # number of the process that started this one, and that it does not outlive
PR_SET_PDEATHSIG = 1  # of Linux
FINAL = {0, 2, 3, 4, 5}  # done, or a restart would end the same way


def without(arguments: Sequence[str], option: str) -> list[str]:
    """Remove an option and its value from command-line arguments."""
    kept = list(arguments)
    while option in kept:
        at = kept.index(option)
        del kept[at : at + 2]
    return [argument for argument in kept if not argument.startswith(f"{option}=")]


def persist(arguments: Sequence[str], times: int, say: Callable[[str], None]) -> int:
    """Run ``ckcv ARGUMENTS``, with at most ``times`` restarts if killed or unfinished; return its exit code.

    Signals that ask it to stop are forwarded and end it without a restart. This process cannot restart itself
    if it is killed: whatever started it, such as Ray's job manager, has to do that.
    """
    for left in range(times, -1, -1):
        code, stopped = _wait(start(arguments))
        if stopped or code in FINAL or not left:
            break
        say(f"ended with exit code {code}: restart {times - left + 1} of at most {times}")
    return code if code >= 0 else 128 - code


def start(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start ``ckcv ARGUMENTS`` as a process of its own, with our standard output.

    Args:
        arguments: of the command line.
        environment: additional variables.
        options: of ``Popen``.
    """
    path = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    given = {**os.environ, "PYTHONPATH": path, PARENT: str(os.getpid()), **(environment or {})}
    command = [sys.executable, "-m", "ckcv_ray", *arguments]
    return subprocess.Popen(command, env=given, stdout=results_descriptor(), **options)


def end_with_parent() -> None:
    """Let the end of the process that started this one end it, even inside compiled code (on Linux)."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if str(os.getppid()) != parent:  # it had ended before
        os._exit(1)


def _wait(child: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """Wait for a child process; return its exit code and whether it was asked to stop."""
    signals = []

    def forward(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in list_stop_signals()}
    try:
        return child.wait(), bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

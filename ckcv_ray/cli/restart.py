"""A command given again while it is killed: what a run has done is kept, and it goes on from there."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parents[1]
WORTHLESS = {0, 2, 3, 4}  # ended well, or would end alike again
STOPS = {signal.SIGINT, signal.SIGTERM}


def without(words: Sequence[str], option: str) -> list[str]:
    """The words without an option and its value."""
    kept = list(words)
    while option in kept:
        at = kept.index(option)
        del kept[at : at + 2]
    return [word for word in kept if not word.startswith(f"{option}=")]


def persist(words: Sequence[str], times: int, say: Callable[[str], None]) -> int:
    """Exit code of ``ckcv words``, given again at most so many times while it is killed or cannot finish.

    Ctrl-C and SIGTERM are passed on, and end it for good. Killed itself, a process does not come back: it
    is whoever started it, such as Ray's job manager, that has to outlive it.
    """
    path = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    command, environment = (
        [sys.executable, "-m", "ckcv_ray", *words],
        {**os.environ, "PYTHONPATH": path},
    )
    for left in range(times, -1, -1):
        code, stopped = _attend(subprocess.Popen(command, env=environment))
        if stopped or code in WORTHLESS or not left:
            break
        say(f"ended with exit code {code}: given again, at most {left} times more")
    return code if code >= 0 else 128 - code


def _attend(child: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """Exit code of a child, and whether somebody asked it to stop."""
    asked = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in STOPS}
    try:
        return child.wait(), bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

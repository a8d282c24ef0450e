"""What the tests of bad input share: a case, and what lies in a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ckcv_ray import InputError


class Case(NamedTuple):
    """What is called, what the message has to say, its class, and harm to the finished run in ``run``."""

    call: Callable[[], object]
    messages: tuple[str, ...]
    error: type[Exception] = InputError
    harm: Callable[[Path], object] = lambda folder: None


def case(call, *messages, **rest):
    return Case(call, messages, **rest)


def snapshot(*folders):
    """Every file and folder under these, with its size and the time of its last change."""
    found = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}

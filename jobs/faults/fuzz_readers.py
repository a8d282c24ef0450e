"""The readers that ``fuzz`` tries, each called as by a user, and the faults of a call."""

import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ckcv_ray
from ckcv_paper.archive import VARIABLE
from ckcv_ray import CKCVError, Study, Task
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import read_toml, run_id
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Roles, make_test_rows
from jobs.faults.fuzz_parts import CLASSES, SEEN

PACKAGE = str(Path(ckcv_ray.__file__).parent)
LONGEST_MESSAGE = 1600
MAX_ALONE = 40  # rows of a table that are read again one by one
GROUPS = {"patient"}
THIRTY = Task.of(np.arange(30.0)[:, None], np.arange(30) % 2)
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # there, fsync costs nothing


class Fault(NamedTuple):
    """A fault of one call: its kind, the innermost frame, and the traceback or other details."""

    kind: str
    frame: str
    details: str


class Calls:
    """Calls made on one input: the number refused, and the faults."""

    def __init__(self) -> None:
        self.refused, self.faults = 0, list[Fault]()

    @contextmanager
    def allowed(self, counted: bool = True) -> Iterator[None]:
        """Allow errors of this package; record all others, and messages that are no line, as faults."""
        try:
            yield
        except CKCVError as error:
            self.refused += counted
            message = str(error)
            if not message.isprintable() or not 0 < len(message) <= LONGEST_MESSAGE:
                details = f"{message[:LONGEST_MESSAGE]!r}\n{full(error)[-20_000:]}"
                self.faults.append(Fault("message", innermost(error), details))
        except Exception as error:
            self.faults.append(Fault(type(error).__name__, innermost(error), full(error)))


def innermost(error: BaseException) -> str:
    """Format the last frame, and the last one in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    shown = (f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (frames[-1], *ours[-1:]))
    return " < ".join(dict.fromkeys(shown))


def full(error: BaseException) -> str:
    """Format the traceback, without its middle if it is long."""
    text = "".join(traceback.format_exception(error))
    return text if len(text) < 20_000 else f"{text[:10_000]}\n...\n{text[-10_000:]}"


def read_table(calls: Calls, folder: Path, source: str) -> None:
    """Read columns; use them as learning set and as test set, and store them in a run folder.

    A row by itself has to become the numbers that it is as a part of the learning rows.
    """
    with calls.allowed():
        columns = read(source, say=str).learn
        with calls.allowed(counted=False):
            make_test_rows(columns, known_task(tuple(columns.column_names)))
        for name in GROUPS & set(columns.column_names):
            with calls.allowed(counted=False):
                Task.from_table(columns, Roles(group=name), source=source)
        task = Task.from_table(columns, source=source)
        make_test_rows(columns, task)
        again = np.concatenate([task.read(columns.slice(i, 1)).X for i in range(min(task.n, MAX_ALONE))])
        if not np.array_equal(task.X[:MAX_ALONE], again, equal_nan=True):
            raise AssertionError(f"cells are read as {again.tolist()}, and were as {task.X.tolist()}")
        problem = Problem.of(Study(), task)
        del columns  # the folder is read by other commands, which do not hold them
        with tempfile.TemporaryDirectory(dir=SCRATCH) as other:
            run = RunFolder(Path(other))
            run.begin(problem)
            run.problem()


@lru_cache
def known_task(names: tuple[str, ...]) -> Task:
    """Return a valid learning set with as many of these columns as possible."""
    features = [name for name in ("x", "x0", "x1") if name in names] or ["x"]
    return Task.from_table(pa.table(dict.fromkeys(features, SEEN) | {"y": CLASSES}))


def read_file(calls: Calls, folder: Path) -> None:
    """Read a table from a file."""
    read_table(calls, folder, str(next(folder.iterdir())))


def read_ida(calls: Calls, folder: Path) -> None:
    """Read a named set of the IDA archive."""
    os.environ[VARIABLE] = str(next(folder.iterdir()))
    read_table(calls, folder, "ida:toy:1")


def read_study(calls: Calls, folder: Path) -> None:
    """Read a study from TOML, and use it as before a run."""
    with calls.allowed():
        use_study(read_toml(folder / "study.toml"))


def use_study(options: dict[str, Any]) -> None:
    """Build a study from options, its run_id and a problem; write it to JSON and read it back."""
    study = Study.paper(**options)
    run_id(study, "digest")
    again = Study.from_json(json.loads(json.dumps(study.to_json(), allow_nan=False)))
    if study != again:
        raise AssertionError(f"{study} was read back as {again}")
    study.differences(Study())
    Problem.of(study, THIRTY)


def read_words(calls: Calls, folder: Path) -> None:
    """Read a grid and fold numbers, as given on the command line."""
    text = (folder / "words").read_bytes().decode(errors="replace")
    for name in ("C", "k", "report_k"):
        with calls.allowed():
            use_study({name: text})


CALLS: dict[str, Callable[[Calls, Path], None]] = {
    **dict.fromkeys(("csv", "parquet", "feather", "xlsx", "npz", "svmlight"), read_file),
    "ida": read_ida,
    "toml": read_study,
    "words": read_words,
}

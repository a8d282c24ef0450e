"""The readers that ``fuzz`` tries, each as a user calls it, and what is wrong with a call."""

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
from ckcv_ray import study
from ckcv_ray.data import task as data
from ckcv_ray.errors import CKCVError, RunError
from ckcv_ray.reports import page as report
from ckcv_ray.runs import load as archive
from ckcv_ray.runs import verify
from ckcv_ray.storage import folder as store
from jobs.faults.fuzz_parts import CLASSES, SEEN

PACKAGE = str(Path(ckcv_ray.__file__).parent)
LONGEST_MESSAGE = 1600
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where fsync is free


class Fault(NamedTuple):
    """What was wrong with one call: its kind, the innermost frame, and all there is to read."""

    kind: str
    frame: str
    told: str


class Calls:
    """Calls made on one input: how many were refused, and what was wrong."""

    def __init__(self) -> None:
        self.refused, self.faults = 0, list[Fault]()

    @contextmanager
    def allowed(self, counted: bool = True) -> Iterator[None]:
        """Allow the errors of ours, and note all others."""
        try:
            yield
        except CKCVError as error:
            self.refused += counted
            self.judge(str(error), error, lines=isinstance(error, RunError))
        except Exception as error:
            self.faults.append(Fault(type(error).__name__, innermost(error), full(error)))

    def judge(self, message: str, error: BaseException | None = None, lines: bool = False) -> None:
        """Note a message that a terminal cannot show as one line."""
        if message and (lines or message.isprintable()) and len(message) <= LONGEST_MESSAGE:
            return
        frame, told = (innermost(error), full(error)) if error else ("verify", "")
        self.faults.append(Fault("message", frame, f"{message[:LONGEST_MESSAGE]!r}\n{told[-20_000:]}"))


def innermost(error: BaseException) -> str:
    """The last frame, and the last one in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    shown = (f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (frames[-1], *ours[-1:]))
    return " < ".join(dict.fromkeys(shown))


def full(error: BaseException) -> str:
    """The traceback, less the middle of it where that is long."""
    text = "".join(traceback.format_exception(error))
    return text if len(text) < 20_000 else f"{text[:10_000]}\n...\n{text[-10_000:]}"


def read_table(calls: Calls, folder: Path, source: str, ida_file: Path | None = None) -> None:
    """Read columns; learn from them, test on them, and keep them in a run folder."""
    with calls.allowed():
        columns = data.read(source, ida_file).learn
        with calls.allowed(counted=False):
            data.rows_to_test(columns, known_table(tuple(columns.column_names)))
        table = data.learning_table(columns, source=source)
        data.rows_to_test(columns, table)
        with tempfile.TemporaryDirectory(dir=SCRATCH) as other:
            run = store.RunFolder(Path(other))
            run.begin(study.Study(), table, "fuzz")
            run.table(store.Identity(study.Study(), table.digest, "fuzz"))


@lru_cache
def known_table(names: tuple[str, ...]) -> data.Table:
    """A sound learning set with as many as may be of these columns."""
    features = [name for name in ("x", "x0", "x1") if name in names] or ["x"]
    return data.learning_table(pa.table(dict.fromkeys(features, SEEN) | {"y": CLASSES}))


def read_file(calls: Calls, folder: Path) -> None:
    """A table in a file."""
    read_table(calls, folder, str(next(folder.iterdir())))


def read_ida(calls: Calls, folder: Path) -> None:
    """A named set of the IDA archive."""
    read_table(calls, folder, "ida:toy:1", next(folder.iterdir()))


def read_study(calls: Calls, folder: Path) -> None:
    """A study from TOML, and all that is asked of it before a run."""
    with calls.allowed():
        use_study(study.read_toml(folder / "study.toml"))


def use_study(values: dict[str, Any]) -> None:
    """From fields to the run_id."""
    asked = study.Study.from_json(values)
    study.run_id(asked, "digest")
    again = study.Study.from_json(json.loads(json.dumps(asked.to_json(), allow_nan=False)))
    if asked != again:
        raise AssertionError(f"{asked} was read back as {again}")
    asked.differences(study.Study())
    asked.for_rows(30).sizes(30)


def read_words(calls: Calls, folder: Path) -> None:
    """A grid and numbers of folds, as the command line takes them."""
    text = (folder / "words").read_bytes().decode(errors="replace")
    for name, parse in (("C", study.parse_grid), ("k", study.parse_folds), ("report_k", study.parse_folds)):
        with calls.allowed():
            use_study({name: parse(text, name)})


def read_run(calls: Calls, folder: Path) -> None:
    """status, predict, verify and report."""
    with calls.allowed():
        archive.replay(folder).progress()
        archive.environment_changes(folder)
    with calls.allowed():
        result = archive.load_run(folder)
        json.dumps(result.to_json(), allow_nan=False)
        result.summary()
        rows = np.zeros((3, len(result.table.features)))
        for vote in (False, True):
            result.predict(rows, vote=vote)
            result.claim_for(result.rule(vote=vote))
        if result.nested is not None:
            result.predict(rows, nested=True)
    with calls.allowed():
        for difference in verify.verify(folder).differences:
            calls.judge(difference)
    with calls.allowed():
        report.page(folder)


CALLS: dict[str, Callable[[Calls, Path], None]] = {
    **dict.fromkeys(("csv", "parquet", "npz", "svmlight"), read_file),
    **dict.fromkeys(("ida", "mat"), read_ida),
    "toml": read_study,
    "words": read_words,
    "run": read_run,
}

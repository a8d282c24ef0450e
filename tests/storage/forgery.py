"""Run folders that are damaged or forged: how it is done, for the tests of who sees it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import blobs
from pyarrow import parquet

from ckcv_ray import load_run
from ckcv_ray.errors import StoreError
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Problem, Study

SERIAL = Execution("serial")
STUDY = Study.of(C=(0.1, 1.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3)
TASK = blobs(24)
PROBLEM = Problem.of(STUDY, TASK)
DATA, MODELS, CANDIDATES = "data.parquet", "ensemble/models.parquet", "candidates.parquet"
CERTIFICATE, ACCOUNT, LOG = "certificate.json", "execution.json", "log/part-000000.parquet"
RESULTS = ("study.json", DATA, CANDIDATES, CERTIFICATE, MODELS)
NAMES = (*RESULTS, "ensemble/model-00000.pkl", LOG, ACCOUNT, "manifest.json")

Change = Callable[[Any], Any]


def run_in(out: Path) -> Result:
    """Run the study of these tests, or take it up, in a folder."""
    return run_job(Job(STUDY, TASK, out), SERIAL)


def finished(factory: pytest.TempPathFactory) -> Path:
    """A finished run, to be copied and not to be changed."""
    out = factory.mktemp("whole") / "run"
    run_in(out)
    return out


def reseal(run: Path) -> None:
    """Make the manifest agree with the files, as a careful forger would."""
    folder = RunFolder(run)
    digests = {name: folder.sha256(name) for name in folder.names()}
    (run / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


def rewrite(run: Path, name: str, change: Change) -> None:
    """Change a table of a run, and reseal it."""
    table = parquet.read_table(run / name)
    parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), run / name)
    reseal(run)


def rewrite_json(run: Path, name: str, change: Change) -> None:
    """Change a JSON file of a run, and reseal it."""
    (run / name).write_text(json.dumps(change(json.loads((run / name).read_text()))))
    reseal(run)


def column(name: str, values: Change) -> Change:
    """Change the values of a column."""

    def change(table: pa.Table) -> pa.Table:
        position = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        return table.set_column(position, name, pa.array(values(table[name].to_pylist()), kind))

    return change


def first(name: str, value: object) -> Change:
    """Change a column's first value."""
    return column(name, lambda values: [value, *values[1:]])


def put(**values: object) -> Change:
    """Change fields of a JSON object; a name with __ leads to one inside."""

    def change(content: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            *way, last = name.split("__")
            inner = content
            for step in way:
                inner = inner[step]
            inner[last] = value
        return content

    return change


def check_refused(run: Path, file: str, change: Change, told: str) -> None:
    """Check that a change is seen by who reads the file and by verify, though the manifest agrees."""
    (rewrite_json if file.endswith(".json") else rewrite)(run, file, change)
    with pytest.raises(StoreError, match=rf"{file} is damaged: .*{re.escape(told)}"):
        replay(run) if file == LOG else load_run(run)
    assert told in " ".join(verify(run).differences)


DAMAGE: dict[str, Callable[[bytes, int], bytes | None]] = {
    "flipped": lambda content, at: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
    "cut short": lambda content, at: content[:at],
    "longer": lambda content, at: content + b" ",
    "blank for blank": lambda content, at: content.replace(b" ", b"\t", 1),
    "deleted": lambda content, at: None,
}


def damage(file: Path, how: str, at: int) -> bool:
    """Damage a file; False where there is nothing to change in this way."""
    content = file.read_bytes()
    changed = DAMAGE[how](content, at % len(content))
    if changed is None:
        file.unlink()
    elif changed != content:
        file.write_bytes(changed)
    return changed != content

"""Tables as tasks: the thirteen IDA sets (realization 1), and those of the gallery of untidy tables.

For each: ``task.digest``, and digests of its inputs, its target, and how its columns are interpreted. The
gallery is that of the code being observed. For a refused table, only the refusal is kept, not the sentence,
which the page of the gallery shows.
"""

import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from exact import Values, digest

import ckcv_ray
from ckcv_ray import InputError, Task, read_task

SETS = (
    *("banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm", "splice"),
    *("thyroid", "titanic", "twonorm", "waveform"),
)
IDA, GALLERY = "ida:", "gallery: "


@cache
def exhibits() -> dict[str, Any]:
    """Return the exhibits of the gallery by title."""
    sys.path.append(str(Path(ckcv_ray.__file__).parents[1] / "tests" / "tables"))
    import gallery

    return {exhibit.title: exhibit for exhibit in gallery.GALLERY}


NAMES = (*(f"{IDA}{name}:1" for name in SETS), *(f"{GALLERY}{title}" for title in exhibits()))


def observe(name: str) -> Values:
    """Read a table; return the digests of the task that it becomes."""
    if name.startswith(IDA):
        task, test = read_task(name)
        return describe(task) | {"test rows": test.digest}
    with TemporaryDirectory() as folder:
        try:
            task = exhibits()[name.removeprefix(GALLERY)].task(Path(folder))
        except InputError:
            return {"refused": True}
    return describe(task)


def describe(task: Task) -> Values:
    """Return the digests of a task."""
    columns = [[name, "number", [], "", False] for name in task.features]
    if (read := task.schema or task.forms) is not None:
        columns = [[one.name, str(one.kind), list(one.levels), one.form, one.lenient] for one in read]
    return {
        "task": task.digest,
        "X": digest(task.X.astype("<f8")),
        "y": digest(task.y.astype("<f8")),
        "classes": [str(label) for label in task.classes],
        "columns": digest(columns),
    }

"""The history of nights: a folder, on a disk or an object store, with one JSON file for each.

Files are written atomically, and once. A night has its figures, the commit, the package and the machine.
Speeds on different kinds of machine cannot be compared, so a night is compared only with nights of its kind:
the same processor, cores, system, Python and packages.
"""

import hashlib
import json
import os
import re
from datetime import datetime
from typing import Any, NamedTuple

from ckcv_ray import GaussianSVM, InputError, StoreError
from ckcv_ray.errors import convert_errors
from ckcv_ray.storage.execution import read_environment
from ckcv_ray.storage.files import MAX_FILE_BYTES, Files
from ckcv_ray.validation import read_as
from jobs.nightly.figures import Figure, Role

PAGE = "nightly.html"
FOLDER = "history"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Night(NamedTuple):
    """The figures of one night, and where they were measured."""

    name: str  # usually its date
    began: datetime  # UTC; nights are ordered by it
    commit: str
    package: str  # its version
    plan: str
    machine: dict[str, Any]  # processor, cores, system, python, packages, blas
    figures: tuple[Figure, ...]

    @property
    def kind(self) -> str:
        """Identifier of the kind of machine: a digest of its description."""
        canonical = json.dumps(self.machine, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def groups(self) -> list[str]:
        """List the groups measured or attempted, in order."""
        return list(dict.fromkeys(figure.group for figure in self.figures))

    def measured(self, group: str) -> list[Figure]:
        """Return the figures of a group; none if its benchmark failed."""
        figures = [figure for figure in self.figures if figure.group == group]
        return [] if any(figure.role == Role.FAILED for figure in figures) else figures


def machine() -> dict[str, Any]:
    """Describe the kind of this machine."""
    return {**read_environment(GaussianSVM()), "cores": os.cpu_count()}


def check_name(night: str) -> str:
    """Check that a night's name can be part of a file name, and return it.

    Raises:
        InputError: it cannot.
    """
    if not NAME.fullmatch(night):
        raise InputError(f"night={night!r}: letters, digits, '.', '_' and '-', at most 64, as in 2026-08-01")
    return night


def read_nights(files: Files) -> list[Night]:
    """Read all nights, the oldest first; a file that starts with a dot was left by one that was killed.

    Raises:
        StoreError: a file is damaged, or not part of a history.
    """
    nights = []
    for file in (name for name in files.list(f"{FOLDER}/") if not name.startswith(f"{FOLDER}/.")):
        with convert_errors(StoreError, f"{files.path(file)} is damaged"):
            nights.append(night := read_as(Night, json.loads(files.read(file, MAX_FILE_BYTES))))
            if file != f"{FOLDER}/{night.name}.json" or not NAME.fullmatch(night.name):
                raise ValueError(f"it contains the night {night.name!r}")
    return sorted(nights, key=lambda night: (night.began, night.name))


def add_night(files: Files, night: Night) -> None:
    """Write the file of a night.

    Raises:
        StoreError: another job has just written this night.
    """
    figures = [figure._asdict() for figure in night.figures]
    values = night._asdict() | {"began": night.began.isoformat(), "figures": figures}
    file = f"{FOLDER}/{night.name}.json"
    if not files.create(file, (json.dumps(values, indent=1) + "\n").encode()):
        raise StoreError(f"{files.path(file)} was written by another job: it is not replaced")

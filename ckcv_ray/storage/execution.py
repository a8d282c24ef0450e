"""The metadata of a run, which depend on the run rather than the study: ``execution.json``.

They include its environment: everything that may change the bits of a result.
"""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NotRequired

import numpy as np
import scipy
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.errors import read_as
from ckcv_ray.learners.base import Learner


class Evaluations(TypedDict):
    """Number of evaluations in the selection, and how many were computed, dropped as beaten, and failed."""

    planned: int
    computed: int
    dropped: int
    failed: int


class EarlierRun(TypedDict):
    """A finished run in the same parent folder that has some of the rows that this one judges.

    ``at`` is when it had judged its rows, in UTC, or the day it was finished; ``judged`` says whether it
    judged these ``rows`` or else scored or learned from them; ``twins`` whether its rows are often equal.
    """

    folder: str
    command: str
    run_id: str
    at: str
    judged: bool
    rows: int
    twins: bool


class Before(TypedDict):
    """The finished runs in the same parent folder that have some of the ``rows`` that this one judges.

    The earliest of ``runs`` comes first. ``at`` is when this run looked, in UTC, before it judged them.
    ``passed_over`` folders have the reason; ``older`` ones were not looked at.
    """

    at: str
    rows: int
    runs: list[EarlierRun]
    passed_over: dict[str, str]
    older: int


class Metadata(TypedDict):
    """Costs of a run so far, over all its sessions, and its failures: (path, k, split, traceback).

    ``solver_seconds`` leaves out fits of scikit-learn's estimators, which are made while they are scored.
    """

    seconds: float
    fits: int
    worker_seconds: float
    solver_seconds: float
    worker_bytes: int
    environment: dict[str, str]
    damaged: list[str]
    failures: list[tuple[int, int, int, str]]
    evaluations: Evaluations
    not_converged: int
    before: NotRequired[Before]


class MeasuredRates(TypedDict):
    """Error rates on test rows: of a random member, and of the majority vote."""

    error: float
    vote_error: float


class Tested(MeasuredRates):
    """Error rates of F* with the rows they were measured on, and of the best candidate of each reported k."""

    rows: int
    digest: str
    reported: dict[str, MeasuredRates]


class FinalMetadata(Metadata):
    """Metadata of a finished run; ``finished`` is the day, in UTC."""

    finished: str
    package: str
    backend: str
    workers: int
    source: str
    test: Tested | None


def read_metadata(values: Mapping[str, object], finished: bool) -> Metadata:
    """Read the metadata of a finished or unfinished run from JSON values.

    Raises:
        ValueError: an entry is missing, has another type, or contradicts the others.
    """
    metadata = read_as(FinalMetadata if finished else Metadata, values)
    planned, *parts = (metadata["evaluations"][name] for name in ("planned", "computed", "dropped", "failed"))
    if planned < 1 or min(parts) < 0 or sum(parts) > planned:
        raise ValueError("evaluations: computed, dropped and failed exceed planned, or are below 0")
    return metadata


VARIABLES = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NPY_DISABLE_CPU_FEATURES")  # these select other code
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "ray")


def find_changes(recorded: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return the differences between two environments, one sentence each."""
    names = sorted(name for name in {*recorded, *here} if recorded.get(name) != here.get(name))
    return [f"{name} was {recorded.get(name)}, here it is {here.get(name)}" for name in names]


def read_environment(learner: Learner) -> dict[str, str]:
    """Return by name what may change bits: processor, operating system, versions, BLAS, the learner's state.

    Names are such as "python", "packages.numpy", "blas.scipy" and "learner.machine_code".
    """
    return _common() | {f"learner.{name}": text for name, text in learner.trainer.state().items()}


@cache
def _common() -> dict[str, str]:
    """Return what may change the bits of any learner; cached, so callers must not modify it."""
    from importlib.metadata import PackageNotFoundError, version

    from llvmlite.binding import get_host_cpu_name

    processor = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    processor = f"{processor} ({get_host_cpu_name()})"  # the model name may not show the generation
    packages = {f"packages.{name}": "not installed" for name in PACKAGES}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[f"packages.{name}"] = version(name)
    # the BLAS that each was built with; other libraries loaded by now do not matter
    configs = {"blas.numpy": np.show_config(mode="dicts"), "blas.scipy": scipy.show_config(mode="dicts")}
    blas = {name: config["Build Dependencies"]["blas"] for name, config in configs.items()}
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **packages,
        **{name: f"{used.get('name')} {used.get('version')}" for name, used in blas.items()},
        **{f"variables.{name}": os.environ[name] for name in VARIABLES if name in os.environ},
    }

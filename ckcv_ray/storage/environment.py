"""What may change the bits of a result, for the metadata of a run."""

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy
from llvmlite.binding import get_host_cpu_name

from ckcv_ray.learners import Learner
from ckcv_ray.storage.execution import Environment

VARIABLES = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NPY_DISABLE_CPU_FEATURES")  # they choose other code
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "ray")


def changes(recorded: Mapping[str, object], here: Mapping[str, object]) -> list[str]:
    """Return what differs between two environments, a sentence each."""
    before, now = _flat(recorded), _flat(here)
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    return [f"{name} was {before.get(name)}, here it is {now.get(name)}" for name in names]


def _flat(values: Mapping[str, object]) -> dict[str, Any]:
    """Everything by its name: packages and variables as they are called, BLAS by whose it is."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{part}'s BLAS" if name == "blas" else part: one for part, one in value.items()}
        else:
            flat[name] = value
    return flat


def _blas(show_config: Callable[..., Any]) -> str:
    """The BLAS a package was built with; which other libraries are loaded by now does not matter."""
    found = show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found.get('name')} {found.get('version')}"


def environment(learner: Learner) -> Environment:
    """Return what may change bits: processor, operating system, versions, BLAS, and what the learner adds."""
    return cast(Environment, {**_common(), "learner": learner.state()})


@cache
def _common() -> dict[str, Any]:
    """What may change the bits of any learner. Not to be written to."""
    from importlib.metadata import version

    processor = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    processor = f"{processor} ({get_host_cpu_name()})"  # the model's name may hide its generation
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "blas": {"numpy": _blas(np.show_config), "scipy": _blas(scipy.show_config)},
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }

"""The environment of a run, recorded in its metadata: everything that may change the bits of a result."""

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy

from ckcv_ray.learners import Learner
from ckcv_ray.storage.execution import Environment

VARIABLES = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NPY_DISABLE_CPU_FEATURES")  # these select other code
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "ray")


def changes(recorded: Mapping[str, object], here: Mapping[str, object]) -> list[str]:
    """Return the differences between two environments, one sentence each."""
    before, now = _flat(recorded), _flat(here)
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    return [f"{name} was {before.get(name)}, here it is {now.get(name)}" for name in names]


def _flat(values: Mapping[str, object]) -> dict[str, Any]:
    """Return all values by name: packages and variables by their own, BLAS by the package that uses it."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{part}'s BLAS" if name == "blas" else part: text for part, text in value.items()}
        else:
            flat[name] = value
    return flat


def _blas(show_config: Callable[..., Any]) -> str:
    """Return the BLAS a package was built with; other libraries that are loaded by now do not matter."""
    blas = show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name')} {blas.get('version')}"


def environment(learner: Learner) -> Environment:
    """Return what may change bits: processor, operating system, versions, BLAS, and what the learner adds."""
    return cast(Environment, {**_common(), "learner": learner.trainer.state()})


@cache
def _common() -> dict[str, Any]:
    """Return what may change the bits of any learner; cached, so callers must not modify it."""
    from importlib.metadata import PackageNotFoundError, version

    from llvmlite.binding import get_host_cpu_name

    processor = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    processor = f"{processor} ({get_host_cpu_name()})"  # the model name may not show the generation
    packages = dict.fromkeys(PACKAGES, "not installed")
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": packages,
        "blas": {"numpy": _blas(np.show_config), "scipy": _blas(scipy.show_config)},
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }

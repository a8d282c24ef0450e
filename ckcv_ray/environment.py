"""What may change the bits of a result, for the account of a run."""

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from ckcv_ray.account import Environment

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pyarrow", "ray")


def changes(recorded: Mapping[str, object], here: Mapping[str, object] | None = None) -> list[str]:
    """What is not here, in this environment or another, as it was when ``recorded`` was: a sentence each."""
    before, now = _flat(recorded), _flat(environment() if here is None else here)
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    return [f"{name} was {before.get(name)}, here it is {now.get(name)}" for name in names]


def _flat(values: Mapping[str, object]) -> dict[str, Any]:
    packages = values.get("packages")
    plain = {name: value for name, value in values.items() if name != "packages"}
    return {**plain, **(packages if isinstance(packages, dict) else {})}


@cache
def environment() -> Environment:
    """What may change bits: processor, operating system, versions, BLAS. Not to be written to."""
    from importlib.metadata import version

    processor = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    blas = sorted({f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info()})
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "blas": blas,
    }

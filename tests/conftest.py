"""What the tests share: one Ray for the whole session, small tasks, and the IDA archive where it is."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # before ray is imported: loopback alone
os.environ["CKCV_TESTS"] = str(os.getpid())  # what our Ray starts inherits it: tests may run side by side

import numpy as np
import pytest
import ray

from ckcv_ray.data.task import Task
from ckcv_ray.study import Study


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    ray.init(address="local", num_cpus=3, _node_ip_address="127.0.0.1", **options)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def ida() -> Path:
    archive = os.environ.get("CKCV_IDA", "")
    if not archive.endswith(".npz"):
        pytest.skip("CKCV_IDA does not name the IDA archive (.npz)")
    return Path(archive)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for the user's cache, and no archive named in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.delenv("CKCV_IDA", raising=False)
    return tmp_path / "home"


def blobs(n: int, d: int = 2, seed: int = 0, shift: float = 1.0) -> Task:
    """Two overlapping clouds, with both classes present."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, d)))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return Task.of(rng.normal(size=(n, d)) + shift * y[:, None] / 2, y)


@pytest.fixture
def task() -> Task:
    return blobs(30)


@pytest.fixture
def study() -> Study:
    return Study.of(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5)

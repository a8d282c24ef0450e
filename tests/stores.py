"""Object stores for tests: one in memory, one that speaks S3 on loopback, and some that misbehave."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from s3_server import S3Server

from ckcv_ray.errors import UnreachableError
from ckcv_ray.storage import files
from ckcv_ray.tables import read as table_files
from ckcv_ray.tables.objects import Address, Bucket
from jobs.faults.servers import MOTO, serve

BUCKET = "bucket"
RUN = f"s3://{BUCKET}/runs/x"


class MemoryBucket(Bucket):
    """A bucket in memory, with the same client: buckets made with one store see the same objects."""

    def __init__(self, address: Address, store: Any) -> None:
        super().__init__(address)
        self._store = store


class RepeatingBucket(MemoryBucket):
    """Creates an object, then says it was there: a repeated request that met its own write."""

    def create(self, name: str, content: bytes) -> bool:
        super().create(name, content)
        return False


class CarelessBucket(MemoryBucket):
    """Ignores that an object is to be created only if there is none, and answers that all is well."""

    def create(self, name: str, content: bytes) -> bool:
        self.put(name, content)
        return True


class FailingBucket(MemoryBucket):
    """Answers as many requests as are left, a list of one number, and then none.

    ``late`` carries out the first that fails.
    """

    def __init__(self, address: Address, store: Any, left: list[int], late: bool) -> None:
        super().__init__(address, store)
        self.left, self.late = left, late
        self.counting = Lock()  # several may ask at once

    def _ask(self, action: str, request: Callable[[], Any]) -> Any:
        with self.counting:
            self.left[0] -= 1
            left = self.left[0]
        if left == -1 and self.late:
            with suppress(FileNotFoundError):
                super()._ask(action, request)
        if left < 0:
            raise UnreachableError(f"cannot {action}: the cable was pulled")
        return super()._ask(action, request)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store in memory that every address leads to."""
    store = pytest.importorskip("obstore").store.MemoryStore()
    use(monkeypatch, lambda address: MemoryBucket(address, store))
    return store


def use(monkeypatch: pytest.MonkeyPatch, make: Callable[[Address], Bucket]) -> None:
    """Let every address lead to a bucket made by ``make``."""
    monkeypatch.setattr(files, "Bucket", make)
    monkeypatch.setattr(table_files, "Bucket", make)


def list_keys(store: Any) -> list[str]:
    import obstore

    return sorted(entry["path"] for page in obstore.list(store) for entry in page)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server on loopback in this process that speaks S3."""
    pytest.importorskip("obstore")
    server = S3Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server with one empty bucket, as the environment names it."""
    s3_server.buckets = {BUCKET: {}}
    s3_server.disturb, s3_server.ignores_conditions = lambda request: None, False
    set_environment(monkeypatch, s3_server.endpoint)
    return s3_server


def set_environment(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Let the environment lead to a server."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    given = {"ENDPOINT_URL": endpoint, "ALLOW_HTTP": "true", "REGION": "us-east-1"}
    for name, value in {**given, "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "hidden-key"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """The address of moto, a third-party server that speaks S3, with one bucket; only at night."""
    pytest.importorskip("obstore")
    if not (MOTO / "moto").is_dir():
        pytest.skip("moto is not in build/moto: jobs/night installs it")
    with serve(BUCKET) as environment:
        yield environment["AWS_ENDPOINT_URL"]


@pytest.fixture
def moto(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Moto, as the environment names it."""
    set_environment(monkeypatch, moto_endpoint)
    return moto_endpoint


def read_all(address: str | Path) -> dict[str, bytes]:
    """Every file of a run, by name."""
    found = files.open_files(str(address))
    return {name: found.read(name, 1 << 30) for name in sorted(found.walk())}


def results(address: str | Path) -> dict[str, bytes]:
    """The files of a run that may not depend on where or how it was made."""
    others = ("execution.json", "manifest.json", ".lock")
    found = read_all(address)
    return {name: found[name] for name in found if not name.endswith(others) and "log/" not in name}

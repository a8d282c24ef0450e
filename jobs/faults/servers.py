"""Moto on loopback: an object store in memory that speaks S3, for a job that injects faults and for tests.

``jobs/night`` installs it in build/moto; CKCV_MOTO may name another folder.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from urllib.request import Request, urlopen

from ckcv_ray.storage.files import open_files

MOTO = Path(os.environ.get("CKCV_MOTO") or Path(__file__).resolve().parents[2] / "build" / "moto")
START = 240.0  # seconds within which it has to answer


@contextmanager
def serve(bucket: str) -> Iterator[dict[str, str]]:
    """Start a server with one bucket; yield the variables that lead to it."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet, environment = subprocess.DEVNULL, {**os.environ, "PYTHONPATH": str(MOTO)}
    endpoint = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment) as server:
        try:
            _make_bucket(f"{endpoint}/{bucket}", server, time.monotonic() + START)
            named = {"ENDPOINT_URL": endpoint, "ALLOW_HTTP": "true", "REGION": "us-east-1"}
            keys = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "hidden-key"}
            yield {f"AWS_{name}": value for name, value in (named | keys).items()}
        finally:
            server.kill()


def _make_bucket(url: str, server: "subprocess.Popen[bytes]", deadline: float) -> None:
    while True:
        try:
            urlopen(Request(url, method="PUT")).close()
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def copy_objects(address: str, folder: Path) -> None:
    """Copy the objects of a run to a disk, as any program would: the copy is the run folder."""
    files = open_files(address)
    for name in files.walk():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(files.read(name, 1 << 30))


if __name__ == "__main__":
    copy_objects(sys.argv[1], Path(sys.argv[2]))

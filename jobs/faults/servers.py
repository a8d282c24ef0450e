"""Object stores on loopback for the jobs that inject faults: moto in memory, or Ceph's gateway."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from socket import create_server
from urllib.request import Request, urlopen

from ckcv_ray.storage.objects import open_files

BUCKET = "faults"
MOTO = os.environ.get("CKCV_MOTO", str(Path(__file__).resolve().parents[2] / "build" / "moto"))
KEYS = {
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "testtest",
}
DOWN = (0.2, 3.0)  # seconds that a part of a server is down
START = 240.0  # seconds in which a server has to answer


class Server(ABC):
    """An object store on loopback.

    Args:
        folder: an empty one, for its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @abstractmethod
    def list_commands(self) -> dict[str, list[str]]:
        """Return the command of each of its processes, by name."""

    def start(self, name: str) -> None:
        """Start one of its processes."""
        command = self.list_commands()[name]
        log = (self.folder / f"{name}.out").open("ab")
        with log:
            environment = {**os.environ, "PYTHONPATH": str(MOTO)}
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill(self, name: str) -> None:
        """Send SIGKILL to one of its processes."""
        self.processes[name].kill()
        self.processes[name].wait()

    def open(self) -> None:
        """Start it, and make the bucket."""
        for name in self.list_commands():
            self.start(name)

    def close(self) -> None:
        """End all of its processes."""
        for name in self.processes:
            self.kill(name)

    def set_environment(self) -> None:
        """Let the environment of this process, and of those it starts, lead to the server."""
        os.environ.update({**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"})


class Moto(Server):
    """A server in memory, which loses everything when it is killed, and so is not."""

    def list_commands(self) -> dict[str, list[str]]:
        """Return the command of its one process."""
        words = ["-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        return {"moto": [sys.executable, *words]}


class Ceph(Server):
    """Ceph's gateway with a monitor and an OSD, each of which may be killed and started again."""

    def list_commands(self) -> dict[str, list[str]]:
        """Return the commands of its three processes."""
        conf, ring = ["-c", str(self.folder / "ceph.conf")], ["--keyring", str(self.folder / "keyring")]
        osd = ["--keyring", str(self.folder / "osd" / "keyring")]
        return {
            "mon": ["ceph-mon", *conf, "-i", "a", "-f"],
            "osd": ["ceph-osd", *conf, "-i", "0", "-f", *osd],
            "rgw": ["radosgw", *conf, "-n", "client.admin", *ring, "-f"],
        }

    def open(self) -> None:
        """Make the cluster; its processes are then started once more, as children of this one."""
        script = Path(__file__).with_name("ceph_up.sh")
        with create_server(("127.0.0.1", 0)) as free:
            monitor = str(free.getsockname()[1])
        subprocess.run(["bash", script, self.folder, str(self.port), monitor], check=True, stdout=sys.stderr)
        for name in self.list_commands():
            os.kill(int((self.folder / "run" / f"{name}.pid").read_text()), signal.SIGKILL)
        super().open()


SERVERS: dict[str, type[Server]] = {"moto": Moto, "ceph": Ceph}


@contextmanager
def serve(name: str) -> Iterator[Server]:
    """Yield a server of ``SERVERS`` that runs and has the bucket, and end it."""
    with tempfile.TemporaryDirectory(prefix="ckcv-store-") as folder:
        server = SERVERS[name](Path(folder))
        server.set_environment()
        try:
            server.open()
            deadline = time.monotonic() + START
            while not make_bucket():
                if time.monotonic() > deadline:
                    raise SystemExit("the server did not start")
                time.sleep(0.2)
            yield server
        finally:
            server.close()


def make_bucket() -> bool:
    """Make the bucket; return whether the server answered."""
    import obstore
    from obstore.store import S3Store

    url = obstore.sign(S3Store(BUCKET), "PUT", "", timedelta(seconds=START))
    try:
        urlopen(Request(url, method="PUT"), timeout=START).close()
    except OSError:
        return False
    return True


def copy_objects(address: str, folder: Path) -> None:
    """Copy the objects of a run to a disk, as any program does: the copy is the run folder."""
    files = open_files(address)
    for name in files.walk():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(files.read(name, 1 << 30))


if __name__ == "__main__":
    copy_objects(sys.argv[1], Path(sys.argv[2]))

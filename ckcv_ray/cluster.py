"""The Ray backend: the only module that imports ray, and nothing but Ray is in it.

Data are put into the object store once; a batch is a task; the aggregator is an actor on the driver's
node, the only writer of the run folder.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ckcv_ray import worker
from ckcv_ray.aggregator import Aggregator
from ckcv_ray.data import Table
from ckcv_ray.errors import InputError, RunError
from ckcv_ray.study import Study, Task

LOOPBACK = "127.0.0.1"
REACH_SECONDS = 5.0
WAIT_SECONDS = 0.5
OOM_RETRIES = 3
IN_FLIGHT = 2
TOKEN = Path.home() / ".ray" / "auth_token"


@ray.remote(max_retries=3)
def _evaluate(tasks: list[Task], study: Study, data: worker.LearningSet) -> worker.Outcome:
    return worker.evaluate(tasks, study, data)


_AggregatorActor: Any = ray.remote(num_cpus=0)(Aggregator)


class RayBackend:
    """Batches as Ray tasks.

    Args:
        workers: batches at once; None for every CPU there is.
        address: of a running cluster; "local" for a Ray of our own on loopback.
        apart: whether the aggregator is an actor; if not it lives in the driver's process.
    """

    name = "ray"
    least_seconds = 0.05

    def __init__(self, workers: int | None = None, address: str = "local", apart: bool = True) -> None:
        self._apart = apart
        self._owns = not ray.is_initialized()
        if self._owns:
            _connect(workers, address)
        self._cpus = int(ray.cluster_resources().get("CPU", 1))
        self.workers = min(workers or self._cpus, self._cpus)
        self.window = self.workers
        self._pending: dict[Any, list[Task]] = {}
        self._actor: Any = None

    def start(self, study: Study, table: Table, out: Path | None) -> Aggregator:
        """Put study and data into the object store; make the actor beside the driver."""
        need = worker.memory(study, *table.X.shape)
        self.workers = self._fitting(need)
        self.window = self.workers if self.workers < self._cpus else IN_FLIGHT * self.workers
        self._task = _evaluate.options(memory=need)
        self._study = ray.put(study)
        self._data = ray.put(worker.share(table.X, table.y, study))
        if not self._apart:
            return Aggregator(study, table, out)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._actor = _AggregatorActor.options(scheduling_strategy=here).remote(study, table, out)
        return cast(Aggregator, _Remote(self._actor))

    def submit(self, tasks: list[Task]) -> None:
        """Send a batch to whichever worker is free."""
        self._pending[self._task.remote(tasks, self._study, self._data)] = tasks

    def in_flight(self) -> int:
        """Batches not handed back."""
        return len(self._pending)

    def wait(self) -> list[worker.Outcome]:
        """What the batches gave back that are done, if any is within a short while."""
        done, _ = ray.wait(list(self._pending), num_returns=1, timeout=WAIT_SECONDS, fetch_local=False)
        return [self._settled(reference, self._pending.pop(reference)) for reference in done]

    def close(self) -> None:
        """Cancel what runs, end the actor, and shut down a Ray that is ours."""
        for reference in self._pending:
            ray.cancel(reference, force=True)
        self._pending = {}
        if self._actor is not None:
            ray.kill(self._actor)
            self._actor = None
        if self._owns and ray.is_initialized():
            ray.shutdown()

    def _fitting(self, need: int) -> int:
        """How many of the workers have room for ``need`` bytes each, on the nodes as they are."""
        room = [int(node["Resources"].get("memory", 0)) // need for node in ray.nodes() if node["Alive"]]
        if not sum(room):
            most = max(int(node["Resources"].get("memory", 0)) for node in ray.nodes() if node["Alive"])
            raise InputError(
                f"a worker needs {need >> 20} MiB of memory for this table, and no node offers more than "
                f"{most >> 20} MiB: use a larger machine, or fewer rows"
            )
        return min(self.workers, sum(room))

    def _settled(self, reference: Any, tasks: list[Task]) -> worker.Outcome:
        """What a batch gave back, or failures in its place where it was lost for good."""
        try:
            outcome: worker.Outcome = ray.get(reference)
        except RayError as error:
            return worker.failed(tasks, ray.get(self._study), str(error))
        return outcome


@contextmanager
def connected(workers: int | None, address: str) -> Iterator[None]:
    """One connection for several backends; a Ray that is ours is shut down at the end."""
    owns = not ray.is_initialized()
    if owns:
        _connect(workers, address)
    try:
        yield
    finally:
        if owns and ray.is_initialized():
            ray.shutdown()


class _Remote:
    """An actor's methods as ordinary ones, raising what they raised."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._actor, name)

        def call(*args: Any) -> Any:
            try:
                return ray.get(method.remote(*args))
            except RayTaskError as error:
                raise error.cause from None
            except RayActorError as error:
                raise RunError(
                    f"the aggregator died: {error}; give the same command again to go on"
                ) from None

        return call


def _connect(workers: int | None, address: str) -> None:
    """Join a cluster, or start a Ray of our own on loopback; SIGTERM keeps the handler it had."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_task_oom_retries", str(OOM_RETRIES))
    if address == "local":
        options |= {
            "address": "local",
            "num_cpus": workers,
            "include_dashboard": False,
            "_node_ip_address": LOOPBACK,
        }
    else:
        _reach(address)
        options |= {"address": address}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError) as error:
        raise InputError(f"cannot join or start Ray at address={address!r}: {error}") from None
    if TOKEN.is_file():  # ray.init makes it readable to everyone
        TOKEN.chmod(0o600)
    if main:
        signal.signal(signal.SIGTERM, handler)


def _reach(address: str) -> None:
    """Raise InputError at once where a client of Ray would try for a minute."""
    if address.startswith("ray://"):
        raise InputError(
            f"address={address!r}: run on a machine of the cluster, or as a job, not by Ray Client"
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        if address == "auto":
            return
        raise InputError(f"address={address!r}: expected host:port, or auto for the cluster on this machine")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address}: {error.strerror or error}") from None

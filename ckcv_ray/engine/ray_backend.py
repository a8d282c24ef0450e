"""Ray backend, its cluster and its metrics. This is the only module that imports ray.

The inputs are put into the object store once; a batch is a Ray task; the recorder is an actor on the driver's
node, the only writer of the run folder. A recorder that dies is replaced by a new one, which loads the run
folder. A batch lost with a worker or a node is sent again a few times, then as two halves, each counted from
zero: so a path that kills every worker is isolated and recorded as failed, while everything else is computed.

The cluster is one to join, or a local one on loopback, which requires a token. Each node serves Prometheus
metrics of the run at its metrics port.
"""

import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from pickle import PicklingError
from time import monotonic
from typing import Any, cast

import ray
from ray._private import ray_constants
from ray._raylet import AuthenticationTokenLoader  # type: ignore[attr-defined]  # its stub lacks it
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.metrics import Counter, Gauge
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ckcv_ray.core.schedule import Unit
from ckcv_ray.engine.backend import reach
from ckcv_ray.engine.evaluate import Inputs, estimate_memory, evaluate, make_failures
from ckcv_ray.engine.queue import Batch, Listener, Progress
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import InputError, RunError
from ckcv_ray.records.record import Outcome
from ckcv_ray.storage.folder import FolderPath
from ckcv_ray.study.problem import Problem


class Metrics:
    """Metrics of this process; further instances continue the same counts."""

    def __init__(self) -> None:
        self._done = Gauge("ckcv_evaluations_done", "Evaluations of the selection computed so far.")
        self._dropped = Gauge("ckcv_evaluations_dropped", "Evaluations dropped as provably beaten so far.")
        self._failed = Gauge("ckcv_evaluations_failed", "Evaluations that failed so far.")
        self._waiting = Gauge("ckcv_batches_in_flight", "Batches submitted and not returned.")
        self._fits = Counter("ckcv_fits_total", "Models fitted.")
        self._solving = Counter("ckcv_solver_seconds_total", "Seconds of fits, without scikit-learn's.")

    def count(self, outcomes: Sequence[Outcome], in_flight: int) -> None:
        """Count the outcomes of batches, and set the number of batches in flight."""
        for outcome in outcomes:
            self._fits.inc(outcome.fits) if outcome.fits else None
            self._solving.inc(outcome.solving) if outcome.solving else None
        self._waiting.set(in_flight)

    def show(self, progress: Progress) -> None:
        """Set the metrics of a run's progress."""
        self._done.set(progress.computed)
        self._dropped.set(progress.dropped)
        self._failed.set(progress.failed)


MAX_ATTEMPTS = 3


def replacements(batch: Batch, split: bool = False) -> list[Batch]:
    """Return the batches to send instead of a lost one; none if a single path was lost too many times.

    ``split``: send its halves at once: each attempt at a batch with a fit that never ends takes its time.
    """
    parts = halves(batch.units)
    if batch.lost + 1 < MAX_ATTEMPTS and not (split and parts):
        return [batch._replace(lost=batch.lost + 1)]
    return [batch._replace(units=part, lost=0) for part in parts]


def halves(units: tuple[Unit, ...]) -> list[tuple[Unit, ...]]:
    """Return the two halves of several units, or of the paths of one unit; none for a single path."""
    if len(units) > 1:
        middle = len(units) // 2
        return [units[:middle], units[middle:]]
    (unit,) = units
    middle = len(unit.paths) // 2
    parts = (unit.paths[:middle], unit.paths[middle:]) if middle else ()
    return [(unit._replace(paths=paths),) for paths in parts]


POLL_SECONDS = 5.0
WAIT_SECONDS = 0.5
MAX_DEATHS = 5  # recorders that may die in a row within one call
IN_FLIGHT = 2
MAX_CONCURRENT_STUDIES = 3  # in ``run_many``


@ray.remote(max_retries=0)
def _evaluate(units: tuple[Unit, ...], seconds: float, inputs: list[Any]) -> Outcome:
    return evaluate(_load_inputs(*inputs), units, seconds)


@lru_cache(maxsize=MAX_CONCURRENT_STUDIES)
def _load_inputs(reference: Any) -> Inputs:
    """Return the inputs of a study, unpickled once by each worker, which keeps with them what is derived."""
    return cast(Inputs, ray.get(reference))


class RemoteRecorder(Recorder[Any]):
    """A recorder that is an actor."""


_RecorderActor: Any = ray.remote(num_cpus=0)(RemoteRecorder)


class RayBackend:
    """Evaluates batches as tasks of the Ray cluster that this process is connected to.

    Args:
        workers: number of batches evaluated at once; None for one per CPU.
        fit_timeout: seconds that one fit may take; None for no limit.
    """

    name = "ray"
    least_seconds = 0.05

    def __init__(self, workers: int | None = None, fit_timeout: float | None = None) -> None:
        self.fit_timeout, self._asked = fit_timeout, workers
        self.workers = self.window = 1
        self._pending: dict[Any, Batch] = {}
        self._metrics = Metrics()
        self.listener: Listener | None = self._metrics.show

    def start(self, inputs: Inputs) -> None:
        """Put the inputs into the object store."""
        self._need = estimate_memory(inputs.problem)
        self._count_workers()
        self._given = inputs._replace(fit_timeout=self.fit_timeout)
        self._task = _evaluate.options(memory=self._need)
        try:
            self._inputs = ray.put(self._given)
        except (TypeError, PicklingError) as error:
            raise InputError(f"the learner or a measure cannot be sent to workers: {error}") from None

    def submit(self, batch: Batch) -> None:
        """Submit a batch as a task."""
        self._pending[self._task.remote(batch.units, batch.seconds, [self._inputs])] = batch

    def in_flight(self) -> int:
        """Return the number of batches submitted but not returned."""
        return len(self._pending)

    def wait(self) -> list[Outcome]:
        """Wait a short time for a batch to finish; return the outcomes available."""
        if monotonic() - self._looked > POLL_SECONDS:
            with suppress(InputError):  # nodes with enough memory are gone, but may come back
                self._count_workers()
        pending = list(self._pending)
        done, _ = ray.wait(pending, num_returns=1, timeout=WAIT_SECONDS, fetch_local=False)
        if done:  # then all that are done: a call looks at every pending batch anyway
            done, _ = ray.wait(pending, num_returns=len(pending), timeout=0, fetch_local=False)
        outcomes: list[Outcome] = []
        for reference in done:
            outcomes += self._receive(reference, self._pending.pop(reference))
        self._metrics.count(outcomes, len(self._pending))
        return outcomes

    def close(self) -> None:
        """Forget all running tasks; they end with the connection at the latest.

        They are not cancelled: Ray 2.60 ends this process if a task completes while being cancelled
        ("Tried to complete task that was not pending").
        """
        self._pending = {}

    def _count_workers(self) -> None:
        """Update the number of concurrent batches from the live nodes."""
        self._looked = monotonic()
        resources = (node["Resources"] for node in ray.nodes() if node["Alive"])
        nodes = [resource for resource in resources if "CPU" in resource]
        cpus = sum(int(node["CPU"]) for node in nodes)
        places = sum(min(int(n["CPU"]), int(n.get("memory", 0)) // self._need) for n in nodes)
        if nodes and not places:
            raise InputError(
                f"a worker needs {self._need >> 20} MiB of memory for this table, and no node offers more "
                f"than {max(int(node.get('memory', 0)) for node in nodes) >> 20} MiB: use a larger machine, "
                "or fewer rows"
            )
        self.workers = max(1, min(self._asked or places, places))
        self.window = self.workers if self.workers < cpus else IN_FLIGHT * self.workers

    def _receive(self, reference: Any, batch: Batch) -> Iterator[Outcome]:
        """Yield the outcome of a batch; none if lost and sent again, failures if lost too many times."""
        try:
            yield ray.get(reference)
        except RayError as error:
            batches = replacements(batch, split=self.fit_timeout is not None)
            for replacement in batches:
                self.submit(replacement)
            if not batches:
                yield make_failures(batch.units, self._given, f"lost {MAX_ATTEMPTS} times: {error}")


def remote_recorder(problem: Problem, out: FolderPath | None) -> Recorder[Any]:
    """Make a recorder that runs as an actor on the driver's node."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options = _RecorderActor.options(scheduling_strategy=here)
    given = ray.put(problem)
    return cast(Recorder[Any], _Remote(lambda: options.remote(given, out)))


class _Remote:
    """Proxy of a recorder actor: its methods, called synchronously, raising their own exceptions.

    A dead actor is replaced by a new one, which is opened, and the call is repeated: the methods of a
    recorder may be called twice.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._actor = make()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            for _ in range(MAX_DEATHS):
                try:
                    return self._ask(name, *args)
                except RayActorError as error:
                    reason, self._actor = error, self._make()
                    with suppress(RayActorError):  # the next call raises it again
                        self._ask("open")
            raise RunError(f"the recorder keeps dying: {reason}; run the same command again to resume")

        return call

    def close(self) -> None:
        """Close the recorder, and kill the actor."""
        try:
            self.__getattr__("close")()
        finally:
            ray.kill(self._actor)

    def _ask(self, name: str, *args: Any) -> Any:
        try:
            return ray.get(getattr(self._actor, name).remote(*args))
        except RayTaskError as error:
            raise error.cause from None


PACKAGE = Path(__file__).resolve().parents[1]
TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")  # given by a user


@contextmanager
def connect(workers: int | None, address: str) -> Iterator[None]:
    """Connect to Ray for several backends; a Ray instance started here is shut down at the end.

    A local Ray has its own token, in the environment of its processes: the file that Ray would make can
    be read by everybody.
    """
    if ray.is_initialized():
        yield
        return
    own = address == "local" and not any(map(os.environ.get, TOKENS))
    known = AuthenticationTokenLoader.instance()
    if own:
        os.environ[TOKENS[0]] = secrets.token_hex(32)
        known.reset_cache()
    try:
        _connect(workers, address)
        yield
    finally:
        ray.shutdown()
        if own:
            del os.environ[TOKENS[0]]
            known.reset_cache()


def _connect(workers: int | None, address: str) -> None:
    """Join a cluster, or start a local Ray on loopback; the handler of SIGTERM is restored."""
    handler = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
    os.environ.setdefault("RAY_task_oom_retries", "0")  # this backend retries, with a limit
    if address == "local":
        # under "uv run", Ray would pack the current folder, and change its workers' environment
        ray_constants.RAY_ENABLE_UV_RUN_RUNTIME_ENV = False
        options |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        if "RAY_AUTH_MODE" not in os.environ:
            os.environ["RAY_AUTH_MODE"] = "token"
            ray._raylet.Config.initialize("")  # read again what Ray read on import
    else:
        reach(address)
        if not {"site-packages", "dist-packages", "runtime_resources"} & set(PACKAGE.parts):  # a checkout
            options |= {"runtime_env": {"py_modules": [str(PACKAGE)]}}
    try:
        ray.init(**options)
    except (OSError, RuntimeError, RayError) as error:
        raise InputError(f"cannot join or start Ray at address={address!r}: {error}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)

"""A worker process for fits that may crash, end their process or never return.

Compiled code of an estimator may do any of these, and cannot be interrupted. So what is fitted by packages
other than scikit-learn, or within a time limit, is computed by ``python -m ckcv_ray.engine.worker``, which
receives functions and their arguments by pickle. What it prints goes to standard error. It does not outlive
this process: its pipe ends, and on Linux the kernel ends it, even inside compiled code.
"""

import atexit
import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from subprocess import Popen, TimeoutExpired
from threading import Lock
from time import monotonic
from typing import TypeVar, cast

from ckcv_ray.errors import CKCVError, InputError, RunError
from ckcv_ray.learners.base import Learner, end_forks
from ckcv_ray.learners.sklearn.spec import HERE, list_foreign

LOOK_SECONDS = 0.1  # between checks that the worker is alive
END_SECONDS = 5.0  # that it has to end once its pipe is closed
PR_SET_PDEATHSIG = 1  # on Linux
STDERR = 2
Returned = TypeVar("Returned")
_unpickle = pickle.loads  # only what this process and its worker send each other
UNSENT = "the learner or a measure cannot be sent to a worker process"


class LostError(RunError):
    """The worker ended before it answered, or did not answer in time."""


class Worker:
    """A process that is started when first needed, and again after it has ended."""

    _child: Popen[bytes] | None = None
    _connection: Connection
    _shared: object = None

    def __init__(self) -> None:
        self._lock = Lock()
        self._starter = ThreadPoolExecutor(1)  # the kernel ends a child with the thread that started it

    def call(
        self, function: Callable[..., Returned], shared: object, *arguments: object, seconds: float = inf
    ) -> Returned:
        """Return ``function(shared, *arguments)``; calls in a row with the same ``shared`` send it once.

        Raises:
            InputError: something cannot be sent.
            LostError: the worker ended, or did not answer in time.
            CKCVError: what the function raised; for any other error, a RunError with its traceback.
        """
        import cloudpickle

        with self._lock:
            if self._child is None:
                self._connection, other = Pipe()
                path = os.pathsep.join(path or os.getcwd() for path in sys.path)
                command = [sys.executable, "-P", "-m", __name__, str(other.fileno()), str(os.getpid())]
                with other:
                    self._child = self._starter.submit(
                        Popen,
                        command,
                        env={**os.environ, "PYTHONPATH": path},
                        pass_fds=[other.fileno()],
                        stdout=STDERR,
                        start_new_session=True,  # Ctrl-C is for this process, which decides what to end
                    ).result()
            child = self._child
            try:
                new, self._shared = () if shared is self._shared else (shared,), shared
                try:
                    content = cloudpickle.dumps((function, arguments, new))
                except Exception as error:  # pickle may raise anything
                    raise InputError(f"{UNSENT}: {error}") from None
                until = monotonic() + seconds
                self._connection.send_bytes(content)
                while not self._connection.poll(LOOK_SECONDS):
                    if child.poll() is not None:  # what it started may still hold its end of the pipe
                        raise EOFError
                    if monotonic() > until:
                        _kill(child)
                answer = _unpickle(self._connection.recv_bytes())
                if isinstance(answer, CKCVError):
                    raise answer
                return cast(Returned, answer)
            except (EOFError, OSError):
                raise LostError(f"it ended its process: {self._end(child)}") from None
            except CKCVError:
                self._shared = None
                raise
            except BaseException:  # an interruption while the worker computes
                _kill(child)
                self._end(child)
                raise

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._child is not None:
                self._end(self._child)

    def _end(self, child: Popen[bytes]) -> str:
        """End the process; return how it ended."""
        self._connection.close()
        try:
            code = child.wait(END_SECONDS)
        except TimeoutExpired:
            child.kill()
            code = child.wait()
        _kill(child)
        self._child = self._shared = None
        if code >= 0:
            return f"exit code {code}"
        return f"{signal.strsignal(-code)} ({signal.Signals(-code).name})"


def _kill(child: Popen[bytes]) -> None:
    """End a process, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


_worker = Worker()


def _leave() -> None:
    """Leave the worker to the parent from which this process was forked, and start afresh."""
    global _worker
    if _worker._child is not None:
        _worker._connection.close()
    _worker = Worker()


atexit.register(lambda: _worker.close())
os.register_at_fork(after_in_child=_leave)


def compute_apart(
    learner: Learner,
    fit_timeout: float | None,
    function: Callable[..., Returned],
    shared: object,
    *arguments: object,
    seconds: float = inf,
) -> Returned:
    """Return ``function(shared, *arguments)``, from the worker if the learner's fits may harm this process.

    They may end it, or have to if late. A class that no other process can import is fitted here all the same.

    Args:
        learner: whose fits the function makes.
        fit_timeout: seconds that the function lets each fit take before it ends the process; None for any.
        function, shared, arguments, seconds: see ``Worker.call``.

    Raises:
        InputError, LostError, CKCVError: see ``Worker.call``.
    """
    foreign = list_foreign(learner.by_label.values())
    if HERE in foreign or (fit_timeout is None and not foreign):
        return function(shared, *arguments)
    return _worker.call(function, shared, *arguments, seconds=seconds)


def serve(descriptor: int, parent: int) -> None:
    """Answer the process with this number through a pipe until the other end is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has already ended
        return
    connection, shared = Connection(descriptor), None
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        try:
            function, arguments, new = _unpickle(message)
            shared = new[0] if new else shared
            with end_forks():
                answer = pickle.dumps(function(shared, *arguments))
        except CKCVError as error:
            answer = pickle.dumps(error)
        except Exception:  # an estimator may raise anything
            answer = pickle.dumps(RunError(traceback.format_exc()))
        connection.send_bytes(answer)


if __name__ == "__main__":
    from ckcv_ray.engine import worker  # its functions and errors are not those of __main__

    worker.serve(*map(int, sys.argv[1:]))

"""Containment of the code of others: an estimator of a user's, or a learner of an installed package.

It may raise anything, fork, and change what belongs to the whole process. Around its calls all of that is
contained: what it raises becomes an exception like any other, a forked child ends where it would go on with
our code, and the global state is restored.
"""

import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import Any

import numpy as np

from ckcv_ray.core.interrupts import note_interrupts

CHILD_ENDED = 1  # exit code of a forked child
MOST_ANSWER_BYTES = 4096  # that a pipe takes at once
STREAMS = ("stdin", "stdout", "stderr")
VALID_SIGNALS = sorted(signal.valid_signals())


class EndedError(RuntimeError):
    """Foreign code tried to end the program."""


def end_forked_child(process: int) -> None:
    """End this process at once, without any clean-up, unless it has this number.

    A fork inside foreign code gives two processes that return to ours: the child must neither write to the
    run folder nor release its lock.
    """
    if os.getpid() != process:
        os._exit(CHILD_ENDED)


def describe_end(error: BaseException) -> str:
    """Return a sentence on an exception that would end the program, such as SystemExit."""
    return f"it raised {error!r}, which would end the program"


@contextmanager
def contain() -> Iterator[None]:
    """Turn what foreign code raises to end the program, such as SystemExit, into an exception.

    What a signal handler raised is raised, even if foreign code caught it. A forked child ends here.

    Raises:
        EndedError: foreign code raised what would end the program.
    """
    process = os.getpid()
    with note_interrupts() as interrupts:
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            interrupts.check()
            raise EndedError(describe_end(error)) from error
        finally:
            end_forked_child(process)
            interrupts.check()


def ask_child(function: Callable[[], str], seconds: float) -> str | None:
    """Return the text that a function returns in a forked child; None if that crashes or takes too long.

    So foreign code can be tried before anything depends on it.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: what blocks the child ends in time
        child = os.fork()
    if not child:
        try:
            os.write(writer, f"={function()}".encode()[:MOST_ANSWER_BYTES])
        finally:
            os._exit(0)
    os.close(writer)
    try:
        answer = os.read(reader, MOST_ANSWER_BYTES) if select([reader], [], [], seconds)[0] else b""
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return answer.decode(errors="replace")[1:] if answer else None


@contextmanager
def preserve_state(seed: int) -> Iterator[None]:
    """Run foreign code with global random numbers that follow from a seed, and restore the global state.

    That is numpy's error handling, the random state of numpy and of Python, filters of warnings, signal
    handlers, the environment, the working directory and the standard streams.
    """
    numbers, own_numbers = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    handlers = {number: signal.getsignal(number) for number in VALID_SIGNALS}
    environment, folder = dict(os.environ), _working_directory()
    streams = {name: getattr(sys, name) for name in STREAMS}
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        with np.errstate(), warnings.catch_warnings():
            yield
    finally:
        np.random.set_state(numbers)  # noqa: NPY002
        random.setstate(own_numbers)
        _restore_handlers(handlers)
        if os.environ != environment:
            for name in [name for name in os.environ if name not in environment]:
                del os.environ[name]
            os.environ.update(environment)
        if folder is not None and _working_directory() != folder:
            os.chdir(folder)
        for name, stream in streams.items():
            setattr(sys, name, stream)


def _working_directory() -> str | None:
    with suppress(OSError):
        return os.getcwd()
    return None


def _restore_handlers(handlers: dict[Any, Any]) -> None:
    """Restore the handlers that differ; None stands for one that Python did not install.

    Python installs handlers in the main thread alone, so none can have changed in another. An alarm that was
    set together with its handler would end the process without it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:
            if number == signal.SIGALRM:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(number, handler)

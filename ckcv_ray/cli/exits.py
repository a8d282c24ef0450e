"""How a command ends: an error becomes a message and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, EIO, ENOSPC

from ckcv_ray.cli.output import results, say, silence
from ckcv_ray.errors import CKCVError, InputError, StoreError

PROVEN_WORSE, NOT_YET_PROVEN = 5, 6  # exit codes: proven not to hold; not proven yet, or not verified here
DISK_ERRORS = {ENOSPC, EDQUOT, EFBIG, EIO}


class SupervisedError(Exception):
    """The command has to run in a process that another one supervises.

    Args:
        fit_timeout: seconds that a fit may take.
    """

    def __init__(self, fit_timeout: float) -> None:
        super().__init__(fit_timeout)
        self.fit_timeout = fit_timeout


@contextmanager
def exit_by_code() -> Iterator[None]:
    """End the process with a message and an exit code if what is inside raises an error of this package."""
    try:
        try:
            yield
        finally:
            if (stream := results()) is not None:
                stream.flush()  # report its errors here, not from Python's shutdown
    except InputError as error:
        _fail(error, 2)
    except StoreError as error:
        _fail(error, 4)
    except CKCVError as error:
        _fail(error, 1)
    except MemoryError:
        _fail(
            CKCVError("it needs more memory than there is: take fewer rows or columns, or another machine"), 1
        )
    except BrokenPipeError:
        if (stream := results()) is not None:
            silence(stream)
        sys.exit(1)
    except OSError as error:
        if not _output_failed(error):
            raise
        _fail(CKCVError(f"cannot write to standard output: {error.strerror or error}"), 1)


def _output_failed(error: OSError) -> bool:
    """Return whether an error is one of standard output.

    Either standard output still cannot be written to, or the error names no file and says that the disk is
    full or failing.
    """
    unnamed = error.filename is None and error.errno in DISK_ERRORS
    return (stream := results()) is not None and (silence(stream) or unnamed)


def _fail(error: CKCVError, code: int) -> None:
    say(f"ckcv: {error}")
    sys.exit(code)

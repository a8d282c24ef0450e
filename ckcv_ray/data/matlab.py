"""The structs of a MATLAB file as an archive of arrays, by a process of its own: ``python matlab.py FILE``.

The reader is native code, which a damaged file can crash, and what a file unfolds to is not known beforehand.
So it has its own process with bounds, which imports nothing of this package. The archive, on standard output,
has an array STRUCT/PART for each part of each struct.
"""

import resource
import sys
from contextlib import suppress
from typing import Any

import numpy as np

MOST_MEMORY, MOST_WRITTEN = 1 << 32, 1 << 30


def parts(file: str) -> dict[str, Any]:
    """The parts of every struct that stands alone, but for those that are no plain arrays."""
    from scipy.io import loadmat

    values = {name: np.asarray(value) for name, value in loadmat(file, appendmat=False).items()}
    return {
        f"{name}/{part}": array
        for name, value in values.items()
        if value.size == 1
        for part in value.dtype.names or ()
        if isinstance(array := value[part].item(), np.ndarray) and not array.dtype.hasobject
    }


def main() -> None:
    """Write the archive, in bounded memory and of bounded size."""
    for what, most in ((resource.RLIMIT_DATA, MOST_MEMORY), (resource.RLIMIT_FSIZE, MOST_WRITTEN)):
        with suppress(ValueError, OSError):  # a lower bound holds already, or the system knows none
            resource.setrlimit(what, (most, most))
    np.savez(sys.stdout.buffer, **parts(sys.argv[1]))


if __name__ == "__main__":
    main()

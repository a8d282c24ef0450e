"""A converter of the structs of a MATLAB file to an archive of arrays: ``python matlab.py FILE``.

The reader is native code, which a damaged file can crash, and the size a file expands to is not known in
advance. So it runs in a separate process with limits on its resources, which imports nothing from this
package. The archive, on standard output, has an array STRUCT/PART for each part of each struct.
"""

import resource
import sys
from contextlib import suppress
from typing import Any

import numpy as np

MAX_MEMORY, MAX_WRITTEN = 1 << 32, 1 << 30


def parts(file: str) -> dict[str, Any]:
    """Return the parts of every struct of size 1, except those that are not plain arrays."""
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
    """Write the archive, with limits on memory and on its size."""
    for limit, most in ((resource.RLIMIT_DATA, MAX_MEMORY), (resource.RLIMIT_FSIZE, MAX_WRITTEN)):
        with suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
            resource.setrlimit(limit, (most, most))
    np.savez(sys.stdout.buffer, **parts(sys.argv[1]))


if __name__ == "__main__":
    main()

"""The public archive of the IDA benchmarks: downloaded on request, verified, kept in the user's cache.

It holds every realization: 100 of each set, 20 of image and splice. Its checksum verifies that it is the
right file, whatever address it came from. Only ``fetch`` ever uses the network.

Reference: Diethe, "13 benchmark datasets derived from the UCI, DELVE and STATLOG repositories", 2015,
doi 10.5281/zenodo.18110.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import urlsplit

from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote

NAME = "benchmarks.mat"
SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"
URLS = (
    "https://zenodo.org/records/18110/files/benchmarks.mat?download=1",
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
)
BY_HAND = f"download {NAME} (doi 10.5281/zenodo.18110) elsewhere and set CKCV_IDA to its path"
SILENCE_SECONDS = 30.0
CHUNK_BYTES = 65_536


class DownloadProgress(Protocol):
    """A progress bar of a download: the number of bytes expected (0: unknown) and those received."""

    total: int

    def update(self, n: int) -> None:
        """Count ``n`` more bytes as received."""

    def reset(self) -> None:
        """Restart the count from zero."""

    def close(self) -> None:
        """Finish: all bytes have been received."""


def locate() -> Path:
    """Return the path of the downloaded archive in the user's cache folder, whether or not it exists."""
    from pooch import os_cache

    return Path(os_cache("ckcv_ray")) / NAME


def fetch(url: str | None = None, progress: DownloadProgress | None = None) -> Path:
    """Return the archive's path in the cache, after downloading it if it is not there.

    Args:
        url: the address of the file, http or https; by default those of ``URLS``, one after the other.
        progress: receives the progress of the download.

    Raises:
        InputError: the address is not valid, no server answers, or the file is not the archive. Then nothing
            is kept, and an existing file stays.
    """
    if url is not None:
        _check_address(url)
    path = locate()
    if path.is_file() and _sha256(path) == SHA256:
        return path
    reasons = []
    for address in URLS if url is None else (url,):
        try:
            return _download(address, path, progress)
        except (OSError, ValueError) as error:  # what requests raises is one of the two
            reasons.append(f"{address}: {_reason(error)}")
    raise InputError(f"cannot fetch {NAME}: {'; '.join(reasons)}. Alternatively, {BY_HAND}")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unclosed brackets, a port above 65535
        usable = False
    if not usable:
        raise InputError(
            f"url={quote(url)} is not an address to fetch from: it must begin with https:// or http://"
        )


def _download(url: str, path: Path, progress: DownloadProgress | None) -> Path:
    """Download to a temporary folder next to ``path``, verify the checksum, then move the file there."""
    from pooch import HTTPDownloader

    if progress is not None:
        progress.reset()
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / NAME
        with part.open("wb") as file:
            HTTPDownloader(progress or False, CHUNK_BYTES, timeout=SILENCE_SECONDS)(url, file, None)
            os.fsync(file.fileno())
        if (got := _sha256(part)) != SHA256:
            raise ValueError(f"this is a different file: its SHA-256 is {got}, expected {SHA256}")
        os.replace(part, path)
    return path


def _sha256(path: Path) -> str:
    from pooch import file_hash

    return str(file_hash(path, "sha256"))


def _reason(error: BaseException) -> str:
    """Return the message of the root cause: a refused connection is wrapped in three exceptions."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    lines = str(error).partition(" for url: ")[0].splitlines()
    return lines[0] if lines else type(error).__name__

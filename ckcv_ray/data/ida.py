"""The public archive of the IDA benchmarks: downloaded when asked for, checked, kept in the user's cache.

It holds every realization: 100 of each set, 20 of image and splice. Its checksum says that it is the right
file, whatever address it came from. Nothing but ``fetch`` ever goes to the network.

Reference: Diethe, "13 benchmark datasets derived from the UCI, DELVE and STATLOG repositories", 2015,
doi 10.5281/zenodo.18110.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import urlsplit

from ckcv_ray.errors import InputError
from ckcv_ray.validation import quoted

NAME = "benchmarks.mat"
SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"
URLS = (
    "https://zenodo.org/records/18110/files/benchmarks.mat?download=1",
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
)
BY_HAND = f"download {NAME} (doi 10.5281/zenodo.18110) elsewhere and name it with --ida-file or CKCV_IDA"
SILENCE_SECONDS = 30.0
CHUNK_BYTES = 65_536


class DownloadProgress(Protocol):
    """What is told of a download: the bytes expected (0: not known), then those that came."""

    total: int

    def update(self, n: int) -> None:
        """So many bytes more have come."""

    def reset(self) -> None:
        """Count from zero again."""

    def close(self) -> None:
        """All bytes have come."""


def cached() -> Path:
    """Where the archive lies once it was fetched, in the cache folder the system gives the user."""
    from pooch import os_cache

    return Path(os_cache("ckcv_ray")) / NAME


def fetch(url: str | None = None, progress: DownloadProgress | None = None) -> Path:
    """The archive's path in the cache, after downloading it if it is not there.

    Args:
        url: the address of the file, http or https; by default those of ``URLS``, one after the other.
        progress: is told how far the download has come.

    Raises:
        InputError: the address is of another kind, nothing answers, or what comes is another file. Then
            nothing is kept, and a file that was there before stays.
    """
    if url is not None:
        _check_address(url)
    path = cached()
    if path.is_file() and _sha256(path) == SHA256:
        return path
    reasons = []
    for address in URLS if url is None else (url,):
        try:
            return _download(address, path, progress)
        except (OSError, ValueError) as error:  # what requests raises is one of the two
            reasons.append(f"{address}: {_reason(error)}")
    raise InputError(f"cannot fetch {NAME}: {'; '.join(reasons)}. By hand: {BY_HAND}")


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port beyond 65535
        usable = False
    if not usable:
        raise InputError(
            f"url={quoted(url)} is not an address to fetch from: it has to begin with https:// or http://"
        )


def _download(url: str, path: Path, progress: DownloadProgress | None) -> Path:
    """Download into a folder of its own beside ``path``, check, and only then move there."""
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
            raise ValueError(f"this is another file: its SHA-256 is {got}, expected {SHA256}")
        os.replace(part, path)
    return path


def _sha256(path: Path) -> str:
    from pooch import file_hash

    return str(file_hash(path, "sha256"))


def _reason(error: BaseException) -> str:
    """What lies at the bottom: a refused connection arrives wrapped three times over."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    lines = str(error).partition(" for url: ")[0].splitlines()
    return lines[0] if lines else type(error).__name__

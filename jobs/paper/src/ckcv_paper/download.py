"""The public archive of the IDA benchmarks: downloaded on request, verified, kept in the user's cache.

It holds every realization: 100 of each set, 20 of image and splice. Its checksum verifies that it is the
right file, whatever address it came from. Only ``fetch`` ever uses the network.

Reference: Diethe, "13 benchmark datasets derived from the UCI, DELVE and STATLOG repositories", 2015,
doi 10.5281/zenodo.18110.
"""

from pathlib import Path

from ckcv_ray.errors import InputError, quote

NAME = "benchmarks.mat"
SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"
URLS = (
    "https://zenodo.org/records/18110/files/benchmarks.mat?download=1",
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
)
BY_HAND = f"download {NAME} (doi 10.5281/zenodo.18110) elsewhere and set CKCV_IDA to its path"
SILENCE_SECONDS = 30.0


def locate() -> Path:
    """Return the path of the downloaded archive in the user's cache folder, whether or not it exists."""
    from pooch import os_cache

    return Path(os_cache("ckcv_ray")) / NAME


def fetch(url: str | None = None) -> Path:
    """Return the archive's path in the cache, after downloading it if it is not there.

    Args:
        url: the address of the file, http or https; by default those of ``URLS``, one after the other.

    Raises:
        InputError: the address is not valid, no server answers, or the file is not the archive. Then nothing
            is kept, and an existing file stays.
    """
    from pooch import HTTPDownloader, get_logger, retrieve

    if url is not None and not str(url).startswith(("https://", "http://")):
        raise InputError(
            f"url={quote(url)} is not an address to fetch from: it must begin with https:// or http://"
        )
    get_logger().setLevel("WARNING")
    path, reasons = locate(), []
    for address in URLS if url is None else (url,):
        try:
            downloader = HTTPDownloader(timeout=SILENCE_SECONDS)
            return Path(retrieve(address, f"sha256:{SHA256}", NAME, path.parent, downloader=downloader))
        except (OSError, ValueError) as error:  # what requests raises is one of the two
            reasons.append(f"{address}: {_reason(error)}")
    raise InputError(f"cannot fetch {NAME}: {'; '.join(reasons)}. Alternatively, {BY_HAND}")


def _reason(error: BaseException) -> str:
    """Return the message of the root cause: a refused connection is wrapped in three exceptions."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    lines = str(error).partition(" for url: ")[0].splitlines()
    return lines[0] if lines else type(error).__name__

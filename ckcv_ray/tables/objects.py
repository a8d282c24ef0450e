"""Objects of a store (S3, Google Cloud Storage, Azure) by name: their addresses, and one client for all.

The only module to import obstore, and only when a store is opened. Credentials come from the environment,
by obstore's own chain, and appear in no address, message or file.

An object appears only once it is complete. ``create`` writes one only if there is none of that name:
the store decides that.
"""

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from importlib.util import find_spec
from typing import Any, BinaryIO, NamedTuple, TypeGuard, TypeVar

from ckcv_ray.errors import InputError, UnreachableError, cut, quote, write_install

Returned = TypeVar("Returned")
SCHEMES = ("s3", "gs", "az")
MARK = "://"
OBSTORE = "obstore>=0.12"  # what to install
BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
LONGEST_KEY = 700  # characters; stores allow 1024 bytes, and a run adds its own names
NOT_IN_KEYS = frozenset('\\{}^%`[]"<>~#|*?')  # which stores or their clients write in other ways
STREAM_BYTES = 1 << 22
RETRIES = 12  # of an unanswered request, with growing pauses: half a minute to a minute in all
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_REQUEST, LONGEST_CONNECT, LONGEST_RETRYING = (
    timedelta(seconds=seconds) for seconds in (0.5, 8.0, 60.0, 5.0, 180.0)
)
GROWTH = 3  # from one longest pause to the next; each pause is drawn
ATTEMPTS = 3  # for a request that is cut off midway
NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
CODE = re.compile(r"<Code>(\w+)</Code>")
WITHOUT_CREDENTIALS = ("169.254.169.254", "metadata.google.internal", "169.254.170.2")
REFUSALS = ("PermissionDeniedError", "UnauthenticatedError")
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
LONGEST_ANSWER = 300
AT_ONCE = 8  # requests


class Address(NamedTuple):
    """A place in a store."""

    scheme: str  # "s3", "gs" or "az"
    bucket: str  # name of the bucket, or on Azure of the container
    key: str  # the name below it, without a slash at either end; "" for the bucket itself

    def __str__(self) -> str:
        return f"{self.scheme}{MARK}{self.bucket}/{self.key}".rstrip("/")

    def inside(self, name: str) -> "Address":
        """Return the address of a name below this address."""
        return self._replace(key=f"{self.key}/{name}".strip("/"))


def is_address(value: object) -> TypeGuard[str]:
    """Return whether a value is text with a scheme, such as s3://bucket/name, known or not."""
    return isinstance(value, str) and MARK in value


def parse_address(name: str, text: str, least: int = 1) -> Address:
    """Read an address.

    Args:
        name: name of the option, for messages.
        text: the address, such as s3://bucket/runs/patients.
        least: 1 if a name below the bucket is needed, 0 if a bucket is enough.

    Raises:
        InputError: it is not an address, or has a user, a password or a query, which are not shown.
    """
    scheme = text.partition(MARK)[0]
    if scheme not in SCHEMES:
        known = ", ".join(f"{known}{MARK}" for known in SCHEMES)
        raise InputError(f"{name}={quote(scheme + MARK)}...: the scheme is not known: choose from {known}")
    bucket, _, key = text.partition(MARK)[2].partition("/")
    if "@" in bucket or "?" in text:
        raise InputError(
            f"{name}={scheme}{MARK}...: the address has a user, a password or a token in it, which would be "
            f"written into logs: leave it out, and set {CREDENTIALS[scheme]} in the environment"
        )
    key = key.strip("/")
    is_name = key.isprintable() and NOT_IN_KEYS.isdisjoint(key) and len(key) <= LONGEST_KEY
    is_name = is_name and not any(part in ("", ".", "..") for part in key.split("/"))
    if not BUCKET.fullmatch(bucket) or not (is_name if key else not least):
        raise InputError(
            f"{name}={scheme}{MARK}...: expected {scheme}{MARK}bucket/runs/patients, a bucket of 3 to 63 "
            f"lower-case letters, digits, dots and hyphens, and a name in it of at most {LONGEST_KEY} "
            "letters, digits, spaces and -_.=+, with no '..', '.' or empty name between slashes"
        )
    return Address(scheme, bucket, key)


def ask_at_once(*requests: Callable[[], Returned]) -> list[Future[Returned]]:
    """Make several requests at once, and return their answers in the same order, once all have arrived.

    A store takes its time over each, but no longer over several. An error is raised by the ``result`` of its
    answer, so one for an answer that turns out not to be needed changes nothing.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [pool.submit(request) for request in requests]


class Bucket:
    """The objects below an address, by the rest of their name.

    Every method raises UnreachableError if the store does not answer within the retries, or refuses, and
    InputError if there is no such bucket, or obstore is not installed.

    Args:
        address: the place; the store is opened when a method needs it.
    """

    def __init__(self, address: Address) -> None:
        self.address = address

    def get(self, name: str, most: int) -> bytes:
        """Return an object of at most ``most`` bytes.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is larger.
        """
        return self._ask(f"read {name}", lambda: b"".join(self._stream(name, most)))

    def find(self, name: str) -> datetime:
        """Return when an object was written.

        Raises:
            FileNotFoundError: there is none.
        """
        found: dict[str, datetime] = self._ask(f"read {name}", lambda: self._store.head(self._key(name)))
        return found["last_modified"]

    def download(self, name: str, most: int, file: BinaryIO) -> None:
        """Write an object of at most ``most`` bytes to an open file; see ``get``."""

        def fill() -> None:
            file.seek(0)
            file.truncate()
            file.writelines(self._stream(name, most))

        self._ask(f"read {name}", fill)

    def put(self, name: str, content: bytes) -> None:
        """Write an object, replacing any of that name."""
        self._ask(f"write {name}", lambda: self._store.put(self._key(name), content, use_multipart=False))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of that name; return whether it was written.

        A repeated request may find what it wrote itself, and is then refused: compare what is there.
        """

        def write() -> bool:
            from obstore.exceptions import AlreadyExistsError, PreconditionError

            try:
                self._store.put(self._key(name), content, use_multipart=False, mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

        return self._ask(f"write {name}", write)

    def delete(self, name: str) -> None:
        """Delete an object; it is not an error if there is none."""
        with suppress(FileNotFoundError):
            self._ask(f"delete {name}", lambda: self._store.delete(self._key(name)))

    def list(self, prefix: str = "") -> list[tuple[str, datetime]]:
        """Return the names in a folder ``prefix/`` at any depth, sorted, and when each was written.

        A store may list new ones late.
        """
        start = len(f"{self.address.key}/") if self.address.key else 0
        place = self._key(prefix) or None
        found = self._ask("list", lambda: [entry for page in self._store.list(place) for entry in page])
        return sorted((entry["path"][start:], entry["last_modified"]) for entry in found)

    def folders(self, name: str) -> set[str]:
        """Return the names of the folders in a folder, as far as the store lists any."""
        found = self._ask("list", lambda: self._store.list_with_delimiter(self._key(name) or None))
        return {path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]}

    def _stream(self, name: str, most: int) -> Iterator[bytes]:
        found = self._store.get(self._key(name))
        if found.meta["size"] > most:
            raise ValueError(f"it is larger than {most >> 20} MiB")
        yield from map(bytes, found.stream(min_chunk_size=STREAM_BYTES))

    def _key(self, name: str) -> str:
        return self.address.inside(name).key

    @cached_property
    def _store(self) -> Any:
        from obstore import store

        kind = {"s3": store.S3Store, "gs": store.GCSStore, "az": store.AzureStore}[self.address.scheme]
        options = {
            "timeout": LONGEST_REQUEST,
            "connect_timeout": LONGEST_CONNECT,
            "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"),  # on loopback
        }
        pauses = {"init_backoff": FIRST_PAUSE, "max_backoff": LONGEST_PAUSE, "base": GROWTH}
        retries = {"max_retries": RETRIES, "backoff": pauses, "retry_timeout": LONGEST_RETRYING}
        try:
            return kind(self.address.bucket, client_options=options, retry_config=retries)
        except Exception as error:
            cure = f"set {CREDENTIALS[self.address.scheme]} in the environment"
            raise InputError(f"cannot open {str(self.address)!r}: {self._explain(error)}: {cure}") from None

    def _ask(self, action: str, request: Callable[[], Returned]) -> Returned:
        """Return what a request returns; if it is cut off midway, repeat it a few times.

        The client itself repeats, with pauses, what was not answered at all. Its errors are converted: their
        messages may reveal too much.
        """
        if find_spec("obstore") is None:
            raise InputError(
                f"{str(self.address)!r} needs obstore, which is not installed: pip install '{OBSTORE}', or "
                f"{write_install('objects')}"
            )
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return request()
            except (ValueError, UnreachableError):
                raise
            except Exception as error:  # many classes, which differ between versions of the client
                if any(code in str(error) for code in NO_BUCKET):
                    raise InputError(
                        f"{str(self.address)!r}: there is no bucket {self.address.bucket!r}: create it, or "
                        "correct its name"
                    ) from None
                if isinstance(error, OSError):  # there is none, or the disk here is full
                    raise
                if type(error).__name__ in REFUSALS or attempt == ATTEMPTS:
                    raise UnreachableError(
                        f"cannot {action} in {str(self.address)!r}: {self._explain(error)}; what was written "
                        "is kept, and the same command goes on from there"
                    ) from None
        raise AssertionError("the last attempt returns or raises")

    def _explain(self, error: Exception) -> str:
        """Return briefly what a client's error says, without any address, query or key in it."""
        text = str(error)
        if any(host in text for host in WITHOUT_CREDENTIALS):
            scheme = self.address.scheme
            return f"the environment has no credentials for {scheme}{MARK}: set {CREDENTIALS[scheme]}"
        if found := CODE.search(text):
            return f"the store answers {found[1]}"
        if type(error).__name__ in REFUSALS:
            return "the store refuses it: check the credentials in the environment and what they allow"
        first = re.sub(
            r"[a-z0-9+]+://\S+", "...", text.partition("Debug source")[0].replace("\n", " ")
        ).strip()
        return cut(first or type(error).__name__, LONGEST_ANSWER)

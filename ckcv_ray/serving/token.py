"""The token that a server asks for: in a file that only its owner can read; the server knows its digest."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import NamedTuple

from ckcv_ray.errors import InputError

TOKEN_BYTES = 16


class Token(NamedTuple):
    """A token.

    Attributes:
        file: that holds it.
        digest: its SHA-256, all that a server needs to know of it.
    """

    file: Path
    digest: str


@contextmanager
def make_token() -> Iterator[Token]:
    """Make a token of 32 hexadecimal digits, in a private temporary folder that is removed at the end.

    The folder has mode 0700 and the file 0600, for any umask.

    Raises:
        InputError: there is no temporary folder that can be written.
    """
    text = secrets.token_hex(TOKEN_BYTES)
    try:
        folder = Path(mkdtemp(prefix="ckcv-serve-"))
    except OSError as error:
        raise InputError(
            f"the token of the server cannot be kept in the temporary folder ({error}): set TMPDIR to a "
            "folder that can be written"
        ) from None
    try:
        file = folder / "token"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            os.fchmod(stream.fileno(), 0o600)
            stream.write(text)
        yield Token(file, sha256(text.encode()).hexdigest())
    finally:
        rmtree(folder, ignore_errors=True)


def has_token(authorization: str, digest: str) -> bool:
    """Return whether the header ``Authorization`` of a request has the token with a digest."""
    scheme, _, text = authorization.partition(" ")
    given = sha256(text.strip().encode()).hexdigest()
    return scheme.lower() == "bearer" and compare_digest(given, digest)

"""Signatures of a finished run: who says that it is theirs, when, and of which manifest.

    signatures.json         author, date and the SHA-256 of manifest.json, for each signature in order

The manifest does not list this file, so signing changes no file of the run. Signatures are only appended.
They are no cryptography: whoever can write to the folder can write any name and any date. What can be checked
is whether the manifest, and with it every file of the run, is the one that was signed.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from ckcv_ray.errors import InputError
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.validation import STRICT, check_count, quote

SIGNATURES = "signatures.json"
MOST_OF_AUTHOR = 200
MOST_SIGNATURES = 1_000
HEXADECIMAL = frozenset("0123456789abcdef")
DIGEST_DIGITS = 64


@dataclass(frozen=True)
class Signature:
    """One signature.

    Attributes:
        author: a name, as it was typed.
        date: when, in UTC, such as 2026-11-25T13:00:00+00:00.
        manifest: SHA-256 of the manifest that was signed.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    author: str
    date: str
    manifest: str

    def describe(self, manifest: str) -> str:
        """Say who signed and when, and whether the manifest with this SHA-256 is the one that was signed."""
        who = f"signed by {self.author!r} on {self.date[:10]}"
        if manifest == self.manifest:
            return f"{who}: the manifest is the one that was signed"
        return f"{who}: the manifest has changed since"


@dataclass(frozen=True)
class SignatureList:
    """The content of the file."""

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    signatures: tuple[Signature, ...]

    def check(self) -> None:
        """Raise ValueError unless it is as this module writes it."""
        check_count(SIGNATURES, len(self.signatures), MOST_SIGNATURES)
        for signature in self.signatures:
            _check(signature)


def check_author(name: str) -> str:
    """Return the name of who signs.

    Raises:
        InputError: it is empty, too long, or has characters that cannot be printed.
    """
    if not (name.strip() and len(name) <= MOST_OF_AUTHOR and name.isprintable()):
        raise InputError(
            f"sign={quote(name)}: expected the name of who signs, in one line of at most {MOST_OF_AUTHOR} "
            "characters, such as 'Jane Doe'"
        )
    return name.strip()


def read_signatures(files: Files) -> tuple[Signature, ...]:
    """Return the signatures of a run, the oldest first; none if there is no file.

    Raises:
        StoreError: the file is damaged.
    """
    found = formats.read_checked(files, SIGNATURES, SignatureList)
    return () if found is None else found.signatures


def append_signature(files: Files, author: str, manifest: str) -> Signature:
    """Append a signature, dated now, to those of a run whose folder is locked; return it.

    Args:
        files: of the run folder.
        author: see ``check_author``.
        manifest: SHA-256 of the manifest.

    Raises:
        InputError: as for ``check_author``.
        StoreError: the file of the earlier ones is damaged.
    """
    made = Signature(check_author(author), datetime.now(UTC).isoformat(timespec="seconds"), manifest)
    formats.write_json(files, SIGNATURES, asdict(SignatureList((*read_signatures(files), made))))
    return made


def _check(signature: Signature) -> None:
    """Raise ValueError unless a signature is as this module writes one."""
    check_author(signature.author)
    if datetime.fromisoformat(signature.date).tzinfo is None:
        raise ValueError(f"the date {signature.date!r} has no time zone")
    if len(signature.manifest) != DIGEST_DIGITS or not HEXADECIMAL.issuperset(signature.manifest):
        raise ValueError(f"{signature.manifest!r} is not a SHA-256")

"""The four errors: one tree, so that one ``except CKCVError`` catches all that is ours."""

from collections.abc import Iterator
from contextlib import contextmanager

MOST_TOLD = 1500


def plain(text: str) -> str:
    """Text of any origin, fit for a terminal and a log: one printable line, cut in its middle if long."""
    return cut("".join(c if c.isprintable() else escaped(c) for c in cut(text)))


def printable(text: str) -> str:
    """Text of any origin in its lines; what could steer a terminal is written as an escape sequence."""
    return "".join(c if c.isprintable() or c in "\n\t" else escaped(c) for c in text)


def escaped(text: str) -> str:
    """Text in the escapes of Python, all but printable ASCII."""
    return text.encode("unicode_escape").decode()


def cut(text: str, most: int = MOST_TOLD) -> str:
    """Text without its middle, where it has more than so many characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things, in the singular or the plural: "1 class", "3 classes"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


class CKCVError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(CKCVError, ValueError):
    """The input is wrong and the user can mend it; the message says how."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class StoreError(CKCVError):
    """A run folder is damaged, in use, or belongs to something else."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class RunError(CKCVError):
    """A run could not finish; what is done is kept."""


@contextmanager
def raising(kind: type[CKCVError], message: str) -> Iterator[None]:
    """Turn whatever a reader raises over a file that is not what it should be into an error of this kind.

    Its message is ``message`` and the first line of the reason.
    """
    try:
        yield
    except kind:
        raise
    except Exception as error:  # readers raise of all kinds: zipfile, EOF, type, key, recursion, Arrow errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{message}: {reason}") from None

"""The four exceptions, all caught by ``except CKCVError``, and functions that format their messages."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MOST_CHARACTERS = 1500
MOST_NAMED = 100
MOST_OF_NAME = 200
LIST_OPTIONS = ("features", "drop", "categorical", "numeric", "date")  # of names of columns


def plain(text: str) -> str:
    """Return text of any origin as one printable line for terminals and logs, cut in the middle if long."""
    return cut("".join(c if c.isprintable() else escape_text(c) for c in cut(text)))


def printable(text: str) -> str:
    """Return text of any origin, escaping characters that could control a terminal; lines are kept."""
    return "".join(c if c.isprintable() or c in "\n\t" else escape_text(c) for c in text)


def escape_text(text: str) -> str:
    """Return text with everything but printable ASCII as Python escapes."""
    return text.encode("unicode_escape").decode()


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return text without its middle if it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def cut_list(sentences: list[str], rest: str, most: int = MOST_NAMED) -> list[str]:
    """Return the first sentences, and if there are more one that counts them, such as "7 {others}"."""
    more = len(sentences) - most
    return sentences[:most] + ([f"{more:,} {rest}"] if more > 0 else [])


def pluralize(number: int, singular: str, many: str | None = None) -> str:
    """Format a count with its noun in the singular or the plural: "1 class", "3 classes"."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def write_option(option: str, *names: str) -> str:
    """Write an option and names of columns so that a shell reads the names, such as --group 'patient id'.

    Options that take several names read them as a line of a CSV file. A name that is longer than a message
    can have is cut.
    """
    shown = [cut(name, MOST_OF_NAME) for name in names]
    text = write_row(shown) if option in LIST_OPTIONS else shown[0]
    said = shlex.quote(text)
    return f"--{option}={said}" if text.startswith("-") else f"--{option} {said}"


def write_row(texts: Iterable[str]) -> str:
    """Write texts as a row of a CSV file, as options that take several names of columns read them."""
    return ",".join(
        '"{}"'.format(text.replace('"', '""'))
        if text.strip() != text or any(mark in text for mark in ',"')
        else text
        for text in texts
    )


def write_install(extra: str) -> str:
    """Return the command that installs an extra: the package is in no registry, but in its clone."""
    return f'pip install ".[{extra}]" in the clone of ckcv_ray'


class CKCVError(Exception):
    """Base class of every error that this package raises deliberately."""


class InputError(CKCVError, ValueError):
    """Invalid input that the user can correct; the message says how."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class StoreError(CKCVError):
    """A run folder that is damaged, in use, or belongs to something else."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


class LackingError(StoreError):
    """A run folder that names a learner or a package that is not here, or that may not be imported."""


class RunError(CKCVError):
    """A run that could not finish; completed work is kept."""


class UnreachableError(RunError):
    """A store of objects that does not answer, or refuses: what it holds is not known, and so not damaged."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))


@contextmanager
def convert_errors(kind: type[CKCVError], message: str) -> Iterator[None]:
    """Convert any exception that a reader raises for a bad file into an error of this kind.

    Its message is ``message`` and the first line of the reason. A store that cannot be reached says
    nothing of a file, and its error is passed on.
    """
    try:
        yield
    except (kind, UnreachableError):
        raise
    except MemoryError:
        raise kind(f"{message}: reading it needs more memory than there is") from None
    except Exception as error:  # readers raise many kinds: zipfile, EOF, type, key, recursion, Arrow errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{message}: {reason}") from None

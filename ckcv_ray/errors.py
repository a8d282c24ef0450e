"""The four errors: one tree, so that one ``except CKCVError`` catches all that is ours."""

MOST_TOLD = 1500


def plain(text: str) -> str:
    """Text of any origin, fit for a terminal and a log: one printable line, cut in its middle if long."""
    return cut("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut(text)))


def cut(text: str, most: int = MOST_TOLD) -> str:
    """Text without its middle, where it has more than so many characters."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


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

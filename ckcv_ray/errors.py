"""The four errors: one tree, so that one ``except CKCVError`` catches all that is ours."""

MOST_TOLD = 1500


def plain(text: str) -> str:
    """Text of any origin, fit for a terminal and a log: one printable line, cut in its middle if long."""
    half = MOST_TOLD // 2
    short = text if len(text) <= MOST_TOLD else f"{text[:half]} ... {text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


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

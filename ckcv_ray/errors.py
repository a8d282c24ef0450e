"""The four errors: one tree, so that one ``except CKCVError`` catches all that is ours."""


class CKCVError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(CKCVError, ValueError):
    """The input is wrong and the user can mend it; the message says how."""


class StoreError(CKCVError):
    """A run folder is damaged, in use, or belongs to something else."""


class RunError(CKCVError):
    """A run could not finish; what is done is kept."""

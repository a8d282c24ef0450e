"""Sign a finished run: store a name, the date and the digest of the manifest next to the manifest."""

from os import PathLike

from ckcv_ray.errors import StoreError
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.signatures import Signature, append_signature, check_author


def sign(folder: str | PathLike[str], author: str) -> Signature:
    """Append a signature to those of a finished run; no other file of it changes.

    It is not a cryptographic signature: it says who signed which state of the run, and when, and anybody who
    can write to the folder can write it.

    Args:
        folder: run folder.
        author: name of who signs, in one line.

    Raises:
        InputError: the name is empty or too long, or the folder cannot be written.
        StoreError: the folder holds no finished run, one whose files are not those of its manifest, or is
            locked.
    """
    check_author(author)
    run = RunFolder(folder)
    run.require()
    if not run.finished:
        raise StoreError(f"{str(folder)!r} holds no finished run: there is nothing to sign yet")
    if differing := run.list_differing():
        raise StoreError(
            f"{str(folder)!r} is not as its manifest says ({differing[0]} differs), and is not signed: ckcv "
            "verify lists the differences"
        )
    run.acquire()
    try:
        return append_signature(run.files, author, run.manifest_digest())
    finally:
        run.release()

"""Runs on disk: whether a folder holds a study's result, the result itself, and its records played back."""

from dataclasses import replace
from pathlib import Path

from ckcv_ray.data.task import Table, divide
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.evaluate import Outcome
from ckcv_ray.errors import StoreError
from ckcv_ray.learners.ensemble import from_pickles
from ckcv_ray.runs.result import Result
from ckcv_ray.storage.environment import changes
from ckcv_ray.storage.folder import Identity, RunFolder
from ckcv_ray.study import Study, run_id

MOST_CELLS = 1 << 28  # each takes about 24 bytes of memory
MENDED = ": the run's own ckcv run command, given again, mends it"


def finished_run(study: Study, table: Table, out: Path | None) -> Result | None:
    """The result already in the folder ``out``, whole; None where there is work to do.

    Raises:
        StoreError: the folder holds another study, or something else.
        InputError: it cannot be written.
    """
    if out is None:
        return None
    study, folder = study.for_rows(divide(table, study).n), RunFolder(out)
    name, identity = run_id(study, table.digest), None
    try:
        identity = folder.identity()
    except StoreError as error:
        if not folder.bears(name):  # else it will be mended
            raise StoreError(f"{error}; or choose another --out") from None
    if identity is None or identity.run_id == name:
        if identity is not None and folder.finished and not folder.differing():
            return _loaded(folder, identity)
        folder.check_writable()
        folder.check_room(table)
        return None
    differences = study.differences(identity.study)
    if identity.data_digest != table.digest:
        differences.append("data: another table")
    told = "; ".join(differences) or "another version of this package wrote it"
    raise StoreError(f"{str(out)!r} holds another study ({told}): choose another --out")


def reopen(study: Study, table: Table, out: Path) -> None:
    """Have the finished run in ``out`` go on, if cells of it failed; nothing where it is not finished.

    Raises:
        StoreError: the folder holds another study, or something else.
    """
    result = finished_run(study, table, out)
    if result is not None and result.execution["failures"]:
        RunFolder(out).reopen()


def environment_changes(out: Path) -> list[str]:
    """How this environment differs from the one a folder's run was made in, as far as the folder tells."""
    account = RunFolder(out).execution()
    return changes(account["environment"]) if account else []


def replay(out: str | Path) -> Aggregator:
    """An aggregator with all the records of a folder, which it leaves alone.

    Raises:
        StoreError: there is no run, or it is damaged.
        RunError: two of its records contradict each other.
    """
    folder = RunFolder(out)
    identity = folder.require()
    table = folder.table(identity)
    if (cells := identity.study.cells(table.n)) > MOST_CELLS:
        raise StoreError(f"{str(out)!r}: its study has {cells:,} cells: at most {MOST_CELLS:,} are read back")
    aggregator = Aggregator(identity.study, table)
    for records, failures in folder.cells(identity, aggregator.sizes):
        aggregator.add(Outcome(records, tuple(failures), (), 0.0, 0))
    return aggregator


def load_run(out: str | Path, allow_pickle: bool = False) -> Result:
    """The result of a finished run, from its folder.

    Args:
        out: the run folder.
        allow_pickle: take the models of F* from the pickles, not from Parquet. Opening a pickle runs what
            is in it: allow it for runs of your own.

    Raises:
        StoreError: there is no finished run, or a file of it is damaged or not what the manifest names.
    """
    folder = RunFolder(out)
    identity = folder.require()
    if not folder.finished:
        raise StoreError(f"the run in {str(out)!r} is not finished: give its ckcv run command again")
    damaged = folder.differing()
    try:
        result = _loaded(folder, identity)
    except StoreError as error:
        raise StoreError(f"{error}{MENDED}" if damaged else str(error)) from None
    if damaged:
        raise StoreError(f"{folder.path / damaged[0]} is missing, or not the file the manifest names{MENDED}")
    return replace(result, ensemble=from_pickles(folder.pickles(result.ensemble))) if allow_pickle else result


def _loaded(folder: RunFolder, identity: Identity) -> Result:
    """What the files of a finished run say, where each is sound in itself."""
    table = folder.table(identity)
    return Result.of(identity.study, table, folder.results(identity, table), folder.execution())

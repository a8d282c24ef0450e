"""The run folder: whose it is, who writes to it, and what makes it finished.

Every file appears under its name whole or not at all, and a run writes into no other folder than the one it
locked.

    study.json              the study, the digest of the data, the run_id
    execution.json          environment, backend, counts, seconds: what depends on the run
    data.parquet            what was learned from
    log/                    append-only records (``log``)
    candidates.parquet      one row for each candidate (``candidates``)
    ensemble/               models (``models``)
    nested/                 a run folder for each outer split of a nested certification
    certificate.json        winner, bounds, counts, certification, wording, digests
    manifest.json           SHA-256 of every file above, written last
    report.html             remade at will, outside the manifest
"""

import json
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

import pyarrow as pa

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.data.files import MOST_CELLS, MOST_ROWS
from ckcv_ray.data.task import learning_task
from ckcv_ray.errors import InputError, StoreError, raising
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.storage import candidates, formats, log, models
from ckcv_ray.storage.execution import read_metadata
from ckcv_ray.storage.files import Files
from ckcv_ray.storage.identity import STUDY, Identity, read_identity, write_identity
from ckcv_ray.storage.locks import LOCK, unwritable
from ckcv_ray.storage.pages import REPORT
from ckcv_ray.study import Problem
from ckcv_ray.validation import as_path

DATA, EXECUTION = "data.parquet", "execution.json"
CERTIFICATE, MANIFEST = "certificate.json", "manifest.json"
FOLDERS = (log.FOLDER, models.FOLDER)
TEMPORARY = re.compile(
    r"\.((study|execution|certificate|manifest)\.json|(data|candidates|models|nested|part-\d+)\.parquet|"
    r"model-\d+\.pkl|report\.html)-\w+\.tmp"
)
MOST_VALUES = 2 * MOST_CELLS  # of a table: arrays may be larger than the files that are read


class Finished(NamedTuple):
    """What a finished run has to say, without the log."""

    candidates: pa.Table
    ensemble: Ensemble
    certificate: Certificate
    nested: Ensemble | None = None


class RunFolder:
    """A folder of one run; nothing is touched until a method says so."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.files = Files(as_path("out", path, StoreError))

    def __str__(self) -> str:
        return str(self.files)

    def inner(self, outer: int) -> "RunFolder":
        """Return the run folder of one inner selection, inside this one."""
        return RunFolder(self.files.path(f"nested/outer-{outer:03d}"))

    def identity(self) -> Identity | None:
        """Return whose folder it is; None where there is no run.

        Raises:
            StoreError: something is there that is not a run this version knows.
        """
        if not self.files.exists(STUDY):
            if self.files.exists() and not self.files.is_folder():
                raise StoreError(f"{str(self)!r} exists and is not a run folder")
            if any(self._foreign()):
                raise StoreError(
                    f"{str(self)!r} has no {STUDY}: it is not a run folder, or is a damaged one that "
                    "its own ckcv run command mends"
                )
            return None
        return read_identity(self.files)

    def require(self) -> Identity:
        """Return whose folder it is.

        Raises:
            StoreError: there is no run, or something this version does not know.
        """
        identity = self.identity()
        if identity is None:
            raise StoreError(f"{str(self)!r} holds no run")
        return identity

    def problem(self, identity: Identity | None = None) -> Problem:
        """Return what the run is about, with its data.

        Raises:
            StoreError: there is no run, or the data are not those of the run.
        """
        identity = identity or self.require()
        columns = formats.read_table(self.files, DATA, identity.run_id, None, values=MOST_VALUES)
        with formats.undamaged(self.files, DATA):
            task = learning_task(columns, (columns.schema.metadata or {})[b"target"].decode())
            if task.digest != identity.data_digest:
                raise StoreError(
                    f"{self.files.path(DATA)} is not the data this run learned from: its digest differs"
                )
        with raising(StoreError, f"{self.files.path(STUDY)} is damaged"):  # or not there, as it is mended
            problem = Problem.of(identity.study, task)
            if problem.run_id != identity.run_id:
                raise ValueError("its study is not in the form for its data")
        return problem

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.files.exists(MANIFEST)

    @property
    def starting(self) -> bool:
        """Whether a run holds the folder that has not yet written what it is about."""
        return self.files.lock.busy and not self.files.exists(STUDY)

    def reopen(self) -> None:
        """Make a finished run an unfinished one, to which records can be added; it may be one already."""
        if self.finished:
            formats.delete(self.files, MANIFEST)

    def bears(self, run_id: str) -> bool:
        """Tell whether a Parquet file of the folder says that it belongs to this run."""
        found = (formats.metadata(self.files, name) for name in self._own() if name.endswith(".parquet"))
        return any(formats.belongs(metadata, run_id) for metadata in found)

    def holds(self, run_id: str) -> bool:
        """Tell whether it holds this run, damaged or not; False where it is empty.

        Raises:
            StoreError: it holds something else.
        """
        try:
            identity = self.identity()
        except StoreError:
            if self.bears(run_id):
                return True
            raise
        if identity is not None and identity.run_id != run_id:
            raise StoreError(f"{str(self)!r} holds run {identity.run_id}, not {run_id}")
        return identity is not None

    def check_room(self, problem: Problem) -> None:
        """Raise InputError where a table, or that of candidates, is larger than what is read back."""
        rows, columns = problem.all_rows.X.shape
        if rows > MOST_ROWS or rows * (columns + 1) > MOST_VALUES:
            raise InputError(
                f"out={str(self)!r}: the table has {rows:,} rows and {columns:,} columns; a run folder "
                f"holds at most {MOST_ROWS:,} rows and {MOST_VALUES:,} values: leave some out"
            )
        if (count := candidates.count(problem)) > MOST_ROWS:
            raise InputError(
                f"out={str(self)!r}: the study has {count:,} candidates; a run folder holds at most "
                f"{MOST_ROWS:,}: ask for fewer values"
            )

    def acquire(self) -> None:
        """Make the folder and hold it for writing, until ``release`` or the death of this process.

        Raises:
            StoreError: another process holds it.
            InputError: it cannot be written.
        """
        try:
            self.files.make_folders(*FOLDERS)
            self.files.lock.acquire()
            for left in filter(_is_temporary, self._own()):  # of a writer killed
                self.files.delete(left)
        except OSError as error:
            self.files.lock.release()
            raise unwritable(self.files.root, error) from None

    def release(self) -> None:
        """Let the folder go and leave no lock file behind."""
        self.files.lock.release()

    def begin(self, problem: Problem) -> None:
        """Write what the run is about."""
        target = {"target": problem.task.target}
        formats.write_table(self.files, DATA, problem.all_rows.columns(), problem.run_id, target)
        write_identity(self.files, problem)

    def mend(self, problem: Problem) -> list[str]:
        """Make a folder with damaged files one that the run can go on in; the names of those files.

        What study and data say is written again; a finished run becomes an unfinished one, whose results
        will be made again. Parts of the log are left to ``log``.
        """
        damaged = self.differing() if self.finished else []
        if damaged:
            self.reopen()
        lost = self._lost_question(problem)
        self.begin(problem)
        return list(dict.fromkeys(damaged + lost))

    def write_results(
        self, problem: Problem, table: pa.Table, ensemble: Ensemble, nested: Ensemble | None
    ) -> dict[str, str]:
        """Write candidates and models, and remove those of an earlier winner; their SHA-256 by file name."""
        candidates.write(self.files, table, problem)
        models.write(self.files, problem, ensemble, nested)
        return self.result_digests()

    def result_digests(self) -> dict[str, str]:
        """Return the SHA-256 of the files with candidates and models."""
        names = (candidates.FILE, models.MODELS, models.NESTED)
        return {name: self.sha256(name) for name in names if self.files.exists(name)}

    def write_end(self, certificate: Certificate, execution: Mapping[str, Any]) -> None:
        """Write the certificate, what the run has cost, and last the manifest of all files."""
        formats.write_json(self.files, CERTIFICATE, certificate.to_json())
        self.write_execution(execution)
        formats.write_json(self.files, MANIFEST, {name: self.sha256(name) for name in self.names()})

    def write_execution(self, execution: Mapping[str, Any]) -> None:
        """Write what the run has cost."""
        formats.write_json(self.files, EXECUTION, execution)

    def execution(self) -> dict[str, Any]:
        """Return what the run has cost; empty where nothing is written yet.

        Raises:
            StoreError: it is damaged, or missing where the run is finished.
        """
        if not self.finished and not self.files.exists(EXECUTION):
            return {}
        content = formats.read_json(self.files, EXECUTION)
        with formats.undamaged(self.files, EXECUTION):
            return dict(read_metadata(content, self.finished))

    def results(self, problem: Problem) -> Finished:
        """Return what the finished run found, from Parquet and JSON alone.

        Raises:
            StoreError: a file is damaged, or speaks of another winner or other splits.
        """
        table, winner = candidates.read(self.files, problem)
        content = formats.read_json(self.files, CERTIFICATE)
        with formats.undamaged(self.files, CERTIFICATE):
            certificate = Certificate.from_json(content)
            found = certificate.run_id, certificate.setting, certificate.k
            expected = problem.run_id, dict(winner.setting), winner.k
            said, other = (json.dumps(values, sort_keys=True) for values in (found, expected))
            if said != other:  # as text: true is not 1.0
                raise ValueError(f"run_id, setting, k are {found}, by the other files {expected}")
            if len(certificate.labels) != problem.task.n_classes:
                raise ValueError(f"labels: expected {problem.task.n_classes}, one for each class")
            size = problem.size_of(winner.k)
            if (certificate.n_select, certificate.n_splits) != (size.n_select, size.n_splits):
                raise ValueError(f"n_select and n_splits are not {size.n_select} and {size.n_splits}")
        ensemble, nested = models.read(self.files, problem, winner.k)
        return Finished(table, ensemble, certificate, nested)

    def manifest(self) -> dict[str, str]:
        """Return the SHA-256 of every file of a finished run.

        Raises:
            StoreError: it is damaged.
        """
        return {str(name): str(digest) for name, digest in formats.read_json(self.files, MANIFEST).items()}

    def manifest_whole(self) -> bool:
        """Tell whether the manifest is as it is written, to the last blank."""
        try:
            with formats.undamaged(self.files, MANIFEST):
                return self.files.read(MANIFEST, formats.MOST_JSON_BYTES) == formats.to_json(self.manifest())
        except StoreError:
            return False

    def differing(self) -> list[str]:
        """Return the files of a finished run that are missing or not what the manifest names; itself, too."""
        if not self.manifest_whole():
            return [MANIFEST]
        there, named = set(self.names()), self.manifest()
        return [name for name, digest in named.items() if name not in there or self._differs(name, digest)]

    def names(self) -> list[str]:
        """Return every file of the run but the manifest and the report; what a run could not have written,
        such as a pipe, is none.
        """
        apart = {MANIFEST, REPORT, LOCK}
        return [n for n in self.files.tree() if n not in apart and not n.startswith(f".{REPORT}-")]

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a file of the folder.

        Raises:
            StoreError: there is no such file, or it cannot be read.
        """
        with formats.undamaged(self.files, name):
            return self.files.sha256(name)

    def _differs(self, name: str, digest: str) -> bool:
        """Whether a file is not the one that has this SHA-256, or cannot be read."""
        try:
            return self.sha256(name) != digest
        except StoreError:
            return True

    def _lost_question(self, problem: Problem) -> list[str]:
        """Which of the files that say what the run is about do not say it."""
        identity, lost = Identity(problem.study, problem.all_rows.digest, problem.run_id), []
        try:
            if self.identity() != identity:
                lost.append(STUDY)
        except StoreError:
            lost.append(STUDY)
        try:
            self.problem(identity)
        except StoreError:
            lost.append(DATA)
        return lost

    def _own(self) -> list[str]:
        """Files of this run alone, not those of other runs in folders inside, which may be under way."""
        return [name for place in ("", *FOLDERS) for name in self.files.list(place)]

    def _foreign(self) -> Iterator[str]:
        """Files that are not what a run leaves that was killed before it wrote any."""
        names = ((name, name.rpartition("/")[2]) for name in self.files.everything())
        return (name for name, last in names if last != LOCK and not _is_temporary(name))


def _is_temporary(name: str) -> bool:
    """Whether a file bears the temporary name of one of a run's files."""
    return TEMPORARY.fullmatch(name.rpartition("/")[2]) is not None

"""The run folder: schemas, atomic writes, what is read back. The only module that writes run files.

Every file appears under its name whole or not at all, and a run writes into no other folder than the one it
locked. What is read may be anybody's: it has to be a regular file, and is checked against limits before
memory is given to it. Every Parquet file carries the run it belongs to, the name
of its schema and the version of this package; a reader refuses what it does not know.

    study.json              the study, the digest of the data, the run_id
    execution.json          environment, backend, counts, seconds: what depends on the run
    data.parquet            what was learned from
    cells/part-*.parquet    append-only log of records
    triples.parquet         one row for each (C, gamma, k)
    ensemble/               models.parquet, and the same models as pickles; nested.parquet
    nested/                 a run folder for each outer split of the protocol nested
    certificate.json        winner, bounds, counts, protocol, wording, digests
    manifest.json           SHA-256 of every file above, written last
    report.html             remade at will, outside the manifest
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from filelock import FileLock, Timeout
from pyarrow import parquet

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.data.files import MOST_CELLS, MOST_ROWS, check_unfolded, is_plain, read_parquet
from ckcv_ray.data.task import Table, divide, learning_table
from ckcv_ray.errors import InputError, RunError, StoreError, raising
from ckcv_ray.learners import ensemble as ensembles
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.storage import candidates as tables
from ckcv_ray.storage import files
from ckcv_ray.storage import log as logs
from ckcv_ray.storage.execution import read_account
from ckcv_ray.storage.log import Failure, Records
from ckcv_ray.study import OUTER_K, Size, Study, run_id
from ckcv_ray.validation import as_path
from ckcv_ray.version import VERSION

SCHEMA_VERSION = 4
LOCK = ".lock"
MANIFEST, REPORT = "manifest.json", "report.html"
PLACES = ("", "cells/", "ensemble/")
MODELS, NESTED = "ensemble/models.parquet", "ensemble/nested.parquet"
TEMPORARY = re.compile(
    r"\.((study|execution|certificate|manifest)\.json|(data|triples|models|nested|part-\d+)\.parquet|"
    r"model-\d+\.pkl|report\.html)-\w+\.tmp"
)
MOST_SMALL_PARTS = 32
LARGE_PART_BYTES = 1 << 22
MOST_PART_ROWS = 1 << 18
MOST_JSON_BYTES = 1 << 26
MOST_REPORT_BYTES = 1 << 28
MOST_VALUES = 2 * MOST_CELLS  # of a table: arrays may be larger than the files that are read
ROOM_BYTES = 1 << 16  # of a pickle, apart from its arrays
FULL = {ENOSPC, EDQUOT}


class Identity(NamedTuple):
    """Whose folder it is."""

    study: Study
    data_digest: str
    run_id: str


class Finished(NamedTuple):
    """What a finished run has to say, without the log."""

    triples: pa.Table
    ensemble: Ensemble
    certificate: Certificate
    nested: Ensemble | None = None


class RunFolder:
    """A folder of one run; nothing is touched until a method says so."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("out", path, StoreError)
        self._lock = FileLock(self.path / LOCK, timeout=0)
        self._locked: int | None = None  # descriptor of the lock file that is held

    def identity(self) -> Identity | None:
        """Whose folder it is; None where there is no run.

        Raises:
            StoreError: something is there that is not a run this version knows.
        """
        file = self.path / "study.json"
        if not file.exists():
            if self.path.exists() and not self.path.is_dir():
                raise StoreError(f"{str(self.path)!r} exists and is not a run folder")
            if any(self._foreign()):
                raise StoreError(
                    f"{str(self.path)!r} has no study.json: it is not a run folder, or is a damaged one that "
                    "its own ckcv run command mends"
                )
            return None
        content = self._json(file)
        with _undamaged(file):
            if content["schema"] != SCHEMA_VERSION:
                raise StoreError(f"{file}: schema {content['schema']!r}; this version reads {SCHEMA_VERSION}")
            found = Identity(Study.from_json(content["study"]), content["data"], content["run_id"])
            if (expected := run_id(found.study, found.data_digest)) != found.run_id:
                raise ValueError(f"it names run {found.run_id}, and describes {expected}")
        return found

    def require(self) -> Identity:
        """Whose folder it is.

        Raises:
            StoreError: there is no run, or something this version does not know.
        """
        identity = self.identity()
        if identity is None:
            raise StoreError(f"{str(self.path)!r} holds no run")
        return identity

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / MANIFEST).exists()

    def reopen(self) -> None:
        """Make a finished run an unfinished one, to which records can be added."""
        self._remove(self.path / MANIFEST)

    def bears(self, run_id: str) -> bool:
        """Whether a Parquet file of the folder says that it belongs to this run."""
        found = (_metadata(file) for place in PLACES for file in self.path.glob(f"{place}*.parquet"))
        return any(_belongs(metadata, run_id) for metadata in found)

    def differing(self) -> list[str]:
        """Files of a finished run that are missing, or are not what the manifest names; itself, too."""
        if not self.manifest_whole():
            return [MANIFEST]
        there, named = set(self.files()), self.manifest()
        return [name for name, digest in named.items() if name not in there or self._differs(name, digest)]

    def holds(self, run_id: str) -> bool:
        """Whether it holds this run, damaged or not; False where it is empty.

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
            raise StoreError(f"{str(self.path)!r} holds run {identity.run_id}, not {run_id}")
        return identity is not None

    def mend(self, study: Study, table: Table, run_id: str) -> list[str]:
        """Make a folder with damaged files one that the run can go on in; the names of those files.

        What study and data say is written again; a finished run becomes an unfinished one, whose results
        will be made anew. Parts of the log are left to ``cells``.
        """
        damaged = self.differing() if self.finished else []
        if damaged:
            self.reopen()
        lost = self._lost_question(Identity(study, table.digest, run_id))
        self.begin(study, table, run_id)
        return list(dict.fromkeys(damaged + lost))

    def check_writable(self) -> None:
        """Raise InputError where the folder could not be made or written; makes nothing."""
        ways = (self.path, *self.path.absolute().parents)
        there = next(folder for folder in ways if folder.exists() or folder.is_symlink())
        if not there.exists():
            raise InputError(
                f"cannot write to {str(self.path)!r}: {str(there)!r} is a link to "
                f"{os.readlink(there)!r}, where there is nothing: make that folder, or name another"
            )
        if not there.is_dir():
            raise InputError(f"cannot write to {str(self.path)!r}: {str(there)!r} is not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"cannot write to {str(self.path)!r}: no permission in {str(there)!r}")

    def check_room(self, table: Table) -> None:
        """Raise InputError where a table is larger than what is read back from a folder."""
        rows, columns = (table.whole or table).X.shape
        if rows > MOST_ROWS or rows * (columns + 1) > MOST_VALUES:
            raise InputError(
                f"out={str(self.path)!r}: the table has {rows:,} rows and {columns:,} columns; a run folder "
                f"holds at most {MOST_ROWS:,} rows and {MOST_VALUES:,} values: leave some out"
            )

    def acquire(self) -> None:
        """Make the folder and hold it for writing, until ``release`` or the death of this process.

        Raises:
            StoreError: another process holds it.
            InputError: it cannot be written.
        """
        try:
            for place in PLACES[1:]:
                files.make_folder(self.path / place)
            self._check_lock()
            self._lock.acquire()
            self._locked = os.open(self.path / LOCK, os.O_RDONLY)
            for place in PLACES:
                for left in filter(_is_temporary, self.path.glob(f"{place}.*.tmp")):  # of a writer killed
                    left.unlink()
        except Timeout:
            raise StoreError(
                f"{str(self.path)!r} is in use by another run: wait for it, or stop it"
            ) from None
        except OSError as error:
            self.release()
            kind = RunError if error.errno in FULL else InputError
            raise kind(f"cannot write to {str(self.path)!r}: {error.strerror}") from None

    def _check_lock(self) -> None:
        """Raise StoreError where what bears the lock's name cannot be one, such as a pipe."""
        file = self.path / LOCK
        if file.exists():
            with _undamaged(file):
                files.check_regular(file)

    @property
    def busy(self) -> bool:
        """Whether a living process holds the folder for writing, as far as is known; takes nothing."""
        return self.held or files.locked(self.path / LOCK)

    @property
    def starting(self) -> bool:
        """Whether a run holds the folder that has not yet written what it is about."""
        return self.busy and not (self.path / "study.json").exists()

    @property
    def held(self) -> bool:
        """Whether this process holds the folder for writing."""
        return bool(self._lock.is_locked)

    def check_held(self) -> None:
        """Raise RunError where another folder, or none, is now in the place of the one that is held."""
        if self._locked is None:
            return
        try:
            ours = os.path.samestat(os.fstat(self._locked), (self.path / LOCK).stat())
        except (FileNotFoundError, NotADirectoryError):
            ours = False
        if not ours:
            raise RunError(
                f"{str(self.path)!r} is no longer the folder this run holds: it was moved or replaced, or "
                f"its file {LOCK} removed; what was written is kept, and nothing more is written"
            )

    def release(self) -> None:
        """Let the folder go and leave no lock file behind."""
        if self._locked is not None:
            with suppress(RunError, OSError):
                self.check_held()
                (self.path / LOCK).unlink()
            os.close(self._locked)
            self._locked = None
        if self.held:
            self._lock.release(force=True)

    def begin(self, study: Study, table: Table, run_id: str) -> None:
        """Write what the run is about."""
        self._parquet("data.parquet", table.columns(), run_id, {"target": table.target})
        self._write_json(
            "study.json",
            {
                "schema": SCHEMA_VERSION,
                "package": VERSION,
                "run_id": run_id,
                "study": study.to_json(),
                "data": table.digest,
            },
        )

    def append(self, records: Records, failures: list[Failure], study: Study, run_id: str) -> None:
        """Add a part to the log of records."""
        log = logs.to_arrow(records, failures, study)
        for first in range(0, len(log), MOST_PART_ROWS):
            self._parquet(self._next_part(), log.slice(first, MOST_PART_ROWS), run_id)
        self._compact(run_id)

    def cells(
        self, identity: Identity, sizes: tuple[Size, ...], damaged: list[str] | None = None
    ) -> Iterator[tuple[Records, list[Failure]]]:
        """The log, part by part.

        Args:
            identity: whose log it is.
            sizes: the study's fold sizes on its rows.
            damaged: where given, parts that cannot be read are set aside and named here, not raised.

        Raises:
            StoreError: a part is damaged, or not this run's.
        """
        for file in self._parts():
            try:
                log = self._read(file, identity.run_id, logs.SCHEMA)
                with _undamaged(file):
                    records = logs.from_arrow(log, identity.study, sizes)
            except StoreError:
                if not os.path.lexists(file):  # joined with others by a run under way, which are read instead
                    yield from self.cells(identity, sizes, damaged)
                    return
                if damaged is None:
                    raise
                with self._writing(file):  # it may be mended yet
                    file.replace(file.with_name(file.name.replace("part-", "damaged-")))
                damaged.append(f"cells/{file.name}")
            else:
                yield records

    def table(self, identity: Identity) -> Table:
        """What was learned from.

        Raises:
            StoreError: the data are not those of the run.
        """
        file = self.path / "data.parquet"
        columns = self._read(file, identity.run_id, None, values=MOST_VALUES)
        with _undamaged(file):
            target = (columns.schema.metadata or {})[b"target"].decode()
            table = learning_table(columns, target)
            if table.digest != identity.data_digest:
                raise StoreError(f"{file} is not the data this run learned from: its digest differs")
            table = divide(table, identity.study)
            identity.study.for_rows(table.n)
        return table

    def write_results(
        self, triples: pa.Table, ensemble: Ensemble, nested: Ensemble | None, table: Table, run_id: str
    ) -> dict[str, str]:
        """Write triples and models, and remove those of an earlier winner; their SHA-256 by file name."""
        names = {"labels": json.dumps(table.labels), "features": json.dumps(table.features)}
        self._parquet("triples.parquet", triples, run_id)
        self._parquet(MODELS, ensembles.to_arrow(ensemble), run_id, names)
        pickles = ensembles.to_pickles(ensemble, table.X)
        for name, content in pickles.items():
            self._write(f"ensemble/{name}", content)
        for file in (self.path / "ensemble").glob(ensembles.PICKLES):
            if file.name not in pickles:
                self._remove(file)
        if nested is not None:
            self._parquet(NESTED, ensembles.to_arrow(nested), run_id, names)
        return self.result_digests()

    def result_digests(self) -> dict[str, str]:
        """SHA-256 of the files with triples and models."""
        names = ("triples.parquet", MODELS, NESTED)
        return {name: self.sha256(name) for name in names if (self.path / name).exists()}

    def write_end(self, certificate: Certificate, execution: Mapping[str, Any]) -> None:
        """Write the certificate, the account of the run, and last the manifest of all files."""
        self._write_json("certificate.json", certificate.to_json())
        self.write_execution(execution)
        self._write_json(MANIFEST, {name: self.sha256(name) for name in self.files()})

    def write_execution(self, execution: Mapping[str, Any]) -> None:
        """Write the account of the run."""
        self._write_json("execution.json", execution)

    def write_report(self, page: str, out: Path | None = None) -> Path:
        """Write the HTML page, sealed, to ``out``, or into the folder; where it is now.

        The seal is a last line with the SHA-256 of all before it.

        Raises:
            InputError: it cannot be written, or would replace a file of the run.
        """
        final = as_path("out", out) if out else self.path / REPORT
        self.write_beside(final, _sealed(page.encode()))
        return final

    def write_beside(self, final: Path, content: bytes | pa.Buffer) -> None:
        """Write a file that is none of the run's.

        Raises:
            InputError: it cannot be written, is no regular file, or would be one of the run's.
        """
        if final.exists() and not final.is_file():
            raise InputError(f"cannot write {str(final)!r}: it is not a file")
        folder, place = self.path.resolve(), final.resolve()
        if place.is_relative_to(folder) and place != folder / REPORT:
            raise InputError(f"out={str(final)!r} lies in the run folder: there it can only be {REPORT}")
        try:
            files.write_whole(final, content)
        except OSError as error:
            raise InputError(f"cannot write {str(final)!r}: {error.strerror or error}") from None

    def report_whole(self) -> bool:
        """Whether the folder's report, if there is one, is as it was written."""
        file = self.path / REPORT
        if not file.is_file():
            return True
        try:
            content = files.read_whole(file, MOST_REPORT_BYTES)
        except (OSError, ValueError):
            return False
        return content == _sealed(content[: -len(_sealed(b""))])

    def execution(self) -> dict[str, Any]:
        """The account of the run; empty where there is none yet.

        Raises:
            StoreError: it is damaged, or missing where the run is finished.
        """
        file = self.path / "execution.json"
        if not self.finished and not file.exists():
            return {}
        content = self._json(file)
        with _undamaged(file):
            return dict(read_account(content, self.finished))

    def manifest(self) -> dict[str, str]:
        """SHA-256 of every file of a finished run.

        Raises:
            StoreError: it is damaged.
        """
        return {str(name): str(digest) for name, digest in self._json(self.path / MANIFEST).items()}

    def manifest_whole(self) -> bool:
        """Whether the manifest is as it is written, to the last blank."""
        try:
            return self._content(self.path / MANIFEST) == _to_json(self.manifest())
        except StoreError:
            return False

    def results(self, identity: Identity, table: Table) -> Finished:
        """What the finished run found, from Parquet and JSON alone.

        Raises:
            StoreError: a file is damaged, or speaks of another winner or other splits.
        """
        study, file = identity.study, self.path / "triples.parquet"
        sizes = study.sizes(table.n)
        rows = sum(len(size.k_values) for size in sizes) * len(study.gamma) * len(study.C)
        triples = self._read(file, identity.run_id, tables.SCHEMA, rows, rows * len(tables.SCHEMA))
        with _undamaged(file):
            winner = tables.check(triples, study, sizes)
        n_splits = next(size.n_splits for size in sizes if winner.k in size.k_values)
        file = self.path / "certificate.json"
        content = self._json(file)
        with _undamaged(file):
            certificate = Certificate.from_json(content)
            _check_printable(certificate)
            found = certificate.run_id, certificate.C, certificate.gamma, certificate.k
            if found != (expected := (identity.run_id, *winner)):
                raise ValueError(f"run_id, C, gamma, k are {found}, by the other files {expected}")
            if (certificate.n_select, certificate.n_splits) != (table.n // winner.k, n_splits):
                raise ValueError(f"n_select and n_splits are not {table.n // winner.k} and {n_splits}")
        ensemble, nested = self._models(MODELS, identity, table, winner.k, n_splits), None
        if study.outer_splits is not None:
            outer = study.outer().sizes(table.n)[0].n_splits
            nested = self._models(NESTED, identity, table, OUTER_K, outer)
        return Finished(triples, ensemble, certificate, nested)

    def _models(self, name: str, identity: Identity, table: Table, k: int, n_splits: int) -> Ensemble:
        """The ensemble in a file, a member for each split."""
        most = n_splits * (2 * sum(table.X.shape) + len(ensembles.SCHEMA))  # two lists of d, two of support
        models = self._read(self.path / name, identity.run_id, ensembles.SCHEMA, n_splits, most)
        with _undamaged(self.path / name):
            ensemble = ensembles.from_arrow(models, table.X)
            splits = [(member.k, member.mc_index) for member in ensemble.members]
            if splits != [(k, i) for i in range(n_splits)]:
                raise ValueError(f"expected a model for each of the {n_splits} splits of k = {k}")
        return ensemble

    def pickles(self, ensemble: Ensemble) -> list[bytes]:
        """The pickles of the models of an ensemble, unopened.

        Raises:
            StoreError: one is missing, too large, or its SHA-256 is not what the manifest names.
        """
        manifest, contents = self.manifest(), []
        for member in ensemble.members:
            name = ensembles.pickle_name(member)
            file = self.path / "ensemble" / name
            arrays = member.vectors, member.support, member.dual_coef, *member.scaling
            with _undamaged(file):
                content = files.read_whole(file, sum(array.nbytes for array in arrays) + ROOM_BYTES)
            if hashlib.sha256(content).hexdigest() != manifest.get(f"ensemble/{name}"):
                raise StoreError(f"{file} is not the file the manifest names: it is not opened")
            contents.append(content)
        return contents

    def files(self) -> list[str]:
        """Every file of the run but the manifest and the report, by path inside the folder; what a run could
        not have written, such as a pipe, is none.
        """
        apart = {MANIFEST, REPORT, LOCK}
        found = (file for file in self.path.rglob("*") if files.is_regular(file))
        names = (file.relative_to(self.path).as_posix() for file in found)
        return sorted(name for name in names if name not in apart and not name.startswith(f".{REPORT}-"))

    def sha256(self, name: str) -> str:
        """SHA-256 of a file of the folder.

        Raises:
            StoreError: there is no such file, or it cannot be read.
        """
        with _undamaged(self.path / name):
            return files.sha256(self.path / name)

    def _differs(self, name: str, digest: str) -> bool:
        """Whether a file is not the one that has this SHA-256, or cannot be read."""
        try:
            return self.sha256(name) != digest
        except StoreError:
            return True

    def _lost_question(self, identity: Identity) -> list[str]:
        """Which of the files that say what the run is about do not say it."""
        lost = []
        try:
            if self.identity() != identity:
                lost.append("study.json")
        except StoreError:
            lost.append("study.json")
        try:
            self.table(identity)
        except StoreError:
            lost.append("data.parquet")
        return lost

    def _foreign(self) -> Iterator[Path]:
        """Files that are not what a run leaves that was killed before it wrote any."""
        there = (file for file in self.path.rglob("*") if not file.is_dir())
        return (file for file in there if file.name != LOCK and not _is_temporary(file))

    def _compact(self, run_id: str) -> None:
        """Join the small parts of the log once there are many: a part more, then theirs are removed.

        Killed in between, the log holds some records twice, which changes nothing.
        """
        small = [part for part in self._parts() if self._small(part)][:MOST_SMALL_PARTS]
        if len(small) < MOST_SMALL_PARTS:
            return
        joined = pa.concat_tables([self._read(part, run_id, logs.SCHEMA) for part in small])
        self._parquet(self._next_part(), joined, run_id)  # and its name is on disk, before theirs go
        for part in small:
            self._remove(part)

    def _small(self, part: Path) -> bool:
        """Whether a part is one to be joined: short, and without failures, whose tracebacks may be long."""
        if part.stat().st_size >= LARGE_PART_BYTES:
            return False
        with _undamaged(part):
            held = parquet.read_metadata(part)
            columns = [held.row_group(i).column(logs.TRACEBACK) for i in range(held.num_row_groups)]
            empty = sum(column.statistics.null_count for column in columns)
            return bool(empty == held.num_rows <= MOST_PART_ROWS)

    def _next_part(self) -> str:
        """The name of the next part."""
        names = [int(file.stem.split("-")[1]) for file in self._parts()]
        return f"cells/part-{max(names, default=-1) + 1:06d}.parquet"

    def _parts(self) -> list[Path]:
        return sorted((self.path / "cells").glob("part-*.parquet"))

    def _parquet(self, name: str, table: pa.Table, run_id: str, more: dict[str, str] | None = None) -> None:
        metadata = {"run_id": run_id, "schema": str(SCHEMA_VERSION), "package": VERSION, **(more or {})}
        sink = pa.BufferOutputStream()
        parquet.write_table(
            table.replace_schema_metadata(metadata), sink, compression="zstd", write_page_checksum=True
        )
        self._write(name, sink.getvalue())

    def _read(
        self,
        file: Path,
        run_id: str,
        schema: pa.Schema | None,
        rows: int = MOST_ROWS,
        values: int = MOST_CELLS,
    ) -> pa.Table:
        """A Parquet file of this run, of this schema, which has at most so many rows and values."""
        with _undamaged(file):
            files.check_regular(file)
            found = check_unfolded(file, rows, values)
        if not _belongs(found.metadata or {}, run_id):
            raise StoreError(f"{file} does not belong to run {run_id}, or is of a schema unknown here")
        if not (found.equals(schema) if schema is not None else all(map(is_plain, found.types))):
            raise StoreError(f"{file} does not have the columns expected")
        with _undamaged(file):
            return read_parquet(file, verified=True)

    def _json(self, file: Path) -> dict[str, Any]:
        text = self._content(file)
        with _undamaged(file):
            content = json.loads(text)
            if not isinstance(content, dict):
                raise ValueError("expected an object")
            return content

    def _content(self, file: Path) -> bytes:
        """What is in a file of JSON."""
        with _undamaged(file):
            return files.read_whole(file, MOST_JSON_BYTES)

    def _write_json(self, name: str, content: Mapping[str, Any]) -> None:
        self._write(name, _to_json(content))

    def _write(self, name: str, content: bytes | pa.Buffer) -> None:
        with self._writing(self.path / name):
            files.write_whole(self.path / name, content)

    def _remove(self, file: Path) -> None:
        with self._writing(file):
            file.unlink()

    @contextmanager
    def _writing(self, file: Path) -> Iterator[None]:
        """Whatever changes a file: in the folder that is held, and what the system refuses is a RunError."""
        self.check_held()
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot write {file}: {error.strerror or error}; what is written is kept"
            ) from None


def _is_temporary(file: Path) -> bool:
    """Whether a file bears the temporary name of one of a run's files."""
    return TEMPORARY.fullmatch(file.name) is not None


@contextmanager
def _undamaged(file: Path) -> Iterator[None]:
    """Turn whatever a reader raises over a file that is not as it was written into a StoreError."""
    if not file.exists():
        raise StoreError(f"{file} is missing")
    with raising(StoreError, f"{file} is damaged"):
        yield


def _check_printable(certificate: Certificate) -> None:
    """Raise ValueError where words of a certificate could steer a terminal; labels are the user's own."""
    words: list[Any] = [value for name, value in certificate.to_json().items() if name != "labels"]
    while words:
        match words.pop():
            case str() as text if not text.isprintable():
                raise ValueError(f"it holds control characters: {text!r}")
            case dict() as inner:
                words.extend(inner.values())
            case list() | tuple() as inner:
                words.extend(inner)


def _to_json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _sealed(page: bytes) -> bytes:
    return page + b"<!-- SHA-256 of all before: %s -->\n" % hashlib.sha256(page).hexdigest().encode()


def _metadata(file: Path) -> dict[bytes, bytes]:
    """That of a Parquet file; empty where it cannot be read."""
    try:
        files.check_regular(file)
        return parquet.read_schema(file).metadata or {}
    except Exception:  # as above
        return {}


def _belongs(metadata: dict[bytes, bytes], run_id: str) -> bool:
    return (metadata.get(b"schema"), metadata.get(b"run_id")) == (
        str(SCHEMA_VERSION).encode(),
        run_id.encode(),
    )

"""The run folder: which run it belongs to, who may write to it, and what makes it finished.

A file appears under its name only once it is complete. On a disk a run writes to no folder except the one
it locked; on an object store two runs may write to one folder, and what they write agrees (``objects``).

    study.json              the study, the digest of the data, the run_id
    execution.json          environment, backend, counts, seconds: what depends on the run
    data.parquet            the table of the study
    log/                    append-only records (``log``)
    candidates.parquet      one row for each fold size and setting (``records.candidates``)
    ensemble/models.parquet F*
    ensemble/refit.parquet  one model on all rows that were not held out
    ensemble/full.parquet   one model on all rows, if some were held out
    ensemble/references.parquet  one model of each learner that the winner is compared with
    ensemble/model-*.pkl    the members of F*, each usable by itself
    judged.parquet          rows that certify, as each claimed rule judges them (``records.judged``)
    certificate.json        winner, bounds, counts, certification, wording, digests
    splits.parquet          of ``ckcv evaluate``: splits that were given, or are kept with predictions
    predictions.parquet     of ``ckcv evaluate``: predictions for the rows that each split scores
    scores.parquet          of ``ckcv evaluate``: the scores of every split
    settings.parquet        of ``ckcv evaluate``: mean, deviation and rank of every setting
    scores.json             of ``ckcv evaluate``: their summary
    manifest.json           SHA-256 of every file above, written last; another run may add parts of the log
    stream.jsonl            of ``ckcv watch``: live rows with labels (``pieces``), also listed there
    uses.json               which judged rows it was compared on (``pieces``), not in the manifest
    report.html             can be regenerated at any time, not in the manifest
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from ckcv_ray import errors
from ckcv_ray.core.intervals import BBC
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.errors import Index, InputError, Sha256, StoreError, convert_errors, cut, plain, quote, read_as
from ckcv_ray.learners import ensemble as ensembles
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.records import candidates, judged
from ckcv_ray.storage import log
from ckcv_ray.storage.execution import read_metadata
from ckcv_ray.storage.files import (
    LOCK,
    MAX_JSON_BYTES,
    SCHEMA_VERSION,
    STUDY,
    Files,
    LocalFiles,
    ask_files,
    belongs,
    create_file,
    find_next_to,
    guard_reading,
    make_folder,
    make_table,
    open_files,
    read_footer,
    read_json,
    read_table,
    to_json,
    unwritable,
    write_all,
)
from ckcv_ray.storage.pieces import STREAM, list_pieces
from ckcv_ray.study.parts import Paper
from ckcv_ray.study.problem import OUTER, Candidate, Problem, divide, identify_data
from ckcv_ray.study.study import AnyStudy, Procedure, Study, run_id
from ckcv_ray.tables.columns import Column, Schema
from ckcv_ray.tables.read import MAX_CELLS, MAX_TABLE_ROWS
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Provenance, Task
from ckcv_ray.version import VERSION

DATA, EXECUTION = "data.parquet", "execution.json"
CANDIDATES = "candidates.parquet"
CERTIFICATE, MANIFEST = "certificate.json", "manifest.json"
SCORES, SETTINGS, SUMMARY = "scores.parquet", "settings.parquet", "scores.json"
ENSEMBLE = "ensemble/"
MODELS = f"{ENSEMBLE}models.parquet"
REFIT, FULL = f"{ENSEMBLE}refit.parquet", f"{ENSEMBLE}full.parquet"
REFERENCES = f"{ENSEMBLE}references.parquet"
TABLES = (MODELS, REFIT, FULL, REFERENCES)
NUMBERS_OF_MODEL = 4  # per model, class, and row or column: no learner here has more
ROOM_BYTES = 1 << 16  # a pickle may exceed what this version writes by this much
SPLITS = "splits.parquet"
SPLIT_COLUMNS = pa.schema([("split", pa.int32()), ("train", pa.bool_()), ("row", pa.int64())])
FOLDERS = (log.LOG, ENSEMBLE)
STREAM_FILE = re.compile(r"stream(-[0-9]{6})?\.jsonl")
LATER = re.compile(r"report\.html|uses(-[0-9]{6})?\.json")
RESULTS = (CANDIDATES, *TABLES, judged.JUDGED_ROWS)  # besides the pickles
OPTIONAL_ROLES = ("group", "weight", "split_by")  # roles of columns that are not learned from
QUESTION = "question"  # about a column that looks like groups, which itself may not be stored
LONGEST_QUESTION = 600  # characters: a folder may be a stranger's
TEMPORARY = re.compile(r"(?s:.*/)?\.[\w-]+\.(json|jsonl|parquet|pkl|html)-\w+\.tmp")
HOLDS = {  # what a folder holds, by the kind of study
    Study.kind: "a study of ckcv run",
    Procedure.kind: "the scores of a procedure, from ckcv evaluate",
}
MAX_SCHEMA_BYTES = 1 << 26  # Parquet reads up to 100 MB of metadata
MAX_VALUES = 2 * MAX_CELLS  # of a table: arrays may be larger than tables read from files

FolderPath = str | PathLike[str]


class Identity(NamedTuple):
    """The run that a folder belongs to."""

    study: AnyStudy
    data_digest: str
    run_id: str

    def to_json(self, package: str = VERSION) -> bytes:
        """Return the identity as a file, as a version of this package writes it."""
        return to_json(
            {
                "schema": SCHEMA_VERSION,
                "package": package,
                "run_id": self.run_id,
                self.study.kind: self.study.to_json(),
                "data": self.data_digest,
            }
        )


class RunFolder:
    """The folder of one run; it is not accessed until a method needs it.

    Args:
        address: a path, or an address such as s3://bucket/runs/patients.
    """

    def __init__(self, address: FolderPath) -> None:
        self.files = open_files(address, StoreError)

    def __str__(self) -> str:
        return str(self.files)

    def effort(self, problem: Problem) -> int | None:
        """Return the effort of the run in the folder; None if it is not this problem's, or has no budget."""
        with suppress(StoreError):  # a damaged study will be written again
            identity = self.identity()
            if identity is not None and identity.run_id == problem.run_id:
                return identity.study.effort
        return None

    def falls_short(self, problem: Problem) -> bool:
        """Return whether the problem has more effort than the run in the folder.

        Raises:
            StoreError: the problem has less effort.
            InputError: it has more, but the claims of the run are not proven for a second selection.
        """
        asked = problem.asked.effort
        there = self.effort(problem) if asked is not None else None
        if asked is None or there is None or asked == there:
            return False
        if asked < there:
            raise StoreError(
                f"{str(self)!r} holds a search with effort {there:,}, which can only grow: effort={asked} is "
                "too little; ask for more, give search=budget without an effort to go on with the one there, "
                "or choose another --out"
            )
        if self.finished:
            self.refuse_selection(problem)
        return True

    def refuse_selection(self, problem: Problem) -> None:
        """Raise InputError if the claims of the run are not proven for a second selection."""
        if not problem.scores and problem.study.certify != Paper.name:
            raise InputError(
                f"the run in {str(self)!r} is finished, and its {problem.study.certify} has judged its rows: "
                "to select again would void what is proven. What failed was tried twice, and an effort can "
                "be given only before a run is finished, or with certify=paper"
            )

    def identity(self) -> Identity | None:
        """Return which run the folder belongs to, or None if there is no run.

        Raises:
            LackingError: it names a learner, a claim or a package that is not known here, or may not be
                imported.
            StoreError: there is something else, a damaged run, or a run that this version cannot read.
        """
        if not self.files.exists(STUDY):
            files = (name for name in self.files.walk(regular=False) if not TEMPORARY.fullmatch(name))
            if any(name.rpartition("/")[2] != LOCK for name in files):  # a killed run leaves that
                raise StoreError(
                    f"{str(self)!r} has no {STUDY}: it is not a run folder, or a damaged one, which running "
                    "the command that made it again repairs"
                )
            return None
        content: dict[str, Any] = read_json(self.files, STUDY)
        with guard_reading(self.files, STUDY):
            if type(content["schema"]) is not int or content["schema"] != SCHEMA_VERSION:
                raise StoreError(
                    f"{self.files.path(STUDY)}: schema {content['schema']!r}, and this version reads "
                    f"{SCHEMA_VERSION}: read it with ckcv_ray {quote(content.get('package'))}, which made "
                    "it, or run the study again in another folder"
                )
            kind: type[AnyStudy] = Procedure if Procedure.kind in content else Study
            try:
                study = kind.from_json(content[kind.kind])
            except errors.AbsentError as error:
                raise errors.LackingError(f"{str(self)!r} needs what is not here: {error}") from None
            identity = Identity(study, content["data"], content["run_id"])
            if (expected := run_id(identity.study, identity.data_digest)) != identity.run_id:
                raise ValueError(f"it names run {identity.run_id} but describes run {expected}")
            if identity.to_json(content["package"]) != self.files.read(STUDY, MAX_JSON_BYTES):
                raise ValueError("it is not as a run writes it")
        return identity

    def require(self, kind: str = "") -> Identity:
        """Return which run the folder belongs to.

        Args:
            kind: the kind that the study has to be of; "" for any.

        Raises:
            StoreError: there is no run, none that this version can read, or one of another kind.
        """
        identity = self.identity()
        if identity is None:
            raise StoreError(f"{str(self)!r} holds no run{self.suggest_folder()}")
        if kind not in ("", identity.study.kind):
            raise StoreError(f"{str(self)!r} holds {HOLDS[identity.study.kind]}, not {HOLDS[kind]}")
        return identity

    def suggest_folder(self) -> str:
        """Return the end of a message that suggests the run folder of the nearest name in the same folder."""
        if not isinstance(self.files, LocalFiles):
            return ""  # a bucket may have very many folders
        place, parent, nearby = self.files.root.absolute(), self.files.root.parent, dict[str, str]()
        with suppress(OSError):
            nearby = find_next_to(str(place), STUDY)
        return errors.suggest(place.name, nearby, lambda found: quote(str(parent / found)))

    def problem(self, identity: Identity | None = None) -> Problem:
        """Return the problem that the run solves, with its data.

        Raises:
            StoreError: there is no run, or the data are not those of the run.
        """
        identity = identity or self.require()
        study = identity.study
        columns = read_table(self.files, DATA, identity.run_id, None, values=MAX_VALUES)
        with guard_reading(self.files, DATA):
            named = {key.decode(): name.decode() for key, name in (columns.schema.metadata or {}).items()}
            schema = None
            if "columns" in named:
                schema = Schema(tuple(read_as(list[Column], json.loads(named["columns"]))))
            optional = {role: named.get(role) for role in OPTIONAL_ROLES}
            apart = {named["target"], *optional.values()}
            features = [name for name in columns.column_names if name not in apart]
            optional["split_by"] = study.column  # it may be learned from
            roles = Roles(named["target"], features, numbers=study.predicts_numbers, **optional)
            question = plain(cut(named[QUESTION], LONGEST_QUESTION)) if QUESTION in named else None
            provenance = read_as(Provenance, json.loads(named["provenance"]))
            task = Task.restore(columns, roles, schema, question, read_as(Sha256, named["salt"]), provenance)
            digest = task.digest
            if not task.schema.plain:  # see ``Problem.data_digest``
                digest = identify_data(task, divide(study, task)[1])
            if identity.data_digest != digest:
                raise StoreError(f"{self.files.path(DATA)} is not the data of this run: its digest differs")
        if isinstance(study.resampling, Splits):
            given = read_splits(self.files, study.resampling, identity.run_id, task.n)
            study = replace(study, resampling=given)
        damaged = f"{self.files.path(STUDY)} is damaged"  # or missing, during a repair
        with convert_errors(StoreError, damaged):
            problem = Problem.of(study, task)
            if problem.run_id != identity.run_id:
                raise ValueError("its study is not in the canonical form for its data")
        return problem

    @property
    def finished(self) -> bool:
        """Whether the run is finished."""
        return self.files.exists(MANIFEST)

    def reopen(self) -> None:
        """Turn a finished run into an unfinished one that accepts records; no effect if it is unfinished."""
        if self.finished:
            self.files.delete(MANIFEST)

    def holds(self, problem: Problem) -> bool:
        """Return whether the folder holds the run of a problem, damaged or not; False if it is empty.

        Raises:
            StoreError: it holds another study, or something else.
        """
        try:
            identity = self.identity()
        except StoreError as error:
            names = (name for folder in ("", *FOLDERS) for name in self.files.list(folder))
            for name in (name for name in names if name.endswith(".parquet")):
                with suppress(StoreError):
                    if belongs(read_footer(self.files, name).metadata or {}, problem.run_id):
                        return True
            raise StoreError(f"{error}; for this run choose another --out") from None
        if identity is None or identity.run_id == problem.run_id:
            return identity is not None
        if identity.study.kind != problem.asked.kind:
            raise StoreError(f"{str(self)!r} holds {HOLDS[identity.study.kind]}: choose another --out")
        differences = problem.asked.differences(identity.study)
        if identity.data_digest not in (problem.data_digest, problem.all_rows.digest):
            differences.append("data: another table, or other columns or groups of it")
        raise StoreError(
            f"{str(self)!r} holds another {problem.asked.kind} ({'; '.join(differences)}): choose another "
            "--out"
        )

    def check_room(self, problem: Problem) -> None:
        """Raise InputError if a table of the run would be larger than what can be read back."""
        every, asked = problem.all_rows, problem.asked.kind
        optional = [*every.units.columns, *every.weighting.columns, *every.split_by.columns]
        columns = every.X.shape[1] + 1 + len(optional)
        limits = {"rows": (every.n, MAX_TABLE_ROWS), "values": (every.n * columns, MAX_VALUES)}
        if problem.scores:
            limits["evaluations"] = problem.n_evaluations, MAX_TABLE_ROWS
            if problem.procedure.save_predictions:
                times = problem.sizes[OUTER].n_splits * max(1, len(problem.learners))
                if problem.procedure.interval == BBC:  # it needs every setting, and scores each row once
                    times = problem.n_settings
                limits["predictions to save"] = problem.task.n * times, MAX_TABLE_ROWS
        else:
            limits["candidates"] = len(problem.sizes) * problem.n_settings, MAX_TABLE_ROWS
        for name, (count, most) in limits.items():
            if count > most:
                raise InputError(
                    f"out={str(self)!r}: the {asked} has {count:,} {name}; a run folder holds at most "
                    f"{most:,}: ask for fewer"
                )

    def acquire(self) -> None:
        """Create the folder and lock it for writing, or mark it as being written, until ``release``.

        Raises:
            StoreError: another process has locked it.
            InputError: it cannot be written.
            RunError: the disk is full.
        """
        self.files.lock.acquire()
        try:
            if isinstance(self.files, LocalFiles):
                for folder in FOLDERS:
                    make_folder(self.files.path(folder))
            names = (name for folder in ("", *FOLDERS) for name in self.files.list(folder))
            for name in filter(TEMPORARY.fullmatch, names):  # left by a killed process
                if isinstance(self.files, LocalFiles):
                    self.files.path(name).unlink()
                else:
                    self.files.delete(name)
        except OSError as error:
            self.release()
            raise unwritable(self, error) from None
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Unlock the folder and remove the lock file."""
        self.files.lock.release()

    def begin(self, problem: Problem, again: bool = False) -> None:
        """Write the data and the study.

        Args:
            problem: the problem that is solved.
            again: replace those of the same run that are there.

        Raises:
            StoreError: another run has begun to write there.
            InputError: the categories of the columns are more text than the metadata of a file can have.
        """
        every, made = problem.all_rows, problem.all_rows.provenance
        named = {
            "target": every.target.name,
            "salt": every.salt,
            "provenance": json.dumps(made._asdict() | {"reading": made.reading._asdict()}),
        }
        optional = every.units.name, every.weighting.column, every.split_by.column
        roles = zip(OPTIONAL_ROLES, optional, strict=True)
        named |= {role: name for role, name in roles if name and name not in every.features}
        if every.schema != Schema.of_numbers(every.features):
            named["columns"] = json.dumps([asdict(column) for column in every.schema])
            if len(named["columns"]) > MAX_SCHEMA_BYTES:
                raise InputError(
                    f"the categories of the columns take {len(named['columns']) >> 20:,} MiB: at most "
                    f"{MAX_SCHEMA_BYTES >> 20:,} MiB can be stored; leave out columns of free text"
                )
        if every.units.question:
            named[QUESTION] = every.units.question
        contents = {DATA: make_table(every.columns(), problem.run_id, named)}
        if isinstance(problem.asked.resampling, Splits):
            sets = [(split.train, split.estimate) for split in problem.asked.resampling.sets]
            contents[SPLITS] = make_splits(sets, problem.run_id)
        contents[STUDY] = Identity(problem.asked, problem.data_digest, problem.run_id).to_json()
        if again:
            write_all(self.files, contents)
            return
        for name, content in contents.items():
            create_file(self.files, name, content, "was just written by another run: choose another --out")

    def write_end(self, execution: Mapping[str, object], results: Mapping[str, bytes]) -> None:
        """Write the results, removing earlier ones; then the metadata, and last the manifest of all files.

        On an object store another run may finish at the same time. All that it writes is the same except its
        metadata; if these are then not this run's, they are written again, with the manifest that lists them.

        Args:
            execution: the metadata of the run.
            results: the files of ``make_results`` with the certificate, or those of scores.
        """
        for name in [*self.files.list(), *self.files.list(ENSEMBLE)]:
            if name not in results and (name in RESULTS or name.startswith(ENSEMBLE)):
                self.files.delete(name)
        described = to_json(execution)
        known = {name: hashlib.sha256(content).hexdigest() for name, content in results.items()}
        known[EXECUTION] = hashlib.sha256(described).hexdigest()
        digests = known | self.hash_files([name for name in self.names() if name not in known])
        write_all(self.files, results)
        while True:
            self.files.write(EXECUTION, described)
            self.files.write(MANIFEST, to_json(dict(sorted(digests.items()))))
            if self.sha256(EXECUTION) == known[EXECUTION]:
                return

    def list_stream(self) -> None:
        """Add the files of the stream to the manifest of a finished run."""
        digests = self.manifest() | self.hash_files(list_pieces(self.files, STREAM))
        self.files.write(MANIFEST, to_json(dict(sorted(digests.items()))))

    def check_stream(self) -> None:
        """Check that the stream of this folder has the files that the manifest lists, or has grown since.

        Raises:
            StoreError: one is missing or was edited, or the manifest is damaged.
        """
        for name in self.list_differing(of_stream=True):
            raise StoreError(
                f"{self.files.path(name)} is missing or does not match the manifest: put back the file that "
                "ckcv watch wrote"
            )

    def repair(self, problem: Problem) -> list[str]:
        """Repair a folder with damaged files so that the run can continue; return the names of those files.

        Study and data are written again. A finished run with damaged files, or with less effort than the
        problem, becomes an unfinished one, whose results will be computed again.
        Parts of the log are left to ``log``.

        Raises:
            StoreError: the folder has more effort than the problem.
        """
        lacking = self.falls_short(problem)
        damaged = self.list_differing() if self.finished else []
        if damaged or lacking:
            self.reopen()
        found = None
        with suppress(StoreError):
            found = self.identity()
        if found is None or found.run_id != problem.run_id:
            damaged.append(STUDY)
        try:
            self.problem(Identity(problem.asked, problem.data_digest, problem.run_id))
        except StoreError:
            damaged.append(DATA)
        self.begin(problem, again=True)
        return list(dict.fromkeys(damaged))

    def write_execution(self, execution: Mapping[str, object]) -> None:
        """Write the metadata of the run."""
        self.files.write(EXECUTION, to_json(execution))

    def execution(self) -> dict[str, Any]:
        """Return the metadata of the run; empty if none are written yet.

        Raises:
            StoreError: they are damaged, or missing although the run is finished.
        """
        finished = self.finished
        if not finished and not self.files.exists(EXECUTION):
            return {}
        content = read_json(self.files, EXECUTION)
        with guard_reading(self.files, EXECUTION):  # a run may end, or be reopened, meanwhile
            return dict(read_metadata(content, finished and self.finished))

    def judged(self, problem: Problem) -> pa.Table | None:
        """Return the judged rows of a finished run; None if it has none.

        Raises:
            StoreError: they are damaged.
        """
        if not self.files.exists(judged.JUDGED_ROWS):
            return None
        n = judged.count_judged(problem)
        schema = judged.make_judged_schema(problem)
        table = read_table(self.files, judged.JUDGED_ROWS, problem.run_id, schema, n, n * len(schema))
        with guard_reading(self.files, judged.JUDGED_ROWS):
            return judged.check_judged(table, problem)

    def candidates(self, problem: Problem) -> tuple[pa.Table, Candidate]:
        """Read the table of candidates, and return it with the winner.

        Raises:
            StoreError: it is damaged, or belongs to another problem.
        """
        n = len(problem.sizes) * problem.n_settings
        with guard_reading(self.files, CANDIDATES):
            if n > MAX_TABLE_ROWS:
                raise ValueError(f"its study has {n:,} candidates: at most {MAX_TABLE_ROWS:,} can be read")
            schema = candidates.list_candidate_columns(problem)
            table = read_table(self.files, CANDIDATES, problem.run_id, schema, n, n * len(schema))
            return table, candidates.check(table, problem)

    def manifest(self) -> dict[str, str]:
        """Return the SHA-256 of every file of a finished run, and of its stream.

        Raises:
            StoreError: it is damaged.
        """
        listed = read_json(self.files, MANIFEST)
        with guard_reading(self.files, MANIFEST):
            return read_as(dict[str, str], listed)

    def manifest_digest(self) -> str:
        """Return the SHA-256 of the manifest without a stream: the same before and after watching.

        Raises:
            StoreError: it is damaged.
        """
        listed = {name: digest for name, digest in self.manifest().items() if not STREAM_FILE.fullmatch(name)}
        return hashlib.sha256(to_json(listed)).hexdigest()

    def manifest_intact(self) -> bool:
        """Return whether the manifest has exactly the bytes that a run writes."""
        with suppress(StoreError), guard_reading(self.files, MANIFEST):
            expected = to_json(self.manifest())
            return self.files.read(MANIFEST, MAX_JSON_BYTES) == expected
        return False

    def list_differing(self, of_stream: bool = False) -> list[str]:
        """Return the files of a finished run that are missing or do not match the manifest, or just that.

        Args:
            of_stream: return those of its stream instead, on which none of the others depends.
        """
        if not self.manifest_intact():
            return [MANIFEST]
        every = self.manifest().items()
        listed = {name: digest for name, digest in every if bool(STREAM_FILE.fullmatch(name)) == of_stream}
        there = self.hash_files(name for name in self.names() if name in listed)
        return [name for name, digest in listed.items() if there.get(name) != digest]

    def names(self) -> list[str]:
        """Return every file of the run except the manifest and what is added later, such as the report.

        What a run could not have written, such as a pipe, is left out.
        """
        names = (name for name in self.files.walk() if name not in (MANIFEST, LOCK))
        return sorted(name for name in names if not (LATER.fullmatch(name) or TEMPORARY.fullmatch(name)))

    def hash_files(self, names: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of files of the folder; "" for one that cannot be read."""
        digests = dict.fromkeys(names, "")
        for name, digest in ask_files(self.files, digests, self.sha256):
            with suppress(StoreError):
                digests[name] = digest()
        return digests

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a file of the folder.

        Raises:
            StoreError: there is no such file, or it cannot be read.
        """
        with guard_reading(self.files, name), self.files.open(name) as stream:
            return hashlib.file_digest(cast(Any, stream), "sha256").hexdigest()


def make_results(
    problem: Problem, table: pa.Table, fitted: Models, judged_rows: pa.Table | None = None
) -> dict[str, bytes]:
    """Return the files of candidates, models and judged rows, by name."""
    files = {CANDIDATES: make_table(table, problem.run_id)}
    every = zip(TABLES, (fitted.best, fitted.refit, fitted.full, fitted.references), strict=True)
    files |= {name: make_model_table(problem, one) for name, one in every if one is not None}
    pickles = ensembles.to_pickles(fitted.best, problem.learner, problem.task)
    files |= {f"{ENSEMBLE}{name}": content for name, content in pickles.items()}
    if judged_rows is not None:
        names = {"labels": json.dumps(problem.task.classes)}
        files[judged.JUDGED_ROWS] = make_table(judged_rows, problem.run_id, names)
    return files


def make_splits(sets: Sequence[tuple[Index, Index]], run_id: str) -> bytes:
    """Return a file with the rows that each split fits on, and those that it scores."""
    marked = [((True, train), (False, scored)) for train, scored in sets]
    parts = [(i, train, rows) for i, pair in enumerate(marked) for train, rows in pair]
    columns = {
        "split": np.repeat([i for i, _, _ in parts], [len(rows) for _, _, rows in parts]),
        "train": np.repeat([train for _, train, _ in parts], [len(rows) for _, _, rows in parts]),
        "row": np.concatenate([rows for _, _, rows in parts]),
    }
    return make_table(pa.table(columns).cast(SPLIT_COLUMNS), run_id)


def read_splits(files: Files, resampling: Splits, run_id: str, n: int) -> Splits:
    """Return the splits of n rows in a procedure, of which only the digest is known.

    Raises:
        StoreError: they are missing, damaged, or not those of the procedure.
    """
    table = read_table(files, SPLITS, run_id, SPLIT_COLUMNS, values=2 * MAX_CELLS)
    with guard_reading(files, SPLITS):
        split, train, row = (table[name].to_numpy() for name in SPLIT_COLUMNS.names)
        count = len(numbers := np.unique(split))
        if not np.array_equal(numbers, np.arange(count)):  # checked before there is a part for each number
            raise ValueError("its splits are not numbered from 0, one after another")
        part = 2 * split.astype(np.int64) + ~train
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(1, 2 * count))
        parts = np.split(row[order], ends)
        given = Splits.of(zip(parts[::2], parts[1::2], strict=True) if count else [], n)
        if given.digest != resampling.digest:
            raise ValueError("its splits are not those of the procedure: their digest differs")
    return given


def hash_results(results: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of the files from ``make_results`` that a certificate names: not of the pickles."""
    return {name: hashlib.sha256(results[name]).hexdigest() for name in RESULTS if name in results}


def make_model_table(problem: Problem, ensemble: Ensemble) -> bytes:
    """Return the file of an ensemble."""
    task = problem.task
    names = {"labels": json.dumps(task.classes), "features": json.dumps(task.features)}
    return make_table(ensembles.to_arrow(ensemble, problem.learner, task), problem.run_id, names)


def read_full(files: Files, problem: Problem, setting: Setting) -> Ensemble:
    """Read the model of a study without a certification that is fitted on all rows.

    Raises:
        StoreError: the file is damaged, or holds a model at another setting.
    """
    full = _read_ensemble(files, FULL, problem.task, problem, 0, 1)
    with guard_reading(files, FULL):
        if problem.learner.codec.setting(full.members[0].model) != setting:
            raise ValueError(f"it is fitted at another setting than the scores give, {dict(setting)}")
    return full


def read_models(files: Files, problem: Problem, k: int) -> Models:
    """Read F* at k folds, and the other models that the study has.

    Raises:
        StoreError: a file is damaged, or does not hold a model for each split.
    """
    n_splits = problem.find_size(k).n_splits
    models = Models(_read_ensemble(files, MODELS, problem.task, problem, k, n_splits))
    if problem.held is not None:
        refit = _read_ensemble(files, REFIT, problem.task, problem, k, 1)
        full = _read_ensemble(files, FULL, problem.every_row, problem, k, 1)
        models = replace(models, refit=refit, full=full)
    if problem.references and files.exists(REFERENCES):
        with guard_reading(files, REFERENCES):
            there = read_footer(files, REFERENCES).num_rows
            if not 0 < there <= len(problem.references):
                raise ValueError(f"it has {there} models of {len(problem.references)} learners at most")
        references = _read_ensemble(files, REFERENCES, problem.task, problem, None, there)
        models = replace(models, references=references)
    return models


def read_pickles(files: Files, problem: Problem, ensemble: Ensemble, digests: dict[str, str]) -> Ensemble:
    """Open the pickles of an ensemble, if each has the given digest.

    Raises:
        StoreError: one is missing, too large, or its SHA-256 differs from that in the manifest.
    """
    expected = ensembles.to_pickles(ensemble, problem.learner, problem.task)
    contents = []
    for name, similar in expected.items():
        file = f"{ENSEMBLE}{name}"
        with guard_reading(files, file):
            content = files.read(file, len(similar) + ROOM_BYTES)
        if hashlib.sha256(content).hexdigest() != digests.get(file):
            raise StoreError(f"{files.path(file)} does not match the manifest: it is not opened")
        contents.append(content)
    return ensembles.from_pickles(contents)


def _read_ensemble(
    files: Files, name: str, task: Task, problem: Problem, k: int | None, count: int
) -> Ensemble:
    """Read the ensemble in a file, one member for each split, fitted on rows of a task; None for any k."""
    losses = problem.has_losses
    schema = ensembles.make_schema(problem.learner, task, losses)
    widest = max(task.X.shape[1], *(each.width for each in problem.prepared.values()))
    most = count * (len(schema) + NUMBERS_OF_MODEL * max(2, task.n_classes) * (task.n + widest))
    rows = read_table(files, name, problem.run_id, schema, count, most)
    with guard_reading(files, name):
        ensemble = ensembles.from_arrow(rows, problem.learner, task, losses)
        splits = [(member.k if k is not None else k, member.split) for member in ensemble.members]
        if splits != [(k, i) for i in range(count)]:
            raise ValueError(f"expected a model for each of the {count} splits of k = {k}")
        if any(len(member.errors) != task.n_classes for member in ensemble.members):
            raise ValueError(f"expected counts for {task.n_classes} classes")
    return ensemble

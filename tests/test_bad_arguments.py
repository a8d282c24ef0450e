"""Bad input from Python: an error of ours with what was got, what is allowed, or how to mend it; no Ray is
started and nothing is left behind. The command line has a table of its own, in ``test_bad_input``.
"""

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import ray
from bad_studies import CASES as BAD_STUDIES
from bad_studies import DIGITS, HOLDOUT
from refused import case, snapshot
from scipy.sparse import csr_matrix

from ckcv_ray import (
    Execution,
    InputError,
    Job,
    Result,
    StoreError,
    Study,
    Task,
    TestRows,
    clopper_pearson,
    load_run,
    plan,
    read_task,
    report,
    run,
    run_many,
    verify,
)
from ckcv_ray.reports.render import make_page  # here: matplotlib makes folders when it is first imported
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.task import Roles, make_test_rows

SERIAL = Execution("serial")
STUDY = Study.paper(C=1.0, gamma=1.0, k=3, n_splits=2)
X = np.arange(16.0).reshape(8, 2)
Y = np.array([0, 1] * 4)
TASK = Task.of(X, Y)
COLUMNS = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
BY_NAME = Task.from_table(COLUMNS)
LONG = "x" * 300
TOO_MANY, AND_FOUR = Study.paper(k=9), STUDY.replace(report_k=4)


def where(address, *messages):
    return case(lambda: run(STUDY, X, Y, execution=Execution("ray", address=address)), *messages)


def runs(*messages, study=STUDY, X=X, y=Y, execution=SERIAL, **rest):
    return case(lambda: run(study, X, y, execution=execution, **rest), *messages)


def taken(*messages, out="run", **rest):
    return runs(*messages, out=out, **rest)._replace(error=StoreError)


def held(*messages, share, **options):
    study = STUDY.replace(**HOLDOUT, holdout_share=share, **options)
    return case(lambda: run(study, np.arange(48.0).reshape(24, 2), [0, 1] * 12), *messages)


def arrays(*messages, X=X, y=Y):
    return case(lambda: Task.of(X, y), *messages)


def jobs(*messages, study=STUDY, task=TASK, **rest):
    return case(lambda: run_job(Job(study, task, **rest), SERIAL), *messages)


def many(jobs, *messages, execution=SERIAL):
    return case(lambda: list(run_many(jobs, execution)), *messages)


def plans(*messages, study=STUDY, X=X, y=Y, **rest):
    return case(lambda: plan(study, X, y, **rest), *messages)


def reads(source, *messages, **rest):
    return case(lambda: read_task(source, **rest), *messages)


def learns(*messages, columns=COLUMNS, **rest):
    return case(lambda: Task.from_table(columns, Roles(**rest)), *messages)


def measures(columns, *messages, task=BY_NAME):
    return case(lambda: make_test_rows(columns, task), *messages)


def predicts(X, *messages, **rest):
    return case(lambda: finished().predict(X, **rest), *messages)


def bounds(*messages, errors=1, m=5, **rest):
    return case(lambda: clopper_pearson(errors, m, **rest), *messages)


def folder(call, *messages, error=StoreError, **rest):
    return case(call, *messages, error=error, **rest)


def changed(name, values):
    """The columns with another one under the name."""
    return COLUMNS.set_column(COLUMNS.column_names.index(name), name, pa.array(values))


class Frame:
    """The least that passes for a data frame."""

    def __init__(self, columns, values):
        self.columns, self.values = columns, np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


@cache
def finished() -> Result:
    return run_job(Job(STUDY, TASK), SERIAL)


UNFINISHED = {"harm": lambda folder: (folder / "manifest.json").unlink()}
NO_COLUMN = "there is no column"
SPOILT = np.where(X == 3, np.nan, X)

CASES = BAD_STUDIES | {
    # where
    "address a word": where("nonsense", "address='nonsense'", "host:port", "auto"),
    "address of a client": where("ray://127.0.0.1:1", "address='ray://127.0.0.1:1'", "Ray Client is not"),
    "address without an answer": where("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
    "address with a superscript": where("127.0.0.1:²", "address='127.0.0.1:²'", "host:port"),
    # run: what is no Study, Execution, folder or listener
    "study of nothing": runs("study=None", "Study", study=None),
    "study a mapping": runs("study={'C': [1]}", "Study", study={"C": [1]}),
    "study a class": runs("study=<class", "Study", study=Study),
    "execution a text": runs("execution='serial'", "Execution", execution="serial"),
    "execution a class": runs("execution=<class", "Execution", execution=Execution),
    "out a number": runs("out=7", out=7),
    "out of bytes": runs("out=b'new'", out=b"new"),
    "out with a null": runs("out='a\\x00b'", out="a\0b"),
    "out too long": runs(LONG, "File name too long", out=LONG),
    "out below a file": runs("cannot write to", "study.json' is not a folder", out="run/study.json/a"),
    "out a file": taken("study.json' exists and is not a run folder", out="run/study.json"),
    "out a strange folder": taken("other' has no study.json: it is not a run", "another --out", out="other"),
    "out another study's": taken("seed: requested 4, in the folder 0", study=STUDY.replace(seed=4)),
    "out another table's": taken("data: another table", "choose another --out", X=X + 1),
    "listener a number": runs("listen=3", listen=3, out="new"),
    "k beyond the rows": runs("k=9 is outside 3..8", "there are 8 rows to learn from", study=TOO_MANY),
    "k beyond the rows left": held("k=13 is outside 3..12", "12 rows to learn from", share=0.5, k=13),
    "report_k not computed": runs("report_k=4 is not among k=3", "add it to k", study=AND_FOUR),
    "nearly all held out": held("21 of 24 rows held out leave 3", "hold out 18 at most", share=0.9),
    "none held out": held("0 rows of 24 held out", "hold out at least 10", share=0.01),
    # arrays
    "X of nothing": arrays("X has shape ()", "expected (n, d)", X=None),
    "X a vector": arrays("X has shape (8,)", "expected (n, d)", X=X[:, 0]),
    "X a cube": arrays("X has shape (8, 2, 1)", "expected (n, d)", X=X[:, :, None]),
    "X a generator": arrays("X has shape ()", X=(row for row in X)),
    "X sparse and too large": arrays("at most 134,217,728 cells", X=csr_matrix((10**6, 10**4))),
    "X ragged": arrays("X is not an array", X=[[1, 2], [3]] * 4),
    "X without columns": arrays("there is no feature", X=X[:, :0]),
    "X masked": arrays("masked array", "fill the masked values", X=np.ma.masked_equal(X, 3)),
    "X complex": arrays("X is complex", "real numbers", X=X * 1j),
    "X of times": arrays("column 'x0' holds duration", X=X.astype("m8[s]")),
    "X of words": arrays("another text in each of its 8 rows", X=np.char.add("a", X.astype(str))),
    "X of bytes": arrays("column 'x0' holds binary", X=X.astype("S")),
    "X of records": arrays("X cannot be read as columns", X=np.zeros((8, 2), [("a", float)])),
    "X beyond int64": arrays("too large", X=np.array([[2**70, 1]] * 8, object)),
    "X of NaN": arrays("column 'x0' is empty", "column 'x1' is empty", X=X * np.nan),
    "X of None": arrays("column 'x1' is empty", X=np.where(X % 2, None, X)),
    "frame of twins": arrays("two columns are named 'a', and differ", "--drop a", X=Frame(["a", "a"], X)),
    "frame of names too few": arrays("named a", "must match the columns", X=Frame(["a"], X)),
    "frame of names too many": arrays("must match the columns", X=Frame(["a", "b", "c"], X)),
    "frame of names not in Unicode": arrays("surrogates not allowed", X=Frame(["\ud800", "b"], X)),
    "y a column": arrays("y (8, 1)", "expected (n, d) and (n,)", y=Y[:, None]),
    "y a number": arrays("y ()", y=1),
    "y ragged": arrays("y", y=[[0], [1, 2]] * 4),
    "y too short": arrays("X has shape (8, 2) and y (7,)", y=Y[:7]),
    "y sparse": arrays("y", "sparse", y=csr_matrix(Y)),
    "y with infinity": arrays("has inf in row 1", "finite", y=np.where(Y, 1.0, np.inf)),
    "y of text and numbers": arrays("y cannot be read as labels", y=np.array(["no", 1] * 4, object)),
    "y beyond int64": arrays("9223372036854775808 in row 2", y=np.array([0, 2**63] * 4, np.uint64)),
    # Job
    "task of nothing": jobs("task=None", "Task.of(X, y)", task=None),
    "task of columns": jobs("task=", "Task.of(X, y)", task=COLUMNS),
    "arrays for rows to test": jobs("test=", "TestRows", test=(X, Y)),
    "narrow rows to test": jobs("X has shape (8, 1)", "(rows, 2)", test=TestRows(X[:, :1], TASK.y)),
    "no rows to test": jobs("no test rows", test=TestRows(X[:0], TASK.y[:0])),
    "rows to test with NaN": jobs("1 empty cell", "row 2", test=TestRows(SPOILT, TASK.y)),
    "rows to test with labels too few": jobs("shape (7,)", "a class number", test=TestRows(X, TASK.y[:7])),
    "rows to test of no class": jobs("a class number below 2", test=TestRows(X, TASK.y + 1)),
    "rows to test of a class below zero": jobs("a class number below 2", test=TestRows(X, TASK.y - 1)),
    "rows to test of texts": jobs("a class number below 2", test=TestRows(X, TASK.y.astype(str))),
    "parts of a job for a job": case(lambda: run_job((STUDY, TASK), SERIAL), "job=", "Job(study, task, out)"),
    # run_many
    "jobs of nothing": many(None, "jobs=None", "Job"),
    "one job for many": many(Job(STUDY, TASK), "Job"),
    "a study for a job": many([STUDY], "Job"),
    "half a job": many([(STUDY, TASK)], "Job"),
    "job without a task": many([Job(STUDY, None)], "task=None", "Task.of(X, y)"),
    "job with k beyond the rows on Ray": many([Job(TOO_MANY, TASK)], "k=9", execution=Execution("ray")),
    "jobs executed by a text": many([Job(STUDY, TASK)], "execution='serial'", execution="serial"),
    # plan
    "plan of nothing": plans("study=None", "Study.of", study=None),
    "plan on a vector": plans("X has shape (8,)", "expected (n, d)", X=X[:, 0]),
    "plan for no workers": plans("workers=0 is below 1", workers=[0]),
    "plan for a number of workers": plans("workers=8 is not a sequence", "list of numbers", workers=8),
    "plan for workers in words": plans("workers='8' is not a sequence", workers="8"),
    "plan for half a worker": plans("workers=0.5 is not a whole number", workers=[2, 0.5]),
    "plan for nobody": plans("workers is empty", workers=()),
    # read_task and Task.from_table
    "source of nothing": reads(None, "None", "named set"),
    "source empty": reads("", "'' is neither a file ending in .csv", "named set"),
    "source with a null": reads("a\0.csv", "no file", "a\\x00.csv"),
    "source too long": reads(f"{LONG}.csv", LONG),
    "source a folder like a file": reads("folder.csv", "'folder.csv' is a folder, and no table"),
    "columns of nothing": learns("columns=None", columns=None),
    "columns an array": learns("columns=array", columns=X),
    "target by number": learns("no column 2 for the target", "a, b, y", target=2),
    "features a text": learns("features='ab'", "list", features="ab"),
    "features a number": learns("features=3", "list", features=3),
    "features by number": learns(f"{NO_COLUMN} 0", "a, b, y", features=[0]),
    "drop a text": learns("drop='ab'", "list", drop="ab"),
    # make_test_rows
    "test rows an array": measures(X, "columns=array"),
    "test rows without target": measures(COLUMNS.drop_columns("y"), "no column 'y' with the labels"),
    "test rows without a feature": measures(COLUMNS.drop_columns("a"), f"{NO_COLUMN} 'a'", "b, y"),
    "test rows none": measures(COLUMNS[:0], "no test rows"),
    "test rows of another class": measures(changed("y", [0, 2] * 4), "column 'y' holds 2", "0 and 1"),
    "test rows for no task": measures(COLUMNS, "task=None", "Task.of(X, y)", task=None),
    "test rows with twins": measures(COLUMNS.rename_columns(["a", "y", "y"]), "two columns are named 'y'"),
    # Result.predict, predictions
    "one row as a vector": predicts(X[0], "X has shape (2,)", "expected (rows, 2)"),
    "rows too narrow": predicts(X[:, :1], "X has shape (8, 1)", "expected (rows, 2)"),
    "rows too wide": predicts(np.hstack([X, X]), "X has shape (8, 4)", "expected (rows, 2)"),
    "rows ragged": predicts([[1, 2], [3]], "X", "not an array"),
    "rows masked": predicts(np.ma.masked_equal(X, 3), "masked array", "fill the masked values"),
    "rows complex": predicts(X * 1j, "X is complex", "real numbers"),
    "rows beyond int64": predicts(np.array([[2**70, 1]], object), "X", "too large"),
    "rows of texts": predicts(np.char.add("a", X.astype(str)), "column 'x0' has 'a0.0' in row 1"),
    "rows with NaN": predicts(SPOILT, "column 'x1' has 1 empty cell, the first in row 2"),
    "frame with other names": predicts(Frame(["p", "q"], X), "there are no columns 'x0', 'x1'", "p, q"),
    "frame with twins": predicts(Frame(["x0", "x0"], X), "named 'x0', and differ: rename or remove one"),
    "frame with twins beside": predicts(Frame(["x0", "x1", "x1"], X[:, [0, 1, 0]]), "two", "named 'x1'"),
    "frame with names too few": predicts(Frame(["x0"], X), "X has 2 columns named x0"),
    "member beyond the members": predicts(X, "member=2 is above 1", by="member:2"),
    "member a truth value": predicts(X, "by='member:True' is not known", by="member:True"),
    "member below zero": predicts(X, "by='member:-1' is not known", "member:0", by="member:-1"),
    "member without a number": predicts(X, "by='member' is not known", "member:0", by="member"),
    "rule a number": predicts(X, "by=1 is not known: choose from auto, vote, random", by=1),
    "rule misspelt": predicts(X, "by='votes' is not known", "did you mean vote?", by="votes"),
    "seed and vote": predicts(X, "seed and vote exclude each other", seed=1, by="vote"),
    "seed a fraction": predicts(X, "seed=0.0 is not a whole number", seed=0.0),
    "seed below zero": predicts(X, "seed=-1 is below 0", seed=-1),
    "seed of too many digits": predicts(X, "seed", seed=DIGITS),
    "vote on rows too narrow": predicts(X[:, :1], "(rows, 2)", by="vote"),
    # clopper_pearson
    "m of another shape": bounds("shape", "(2,)", "(3,)", errors=[1, 2], m=[5, 6, 7]),
    "bound at a text": bounds("delta='0.05' is not a number", delta="0.05"),
    "bound at several levels": bounds("delta=[0.1, 0.2] is not a number", delta=[0.1, 0.2]),
    # folders
    "nothing loaded": folder(lambda: load_run("new"), "'new' holds no run"),
    "number loaded": folder(lambda: load_run(3), "out=3", error=InputError),
    "null loaded": folder(lambda: load_run("a\0b"), "out='a\\x00b'", "no file can have this name"),
    "long name loaded": folder(lambda: load_run(LONG), LONG),
    "address loaded": folder(lambda: load_run("ftp://b/run"), "the scheme is not known", error=InputError),
    "unfinished loaded": folder(lambda: load_run("run"), "'run' is not finished", **UNFINISHED),
    "strange folder loaded": folder(lambda: load_run("other"), "'other'", "not a run folder"),
    "nothing verified": folder(lambda: verify(Path("new")), "'new' holds no finished run"),
    "number verified": folder(lambda: verify(3), "out=3", error=InputError),
    "unfinished verified": folder(lambda: verify(Path("run")), "no finished run", **UNFINISHED),
    "strange folder verified": folder(lambda: verify(Path("other")), "'other'", "not a run folder"),
    "nothing replayed": folder(lambda: replay("new"), "'new' holds no run"),
    "strange folder replayed": folder(lambda: replay("other"), "'other'", "not a run folder"),
    "nothing on a page": folder(lambda: report(Path("new")), "'new' holds no run"),
    "text of nothing on a page": folder(lambda: make_page("new"), "'new' holds no run"),
    "unfinished on a page": folder(lambda: report(Path("run")), "'run' is not finished", **UNFINISHED),
    "strange folder on a page": folder(lambda: report(Path("other")), "'other'", "not a run folder"),
    "number on a page": folder(lambda: report(3), "out=3", error=InputError),
}  # fmt: skip


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("a_run") / "run"
    run_job(Job(STUDY, TASK, folder), SERIAL)
    return folder


@pytest.fixture
def place(a_run, cache, tmp_path, monkeypatch):
    """Where a case is called: beside a finished run and other things, without a Ray, nor a way to one."""
    shutil.copytree(a_run, tmp_path / "run")
    for strange in (tmp_path / "other", tmp_path / "folder.csv"):
        strange.mkdir()
        (strange / "letter.txt").write_text("not a run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was started for bad input"))
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_bad_arguments_are_refused(place, name):
    case = CASES[name]
    case.harm(place / "run")
    before = snapshot(place)
    with pytest.raises(case.error) as refused:
        case.call()
    assert type(refused.value) is case.error
    for part in case.messages:
        assert part in str(refused.value)
    assert snapshot(place) == before

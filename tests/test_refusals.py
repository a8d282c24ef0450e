"""Bad input, from Python and at the command line: one clear message with what was given and what is allowed,
or how to fix it; from Python one of our errors, at the command line exit code 2, or 4 for a folder that is
not of this run, and nothing on standard output. No Ray is started, and nothing is left behind.
"""

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import ray
from conftest import snapshot
from scipy.sparse import csr_matrix

from ckcv_ray import (
    Execution,
    InputError,
    Job,
    Procedure,
    Result,
    StoreError,
    Study,
    Task,
    TestRows,
    assess,
    evaluate,
    load_run,
    plan,
    read_task,
    run,
    run_many,
)
from ckcv_ray.errors import REMOVED, AbsentError
from ckcv_ray.extend import Rotation
from ckcv_ray.runs import run as driver
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.study import read_toml
from ckcv_ray.tables.named import read
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import make_test_rows

# Files that the command line reads: one that is sound, and those with something wrong

A = [f"{i}" for i in range(8)]
B = [f"{i * i % 7}.5" for i in range(8)]
Y = ["no", "yes"] * 4


def csv_text(a=A, b=B, y=Y, header="a,b,y"):
    rows = zip(*(values for values in (a, b, y) if values is not None), strict=True)
    return "\n".join([header, *(",".join(row) for row in rows)]) + "\n"


def swapped(values, **changed):
    """The values with row3="x" in the third row."""
    return [changed.get(f"row{i}", value) for i, value in enumerate(values, start=1)]


FILES = {
    "good.csv": csv_text(),
    "groups.csv": csv_text(
        header="a,b,id,y",
        a=[f"{i}" for i in range(16)],
        b=[f"{i % 7}.5,p{i // 2}" for i in range(16)],
        y=["no", "yes"] * 8,
    ),
    "nan.csv": csv_text(b=swapped(B, row5="nan")),
    "no target.csv": csv_text(header="a,b,outcome"),
    "only target.csv": csv_text(a=None, b=None, header="y"),
    "test without a.csv": csv_text(a=None, header="b,y"),
    "test with maybe.csv": csv_text(y=swapped(Y, row3="maybe")),
    "scalar.toml": "C = true",
}


SERIAL = Execution("serial")


def study(*messages, **options):
    return case(lambda: Study.paper(**options), *messages)


def replaced(*messages, **options):
    return case(lambda: Study().replace(**options), *messages)


class Case(NamedTuple):
    """A call, or words after ``ckcv``, split at spaces unless they are a list; what the message says.

    For a call, the class of the error, and damage to the finished run in ``run``; for words, the exit code,
    and whether it is the parser that refuses, in its own panel.
    """

    asked: Callable[[], object] | str | list[str]
    messages: tuple[str, ...]
    error: type[Exception] = InputError
    harm: Callable[[Path], object] = lambda folder: None
    code: int = 2
    usage: bool = False


def case(asked, *messages, **rest):
    return Case(asked, messages, **rest)


def words(options="", *messages, source="good.csv", **rest):
    """A case of ``ckcv run``."""
    options = options.split(" ") if isinstance(options, str) and options else list(options)
    return Case(["run", source, "--out", "OUT", *options], messages, **rest)


def evaluates(options, *messages, **rest):
    return case(f"evaluate sklearn:iris --out OUT {options}", *messages, **rest)


STUDY = Study.paper(C=1.0, gamma=1.0, k=3, n_splits=2)
X = np.arange(16.0).reshape(8, 2)
Y = np.array([0, 1] * 4)
TASK = Task.of(X, Y)
COLUMNS = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
BY_NAME = Task.from_table(COLUMNS)
TOO_MANY = Study.paper(k=9)


def where(address, *messages):
    return case(lambda: run(STUDY, X, Y, execution=Execution("ray", address=address)), *messages)


def runs(*messages, study=STUDY, X=X, y=Y, execution=SERIAL, **rest):
    return case(lambda: run(study, X, y, execution=execution, **rest), *messages)


def taken(*messages, out="run", **rest):
    return runs(*messages, out=out, **rest)._replace(error=StoreError)


def held(*messages, share, **options):
    study = STUDY.replace(certify="holdout", holdout_share=share, **options)
    return case(lambda: run(study, np.arange(48.0).reshape(24, 2), [0, 1] * 12), *messages)


def arrays(*messages, X=X, y=Y, **rest):
    return case(lambda: Task.of(X, y, **rest), *messages)


def numbers(y, *messages):
    return arrays(*messages, X=np.arange(12.0).reshape(6, 2), y=np.array(y), numbers=True)


def jobs(*messages, study=STUDY, task=TASK, **rest):
    return case(lambda: run_job(Job(study, task, **rest), SERIAL), *messages)


def measures(columns, *messages, task=BY_NAME):
    return case(lambda: make_test_rows(columns, task), *messages)


def predicts(X, *messages, **rest):
    return case(lambda: finished().predict(X, **rest), *messages)


def folder(call, *messages, error=StoreError, **rest):
    return case(call, *messages, error=error, **rest)


class Frame:
    """The least that passes for a data frame."""

    def __init__(self, columns, values):
        self.columns, self.values = columns, np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


@cache
def finished() -> Result:
    return run_job(Job(STUDY, TASK), SERIAL)


def change_schema(folder):
    file = folder / "study.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 99}))


UNFINISHED = {"harm": lambda folder: (folder / "manifest.json").unlink()}
SPOILT = np.where(X == 3, np.nan, X)


CASES = {
    # grids and lists
    # numbers
    "splits beyond the most": study("n_splits=1000001 is above 1000000", n_splits=1_000_001),
    "delta below what is computed": study("delta=1e-13 is below 1e-12", "the smallest", delta=1e-13),
    # choices
    "weights misspelt": study("class_weight='balance'", "equal, balanced, or LABEL=", class_weight="balance"),
    "criterion with what it has not": study("criterion='error:1' is not known", criterion="error:1"),
    "costs all zero": study("costs are all 0", "must cost something", criterion="cost:a=0,b=0"),
    # changed options
    "replaced by one misspelt": replaced("unknown option 'n_split' of a study", "n_splits", n_split=5),
    "replaced by a part": replaced("resampling=Rotation", "complete, rotation", resampling=Rotation()),
    # Study.from_json, read_toml, parse_grid, parse_folds
    "fields named by numbers": case(
        lambda: Study.from_json(Study().to_json() | {1: 2}), "unknown option 1", "the options are"
    ),
    "study file that is a folder": case(lambda: read_toml(Path("run")), "study file 'run'", "directory"),
    # Execution
    "no address": case(lambda: Execution("ray", address=""), "address='': expected host:port"),
    "a number of thousands of digits": case(lambda: Study.of(delta=10**5000), "<a number of thousands of"),
    "serial address": case(lambda: Execution("serial", address="auto"), "address='auto' requires the ray"),
    # where
    "address of a client": where("ray://127.0.0.1:1", "address='ray://127.0.0.1:1'", "Ray Client is not"),
    "address without an answer": where("127.0.0.1:1", "no Ray cluster answers"),
    # run: what is no Study, Execution, folder or listener
    "out a number": runs("out=7", out=7),
    "out a strange folder": taken("other' has no study.json: it is not a run", "another --out", out="other"),
    "out another study's": taken("seed: requested 4, in the folder 0", study=STUDY.replace(seed=4)),
    "k beyond the rows": runs("k=9 is outside 3..8", "there are 8 rows to learn from", study=TOO_MANY),
    "nearly all held out": held("21 of 24 rows held out leave 3", "hold out 18 at most", share=0.9),
    "none held out": held("0 rows of 24 held out", "hold out at least 10", share=0.01),
    # arrays
    "X a vector": arrays("X has shape (8,)", "expected (n, d)", X=X[:, 0]),
    "X sparse and too large": arrays("at most 134,217,728 cells", X=csr_matrix((10**6, 10**4))),
    "X beyond int64": arrays("too large", X=np.array([[2**70, 1]] * 8, object)),
    "X of NaN": arrays("column 'x0' is empty", "column 'x1' is empty", X=X * np.nan),
    "frame of twins": arrays("two columns are named 'a', and differ", "--drop a", X=Frame(["a", "a"], X)),
    "frame of names not in Unicode": arrays("surrogates not allowed", X=Frame(["\ud800", "b"], X)),
    "y of text and numbers": arrays("y cannot be read as a column", y=np.array(["no", 1] * 4, object)),
    "numbers in words": numbers(["sick", "well"] * 3, "such as 'sick'"),
    "numbers with NaN": numbers([1.0, 2.0, np.nan, 4.0, 5.0, 6.0], "row 3"),
    "numbers too large": numbers([1e200, 2.0, 3.0, 4.0, 5.0, 6.0], "has 1e+200: magnitudes"),
    "classes for ridge": case(lambda: assess(Procedure.of(learner="ridge"), TASK), "ridge is for numbers"),
    "numbers without a clip": runs("such as clip=50", study=Study.paper(learner="ridge"), y=X[:, 0]),
    "numbers taken for classes": case(lambda: evaluate(X, X[:, 0] / 2), "of 1 row (0.0", "most need at"),
    # Job
    "arrays for rows to test": jobs("test=", "TestRows", test=(X, Y)),
    "no rows to test": jobs("X of shape (0, ", test=TestRows(X[:0], TASK.y[:0])),
    "rows to test with NaN": jobs("an empty cell in row 2", test=TestRows(SPOILT, TASK.y)),
    "rows to test of no class": jobs("a class number below 2", test=TestRows(X, TASK.y + 1)),
    # run_many
    "too many folds on Ray": case(lambda: list(run_many([Job(TOO_MANY, TASK)], Execution("ray"))), "k=9"),
    # plan
    "plan for half a worker": case(
        lambda: plan(STUDY, X, Y, workers=[2, 0.5]), "workers=0.5 is not a whole number"
    ),
    # read_task and Task.from_table
    "source of nothing": case(lambda: read_task(None), "None", "named set"),
    "source a folder": case(lambda: read_task("folder.csv"), "'folder.csv' is a folder, not a table"),
    "features a text": case(lambda: Task.from_table(COLUMNS, Roles(features="ab")), "features='ab'", "list"),
    # make_test_rows
    "test rows an array": measures(X, "test=array", "TestRows"),
    # Result.predict, predictions
    "one row as a vector": predicts(X[0], "X has shape (2,)", "expected (rows, 2)"),
    "member beyond the members": predicts(X, "member=2 is above 1", by="member:2"),
    "rule misspelt": predicts(X, "by='votes' is not known", "did you mean vote?", by="votes"),
    "seed and vote": predicts(X, "seed and vote exclude each other", seed=1, by="vote"),
    # clopper_pearson
    # folders
    "nothing loaded": folder(lambda: load_run("new"), "'new' holds no run"),
    "another schema loaded": folder(lambda: load_run("run"), "study.json", "schema 99", harm=change_schema),
    "unfinished loaded": folder(lambda: load_run("run"), "'run' is not finished", **UNFINISHED),
    "strange folder loaded": folder(lambda: load_run("other"), "'other'", "not a run folder"),
    "form without a file": case("report run --for tripod-ai", "--for 'tripod-ai' needs --out, the form to"),
    "strict without a form": case("report run --strict", "--strict is about a form: add a guideline"),
    # files
    "no such file": words("", "there is no file 'nowhere.csv'", source="nowhere.csv"),
    # columns
    "two kinds": words("--date b --categorical b", "column 'b' is given two kinds"),
    "a kind for no column": words("--categorical c", "--categorical 'c': the columns that are learned"),
    "the target names rows": words("--id y", "'y' cannot be both --id and", source="only target.csv"),
    "rare beyond 1": words("--rare 1", "--rare 1.0 is not a share: expected a number from 0 to below 1"),
    # words that are nearly right
    "nearly a target": words("--target Y", "; did you mean 'y'?\n"),
    "nearly a file": case("run goood.csv --out OUT", "; did you mean 'good.csv'?\n"),
    "nearly a set": case("run twonrm:40:0 --out OUT", "; did you mean twonorm?\n"),
    "nearly a measure": evaluates("--measure acuracy", "; did you mean accuracy?\n"),
    "nearly a run": case("predict runs good.csv", "; did you mean 'run'?\n", code=4),
    # first looks, exports and streams
    "a first look at every row": case("plan good.csv --try 20s --paper", "paper judges every row: leave it"),
    "rows without a first look": case("plan good.csv --rows 20", "--rows is for a first look: add --try 30s"),
    "export of many models": case("export run --out x", "is not a single model: choose --member 0"),
    "export over a file": case("export run --out good.csv --member 0", "exists: name another file"),
    "export of two models": case("export run --out x --full --refit", "refit and full exclude each other"),
    "nothing to watch": case("watch run good.csv --id a", "is certified, so there is nothing to watch"),
    "drawn stream": case("watch run good.csv --id a --prediction y --seed 1", "seed is for ckcv predict"),
    "stream in a run": case(
        "watch run good.csv --id a --prediction y --stream run/log/s.jsonl", "'run/log/s.jsonl' is in a run"
    ),
    # groups
    "fewer groups than folds": words(
        "--group id --k 9 --certify paper",
        "--k 9 is outside 3..8: there are 8 groups to learn from",
        source="groups.csv",
    ),
    # landmarks
    "svm_nystroem with more landmarks than rows": words(
        "--learner svm_nystroem --k 3 --certify paper",
        "param landmarks=500: they are drawn",
        "give at most",
    ),
    # the rest of the study
    "number for a list": words("--study scalar.toml", "scalar.toml': --C True is not a sequence", "list of"),
    # execution
    "serial workers": words("--backend serial --workers 2", "--workers 2", "leave out --backend serial"),
    # a time, and what fixes the work
    "time and paper": words("--budget 10m --paper", "--budget 10m limits", "--search race fixes it: leave"),
    "time and effort": words("--budget 10m --search budget --effort 90", "and --effort 90 fixes it: leave"),
    # claims and conditions
    "answer without errors": words("--answer error<=0", "write error<=0.05"),
    "better than itself": words(
        "--learner linear --claim better:linear", "such as --learner linear,svm", source="twonorm:60:0"
    ),
    "cut-off of a constant": words(
        "--learner constant --require sensitivity>=0.5", "learner constant gives every row the same"
    ),
    # evaluate and compare
    "certificate of a procedure": evaluates("--certify holdout", "No such option", usage=True),
    "nothing to compare with": case("compare run --rows good.csv", "or --predictions COLUMN"),
    "rows to compare on not named": case("compare run run", "--rows", usage=True),
    # rows to test on
    "test with another label": words(["--test", "test with maybe.csv"], "'maybe'", "'no' and 'yes'"),
    # folders that cannot be written
    "out inside a file": case("run good.csv --out good.csv/run", "good.csv' is not a folder"),
    # names no file can have
    "status of very many folders": case(f"status {'a/' * 2045}", "File name too long", code=4),
    # what the parser refuses
    "no source": case("run --out OUT", "Missing argument", usage=True),
    "unknown option": words("--gama 1", "No such option: --gama", "--gamma", usage=True),
    # no run there
    "status of nothing": case("status nowhere", "'nowhere' holds no run", code=4),
    # before the table is read
    **{
        f"{command} {option} {value}": case([command, "no target.csv", option, value], message, code=code)
        for command in ("run", "evaluate")
        for option, value, message, code in (
            ("--out", "good.csv", "'good.csv' exists and is not a run folder", 4),
            ("--out", "good.csv/run", "is not a folder", 2),
            ("--address", "127.0.0.1:1", "no Ray cluster answers", 2),
        )
    },
    "folder of another table and study": case(
        "run good.csv --out run --paper --seed 5 --delta 0.1",
        *("'run'", "seed: ", "delta: ", "another table"),
        code=4,
    ),
    "option given twice": case("run good.csv --drop a --drop=b", "--drop is given twice: give it once"),
    "option by both of its names": case("predict r good.csv --keep a --id b", "--keep or --id is given"),
}  # fmt: skip
PREDICT = {
    "feature not there": (["test without a.csv"], "there is no column 'a': the columns are b, y"),
    "NaN": (["nan.csv", "--strict"], "column 'b' has an empty cell in row 5"),
    "column to keep not there": (["good.csv", "--keep", "id"], "there is no column 'id' to keep"),
    "no folder for out": (["good.csv", "--out", "no/p.csv"], "cannot write 'no/p.csv'"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with all the files of the cases, and beside them a finished run of good.csv."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, text in FILES.items():
        (folder / "files" / name).parent.mkdir(exist_ok=True)
        (folder / "files" / name).write_text(text)
    task = Task.from_table(read(str(folder / "files" / "good.csv")).learn, source="good.csv")
    run_job(Job(STUDY, task, folder / "run"), SERIAL)
    run_job(Job(STUDY, TASK, folder / "run of arrays"), SERIAL)
    return folder


@pytest.fixture
def place(inputs, cache, tmp_path, monkeypatch):
    """Where a case is called: with the files, a run and other things, without a Ray or a way to one."""
    shutil.copytree(inputs / "files", tmp_path, dirs_exist_ok=True)
    shutil.copytree(inputs / "run of arrays", tmp_path / "run")
    for strange in (tmp_path / "other", tmp_path / "folder.csv"):
        strange.mkdir()
        (strange / "letter.txt").write_text("not a run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was started for bad input"))
    return tmp_path


@pytest.fixture
def refused(place, ckcv, monkeypatch):
    """What is said about a case, after checking what holds for every case."""

    def call(case):
        before = snapshot(place)
        message = raise_error(case) if callable(case.asked) else type_words(case)
        for part in case.messages:
            assert part in message
        assert snapshot(place) == before
        return message

    def raise_error(case):
        with pytest.raises(case.error) as raised:
            case.asked()
        assert type(raised.value) in (case.error, AbsentError)
        return str(raised.value)

    def type_words(case):
        words = case.asked.split(" ") if isinstance(case.asked, str) else case.asked
        words = ["out" if word == "OUT" else word for word in words]
        monkeypatch.setattr(driver, "session", lambda *_, **__: pytest.fail("a backend for bad input"))
        code, shown, error = ckcv(*words)
        assert (code, shown) == (case.code, ""), error
        assert "Traceback" not in error
        if case.usage:
            assert error.count("─ Error ─") == 1
            return " ".join(error.replace("│", " ").split())
        assert error.startswith("ckcv: ")
        assert error.count("\n") == 1
        assert error.endswith("\n")
        return error

    return call


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_is_refused_in_one_message(refused, place, name):
    CASES[name].harm(place / "run")
    refused(CASES[name])


@pytest.mark.parametrize("name", ["no such file", "fewer groups than folds", "status of nothing"])
def test_nothing_goes_to_standard_output_with_json_either(refused, name):
    asked = CASES[name].asked
    refused(CASES[name]._replace(asked=[*(asked.split(" ") if isinstance(asked, str) else asked), "--json"]))


def test_no_permission_to_write(refused, place, monkeypatch):
    closed = place / "closed"
    closed.mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may do anything
        monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == closed and mode & os.W_OK))
    refused(
        case(
            ["run", "good.csv", "--out", str(closed / "deep" / "run")], "in which you may write", str(closed)
        )
    )


@pytest.fixture
def folder(inputs, place):
    """A finished run of good.csv to be damaged."""
    shutil.rmtree(place / "run")
    return shutil.copytree(inputs / "run", place / "run")


@pytest.mark.parametrize("name", PREDICT)
def test_rows_that_cannot_be_classified(refused, folder, name):
    words, message = PREDICT[name]
    error = refused(case(["predict", "run", *words], message))
    assert "--drop" not in error, "an option that predict does not have"
    assert "--features" not in error


# What was removed is answered with what to write instead


@pytest.mark.parametrize("name", REMOVED)
def test_what_was_removed_says_what_to_write_instead(name, ckcv):
    code, _, said = ckcv(*(name.split()[1:] if name.startswith("ckcv ") else ["run", "t.csv", name]))
    assert code == 2
    assert REMOVED[name] in " ".join(said.split())


def test_the_changelog_tells_the_same():
    changes = (Path(__file__).parents[1] / "CHANGELOG.md").read_text().partition("### Removed\n")[2]
    told = [line for line in changes.splitlines() if line.startswith(("* `--", "* `ckcv "))]
    assert told == [f"* `{name}`: {instead}." for name, instead in REMOVED.items()]

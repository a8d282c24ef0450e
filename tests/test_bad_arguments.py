"""Bad input from Python: an error of ours with what was got, what is allowed, or how to mend it; no Ray is
started and nothing is left behind. The command line has a table of its own, in ``test_bad_input``.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import ray
from pyarrow import parquet
from scipy.sparse import csr_matrix
from test_bad_input import CASES as AT_THE_COMMAND_LINE
from test_bad_input import DAMAGES, FOREIGN, PREDICT, snapshot

from ckcv_ray import (
    Execution,
    InputError,
    Job,
    Result,
    RunError,
    StoreError,
    Study,
    clopper_pearson,
    load_run,
    run,
    run_many,
)
from ckcv_ray.data.ida import fetch
from ckcv_ray.data.task import TestRows, learning_table, read, rows_to_test, table_from_arrays
from ckcv_ray.engine.estimate import estimate
from ckcv_ray.reports.page import page
from ckcv_ray.runs.load import replay
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import parse_folds, parse_grid, read_toml

SERIAL = Execution("serial")
STUDY = Study(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=2)
X = np.arange(16.0).reshape(8, 2)
Y = np.array([0, 1] * 4)
TABLE = table_from_arrays(X, Y)
COLUMNS = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y})
BY_NAME = learning_table(COLUMNS)
LONG = "x" * 300
TOO_MANY, AND_FOUR = Study(k=(9,)), replace(STUDY, report_k=(4,))
HOLDOUT = {"protocol": "holdout"}
DIGITS = 10**5000  # Python does not write so long a number


class Case(NamedTuple):
    """What is called, what the message has to say, its class, and harm to the finished run in ``run``."""

    call: Callable[[], object]
    told: tuple[str, ...]
    error: type[Exception] = InputError
    harm: Callable[[Path], object] = lambda folder: None


def case(call, *told, **rest):
    return Case(call, told, **rest)


def study(*told, **fields):
    return case(lambda: Study(**fields), *told)


def from_json(values, *told):
    return case(lambda: Study.from_json(values), *told)


def how(*told, **fields):
    return case(lambda: Execution(**fields), *told)


def where(address, *told):
    return case(lambda: run(STUDY, X, Y, execution=Execution("ray", address=address)), *told)


def runs(*told, study=STUDY, X=X, y=Y, execution=SERIAL, **rest):
    return case(lambda: run(study, X, y, execution=execution, **rest), *told)


def taken(*told, out="run", **rest):
    return runs(*told, out=out, **rest)._replace(error=StoreError)


def held(*told, share, **fields):
    return runs(*told, study=replace(STUDY, **HOLDOUT, holdout_share=share, **fields))


def arrays(*told, X=X, y=Y):
    return case(lambda: table_from_arrays(X, y), *told)


def tables(*told, study=STUDY, table=TABLE, **rest):
    return case(lambda: run_table(study, table, execution=SERIAL, **rest), *told)


def many(jobs, *told, execution=SERIAL):
    return case(lambda: list(run_many(jobs, execution)), *told)


def forecast(study, table, *told):
    return case(lambda: estimate(study, table), *told)


def reads(source, *told, **rest):
    return case(lambda: read(source, **rest), *told)


def learns(*told, columns=COLUMNS, **rest):
    return case(lambda: learning_table(columns, **rest), *told)


def measures(columns, *told):
    return case(lambda: rows_to_test(columns, BY_NAME), *told)


def predicts(X, *told, **rest):
    return case(lambda: finished().predict(X, **rest), *told)


def bounds(*told, errors=1, m=5, **rest):
    return case(lambda: clopper_pearson(errors, m, **rest), *told)


def folder(call, *told, error=StoreError, **rest):
    return case(call, *told, error=error, **rest)


def fetches(url, *told):
    return case(lambda: fetch(url), *told)


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
    return run_table(STUDY, TABLE, execution=SERIAL)


def log(folder, change):
    """Change the first part of a run's log and write it as one more."""
    part = parquet.read_table(folder / "cells" / "part-000000.parquet")
    values = change(part.to_pydict())
    other = pa.table(values, schema=part.schema)
    parquet.write_table(other, folder / "cells" / "part-000001.parquet")


UNFINISHED = {"harm": lambda folder: (folder / "manifest.json").unlink()}
NO_COLUMN = "there is no column"
SPOILT = np.where(X == 3, np.nan, X)

CASES = {
    # Study: grids and lists
    "C of nothing": study("C=None is not a sequence", "list of numbers", C=None),
    "C a number": study("C=1.0 is not a sequence", "list of numbers", C=1.0),
    "C a text": study("C='0.1,1' is not a sequence", C="0.1,1"),
    "C of bytes": study("C=b'01'", C=b"01"),
    "C an array of no dimension": study("C=", "is not a sequence", C=np.array(1.0)),
    "C a matrix": study("C=array", "is not a number", C=np.ones((2, 2))),
    "C complex": study("C=1j is not a number", C=(1j,)),
    "C with NaN": study("C=nan is not allowed", "positive and finite", C=(1.0, float("nan"))),
    "C beyond float64": study("is too large", "finite", C=(10**400,)),
    "gamma of nothing to draw from": study("gamma is empty", "at least one", gamma=iter(())),
    "gamma of texts": study("gamma='1' is not a number", gamma=("1",)),
    "gamma of zero": study("gamma=0.0 is not allowed", "positive and finite", gamma=(0,)),
    "k a number": study("k=3 is not a sequence", "list of numbers", k=3),
    "k of fractions": study("k=3.0 is not a whole number", k=(3.0,)),
    "k of truths": study("k=True is not a whole number", k=(True,)),
    "k below zero": study("k=-1 is below 0", k=(-1,)),
    "report_k of nothing": study("report_k=None is not a sequence", report_k=None),
    # Study: numbers
    "splits a fraction": study("n_splits=20.0 is not a whole number", n_splits=20.0),
    "splits of nothing": study("n_splits=None is not a whole number", n_splits=None),
    "splits beyond the most": study("n_splits=1000001 is above 1000000", n_splits=1_000_001),
    "seed a text": study("seed='0' is not a whole number", seed="0"),
    "seed of 5001 digits": study("seed", seed=DIGITS),
    "seed far below zero": study("seed", "below 0", seed=-DIGITS),
    "delta a text": study("delta='0.05' is not a number", delta="0.05"),
    "delta below what is computed": study("delta=1e-13 is below 1e-12", "the least", delta=1e-13),
    "delta of 5001 digits": study("delta", "too large", delta=DIGITS),
    "tolerance one": study("tolerance=1.0 is outside (0, 1)", "0.001", tolerance=1.0),
    "tolerance NaN": study("tolerance=nan is outside (0, 1)", tolerance=float("nan")),
    "iterations beyond int32": study("max_iter=2147483648 is above 2147483647", max_iter=2**31),
    "iterations of 5001 digits": study("max_iter", "above 2147483647", max_iter=DIGITS),
    # Study: choices
    "bound unknown": study("bound='hoeffding'", "clopper_pearson, stevens, safe, catoni", bound="hoeffding"),
    "bound a list": study("bound=['safe'] is not known", "clopper_pearson", bound=["safe"]),
    "solver an array": study("solver=array", "newton, libsvm", solver=np.array(["newton", "libsvm"])),
    "precision of single floats": study("precision='float32'", "float64", precision="float32"),
    "scaling true": study("scaling=True is not known", "standard, none", scaling=True),
    "resampling unknown": study("resampling='bootstrap'", "complete, rotation", resampling="bootstrap"),
    "protocol misspelt": study("protocol='hold-out'", "paper, holdout, nested", protocol="hold-out"),
    "exhaustive one": study("exhaustive=1 is not true or false", exhaustive=1),
    # Study: fields that do not go together
    "rotation with splits": study("n_splits=7", "rotation", "k splits", resampling="rotation", n_splits=7),
    "nested rotation": study("nested goes with complete splits", protocol="nested", resampling="rotation"),
    "share without holdout": study("holdout_share=0.3 goes with holdout alone", holdout_share=0.3),
    "claims without holdout": study("claims=('vote',) goes with holdout alone", claims=("vote",)),
    "outer splits without nested": study("outer_splits=5 goes with nested alone", outer_splits=5),
    "all held out": study("holdout_share=1.0 is outside (0, 1)", "third", **HOLDOUT, holdout_share=1),
    "share a text": study("holdout_share='third' is not a number", **HOLDOUT, holdout_share="third"),
    "claims a text": study("claims='vote' is not a sequence", "list of names", **HOLDOUT, claims="vote"),
    "claim unknown": study("claims='best'", "random, vote, or member:0", **HOLDOUT, claims=["best"]),
    "member below zero": study("claims='member:-1'", "member:0", **HOLDOUT, claims=["member:-1"]),
    "member of 5000 digits": study("claims='member:", **HOLDOUT, claims=["member:" + "9" * 5000]),
    "no outer splits": study("outer_splits=0 is below 1", protocol="nested", outer_splits=0),
    "half an outer split": study("outer_splits=2.5 is not a whole", protocol="nested", outer_splits=2.5),
    # Study.from_json, read_toml, parse_grid, parse_folds
    "fields of nothing": from_json(None, "None", "mapping"),
    "fields in pairs": from_json([("seed", 1)], "mapping"),
    "fields a text": from_json("seed", "'seed'", "mapping"),
    "field misspelt": from_json({"n_split": 5}, "unknown field 'n_split'", "the fields are", "n_splits"),
    "fields named by numbers": from_json({1: 2, "cost": 3}, "unknown field", "the fields are"),
    "field of null": from_json({"seed": None}, "seed=None is not a whole number"),
    "grid in JSON from not a number": from_json({"C": "log:nan:1:3"}, "C=nan", "positive and finite"),
    "folds in JSON without end": from_json({"k": "4:"}, "k='4:'", "3:20"),
    "study file that is a folder": case(lambda: read_toml(Path("run")), "study file 'run'", "directory"),
    "grid of too many": case(lambda: parse_grid("log:0:1:10001", "C"), "C='log:0:1:10001'", "log:-2:4:13"),
    "grid of 5000 digits": case(lambda: parse_grid("log:0:1:" + "9" * 5000, "C"), "log:-2:4:13"),
    "folds with a step": case(lambda: parse_folds("3:9:2", "k"), "k='3:9:2'", "a range like 3:20"),
    "folds of all but one": case(lambda: parse_folds("4:n", "k"), "k='4:n'", "3:n for all"),
    # Execution
    "backend of nothing": how("backend=None is not known", "auto, ray, serial", backend=None),
    "backend a list": how("backend=['ray'] is not known", backend=["ray"]),
    "workers a fraction": how("workers=2.0 is not a whole number", workers=2.0),
    "workers true": how("workers=True is not a whole number", workers=True),
    "workers beyond int32": how("workers=2147483648 is above 2147483647", workers=2**31),
    "workers of 5001 digits": how("workers", "above 2147483647", workers=DIGITS),
    "workers far below zero": how("workers", "below 1", workers=-DIGITS),
    "address a number": how("address=6379", "host:port", address=6379),
    "address empty": how("address=''", "host:port", address=""),
    "address a word": where("nonsense", "address='nonsense'", "host:port", "auto"),
    "address of a client": where("ray://127.0.0.1:1", "address='ray://127.0.0.1:1'", "not by Ray Client"),
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
    "out another study's": taken("seed: asked 4, in the folder 0", study=replace(STUDY, seed=4)),
    "out another table's": taken("data: another table", "choose another --out", X=X + 1),
    "listener a number": runs("listen=3", listen=3, out="new"),
    "k beyond the rows": runs("k=9 is outside 3..8 (the table has 8 rows)", study=TOO_MANY, out="new"),
    "k beyond the rows left": held("k=8 is outside 3..6", "beside those held out", share=0.25, k=(8,)),
    "report_k not computed": runs("report_k=4 is not among k=3", "add it to k", study=AND_FOUR),
    "member beyond the splits": held("member:0 to member:1", share=0.25, claims=["member:2"]),
    "nearly all held out": held("holding out 7 of 8 rows", "change the share", share=0.9),
    "none held out": held("holding out 0 of 8 rows", "at least 1", share=0.01),
    # arrays
    "X of nothing": arrays("X has shape ()", "expected (n, d) and (n,)", X=None),
    "X a vector": arrays("X has shape (8,)", "expected (n, d)", X=X[:, 0]),
    "X a cube": arrays("X has shape (8, 2, 1)", "expected (n, d)", X=X[:, :, None]),
    "X a generator": arrays("X has shape ()", X=(row for row in X)),
    "X sparse": arrays("X", "sparse", X=csr_matrix(X)),
    "X ragged": arrays("X is not an array", X=[[1, 2], [3]] * 4),
    "X without columns": arrays("no feature", X=X[:, :0]),
    "X of five rows": arrays("the table has 5 rows", "at least 6", X=X[:5], y=Y[:5]),
    "X masked": arrays("masked array", "fill the masked values", X=np.ma.masked_equal(X, 3)),
    "X complex": arrays("X is complex", "real numbers", X=X * 1j),
    "X of dates": arrays("column 'x0' holds date32", X=X.astype("M8[D]")),
    "X of texts": arrays("column 'x0' holds string such as '0.0'", "not numbers", X=X.astype(str)),
    "X of bytes": arrays("column 'x0' holds binary", X=X.astype("S")),
    "X of records": arrays("X or y cannot be read as columns", X=np.zeros((8, 2), [("a", float)])),
    "X beyond int64": arrays("too large", X=np.array([[2**70, 1]] * 8, object)),
    "X with NaN": arrays("column 'x1' has nan in row 2", X=SPOILT),
    "X with None": arrays("column 'x1' has 1 empty cell,", "row 2", X=np.where(X == 3, None, X)),
    "frame of twins": arrays("named a, a", "must fit and differ", X=Frame(["a", "a"], X)),
    "frame of names too few": arrays("named a", "must fit and differ", X=Frame(["a"], X)),
    "frame of names not in Unicode": arrays("surrogates not allowed", X=Frame(["\ud800", "b"], X)),
    "y a column": arrays("y (8, 1)", "expected (n, d) and (n,)", y=Y[:, None]),
    "y too short": arrays("X has shape (8, 2) and y (7,)", y=Y[:7]),
    "y sparse": arrays("y", "sparse", y=csr_matrix(Y)),
    "y of one class": arrays("1 class (0): expected 2", y=0 * Y),
    "y of three classes": arrays("3 classes (0, 1, 2): expected 2", y=[0, 1, 2, 0, 1, 2, 0, 1]),
    "y of a lonely class": arrays("class 1 has 1 row", "at least 2", y=[0] * 7 + [1]),
    "y with NaN": arrays("empty cells", "row 1", "mend or drop", y=np.where(Y, 1.0, np.nan)),
    "y with infinity": arrays("has inf in row 1", "finite", y=np.where(Y, 1.0, np.inf)),
    "y of dates": arrays("type date32", "text or numbers", y=Y.astype("M8[D]")),
    "y of bytes": arrays("type binary", "text or numbers", y=[b"no", b"yes"] * 4),
    "y of text and numbers": arrays("X or y cannot be read as columns", y=np.array(["no", 1] * 4, object)),
    "y beyond int64": arrays("9223372036854775808 in row 2", y=np.array([0, 2**63] * 4, np.uint64)),
    # run_table
    "table of nothing": tables("table=None", "Table", table=None),
    "table of columns": tables("table=", "Table", table=COLUMNS),
    "arrays for rows to test": tables("test=", "TestRows", test=(X, Y)),
    "narrow rows to test": tables("X has shape (8, 1)", "(rows, 2)", test=TestRows(X[:, :1], TABLE.y)),
    "no rows to test": tables("no rows to test on", test=TestRows(X[:0], TABLE.y[:0])),
    "rows to test with NaN": tables("nan", "row 2", test=TestRows(SPOILT, TABLE.y)),
    # run_many
    "jobs of nothing": many(None, "jobs=None", "Job"),
    "one job for many": many(Job(STUDY, TABLE), "Job"),
    "a study for a job": many([STUDY], "Job"),
    "half a job": many([(STUDY, TABLE)], "Job"),
    "job without a table": many([Job(STUDY, None)], "table=None", "Table"),
    "job with k beyond the rows": many([Job(TOO_MANY, TABLE)], "k=9 is outside 3..8"),
    "job with k beyond the rows on Ray": many([Job(TOO_MANY, TABLE)], "k=9", execution=Execution("ray")),
    "jobs executed by a text": many([Job(STUDY, TABLE)], "execution='serial'", execution="serial"),
    # estimate
    "forecast of nothing": forecast(None, TABLE, "study=None", "Study"),
    "forecast on columns": forecast(STUDY, COLUMNS, "table=", "Table"),
    "forecast of k beyond the rows": forecast(TOO_MANY, TABLE, "k=9 is outside 3..8"),
    # read and learning_table
    "source of nothing": reads(None, "None", "named set"),
    "source empty": reads("", "'' is neither a file ending in .csv", "named set"),
    "source with a null": reads("a\0.csv", "no file", "a\\x00.csv"),
    "source too long": reads(f"{LONG}.csv", LONG),
    "source a folder like a file": reads("folder.csv", "no file 'folder.csv'"),
    "generator below zero rows": reads("twonorm:-5:0", "'-5' is not a whole number"),
    "archive a folder": reads("ida:banana:1", "IDA archive 'run'", "directory", ida_file=Path("run")),
    "archive a number": reads("ida:banana:1", "ida_file=3", ida_file=3),
    "columns of nothing": learns("columns=None", columns=None),
    "columns an array": learns("columns=array", columns=X),
    "target not there": learns("no column 'z' for the target", "a, b, y", target="z"),
    "target by number": learns("no column 2 for the target", "a, b, y", target=2),
    "features a text": learns("features='ab'", "list", features="ab"),
    "features a number": learns("features=3", "list", features=3),
    "features by number": learns(f"{NO_COLUMN} 0", "a, b, y", features=[0]),
    "features none": learns("no feature is left", features=[]),
    "drop a text": learns("drop='ab'", "list", drop="ab"),
    "lists in a column": learns("column 'a' holds list", "not numbers", columns=changed("a", [[1]] * 8)),
    "objects in a column": learns("column 'a' holds struct", columns=changed("a", [{"q": 1}] * 8)),
    "lists as labels": learns("target 'y' has type list", columns=changed("y", [[0], [1]] * 4)),
    # rows_to_test
    "test rows an array": measures(X, "columns=array"),
    "test rows without target": measures(COLUMNS.drop_columns("y"), "no column 'y' with the labels"),
    "test rows without a feature": measures(COLUMNS.drop_columns("a"), f"{NO_COLUMN} 'a'", "b, y"),
    "test rows none": measures(COLUMNS[:0], "no rows to test on"),
    "test rows of another class": measures(changed("y", [0, 2] * 4), "column 'y' holds 2", "0 and 1"),
    "test rows with twins": measures(COLUMNS.rename_columns(["a", "y", "y"]), "two columns are named 'y'"),
    # Result.predict, predictions
    "one row as a vector": predicts(X[0], "X has shape (2,)", "expected (rows, 2)"),
    "rows too narrow": predicts(X[:, :1], "X has shape (8, 1)", "expected (rows, 2)"),
    "rows ragged": predicts([[1, 2], [3]], "X", "not an array"),
    "rows sparse": predicts(csr_matrix(X), "X", "sparse"),
    "rows masked": predicts(np.ma.masked_equal(X, 3), "masked array", "fill the masked values"),
    "rows complex": predicts(X * 1j, "X is complex", "real numbers"),
    "rows beyond int64": predicts(np.array([[2**70, 1]], object), "X", "too large"),
    "rows of texts": predicts(X.astype(str), "column 'x0' holds string", "not numbers"),
    "rows with NaN": predicts(SPOILT, "column 'x1' has nan in row 2"),
    "rows with infinity": predicts(X + np.inf, "column 'x0' has inf in row 1"),
    "frame with other names": predicts(Frame(["p", "q"], X), f"{NO_COLUMN} 'x0'", "p, q"),
    "frame with twins": predicts(Frame(["x0", "x0"], X), "x0, x0", "differ"),
    "frame with twins beside": predicts(Frame(["x0", "x1", "x1"], X[:, [0, 1, 0]]), "x1, x1", "differ"),
    "frame with names too few": predicts(Frame(["x0"], X), "X has 2 columns named x0"),
    "seed and vote": predicts(X, "seed and vote exclude each other", seed=1, vote=True),
    "vote and member": predicts(X, "vote and member exclude each other", vote=True, member=0),
    "seed a fraction": predicts(X, "seed=0.0 is not a whole number", seed=0.0),
    "seed below zero": predicts(X, "seed=-1 is below 0", seed=-1),
    "seed of too many digits": predicts(X, "seed", seed=DIGITS),
    "no nested ensemble": predicts(X, "no nested ensemble", "--certify nested", nested=True),
    "vote of none nested": predicts(X, "no nested", vote=True, nested=True),
    "rule of none nested": case(lambda: finished().rule(nested=True), "no nested"),
    "vote on rows too narrow": predicts(X[:, :1], "(rows, 2)", vote=True),
    # clopper_pearson
    "errors below zero": bounds("errors=-1 is negative", "0 or more", errors=-1),
    "errors above m": bounds("errors=6 is above m=5", "0..m", errors=6),
    "errors a fraction": bounds("errors has type float64", "whole numbers", errors=1.5),
    "errors ragged": bounds("errors", "array", errors=[[1], [2, 3]]),
    "m of another shape": bounds("shape", "(2,)", "(3,)", errors=[1, 2], m=[5, 6, 7]),
    "m a text": bounds("m has type <U1", "whole numbers", m="5"),
    "bound at delta two": bounds("delta=2 is outside (0, 1)", "0.05", delta=2),
    "bound at a text": bounds("delta='0.05' is not a number", delta="0.05"),
    "bound at several levels": bounds("delta=[0.1, 0.2] is not a number", delta=[0.1, 0.2]),
    # folders
    "nothing loaded": folder(lambda: load_run("new"), "'new' holds no run"),
    "number loaded": folder(lambda: load_run(3), "out=3", error=InputError),
    "null loaded": folder(lambda: load_run("a\0b"), "out='a\\x00b'", "no file can have this name"),
    "long name loaded": folder(lambda: load_run(LONG), LONG),
    "address loaded": folder(lambda: load_run("s3://bucket/run"), "bucket/run' holds no run"),
    "unfinished loaded": folder(lambda: load_run("run"), "'run' is not finished", **UNFINISHED),
    "strange folder loaded": folder(lambda: load_run("other"), "'other'", "not a run folder"),
    "nothing verified": folder(lambda: verify(Path("new")), "'new' holds no finished run"),
    "number verified": folder(lambda: verify(3), "out=3", error=InputError),
    "unfinished verified": folder(lambda: verify(Path("run")), "no finished run", **UNFINISHED),
    "strange folder verified": folder(lambda: verify(Path("other")), "'other'", "not a run folder"),
    "nothing replayed": folder(lambda: replay("new"), "'new' holds no run"),
    "strange folder replayed": folder(lambda: replay("other"), "'other'", "not a run folder"),
    "contradiction replayed": folder(
        lambda: replay("run"), "two records of Cell", "differ", "not deterministic", error=RunError,
        harm=lambda f: log(f, lambda log: log | {"n_iter": [n + 1 for n in log["n_iter"]]}),
    ),
    "unknown split replayed": folder(
        lambda: replay("run"), "is damaged", "mc_index is outside the splits of the study",
        harm=lambda f: log(f, lambda log: log | {"mc_index": [99 for _ in log["mc_index"]]}),
    ),
    "unknown gamma replayed": folder(
        lambda: replay("run"), "gamma 7.0", "not the study's",
        harm=lambda f: log(f, lambda log: log | {"gamma": [7.0 for _ in log["gamma"]]}),
    ),
    "nothing on a page": folder(lambda: page(Path("new")), "'new' holds no run"),
    "unfinished on a page": folder(lambda: page(Path("run")), "'run' is not finished", **UNFINISHED),
    "strange folder on a page": folder(lambda: page(Path("other")), "'other'", "not a run folder"),
    # fetch
    "address of a transfer": fetches("ftp://host/ida.mat", "url='ftp://host/ida.mat'", "https://"),
    "address without a host": fetches("https://", "url='https://'", "begin with https:// or http://"),
    "address without a scheme": fetches("host/ida.mat", "url='host/ida.mat'", "begin with https://"),
    "address with an open bracket": fetches("http://[::1", "url='http://[::1'"),
    "address of no kind": fetches(3, "url=3", "https://"),
    "address beyond the ports": fetches("http://127.0.0.1:99999/ida.mat", "url='http://127.0.0.1:99999"),
}  # fmt: skip


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("a_run") / "run"
    run_table(STUDY, TABLE, folder, SERIAL)
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
    for part in case.told:
        assert part in str(refused.value)
    assert snapshot(place) == before


def test_bad_input_has_two_hundred_cases():
    tables = (CASES, AT_THE_COMMAND_LINE, PREDICT, FOREIGN, DAMAGES)
    assert sum(map(len, tables)) >= 200
    assert len({case.call for case in CASES.values()}) == len(CASES) >= 80

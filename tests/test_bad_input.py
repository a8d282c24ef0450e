"""Bad input at the command line: exit code 2, or 4 for a folder that is not this run's; one clear message
on standard error, with what was got and how to mend it; nothing on standard output; no folder left behind.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from bad_files import write_all
from refused import snapshot

from ckcv_ray.cli import main as cli
from ckcv_ray.runs import run as driver
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.named import read
from ckcv_ray.tables.task import Task

HUGE = "1" + "0" * 30
LONG = "x" * 300
GRID = Study.paper(C=(1.0,), gamma=(1.0,), k=(3,), n_splits=2)
ASKED = ("--C", "1", "--gamma", "1", "--k", "3", "--n-splits", "2", "--certify", "paper")


class Case(NamedTuple):
    """Words after ``ckcv``, split at spaces unless given as a list, and what the message has to say."""

    words: str | list[str]
    messages: tuple[str, ...]
    code: int = 2
    usage: bool = False


def run(options="", *messages, source="good.csv", usage=False):
    """A case of ``ckcv run``."""
    options = options.split(" ") if isinstance(options, str) and options else list(options)
    return Case(["run", source, "--out", "OUT", *options], messages, usage=usage)


def usage(options, *messages):
    """A case that the parser of the command line refuses, in a panel of its own."""
    return run(options, *messages, usage=True)


CASES = {
    # files
    "no such file": run("", "there is no file 'nowhere.csv'", source="nowhere.csv"),
    "a folder": run("", "'.' is a folder, and no table: name a file, such as", source="."),
    "npz without y": run("", "none of target, y, label, class is the target", source="no y.npz"),
    # named sets
    "generator without seed": run("", "does not name a set", "twonorm:n:seed", source="twonorm:99"),
    # columns
    "no target": run("", "none of target, y, label, class", "a, b, outcome", source="no target.csv"),
    "empty list of features": run(["--features", ""], "there is no column ''"),
    "all dropped": run("--drop a,b", "no feature is left", "--features", "--drop"),
    "text that is to be a date": run("--date b", "column 'b' holds numbers, of which not all are dates"),
    "two kinds": run("--date b --categorical b", "column 'b' is given two kinds"),
    "a kind for no column": run("--categorical c", "--categorical 'c': the columns that are learned"),
    "a kind for the target": run("--numeric y", "--numeric 'y': the columns that are learned from are a, b"),
    "the target names rows": run("--id y", "column 'y' is the target", source="only target.csv"),
    "unknown encoding": run("--encode hot", "--encode 'hot' is not known: choose from auto, onehot, ordinal"),
    "rare beyond 1": run("--rare 1", "--rare 1.0 is not a share: expected a number from 0 to below 1"),
    # groups
    "group not there": run("--group c", "there is no column 'c' for the groups: the columns are a, b, y"),
    "group as a feature": run(
        "--group id --features a,id", "'id' says which rows belong together", source="groups.csv"
    ),
    "fewer groups than folds": run(
        "--group id --k 9 --certify paper",
        "--k 9 is outside 3..8: there are 8 groups to learn from",
        source="groups.csv",
    ),
    # labels and rows
    "one class": run("", "has 1 class (yes): expected 2", source="one class.csv"),
    # k
    "k of 2": run("--k 2,3 --certify paper", "--k 2 is outside 3..8: there are 8 rows to learn from"),
    "negative k": run("--k=-3", "-3 is below 0"),
    "report_k not computed": run(
        "--k 3,4 --report-k 5 --certify paper", "--report-k 5 is not among --k 3,4", "add it to k"
    ),
    # C and gamma
    "C of 0": run("--C 0,1", "--C 0.0 is not allowed", "positive and finite"),
    "svm_nystroem with more landmarks than rows": run(
        "--learner svm_nystroem --k 3 --certify paper",
        "param landmarks=500 (the default): they are drawn",
        "give at most",
    ),
    # the rest of the study
    "iterations beyond int64": run(f"--param max_iter={HUGE}", "max_iter="),
    "missing study file": run("--study nowhere.toml", "study file 'nowhere.toml'"),
    "broken study file": run("--study broken.toml", "study file 'broken.toml'", "Unclosed array"),
    "unknown field": run("--study unknown.toml", "'unknown.toml', line 1: unknown option 'cost'", "n_splits"),
    "number for a list": run("--study scalar.toml", "--C True is not a sequence", "list of numbers"),
    "k of the study file": run("--study k.toml --certify paper", "--k 99 is outside 3..8"),
    # execution
    "serial workers": run("--backend serial --workers 2", "--workers 2", "leave out --backend serial"),
    "claim of 5001 digits": run(f"--certify holdout --claim {'9' * 5001}", "--claim '999"),
    # rows to test on
    "missing test file": run("--test nowhere.csv", "there is no file 'nowhere.csv'"),
    "test with another label": run(["--test", "test with maybe.csv"], "'maybe'", "'no' and 'yes'"),
    "test with label 0": run(["--test", "test with 0.csv"], "holds '0'", "1 and 2", source="numbered.csv"),
    # folders that cannot be written
    "out inside a file": Case("run good.csv --out good.csv/run", ("good.csv' is not a folder",)),
    "out deep inside a file": Case("run good.csv --out good.csv/a/b", ("cannot write to 'good.csv/a/b'",)),
    # names no file can have
    "long out": Case(f"run good.csv --out {LONG}", (f"--out '{LONG}'", "File name too long")),
    "long source": run("", f"'{LONG}.csv'", "File name too long", source=f"{LONG}.csv"),
    "long source without suffix": run("", f"'{LONG}' is neither a file", source=LONG),
    "long study file": run(f"--study {LONG}", "File name too long"),
    "status of very many folders": Case(f"status {'a/' * 2045}", ("File name too long",), 4),
    # what the parser refuses
    "no source": Case("run --out OUT", ("Missing argument",), usage=True),
    "unknown option": usage("--gama 1", "No such option: --gama", "--gamma"),
    "unknown command": Case("rum good.csv", ("No such command 'rum'",), usage=True),
    "splits of words": usage("--n-splits many", "--n-splits", "integer"),
    "workers of words": usage("--workers all", "--workers", "integer"),
    "option without value": usage("--C", "--C"),
    "predict without data": Case("predict nowhere", ("Missing argument 'DATA'",), usage=True),
    "predict with a negative seed": Case("predict nowhere good.csv --seed=-1", ("--seed",), usage=True),
    "status without folder": Case("status", ("Missing argument",), usage=True),
    # no run there
    "status of nothing": Case("status nowhere", ("'nowhere' holds no run",), 4),
    "verify of nothing": Case("verify nowhere", ("'nowhere'", "no finished run"), 4),
    "predict from nothing": Case("predict nowhere good.csv", ("'nowhere' holds no run",), 4),
    "status of a file": Case("status good.csv", ("'good.csv'",), 4),
    "status of another folder": Case("status .", ("'.'",), 4),
    "out is a file": Case("run good.csv --out good.csv", ("'good.csv' exists and is not a run folder",), 4),
    "out holds other things": Case("run good.csv --certify paper --out .", ("not a run folder",), 4),
}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with all the files of the cases."""
    folder = tmp_path_factory.mktemp("inputs")
    write_all(folder)
    return folder


@pytest.fixture(scope="module")
def finished(inputs, tmp_path_factory):
    """A finished run of good.csv, for reading only."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    task = Task.from_table(read(str(inputs / "good.csv")).learn, source="good.csv")
    driver.run_job(driver.Job(GRID, task, folder), Execution("serial"))
    return folder


@pytest.fixture
def ckcv(inputs, cache, tmp_path, monkeypatch, capsys):
    """``ckcv`` in this process, in the folder of the inputs: code, standard output, standard error.

    Whatever starts a backend fails the test: bad input is refused before there is any.
    """

    def backend(*_, **__):
        pytest.fail("a backend was made for bad input")

    def call(words):
        words = words.split(" ") if isinstance(words, str) else words
        out = str(tmp_path / "out")
        monkeypatch.setattr(sys, "argv", ["ckcv", *(out if word == "OUT" else word for word in words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code, *capsys.readouterr())

    monkeypatch.chdir(inputs)
    monkeypatch.setattr(driver, "session", backend)
    return call


def refused(ckcv, case, *folders):
    """The message of a case, after checking all that holds for every case."""
    before = snapshot(*folders)
    code, out, error = ckcv(case.words)
    assert code == case.code, error
    assert out == ""
    assert "Traceback" not in error
    if case.usage:
        assert error.count("─ Error ─") == 1
        error = " ".join(error.replace("│", " ").split())
    else:
        assert error.startswith("ckcv: ")
        assert error.count("\n") == 1
        assert error.endswith("\n")
    for part in case.messages:
        assert part in error
    assert snapshot(*folders) == before
    return error


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused(ckcv, inputs, tmp_path, name):
    refused(ckcv, CASES[name], inputs, tmp_path)


@pytest.mark.parametrize(
    "name", ["no such file", "k of 2", "one class", "status of nothing", "verify of nothing"]
)
def test_nothing_goes_to_standard_output_with_json_either(ckcv, inputs, tmp_path, name):
    words, messages, *rest = CASES[name]
    listed = words.split(" ") if isinstance(words, str) else words
    refused(ckcv, Case([*listed, "--json"], messages, *rest), inputs, tmp_path)


def test_no_permission_to_write(ckcv, tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may do anything
        monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == closed and mode & os.W_OK))
    case = Case(["run", "good.csv", "--out", str(closed / "deep" / "run")], ("no permission", str(closed)))
    refused(ckcv, case, tmp_path)


@pytest.fixture
def folder(finished, tmp_path):
    """A finished run to do harm to."""
    return shutil.copytree(finished, tmp_path / "run")


def edit(file, **changed):
    """Change fields of a JSON file; None takes them away."""
    content = {**json.loads(file.read_text()), **changed}
    file.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


FOREIGN = {
    "other features": ("good.csv", "--features a", ("another table",)),
    "several fields": ("good.csv", "--delta 0.1 --scale none", ("delta: ", "scale: ")),
    "data and study": ("other.csv", "--seed 5", ("seed: ", "another table")),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_folder_of_another_study_is_refused_with_the_differences(ckcv, folder, tmp_path, name):
    source, options, messages = FOREIGN[name]
    words = ["run", source, "--out", str(folder), *ASKED, *options.split()]
    refused(ckcv, Case(words, (str(folder), *messages), 4), tmp_path)


DAMAGES = {
    "another schema": (lambda f: edit(f / "study.json", schema=99), "schema 99"),
    "no JSON": (lambda f: (f / "study.json").write_text("{"), "study.json is damaged"),
    "half a certificate": (lambda f: edit(f / "certificate.json", l_ee=None), "certificate.json"),
    "half the models": (lambda f: (f / "ensemble/models.parquet").write_bytes(b"PAR1"), "models.parquet"),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("verb", ["status", "predict"])
def test_a_damaged_folder_is_refused_with_the_file_named(ckcv, folder, tmp_path, name, verb):
    damage, messages = DAMAGES[name]
    damage(folder)
    words = [verb, str(folder), *(["good.csv"] if verb == "predict" else [])]
    refused(ckcv, Case(words, (messages,), 4), tmp_path)


PREDICT = {
    "missing data": (["nowhere.csv"], "there is no file 'nowhere.csv'"),
    "feature not there": (["test without a.csv"], "there is no column 'a': the columns are b, y"),
    "NaN": (["nan.csv", "--strict"], "column 'b' has 1 empty cell, the first in row 5"),
    "infinity": (["inf.csv", "--strict"], "column 'b' has inf in row 4"),
    "column to keep not there": (["good.csv", "--keep", "id"], "there is no column 'id' to keep"),
    "column to keep as one of ours": (["text.csv", "--keep", "row"], "there is no column 'row' to keep"),
    "suffix of out": (["good.csv", "--out", "p.xlsx"], "'p.xlsx': the name has to end in .csv or .parquet"),
    "no folder for out": (["good.csv", "--out", "no/p.csv"], "cannot write 'no/p.csv'"),
}


@pytest.mark.parametrize("name", PREDICT)
def test_rows_that_cannot_be_classified(ckcv, finished, inputs, tmp_path, name):
    words, messages = PREDICT[name]
    refused(ckcv, Case(["predict", str(finished), *words], (messages,)), finished, inputs, tmp_path)


@pytest.mark.parametrize("data", ["nan.csv", "text.csv", "inf.csv", "blank.csv"])
def test_predict_does_not_advise_options_it_does_not_have(ckcv, finished, data):
    error = refused(ckcv, Case(["predict", str(finished), data, "--strict"], ("column 'b'",)))
    assert "--drop" not in error
    assert "--features" not in error

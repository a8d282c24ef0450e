"""The command line as a user meets it: run, status, verify, predict, and being interrupted."""

import fcntl
import io
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from csv import reader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from filelock import FileLock
from pyarrow import compute as pc
from pyarrow import csv, parquet
from rich.console import Console

import ckcv_ray
from ckcv_ray import load_run
from ckcv_ray.claims.certificate import at_most
from ckcv_ray.cli import main as cli
from ckcv_ray.cli.display import DownloadBar
from ckcv_ray.engine.estimate import Estimate
from ckcv_ray.engine.evaluate import Outcome
from ckcv_ray.storage.log import RECORD
from ckcv_ray.study import Execution

Ran = tuple[int, str, str]
Command = Callable[..., Ran]
SMALL = ("--C", "0.1,1,10", "--gamma", "0.1,1", "--n-splits", "4")
KEYS = {
    "repeats", "rows",
    "run_id", "state", "C", "gamma", "k", "l_ms", "l_ee", "proven",
    "per_k", "cells", "fits", "capped", "seconds", "test_error",
}  # fmt: skip


@pytest.fixture
def ckcv(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    def call(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["ckcv", *map(str, words)])
        capfd.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capfd.readouterr())

    return call


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    """A CSV of 40 rows with text labels."""
    table = blobs(40, seed=3, shift=2.0)
    names = pa.array(np.where(table.y > 0, "well", "ill"))
    columns = {"age": table.X[:, 0], "dose, mg": table.X[:, 1], "outcome": names}
    csv.write_csv(pa.table(columns), tmp_path / "patients.csv")
    return tmp_path / "patients.csv"


@pytest.fixture
def finished(ckcv: Command, patients: Path, tmp_path: Path) -> Path:
    code, _, _ = ckcv("run", patients, "--target", "outcome", "--out", tmp_path / "run", *SMALL)
    assert code == 0
    return tmp_path / "run"


def test_run_prints_a_summary_and_a_folder(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "mine"
    code, shown, told = ckcv("run", patients, "--target", "outcome", "--out", out, "--report-k", "5", *SMALL)
    assert code == 0
    for part in ("best triple", "L_MS", "L_EE", "'ill' taken for 'well'", "k = 5", "not proven"):
        assert part in shown
    assert "expected: " in told
    assert str(out) in told
    assert sorted(file.name for file in out.iterdir()) == [
        "cells", "certificate.json", "data.parquet", "ensemble",
        "execution.json", "manifest.json", "study.json", "triples.parquet",
    ]  # fmt: skip
    assert not [file for file in out.rglob("*") if file.name.endswith((".tmp", ".lock"))]


def test_json_is_one_object_and_agrees_with_status(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--report-k", "5", *SMALL)
    code, shown, _ = ckcv(*words, "--json")
    ran = json.loads(shown)
    assert code == 0
    assert set(ran) == KEYS
    assert ran["proven"]["protocol"] == "occam"
    assert ran["l_ee"] < ran["proven"]["bound"] <= 1
    assert ran["test_error"] is None
    assert [row["k"] for row in ran["per_k"]] == list(range(3, 41))
    states = {row["k"]: row["state"] for row in ran["per_k"]}
    assert states[ran["k"]] == "winner"
    assert states[5] in ("reported", "winner")
    assert set(states.values()) <= {"winner", "reported", "beaten", "unseen"}
    for row in ran["per_k"]:
        assert row["lower_bound"] >= ran["l_ms"]
        assert (row["l_ee"] is None) == (row["state"] not in ("winner", "reported"))
    cells = ran["cells"]
    assert cells["planned"] == cells["computed"] + cells["dropped"] + cells["failed"]
    _, status, _ = ckcv("status", tmp_path / "run", "--json")
    assert json.loads(status) == ran
    code, again, told = ckcv(*words, "--json")
    assert json.loads(again) == ran
    assert "finished" in told


def test_another_study_in_the_folder_is_refused_by_name(
    ckcv: Command, finished: Path, patients: Path
) -> None:
    words = ("run", patients, "--target", "outcome", "--out", finished, *SMALL)
    code, shown, told = ckcv(*words, "--seed", 1, "--delta", "0.1")
    assert (code, shown) == (4, "")
    assert "seed: asked 1, in the folder 0" in told
    assert "delta: asked 0.1, in the folder 0.05" in told


def test_a_study_file_gives_way_to_options(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('C = "log:-1:1:3"\ngamma = [0.1, 1]\nk = [3, 4]\nn_splits = 3\n')
    words = ("run", patients, "--target", "outcome", "--study", tmp_path / "study.toml")
    code, _, _ = ckcv(*words, "--out", tmp_path / "run", "--n-splits", 2)
    study = load_run(tmp_path / "run").study
    assert code == 0
    assert (study.C, study.k, study.n_splits) == ((0.1, 1.0, 10.0), (3, 4), 2)


def test_verify_agrees_then_sees_any_changed_byte(ckcv: Command, finished: Path) -> None:
    code, shown, _ = ckcv("verify", finished, "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["run_id"], found["ok"], found["differences"]) == (load_run(finished).run_id, True, [])
    assert any("--refit" in sentence for sentence in found["trusted"])
    for file in [file for file in finished.rglob("*") if file.is_file()]:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        original = file.read_bytes()
        file.write_bytes(content)
        code, shown, _ = ckcv("verify", finished)
        assert code == 1, file
        assert shown.strip()
        file.write_bytes(original)
    assert ckcv("verify", finished)[0] == 0


@pytest.mark.parametrize("words", [("--refit",), ("--refit", "1"), ("--json", "--refit", "--workers", "1")])
def test_verify_computes_again_on_request(ckcv: Command, finished: Path, words: tuple[str, ...]) -> None:
    code, shown, _ = ckcv("verify", finished, *words, "--backend", "serial")
    assert (code, "fitted again" in shown) == (0, True)
    assert "the other" not in shown
    assert "--refit" not in shown


def test_verify_computes_a_share_again(ckcv: Command, finished: Path) -> None:
    code, shown, _ = ckcv("verify", finished, "--refit", "0.1", "--backend", "serial")
    assert (code, "taken on trust: the other" in shown) == (0, True)
    code, _, told = ckcv("verify", finished, "--refit", "7")
    assert (code, "refit=7 is outside 0..1" in told) == (2, True)


def test_predict_matches_columns_by_name(
    ckcv: Command, finished: Path, patients: Path, tmp_path: Path
) -> None:
    columns = csv.read_csv(patients)
    mixed = columns.select(["outcome", "dose, mg", "age"]).append_column("extra", pa.array(["?"] * 40))
    csv.write_csv(mixed, tmp_path / "mixed.csv")
    code, shown, told = ckcv("predict", finished, tmp_path / "mixed.csv")
    assert code == 0
    assert "error rate" in told
    rows = list(reader(shown.splitlines()))
    assert rows[0] == ["row", "prediction", "member", "score", "share"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(1, 41)]
    assert {row[1] for row in rows[1:]} <= {"well", "ill"}
    (seed,) = re.findall(r"--seed (\d+) repeats these draws", told)
    assert shown == ckcv("predict", finished, patients, "--seed", seed)[1]
    wrong = sum(row[1] != label.as_py() for row, label in zip(rows[1:], columns["outcome"], strict=True))
    assert f"{wrong} of 40" in told


def test_predict_does_not_depend_on_order_or_batch(
    ckcv: Command, finished: Path, patients: Path, tmp_path: Path
) -> None:
    columns = csv.read_csv(patients)
    _, whole, _ = ckcv("predict", finished, patients, "--vote")
    by_row = [line.split(",", 1)[1] for line in whole.splitlines()[1:]]
    for rows in ([5, 3, 38], [0], list(range(39, -1, -1))):
        csv.write_csv(columns.take(rows), tmp_path / "part.csv")
        _, part, _ = ckcv("predict", finished, tmp_path / "part.csv", "--vote")
        assert [line.split(",", 1)[1] for line in part.splitlines()[1:]] == [by_row[i] for i in rows]


LABELS = {
    "a newline": ("a\nb", "a\\nb", "a\\nb", "a\\\\nb"),
    "a terminal's": ("\x1b[2J", "yes", "\\x1b[2J", "yes"),
    "a tab": ("\t=1", "no", "\\t=1", "no"),
    "a backslash": ("C:\\x", "D", "C:\\x", "D"),
    "a formula": ('=HYPERLINK("x")', "-", '=HYPERLINK("x")', "-"),
}


@pytest.mark.parametrize("case", LABELS)
def test_a_prediction_file_holds_no_control_character(case: str, ckcv: Command, tmp_path: Path) -> None:
    one, other, *written = LABELS[case]
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, one, other)
    columns = pa.table({"a": rng.normal(size=40) + 2 * (y == one), "b": rng.normal(size=40), "y": y})
    parquet.write_table(columns, tmp_path / "rows.parquet")
    ckcv("run", tmp_path / "rows.parquet", "--target", "y", "--out", tmp_path / "run", *SMALL)
    for safe in ((), ("--csv-safe",)):
        words = ("predict", tmp_path / "run", tmp_path / "rows.parquet", "--seed", 1, *safe)
        _, shown, _ = ckcv(*words)
        ckcv(*words, "--out", tmp_path / "p.csv")
        assert (tmp_path / "p.csv").read_text() == shown
        assert all(line.isprintable() for line in shown.split("\n"))
        rows = list(reader(shown.splitlines()))
        expected = {
            f"'{told}" if safe and begins(label) else told
            for label, told in zip((one, other), written, strict=True)
        }
        assert len(rows) == 41
        assert {row[1] for row in rows[1:]} == expected
    ckcv("predict", tmp_path / "run", tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet")
    assert set(parquet.read_table(tmp_path / "p.parquet")["prediction"].to_pylist()) == {one, other}


def begins(label: str) -> bool:
    return label[0] in "=+-@\t\r"


def test_numbers_are_no_formulas(ckcv: Command, finished: Path, patients: Path, tmp_path: Path) -> None:
    """A score below zero begins with a minus, and stays a number."""
    words = ("predict", finished, patients, "--seed", 1)
    assert ckcv(*words, "--csv-safe") == ckcv(*words)
    code, _, told = ckcv("predict", finished, patients, "--csv-safe", "--out", tmp_path / "p.parquet")
    assert (code, "csv_safe" in told) == (2, True)


def test_the_package_is_the_command() -> None:
    told = subprocess.run([sys.executable, "-m", "ckcv_ray", "--version"], capture_output=True, text=True)
    assert told.stdout.split() == ["ckcv_ray", ckcv_ray.__version__]


class Bomb:
    """What a stranger may put in a pickle."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.file,)


def test_pickles_are_opened_on_request_alone_and_if_they_are_ours(
    ckcv: Command, finished: Path, patients: Path, tmp_path: Path
) -> None:
    plain = ckcv("predict", finished, patients, "--seed", 1)
    assert ckcv("predict", finished, patients, "--seed", 1, "--allow-pickle") == plain
    (finished / "ensemble" / "model-00001.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    for words in (("predict", finished, patients), ("report", finished), ("status", finished)):
        code, shown, told = ckcv(*words)
        assert (code, shown) == (4, "")
        assert "model-00001.pkl is missing, or not the file the manifest names" in told.replace("\n", "")
    assert ckcv("verify", finished)[0] == 1
    code, shown, told = ckcv("predict", finished, patients, "--allow-pickle")
    assert (code, shown) == (4, "")
    assert "model-00001.pkl is missing, or not the file the manifest names" in told.replace("\n", "")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "name", ["data.parquet", "cells/part-000000.parquet", "predictions.csv", "../run/a.csv"]
)
def test_predictions_are_never_written_into_a_run(
    ckcv: Command, finished: Path, patients: Path, name: str
) -> None:
    code, shown, told = ckcv("predict", finished, patients, "--out", finished / name)
    assert (code, shown) == (2, "")
    assert "lies in the run folder" in told.replace("\n", "")
    assert ckcv("verify", finished)[0] == 0


def test_predictions_never_replace_what_is_predicted(ckcv: Command, finished: Path, patients: Path) -> None:
    before = patients.read_bytes()
    code, _, told = ckcv("predict", finished, patients, "--out", patients)
    assert (code, "is the file to predict" in told.replace("\n", " ")) == (2, True)
    assert patients.read_bytes() == before


def test_rows_that_were_learned_from_are_told(ckcv: Command, finished: Path, tmp_path: Path) -> None:
    learned = parquet.read_table(finished / "data.parquet")
    _, _, told = ckcv("predict", finished, finished / "data.parquet")
    assert f"; {len(learned)} of them were learned from, and say little of new ones" in told
    name = next(name for name in learned.column_names if pa.types.is_floating(learned[name].type))
    at = learned.column_names.index(name)
    shifted = learned.set_column(at, name, pc.add(learned[name], 0.001))
    parquet.write_table(pa.concat_tables([shifted, learned.slice(0, 5)]), tmp_path / "new.parquet")
    _, _, told = ckcv("predict", finished, tmp_path / "new.parquet")
    assert "; 5 of them were learned from" in told
    parquet.write_table(shifted, tmp_path / "new.parquet")
    _, _, told = ckcv("predict", finished, tmp_path / "new.parquet")
    assert "error rate" in told
    assert "learned from" not in told


def test_predict_by_one_member(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    grids = ("--C", "1,10", "--gamma", "0.1,1", "--k", "3,4", "--n-splits", "4", "--backend", "serial")
    certified = ("--certify", "holdout", "--claim", "random,member:2")
    named = (patients, "--target", "outcome", "--out", tmp_path / "run")
    assert ckcv("run", *named, *grids, *certified)[0] == 0
    code, shown, told = ckcv("predict", tmp_path / "run", patients, "--member", 2)
    table = csv.read_csv(io.BytesIO(shown.encode()))
    assert code == 0
    assert set(table["member"].to_pylist()) == {2}
    (claim,) = (c for c in load_run(tmp_path / "run").certificate.claims if c["classifier"] == "member:2")
    assert (
        f"by the member of F* fitted on split 2: proven to be wrong at most {at_most(claim['bound'])}" in told
    )
    _, _, told = ckcv("predict", tmp_path / "run", patients, "--member", 1)
    assert "by the member of F* fitted on split 1: nothing is proven of it alone" in told
    for words, wrong in ((("--member", 4), "above 3"), (("--member", 1, "--vote"), "exclude each other")):
        code, _, told = ckcv("predict", tmp_path / "run", patients, *words)
        assert (code, wrong in told) == (2, True)


def test_the_empty_name_is_no_folder(ckcv: Command, patients: Path) -> None:
    code, _, told = ckcv("run", patients, "--target", "outcome", "--out", "")
    assert (code, "out=''" in told) == (2, True)


def test_predict_by_vote_into_a_file(ckcv: Command, finished: Path, patients: Path, tmp_path: Path) -> None:
    code, shown, told = ckcv("predict", finished, patients, "--vote", "--out", tmp_path / "p.parquet")
    table = parquet.read_table(tmp_path / "p.parquet")
    assert (code, shown) == (0, "")
    assert "proven to be wrong at most" in told
    assert "twice that of a member drawn afresh" in told
    assert table.num_rows == 40
    assert table["member"].null_count == 40
    assert min(table["share"].to_pylist()) >= 0.5


def test_rows_to_test_are_measured(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--test", patients, *SMALL)
    code, shown, _ = ckcv(*words, "--json")
    result = load_run(tmp_path / "run")
    signs = np.array([member.predict(result.table.X) for member in result.ensemble.members])
    assert code == 0
    assert json.loads(shown)["test_error"] == pytest.approx(float(np.mean(signs != result.table.y)))


def test_capped_fits_are_counted_and_shown(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("run", patients, "--target", "outcome", "--out", tmp_path / "run", "--max-iter", 3, *SMALL)
    code, shown, _ = ckcv(*words)
    assert code == 0
    assert "stopped at the iteration cap" in shown
    log = parquet.read_table(tmp_path / "run" / "cells")
    assert "capped" in set(log["status"].to_pylist())


def test_help_teaches(ckcv: Command) -> None:
    for words in ((), ("run",), ("status",), ("verify",), ("predict",), ("report",), ("fetch",)):
        code, shown, _ = ckcv(*words, "--help")
        assert code == 0
        assert len(shown) > 200
    assert "log:-2:4:13" in ckcv("run", "--help")[1]
    assert "ckcv run ida:twonorm:37" in ckcv("fetch", "--help")[1]  # some names of sets would become emoji


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("backend", ["serial", "ray"])
def test_interrupted_resumed_and_none_the_wiser(
    tmp_path: Path, which: signal.Signals, code: int, backend: str
) -> None:
    """A run stopped in the middle keeps what is done, and ends as if nothing had happened."""
    grids = ["--C", "log:-2:2:5", "--gamma", "log:-3:-1:3", "--k", "3:8", "--n-splits", "40"]
    words = ["twonorm:120:0", *grids, "--backend", backend]
    command = [sys.executable, "-m", "ckcv_ray", "run", *words]
    halted, whole = tmp_path / "halted", tmp_path / "whole"
    run = subprocess.Popen(
        [*command, "--out", halted, "--max-iter", "10000000"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert run.stderr is not None
    while "expected" not in (line := run.stderr.readline()):
        assert line, "the run ended before it began"
    while not (halted / "study.json").exists():
        assert run.poll() is None
        os.sched_yield()
    run.send_signal(which)
    _, told = run.communicate(timeout=120)
    assert run.returncode == code, told
    assert "interrupted: what is done is kept" in told
    status = subprocess.run(
        [sys.executable, "-m", "ckcv_ray", "status", halted, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(status.stdout)["state"] == "unfinished"
    assert not list(halted.rglob(".*"))
    for out in (halted, whole):
        subprocess.run([*command[:-1], "serial", "--out", out], check=True, capture_output=True)
    for name in ("triples.parquet", "certificate.json", "ensemble/models.parquet"):
        assert (halted / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("execution", "told"),
    [
        (Execution("serial"), "about 30 s with serial, workers: 1"),
        (Execution("ray", 10), "about 8 s with ray, workers: 10"),
        (
            Execution("ray", None, "10.0.0.1:6379"),
            "about 30 s with one worker; those of the cluster at 10.0.0.1:6379",
        ),
    ],
)
def test_what_is_expected_is_said_for_the_workers_there_are(
    execution: Execution, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(np.empty(0, RECORD), (), ())
    cli._tell_expected(Estimate(30.0, 1e-9, outcome), execution, yes=True)
    assert told in capfd.readouterr().err.replace("\n", " ")


# Streams that cannot be written to, and what a run looks like as it begins


def shell(line: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """A line of bash in which "$@" is the command."""
    command = ["bash", "-c", line, "-", sys.executable, "-m", "ckcv_ray", *words]
    return subprocess.run([os.fsencode(str(word)) for word in command], capture_output=True)


RUN = ("run", "twonorm:40:0", "--k", "3,4", "--backend", "serial", *SMALL)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("small") / "run"
    assert shell('"$@"', *RUN, "--out", out).returncode == 0
    return out


def test_lost_messages_do_not_stop_the_work(small: Path, tmp_path: Path) -> None:
    for i, line in enumerate(('"$@" 2>/dev/full', '"$@" 2>&-', '"$@" 2> >(exit)')):
        done = shell(line, *RUN, "--out", tmp_path / str(i))
        assert (done.returncode, b"best triple" in done.stdout) == (0, True), line
        assert (tmp_path / str(i) / "certificate.json").read_bytes() == (
            small / "certificate.json"
        ).read_bytes()
    for words, code in (
        (["status", tmp_path / "none"], 4),
        (["run", "none.csv", "--out", "x"], 2),
        (["no"], 2),
    ):
        assert shell('"$@" 2>/dev/full', *words).returncode == code
    assert shell('"$@" 2>/dev/full', *RUN, "--resume-until-done", 1, "--out", tmp_path / "2").returncode == 0


def test_a_live_line_that_is_lost_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", cli.Messages(Terminal()))
    monkeypatch.setenv("TERM", "xterm")
    with DownloadBar(Console(stderr=True), "a file") as bar:
        assert bar.live is not None
        bar.update(10)
        bar.live.refresh()


@pytest.mark.parametrize("error", ["", " 2>/dev/full"])
@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("status", "--json"),
        ("verify",),
        ("predict", "twonorm:9:1"),
        ("predict", "twonorm:9999:1"),
    ],
    ids=str,
)
def test_results_that_cannot_be_written_are_said_to_be_lost(
    small: Path, words: tuple[str, ...], error: str
) -> None:
    done = shell(f'"$@" >/dev/full{error}', words[0], small, *words[1:])
    assert done.returncode == 1
    told = b"" if error else b"ckcv: cannot write to standard output: No space left on device\n"
    assert done.stderr[-len(told) :] == told
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_help_and_version_that_cannot_be_written_are_said_to_be_lost() -> None:
    for words in (("--help",), ("run", "--help"), ("--version",)):
        done = shell('"$@" >/dev/full', *words)
        told = b"ckcv: cannot write to standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, told)


def test_a_reader_that_went_away_ends_a_command_quietly(small: Path) -> None:
    done = shell('"$@" | true; exit ${PIPESTATUS[0]}', "predict", small, "twonorm:9999:1")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"rror" not in done.stderr.replace(b"error rate", b"")


HOLD = """
import sys
from ckcv_ray.storage.folder import RunFolder
folder = RunFolder(sys.argv[1])
folder.acquire()
print("held", flush=True)
sys.stdin.read()
folder.release()
"""


@pytest.mark.parametrize("written", [(), ("data.parquet",), ("data.parquet", ".study.json-0.tmp")], ids=len)
def test_a_run_that_begins_is_starting(
    ckcv: Command, finished: Path, tmp_path: Path, written: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "begins"
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for name in written:
            (out / name).write_bytes((finished / "data.parquet").read_bytes())
        code, shown, told = ckcv("status", out)
        assert (code, shown, told) == (0, "a run is starting here: nothing is computed yet\n", "")
        code, shown, _ = ckcv("status", out, "--json")
        found = json.loads(shown)
        assert (code, set(found), found["state"]) == (0, KEYS, "starting")
        holder.communicate("")
    assert ckcv("status", out)[0] == 4


def test_status_never_takes_the_lock(ckcv: Command, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (finished / "manifest.json").unlink()
    (finished / ".lock").touch()  # of a run that was killed

    def refuse(*args: object) -> None:
        raise AssertionError("the lock was taken")

    for name in ("flock", "lockf"):
        monkeypatch.setattr(fcntl, name, refuse)
    code, shown, _ = ckcv("status", finished)
    assert code == 0
    assert "give its ckcv run command again to go on" in shown
    monkeypatch.undo()
    with FileLock(finished / ".lock"):
        monkeypatch.setattr(fcntl, "flock", refuse)
        assert "it is running" in ckcv("status", finished)[1]
        monkeypatch.undo()


def test_a_path_that_is_not_utf8_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    for where, words, code in (
        (tmp_path, (*RUN, "--out", strange), 2),
        (tmp_path, ("run", f"{strange}.csv", "--out", "run"), 2),
        (tmp_path, ("status", strange), 4),
        (strange, (*RUN, "--out", "run"), 2),
    ):
        os.makedirs(where, exist_ok=True)
        before = os.listdir(where)
        done = shell(f'cd {shlex.quote(str(where))}; "$@"', *words)
        assert (done.returncode, done.stdout) == (code, b"")
        assert done.stderr.count(b"\n") == 1
        assert b"the path is not in UTF-8: rename it, or name another" in done.stderr
        assert os.listdir(where) == before


@pytest.mark.parametrize("inside", [".", "deep/run"])
def test_a_link_to_nothing_is_refused_before_the_trial(
    ckcv: Command, patients: Path, tmp_path: Path, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "estimate", None)
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    out = tmp_path / "link" / inside
    code, shown, told = ckcv("run", patients, "--target", "outcome", "--out", out, *SMALL)
    assert (code, shown) == (2, "")
    assert (
        f"{str(tmp_path / 'link')!r} is a link to {str(tmp_path / 'gone')!r}, where there is nothing" in told
    )
    assert not (tmp_path / "gone").exists()

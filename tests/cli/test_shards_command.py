"""The commands submit, shard and gather: scripts, processes, and what each says."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import Command

from ckcv_ray.cli import division
from ckcv_ray.runs.shards import find_states
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.shards import ShardFolder

STUDY = ("--target", "outcome", "--k", "3,4,5", "--C", "0.1,1,10", "--gamma", "0.1,1", "--n-splits", "4")
SAME = ("candidates.parquet", "certificate.json", "ensemble/models.parquet")


def read(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in SAME]


@pytest.fixture
def single(ckcv: Command, patients: Path, tmp_path: Path) -> Path:
    """A single run of the study."""
    out = tmp_path / "single"
    assert ckcv("run", patients, *STUDY, "--out", out, "--backend", "serial")[0] == 0
    return out


def test_a_study_goes_through_an_array(ckcv: Command, patients: Path, single: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, messages = ckcv("submit", patients, *STUDY, "--out", out, "--shards", "3")
    assert code == 0
    assert "is divided into 3 shards" in shown
    assert f"sbatch --parsable {out}_slurm/shards.sbatch" in shown
    for part in ("72 evaluations in 3 shards: about ", "shards compute every evaluation", "ckcv run on one"):
        assert part in messages
    code, shown, _ = ckcv("gather", out)
    assert code == 6
    assert "3 shards, 3 not computed: 1-3" in shown
    assert f"ckcv shard {out} --number N" in shown
    for number in (3, 1):
        code, shown, messages = ckcv("shard", out, "--number", number)
        assert (code, shown) == (0, "")
        assert f"shard {number} of {out} is computed" in messages
    code, shown, _ = ckcv("status", out)
    assert code == 0
    assert "3 shards, 1 not computed: 2; once all are computed, ckcv gather finishes it" in shown
    code, shown, _ = ckcv("gather", out, "--json")
    assert code == 6
    assert json.loads(shown)["missing"] == [2]
    assert ckcv("shard", out, "--number", 2)[0] == 0
    assert "3 shards, all computed" in ckcv("status", out)[1]
    code, shown, _ = ckcv("gather", out)
    assert code == 0
    assert "then      ckcv report" in shown
    assert read(out) == read(single)
    assert ckcv("gather", out)[1] == shown
    assert (
        "already holds the finished run" in ckcv("submit", patients, *STUDY, "--out", out, "--shards", "3")[2]
    )


def test_the_scripts_of_an_array_run(ckcv: Command, patients: Path, single: Path, tmp_path: Path) -> None:
    """By bash, with the variable that Slurm sets."""
    out = tmp_path / "a b"
    asked = ("--shards", "2", "--slurm", "--partition=long")
    code, shown, _ = ckcv("submit", patients, *STUDY, "--out", out, *asked, "--json")
    assert code == 0
    scripts = json.loads(shown)["scripts"]
    for number in ("1", "2"):
        environment = {"PATH": os.environ["PATH"], "SLURM_ARRAY_TASK_ID": number}
        subprocess.run(["bash", scripts[0]], check=True, env=environment, capture_output=True)
    done = subprocess.run(["bash", scripts[1]], check=True, capture_output=True, text=True)
    assert "then      ckcv report" in done.stdout
    assert read(out) == read(single)


def test_shards_are_computed_here(ckcv: Command, patients: Path, single: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("submit", patients, *STUDY, "--out", out, "--shards", "2", "--to", "local", "--workers", "2")
    code, shown, _ = ckcv(*words)
    assert code == 0
    assert "then      ckcv report" in shown
    assert read(out) == read(single)


def test_a_procedure_is_divided_too(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    words = ("evaluate", patients, "--target", "outcome", "--resampling", "nested:3:2", "--C", "0.1,1,10")
    code, _, _ = ckcv(*words, "--out", tmp_path / "single", "--backend", "serial")
    assert code == 0
    asked = ("--shards", "2", "--to", "local", "--workers", "1")
    code, _, messages = ckcv(*words, "--out", tmp_path / "out", *asked)
    assert code == 0
    assert "shards compute every" not in messages  # as a single evaluation does
    for name in ("scores.parquet", "settings.parquet", "scores.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "single" / name).read_bytes()


def test_a_shard_that_ends_badly_is_said(
    ckcv: Command, patients: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are computed."""
    out = tmp_path / "out"
    words = ("submit", patients, *STUDY, "--out", out, "--shards", "2")
    assert ckcv(*words)[0] == 0
    held = ShardFolder(LocalFiles(out), 2)
    held.acquire()
    monkeypatch.setattr(division, "find_states", lambda out: find_states(out)._replace(running=()))
    code, shown, messages = ckcv(*words, "--to", "local", "--workers", "1")
    assert code == 6
    assert "shard 2 ended with exit code 4: ckcv: shard 2 of " in messages
    assert "1 not computed: 2" in shown
    monkeypatch.undo()
    assert "once they have ended: ckcv gather" in ckcv("gather", out)[1]
    held.release()


def test_test_rows_measure_what_is_computed_here(ckcv: Command, tmp_path: Path) -> None:
    words = (
        "submit",
        "twonorm:40:0",
        "--k",
        "3",
        "--C",
        "1",
        "--gamma",
        "0.1",
        "--n-splits",
        "2",
        "--shards",
        "2",
    )
    code, _, messages = ckcv(*words, "--out", tmp_path / "array")
    assert code == 0
    assert "test rows are not kept" in messages
    code, shown, _ = ckcv(*words, "--out", tmp_path / "here", "--to", "local", "--json")
    assert code == 0
    assert json.loads(shown)["test_error"] is not None


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "shards: give the number of parts"),
        (("--to", "slurm"), "--to slurm is for a study in shards"),
        (("--shards", "2", "--to", "pbs"), "--to 'pbs' is not known: choose from slurm, local"),
        (("--shards", "0"), "--shards 0 is below 1"),
        (("--shards", "10001"), "--shards 10001 is above 10000"),
        (("--shards", "73"), "give 24 or fewer"),
        (("--shards", "2", "--slurm", "long"), "--slurm 'long': expected options of sbatch"),
        (("--shards", "2", "--slurm", "-p a\nb"), "has a line break"),
        (("--shards", "2", "--to", "local", "--slurm", "-p a"), "is for --to slurm: leave it out"),
        (("--shards", "2", "--call-sbatch"), "there is no sbatch on this machine"),
        (("--shards", "2", "--workers", "0"), "--workers 0 is below 1"),
        (("--shards", "2", "--search", "budget"), "cannot be divided into shards"),
    ],
)
def test_what_is_refused(
    ckcv: Command, patients: Path, tmp_path: Path, words: tuple[str, ...], what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(division, "which", lambda name: None)
    code, shown, messages = ckcv("submit", patients, *STUDY, "--out", tmp_path / "out", *words)
    assert (code, shown) == (2, "")
    assert what in messages
    assert not (tmp_path / "out").exists()


def test_a_shard_that_is_not_there_is_refused(ckcv: Command, finished: Path, patients: Path) -> None:
    code, _, messages = ckcv("shard", finished, "--number", "1")
    assert code == 4
    assert "is not divided into shards" in messages
    assert ckcv("gather", finished)[0] == 4


SBATCH = """#!/bin/sh
echo "$@" >> {calls}
[ -e {fails} ] && {{ echo "invalid partition" >&2; exit 1; }}
echo "17;cluster"
"""


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stand-in for sbatch, first on the path; its calls are in the file calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(SBATCH.format(calls=folder / "calls", fails=folder / "fails"))
    (folder / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_sbatch_is_called_where_it_is_asked_for(
    ckcv: Command, patients: Path, tmp_path: Path, sbatch: Path
) -> None:
    out = tmp_path / "out"
    words = ("submit", patients, *STUDY, "--out", out, "--shards", "2", "--call-sbatch")
    code, shown, _ = ckcv(*words)
    assert code == 0
    assert shown.count("job            17") == 2
    assert "submit them" not in shown
    assert (sbatch / "calls").read_text().splitlines() == [
        f"--parsable {out}_slurm/shards.sbatch",
        f"--parsable --dependency=afterany:17 {out}_slurm/gather.sbatch",
    ]
    (sbatch / "fails").touch()
    code, _, messages = ckcv(*words)
    assert code == 1
    assert "sbatch refused" in messages
    assert "invalid partition; what was divided is kept" in messages


def test_many_tasks_are_said(
    ckcv: Command, patients: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(division, "USUAL_ARRAY", 2)
    words = ("submit", patients, *STUDY, "--out", tmp_path / "out", "--shards", "3")
    assert "3 tasks are more than Slurm's usual MaxArraySize allows, 2" in ckcv(*words)[2]


def test_progress_of_shards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counts, times, heard = iter([10, 10, 40, 130]), iter([0.0, 1.0, 2.0, 4.0, 6.0]), []
    monkeypatch.setattr(division, "count_recorded", lambda problem, out: next(counts))
    monkeypatch.setattr(division, "monotonic", lambda: next(times))
    watch = division.LogWatch(None, tmp_path, 100, 3, heard.append)  # type: ignore[arg-type]
    for _ in range(4):
        watch.report()
    assert [(moment.computed, moment.left / moment.workers) for moment in heard] == [
        (10, float("inf")), (40, 60 * 4.0 / 30), (100, 0.0),
    ]  # fmt: skip


def test_processes_that_are_stopped_end(ckcv: Command, patients: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ckcv("submit", patients, *STUDY, "--out", out, "--shards", "2")[0] == 0
    looks = iter([False, True])
    with pytest.raises(KeyboardInterrupt):
        division.compute_shards(out, (1, 2), 2, lambda: None, lambda: next(looks))
    assert find_states(out).running == ()


def wait_for(condition: object, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert process.poll() is None
        assert time.monotonic() < end


def test_a_signal_ends_all_shards(ckcv: Command, tmp_path: Path) -> None:
    """And the same command goes on."""
    out = tmp_path / "out"
    words = ["submit", "twonorm:200:0", "--k", "3,5", "--n-splits", "40", "--shards", "3", "--out", str(out)]
    command = [sys.executable, "-m", "ckcv_ray", *words, "--to", "local", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    wait_for(lambda: (out / "shards.json").exists() and len(find_states(out).running) == 2, process)
    process.send_signal(signal.SIGTERM)
    messages = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 143
    assert "run the same command again to resume" in messages
    assert find_states(out).running == ()
    assert len(find_states(out).missing) > 0


def test_a_task_is_killed_and_goes_on(ckcv: Command, patients: Path, single: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ckcv("submit", patients, *STUDY, "--out", out, "--shards", "2")[0] == 0
    command = [sys.executable, "-m", "ckcv_ray", "shard", str(out), "--number", "1"]
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(lambda: ShardFolder(LocalFiles(out), 1).busy, process)
        process.send_signal(number)
        assert process.wait(60) in (-number, 128 + number, 0)
    for number in (1, 2):
        assert ckcv("shard", out, "--number", number)[0] == 0
    assert ckcv("gather", out)[0] == 0
    assert read(out) == read(single)
    assert not [file for file in out.rglob(".*") if file.is_file()]


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "twonorm:60:0", "--shards", "2", "--out", "s3://bucket/runs"),
        ("shard", "s3://bucket/runs", "--number", "1"),
    ],
)
def test_shards_are_written_to_a_disk(ckcv: Command, words: tuple[str, ...]) -> None:
    code, _, messages = ckcv(*words)
    assert code == 2
    assert "a run folder on an object store has one writer, and shards are many" in messages

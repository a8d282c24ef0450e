"""Outer splits added to a run folder: the bytes of all at once, and nothing computed twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, blobs

from ckcv_ray import Execution, Job, Result, Study
from ckcv_ray.engine import batches
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.loop import Stop
from ckcv_ray.errors import StoreError
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.run import never, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder

SERIAL = Execution("serial")
STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=4, certify="nested")
TASK = blobs(60)
APART = ("execution.json", "manifest.json", "part-")  # depend on time
Times = dict[str, tuple[int, int]]


def run(splits: int, out: Path, execution: Execution = SERIAL, stop: Stop = never, **other: Any) -> Result:
    return run_job(Job(STUDY.replace(outer_splits=splits, **other), TASK, out), execution, stop)


def lasting(out: Path) -> dict[str, bytes]:
    """Every file that does not depend on time, by name."""
    found = (file for file in out.rglob("*") if file.is_file() and not file.name.startswith(APART))
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in found}


def written(out: Path, folder: str = "") -> Times:
    """When each file of a folder was written, and its number."""
    files = {file: file.stat() for file in (out / folder).rglob("*") if file.is_file()}
    return {f.relative_to(out).as_posix(): (s.st_mtime_ns, s.st_ino) for f, s in files.items()}


def stopping(after: int) -> Stop:
    """Stop a run when it asks whether to stop once more than ``after`` times."""
    asked = iter(range(10**6))
    return lambda: next(asked) >= after


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("five") / "run"
    run(5, out)
    return out


@pytest.fixture
def two(tmp_path: Path) -> Path:
    run(2, tmp_path / "run")
    return tmp_path / "run"


# Growth


@pytest.mark.parametrize(
    ("execution", "share"),
    [
        (SERIAL, "third"),
        (SERIAL, "half"),
        (Execution("ray", 2), "third"),
    ],
    ids=["serial-third", "serial-half", "ray-third"],
)
def test_a_grown_run_has_the_bytes_of_all_splits_at_once(
    tmp_path: Path, execution: Execution, share: str, request: pytest.FixtureRequest
) -> None:
    if execution.backend == "ray":
        request.getfixturevalue("ray_session")
    whole, out = run(5, tmp_path / "whole", outer_share=share), tmp_path / "run"
    for splits in (2, 4, 5):
        result = run(splits, out, execution, outer_share=share)
        assert result.run_id == whole.run_id
        assert result.nested is not None
        assert [member.split for member in result.nested.members] == list(range(splits))
        assert load_run(out).certificate == result.certificate
        assert verify(out).differences == []
    assert lasting(out) == lasting(tmp_path / "whole")
    assert result.certificate == whole.certificate
    assert json.loads((out / "study.json").read_text())["study"]["certify"]["outer_splits"] == 5


def test_inner_runs_and_the_log_are_left_as_they_are(two: Path) -> None:
    before = [written(two, folder) for folder in ("nested", "log")]
    run(4, two)
    after = [written(two, folder) for folder in ("nested", "log")]
    assert after[1] == before[1]
    assert {name: after[0][name] for name in before[0]} == before[0]
    added = {name.split("/")[1] for name in after[0].keys() - before[0].keys()}
    assert added == {"outer-002", "outer-003"}


def test_a_grown_run_is_verified_by_computing_all_again(two: Path) -> None:
    run(3, two)
    found = verify(two, refit=1.0)
    assert found.differences == []
    assert any(" models, and of nested, " in one and "fitted again" in one for one in found.recomputed)


def test_the_same_number_again_computes_nothing(two: Path) -> None:
    run(3, two)
    before = written(two)
    run(3, two)
    assert written(two) == before


# Fewer


def test_fewer_splits_than_there_are_are_refused(two: Path) -> None:
    run(3, two)
    before = written(two)
    with pytest.raises(StoreError) as refused:
        run(2, two)
    assert str(refused.value) == (
        f"'{two}' already has 3 outer splits, and their number can only grow: outer_splits=2 is too few; "
        "ask for 3 or more, or choose another --out"
    )
    assert written(two) == before
    assert len(load_run(two).study.to_json()) == len(STUDY.to_json())


def test_another_share_is_another_study(two: Path) -> None:
    with pytest.raises(StoreError, match="outer_share: requested half, in the folder third") as refused:
        run(4, two, outer_share="half")
    assert "outer_splits" not in str(refused.value)


# Interruptions


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_wherever_growth_stops_the_same_command_goes_on(
    tmp_path: Path, two: Path, five: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BATCH_SECONDS", "OWN_SECONDS"):  # so that every unit is a batch, however fast it is
        monkeypatch.setattr(batches, name, 0.0)
    monkeypatch.setattr(SerialBackend, "least_seconds", 0.0)
    asked: list[bool] = []
    shutil.copytree(two, tmp_path / "copy")
    run(5, tmp_path / "copy", stop=lambda: bool(asked.append(False)))
    first = written(two, "nested")
    with pytest.raises(KeyboardInterrupt):
        run(5, two, stop=stopping(int(share * len(asked))))
    assert not RunFolder(two).finished
    with pytest.raises(StoreError, match="not finished: run its ckcv run command again"):
        load_run(two)
    run(5, two)
    assert lasting(two) == lasting(five)
    assert verify(two).differences == []
    assert {name: written(two)[name] for name in first} == first


def test_an_interrupted_growth_may_end_with_fewer_splits_but_not_below_those_begun(
    tmp_path: Path, two: Path
) -> None:
    after = 0
    while (begun := RunFolder(two).outer_splits()) == 2:
        with pytest.raises(KeyboardInterrupt):
            run(9, two, stop=stopping(after))
        after += 1
    with pytest.raises(StoreError, match=f"already has {begun} outer splits"):
        run(begun - 1, two)
    run(begun, two)
    run(begun, tmp_path / "whole")
    assert lasting(two) == lasting(tmp_path / "whole")
    assert verify(two).differences == []


def test_growth_that_has_begun_no_split_may_be_taken_back(tmp_path: Path, two: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(5, two, stop=stopping(0))
    assert RunFolder(two).outer_splits() == 2
    run(2, two)
    run(2, tmp_path / "again")
    assert lasting(two) == lasting(tmp_path / "again")


def test_a_killed_growth_goes_on(tmp_path: Path, ckcv: Callable[..., Ran]) -> None:
    words = ["run", "twonorm:60:0", "--C", "log:-2:2:9", "--gamma", "0.01,0.1,1", "--k", "3,4"]
    words += ["--n-splits", "10", "--certify", "nested", "--backend", "serial", "--outer-splits"]
    out, whole = tmp_path / "run", tmp_path / "whole"
    assert ckcv(*words, 2, "--out", out)[0] == 0
    command = [sys.executable, "-m", "ckcv_ray", *words, "6", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (out / "nested" / "outer-003").exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    code, shown, _ = ckcv("status", out)
    assert (code, "is not finished" in shown) == (0, True)
    assert "inner selections: " in shown
    assert "of 6 finished" in shown
    assert ckcv("verify", out)[0] == 4
    assert ckcv(*words, 6, "--out", out)[0] == 0
    assert ckcv(*words, 6, "--out", whole)[0] == 0
    assert lasting(out) == lasting(whole)
    assert ckcv("verify", out)[0] == 0


# Damage


def test_another_number_in_the_study_is_damage_not_growth(two: Path, tmp_path: Path) -> None:
    for number in ("1", "7"):
        text = (two / "study.json").read_text()
        (two / "study.json").write_text(text.replace('"outer_splits": 2', f'"outer_splits": {number}'))
        with pytest.raises(StoreError, match="running its ckcv run command again repairs it"):
            load_run(two)
        assert verify(two).differences != []
        assert run(2, two).execution["damaged"] == ["study.json"]
        assert (two / "study.json").read_text() == text
        assert verify(two).differences == []


def test_what_is_damaged_is_repaired_by_growing(two: Path, five: Path) -> None:
    (two / "nested" / "outer-001" / "certificate.json").write_text("{}")
    (two / "ensemble" / "nested.parquet").unlink()
    result = run(5, two)
    assert result.execution["damaged"] == ["ensemble/nested.parquet", "nested/outer-001/certificate.json"]
    assert lasting(two) == lasting(five)


def test_folders_of_other_names_are_no_outer_splits(two: Path) -> None:
    for name in ("outer-9", "outer-xyz", "outer-0007", "notes"):
        (two / "nested" / name).mkdir()
    (two / "nested" / "outer-009").write_text("a file")
    assert RunFolder(two).outer_splits() == 8  # of outer-0007
    (two / "nested" / "outer-0007").rmdir()
    assert RunFolder(two).outer_splits() == 2


# The command line


def test_the_command_says_that_it_adds_splits(tmp_path: Path, ckcv: Callable[..., Ran]) -> None:
    words = ["run", "twonorm:60:0", "--C", "1", "--gamma", "0.1", "--k", "3", "--n-splits", "3"]
    words += ["--certify", "nested", "--out", str(tmp_path / "run"), "--outer-splits"]
    assert ckcv(*words, 1)[0] == 0
    code, shown, messages = ckcv(*words, 3, "--details")
    assert code == 0
    assert f"{tmp_path / 'run'} has 1 outer split: adding splits up to 3" in messages.replace("\n", "")
    assert "in each of 3 outer splits" in shown
    code, shown, messages = ckcv("status", tmp_path / "run", "--details")
    assert (code, "in each of 3 outer splits" in shown) == (0, True)
    code, shown, messages = ckcv(*words, 2)
    assert (code, shown) == (4, "")
    assert "already has 3 outer splits, and their number can only grow" in messages.replace("\n", " ")

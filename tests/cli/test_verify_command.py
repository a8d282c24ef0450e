"""The command verify: what it finds, and how much of it it computes again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import Command
from forgery import damage

from ckcv_ray import Verification, load_run


def test_verify_agrees_then_sees_a_changed_byte(ckcv: Command, patients_run: Path) -> None:
    code, shown, _ = ckcv("verify", patients_run, "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["run_id"], found["ok"], found["differences"]) == (load_run(patients_run).run_id, True, [])
    assert any("--rerun" in sentence for sentence in found["trusted"])
    assert found["verdict"] == f"nothing contradicts the files; taken on trust: {found['assumed'][0]}"
    first = ckcv("verify", patients_run)[1].splitlines()[0]
    assert first == f"run {found['run_id']}: {found['verdict']}"
    damage(patients_run / "candidates.parquet", "flipped", 400)
    code, shown, _ = ckcv("verify", patients_run)
    assert (code, "candidates.parquet" in shown) == (1, True)


def test_verify_says_its_cost_first_and_stops_at_a_limit(ckcv: Command, patients_run: Path) -> None:
    code, _, messages = ckcv("verify", patients_run)
    assert (code, "limit 3,600 s (--limit)" in messages.replace("\n", " ")) == (0, True)
    code, shown, _ = ckcv("verify", patients_run, "--rerun", "--backend", "serial", "--limit", "1e-6")
    assert code == 6
    assert shown.startswith("not verified: not looked at within 0 s (--limit): models refit and full")
    for limit in ("0", "-1", "nan", "inf"):
        code, _, messages = ckcv("verify", patients_run, "--limit", limit)
        assert (code, "is not a number of seconds above 0" in messages) == (2, True)


HANGS = """
from threading import Event
from ckcv_ray.cli.main import main
from ckcv_ray.cli import folders
from ckcv_ray.runs import verify as verification

folders.STOP_SECONDS = 2 - 60  # long before the limit, after which no fit would begin
verification.one_model = lambda *_: Event().wait()
main()
"""


def test_a_fit_that_goes_on_past_the_limit_ends_the_verification(patients_run: Path) -> None:
    command = [sys.executable, "-c", HANGS, "verify", str(patients_run), "--limit", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (6, "")
    assert "not verified: a fit did not end in 60 s, the limit: allow more with --limit" in done.stderr


def test_what_could_not_be_computed_is_not_verified(
    ckcv: Command, patients_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing differs, and the run is not verified all the same: the exit code is 6, and it says why."""
    found = Verification(recomputed=["the rest"], unverified=["its models: no package xgboost is here"])
    monkeypatch.setattr("ckcv_ray.cli.folders.verify_folder", lambda *_: found)
    code, shown, _ = ckcv("verify", patients_run)
    assert code == 6
    assert shown.splitlines()[0] == "not verified: its models: no package xgboost is here"
    assert "every figure" not in shown
    code, shown, _ = ckcv("verify", patients_run, "--json")
    assert code == 6
    content = json.loads(shown)
    assert (content["ok"], content["differences"], content["unverified"]) == (False, [], found.unverified)

"""Command watch: options, exit codes, JSON, and what is refused."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command import Command

from ckcv_ray.runs.watch import CONDITIONS

RUN = ("run", "table.csv", "--target", "outcome", "--k", "3", "--C", "1", "--gamma", "0.1", "--n-splits", "3")


def write_rows(file: str, n: int, seed: int, wrong: float = 0.0, begin: str = "") -> None:
    """Rows of two clouds; with ``begin``, names that begin so, and predictions, of which a share is wrong."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.5
    x = rng.normal(size=(n, 2)) + np.where(sick, 1.5, -1.5)[:, None]
    answer = sick ^ (rng.random(n) < wrong)
    names = {False: "healthy", True: "sick"}
    lines = ["patient,answer,a,b,outcome" if begin else "a,b,outcome"]
    for i in range(n):
        row = f"{x[i, 0]:.3f},{x[i, 1]:.3f},{names[bool(sick[i])]}"
        lines.append(f"{begin}{i},{names[bool(answer[i])]},{row}" if begin else row)
    Path(file).write_text("\n".join(lines) + "\n")


@pytest.fixture
def run(ckcv: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, and live rows with predictions: quiet, and with many errors."""
    monkeypatch.chdir(tmp_path)
    write_rows("table.csv", 150, seed=1)
    write_rows("quiet.csv", 200, seed=2, wrong=0.01, begin="q")
    write_rows("loud.csv", 300, seed=3, wrong=0.5, begin="l")
    assert ckcv(*RUN, "--certify", "holdout", "--out", "run", "--backend", "serial")[0] == 0
    return tmp_path / "run"


NAMES = ("--id", "patient", "--prediction", "answer")


def test_a_quiet_stream_ends_with_0_and_an_alarm_with_5(ckcv: Command, run: Path) -> None:
    code, shown, _ = ckcv("watch", run, "quiet.csv", *NAMES)
    assert code == 0
    assert "the certificate holds" in shown
    assert all(sentence in " ".join(shown.split()) for sentence in CONDITIONS)
    code, shown, _ = ckcv("watch", run, "loud.csv", *NAMES, "--json")
    found = json.loads(shown)
    assert (code, found["alarm"], found["rows"], found["added"]) == (5, True, 500, 300)
    assert found["findings"][0]["state"] == "alarm"
    assert ckcv("watch", run)[0] == 5  # whenever it is looked at
    assert ckcv("verify", run)[0] == 0
    assert ckcv("status", run)[0] == 0


def test_rows_without_predictions_may_come_from_standard_input(
    ckcv: Command, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path("quiet.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, shown, messages = ckcv("watch", run, "-", "--id", "patient", "--stream", "live.jsonl")
    assert (code, Path("live.jsonl").exists()) == (0, True)
    by = "by the model fitted on the learning rows"
    assert by in shown
    assert f"there is no column 'prediction': predicted here, {by}" in messages


def test_options_that_cannot_be_met_are_refused_in_a_sentence(ckcv: Command, run: Path) -> None:
    for arguments, words in (
        (("quiet.csv", "--id", "nobody"), "there is no column 'nobody' with the names of the rows (--id)"),
        (("quiet.csv", *NAMES, "--label", "death"), "no column 'death' with the true labels (--label)"),
        (("quiet.csv", *NAMES, "--seed", "1"), "seed is for ckcv predict: a stream has no draws"),
        (("--skip-rows", "2"), "separator, sheet, skip_rows and encoding are for a file of rows: name one"),
        (("quiet.csv", *NAMES, "--delta", "1.5"), "--delta 1.5 is outside (0, 1)"),
        (("quiet.csv", *NAMES, "--member", "2"), "no error is certified, so there is nothing to watch"),
        (("quiet.csv", *NAMES, "--stream", "run/log/s.jsonl"), "--stream 'run/log/s.jsonl' is in a run"),
        (("nowhere.csv", *NAMES), "nowhere.csv"),
    ):
        code, shown, messages = ckcv("watch", run, *arguments)
        assert (code, shown) == (2, "")
        assert words in " ".join(messages.split()), messages

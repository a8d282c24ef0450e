"""What is written: predictions fit for a terminal and a spreadsheet, and a line of progress that is lost."""

import io
import sys
from csv import reader
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command
from pyarrow import parquet
from rich.console import Console

from ckcv_ray.cli.data import Display
from ckcv_ray.cli.output import Messages
from ckcv_ray.engine.queue import Progress

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
    few = ("--learner", "tree", "--k", "3", "--n-splits", "3")
    ckcv("run", tmp_path / "rows.parquet", "--target", "y", "--out", tmp_path / "run", *few)
    for safe in ((), ("--csv-safe",)):
        words = ("predict", tmp_path / "run", tmp_path / "rows.parquet", "--seed", 1, *safe)
        _, shown, _ = ckcv(*words)
        ckcv(*words, "--out", tmp_path / "p.csv")
        assert (tmp_path / "p.csv").read_text() == shown
        assert all(line.isprintable() for line in shown.split("\n"))
        rows = list(reader(shown.splitlines()))
        marks = ["'" if safe and label[0] in "=+-@\t\r" else "" for label in (one, other)]
        expected = {f"{mark}{label}" for mark, label in zip(marks, written, strict=True)}
        assert len(rows) == 41
        assert {row[1] for row in rows[1:]} == expected
    ckcv("predict", tmp_path / "run", tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet")
    assert set(parquet.read_table(tmp_path / "p.parquet")["prediction"].to_pylist()) == {one, other}


def test_numbers_are_no_formulas(ckcv: Command, patients_run: Path, patients: Path) -> None:
    """A score below zero begins with a minus, and stays a number."""
    words = ("predict", patients_run, patients, "--seed", 1)
    assert ckcv(*words, "--csv-safe") == ckcv(*words)


def test_a_live_line_that_is_lost_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Messages(Terminal()))
    monkeypatch.setenv("TERM", "xterm")
    with Display(Console(stderr=True)) as line:
        assert line.live is not None
        line(Progress(planned=20, computed=10))
        line.live.refresh()

"""The fuzzing job: it finishes, finds nothing in the cheap readers, and finds a planted fault."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """
import sys, typer
from ckcv_ray import validation
from jobs.faults import fuzz

def planted(text, name):
    if text:
        raise KeyError(text)

validation.parse_grid = planted
typer.run(fuzz.main)
"""


def fuzz(keep: Path, only: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the job in a process that may fork; return its exit code and output."""
    options = ("--minutes", "0.05", "--only", only, "--keep", str(keep), "--json")
    done = subprocess.run([sys.executable, *arguments, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_cheap_readers_read_or_refuse(tmp_path: Path) -> None:
    only = "csv,npz,toml,words"
    code, output = fuzz(tmp_path, only, "-m", "jobs.faults.fuzz")
    kept = [file.read_text(errors="replace")[:2000] for file in tmp_path.rglob("finding.txt")]
    assert (code, output["findings"]) == (0, 0), "\n\n".join(kept)
    assert list(output["by_reader"]) == only.split(",")
    tried, refused = (sum(one[n] for one in output["by_reader"].values()) for n in ("inputs", "refused"))
    assert tried > refused > 0


def test_a_planted_fault_is_found_and_made_small(tmp_path: Path) -> None:
    code, output = fuzz(tmp_path, "words", "-c", PLANTED)
    assert code == 1
    assert output["findings"] == output["by_reader"]["words"]["findings"] == 1
    assert "KeyError" in (tmp_path / "words" / "finding.txt").read_text()
    assert len((tmp_path / "words" / "words").read_bytes()) <= 4  # one of the parts that words are made of

"""The fuzzing job: it finishes, and finds nothing in the cheap readers."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_cheap_readers_read_or_refuse(tmp_path: Path) -> None:
    """In a process that may fork."""
    only = "csv,npz,toml,words"
    options = ("--minutes", "0.05", "--only", only, "--keep", str(tmp_path), "--json")
    command = [sys.executable, "-m", "jobs.faults.fuzz", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    output = json.loads(done.stdout)
    kept = [file.read_text(errors="replace")[:2000] for file in tmp_path.rglob("finding.txt")]
    assert (done.returncode, output["findings"]) == (0, 0), "\n\n".join(kept)
    assert list(output["by_reader"]) == only.split(",")
    tried, refused = (sum(one[n] for one in output["by_reader"].values()) for n in ("inputs", "refused"))
    assert tried > refused > 0

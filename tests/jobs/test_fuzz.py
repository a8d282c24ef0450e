"""The fuzzing job: it finishes, finds nothing in the cheap readers, and finds a planted fault."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def fuzz(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the job in a process that may fork; return its exit code and output."""
    done = subprocess.run([sys.executable, *arguments, "--json"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_cheap_readers_read_or_refuse(tmp_path: Path) -> None:
    only = "csv,npz,toml,words"
    code, output = fuzz("jobs/faults/fuzz.py", "--minutes", "0.05", "--only", only, "--keep", str(tmp_path))
    kept = [file.read_text(errors="replace")[:2000] for file in tmp_path.rglob("finding.txt")]
    assert (code, output["findings"]) == (0, 0), "\n\n".join(kept)
    assert list(output["by_reader"]) == only.split(",")
    tried, refused = (sum(one[n] for one in output["by_reader"].values()) for n in ("inputs", "refused"))
    assert tried > refused > 0


def test_a_planted_fault_is_found_and_shrunk(tmp_path: Path) -> None:
    options = ("--minutes", "0.05", "--only", "words", "--keep", str(tmp_path))
    code, output = fuzz("-c", PLANTED, *options)
    assert code == 1
    assert output["findings"] == output["by_reader"]["words"]["findings"] >= 1
    (kept,) = tmp_path.glob("*-words-KeyError")
    assert "KeyError" in (kept / "finding.txt").read_text()
    assert len((kept / "input" / "words").read_bytes()) == 1


# Small files that expand to large ones, of every kind: refused before the memory is given


READ = """
import json, sys, tempfile
from pathlib import Path
from jobs.faults.fuzz_bombs import list_bombs
from jobs.faults.fuzz_child import Child

with tempfile.TemporaryDirectory() as scratch:
    child, folder, found = Child(Path(scratch), 1200, 40.0), Path(scratch) / "input", {}
    folder.mkdir()
    bombs = list_bombs(*map(int, sys.argv[2:]))
    families = {bomb.name.partition(" (")[0]: bomb for bomb in bombs}
    chosen = {"all": bombs, "families": [*families.values()], "every third family": [*families.values()][::3]}
    for bomb in chosen[sys.argv[1]]:
        file = folder / f"input.{bomb.suffix}"
        file.write_bytes(bomb.make())
        refused, faults, peak = child.read(bomb.suffix, folder, False)
        found[bomb.name] = file.stat().st_size, refused, [fault.kind for fault in faults], peak
        file.unlink()
    child.stop()
print(json.dumps(found))
"""


def read_bombs(
    rows: int, length: int, cells: int, which: str
) -> dict[str, tuple[int, int, list[str], float]]:
    """Read all bombs, or one of families; return size, refusals, faults and peak memory in MiB."""
    command = [sys.executable, "-c", READ, which, *map(str, (rows, length, cells))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, tuple[int, int, list[str], float]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("which", "count"),
    [
        ("every third family", 10),
        ("families", 30),
        ("all", 80),
    ],
)
def test_large_bombs_are_refused_within_memory_and_time(which: str, count: int) -> None:
    found = read_bombs(400_000, 6_000, 1_200_000, which)
    assert len(found) > count
    assert {name: one for name, one in found.items() if one[2]} == {}, "memory, time or an error"
    assert [name for name, (_, refused, *_) in found.items() if not refused] == []
    assert max(size for size, *_ in found.values()) < 30 << 20


def test_small_members_of_the_same_families_are_read_or_refused_in_a_sentence() -> None:
    found = read_bombs(40, 3, 40, "all")
    assert {name: one for name, one in found.items() if one[2]} == {}
    read = [name for name, (_, refused, *_) in found.items() if not refused]
    assert {name.split(":")[0] for name in read} >= {"parquet", "feather"}
    assert len(read) >= 20  # dictionaries of bytes are refused, as bytes are

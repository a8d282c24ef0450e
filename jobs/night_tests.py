"""Write the list of tests that are too slow for every check: ``tests/night.txt``.

    ./jobs/check --night --no-cov --hypothesis-profile=day
    python jobs/night_tests.py build/durations.txt

The machine should have nothing else to do. Tests that are not in the file of durations stay in the list or
out of it. By day, ``jobs/check`` runs what ``tests/day.txt`` names from the list. Tests marked ``night`` in
their own file are not listed: code blocks of the documentation, and acceptance cases.
"""

import sys
from pathlib import Path

MAX_SECONDS = 2.0  # of processor time
TESTS = Path(__file__).resolve().parent.parent / "tests"
MARKED = (
    "tests/test_documentation.py::test_a_block_runs[",
    "tests/acceptance/test_acceptance.py::test_by_night[",
)


def read_durations(file: Path) -> dict[str, float]:
    """Return the seconds of each test by its name."""
    lines = (line.split(maxsplit=2) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(own) for own, _, name in lines}


def main() -> None:
    """Update the list from a file of durations."""
    durations, listed = read_durations(Path(sys.argv[1])), TESTS / "night.txt"
    names = {name for name in listed.read_text(encoding="utf-8").splitlines() if name not in durations}
    names |= {name for name, seconds in durations.items() if seconds > MAX_SECONDS}
    kept = sorted(name for name in names if not name.startswith(MARKED))
    listed.write_text("".join(f"{name}\n" for name in kept), encoding="utf-8")
    print(f"{listed}: {len(kept)} tests")


if __name__ == "__main__":
    main()

"""Two commits timed alternately: whose package is timed, and what is computed from the times."""

from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from jobs.benchmarks import commits, overhead, reading
from jobs.benchmarks.commits import ROOT, Compared, compare, timed

ARGUMENTS = ["run", "twonorm:60:0", "none", "2", "serial"]


def test_ratios_are_of_the_shortest_times_and_of_medians() -> None:
    found = Compared([3.0, 1.0, 2.0], [2.0, 8.0, 4.0], same=True)
    assert (found.ratio, found.ratio_medians) == (0.5, 0.5)
    assert Compared([1.0, 9.0, 9.0], [1.0, 3.0, 9.0], same=True).ratio_medians == 3.0


def test_one_study_is_timed_by_the_package_of_a_folder() -> None:
    found = timed(ROOT, ARGUMENTS)
    assert Path(found["package"]) == ROOT / "ckcv_ray" / "__init__.py"
    assert found["seconds"] > 0
    assert timed(ROOT, ARGUMENTS)["answer"] == found["answer"]


def test_a_package_from_elsewhere_is_not_timed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"was imported from .*, not from"):
        timed(tmp_path, ARGUMENTS)


def test_the_two_alternate_and_differing_answers_are_detected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    turns: list[Path] = []

    def faked(tree: Path, arguments: list[str]) -> dict[str, object]:
        turns.append(tree)
        return {"seconds": float(len(turns)), "answer": [tree == ROOT and len(turns) == 3]}

    monkeypatch.setattr(commits, "timed", faked)
    found = compare(tmp_path, ARGUMENTS, 2)
    assert turns == [tmp_path, ROOT, ROOT, tmp_path]
    assert found == Compared([2.0, 3.0], [1.0, 4.0], same=False)


def test_overhead_against_this_commit_itself() -> None:
    app = Typer()
    app.command()(overhead.main)
    options = ["--against", "HEAD", "--serial", "--rounds", "1", "--sets", "twonorm:60:0", "--splits", "2"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    study, mean = done.stdout.splitlines()
    assert study.startswith("twonorm:60:0")
    assert study.endswith("same True")
    assert mean.startswith("geometric mean")


def test_reading_against_this_commit_itself() -> None:
    app = Typer()
    app.command()(reading.main)
    done = CliRunner().invoke(app, ["--against", "HEAD", "--rounds", "1", "--rows", "300"])
    assert done.exit_code == 0, done.output
    complete, with_gaps = done.stdout.splitlines()
    assert "0% NA" in complete
    assert "2% NA" in with_gaps

"""Command new: the study file that it writes is the default study, and says what was found in the table."""

import tomllib
from pathlib import Path

import pytest
from command import Command

from ckcv_ray import Study
from ckcv_ray.cli.study_options import make_study
from ckcv_ray.study import run_id


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two visits of each of 30 patients, with a column that numbers the rows."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{i * 7 % 23},{'nsw'[i % 3]},p{i // 2},{'ab'[i % 2]}\n" for i in range(60))
    (tmp_path / "visits.csv").write_text(f"id,age,ward,patient,y\n{rows}")
    return tmp_path


def test_the_file_as_it_is_written_gives_the_run_of_no_file(ckcv: Command, visits: Path) -> None:
    assert ckcv("new", "visits.csv")[:2] == (0, "")
    study = make_study(visits / "study.toml")
    assert study == Study.of()
    assert run_id(study, "data") == run_id(Study.of(), "data")


def test_every_option_that_matters_is_in_the_file_with_a_comment(ckcv: Command, visits: Path) -> None:
    _, text, _ = ckcv("new", "visits.csv", "--out", "-")
    assert not (visits / "study.toml").exists()
    given = Study.of().options()
    known = {name for name, value in given.items() if value not in (None, (), "")} - {"solver"}
    assert {*tomllib.loads(text)} == known
    lines = text.splitlines()
    assert all(lines[i - 1].startswith("# ") for i, line in enumerate(lines) if line and line[0] != "#")
    for name in ("landmarks = 500", "param =", "costs =", "effort ="):
        assert any(line.startswith(f"# {name}") for line in lines), name


def test_what_stands_in_a_comment_can_be_used(ckcv: Command, visits: Path) -> None:
    _, text, _ = ckcv("new", "visits.csv", "--out", "-")
    changed = text.replace('certify = "holdout"', 'certify = "occam"').replace("# first_u", "first_u")
    for line in ('holdout_share = "auto"\n', 'claim = "refit"\n', 'holdout_bound = "clopper_pearson"\n'):
        changed = changed.replace(line, "")
    (visits / "mine.toml").write_text(changed)
    assert make_study(visits / "mine.toml") == Study.of(certify="occam")


def test_the_file_says_what_was_found_in_the_table(ckcv: Command, visits: Path) -> None:
    _, text, _ = ckcv("new", "visits.csv", "--target", "y", "--out", "-")
    assert "ckcv run visits.csv --target y --study study.toml" in text
    assert "60 rows" in text.splitlines()[0]
    assert "# ward" in text
    assert "--group patient" in text
    assert "'id' numbers the rows" in text


def test_a_name_in_a_table_is_no_line_of_the_file(ckcv: Command, visits: Path) -> None:
    rows = "".join(f"{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(60))
    (visits / "odd.csv").write_text(f'"a\nseed = 7",b,y\n{rows}')
    assert ckcv("new", "odd.csv")[0] == 0
    assert make_study(visits / "study.toml") == Study.of()


def test_a_file_is_not_replaced(ckcv: Command, visits: Path) -> None:
    (visits / "study.toml").write_text("seed = 3\n")
    code, shown, messages = ckcv("new", "visits.csv")
    assert (code, shown) == (2, "")
    assert messages == "ckcv: --out 'study.toml' exists: name another file, or remove it\n"
    assert (visits / "study.toml").read_text() == "seed = 3\n"
    code, _, messages = ckcv("new", "visits.csv", "--out", "nowhere/study.toml")
    assert code == 2
    assert "--out 'nowhere/study.toml' cannot be written" in messages

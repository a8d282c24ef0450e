"""The option --budget, and a run within a budget on the command line from its first trial to predictions."""

import csv
import json
import re
from pathlib import Path

import pytest
from command import Command

from ckcv_ray import load_run

QUICK = ("--learner", "tree", "--k", "3,4,5", "--n-splits", "4", "--backend", "serial")


@pytest.fixture
def words(patients: Path, tmp_path: Path) -> tuple[object, ...]:
    """A run of 42 trees and 3 fold sizes on 40 rows."""
    return ("run", patients, "--target", "outcome", "--out", tmp_path / "run", *QUICK)


def read_effort(run: Path) -> int:
    """Return the effort that a run folder names."""
    effort = json.loads((run / "study.json").read_text())["study"]["search"]["effort"]
    assert isinstance(effort, int)
    return effort


def test_a_time_too_short_for_one_candidate_is_refused_with_the_least_effort(
    ckcv: Command, words: tuple[object, ...], tmp_path: Path
) -> None:
    code, shown, messages = ckcv(*words, "--budget", "0.001s")
    assert (code, shown) == (2, "")
    text = " ".join(messages.split())
    assert "ckcv: --budget 0.001s allows an effort of 1 evaluation, and to compare 42 settings" in text
    least = re.search(r"and complete one candidate takes (\d+) or more, about [^:]+: allow more time", text)
    assert least is not None, text
    assert not (tmp_path / "run" / "study.json").exists()
    assert ckcv(*words, "--effort", int(least[1]) - 1)[0] == 2
    assert ckcv(*words, "--effort", least[1])[0] == 0


@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_a_run_within_a_time_and_what_reads_its_folder(
    certify: str, ckcv: Command, words: tuple[object, ...], patients: Path, tmp_path: Path
) -> None:
    """The time becomes an effort once: the same command shows the result, whatever it takes by then."""
    out = tmp_path / "run"
    words = (*words, "--certify", certify, "--budget", "30s")
    code, shown, messages = ckcv(*words, "--json")
    assert code == 0, messages
    effort = read_effort(out)
    assert f"--budget 30s allows all {effort:,} evaluations: the exact race" in " ".join(messages.split())
    ran, result = json.loads(shown), load_run(out)
    assert result.study.effort == effort
    searched = result.certificate.to_json()["search"]
    assert searched == {"effort": 504, "candidates": 126, "not_excluded": 0, "least": None}
    assert ran["search"] == searched
    assert effort == 504

    code, again, messages = ckcv(*words, "--json")
    assert (code, json.loads(again)) == (0, ran)
    assert "already holds the finished run" in messages
    kept = (
        "is for a new run; --effort N goes on with more" if certify == "paper" else "is not used, since its"
    )
    assert f"has the effort of its study, 504 evaluations: --budget 30s {kept}" in " ".join(messages.split())
    code, status, _ = ckcv("status", out, "--json")
    assert (code, json.loads(status)) == (0, ran)
    assert re.search(r"^search +", ckcv("status", out, "--details")[1], re.MULTILINE)

    code, shown, messages = ckcv("verify", out, "--rerun", "--backend", "serial")
    assert code == 0, shown
    assert "every figure follows from the data" in shown
    code, _, messages = ckcv("report", out)
    assert code == 0, messages
    assert (out / "report.html").exists()
    code, _, messages = ckcv("predict", out, patients, "--out", tmp_path / "labels.csv")
    assert code == 0, messages
    with (tmp_path / "labels.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 40

    code, shown, messages = ckcv(*words[:-2], "--search", "budget", "--effort", effort + 1000, "--json")
    if certify == "paper":
        assert code == 0, messages
        assert read_effort(out) == effort + 1000
        assert ckcv("verify", out)[0] == 0
    else:
        assert (code, shown) == (2, "")
        assert "its holdout has judged its rows" in " ".join(messages.split())
        assert read_effort(out) == effort


def test_a_plan_names_efforts_that_may_be_pasted(ckcv: Command, patients: Path) -> None:
    words = ("plan", patients, "--target", "outcome", *QUICK[: QUICK.index("--backend")])
    code, shown, messages = ckcv(*words, "--effort", 400)
    assert code == 0, messages
    assert "rounds within a budget, effort 400, " in shown
    efforts = re.findall(r"--effort (\d+): about", shown)
    assert len(efforts) == 2
    for effort in efforts:
        assert ckcv(*words, "--effort", effort)[0] == 0
    code, shown, messages = ckcv(*words, "--effort", 10**6)
    assert "selection      exact race, since an effort of 1,000,000 pays for everything, " in shown
    assert "--effort" not in shown.split("search  ")[1].splitlines()[0]

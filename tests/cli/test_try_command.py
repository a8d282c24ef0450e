"""``ckcv plan --try``: a first look at learning rows, and the line that starts the run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import Command

from ckcv_ray.cli import run as commands
from ckcv_ray.cli.output import Signals
from ckcv_ray.engine.worker import LostError
from ckcv_ray.runs import run as running

SMALL = ("--k", "3", "--n-splits", "2", "--C", "1", "--gamma", "0.1", "--workers", "1")
QUICK = ("plan", "patients.csv", "--target", "outcome", "--try", "20s")


@pytest.fixture(autouse=True)
def here(patients: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the table, as the working directory; what is tried is computed in this process."""
    monkeypatch.chdir(patients.parent)
    monkeypatch.setattr(running, "warm_up", lambda inputs: None)
    monkeypatch.setattr(running, "compute_apart", lambda _, timeout, make, *rest, seconds: make(*rest))
    return patients.parent


def list_tries() -> list[str]:
    return [path.name for path in Path().rglob("try-*")]


def test_the_line_starts_a_run_whose_claim_is_untouched_and_another_seed_says_what_was_seen(
    ckcv: Command,
) -> None:
    code, shown, said = ckcv(*QUICK, *SMALL)
    assert code == 0, said
    assert "trying svm for up to 20 s" in said
    (folder,), line = list_tries(), shown.splitlines()[-1].removeprefix("start the run  ")
    for part in (
        "tried          20 of 20 rows to learn from, in 5 splits\n",
        "wrong; no claim: nothing was judged\n",
        " of 20 held-out rows are wrong\n",
        f"recorded in    {folder}\n",
    ):
        assert part in shown
    assert folder in ckcv("list")[1]
    command, *words = shlex.split(line)
    assert command == "ckcv"
    code, result, said = ckcv(*words, "--json")
    assert code == 0, said
    assert f"try-{json.loads(result)['run_id']}" == folder
    assert json.loads(result)["before"]["runs"] == []
    words[words.index("--seed") + 1] = "1"
    told = " ".join(ckcv(*words, "--details")[1].split())
    assert f"('{folder}'): this bound is not covered if what was shown led to this study" in told


@pytest.mark.parametrize(
    ("n_tried", "options"),
    [
        (3, "--seed random"),
        (2, "--learner tree,linear --exhaustive --claim refit,sensitivity --holdout-share 0.4"),
        (1, """--learner tree --drop '"dose, mg"' --positive ill --require 'sensitivity>=0.1'"""),
        (1, "--study 'my study.toml'"),
    ],
)
def test_the_line_gives_the_planned_run(
    n_tried: int, options: str, ckcv: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("my study.toml").write_text('learner = "tree"\nseed = "random"\nholdout-share = 0.4\n')
    started: list[str] = []

    def start(work: Any, *rest: object) -> None:
        started.append(work.problem.run_id)
        raise typer.Exit(0)

    monkeypatch.setattr(commands, "_run", start)
    code, shown, said = ckcv(
        *QUICK, *shlex.split(options), "--k", "3", "--n-splits", "2", "--workers", "1", "--json"
    )
    assert code == 0, said
    planned = json.loads(shown)
    assert ("--seed 0" in planned["line"]) == ("random" not in options and "--study" not in options)
    _, *words = shlex.split(planned["line"])
    assert ckcv(*words)[0] == 0
    assert started == [planned["try"]["plans"]]
    assert list_tries() == [f"try-{planned['try']['plans']}"]
    assert (planned["try"]["splits"], planned["try"]["late"]) == (5, [])
    assert len(planned["try"]["entries"]) == n_tried


def test_it_lies_beside_the_run_and_another_one_beside_it(ckcv: Command) -> None:
    words = (*QUICK, *SMALL, "--out", "runs/mine")
    assert ckcv(*words)[0] == 0
    assert ckcv(*words)[0] == 0  # the same rows and splits: the same folder
    assert ckcv(*words, "--rows", "15")[0] == 0
    first, second = sorted(path.name for path in Path("runs").iterdir())
    assert second == f"{first}_2"
    assert "--out runs/mine" in ckcv(*words)[1]


def test_where_nothing_is_finished_or_it_is_interrupted_nothing_is_recorded(
    ckcv: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Signals, "stop", lambda signals: True)
        code, shown, said = ckcv(*QUICK, *SMALL)
        assert (code, shown, "interrupted: no work was saved" in said) == (130, "", True)

    def never_ends(*given: object, seconds: float) -> None:
        raise LostError("it did not answer in time")

    monkeypatch.setattr(running, "compute_apart", never_ends)
    code, shown, said = ckcv(*QUICK, *SMALL)
    assert (code, shown, "nothing finished in 20 s: allow more time" in said) == (1, "", True)
    assert list_tries() == []

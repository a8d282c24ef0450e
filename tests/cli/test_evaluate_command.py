"""The command evaluate: scores on standard output, progress and folder as in a run."""

import json
from pathlib import Path

from command import Command
from pyarrow import parquet

ONCE = ("--learner", "naive_bayes,constant", "--resampling", "kfold:4", "--backend", "serial")


def test_scores_are_printed_kept_and_shown_again(ckcv: Command, tmp_path: Path) -> None:
    asked = ("sklearn:iris", "--out", tmp_path / "run", "--measure", "accuracy,log_loss", *ONCE)
    code, printed, said = ckcv("evaluate", *asked)
    assert code == 0, said
    assert "kfold: 4 splits of 150 rows" in printed
    assert "accuracy (larger is better)" in printed
    assert "constant - naive_bayes: -0." in printed
    assert f"folder: {tmp_path / 'run'}" in said
    assert ckcv("evaluate", *asked)[1] == printed
    assert ckcv("status", tmp_path / "run")[1] == printed
    code, again, _ = ckcv("evaluate", *asked, "--json")
    content = json.loads(again)
    assert [one["learner"] for one in content["entries"]] == ["naive_bayes", "constant"]
    assert len(content["entries"][0]["scores"]["accuracy"]["splits"]) == 4
    assert parquet.read_table(tmp_path / "run" / "scores.parquet").num_rows == 8


def test_other_commands_say_what_the_folder_holds(ckcv: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ckcv("evaluate", "sklearn:iris", "--out", run, *ONCE)[0] == 0
    code, _, said = ckcv("predict", run, "sklearn:iris")
    assert (code, "there is no model to predict by" in said) == (2, True)
    code, _, said = ckcv("run", "sklearn:iris", "--out", run, "--k", "3", "--n-splits", "2")
    assert (code, "choose another --out" in said) == (4, True)
    other = tmp_path / "other"
    few = ("--k", "3", "--n-splits", "2", "--C", "1", "--gamma", "0.1", "--backend", "serial")
    assert ckcv("run", "sklearn:iris", "--out", other, *few)[0] == 0
    code, _, said = ckcv("evaluate", "sklearn:iris", "--out", other, *ONCE)
    assert (code, "holds a study of ckcv run" in said) == (4, True)


def test_failures_have_their_own_exit_code(ckcv: Command, tmp_path: Path) -> None:
    some_fail = ("--learner", "neighbors", "--resampling", "holdout:0.9", "--param", "n_neighbors=5,40")
    asked = ("evaluate", "sklearn:iris", "--out", tmp_path / "run", *some_fail, "--backend", "serial")
    code, printed, said = ckcv(*asked)
    assert code == 3
    assert "1 failed" in printed
    assert "1 path failed, and their scores are incomplete" in said
    assert ckcv(*asked, "--retry-failed")[0] == 3

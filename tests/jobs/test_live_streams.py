"""The job that simulates watched streams: its counts, and that a stream depends on its number alone."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer

from jobs.paper import live_streams
from jobs.paper.live_streams import format_cell, judge_block, judge_scene, list_rejected, main


def test_a_block_depends_on_its_scene_and_number_alone() -> None:
    first, excluded = judge_block("quiet", 3, 200)
    again, _ = judge_block("quiet", 3, 200)
    assert np.array_equal(first, again)
    assert excluded.shape == first.shape == (live_streams.BLOCK,)
    assert not np.array_equal(judge_block("at once", 0, 300)[0], judge_block("at once", 1, 300)[0])


def test_false_alarms_and_labels_until_one_are_counted() -> None:
    quiet = judge_scene("quiet", 60, 300)
    assert quiet["alarms"] == quiet["false"]["count"] <= 10
    late = judge_scene("late", 60, 3500)
    assert late["false"]["count"] <= 10
    assert 0 < late["found after"][0] <= late["found after"][1] <= 700
    assert judge_scene("near", 60, 20)["found after"] == [None, None, None]
    assert "found after never labels" in format_cell("near", judge_scene("near", 60, 20))


def test_what_fails_too_often_is_named() -> None:
    failed = {"p": 1e-9, "count": 50, "at most": 0.9}
    cells = {"quiet": {"false": failed, "limits failed": failed | {"p": 0.5}}}
    assert list_rejected(cells) == ["quiet: false"]


def test_the_job_prints_draws_and_ends_with_its_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main("quiet,below,groups,at once", 50, 400, tmp_path / "two.svg", as_json=False)
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "failed more often than in 5 %: nothing"
    assert "<svg" in (tmp_path / "two.svg").read_text()
    main("quiet", 50, 100, None, as_json=True)
    assert json.loads(capsys.readouterr().out)["scenes"]["quiet"]["streams"] == 50
    with pytest.raises(typer.BadParameter, match="'loud' is none of quiet"):
        main("loud", 50, 100, None, as_json=False)
    monkeypatch.setattr(live_streams, "list_rejected", lambda cells: ["quiet: false"])
    with pytest.raises(typer.Exit):
        main("quiet", 50, 100, None, as_json=False)

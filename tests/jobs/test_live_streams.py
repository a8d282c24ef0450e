"""The job that simulates watched streams: its counts, and that a stream depends on its number alone."""

import json

import numpy as np
import pytest
import typer

from jobs.paper import cells, live_streams
from jobs.paper.live_streams import judge_block, judge_scene, main


def test_a_block_depends_on_its_scene_and_number_alone() -> None:
    first, excluded = judge_block("quiet", 3, 200)
    again, _ = judge_block("quiet", 3, 200)
    assert np.array_equal(first, again)
    assert excluded.shape == first.shape == (live_streams.BLOCK,)
    assert not np.array_equal(judge_block("at once", 0, 300)[0], judge_block("at once", 1, 300)[0])


def test_false_alarms_and_labels_until_one_are_counted() -> None:
    alarms, limits = judge_scene("quiet", 60, 300)
    assert (alarms.runs, alarms.allowed, limits.allowed) == (60, 0.05, 0.05)
    assert alarms.false <= 10
    early, found = judge_scene("late", 60, 3500)
    assert early.false <= 10
    assert 0 < found.figures["half from"] <= found.figures["labels"] <= 700
    never = [*judge_scene("near", 60, 20)][-1].figures
    assert never["alarms"] < 0.1
    assert never["labels"] == np.inf


def test_the_job_prints_and_ends_with_its_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main("quiet,below,groups,at once", 50, 400, as_json=False)
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "7 cells, 0 false more often than they may be"
    with pytest.raises(typer.BadParameter, match="'loud' is none of quiet"):
        main("loud", 50, 100, as_json=False)
    monkeypatch.setattr(cells, "find_failing", lambda found: [found[0].name])
    with pytest.raises(typer.Exit):
        main("quiet", 50, 100, as_json=True)
    assert json.loads(capsys.readouterr().out)["failing"] == ["quiet: alarms"]

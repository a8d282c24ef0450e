"""The jobs that count misses of intervals, false claims and false alarms: their truths and figures."""

import json

import numpy as np
import pytest
import typer

from ckcv_ray.validation import Limits
from jobs.paper import cells, interval_coverage, live_streams
from jobs.paper.interval_coverage import Line, Run, summarize
from jobs.paper.live_streams import judge_scene
from jobs.paper.number_coverage import CLIP, GROUPS, SHARE, check_claims

# Watched streams


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
    live_streams.main("quiet,below,groups,at once", 50, 400, as_json=False)
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "7 cells, 0 false more often than they may be"
    with pytest.raises(typer.BadParameter, match="'loud' is none of quiet"):
        live_streams.main("loud", 50, 100, as_json=False)
    monkeypatch.setattr(cells, "find_failing", lambda found: [found[0].name])
    with pytest.raises(typer.Exit):
        live_streams.main("quiet", 50, 100, as_json=True)
    assert json.loads(capsys.readouterr().out)["failing"] == ["quiet: alarms"]


# Approximate intervals


@pytest.fixture(autouse=True)
def few_procedures(monkeypatch: pytest.MonkeyPatch) -> None:
    few = (
        Line("holdout:0.3", "clopper_pearson", 0.7),
        Line("kfold:10", "corrected_t", 0.9),
        Line("kfold:5", "bbc", 0.9, (1e-9, 100.0)),
    )
    monkeypatch.setattr(interval_coverage, "PROCEDURES", few)


def test_misses_are_of_the_mean_and_of_the_model() -> None:
    name = "holdout:0.3 clopper_pearson"
    errors = [{0.7: 0.2, 0.9: 0.2, 1.0: 0.1}, {0.7: 0.4, 0.9: 0.4, 1.0: 0.35}]  # means of 0.3
    limits = [Limits(0.25, 0.35), Limits(0.31, 0.36)]
    names = [one.name for one in interval_coverage.PROCEDURES]
    runs = [
        Run({key: at if key == name else Limits(0.0, 1.0) for key in names}, error, error)
        for at, error in zip(limits, errors, strict=True)
    ]
    found = summarize(runs)
    assert found[name] == pytest.approx({"mean": 50.0, "model": 50.0, "width": 7.5})
    assert found["kfold:10 corrected_t"] == pytest.approx({"mean": 0.0, "model": 0.0, "width": 100.0})


# Claims about numbers


def test_a_claim_is_compared_with_the_truth_for_its_own_models() -> None:
    held, paper = (check_claims("normal", 3, certify) for certify in ("holdout", "paper"))
    assert set(held) == {"holdout", "within"}
    assert set(paper) == {"paper"}
    for name, checked in (held | paper).items():
        least = 2 / 3 * np.sqrt(2 / np.pi) * 0.9  # no linear model errs less than the noise, roughly
        assert 0 < checked.truth < 1, name
        if name != "within":
            assert checked.truth * CLIP > least
            assert checked.is_false == (checked.truth > checked.claim.bound)
        else:
            assert checked.is_false == (checked.truth < SHARE)


def test_of_groups_the_mean_error_of_a_group_is_claimed() -> None:
    found = check_claims(GROUPS, 3, "holdout") | check_claims(GROUPS, 3, "paper")
    assert set(found) == {"holdout", "paper"}
    for name, checked in found.items():
        assert "new group's rows" in checked.claim.statement, name
        assert checked.is_false == (checked.truth > checked.claim.bound)

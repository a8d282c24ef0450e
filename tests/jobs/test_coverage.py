"""The jobs that count false bounds, false alarms and misses: sources, truths, and the exact test."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.stats import binom

from ckcv_ray import Execution, Job, Task
from ckcv_ray.errors import Limits
from ckcv_ray.runs.run import run_job
from jobs.paper import bound_coverage, cells, interval_coverage, live_streams, trials
from jobs.paper.bound_coverage import chosen, count, main, stored
from jobs.paper.cells import Cell, find_failing
from jobs.paper.interval_coverage import Line, Run, summarize
from jobs.paper.live_streams import judge_scene
from jobs.paper.number_coverage import CLIP, SHARE, check_claims
from jobs.paper.sources import SOURCES, Fresh, Setting
from jobs.paper.trials import BOTH, BY_CLASS, CLAIMS, OF_CLASS, REFIT, STEVENS, STUDY, trial

EIGHT = Setting("eight", 60)
SERIAL = Execution("serial")
FEW = {*trials.CUT, trials.CUT_BOTH}  # claims that take more positives than so few rows have
SMALL = STUDY.replace(C=(0.1, 10.0), gamma=(0.1, 1.0), k=(3, 5), n_splits=4)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "STUDY", SMALL)


def drawn(setting: Setting, run: int = 0) -> tuple[Task, Fresh]:
    source, rng = SOURCES[setting.source], np.random.default_rng(run)
    rows = source.draw(setting.n, rng)
    return Task.of(rows.X, rows.y, groups=rows.groups), source.fresh(rng)


# Sources


# Truths


@pytest.mark.parametrize("name", ["eight", "constant", "flipped_refit", "noise", "rare", "twonorm", "visits"])
def test_learning_rows_have_the_classes_of_new_patterns(name: str) -> None:
    source, rng = SOURCES[name], np.random.default_rng(1)
    n, share = 30_000, source.fresh(rng).weight[:, 1].sum()
    standard_error = np.sqrt(share * (1 - share) / (n / 5))
    assert np.mean(source.draw(n, rng).y > 0) == pytest.approx(share, abs=5 * standard_error + 1e-12)


@pytest.mark.parametrize("setting", [Setting("crescents", 60), Setting("ringnorm", 60), EIGHT], ids=str)
def test_truths_are_those_of_the_models_predictions(setting: Setting) -> None:
    task, fresh = drawn(setting)
    result = run_job(Job(SMALL, task), SERIAL)
    labels, _ = result.ensemble.predict(fresh.X)
    wrong = [fresh.weight[np.arange(len(fresh.X)), 1 - label].sum() for label in labels]
    missed = trials.misses(result.ensemble, task, fresh)
    assert missed.sum(axis=1) == pytest.approx(wrong, abs=2e-4)
    positive = fresh.weight[:, 1]
    assert missed[:, 1] == pytest.approx([positive[label == 0].sum() for label in labels], abs=2e-4)


def test_one_model_and_its_recalls_are_those_of_their_studies() -> None:
    task, fresh = drawn(Setting("eight", 200))
    measured = {one.claim: one for one in trials.half(SMALL, task, fresh)}
    half = SMALL.replace(certify="holdout", holdout_share=0.5)
    results = {
        names: run_job(Job(half.replace(**options), task), SERIAL)
        for names, options in {
            (REFIT,): {"claim": "refit"},
            (STEVENS,): {"claim": "refit", "holdout_bound": "stevens"},
            tuple(OF_CLASS): {"claim": "sensitivity,specificity"},
            tuple(trials.CUT): {"require": trials.REQUIRED},
        }.items()
    }
    for names, result in results.items():
        claims = result.certificate.claims[: len(names)]
        assert [measured[name].bound for name in names] == [claim.bound for claim in claims]
        if len(names) == 2:
            positive = result.predict(fresh.X) > 0
            specificity = fresh.weight[~positive, 0].sum() / fresh.weight[:, 0].sum()
            assert measured[names[1]].truth == pytest.approx(1 - specificity)
    for of_class, both in ((OF_CLASS, BOTH), (trials.CUT, trials.CUT_BOTH)):
        worst = max(measured[name].truth - measured[name].bound for name in of_class)
        assert measured[both].truth - measured[both].bound == worst


# Failures and the exact test


def tally(failures: int, setting: str = "twonorm:200", claim: str = REFIT, runs: int = 500) -> Cell:
    pairs = [(0.1, 0.2)] * failures + [(0.3, 0.2)] * (runs - failures)
    (one,) = chosen(setting)
    found = count(one, claim, [{"claims": {claim: pair}} for pair in pairs])
    assert found is not None
    return found


def test_a_bound_fails_the_test_only_at_its_share_of_the_level() -> None:
    most = {n: int(binom.isf(0.01 / n, 500, 0.05)) for n in (1, 4)}  # P(more than this) is at most the level
    settings = ["twonorm:200", "ringnorm:200", "waveform:200", "crescents:200"]
    for n, limit in most.items():
        others = [tally(0, setting) for setting in settings[1:n]]
        assert find_failing([tally(limit), *others]) == []
        assert find_failing([tally(limit + 1), *others]) == [f"{REFIT} on twonorm:200"]
    assert most[4] > most[1]


def test_only_proven_bounds_are_tested() -> None:
    assert find_failing([tally(500, "tripled:60"), tally(500, "shifted:200"), tally(500, claim="l_ee")]) == []
    for claim in BY_CLASS:
        assert find_failing([tally(500, "shifted:200", claim)]) == [f"{claim} on shifted:200"]


# The job


def test_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JSON, its file, which is continued, and its tables."""
    in_this_process = lambda missing, workers: (bound_coverage.compute_run(*one) for one in missing)  # noqa: E731
    monkeypatch.setattr(bound_coverage, "computed", in_this_process)
    out = tmp_path / "runs.jsonl"
    common = {"workers": 1, "out": out}
    main(settings="eight:60", runs=1, as_json=False, **common)
    with out.open("a") as file:
        file.write('{"setting": "eight:60", "run": 1, "sec')  # a process that was killed
    capsys.readouterr()
    main(settings="eight:60,grouped:200", runs=2, as_json=True, **common)
    printed = json.loads(capsys.readouterr().out)
    found = {cell["name"]: cell for cell in printed["cells"]}
    assert {name for name in found if name.endswith("eight:60")} == {
        f"{claim} on eight:60" for claim in set(CLAIMS) - FEW
    }
    assert f"{REFIT} on grouped:200" in found
    assert {cell["runs"] for cell in found.values()} == {2}
    assert sorted(stored(out)) == [("eight:60", 0), ("eight:60", 1), ("grouped:200", 0), ("grouped:200", 1)]
    assert {c: tuple(v) for c, v in stored(out)["eight:60", 1]["claims"].items()} == trial(EIGHT, 1)

    def nothing_left(*_: object) -> None:
        raise AssertionError("a stored run is computed again")

    monkeypatch.setattr(bound_coverage, "compute_run", nothing_left)
    main(settings="eight:60", runs=2, as_json=False, **common)
    tables = capsys.readouterr().out
    assert tables.count("eight:60") == 2
    assert "0 false more often than they may be" in tables


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

"""The table of candidates: what of the files is checked, and that it says what the race came to."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from conftest import blobs
from forgery import CANDIDATES, PROBLEM, SERIAL, STUDY, TASK, check_refused, column, first

from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.records import candidates
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder

SEALED = {
    "another C": (first("C", 9.0), "C does not have the values"),
    "another path": (first("path", 1), "path does not have the values"),
    "another step": (first("step", -1), "step does not have the values"),
    "no k": (first("k_first", None), "k_first does not have the values"),
    "another last k": (first("k_last", 9), "k_last does not have the values"),
    "other rows in a fold": (first("n_select", 1), "n_select does not have the values"),
    "another order": (lambda t: t.take([*range(len(t))][::-1]), "in the order of the study"),
    "rows that are missing": (lambda t: t.slice(1), "one for each candidate"),
    "an unknown state": (first("state", "lucky"), "'lucky' is not known"),
    "no winner": (column("state", lambda v: ["tied"] * len(v)), "0 winners"),
    "winners alone": (column("state", lambda v: ["winner"] * len(v)), "l_ms has empty"),
    "a winner without its l_ee": (column("l_ee", lambda v: [None] * len(v)), "with an l_ee"),
    "a state is lost": (first("state", None), "state has empty cells"),
    "splits are lost": (first("splits", None), "splits has empty cells"),
    "a lower bound is lost": (first("lower_bound", None), "lower_bound has empty cells"),
    "a lower bound beyond 1": (first("lower_bound", 1e300), "lower_bound has values outside"),
    "a bound that is no number": (first("l_ms", float("nan")), "l_ms has values outside"),
    "an l_ee below 0": (first("l_ee", -0.5), "l_ee has values outside"),
}


@pytest.mark.parametrize("name", SEALED)
def test_what_readers_rely_on_is_checked_though_the_manifest_agrees(run: Path, name: str) -> None:
    check_refused(run, CANDIDATES, *SEALED[name])


def test_what_an_exhaustive_run_says_of_each_candidate_is_the_mean_of_its_bounds() -> None:
    study = STUDY.replace(exhaustive=True)
    result, criterion = run_job(Job(study, TASK), SERIAL), MeanBound()
    rows = result.candidates.to_pylist()
    assert len(rows) == 2 * 4
    assert all(row["splits"] == 3 and row["l_ms"] == row["lower_bound"] for row in rows)
    assert all(row["l_ee"] is not None for row in rows)
    assert min(row["l_ms"] for row in rows) == result.l_ms
    worst = criterion.value(np.array([[0, 8]]), 8)[0]
    assert all(criterion.least(row["n_select"]) <= row["l_ms"] <= worst for row in rows)


def test_fold_sizes_that_several_k_share_are_one_row_each(tmp_path: Path) -> None:
    study = STUDY.replace(k=None, n_splits=2)
    result = run_job(Job(study, blobs(24), tmp_path / "run"), SERIAL)
    sizes = {(row["k_first"], row["k_last"], row["n_select"]) for row in result.candidates.to_pylist()}
    assert sizes == {(3, 3, 8), (4, 4, 6), (5, 6, 4), (7, 8, 3), (9, 12, 2), (13, 24, 1)}
    assert [row["k_first"] for row in result.per_k()] == [3, 4, 5, 7, 9, 13]
    assert verify(tmp_path / "run").differences == []


def test_a_k_without_a_candidate_says_what_is_known(whole: Path) -> None:
    table, _ = RunFolder(whole).candidates(PROBLEM)
    rows = candidates.per_k(table, PROBLEM)
    assert [row["k_first"] for row in rows] == [3, 4]
    for row in rows:
        mine = table.filter(pc.equal(table["k_first"], row["k_first"]))
        assert row["lower_bound"] == min(mine["lower_bound"].to_pylist())
        if row["state"] == "winner":
            assert set(row["setting"]) == {"C", "gamma"}
        else:
            assert (row["state"], row["setting"], row["l_ms"]) == ("beaten", None, None)

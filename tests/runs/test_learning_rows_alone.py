"""Only learning rows decide what is selected and fitted: no cell of a held-out row plays a part."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray import Execution, Job, Study, load_run, verify
from ckcv_ray.errors import InputError
from ckcv_ray.runs import run as running
from ckcv_ray.runs.run import never, run_job, run_work
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, make_test_rows

SERIAL, SALT = Execution("serial"), "5a" * 32
DAY = np.datetime64("2026-01-01", "ms")
SMALL = {"k": 3, "n_splits": 3}
KINDS = {  # what the columns of a table hold
    "numbers": ("number", "number"),
    "gaps": ("number", "gaps"),
    "all": ("gaps", "category", "date"),
}
STUDIES = {  # the kind of table, and options
    "svm": ("numbers", {"C": (0.1, 10.0), "gamma": (0.1, 1.0)}),
    "linear": ("gaps", {"learner": "linear", "holdout_share": 0.33, "claim": "vote,refit"}),
    "several": ("all", {"learner": "naive_bayes,svm", "C": (0.1, 10.0), "gamma": (0.1, 1.0)}),
    "ordinal": ("all", {"learner": "linear,tree", "encode": "ordinal", "rare": 0.1}),
    "target": ("all", {"learner": "linear,tree", "encode": "target"}),
}


def a_table(kinds, seed, n=48):
    """A table whose classes differ a little in every column."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    columns = {f"x{i}": a_column(kind, y, rng) for i, kind in enumerate(kinds)}
    return pa.table(columns | {"y": np.array(["no", "yes"])[y]})


def a_column(kind, y, rng):
    n, x = len(y), rng.normal(size=len(y)) + y
    gaps = rng.random(n) < 0.2
    if kind == "category":
        return pa.array(np.array(list("abcdefgh"))[np.clip(rng.poisson(1 + 2 * y), 0, 7)])
    if kind == "date":
        return pa.array(DAY + (1e10 * x).astype("timedelta64[ms]"), mask=gaps)
    return pa.array(x, mask=gaps if kind == "gaps" else None)


def corrupted(table, kinds, rows, seed):
    """The table with other cells in some rows: other values, gaps, categories that occur nowhere else."""
    rng = np.random.default_rng(seed)
    for i, kind in enumerate(kinds):
        cells = table.column(i).to_pylist()
        for row in rows:
            other = cells[int(rng.integers(len(cells)))]
            new = {"category": "0 new", "date": (DAY + np.timedelta64(9, "D")).item()}.get(kind, 1e9)
            cells[row] = [None, other, new][int(rng.integers(3))]
        table = table.set_column(i, table.column_names[i], pa.array(cells, table.column(i).type))
    return table


def of(table, salt):
    """The task of a table changed in the held-out rows; the draws are those of the original."""
    return replace(Task.from_table(table, Roles("y")), salt=salt)


def of_arrays(X, y):
    """The task of numbers, whatever is changed in them, with the same draws."""
    return replace(Task.of(X, y), salt=SALT)


def run(study, task, out=None, test=None):
    return run_job(Job(study, task, out, test), SERIAL)


def check_same(result, other):
    """Check that the two results select and fit the same, in every bit."""
    learner = result.problem.learner
    assert learner == other.problem.learner
    assert result.study == other.study
    for name in ("setting", "k", "l_ms", "l_ee"):
        assert getattr(result.certificate, name) == getattr(other.certificate, name)
    assert result.candidates.equals(other.candidates)
    for kind in ("best", "refit"):
        ensembles = (getattr(one.models, kind).members for one in (result, other))
        for a, b in zip(*ensembles, strict=True):
            assert learner.codec.same(a.model, b.model)
            assert kind == "refit" or a.totals == b.totals
    assert result.task.schema == other.task.schema
    assert np.array_equal(result.task.X, other.task.X, equal_nan=True)


@pytest.mark.parametrize("name", STUDIES)
def test_no_cell_of_a_row_held_out_has_a_part_in_what_is_selected_and_fitted(name):
    kinds, options = KINDS[STUDIES[name][0]], STUDIES[name][1]
    study, table = Study.paper(**SMALL, certify="holdout", **options), a_table(kinds, seed=6)
    result = run(study, Task.from_table(table, Roles("y")))
    for seed in range(2):
        other = of(corrupted(table, kinds, result.problem.held, seed), result.task.salt)
        assert other.digest != result.problem.all_rows.digest
        check_same(result, run(study, other))


@pytest.mark.parametrize("name", ["linear", "target"])
def test_a_first_look_looks_at_no_row_held_out(name, monkeypatch):
    monkeypatch.setattr(running, "warm_up", lambda inputs: None)
    monkeypatch.setattr(running, "compute_apart", lambda _, timeout, make, *rest, seconds: make(*rest))
    kinds, options = KINDS[STUDIES[name][0]], STUDIES[name][1]
    study, table = Study.paper(**SMALL, certify="holdout", **options), a_table(kinds, seed=6)
    task = Task.from_table(table, Roles("y"))
    problem = Problem.of(study, task)
    other = Problem.of(study, of(corrupted(table, kinds, problem.held, 0), task.salt))
    found, again = (run_work(running.look(study, each, 60.0, None, never)) for each in (problem, other))
    assert other.run_id != problem.run_id
    assert found.run_id == again.run_id
    assert found.to_json()["entries"] == again.to_json()["entries"]


def one_gap(n=48):
    """Rows of numbers, the same rows with one gap, in a row held out, labels, and the rows held out."""
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + y[:, None]
    held = Problem.of(GAPPED, of_arrays(X, y)).held
    gapped = X.copy()
    gapped[held[0], 1] = np.nan
    return X, gapped, y, held


GAPPED = Study.paper(**SMALL, learner="linear", certify="holdout", claim="vote,refit")


def test_a_gap_in_one_row_held_out_is_filled_and_changes_no_model():
    X, gapped, y, held = one_gap()
    result, other = run(GAPPED, of_arrays(X, y)), run(GAPPED, of_arrays(gapped, y))
    check_same(result, other)
    assert other.problem.learner.name == "linear"
    assert other.task.schema.plain
    scored = other.problem.take_held_rows().X
    assert scored[0, 1] == np.median(np.delete(X, held, axis=0)[:, 1])
    assert np.array_equal(scored[1:], X[held][1:])
    filled = X.copy()
    filled[held[0], 1] = scored[0, 1]
    again = run(GAPPED, of_arrays(filled, y)).certificate.claims
    assert [claim.bound for claim in other.certificate.claims] == [claim.bound for claim in again]
    assert other.predict([gapped[held[0]]], by="refit") == other.predict(scored[:1], by="refit")
    with pytest.raises(InputError, match="empty cell"):
        result.predict([gapped[held[0]]], by="refit")


def test_a_column_that_is_empty_in_all_learning_rows_is_refused():
    X, _, y, held = one_gap()
    empty = np.full(len(y), np.nan)
    empty[held] = np.arange(len(held))
    with pytest.raises(InputError, match="column 'x2' is empty in every row that is learned from"):
        Problem.of(GAPPED, of_arrays(np.column_stack([X, empty]), y))


@pytest.mark.parametrize("kinds", ["numbers", "all"])
def test_a_folder_whose_held_out_rows_differ_from_the_others_is_read_and_verified(kinds, tmp_path):
    table = a_table(KINDS[kinds], seed=4)
    study = Study.paper(**SMALL, learner="tree", certify="holdout", claim="refit,vote")
    plain = Task.from_table(table, Roles("y"))
    other = corrupted(table, KINDS[kinds], Problem.of(study, plain).held, 0)
    task = of(other, plain.salt)
    test = make_test_rows(corrupted(table, KINDS[kinds], range(9), 2), task)
    result = run(study, task, tmp_path / "run", test)
    assert result.problem.data_digest != task.digest
    loaded = load_run(tmp_path / "run")
    assert loaded.certificate == result.certificate
    assert loaded.problem.run_id == result.run_id
    assert not verify(tmp_path / "run", rerun=True, test=test, execution=SERIAL).differences
    for by in ("refit", "full", "vote"):
        X = other.drop_columns("y")
        assert np.array_equal(loaded.predict(X, by), result.predict(X, by))


def test_test_rows_have_no_part_in_anything_and_are_scored_as_new_rows():
    kinds = KINDS["all"]
    table, study = a_table(kinds, seed=6), Study.paper(**SMALL, learner="tree", certify="holdout")
    task = Task.from_table(table, Roles("y"))
    tests = [corrupted(table, kinds, range(40), seed) for seed in (0, 1)]
    results = [run(study, task, test=make_test_rows(rows, task)) for rows in tests]
    check_same(*results)
    for result, rows in zip(results, tests, strict=True):
        X, y = result.task.rows_from(rows), make_test_rows(rows, task).y
        assert result.execution["test"]["error"] == np.mean(result.ensemble.predict(X)[0] != y)

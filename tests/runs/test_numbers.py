"""ckcv run on numbers: from the fit to the page, for every certification; stored, read, verified, forged."""

import numpy as np
import pyarrow as pa
import pytest
from finished import KINDS, SERIAL

from ckcv_ray import InputError, Study, TestRows, load_run, run, verify
from ckcv_ray.cli.report import fill_form
from ckcv_ray.core.schedule import Stage
from ckcv_ray.learners.ensemble import predict_numbers
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.runs.watch import watch
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task, make_test_rows

N = 120
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 3))
Y = 20 + X @ [1.0, 2.0, 3.0] + RNG.standard_t(2.5, N)
GROUPS = np.repeat(np.arange(N), np.random.default_rng(8).integers(1, 4, N))[:N]  # of one to three rows
BASE = {"clip": 4.0, "k": (3, 4), "n_splits": 3}
RIDGE = Study.of(learner="ridge", param={"alpha": (0.1, 1.0, 10.0)}, **BASE)
CERTIFIED = {
    "paper": RIDGE.replace(certify="paper"),
    "holdout": RIDGE.replace(certify="holdout", holdout_share=0.5, claim="refit,within:0.8"),
}
OF_GROUPS = {"paper": {}, "holdout": {"claim": "refit"}}


for certify, study in CERTIFIED.items():
    KINDS[f"{certify} of numbers"] = study, Task.of(X, Y, numbers=True)
    KINDS[f"{certify} of groups"] = study.replace(**OF_GROUPS[certify]), Task.of(X, Y, GROUPS, numbers=True)


def clipped(y, predicted):
    """The errors of rows as shares of the clip."""
    return np.minimum(np.abs(y - predicted), 4.0) / 4.0


def average(losses, groups):
    """The mean over groups of the mean of their rows."""
    return np.mean([losses[groups == g].mean() for g in np.unique(groups)])


@pytest.mark.parametrize("certify", CERTIFIED)
def test_a_group_counts_once_in_what_is_measured(certify, finished):
    """The errors of F*, of the model that is judged and of the constant, each computed group by group."""
    result = load_run(finished(f"{certify} of groups"))
    problem, certificate = result.problem, result.certificate
    assert certificate.groups["losses"] == certificate.numbers["losses"]
    assert all("new group's rows" in claim.statement for claim in certificate.claims)
    assert verify(finished(f"{certify} of groups"), rerun=True, execution=SERIAL).ok
    size = problem.sizes.index(problem.find_size(result.k))
    for member, loss in zip(result.ensemble.members, certificate.numbers["losses"], strict=True):
        train, scored = problem.rows(Stage.REFIT, size, member.split)
        groups = problem.task.row_units[scored]
        assert not set(problem.task.row_units[train]) & set(groups)
        losses = clipped(problem.task.y[scored], predict_numbers(member.model, problem.task.X[scored]))
        assert loss / problem.sizes[size].n_select == pytest.approx(average(losses, groups), abs=1e-5)
    for baseline, rows in zip(certificate.baselines, (problem.task, problem.take_held_rows()), strict=False):
        groups = rows.row_units
        assert baseline.error == pytest.approx(average(clipped(rows.y, baseline.value), groups), abs=1e-5)
    if problem.held is not None:
        held, first = problem.take_held_rows(), result.certificate.first
        losses = clipped(held.y, predict_numbers(result.models.refit.members[0].model, held.X))
        assert first.measured == pytest.approx(average(losses, held.row_units), abs=1e-5)


@pytest.mark.parametrize("certify", CERTIFIED)
def test_groups_of_one_row_are_rows(certify, monkeypatch):
    """The same splits, winner, bounds and errors, in every bit; such groups are refused elsewhere."""
    monkeypatch.setattr("ckcv_ray.tables.roles.Groups.check", lambda units: None)
    study = CERTIFIED[certify].replace(**OF_GROUPS[certify])
    rows, groups = (run(study, X, Y, groups=of, execution=SERIAL) for of in (None, np.arange(N)))
    for name in ("setting", "k", "l_ms", "l_ee", "error"):
        assert getattr(rows.certificate, name) == getattr(groups.certificate, name)
    bounds = [[claim.bound for claim in made.certificate.claims] for made in (rows, groups)]
    assert bounds[0] == bounds[1]


def test_the_mean_error_of_each_subgroup_is_claimed(tmp_path):
    rng, n = np.random.default_rng(5), 360
    rooms = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    place = [("north", "south", None)[i % 3] for i in range(n)]
    price = 20 + 3 * np.nan_to_num(rooms) + rng.normal(size=n)
    table = pa.table({"rooms": pa.array(rooms, mask=np.isnan(rooms)), "place": place, "price": price})
    task = Task.from_table(table, Roles("price", numbers=True))
    study = Study.of(learner="ridge", certify="holdout", holdout_share=0.5, subgroups="place,rooms:2", **BASE)
    result = run_job(Job(study, task, tmp_path / "run"), SERIAL)
    parts = load_run(tmp_path / "run").certificate.subgroups
    assert parts == result.certificate.subgroups
    held = result.problem.take_held_rows()
    predicted = predict_numbers(result.models.refit.members[0].model, held.X)
    losses = clipped(held.y, predicted)
    place = list(result.task.features).index("place")
    assert [part.subgroup for part in parts[:3]] == ["place = north", "place = south", "place missing"]
    masks = held.X[:, place] == 0, held.X[:, place] == 1, np.isnan(held.X[:, place])
    for part, rows in zip(parts, masks, strict=False):
        assert (str(part.quantity), part.rows, part.errors) == ("clipped:4", rows.sum(), 0)
        assert part.measured == pytest.approx(losses[rows].mean(), abs=1e-5)
        assert part.measured < part.bound < 1
        assert part.delta == pytest.approx(0.05 / 4 / 3)  # of refit and subgroups, then of two columns
    assert sum(part.rows for part in parts) == 2 * len(held.y)
    assert verify(tmp_path / "run", rerun=True, execution=SERIAL).ok


def test_an_interval_is_as_wide_as_its_claim_says(finished):
    result = load_run(finished("holdout of numbers"))
    (claim,) = [claim for claim in result.certificate.claims if str(claim.quantity) == "within:0.8"]
    low, high = result.predict_interval(X)
    assert np.allclose((low + high) / 2, result.predict(X))
    assert np.allclose(high - low, 2 * claim.bound)
    assert "error of 80 % of new rows at most" in result.claim_for(result.rule())
    with pytest.raises(InputError, match="no interval is proven for"):
        result.predict_interval(X, by="random", seed=1)
    with pytest.raises(InputError, match="no interval is proven for"):
        run(CERTIFIED["paper"], X, Y, execution=SERIAL).predict_interval(X)


def test_of_several_widths_that_of_most_rows_is_the_interval():
    study = RIDGE.replace(certify="holdout", holdout_share=0.5, claim="within:0.5,within:0.8")
    result = run(study, X, Y, execution=SERIAL)
    widths = [claim.bound for claim in result.certificate.claims if claim.certification == "holdout"]
    low, high = result.predict_interval(X[:1])
    assert (high - low)[0] == pytest.approx(2 * max(widths))


def test_every_rule_but_the_majority_predicts(finished):
    result = load_run(finished("holdout of numbers"))
    for by in ("auto", "refit", "full", "random"):
        assert result.predict(X[:5], by=by).shape == (5,)
    assert result.claim_for(result.rule("full")).endswith("that did not see the held-out rows")
    single = result.predictions(X[:5], result.rule("member:1"))
    assert single.label.tolist() == predict_numbers(result.ensemble.members[1].model, X[:5]).tolist()
    assert np.isnan([single.share, single.score]).all()
    with pytest.raises(InputError, match="by=vote is a majority of classes"):
        result.predict(X[:5], by="vote")


def test_what_is_for_classes_refuses_a_run_of_numbers(finished, tmp_path):
    result, table = (
        load_run(finished("holdout of numbers")),
        pa.table({f"x{i}": X[:, i] for i in range(3)} | {"target": Y}),
    )
    with pytest.raises(InputError, match="what is watched are errors of classes"):
        watch(finished("holdout of numbers"), table)
    with pytest.raises(InputError, match="these forms are about classifiers"):
        fill_form(finished("holdout of numbers"), "model-card", tmp_path / "card.md")
    with pytest.raises(InputError, match="test rows are for classes"):
        make_test_rows(table, result.task)
    with pytest.raises(InputError, match="test rows are for classes"):
        run_job(Job(CERTIFIED["paper"], result.task, test=TestRows(X, np.zeros(N, np.int32))), SERIAL)

"""Subgroups: every row is in one, delta is divided as the theory page says, and what cannot be is refused."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claimed import SMALL, read_again, run
from conftest import tell

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.quantity import MIN_OF_SUBGROUP
from ckcv_ray.core.bounds.binomial import clopper_pearson
from ckcv_ray.core.quantities import parse_subgroup
from ckcv_ray.reports.facts import facts
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import divide_rows


def make_patients(n: int = 240) -> Task:
    rng = np.random.default_rng(4)
    age = rng.normal(50, 10, size=n).round(1)
    age[::17] = np.nan
    ward = np.where(rng.random(n) < 0.02, "rare", rng.choice(["north", "south"], n))
    y = np.where(np.nan_to_num(age, nan=50.0) + rng.normal(0, 8, size=n) > 50, "sick", "well")
    columns = {"age": age, "ward": ward, "stage": rng.integers(1, 4, n), "y": y}
    return Task.from_table(pa.table(columns), Roles("y"))


def make_people(n: int, people: int, **roles: str) -> Task:
    i = np.arange(n)
    columns = {"x": i % 7.0, "who": [f"p{one}" for one in i % people], "y": i % 2}
    return Task.from_table(pa.table(columns), Roles("y", **roles))


def make_study(subgroups: str) -> Study:
    return SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5, subgroups=subgroups)


def code(values: Any) -> Task:
    columns = {"code": np.resize(values, 240), "x": np.arange(240) * 0.5, "y": np.arange(240) // 2 % 2}
    return Task.from_table(pa.table(columns), Roles("y"))


PATIENTS = make_patients()


@pytest.mark.parametrize(
    ("named", "task"),
    [
        *((named, PATIENTS) for named in ("age:2", "age:7", "ward")),
        ("code:3", code(5 + np.arange(40) * np.finfo(float).eps * 5)),  # neighbours
        ("code", code(["a" * 40 + tail + "a" * 40 for tail in ("north", "south")])),  # differ in the middle
    ],
)
def test_every_row_is_in_one_subgroup_and_their_names_differ(named: str, task: Task) -> None:
    parts = divide_rows(parse_subgroup(named), task, task.X)
    assert (sum(part.rows.astype(int) for part in parts) == 1).all()
    assert len({part.name for part in parts}) == len(parts) > 1


@pytest.mark.slow
def test_a_run_claims_its_subgroups_jointly() -> None:
    """Columns share half of delta equally, the other half is for the error of all rows."""
    result = run(make_study("ward,age:3"), PATIENTS)
    held = result.problem.take_held_rows()
    wrong = result.rule().predict(result.models, held.X).label != held.y
    for named in ("ward", "age:3"):
        failures = []
        for part in divide_rows(parse_subgroup(named), result.task, held.X):
            claims = [claim for claim in result.certificate.subgroups if claim.subgroup == part.name]
            assert [str(claim.quantity) for claim in claims] == ["error", "recall", "recall"]
            assert claims[0].rows == part.rows.sum() == claims[1].rows + claims[2].rows
            assert claims[0].errors == np.sum(wrong & part.rows)
            assert all((claim.bound is None) == (part.rows.sum() < MIN_OF_SUBGROUP) for claim in claims)
            for claim in claims:
                if claim.bound is not None and claim.rows:
                    assert claim.bound == clopper_pearson(claim.errors, claim.rows, claim.delta)
            failures += [sum(claim.delta for claim in claims)] * (claims[0].bound is not None)
        assert sum(failures) == pytest.approx(0.05 / 4)
    (table,) = (table for part in facts(result) for table in part.tables if table.title == "Subgroups")
    assert f"nothing: takes {MIN_OF_SUBGROUP} rows" in [row[-1] for row in table.rows]


def test_subgroups_that_are_all_small_claim_nothing() -> None:
    result = run(make_study("who"), make_people(80, 20))
    assert tell(result)["subgroups"].startswith("each has fewer than 10 held-out rows")
    values = json.loads(json.dumps(result.certificate.to_json()))
    assert read_again(values, result) == result.certificate
    for harm in ({"rows": None, "errors": None}, {"subgroup": None}, {"rows": 1000}):
        forged = [{**values["subgroups"][0], **harm}, *values["subgroups"][1:]]
        with pytest.raises(ValueError, match=r"^subgroups\.0\."):
            read_again(values | {"subgroups": forged}, result)


@pytest.mark.parametrize(
    ("named", "said", "task"),
    [
        ("y", "'y' is not a column that is learned from", PATIENTS),
        ("ward:2", "'ward' has 3 categories: name the column alone", PATIENTS),
        ("stage:5", "5 bins of 'stage' would have equal edges", PATIENTS),
        ("age:21", "is above 20, the maximum", PATIENTS),
        ("age,age:3", "names column 'age' twice", PATIENTS),
        ("who", r"\d+ categories: name the column alone, of at most 200", make_people(1200, 300)),
        ("x", r"^subgroups=x counts rows of a subgroup as independent", make_people(90, 30, group="who")),
    ],
)
def test_what_are_no_subgroups_is_refused(named: str, said: str, task: Task) -> None:
    with pytest.raises(InputError, match=said):
        Problem.of(make_study(named), task)

"""Subgroups: every row is in one, delta is divided as the theory page says, and what cannot be is refused."""

import json

import numpy as np
import pyarrow as pa
import pytest
from claimed import SMALL, read_again, run
from conftest import tell
from scipy.stats import binomtest

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.quantity import MIN_OF_SUBGROUP
from ckcv_ray.core.quantities import parse_subgroup
from ckcv_ray.reports.facts import facts
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import divide_rows


def make_task(n: int = 240) -> Task:
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


def study(subgroups: str, **options: str) -> Study:
    return SMALL.replace(k=(3, 5), certify="holdout", holdout_share=0.5, subgroups=subgroups, **options)


@pytest.mark.parametrize("named", ["age:2", "age:7", "ward"])
def test_every_row_is_in_one_subgroup(named):
    task = make_task()
    parts = divide_rows(parse_subgroup(named), task, task.X)
    assert (sum(part.rows.astype(int) for part in parts) == 1).all()
    assert len({part.name for part in parts}) == len(parts)


@pytest.mark.parametrize(
    ("named", "values"),
    [
        ("code:3", 5 + np.arange(40) * np.finfo(float).eps * 5),
        ("code", np.array(["a" * 40 + tail + "a" * 40 for tail in ("north", "south")])),
    ],
    ids=["neighbours", "names that differ in the middle"],
)
def test_subgroups_of_a_column_differ_in_their_names(named, values):
    n = 240
    columns = {"code": np.resize(values, n), "x": np.arange(n) * 0.5, "y": np.arange(n) // 2 % 2}
    task = Task.from_table(pa.table(columns), Roles("y"))
    parts = divide_rows(parse_subgroup(named), task, task.X)
    assert len({part.name for part in parts}) == len(parts) > 1


@pytest.mark.slow
def test_a_run_claims_its_subgroups_jointly(tmp_path):
    result = run(study("ward,age:3"), make_task(), tmp_path)
    assert verify(tmp_path).differences == []
    claims = result.certificate.subgroups
    held = result.problem.take_held_rows()
    wrong = result.rule().predict(result.models, held.X).label != held.y
    share = 0.05 / 2  # half for the error of all rows
    for column in ("ward", "age"):
        parts = divide_rows(parse_subgroup("age:3" if column == "age" else column), result.task, held.X)
        failures = []
        for part in parts:
            of_part = [claim for claim in claims if claim.subgroup == part.name]
            assert [str(claim.quantity) for claim in of_part] == ["error", "recall", "recall"]
            assert of_part[0].rows == part.rows.sum() == of_part[1].rows + of_part[2].rows
            assert of_part[0].errors == np.sum(wrong & part.rows)
            assert all((claim.bound is None) == (part.rows.sum() < MIN_OF_SUBGROUP) for claim in of_part)
            for claim in (claim for claim in of_part if claim.bound is not None and claim.rows):
                counted = binomtest(claim.errors, claim.rows, alternative="less")
                high = counted.proportion_ci(1 - claim.delta, "exact").high
                assert claim.bound == pytest.approx(high, rel=1e-9)
            failures += [sum(claim.delta for claim in of_part)] * (of_part[0].bound is not None)
        assert sum(failures) == pytest.approx(share / 2)  # of two columns
    (table,) = (table for part in facts(result) for table in part.tables if table.title == "Subgroups")
    assert f"nothing: takes {MIN_OF_SUBGROUP} rows" in [row[-1] for row in table.rows]


def test_subgroups_that_are_all_small_claim_nothing():
    result = run(study("who"), make_people(80, 20))
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
        ("y", "'y' is no column that is learned from", make_task()),
        ("ward:2", "'ward' has 3 categories: name the column alone", make_task()),
        ("stage:5", "5 bins of 'stage' would have equal edges", make_task()),
        ("age:21", "is above 20, the maximum", make_task()),
        ("age,age:3", "names column 'age' twice", make_task()),
        ("who", r"\d+ categories: name the column alone, of at most 200", make_people(1200, 300)),
        ("x", r"^subgroups=x counts rows of a subgroup as independent", make_people(90, 30, group="who")),
    ],
)
def test_what_are_no_subgroups_is_refused(named, said, task):
    with pytest.raises(InputError, match=said):
        Problem.of(study(named), task)

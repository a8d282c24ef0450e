"""Study and Execution: what is hashed, what is refused, and which fold sizes a study has."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from itertools import combinations, pairwise
from math import comb, inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray import study as studies
from ckcv_ray.errors import CKCVError, InputError
from ckcv_ray.study import Execution, Study, parse_folds, parse_grid, read_toml, run_id

DIGEST = "0" * 64

# One value for each field that differs from the default. A field added to Study needs its row here.
PERTURBED: dict[str, Any] = {
    "C": (1.0, 10.0),
    "gamma": (0.5,),
    "k": (3, 4, 5),
    "n_splits": 21,
    "delta": 0.1,
    "bound": "another",
    "seed": 1,
    "scaling": "none",
    "solver": "another",
    "tolerance": 1e-4,
    "precision": "another",
    "max_iter": 99,
    "protocol": "another",
    "report_k": (3,),
    "exhaustive": True,
    "resampling": "rotation",
    "holdout_share": 0.2,
    "claims": ("vote",),
    "outer_splits": 7,
}
PROTOCOL = {"holdout_share": "holdout", "claims": "holdout", "outer_splits": "nested"}


def base(name: str) -> Study:
    """A study on which the field of that name can be changed alone."""
    return Study(protocol=PROTOCOL.get(name, "paper"))


numbers = st.floats(1e-6, 1e6)
grids = st.lists(numbers, min_size=1, max_size=8).map(tuple)
folds = st.lists(st.integers(3, 60), min_size=1, max_size=8).map(tuple)
any_study = st.builds(
    Study,
    C=grids,
    gamma=grids,
    k=st.none() | folds,
    n_splits=st.integers(1, 10_000),
    delta=st.floats(1e-9, 1 - 1e-9),
    seed=st.integers(0, 10**30),
    scaling=st.sampled_from(["standard", "none"]),
    tolerance=st.floats(1e-9, 0.5),
    max_iter=st.integers(1, 10**9),
    report_k=folds | st.just(()),
    exhaustive=st.booleans(),
)


@pytest.fixture
def open_choices(monkeypatch):
    """Fields that know one name today know a second one here."""
    for name, allowed in studies.CHOICES.items():
        monkeypatch.setitem(studies.CHOICES, name, (*allowed, "another"))


# Identity


def test_the_table_of_perturbations_names_every_field():
    assert set(PERTURBED) == {field.name for field in fields(Study)}
    assert all(getattr(base(name), name) != value for name, value in PERTURBED.items())


@pytest.mark.usefixtures("open_choices")
def test_every_field_changes_the_run_id_and_no_two_alike():
    ids = [run_id(replace(base(name), **{name: value}), DIGEST) for name, value in PERTURBED.items()]
    bases = {run_id(base(name), DIGEST) for name in PERTURBED}
    assert len({*bases, *ids}) == len(PERTURBED) + 3


@pytest.mark.usefixtures("open_choices")
@pytest.mark.parametrize("name", PERTURBED)
def test_differences_names_the_one_field_that_differs(name):
    other = replace(base(name), **{name: PERTURBED[name]})
    (line,) = base(name).differences(other)
    assert line.startswith(f"{name}: ")
    assert not other.differences(other)


def test_the_data_change_the_run_id():
    assert run_id(Study(), DIGEST) != run_id(Study(), "1" + DIGEST[1:])


def test_the_run_id_is_the_sha256_of_canonical_json():
    """Written out by hand from the contract: sorted keys, no spaces, lists for tuples."""
    study = Study(C=(1, 10), gamma=(0.5,), k=(4, 3), delta=0.1, seed=7, scaling="none", report_k=(3,))
    text = (
        '{"data":"d","study":{"C":[1.0,10.0],"bound":"clopper_pearson","claims":[],"delta":0.1,'
        '"exhaustive":false,"gamma":[0.5],"holdout_share":null,"k":[3,4],"max_iter":10000000,'
        '"n_splits":20,"outer_splits":null,"precision":"float64",'
        f'"protocol":"paper","report_k":[3],"resampling":"complete","scaling":"none","seed":7,"solver":{json.dumps(study.solver)},'
        f'"tolerance":{study.tolerance!r}}}}}'
    )
    assert run_id(study, "d") == hashlib.sha256(text.encode()).hexdigest()[:12]


def test_the_run_id_does_not_depend_on_the_hash_seed():
    code = "from ckcv_ray.study import *; print(run_id(Study(k=(9, 3, 5), report_k=(5, 3)), '0' * 64))"
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": other}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == run_id(Study(k=(9, 3, 5), report_k=(5, 3)), DIGEST)


def test_the_same_question_in_other_types_has_the_same_id():
    plain = Study(C=(1.0, 10.0), gamma=(2.0,), k=(3, 4), delta=0.5, n_splits=5)
    other = Study(
        C=np.array([10, 1, 10]),
        gamma=[np.float32(2)],
        k=np.array([4, 3]),
        delta=np.float64(0.5),
        n_splits=np.int64(5),
    )
    assert other == plain
    assert run_id(other, DIGEST) == run_id(plain, DIGEST)
    assert hash(other) == hash(plain)


def test_the_run_id_is_12_hexadecimal_digits():
    identity = run_id(Study(), DIGEST)
    assert len(identity) == 12
    assert set(identity) <= set("0123456789abcdef")


def test_studies_and_executions_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Study().seed = 1
    with pytest.raises(FrozenInstanceError):
        Execution().workers = 1


# JSON


@given(any_study)
def test_a_study_survives_json(study):
    again = Study.from_json(json.loads(json.dumps(study.to_json(), allow_nan=False)))
    assert again == study
    assert run_id(again, DIGEST) == run_id(study, DIGEST)


def test_json_holds_every_field():
    assert set(Study().to_json()) == {field.name for field in fields(Study)}


def test_from_json_reads_what_people_write():
    values = {"C": "log:-2:4:13", "gamma": "log:-4:1:11", "k": "3:n", "report_k": "3,5"}
    assert Study.from_json(values) == Study(report_k=(3, 5))
    assert Study.from_json({"k": "5:7"}).k == (5, 6, 7)
    assert Study.from_json({}) == Study()


@pytest.mark.parametrize("name", ["scale", "c", "K", "alpha", ""])
def test_an_unknown_field_is_named_with_those_that_are_known(name):
    with pytest.raises(InputError) as refused:
        Study.from_json({"seed": 1, name: 1})
    text = str(refused.value)
    assert f"unknown field {name!r}" in text
    assert all(field.name in text for field in fields(Study))


def test_a_toml_file_gives_a_study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('C = [1, 10.0]\ngamma = "log:0:1:2"\nk = "3,4"\ndelta = 0.1\nexhaustive = true\n')
    expected = Study(C=(1, 10), gamma=(1, 10), k=(3, 4), delta=0.1, exhaustive=True)
    assert Study.from_json(read_toml(file)) == expected


@pytest.mark.parametrize("content", [b"C = [1", b"C = 1\nC = 2", b"\xff\xfe", None])
def test_a_toml_file_that_cannot_be_read_is_named(tmp_path, content):
    file = tmp_path / "odd.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=r"study file .*odd\.toml"):
        read_toml(file)


# Grids and folds


@given(grids)
def test_grids_are_sorted_unique_and_rounded_to_12_digits(values):
    kept = Study(C=values).C
    assert list(kept) == sorted({float(f"{value:.12g}") for value in values})
    for again in (kept, reversed(values), np.array(values)):
        assert kept == Study(C=again).C
    assert kept == Study(gamma=values).gamma


def test_a_difference_beyond_the_twelfth_digit_is_none():
    assert Study(C=(1.0, 1.0 + 1e-13)).C == (1.0,)
    assert len(Study(C=(1.0, 1.0 + 1e-11)).C) == 2
    assert Study(C=(0.1 + 0.2,)) == Study(C=(0.3,))


def test_the_default_grids_are_the_ones_the_manual_states():
    assert Study().C == Study(C=parse_grid("log:-2:4:13", "C")).C
    assert Study().gamma == Study(gamma=parse_grid("log:-4:1:11", "gamma")).gamma
    assert (len(Study().C), Study().C[0], Study().C[-1]) == (13, 0.01, 10_000.0)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", (1.0,)),
        ("0.1,1,10", (0.1, 1.0, 10.0)),
        (" 1 , 2e-3", (1.0, 0.002)),
        ("log:0:0:1", (1.0,)),
        ("log:-1:1:3", (0.1, 1.0, 10.0)),
        ("log:1:-1:3", (10.0, 1.0, 0.1)),
        ("log:0:0.5:2", (1.0, 10**0.5)),
    ],
)
def test_parse_grid(text, values):
    assert parse_grid(text, "C") == pytest.approx(values, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "1,", "1,,2", "a", "1;2", "1 2", "3:n"),
        *("log:", "log:1", "log:1:2", "log:1:2:3:4", "log:a:2:3", "log:0:1:x", "log:0:1:2.5"),
        *("log:1:2:0", "log:1:2:-3", "log:1:2:1", "log:0:1:10001", "log:0:400:3"),
    ],
)
def test_parse_grid_refuses_and_shows_both_forms(text):
    with pytest.raises(InputError) as refused:
        parse_grid(text, "gamma")
    told = str(refused.value)
    assert f"gamma={text!r}" in told
    assert "0.1,1,10" in told
    assert "log:-2:4:13" in told


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", (3,)),
        ("10,3,3", (10, 3, 3)),
        (" 3 , 4", (3, 4)),
        ("3:6", (3, 4, 5, 6)),
        ("7:7", (7,)),
        ("3:n", None),
    ],
)
def test_parse_folds(text, values):
    assert parse_folds(text, "k") == values


@pytest.mark.parametrize(
    "text", ["", ",", "3,", "3.5", "a", "n", "5:3", "3:", ":5", ":", "3:4:5", "-2:3", "3:N", "1:99999999"]
)
def test_parse_folds_refuses_and_shows_the_forms(text):
    with pytest.raises(InputError) as refused:
        parse_folds(text, "k")
    told = str(refused.value)
    assert f"k={text!r}" in told
    assert all(form in told for form in ("3,4,5,10", "3:20", "3:n"))


def test_report_k_cannot_be_all_and_the_message_does_not_offer_it():
    with pytest.raises(InputError) as refused:
        parse_folds("3:n", "report_k")
    told = str(refused.value)
    assert told.startswith("report_k='3:n'")
    assert "3:n for all" not in told


# What is refused

NOT_NUMBERS = [True, "1", None, [1], 1j, b"1"]
NOT_WHOLE = [*NOT_NUMBERS, 1.0, 2.5, nan]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["delta", "tolerance"])
def test_a_number_has_to_be_one(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*is not a number"):
        Study(**{name: value})


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
@pytest.mark.parametrize("name", ["n_splits", "seed", "max_iter"])
def test_a_whole_number_has_to_be_one(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*is not a whole number"):
        Study(**{name: value})


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["C", "gamma"])
def test_a_grid_holds_numbers(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*is not a number"):
        Study(**{name: [1.0, value]})


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
@pytest.mark.parametrize("name", ["k", "report_k"])
def test_folds_are_whole_numbers(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*is not a whole number"):
        Study(**{name: [3, value]})


@pytest.mark.parametrize("name", ["C", "gamma", "k", "report_k"])
@pytest.mark.parametrize("value", [1, 1.0, "1", "3:n"])
def test_a_list_has_to_be_one(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*is not a sequence"):
        Study(**{name: value})


@pytest.mark.parametrize("name", ["C", "gamma", "k"])
def test_a_grid_may_not_be_empty(name):
    with pytest.raises(InputError, match=rf"^{name} is empty"):
        Study(**{name: ()})


@pytest.mark.parametrize("value", [0, -0.0, -1, -1e-9, inf, -inf, nan])
@pytest.mark.parametrize("name", ["C", "gamma"])
def test_grid_values_are_positive_and_finite(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*positive and finite"):
        Study(**{name: [1.0, value]})


@pytest.mark.parametrize("name", ["C", "gamma", "delta", "tolerance"])
def test_a_number_too_large_for_float64_is_bad_input(name):
    huge = 10**400  # TOML and JSON know integers of any length
    with pytest.raises(InputError, match=name):
        Study(**{name: [huge] if name in ("C", "gamma") else huge})


@pytest.mark.parametrize("name", ["delta", "tolerance"])
@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.1, 1.5, inf, -inf, nan])
def test_delta_and_tolerance_lie_strictly_between_0_and_1(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*outside \(0, 1\)"):
        Study(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("n_splits", 0, 1), ("n_splits", -5, 1), ("seed", -1, 0), ("max_iter", 0, 1)],
)
def test_counts_have_a_least_value(name, value, least):
    with pytest.raises(InputError, match=rf"^{name}={value} is below {least}"):
        Study(**{name: value})
    assert getattr(Study(**{name: least}), name) == least


@pytest.mark.parametrize("name", ["bound", "scaling", "solver", "precision", "protocol"])
@pytest.mark.parametrize("value", ["unheard", "", None, 1, True, [], {}], ids=repr)
def test_names_are_chosen_from_those_there_are(name, value):
    with pytest.raises(InputError) as refused:
        Study(**{name: value})
    told = str(refused.value)
    assert told.startswith(f"{name}={value!r} is not known")
    assert all(choice in told for choice in studies.CHOICES[name])


@pytest.mark.parametrize("value", [0, 1, "yes", "true", None], ids=repr)
def test_exhaustive_is_true_or_false(value):
    with pytest.raises(InputError, match=r"^exhaustive=.*true or false"):
        Study(exhaustive=value)


def test_a_refusal_is_ours_and_a_value_error():
    assert issubclass(InputError, CKCVError)
    with pytest.raises(ValueError, match="seed=-1"):
        Study(seed=-1)


# Rows


@pytest.mark.parametrize("n", [6, 7, 30])
def test_3_to_n_has_one_canonical_form(n):
    listed = Study(k=range(3, n + 1))
    assert listed.for_rows(n) == Study().for_rows(n) == Study()
    assert run_id(listed.for_rows(n), DIGEST) == run_id(Study(), DIGEST)
    assert listed.for_rows(n + 1).k == tuple(range(3, n + 1))


@given(any_study, st.integers(60, 80))
def test_for_rows_changes_nothing_the_second_time(study, n):
    canonical = replace(study, report_k=()).for_rows(n)
    assert canonical.for_rows(n) == canonical
    assert canonical.sizes(n) == replace(study, report_k=()).sizes(n)


@pytest.mark.parametrize("name", ["k", "report_k"])
@pytest.mark.parametrize("k", [0, 1, 2, 401, 10**6])
def test_k_lies_between_3_and_the_number_of_rows(name, k):
    values = {"k": (3, k)} if name == "k" else {"report_k": (k,)}
    with pytest.raises(InputError) as refused:
        Study(**values).for_rows(400)
    assert str(refused.value) == f"{name}={k} is outside 3..400 (the table has 400 rows)"


def test_the_ends_of_the_range_of_k_are_allowed():
    assert Study(k=(3, 400), report_k=(400,)).for_rows(400).k == (3, 400)


def test_report_k_has_to_be_computed():
    with pytest.raises(InputError, match=r"report_k=5 is not among k=3,4: add it"):
        Study(k=(3, 4), report_k=(3, 5)).for_rows(400)
    assert Study(report_k=(5,)).for_rows(400).report_k == (5,)


# Sizes


def test_400_rows_have_398_values_of_k_and_37_sizes():
    sizes = Study().sizes(400)
    assert len(sizes) == 37
    assert sum(len(size.k_values) for size in sizes) == 398


@given(st.integers(6, 300), st.none() | st.sets(st.integers(3, 300), min_size=1), st.integers(1, 1000))
def test_sizes_partition_the_values_of_k(n, asked, n_splits):
    ks = None if asked is None else tuple(k for k in asked if k <= n) or (3,)
    sizes = Study(k=ks, n_splits=n_splits).sizes(n)
    every = sorted(k for size in sizes for k in size.k_values)
    assert every == sorted(ks or range(3, n + 1))
    for size in sizes:
        assert size.k == min(size.k_values)
        assert {n // k for k in size.k_values} == {size.n_select}
        assert size.n_train == n - 2 * size.n_select >= 1
    assert all(a.n_select > b.n_select for a, b in pairwise(sizes))


@pytest.mark.parametrize(("n", "k"), [(6, 3), (6, 4), (7, 3), (9, 9)])
def test_splits_are_all_there_are_where_there_are_fewer(n, k):
    m = n // k
    there_are = sum(1 for a in combinations(range(n), m) for _ in combinations(set(range(n)) - set(a), m))
    assert there_are == comb(n, m) * comb(n - m, m)
    for asked in (1, there_are - 1, there_are, there_are + 1, 10**6):
        assert Study(k=(k,), n_splits=asked).sizes(n)[0].n_splits == min(asked, there_are)


# Execution


@pytest.mark.parametrize("backend", ["dask", "", "Ray", None, 1])
def test_the_backend_is_one_of_three(backend):
    with pytest.raises(InputError, match=r"^backend=.*auto, ray, serial"):
        Execution(backend=backend)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True, nan], ids=repr)
def test_workers_are_counted_from_1(workers):
    with pytest.raises(InputError, match=r"^workers="):
        Execution(workers=workers)


@pytest.mark.parametrize(
    ("name", "value"), [("workers", 2), ("address", "auto"), ("address", "10.0.0.1:6379")]
)
def test_serial_has_neither_workers_nor_an_address(name, value):
    with pytest.raises(InputError, match=rf"^{name}=.*ray backend"):
        Execution("serial", **{name: value})


def test_what_an_execution_may_be():
    assert Execution() == Execution("auto", None, None)
    assert Execution("serial", 1).workers == 1
    assert Execution("ray", 3, "auto").address == "auto"


@settings(max_examples=25)
@given(any_study)
def test_nothing_of_an_execution_is_part_of_a_study(study):
    assert not {field.name for field in fields(Execution)} & set(study.to_json())


def test_a_study_file_may_speak_as_the_command_line_does(tmp_path):
    (tmp_path / "a.toml").write_text(
        'C = 1\nk = 5\nn-splits = 7\nscale = "none"\ncertify = "holdout"\nclaim = "vote,random"'
    )
    found = Study.from_json(read_toml(tmp_path / "a.toml"))
    assert found == Study(
        C=(1.0,), k=(5,), n_splits=7, scaling="none", protocol="holdout", claims=("vote", "random")
    )
    (tmp_path / "a.toml").write_text('scale = "none"\nscaling = "none"')
    with pytest.raises(InputError, match="two of scale, scaling mean the same"):
        read_toml(tmp_path / "a.toml")


def test_what_does_not_go_with_the_rows_of_an_inner_selection_is_told_so():
    with pytest.raises(InputError, match=r"selecting inside 40 of the 60 rows \(nested\): k=41 is outside 3"):
        Study(k=tuple(range(3, 51)), protocol="nested").for_rows(60)

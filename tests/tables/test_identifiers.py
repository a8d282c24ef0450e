"""Columns that identify: numbers of rows, names of groups, names that would become one; and weights."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.errors import InputError, write_option
from ckcv_ray.tables.columns import DeclaredTypes, Schema
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.questions import find_repeats, list_row_numbers
from ckcv_ray.tables.roles import (
    UNWEIGHTED,
    ClassTarget,
    Roles,
    Units,
    ask_about_groups,
    is_name_of_groups,
    is_row_number,
)
from ckcv_ray.tables.task import Task

N = 240
RNG = np.random.default_rng(np.random.SeedSequence(32))
NOISE = RNG.normal(size=N)
SORTED = np.repeat([0, 1], N // 2)  # labels
SHUFFLED = RNG.permutation(N)


def table(**more: object) -> pa.Table:
    return pa.table({"noise": NOISE, **more, "y": SORTED})


def ask(values: object, name: str = "value") -> str:
    return ask_about_groups(pa.table({name: values}), ())


def draw_names(n_names: int, n: int, most: int) -> np.ndarray:
    """Draw names as whole numbers, of which n rows have each at least once."""
    names = RNG.choice(most, n_names, replace=False)
    return RNG.permutation(np.concatenate([names, RNG.choice(names, n - n_names)]))


ROWS = np.arange(N)
NUMBERED = [
    *((name, SHUFFLED) for name in ("rownames", "Unnamed: 0", "patient_id")),
    *(("id", names) for names in (np.arange(6), np.cumsum(1 + RNG.integers(0, 50, N)))),
    ("x", ROWS),
    ("whatever", ROWS + 1),
    ("", SHUFFLED + 7),
    ("dose", np.arange(20)),
]
MEASURED = [
    *(("x", values) for values in (SHUFFLED, 2 * ROWS, ROWS + 2, ROWS[::-1], ROWS + 0.5)),
    *(("x", np.append(ROWS[:-1], last)) for last in (np.nan, 0)),
    *((name, ROWS + first) for name, first in (("Time", 0), ("day_of_year", 1), ("t", 1), ("year", 1785))),
    *(("id", names) for names in (np.zeros(1), RNG.integers(0, 20, N))),
    ("patient_id", RNG.permutation(9 * N)[:N]),
    ("dose", np.arange(19)),  # few rows may be numbered by chance
]


@pytest.mark.parametrize(("columns", "expected"), [(NUMBERED, True), (MEASURED, False)])
def test_some_columns_number_the_rows_and_others_may_measure(columns: list[Any], expected: bool) -> None:
    for name, values in columns:
        assert is_row_number(np.asarray(values, np.float64), name) == expected, (name, values)


def test_a_column_that_numbers_the_rows_is_not_learned_from_unless_it_is_named() -> None:
    numbered = table(id=SHUFFLED)
    task = Task.from_table(numbered, Roles("y"))
    assert (task.features, task.row_numbers) == (("noise",), ("id",))
    assert task.digest == replace(Task.from_table(table()), salt=task.salt).digest
    (said,) = list_row_numbers(task.row_numbers)
    assert "numbers the rows and is not learned from; --features names it" in said
    meant = Task.from_table(numbered, Roles("y", ["noise", "id"]))
    assert (meant.features, meant.row_numbers) == (("noise", "id"), ())
    assert Task.from_table(numbered, Roles("y"), DeclaredTypes(numeric=["id"])).features == ("noise", "id")
    restored = Task.restore(meant.columns(), Roles("y"), meant.schema, salt=meant.salt)
    assert (restored.digest, restored.features) == (meant.digest, meant.features)


VISITS = np.repeat(np.arange(1, N + 1), [1, 3, 1] * (N // 3))[:N]
SPARSE = draw_names(645, 699, 10_000_000)
ASKED_ABOUT: dict[str, Any] = {  # columns that look like names, none of which is called so
    "numbers, wide apart": SPARSE,
    "the same, floating": SPARSE.astype(float),
    "text": [f"P{name:07d}" for name in SPARSE],
    "text of a dictionary": pa.array([f"P{name}" for name in SPARSE]).dictionary_encode(),
    "numbers in order": VISITS,
    "pairs": np.repeat(np.arange(50), 2),
}
M = 2000
INCOME = RNG.lognormal(10, 0.5, M)
DAYS = np.datetime64("2020-01-01") + RNG.integers(0, M, M)
MEASUREMENTS: dict[str, Any] = {  # columns that are no names, though many values repeat in several
    "prices in euros": RNG.lognormal(8, 0.6, M).round(),
    "rounded incomes": (INCOME / 100).round() * 100,
    "incomes, some rounded": np.where(RNG.random(M) < 0.5, INCOME.round(), (INCOME / 500).round() * 500),
    "cholesterol": RNG.normal(240, 50, 300).round(),
    "uniform": RNG.integers(0, M, M),
    "uniform, sorted": np.sort(RNG.integers(0, M, M)),
    "no repeats": RNG.permutation(10 * M)[:M],
    "one value for none": np.where(RNG.random(M) < 0.3, 0, RNG.permutation(1000 * M)[:M]),
    "few repeats": np.append(RNG.permutation(1000 * M)[: M - 20], np.repeat(7, 20)),
    "fractions": np.repeat(RNG.normal(size=M // 2), 2),
    "a gap": [None, *np.repeat(RNG.permutation(1000 * M)[: M // 2], 2).tolist()],
    "few values": np.repeat(RNG.permutation(1000 * M)[:19], 2),
    "days as text": DAYS.astype(str).tolist(),
    "amounts as text": [f"${amount:,.2f}" for amount in np.repeat(RNG.normal(size=M // 2) ** 2, 2)],
    "numbers as text, some not": ["none"] * 9 + [f"{v:.6f}" for v in np.repeat(INCOME[: M // 2], 2)],
    "forms that may be read in two ways": [f"{v:,}" for v in np.repeat(1000 + np.arange(500), 2)],
    "truth": RNG.random(M) < 0.5,
}


@pytest.mark.parametrize("kind", [*ASKED_ABOUT, *MEASUREMENTS])
def test_many_values_of_which_some_repeat_are_asked_about_whatever_the_name(kind: str) -> None:
    values = (ASKED_ABOUT | MEASUREMENTS)[kind]
    distinct = len(set(pa.array(values).to_pylist()))
    said = f"column 'value' repeats: {distinct:,} values in {len(values):,} rows. If"
    assert ask(values).partition(" rows of")[0] == (said if kind in ASKED_ABOUT else "")


def test_few_values_of_many_rows_are_no_names_whatever_the_name() -> None:
    asked = (np.arange(700) % 7, np.arange(944) % 19, np.arange(9440) % 20, SPARSE)
    assert all(ask(values, "id") for values in asked)
    others = (np.arange(944) % 7, np.arange(9440) % 19, draw_names(695, 699, 10_000_000), np.arange(0))
    assert not any(ask(values, "id") for values in others)


PRINTABLE = st.characters(exclude_categories=("C", "Zl", "Zp"), codec="utf-8")


@given(st.text(PRINTABLE, min_size=1, max_size=80), st.sampled_from(["group", "id", "weight", "target"]))
def test_an_option_of_one_column_can_be_pasted(name: str, option: str) -> None:
    words = shlex.split(write_option(option, name))
    assert words in ([f"--{option}", name], [f"--{option}={name}"])
    assert not words[-1].startswith("-") or len(words) == 1


PAIRS = [("01", "1"), ("1.0", "1"), ("1e3", "1000"), ("+7", "7"), ("-0", "0"), ("true", "TRUE")]
MOMENTS = ("2024-01-01 10:00", "2024-01-01 10:00:00")


def write(path: Path, cells: list[str], name: str = "y") -> Path:
    """Write a table with a column of these cells, by turns, and the others that a table has."""
    columns = {"x": [str(2 * i) for i in range(24)], "y": ["0", "2"] * 12}
    columns |= {name: [cells[i % len(cells)] for i in range(24)]}
    lines = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(line) for line in lines)]) + "\n")
    return path


@pytest.mark.parametrize("pair", [*PAIRS, MOMENTS], ids=str)
def test_two_names_do_not_become_one_group_or_category(tmp_path: Path, pair: tuple[str, str]) -> None:
    others = {"true": ["false"], "2024-01-01 10:00": [f"2024-02-0{i} 10:00" for i in range(1, 7)]}
    source = write(tmp_path / "a.csv", [*pair, *others.get(pair[0], map(str, range(10, 16)))], "code")
    for asked in ({"group": "code"}, {"asked": DeclaredTypes(categorical=["code"])}):
        with pytest.raises(InputError, match="column 'code' has") as refused:
            read_task(source, "y", **asked)
        assert all(repr(text) in str(refused.value) for text in pair)


LONG = [9_300_000_000_000_000_000, 1_300_000_000_000_000_000, 93 * 10**30]


@pytest.mark.parametrize("first", LONG)
def test_names_of_many_digits_are_told_apart_to_the_last_one(tmp_path: Path, first: int) -> None:
    """Doubles would make one of a thousand of them."""
    names = [str(first + i) for i in range(8)]
    source = write(tmp_path / "a.csv", names, "code")
    task = read_task(source, "y", group="code")[0]
    assert task.row_units.tolist() == [i % 8 for i in range(24)]
    task = read_task(source, "y", asked=DeclaredTypes(categorical=["code"]))[0]
    assert task.schema[1].levels == tuple(names)
    assert np.array_equal(task.rows_from(read(source).learn), task.X)
    typed = pa.table({"x": np.arange(0, 48, 2), "code": pa.array(names * 3).cast(pa.decimal128(38, 0))})
    assert np.array_equal(task.rows_from(typed), task.X)
    labels = read_task(write(tmp_path / "b.csv", names[:2]), "y")[0]
    assert [int(label) for label in labels.classes] == [first, first + 1]
    with pytest.raises(InputError, match=f"'code' has '{first}' and '0{first}'"):
        read_task(write(tmp_path / "c.csv", [*names, f"0{first}"], "code"), "y", group="code")


DRAWS = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(8), 3)
X = DRAWS.normal(size=(24, 2))
Y = np.arange(24) % 2
TASK = Task.of(X, Y, groups=GROUPS)
TEXT = [f"patient {g}" for g in GROUPS]


def columns(**more: object) -> pa.Table:
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, **more})


def ids(values: object) -> Task:
    return Task.from_table(columns(id=values), Roles(group="id"))


def test_the_spelling_of_a_group_has_no_effect() -> None:
    spellings = [
        GROUPS,
        900 - GROUPS,
        GROUPS.astype(float),
        TEXT,
        [f"{' ' * (i % 2)}{text}{' ' * (i % 3)}" for i, text in enumerate(TEXT)],
        pa.array(TEXT).dictionary_encode(),
        pa.chunked_array([TEXT[:7], TEXT[7:]]),
        np.datetime64("2020-01-01") + GROUPS,
    ]
    tasks = [ids(spelling) for spelling in spellings]
    assert len({task.digest for task in tasks}) == 1
    for task in tasks:
        assert np.array_equal(task.row_units, GROUPS)
        assert (task.n, task.n_units, task.units.name, task.features) == (24, 8, "id", ("a", "b"))
    doubled = pa.DictionaryArray.from_arrays(GROUPS % 4 + 4 * (np.arange(24) % 2), ["a", "b", "c", "d"] * 2)
    assert Task.restore(columns(id=doubled), Roles(group="id"), None).n_units == 4


def test_rows_are_equal_in_every_one_of_many_columns() -> None:
    """They are numbered some columns at a time."""
    rows = np.zeros((4, 20)) + 0.5
    rows[1, 19], rows[2, 0] = 1.5, 1.5
    schema, y = Schema.of_numbers([f"x{i}" for i in range(20)]), np.array([0, 0, 1, 0])
    assert find_repeats(Task(rows, y, ClassTarget("y", (0, 1)), schema, Units(4))).rows == 2


CENTER, VISITOR = [f"c {g % 2}" for g in GROUPS], GROUPS // 2  # which agree in the rows of a group


TOGETHER = ["center,id", " center, id", '"center",id', ["center", "id"], ("center", "id")]


@pytest.mark.parametrize("group", TOGETHER, ids=repr)
def test_rows_belong_together_that_agree_in_several_columns(group: object) -> None:
    table = columns(center=CENTER, id=VISITOR)
    task = Task.from_table(table, Roles(group=group))
    assert np.array_equal(task.row_units, GROUPS)
    assert (task.units.name, task.features, task.units.question) == ("center,id", ("a", "b"), "")
    assert task.salt == Task.from_table(columns()).salt == task.make_salt(table)
    assert task.digest == Task.from_table(table, Roles(group="center,id")).digest
    stored = Task.restore(task.columns(), Roles("y", group=task.units.name), None, salt=task.salt)
    assert stored.digest == task.digest


def test_a_name_with_a_comma_is_that_of_a_single_column() -> None:
    table = columns(**{"center,id": TEXT, "id": VISITOR})
    for group in ("center,id", '"center,id"', ["center,id"]):
        task = Task.from_table(table, Roles(group=group, drop=["id"]))
        assert (task.units.name, task.n_units, task.features) == ("center,id", 8, ("a", "b"))
    both = Task.from_table(table, Roles(group='"center,id",id'))
    assert both.units.name == '"center,id",id'
    assert np.array_equal(both.row_units, GROUPS)


GROUP_WORDS = "id ID patient Patient_ID patientId subject subject_no customerNumber patientid id_person pid"
OTHER_WORDS = "age patient_age family_size account_balance grid humid number x0 µ"


def test_names_that_look_like_groups() -> None:
    assert all(map(is_name_of_groups, [*GROUP_WORDS.split(), "household", "userid", "Document No"]))
    assert not any(map(is_name_of_groups, [*OTHER_WORDS.split(), ""]))


def test_a_column_that_looks_like_groups_is_asked_about_once() -> None:
    table = columns(patient_id=GROUPS, subject=GROUPS)
    said = (
        "column 'patient_id' repeats: 8 values in 24 rows. If rows of one value belong together, such as "
        "visits of one patient, say --group patient_id: without it nothing here is proven."
    )
    assert Task.from_table(table).units.question == said
    assert Task.from_table(table, Roles(drop=["patient_id"])).units.question == said
    assert Task.from_table(table, Roles(features=["a", "b"])).units.question == said
    assert Task.from_table(columns(patient_id=TEXT), Roles(drop=["patient_id"])).units.question == said
    assert Task.from_table(table, Roles(group="subject")).units.question == ""
    assert Task.from_table(table).digest == Task.from_table(table, source="elsewhere").digest


WEIGHTS = DRAWS.uniform(0.5, 3.0, 24)
WEIGHTED = Task.of(X, Y, sample_weight=WEIGHTS)


def test_groups_and_weights_are_part_of_the_data_and_kept_with_it() -> None:
    rows = np.array([3, 3, 7, *range(10, 20)])
    part = WEIGHTED.take_part(rows)
    assert np.array_equal(part.weighting.named, WEIGHTS[rows])
    plain, renamed = Task.of(X, Y), Task.from_table(columns(who=TEXT), Roles(group="who"))
    others = [Task.of(X, Y, groups=np.roll(GROUPS, 1)), Task.of(X, Y, sample_weight=2 * WEIGHTS)]
    parts = [TASK.take_part(np.arange(3, 12)), *(task.without(np.arange(6)) for task in (TASK, WEIGHTED))]
    tasks = [plain, renamed, TASK, ids(TEXT), WEIGHTED, *others, *parts, part]
    assert len({task.digest for task in tasks}) == len(tasks)
    for task in tasks:
        roles = Roles(task.target.name, group=task.units.name, weight=task.weighting.column)
        again = Task.restore(task.columns(), roles, None, salt=task.salt)
        assert again.digest == task.digest
        assert np.array_equal(again.row_units, task.row_units)
    assert TASK.units.rows(np.array([1, 0, 1])).tolist() == [0, 1, 2, 3, 3, 4, 4, 5, 5]
    assert (plain.units.independent, plain.units.name, plain.n_units) == (True, None, 24)
    assert (plain.weighting, plain.weighting.describe()) == (UNWEIGHTED, "")
    assert "'weight'" in WEIGHTED.weighting.describe()


@pytest.mark.parametrize("form", ["{}", "{}.0", "{},00"])
def test_a_column_of_weights_is_read_in_any_form_and_is_no_feature(form: str) -> None:
    task = Task.from_table(columns(w=[form.format(w) for w in range(1, 25)]), Roles(weight="w"))
    assert task.weighting.named is not None
    assert task.weighting.named.tolist() == list(range(1, 25))
    assert (task.weighting.column, task.features, task.units.question) == ("w", ("a", "b"), "")


NO_GROUPS = [
    (
        [None, *TEXT[1:]],
        r"'g', .*, has empty cells in 1 of 24 rows, the first in row 1: .* leave these rows out",
    ),
    ([*GROUPS[:-1].astype(float), np.nan], "in 1 of 24 rows, the first in row 24"),
    ([[0]] * 24, "'g' holds list.*, which cannot be read: name another column"),
    (GROUPS % 5, "'g' makes 5 groups of 24 rows: at least 6"),
    (np.arange(24), "'g' makes 24 groups of 24 rows: .* leave --group out"),
]
NO_WEIGHTS = [
    ([0.0, *WEIGHTS[1:]], "has 0 in row 1: weights are positive"),
    ([*WEIGHTS[1:], np.inf], "has inf in row 24"),
    ([1e-200, *WEIGHTS[1:]], "from 1e-150 to 1e"),
    ([None, None, *WEIGHTS[2:]], "has empty cells in 2 of 24 rows, the first in row 1"),
    ([*map(str, WEIGHTS[1:]), "much"], "has what is no number, such as 'much' in row 24"),
    (["much"] * 24, "has type string, such as 'much': name a column of numbers"),
    (["1,250"] * 24, "may be that of decimals or of thousands: say --thousands ,"),
]
NO_ROLES: list[tuple[dict[str, object], str]] = [
    ({"group": "y"}, "'y' cannot be --group and --target: name another"),
    ({"group": 3}, "group=3 is not the name of a column"),
    ({"group": "center,who"}, "there is no column 'who' for --group"),
    ({"group": "center,a"}, "'center,a' makes 24 groups of 24 rows"),
    ({"group": []}, "group is empty"),
    ({"group": ["center", "b"]}, "a column is named 'center,b', as the groups by these .*: rename it"),
    ({"weight": "y"}, "'y' cannot be --weight and --target"),
    ({"weight": "w", "features": ["a", "w"]}, "'w' cannot be --weight and --features"),
    ({"weight": "g", "group": "g"}, "'g' cannot be --weight and --group"),
]
REFUSED = [
    *(({"g": values}, {"group": "g"}, said) for values, said in NO_GROUPS),
    *(({"w": values}, {"weight": "w"}, said) for values, said in NO_WEIGHTS),
    *(({"g": GROUPS}, roles, said) for roles, said in NO_ROLES),
]


@pytest.mark.parametrize(("more", "roles", "said"), REFUSED)
def test_columns_that_cannot_name_groups_or_weigh_rows(more, roles, said):
    known = {"center": CENTER, "id": VISITOR, "g": GROUPS, "w": WEIGHTS, "center,b": X[:, 0]}
    with pytest.raises(InputError, match=said):
        Task.from_table(columns(**known | more), Roles("y", **roles))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"groups": GROUPS[:-1]}, r"groups has shape \(23,\): expected \(24,\)"),
        ({"groups": [1, "a"] * 11 + [None, object()]}, "groups cannot be read as a column"),
        ({"sample_weight": WEIGHTS[:3]}, "sample_weight has shape"),
    ],
)
def test_arrays_that_are_no_groups_or_weights(arrays: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Task.of(X, Y, **arrays)

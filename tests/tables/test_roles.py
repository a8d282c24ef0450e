"""Columns that identify, group or weigh rows, names that would become one, and what gives a target away."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import DeclaredTypes, Schema
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.questions import find_giveaways, find_repeats, list_row_numbers, survey
from ckcv_ray.tables.roles import (
    UNWEIGHTED,
    ClassTarget,
    Roles,
    Units,
    ask_about_groups,
    is_name_of_groups,
    is_row_number,
)
from ckcv_ray.tables.task import Task, join_copies

N = 240
RNG = np.random.default_rng(np.random.SeedSequence(32))
NOISE = RNG.normal(size=N)
SORTED = np.repeat([0, 1], N // 2)  # labels
SHUFFLED = RNG.permutation(N)


def table(**more: object) -> pa.Table:
    return pa.table({"noise": NOISE, **more, "y": SORTED})


def ask(values: object, name: str = "value") -> str:
    return ask_about_groups(join_copies(pa.table({name: values})), ())


def draw_names(n_names: int, n: int, most: int) -> np.ndarray:
    """Draw names as whole numbers for n rows, each at least once."""
    names = RNG.choice(most, n_names, replace=False)
    return RNG.permutation(np.concatenate([names, RNG.choice(names, n - n_names)]))


ROWS = np.arange(N)
NUMBERED = [
    *((name, SHUFFLED) for name in ("rownames", "patient_id")),
    *(("x", ROWS), ("whatever", ROWS + 1), ("", SHUFFLED + 7), ("dose", np.arange(20))),
    *(("id", names) for names in (np.arange(6), np.cumsum(1 + RNG.integers(0, 50, N)))),
]
MEASURED = [
    *(("x", values) for values in (SHUFFLED, 2 * ROWS, ROWS + 2, ROWS + 0.5, np.append(ROWS[:-1], np.nan))),
    *((name, ROWS + first) for name, first in (("Time", 0), ("day_of_year", 1), ("year", 1785))),
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


SPARSE = draw_names(645, 699, 10_000_000)
ASKED_ABOUT: dict[str, Any] = {  # columns that look like names, none of which is called so
    "numbers, wide apart": SPARSE,
    "text of a dictionary": pa.array([f"P{name}" for name in SPARSE]).dictionary_encode(),
    "numbers in order": np.repeat(np.arange(1, N + 1), [1, 3, 1] * (N // 3))[:N],
}
M = 2000
INCOME = RNG.lognormal(10, 0.5, M)
MEASUREMENTS: dict[str, Any] = {  # columns that are no names, though many values repeat in several
    "incomes, some rounded": np.where(RNG.random(M) < 0.5, INCOME.round(), (INCOME / 500).round() * 500),
    "no repeats": RNG.permutation(10 * M)[:M],
    "days as text": (np.datetime64("2020-01-01") + RNG.integers(0, M, M)).astype(str).tolist(),
    "amounts as text": [f"${amount:,.2f}" for amount in np.repeat(RNG.normal(size=M // 2) ** 2, 2)],
    "numbers as text, some not": ["none"] * 9 + [f"{v:.6f}" for v in np.repeat(INCOME[: M // 2], 2)],
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


MOMENTS = ("2024-01-01 10:00", "2024-01-01 10:00:00")
PAIRS = [("01", "1"), ("1.0", "1"), ("1e3", "1000"), ("-0", "0"), ("true", "TRUE"), MOMENTS]


def write(path: Path, cells: list[str], name: str = "y") -> Path:
    """Write a table with a column of these cells, in turn, and the other columns that a table has."""
    columns = {"x": [str(2 * i) for i in range(24)], "y": ["0", "2"] * 12}
    columns |= {name: [cells[i % len(cells)] for i in range(24)]}
    lines = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(line) for line in lines)]) + "\n")
    return path


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_two_names_do_not_become_one_group_or_category(tmp_path: Path, pair: tuple[str, str]) -> None:
    others = {"true": ["false"], "2024-01-01 10:00": [f"2024-02-0{i} 10:00" for i in range(1, 7)]}
    source = write(tmp_path / "a.csv", [*pair, *others.get(pair[0], map(str, range(10, 16)))], "code")
    for asked in ({"group": "code"}, {"asked": DeclaredTypes(categorical=["code"])}):
        with pytest.raises(InputError, match="column 'code' has") as refused:
            read_task(source, "y", **asked)
        assert all(repr(text) in str(refused.value) for text in pair)


@pytest.mark.parametrize("first", [9_300_000_000_000_000_000, 93 * 10**30])
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
    labelled = typed.append_column("y", pa.array([0, 2] * 12))
    assert Task.from_table(labelled, Roles("y", group="code")).n_units == 8
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
    spaced = [f"{' ' * (i % 2)}{text}{' ' * (i % 3)}" for i, text in enumerate(TEXT)]
    others = spaced, pa.array(TEXT).dictionary_encode(), np.datetime64("2020-01-01") + GROUPS
    tasks = [ids(spelling) for spelling in (GROUPS, 900 - GROUPS, GROUPS.astype(float), *others)]
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


@pytest.mark.parametrize("group", [" center, id", '"center",id', ["center", "id"]], ids=repr)
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


def test_names_that_look_like_groups() -> None:
    groups = "ID Patient_ID patientId subject_no customerNumber id_person pid household"
    others = "patient_age account_balance grid humid number x0 µ"
    assert all(map(is_name_of_groups, groups.split()))
    assert not any(map(is_name_of_groups, [*others.split(), ""]))


def test_a_column_that_looks_like_groups_is_asked_about_once() -> None:
    table = columns(patient_id=GROUPS, subject=GROUPS)
    said = (
        "column 'patient_id' repeats: 8 values in 24 rows. If rows of one value belong together, such as "
        "visits of one patient, say --group patient_id: without it nothing here is proven."
    )
    for roles in (Roles(), Roles(drop=["patient_id"]), Roles(features=["a", "b"])):
        assert Task.from_table(table, roles).units.question == said
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


@pytest.mark.parametrize("form", ["{}", "{},00"])
def test_a_column_of_weights_is_read_in_any_form_and_is_no_feature(form: str) -> None:
    task = Task.from_table(columns(w=[form.format(w) for w in range(1, 25)]), Roles(weight="w"))
    assert task.weighting.named is not None
    assert task.weighting.named.tolist() == list(range(1, 25))
    assert (task.weighting.column, task.features, task.units.question) == ("w", ("a", "b"), "")


NO_GROUPS = [
    ([None, *TEXT[1:]], "has empty cells in 1 of 24 rows, the first in row 1: .* leave these rows out"),
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
    ([*map(str, WEIGHTS[1:]), "much"], "has something that is not a number, such as 'much' in row 24"),
    (["1,250"] * 24, "may mark decimals or thousands: say --thousands ,"),
]
NO_ROLES: list[tuple[dict[str, object], str]] = [
    ({"group": 3}, "group=3 is not the name of a column"),
    ({"group": "center,who"}, "there is no column 'who' for --group"),
    ({"group": []}, "group is empty"),
    ({"group": ["center", "b"]}, "a column is named 'center,b', as the groups by these .*: rename it"),
    ({"weight": "w", "features": ["a", "w"]}, "'w' cannot be both --weight and --features"),
    ({"weight": "g", "group": "g"}, "'g' cannot be both --weight and --group"),
]
REFUSED = [
    *(({"g": values}, {"group": "g"}, said) for values, said in NO_GROUPS),
    *(({"w": values}, {"weight": "w"}, said) for values, said in NO_WEIGHTS),
    *(({}, roles, said) for roles, said in NO_ROLES),
]


@pytest.mark.parametrize(("more", "roles", "said"), REFUSED)
def test_columns_that_cannot_name_groups_or_weigh_rows(more, roles, said):
    known = {"center": CENTER, "id": VISITOR, "g": GROUPS, "w": WEIGHTS, "center,b": X[:, 0]}
    with pytest.raises(InputError, match=said):
        Task.from_table(columns(**known | more), Roles("y", **roles))


def test_arrays_that_are_no_groups_or_weights() -> None:
    with pytest.raises(InputError, match=r"groups has shape \(23,\): expected \(24,\)"):
        Task.of(X, Y, groups=GROUPS[:-1])
    with pytest.raises(InputError, match="groups cannot be read as a column"):
        Task.of(X, Y, groups=[1, "a"] * 11 + [None, object()])


N_DRAWN = 200
DRAWN = np.random.default_rng(np.random.SeedSequence(7))
CLASS = DRAWN.integers(0, 2, N_DRAWN)


def note(name: str, values: object, y: np.ndarray = CLASS) -> str:
    table = pa.table({"noise": np.arange(N_DRAWN) * 7 % 11 / 3, name: values, "y": y})
    return {one.name: one.note for one in survey(Task.from_table(table, Roles("y")))}.get(name, "")


def test_categories_that_may_be_one_are_noted() -> None:
    words = ["New-York"] * 3 + ["New York"] * 40 + ["rome", "Rome"] * 20 + ["Oslo"] * (N_DRAWN - 83)
    assert note("city", DRAWN.permutation(words)) == (
        "has 'New York' (40 rows), 'New-York' (3 rows), which may be one, and 1 other value of several "
        "forms: write them alike if they are one"
    )


def test_a_column_gives_away_several_classes_and_numbers_in_another_unit() -> None:
    y = DRAWN.integers(0, 4, N_DRAWN)
    assert "gives the target away" in note("code", y * 10.0, y)
    assert note("half", (y // 2) * 10.0, y) == ""
    y = DRAWN.normal(100, 20, 50)
    surveyed = survey(Task.of(np.column_stack([y / 1.95583, y + DRAWN.normal(0, 10, 50)]), y, numbers=True))
    assert [(one.name, "gives the target away" in one.note) for one in surveyed] == [("x0", True)]


@pytest.mark.parametrize(
    ("blocks", "flipped", "expected"),
    [
        ([6, 6], 0, True),
        ([4, 8], 0, False),  # too few rows of a class
        ([10, 10, 10, 10], 0, True),
        ([5, 5, 5, 5], 0, False),  # fewer than five rows of the smaller class for each cut
        ([400, 400], 8, True),  # one in 50 of the smaller class may be in the interval of another
        ([400, 400], 12, False),
    ],
)
def test_a_few_intervals_give_the_target_away(blocks: list[int], flipped: int, expected: bool) -> None:
    y = np.repeat(np.arange(len(blocks)) % 2, blocks)
    y[np.linspace(3, len(y) - 4, flipped).astype(int)] ^= 1
    order = np.random.default_rng(0).permutation(len(y))
    table = pa.table({"noise": order % 7, "x": order * 0.75, "y": y[order]})
    assert find_giveaways(Task.from_table(table, Roles("y"))) == (("x",) if expected else ())


def test_chance_gives_nothing_away() -> None:
    for seed in range(200):
        draw = np.random.default_rng(seed)
        X, y = draw.normal(size=(16, 3)), draw.permutation([0, 1] * 8)
        assert find_giveaways(Task.of(X, y)) == ()

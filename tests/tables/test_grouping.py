"""Groups of rows: numbers that do not depend on spelling, what is refused, and what is asked about."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray import InputError, Task
from ckcv_ray.tables.columns import Schema
from ckcv_ray.tables.questions import find_repeats, is_name_of_groups
from ckcv_ray.tables.task import GROUP_NAMES, Grouping, Roles, choose_name, group_numbers, renumber

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(8), 3)
X = RNG.normal(size=(24, 2))
Y = np.arange(24) % 2
TASK = Task.of(X, Y, groups=GROUPS)
TEXT = [f"patient {g}" for g in GROUPS]


def columns(**more: object) -> pa.Table:
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, **more})


def ids(values: object) -> Task:
    return Task.from_table(columns(id=values), Roles(group="id"))


@given(st.lists(st.integers(0, 5), max_size=20))
def test_groups_are_numbered_in_the_order_of_first_appearance(given: list[int]) -> None:
    seen = list(dict.fromkeys(given))
    assert renumber(np.array(given, dtype=np.intp)).tolist() == [seen.index(one) for one in given]


def test_the_spelling_of_a_group_has_no_effect() -> None:
    days = np.datetime64("2020-01-01") + GROUPS
    spellings = [
        GROUPS,
        900 - GROUPS,
        GROUPS.astype(float),
        TEXT,
        pa.array(TEXT).dictionary_encode(),
        pa.chunked_array([TEXT[:7], TEXT[7:]]),
        days,
        pa.DictionaryArray.from_arrays(GROUPS % 4 + 4 * (np.arange(24) % 2), ["a", "b", "c", "d"] * 2),
    ]
    *tasks, doubled = [ids(spelling) for spelling in spellings[:-1]] + [
        Task.restore(columns(id=spellings[-1]), Roles(group="id"), None)
    ]
    assert len({task.digest for task in tasks}) == 1
    for task in tasks:
        assert np.array_equal(task.groups, GROUPS)
        assert (task.n, task.n_units, task.group, task.features) == (24, 8, "id", ("a", "b"))
    assert doubled.n_units == 4


def test_the_groups_are_part_of_the_data() -> None:
    other = Task.of(X, Y, groups=np.roll(GROUPS, 1))
    renamed = Task.from_table(columns(who=TEXT), Roles(group="who"))
    plain = Task.from_table(columns())
    digests = {plain.digest, ids(TEXT).digest, renamed.digest, other.digest, TASK.digest}
    assert len(digests) == 5
    assert (plain.grouped, plain.group, plain.n_units) == (False, None, 24)
    assert plain.groups.tolist() == list(range(24))


def test_the_digest_without_groups_is_what_it_was() -> None:
    task = Task.of(np.arange(12.0).reshape(6, 2), [0, 1] * 3)
    assert task.digest == "828a9d27f67fc1a3615e24207583c821da6f1cb6b3617189a505d8ad14c7d4d5"


def test_stored_columns_give_the_task_again() -> None:
    for task in (TASK, ids(TEXT), TASK.take_part(np.arange(3, 12)), TASK.without(np.arange(6))):
        again = Task.restore(task.columns(), Roles(task.target, group=task.group), None, salt=task.salt)
        assert again.digest == task.digest
        assert np.array_equal(again.groups, task.groups)


def test_parts_of_a_task_number_their_groups_again() -> None:
    part = TASK.take_part(np.array([20, 21, 3, 4, 5, 22]))
    assert part.grouped
    assert part.groups.tolist() == [0, 1, 2, 2, 2, 1]
    left = TASK.without(np.flatnonzero(GROUPS == 0))
    assert (left.n, left.n_units) == (21, 7)


def test_repeats_are_those_of_another_group() -> None:
    rows = np.array([[1.0, 2], [1, 2], [3, 4], [3, 4], [5, 6], [7, 8], [7, 8], [7, 8]])
    y = np.array([0, 0, 1, 1, 0, 1, 1, 1])
    groups = np.array([0, 0, 1, 2, 3, 4, 4, 5])
    schema = Schema.of_numbers("ab")
    assert find_repeats(Task(rows, y, (0, 1), schema, "y", Grouping(len(y)))).rows == 7
    assert find_repeats(Task(rows, y, (0, 1), schema, "y", Grouping(len(y), groups, "g"))).rows == 5


def test_units_are_rows_or_groups() -> None:
    assert Grouping(24).rows(np.array([2, 5])).tolist() == [2, 5]
    assert Grouping(24, GROUPS, "g").rows(np.array([1, 4])).tolist() == [3, 4, 5, 12, 13, 14]


def test_a_column_without_a_name_gets_one_that_is_free() -> None:
    assert choose_name(GROUP_NAMES, ["a", "y"]) == "group"
    taken = ["group", "groups", "group_of_row", "group_0", "group_1"]
    assert choose_name(GROUP_NAMES, taken) not in taken


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            [None, *TEXT[1:]],
            ("'id' has no group in 1 of 24 rows, the first in row 1", "leave these rows out"),
        ),
        ([*GROUPS[:-1].astype(float), np.nan], ("in 1 of 24 rows, the first in row 24",)),
        (pa.nulls(24), ("'id' is empty",)),
        ([[0]] * 24, ("'id' holds list", "text or whole numbers")),
        (["one"] * 24, ("'id' has 1 different value:", "at least 6 groups")),
        (GROUPS % 5, ("'id' has 5 different values", "at least 6 groups")),
        (np.arange(24), ("a different value in each of the 24 rows", "groups nothing", "--drop id")),
    ],
    ids=["a gap", "nan", "empty", "lists", "one group", "five groups", "groups of one row"],
)
def test_groups_that_are_refused(values: object, said: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        ids(values)
    for part in said:
        assert part in str(refused.value)


CENTER, VISITOR = [f"c {g % 2}" for g in GROUPS], GROUPS // 2  # which agree in the rows of a group


@pytest.mark.parametrize(
    "group", ["center,id", " center, id", '"center",id', ["center", "id"], ("center", "id")], ids=repr
)
def test_rows_belong_together_that_agree_in_several_columns(group: object) -> None:
    table = columns(center=CENTER, id=VISITOR)
    task = Task.from_table(table, Roles(group=group))
    assert np.array_equal(task.groups, GROUPS)
    assert (task.group, task.features, task.question) == ("center,id", ("a", "b"), "")
    assert task.salt == Task.from_table(columns()).salt == task.make_salt(table)
    assert task.digest == Task.from_table(table, Roles(group="center,id")).digest
    stored = Task.restore(task.columns(), Roles("y", group=task.group), None, salt=task.salt)
    assert stored.digest == task.digest


def test_a_name_with_a_comma_is_that_of_a_single_column() -> None:
    table = columns(**{"center,id": TEXT, "id": VISITOR})
    for group in ("center,id", '"center,id"', ["center,id"]):
        task = Task.from_table(table, Roles(group=group, drop=["id"]))
        assert (task.group, task.n_units, task.features) == ("center,id", 8, ("a", "b"))
    both = Task.from_table(table, Roles(group='"center,id",id'))
    assert both.group == '"center,id",id'
    assert np.array_equal(both.groups, GROUPS)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("who", "there is no column 'who' for the groups: the columns are a, b, y, center, id, gaps"),
        ("y", "'y' is the target, and cannot say which rows belong together"),
        (3, "group=3 is not the name of a column"),
        ("center,who", "there is no column 'who' for the groups: the columns are a, b, y, center, id, gaps"),
        ("center,y", "'y' is the target, and cannot say which rows belong together"),
        ("center,gaps", "'gaps' has no group in 1 of 24 rows, the first in row 1"),
        ("center,a", "'center,a' has a different value in each of the 24 rows"),
        (["center", 3], "group=3 is not the name of a column"),
        ([], "group is empty"),
        (["center", "b"], "a column is named 'center,b', as the groups by these columns would be: rename it"),
    ],
)
def test_columns_that_cannot_name_groups(group: object, said: str) -> None:
    table = columns(center=CENTER, id=VISITOR, gaps=[None, *TEXT[1:]], **{"center,b": X[:, 0]})
    with pytest.raises(InputError, match=said):
        Task.from_table(table, Roles(group=group))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (GROUPS[:-1], r"groups has shape \(23,\): expected \(24,\)"),
        (GROUPS[:, None], r"groups has shape \(24, 1\)"),
        ([1, "a"] * 11 + [None, object()], "groups cannot be read as a column"),
    ],
)
def test_arrays_that_are_no_groups(groups: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Task.of(X, Y, groups=groups)


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "patient", "Patient_ID", "patientId", "subject", "subject_no", "customerNumber", "patientid",
     "id_person", "pid", "household", "userid", "Document No"],
)  # fmt: skip
def test_names_that_look_like_groups(name: str) -> None:
    assert is_name_of_groups(name)


@pytest.mark.parametrize(
    "name", ["age", "patient_age", "family_size", "account_balance", "grid", "humid", "number", "x0", "", "µ"]
)
def test_names_that_do_not(name: str) -> None:
    assert not is_name_of_groups(name)


def test_a_column_that_looks_like_groups_is_asked_about_once() -> None:
    table = columns(patient_id=GROUPS, subject=GROUPS)
    said = (
        "column 'patient_id' repeats: 8 values in 24 rows. If rows of one value belong together, such as "
        "visits of one patient, say --group patient_id: without it nothing here is proven."
    )
    assert Task.from_table(table).question == said
    assert Task.from_table(table, Roles(drop=["patient_id"])).question == said
    assert Task.from_table(table, Roles(features=["a", "b"])).question == said
    assert Task.from_table(columns(patient_id=TEXT), Roles(drop=["patient_id"])).question == said
    assert Task.from_table(table, Roles(group="subject")).question == ""
    assert Task.from_table(table).digest == Task.from_table(table, source="elsewhere").digest


@pytest.mark.parametrize(
    "values", [np.arange(24), GROUPS % 4, GROUPS + 0.5], ids=["no repeats", "few values", "fractions"]
)
def test_a_column_that_does_not_repeat_as_groups_do_is_not_asked_about(values: np.ndarray) -> None:
    assert Task.from_table(columns(patient_id=values)).question == ""


def test_text_that_may_name_groups_is_asked_about() -> None:
    """It is learned from, as a category, unless the user says otherwise."""
    assert "say --group patient" in Task.from_table(columns(patient=TEXT)).question
    assert Task.from_table(columns(colour=["red", "blue"] * 12)).question == ""


@given(st.lists(st.sampled_from(["a", " a", "b ", "b", "NA-1", "c"]), min_size=1), st.integers(1, 4))
def test_text_gives_the_same_groups_however_it_is_stored(cells: list[str], parts: int) -> None:
    chunks = [part.tolist() for part in np.array_split(np.array(cells, object), parts)]
    plain = pa.chunked_array(chunks, pa.string())
    bare = [cell.strip() for cell in cells]
    expected = [list(dict.fromkeys(bare)).index(cell) for cell in bare]
    for stored in (plain, plain.dictionary_encode(), plain.cast(pa.large_string())):
        assert group_numbers(stored, "patient").tolist() == expected


def test_long_names_of_groups_are_looked_at_once_each() -> None:
    names = pa.array([letter * (1 << 20) for letter in "abc"])  # 100,000 rows of them would take 100 GB
    codes = np.random.default_rng(np.random.SeedSequence(0)).integers(3, size=100_000)
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), names)])
    first = {code: i for i, code in enumerate(dict.fromkeys(codes.tolist()))}
    assert group_numbers(column, "patient").tolist() == [first[code] for code in codes.tolist()]

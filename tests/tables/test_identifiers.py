"""Columns that identify rows: numbers of rows are not learned from, and names that repeat are asked about."""

import shlex
from collections.abc import Sequence
from csv import reader
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import digest_learned

from ckcv_ray import InputError, Task
from ckcv_ray.errors import LIST_OPTIONS, MAX_OF_NAME, write_option
from ckcv_ray.tables import columns as parse
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.questions import ask_about_groups, is_row_number, list_row_numbers
from ckcv_ray.tables.task import Grouping, Roles, make_test_rows

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


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", np.arange(N)),
        ("whatever", np.arange(N) + 1),
        ("rownames", SHUFFLED),
        ("", SHUFFLED + 7),
        ("Unnamed: 0", SHUFFLED),
        ("patient_id", SHUFFLED),
        ("id", np.cumsum(1 + RNG.integers(0, 50, N))),
    ],
)
def test_a_column_that_numbers_the_rows_is_not_learned_from_unless_it_is_named(
    name: str, values: np.ndarray
) -> None:
    task = Task.from_table(table(**{name: values}), Roles("y"))
    assert (task.features, task.row_numbers) == (("noise",), (name,))
    assert digest_learned(task) == digest_learned(Task.from_table(table(), Roles("y")))
    assert len(list_row_numbers(task.row_numbers)) == 1
    assert (
        "numbers the rows and is not learned from; --features names it"
        in list_row_numbers(task.row_numbers)[0]
    )
    meant = Task.from_table(table(**{name: values}), Roles("y", ["noise", name]))
    assert (meant.features, meant.row_numbers) == (("noise", name), ())
    said = Task.from_table(table(**{name: values}), Roles("y"), DeclaredTypes(numeric=[name]))
    assert said.features == ("noise", name)
    restored = Task.restore(meant.columns(), Roles("y"), meant.schema, salt=meant.salt)
    assert (restored.digest, restored.features) == (meant.digest, meant.features)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", SHUFFLED),
        ("x", 2 * np.arange(N)),
        ("x", np.arange(N) + 2),
        ("x", np.arange(N)[::-1].copy()),
        ("x", np.arange(N) + 0.5),
        ("x", np.append(np.arange(N - 1.0), np.nan)),
        ("x", np.append(np.arange(N - 1), 0)),
        ("day_of_year", np.arange(N) + 1),
        ("Time", np.arange(N)),
        ("t", np.arange(N) + 1),
        ("year", np.arange(N) + 1785),
        ("id", RNG.integers(0, 20, N)),
        ("patient_id", RNG.permutation(9 * N)[:N]),
    ],
)
def test_a_column_that_may_measure_something_is_learned_from(name: str, values: np.ndarray) -> None:
    task = Task.from_table(table(**{name: values}), Roles("y"))
    assert (task.features, task.row_numbers) == (("noise", name), ())


def test_few_rows_may_be_numbered_by_chance() -> None:
    assert not is_row_number(np.arange(19.0), "dose")
    assert is_row_number(np.arange(20.0), "dose")
    assert is_row_number(np.arange(6.0), "id")
    assert not is_row_number(np.zeros(1), "id")


def test_where_nothing_else_is_left_the_option_is_named() -> None:
    columns = pa.table({"my x": np.arange(N), "y": SORTED})
    with pytest.raises(InputError, match="no feature is left: column 'my x' numbers the rows; name it with "):
        Task.from_table(columns, Roles("y"))
    assert Task.from_table(columns, Roles("y", ["my x"])).features == ("my x",)


def test_a_column_without_a_name_is_called_so() -> None:
    task = Task.from_table(table(**{"": SHUFFLED}), Roles("y"))
    assert list_row_numbers(task.row_numbers)[0].startswith("a column without a name numbers the rows")


def test_all_columns_are_learned_from_that_are_given_in_python() -> None:
    frame = pd.DataFrame({"id": range(N), "noise": NOISE})
    assert Task.of(frame, SORTED).features == ("id", "noise")
    assert Task.of(np.column_stack([np.arange(N), NOISE]), SORTED).X[:, 0].tolist() == list(range(N))


def test_new_rows_need_no_number() -> None:
    task = Task.from_table(table(rownames=np.arange(N)), Roles("y"))
    test = make_test_rows(pa.table({"noise": NOISE[:9], "y": SORTED[:9]}), task)
    assert test is not None
    assert test.X.tolist() == NOISE[:9, None].tolist()
    assert task.read(table(rownames=["a"] * N)).X.tolist() == task.X.tolist()


def make_asked_about() -> dict[str, object]:
    """Make columns that look like names, none of which is called so."""
    visits = np.repeat(np.arange(1, N + 1), RNG.integers(1, 4, N))[:N]
    sparse = draw_names(645, 699, 10_000_000)
    return {
        "numbers, wide apart": sparse,
        "the same, floating": sparse.astype(float),
        "text": [f"P{name:07d}" for name in sparse],
        "text of a dictionary": pa.array([f"P{name}" for name in sparse]).dictionary_encode(),
        "numbers in order": visits,
        "pairs": np.repeat(np.arange(50), 2),
    }


@pytest.mark.parametrize("kind", list(make_asked_about()))
def test_many_values_of_which_some_repeat_are_asked_about_whatever_the_name(kind: str) -> None:
    values = make_asked_about()[kind]
    distinct = len(set(pa.array(values).to_pylist()))
    assert f"column 'value' repeats: {distinct:,} values in {len(values):,} rows" in ask(values)  # type: ignore[arg-type]


def make_measurements() -> dict[str, object]:
    """Make columns that are no names, though many values repeat in several."""
    rng, n = np.random.default_rng(np.random.SeedSequence(33)), 2000
    income = rng.lognormal(10, 0.5, n)
    days = np.datetime64("2020-01-01") + rng.integers(0, n, n)
    return {
        "prices in euros": rng.lognormal(8, 0.6, n).round(),
        "rounded incomes": (income / 100).round() * 100,
        "incomes, some rounded": np.where(rng.random(n) < 0.5, income.round(), (income / 500).round() * 500),
        "cholesterol": rng.normal(240, 50, 300).round(),
        "uniform": rng.integers(0, n, n),
        "uniform, sorted": np.sort(rng.integers(0, n, n)),
        "no repeats": rng.permutation(10 * n)[:n],
        "one value for none": np.where(rng.random(n) < 0.3, 0, rng.permutation(1000 * n)[:n]),
        "few repeats": np.append(rng.permutation(1000 * n)[: n - 20], np.repeat(7, 20)),
        "fractions": np.repeat(rng.normal(size=n // 2), 2),
        "a gap": [None, *np.repeat(rng.permutation(1000 * n)[: n // 2], 2).tolist()],
        "few values": np.repeat(rng.permutation(1000 * n)[:19], 2),
        "days as text": days.astype(str).tolist(),
        "amounts as text": [f"${amount:,.2f}" for amount in np.repeat(rng.normal(size=n // 2) ** 2, 2)],
        "numbers as text, some not": ["none"] * 9 + [f"{v:.6f}" for v in np.repeat(income[: n // 2], 2)],
        "forms that may be read in two ways": [f"{v:,}" for v in np.repeat(1000 + np.arange(500), 2)],
        "truth": rng.random(n) < 0.5,
    }  # fmt: skip


@pytest.mark.parametrize("kind", list(make_measurements()))
def test_a_measurement_is_not_asked_about(kind: str) -> None:
    assert ask(make_measurements()[kind]) == ""


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (np.arange(944) % 7, False),
        (np.arange(700) % 7, True),
        (np.arange(944) % 19, True),
        (np.arange(9440) % 19, False),
        (np.arange(9440) % 20, True),
        (draw_names(645, 699, 10_000_000), True),
        (draw_names(695, 699, 10_000_000), False),
        ([], False),
    ],
)
def test_few_values_of_many_rows_are_no_names_whatever_the_name(values: Sequence[int], asked: bool) -> None:
    assert bool(ask(pa.array(values, pa.int64()), "id")) == asked


def test_columns_that_are_named_as_groups_come_first() -> None:
    pairs = np.repeat(np.arange(50), 2)
    columns = pa.table({"sample": pairs, "patient": pairs})
    assert "--group patient" in ask_about_groups(columns, ())
    assert "--group sample" in ask_about_groups(columns, ("patient",))
    assert ask_about_groups(columns, ("patient", "sample")) == ""


def test_the_first_rows_of_a_large_table_are_looked_at_and_all_are_counted() -> None:
    values = np.repeat(np.arange(30_000), 2)
    assert "30,000 values in 60,000 rows" in ask(values)


def test_a_question_has_no_part_in_the_data() -> None:
    columns = table(sample=np.repeat(np.arange(N // 2), 2))
    task = Task.from_table(columns, Roles("y"))
    assert "--group sample" in task.question
    assert Task.from_table(columns, Roles("y", group="sample")).question == ""
    assert Grouping.read(columns, ()).question == ""


PRINTABLE = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp"), codec="utf-8"), min_size=1, max_size=80
)


@given(PRINTABLE, st.sampled_from(["group", "id", "weight", "target"]))
def test_an_option_of_one_column_can_be_pasted(name: str, option: str) -> None:
    words = shlex.split(write_option(option, name))
    assert words in ([f"--{option}", name], [f"--{option}={name}"])
    assert not words[-1].startswith("-") or len(words) == 1


@given(PRINTABLE, st.sampled_from(LIST_OPTIONS))
def test_an_option_of_several_columns_can_be_pasted(name: str, option: str) -> None:
    (said,) = (word.removeprefix(f"--{option}=") for word in shlex.split(write_option(option, name))[-1:])
    assert next(reader([said], skipinitialspace=True)) == [name]


def test_usual_names_are_written_as_they_are_and_very_long_ones_are_cut() -> None:
    assert write_option("drop", "age_2") == "--drop age_2"
    assert write_option("group", "patient id") == "--group 'patient id'"
    assert write_option("drop", "a,b") == "--drop '\"a,b\"'"
    assert write_option("group", "a,b") == "--group a,b"
    assert write_option("group", "-x") == "--group=-x"
    assert len(write_option("drop", "x" * 10_000)) < MAX_OF_NAME + 20


def test_no_message_writes_the_name_of_a_column_after_an_option_by_itself() -> None:
    root = Path(__file__).parents[2] / "ckcv_ray"
    options = "|".join((*LIST_OPTIONS, "group", "id", "weight", "target"))
    pattern = pd.Series([file.read_text() for file in sorted(root.rglob("*.py"))])
    found = pattern.str.findall(rf"--(?:{options})[ =]\{{(?!quote\()[^}}]*\}}")
    assert [one for each in found for one in each] == []


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([f"{i}.5" for i in range(27)] + ["red"] * 9, ["numeric", "categorical", "drop"]),
        ([f"note {i}" for i in range(36)], ["drop", "id"]),
        ([f"2024-01-{i:02}" for i in range(1, 28)] + ["soon"] * 9, ["categorical", "drop"]),
        (["1,500"] * 36, ["drop"]),
        (["$5", "7 €"] * 18, ["categorical", "drop"]),
        (["03/04/2026"] * 36, ["categorical", "drop"]),
        ([None] * 36, ["drop"]),
    ],
)
def test_what_a_refusal_advises_can_be_pasted(values: list[str | None], options: list[str]) -> None:
    name = "the patient's, first"
    columns = pa.table({"x": RNG.normal(size=36), name: pa.array(values, pa.string()), "y": [0, 1] * 18})
    with pytest.raises(InputError) as refused:
        Task.from_table(columns, Roles("y"))
    for option in options:
        assert write_option(option, name) in str(refused.value)


def test_repeated_text_is_unfolded_once_to_be_looked_at() -> None:
    """A dictionary of one long text is small in a file, and large twice over where two copies are kept."""
    text = "x" * 1000
    codes = pa.array(np.zeros(10_000, np.int8))
    columns = pa.table({"patient": pa.DictionaryArray.from_arrays(codes, pa.array([text, "y"]))})
    before = pa.default_memory_pool().bytes_allocated()
    with pytest.MonkeyPatch.context() as patch:
        held: list[int] = []

        def take(values: pa.Array, codes: pa.Array) -> list[pa.Array]:
            held.append((pa.default_memory_pool().bytes_allocated() - before) // len(text) // len(codes))
            return unfold(values, codes)

        unfold = parse.take_in_parts
        patch.setattr(parse, "take_in_parts", take)
        ask_about_groups(columns, ())
    assert held
    assert set(held) == {0}

"""What is said about columns before a run."""

import numpy as np
import pyarrow as pa
import pytest

from ckcv_ray.tables.questions import find_giveaways, survey
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task

N = 200
rng = np.random.default_rng(np.random.SeedSequence(7))
Y = rng.integers(0, 2, N)
NOISE = rng.normal(size=N)


def note(name: str, values, y=Y) -> str:
    columns = pa.table({"noise": NOISE, name: values, "y": y})
    noted = {one.name: one.note for one in survey(Task.from_table(columns, Roles("y")))}
    return noted.get(name, "")


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("fixed", np.ones(N), "is the same in every row"),
        ("again", NOISE, "is a copy of noise"),
        ("patient_id", rng.permutation(N * 7)[:N], "--drop patient_id"),
        ("x", rng.permutation(N), "seems to number the rows"),
        (" ", 3 * rng.permutation(N), "seems to number the rows: leave it out with --drop"),
        ("answer", np.where(Y == 1, "ill", "well"), "gives the target away"),
        ("score", Y + 0.1 * rng.normal(size=N), "gives the target away"),
        ("coarse", np.where(Y == 1, 3, 9), "gives the target away"),
        ("helps", Y + rng.normal(size=N), ""),
        ("count", rng.poisson(3, N), ""),
        ("word", rng.choice(["u", "v", "w"], N), ""),
    ],
)
def test_what_looks_like_a_mistake_is_pointed_out(name, values, expected):
    found = note(name, values)
    assert expected in found
    assert bool(found) == bool(expected)


def test_categories_that_may_be_one_are_noted() -> None:
    words = ["New-York"] * 3 + ["New York"] * 40 + ["rome", "Rome"] * 20 + ["Oslo"] * (N - 83)
    assert note("city", rng.permutation(words)) == (
        "has 'New York' (40 rows), 'New-York' (3 rows), which may be one, and 1 other value of several "
        "forms: write them alike if they are one"
    )
    assert note("city", rng.choice(["c 1", "c 2", "c 3"], N)) == ""


def test_a_column_gives_away_several_classes():
    y = rng.integers(0, 4, N)
    assert "gives the target away" in note("code", y * 10.0, y)
    assert note("half", (y // 2) * 10.0, y) == ""


@pytest.mark.parametrize(
    ("blocks", "flipped", "expected"),
    [
        ([6, 6], 0, True),
        ([4, 8], 0, False),  # too few rows of a class
        ([10, 10, 10, 10], 0, True),
        ([5, 5, 5, 5], 0, False),  # fewer than five rows of the smaller class for each cut
        ([400, 400], 8, True),  # one in 50 of the smaller class may be in the interval of another
        ([400, 400], 12, False),
        ([100] * 9, 0, False),
    ],
)
def test_a_few_intervals_give_the_target_away(blocks: list[int], flipped: int, expected: bool) -> None:
    y = np.repeat(np.arange(len(blocks)) % 2, blocks)
    y[np.linspace(3, len(y) - 4, flipped).astype(int)] ^= 1
    x = np.arange(len(y)) * 0.75
    order = np.random.default_rng(0).permutation(len(y))
    columns = pa.table({"noise": order % 7, "x": x[order], "y": y[order]})
    assert find_giveaways(Task.from_table(columns, Roles("y"))) == (("x",) if expected else ())


def test_chance_gives_nothing_away() -> None:
    for seed in range(200):
        draw = np.random.default_rng(seed)
        X, y = draw.normal(size=(16, 3)), draw.permutation([0, 1] * 8)
        assert find_giveaways(Task.of(X, y)) == ()


def test_a_column_that_is_the_target_in_another_unit_is_named():
    rng = np.random.default_rng(0)
    y = rng.normal(100, 20, 50)
    X = np.column_stack([y / 1.95583, y + rng.normal(0, 10, 50)])
    surveyed = survey(Task.of(X, y, numbers=True))
    assert [(one.name, "gives the target away" in one.note) for one in surveyed] == [("x0", True)]


@pytest.mark.parametrize(
    ("cells", "doubtful"),
    [([f"{i}.{i % 7} mg" for i in range(29)] + ["0.0 mg"], True), (["a", "b", "c"] * 10, False)],
)
def test_text_that_hardly_repeats_is_asked_about(cells, doubtful):
    (column,) = survey(Task.from_table(pa.table({"c": cells, "y": [0, 1] * 15}), Roles("y")))
    assert ("is it a number, a date or a name in an unknown form?" in column.note) == doubtful

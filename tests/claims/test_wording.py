"""Words that match the numbers, with what is and is not proven beside them."""

import numpy as np
import pyarrow as pa
import pytest
from claimed import run

from ckcv_ray import Study, load_run
from ckcv_ray.runs.verify import verify
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.questions import Repeats, count_repeated, find_known, find_repeats
from ckcv_ray.tables.task import Task

# Rows that repeat


def noisy(n: int, copies: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are separated with some errors; the first of them stand twice, but for the sign of a zero."""
    rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(n, copies, seed)))
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    X[:copies, 2] = 0.0
    return np.concatenate([X, X[:copies] * [1.0, 1.0, -1.0]]), np.concatenate([y, y[:copies]])


ONE = Study.paper(C=1.0, gamma=0.1, k=3, n_splits=3)


def test_what_is_left_may_be_nothing():
    few = run(ONE.replace(certify="holdout"), Task.of(*noisy(200, 5))).certificate
    assert few.first.bound < few.bound_without_copies < 1
    (X, y), times = noisy(30, 0), 8
    copied = Task.of(np.tile(X, (times, 1)), np.tile(y, times))
    known = run(ONE.replace(certify="holdout"), copied).certificate
    assert any(one.endswith("nothing here is proven.") for one in known.list_cautions())


# Columns that number the rows


@pytest.mark.parametrize("name", ["id", "customer_no", "name"])
def test_a_column_that_numbers_the_rows_hides_no_repeats(name):
    X, y = noisy(60, 4)
    shuffled = np.random.default_rng(2).permutation(64)
    numbers = {
        "id": np.arange(1, 65),
        "customer_no": 10**6 + 997 * shuffled,
        "name": [f"row {i}" for i in shuffled],
    }
    columns = {**{f"x{i}": X[:, i] for i in range(3)}, name: numbers[name]}
    task = Task.of(pa.table(columns), y, asked=DeclaredTypes(categorical=("name",) if name == "name" else ()))
    assert find_repeats(task) == Repeats(8, 4)
    new = task.X[:3].copy()
    new[:, 3] = [70, 71, 72]
    assert int(find_known(new, task).sum()) == 3
    assert count_repeated(np.concatenate([new, np.add(new[:1], [0, 0, 0, 5])]), task) == 2


def test_a_column_that_gives_the_target_away_is_a_caution_of_the_certificate(tmp_path):
    rng = np.random.default_rng(3)
    grams = np.round(rng.normal(2945, 729, 200))
    X, low = np.column_stack([rng.normal(size=200), grams]), (grams < 2500).astype(int)
    study = Study.of(learner="naive_bayes", k=(3,), n_splits=3, certify="holdout")
    task = Task.of(pa.table({"age": X[:, 0], "bwt\x1b": X[:, 1]}), low)
    result = run(study, task, out=tmp_path / "run")
    caution = "Columns that give the target away, unless known for a new row: 'bwt\\x1b'."
    assert caution in result.certificate.list_cautions()
    assert result.summary().startswith("Quote with CAUTION")
    assert load_run(tmp_path / "run").certificate == result.certificate
    assert verify(tmp_path / "run").ok

"""Splits that were given, as a run folder keeps them: what is written is read, and nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import blobs
from forgery import SERIAL, column, rewrite

from ckcv_ray import evaluate, load_scores, verify
from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.errors import StoreError
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import SPLITS, make_splits, read_splits

N = 40
TASK = blobs(N)
HALVES = [(np.arange(20), np.arange(20, N)), (np.arange(20, N), np.arange(20))]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with splits that were given, to be copied and not to be changed."""
    out = tmp_path_factory.mktemp("given") / "run"
    evaluate(TASK.X, TASK.y, learner="constant", resampling=HALVES, out=out, execution=SERIAL)
    return out


@pytest.mark.parametrize("count", [1, 2, 150])
def test_splits_of_any_sizes_are_read_as_they_were(count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    orders = [rng.permutation(N) for _ in range(count)]
    sizes = [rng.integers(1, N // 2, 2) for _ in range(count)]
    sets = [(order[:a], order[a : a + b]) for order, (a, b) in zip(orders, sizes, strict=True)]
    given = Splits.of(sets, N)
    (tmp_path / SPLITS).write_bytes(make_splits([(one.train, one.estimate) for one in given.sets], "run"))
    found = read_splits(LocalFiles(tmp_path), Splits(digest=given.digest), "run", N)
    assert found.digest == given.digest
    for one, again in zip(given.sets, found.sets, strict=True):
        np.testing.assert_array_equal(one.train, again.train)
        np.testing.assert_array_equal(one.estimate, again.estimate)


FORGED: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "a number far above": (column("split", lambda v: [*v[:-1], 1_000_000]), "are not numbered from 0"),
    "a number below 0": (column("split", lambda v: [-1, *v[1:]]), "are not numbered from 0"),
    "no number": (column("split", lambda v: [None, *v[1:]]), "are not numbered from 0"),
    "no splits": (lambda table: table.slice(0, 0), "gives no splits"),
    "other rows": (column("row", lambda v: [v[-1], *v[1:-1], v[0]]), "their digest differs"),
    "a row of neither part": (column("train", lambda v: [None, *v[1:]]), ""),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_splits_are_refused_at_once(kind: str, finished: Path, tmp_path: Path) -> None:
    """A part is made for no number that a file names, but for as many as it has."""
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    change, said = FORGED[kind]
    rewrite(run, SPLITS, change)
    assert any(SPLITS in found and said in found for found in verify(run).differences)
    with pytest.raises(StoreError, match=SPLITS):
        load_scores(run)

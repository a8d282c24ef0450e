"""Numbers of equal rows: by hashes, and whole where hashes are equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.tables import survey

CELLS = st.sampled_from([0.0, -0.0, 1.0, 1.5, float("nan"), 5e-324, 1e300])
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=30)


def check_numbers(rows: list[tuple[float, ...]]) -> None:
    """Check numbers and counts against texts of rows: all gaps are one, and so are both zeros."""
    numbers, counts = survey._number_rows(np.array(rows))
    texts = [str([cell + 0.0 for cell in row]) for row in rows]
    for i, text in enumerate(texts):
        equal = [j for j, rival in enumerate(texts) if rival == text]
        assert np.flatnonzero(numbers == numbers[i]).tolist() == equal
        assert counts[numbers[i]] == len(equal)
    assert len(counts) == len(set(texts))


@given(rows=ROWS)
def test_equal_rows_have_one_number(rows: list[tuple[float, ...]]) -> None:
    check_numbers(rows)


def test_rows_of_equal_hashes_are_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_hash_items", lambda items: np.arange(len(items), dtype=np.uint64) % 2 * 0)
    check_numbers([(1.0, 2.0, 3.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (-0.0, 0.0, 0.0), (4.0, 0.0, 0.0)])


def test_hashes_of_different_rows_hardly_ever_agree() -> None:
    """Of 200,000 rows of small numbers none, where about 10^-9 pairs are expected of perfect hashes."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 100, (200_000, 4)).astype(float), axis=0)
    assert len(np.unique(survey._hash_items(survey._as_items(rows)))) == len(rows)

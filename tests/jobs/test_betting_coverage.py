"""The job that counts false proofs by betting and in comparisons: its laws and its figures."""

import numpy as np
import pytest

from jobs.paper.betting_coverage import (
    DIFFERENCES,
    LOSSES,
    WEIGHTED,
    measure,
)
from jobs.paper.cells import Cell


@pytest.mark.parametrize("name", [*LOSSES, *DIFFERENCES])
def test_the_mean_of_a_law_is_the_mean_of_what_it_draws(name: str) -> None:
    law = {**LOSSES, **DIFFERENCES}[name]
    drawn = law.draw(np.random.default_rng(0), 200_000)
    assert drawn.mean() == pytest.approx(law.mean, abs=4 * drawn.std() / 400)


@pytest.mark.parametrize("name", WEIGHTED)
def test_the_weighted_error_of_a_law_is_that_of_what_it_draws(name: str) -> None:
    weights, wrong = WEIGHTED[name].draw(np.random.default_rng(0), 1_000_000)
    assert weights.max() <= WEIGHTED[name].largest
    assert weights.mean() == pytest.approx(WEIGHTED[name].mean_weight, rel=0.05)
    assert (weights @ wrong) / weights.sum() == pytest.approx(WEIGHTED[name].mean, rel=0.05)


def test_every_cell_is_measured_and_none_is_false_too_often() -> None:
    cells = measure(20, 2)
    assert len({cell.name for cell in cells}) == len(cells) == 15 + 18 + 4 + 4 + 24 + 24 + 1
    assert len(measure(1, 0)) == len(cells) - 1
    assert not any(cell.fails(1e-6) for cell in cells)
    assert Cell("", 20, 100, 0.05, {}).fails(0.01)
    assert not Cell("", 100, 100, 1.0, {}).fails(0.01)

"""The job that counts false claims about numbers: its truths and its figures."""

import numpy as np
import pytest

from jobs.paper.number_coverage import (
    CLIP,
    GROUPS,
    NOISES,
    SHARE,
    check_claims,
    draw_table,
    measure_noise,
)


@pytest.mark.parametrize("noise", NOISES)
def test_a_table_is_drawn_from_its_noise_alone(noise: str) -> None:
    table = draw_table(noise, 50, np.random.default_rng(1))
    again = draw_table(noise, 50, np.random.default_rng(1))
    assert table.X.shape == (len(table.y), 3)
    assert len(np.unique(table.groups)) == 50
    assert (len(table.y) > 50) == (noise == GROUPS)
    assert all(np.array_equal(*pair) for pair in zip(table, again, strict=True))


def test_a_claim_is_compared_with_the_truth_for_its_own_models() -> None:
    held, paper = (check_claims("normal", 3, certify) for certify in ("holdout", "paper"))
    assert set(held) == {"holdout", "within"}
    assert set(paper) == {"paper"}
    for name, checked in (held | paper).items():
        least = 2 / 3 * np.sqrt(2 / np.pi) * 0.9  # no linear model errs less than the noise, roughly
        assert 0 < checked.truth < 1, name
        if name != "within":
            assert checked.truth * CLIP > least
            assert checked.is_false == (checked.truth > checked.claim.bound)
        else:
            assert checked.is_false == (checked.truth < SHARE)


def test_of_groups_the_mean_error_of_a_group_is_claimed() -> None:
    found = check_claims(GROUPS, 3, "holdout") | check_claims(GROUPS, 3, "paper")
    assert set(found) == {"holdout", "paper"}
    for name, checked in found.items():
        assert "new group's rows" in checked.claim.statement, name
        assert checked.is_false == (checked.truth > checked.claim.bound)


def test_no_claim_is_false_too_often() -> None:
    cells = measure_noise("student t, 2.5 degrees", 4)
    assert {cell.runs for cell in cells} == {4}
    assert not any(cell.fails(1e-6) for cell in cells)

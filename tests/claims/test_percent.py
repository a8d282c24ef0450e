"""Percentages: one rule of rounding, and no other place that formats them."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.errors import ceil_percent, floor_percent, format_level, format_percent


@given(st.integers(0, 10**7))
def test_rounding_is_that_of_exact_decimals(units: int) -> None:
    """Every multiple of 1e-7 in [0, 1], and so every share of up to thousands of rows but for ties."""
    percent = Decimal(units) / 10**5
    roundings = {ceil_percent: ROUND_CEILING, floor_percent: ROUND_FLOOR, format_percent: ROUND_HALF_EVEN}
    for formatted, rounding in roundings.items():
        expected = percent.quantize(Decimal("0.01"), rounding)
        tie = formatted is format_percent and units % 1000 == 500
        assert formatted(units / 10**7) == f"{expected} %" or tie


@pytest.mark.parametrize(("delta", "messages"), [(0.05 / 7, "99.28 %"), (7.14e-5, "99.9928 %")])
def test_a_level_is_never_rounded_up(delta: float, messages: str) -> None:
    assert format_level(delta) == messages
    assert float(messages[:-2]) <= 100 * (1 - delta) * (1 + 1e-15)

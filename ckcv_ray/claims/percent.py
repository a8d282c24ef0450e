"""Percentages in text: one rule of rounding, to two digits after the point, wherever people read a number.

Bounds, and means of bounds, are rounded up: rounded down they would say more than was computed. Lower bounds
and levels are rounded down for the same reason. Estimates and shares are rounded to the nearest.
"""

from decimal import ROUND_FLOOR, Decimal
from math import ceil, floor, log10

DIGITS = 2
SCALE = 100 * 10**DIGITS
SLACK = 1e-9  # in units of the last digit: 0.423 is 42.30 %, although 0.423 * 10_000 is above 4230


def at_most(bound: float) -> str:
    """Format an upper bound, rounded up."""
    return _format_units(ceil(SCALE * bound - SLACK))


def at_least(bound: float) -> str:
    """Format a lower bound, rounded down."""
    return _format_units(floor(SCALE * bound + SLACK))


def nearest(value: float) -> str:
    """Format an estimate or a share, rounded to the nearest."""
    return _format_units(round(SCALE * value))


def format_level(delta: float) -> str:
    """Format the level 1 - delta, rounded down, without zeros at the end, with more digits above 99.9 %."""
    digits = max(DIGITS, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"


def _format_units(units: int) -> str:
    """Format a whole number of units of the last digit."""
    return f"{units / 10**DIGITS:.{DIGITS}f} %"

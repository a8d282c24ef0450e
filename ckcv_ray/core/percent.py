"""Percentages in text: one rule of rounding, to two digits after the point, wherever people read a number;
numbers in units of the target, with four digits; and times.

Bounds, and means of bounds, are rounded up: rounded down they would say more than was computed. Lower bounds
and levels are rounded down for the same reason. Estimates and shares are rounded to the nearest.
"""

from decimal import ROUND_FLOOR, Decimal
from math import ceil, floor, log10

DIGITS = 2
NUMBER_DIGITS = 4  # of numbers that are no percentages
SCALE = 100 * 10**DIGITS
NOT_SET = "–"
SLACK = 1e-9  # in units of the last digit: 0.423 is 42.30 %, although 0.423 * 10_000 is above 4230


def ceil_percent(bound: float) -> str:
    """Format an upper bound, rounded up."""
    return _format_units(ceil(SCALE * bound - SLACK))


def floor_percent(bound: float) -> str:
    """Format a lower bound, rounded down."""
    return _format_units(floor(SCALE * bound + SLACK))


def format_percent(value: float) -> str:
    """Format an estimate or a share, rounded to the nearest."""
    return _format_units(round(SCALE * value))


def format_level(delta: float) -> str:
    """Format the level 1 - delta, rounded down, without zeros at the end, with more digits above 99.9 %."""
    digits = max(DIGITS, -floor(log10(delta)) - 1)
    level = (100 * (1 - Decimal(repr(delta)))).quantize(Decimal(10) ** -digits, ROUND_FLOOR)
    return f"{level.normalize():f} %"


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _format_units(units: int) -> str:
    return f"{units / 10**DIGITS:.{DIGITS}f} %"


def round_bound(bound: float, up: bool = True) -> str:
    """Format a bound in units of the target, at least 0, with four digits, rounded to the safe side."""
    if not bound > 0:
        return "0"
    digits = NUMBER_DIGITS - 1 - floor(log10(bound))
    scaled = ceil(bound * 10.0**digits) if up else floor(bound * 10.0**digits)
    return f"{scaled * 10.0**-digits:.{max(0, digits)}f}"


def format_number(value: float) -> str:
    """Format a number in units of the target with four digits, or all before the point: "50", "0.1235"."""
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{NUMBER_DIGITS}g}"
    text = f"{value:.{max(0, NUMBER_DIGITS - 1 - floor(log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_about(count: float) -> str:
    """Format a number of rows that is expected, with two digits: "1,100"."""
    return f"{float(f'{count:.2g}'):,.0f}"


def format_score(value: float | None, layout: str = "") -> str:
    """Format a number with four decimals, or four digits where these show it badly; "–" if unknown."""
    if value is None or value != value:
        return NOT_SET
    usual = value == 0 or 1e-3 <= abs(value) < 10_000
    return f"{value:{layout}.4{'f' if usual else 'g'}}"


def format_row(*values: str | float | None) -> tuple[str, ...]:
    """Format the cells of a row: text, counts, and shares in percent; None and nan are not known."""
    return tuple(
        NOT_SET if value is None or value != value
        else value if isinstance(value, str)
        else format_percent(value) if isinstance(value, float)
        else f"{value:,}"
        for value in values
    )  # fmt: skip

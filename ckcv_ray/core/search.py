"""Search for the first integer that passes a test, where all above it pass too; tests in a fixed order."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import takewhile


def find_first(passes: Callable[[int], bool], low: int, most: int) -> int:
    """Return the first of low .. most that passes; ``most`` if none below it does, which is not tested."""
    high = low
    while high < most and not passes(high):
        low, high = high + 1, min(max(1, 2 * high), most)
    return low + bisect_left(range(low, high), True, key=passes)


def count_passed(passes: Iterable[bool]) -> int:
    """Return how many tests of a fixed sequence pass before the first that fails; the others are not made."""
    return sum(takewhile(bool, passes))

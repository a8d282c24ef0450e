"""Search for the first integer that passes a test, where all above it pass too."""

from bisect import bisect_left
from collections.abc import Callable


def find_first(passes: Callable[[int], bool], low: int, most: int) -> int:
    """Return the first of low .. most that passes; ``most`` if none below it does, which is not tested."""
    high = low
    while high < most and not passes(high):
        low, high = high + 1, min(max(1, 2 * high), most)
    return low + bisect_left(range(low, high), True, key=passes)

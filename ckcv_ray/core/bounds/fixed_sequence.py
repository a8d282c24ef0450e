"""Tests in an order that is fixed beforehand: they end at the first that fails; the last that passed counts.

Each is made at the whole level: a false statement is proven only if the test of the first false one passes,
which is one fixed test.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import takewhile
from typing import Generic, TypeVar

PerTest = TypeVar("PerTest")


class FixedSequence(ABC, Generic[PerTest]):
    """Tests of what was counted at each of several thresholds or cut-offs.

    Attributes:
        counts: what was counted, in the order of the tests.
    """

    counts: tuple[PerTest, ...]

    @abstractmethod
    def passes(self, counted: PerTest, copies: int) -> bool:
        """Return whether a test passes; ``copies`` of the rows are not counted."""

    @cached_property
    def passed(self) -> int:
        """Tests that pass before the first that fails."""
        return self.count_passed()

    @property
    def chosen(self) -> PerTest:
        """The counts of the last test that passed; of the first if none did."""
        return self.counts[max(0, self.passed - 1)]

    def count_passed(self, copies: int = 0) -> int:
        """Return how many tests pass before the first that fails; ``copies`` of the rows are not counted."""
        return sum(takewhile(bool, (self.passes(counted, copies) for counted in self.counts)))

"""Criteria: what is minimised over candidates, as a mean over splits of a value for each split.

Reference: Anguita et al., ESANN 2012, Algorithm 1 (the mean of Clopper-Pearson bounds).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.bounds import BOUNDS, MOST_CHECKED, bound_table, check_delta, reported_bound
from ckcv_ray.core.measures import ZERO_ONE, Measure
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.resampling import randomisers
from ckcv_ray.errors import InputError
from ckcv_ray.validation import check_choice, number

LEAST_DELTA = 1e-12  # occam gives a candidate as little as 1e-22 of it
Values = NDArray[np.float64]


class Criterion(Protocol):
    """What is minimised.

    Attributes:
        measure: gives the totals it is made of.
        delta: failure probability of a bound.
        bound: name of what L_EE is the mean of.
    """

    name: ClassVar[str]
    measure: ClassVar[Measure]

    @property
    def delta(self) -> float:
        """Failure probability of a bound."""

    @property
    def bound(self) -> str:
        """Name of what L_EE is the mean of."""

    def check(self, most_units: int) -> None:
        """Raise InputError where sets of so many rows are too large for it."""

    def least(self, units: int) -> float:
        """Return the value of a split of ``units`` scored rows without loss: no value is smaller."""

    def value(self, totals: NDArray[np.integer[Any]], units: int) -> Values:
        """Return the values, non-negative, of totals (..., columns) on ``units`` scored rows each."""

    def transfer(self, values: Values, units: int, others: int) -> Values:
        """Return the values to be expected on ``others`` rows where those on ``units`` rows are known."""

    def reported(self, totals: Sequence[int], units: int, seed: int) -> float:
        """Return L_EE, from the wrong rows of each estimate set of ``units`` rows."""


@dataclass(frozen=True)
class MeanBound:
    """The mean over the splits of Clopper-Pearson bounds on the error.

    Attributes:
        delta: failure probability of each bound, inside (0, 1).
        bound: what L_EE is the mean of; what is minimised is always Clopper-Pearson.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "error"
    measure: ClassVar[Measure] = ZERO_ONE

    delta: float = option(
        0.05,
        Option(
            lambda name, value: _delta(name, value),
            "Probability that a bound may fail: 0.05 gives 95 % bounds.",
            float,
            "0.05",
        ),
    )
    bound: str = option(
        "clopper_pearson",
        Option(
            lambda name, value: check_choice(name, value, BOUNDS),
            "Bound on the estimate sets that L_EE is made of: clopper_pearson (the paper's), stevens, safe "
            "or catoni. The criterion minimised always uses clopper_pearson.",
            shown="clopper_pearson",
            panel="Certificate",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def check(self, most_units: int) -> None:
        """Raise InputError where an averaging-safe bound is asked for on more rows than are checked."""
        if self.bound == "safe" and most_units > MOST_CHECKED:
            raise InputError(
                f"bound='safe' is checked for at most {MOST_CHECKED} rows in an estimate set, and the "
                f"smallest k takes {most_units}: use catoni"
            )

    def least(self, units: int) -> float:
        """Return U(0; units)."""
        return float(_table(units, self.delta)[0])

    def value(self, totals: NDArray[np.integer[Any]], units: int) -> Values:
        """Return U(errors; units), the errors of all classes together."""
        return np.asarray(_table(units, self.delta)[np.sum(totals, axis=-1)])

    def transfer(self, values: Values, units: int, others: int) -> Values:
        """Return the bounds on ``others`` rows at the same error rates, linear between two counts."""
        rate = np.interp(values, _table(units, self.delta), np.arange(units + 1)) / units
        return np.asarray(np.interp(rate * others, np.arange(others + 1), _table(others, self.delta)))

    def reported(self, totals: Sequence[int], units: int, seed: int) -> float:
        """Return L_EE: the bound asked for over the errors on each estimate set."""
        draws = randomisers(units, len(totals), seed) if self.bound == "stevens" else ()
        return reported_bound(self.bound, totals, units, self.delta, draws)


@lru_cache(maxsize=4096)
def _table(units: int, delta: float) -> Values:
    return bound_table(units, delta)


def _delta(name: str, value: Any) -> float:
    delta = number(name, value)
    check_delta(delta)
    if delta < LEAST_DELTA:
        raise InputError(f"delta={delta!r} is below {LEAST_DELTA:g}, the least that is shared out")
    return delta

"""Criteria: what is minimised over candidates, the mean over splits of a value for each split.

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

LEAST_DELTA = 1e-12  # the occam bound gives a candidate as little as 1e-22 of it
Values = NDArray[np.float64]


class Criterion(Protocol):
    """A quantity to minimise over candidates.

    Attributes:
        measure: gives the totals from which values are computed.
        delta: failure probability of each bound.
        bound: name of the bound that L_EE is computed with.
    """

    name: ClassVar[str]
    measure: ClassVar[Measure]

    @property
    def delta(self) -> float:
        """Failure probability of each bound."""

    @property
    def bound(self) -> str:
        """Name of the bound that L_EE is computed with."""

    def check(self, most_units: int) -> None:
        """Raise InputError if sets of ``most_units`` rows are too large for it."""

    def least(self, units: int) -> float:
        """Return the value of a split of ``units`` scored rows without loss, the smallest possible."""

    def value(self, totals: NDArray[np.integer[Any]], units: int) -> Values:
        """Return the non-negative values of totals (..., columns) on ``units`` scored rows each."""

    def transfer(self, values: Values, units: int, others: int) -> Values:
        """Return the values expected on ``others`` rows, given those on ``units`` rows."""

    def reported(self, totals: Sequence[int], units: int, seed: int) -> float:
        """Return L_EE from the numbers of wrong rows in estimate sets of ``units`` rows each."""


@dataclass(frozen=True)
class MeanBound:
    """The mean over the splits of Clopper-Pearson bounds on the error.

    Attributes:
        delta: failure probability of each bound, in (0, 1).
        bound: bound that L_EE is computed with; the minimised bound is always Clopper-Pearson.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str] = "error"
    measure: ClassVar[Measure] = ZERO_ONE

    delta: float = option(
        0.05,
        Option(lambda name, value: _delta(name, value), "Failure probability of each bound.", float, "0.05"),
    )
    bound: str = option(
        "clopper_pearson",
        Option(
            lambda name, value: check_choice(name, value, BOUNDS),
            "Bound that L_EE is computed with: clopper_pearson (the paper's), stevens, safe or catoni. "
            "The minimised bound is always Clopper-Pearson.",
            shown="clopper_pearson",
            panel="Certificate",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def check(self, most_units: int) -> None:
        """Raise InputError if the averaging-safe bound is requested for more rows than are checked."""
        if self.bound == "safe" and most_units > MOST_CHECKED:
            raise InputError(
                f"bound='safe' is checked for at most {MOST_CHECKED} rows in an estimate set, and the "
                f"smallest k has {most_units}: use catoni"
            )

    def least(self, units: int) -> float:
        """Return U(0; units)."""
        return float(_table(units, self.delta)[0])

    def value(self, totals: NDArray[np.integer[Any]], units: int) -> Values:
        """Return U(errors; units), counting the errors of all classes together."""
        return np.asarray(_table(units, self.delta)[np.sum(totals, axis=-1)])

    def transfer(self, values: Values, units: int, others: int) -> Values:
        """Return the bounds on ``others`` rows at the same error rates, interpolated between counts."""
        rate = np.interp(values, _table(units, self.delta), np.arange(units + 1)) / units
        return np.asarray(np.interp(rate * others, np.arange(others + 1), _table(others, self.delta)))

    def reported(self, totals: Sequence[int], units: int, seed: int) -> float:
        """Return L_EE: the chosen bound over the errors on the estimate sets."""
        draws = randomisers(units, len(totals), seed) if self.bound == "stevens" else ()
        return reported_bound(self.bound, totals, units, self.delta, draws)


@lru_cache(maxsize=4096)
def _table(units: int, delta: float) -> Values:
    return bound_table(units, delta)


def _delta(name: str, value: Any) -> float:
    delta = number(name, value)
    check_delta(delta)
    if delta < LEAST_DELTA:
        raise InputError(
            f"delta={delta!r} is below {LEAST_DELTA:g}, the smallest that is divided among candidates"
        )
    return delta

"""What labels of live rows say about a certificate: whether it still holds, at all times.

Every quantity that is watched, the error and the error on each class, has a share of delta that is fixed
before the stream. So with probability 1 - delta all limits of a stream hold, at all times; and an alarm is
ever raised although all that is certified still holds with probability at most delta.
"""

from dataclasses import dataclass
from math import exp, fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Values
from ckcv_ray.core.bounds.betting import (
    AnytimeLimits,
    Prior,
    expect_alarm,
    expect_confirmation,
    limit_at_all_times,
    trace_alarm,
)
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.errors import pluralize
from ckcv_ray.tables.target import Label

HOLDS, UNKNOWN, ALARM, UNCERTIFIED = "holds", "unknown", "alarm", "not_certified"
LARGEST_LOG = 700.0  # exp of it is still a float


@dataclass(frozen=True)
class Watched:
    """A quantity that is watched.

    Attributes:
        label: of the class whose error it is; None for the error on all rows.
        bound: what is certified of it, an upper bound; None if nothing is.
        prior: of the limits.
        delta: its share of the delta of the stream.
    """

    label: Label | None
    bound: float | None
    prior: Prior
    delta: float


@dataclass(frozen=True)
class Finding:
    """What a stream says about a quantity.

    Attributes:
        watched: the quantity.
        units: rows, or groups, with a label.
        errors: how many of them are wrong; of groups the sum of their shares of wrong rows.
        limits: of its rate, which hold at all times together with probability 1 - delta.
        state: "holds", "unknown", "alarm", or "not_certified".
        evidence: ln of the largest value of the alarm process, which alarms at ln(1 / delta).
        alarm_batch: number of the batch, from 1, at whose end the alarm was raised; None without one.
        more: how many more units a decision is expected to take at the rate so far; None if it has been made,
            or is out of sight.
    """

    watched: Watched
    units: int
    errors: float
    limits: AnytimeLimits
    state: str
    evidence: float
    alarm_batch: int | None
    more: int | None

    @property
    def rate(self) -> float | None:
        """The error measured; None without labels."""
        return self.errors / self.units if self.units else None

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "class": self.watched.label,
            "units": self.units,
            "errors": self.errors,
            "error": self.rate,
            "low": self.limits.low,
            "high": self.limits.high,
            "delta": self.watched.delta,
            "certified": self.watched.bound,
            "state": self.state,
            "evidence": exp(min(self.evidence, LARGEST_LOG)),
            "alarm_batch": self.alarm_batch,
            "more": self.more,
        }

    def describe(self, unit: str) -> list[str]:
        """Return what was measured, and whether what is certified holds, a line each.

        Args:
            unit: "row" or "group".
        """
        label, counted = self.watched.label, pluralize(self.units, unit)
        name = "error" if label is None else f"error on class {label!r}"
        if self.rate is None:
            return [f"{name}: no label yet"]
        wrong = f"{self.errors:g} of {counted}" if unit == "row" else f"mean over {counted}"
        level = format_level(self.watched.delta)
        return [
            f"{name}: {format_percent(self.rate)} ({wrong}); at all times from "
            f"{floor_percent(self.limits.low)} to {ceil_percent(self.limits.high)}, with probability {level}",
            *([f"  {self._judge(unit)}"] if self.watched.bound is not None else []),
        ]

    def _judge(self, unit: str) -> str:
        assert self.watched.bound is not None
        certified = f"certified is at most {ceil_percent(self.watched.bound)}"
        if self.state == ALARM:
            return (
                f"ALARM, raised at the end of batch {self.alarm_batch:,}: wrong more often than certified, "
                f"from the first batch or from a later one ({certified}); such an alarm is ever false with "
                f"probability at most {ceil_percent(self.watched.delta)}"
            )
        if self.state == HOLDS:
            return f"the certificate holds: {certified}, and the labels show less"
        when = "no decision is in sight"
        if self.more is not None:
            when = f"a decision takes about {pluralize(self.more, f'more {unit}')}"
        return f"not yet known whether the certificate holds: {certified}; at the rate so far, {when}"


def judge_losses(watched: Watched, losses: Values, batches: NDArray[np.intp]) -> Finding:
    """Return what the losses of a stream say about a quantity.

    Args:
        watched: the quantity.
        losses: those that are its own, in [0, 1], batch after batch, (n,).
        batches: the numbers of their batches, from 0, ascending, (n,).
    """
    errors, units, delta = fsum(losses), len(losses), watched.delta
    limits = limit_at_all_times(errors, units, watched.prior, delta)
    if watched.bound is None:
        return Finding(watched, units, errors, limits, UNCERTIFIED, 0.0, None, None)
    numbers, sizes = np.unique(batches, return_counts=True)
    alarm = trace_alarm(losses, watched.bound, sizes)
    evidence = float(alarm.log_evidence.max(initial=0.0))
    first = alarm.find_first(delta)
    if first is not None:
        return Finding(watched, units, errors, limits, ALARM, evidence, int(numbers[first - 1]) + 1, None)
    if units and limits.high <= watched.bound:
        return Finding(watched, units, errors, limits, HOLDS, evidence, None, None)
    more = expect_confirmation(errors, units, watched.bound, watched.prior, delta)
    if more is None and units:
        more = expect_alarm(alarm, watched.prior.update(errors, units), watched.bound, delta)
    return Finding(watched, units, errors, limits, UNKNOWN, evidence, None, more)


def share_delta(delta: float, classes: int) -> tuple[float, float]:
    """Return the shares of delta of the error, and of the error on each class: they add up to delta."""
    return (delta / 2, delta / 2 / classes) if classes else (delta, 0.0)


def describe_level(delta: float) -> str:
    """Say with which probability all of it holds."""
    return (
        f"all limits hold at all times together with probability {format_level(delta)}, and an alarm is "
        f"ever false with probability at most {ceil_percent(delta)}"
    )

"""The verdict on a night: slowdowns and changed answers since earlier nights on the same kind of machine.

A ratio is compared with the median of the last ten nights, once three of them have it, an exact figure with
the last. The threshold of an alarm follows from the spread of those nights, and never exceeds the one
requested. A night with an alarm is part of the history like any other: a changed bound is reported once, and
a slowdown until it has become the median.
"""

import json
from collections.abc import Iterator, Sequence
from math import expm1, log
from statistics import median
from typing import NamedTuple

from ckcv_ray.storage.execution import find_changes
from jobs.nightly.figures import AT_FIRST, Figure, Key, Role
from jobs.nightly.history import Night

WINDOW = 10
LEAST = 3  # nights; fewer have no meaningful spread
FLOOR = 0.05  # memory layout of code and data alone changes times by that much
SPREADS = 5.0  # for ten nights; for fewer, more in inverse proportion: theirs is often too small by chance
NORMAL = 1.4826  # standard deviation of a normal distribution, in median absolute deviations


class Line(NamedTuple):
    """One figure over the nights of one kind of machine."""

    figure: Figure  # this night's
    nights: tuple[str, ...]  # where it was a number, the oldest first and this one last
    values: tuple[float, ...]
    median: float | None  # of the last ten before this night; None if there are none
    before: int  # nights in the median
    change: float | None  # how much slower than the median, as a share
    threshold: float | None  # how much slower is an alarm, as a share; None if it does not apply, or not yet
    last: str | None  # the last night's value, as JSON
    alarm: str  # what is wrong, or ""

    @property
    def early(self) -> bool:
        """Whether this is a speed with too few earlier nights for a threshold."""
        return self.figure.role == Role.RATIO and self.threshold is None


class Verdict(NamedTuple):
    """Result of comparing a night with earlier ones."""

    night: Night
    compared: tuple[str, ...]  # earlier nights of its kind that it was compared with, the oldest first
    lines: tuple[Line, ...]  # every figure
    alarms: tuple[str, ...]  # what is wrong, one sentence each
    notes: tuple[str, ...]  # other remarks
    threshold: float  # the largest of an alarm, as a share of time


def judge(nights: Sequence[Night], name: str, threshold: float) -> Verdict:
    """Compare a night with those before it on the same kind of machine.

    Args:
        nights: the history, the oldest first.
        name: the night in question.
        threshold: slower than the median of the last ten by this share is an alarm in any case.
    """
    at = next(i for i, night in enumerate(nights) if night.name == name)
    night, earlier = nights[at], nights[:at]
    before = [other for other in earlier if other.kind == night.kind]
    series: dict[Key, dict[str, Figure]] = {}
    for other in before:
        for figure in other.figures:
            series.setdefault(figure.key, {})[other.name] = figure
    lines = tuple(_line(name, one, series.get(one.key, {}), threshold) for one in night.figures)
    alarms = [line.alarm for line in lines if line.alarm] + list(_missing(night, before))
    compared = tuple(other.name for other in before[-WINDOW:])
    return Verdict(night, compared, lines, tuple(alarms), tuple(_notes(night, before, earlier)), threshold)


def _line(night: str, now: Figure, before: dict[str, Figure], threshold: float) -> Line:
    """Compare a figure with those of earlier nights, by their names."""
    numbers = {name: one.value for name, one in {**before, night: now}.items() if one.value is not None}
    recent = [one.value for one in [*before.values()][-WINDOW:] if one.value is not None]
    middle, ratio = median(recent) if recent else None, now.role == Role.RATIO
    change = middle / now.value - 1 if ratio and middle and now.value else None
    limit = allowed(recent, threshold) if ratio and len(recent) >= LEAST else None
    last, alarm = [*before.values()][-1].text if before else None, ""
    if now.role == Role.FAILED:
        reason = json.loads(now.text).strip().splitlines()[-1]
        alarm = f"the benchmark {now.group} failed: {reason}"
    elif change is not None and limit is not None and change > limit:
        alarm = (
            f"{now.label}: {change:.1%} slower, {now.value:.3g} times the baseline; the median of "
            f"{len(recent)} nights is {middle:.3g}, the threshold {limit:.1%}"
        )
    elif now.role == Role.EXACT and last not in (None, now.text):
        alarm = f"{now.label}: {now.text}, was {last} in night {[*before][-1]}"
    names, values = tuple(numbers), tuple(numbers.values())
    return Line(now, names, values, middle, len(recent), change, limit, last, alarm)


def allowed(ratios: Sequence[float], most: float) -> float:
    """Return the threshold of an alarm relative to the median of these nights, as a share: at most ``most``.

    If the logarithms of the ratios are independent and normal, with a spread of up to 2 %, an unchanged ratio
    exceeds it twice in a row (measured, and measured again) in less than one night of 1 000; a time longer by
    a fifth does so in 19 nights of 20.
    """
    logs = [log(ratio) for ratio in ratios]
    middle = median(logs)
    spread = NORMAL * median(abs(one - middle) for one in logs)
    return min(most, max(FLOOR, expm1(SPREADS * WINDOW / len(logs) * spread)))


def suspects(verdict: Verdict) -> set[Key]:
    """Return the keys of the ratios that would raise an alarm."""
    return {line.figure.key for line in verdict.lines if line.alarm and line.figure.role == Role.RATIO}


def _missing(night: Night, before: Sequence[Night]) -> Iterator[str]:
    """Describe the figures of a group that the last night measuring it has, and this one lacks."""
    for group in night.groups():
        present = {figure.key for figure in night.measured(group)}
        last = next((other for other in reversed(before) if other.measured(group)), None)
        if present and last is not None:
            for figure in last.measured(group):
                if figure.key not in present and figure.role != Role.FIRST:
                    yield f"{figure.label}: not measured, but was in night {last.name}"


def _notes(night: Night, before: Sequence[Night], earlier: Sequence[Night]) -> Iterator[str]:
    """Report what was measured again, and why there is nothing to compare with, if so."""
    values = {figure.key: figure.value for figure in night.figures}
    for first in (figure for figure in night.figures if figure.role == Role.FIRST):
        confirmed = first._replace(name=first.name.removesuffix(AT_FIRST))
        yield (
            f"{confirmed.label}: {first.value:.4g} times the baseline was suspect; a longer measurement gave "
            f"{values[confirmed.key]:.4g}, which counts"
        )
    if not before:
        yield f"the first night on this kind of machine ({night.kind}): there is nothing to compare with"
        if earlier:
            differing = "; ".join(find_changes(earlier[-1].machine, night.machine))
            yield f"changed since night {earlier[-1].name}, on another kind of machine: {differing}"

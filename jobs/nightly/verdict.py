"""Is it slower, or another answer? A night held against those before it on the same kind of machine.

A ratio is held against the median of the last ten nights that have it, once there are three, an exact figure
against the last. How much slower is an alarm follows from the spread of those nights, and is never more than
what was asked for. A night with an alarm is part of the history like any other: a changed bound is told once,
and a slowdown until it is the median.
"""

import json
from collections.abc import Iterator, Sequence
from math import expm1, log
from statistics import median
from typing import NamedTuple

from ckcv_ray.storage.environment import changes
from jobs.nightly.figures import AT_FIRST, Figure, Key, Role
from jobs.nightly.history import Night

WINDOW = 10
LEAST = 3  # nights; the spread of fewer is no spread
FLOOR = 0.05  # as much comes and goes with where code and data lie in memory
SPREADS = 5.0  # of ten nights; of fewer, in inverse proportion, more: theirs is often too small by chance
NORMAL = 1.4826  # the standard deviation of a normal distribution in median absolute deviations


class Found(NamedTuple):
    """A figure of a night."""

    night: str
    figure: Figure


class Line(NamedTuple):
    """One figure over the nights of one kind of machine.

    Attributes:
        figure: tonight's.
        nights, values: those before and tonight's, the oldest first, where it was a number.
        median: of the last ten before tonight; None where there are none.
        before: how many nights that is.
        change: how much slower than the median, as a share.
        threshold: how much slower is an alarm, as a share; None where that is not judged, or not yet.
        last: what the last night had, as JSON.
        alarm: what is wrong, or "".
    """

    figure: Figure
    nights: tuple[str, ...]
    values: tuple[float, ...]
    median: float | None
    before: int
    change: float | None
    threshold: float | None
    last: str | None
    alarm: str

    @property
    def early(self) -> bool:
        """Whether it is a speed that has too few nights before it to be judged."""
        return self.figure.role == Role.RATIO and self.threshold is None


class Verdict(NamedTuple):
    """What there is to say about a night: alarms first.

    Attributes:
        night: which.
        compared: nights of its kind before it that it was held against, the oldest first.
        lines: every figure.
        alarms: what is wrong, a sentence each.
        notes: what else to know.
        threshold: how much slower is an alarm at the most, as a share.
    """

    night: Night
    compared: tuple[str, ...]
    lines: tuple[Line, ...]
    alarms: tuple[str, ...]
    notes: tuple[str, ...]
    threshold: float


def judge(nights: Sequence[Night], name: str, threshold: float) -> Verdict:
    """Hold a night against those before it on the same kind of machine.

    Args:
        nights: the history, the oldest first.
        name: the night in question.
        threshold: how much slower than the median of the last ten is an alarm at the most, as a share.
    """
    at = next(i for i, night in enumerate(nights) if night.name == name)
    night, earlier = nights[at], nights[:at]
    before = [other for other in earlier if other.kind == night.kind]
    found: dict[Key, list[Found]] = {}
    for other in before:
        for figure in other.figures:
            found.setdefault(figure.key, []).append(Found(other.name, figure))
    lines = tuple(_line(Found(name, one), found.get(one.key, []), threshold) for one in night.figures)
    alarms = [line.alarm for line in lines if line.alarm] + list(_missing(night, before))
    compared = tuple(other.name for other in before[-WINDOW:])
    return Verdict(night, compared, lines, tuple(alarms), tuple(_notes(night, before, earlier)), threshold)


def _line(now: Found, before: Sequence[Found], threshold: float) -> Line:
    series = {one.night: one.figure.value for one in (*before, now) if one.figure.value is not None}
    recent = [one.figure.value for one in before[-WINDOW:] if one.figure.value is not None]
    middle, value = median(recent) if recent else None, now.figure.value
    ratio = now.figure.role == Role.RATIO
    slower = middle / value - 1 if ratio and middle and value else None
    own = allowed(recent, threshold) if ratio and len(recent) >= LEAST else None
    last = before[-1].figure.text if before else None
    line = Line(now.figure, tuple(series), tuple(series.values()), middle, len(recent), slower, own, last, "")
    return line._replace(alarm=_alarm(line, before))


def allowed(ratios: Sequence[float], most: float) -> float:
    """How much slower than the median of these nights is an alarm, as a share: at most ``most``.

    Where nights are independent and normal in their logarithms, with a spread of up to 2 %, a ratio that is
    as it was goes beyond it twice in a row (measured, and measured again) in less than one night of 1 000;
    a time longer by a fifth does in 19 nights of 20.
    """
    logs = [log(ratio) for ratio in ratios]
    middle = median(logs)
    spread = NORMAL * median(abs(one - middle) for one in logs)
    return min(most, max(FLOOR, expm1(SPREADS * WINDOW / len(logs) * spread)))


def suspects(verdict: Verdict) -> set[Key]:
    """The ratios that would raise the alarm."""
    return {line.figure.key for line in verdict.lines if line.alarm and line.figure.role == Role.RATIO}


def _alarm(line: Line, before: Sequence[Found]) -> str:
    """What is wrong with a figure; "" where nothing is."""
    figure = line.figure
    if figure.role == Role.FAILED:
        reason = json.loads(figure.text).strip().splitlines()[-1]
        return f"the benchmark {figure.group} did not come to its end: {reason}"
    if line.change is not None and line.threshold is not None and line.change > line.threshold:
        return (
            f"{figure.label}: {line.change:.1%} slower, {figure.value:.3g} times the baseline; the median of "
            f"{line.before} nights is {line.median:.3g}, and more than {line.threshold:.1%} is an alarm"
        )
    if figure.role == Role.EXACT and line.last not in (None, figure.text):
        return f"{figure.label}: {figure.text}, it was {line.last} in night {before[-1].night}"
    return ""


def _missing(night: Night, before: Sequence[Night]) -> Iterator[str]:
    """What the last night that measured a group had, and this one has not."""
    for group in night.groups():
        there = {figure.key for figure in night.measured(group)}
        last = next((other for other in reversed(before) if other.measured(group)), None)
        if there and last is not None:
            for figure in last.measured(group):
                if figure.key not in there and figure.role != Role.FIRST:
                    yield f"{figure.label}: not measured, as it was in night {last.name}"


def _notes(night: Night, before: Sequence[Night], earlier: Sequence[Night]) -> Iterator[str]:
    """What was measured again, and why there is nothing to compare with, if that is so."""
    values = {figure.key: figure.value for figure in night.figures}
    for first in (figure for figure in night.figures if figure.role == Role.FIRST):
        own = first._replace(name=first.name.removesuffix(AT_FIRST))
        yield (
            f"{own.label}: {first.value:.4g} times the baseline was suspect; measured again for longer, "
            f"{values[own.key]:.4g} counts"
        )
    if not before:
        yield f"the first night on this kind of machine ({night.kind}): there is nothing to compare it with"
        if earlier:
            differing = "; ".join(changes(earlier[-1].machine, night.machine))
            yield f"since night {earlier[-1].name}, on another kind of machine: {differing}"

"""Nights: their history, and the verdict on one of them.

The history is a folder, on a disk or an object store, with one JSON file for each night, written once. A
night is compared with nights of its kind of machine alone: the same processor, cores, system, Python and
packages. A ratio is compared with the median of the last ten of these, once three of them have it, an exact
figure with the last. The threshold of an alarm follows from the spread of those nights, and never exceeds the
one requested. A night with an alarm is part of the history like any other: a changed bound is reported once,
and a slowdown until it has become the median.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import expm1, log
from statistics import median
from typing import Any, NamedTuple

from ckcv_ray import GaussianSVM, InputError, StoreError
from ckcv_ray.errors import convert_errors, read_as
from ckcv_ray.storage.execution import find_changes, read_environment
from ckcv_ray.storage.files import MAX_FILE_BYTES, Files
from jobs.nightly.figures import Figure, Key, Role

PAGE = "nightly.html"
FOLDER = "history"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
WINDOW = 10
LEAST = 3  # nights; fewer have no meaningful spread
FLOOR = 0.05  # memory layout of code and data alone changes times by that much
SPREADS = 5.0  # for ten nights; for fewer, more in inverse proportion: theirs is often too small by chance
NORMAL = 1.4826  # standard deviation of a normal distribution, in median absolute deviations


class Night(NamedTuple):
    """The figures of one night, and where they were measured."""

    name: str  # usually its date
    began: datetime  # UTC; nights are ordered by it
    commit: str
    package: str  # its version
    plan: str
    machine: dict[str, Any]  # processor, cores, system, python, packages, blas
    figures: tuple[Figure, ...]

    @property
    def kind(self) -> str:
        """Identifier of the kind of machine: a digest of its description."""
        canonical = json.dumps(self.machine, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def groups(self) -> list[str]:
        """List the groups measured or attempted, in order."""
        return list(dict.fromkeys(figure.group for figure in self.figures))

    def measured(self, group: str) -> list[Figure]:
        """Return the figures of a group; none if its benchmark failed."""
        figures = [figure for figure in self.figures if figure.group == group]
        return [] if any(figure.role == Role.FAILED for figure in figures) else figures


def machine() -> dict[str, Any]:
    """Describe the kind of this machine."""
    return {**read_environment(GaussianSVM()), "cores": os.cpu_count()}


def check_name(night: str) -> str:
    """Check that a night's name can be part of a file name, and return it.

    Raises:
        InputError: it cannot.
    """
    if not NAME.fullmatch(night):
        raise InputError(f"night={night!r}: letters, digits, '.', '_' and '-', at most 64, as in 2026-08-01")
    return night


def read_nights(files: Files) -> list[Night]:
    """Read all nights, the oldest first; a file that starts with a dot was left by one that was killed.

    Raises:
        StoreError: a file is damaged, or not part of a history.
    """
    nights = []
    for file in (name for name in files.list(f"{FOLDER}/") if not name.startswith(f"{FOLDER}/.")):
        with convert_errors(StoreError, f"{files.path(file)} is damaged"):
            nights.append(night := read_as(Night, json.loads(files.read(file, MAX_FILE_BYTES))))
            if file != f"{FOLDER}/{night.name}.json" or not NAME.fullmatch(night.name):
                raise ValueError(f"it contains the night {night.name!r}")
    return sorted(nights, key=lambda night: (night.began, night.name))


def add_night(files: Files, night: Night) -> None:
    """Write the file of a night.

    Raises:
        StoreError: another job has just written this night.
    """
    figures = [figure._asdict() for figure in night.figures]
    values = night._asdict() | {"began": night.began.isoformat(), "figures": figures}
    file = f"{FOLDER}/{night.name}.json"
    if not files.create(file, (json.dumps(values, indent=1) + "\n").encode()):
        raise StoreError(f"{files.path(file)} was written by another job: it is not replaced")


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

    @property
    def limit(self) -> str:
        """The threshold of an alarm of a speed, in words."""
        if self.threshold is None:
            return f"too few nights: {self.before} of {LEAST}"
        return f"alarm above {self.threshold:.1%}"


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


def _missing(night: Night, before: Sequence[Night]) -> Iterator[str]:
    """Describe the figures of a group that the last night measuring it has, and this one lacks."""
    for group in night.groups():
        present = {figure.key for figure in night.measured(group)}
        last = next((other for other in reversed(before) if other.measured(group)), None)
        if present and last is not None:
            for figure in last.measured(group):
                if figure.key not in present:
                    yield f"{figure.label}: not measured, but was in night {last.name}"


def _notes(night: Night, before: Sequence[Night], earlier: Sequence[Night]) -> Iterator[str]:
    """Report why there is nothing to compare with, if so."""
    if not before:
        yield f"the first night on this kind of machine ({night.kind}): there is nothing to compare with"
        if earlier:
            differing = "; ".join(find_changes(earlier[-1].machine, night.machine))
            yield f"changed since night {earlier[-1].name}, on another kind of machine: {differing}"

"""Classes so rare that they may be judged without having been learned, and what to do about them.

All of it depends on how many rows, or groups, each class has, and on nothing that is drawn: what is advised
after a draw because of what it gave would be another draw.
"""

from collections.abc import Sequence
from math import exp, lgamma

import numpy as np

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.percent import format_percent
from ckcv_ray.errors import cut, cut_list, pluralize
from ckcv_ray.study.parts import MIN_HELD_OUT
from ckcv_ray.tables.task import MIN_CLASSES, Task

MAX_UNLEARNED = 0.05  # probability that a class is never learned, from which on it is said
MAX_NAMED, MAX_OF_LABEL = 5, 24


def describe_rare_classes(task: Task, held: int) -> list[str]:
    """Return a sentence about classes that are in one row or group, and one about those that are in few.

    Args:
        task: all rows.
        held: rows, or groups, of the task that are held out; 0 without a hold-out.
    """
    if task.has_numbers:
        return []
    units, n, unit, said = np.bincount(task.y, minlength=task.n_classes), task.n_units, task.unit, list[str]()
    if task.grouped:  # groups with rows of each class
        pairs = np.unique(task.y * np.int64(n) + task.groups)
        units = np.bincount(pairs // n, minlength=task.n_classes)
    rarest_first = np.argsort(units, kind="stable")
    lone = rarest_first[units[rarest_first] == 1]
    if len(lone):
        said.append(
            f"rare: {name_classes(task, lone, units, unit)}; where a class of one {unit} is judged, it was "
            f"not learned, and its rows count as wrong: {_leave_out(task, lone)}add {unit}s of it"
        )
    if (chance := _find_chance(units, held, n)) > MAX_UNLEARNED:
        least = MAX_UNLEARNED / len(units)
        few = [i for i in rarest_first if units[i] > 1 and _hold_all(units[i], held, n) > least]
        shares = (hundredths / 100 for hundredths in range(100 * held // n, 0, -1))
        possible = (share for share in shares if int(share * n) >= MIN_HELD_OUT)
        safe = (share for share in possible if _find_chance(units, int(share * n), n) <= MAX_UNLEARNED)
        limit = f"(at most {format_percent(MAX_UNLEARNED)})"
        share = next((f", or --holdout-share {share:g} {limit}" for share in safe), "")
        said.append(
            f"rare: {name_classes(task, few, units, unit)}; with probability {format_percent(chance)} all "
            f"{unit}s of one are among the {held:,} of {n:,} held out, and it is never predicted: before a "
            f"first run, {_leave_out(task, few)}choose --paper, which holds none out{share}"
        )
    return said


def name_classes(task: Task, classes: Sequence[int] | Index, counts: Index, unit: str = "row") -> str:
    """Name some classes with their ``counts`` (n_classes,); "" if there are none."""
    named = [
        f"{cut(repr(task.classes[i]), MAX_OF_LABEL)} ({pluralize(int(counts[i]), unit)})" for i in classes
    ]
    return ", ".join(cut_list(named, "classes more", MAX_NAMED))


def _leave_out(task: Task, classes: Sequence[int] | Index) -> str:
    it = "it" if len(classes) == 1 else "them"
    return f"leave {it} out, or " if task.n_classes - len(classes) >= MIN_CLASSES else ""


def _find_chance(units: Index, held: int, n: int) -> float:
    """Return about the probability that a class in several of n units has all of them held out."""
    return float(1 - np.prod([1 - _hold_all(count, held, n) for count in units if count > 1]))


def _hold_all(count: int, held: int, n: int) -> float:
    """Return the probability that ``count`` given ones of n units are among the ``held``."""
    if count > held:
        return 0.0
    return exp(lgamma(held + 1) - lgamma(held - count + 1) + lgamma(n - count + 1) - lgamma(n + 1))

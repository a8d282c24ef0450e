"""More than ten thousand splits: for each kind the digest of those of many sizes, numbers and seeds.

Tables, options, seeds and numbers of splits are drawn from each kind's own seed, so that a change of one kind
changes only its digest. Splits are requested as everything else requests them: from a study on a task.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from exact import Values, digest
from samples import generator

from ckcv_ray import KFold, NestedSplits, Procedure, Study, Task
from ckcv_ray.core import draws
from ckcv_ray.core.schedule import Stage
from ckcv_ray.extend import Bootstrap, LeaveOneOut, RepeatedKFold, SingleSplit, Subsampling
from ckcv_ray.study.problem import Problem

PROBLEMS = 25  # of each kind
SPLITS = 20  # of each problem
MEDIUM, FEW = (36, 120), (6, 9)  # the least and the largest number of rows
Rng = np.random.Generator
Rows = Iterator[Any]


def integer(rng: Rng, least: int, most: int) -> int:
    """Draw a whole number from ``least`` to ``most``."""
    return int(rng.integers(least, most + 1))


def share(rng: Rng) -> float:
    """Draw a share of the rows."""
    return integer(rng, 20, 60) / 100


def make_task(rng: Rng, rows: tuple[int, int], grouped: bool = False) -> Task:
    """Return a task of two classes, with a drawn number of rows."""
    n = integer(rng, *rows)
    y = np.arange(n) % 2
    y[rng.permutation(n)[: n // 5]] = 0
    groups = rng.integers(0, n // 2, size=n) if grouped else None
    return Task.of(np.arange(n, dtype=float)[:, None], y, groups=groups)


def make_study(rng: Rng, rows: tuple[int, int] = MEDIUM, grouped: bool = False, **options: Any) -> Any:
    """Return a study of ``run`` on a task, its seed drawn."""
    asked = Study.paper(learner="constant", seed=int(rng.integers(2**62)), **options)
    return Problem.of(asked, make_task(rng, rows, grouped))


def draw_splits(rng: Rng, **options: Any) -> Rows:
    """Yield the rows of splits of a study."""
    problem = make_study(rng, **options)
    for _ in range(SPLITS):
        size = integer(rng, 0, len(problem.sizes) - 1)
        number = integer(rng, 0, problem.sizes[size].n_splits - 1)
        for stage in (Stage.SELECT, Stage.ESTIMATE):
            yield from problem.rows(stage, size, number)


def draw_held_out(rng: Rng, **options: Any) -> Rows:
    """Yield the rows that holdout certifications of several shares hold out, and one split of the others."""
    for _ in range(SPLITS):
        asked = {"certify": "holdout", "holdout_share": integer(rng, 45, 60) / 100, "k": (3,)}
        problem = make_study(rng, (60, 120), **asked, **options)
        yield problem.held
        yield from problem.rows(Stage.ESTIMATE, 0, 0)


def draw_pairs(rng: Rng) -> Rows:
    """Yield pairs of rows of two classes."""
    y = rng.integers(0, 2, size=integer(rng, 10, 90))
    for _ in range(SPLITS):
        yield from draws.draw_pairs(y, draws.Draws(integer(rng, 0, 2**40)))


def draw_members(rng: Rng) -> Rows:
    """Yield members that classify rows."""
    members, seed = integer(rng, 2, 90), integer(rng, 0, 2**40)
    yield draws.seed_members(seed).integers(members, size=SPLITS)


def draw_scored(
    rng: Rng, resampling: Any, rows: tuple[int, int] = MEDIUM, grouped: bool = False, **options: Any
) -> Rows:
    """Yield the rows of splits of a procedure of ``evaluate``, those inside training sets included."""
    seed = int(rng.integers(2**62))
    asked = Procedure.of(resampling=resampling, learner="constant", seed=seed, **options)
    problem = Problem.of(asked, make_task(rng, rows, grouped))
    for i in range(SPLITS):
        size = i % len(problem.sizes)
        number = integer(rng, 0, problem.sizes[size].n_splits - 1)
        yield from problem.rows(Stage.SELECT, size, number)


def draw_nested(rng: Rng, outer: Any, inner: Any, **options: Any) -> Rows:
    """Yield the rows of nested splits, outer and inner ones in turn."""
    return draw_scored(rng, NestedSplits(outer, inner), select_by="zero_one", **options)


KINDS: dict[str, Callable[[Rng], Rows]] = {
    "complete": lambda rng: draw_splits(rng, n_splits=integer(rng, 3, 40)),
    "complete, all splits of few rows": lambda rng: draw_splits(rng, rows=FEW, n_splits=500),
    "complete, groups": lambda rng: draw_splits(rng, grouped=True, n_splits=integer(rng, 3, 40)),
    "rotation": lambda rng: draw_splits(rng, resampling="rotation"),
    "rotation, groups": lambda rng: draw_splits(rng, grouped=True, resampling="rotation"),
    "held out": draw_held_out,
    "held out, groups": lambda rng: draw_held_out(rng, grouped=True),
    "pairs of rows": draw_pairs,
    "members": draw_members,
    "single": lambda rng: draw_scored(rng, SingleSplit(share(rng))),
    "single, stratified": lambda rng: draw_scored(rng, SingleSplit(share(rng), stratify=True)),
    "folds": lambda rng: draw_scored(rng, KFold(integer(rng, 2, 9))),
    "folds, the rest in the last": lambda rng: draw_scored(rng, KFold(integer(rng, 2, 9), remainder="last")),
    "folds, stratified": lambda rng: draw_scored(rng, KFold(integer(rng, 2, 9), stratify=True)),
    "folds, groups": lambda rng: draw_scored(rng, KFold(integer(rng, 2, 9)), grouped=True),
    "repeated folds": lambda rng: draw_scored(rng, RepeatedKFold(integer(rng, 2, 9), 4)),
    "repeated folds, stratified": lambda rng: draw_scored(rng, RepeatedKFold(integer(rng, 2, 9), 4, True)),
    "drawn folds": lambda rng: draw_scored(rng, f"drawn_folds:{integer(rng, 2, 9)}"),
    "folds, stratified groups": lambda rng: draw_scored(
        rng, KFold(integer(rng, 2, 9), stratify=True), grouped=True
    ),
    "forward in time": lambda rng: draw_scored(rng, f"time:{integer(rng, 2, 9)}:{integer(rng, 0, 2)}"),
    "the .632 bootstrap": lambda rng: draw_scored(rng, "bootstrap632:12"),
    "the optimism bootstrap": lambda rng: draw_scored(rng, "optimism:9"),
    "one left out": lambda rng: draw_scored(rng, LeaveOneOut()),
    "sub-sampling": lambda rng: draw_scored(rng, Subsampling(30, share(rng))),
    "sub-sampling, stratified": lambda rng: draw_scored(rng, Subsampling(30, share(rng), stratify=True)),
    "bootstrap": lambda rng: draw_scored(rng, Bootstrap(30)),
    "bootstrap, groups": lambda rng: draw_scored(rng, Bootstrap(30), grouped=True),
    "nested folds": lambda rng: draw_nested(rng, KFold(integer(rng, 2, 5)), KFold(integer(rng, 2, 5))),
    "nested, stratified": lambda rng: draw_nested(
        rng, KFold(3, stratify=True), SingleSplit(0.5, stratify=True)
    ),
    "nested, drawn": lambda rng: draw_nested(rng, Subsampling(6, share(rng)), Bootstrap(5)),
    "nested, groups": lambda rng: draw_nested(rng, KFold(3), RepeatedKFold(2, 3), grouped=True),
}
NAMES = tuple(KINDS)


def observe(name: str) -> Values:
    """Draw splits of a kind; return their number and the digest of their rows."""
    rng = generator(30, *name.encode())
    drawn = [np.asarray(rows) for _ in range(PROBLEMS) for rows in KINDS[name](rng)]
    return {
        "draws": PROBLEMS * SPLITS,
        "digest": digest([rows.astype(f"<{rows.dtype.kind}8") for rows in drawn]),
    }

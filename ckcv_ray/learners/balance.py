"""Learners fitted to classes of equal size: rows of rarer classes are drawn again, or others left out.

It happens in every split, to the training rows alone, after they are encoded. Which rows are scored, and how
they are counted, does not change; so what is proven covers it, as part of the learner.

Draws depend on the numbers of the training rows alone, as all that is random in a fit: they are the same on
every machine.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Classes, Index
from ckcv_ray.learners.base import Block, Checked, Learner, Trainer, WrappedLearner
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.seeds import make_seed_sequence
from ckcv_ray.tables.task import Task

KEY = 1  # of the draws, apart from those of the learner


class Balance(StrEnum):
    """How the classes of a split's training rows are made equal in size."""

    NONE = "none"
    UP = "up"
    DOWN = "down"


def balance(learner: Learner, how: Balance, task: Task) -> Learner:
    """Return what fits a learner to balanced training rows of a task; the learner itself with ``NONE``."""
    if how is Balance.NONE:
        return learner
    if isinstance(learner, Choice):
        return learner.change_each(lambda single: balance(single, how, task))
    return BalancedLearner(learner, how, compute_share(how, task))


def compute_share(how: Balance, task: Task) -> float:
    """Return how many rows balancing all rows of a task would give, relative to their number."""
    if how is Balance.NONE:
        return 1.0
    counts = np.bincount(task.y)
    counts = counts[counts > 0]
    size = counts.min() if how is Balance.DOWN else counts.max()
    return float(size * len(counts) / task.n)


def draw_balanced(y: Classes, train: Index, how: Balance) -> Index:
    """Return training rows with as many of each class as of the largest (``UP``) or the smallest (``DOWN``).

    With ``UP`` all rows stay, and rows of other classes are drawn in addition, with replacement; with
    ``DOWN`` rows are drawn without. A class without training rows stays without.

    Args:
        y: the classes of all rows, (n,).
        train: numbers of the training rows.
        how: ``UP`` or ``DOWN``.

    Returns:
        Row numbers, ascending.
    """
    rng = np.random.default_rng(make_seed_sequence(train, KEY))
    classes, counts = np.unique(y[train], return_counts=True)
    parts = list[Index]()
    for rows in (train[y[train] == c] for c in classes):
        if how is Balance.UP:
            parts += [rows, rng.choice(rows, int(counts.max()) - len(rows))]
        else:
            parts.append(rng.choice(rows, int(counts.min()), replace=False))
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True)
class BalancedLearner(WrappedLearner):
    """A learner whose training rows are balanced first, in every split."""

    how: Balance
    share: float  # how many rows it is fitted to, relative to the training rows, about

    @cached_property
    def trainer(self) -> Trainer:
        """What fits the learner to balanced rows."""
        return BalancedTrainer(self)


class BalancedTrainer(Trainer):
    """Balances the training rows of each split, and fits the learner to them."""

    def __init__(self, balanced: BalancedLearner) -> None:
        self.how, self.factor, self.inner = balanced.how, balanced.share, balanced.learner.trainer

    def share(self, task: Task) -> tuple[Classes, Any]:
        """Return the classes, and what the learner's splits share."""
        return task.y, self.inner.share(task)

    def prepare(self, shared: tuple[Classes, Any], train: Index, score: Index) -> Block:
        """Balance the training rows, and prepare the learner on them; the rows to score are as they are."""
        y, of_learner = shared
        return self.inner.prepare(of_learner, draw_balanced(y, train, self.how), score)

    def cost(self, n_train: int) -> float:
        """Return the relative cost of a fit to as many rows as there are after balancing, about."""
        return self.inner.cost(self._count_rows(n_train))

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of the learner with balanced rows."""
        return self.inner.memory(self._count_rows(n_train), n_score, d)

    def check(self, model: Any, task: Task, train: Index, converged: bool) -> Checked:
        """Check the model against the balanced training rows."""
        return self.inner.check(model, task, draw_balanced(task.y, train, self.how), converged)

    def load(self) -> None:
        """Prepare the process for the learner."""
        self.inner.load()

    def state(self) -> dict[str, str]:
        """Return what else may change the bits of the learner's results."""
        return self.inner.state()

    def _count_rows(self, n_train: int) -> int:
        return max(1, ceil(n_train * self.factor))

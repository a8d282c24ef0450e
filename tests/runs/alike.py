"""What the tests of runs share.

Small studies, when two results are equal, splits as pairs of rows, and units that fail.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ckcv_ray import Result, Study
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine import evaluate
from ckcv_ray.study.problem import OUTER, Problem

SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=5)
STUDIES = [SMALL.replace(seed=seed) for seed in range(6)]


def same(a: Result, b: Result) -> bool:
    """Whether two results are equal except for what depends on the run."""
    models = all(
        a.problem.learner.codec.same(one.model, other.model)
        for one, other in zip(a.ensemble.members, b.ensemble.members, strict=True)
    )
    return models and a.certificate.claims == b.certificate.claims and a.candidates.equals(b.candidates)


def pairs(problem: Problem, size: int = OUTER) -> list[Any]:
    """The rows that each split of a procedure fits on and scores, as scikit-learn takes them."""
    return [problem.rows(Stage.SELECT, size, number) for number in range(problem.sizes[size].n_splits)]


def breaking(monkeypatch: pytest.MonkeyPatch, broken: Callable[[Unit], bool]) -> None:
    """Make some units raise."""
    real = evaluate._prepare

    def prepare(unit: Unit, inputs: evaluate.Inputs) -> evaluate.Prepared:
        if broken(unit):
            raise MemoryError("no room")
        return real(unit, inputs)

    monkeypatch.setattr(evaluate, "_prepare", prepare)

"""Small finished runs that tests of serving use."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from ckcv_ray import Execution, Result, Study, evaluate, run

SERIAL = Execution("serial")
ROW = {"age": 0.5, "dose": -0.25, "ward": "a"}


def make_table(n: int = 60) -> tuple[pa.Table, list[str]]:
    """Draw rows with two columns of numbers and one of categories, and their labels."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    columns = {
        "age": rng.normal(size=n) + y,
        "dose": rng.normal(size=n) - y,
        "ward": [("a", "b", "1")[i % 3] for i in range(n)],
    }
    return pa.table(columns), [("ill", "well")[i] for i in y]


@cache
def make_result(learner: str = "tree", **options: Any) -> Result:
    asked = {"k": 3, "n_splits": 3, "certify": "occam"} | options
    return run(Study.of(learner=learner, **asked), *make_table(), execution=SERIAL)


@cache
def make_model(learner: str = "tree") -> Result:
    """Evaluate a learner, and fit it on all rows."""
    table, labels = make_table()
    target = labels if learner != "ridge" else [float(i % 7) for i in range(len(labels))]
    return evaluate(table, target, learner=learner, refit="best", resampling="kfold:3", execution=SERIAL)

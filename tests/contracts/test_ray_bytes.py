"""Ray gives the same bytes as one process: studies that mix criteria, claims, groups, classes and tables."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import blobs
from learner_contract import clouds
from untidy import untidy

from ckcv_ray import Execution, Job, Study, Task
from ckcv_ray.runs.run import run_job
from ckcv_ray.tables.task import Roles

RNG = np.random.default_rng(np.random.SeedSequence(4))
GROUPS = RNG.permutation(np.repeat(np.arange(24), RNG.integers(1, 5, size=24)))
GRIDS: dict[str, Any] = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0), "n_splits": 4}
PLAIN = blobs(len(GROUPS))
GROUPED, UNTIDY = Task.of(PLAIN.X, PLAIN.y, groups=GROUPS), Task.from_table(untidy(80), Roles("outcome"))
RECALLS = "sensitivity,specificity,auc"
MIXED = {
    "paper of groups, mean error": (
        Study.paper(**GRIDS, k=(3, 4, 6), report_k=4, criterion="mean_error"),
        GROUPED,
    ),
    "holdout of groups": (
        Study.paper(**GRIDS, k=(3, 4), certify="holdout", holdout_share=0.5, claim="refit,vote"),
        GROUPED,
    ),
    "rotations, weighted": (
        Study.paper(
            C=(0.1, 10.0), gamma=(0.1, 1.0), k=(3, 5), resampling="rotation", class_weight="balanced"
        ),
        PLAIN,
    ),
    "holdout, balanced, by class": (
        Study.paper(**GRIDS, k=(3, 4), certify="holdout", criterion="balanced", claim=RECALLS),
        blobs(60),
    ),
    "holdout, costs, by class": (
        Study.paper(**GRIDS, k=(3, 4), certify="holdout", criterion="cost:-1=10,1=1", claim=RECALLS),
        blobs(60),
    ),
    "learners on a table": (Study.paper(**GRIDS, k=(3, 5), learner="svm,tree"), UNTIDY),
    "shares of three classes": (
        Study.paper(k=(3, 5), n_splits=4, learner="linear", encode="target"),
        Task.from_table(untidy(90, classes=("a", "b", "c")), Roles("outcome")),
    ),
    "within a budget": (
        Study.paper(**GRIDS, k=(3, 4, 5), search="budget:survivors=2", effort=150, report_k=4),
        PLAIN,
    ),
    "machines of three classes": (Study.paper(**GRIDS, k=(3, 5)), clouds(45, 3)),
}


def content(out: Path) -> dict[str, bytes]:
    """Every file that may not depend on how the run went, by name; those of inner runs too."""
    found = (out.rglob(kind) for kind in ("*.parquet", "*.pkl", "study.json", "certificate.json"))
    names = (file.relative_to(out) for file in chain(*found) if file.parent.name != "log")
    return {name.as_posix(): (out / name).read_bytes() for name in names}


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", MIXED)
def test_ray_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    study, task = MIXED[name]
    run_job(Job(study, task, tmp_path / "serial"), Execution("serial"))
    run_job(Job(study, task, tmp_path / "ray"), Execution("ray", workers=2))
    assert len(content(tmp_path / "serial")) >= 5
    assert content(tmp_path / "ray") == content(tmp_path / "serial")

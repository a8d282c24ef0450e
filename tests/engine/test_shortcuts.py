"""What is dropped is provably beaten: the default and --exhaustive give the same answer."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study import Execution, Study
from ckcv_ray.tables.task import Task

GRID = (0.01, 0.3, 1.0, 30.0, 1000.0)


@given(
    n=st.integers(6, 26),
    seed=st.integers(0, 10**6),
    distinct=st.integers(2, 6),
    C=st.sets(st.sampled_from(GRID), min_size=1, max_size=3),
    gamma=st.sets(st.sampled_from(GRID), min_size=1, max_size=3),
    n_splits=st.integers(1, 6),
    delta=st.sampled_from([0.05, 0.3]),
    report=st.booleans(),
    scale=st.sampled_from(["standard", "none"]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_default_equals_exhaustive(
    n: int,
    seed: int,
    distinct: int,
    C: set[float],
    gamma: set[float],
    n_splits: int,
    delta: float,
    report: bool,
    scale: str,
) -> None:
    """Few distinct values of one feature make equal counts, and so ties, common."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    X = rng.integers(distinct, size=(n, 1)).astype(float)
    y = np.where(np.arange(n) < 2, 1, np.where(np.arange(n) < 4, -1, rng.choice([-1, 1], n)))
    grid = {"C": tuple(C), "gamma": tuple(gamma), "n_splits": n_splits, "delta": delta, "scale": scale}
    reported = (4, n) if report and n > 4 else ()
    task = Task.of(X, y)
    answers = []
    for exhaustive in (False, True):
        study = Study.of(**grid, seed=seed, report_k=reported, exhaustive=exhaustive)
        result = run_job(Job(study, task), Execution("serial"))
        certificate = result.certificate.to_json()
        certificate.pop("run_id")
        told = [row for row in result.per_k() if row["state"] in ("winner", "reported")]
        members = [(m.model.offset, m.model.dual_coef.tobytes(), m.errors) for m in result.ensemble.members]
        shown = [(row["k_first"], row["setting"], row["l_ms"], row["l_ee"]) for row in told]
        answers.append((certificate, members, shown))
        counts = result.execution["evaluations"]
        assert counts["computed"] + counts["dropped"] == counts["planned"]
        assert not (exhaustive and counts["dropped"])
    assert answers[0] == answers[1]

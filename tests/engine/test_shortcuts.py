"""What is dropped is provably beaten: the default and --exhaustive give the same answer."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from nearest_centroid import NearestCentroid

from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import Execution, Study
from ckcv_ray.tables.task import Task

GRID = (0.01, 0.3, 1.0, 30.0, 1000.0)
CRITERIA = ("error", "balanced", "cost:a=1,b=0", "cost:a=2,b=7", "mean_error")
FOR_GROUPS = ("error", "mean_error")


@given(
    st.builds(
        SimpleNamespace,
        n=st.integers(8, 30),
        seed=st.integers(0, 10**6),
        distinct=st.integers(2, 6),
        rare=st.sampled_from([0.2, 0.5]),
        grouped=st.booleans(),
        C=st.sets(st.sampled_from(GRID), min_size=1, max_size=3),
        gamma=st.sets(st.sampled_from(GRID), min_size=1, max_size=3),
        n_splits=st.integers(1, 6),
        delta=st.sampled_from([0.05, 0.3]),
        report=st.booleans(),
        scale=st.sampled_from(["standard", "none"]),
        criterion=st.sampled_from(CRITERIA),
        several=st.booleans(),
    )
)
@settings(max_examples=2 * settings.default.max_examples, deadline=None, derandomize=True)
def test_default_equals_exhaustive(drawn: SimpleNamespace) -> None:
    """Few distinct values of one feature make equal counts, and so ties, common; classes are often absent."""
    n, criterion = drawn.n, drawn.criterion
    rng = np.random.default_rng(np.random.SeedSequence(drawn.seed, spawn_key=(n,)))
    X = rng.integers(drawn.distinct, size=(n, 1)).astype(float)
    X[:2] = [[0], [1]]
    y = np.array(["a", "b"])[
        np.where(np.arange(n) < 4, np.arange(n) % 2, rng.random(n) < drawn.rare).astype(int)
    ]
    units = (n + 1) // 2 if drawn.grouped and n > 11 and criterion in FOR_GROUPS else n
    groups = np.arange(n) // 2 if units < n else None
    task = Task.of(X, y, groups=groups)
    svm = GaussianSVM(C=tuple(drawn.C), gamma=tuple(drawn.gamma), scale=drawn.scale)
    learner = Choice((svm, NearestCentroid((0.5, 2.0)))) if drawn.several else svm
    options = {"n_splits": drawn.n_splits, "criterion": criterion}
    options |= {"report_k": (4, units) if drawn.report and units > 4 else ()}
    options |= {} if criterion == "mean_error" else {"delta": drawn.delta}
    answers = []
    for exhaustive in (False, True):
        study = Study.paper(**options, seed=drawn.seed, exhaustive=exhaustive).with_learner(learner)
        result = run_job(Job(study, task), Execution("serial"))
        certificate = result.certificate.to_json()
        certificate.pop("run_id")
        messages = [row for row in result.to_json()["per_k"] if row["state"] in ("winner", "reported")]
        shown = [(row["k_first"], row["setting"], row["l_ms"], row["l_ee"]) for row in messages]
        answers.append((certificate, shown, result.ensemble.members))
        counts = result.execution["evaluations"]
        assert counts["computed"] + counts["dropped"] == counts["planned"]
        assert not (exhaustive and counts["dropped"])
    (*short, members), (*full, others) = answers
    assert short == full
    assert [member.errors for member in members] == [member.errors for member in others]
    pairs = zip(members, others, strict=True)
    assert all(result.problem.learner.codec.same(one.model, other.model) for one, other in pairs)

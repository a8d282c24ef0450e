"""What a study will take, without running it."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import blobs

from ckcv_ray.engine import forecast
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import RunError
from ckcv_ray.learners.svm.trainer import SVMTrainer
from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Study

SMALL = Study.paper(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4)
SERIAL = Execution("serial")


@pytest.mark.parametrize(
    "study",
    [
        SMALL,
        Study.paper(C=(1.0,), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=7),
        Study.paper(C=(0.1, 1.0), gamma=(1.0,), k=(3, 5), resampling="rotation"),
        Study.paper(C=(0.1, 1.0), gamma=(1.0,), n_splits=3, certify="holdout"),
    ],
    ids=["every k", "some k", "rotation", "holdout"],
)
def test_the_evaluations_planned_are_those_of_the_run(study):
    task = blobs(36)
    planned, result = forecast.plan(study, task.X, task.y), run_job(Job(study, task), SERIAL)
    assert planned.evaluations == result.execution["evaluations"]["planned"]
    assert planned.evaluations == planned.splits * len(study.learner.C) * len(study.learner.gamma)
    assert 0 < planned.sizes <= planned.splits


def test_more_workers_take_no_longer_until_the_driver_is_what_all_wait_for():
    problem = Problem.of(Study.paper(n_splits=20_000), blobs(60))
    seconds = plan_problem(problem, (1, 2, 8, 64)).seconds_by_workers
    assert seconds[1] > seconds[2] > seconds[8] > seconds[64] > 0


def test_a_notebook_shows_a_plan_as_a_card_and_a_shell_its_fields():
    rows = blobs(60)
    planned = forecast.plan(SMALL.replace(certify="holdout"), rows.X, rows.y, workers=(1, 8))
    text = " ".join(re.sub("<[^>]*>", " ", planned._repr_html_()).split())
    for cost in (planned.counts, *map(" ".join, planned.costs.items()), *planned.list_needs()):
        assert " ".join(cost.split()) in text
    assert "8 workers about 5 s (ray)" in text
    assert repr(planned).startswith(f"Plan(evaluations={planned.evaluations}, splits=")
    many = replace(planned, claims=planned.claims * 8)
    assert many.list_needs()[-1].startswith(f"and {8 * len(planned.claims) - 6} claims more")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc to tell memory")
def test_hundred_million_evaluations_take_seconds_and_no_more_memory():
    """Against the same study in small: what is listed anywhere would show."""
    code = (
        "import json, sys; from ckcv_ray import Study; from ckcv_ray.tables.named import read_task\n"
        "from ckcv_ray.engine.forecast import plan_problem; from ckcv_ray.study.problem import Problem\n"
        "task, _ = read_task('twonorm:400:0')\n"
        "planned = plan_problem(Problem.of(Study.paper(n_splits=int(sys.argv[1])), task))\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(json.dumps(planned.to_json()))\n"
        "print(next(int(line.split()[1]) >> 10 for line in lines if line.startswith('VmHWM')))"
    )
    peaks, counts = [], []
    for n_splits in ("20", "19000"):
        done = subprocess.run(
            [sys.executable, "-c", code, n_splits], capture_output=True, text=True, check=True
        )
        messages, peak = done.stdout.splitlines()
        peaks.append(int(peak))
        counts.append(json.loads(messages)["evaluations"])
    assert counts[1] > 10**8 > 10**6 > counts[0]
    assert peaks[1] < peaks[0] + 150


def test_a_plan_of_what_fails_says_what_failed(monkeypatch):
    """Otherwise it took nobody knows how long, and JSON has no number for that."""

    def broken(*_):
        raise FloatingPointError("the matrix is a pineapple")

    monkeypatch.setattr(SVMTrainer, "prepare", broken)
    with pytest.raises(RunError, match=r"nothing could be computed: .* paths failed, the first at .*"):
        plan_problem(Problem.of(SMALL, blobs(30)))

"""What Prometheus sees of a run on Ray."""

import re
import time
import urllib.request

import pytest
import ray
from conftest import blobs

from ckcv_ray.runs.run import Job, run_job
from ckcv_ray.study.study import Execution, Study

STUDY = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4, 5), n_splits=6)
DEADLINE = 60.0


def scraped() -> dict[str, float]:
    """The project's figures at the metrics port of this machine's node."""
    (node,) = ray.nodes()
    with urllib.request.urlopen(f"http://127.0.0.1:{node['MetricsExportPort']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = (re.fullmatch(r"ray_(ckcv_\w+)\{.*\} (\S+)", line) for line in lines)
    return {match[1]: float(match[2]) for match in found if match}


@pytest.mark.usefixtures("ray_session")
def test_prometheus_sees_how_far_a_run_has_come() -> None:
    result = run_job(Job(STUDY, blobs(36)), Execution("ray", 2))
    expected = {
        "ckcv_evaluations_done": result.execution["evaluations"]["computed"],
        "ckcv_evaluations_dropped": result.execution["evaluations"]["dropped"],
        "ckcv_evaluations_failed": 0,
        "ckcv_batches_in_flight": 0,
    }
    end = time.monotonic() + DEADLINE
    while (shown := scraped()) | expected != shown and time.monotonic() < end:
        time.sleep(0.5)  # Ray passes figures on every few seconds
    assert shown | expected == shown
    assert shown["ckcv_fits_total"] >= result.execution["fits"]
    assert shown["ckcv_solver_seconds_total"] > 0

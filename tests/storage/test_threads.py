"""Arrow's threads may abort a process at its exit (arrow #34314), so a run starts none."""

import subprocess
import sys

SCRIPT = """
import os
import scipy.linalg  # whose BLAS has threads of its own
from ckcv_ray import Execution, Job, Study, load_run, read_task
from ckcv_ray.runs.run import run_job
from ckcv_ray.runs.verify import verify

def threads():
    return len(os.listdir("/proc/self/task"))

before = threads()
task, _ = read_task("twonorm:40:0")
run_job(Job(Study.paper(C=(1, 10), gamma=(0.1,), k=(3, 5), n_splits=3), task, "run"), Execution("serial"))
found = load_run("run")
found.summary()
found.predict(task.X)
verify("run", refit=1.0)
assert threads() == before, (before, threads())
"""


def test_a_run_starts_no_threads_of_arrow(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

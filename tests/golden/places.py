"""Names of inner modules that golden values cannot do without, each in one small function."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from samples import Sample

from ckcv_ray import Job, Study, Task
from ckcv_ray.core import draws
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.backend import SERIAL, SerialBackend
from ckcv_ray.engine.evaluate import evaluate, make_failures
from ckcv_ray.runs.run import check_job, run_work
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Procedure

make_study = Study.paper  # with a certification, whose defaults are those of the paper


make_procedure = Procedure.of  # without one, as ``evaluate`` makes it from its options
make_problem = Problem.of


def identify(problem: Any) -> str:
    """Return the JSON text of study and data whose SHA-256 begins with the run_id.

    Raises:
        LookupError: no text is found that does.
    """
    for kind in ("study", "procedure"):
        content = {kind: problem.asked.to_json(fixed=True), "data": problem.data_digest}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        if hashlib.sha256(text.encode()).hexdigest()[:12] == problem.run_id:
            return text
    raise LookupError(f"run_id {problem.run_id} is not the SHA-256 of study and data in canonical JSON")


def draw_rows(problem: Any, stage: str, size: int, number: int) -> tuple[Any, Any]:
    """Return the training rows and the scored rows of a split; ``stage`` is "select" or "estimate"."""
    train, scored = problem.rows(Stage(stage), size, number)
    return train, scored


def draw_pairs(y: Any, seed: int) -> Any:
    """Return the pairs of rows of two classes that the AUC is certified on."""
    return draws.draw_pairs(y, draws.Draws(seed))


def draw_members(n_members: int, rows: int, seed: int) -> Any:
    """Return the member of an ensemble that classifies each row."""
    return draws.draw_members(n_members, rows, draws.seed_members(seed))


def run_losing(study: Any, sample: Sample, out: Path, k: int, split: int) -> Any:
    """Run a study in this process by a backend that loses one split of k folds; return the result."""

    class Losing(SerialBackend):
        def wait(self) -> Iterable[Any]:
            units, problem = self.queue.popleft().units, self.inputs.problem
            lost = [unit for unit in units if (problem.sizes[unit.size].k, unit.split) == (k, split)]
            kept = [unit for unit in units if unit not in lost]
            done = [evaluate(self.inputs, kept)] if kept else []
            return [*done, *([make_failures(lost, problem, "lost")] if lost else [])]

    work = check_job(Job(study, Task.of(sample.X, sample.y), out))
    return run_work(work, opened=SERIAL._replace(backend=Losing))


def describe_columns(task: Any) -> list[Any]:
    """Return how each column of a task is understood: name, kind, levels, form, whether words are gaps."""
    columns = task.schema or task.forms
    if columns is None:
        return [[name, "number", [], "", False] for name in task.features]
    return [[one.name, str(one.kind), list(one.levels), one.form, one.lenient] for one in columns]

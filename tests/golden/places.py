"""Names of inner modules that golden values cannot do without, each in one small function.

``golden.py --against COMMIT`` runs this collector with the code of both commits, so it uses what both have:
the names that ``ckcv_ray`` exports, the attributes of its results, and the files of a run folder. What these
do not show is here alone. When something moves, name both places in ``find`` until the move has landed: the
first that exists is taken. If none does, that is reported as a difference, and nothing passes unseen.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from samples import Sample

from ckcv_ray import Job, Study, Task


def find(*places: str) -> Any:
    """Return the object at the first place that exists, written "module:name" without "ckcv_ray.".

    Raises:
        LookupError: it is in none of them.
    """
    for place in places:
        module, _, name = place.partition(":")
        with suppress(ModuleNotFoundError, AttributeError):
            return attrgetter(name)(import_module(f"ckcv_ray.{module}"))
    raise LookupError(f"not found in {', '.join(places)}: add where it has moved to")


make_study = Study.paper  # with a certification, whose defaults are those of the paper


def make_procedure(**options: Any) -> Any:
    """Return a study without a certification, as ``evaluate`` makes it from its options."""
    return find("study.study:Procedure").of(**options)


def make_problem(study: Any, task: Any) -> Any:
    """Return a study on a task, checked.

    Of the problem are used: ``asked`` in canonical form, ``run_id``, ``data_digest``, ``sizes``, ``rows``.
    """
    return find("study.problem:Problem").of(study, task)


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
    train, scored = problem.rows(find("core.schedule:Stage")(stage), size, number)
    return train, scored


def draw_pairs(y: Any, seed: int) -> Any:
    """Return the pairs of rows of two classes that the AUC is certified on."""
    return find("core.draws:draw_pairs")(y, find("core.draws:Draws")(seed))


def draw_members(n_members: int, rows: int, seed: int) -> Any:
    """Return the member of an ensemble that classifies each row."""
    return find("core.draws:draw_members")(n_members, rows, find("core.draws:seed_members")(seed))


def run_losing(study: Any, sample: Sample, out: Path, k: int, split: int) -> Any:
    """Run a study in this process by a backend that loses one split of k folds; return the result."""
    backend = find("engine.backend:SerialBackend")
    evaluate, make_failures = find("engine.evaluate:evaluate"), find("engine.evaluate:make_failures")

    class Losing(backend):
        def wait(self) -> Iterable[Any]:
            units, problem = self.queue.popleft().units, self.inputs.problem
            lost = [unit for unit in units if (problem.sizes[unit.size].k, unit.split) == (k, split)]
            kept = [unit for unit in units if unit not in lost]
            done = [evaluate(self.inputs, kept)] if kept else []
            return [*done, *([make_failures(lost, problem, "lost")] if lost else [])]

    work = find("runs.run:check_job")(Job(study, Task.of(sample.X, sample.y), out))
    return find("runs.run:run_work")(work, opened=find("engine.backend:SERIAL")._replace(backend=Losing))


def describe_columns(task: Any) -> list[Any]:
    """Return how each column of a task is understood: name, kind, levels, form, whether words are gaps."""
    columns = task.schema or task.forms
    if columns is None:
        return [[name, "number", [], "", False] for name in task.features]
    return [[one.name, str(one.kind), list(one.levels), one.form, one.lenient] for one in columns]

"""Names of inner modules that golden values cannot do without, each in one small function.

``jobs/golden --against COMMIT`` runs this collector with the code of both commits, so it uses what both have:
the names that ``ckcv_ray`` exports, the attributes of its results, and the files of a run folder. What these
do not show is here alone. When something moves, add its new place to the function here and leave the old one:
the first that exists is taken. If none does, that is reported as a difference, and nothing passes unseen.
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


def find(*places: str) -> Any:
    """Return the object at the first place that exists, written "module:name".

    Raises:
        LookupError: it is in none of them.
    """
    for place in places:
        module, _, name = place.partition(":")
        with suppress(ModuleNotFoundError, AttributeError):
            return attrgetter(name)(import_module(module))
    raise LookupError(f"not found in {', '.join(places)}: add where it has moved to")


def make_study(**options: Any) -> Any:
    """Return a study with a certification, whose defaults are those of the paper."""
    return find("ckcv_ray:Study.paper", "ckcv_ray:Study.of")(**options)


def make_procedure(**options: Any) -> Any:
    """Return a study without a certification, as ``evaluate`` makes it from its options."""
    return find("ckcv_ray:Study.without_certification", "ckcv_ray:Procedure.of")(**options)


def make_problem(study: Any, task: Any, certified: bool) -> Any:
    """Return a study on a task, checked; ``certified`` says whether it is for ``run``, and not ``evaluate``.

    Of the problem are used: ``study`` in canonical form, ``run_id``, ``data_digest``, ``sizes``, ``rows``.
    """
    of_run = "ckcv_ray.study:Problem", "ckcv_ray.study.problem:Problem"
    places = of_run if certified else ("ckcv_ray.study.assessment:Assessment", *of_run)
    return find(*places).of(study, task)


def get_study(problem: Any) -> Any:
    """Return the study of a problem, of either kind."""
    return problem.asked if hasattr(problem, "asked") else problem.study


def identify(problem: Any) -> str:
    """Return the JSON text of study and data whose SHA-256 begins with the run_id.

    Raises:
        LookupError: no text is found that does.
    """
    for kind in ("study", "procedure"):
        content = {kind: get_study(problem).to_json(fixed=True), "data": problem.data_digest}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        if hashlib.sha256(text.encode()).hexdigest()[:12] == problem.run_id:
            return text
    raise LookupError(f"run_id {problem.run_id} is not the SHA-256 of study and data in canonical JSON")


def draw_rows(problem: Any, stage: str, size: int, number: int) -> tuple[Any, Any]:
    """Return the training rows and the scored rows of a split; ``stage`` is "select" or "estimate"."""
    stages = find("ckcv_ray.core.schedule:Stage")
    train, scored = problem.rows(stages(stage), size, number)
    return train, scored


def draw_held_out(problem: Any) -> Any:
    """Return the rows that a holdout certification holds out."""
    return problem.held


def make_draws(seed: int) -> Any:
    """Return the source of draws of a seed alone."""
    return find("ckcv_ray.core.draws:Draws")(seed)


def draw_pairs(y: Any, seed: int) -> Any:
    """Return the pairs of rows of two classes that the AUC is certified on."""
    return find("ckcv_ray.core.draws:draw_pairs", "ckcv_ray.core.resampling:draw_pairs")(y, make_draws(seed))


def draw_members(n_members: int, rows: int, seed: int) -> Any:
    """Return the member of an ensemble that classifies each row."""
    draws = find("ckcv_ray.core.draws:seed_members", "ckcv_ray.core.resampling:member_draws")(seed)
    draw = find("ckcv_ray.core.draws:draw_members", "ckcv_ray.core.resampling:draw_members")
    return draw(n_members, rows, draws)


def predict(result: Any, X: Any, by: str, seed: int | None = None) -> Any:
    """Return the labels that a rule predicts: "auto", "vote", "random", "refit", "full", or "member:1"."""
    rule, _, number = by.partition(":")
    flags = {"auto": {}, "random": {"all_members": True}, "member": {"member": int(number or 0)}}
    try:
        return result.predict(X, by=by, seed=seed)
    except TypeError:  # where each rule has an argument of its own
        return result.predict(X, seed=seed, **flags.get(rule, {rule: True}))


def run_losing(study: Any, sample: Sample, out: Path, k: int, split: int) -> Any:
    """Run a study in this process by a backend that loses one split of k folds; return the result."""
    backend = find("ckcv_ray.engine.backend:SerialBackend")
    evaluate = find("ckcv_ray.engine.evaluate:evaluate")
    make_failures = find("ckcv_ray.engine.evaluate:make_failures", "ckcv_ray.engine.evaluate:failed")

    class Losing(backend):
        def wait(self) -> Iterable[Any]:
            units, problem = self.queue.popleft().units, self.inputs.problem
            lost = [unit for unit in units if (problem.sizes[unit.size].k, unit.split) == (k, split)]
            kept = [unit for unit in units if unit not in lost]
            done = [evaluate(kept, self.inputs)] if kept else []
            return [*done, *([make_failures(lost, problem.n_totals, "lost")] if lost else [])]

    job, task = find("ckcv_ray:Job"), find("ckcv_ray:Task")
    work = find("ckcv_ray.runs.run:check_job", "ckcv_ray.runs.run:checked")(
        job(study, task.of(sample.X, sample.y), out)
    )
    session = find("ckcv_ray.engine.backend:SERIAL")._replace(backend=Losing)
    return find("ckcv_ray.runs.run:run_work")(work, opened=session)


def describe_columns(task: Any) -> list[Any]:
    """Return how each column of a task is understood: name, kind, levels, form, whether words are gaps."""
    columns = task.schema or task.forms
    if columns is None:
        return [[name, "number", [], "", False] for name in task.features]
    return [[one.name, str(one.kind), list(one.levels), one.form, one.lenient] for one in columns]

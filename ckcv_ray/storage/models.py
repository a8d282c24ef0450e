"""The models of a finished run: a table for each ensemble, and the members of F* as pickles.

ensemble/models.parquet     F*
ensemble/refit.parquet      one model on all rows that were not held out
ensemble/full.parquet       one model on all rows, if some were held out
ensemble/references.parquet one model of each learner that the winner is compared with
ensemble/model-*.pkl        the members of F*, each usable by itself
"""

import hashlib
import json
from dataclasses import replace

from ckcv_ray.errors import StoreError
from ckcv_ray.learners import ensemble as ensembles
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.storage.files import Files, guard_reading, make_table, read_footer, read_table
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.task import Task

ENSEMBLE = "ensemble/"
MODELS = f"{ENSEMBLE}models.parquet"
REFIT, FULL = f"{ENSEMBLE}refit.parquet", f"{ENSEMBLE}full.parquet"
REFERENCES = f"{ENSEMBLE}references.parquet"
TABLES = (MODELS, REFIT, FULL, REFERENCES)
NUMBERS = 4  # per model, class, and row or column: no learner here has more
ROOM_BYTES = 1 << 16  # a pickle may exceed what this version writes by this much


def make_model_table(problem: Problem, ensemble: Ensemble) -> bytes:
    """Return the file of an ensemble."""
    task = problem.task
    names = {"labels": json.dumps(task.classes), "features": json.dumps(task.features)}
    return make_table(ensembles.to_arrow(ensemble, problem.learner, task), problem.run_id, names)


def read_full(files: Files, problem: Problem, setting: Setting) -> Ensemble:
    """Read the model of a study without a certification that is fitted on all rows.

    Raises:
        StoreError: the file is damaged, or holds a model at another setting.
    """
    full = _read_table(files, FULL, problem.task, problem, 0, 1)
    with guard_reading(files, FULL):
        if problem.learner.codec.setting(full.members[0].model) != setting:
            raise ValueError(f"it is fitted at another setting than the scores give, {dict(setting)}")
    return full


def read_models(files: Files, problem: Problem, k: int) -> Models:
    """Read F* at k folds, and the other models that the study has.

    Raises:
        StoreError: a file is damaged, or does not hold a model for each split.
    """
    n_splits = problem.find_size(k).n_splits
    models = Models(_read_table(files, MODELS, problem.task, problem, k, n_splits))
    if problem.held is not None:
        refit = _read_table(files, REFIT, problem.task, problem, k, 1)
        full = _read_table(files, FULL, problem.every_row, problem, k, 1)
        models = replace(models, refit=refit, full=full)
    if problem.references and files.exists(REFERENCES):
        with guard_reading(files, REFERENCES):
            there = read_footer(files, REFERENCES).num_rows
            if not 0 < there <= len(problem.references):
                raise ValueError(f"it has {there} models of {len(problem.references)} learners at most")
        references = _read_table(files, REFERENCES, problem.task, problem, None, there)
        models = replace(models, references=references)
    return models


def read_pickles(files: Files, problem: Problem, ensemble: Ensemble, digests: dict[str, str]) -> Ensemble:
    """Open the pickles of an ensemble, if each has the given digest.

    Raises:
        StoreError: one is missing, too large, or its SHA-256 differs from that in the manifest.
    """
    expected = ensembles.to_pickles(ensemble, problem.learner, problem.task)
    contents = []
    for name, similar in expected.items():
        file = f"{ENSEMBLE}{name}"
        with guard_reading(files, file):
            content = files.read(file, len(similar) + ROOM_BYTES)
        if hashlib.sha256(content).hexdigest() != digests.get(file):
            raise StoreError(f"{files.path(file)} does not match the manifest: it is not opened")
        contents.append(content)
    return ensembles.from_pickles(contents)


def _read_table(files: Files, name: str, task: Task, problem: Problem, k: int | None, count: int) -> Ensemble:
    """Read the ensemble in a file, one member for each split, fitted on rows of a task; None for any k."""
    losses = problem.has_losses
    schema = ensembles.make_schema(problem.learner, task, losses)
    widest = max(task.X.shape[1], *(each.width for each in problem.prepared.values()))
    most = count * (len(schema) + NUMBERS * max(2, task.n_classes) * (task.n + widest))
    rows = read_table(files, name, problem.run_id, schema, count, most)
    with guard_reading(files, name):
        ensemble = ensembles.from_arrow(rows, problem.learner, task, losses)
        splits = [(member.k if k is not None else k, member.split) for member in ensemble.members]
        if splits != [(k, i) for i in range(count)]:
            raise ValueError(f"expected a model for each of the {count} splits of k = {k}")
        if any(len(member.errors) != task.n_classes for member in ensemble.members):
            raise ValueError(f"expected counts for {task.n_classes} classes")
    return ensemble

"""One learning set: every certification of it, and the true error of what each claim is about."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray import Execution, InputError, Job, Study, Task, judge
from ckcv_ray.claims.certify import prove
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.core.process import one_thread
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem
from jobs.paper.sources import SOURCES, Fresh, Matrix, Setting

SERIAL = Execution("serial")
STUDY = Study.paper(C="log:-2:4:5", gamma="log:-4:1:5", k=(3, 4, 5, 6, 8, 10), n_splits=20, scale="none")
HALF = {"certify": "holdout", "holdout_share": 0.5}
L_EE, PAPER = "l_ee", "paper"
REFIT, STEVENS = "holdout half refit", "holdout half refit Stevens"
JUDGED = "judge"  # the same rows, as a file of labels and predictions
OF_CLASS = {"holdout half sensitivity": 1, "holdout half specificity": 0}  # and the class it is about
BOTH = "holdout half by class"
CUT = {"holdout half cut-off sensitivity": 1, "holdout half cut-off specificity": 0}
CUT_BOTH, REQUIRED = "holdout half cut-off both", "sensitivity>=0.8"


class Measured(NamedTuple):
    """A bound, and the true value of what it bounds, as rates."""

    claim: str
    bound: float
    truth: float


def trial(setting: Setting, run: int) -> dict[str, tuple[float, float]]:
    """Return bound and truth of every claim on learning set ``run`` of a setting.

    Claims whose study is refused because a part of the rows lacks a class are left out.
    """
    source, rng = SOURCES[setting.source], setting.generator(run)
    seed = int(rng.integers(2**32))
    study = STUDY.replace(seed=seed)
    rows, fresh = source.draw(setting.n, rng), source.fresh(rng)
    measured: dict[str, tuple[float, float]] = {}
    with one_thread():
        for part in (paper, half):
            try:
                task = Task.of(rows.X, rows.y, groups=rows.groups)
                measured |= {claim: (bound, truth) for claim, bound, truth in part(study, task, fresh)}
            except InputError:
                if not source.rare:
                    raise
    return measured


def paper(study: Study, task: Task, fresh: Fresh) -> Iterator[Measured]:
    """Measure L_EE and A on F*."""
    result = run_job(Job(study, task), SERIAL)
    risks = misses(result.ensemble, task, fresh).sum(axis=1)
    yield Measured(L_EE, result.l_ee, float(risks.mean()))
    yield Measured(PAPER, result.proven, float(risks.mean()))


def half(study: Study, task: Task, fresh: Fresh) -> Iterator[Measured]:
    """Measure holdout of half, for one model: its error by both bounds, and both recalls.

    The studies use the same rows, and so the same model.
    """
    result = run_job(Job(study.replace(**HALF, claim="refit"), task), SERIAL)
    assert result.models.refit is not None
    missed = misses(result.models.refit, result.task, fresh)[0]
    yield Measured(REFIT, result.proven, float(missed.sum()))
    rows = result.judged
    assert rows is not None
    y, predicted, units = (rows[name].to_numpy() for name in ("label", "predicted", "unit"))
    groups = None if task.units.independent else units
    yield Measured(JUDGED, judge(y, predicted, groups=groups).claims[0].risk, float(missed.sum()))
    if task.units.independent:
        closer = Problem.of(study.replace(**HALF, claim="refit", holdout_bound="stevens"), task)
        (claim,) = prove(HeldOutPredictions(closer, result.models), result.k)
        yield Measured(STEVENS, claim.risk, float(missed.sum()))
        claimed = study.replace(**HALF, claim="sensitivity,specificity")
        yield from recalls(claimed, task, result.models, fresh, OF_CLASS, BOTH)
        required = study.replace(**HALF, require=REQUIRED)
        yield from recalls(required, task, result.models, fresh, CUT, CUT_BOTH)


def recalls(
    study: Study, task: Task, models: Models, fresh: Fresh, names: dict[str, int], both: str
) -> Iterator[Measured]:
    """Compare both recalls with the missed share of each class; then the worse of them.

    What is claimed does not change the selection, so the models are those of the study with another claim.
    Nothing is measured where too few positives are held out for the cut-off that is required.
    """
    try:
        problem = Problem.of(study, task)
    except InputError:
        return
    claims = prove(HeldOutPredictions(problem, models), models.best.members[0].k)
    if names is CUT and claims[0].cut_off is None:
        return
    label = claims[0].make_rule(problem).predict(models, fresh.X).label
    each = [
        Measured(name, claim.risk, float((label != c) @ fresh.weight[:, c] / fresh.weight[:, c].sum()))
        for (name, c), claim in zip(names.items(), claims, strict=True)
    ]
    yield from each
    yield max(each, key=lambda one: one.truth - one.bound)._replace(claim=both)


def misses(ensemble: Ensemble, task: Task, fresh: Fresh) -> Matrix:
    """Return the probability, for each member and class, that it misclassifies a new pattern of the class."""
    X = fresh.X if fresh.exact else fresh.X.astype(np.float32)
    positive = decisions([member.model for member in ensemble.members], task.X, X)
    return np.column_stack([positive @ fresh.weight[:, 0], ~positive @ fresh.weight[:, 1]])


def decisions(models: list[Any], learned: Matrix, X: Matrix) -> Matrix:
    """Return which patterns each model classifies as positive, [models, len(X)]; a gamma's kernel is shared.

    Kernels have the precision of X: single precision is far finer than the resolution of a sample.

    Args:
        models: fitted on some of the rows ``learned`` [n, d].
        X: patterns, [T, d].
    """
    learned = learned.astype(X.dtype)
    squares = np.sum(X**2, axis=1)[:, None] + np.sum(learned**2, axis=1)
    distances = np.maximum(squares - 2 * X @ learned.T, 0)
    positive = np.empty((len(models), len(X)), dtype=bool)
    for gamma in {model.gamma for model in models}:
        same = [i for i, model in enumerate(models) if model.gamma == gamma]
        b = np.zeros((len(learned), len(same)), dtype=X.dtype)
        for column, i in enumerate(same):
            b[models[i].support, column] = models[i].dual_coef[0]
        offsets = [models[i].offset[0] for i in same]
        positive[same] = (np.exp(X.dtype.type(-gamma) * distances) @ b + offsets > 0).T
    return positive


BY_CLASS = (*OF_CLASS, BOTH, *CUT, CUT_BOTH)
CLAIMS = (L_EE, PAPER, REFIT, JUDGED, STEVENS, *BY_CLASS)

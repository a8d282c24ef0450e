"""Golden values of studies: winner, bounds, claims, candidates, predictions, models and files.

Counts, bounds and winners are the same on every processor; the bits of models, and of files with figures
that depend on them, are the same on one kind of processor with one set of versions.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

from exact import BITS, Values, digest, digest_files, digest_log, exact
from samples import Sample, cloud, clouds, lattice, patients, visits

from ckcv_ray import Execution, Job, Result, Study, Task, run
from ckcv_ray.engine.backend import SERIAL, SerialBackend
from ckcv_ray.engine.evaluate import evaluate, make_failures
from ckcv_ray.runs.run import check_job, run_work

PLAIN = Study.paper(
    C=(0.1, 1.0, 10.0, 1000.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 10), n_splits=6, report_k=(5,)
)
SMALL = Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), k=(3, 5), n_splits=4)
LEARNERS = {
    "learner": "tree,naive_bayes,linear",
    "tree.param": {"ccp_alpha": [0.0, 0.05], "criterion": ["gini"], "min_samples_leaf": [1, 5]},
    "naive_bayes.param": {"var_smoothing": [1e-9, 1e-3]},
    "linear.param": {"C": [0.1, 1.0]},
}


class Golden(NamedTuple):
    """A study on a small table.

    Attributes:
        study, sample: what is run.
        rules: rules that predict the learning rows, besides members drawn with a seed.
        lost: k and the number of a split that the backend loses.
    """

    study: Study
    sample: Sample
    rules: tuple[str, ...] = ("vote", "member:1")
    lost: tuple[int, int] | None = None


STUDIES = {
    "plain": Golden(PLAIN, cloud(80)),
    "ties": Golden(PLAIN.replace(scale="none"), lattice(60)),
    "equal fold sizes": Golden(PLAIN.replace(k=None, n_splits=3, report_k=()), cloud(24)),
    "rotation": Golden(PLAIN.replace(resampling="rotation"), cloud(60)),
    "holdout with two claims": Golden(
        PLAIN.replace(certify="holdout", holdout_share=0.33, claim=("vote", "refit")),
        cloud(90),
        ("auto", "refit", "full"),
    ),
    "fits that do not converge": Golden(PLAIN.replace(param={"max_iter": 5}), cloud(60)),
    "four classes": Golden(PLAIN.replace(class_weight="balanced"), clouds(96, 4)),
    "a failed split": Golden(PLAIN, cloud(50), lost=(4, 2)),
    "every evaluation": Golden(SMALL.replace(exhaustive=True), cloud(40)),
    "balanced errors, claims by class": Golden(
        SMALL.replace(
            criterion="balanced",
            certify="holdout",
            holdout_share="auto",
            claim=("refit", "sensitivity", "specificity", "auc"),
            positive="no",
        ),
        lattice(120),
        ("auto", "refit", "full"),
    ),
    "costs": Golden(SMALL.replace(criterion="cost:yes=3,no=1"), lattice(60)),
    "groups": Golden(
        SMALL.replace(certify="holdout", holdout_share=0.33, claim="vote"),
        visits(120),
        ("auto", "refit", "full"),
    ),
    "landmarks, three classes": Golden(
        SMALL.replace(certify="holdout", holdout_share=0.33, class_weight="balanced").replace(
            learner="svm_nystroem", param={"landmarks": 12}
        ),
        clouds(90, 3),
    ),
    "a budget": Golden(PLAIN.replace(search="budget:least_splits=3", effort=200), cloud(80)),
    "a budget, on parts of the rows first": Golden(
        SMALL.replace(certify="holdout", search="budget:keep=0.5,survivors=2,least_splits=4", effort=60),
        cloud(1400),
        ("auto", "refit", "full"),
    ),
    "a budget that pays for everything": Golden(PLAIN.replace(search="budget", effort=10**6), cloud(80)),
    "several learners on an untidy table": Golden(
        Study.paper(k=(3, 5), n_splits=3, encode="target", fill="mean", **LEARNERS), patients(60)
    ),
}
NAMES = tuple(STUDIES)


def run_golden(name: str, out: Path) -> Result:
    """Run a golden study in this process, with a backend that loses one split of k folds if asked to."""
    study, sample, _, lost = STUDIES[name]
    if lost is None:
        return run(study, sample.X, sample.y, out, Execution("serial"), groups=sample.groups)

    class Losing(SerialBackend):
        def wait(self) -> Iterable[Any]:
            units, problem = self.queue.popleft().units, self.inputs.problem
            missing = [unit for unit in units if (problem.sizes[unit.size].k, unit.split) == lost]
            kept = [unit for unit in units if unit not in missing]
            done = [evaluate(self.inputs, kept)] if kept else []
            return [*done, *([make_failures(missing, self.inputs, "lost")] if missing else [])]

    work = check_job(Job(study, Task.of(sample.X, sample.y), out))
    return run_work(work, opened=SERIAL._replace(backend=Losing))


def observe(name: str) -> Values:
    """Run a golden study in this process; return its values."""
    study, sample, rules, _ = STUDIES[name]
    with TemporaryDirectory() as folder:
        out = Path(folder)
        result = run_golden(name, out)
        values = describe(result) | {
            "predictions": {rule: digest(_predict(result, sample, rule)) for rule in (*rules, "random")}
        }
        if study.search.exhaustive:
            values[f"{BITS}records"] = digest_log(out)
        return values | digest_files(out)


def describe(result: Result) -> Values:
    """Return what a study has found and proven."""
    certificate = SimpleNamespace(**result.certificate.to_json())
    return exact(
        {
            "winner": [dict(result.setting), result.k],
            "l_ms": result.certificate.l_ms,
            "l_ee": result.l_ee,
            "claims": [
                [c[name] for name in ("certification", "classifier", "quantity", "bound", "delta")]
                for c in certificate.claims
            ],
            "reported": [
                [row["k_first"], row["l_ms"], row["l_ee"]] for row in result.to_json()["per_k"] if row["l_ee"]
            ],
            "candidates": digest(list(_candidates(result))),
            "provisional": certificate.provisional,
            "error": result.certificate.error,
            "constants": certificate.constants["members"],
            "class_rows": certificate.class_rows,
            "baselines": [[b["on"], b["predicted"], b["errors"], b["rows"]] for b in certificate.baselines],
            "errors": [[list(member.errors) for member in result.ensemble.members]],
        }
    )


def _candidates(result: Result) -> Iterator[dict[str, Any]]:
    """Yield what is recorded of each candidate and is the same on every processor."""
    for row in result.candidates.to_pylist():
        yield {name: value for name, value in row.items() if name not in ("state", "l_ms", "l_ee")}


def _predict(result: Result, sample: Sample, rule: str) -> list[Any]:
    labels = result.predict(sample.X, by=rule, seed=5 if rule == "random" else None)
    return list(labels.tolist())

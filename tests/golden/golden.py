"""Nine small studies whose values must not change: compare with recorded values, record, compare commits.

Compared are counts, bounds, winners and claims; with the same kind of processor and the same versions, also
every bit of the models. Not compared: the run_id, file layouts, and texts.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from ckcv_ray import Result, Study, Task
from ckcv_ray.engine.backend import SERIAL, SerialBackend, Session
from ckcv_ray.engine.evaluate import evaluate, failed
from ckcv_ray.learners.ensemble import Ensemble, Outcome
from ckcv_ray.learners.svm.pairwise import PairwiseSVM
from ckcv_ray.runs.run import Job, checked, run_work
from ckcv_ray.storage.environment import changes, environment

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("values.json")
EXACT = "exact"  # the part of a study's values that is compared only in the same environment
Values = dict[str, Any]


def cloud(n: int, d: int = 3) -> Task:
    """Draw two overlapping clouds."""
    rng = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(n, d)))
    y = np.where(np.arange(n) % 2, 1, -1)
    return Task.of(rng.normal(size=(n, d)) + y[:, None] / 2, y)


def lattice(n: int) -> Task:
    """Draw few distinct rows, so that many candidates make the same errors."""
    rng = np.random.default_rng(np.random.SeedSequence(8, spawn_key=(n,)))
    X = rng.integers(0, 2, size=(n, 2)).astype(float)
    return Task.of(X, np.where(X.sum(axis=1) + rng.random(n) > 1.2, "yes", "no"))


def clouds(n: int, n_classes: int) -> Task:
    """Draw overlapping clouds of several classes, the last of them rare."""
    rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(n, n_classes)))
    rare = n_classes - 1
    y = np.arange(n) % n_classes
    y[(y == rare) & (np.arange(n) % 3 > 0)] = 0
    return Task.of(rng.normal(size=(n, 2)) + rng.normal(size=(n_classes, 2))[y], y)


PLAIN = Study.of(
    C=(0.1, 1.0, 10.0, 1000.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 10), n_splits=6, report_k=(5,)
)


class Failing(SerialBackend):
    """Backend that loses one split of k = 4."""

    def wait(self) -> list[Outcome]:
        """Evaluate the oldest batch, except for the lost units."""
        units = self.queue.popleft().units
        k = [size.k for size in self.inputs.problem.sizes]
        lost = [unit for unit in units if (k[unit.size], unit.split) == (4, 2)]
        kept = [unit for unit in units if unit not in lost]
        done = [evaluate(kept, self.inputs)] if kept else []
        return [*done, *([failed(lost, self.inputs.problem.n_totals, "lost")] if lost else [])]


STUDIES: dict[str, Callable[[], Result]] = {
    "plain": lambda: result(PLAIN, cloud(80)),
    "ties": lambda: result(PLAIN.replace(scale="none"), lattice(60)),
    "equal fold sizes": lambda: result(PLAIN.replace(k=None, n_splits=3, report_k=()), cloud(24)),
    "rotation": lambda: result(PLAIN.replace(resampling="rotation"), cloud(60)),
    "holdout with three claims": lambda: result(
        PLAIN.replace(certify="holdout", claim=("random", "vote", "member:2")), cloud(90)
    ),
    "nested": lambda: result(PLAIN.replace(certify="nested", outer_splits=2, k=(3, 5)), cloud(60)),
    "fits that do not converge": lambda: result(PLAIN.replace(max_iter=5), cloud(60)),
    "four classes": lambda: result(PLAIN.replace(class_weight="balanced"), clouds(96, 4)),
    "a failed split": lambda: result(PLAIN, cloud(50), SERIAL._replace(backend=Failing)),
}


def result(study: Study, task: Task, session: Session = SERIAL) -> Result:
    """Run a study in this process."""
    return run_work(checked(Job(study, task)), opened=session)


def observe(name: str) -> Values:
    """Run a golden study; return its values, every float in hexadecimal."""
    outcome = STUDIES[name]()
    certificate = SimpleNamespace(**outcome.certificate.to_json())
    return {
        "winner": [outcome.setting["C"].hex(), outcome.setting["gamma"].hex(), outcome.k],
        "l_ms": certificate.l_ms.hex(),
        "l_ee": certificate.l_ee.hex(),
        "claims": [
            [c["certification"], c["classifier"], c["bound"].hex(), c["delta"].hex()]
            for c in certificate.claims
        ],
        "reported": [
            [row["k_first"], row["l_ms"].hex(), row["l_ee"].hex()] for row in outcome.per_k() if row["l_ee"]
        ],
        "candidates": digest(candidates(outcome)),
        "provisional": certificate.provisional,
        "error": certificate.error.hex(),
        "constants": list(certificate.constants),
        "class_rows": list(certificate.class_rows),
        "baselines": [[b["on"], b["predicted"], b["errors"], b["rows"]] for b in certificate.baselines],
        "errors": [[list(m.errors) for m in e.members] for e in ensembles(outcome)],
        EXACT: [models(ensemble) for ensemble in ensembles(outcome)],
    }


def candidates(outcome: Result) -> Iterator[list[Any]]:
    """Yield what is recorded of each candidate: rows of its sets, setting, splits, lower bound."""
    for row in outcome.candidates.to_pylist():
        setting = row["gamma"].hex(), row["C"].hex()
        yield [row["n_select"], *setting, row["splits"], row["lower_bound"].hex()]


def ensembles(outcome: Result) -> list[Ensemble]:
    """Return F*, and the nested ensemble if there is one."""
    return [outcome.ensemble, *([outcome.nested] if outcome.nested is not None else [])]


def models(ensemble: Ensemble) -> list[list[Any]]:
    """Return the offsets of each member, and a digest of its support vectors and coefficients."""
    return [_model(member.model) for member in ensemble.members]


def _model(model: Any) -> list[Any]:
    if isinstance(model, PairwiseSVM):
        pairs = [[svm.support.tolist(), svm.dual_coef.tobytes().hex()] for _, svm in model.pairs()]
        return [[offset.hex() for offset in model.offset.tolist()], digest(pairs)]
    return [model.offset.hex(), digest([model.support.tolist(), model.dual_coef.tobytes().hex()])]


def digest(values: Any) -> str:
    """Compute the SHA-256 of JSON values."""
    listed = list(values) if isinstance(values, Iterator) else values
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def differences(name: str, recorded: Values, observed: Values, exact: bool) -> list[str]:
    """Describe each changed value in a sentence."""
    keys = [key for key in recorded | observed if exact or key != EXACT]
    return [
        f"{name}: {key} was {recorded.get(key)}, now it is {observed.get(key)}"
        for key in keys
        if recorded.get(key) != observed.get(key)
    ]


def recorded() -> dict[str, Any]:
    """Read the recorded values by study, and the environment in which they were computed."""
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def is_exact() -> bool:
    """Return whether this environment is the one in which the values were recorded."""
    return not changes(recorded()["environment"], environment(PLAIN.learner))


def at(commit: str) -> dict[str, Values]:
    """Compute the values of another commit, with its code, on this machine."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", str(tree), commit], check=True
        )
        try:
            script = tree / Path(__file__).relative_to(ROOT)
            command = [sys.executable, "-P", str(script if script.exists() else Path(__file__)), "--print"]
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": str(tree)},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)
    content: dict[str, Values] = json.loads(done.stdout)
    return content


def main() -> int:
    """Return exit code 0 if nothing has changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--against", metavar="COMMIT", help="compare with a commit, bit by bit, on this machine"
    )
    action.add_argument("--record", action="store_true", help="record the values of the present code")
    action.add_argument("--print", action="store_true", dest="show", help="print the values as JSON")
    options = parser.parse_args()
    observed = {name: observe(name) for name in STUDIES}
    if options.show:
        print(json.dumps(observed))
        return 0
    if options.record:
        FILE.write_text(
            json.dumps({"environment": environment(PLAIN.learner), "studies": observed}, indent=1) + "\n"
        )
        return 0
    kept = at(options.against) if options.against else recorded()["studies"]
    exact = bool(options.against) or is_exact()
    names = [name for name in STUDIES if name in kept or not options.against]  # a commit may have fewer
    wrong = [line for name in names for line in differences(name, kept[name], observed[name], exact)]
    print("\n".join(wrong) or f"{len(names)} studies: equal{' in every bit' if exact else ', except models'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Eight small studies whose values must not change: compare, record, or hold two commits against each other.

Golden are counts, bounds, winners and claims, and on one kind of processor with one set of versions every bit
of the models. Not golden: the run_id, the layout of files, and sentences.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ckcv_ray.data.task import Table, table_from_arrays
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import run_table
from ckcv_ray.storage.environment import changes, environment
from ckcv_ray.study import Study

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("values.json")
EXACT = "exact"  # the part of a study's values that is compared in one environment alone
Values = dict[str, Any]


def cloud(n: int, d: int = 3) -> Table:
    """Two overlapping clouds."""
    rng = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(n, d)))
    y = np.where(np.arange(n) % 2, 1, -1)
    return table_from_arrays(rng.normal(size=(n, d)) + y[:, None] / 2, y)


def lattice(n: int) -> Table:
    """Few distinct rows: many candidates make the same errors."""
    rng = np.random.default_rng(np.random.SeedSequence(8, spawn_key=(n,)))
    X = rng.integers(0, 2, size=(n, 2)).astype(float)
    return table_from_arrays(X, np.where(X.sum(axis=1) + rng.random(n) > 1.2, "yes", "no"))


PLAIN = Study(C=(0.1, 1.0, 10.0, 1000.0), gamma=(0.01, 0.1, 1.0), k=(3, 4, 5, 10), n_splits=6, report_k=(5,))


class Failing(SerialBackend):
    """Loses one split of k = 4."""

    def wait(self) -> list[worker.Outcome]:
        """The oldest batch, but for what is lost of it."""
        tasks = self.queue.popleft()
        lost = [task for task in tasks if (task.k, task.mc_index) == (4, 2)]
        kept = [task for task in tasks if task not in lost]
        done = [worker.evaluate(kept, self.study, self.data)] if kept else []
        return [*done, *([worker.failed(lost, self.study, "lost")] if lost else [])]


STUDIES: dict[str, Callable[[], Result]] = {
    "plain": lambda: result(PLAIN, cloud(80)),
    "ties": lambda: result(replace(PLAIN, scaling="none"), lattice(60)),
    "equal fold sizes": lambda: result(replace(PLAIN, k=None, n_splits=3, report_k=()), cloud(24)),
    "rotation": lambda: result(replace(PLAIN, resampling="rotation", n_splits=20), cloud(60)),
    "holdout with three claims": lambda: result(
        replace(PLAIN, protocol="holdout", claims=("random", "vote", "member:2")), cloud(90)
    ),
    "nested": lambda: result(replace(PLAIN, protocol="nested", outer_splits=2, k=(3, 5)), cloud(60)),
    "fits that do not converge": lambda: result(replace(PLAIN, max_iter=5), cloud(60)),
    "a failed split": lambda: result(PLAIN, cloud(50), Failing()),
}


def result(study: Study, table: Table, backend: SerialBackend | None = None) -> Result:
    """Run a study in this process."""
    return run_table(study, table, backend=backend or SerialBackend())


def observe(name: str) -> Values:
    """Run a golden study; its values, every float in hexadecimal."""
    found = STUDIES[name]()
    certificate = found.certificate
    return {
        "winner": [found.C.hex(), found.gamma.hex(), found.k],
        "l_ms": certificate.l_ms.hex(),
        "l_ee": certificate.l_ee.hex(),
        "claims": [
            [c["protocol"], c["classifier"], c["bound"].hex(), c["delta"].hex()] for c in certificate.claims
        ],
        "reported": [
            [row["k"], row["l_ms"].hex(), row["l_ee"].hex()] for row in found.per_k() if row["l_ee"]
        ],
        "candidates": digest(candidates(found)),
        "provisional": certificate.provisional,
        "errors": [[list(m.errors) for m in e.members] for e in ensembles(found)],
        EXACT: [models(ensemble) for ensemble in ensembles(found)],
    }


def candidates(found: Result) -> Iterator[list[Any]]:
    """What is proven of each candidate: rows of its sets, position, state, splits, lower bound."""
    seen = set()
    for row in found.triples.to_pylist():
        key = row["n_select"], row["gamma"], row["C"]
        if key not in seen:
            seen.add(key)
            yield [
                row["n_select"],
                row["gamma"].hex(),
                row["C"].hex(),
                row["splits"],
                row["lower_bound"].hex(),
            ]


def ensembles(found: Result) -> list[Ensemble]:
    """F*, and the nested ensemble where there is one."""
    return [found.ensemble, *([found.nested] if found.nested is not None else [])]


def models(ensemble: Ensemble) -> list[list[Any]]:
    """Offset, and a digest of support vectors and coefficients, of each member."""
    return [
        [m.offset.hex(), digest([m.support.tolist(), m.dual_coef.tobytes().hex()])] for m in ensemble.members
    ]


def digest(values: Any) -> str:
    """SHA-256 of JSON values."""
    listed = list(values) if isinstance(values, Iterator) else values
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def differences(name: str, recorded: Values, observed: Values, exact: bool) -> list[str]:
    """What is not as it was, a sentence each."""
    keys = [key for key in recorded | observed if exact or key != EXACT]
    return [
        f"{name}: {key} was {recorded.get(key)}, now it is {observed.get(key)}"
        for key in keys
        if recorded.get(key) != observed.get(key)
    ]


def recorded() -> dict[str, Any]:
    """The values kept, by study, and the environment they were made in."""
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def is_exact() -> bool:
    """Whether this environment is the one in which the values were recorded."""
    return not changes(recorded()["environment"])


def at(commit: str) -> dict[str, Values]:
    """The values of another commit, by its own code, on this machine."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", str(tree), commit], check=True
        )
        try:
            script = tree / Path(__file__).relative_to(ROOT)
            words = [sys.executable, "-P", str(script if script.exists() else Path(__file__)), "--print"]
            done = subprocess.run(
                words,
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
    """Exit code 0 if all is as it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--against", metavar="COMMIT", help="compare with a commit, bit by bit, on this machine"
    )
    action.add_argument("--record", action="store_true", help="keep the values of this state of the code")
    action.add_argument("--print", action="store_true", dest="show", help="print the values as JSON")
    asked = parser.parse_args()
    found = {name: observe(name) for name in STUDIES}
    if asked.show:
        print(json.dumps(found))
        return 0
    if asked.record:
        FILE.write_text(json.dumps({"environment": environment(), "studies": found}, indent=1) + "\n")
        return 0
    kept = at(asked.against) if asked.against else recorded()["studies"]
    exact = bool(asked.against) or is_exact()
    wrong = [line for name in STUDIES for line in differences(name, kept[name], found[name], exact)]
    print("\n".join(wrong) or f"{len(found)} studies: equal{' in every bit' if exact else ', models aside'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""From what was selected to a finished run: refits, claims, and the files of both."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ckcv_ray.claims.certificate import certify
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.core.selection import Leader
from ckcv_ray.data.task import TestRows
from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.batches import Rate, batch_seconds, fill
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Ensemble, Member, Outcome
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import Problem
from ckcv_ray.version import VERSION


class Settled(NamedTuple):
    """The end of a run: what it found, and the best ensemble of each reported k that could be refitted."""

    finished: Finished
    reported: dict[int, Ensemble]


class Refits:
    """Hands out the refits of leaders, and collects their models; the records go to the recorder.

    Args:
        problem: what was solved.
        leaders: whose candidates are refitted on every split.
        recorder: keeps the log.
    """

    def __init__(self, problem: Problem, leaders: list[Leader], recorder: Recorder) -> None:
        self.problem, self.leaders, self.recorder = problem, leaders, recorder
        self.members: dict[tuple[int, int], list[Member]] = {}
        self._units = self._listed()
        self._rate, self._left = Rate(), sum(self._cost(unit) for unit in self._listed())

    def plan(self, workers: int, least: float = 0.0) -> list[Unit]:
        """Return the next batch of refits."""
        seconds = batch_seconds(self._left * self._rate.per_cost, workers, least)
        return fill(self._units, lambda unit: self._cost(unit) * self._rate.per_cost, seconds)

    def add(self, outcome: Outcome) -> None:
        """Take the models of a batch, and have its records kept."""
        self.recorder.add(outcome._replace(members=()))
        cost = sum(self._cost(unit) for unit in self._units_of(outcome))
        self._rate.add(outcome.seconds, cost)
        self._left = max(0.0, self._left - cost)
        for member in outcome.members:
            self.members.setdefault((member.k, member.split), []).append(member)

    def progress(self) -> Progress:
        """Return how far the run has come."""
        return self.recorder.progress()

    def ensemble(self, leader: Leader) -> Ensemble | None:
        """Return the members of a leader, in the order of the splits; None where one is missing."""
        setting, size = self.problem.candidate(leader).setting, self.problem.sizes[leader.size]
        found = []
        for split in range(size.n_splits):
            fitted = self.members.get((size.k, split), [])
            setting_of = self.problem.learner.setting_of
            mine = [member for member in fitted if setting_of(member.model) == setting]
            if not mine:
                return None
            found.append(mine[0])
        return Ensemble(tuple(found))

    def _listed(self) -> Iterator[Unit]:
        for leader in self.leaders:
            for split in range(self.problem.sizes[leader.size].n_splits):
                yield Unit(Stage.REFIT, leader.size, split, ((leader.path, leader.step + 1),))

    def _units_of(self, outcome: Outcome) -> Iterator[Unit]:
        for record in outcome.records:
            path = int(record["path"]), int(record["step"]) + 1
            yield Unit(Stage.REFIT, int(record["size"]), int(record["split"]), (path,))

    def _cost(self, unit: Unit) -> float:
        return self.problem.cost(Stage.REFIT, unit.size) * sum(length for _, length in unit.paths)


def settle(
    problem: Problem,
    backend: Backend,
    recorder: Recorder,
    nested: Ensemble | None,
    listen: Listener | None,
    stop: Stop,
) -> Settled:
    """Refit what was selected, claim, and write candidates and models.

    Raises:
        RunError: no candidate could be completed, or the winner could not be refitted.
        KeyboardInterrupt: it was stopped.
    """
    winner, ensembles, table = _refitted(problem, backend, recorder, listen, stop)
    ensemble = ensembles[winner]
    provisional = "failed" in table["state"].to_pylist()
    digests = {"data": problem.whole.digest, **recorder.write_results(table, ensemble, nested)}
    candidate = problem.candidate(winner)
    certificate = certify(problem, candidate, winner.l_ms, ensemble, nested, provisional, digests)
    return Settled(Finished(table, ensemble, certificate, nested), _reported(problem, ensembles))


def _refitted(
    problem: Problem, backend: Backend, recorder: Recorder, listen: Listener | None, stop: Stop
) -> tuple[Leader, dict[Leader, Ensemble], pa.Table]:
    """The winner, the ensembles of all leaders that could be refitted, and the table of candidates.

    Where a recorder died with what it was given, that is computed again.
    """
    while True:
        decision = recorder.decision()
        if decision is not None:
            if decision.winner is None:
                raise RunError(f"no candidate could be completed: {decision.reason}")
            refits = Refits(problem, decision.leaders, recorder)
            work(backend, refits, listen, stop)
            found = {leader: refits.ensemble(leader) for leader in decision.leaders}
            ensembles = {leader: one for leader, one in found.items() if one is not None}
            if decision.winner not in ensembles:
                reason = recorder.first_failure()
                raise RunError(f"the winner could not be refitted on every split: {reason}")
            table = recorder.candidates(list(ensembles))
            if table is not None:
                return decision.winner, ensembles, table
        if not work(backend, recorder, listen, stop) and decision is None:
            raise RunError("the study is not decided, and nothing is left to compute: please report it")


def execution_of(
    problem: Problem, backend: Backend, recorder: Recorder, settled: Settled, test: TestRows | None
) -> dict[str, Any]:
    """Return what a finished run has cost, and its errors on test rows."""
    return {
        "package": VERSION,
        "backend": backend.name,
        "workers": backend.workers,
        "source": problem.task.source,
        "test": measure(settled.finished.ensemble, test, settled.reported),
        **recorder.account(),
    }


def measure(
    ensemble: Ensemble, test: TestRows | None, reported: dict[int, Ensemble]
) -> dict[str, Any] | None:
    """Return the error rates of F* on test rows, and of the best candidate of each reported k."""
    if test is None:
        return None
    rates = {"": ensemble, **{str(k): other for k, other in sorted(reported.items())}}
    found = {
        k: dict(zip(("error", "vote_error"), one.error_rates(test.X, test.y), strict=True))
        for k, one in rates.items()
    }
    return {"rows": len(test.y), "digest": test.digest, **found.pop(""), "reported": found}


def _reported(problem: Problem, ensembles: dict[Leader, Ensemble]) -> dict[int, Ensemble]:
    """The ensembles of the best candidates of reported k."""
    return {
        k: ensemble
        for leader, ensemble in ensembles.items()
        for k in problem.study.report_k
        if problem.sizes[leader.size].holds(k)
    }

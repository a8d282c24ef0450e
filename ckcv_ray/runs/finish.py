"""From the selection to a finished run: refits, claims, and the files of both."""

from typing import Any, NamedTuple

from ckcv_ray.claims.certify import certify
from ckcv_ray.core.schedule import refits
from ckcv_ray.core.selection import Leader
from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.full import FullQueue
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.engine.queue import ListQueue
from ckcv_ray.engine.race import RaceQueue, describe_failures
from ckcv_ray.engine.recorder import Conclusion, Recorder
from ckcv_ray.engine.refit import one_model
from ckcv_ray.errors import RunError
from ckcv_ray.learners.ensemble import Ensemble, Member, Models
from ckcv_ray.records.record import Failure, Outcome, Records
from ckcv_ray.runs.assessed import Assessed
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import Problem
from ckcv_ray.tables.task import TestRows
from ckcv_ray.version import VERSION


class Refitted(NamedTuple):
    """The selected candidates, refitted, and what follows from the records.

    Attributes:
        winner: position of the winner.
        ensembles: those of the winner and of each other leader that could be refitted on every split.
        concluded: candidates, costs and failures.
    """

    winner: Leader
    ensembles: dict[Leader, Ensemble]
    concluded: Conclusion


class RefitQueue(ListQueue):
    """The refits of leaders, and the models that come back; the records go to the recorder.

    Args:
        problem: the problem that was solved.
        leaders: the candidates to refit on every split.
        recorder: keeps the log.
    """

    def __init__(self, problem: Problem, leaders: list[Leader], recorder: Recorder[RaceQueue]) -> None:
        units = [unit for leader in leaders for unit in refits(leader, problem.sizes[leader.size].n_splits)]
        super().__init__(problem, units)
        self.leaders, self.recorder = leaders, recorder
        self.members: dict[tuple[int, int], list[Member]] = {}
        self.failures: list[Failure] = []

    def take(self, outcome: Outcome) -> Records:
        """Keep the models of a batch, and pass its records to the recorder."""
        self.recorder.add(outcome._replace(members=()))
        for member in outcome.members:
            self.members.setdefault((member.k, member.split), []).append(member)
        self.failures += outcome.failures
        return outcome.records

    def progress(self) -> Progress:
        """Return the progress of the run."""
        return self.recorder.progress()

    def _ensemble(self, leader: Leader) -> Ensemble | None:
        """Return the members of a leader, in the order of the splits, or None if one is missing."""
        setting, size = self.problem.candidate(leader).setting, self.problem.sizes[leader.size]
        members = []
        for split in range(size.n_splits):
            fitted = self.members.get((size.k, split), [])
            codec = self.problem.learner.codec
            matching = [member for member in fitted if codec.setting(member.model) == setting]
            if not matching:
                return None
            members.append(matching[0])
        return Ensemble(tuple(members))

    def ensembles(self) -> dict[Leader, Ensemble]:
        """Return the ensembles of the leaders that have a model on every split."""
        ensembles = {leader: self._ensemble(leader) for leader in self.leaders}
        return {leader: ensemble for leader, ensemble in ensembles.items() if ensemble is not None}


def finish(
    problem: Problem,
    backend: Backend,
    recorder: Recorder[RaceQueue],
    nested: Ensemble | None,
    test: TestRows | None,
    listen: Listener | None,
    stop: Stop,
) -> tuple[Finished, dict[str, Any]]:
    """Refit the selected candidates, certify, and write everything; return it with the run's metadata.

    If a recorder dies, what it received but had not written is computed again.

    Raises:
        RunError: no candidate could be completed, or the winner could not be refitted.
        KeyboardInterrupt: the run was stopped.
    """
    while True:
        refitted = _refitted(problem, backend, recorder, listen, stop)
        execution = _execution(problem, backend, refitted, test)
        finished = _written(problem, recorder, refitted, nested, execution)
        if finished is not None:
            return finished, execution


def finish_scores(
    problem: Problem, backend: Backend, recorder: Recorder[FullQueue], listen: Listener | None, stop: Stop
) -> Assessed:
    """Write the scores, which finishes the run, and return them; see ``finish``.

    Raises:
        RunError: scores are missing.
        KeyboardInterrupt: the run was stopped.
    """
    while True:
        found = recorder.scores()
        if found is None:
            if not work(backend, recorder, listen, stop):
                raise RunError("scores are missing, but nothing is left to compute: please report this")
            continue
        scores, metadata = found
        execution = {**execution_of(problem, backend.name, backend.workers), **metadata}
        result = Assessed.of(problem, scores, execution)
        if recorder.write_scores(result.table(), result.summary_json(), execution):
            return result


def _refitted(
    problem: Problem, backend: Backend, recorder: Recorder[RaceQueue], listen: Listener | None, stop: Stop
) -> Refitted:
    """Return the winner, the ensembles of all leaders, and what follows from the records."""
    while True:
        decision = recorder.decision()
        if decision is not None:
            if decision.winner is None:
                raise RunError(f"no candidate could be completed: {decision.reason}")
            refits = RefitQueue(problem, decision.leaders, recorder)
            work(backend, refits, listen, stop)
            ensembles = refits.ensembles()
            if decision.winner not in ensembles:
                reason = describe_failures(refits.failures, problem)
                raise RunError(f"the winner could not be refitted on every split: {reason}")
            failed = [leader for leader in decision.leaders if leader not in ensembles]
            concluded = recorder.conclude(list(ensembles), failed)
            if concluded is not None:
                return Refitted(decision.winner, ensembles, concluded)
        if not work(backend, recorder, listen, stop) and decision is None:
            raise RunError("the study is undecided, but nothing is left to compute: please report this")


def _written(
    problem: Problem,
    recorder: Recorder[RaceQueue],
    refitted: Refitted,
    nested: Ensemble | None,
    execution: dict[str, Any],
) -> Finished | None:
    """Write candidates, models and certificate, and return them, or None if a recorder died meanwhile."""
    table, ensemble = refitted.concluded.candidates, refitted.ensembles[refitted.winner]
    models = Models(ensemble, nested, *one_model(problem, refitted.winner))
    files = recorder.write_results(table, models)
    if files is None:
        return None
    candidate, l_ms = problem.candidate(refitted.winner), refitted.winner.l_ms
    provisional = "failed" in table["state"].to_pylist()
    digests = {"data": problem.data_digest, **files}
    certificate = certify(problem, candidate, l_ms, models, provisional, digests)
    written = recorder.write_end(certificate, execution)
    return Finished(table, models, certificate) if written else None


def _execution(
    problem: Problem, backend: Backend, refitted: Refitted, test: TestRows | None
) -> dict[str, Any]:
    """Return the metadata of a finished run, with its errors on test rows."""
    ensembles = refitted.ensembles
    measured = measure(ensembles[refitted.winner], test, _reported(problem, ensembles))
    about = execution_of(problem, backend.name, backend.workers, measured)
    return {**about, **refitted.concluded.metadata}


def execution_of(
    problem: Problem, backend: str, workers: int, test: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return where and on what a run was computed; ``test`` has its errors on test rows."""
    return {
        "package": VERSION,
        "backend": backend,
        "workers": workers,
        "source": problem.task.source,
        "test": test,
    }


def measure(
    ensemble: Ensemble, test: TestRows | None, reported: dict[int, Ensemble]
) -> dict[str, Any] | None:
    """Return the error rates of F* on test rows, and of the best candidate of each reported k."""
    if test is None:
        return None
    ensembles = {"": ensemble, **{str(k): other for k, other in sorted(reported.items())}}
    rates = {
        k: dict(zip(("error", "vote_error"), one.error_rates(test.X, test.y), strict=True))
        for k, one in ensembles.items()
    }
    return {"rows": len(test.y), "digest": test.digest, **rates.pop(""), "reported": rates}


def _reported(problem: Problem, ensembles: dict[Leader, Ensemble]) -> dict[int, Ensemble]:
    """Return the ensembles of the best candidates of reported k."""
    return {
        k: ensemble
        for leader, ensemble in ensembles.items()
        for k in problem.study.report_k
        if problem.sizes[leader.size].holds(k)
    }

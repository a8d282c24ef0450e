"""Backends and recorders that misbehave, and a function that runs a study with them."""

from collections import deque
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import SERIAL, MakeRecorder, SerialBackend
from ckcv_ray.engine.evaluate import Inputs, evaluate, make_failures
from ckcv_ray.engine.loop import Backend
from ckcv_ray.engine.queue import Batch
from ckcv_ray.engine.ray_backend import halves, replacements
from ckcv_ray.engine.recorder import Recorder
from ckcv_ray.learners.svm.learner import GaussianSVM
from ckcv_ray.learners.svm.trainer import SVMTrainer
from ckcv_ray.records.record import Failure, Outcome, record_type
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, Work, check_job, run_work
from ckcv_ray.storage.folder import FolderPath
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Procedure, Study
from ckcv_ray.tables.task import Task

FIRE = "Traceback: the machine caught fire"


def run_with(
    backend: Backend | Callable[[], Backend],
    study: Study | Procedure,
    task: Task,
    out: FolderPath | None = None,
    recorder: MakeRecorder = Recorder,
    **more: Any,
) -> Result:
    """Run a study with a backend, or with what makes one; ``more`` are fields of a Work."""
    make = backend if callable(backend) else lambda: backend
    work: Work = check_job(Job(study, task, out), type(study))._replace(**more)
    return run_work(work, opened=SERIAL._replace(backend=make, recorder=recorder))


class Failing(SerialBackend):
    """Loses every unit that ``doomed`` picks."""

    name = "failing"

    def __init__(self, doomed: Callable[[Unit, Problem], bool]) -> None:
        self.doomed = doomed

    def wait(self) -> Iterable[Outcome]:
        units, problem = self.queue.popleft().units, self.inputs.problem
        lost = [unit for unit in units if self.doomed(unit, problem)]
        kept = [unit for unit in units if not self.doomed(unit, problem)]
        return [evaluate(self.inputs, kept), make_failures(lost, self.inputs, FIRE)]


def k_of(problem: Problem, unit: Unit) -> int:
    """The number of folds that a unit belongs to."""
    return problem.sizes[unit.size].k


class Mortal:
    """A recorder that may die, losing what it has not written; another then takes its place, as on Ray."""

    def __init__(self, make: Callable[[], Recorder]) -> None:
        self.make, self.now = make, make()
        self.before_decision: Callable[[], object] | None = None  # what it does before it dies there

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)

    def decision(self) -> Any:
        if self.before_decision is not None:
            self.before_decision()
            self.die()
        return self.now.decision()

    def die(self) -> None:
        if self.now.folder is not None:
            self.now.folder.release()
        self.now, self.before_decision = self.make(), None
        self.now.open()


class Faulty(SerialBackend):
    """The script decides what each call of ``wait`` does; once it has ended, calls do as they should."""

    name = "faulty"
    window = 4

    def __init__(
        self,
        script: Iterable[tuple[str, int]],  # names of the methods below, each with a number to choose by
        doomed: Set[tuple[Stage, int, int, int]] = frozenset(),  # (stage, k, split, path), wherever computed
        deadly: bool = False,  # whether these take the worker with them, and all that is in their batch
        least_seconds: float = 0.006,  # of a batch
    ) -> None:
        self.script, self.doomed, self.deadly = iter(script), doomed, deadly
        self.least_seconds = least_seconds
        self.past: list[Outcome] = []
        self.handed: list[Any] = []
        self.stopping = False
        self.mortal: Mortal | None = None

    def recorder(self, problem: Problem, out: FolderPath | None) -> Recorder:
        """Make the recorder of a run, which may die."""
        self.mortal = Mortal(lambda: Recorder(problem, out))
        return cast(Recorder, self.mortal)

    def run(self, study: Study, task: Task, out: FolderPath | None = None) -> Result:
        """Run a study, resuming it however often it is stopped."""
        while True:
            try:
                return run_with(self, study, task, out, self.recorder, stop=self.stopped)
            except KeyboardInterrupt:
                continue

    def start(self, inputs: Inputs) -> None:
        super().start(inputs)
        self.batches: deque[Batch] = deque()
        self.late: deque[Outcome] = deque()

    def submit(self, batch: Batch) -> None:
        self.batches.append(batch)

    def in_flight(self) -> int:
        return len(self.batches) + len(self.late)

    def close(self) -> None:
        self.batches, self.late = deque(), deque()

    def wait(self) -> list[Outcome]:
        outcomes = self._next()
        self.handed += [record for outcome in outcomes for record in outcome.records]
        return outcomes

    def _next(self) -> list[Outcome]:
        fault, number = next(self.script, ("do", 0))
        if fault in AT_ANY_TIME:
            return getattr(self, fault)(number) or []
        if not self.batches:
            self.late.rotate(number)
            return [self.late.popleft()]
        self.batches.rotate(number)
        found: list[Outcome] = getattr(self, fault)(self.batches.popleft())
        return found

    # with a batch

    def do(self, batch: Batch) -> list[Outcome]:
        ill, well = ([self._part(unit, which) for unit in batch.units] for which in (True, False))
        if self.deadly and any(unit.paths for unit in ill):
            return [] if self._sent_again(batch) else [self._outcome(batch.units, ())]
        return [self._outcome(ill, well)]

    def twice(self, batch: Batch) -> list[Outcome]:
        return self.do(batch) * 2

    def backwards(self, batch: Batch) -> list[Outcome]:
        return [o._replace(records=o.records[::-1], members=o.members[::-1]) for o in self.do(batch)]

    def hold(self, batch: Batch) -> list[Outcome]:
        self.late.extend(self.do(batch))
        return []

    def in_parts(self, batch: Batch) -> list[Outcome]:
        parts = halves(batch.units) or [batch.units]
        self.batches.extend(Batch(part) for part in parts[1:])
        return self.do(Batch(parts[0]))

    def lose(self, batch: Batch) -> list[Outcome]:
        """A batch lost with its worker, except a lone path the third time."""
        return [] if self._sent_again(batch) else self.do(batch)

    # at any time

    def again(self, number: int) -> list[Outcome]:
        return [self.past[number % len(self.past)]] if self.past else []

    def save(self, _: int) -> None:
        assert self.mortal is not None
        self.mortal.flush()

    def deny(self, number: int) -> list[Outcome]:
        """A counted evaluation, as a failure: it was in two batches, and the second was lost."""
        if not self.handed:
            return []
        record = self.handed[number % len(self.handed)]
        step, key = record["step"].item(), [record[name].item() for name in ("size", "split", "path")]
        failure = Failure(bool(record["estimate"]), *key, step, step + 1, FIRE)
        return [Outcome(np.empty(0, record_type(self.inputs.problem)), (failure,), ())]

    def die(self, number: int) -> None:
        """Die at once, or before saying what was selected, with or without a last word."""
        assert self.mortal is not None
        if number % 3 == 0:
            self.handed = []
            self.mortal.die()
        else:
            self.mortal.before_decision = self.mortal.flush if number % 3 == 1 else lambda: None

    def stop(self, _: int) -> None:
        self.stopping = True

    def stopped(self) -> bool:
        messages, self.stopping = self.stopping, False
        return messages

    def _sent_again(self, batch: Batch) -> list[Batch]:
        others = replacements(batch)
        self.batches.extend(others)
        return others

    def _part(self, unit: Unit, ill: bool) -> Unit:
        """The paths of a unit that are doomed, or those that are not."""
        key = (unit.stage, k_of(self.inputs.problem, unit), unit.split)
        return unit._replace(paths=tuple(p for p in unit.paths if ((*key, p[0]) in self.doomed) == ill))

    def _outcome(self, ill: Iterable[Unit], well: Iterable[Unit]) -> Outcome:
        outcome = evaluate(self.inputs, well)
        failures = outcome.failures + make_failures(ill, self.inputs, FIRE).failures
        self.past.append(outcome._replace(failures=failures, seconds=1e-3 * len(outcome.records)))
        return self.past[-1]


HARMLESS = ("do", "twice", "backwards", "hold", "in_parts", "lose", "again", "deny", "save", "stop")
AT_ANY_TIME = ("again", "deny", "save", "die", "stop")


@dataclass(frozen=True)
class Fragile(GaussianSVM):
    """The SVM, except that fits raise on the second gamma from the second cost on."""

    @property
    def trainer(self) -> "FragileTrainer":  # sent to workers by value, which a cached property cannot be
        return FragileTrainer(**vars(super().trainer))


class FragileTrainer(SVMTrainer):
    """The SVM's trainer, with blocks that raise."""

    def prepare(self, shared: Any, train: Any, score: Any) -> Any:
        return FragileBlock(super().prepare(shared, train, score))


class FragileBlock(NamedTuple):
    """A split for it."""

    block: Any

    def fit(self, path: int, length: int) -> Any:
        if path == 1 and length > 1:
            raise FloatingPointError("the matrix is a pineapple")
        return self.block.fit(path, length)

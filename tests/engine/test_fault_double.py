"""A backend that does whatever a script drawn by hypothesis says: the answer stays the same in every byte,
or what is wrong with it is said.
"""

from collections import deque
from dataclasses import replace
from functools import cache
from itertools import count
from math import fsum

import numpy as np
import pytest
from conftest import blobs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckcv_ray.core.bounds import clopper_pearson
from ckcv_ray.engine import aggregator
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.ledger import VALUES
from ckcv_ray.engine.retry import Batch, halves, instead
from ckcv_ray.errors import RunError
from ckcv_ray.runs.load import reopen
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Path, Stage, Study, Task, Triple

PLAIN = Study(C=(0.01, 1.0), gamma=(1e-6, 0.1, 1.0), k=(3, 4), n_splits=5)
REPORTING = replace(PLAIN, report_k=(4,))
EXHAUSTIVE = replace(PLAIN, exhaustive=True)
TABLE = blobs(30, seed=2, shift=3.0)
FIRE = "Traceback: the machine caught fire"


class Mortal:
    """An aggregator that may die, with what it has not written; then it is made anew, as an actor is."""

    def __init__(self, make):
        self.make, self.now, self.last = make, make(), None

    def __getattr__(self, name):
        return getattr(self.now, name)

    def finish(self, *nested):
        if self.last is not None:
            self.last()
            self.die()
        return self.now.finish(*nested)

    def die(self):
        self.now.folder.release()
        self.now, self.last = self.make(), None
        self.now.open()


class Faulty(SerialBackend):
    """What each call of ``wait`` does is the script's to say; once that has ended, it does as it should.

    Args:
        script: names of the methods below, each with a number to choose by.
        doomed: paths (stage, k, mc_index, gamma) that fail wherever they are computed.
        deadly: whether they take the worker with them, and all that is in their batch.
        least_seconds: of a batch.
    """

    name = "faulty"
    window = 4

    def __init__(self, script, doomed=frozenset(), deadly=False, least_seconds=0.006):
        self.script, self.doomed, self.deadly = iter(script), doomed, deadly
        self.least_seconds = least_seconds
        self.past, self.handed, self.stopping = [], [], False

    def start(self, *arguments):
        self.aggregator = Mortal(lambda: super(Faulty, self).start(*arguments))
        self.queue, self.late = deque(), deque()
        return self.aggregator

    def submit(self, tasks):
        self.queue.append(Batch(tuple(tasks)))

    def in_flight(self):
        return len(self.queue) + len(self.late)

    def wait(self):
        outcomes = self._next()
        self.handed += [record for outcome in outcomes for record in outcome.records]
        return outcomes

    def _next(self):
        fault, number = next(self.script, ("do", 0))
        if fault in AT_ANY_TIME:
            return getattr(self, fault)(number) or []
        if not self.queue:
            self.late.rotate(number)
            return [self.late.popleft()]
        self.queue.rotate(number)
        return getattr(self, fault)(self.queue.popleft())

    # with a batch

    def do(self, batch):
        ill, well = ([self._part(task, which) for task in batch.tasks] for which in (True, False))
        if self.deadly and any(task.paths for task in ill):
            return [] if self._sent_again(batch) else [self._outcome(batch.tasks, ())]
        return [self._outcome(ill, well)]

    def twice(self, batch):
        return self.do(batch) * 2

    def backwards(self, batch):
        return [o._replace(records=o.records[::-1], members=o.members[::-1]) for o in self.do(batch)]

    def hold(self, batch):
        self.late.extend(self.do(batch))
        return []

    def in_parts(self, batch):
        parts = halves(batch.tasks) or [batch.tasks]
        self.queue.extend(Batch(part) for part in parts[1:])
        return self.do(Batch(parts[0]))

    def lose(self, batch):
        """Lost with its worker, but for a lone path the third time."""
        return [] if self._sent_again(batch) else self.do(batch)

    # at any time

    def again(self, number):
        return [self.past[number % len(self.past)]] if self.past else []

    def save(self, _):
        self.aggregator.flush()

    def deny(self, number):
        """A cell that was counted, as a failure: it was in two batches, and the second was lost."""
        if not self.handed:
            return []
        record = self.handed[number % len(self.handed)]
        C, key = self.study.C.index(record["C"]), [record[name].item() for name in Path._fields]
        failure = worker.Failure(bool(record["estimate"]), Path(*key), C, C + 1, FIRE)
        return [worker.Outcome(np.empty(0, worker.RECORD), (failure,), ())]

    def die(self, number):
        """At once, or when it is to finish, with or without a last word."""
        if number % 3 == 0:
            self.handed = []
            self.aggregator.die()
        else:
            self.aggregator.last = self.aggregator.flush if number % 3 == 1 else lambda: None

    def stop(self, _):
        self.stopping = True

    def stopped(self):
        told, self.stopping = self.stopping, False
        return told

    def _sent_again(self, batch):
        others = instead(batch)
        self.queue.extend(others)
        return others

    def _part(self, task, ill):
        """The paths of a task that are doomed, or those that are not."""
        key = (task.stage, task.k, task.mc_index)
        return task._replace(paths=tuple(p for p in task.paths if ((*key, p[0]) in self.doomed) == ill))

    def _outcome(self, ill, well):
        outcome = worker.evaluate(well, self.study, self.data)
        failures = worker.failed(ill, self.study, FIRE).failures
        self.past.append(outcome._replace(failures=failures, seconds=1e-3 * len(outcome.records)))
        return self.past[-1]


HARMLESS = ("do", "twice", "backwards", "hold", "in_parts", "lose", "again", "deny", "save", "stop")
AT_ANY_TIME = ("again", "deny", "save", "die", "stop", "lie")


def scripts(*faults, most=40):
    return st.lists(st.tuples(st.sampled_from(faults), st.integers(0, 99)), max_size=most)


LATE = (0, 2, 3, 4, 4)  # whether what fails is beaten by then has to be as likely as not
PATHS = st.tuples(
    st.sampled_from([Stage.SELECT] * 9 + [Stage.REFIT]),
    st.sampled_from(PLAIN.k),
    st.sampled_from(LATE),
    st.sampled_from([0, 0, 1, 2]),
)


def through(backend, study, out):
    """The result of a run, taken up again however often it is stopped."""
    while True:
        try:
            return run_table(study, TABLE, out, backend=backend, stop=backend.stopped)
        except KeyboardInterrupt:
            continue


def content(folder):
    """Every file that may not depend on how the run went, by name."""
    names = ["study.json", "data.parquet", "triples.parquet", "certificate.json"]
    names += sorted(file.relative_to(folder).as_posix() for file in folder.glob("ensemble/*"))
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_written_untold():
    """So that what an aggregator loses with its life depends on the script, not on the clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregator, "FLUSH_SECONDS", float("inf"))
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A new name of a folder at each call."""
    parent, numbers = tmp_path_factory.mktemp("runs"), count()
    return lambda: parent / str(next(numbers))


@pytest.fixture(scope="module")
def undisturbed(folders):
    """The files of a serial run of each study."""

    @cache
    def whole(study):
        out = folders()
        run_table(study, TABLE, out, Execution("serial"))
        return content(out)

    return whole


slow = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@settings(slow, max_examples=50)
@given(script=scripts(*HARMLESS, "die"), least=st.sampled_from([0.0, 0.006, 1.0]))
def test_no_fault_changes_a_byte(folders, undisturbed, script, least):
    out = folders()
    result = through(Faulty(script, least_seconds=least), REPORTING, out)
    assert content(out) == undisturbed(REPORTING)
    assert result.execution["failures"] == []
    assert result.execution["cells"]["failed"] == 0


@cache
def all_bounds() -> dict[Triple, list[float]]:
    """The bound on every split's select set, for every triple."""
    every = tuple((g, len(PLAIN.C)) for g in range(len(PLAIN.gamma)))
    tasks = [Task(Stage.SELECT, k, i, every) for k in PLAIN.k for i in range(PLAIN.n_splits)]
    records = worker.evaluate(tasks, PLAIN, worker.share(TABLE.X, TABLE.y, PLAIN)).records
    bounds = {}
    for record in np.sort(records, order=["mc_index"]):
        errors = int(record["errors_negative"] + record["errors_positive"])
        triple = Triple(record["C"].item(), record["gamma"].item(), record["k"].item())
        bounds.setdefault(triple, []).append(clopper_pearson(errors, TABLE.n // triple.k, PLAIN.delta))
    return bounds


def foretold(doomed):
    """The best triple none of whose splits is doomed, or None; the doomed it is not proven to beat."""
    lost = {}
    for stage, k, mc_index, g in doomed:
        if stage is Stage.SELECT:
            for C in PLAIN.C:
                triple = Triple(C, PLAIN.gamma[g], k)
                lost[triple] = min(mc_index, lost.get(triple, mc_index))
    sums = {triple: fsum(bounds) for triple, bounds in all_bounds().items()}
    best = min((t for t in sums if t not in lost), key=lambda t: (sums[t], *t), default=None)
    lows = {t: lowest(t, first) for t, first in lost.items()}
    return best, {t for t in lows if best is None or lows[t] <= sums[best]}


def lowest(triple, first):
    """The least sum of bounds that a triple can have, known on the splits before ``first`` alone."""
    least = clopper_pearson(0, TABLE.n // triple.k, PLAIN.delta)
    return fsum(all_bounds()[triple][:first] + [least] * (PLAIN.n_splits - first))


@settings(slow, max_examples=50)
@given(
    script=scripts(*HARMLESS, "die", most=20),
    doomed=st.frozensets(PATHS, min_size=1, max_size=5),
    deadly=st.booleans(),
)
def test_a_certificate_is_given_if_and_only_if_what_failed_is_beaten(
    folders, undisturbed, script, doomed, deadly
):
    """And a run taken up where nothing fails ends as if nothing ever had."""
    out, (best, open_) = folders(), foretold(doomed)
    refit = best and {(Stage.REFIT, best.k, i, PLAIN.gamma.index(best.gamma)) for i in range(PLAIN.n_splits)}
    if best is None or refit & doomed:
        with pytest.raises(RunError, match=f"(could be completed|be refitted)(.|\n)*{FIRE}"):
            through(Faulty(script, doomed, deadly), PLAIN, out)
    else:
        result = through(Faulty(script, doomed, deadly), PLAIN, out)
        assert (result.C, result.gamma, result.k) == best
        rows = result.triples.to_pylist()
        assert {Triple(r["C"], r["gamma"], r["k"]) for r in rows if r["state"] == "failed"} == open_
        assert result.certificate.provisional == bool(open_)
        assert {f[:3] for f in named(result)} <= {(PLAIN.gamma[g], k, i) for _, k, i, g in doomed}
        assert {(t.gamma, t.k) for t in open_} <= {f[:2] for f in named(result)}
        assert verify(out).differences == []
        if not open_:
            assert content(out) == undisturbed(PLAIN)
        reopen(PLAIN, TABLE, out)
    run_table(PLAIN, TABLE, out, Execution("serial"))
    assert content(out) == undisturbed(PLAIN)
    assert RunFolder(out).execution()["failures"] == []


def named(result):
    return [tuple(failure) for failure in result.execution["failures"] if failure[3].startswith(FIRE)]


def altered(outcome, number, field):
    """An outcome with one value of one record changed; what was, and what is now, as a message shows them."""
    records = outcome.records.copy()
    record = records[number % len(records)]
    was = [int(record[name]) for name in VALUES]
    record[field] = record[field] ^ 1 if field == "status" else record[field] + 1
    now = [int(record[name]) for name in VALUES]
    return outcome._replace(records=records), tuple(str(np.array(values)) for values in (was, now))


class Lying(Faulty):
    """After its script, hands back an earlier outcome with one number changed."""

    def __init__(self, script, number, field):
        super().__init__([*script, ("do", 0), ("lie", number)], least_seconds=0.0)
        self.field = field

    def lie(self, number):
        past = [outcome for outcome in self.past if len(outcome.records)]
        lie, self.told = altered(past[number % len(past)], number, self.field)
        return [lie]


@settings(slow, max_examples=25)
@given(
    script=scripts("do", "twice", "backwards", "in_parts", "lose", "save", "stop", most=6),
    number=st.integers(0, 999),
    field=st.sampled_from(VALUES),
)
def test_a_record_that_differs_from_the_one_held_ends_the_run_and_both_are_shown(
    folders, script, number, field
):
    liar = Lying(script, number, field)
    with pytest.raises(RunError, match=r"differ.*not deterministic") as ended:
        through(liar, EXHAUSTIVE, folders())
    assert all(values in str(ended.value) for values in liar.told)

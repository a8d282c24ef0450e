"""The race from end to end on tables of counts drawn beforehand, with results coming back in any order.

``Race`` plays the driver: it asks for jobs, keeps several in flight, hands their counts back in random
order, and checks every job as it is handed out. What a job may be is stated in ``check``.
"""

from functools import cache
from math import fsum, inf

import numpy as np
import pytest

from ckcv_ray.core.bounds import bound_table
from ckcv_ray.core.schedule import Job, Schedule
from ckcv_ray.core.selection import FAILED, UNKNOWN, Selection, shortest_proof

DELTA = 0.05
FLIGHTS = (1, 2, 7, 1000)


class Tables:
    """Counts of every cell, the paths that fail, and what follows from them by brute force."""

    def __init__(self, sizes, counts, failing=frozenset()):
        self.sizes, self.counts, self.failing = sizes, counts, failing
        self.n_train = [100 - 2 * m for m, _ in sizes]
        self.shape = counts[0].shape[1:]
        self.bounds = [bound_table(m, DELTA)[c] for (m, _), c in zip(sizes, counts, strict=True)]
        self.l_ms = {
            (j, g, c): fsum(self.bounds[j][:, g, c].tolist()) / n_splits
            for j, (_, n_splits) in enumerate(sizes)
            for g, c in np.ndindex(*self.shape)
        }

    @property
    def cells(self):
        return sum(c.size for c in self.counts)

    def best(self, among=None):
        """(l_ms, C, gamma, size) of the winner among the triples that no failure keeps incomplete."""
        broken = {(size, gamma) for size, _, gamma in self.failing}
        whole = ((l_ms, c, g, j) for (j, g, c), l_ms in self.l_ms.items() if (j, g) not in broken)
        return min((t for t in whole if among in (None, t[3])), default=None)

    def result(self, size, mc_index, gamma, cells):
        if (size, mc_index, gamma) in self.failing:
            return np.full(cells, FAILED, dtype=np.int32)
        return self.counts[size][mc_index, gamma, :cells]

    def proof(self, size, gamma, C, threshold):
        m, n_splits = self.sizes[size]
        least = float(bound_table(m, DELTA)[0])
        return shortest_proof(self.bounds[size][:, gamma, C].tolist(), least, n_splits, threshold)


@cache
def ragged(seed, fail=0.0):
    """Small races of any shape, with repeated sizes, ties and few splits."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(v) for v in rng.integers(1, 5, size=2))
    sizes = [tuple(int(v) for v in rng.integers(1, (30, 9))) for _ in range(rng.integers(1, 6))]
    sizes = sorted([*sizes, sizes[0]] if seed % 2 else sizes, reverse=True)
    rates = rng.choice([0.0, 0.1, 0.3, 0.5, 1.0], size=shape)
    counts = [rng.binomial(m, rates, size=(n_splits, *shape)).astype(np.int32) for m, n_splits in sizes]
    failing = {
        (j, i, g)
        for j, (_, n_splits) in enumerate(sizes)
        for i, g in np.ndindex(n_splits, shape[0])
        if rng.random() < fail
    }
    return Tables(sizes, counts, frozenset(failing))


@cache
def realistic(seed, n=60, n_splits=12):
    """Every k from 3 to n, and an error rate with a valley over the grids and a little more for few rows."""
    rng = np.random.default_rng(seed)
    sizes = [(m, n_splits) for m in sorted({n // k for k in range(3, n + 1)}, reverse=True)]
    gamma, C = np.mgrid[-2:2:5j, -3:3:7j]
    valley = np.clip(rng.uniform(0.02, 0.15) + 0.05 * (gamma + C / 2) ** 2 + 0.01 * C**2, 0, 0.5)
    counts = []
    for m, _ in sizes:
        hard = rng.random((n_splits, m, 1, 1))  # rows are easy or hard for every machine alike
        noisy = 0.8 * hard + 0.2 * rng.random((n_splits, m, *valley.shape))
        counts.append((noisy < valley + 0.1 * m / n).sum(axis=1).astype(np.int32))
    return Tables(sizes, counts)


class Race:
    def __init__(self, tables, flight=1, seed=0, own=(), exhaustive=False):
        self.tables, self.flight, self.rng = tables, flight, np.random.default_rng(seed)
        self.selection = Selection(tables.sizes, *tables.shape, DELTA, own, exhaustive)
        self.restart()
        self.jobs = []
        self.fits = 0
        self.longest = [np.zeros(c.shape[:2], dtype=int) for c in tables.counts]
        self.first_l_ms = None
        self.forecasts = []

    def restart(self):
        """As a resumed run does: a new schedule over what is known."""
        self.schedule = Schedule(self.selection, self.tables.n_train)
        self.in_flight = []

    def run(self, stop_after=inf):
        self.fill()
        while self.in_flight and stop_after > 0:
            stop_after -= 1
            self.return_one()
            self.forecasts.append(self.schedule.forecast())
            self.fill()
        return self

    def fill(self):
        while len(self.in_flight) < self.flight and (job := self.schedule.next()) is not None:
            self.check(job)
            self.in_flight.append(job)

    def return_one(self):
        job = self.in_flight.pop(self.rng.integers(len(self.in_flight)))
        for gamma, cells in job.paths:
            self.selection.add(
                job.size, job.mc_index, gamma, self.tables.result(job.size, job.mc_index, gamma, cells)
            )
        self.selection.refresh()
        winner = self.selection.winner()
        if winner is not None and self.first_l_ms is None:
            self.first_l_ms = winner.l_ms

    def check(self, job):
        """A job is new, and every path of it ends with a cell that is unknown and a triple that is alive."""
        assert isinstance(job, Job)
        assert job.paths
        assert len({gamma for gamma, _ in job.paths}) == len(job.paths)
        fold, alive = self.selection.sizes[job.size], self.selection.alive(job.size)
        for gamma, cells in job.paths:
            assert cells > self.longest[job.size][job.mc_index, gamma], "handed out before"
            assert fold.counts[job.mc_index, gamma, cells - 1] == UNKNOWN
            assert alive[gamma, cells - 1]
            self.longest[job.size][job.mc_index, gamma] = cells
            self.fits += cells
        self.jobs.append((job, self.selection.winner()))

    def open(self):
        return [j for j in range(len(self.tables.sizes)) if self.selection.alive(j).any()]

    def known(self):
        return [int(np.sum(fold.counts >= 0)) for fold in self.selection.sizes]

    def proofs(self):
        return {
            (j, g, c): self.selection.sizes[j].proof(g, c, self.selection.threshold(j))
            for j, g, c in self.tables.l_ms
        }


# The answer


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(16))
def test_the_race_ends_with_the_winner_of_brute_force(seed, flight):
    tables = ragged(seed)
    race = Race(tables, flight, seed).run()
    assert race.open() == []
    assert race.selection.winner() == tables.best()
    assert len(race.jobs) <= tables.cells


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(3))
def test_realistic_races_too(seed, flight):
    tables = realistic(seed)
    race = Race(tables, flight, seed).run()
    assert race.open() == []
    assert race.selection.winner() == tables.best()


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(14))
def test_every_beaten_triple_has_its_shortest_proof_at_the_end(seed, flight):
    """So that the table of triples is the same whatever was computed and in whatever order."""
    tables = ragged(seed)
    proofs = Race(tables, flight, seed + 100).run().proofs()
    best = tables.best()[0]
    assert proofs == {t: tables.proof(*t, best) for t in tables.l_ms}
    assert all((proofs[t] is None) == (l_ms == best) for t, l_ms in tables.l_ms.items())


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(15))
def test_reported_sizes_get_their_own_winner(seed, flight):
    tables = ragged(seed)
    own = [j for j in range(len(tables.sizes)) if (seed + j) % 3]
    race = Race(tables, flight, seed, own).run()
    assert race.open() == []
    assert race.selection.winner() == tables.best()
    for j in own:
        assert race.selection.leaders[j] == tables.best(among=j)


@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(10))
def test_exhaustive_computes_every_cell_once(seed, flight):
    tables = ragged(seed)
    race = Race(tables, flight, seed, own=[0], exhaustive=True).run()
    for fold, counts in zip(race.selection.sizes, tables.counts, strict=True):
        assert np.array_equal(fold.counts, counts)
    assert race.fits == tables.cells
    assert race.selection.winner() == tables.best()


@pytest.mark.parametrize("exhaustive", [False, True])
@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("seed", range(12))
def test_failed_paths_neither_stop_the_race_nor_win_it(seed, flight, exhaustive):
    tables = ragged(seed, fail=0.3)
    race = Race(tables, flight, seed, exhaustive=exhaustive).run()
    assert race.open() == []
    assert race.selection.winner() == tables.best()
    threshold = race.selection.threshold(0)
    for j, fold in enumerate(race.selection.sizes):
        for g, c in np.argwhere(~fold.complete):
            failed_next = (j, int(fold.prefix[g, c]), int(g)) in tables.failing
            assert failed_next or (not exhaustive and fold.exact_low(g, c) > threshold)


def test_the_failing_cases_leave_some_races_without_any_winner_and_most_with_one():
    winners = [ragged(seed, fail=0.3).best() for seed in range(12)]
    assert 1 <= sum(winner is None for winner in winners) <= 6


@pytest.mark.parametrize("seed", range(12))
def test_a_race_taken_up_again_repeats_nothing_known_and_ends_alike(seed):
    """Jobs in flight at the break are lost; ``check`` sees to it that nothing known is asked for again."""
    tables = ragged(seed)
    race = Race(tables, 3, seed).run(stop_after=4)
    race.longest = [fold.computed.copy() for fold in race.selection.sizes]
    race.restart()
    race.run()
    assert race.open() == []
    assert race.selection.winner() == tables.best()


# Progress


@pytest.mark.parametrize("own", [(), (0, 1)])
@pytest.mark.parametrize("seed", range(10))
def test_there_is_a_job_whenever_something_is_alive_and_nothing_in_flight(seed, own):
    tables = ragged(seed, fail=0.1)
    race = Race(tables, 1, seed, own=[j for j in own if j < len(tables.sizes)])
    while race.open():
        job = race.schedule.next()
        assert job is not None
        race.in_flight = [job]
        race.return_one()
    assert race.schedule.next() is None


@pytest.mark.parametrize("flight", [1, 5])
@pytest.mark.parametrize("own", [(), (0, 2)])
@pytest.mark.parametrize("tables", [realistic(0), realistic(1), *(ragged(s, fail=0.1) for s in range(10))])
def test_what_is_remembered_between_jobs_and_results_changes_no_job(tables, own, flight):
    """A schedule that knows only the counts and what was handed out comes to the same."""
    race = Race(tables, flight, own=[j for j in own if j < len(tables.sizes)])
    while race.open() or race.in_flight:
        anew = Schedule(race.selection, tables.n_train)
        anew.issued = [issued.copy() for issued in race.schedule.issued]
        job = race.schedule.next()
        assert job == anew.next()
        race.in_flight += [job] if job else []
        if len(race.in_flight) == flight or job is None:
            race.return_one()


def test_asking_changes_nothing_but_what_is_handed_out():
    race = Race(realistic(0), 1).run(stop_after=20)
    before = [fold.counts.copy() for fold in race.selection.sizes], race.selection.winner()
    asked = 0
    while race.schedule.next() is not None:
        asked += 1
    assert asked > 0
    after = [fold.counts for fold in race.selection.sizes], race.selection.winner()
    assert all(np.array_equal(a, b) for a, b in zip(before[0], after[0], strict=True))
    assert before[1] == after[1]


def test_a_marked_job_is_not_handed_out():
    tables = ragged(3)
    first, second = Race(tables), Race(tables)
    job = first.schedule.next()
    second.schedule.mark(job)
    assert second.schedule.next() == first.schedule.next() != job


def test_leading_tells_whether_every_open_race_has_a_leader():
    tables = realistic(1)
    race = Race(tables, 1, own=[0, 3])
    seen = set()
    while race.open():
        leading = race.schedule.leading()
        assert leading == all(race.selection.threshold(j) < inf for j in race.open())
        seen.add(leading)
        race.in_flight = [race.schedule.next()]
        race.return_one()
    assert seen == {False, True}


def test_exhaustive_holds_nothing_back():
    """With nothing to wait for, every cell can be in flight before the first result is back."""
    tables = realistic(2)
    race = Race(tables, 10**6, exhaustive=True)
    race.fill()
    assert race.fits == tables.cells


# How much is computed


@pytest.mark.parametrize("seed", range(4))
def test_the_first_leader_takes_one_whole_split_and_then_about_one_path_of_each(seed):
    tables = realistic(seed)
    (n_gamma, n_C), n_splits = tables.shape, tables.sizes[0][1]
    race = Race(tables, 1, seed).run()
    spent = sum(cells for job, winner in race.jobs if winner is None for _, cells in job.paths)
    assert spent <= n_gamma * n_C + 2 * n_splits * n_C


@pytest.mark.parametrize("seed", range(25))
def test_beginnings_of_paths_solved_again_cost_little(seed):
    """A path handed out longer starts from its smallest C again; where little is dropped, that adds up."""
    tables = ragged(seed)
    assert Race(tables, 1, seed).run().fits <= 1.25 * tables.cells


@pytest.mark.parametrize("seed", range(4))
def test_a_realistic_race_costs_a_fraction_of_everything_even_with_jobs_in_flight(seed):
    tables = realistic(seed)
    for flight in (1, 8):
        assert Race(tables, flight, seed).run().fits <= tables.cells / 4


@pytest.mark.parametrize("seed", range(4))
def test_a_size_that_cannot_win_is_never_begun_once_there_is_a_leader(seed):
    """Only the first size is begun without one; behind it, U(0) above the leader's L_MS means no cell."""
    tables = realistic(seed)
    race = Race(tables, 1, seed).run()
    hopeless = [
        j for j, (m, _) in enumerate(tables.sizes) if j and bound_table(m, DELTA)[0] > race.first_l_ms
    ]
    assert len(hopeless) >= 3, "the case must provoke it"
    assert all(race.known()[j] == 0 for j in hopeless)
    assert {job.size for job, winner in race.jobs if winner is None} == {0}


@pytest.mark.parametrize("seed", range(4))
def test_drops_leave_little_more_than_the_shortest_proofs(seed):
    """What no procedure can spare: the winner, and each other triple up to its shortest proof."""
    tables = realistic(seed)
    best = tables.best()[0]
    needed = 0
    for j, (_, n_splits) in enumerate(tables.sizes):
        splits = np.empty(tables.shape, dtype=int)
        for g, c in np.ndindex(*tables.shape):
            proof = tables.proof(j, g, c, best)
            splits[g, c] = n_splits if proof is None else proof.splits
        for i in range(n_splits):
            needed += int(np.max((splits > i) * np.arange(1, tables.shape[1] + 1), axis=1).sum())
    race = Race(tables, 1, seed).run()
    assert needed <= sum(race.known()) <= race.fits
    assert race.fits <= 2 * needed


# The forecast


@pytest.mark.parametrize("flight", [1, 7])
@pytest.mark.parametrize("own", [(), (0,)])
@pytest.mark.parametrize("seed", range(8))
def test_forecast_is_finite_and_not_negative(seed, flight, own):
    race = Race(ragged(seed, fail=0.05), flight, seed, own)
    start = race.schedule.forecast()
    assert 0 < start < inf
    assert all(0 <= forecast < inf for forecast in race.run().forecasts)


@pytest.mark.parametrize("seed", range(8))
def test_forecast_is_zero_when_all_is_decided(seed):
    race = Race(ragged(seed), 1, seed).run()
    assert race.open() == []
    assert race.schedule.forecast() == 0


@pytest.mark.parametrize("seed", range(3))
def test_forecast_is_zero_when_a_realistic_race_is_decided(seed):
    assert Race(realistic(seed), 1, seed).run().schedule.forecast() == 0


def test_forecast_is_zero_when_failures_leave_nothing_to_do():
    tables = Tables([(5, 3)], [np.zeros((3, 1, 1), dtype=np.int32)], frozenset({(0, 0, 0)}))
    race = Race(tables).run()
    assert race.open() == []
    assert race.schedule.forecast() == 0


@pytest.mark.parametrize("seed", range(5))
def test_exhaustive_forecast_is_exactly_what_is_left(seed):
    tables = ragged(seed)
    cost = [float(rows) ** 2 for rows in tables.n_train]
    race = Race(tables, 3, seed, exhaustive=True)
    total = sum(c * counts.size for c, counts in zip(cost, tables.counts, strict=True))
    assert race.schedule.forecast() == total
    race.run(stop_after=5)
    assert race.schedule.forecast() == total - sum(c * n for c, n in zip(cost, race.known(), strict=True))
    race.run()
    assert race.schedule.forecast() == 0

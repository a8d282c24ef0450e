"""The race from end to end on tables of counts drawn beforehand, with results coming back in any order.

``Race`` plays the driver: it asks for units, keeps several in flight, hands their values back in random
order, and checks every unit as it is handed out. What a unit may be is stated in ``check``.
"""

from functools import cache
from math import fsum, inf

import numpy as np
import pytest

from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.schedule import Schedule, Stage, Unit
from ckcv_ray.core.selection import UNKNOWN, Least, Selection, find_shortest_proof

CRITERION = MeanBound()
FLIGHTS = (1, 2, 7, 1000)


class Tables:
    """Counts of every evaluation, the paths that fail, and what follows from them by brute force.

    Sizes are pairs (rows of a select set, splits); counts are arrays (n_splits, n_paths, n_steps), of which
    what is beyond the end of a path is never read.
    """

    def __init__(self, sizes, counts, failing=frozenset(), lengths=None):
        self.sizes, self.failing = sizes, failing
        self.n_train = [100 - 2 * m for m, _ in sizes]
        self.shape = counts[0].shape[1:]
        self.lengths = lengths or [self.shape[1]] * self.shape[0]
        self.values = [CRITERION.value(c[..., None], m) for (m, _), c in zip(sizes, counts, strict=True)]
        self.l_ms = {
            (j, g, c): fsum(self.values[j][:, g, c].tolist()) / n_splits
            for j, (_, n_splits) in enumerate(sizes)
            for g, length in enumerate(self.lengths)
            for c in range(length)
        }

    @property
    def evaluations(self):
        return sum(n_splits for _, n_splits in self.sizes) * sum(self.lengths)

    @property
    def least(self):
        return [(n_splits, CRITERION.least(m)) for m, n_splits in self.sizes]

    def schedule(self, selection):
        """One over the race of these tables, with costs as those of a kernel matrix."""
        cost = [float(rows) ** 2 for rows in self.n_train]
        return Schedule(selection, cost, self.transfer)

    def transfer(self, values, like, size):
        return CRITERION.transfer(values, self.sizes[like][0], self.sizes[size][0])

    def best(self, among=None):
        """(l_ms, step, path, size) of the winner among those that no failure keeps incomplete."""
        broken = {(size, path) for size, _, path in self.failing}
        whole = ((l_ms, c, g, j) for (j, g, c), l_ms in self.l_ms.items() if (j, g) not in broken)
        return min((t for t in whole if among in (None, t[3])), default=None)

    def enter(self, selection, unit):
        """Hand back what a unit gives."""
        for path, length in unit.paths:
            if (unit.size, unit.split, path) in self.failing:
                selection.fail(unit.size, unit.split, path, slice(0, length))
            else:
                values = self.values[unit.size][unit.split, path, :length]
                selection.enter(unit.size, unit.split, path, np.arange(length), values)
        selection.refresh()

    def proof(self, size, path, step, threshold):
        n_splits, least = self.least[size]
        values = self.values[size][:, path, step].tolist()
        return find_shortest_proof(values, Least.of(least, n_splits), threshold)


@cache
def small(seed, fail=0.0):
    """Small races of any shape, with repeated sizes, ties, few splits, and paths of several lengths."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(v) for v in rng.integers(1, 5, size=2))
    sizes = [tuple(int(v) for v in rng.integers(1, (30, 9))) for _ in range(rng.integers(1, 6))]
    sizes = sorted([*sizes, sizes[0]] if seed % 2 else sizes, reverse=True)
    rates = rng.choice([0.0, 0.1, 0.3, 0.5, 1.0], size=shape)
    counts = [rng.binomial(m, rates, size=(n_splits, *shape)) for m, n_splits in sizes]
    failing = {
        (j, i, g)
        for j, (_, n_splits) in enumerate(sizes)
        for i, g in np.ndindex(n_splits, shape[0])
        if rng.random() < fail
    }
    lengths = rng.integers(1, shape[1] + 1, size=shape[0]).tolist() if seed % 4 > 1 else None
    if lengths:
        counts = [c[..., : max(lengths)] for c in counts]
    return Tables(sizes, counts, frozenset(failing), lengths)


@cache
def realistic(seed, n=60, n_splits=12, lengths=None):
    """Every k from 3 to n, and an error rate with a valley over the grids and a little more for few rows."""
    rng = np.random.default_rng(seed)
    sizes = [(m, n_splits) for m in sorted({n // k for k in range(3, n + 1)}, reverse=True)]
    gamma, C = np.mgrid[-2:2:5j, -3:3:7j]
    valley = np.clip(rng.uniform(0.02, 0.15) + 0.05 * (gamma + C / 2) ** 2 + 0.01 * C**2, 0, 0.5)
    counts = []
    for m, _ in sizes:
        hard = rng.random((n_splits, m, 1, 1))  # rows are easy or hard for every machine alike
        noisy = 0.8 * hard + 0.2 * rng.random((n_splits, m, *valley.shape))
        counts.append((noisy < valley + 0.1 * m / n).sum(axis=1))
    return Tables(sizes, counts, lengths=lengths)


UNEVEN = (7, 2, 5, 1, 6)  # lengths of the paths of a realistic race


class Race:
    def __init__(self, tables, flight=1, seed=0, own=(), exhaustive=False):
        self.tables, self.flight, self.rng = tables, flight, np.random.default_rng(seed)
        self.selection = Selection(tables.least, tables.lengths, own, exhaustive)
        self.restart()
        self.units = []
        self.fits = 0
        self.longest = [fold.computed.copy() for fold in self.selection.sizes]
        self.first_l_ms = None
        self.forecasts = []

    def restart(self):
        """As a resumed run does: a new schedule over what is known."""
        self.schedule = self.tables.schedule(self.selection)
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
        while len(self.in_flight) < self.flight and (unit := self.schedule.next()) is not None:
            self.check(unit)
            self.in_flight.append(unit)

    def return_one(self):
        self.tables.enter(self.selection, self.in_flight.pop(self.rng.integers(len(self.in_flight))))
        winner = self.selection.winner
        if winner is not None and self.first_l_ms is None:
            self.first_l_ms = winner.l_ms

    def check(self, unit):
        """A unit is new, and every path of it ends with a step that is unknown and alive."""
        assert isinstance(unit, Unit)
        assert unit.stage is Stage.SELECT
        assert unit.paths
        assert len({path for path, _ in unit.paths}) == len(unit.paths)
        fold, alive = self.selection.sizes[unit.size], self.selection.alive(unit.size)
        for path, length in unit.paths:
            assert length > self.longest[unit.size][unit.split, path], "handed out before"
            assert length <= self.tables.lengths[path]
            assert fold.values[unit.split, path, length - 1] == UNKNOWN
            assert alive[path, length - 1]
            self.longest[unit.size][unit.split, path] = length
            self.fits += length
        assert unit.evaluations == sum(length for _, length in unit.paths)
        self.units.append((unit, self.selection.winner))

    def open(self):
        return [j for j in range(len(self.tables.sizes)) if self.selection.alive(j).any()]

    def known(self):
        return [int(np.sum(fold.values >= 0)) for fold in self.selection.sizes]


@pytest.mark.parametrize("exhaustive", [False, True])
@pytest.mark.parametrize("flight", FLIGHTS)
@pytest.mark.parametrize("fail", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(16))
def test_a_race_ends_with_the_winners_of_brute_force_and_the_shortest_proofs(seed, fail, flight, exhaustive):
    """Of all sizes, and of each that is reported. Failed paths neither stop it nor win it. The proofs are the
    same whatever was computed and in whatever order; an exhaustive race computes everything once.
    """
    tables = small(seed, fail)
    own = [j for j in range(len(tables.sizes)) if (seed + j) % 3 == 1]
    race = Race(tables, flight, seed, own, exhaustive)
    assert 0 < race.schedule.forecast() < inf
    assert all(0 <= forecast < inf for forecast in race.run().forecasts)
    assert (race.open(), race.schedule.forecast()) == ([], 0)
    assert race.selection.winner == tables.best()
    assert [race.selection.leaders[j] for j in own] == [tables.best(among=j) for j in own]
    for (j, g, c), l_ms in tables.l_ms.items():
        fold, best = race.selection.sizes[j], tables.best(among=j if j in own else None)
        proof = fold.proof(g, c, race.selection.threshold(j))
        failed_next = (j, int(fold.prefix[g, c]), g) in tables.failing
        assert fold.complete[g, c] or failed_next or (proof is not None and not exhaustive)
        if not fail:
            assert proof == tables.proof(j, g, c, best[0])
            assert (proof is None) == (l_ms == best[0])
            assert not exhaustive or np.array_equal(fold.values[:, g, c], tables.values[j][:, g, c])
    if exhaustive and not fail:
        assert race.fits == sum(race.known()) == tables.evaluations


@pytest.mark.parametrize("seed", range(12))
def test_a_race_taken_up_again_repeats_nothing_known_and_ends_alike(seed):
    """Units in flight at the break are lost; ``check`` sees to it that nothing known is asked for again."""
    tables = small(seed)
    race = Race(tables, 3, seed).run(stop_after=4)
    race.longest = [fold.computed.copy() for fold in race.selection.sizes]
    race.restart()
    race.run()
    assert race.open() == []
    assert race.selection.winner == tables.best()


@pytest.mark.parametrize("flight", [1, 5])
@pytest.mark.parametrize("own", [(), (0, 2)])
@pytest.mark.parametrize(
    "tables",
    [realistic(0), realistic(1), realistic(1, lengths=UNEVEN), *(small(s, fail=0.1) for s in range(10))],
)
def test_what_is_remembered_between_units_and_results_changes_no_unit(tables, own, flight):
    """A schedule that knows only the values and what was handed out comes to the same."""
    race = Race(tables, flight, own=[j for j in own if j < len(tables.sizes)])
    while race.open() or race.in_flight:
        anew = tables.schedule(race.selection)
        anew.issued = [issued.copy() for issued in race.schedule.issued]
        unit = race.schedule.next()
        assert unit == anew.next()
        race.in_flight += [unit] if unit else []
        if len(race.in_flight) == flight or unit is None:
            race.return_one()
    assert race.selection.winner == tables.best()


@pytest.mark.parametrize("lengths", [None, UNEVEN])
def test_what_was_entered_before_is_not_handed_out(lengths):
    """In any order, as a log is read; what follows a gap is computed again."""
    tables = realistic(0, lengths=lengths)
    first, second = Race(tables, 10**6, exhaustive=True), Race(tables, 10**6, exhaustive=True)
    first.fill()
    rng = np.random.default_rng(0)
    some = [
        (unit.size, unit.split, path, int(rng.integers(n)))
        for unit, _ in first.units
        for path, n in unit.paths
    ]
    some = [some[i] for i in rng.permutation(len(some))[:200]]
    begun = {(size, split, path): step + 1 for size, split, path, step in some}
    known = [(*place, step) for place, done in begun.items() for step in range(done)]
    gaps = {(*place, 0) for place in list(begun)[:20]}
    for at in rng.permutation(len(known)).tolist():
        if known[at] not in gaps:
            size, *place = known[at]
            second.selection.enter(size, *np.array(place)[:, None], np.array([0.5]))
    second.selection.refresh()
    marked = {place: done for place, done in begun.items() if (*place, 0) not in gaps}
    assert any(1 < done < tables.lengths[path] for (_, _, path), done in marked.items())
    left = {}
    while (unit := second.schedule.next()) is not None:
        left |= {(unit.size, unit.split, path): length for path, length in unit.paths}
    whole = {(unit.size, unit.split, path): n for unit, _ in first.units for path, n in unit.paths}
    assert left == {place: n for place, n in whole.items() if marked.get(place, 0) < n}


@pytest.mark.parametrize("seed", range(4))
def test_a_realistic_race_costs_little_more_than_the_shortest_proofs(seed):
    """What no procedure can spare: the winner, and each other candidate up to its shortest proof."""
    tables = realistic(seed)
    (n_paths, n_steps), best, needed = tables.shape, tables.best()[0], 0
    for j, (_, n_splits) in enumerate(tables.sizes):
        proofs = (tables.proof(j, g, c, best) for g, c in np.ndindex(*tables.shape))
        splits = np.array([proof.splits if proof else n_splits for proof in proofs]).reshape(tables.shape)
        for i in range(n_splits):
            needed += int(np.max((splits > i) * np.arange(1, n_steps + 1), axis=1).sum())
    race = Race(tables, 1, seed).run()
    assert needed <= sum(race.known()) <= race.fits <= 2 * needed
    assert max(race.fits, Race(tables, 8, seed).run().fits) <= tables.evaluations / 4
    # The first leader takes one whole split and then about one path of each, all in the first size;
    spent = [unit for unit, winner in race.units if winner is None]
    assert {unit.size for unit in spent} == {0}
    assert sum(unit.evaluations for unit in spent) <= n_paths * n_steps + 2 * tables.sizes[0][1] * n_steps
    # a size that cannot win, with U(0) above its L_MS, is then never begun.
    hopeless = [j for j, (_, least) in enumerate(tables.least) if j and least > race.first_l_ms]
    assert len(hopeless) >= 3, "the case must provoke it"
    assert all(race.known()[j] == 0 for j in hopeless)


@pytest.mark.parametrize("seed", range(5))
def test_exhaustive_forecast_is_exactly_what_is_left(seed):
    tables = small(seed)
    cost = [float(rows) ** 2 for rows in tables.n_train]
    race = Race(tables, 3, seed, exhaustive=True)
    each = [n_splits * sum(tables.lengths) for _, n_splits in tables.sizes]
    total = sum(c * n for c, n in zip(cost, each, strict=True))
    assert race.schedule.forecast() == total
    race.run(stop_after=5)
    assert race.schedule.forecast() == total - sum(c * n for c, n in zip(cost, race.known(), strict=True))
    race.run()
    assert race.schedule.forecast() == 0

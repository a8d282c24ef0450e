"""The race: sums, ties, drops and proofs against rational arithmetic, and from end to end on tables of counts
drawn beforehand.

``Case`` is a whole table of values, deliberately small and full of ties: few errors on few rows, columns that
repeat others in another order of the splits, sizes that repeat others, paths of any lengths, and in a third
of the cases another least value for each split. ``Race`` plays the driver: it asks for units, keeps several
in flight, hands their values back in random order, and checks every unit as it is handed out. What a unit may
be is stated in ``check``.
"""

from functools import cache
from itertools import product
from math import fsum, inf

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.bounds import binomial
from ckcv_ray.core.criteria import MeanBound
from ckcv_ray.core.schedule import Schedule, Stage, Unit
from ckcv_ray.core.selection import (
    FAILED,
    UNKNOWN,
    Least,
    Proof,
    Selection,
    Standings,
    find_shortest_proof,
    mean_bound,
)

CRITERION = MeanBound()
FLIGHTS = (1, 2, 7, 1000)


class Tables:
    """Counts of every evaluation, the paths that fail, and what follows from them by brute force.

    Sizes are pairs (rows of a select set, splits); counts are arrays (n_splits, n_paths, n_steps), which are
    never read beyond the end of a path.
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
        """A schedule over the race of these tables, with costs like those of a kernel matrix."""
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
        """Return what a unit gives."""
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
        """Start a new schedule over what is known, as a resumed run does."""
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


DELTA = 0.05
repeatable = settings(derandomize=True, deadline=None, max_examples=limit_examples(40))
seeds = st.integers(0, 2**32 - 1)


@cache
def bound_table(m):
    return binomial.bound_table(m, DELTA)


def least(m):
    return float(bound_table(m)[0])


def enter(selection, m, size, split, path, counts):
    """Enter the bounds of a path's first counts on m rows."""
    selection.enter(size, split, path, np.arange(len(counts)), bound_table(m)[counts])


def rounded_mean(values, n):
    """The sum of floats, rounded once, over n: added as multiples of 2^-300, then divided."""
    unit = 1 << 300
    ratios = [float(value).as_integer_ratio() for value in values]
    return sum(top * (unit // bottom) for top, bottom in ratios) / unit / n


class Case:
    """Values of every candidate: ``leasts`` are the least values of the splits of each size, ``lengths`` the
    steps of each path, tables arrays (n_splits, n_paths, n_steps); what is beyond the end of a path is never
    read.
    """

    def __init__(self, leasts, tables, lengths=None):
        self.leasts, self.tables = leasts, tables
        self.lengths = list(lengths or [tables[0].shape[2]] * tables[0].shape[1])
        self.n_splits = [len(each) for each in leasts]
        self.lows = {t: [self._low(*t, p) for p in range(self.n_splits[t[0]] + 1)] for t in self.candidates()}

    @classmethod
    def of_counts(cls, m, table):
        """One size of errors on m rows."""
        return cls([[least(m)] * len(table)], [bound_table(m)[table]])

    def selection(self, **options):
        return Selection([(len(each), each) for each in self.leasts], self.lengths, **options)

    def candidates(self):
        """(size, path, step) of all candidates."""
        n_sizes = len(self.leasts)
        return [(j, g, c) for j in range(n_sizes) for g, n in enumerate(self.lengths) for c in range(n)]

    def column(self, size, path, step):
        return self.tables[size][:, path, step].tolist()

    def _low(self, size, path, step, p):
        return rounded_mean([*self.column(size, path, step)[:p], *self.leasts[size][p:]], self.n_splits[size])

    def low(self, size, path, step, p):
        """The least L_MS left after p splits; L_MS itself after all of them."""
        return self.lows[size, path, step][p]

    def l_ms(self, size, path, step):
        return self.lows[size, path, step][-1]

    def paths(self):
        """(size, split, path, length) of all paths."""
        for j, n_splits in enumerate(self.n_splits):
            for i, (g, length) in product(range(n_splits), enumerate(self.lengths)):
                yield j, i, g, length


def make_case(seed):
    rng = np.random.default_rng(seed)
    n_paths, n_steps = (int(v) for v in rng.integers(1, 4, size=2))
    lengths = [n_steps] * n_paths
    if seed % 2:
        lengths = rng.integers(1, 4, size=n_paths).tolist()
        n_steps = max(lengths)
    sizes = [tuple(int(v) for v in rng.integers(1, (8, 6))) for _ in range(rng.integers(1, 4))]
    if rng.random() < 0.5:
        sizes.append(sizes[0])
    sizes.sort(reverse=True)
    tables = []
    for m, n_splits in sizes:
        most = int(rng.integers(0, m + 1))
        table = rng.integers(0, most + 1, size=(n_splits, n_paths, n_steps))
        if rng.random() < 0.7:
            source, target = (tuple(int(v) for v in rng.integers(0, (n_paths, n_steps))) for _ in range(2))
            table[(slice(None), *target)] = rng.permutation(table[(slice(None), *source)])
        same = [t for s, t in zip(sizes, tables, strict=False) if s == (m, n_splits)]
        tables.append(rng.permutation(same[0]) if same and rng.random() < 0.8 else table)
    leasts = [np.full(n_splits, least(m)) for m, n_splits in sizes]
    values = [bound_table(m)[table] for (m, _), table in zip(sizes, tables, strict=True)]
    if seed % 3 == 0:  # in 64ths, so that ties are common
        leasts = [rng.integers(1, 20, size=n_splits) / 64 for _, n_splits in sizes]
        values = [each[:, None, None] + table / 64 for each, table in zip(leasts, tables, strict=True)]
    return Case([each.tolist() for each in leasts], values, lengths)


def deliveries(case, rng):
    """Every path in overlapping pieces, in any order; together they bring everything."""
    pieces = []
    for *path, whole in case.paths():
        pieces.append((*path, whole))
        pieces.extend((*path, int(length)) for length in rng.integers(1, whole + 1, size=rng.integers(0, 3)))
    return [pieces[i] for i in rng.permutation(len(pieces))]


def deliver(selection, case, pieces):
    for size, split, path, length in pieces:
        selection.enter(size, split, path, np.arange(length), case.tables[size][split, path, :length])
    selection.refresh()


def prefix_of(selection, size, path, step):
    known = selection.sizes[size].values[:, path, step] >= 0
    return len(known) if known.all() else int(np.argmin(known))


@pytest.mark.parametrize("alike", [True, False])
@given(seeds, st.sets(st.integers(0, 3)), st.sets(st.integers(0, 2)))
@repeatable
def test_alive_is_what_may_still_reach_the_best_so_far(alike, seed, own, known):
    """That of its size where this is reported; and where the best of its learner is to be known, the worse of
    the two. So nothing dead can win or tie.
    """
    case, rng = make_case(seed), np.random.default_rng(seed)
    learners = np.sort(rng.integers(0, 3, size=len(case.lengths)))
    own, known = own & set(range(len(case.leasts))), known & set(learners.tolist())
    own, known = (set(), set()) if alike else (own, known)
    selection = case.selection(separate=own, learners=learners, known=known)

    def best(among):  # of equals that of the first learner
        return min(((case.l_ms(j, g, c), learners[g], c, g, j) for j, g, c in among), default=(inf,))

    def limit(among, j, g):
        found = best(t for t in among if j not in own or t[0] == j)[0]
        of_learner = [t for t in among if learners[t[1]] == learners[g]]
        return max(found, best(of_learner)[0]) if learners[g] in known else found

    final = {(j, g): limit(case.candidates(), j, g) for j, g, _ in case.candidates()}
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        prefixes = {t: prefix_of(selection, *t) for t in case.candidates()}
        complete = {t for t, p in prefixes.items() if p == case.n_splits[t[0]]}
        limits = {(j, g): limit(complete, j, g) for j, g in final}
        for (j, g, c), p in prefixes.items():
            assert selection.thresholds(j)[g] == limits[j, g]
            assert selection.sizes[j].exact_low(g, c) == case.low(j, g, c, p)
            assert selection.sizes[j].low[g, c] == pytest.approx(case.low(j, g, c, p), rel=1e-12)
            alive, done = bool(selection.alive(j)[g, c]), (j, g, c) in complete
            assert alive == (not done and case.low(j, g, c, p) <= limits[j, g])
            assert done or alive or case.l_ms(j, g, c) > final[j, g]
    assert not any(selection.alive(j).any() for j in range(len(case.leasts)))
    l_ms, _, *at = best(case.candidates())
    assert selection.winner == (l_ms, *at)
    for j in own:
        l_ms, _, *at = best(t for t in case.candidates() if t[0] == j)
        assert selection.leaders[j] == (l_ms, *at)


@pytest.mark.parametrize("order", range(10))
def test_equality_keeps_a_candidate_however_its_sum_is_rounded(order):
    """Beside a complete candidate, one whose prefix holds the same counts in another order and then lacks
    only splits that cost the leader nothing: its lower bound equals the leader's sum and must not drop it.
    """
    rng = np.random.default_rng(order)
    leader = np.zeros(30, dtype=int)
    leader[:19] = rng.integers(1, 12, size=19)
    challenger = np.concatenate([rng.permutation(leader[:19]), np.zeros(11, dtype=int)])
    challenger_above = challenger.copy()
    challenger_above[rng.integers(19)] += 1
    counts = np.stack([challenger, challenger_above, leader], axis=1)[:, :, None]
    selection = Case.of_counts(40, counts).selection()
    for i in range(30):
        enter(selection, 40, 0, i, 2, counts[i, 2])
        if i < 19:
            enter(selection, 40, 0, i, 0, counts[i, 0])
            enter(selection, 40, 0, i, 1, counts[i, 1])
    selection.refresh()
    assert selection.winner[1:] == (0, 2, 0)
    assert selection.alive(0).tolist() == [[True], [False], [False]]


def test_a_failure_never_replaces_a_value_and_a_value_always_replaces_a_failure():
    counts, failure = [2, 0, 1], None
    for arrivals in ([counts, failure], [failure, counts], [failure, counts, failure]):
        selection = Selection([(2, least(5))], [3, 3])
        for arrival in arrivals:
            if arrival is failure:
                selection.fail(0, 1, 1, slice(0, 3))
            else:
                enter(selection, 5, 0, 1, 1, arrival)
        selection.refresh()
        values = selection.sizes[0].values
        assert values[1, 1].tolist() == bound_table(5)[counts].tolist()
        assert np.all(values[0] == UNKNOWN)
        assert np.all(values[1, 0] == UNKNOWN)
    selection.fail(0, 0, 0, slice(0, 2))  # it marks the steps of its path and no others
    selection.refresh()
    assert values[0].tolist() == [[FAILED, FAILED, UNKNOWN], [UNKNOWN] * 3]
    assert selection.alive(0).tolist() == [[False, False, True], [True, True, True]]


@given(seeds)
@repeatable
def test_lower_bounds_and_their_shortest_proofs(seed):
    case = make_case(seed)
    for j, least_values in enumerate(case.leasts):
        n_splits, fold = case.n_splits[j], Standings(case.n_splits[j], case.lengths, least_values)
        assert fold.floor == rounded_mean(least_values, n_splits)
        for column, lows in ((case.column(*t), low) for t, low in case.lows.items() if t[0] == j):
            assert [mean_bound(column[:p], fold.least) for p in range(n_splits + 1)] == lows == sorted(lows)
            for threshold in (*lows, 0.0, 1.0, inf):
                proving = [p for p in range(n_splits + 1) if lows[p] > threshold]
                expected = Proof(proving[0], lows[proving[0]]) if proving else None
                assert find_shortest_proof(column, fold.least, threshold) == expected
                for known in range(n_splits):
                    found = find_shortest_proof(column[:known], fold.least, threshold)
                    assert found == (expected if proving and proving[0] <= known else None)

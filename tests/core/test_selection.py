"""Sums, ties, drops and proofs against rational arithmetic on complete tables of values.

``Case`` is a whole table of values, small and full of ties on purpose: few errors on few rows, columns
that repeat others in another order of the splits, sizes that repeat others, paths of any lengths, and in a
third of the cases another least value for each split.
"""

from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest
from conftest import limit_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.bounds import binomial
from ckcv_ray.core.selection import (
    FAILED,
    UNKNOWN,
    Proof,
    Selection,
    Standings,
    find_shortest_proof,
    mean_bound,
)

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
    """The sum of floats rounded once, over n: added as whole numbers of 2^-300, then divided."""
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
        """(size, path, step) of all of them."""
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
        """(size, split, path, length) of all of them."""
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
    """Every path in pieces that overlap, in any order; together they bring everything."""
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


# One fold size by itself

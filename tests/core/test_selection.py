"""Sums, ties, drops and proofs against rational arithmetic on complete tables of counts.

``Case`` is a whole table of counts, small and full of ties on purpose: few errors on few rows, columns
that repeat others in another order of the splits, sizes that repeat others.
"""

from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core import bounds as core_bounds
from ckcv_ray.core.selection import (
    FAILED,
    UNKNOWN,
    FoldSize,
    Leader,
    Proof,
    Selection,
    mean_bound,
    shortest_proof,
)

DELTA = 0.05
repeatable = settings(derandomize=True, deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)


@cache
def bound_table(m):
    return core_bounds.bound_table(m, DELTA)


def rounded_mean(values, n):
    """The sum of floats rounded once, over n: added as whole numbers of 2^-300, then divided."""
    unit = 1 << 300
    ratios = [float(value).as_integer_ratio() for value in values]
    return sum(top * (unit // bottom) for top, bottom in ratios) / unit / n


class Case:
    """Counts of every cell: sizes are pairs (n_select, n_splits), tables arrays (n_splits, n_gamma, n_C)."""

    def __init__(self, sizes, tables):
        self.sizes, self.tables = sizes, tables
        _, self.n_gamma, self.n_C = tables[0].shape
        self.lows = {t: [self._low(*t, p) for p in range(sizes[t[0]][1] + 1)] for t in self.triples()}

    def selection(self, **options):
        return Selection(self.sizes, self.n_gamma, self.n_C, DELTA, **options)

    def triples(self):
        """(size, gamma, C) of all of them."""
        return product(range(len(self.sizes)), range(self.n_gamma), range(self.n_C))

    def bounds(self, size, gamma, C):
        m, _ = self.sizes[size]
        return bound_table(m)[self.tables[size][:, gamma, C]].tolist()

    def _low(self, size, gamma, C, p):
        m, n_splits = self.sizes[size]
        known = self.bounds(size, gamma, C)[:p]
        return rounded_mean(known + [bound_table(m)[0]] * (n_splits - p), n_splits)

    def low(self, size, gamma, C, p):
        """The least L_MS left after p splits; L_MS itself after all of them."""
        return self.lows[size, gamma, C][p]

    def l_ms(self, size, gamma, C):
        return self.lows[size, gamma, C][-1]

    def best(self, among=None):
        """(l_ms, C, gamma, size) of the winner: ties go to the smaller C, then gamma, then k."""
        return min((self.l_ms(j, g, c), c, g, j) for j, g, c in self.triples() if among in (None, j))

    def paths(self):
        for j, (_, n_splits) in enumerate(self.sizes):
            yield from product([j], range(n_splits), range(self.n_gamma))


def make_case(seed):
    rng = np.random.default_rng(seed)
    n_gamma, n_C = (int(v) for v in rng.integers(1, 4, size=2))
    sizes = [tuple(int(v) for v in rng.integers(1, (8, 6))) for _ in range(rng.integers(1, 4))]
    if rng.random() < 0.5:
        sizes.append(sizes[0])
    sizes.sort(reverse=True)
    tables = []
    for m, n_splits in sizes:
        most = int(rng.integers(0, m + 1))
        table = rng.integers(0, most + 1, size=(n_splits, n_gamma, n_C)).astype(np.int32)
        if rng.random() < 0.7:
            source, target = (tuple(int(v) for v in rng.integers(0, (n_gamma, n_C))) for _ in range(2))
            table[(slice(None), *target)] = rng.permutation(table[(slice(None), *source)])
        same = [t for s, t in zip(sizes, tables, strict=False) if s == (m, n_splits)]
        tables.append(rng.permutation(same[0]) if same and rng.random() < 0.8 else table)
    return Case(sizes, tables)


def deliveries(case, rng):
    """Every path in pieces that overlap, in any order; together they bring everything."""
    pieces = []
    for path in case.paths():
        pieces.append((*path, case.n_C))
        pieces.extend(
            (*path, int(length)) for length in rng.integers(1, case.n_C + 1, size=rng.integers(0, 3))
        )
    return [pieces[i] for i in rng.permutation(len(pieces))]


def deliver(selection, case, pieces):
    for size, mc_index, gamma, length in pieces:
        selection.add(size, mc_index, gamma, case.tables[size][mc_index, gamma, :length])
    selection.refresh()


def complete(case, **options):
    selection = case.selection(**options)
    deliver(selection, case, [(*path, case.n_C) for path in case.paths()])
    return selection


def state(selection):
    n = range(len(selection.sizes))
    return (
        selection.leaders,
        selection.winner(),
        [selection.threshold(j) for j in n],
        [selection.alive(j).tolist() for j in n],
        [selection.sizes[j].prefix.tolist() for j in n],
    )


def prefix_of(selection, size, gamma, C):
    known = selection.sizes[size].counts[:, gamma, C] >= 0
    return len(known) if known.all() else int(np.argmin(known))


# L_MS and the winner


@given(seeds)
@repeatable
def test_leaders_are_the_least_sums_with_ties_to_smaller_C_gamma_k(seed):
    case = make_case(seed)
    selection = complete(case)
    assert selection.leaders == [case.best(among=j) for j in range(len(case.sizes))]
    assert selection.winner() == case.best()
    for j, g, c in case.triples():
        assert selection.sizes[j].exact_low(g, c) == case.l_ms(j, g, c)


def test_the_cases_do_provoke_ties():
    tied = across = 0
    for seed in range(100):
        case = make_case(seed)
        winners = [(j, g, c) for j, g, c in case.triples() if case.l_ms(j, g, c) == case.best()[0]]
        tied += len(winners) > 1
        across += len({j for j, _, _ in winners}) > 1
    assert tied >= 20
    assert across >= 10


@pytest.mark.parametrize(
    ("ahead", "behind"),
    [
        ((0, 1, 0), (0, 0, 1)),  # (size, gamma, C): smaller C, although its gamma is larger
        ((1, 0, 0), (0, 1, 0)),  # smaller gamma, although its k is larger
        ((0, 1, 1), (1, 1, 1)),  # smaller k
    ],
)
def test_order_of_ties(ahead, behind):
    table = np.full((2, 3, 2, 2), 3, dtype=np.int32)
    for (size, gamma, C), counts in ((ahead, [0, 1, 2]), (behind, [2, 0, 1])):
        table[size, :, gamma, C] = counts
    selection = complete(Case([(5, 3), (5, 3)], list(table)))
    size, gamma, C = ahead
    assert selection.winner() == Leader(rounded_mean(bound_table(5)[:3].tolist(), 3), C, gamma, size)


def test_sums_that_differ_in_order_alone_are_equal():
    """Added from left to right, most of these permutations would differ in the last bits."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 30, size=41)
    columns = np.stack([rng.permutation(counts) for _ in range(24)], axis=1).astype(np.int32)
    naive = {sum(bound_table(30)[column].tolist()) for column in columns.T}
    assert len(naive) > 1, "the case must provoke it"
    case = Case([(30, 41)], [columns.reshape(41, 4, 6)])
    selection = complete(case)
    assert selection.winner() == (case.l_ms(0, 0, 0), 0, 0, 0)
    assert {selection.sizes[0].exact_low(g, c) for _, g, c in case.triples()} == {case.l_ms(0, 0, 0)}


@given(st.lists(st.floats(0.01, 1.0), max_size=30), st.integers(0, 20), st.randoms(use_true_random=False))
@repeatable
def test_mean_bound_rounds_once_and_ignores_order(bounds, left, random):
    n_splits = len(bounds) + left
    if n_splits == 0:
        return
    expected = rounded_mean([*bounds, *[0.0099] * left], n_splits)
    assert mean_bound(bounds, 0.0099, n_splits) == expected
    random.shuffle(bounds)
    assert mean_bound(bounds, 0.0099, n_splits) == expected


# The race


@given(seeds)
@repeatable
def test_order_of_arrival_makes_no_difference(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    pieces = deliveries(case, rng)[: int(rng.integers(1, 40))]
    one, other = case.selection(), case.selection()
    for piece in pieces:
        deliver(one, case, [piece])
    shuffled = [pieces[i] for i in rng.permutation(len(pieces))]
    deliver(other, case, shuffled + pieces[:3])
    assert state(one) == state(other)


@given(seeds)
@repeatable
def test_alive_is_what_may_still_reach_the_best_so_far(seed):
    """And so nothing dead can win or tie: its final L_MS is above the final winner's."""
    case, rng = make_case(seed), np.random.default_rng(seed)
    selection, final = case.selection(), case.best()[0]
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        for j, g, c in case.triples():
            p = prefix_of(selection, j, g, c)
            done = p == case.sizes[j][1]
            alive = bool(selection.alive(j)[g, c])
            assert alive == (not done and case.low(j, g, c, p) <= selection.threshold(j))
            assert done or alive or case.l_ms(j, g, c) > final
    assert not any(selection.alive(j).any() for j in range(len(case.sizes)))
    assert selection.winner() == case.best()


@given(seeds)
@repeatable
def test_threshold_is_the_least_complete_sum_so_far(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    selection = case.selection()
    assert all(selection.threshold(j) == inf for j in range(len(case.sizes)))
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        done = [
            case.l_ms(j, g, c)
            for j, g, c in case.triples()
            if prefix_of(selection, j, g, c) == case.sizes[j][1]
        ]
        assert {selection.threshold(j) for j in range(len(case.sizes))} == {min(done, default=inf)}


@given(seeds)
@repeatable
def test_lower_bounds_never_fall_nor_exceed_the_final_sum(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    selection = case.selection()
    last = {t: selection.sizes[t[0]].exact_low(*t[1:]) for t in case.triples()}
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        for t in case.triples():
            low = selection.sizes[t[0]].exact_low(*t[1:])
            assert last[t] <= low <= case.l_ms(*t)
            assert selection.sizes[t[0]].low[t[1:]] == pytest.approx(low, rel=1e-12)
            last[t] = low


@pytest.mark.parametrize("order", range(10))
def test_equality_keeps_a_triple_however_its_sum_is_rounded(order):
    """Beside a complete triple, one whose prefix holds the same counts in another order and then lacks
    only splits that cost the leader nothing: its lower bound equals the leader's sum and must not drop it.
    """
    rng = np.random.default_rng(order)
    leader = np.zeros(30, dtype=np.int32)
    leader[:19] = rng.integers(1, 12, size=19)
    rival = np.concatenate([rng.permutation(leader[:19]), np.zeros(11, dtype=np.int32)])
    rival_above = rival.copy()
    rival_above[rng.integers(19)] += 1
    counts = np.stack([rival, rival_above, leader], axis=1)[:, :, None]
    selection = Case([(40, 30)], [counts]).selection()
    for i in range(30):
        selection.add(0, i, 2, counts[i, 2])
        if i < 19:
            selection.add(0, i, 0, counts[i, 0])
            selection.add(0, i, 1, counts[i, 1])
    selection.refresh()
    assert selection.winner()[1:] == (0, 2, 0)
    assert selection.alive(0).tolist() == [[True], [False], [False]]


def test_a_size_not_begun_is_alive_until_no_errors_at_all_would_be_too_many():
    selection = Selection([(10, 2), (6, 2), (5, 2)], 1, 1, DELTA)
    assert all(selection.alive(j).all() for j in range(3))
    one_wrong = bound_table(10)[1]
    assert bound_table(6)[0] < one_wrong < bound_table(5)[0], "the case must provoke it"
    for i in range(2):
        selection.add(0, i, 0, np.array([1], dtype=np.int32))
    selection.refresh()
    assert [bool(selection.alive(j).any()) for j in range(3)] == [False, True, False]


def test_equal_least_bounds_keep_a_size_that_can_only_tie():
    selection = Selection([(4, 3), (4, 3)], 1, 1, DELTA)
    for i in range(3):
        selection.add(1, i, 0, np.array([0], dtype=np.int32))
    selection.refresh()
    assert selection.winner()[3] == 1
    assert selection.alive(0).all(), "it has the smaller k and would win the tie"


@given(seeds)
@repeatable
def test_exhaustive_drops_nothing_and_changes_no_leader(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    selection = case.selection(exhaustive=True)
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        for j, fold in enumerate(selection.sizes):
            assert np.array_equal(selection.alive(j), fold.prefix < fold.n_splits)
    assert selection.winner() == case.best()


@given(seeds)
@repeatable
def test_a_reported_size_is_judged_by_its_own_best_alone(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    own = {j for j in range(len(case.sizes)) if rng.random() < 0.6}
    selection = case.selection(own=own)
    for piece in deliveries(case, rng):
        deliver(selection, case, [piece])
        for j in range(len(case.sizes)):
            rule = selection.leaders[j] if j in own else selection.winner()
            assert selection.threshold(j) == (rule.l_ms if rule else inf)
        for j, g, c in case.triples():
            open_ = prefix_of(selection, j, g, c) < case.sizes[j][1]
            if open_ and not selection.alive(j)[g, c]:
                assert case.l_ms(j, g, c) > case.best(among=j if j in own else None)[0]
    for j in own:
        assert selection.leaders[j] == case.best(among=j)
    assert selection.winner() == case.best()


# Failures


def test_a_failure_never_replaces_a_count_and_a_count_always_replaces_a_failure():
    counts, failure = np.array([2, 0, 1], dtype=np.int32), np.full(3, FAILED, dtype=np.int32)
    for arrivals in ([counts, failure], [failure, counts], [failure, counts, failure]):
        selection = Selection([(5, 2)], 2, 3, DELTA)
        for arrival in arrivals:
            selection.add(0, 1, 1, arrival)
        selection.refresh()
        assert selection.sizes[0].counts[1, 1].tolist() == [2, 0, 1]
        assert np.all(selection.sizes[0].counts[0] == UNKNOWN)
        assert np.all(selection.sizes[0].counts[1, 0] == UNKNOWN)


def test_a_failure_marks_the_cells_of_its_path_and_no_others():
    selection = Selection([(5, 2)], 2, 3, DELTA)
    selection.add(0, 0, 0, np.array([1], dtype=np.int32))
    selection.add(0, 0, 0, np.full(2, FAILED, dtype=np.int32))
    selection.refresh()
    assert selection.sizes[0].counts[0].tolist() == [[1, FAILED, UNKNOWN], [UNKNOWN] * 3]
    assert selection.alive(0).tolist() == [[True, False, True], [True, True, True]]


def test_a_failed_split_blocks_its_triple_once_it_is_next():
    selection = Selection([(5, 3)], 1, 1, DELTA)
    selection.add(0, 1, 0, np.array([FAILED], dtype=np.int32))
    selection.refresh()
    assert selection.alive(0).all(), "split 0 may still prove it beaten"
    selection.add(0, 0, 0, np.array([0], dtype=np.int32))
    selection.add(0, 2, 0, np.array([0], dtype=np.int32))
    selection.refresh()
    assert not selection.alive(0).any()
    assert selection.winner() is None
    assert selection.sizes[0].prefix.tolist() == [[1]]
    selection.add(0, 1, 0, np.array([4], dtype=np.int32))
    selection.refresh()
    assert selection.winner() == (rounded_mean([bound_table(5)[x] for x in (0, 4, 0)], 3), 0, 0, 0)


@given(seeds, st.booleans())
@repeatable
def test_failed_triples_never_lead_and_the_others_race_as_ever(seed, exhaustive):
    case, rng = make_case(seed), np.random.default_rng(seed)
    failing = {path for path in case.paths() if rng.random() < 0.15}
    selection = case.selection(exhaustive=exhaustive)
    for size, mc_index, gamma, length in deliveries(case, rng):
        if (size, mc_index, gamma) in failing:
            selection.add(size, mc_index, gamma, np.full(length, FAILED, dtype=np.int32))
            selection.refresh()
        else:
            deliver(selection, case, [(size, mc_index, gamma, length)])
    broken = {(size, gamma) for size, _, gamma in failing}
    whole = [(case.l_ms(j, g, c), c, g, j) for j, g, c in case.triples() if (j, g) not in broken]
    assert selection.winner() == min(whole, default=None)
    assert not any(selection.alive(j).any() for j in range(len(case.sizes)))


# Proofs


@given(seeds)
@repeatable
def test_proof_is_the_first_prefix_that_suffices_and_its_exact_bound(seed):
    case = make_case(seed)
    lows = {case.low(*t, p) for t in case.triples() for p in range(case.sizes[t[0]][1] + 1)}
    for t in case.triples():
        m, n_splits = case.sizes[t[0]]
        bounds, least = case.bounds(*t), float(bound_table(m)[0])
        for threshold in (*sorted(lows), 0.0, 1.0, inf):
            proving = [p for p in range(n_splits + 1) if case.low(*t, p) > threshold]
            expected = Proof(proving[0], case.low(*t, proving[0])) if proving else None
            assert shortest_proof(bounds, least, n_splits, threshold) == expected
            for known in range(n_splits):
                found = shortest_proof(bounds[:known], least, n_splits, threshold)
                assert found == (expected if proving and proving[0] <= known else None)


@given(seeds)
@repeatable
def test_proofs_at_the_end_do_not_depend_on_what_else_was_computed(seed):
    """Stop adding to a triple as soon as it is dropped: the proof is still that of the complete table."""
    case, rng = make_case(seed), np.random.default_rng(seed)
    whole, raced = complete(case), case.selection()
    for size, mc_index, gamma, length in deliveries(case, rng):
        if raced.alive(size)[gamma, :length].any():
            deliver(raced, case, [(size, mc_index, gamma, length)])
    assert raced.winner() == whole.winner()
    for j, g, c in case.triples():
        threshold = raced.threshold(j)
        proof = raced.sizes[j].proof(g, c, threshold)
        assert proof == whole.sizes[j].proof(g, c, threshold)
        assert (proof is None) == (case.l_ms(j, g, c) <= threshold)


# One fold size by itself


@given(seeds)
@repeatable
def test_what_a_fold_size_derives_from_its_counts(seed):
    case, rng = make_case(seed), np.random.default_rng(seed)
    m, n_splits = case.sizes[0]
    fold = FoldSize(m, n_splits, case.n_gamma, case.n_C, DELTA)
    assert fold.leader(0) is None
    assert np.all(fold.expected == inf)
    hidden = rng.random(fold.counts.shape)
    fold.counts[:] = np.select([hidden < 0.6, hidden < 0.8], [case.tables[0], FAILED], UNKNOWN)
    fold.refresh()
    for g, c in np.ndindex(case.n_gamma, case.n_C):
        column = fold.counts[:, g, c].tolist()
        p = next((i for i, x in enumerate(column) if x < 0), n_splits)
        assert fold.prefix[g, c] == p
        assert fold.complete[g, c] == (p == n_splits)
        assert fold.blocked[g, c] == (p < n_splits and column[p] == FAILED)
        assert fold.prefix_bounds(g, c) == case.bounds(0, g, c)[:p]
        assert fold.exact_low(g, c) == case.low(0, g, c, p)
        if p:
            assert fold.expected[g, c] == pytest.approx(np.mean(case.bounds(0, g, c)[:p]))
    assert np.array_equal(fold.computed, (fold.counts != UNKNOWN).sum(axis=2))


def test_an_empty_selection_has_no_winner_and_counts_are_not_shared():
    selection = Selection([(3, 2), (2, 2)], 1, 2, DELTA)
    assert selection.winner() is None
    assert selection.leaders == [None, None]
    counts = np.array([1, 0], dtype=np.int32)
    counts.setflags(write=False)
    selection.add(0, 0, 0, counts)
    selection.refresh()
    assert counts.tolist() == [1, 0]
    assert not np.shares_memory(selection.sizes[0].counts, counts)
    assert np.all(selection.sizes[1].counts == UNKNOWN)

"""The table of triples: what became of every (C, gamma, k), as a pure function of study and data.

Which cells a run happens to compute depends on the order of arrival; this table does not. A beaten
triple's row is cut back to the shortest prefix of splits that proves it beaten, and says no more.
"""

from functools import cache
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.selection import Leader, Selection
from ckcv_ray.study import Size, Study, Triple

STATES = ("winner", "reported", "tied", "beaten", "failed")
SCHEMA = pa.schema(
    [
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("k", pa.int64()),
        ("n_select", pa.int64()),
        ("state", pa.string()),
        ("splits", pa.int64()),
        ("lower_bound", pa.float64()),
        ("l_ms", pa.float64()),
        ("l_ee", pa.float64()),
    ]
)

Values = NDArray[np.float64]


class Verdict(NamedTuple):
    """One fold size's rows, each array of shape (n_gamma, n_C); nan where there is no value."""

    state: NDArray[np.str_]
    splits: NDArray[np.int64]
    lower_bound: Values
    l_ms: Values
    l_ee: Values


def make_selection(study: Study, n: int) -> Selection:
    """An empty race over the fold sizes of a study on n rows."""
    sizes = study.sizes(n)
    own = [j for j, size in enumerate(sizes) if set(size.k_values) & set(study.report_k)]
    shapes = [(size.n_select, size.n_splits) for size in sizes]
    return Selection(shapes, len(study.gamma), len(study.C), study.delta, own, study.exhaustive)


def triple_of(study: Study, sizes: tuple[Size, ...], leader: Leader) -> Triple:
    """The triple at a leader's position, under the smallest k of its size."""
    return Triple(study.C[leader.C], study.gamma[leader.gamma], sizes[leader.size].k)


def triple_table(
    study: Study, sizes: tuple[Size, ...], selection: Selection, estimates: dict[int, NDArray[np.int32]]
) -> pa.Table:
    """One row for each triple, by ascending k, gamma, C.

    Args:
        study: the question.
        sizes: its distinct fold sizes.
        selection: the finished race.
        estimates: errors on the estimate sets, by position of the size, (n_splits, n_gamma, n_C).
    """
    winner = selection.winner()

    @cache
    def verdicts(j: int, reported: bool) -> Verdict:
        judge = selection.leaders[j] if reported else winner
        verdict = _verdict(selection, j, judge, keep_all=study.exhaustive)
        for (g, c), counts in _estimated(estimates.get(j), j, judge, study).items():
            verdict.l_ee[g, c] = study.mean_bound(counts, sizes[j].n_select)
        return verdict

    shape = (len(study.gamma), len(study.C))
    gamma, C = (np.repeat(study.gamma, shape[1]), np.tile(study.C, shape[0]))
    parts = []
    for j, size in enumerate(sizes):
        for k in size.k_values:
            verdict = verdicts(j, k in study.report_k)
            state = _named(verdict.state, selection.leaders[j], winner, k, size, study)
            full = [np.full(gamma.shape, value) for value in (k, size.n_select)]
            values = [a.ravel() for a in (state, *verdict[1:])]
            arrays = [pa.array(a, from_pandas=a.dtype.kind == "f") for a in (C, gamma, *full, *values)]
            parts.append(pa.Table.from_arrays(arrays, schema=SCHEMA))
    return pa.concat_tables(parts).combine_chunks()


def check(table: pa.Table, study: Study, sizes: tuple[Size, ...]) -> Triple:
    """The winner of a table of triples that was read from a file.

    Raises:
        ValueError: it is not a table of this study.
    """
    keys, shape = [(k, size) for size in sizes for k in size.k_values], (len(study.gamma), len(study.C))
    expected = {
        "C": np.tile(study.C, shape[0] * len(keys)),
        "gamma": np.tile(np.repeat(study.gamma, shape[1]), len(keys)),
        "k": np.repeat([k for k, _ in keys], shape[0] * shape[1]),
        "n_select": np.repeat([size.n_select for _, size in keys], shape[0] * shape[1]),
    }
    for name, values in expected.items():
        if not table[name].equals(pa.chunked_array([values], SCHEMA.field(name).type)):
            raise ValueError(f"{name} does not have the values of the study, in their order")
    shown = table.filter(pc.is_in(table["state"], value_set=pa.array(["winner", "reported"])))
    for found, names in ((table, ("state", "splits", "lower_bound")), (shown, ("l_ms",))):
        if empty := [name for name in names if found[name].null_count]:
            raise ValueError(f"{empty[0]} has empty cells")
    if strange := set(pc.unique(table["state"]).to_pylist()) - set(STATES):
        raise ValueError(f"state {strange.pop()!r} is not known")
    for name in ("lower_bound", "l_ms", "l_ee"):
        bounds = table[name].drop_null().to_numpy()
        if not np.all((bounds >= 0) & (bounds <= 1)):
            raise ValueError(f"{name} has values outside 0..1")
    winners = shown.filter(pc.equal(shown["state"], "winner")).to_pylist()
    if len(winners) != 1 or winners[0]["l_ee"] is None:
        raise ValueError(f"it has {len(winners)} winners: expected one, with its l_ee")
    return Triple(*(winners[0][name] for name in Triple._fields))


def per_k(table: pa.Table) -> list[dict[str, Any]]:
    """For every k: what became of it, its least lower bound, and its triple if it was reported."""
    failed = pc.equal(table["state"], "failed")
    groups = (
        table.append_column("failed", failed)
        .group_by("k")
        .aggregate([("n_select", "min"), ("lower_bound", "min"), ("splits", "max"), ("failed", "any")])
        .sort_by("k")
    )
    shown = pc.is_in(table["state"], value_set=pa.array(["winner", "reported"]))
    best = {row["k"]: row for row in table.filter(shown).to_pylist()}
    return [_one_k(group, best.get(group["k"])) for group in groups.to_pylist()]


def _estimated(
    estimates: NDArray[np.int32] | None, j: int, judge: Leader | None, study: Study
) -> dict[tuple[int, int], list[int]]:
    """Errors on every estimate set, by position of gamma and C, of the triples whose l_ee is shown."""
    if estimates is None:
        return {}
    full = np.argwhere(np.all(estimates >= 0, axis=0)).tolist()
    shown = [(g, c) for g, c in full if study.exhaustive or (judge is not None and (c, g, j) == judge[1:])]
    return {(g, c): estimates[:, g, c].tolist() for g, c in shown}


def _verdict(selection: Selection, j: int, judge: Leader | None, keep_all: bool) -> Verdict:
    """What became of one size's triples, judged against the complete triple ``judge``."""
    fold, threshold = selection.sizes[j], judge.l_ms if judge else inf
    shape = fold.low.shape
    verdict = Verdict(
        np.full(shape, "beaten", dtype="<U8"),
        np.zeros(shape, dtype=np.int64),
        np.full(shape, nan),
        np.full(shape, nan),
        np.full(shape, nan),
    )
    for g, c in np.ndindex(*shape):
        proof = None if keep_all and fold.complete[g, c] else fold.proof(g, c, threshold)
        if proof is not None:
            verdict.splits[g, c], verdict.lower_bound[g, c] = proof
        else:
            verdict.splits[g, c], verdict.lower_bound[g, c] = fold.prefix[g, c], fold.exact_low(g, c)
            if fold.complete[g, c]:
                verdict.l_ms[g, c] = verdict.lower_bound[g, c]
                tied = verdict.l_ms[g, c] <= threshold
                verdict.state[g, c] = "tied" if tied else "beaten"
            else:
                verdict.state[g, c] = "failed"
    return verdict


def _named(
    state: NDArray[np.str_], leader: Leader | None, winner: Leader | None, k: int, size: Size, study: Study
) -> NDArray[np.str_]:
    """States for one k of a fold size: the same but for the names of the winner and the reported."""
    named = state.copy()
    if leader is not None and k in study.report_k:
        named[leader.gamma, leader.C] = "reported"
    elif leader is not None and winner is not None and leader.l_ms > winner.l_ms:
        named[state == "tied"] = "beaten"
    if winner is not None and leader == winner and k == size.k:
        named[winner.gamma, winner.C] = "winner"
    return named


def _one_k(group: dict[str, Any], best: dict[str, Any] | None) -> dict[str, Any]:
    unseen = group["splits_max"] == 0
    state = best["state"] if best else "failed" if group["failed_any"] else "unseen" if unseen else "beaten"
    return {
        "k": group["k"],
        "n_select": group["n_select_min"],
        "state": state,
        "lower_bound": group["lower_bound_min"],
        **{name: best[name] if best else None for name in ("C", "gamma", "l_ms", "l_ee")},
    }

"""The table of candidates: the outcome of each fold size and setting, as a pure function of study and data.

Which evaluations a run computes depends on the order in which results arrive; this table does not. The row of
a beaten candidate covers only the shortest prefix of splits that proves it beaten. Rows are read by position
(path, step); the values of the setting are for people.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from math import fsum, inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import Selection
from ckcv_ray.errors import Count, Fraction
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.study.problem import Candidate, Problem

STATES = ("winner", "reported", "tied", "beaten", "open", "failed")
SHOWN_STATES = ("winner", "reported")
UNKNOWN_BEST = ("failed", "open", "unseen", "beaten")  # state of candidates whose best is unknown, by rank
SIZE_COLUMNS = ("k_first", "k_last", "n_select")
FIGURES = (
    ("state", pa.string()),
    ("splits", pa.int64()),
    ("lower_bound", pa.float64()),
    ("l_ms", pa.float64()),
    ("l_ee", pa.float64()),
)
Totals = NDArray[np.signedinteger[Any]]


class Searched(TypedDict):
    """What a search within a budget left open.

    Attributes:
        effort: number of evaluations that it was allowed.
        candidates: number of all candidates.
        not_excluded: number of those that may be better than the winner, for all that is known.
        least: the least L_MS that one of these could still have; None if there are none.
    """

    effort: Count
    candidates: Count
    not_excluded: Count
    least: Fraction | None


def list_candidate_columns(problem: Problem) -> pa.Schema:
    """Return the columns of the table of candidates."""
    return pa.schema([*((name, values.type) for name, values in _keys(problem).items()), *FIGURES])


def make_candidate_table(
    problem: Problem, selection: Selection, estimates: Callable[[int], Totals]
) -> pa.Table:
    """Return one row for each candidate, by ascending k, path, step.

    They are judged against the winner, or against the best one of their own fold size if that is reported.

    Args:
        problem: the problem that was solved.
        selection: the finished selection.
        estimates: returns the totals on the estimate sets of the fold size at a position, (n_splits, n_paths,
            n_steps, columns); -1 where there are none.
    """
    keys, winner, every = _keys(problem), selection.winner, problem.study.search.exhaustive
    at = tuple(keys[name][: problem.n_settings].to_numpy() for name in ("path", "step"))
    figures = defaultdict[str, list[NDArray[Any]]](list)
    for j, (fold, leader) in enumerate(zip(selection.sizes, selection.leaders, strict=True)):
        separate, shape = j in selection.own, fold.low.shape
        judge = leader if separate else winner
        thresholds: list[float] = selection.thresholds(j).tolist()
        last = np.ones(shape, np.bool_) if selection.finalists is None else selection.finalists[j]
        state, splits = np.full(shape, "beaten", dtype="<U8"), np.zeros(shape, dtype=np.int64)
        lower, l_ms, l_ee = (np.full(shape, nan) for _ in range(3))
        for p, s in np.ndindex(*shape):
            proof = None if every and fold.complete[p, s] else fold.proof(p, s, thresholds[p])
            if proof is not None:
                splits[p, s], lower[p, s] = proof
                continue
            splits[p, s], lower[p, s] = fold.prefix[p, s], fold.exact_low(p, s)
            if fold.complete[p, s]:
                l_ms[p, s] = lower[p, s]
                state[p, s] = "tied" if l_ms[p, s] <= (judge.l_ms if judge else inf) else "beaten"
            else:
                # Whatever stays in a race to its end is complete, beaten or failed; the rest was left out.
                state[p, s] = "failed" if fold.blocked[p, s] or last[p, s] else "open"
        totals = estimates(j)
        for p, s in np.argwhere(np.all(totals >= 0, axis=(0, -1))).tolist():
            if every or (judge is not None and (p, s, j) == (judge.path, judge.step, judge.size)):
                units = problem.units(Stage.ESTIMATE, j)
                values = problem.criterion.value(totals[:, p, s], units)
                l_ee[p, s] = fsum(values) / len(values)  # rounded once: the same in any order
        if leader is not None and (separate or leader == winner):
            state[leader.path, leader.step] = "winner" if leader == winner else "reported"
        for (name, _), values in zip(FIGURES, (state, splits, lower, l_ms, l_ee), strict=True):
            figures[name].append(values[at])
    for name, kind in FIGURES:
        values = np.concatenate(figures[name])
        keys[name] = pa.array(values, kind, from_pandas=values.dtype.kind == "f")
    return pa.table(keys)


def check(table: pa.Table, problem: Problem) -> Candidate:
    """Check a table of candidates that was read from a file, and return the winner.

    Raises:
        ValueError: it is not a table of this problem.
    """
    for name, values in _keys(problem).items():
        if not table[name].equals(pa.chunked_array([values])):
            raise ValueError(f"{name} does not have the values of the study, in the order of the study")
    shown = table.filter(pc.is_in(table["state"], value_set=pa.array(SHOWN_STATES)))
    for part, names in ((table, ("state", "splits", "lower_bound")), (shown, ("l_ms",))):
        if empty := [name for name in names if part[name].null_count]:
            raise ValueError(f"{empty[0]} has empty cells")
    if unknown := set(pc.unique(table["state"]).to_pylist()) - set(STATES):
        raise ValueError(f"state {unknown.pop()!r} is not known")
    for name in ("lower_bound", "l_ms", "l_ee"):
        bounds = table[name].drop_null().to_numpy()
        if not np.all((bounds >= 0) & (bounds <= 1)):
            raise ValueError(f"{name} has values outside 0..1")
    winners: list[dict[str, Any]] = shown.filter(pc.equal(shown["state"], "winner")).to_pylist()
    if len(winners) != 1 or winners[0]["l_ee"] is None:
        raise ValueError(f"it has {len(winners)} winners: expected one, with an l_ee")
    winner = winners[0]
    return Candidate(problem.learner.space.setting(winner["path"], winner["step"]), winner["k_first"])


def summarize_search(table: pa.Table, problem: Problem) -> Searched | None:
    """Return what a search within a budget left open; None for a race."""
    if problem.study.effort is None:
        return None
    left = table.filter(pc.equal(table["state"], "open"))
    return {
        "effort": problem.study.effort,
        "candidates": len(table),
        "not_excluded": len(left),
        "least": pc.min(left["lower_bound"]).as_py(),
    }


def per_k(table: pa.Table, problem: Problem) -> list[dict[str, Any]]:
    """Return the state of every fold size, its smallest lower bound, and its best candidate if reported."""
    n, shown = problem.n_settings, pc.is_in(table["state"], value_set=pa.array(SHOWN_STATES))
    best = {row["k_first"]: row for row in table.filter(shown).to_pylist()}
    return [
        {name: getattr(size, name) for name in SIZE_COLUMNS}
        | _summarize(table.slice(j * n, n), best.get(size.k_first), problem)
        for j, size in enumerate(problem.sizes)
    ]


def sort_complete(table: pa.Table, problem: Problem, learner: int) -> pa.Table:
    """Return the complete candidates of a learner, given by its number, the best one first."""
    of_learner = pa.array(problem.learner_of_paths[table["path"].to_numpy()] == learner)
    rows = table.filter(pc.and_(of_learner, pc.is_valid(table["l_ms"])))
    return rows.sort_by([(name, "ascending") for name in ("l_ms", "step", "path", "k_first")])


def per_learner(table: pa.Table, problem: Problem) -> list[dict[str, Any]]:
    """Return the outcome of each learner, in the order of the study.

    The best candidate of a learner is known if it is complete and no other one can be better. The winner is
    the best of its learner, even if a search within a budget left others open. Otherwise only a lower bound
    on all of a learner's candidates is known.
    """
    learners, found = problem.learner_of_paths[table["path"].to_numpy()], list[dict[str, Any]]()
    for number, label in enumerate(problem.learners):
        rows = table.filter(pa.array(learners == number))
        known = sort_complete(table, problem, number)
        failed, least = pc.sum(pc.equal(rows["state"], "failed")).as_py(), pc.min(rows["lower_bound"]).as_py()
        best = next((row for row in known.slice(0, 1).to_pylist() if row["l_ms"] <= least), None)
        if best is None and not failed:
            best = next(iter(known.filter(pc.equal(known["state"], "winner")).to_pylist()), None)
        more = {"k": best["k_first"] if best else None, "candidates": len(rows), "failed": failed}
        found.append({"learner": label, **_summarize(rows, best, problem), **more})
    return found


def _keys(problem: Problem) -> dict[str, pa.Array]:
    """Return the columns that tell candidates apart: the hyperparameters of each position, by fold size.

    Hyperparameters are null where a learner lacks one. A column is of one type if learners agree or all have
    numbers, else text; values of several types, or lists, are JSON.
    """
    tables, counts = list[dict[str, pa.Array]](), problem.settings_per_learner
    for learner in problem.learners.values():
        columns = learner.space.settings()
        made = {name: of if of.dtype != object else [*map(json.dumps, of)] for name, of in columns.items()}
        tables.append({name: pa.array(values) for name, values in made.items()})
    found = dict[str, pa.Array]()
    if len(tables) > 1:
        found[LABEL] = pa.array(np.repeat(list(problem.learners), counts))
    for name in dict.fromkeys(name for table in tables for name in table):
        kinds = {table[name].type for table in tables if name in table}
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        kind = kinds.pop() if len(kinds) == 1 else pa.float64() if numbers else pa.string()
        parts = [
            table[name].cast(kind) if name in table else pa.nulls(count, kind)
            for table, count in zip(tables, counts.tolist(), strict=True)
        ]
        found[name] = pa.concat_arrays(parts)
    lengths, sizes = np.array(problem.learner.space.lengths), problem.sizes
    path, step = np.nonzero(np.arange(lengths.max()) < lengths[:, None])
    columns = {"path": pa.array(path), "step": pa.array(step), **found}
    repeated = {name: pa.concat_arrays([values] * len(sizes)) for name, values in columns.items()}
    of_size = [(name, np.array([getattr(size, name) for size in sizes])) for name in SIZE_COLUMNS]
    return repeated | {name: pa.array(np.repeat(values, len(path))) for name, values in of_size}


def _summarize(rows: pa.Table, best: dict[str, Any] | None, problem: Problem) -> dict[str, Any]:
    """Return the state of some candidates and their smallest lower bound, with the best of them if known.

    If it is unknown, the state says whether it may be better than the winner.
    """
    states = {*pc.unique(rows["state"]).to_pylist(), "beaten" if pc.max(rows["splits"]).as_py() else "unseen"}
    return {
        "state": best["state"] if best else next(state for state in UNKNOWN_BEST if state in states),
        "lower_bound": pc.min(rows["lower_bound"]).as_py(),
        "setting": dict(problem.learner.space.setting(best["path"], best["step"])) if best else None,
        **{name: best[name] if best else None for name in ("l_ms", "l_ee")},
    }

"""The table of candidates: the outcome of each, as a pure function of study and data.

    candidates.parquet      one row for each fold size and setting

Which evaluations a run computes depends on the order in which results arrive; this table does not. The row of
a beaten candidate covers only the shortest prefix of splits that proves it beaten. Rows are read by position
(path, step); the values of the setting are there for people.
"""

from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.selection import Leader, Selection
from ckcv_ray.data.files import MOST_ROWS
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.study import Candidate, Problem

FILE = "candidates.parquet"
STATES = ("winner", "reported", "tied", "beaten", "failed")
SHOWN = ("winner", "reported")
OF_SIZE = ("k_first", "k_last", "n_select")
FIGURES = (
    ("state", pa.string()),
    ("splits", pa.int64()),
    ("lower_bound", pa.float64()),
    ("l_ms", pa.float64()),
    ("l_ee", pa.float64()),
)
Values = NDArray[np.float64]
Totals = NDArray[np.int32]


class Verdict(NamedTuple):
    """The rows of one fold size, as arrays of shape (n_paths, n_steps); nan where there is no value."""

    state: NDArray[np.str_]
    splits: NDArray[np.int64]
    lower_bound: Values
    l_ms: Values
    l_ee: Values


def make_selection(problem: Problem) -> Selection:
    """Return an empty selection over the fold sizes of a problem."""
    least = problem.study.criterion.least
    sizes = [(size.n_splits, least(size.n_select)) for size in problem.sizes]
    return Selection(sizes, problem.learner.lengths, problem.own, problem.study.exhaustive)


def count(problem: Problem) -> int:
    """Return the number of candidates; a run folder holds at most ``MOST_ROWS``."""
    return len(problem.sizes) * problem.n_settings


def candidate_table(problem: Problem, selection: Selection, estimates: dict[int, Totals]) -> pa.Table:
    """Return one row for each candidate, by ascending k, path, step.

    Args:
        problem: the problem that was solved.
        selection: the finished selection.
        estimates: totals on the estimate sets by position of the fold size, each array of shape (n_splits,
            n_paths, n_steps); -1 where there is none.
    """
    keys = _keys(problem)
    verdicts = [_verdict(problem, selection, j, estimates.get(j)) for j in range(len(problem.sizes))]
    exists = _exists(problem)
    for i, (name, kind) in enumerate(FIGURES):
        values = np.concatenate([verdict[i][exists] for verdict in verdicts])
        keys[name] = pa.array(values, kind, from_pandas=values.dtype.kind == "f")
    return pa.table(keys)


def check(table: pa.Table, problem: Problem) -> dict[str, Any]:
    """Check a table of candidates that was read from a file, and return the winner's row.

    Raises:
        ValueError: it is not a table of this problem.
    """
    if len(table) != (rows := count(problem)):  # before building arrays of that length
        raise ValueError(f"it has {len(table):,} rows: expected {rows:,}, one for each candidate")
    for name, values in _keys(problem).items():
        if name not in table.column_names or not table[name].equals(pa.chunked_array([values])):
            raise ValueError(f"{name} does not have the values of the study, in the order of the study")
    shown = table.filter(pc.is_in(table["state"], value_set=pa.array(SHOWN)))
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
    return winners[0]


def winner_of(row: dict[str, Any], problem: Problem) -> Candidate:
    """Return the candidate that a row describes."""
    return Candidate(problem.learner.setting(row["path"], row["step"]), row["k_first"])


def winning_position(table: pa.Table) -> tuple[int, int]:
    """Return path and step of the winner in a table of candidates."""
    (row,) = table.filter(pc.equal(table["state"], "winner")).to_pylist()
    return row["path"], row["step"]


def per_k(table: pa.Table, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the state of every fold size, its smallest lower bound, and its best candidate if reported.

    Args:
        table: the table of candidates.
        names: names of the hyperparameters.
    """
    failed = pc.equal(table["state"], "failed")
    groups = (
        table.append_column("failed", failed)
        .group_by(list(OF_SIZE))
        .aggregate([("lower_bound", "min"), ("splits", "max"), ("failed", "any")])
        .sort_by("k_first")
    )
    shown = pc.is_in(table["state"], value_set=pa.array(SHOWN))
    best = {row["k_first"]: row for row in table.filter(shown).to_pylist()}
    return [_one_size(group, best.get(group["k_first"]), names) for group in groups.to_pylist()]


def write(files: Files, table: pa.Table, problem: Problem) -> None:
    """Write the table of candidates."""
    formats.write_table(files, FILE, table, problem.run_id)


def read(files: Files, problem: Problem) -> tuple[pa.Table, Candidate]:
    """Read the table of candidates, and return it with the winner.

    Raises:
        StoreError: it is damaged, or belongs to another problem.
    """
    rows = count(problem)
    with formats.undamaged(files, FILE):
        if rows > MOST_ROWS:
            raise ValueError(f"its study has {rows:,} candidates: at most {MOST_ROWS:,} can be read")
        if formats.rows_in(files, FILE) != rows:  # before memory is allocated for the expected values
            raise ValueError(f"it does not have {rows:,} rows, one for each candidate of the study")
    schema = pa.schema([*_schema(problem), *FIGURES])
    table = formats.read_table(files, FILE, problem.run_id, schema, rows, rows * len(schema))
    with formats.undamaged(files, FILE):
        return table, winner_of(check(table, problem), problem)


def _exists(problem: Problem) -> NDArray[np.bool_]:
    """Return which positions have a setting, as an array of shape (n_paths, n_steps)."""
    lengths = np.array(problem.learner.lengths)
    return np.asarray(np.arange(lengths.max()) < lengths[:, None])


def _keys(problem: Problem) -> dict[str, pa.Array]:
    """Return the columns that identify the candidate of each row."""
    path, step = np.nonzero(_exists(problem))
    sizes, n = problem.sizes, len(path)
    settings = problem.learner.settings()
    columns = {"path": path, "step": step, **settings}
    repeated = {name: np.tile(values, len(sizes)) for name, values in columns.items()}
    of_size = {name: np.repeat([getattr(size, name) for size in sizes], n) for name in OF_SIZE}
    return {name: pa.array(values) for name, values in (repeated | of_size).items()}


def _schema(problem: Problem) -> list[tuple[str, pa.DataType]]:
    settings = problem.learner.settings()
    kinds = {"path": pa.int64(), "step": pa.int64()} | {
        name: pa.array(v).type for name, v in settings.items()
    }
    return [*kinds.items(), *((name, pa.int64()) for name in OF_SIZE)]


def _verdict(problem: Problem, selection: Selection, j: int, estimates: Totals | None) -> Verdict:
    """Return one size's outcomes, judged against the winner, or against the size's own best if reported."""
    winner, own = selection.winner(), j in selection.own
    judge = selection.leaders[j] if own else winner
    verdict = _judged(selection, j, judge, keep_all=problem.study.exhaustive)
    criterion, size = problem.study.criterion, problem.sizes[j]
    for (p, s), totals in _estimated(estimates, j, judge, problem.study.exhaustive).items():
        verdict.l_ee[p, s] = criterion.reported(totals, size.n_select, problem.study.seed)
    leader = selection.leaders[j]
    if leader is not None and own:
        verdict.state[leader.path, leader.step] = "reported"
    if leader is not None and leader == winner:
        verdict.state[leader.path, leader.step] = "winner"
    return verdict


def _judged(selection: Selection, j: int, judge: Leader | None, keep_all: bool) -> Verdict:
    fold, threshold = selection.sizes[j], judge.l_ms if judge else inf
    shape = fold.low.shape
    verdict = Verdict(
        np.full(shape, "beaten", dtype="<U8"),
        np.zeros(shape, dtype=np.int64),
        *(np.full(shape, nan) for _ in range(3)),
    )
    for p, s in np.ndindex(*shape):
        proof = None if keep_all and fold.complete[p, s] else fold.proof(p, s, threshold)
        if proof is not None:
            verdict.splits[p, s], verdict.lower_bound[p, s] = proof
            continue
        verdict.splits[p, s], verdict.lower_bound[p, s] = fold.prefix[p, s], fold.exact_low(p, s)
        if fold.complete[p, s]:
            verdict.l_ms[p, s] = verdict.lower_bound[p, s]
            verdict.state[p, s] = "tied" if verdict.l_ms[p, s] <= threshold else "beaten"
        else:
            verdict.state[p, s] = "failed"
    return verdict


def _estimated(
    estimates: Totals | None, j: int, judge: Leader | None, every: bool
) -> dict[tuple[int, int], list[int]]:
    """Return the totals on every estimate set, by position, for the candidates whose l_ee is shown."""
    if estimates is None:
        return {}
    full = np.argwhere(np.all(estimates >= 0, axis=0)).tolist()
    shown = [(p, s) for p, s in full if every or (judge is not None and (s, p, j) == judge[1:])]
    return {(p, s): estimates[:, p, s].tolist() for p, s in shown}


def _one_size(group: dict[str, Any], best: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    unseen = group["splits_max"] == 0
    state = best["state"] if best else "failed" if group["failed_any"] else "unseen" if unseen else "beaten"
    return {
        **{name: group[name] for name in OF_SIZE},
        "state": state,
        "lower_bound": group["lower_bound_min"],
        "setting": {name: best[name] for name in names} if best else None,
        **{name: best[name] if best else None for name in ("l_ms", "l_ee")},
    }

"""Coverage of the bounds: Algorithm 1 on many generated learning sets whose true errors can be measured.

For twonorm, ringnorm, waveform and a banana-like source, with 100 and 400 rows: the share of learning sets on
which the mean true error of the members exceeds L_EE, and the occam, holdout and nested bounds; the share of
members above their individual Clopper-Pearson bounds; and looseness, the bound divided by the true error.
True errors are measured on 20 000 fresh rows for each learning set. Settings already in ``--out`` are read,
not run.

    python jobs/paper/bound_coverage.py --runs 500
    python jobs/paper/bound_coverage.py --sources twonorm --rows 100 --runs 20
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pyarrow import parquet
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.stats import binomtest

from ckcv_ray import Execution, Job, Study, Task, clopper_pearson
from ckcv_ray.core.threads import one_thread
from ckcv_ray.data.named import GENERATORS, Sample
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.runs.run import run_job

FRESH_ROWS = 20_000
NOISE = 0.45
ROWS = (100, 400)
FAILURES = ("l_ee", "occam", "holdout", "nested", "member")
TRUTH = {"l_ee": "risk", "occam": "risk", "holdout": "risk_holdout", "nested": "risk_nested"}
STUDY = Study.of(C="log:-2:4:5", gamma="log:-4:1:5", k=(3, 4, 5, 10), n_splits=10, scale="none")
HOLDOUT = STUDY.replace(certify="holdout")
NESTED = STUDY.replace(certify="nested", outer_splits=5)
console = Console(stderr=True)
Matrix = NDArray[Any]


def crescents(n: int, rng: np.random.Generator) -> Sample:
    """Draw from a banana-like source: two interlocking half circles, with noise."""
    y = 2 * rng.integers(2, size=n) - 1
    angle = rng.uniform(0, np.pi, size=n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] > 0, X, np.array([1.0, 0.5]) - X)
    return X + rng.normal(scale=NOISE, size=(n, 2)), y


SOURCES = {**GENERATORS, "crescents": crescents}


class Setting(NamedTuple):
    """A source and the number of rows drawn from it."""

    source: str
    n: int


def risks(ensemble: Ensemble, distances: Matrix, y: Matrix) -> Matrix:
    """Measure the true error of each member on fresh rows.

    Members with the same gamma share a kernel; the error of single precision is far below the resolution of
    20 000 rows.

    Args:
        distances: squared distances [fresh rows, rows learned from], float32.
        y: labels of the fresh rows, -1 and +1.
    """
    models = [member.model for member in ensemble.members]
    errors = np.empty(len(models))
    for gamma in {model.gamma for model in models}:
        kernel = np.exp(np.float32(-gamma) * distances)
        for i, model in enumerate(models):
            if model.gamma == gamma:
                b = np.zeros(distances.shape[1], np.float32)
                b[model.support] = model.dual_coef
                errors[i] = np.mean(np.where(kernel @ b + model.offset > 0, 1, -1) != y)
    return errors


def fresh_distances(X: Matrix, rows: Matrix) -> Matrix:
    """Compute squared distances [len(X), len(rows)], float32."""
    squares = np.sum(X**2, axis=1)[:, None] + np.sum(rows**2, axis=1)
    return np.asarray(np.maximum(squares - 2 * X @ rows.T, 0.0), dtype=np.float32)


def drawn(setting: Setting, index: int) -> tuple[Task, Matrix, Matrix]:
    """Draw learning set number ``index`` of a setting, and fresh rows from the same source."""
    key = (list(SOURCES).index(setting.source), setting.n, index)
    rng = np.random.default_rng(np.random.SeedSequence(2012, spawn_key=key))
    learn, fresh = SOURCES[setting.source](setting.n, rng), SOURCES[setting.source](FRESH_ROWS, rng)
    return Task.of(*learn), *fresh


def trial(setting: Setting, index: int) -> dict[str, float]:
    """Compute bounds and true errors, as rates, of every certification on one learning set."""
    task, X, y = drawn(setting, index)
    serial = Execution("serial")
    with one_thread():
        held_out, inside = (run_job(Job(study, task), serial) for study in (HOLDOUT, NESTED))
        assert inside.nested is not None
        distances = fresh_distances(X, task.X)
        paper, nested = (risks(one, distances, y) for one in (inside.ensemble, inside.nested))
        rest = risks(held_out.ensemble, fresh_distances(X, held_out.task.X), y)
    certificate = inside.certificate  # F* of the nested run is the paper's
    upper = clopper_pearson(list(certificate.errors), certificate.n_select, certificate.delta)
    claims = {claim["certification"]: claim["bound"] for claim in certificate.claims}
    return {
        "l_ee": certificate.l_ee,
        "occam": claims["occam"],
        "nested": claims["nested"],
        "holdout": held_out.certificate.claims[0]["bound"],
        "risk": float(paper.mean()),
        "risk_nested": float(nested.mean()),
        "risk_holdout": float(rest.mean()),
        "members_above": float(np.mean(paper > upper)),
        "first_above": float(paper[0] > upper[0]),
    }


def trials(setting: Setting, runs: int, workers: int) -> Iterator[dict[str, float]]:
    """Yield one row for each learning set of a setting, computed in ``workers`` processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(trial, setting), range(runs), chunksize=5)


def rows_of(setting: Setting, runs: int, workers: int, out: Path) -> pa.Table:
    """Return the rows of a setting, from its file if it has enough of them."""
    file = out / f"{setting.source}-{setting.n}.parquet"
    if file.exists() and (stored := parquet.read_table(file)).num_rows >= runs:
        return stored.slice(0, runs)
    label = TextColumn(f"{setting.source} {setting.n}")
    columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        table = pa.Table.from_pylist(list(progress.track(trials(setting, runs, workers), total=runs)))
    out.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, file)
    return table


def failures(table: pa.Table) -> dict[str, NDArray[np.bool_]]:
    """Return, for each claim, on which learning sets the true error exceeds the bound."""
    values = {name: table[name].to_numpy() for name in table.column_names}
    failed = {name: values[risk] > values[name] for name, risk in TRUTH.items()}
    return failed | {"member": values["first_above"] > 0}


def share(failed: NDArray[np.bool_]) -> list[float]:
    """Return the share of failures, and its two-sided 95 % Clopper-Pearson interval."""
    interval = binomtest(int(failed.sum()), len(failed)).proportion_ci(0.95, method="exact")
    return [float(failed.mean()), float(interval.low), float(interval.high)]


def described(table: pa.Table) -> dict[str, Any]:
    """Summarize the rows of one setting."""
    mean = {name: float(table[name].to_numpy().mean()) for name in table.column_names}
    return {
        "runs": table.num_rows,
        "failures": {name: share(failed) for name, failed in failures(table).items()},
        "members_above": mean["members_above"],
        "bound": {name: mean[name] for name in TRUTH},
        "risk": {name: mean[risk] for name, risk in TRUTH.items()},
        "looseness": {name: mean[name] / mean[risk] for name, risk in TRUTH.items()},
    }


def line(setting: Setting, summary: dict[str, Any]) -> str:
    """Format one setting: failures in percent with their intervals, then bounds and looseness."""
    failed = "".join(
        f"{100 * summary['failures'][name][0]:6.1f} [{100 * summary['failures'][name][1]:.1f}, "
        f"{100 * summary['failures'][name][2]:.1f}]".ljust(18)
        for name in FAILURES
    )
    loose = "".join(
        f"{100 * summary['bound'][name]:7.1f} ({summary['looseness'][name]:.2f})" for name in FAILURES[:4]
    )
    return f"{setting.source:<10}{setting.n:>5}{failed}{100 * summary['members_above']:5.1f}{loose}"


def picture(summaries: dict[Setting, dict[str, Any]], file: Path) -> None:
    """Draw mean bounds and mean true errors, one group of bars for each setting."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots()
    names = {"l_ee": "L_EE (not proven)", "holdout": "holdout", "nested": "nested", "occam": "occam"}
    for i, (name, shown) in enumerate(names.items()):
        at = np.arange(len(summaries)) + 0.2 * (i - 1.5)
        bound = [100 * one["bound"][name] for one in summaries.values()]
        axes.bar(at, bound, width=0.18, label=shown, color=f"C{i}")
        truth = [100 * one["risk"][name] for one in summaries.values()]
        axes.plot(at, truth, "_", color="black", markersize=11, label="true error" if not i else None)
    axes.set_xticks(range(len(summaries)), [f"{setting.source}\nn = {setting.n}" for setting in summaries])
    axes.set_ylabel("percent")
    axes.set_title("Mean upper bounds and the corresponding true errors")
    axes.margins(y=0.18)
    axes.legend(ncols=5, frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=150)


def main(
    sources: Annotated[str, typer.Option(help="Sources to use: a,b.")] = ",".join(SOURCES),
    rows: Annotated[str, typer.Option(help="Rows of the learning sets: a,b.")] = ",".join(map(str, ROWS)),
    runs: Annotated[int, typer.Option(min=1, help="Learning sets for each setting.")] = 500,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = cpu_count() or 1,
    out: Annotated[Path, typer.Option(help="Folder for the rows and the figure.")] = Path("runs/coverage"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print, for each setting, how often each bound fails and how loose it is; draw a figure."""
    if unknown := [name for name in sources.split(",") if name not in SOURCES]:
        raise typer.BadParameter(f"{unknown[0]!r} is not a source: choose from {', '.join(SOURCES)}")
    summaries: dict[Setting, dict[str, Any]] = {}
    if not as_json:
        claims = "".join(f"{name} > %".ljust(18) for name in FAILURES)
        loose = "".join(f"{name} (x)".rjust(14) for name in FAILURES[:4])
        print(f"{'source':<10}{'n':>5}  {claims}members{loose}")
    for setting in (Setting(source, int(n)) for source in sources.split(",") for n in rows.split(",")):
        summaries[setting] = described(rows_of(setting, runs, workers, out))
        if not as_json:
            print(line(setting, summaries[setting]))
            sys.stdout.flush()
    for suffix in ("svg", "png"):
        picture(summaries, out / f"coverage.{suffix}")
    if as_json:
        print(json.dumps({f"{s.source}:{s.n}": one for s, one in summaries.items()}))


if __name__ == "__main__":
    typer.run(main)

"""How often the intervals of ``evaluate`` miss, on learning sets with a known truth.

For each setting, a source and a number of rows (``jobs/paper/sources.py``), learning sets are drawn, Gaussian
naive Bayes is scored by several resamplings (for bbc at several settings), and each interval around its error
is compared with two truths:

    mean     the mean error, over learning sets, of models fitted to as many rows as the splits fit on
    model    the error of the model fitted to all rows of this learning set

For bbc, both are those of the setting with the best mean on this learning set.

Errors are computed on 20 000 new patterns for each learning set; the mean error of a number of rows is that
of all learning sets of the setting. An interval at 95 % should miss in 5 % of the cases. The numbers of a run
depend only on its setting and its number.

    python -m jobs.paper.interval_coverage --runs 100
    python -m jobs.paper.interval_coverage --settings twonorm:100 --runs 20 --json
"""

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import cpu_count
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.naive_bayes import GaussianNB

from ckcv_ray import Execution, Procedure, Scored, Task
from ckcv_ray.core.intervals import BBC
from ckcv_ray.core.process import one_thread
from ckcv_ray.errors import Limits
from ckcv_ray.runs.result import rank_entries
from ckcv_ray.runs.run import assess
from jobs.frame import AsJson
from jobs.paper.bound_coverage import chosen
from jobs.paper.sources import GENERATED, SOURCES, Fresh, Setting

SERIAL = Execution("serial")
SETTINGS = tuple(setting for setting in GENERATED if setting.n != 200)
SHARES = (0.7, 0.9, 1.0)  # of the rows, to which models are fitted
SMOOTHING = 1e-9  # of GaussianNB, its default
Intervals = dict[str, Limits]


class Line(NamedTuple):
    """A resampling, its interval, and the share of the rows that its splits fit on."""

    resampling: str
    interval: str
    fitted: float
    settings: tuple[float, ...] = ()  # values of the smoothing, of which the best is chosen

    @property
    def name(self) -> str:
        """The name of the line in a table."""
        return f"{self.resampling} {self.interval}"


PROCEDURES = (
    Line("holdout:0.3", "clopper_pearson", 0.7),
    Line("kfold:10", "corrected_t", 0.9),
    Line("repeated_kfold:10x3", "corrected_t", 0.9),
    Line("subsampling:15:0.1", "corrected_t", 0.9),
    Line("subsampling:15:0.3", "corrected_t", 0.7),
    Line("kfold:10", "bbc", 0.9, (1e-9, 0.01, 0.1, 1.0)),
)


class Run(NamedTuple):
    """What one learning set gives."""

    intervals: Intervals  # by resampling and name
    errors: dict[float, float]  # of models fitted to a share of its rows, on new patterns
    chosen: dict[float, float]  # the same at the setting that was best


def compute_errors(rows: Any, fresh: Fresh, smoothing: float = SMOOTHING) -> dict[float, float]:
    """Return the error on new patterns of a model fitted to each share of the rows."""
    errors = {}
    for share in SHARES:
        n = round(share * len(rows.y))
        said = GaussianNB(var_smoothing=smoothing).fit(rows.X[:n], rows.y[:n]).predict(fresh.X)
        errors[share] = float(np.where(said > 0, fresh.weight[:, 0], fresh.weight[:, 1]).sum())
    return errors


def score(procedure: Line, task: Task, seed: int) -> Scored:
    """Return the scores of a procedure, at one setting or at several."""
    bbc = {"interval": BBC, "save_predictions": True, "param": {"var_smoothing": list(procedure.settings)}}
    options = {"learner": "naive_bayes", **bbc} if procedure.settings else {"learner": GaussianNB()}
    study = Procedure.of(resampling=procedure.resampling, measure="zero_one", seed=seed, **options)
    return assess(study, task, execution=SERIAL)


def compute_run(setting: Setting, run: int) -> Run:
    """Return the intervals and the errors of learning set ``run`` of a setting."""
    source, rng = SOURCES[setting.source], setting.generator(run)
    rows, fresh = source.draw(setting.n, rng), source.fresh(rng)
    seed, intervals, smoothing = int(rng.integers(2**32)), Intervals(), SMOOTHING
    with one_thread():
        task = Task.of(rows.X, rows.y)
        for procedure in PROCEDURES:
            result = score(procedure, task, seed)
            best, _ = rank_entries(result, result.scores[0])[0]
            if procedure.settings and best.settings[0] is not None:
                smoothing = float(best.settings[0]["var_smoothing"])
            intervals[procedure.name] = result.interval(best, result.scores[0], procedure.interval)
        return Run(intervals, compute_errors(rows, fresh), compute_errors(rows, fresh, smoothing))


def summarize(runs: list[Run]) -> dict[str, dict[str, float]]:
    """Return for each interval, in percent, how often it misses either truth, and its mean width."""
    found = {}
    for one in PROCEDURES:
        errors = [run.chosen if one.settings else run.errors for run in runs]
        model = np.array([error[1.0] for error in errors])
        low, high = np.array([run.intervals[one.name] for run in runs]).T
        mean = np.mean([error[one.fitted] for error in errors])
        found[one.name] = {
            "mean": 100 * float(np.mean((mean < low) | (mean > high))),
            "model": 100 * float(np.mean((model < low) | (model > high))),
            "width": 100 * float(np.mean(high - low)),
        }
    return found


def tabulate(found: dict[Setting, dict[str, dict[str, float]]]) -> Iterator[str]:
    """Yield a line for each interval: how often it missed either truth, and its width, over all settings."""
    yield f"{'means over the settings':<40}{'missed mean, %':>16}{'missed model, %':>17}{'width, points':>15}"
    for line in PROCEDURES:
        means = (
            np.mean([one[line.name][key] for one in found.values()]) for key in ("mean", "model", "width")
        )
        yield f"{line.name:<40}" + "{:16.1f}{:17.1f}{:15.1f}".format(*means)


def main(
    settings: Annotated[str, typer.Option(help="Settings to use: SOURCE:ROWS,...")] = ",".join(
        map(str, SETTINGS)
    ),
    runs: Annotated[int, typer.Option(min=1, help="Learning sets for each setting.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = cpu_count() or 1,
    as_json: AsJson = False,
) -> None:
    """Print, for each interval and setting, how often it misses and how wide it is."""
    asked = chosen(settings)
    if grouped := [str(one) for one in asked if one.source == "grouped"]:
        raise typer.BadParameter(f"{grouped[0]} has groups, whose rows are not independent: leave it out")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {one: [pool.submit(compute_run, one, run) for run in range(runs)] for one in asked}
        found = {one: summarize([future.result() for future in done]) for one, done in futures.items()}
    if as_json:
        print(json.dumps({str(one): cells for one, cells in found.items()}))
    else:
        print(*tabulate(found), sep="\n")


if __name__ == "__main__":
    typer.run(main)

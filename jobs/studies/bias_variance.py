"""Bias, variance and cost of the k-fold estimate against k, from 2 to n, by simulation from a known source.

y = x b + e with d standard normal columns, b of ones and e of variance 1. The least squares fit c to n rows
has the expected squared error 1 + |c - b|^2 on new rows, exactly. Over many learning sets, the k-fold
estimate is compared with that: its bias is the mean of the difference, its deviation that over the sets.

    python -m jobs.studies.bias_variance --sets 100 --picture docs/results/bias_variance.svg
"""

from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from ckcv_ray import Execution, KFold, evaluate
from ckcv_ray.core.arrays import Values
from jobs.svg import as_svg, new_figure

SERIAL = Execution("serial")


class Estimates(NamedTuple):
    """What was found.

    Attributes:
        k: numbers of folds, (K,).
        truth: expected squared error of the fit to all rows, (sets,).
        estimate: the k-fold estimates of it, (K, sets).
        seconds: per estimate, (K,).
    """

    k: NDArray[np.int64]
    truth: Values
    estimate: Values
    seconds: Values

    @property
    def bias(self) -> Values:
        """Mean of estimate less truth, (K,)."""
        return np.asarray(np.mean(self.estimate - self.truth, axis=1))

    @property
    def bias_error(self) -> Values:
        """Standard error of the bias, (K,)."""
        return np.asarray(np.std(self.estimate - self.truth, axis=1, ddof=1) / np.sqrt(len(self.truth)))

    @property
    def deviation(self) -> Values:
        """Standard deviation of the estimate over learning sets, (K,)."""
        return np.asarray(np.std(self.estimate, axis=1, ddof=1))


def estimates(n: int, d: int, sets: int, numbers: list[int], seed: int = 0) -> Estimates:
    """Estimate the error on every learning set with every number of folds."""
    truth, found, seconds = np.empty(sets), np.empty((len(numbers), sets)), np.zeros(len(numbers))
    for i, child in enumerate(np.random.SeedSequence(seed).spawn(sets)):
        rng = np.random.default_rng(child)
        X = rng.normal(size=(n, d))
        y = X.sum(axis=1) + rng.normal(size=n)
        centred, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)
        truth[i] = 1.0 + np.sum((centred[:d] - 1.0) ** 2) + centred[d] ** 2
        for position, k in enumerate(numbers):
            start = perf_counter()
            result = evaluate(
                X,
                y,
                learner="linear_regression",
                resampling=KFold(k),
                measure="squared",
                seed=i,
                execution=SERIAL,
            )
            found[position, i] = result.figures(result.entries[0], result.scores[0]).pooled
            seconds[position] += (perf_counter() - start) / sets
    return Estimates(np.array(numbers), truth, found, seconds)


def picture(found: Estimates, file: Path) -> None:
    """Draw bias, deviation and cost over k."""
    with new_figure("bias_variance", (9.0, 2.8)) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.errorbar(found.k, found.bias, 2 * found.bias_error, fmt=".", markersize=3, linewidth=0.8)
        left.axhline(0.0, color="black", linewidth=0.8)
        left.set_title("bias of the estimate")
        middle.plot(found.k, found.deviation, ".", markersize=3)
        middle.set_title("standard deviation of the estimate")
        right.plot(found.k, 1e3 * found.seconds, ".", markersize=3)
        right.set_title("milliseconds for an estimate")
        for axes in (left, middle, right):
            axes.set_xlabel("number of folds k")
        file.write_text(as_svg(figure))


def main(
    n: Annotated[int, typer.Option(help="Rows of a learning set.")] = 40,
    d: Annotated[int, typer.Option(help="Columns.")] = 5,
    sets: Annotated[int, typer.Option(help="Number of learning sets.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the learning sets.")] = 0,
    picture_file: Annotated[Path | None, typer.Option("--picture", help="SVG file to draw.")] = None,
) -> None:
    """Measure bias, deviation and cost of the k-fold estimate for every k from 2 to n."""
    found = estimates(n, d, sets, list(range(2, n + 1)), seed)
    if picture_file is not None:
        picture(found, picture_file)
    columns = found.k, found.bias, found.bias_error, found.deviation, found.seconds
    typer.echo(f"mean expected error of the fit to all rows: {found.truth.mean():.4f}")
    typer.echo(f"{'k':>4}{'bias':>9}{'+-':>8}{'deviation':>11}{'ms':>8}")
    for k, bias, error, deviation, seconds in zip(*columns, strict=True):
        typer.echo(f"{k:4}{bias:9.4f}{error:8.4f}{deviation:11.4f}{1e3 * seconds:8.1f}")


if __name__ == "__main__":
    typer.run(main)

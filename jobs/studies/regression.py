"""Linear regression on simulated data: hold-out 70/30 and 80/20, and k-fold, by RMSE, MAPE and a function.

y = 50 + 3 x0 - 2 x1 + x2 + e with standard normal x and e: the best that any model can reach is an RMSE of 1.

    python jobs/studies/regression.py --rows 200
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from typing import Annotated

import numpy as np
import typer
from sklearn.linear_model import LinearRegression

from ckcv_ray import Execution, Scored, evaluate
from ckcv_ray.core.arrays import Values

RESAMPLINGS = ("holdout:0.3", "holdout:0.2", "kfold:10")
COEFFICIENTS = np.array([3.0, -2.0, 1.0])


def simulated(rows: int, seed: int = 0) -> tuple[Values, Values]:
    """Draw rows X [rows, 3] and y [rows]."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    X = rng.normal(size=(rows, 3))
    return X, 50.0 + X @ COEFFICIENTS + rng.normal(size=rows)


def within_one(y: Values, predicted: Values) -> float:
    """Return the share of predictions that are off by more than 1: a measure of one's own."""
    return float(np.mean(np.abs(y - predicted) > 1.0))


def scored(resampling: str, rows: int = 200, seed: int = 0) -> Scored:
    """Score linear regression on the splits of a resampling."""
    X, y = simulated(rows, seed)
    measures = ["rmse", "mape", within_one]
    return evaluate(
        X,
        y,
        learner=LinearRegression(),
        resampling=resampling,
        measure=measures,
        execution=Execution("serial"),
    )


def main(
    rows: Annotated[int, typer.Option(help="Number of rows.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
) -> None:
    """Score linear regression on simulated data by three procedures."""
    for resampling in RESAMPLINGS:
        typer.echo(f"{scored(resampling, rows, seed).summary()}\n")


if __name__ == "__main__":
    typer.run(main)

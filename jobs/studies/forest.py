"""A random forest on iris: 10-fold, five times 10-fold, and leave-one-out cross validation.

python jobs/studies/forest.py
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from typing import Annotated

import typer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ckcv_ray import Execution, Scored, evaluate

RESAMPLINGS = ("kfold:10", "repeated_kfold:10x5", "loo")


def scored(resampling: str, trees: int = 100, backend: str = "serial") -> Scored:
    """Score the forest on the splits of a resampling."""
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(trees, random_state=0)
    return evaluate(
        X, y, learner=forest, resampling=resampling, measure="accuracy", execution=Execution(backend)
    )


def main(
    trees: Annotated[int, typer.Option(help="Number of trees.")] = 100,
    backend: Annotated[str, typer.Option(help="serial, ray or auto.")] = "auto",
) -> None:
    """Score a random forest on iris by three procedures."""
    typer.echo(f"{'resampling':<22}{'splits':>8}{'accuracy':>10}{'sd':>8}{'pooled':>8}{'seconds':>9}")
    for resampling in RESAMPLINGS:
        result = scored(resampling, trees, backend)
        found, seconds = result.figures(result.entries[0], result.scores[0]), result.execution["seconds"]
        splits = len(result.entries[0].settings)
        typer.echo(
            f"{resampling:<22}{splits:8}{found.mean:10.4f}{found.deviation:8.4f}{found.pooled:8.4f}{seconds:9.1f}"
        )


if __name__ == "__main__":
    typer.run(main)

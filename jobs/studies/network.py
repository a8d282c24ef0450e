"""A small neural network on iris, trained by back-propagation: k-fold as it is taught, a sweep, a final fit.

4 inputs, 7 hidden nodes, 3 outputs, one row at a time, learning rate 0.05, momentum 0.01, 35 epochs. Every
fold starts from the same initial weights. The rows are shuffled once and cut into four contiguous folds, of
which the last takes the remainder.

    python -m jobs.studies.network --rows 30
    python -m jobs.studies.network --sweep
    python -m jobs.studies.network --rows 30 --starts 100
"""

from typing import Annotated, Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ckcv_ray import Execution, KFold, Scored, evaluate

FOLDS = KFold(4, remainder="last")
EPOCHS, WEIGHTS_SEED = 35, 1
SWEEP: dict[str, tuple[Any, ...]] = {
    "hidden_layer_sizes": ((3,), (7,), (12,)),
    "learning_rate_init": (0.01, 0.05, 0.2),
    "momentum": (0.01, 0.5, 0.9),
}


class Counts(NamedTuple):
    """Wrong and scored rows of each fold."""

    wrong: list[int]
    rows: list[int]


def iris(rows: int = 150) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all rows, or the first of each species: as many of each."""
    X, y = load_iris(return_X_y=True)
    few = np.concatenate([np.flatnonzero(y == species)[: rows // 3] for species in range(3)])
    return X[few], y[few]


def network(hidden: int = 7, rate: float = 0.05, momentum: float = 0.01) -> MLPClassifier:
    """Return a network; the seed of its weights is fixed, so that all folds start from the same ones."""
    return MLPClassifier(
        hidden_layer_sizes=(hidden,),
        activation="logistic",
        solver="sgd",
        alpha=0.0,
        batch_size=1,
        learning_rate_init=rate,
        momentum=momentum,
        nesterovs_momentum=False,
        max_iter=EPOCHS,
        tol=0.0,
        n_iter_no_change=EPOCHS,
        random_state=WEIGHTS_SEED,
    )


def crossvalidated(rows: int = 150, sweep: bool = False) -> Scored:
    """Score the network, or every network of the sweep, on the four folds."""
    X, y = iris(rows)
    options: dict[str, Any] = {"param": SWEEP} if sweep else {}
    measures = ("zero_one", "accuracy")
    return evaluate(
        X, y, learner=network(), resampling=FOLDS, measure=measures, execution=Execution("serial"), **options
    )


def spread(rows: int, starts: int) -> NDArray[np.float64]:
    """Return the mean error over the four folds from each of some initial weights, (starts,)."""
    X, y = iris(rows)
    result = evaluate(
        X,
        y,
        learner=network(),
        resampling=FOLDS,
        param={"random_state": tuple(range(starts))},
        execution=Execution("serial"),
    )
    (score,) = result.scores
    return np.array([result.figures(entry, score).mean for entry in result.entries])


def counts(result: Scored) -> Counts:
    """Return wrong and scored rows of each fold, of the first network."""
    table = result.table().slice(0, FOLDS.folds)
    rows = table["rows_scored"].to_pylist()
    wrong = [round(rate * n) for rate, n in zip(table["zero_one"].to_pylist(), rows, strict=True)]
    return Counts(wrong, rows)


def main(
    rows: Annotated[
        int, typer.Option(help="Number of rows: 150, or the first third of them of each species.")
    ] = 150,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Compare numbers of nodes, rates and momenta.")
    ] = False,
    starts: Annotated[
        int, typer.Option(help="Number of initial weights whose errors to compare, instead of one.")
    ] = 1,
) -> None:
    """Cross-validate a neural network on iris, and fit the best one to all rows."""
    if starts > 1:
        errors = spread(rows, starts)
        typer.echo(
            f"{starts} starts: mean error {errors.mean():.4f}, standard deviation {errors.std(ddof=1):.4f}, "
            f"from {errors.min():.4f} to {errors.max():.4f}"
        )
        return
    result = crossvalidated(rows, sweep)
    if sweep:
        typer.echo(result.summary())
    else:
        found = counts(result)
        typer.echo("fold    rows   right   wrong")
        for fold, (wrong, n) in enumerate(zip(*found, strict=True), start=1):
            typer.echo(f"{fold:<4}{n:8}{n - wrong:8}{wrong:8}")
        wrong, n = sum(found.wrong), sum(found.rows)
        typer.echo(f"all {n:8}{n - wrong:8}{wrong:8}")
        error, accuracy = (result.figures(result.entries[0], score) for score in result.scores)
        typer.echo(
            f"mean error {error.mean:.4f}, mean accuracy {accuracy.mean:.4f}, pooled error {error.pooled:.4f}"
        )
    best = min(result.entries, key=lambda entry: result.figures(entry, result.scores[0]).mean)
    setting = best.settings[0] or {}
    X, y = iris(rows)
    final = network().set_params(**setting)
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # all epochs are asked for, however little is left to gain
        final.fit(X, y)
    wrong = int(np.sum(final.predict(X) != y))
    typer.echo(
        f"fitted to all {len(y)} rows{f' with {dict(setting)}' if setting else ''}: {wrong} of them wrong"
    )


if __name__ == "__main__":
    typer.run(main)

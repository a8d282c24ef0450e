"""Selection of a setting, kept apart from its evaluation: nested halves, three losses, three searches.

Of k folds S_i, the rows T_i outside of S_i are halved: every setting is fitted on T_i1 and scored on T_i2.
The setting with the least mean loss over all i is fitted again on each T_i and scored on S_i; or the best one
of each i is. The learner is logistic regression on the breast cancer data of scikit-learn, the settings are a
list made by hand, a grid, or drawn at random.

    python jobs/studies/selection.py --select each
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from typing import Annotated, Any

import typer
from sklearn.datasets import load_breast_cancer

from ckcv_ray import Execution, Scored, evaluate

LOSSES = ("zero_one", "squared", "cross_entropy")
SEARCHES: dict[str, dict[str, Any]] = {
    "list": {"param": {"C": (0.01, 1.0, 100.0)}},
    "grid": {
        "param": {
            "C": tuple(10.0**e for e in range(-3, 3)),
            "fit_intercept": (True, False),
        }
    },
    "random": {"param": {"C": "loguniform:1e-3:1e2"}, "sample": 20},
}


def selected(search: str, loss: str, select: str = "one", folds: int = 5) -> Scored:
    """Select by a loss among the settings of a search; score what was selected by every loss."""
    X, y = load_breast_cancer(return_X_y=True)
    return evaluate(
        X,
        y,
        learner="linear",
        resampling=f"nested_halves:{folds}",
        measure=LOSSES,
        select_by=loss,
        select=select,
        execution=Execution("serial"),
        **SEARCHES[search],
    )


def main(
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    select: Annotated[str, typer.Option(help="one setting for all folds, or another in each.")] = "one",
) -> None:
    """Select logistic regressions by three losses in three searches, and evaluate them on rows kept apart."""
    typer.echo(f"{'search':<8}{'selected by':<15}{''.join(f'{loss:>15}' for loss in LOSSES)}  settings")
    for search in SEARCHES:
        for loss in LOSSES:
            result = selected(search, loss, select, folds)
            (entry,) = result.entries
            means = [result.figures(entry, score).mean for score in result.scores]
            settings = sorted(set(result.list_settings(entry)))
            typer.echo(
                f"{search:<8}{loss:<15}{''.join(f'{mean:15.4f}' for mean in means)}  {'; '.join(settings)}"
            )


if __name__ == "__main__":
    typer.run(main)

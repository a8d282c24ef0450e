"""Complete K-fold with tuned k for a random forest and for a Gaussian SVM on the breast cancer data.

Each study tunes k with the learner's hyperparameters by minimising the bound on the error, and holds out a
third of the rows, which certify the model that is fitted to all others.

    python jobs/studies/tuned_k.py --most-k 20
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from typing import Annotated, Any

import typer
from sklearn.datasets import load_breast_cancer

from ckcv_ray import Certified, Execution, Study, run

STUDIES: dict[str, dict[str, Any]] = {
    "forest": {
        "learner": "forest",
        "param": {"max_features": ("sqrt", 0.5), "min_samples_leaf": (1, 3), "n_estimators": (50, 100)},
    },
    "svm": {"learner": "svm", "C": "log:-1:3:9", "gamma": "log:-4:-1:7"},
}


def tuned(learner: str, most_k: int = 20, n_splits: int = 20, backend: str = "auto") -> Certified:
    """Run the study of a learner with k from 3 to ``most_k``."""
    X, y = load_breast_cancer(return_X_y=True)
    study = Study.paper(
        k=f"3:{most_k}", n_splits=n_splits, certify="holdout", holdout_share=1 / 3, **STUDIES[learner]
    )
    return run(study, X, y, execution=Execution(backend))


def main(
    most_k: Annotated[int, typer.Option(help="Largest number of folds.")] = 20,
    backend: Annotated[str, typer.Option(help="serial, ray or auto.")] = "auto",
) -> None:
    """Tune k for a random forest and for a Gaussian SVM."""
    for learner in STUDIES:
        typer.echo(f"{tuned(learner, most_k, backend=backend).summary()}\n")


if __name__ == "__main__":
    typer.run(main)

"""Coverage of what ckcv run claims about numbers: how often a claim is false, and how close it is.

Whole studies are run on tables whose numbers are a linear function of three columns, plus noise with and
without heavy tails, ties and a spread that grows. Each claim is compared with the truth for its own models,
which is measured on ``TEST_ROWS`` new rows, or groups of related rows: the mean error, each error counting at
most the clip, and the share of rows within the claimed distance. No cell may be false significantly more
often than its delta: a one-sided exact binomial test at level 0.01 divided by the number of cells.

    python -m jobs.paper.number_coverage --runs 200
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from ckcv_ray import Execution, Study, run
from ckcv_ray.claims.quantity import Claim
from ckcv_ray.errors import Values
from ckcv_ray.learners.ensemble import predict_numbers
from jobs.frame import AsJson
from jobs.paper.cells import Cell, show_cells

ROWS, TEST_ROWS = 120, 20_000
CLIP, SHARE = 3.0, 0.9
SLOPES = (1.0, 2.0, 0.0)
GROUPS = "groups that share noise"  # of one to five rows
Noise = Callable[[np.random.Generator, Values], NDArray[np.floating[Any]]]
NOISES: dict[str, Noise] = {  # by the first column, (rows,)
    "normal": lambda rng, x: rng.normal(size=len(x)),
    "student t, 2.5 degrees": lambda rng, x: rng.standard_t(2.5, len(x)),
    "whole numbers": lambda rng, x: rng.poisson(1.0, len(x)) - 1.0,
    "spread grows with x": lambda rng, x: rng.normal(size=len(x)) * np.exp(x),
    "one row in 30 is far off": lambda rng, x: np.where(rng.random(len(x)) < 1 / 30, 100.0, 0.1),
    GROUPS: lambda rng, x: rng.normal(size=len(x)) / 2,
}


class Checked(NamedTuple):
    """A claim, the truth for its models, and whether it is false."""

    claim: Claim
    truth: float
    is_false: bool


class Table(NamedTuple):
    """Rows (rows, 3), their numbers (rows,), and the group of each; without groups each is its own."""

    X: Values
    y: Values
    groups: NDArray[np.intp]


def draw_table(noise: str, units: int, rng: np.random.Generator) -> Table:
    """Return a table of as many rows, or groups."""
    grouped = noise == GROUPS
    groups = np.repeat(np.arange(units), rng.integers(1, 6, units) if grouped else 1)
    X = rng.normal(size=(len(groups), len(SLOPES)))
    y = X @ np.array(SLOPES) + NOISES[noise](rng, X[:, 0])
    return Table(X, y + rng.standard_t(2.5, units)[groups] if grouped else y, groups)


def check_claims(noise: str, seed: int, certify: str) -> dict[str, Checked]:
    """Run one study, and return its claims by name with the truth for each.

    Args:
        noise: the noise of the numbers.
        seed: seed of the table and of the study.
        certify: "holdout" or "paper".
    """
    rng = np.random.default_rng([seed, list(NOISES).index(noise)])
    table, grouped = draw_table(noise, ROWS, rng), noise == GROUPS
    asked = {"holdout_share": 0.5, "claim": ("refit", *(() if grouped else (f"within:{SHARE}",)))}
    study = Study.of(
        learner="ridge",
        param={"alpha": (0.1, 1.0, 10.0)},
        clip=CLIP,
        k=(3,),
        n_splits=3,
        seed=seed,
        certify=certify,
        **(asked if certify == "holdout" else {}),
    )
    groups = table.groups if grouped else None
    result = run(study, table.X, table.y, groups=groups, execution=Execution("serial"))
    new = draw_table(noise, TEST_ROWS, rng)
    weights = 1 / np.bincount(new.groups)[new.groups]
    found: dict[str, Checked] = {}
    for claim in result.certificate.claims:
        ensemble = result.models.refit if claim.classifier == "refit" else result.models.best
        assert ensemble is not None
        errors = np.abs(np.array([predict_numbers(one.model, new.X) for one in ensemble.members]) - new.y)
        if (share := claim.quantity.width_of) is not None:
            within = float(np.mean(errors <= claim.risk))
            found["within"] = Checked(claim, within, within < share)
        else:
            clipped = np.minimum(errors, CLIP).mean(axis=0)
            truth = float(np.average(clipped, weights=weights)) / CLIP
            found[certify] = Checked(claim, truth, truth > claim.risk)
    return found


def measure_noise(noise: str, runs: int) -> list[Cell]:
    """Return the cells of one kind of noise."""
    found: dict[str, list[Checked]] = {}
    for seed in range(runs):
        for certify in ("holdout", "paper"):
            for name, checked in check_claims(noise, seed, certify).items():
                found.setdefault(name, []).append(checked)
    cells = []
    for name, claims in found.items():
        bound, truth = np.mean([(one.claim.risk, one.truth) for one in claims], axis=0)
        figures = {"bound": float(bound), "truth": float(truth)}  # for within, the share within it
        false, delta = sum(one.is_false for one in claims), claims[0].claim.delta
        cells.append(Cell(f"{noise}: {name}", false, runs, delta, figures))
    return cells


def main(
    runs: Annotated[int, typer.Option(min=1, help="Tables of each kind of noise.")] = 200,
    as_json: AsJson = False,
) -> None:
    """Measure every kind of noise; end with code 1 if a claim is false significantly too often."""
    show_cells([cell for noise in NOISES for cell in measure_noise(noise, runs)], as_json)


if __name__ == "__main__":
    typer.run(main)

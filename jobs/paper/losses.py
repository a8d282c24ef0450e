"""Other losses and bounds, the paper's open question: whether any is tighter than Clopper-Pearson on counts.

The default study on one realization of each IDA set gives F*; its members give decision values f on their
estimate sets, m rows each, and on the test rows of the set. With the margin z = y f(x), three losses:

    count           1[z <= 0]                  the error of the hard label, the sign of f
    ramp            clip((1 - z) / 2, 0, 1)    the error of a random label, which is +1 with probability
                                               clip((1 + f) / 2, 0, 1)
    clipped linear  clip(1 - z, 0, 1)          the hinge loss up to 1

As count <= clipped linear = min(1, 2 ramp), a bound on the mean of the clipped linear loss bounds the error
of the hard label, and so does twice a bound on the mean ramp loss. Without the factor, the latter bounds only
the error of the random label.

Counts are bounded by Clopper-Pearson and Stevens; the mean of a soft loss by betting, which is tighter than
Hoeffding's bound and empirical Bernstein bounds; each at delta = 0.05. The soft losses are the ramp losses of
Collobert, Sinz, Weston, Bottou (ICML 2006) at s = -1 and s = 0.
Looseness is the mean over members of the bound, as in L_EE, divided by the mean over members of the true
error of the label above the column. The true error is measured on the test rows and shown with its binomial
standard error, which is an upper limit for a mean over members. All columns share the
candidate that was selected by counts with Clopper-Pearson.

    python -m jobs.paper.losses --sets banana,heart --realization 1
"""

import json
from collections.abc import Callable
from statistics import geometric_mean
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from ckcv_ray import Certified, Execution, InputError, Job, Study, TestRows, read_task
from ckcv_ray.core.bounds.betting import bound_losses
from ckcv_ray.core.bounds.binomial import clopper_pearson, stevens
from ckcv_ray.errors import Values
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.runs.run import run_job
from jobs.frame import SETS, AsJson, choose_scale

Row = dict[str, Any]


def ramp(z: Values) -> Values:
    """Compute the ramp loss of margins, any shape: the probability that the random label is wrong."""
    return np.clip((1 - z) / 2, 0, 1)


def clipped_linear(z: Values) -> Values:
    """Compute the clipped linear loss of margins, any shape."""
    return np.clip(1 - z, 0, 1)


class Column(NamedTuple):
    """A loss, a bound on its mean, and the label whose error they bound."""

    loss: str
    bound: str
    label: str = "hard"

    @property
    def key(self) -> str:
        """Name of the column in the results."""
        return f"{self.loss}, {self.bound}"


LOSSES: dict[str, tuple[float, Callable[[Values], Values]]] = {  # and the factor of a bound on its mean
    "2 x ramp": (2.0, ramp),
    "clipped linear": (1.0, clipped_linear),
    "ramp": (1.0, ramp),
}
CP, STEVENS = Column("count", "Clopper-Pearson"), Column("count", "Stevens")
SOFT = [Column(loss, "betting") for loss in ("2 x ramp", "clipped linear")]
RANDOM = Column("ramp", "betting", "random")
COLUMNS = [CP, STEVENS, *SOFT, RANDOM]


def estimate_margins(result: Certified) -> Values:
    """Compute the margins of every member on the rows of its estimate set, (members, m)."""
    problem, margins = result.problem, []
    size = next(j for j, size in enumerate(problem.sizes) if size.holds(result.k))
    for member in result.ensemble.members:
        rows = problem.split(size, member.split).estimate
        margins.append((2 * problem.task.y[rows] - 1) * member.model.predict(problem.task.X[rows]).score)
    return np.array(margins)


def mean_bounds(result: Certified) -> dict[str, float]:
    """Compute, for each column, the mean over members of the bound on the error of its label."""
    delta, z = result.study.delta, estimate_margins(result)
    errors = np.array([sum(member.errors) for member in result.ensemble.members])
    members, m = z.shape
    v = [result.problem.draws.at(m, i, 1).make_generator().uniform() for i in range(members)]
    counts = (clopper_pearson(errors, m, delta), stevens(errors, m, v, delta))
    means = {column.key: float(np.mean(bounds)) for column, bounds in zip((CP, STEVENS), counts, strict=True)}
    for column in (*SOFT, RANDOM):
        factor, loss = LOSSES[column.loss]
        means[column.key] = float(np.mean([min(1, factor * bound_losses(of, delta)) for of in loss(z)]))
    return means


def true_means(ensemble: Ensemble, test: TestRows) -> dict[str, float]:
    """Average over members and test rows: the error of either label, and the clipped linear loss."""
    labels, f = ensemble.predict(test.X)
    z = np.where(test.y == 1, 1, -1) * f
    return {
        "hard": float(np.mean(labels != test.y)),
        "random": float(np.mean(ramp(z))),
        "clipped linear": float(np.mean(clipped_linear(z))),
    }


def measure(result: Certified, test: TestRows) -> Row:
    """Compute the results of one set: sizes, true errors, bounds, looseness.

    Raises:
        InputError: no member errs on the test rows, so that looseness is undefined.
    """
    true, bounds = true_means(result.ensemble, test), mean_bounds(result)
    if not min(true["hard"], true["random"]):
        raise InputError(f"no member errs on the {len(test.y)} test rows: looseness is undefined")
    return {
        "k": result.k,
        "m": result.task.n // result.k,
        "test_rows": len(test.y),
        "true": true,
        "standard_error": (true["hard"] * (1 - true["hard"]) / len(test.y)) ** 0.5,
        "bound": bounds,
        "looseness": {column.key: bounds[column.key] / true[column.label] for column in COLUMNS},
    }


def study_set(name: str, realization: int, backend: str) -> Row:
    """Run the default study on one realization of one set; return its results."""
    task, test = read_task(f"ida:{name}:{realization}")
    if test is None:
        raise InputError(f"{name} has no test rows")
    return measure(run_job(Job(Study.paper(scale=choose_scale(name)), task), Execution(backend)), test)


def averages(rows: dict[str, Row]) -> dict[str, float]:
    """Compute the geometric mean over the sets of each column's looseness."""
    keys = [column.key for column in COLUMNS]
    return {key: geometric_mean(row["looseness"][key] for row in rows.values()) for key in keys}


def least(columns: list[Column], looseness: dict[str, float]) -> Column:
    """Return the column with the smallest looseness."""
    return min(columns, key=lambda column: looseness[column.key])


HEAD = f"{'set':<15}{'m':>4}{'hard':>14}{'random':>8}"


def heading() -> str:
    """Format the three heading lines of the table: label, loss, bound."""
    lines = (
        f"{'true error %':>{len(HEAD)}}" + "".join(f"{column.label + ' label':>17}" for column in COLUMNS),
        f"{'':{len(HEAD)}}" + "".join(f"{column.loss:>17}" for column in COLUMNS),
        HEAD + "".join(f"{column.bound:>17}" for column in COLUMNS),
    )
    return "\n".join(lines)


def figures(looseness: dict[str, float]) -> str:
    """Format the looseness of one line."""
    shown = (looseness[column.key] for column in COLUMNS)
    return "".join(f"{value:>17.{1 + (value < 9.995)}f}" for value in shown)


def line(name: str, row: Row) -> str:
    """Format the line of one set."""
    hard = f"{100 * row['true']['hard']:.1f} ± {100 * row['standard_error']:.1f}"
    random = 100 * row["true"]["random"]
    return f"{name:<15}{row['m']:>4}{hard:>14}{random:>8.1f}{figures(row['looseness'])}"


def paragraph(by_set: dict[str, Row]) -> str:
    """Summarize the table in words, from its figures alone."""
    mean, rows = averages(by_set), list(by_set.values())
    count, soft, random = least([CP, STEVENS], mean), least(SOFT, mean), RANDOM
    tighter = sum(least([CP, *SOFT], row["looseness"]) is not CP for row in rows)
    linear = geometric_mean(row["true"]["clipped linear"] / row["true"]["hard"] for row in rows)
    ratio = geometric_mean(row["true"]["random"] / row["true"]["hard"] for row in rows)
    higher = geometric_mean(row["bound"][random.key] / row["bound"][CP.key] for row in rows)
    shares = [100 * row["standard_error"] / row["true"]["hard"] for row in rows]
    sentences = (
        f"Hard label, geometric means over {len(rows)} sets: counts with {count.bound} are "
        f"{mean[count.key]:.2f} times the true error, with Clopper-Pearson {mean[CP.key]:.2f}; the tighter "
        f"soft loss, {soft.loss} with {soft.bound}, is {mean[soft.key]:.2f} times it.",
        f"A soft loss is tighter than Clopper-Pearson on {tighter} of {len(rows)} sets.",
        f"The mean clipped linear loss itself is {linear:.2f} times the hard label's error, "
        f"twice the mean ramp loss {2 * ratio:.2f} times: no bound on them can do better, "
        f"with any number of rows.",
        f"Random label: {random.bound} is {mean[random.key]:.2f} times its true error, but it errs "
        f"{ratio:.2f} times as often as the hard label, and the bound is {higher:.2f} times "
        f"Clopper-Pearson's on the hard label.",
        f"The standard error of the hard label's true error is {min(shares):.0f} to {max(shares):.0f} % of "
        f"it, the same for all columns of a set.",
    )
    return " ".join(sentences)


def main(
    sets: Annotated[str, typer.Option(help="Sets to use: a,b,c.")] = SETS,
    realization: Annotated[int, typer.Option(min=1, help="Realization of each set.")] = 1,
    backend: Annotated[str, typer.Option(help="ray or serial.")] = "ray",
    as_json: AsJson = False,
) -> None:
    """Print one line for each set, the geometric means, and a summary in words."""
    rows: dict[str, Row] = {}
    if not as_json:
        print(heading(), flush=True)
    for name in sets.split(","):
        row = rows[name] = study_set(name, realization, backend)
        if not as_json:
            print(line(name, row), flush=True)
    if as_json:
        print(json.dumps({"sets": rows, "geomean": averages(rows)}))
    else:
        print(f"{'geometric mean':<{len(HEAD)}}{figures(averages(rows))}", paragraph(rows), sep="\n\n")


if __name__ == "__main__":
    typer.run(main)

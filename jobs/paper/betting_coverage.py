"""Coverage of the bound by betting, of comparisons and of cut-offs: how often each is false, and how close.

Comparisons inside a study (``--claim better:LEARNER``) are of rows drawn with known differences, and of whole
studies whose labels nothing predicts, so that all classifiers err equally often.

Errors by weight are of rows drawn with known weights and chances of an error, some of which weigh much and
rarely occur; the bound is compared with one that knows the mean of the weights.

Losses of groups are drawn from laws whose mean is known, some of them made to break a bound; the bound by
betting is compared with the one that the total of the losses decides. Pairs of classifiers are drawn with
known differences: a proof of "better" where both err equally often is false, one of "not worse" where the
difference is above the margin too; where the first one errs less often, a proof is what is hoped for. A
cut-off for a sensitivity of 90 %, or for a predictive value where 2 % are positive, is chosen on normal
scores, or on rounded ones with many ties. No cell may fail significantly more often than it may: a one-sided
exact binomial test at level 0.01 divided by the number of cells.

    python -m jobs.paper.betting_coverage --runs 2000 --studies 2000
"""

from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
import typer
from scipy.stats import norm

from ckcv_ray import Execution, Study, clopper_pearson, run
from ckcv_ray.claims.better import PairedCounts
from ckcv_ray.claims.predictive import Npv, Ppv, PredictiveValue, count_cut_offs, fix_cut_offs
from ckcv_ray.claims.quantity import FixedSequence
from ckcv_ray.claims.recalls import find_cut_off
from ckcv_ray.core.arrays import ONE, Values
from ckcv_ray.core.bounds.betting import bound_losses, bound_mean_loss
from ckcv_ray.core.bounds.paired import judge_differences
from jobs.frame import AsJson
from jobs.paper.cells import Cell, show_cells

DELTA = 0.05
MARGIN = 0.03
NOT_WORSE = f"not worse by {MARGIN:g}"
SIZES = (20, 66, 400)
LEAST: dict[PredictiveValue, float] = {Ppv(0.02): 0.3, Npv(0.02): 0.998}  # required
Draw = Callable[[np.random.Generator, int], Values]


class Law(NamedTuple):
    """A law of losses, or of differences: what draws a number of them, and their mean."""

    draw: Draw
    mean: float


class WeightedLaw(NamedTuple):
    """A law of rows that are of few kinds, each with a weight."""

    chances: tuple[float, ...]  # of each kind, with the sum 1
    weights: tuple[float, ...]  # of its rows
    errors: tuple[float, ...]  # the chance that one of its rows is wrong
    largest: float  # the largest weight, as stated

    @property
    def mean_weight(self) -> float:
        """Mean weight of a row."""
        return float(np.dot(self.chances, self.weights))

    @property
    def mean(self) -> float:
        """Weighted error."""
        return float(np.dot(np.multiply(self.chances, self.weights), self.errors)) / self.mean_weight

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Values, Values]:
        """Return the weights of m rows, and which are wrong, as 0 and 1."""
        kinds = rng.choice(len(self.chances), m, p=self.chances)
        return np.array(self.weights)[kinds], (rng.random(m) < np.array(self.errors)[kinds]).astype(float)


def make_shares(mean: float, deviation: float) -> Law:
    """Return a beta law of shares."""
    k = mean * (1 - mean) / deviation**2 - 1
    return Law(lambda rng, m: rng.beta(mean * k, (1 - mean) * k, m), mean)


def make_differences(second: float, first: float) -> Law:
    """Return the law of a row on which the second alone is wrong, or the first alone, with a probability."""
    chances = [first, second, 1 - first - second]
    return Law(lambda rng, m: rng.choice([1.0, -1.0, 0.0], m, p=chances), first - second)


LOSSES = {
    "shares .12, deviation .12": make_shares(0.12, 0.12),
    "shares .12, deviation .20": make_shares(0.12, 0.2),
    "rare whole losses": Law(lambda rng, m: (rng.random(m) < 0.02).astype(float), 0.02),
    "one of 16 loses all": Law(
        lambda rng, m: np.where(rng.random(m) < 1 / 16, 1.0, 0.01), 1 / 16 + 0.01 * 15 / 16
    ),
    "both ends": Law(lambda rng, m: rng.beta(0.05, 0.2, m), 0.2),
}
DIFFERENCES = {
    "equal": make_differences(0.03, 0.03),
    "equal, 20 % differ": make_differences(0.1, 0.1),
    "worse by the margin": make_differences(0.02, 0.05 + 1e-9),
    "6 % against 2 %": make_differences(0.06, 0.02),
}


WEIGHTED = {
    "all weigh the same": WeightedLaw((1.0,), (1.0,), (0.1,), 1.0),
    "stated four times too large": WeightedLaw((1.0,), (1.0,), (0.1,), 4.0),
    "rows that weigh much err": WeightedLaw((0.8, 0.2), (0.5, 3.0), (0.05, 0.2), 3.0),
    "rows that weigh little err": WeightedLaw((0.8, 0.2), (0.5, 3.0), (0.2, 0.02), 3.0),
    "one of 30 weighs 100 times as much": WeightedLaw((29 / 30, 1 / 30), (0.2, 20.0), (0.02, 0.5), 20.0),
    "one of 300 weighs all": WeightedLaw((299 / 300, 1 / 300), (1e-3, 1.0), (0.0, 0.9), 1.0),
}


def measure_weighted(name: str, m: int, runs: int) -> Cell:
    """Return how often the bound on a weighted error is below it, and how large it is."""
    law, rng = WEIGHTED[name], np.random.default_rng([m, list(WEIGHTED).index(name), 5])
    drawn = [law.draw(rng, m) for _ in range(runs)]
    pairs = [(wrong, weights / law.largest) for weights, wrong in drawn]
    bounds = [bound_losses(wrong, DELTA, shares) for wrong, shares in pairs]
    scale = law.largest / law.mean_weight
    known = [min(1.0, scale * bound_losses(wrong * shares, DELTA)) for wrong, shares in pairs]
    figures = {"mean bound": float(np.mean(bounds)), "mean weight known": float(np.mean(known))}
    return Cell(f"weighted: {name}, m = {m}", sum(b < law.mean for b in bounds), runs, DELTA, figures)


def measure_losses(name: str, m: int, runs: int) -> Cell:
    """Return how often the bound is below the mean of a law, and how large it is, and that from totals."""
    law, rng = LOSSES[name], np.random.default_rng([m, list(LOSSES).index(name)])
    drawn = [np.ceil(law.draw(rng, m) * ONE).astype(np.int64) for _ in range(runs)]
    bounds = [bound_losses(losses / ONE, DELTA) for losses in drawn]
    totals = [bound_mean_loss([int(losses.sum())], m, DELTA) for losses in drawn]
    figures = {"mean bound": float(np.mean(bounds)), "from totals": float(np.mean(totals))}
    return Cell(f"losses: {name}, m = {m}", sum(b < law.mean for b in bounds), runs, DELTA, figures)


def measure_differences(name: str, n: int, runs: int, what: str, prove: Callable[[Values], bool]) -> Cell:
    """Return how often the first one is proven better, or not worse, and how often that is false."""
    law, rng = DIFFERENCES[name], np.random.default_rng([n, list(DIFFERENCES).index(name)])
    proven = sum(prove(law.draw(rng, n)) for _ in range(runs))
    is_false = law.mean > MARGIN if what == NOT_WORSE else law.mean >= 0
    allowed = (DELTA if what.startswith("claim") else DELTA / 2) if is_false else 1.0
    return Cell(f"{what}: {name}, n = {n}", proven * is_false, runs, allowed, {"proven": proven / runs})


def list_proofs() -> dict[str, Callable[[Values], bool]]:
    """Return what decides from differences, by name: of a comparison, and of the claim of a study."""

    def claim(drawn: Values, grouped: bool) -> bool:
        counts = PairedCounts(int(np.sum(drawn < 0)), int(np.sum(drawn > 0)), drawn, grouped)
        return counts.bound(DELTA, 0) < 0.5

    return {
        "claim better, rows": lambda drawn: claim(drawn, False),
        "claim better, groups": lambda drawn: claim(drawn, True),
        "better": lambda drawn: judge_differences(drawn, DELTA, None).better,
        NOT_WORSE: lambda drawn: judge_differences(drawn, DELTA, MARGIN).better,
    }


def measure_studies(studies: int) -> Cell:
    """Return how often a study proves its winner better than another learner, where labels are at random."""
    study = Study.paper(
        learner="naive_bayes,tree",
        param=("max_depth=1,3", "min_samples_leaf=1"),
        k=(3,),
        n_splits=2,
        certify="holdout",
        holdout_share=0.5,
        claim="better:naive_bayes,better:tree",  # of which the winner's own says nothing
    )
    false = 0
    for number in range(studies):
        rng = np.random.default_rng([number, 11])
        X, y = rng.normal(size=(120, 2)), rng.permutation(np.arange(120) % 2)
        claims = run(study.replace(seed=number), X, y, execution=Execution("serial")).certificate.claims
        false += any(claim.risk < 0.5 for claim in claims)
    allowed, figures = DELTA / 2, {"false": false / max(1, studies)}  # a share of delta for each claim
    return Cell("claim better: whole studies of labels at random", false, studies, allowed, figures)


def measure_cut_offs(decimals: int | None, runs: int) -> Iterator[Cell]:
    """Yield how often a cut-off has a sensitivity below 90 %, and how often either recall is below its bound.

    Scores of 100 positives and 300 negatives are normal, two deviations apart, and rounded if ``decimals`` is
    given.
    """
    rng, each, few, either = np.random.default_rng(1), DELTA / 2, 0, 0
    y = np.repeat([1, 0], [100, 300]).astype(np.int32)
    for _ in range(runs):
        drawn = rng.normal(2.0 * y)
        score = drawn if decimals is None else drawn.round(decimals)
        found = find_cut_off(score, y, 1, 1, 0.9, each)
        assert found is not None
        assert found.cut_off is not None
        t = found.cut_off.value - (0.0 if decimals is None else 0.5 * 10**-decimals)
        wrong = int(np.sum(found.cut_off.flag(score[100:])))
        small = bool(norm.sf(t - 2) < 0.9)
        few += small
        either += small or bool(norm.sf(t) > clopper_pearson(wrong, 300, each))
    scores = "normal scores" if decimals is None else f"scores of {decimals} digit"
    yield Cell(f"cut-off, sensitivity: {scores}", few, runs, each, {"false": few / runs})
    yield Cell(f"cut-off, both recalls: {scores}", either, runs, DELTA, {"false": either / runs})


def measure_values(predictive: PredictiveValue, decimals: int | None, runs: int) -> Cell:
    """Return how often a required predictive value is below what is claimed of it, and how often one is.

    Scores of 300 positives and 1200 negatives held out are normal, two deviations apart, and rounded if
    ``decimals`` is given; cut-offs are fixed by as many learning rows. What is required is reached just above
    the middle of the cut-offs, so that a false claim takes a test that should fail.
    """
    rng, least = np.random.default_rng([2, 3]), LEAST[predictive]
    y, right = np.repeat([1, 0], [300, 1200]).astype(np.int32), np.repeat([1, 0], [300, 1200])
    false = claimed = 0
    for _ in range(runs):
        learned, held = (rng.normal(2.0 * right) for _ in range(2))
        if decimals is not None:
            learned, held = learned.round(decimals), held.round(decimals)
        cut_offs = fix_cut_offs(learned, y, 1, predictive, least, len(y), DELTA)
        tests = FixedSequence(count_cut_offs(held, y, cut_offs), predictive.require(least), DELTA)
        t = tests.chosen.threshold
        if decimals is not None:
            steps = np.arange(-80, 120) / 10**decimals
            t = steps[steps >= t][0] - 0.5 * 10**-decimals
        claimed += tests.passed > 0
        false += tests.passed > 0 and bool(predictive.compute(norm.sf(t - 2), norm.cdf(t)) < least)
    scores = "normal scores" if decimals is None else f"scores of {decimals} digit"
    return Cell(
        f"{predictive.name} at .02, {least:g}: {scores}", false, runs, DELTA, {"claimed": claimed / runs}
    )


def measure(runs: int, studies: int) -> list[Cell]:
    """Return every cell."""
    cells = [measure_losses(name, m, runs) for name in LOSSES for m in SIZES]
    cells += [measure_weighted(name, m, runs) for name in WEIGHTED for m in SIZES]
    cells += [cell for decimals in (None, 1) for cell in measure_cut_offs(decimals, runs)]
    cells += [measure_values(predictive, decimals, runs) for predictive in LEAST for decimals in (None, 1)]
    cells += [
        measure_differences(name, n, runs, what, prove)
        for what, prove in list_proofs().items()
        for name in DIFFERENCES
        for n in (100, 200, 400)
    ]
    return cells + ([measure_studies(studies)] if studies else [])


def main(
    runs: Annotated[int, typer.Option(min=1, help="Draws of each law.")] = 2000,
    studies: Annotated[int, typer.Option(min=0, help="Whole studies with labels at random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure every law; end with code 1 if one is false significantly more often than it may be."""
    show_cells(measure(runs, studies), as_json)


if __name__ == "__main__":
    typer.run(main)

"""The counts of claims from judged rows, written a second time for ``jobs/check_certificate.py``.

Judged rows are the certifying rows, as judged by each rule that is claimed. Nothing here is shared with the
package.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from jobs import independent_betting as betting
from jobs import independent_bounds as bounds

Array = NDArray[Any]
Judged = dict[str, Array]


def read_judged(folder: Path) -> dict[str, Judged]:
    """Return the columns of judged rows, by what judged them; empty if the folder has none."""
    if not (folder / "judged.parquet").exists():
        return {}
    table = parquet.read_table(folder / "judged.parquet")
    columns = {name: np.array(table[name].to_pylist()) for name in table.column_names}
    names = dict.fromkeys(columns["classifier"].tolist())
    return {
        name: {column: values[columns["classifier"] == name] for column, values in columns.items()}
        for name in names
    }


def find_wrong_pairs(score: Array, y: Array, rng: np.random.Generator) -> Array:
    """Return which disjoint pairs of rows of two classes, as drawn, are not in order of score."""
    low, high = (rng.permutation(np.flatnonzero(y == c)) for c in (0, 1))
    pairs = min(len(low), len(high))
    return np.asarray(~(score[high[:pairs]] > score[low[:pairs]]))


def decide(judged: Judged, cut_off: float | None, positive: int) -> Array:
    """Return the class of each judged row: at a cut-off of the score, if there is one."""
    if cut_off is None:
        return judged["predicted"]
    flagged = round_scores(judged["score"] * (1 if positive else -1)) >= cut_off
    return np.where(flagged, positive, 1 - positive)


def round_scores(score: Array) -> Array:
    """Return scores rounded to 12 digits."""
    unit = 10.0 ** (11 - np.floor(np.log10(np.abs(score), where=score != 0, out=np.zeros(len(score)))))
    return np.asarray(np.round(score * unit) / unit)


def average_groups(values: Array, units: Array) -> Array:
    """Return the mean of each unit's rows, by ascending number of the unit."""
    number = np.unique(units, return_inverse=True)[1]
    return np.asarray(np.bincount(number, values) / np.bincount(number))


def count_answered(claim: dict[str, Any], judged: Judged | None, y: Array) -> tuple[int, int]:
    """Return the counts of a claim about answered rows: of two classes from judged rows, else as stored."""
    if judged is None or "least_confidence" not in claim or y.max() > 1 or "score" not in judged:
        return claim["errors"], claim["rows"]
    answered = round_scores(np.abs(judged["score"])) >= claim["least_confidence"]
    if claim["quantity"] == "answered_share":
        return int(np.sum(~answered)), len(y)
    return int(np.sum(answered & (judged["predicted"] != y))), int(np.sum(answered))


def classify_rows(models: list[dict[str, Any]], learned: Array, rows: Array) -> Array:
    """Return the classes (undecided: 0) that machines of two classes give rows [n, d], (machines, n)."""
    labels = []
    for model in models:
        vectors, scaled = (
            (part - model["centre"]) / np.array(model["scale"]) for part in (learned[model["support"]], rows)
        )
        K = np.exp([-model["gamma"] * np.sum((row - vectors) ** 2, axis=1) for row in scaled])
        score = K @ np.array(model["dual_coef"]) + model["offset"]
        labels.append(np.where(np.abs(score) <= 1e-9, 0, score > 0))
    return np.array(labels)


def find_wrong(
    judged: Judged, claim: dict[str, Any], y: Array, of: Array, order: Array, positive: int, rng: Any
) -> Array:
    """Return which rows or pairs of a claim are wrong, in the order of the draw.

    Args:
        judged: the held-out rows, by the rule of the claim.
        claim: a claim about an error, a recall or the AUC.
        y: their classes.
        of: which rows are of the class of the claim, of any class for an error.
        order: their positions, as they were drawn.
        positive: number of the class of rows that a cut-off flags.
        rng: the generator of the pairs.
    """
    if claim["quantity"] == "auc":
        return find_wrong_pairs(judged["score"], y, rng)
    return np.asarray((decide(judged, claim.get("cut_off"), positive) != y)[order][of[order]])


def compare_learners(
    winner: Judged,
    other: Judged,
    y: Array,
    units: Array,
    order: Array,
    delta: float,
    copies: int,
    shares: Any = None,
) -> list[Any]:
    """Return the bound on the share of losses against another learner, the rows lost, and those decided.

    Args:
        winner, other: the held-out rows by both.
        y, units: their classes, and the number of the group of each, or of each row.
        order: positions of the groups, by their numbers, as they were drawn.
        delta: probability that the bound fails.
        copies: rows or groups that are not counted.
        shares: what rows count for, in the order drawn; None if all count the same.
    """
    lost = (other["predicted"] == y).astype(int) - (winner["predicted"] == y)
    losses = (1 + average_groups(lost, units)[order]) / 2
    counts, grouped = [int(np.sum(lost > 0)), int(np.sum(lost != 0))], len(losses) < len(y)
    if grouped or shares is not None:
        return [betting.bound_held(losses, delta, copies, shares), *counts]
    left = max(0, counts[1] - copies)
    return [float(bounds.bound_count(min(counts[0], left), left, delta)), *counts]


def compare_constants(
    claim: dict[str, Any], rule: Judged, all_y: Array, all_units: Array, held: Array, order: Array
) -> list[Any]:
    """Return the hardest class to beat, rows lost and won against it, and two bounds on the share of losses.

    The second bound is the largest if the rule had no row wrong.

    Args:
        claim: a claim about the error of the rule.
        rule: the held-out rows as judged by it.
        all_y, all_units: classes of all rows, and numbers of their groups, or of the rows.
        held: which rows are held out.
        order: as for ``compare_learners``.
    """
    y, units, shares = all_y[held], all_units[held], None
    if claim["quantity"] != "error":
        shares = rule["weight"][order] / float(claim["quantity"].split(":")[1])
    beaten, flawless = (
        [
            compare_learners(of, {"predicted": 0 * y + number}, y, units, order, claim["delta"], 0, shares)
            for number in range(all_y.max() + 1)
        ]
        for of in (rule, {"predicted": y})
    )
    hardest = int(np.argmax([bound for bound, *_ in beaten]))
    bound, lost, decided = beaten[hardest]
    return [hardest, lost, decided - lost, bound, max(bound for bound, *_ in flawless)]


def bound_weighted(claim: dict[str, Any], by_rule: dict[str, Judged], delta: float, copies: int) -> list[Any]:
    """Return the measured weighted error of a claim, its bound, the wrong rows and the rows."""
    rows = by_rule[claim["classifier"]]
    wrong, order = (rows["predicted"] != rows["label"]).astype(float), np.argsort(rows["order"])
    shares = rows["weight"] / float(claim["quantity"].split(":")[1])
    bound = betting.bound_held(wrong[order], delta, copies, shares[order])
    return [float(np.average(wrong, weights=shares)), bound, int(sum(wrong)), len(wrong)]

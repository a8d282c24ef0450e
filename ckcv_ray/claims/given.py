"""Rows with predictions made elsewhere: all of them certify, and nothing is fitted.

Their order was not drawn. So losses are bounded by the optimised bet at any number of units, and only the
pairs of an AUC are drawn, with the salt of the rows. What cannot be checked is stated in the premise of each
claim (docs/theory/bounds.md, "A file of predictions").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ckcv_ray.claims.better import compare_rows
from ckcv_ray.claims.error import Weighed
from ckcv_ray.claims.quantity import Claim, HeldOutPredictions
from ckcv_ray.claims.recalls import Recall
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds.betting import bound_by_optimised_bet
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.bounds.paired import BETTING, COUNTS, bound_difference
from ckcv_ray.core.quantities import parse_subgroup
from ckcv_ray.errors import Index, InputError, Numbers, Values, pluralize
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.study.problem import Problem, check_certified
from ckcv_ray.study.study import Study
from ckcv_ray.tables.columns import ColumnKind
from ckcv_ray.tables.predictions import Predictions
from ckcv_ray.tables.task import check_subgroups

GIVEN = Rule("given")
UNUSED = ("holdout: ", "previously unused ", "held-out ", " (holdout)", " by holdout")  # what no row here is


@dataclass(frozen=True)
class GivenPredictions(HeldOutPredictions):
    """The rows of a file, with predictions made for them elsewhere.

    Attributes:
        predictions: predictions of these rows.
        baseline: for numbers, the prediction of the constant that they are compared with; None without one.
    """

    predictions: Predictions = field(kw_only=True)
    baseline: float | None = field(default=None, kw_only=True)
    drawn = False
    part_of_wins = 0.5  # the margin beside them is another statement, with the other half

    @classmethod
    def of(cls, predictions: Predictions, study: Study, baseline: float | None = None) -> "GivenPredictions":
        """Return the rows of a file, with a study that says what is claimed of them.

        Raises:
            InputError: a claim does not apply to such rows, or not to what is known of them.
        """
        task, certification = predictions.task, check_certified(study, predictions.task)
        study = study.replace(positive=certification.positive)
        problem = Problem(study, task, task, np.arange(task.n), (), "")
        made = cls(problem, Models(), predictions=predictions, baseline=baseline)
        for name, quantity in certification.quantities.items():
            if quantity.needs is not None and predictions.score is None:
                lack = "is about scores, and there are none: name their column with --score"
                raise InputError(f"claim={name} {lack}")
            for number in quantity.list_classes(made.problem) if isinstance(quantity, Recall) else ():
                if not np.any(task.y == number):
                    raise InputError(
                        f"claim={name} counts rows of class {task.classes[number]!r}, and there are none: "
                        "leave it out"
                    )
            if isinstance(quantity, Weighed):
                quantity.check(made.problem)
        check_subgroups(certification.subgroups, task)
        if (divided := made.list_quantiles()) and made.problem.has_losses:
            raise InputError(
                f"subgroups={divided[0]} are by quantiles of these rows, and losses are bounded only in "
                f"groups that were named beforehand: name edges, such as {divided[0]}:40,65"
            )
        return made

    @cached_property
    def order(self) -> Index:
        """Positions of the units, in an order that was not drawn."""
        return np.arange(self.predictions.task.n_units)

    @property
    def constants(self) -> Sequence[float]:
        """What constants predict: each class, or the given number."""
        if self.problem.clip is None:
            return range(self.predictions.task.n_classes)
        return [] if self.baseline is None else [self.baseline]

    def measure_loss(self, predicted: Numbers) -> Values:
        """Return the loss of each row; one without a label is wrong for predictions, not for constants."""
        loss = super().measure_loss(predicted)
        return np.where(self.predictions.empty, predicted < 0, loss)

    def state_premise(self, of_counts: bool) -> tuple[str, str, str]:
        """Return what is assumed about the rows, and about what made the predictions."""
        columns, units = self.predictions.columns, self.predictions.task.units
        rows = pluralize(units.n, "row")
        these = units.word(rows, f"{pluralize(units.n_units, 'group')} of {rows}")
        used = [*filter(None, (columns.prediction, columns.score, columns.against))]
        named = f"column{'s' * (len(used) > 1)} {' and '.join(map(repr, used))}"
        own = columns.prediction is None and self.predictions.cut_off is not None
        given = (
            f"Suppose that these {these} are independent draws from one source, that their number was fixed "
            f"without regard to results, and that whatever made the {named}"
            f"{', its cut-off included,' * own} was finished without them, was not chosen by them, and "
            "predicts each row from that row alone. Then"
        )
        limits = (
            " ckcv cannot check these conditions. A second claim made after seeing these figures, or another "
            "group looked at, is not covered."
        )
        return given, "such draws", limits

    def find_rule(self, claim: str) -> Rule:
        """Return the only rule there is."""
        return GIVEN

    def predict(self, rule: Rule) -> Prediction:
        """Return what was predicted."""
        return self._complete(self.predictions.predicted)

    def find_reference(self, label: str) -> tuple[str, Prediction, Ensemble]:
        """Return the other predictions, with their name, and no models, as none are known."""
        return f"the predictions {label!r}", self._complete(self.predictions.against), Ensemble(())

    def _complete(self, label: Numbers | None) -> Prediction:
        n, score = self.predictions.task.n, self.predictions.score
        known = np.full(n, -1, np.int32) if label is None else label
        if self.predictions.empty.any():
            known = np.where(self.predictions.empty, -1, known)
        return Prediction(known, np.full(n, -1), np.full(n, np.nan) if score is None else score, np.ones(n))

    def average(self, predicted: Numbers, claim: Claim) -> float:
        """Return the mean loss of predictions, with rows or groups counted as for a claim."""
        weights = self.predictions.task.units.weigh_rows(self.rows.row_units)
        if claim.quantity.weighs:
            weights = self.weights
        elif not claim.quantity.is_error:
            weights = None
        return float(np.average(self.measure_loss(predicted), weights=weights))

    def count_known(self, claim: Claim) -> Claim:
        """Return a claim with only the wrong rows that have a label: others are wrong only for its bound."""
        empty = int(self.predictions.empty.sum())
        return replace(claim, errors=(claim.errors or 0) - empty) if empty else claim

    def list_quantiles(self) -> list[str]:
        """Return the columns of numbers whose subgroups take their edges from these rows."""
        asked = map(parse_subgroup, self.problem.certification.subgroups)
        kinds = {column.name: column.kind for column in self.predictions.task.schema}
        return [one.column for one in asked if not one.edges and kinds[one.column] is not ColumnKind.CATEGORY]

    def find_interval(self, claim: Claim, delta: float) -> tuple[float, float] | None:
        """Return the two-sided interval of the share measured for a claim; None if there is none.

        For counts it is Clopper-Pearson's, for losses the optimised bet from both sides at delta / 2 each.
        Rows without a label may count as right for the lower end.
        What follows from two recalls has their ends, at delta / 2 for each.
        """
        quantity = claim.quantity
        if claim.bound is None or claim.guaranteed or quantity.width_of is not None:
            return None
        if quantity.made_of:
            positive, y, right = self.problem.positive, self.rows.y, self.predict(GIVEN).label == self.rows.y
            recalls = (right[y == number] for number in (positive, 1 - positive))
            ends = [bound_both_sides(int(np.sum(part)), len(part), delta / 2) for part in recalls]
            low, high = (quantity.compute(*side) for side in zip(*ends, strict=True))
            return low, high
        if quantity.is_binomial and not self.problem.has_losses:
            known, rows = self.count_known(claim), claim.rows or 0
            return bound_both_sides(known.part, rows, delta)[0], bound_both_sides(claim.part, rows, delta)[1]
        if quantity.reference:
            return None
        losses, *_, shares = quantity.count(self, GIVEN)
        high, low = (bound_by_optimised_bet(of, delta / 2, shares) for of in (losses, 1 - losses))
        return 1 - low, high

    def bound_margin(self, claim: Claim) -> float | None:
        """Return how much lower at least the loss is than that of the other predictions; None if not proven.

        It holds beside the share of wins, which is the claim, at the same level: each has half of delta.
        """
        if claim.bound is None or claim.bound >= 0.5:
            return None
        _, other, _ = self.find_reference(claim.quantity.reference)
        labels = self.predict(GIVEN).label, other.label
        _, _, differences = compare_rows(self, *map(self.measure_loss, labels))
        method = BETTING if self.problem.has_losses else COUNTS
        return max(0.0, -bound_difference(differences, claim.delta, method, drawn=False))


def reword(text: str) -> str:
    """Return a sentence about held-out rows as one about all rows of a file."""
    for words in UNUSED:
        text = text.replace(words, "")
    return text

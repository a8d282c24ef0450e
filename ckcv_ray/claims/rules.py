"""How an ensemble classifies rows, and how claims name it: the rule applied is the rule that is claimed.

The mean risk is that of a member drawn independently for each row; the vote errs at most twice as often.
Scores are rounded to ``SCORE_DIGITS`` digits before they are ordered and whenever a row is classified by a
cut-off, since their last bits may depend on which rows are predicted together.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ckcv_ray.core.measures import Output
from ckcv_ray.errors import Classes, Rows, Values, check_choice
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction

MAX_DIGITS = 18
ONE_MODEL = {  # rules of one model, which belongs to no split
    "refit": "the model fitted on the learning rows",
    "full": "the model fitted on all rows",
    "given": "it",  # for a file of predictions, whose premise says what it is
}
SCORE_DIGITS = 12  # digits of a score that count
LARGEST_SCORE = 1e300


class CutOff(NamedTuple):
    """A cut-off of the scores of two classes.

    Attributes:
        value: a row is flagged if its score for the positive class is at least this.
        positive: number of the class of the rows that are flagged, 0 or 1.
    """

    value: float
    positive: int

    def classify(self, score: Values) -> Classes:
        """Return the class of each row, given scores (rows,) that are larger for rows of class 1."""
        flagged = orient_scores(score, self.positive) >= self.value
        return np.where(flagged, self.positive, 1 - self.positive).astype(np.int32)


def orient_scores(score: Values, positive: int) -> Values:
    """Return scores that are larger for rows of the positive class, rounded to ``SCORE_DIGITS`` digits."""
    return round_scores(score if positive == 1 else -score)


def round_scores(score: Values) -> Values:
    """Return scores rounded to ``SCORE_DIGITS`` digits, and zeros without a sign."""
    limited = np.clip(np.where(score == 0, 0.0, score), -LARGEST_SCORE, LARGEST_SCORE)
    exponent = np.floor(np.log10(np.abs(limited), where=limited != 0, out=np.zeros_like(limited)))
    unit = 10.0 ** (SCORE_DIGITS - 1 - np.clip(exponent, -200, 200))
    return np.asarray(np.round(limited * unit) / unit)


def find_member(rule: str) -> int:
    """Return the split whose member a rule such as "member:7" applies; -1 for any other rule."""
    kind, _, digits = rule.partition(":")
    known = kind == "member" and digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
    return int(digits) if known else -1


@dataclass(frozen=True)
class Rule:
    """A way to classify rows.

    Attributes:
        name: "random" (a member drawn independently for each row), "vote" (the majority), "member:7" (the
            member of split 7), "refit" (one model, fitted on all rows that were not held out) or "full" (one
            model, fitted on all rows). As parsed it may also be "auto": the claims of a result decide which
            rule that is (``Result.rule``).
        seed: seed of the draws of "random"; the other rules ignore it.
        repeats: for "random", whether the seed was given, so that every call with it repeats the draws.
        cut_off: the cut-off of the scores, with two classes; None for the learner's own.
    """

    name: str
    seed: int = 0
    repeats: bool = False
    cut_off: CutOff | None = None

    def predict(self, models: Models, X: Rows) -> Prediction:
        """Classify every row of X [rows, d]."""
        ensemble = self.ensemble(models)
        match self.name:
            case "refit" | "full":
                predicted = ensemble.alone(X)
            case "random":
                predicted = ensemble.random(X, self.seed)
            case "vote":
                predicted = ensemble.vote(X)
            case _:
                split = find_member(self.name)
                assert split >= 0, f"{self.name!r} is not resolved"
                predicted = ensemble.by_member(X, np.full(len(X), split))
        if self.cut_off is None:
            return predicted
        return predicted._replace(label=self.cut_off.classify(predicted.score))

    def measure_confidence(self, models: Models, X: Rows) -> Values:
        """Return how confident a rule that draws no member is in each row of X [rows, d]: 0 or more, rounded.

        With two classes it is the distance of the score from the rule's own cut-off, which is 0, with several
        the margin between the two largest scores; for a majority, of the members' mean scores.
        """
        ensemble, split = self.ensemble(models), find_member(self.name)
        members = ensemble.members if split < 0 else ensemble.members[split : split + 1]
        if len(members[0].errors) == 2:
            scores = [member.model.predict(X).score for member in members]
            return round_scores(np.abs(np.mean(scores, axis=0)))
        needs = frozenset({Output.RANKS})
        ranks = np.mean([member.model.predict_outputs(X, needs).rank for member in members], axis=0)
        second, first = np.sort(ranks, axis=1)[:, -2:].T
        return round_scores(first - second)

    def ensemble(self, models: Models) -> Ensemble:
        """Return what the rule classifies with, which must exist."""
        ensemble = {"refit": models.refit, "full": models.full}.get(self.name, models.best)
        assert ensemble is not None
        return ensemble

    def classifier(self) -> str:
        """Return a phrase that names what classifies a row."""
        if self.cut_off is not None:
            return f"{replace(self, cut_off=None).classifier()} with cut-off {self.cut_off.value:.6g}"
        named = ONE_MODEL | {"vote": "the majority vote of F*"}
        named["random"] = "a member of F* drawn independently for each row"
        return named.get(self.name, f"the member of F* fitted on split {find_member(self.name)}")


# the values of ``by``, and what they stand for; for the member of one split, see ``parse_rule``
BY = {name: Rule(name) for name in ("auto", "vote", "random", "refit", "full")}


def parse_rule(by: str) -> Rule:
    """Return the rule that a value of ``by`` names: one of ``BY``, or "member:7".

    Raises:
        InputError: it names no rule.
    """
    if isinstance(by, str) and (split := find_member(by)) >= 0:
        return Rule(f"member:{split}")
    return BY[check_choice("by", by, (*BY, "member:0"))]

"""What is asked of two classifiers on judged rows, what they do there, and what is proven of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.claim import name_loss_bound
from ckcv_ray.claims.percent import at_least, at_most, format_level, nearest
from ckcv_ray.core.bounds.paired import BETTING, COUNTS, MOST_EXPECTED, SIGN, Judgement
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.runs.uses import Counted
from ckcv_ray.storage.uses import MOST_SHARES
from ckcv_ray.validation import integer, number, quote

METHODS = {
    SIGN: "exact sign test",
    COUNTS: "Clopper-Pearson for both counts",
}
BETTER, NOT_WORSE, WORSE, OPEN = "better", "not worse", "worse", "not yet proven"


@dataclass(frozen=True)
class Question:
    """What is asked of two classifiers.

    Attributes:
        no_worse: by how much more often the run may err, such as 0.01; None: it has to be better.
        group: column that says which rows belong together, or several, as for ``read_task``; None if rows are
            independent.
        delta: probability that an answer is proven and false, over all uses among which it is shared.
        uses: among how many uses of the judged rows delta is shared.
    """

    no_worse: float | None = None
    group: str | Sequence[str] | None = None
    delta: float = 0.05
    uses: int = 1

    def __post_init__(self) -> None:
        """Raise InputError if a value is outside its range."""
        if self.no_worse is not None and not 0.0 < number("no_worse", self.no_worse) < 1.0:
            raise InputError(
                f"no_worse={quote(self.no_worse)} is not between 0 and 1: give a share such as 0.01, or "
                "leave it out to ask whether the run is better"
            )
        if not 0.0 < number("delta", self.delta) < 1.0:
            raise InputError(f"delta={quote(self.delta)} is not between 0 and 1: give one such as 0.05")
        integer("uses", self.uses, least=1, most=MOST_SHARES)

    @property
    def shared_delta(self) -> float:
        """The share of delta of one use."""
        return self.delta / self.uses


class Side(NamedTuple):
    """One of the two classifiers on the judged rows."""

    name: str  # folder, or column, for display
    by: str  # says what classifies
    wrong: NDArray[np.bool_]  # which rows are wrong, (rows,)
    predicted: NDArray[Any]  # the labels that it gives, (rows,)
    known: NDArray[np.bool_]  # which rows equal one that it has learned from, label aside, (rows,)
    discrete: bool = False  # whether rows of other examples are often equal in its columns

    def select(self, rows: NDArray[np.bool_]) -> "Side":
        """Return it on some of the rows."""
        return self._replace(wrong=self.wrong[rows], predicted=self.predicted[rows], known=self.known[rows])


@dataclass(frozen=True)
class Comparison:
    """What is measured and proven of a run and another classifier."""

    question: Question
    run: Side
    reference: Side
    errors: tuple[float, float]  # shares of wrong rows; with groups the means of groups' shares
    units: int  # rows, or groups
    verdict: Judgement  # what is proven
    expected: int | None  # units that would about prove what is asked; None if no number is expected to
    counted: Counted  # this use of the rows
    left_out: int  # rows that do not count, since a run has learned from their features
    cautions: tuple[str, ...]  # what may void the proof, and which rows were left out

    @property
    def answer(self) -> str:
        """One of "better", "not worse", "worse" and "not yet proven"."""
        if self.verdict.better:
            return BETTER if self.question.no_worse is None else NOT_WORSE
        return WORSE if self.verdict.worse else OPEN

    @property
    def counts(self) -> tuple[int, int]:
        """The rows that only the other one has wrong, and those that only the run has wrong."""
        first, second = self.run.wrong, self.reference.wrong
        return int(np.sum(second & ~first)), int(np.sum(first & ~second))

    @property
    def unit(self) -> str:
        """The word for a unit."""
        return "row" if self.question.group is None else "group"

    def describe(self) -> list[str]:
        """Return the comparison in a few lines."""
        rows, (only_other, only_run) = len(self.run.wrong), self.counts
        lines = [self._measure(side, i) for i, side in enumerate((self.run, self.reference))]
        lines.append(
            f"of {pluralize(rows, 'row')}, {only_other:,} only {self.reference.name} has wrong, and "
            f"{only_run:,} only {self.run.name}{self._describe_interval()}"
        )
        return [*lines, self.state(), *self.counted.describe(), *self.cautions]

    def state(self) -> str:
        """Return what is proven in one sentence."""
        delta = self.question.shared_delta / 2
        how = f"with probability at least {format_level(delta)} over the judged rows"
        bet = name_loss_bound(self.units, self.unit)
        how += f" ({bet if self.verdict.method == BETTING else METHODS[self.verdict.method]})"
        if self.answer == WORSE:
            return f"proven worse: {self._claim('more often', 'more than')}, {how}"
        claim = self._claim("less often", "at most")
        if self.answer != OPEN:
            return f"proven {self.answer}: {claim}, {how}"
        outlook = (
            f"about {self.expected:,} new {self.unit}s, none of these but like them, are expected to prove it"
            if self.expected is not None
            else f"as measured, no number of {self.unit}s up to {MOST_EXPECTED:,} is expected to prove it"
        )
        return f"not yet proven: that {claim}; {outlook}"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values; what is not known is null."""
        only_other, only_run = self.counts
        sides = {"run": self.run, "other": self.reference}
        return {
            "answer": self.answer,
            "statement": self.state(),
            **{
                name: {"name": side.name, "by": side.by, "error": error, "wrong": int(side.wrong.sum())}
                for (name, side), error in zip(sides.items(), self.errors, strict=True)
            },
            "rows": len(self.run.wrong),
            "rows_left_out": self.left_out,
            "groups": self.units if self.question.group is not None else None,
            "only_other_wrong": only_other,
            "only_run_wrong": only_run,
            "difference": self.errors[0] - self.errors[1],
            "low": self.verdict.low,
            "high": self.verdict.high,
            "method": self.verdict.method,
            "no_worse": self.question.no_worse,
            "delta": self.question.delta,
            "delta_of_each_statement": self.question.shared_delta / 2,
            f"expected_{self.unit}s": self.expected,
            "use": self.counted.to_json(),
            "cautions": list(self.cautions),
        }

    def _measure(self, side: Side, position: int) -> str:
        wrong, rows = int(side.wrong.sum()), len(side.wrong)
        mean = "" if self.question.group is None else f", mean over {pluralize(self.units, 'group')}"
        error = nearest(self.errors[position])
        return f"{side.name}: error {error}{mean} ({wrong:,} of {rows:,} rows wrong), {side.by}"

    def _claim(self, compared: str, limited: str) -> str:
        """Return a phrase that says how often the run errs, compared with the other or with a margin."""
        new = " whose features were not learned from" if self.left_out else ""
        what = f"a new row{new} is misclassified"
        if self.question.group is not None:
            what = f"the rows{new} of a new group are on average misclassified"
        if self.question.no_worse is None:
            return f"{what} {compared} by {self.run.name} than by {self.reference.name}"
        points = 100 * self.question.no_worse
        margin = f"{points:g} percentage point{'' if points == 1 else 's'}"
        return f"{what} {limited} {margin} more often by {self.run.name} than by {self.reference.name}"

    def _describe_interval(self) -> str:
        if self.verdict.low is None or self.verdict.high is None:
            return ""
        low, high = at_least(self.verdict.low), at_most(self.verdict.high)
        return f"; the difference of the errors is between {low} and {high} of the rows"

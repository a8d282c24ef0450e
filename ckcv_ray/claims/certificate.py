"""The certificate of a result: its claims, the counts and bounds behind them, and their conditions.

Its fields, those of ``certificate.json``, hold its origin, the winner, the rows, what was counted for the
models, the claims, and the words.

The baseline, with which bounds are compared, is the error of the constant that always predicts the most
common class of the learning rows (the first of equal ones): nothing else has been seen when it is chosen. Its
error is counted on the rows that a claim rests on. For ``paper`` these are the learning rows, and a bound
that is not below it says nothing beyond the constant; for holdout they are the held-out rows, where it is
either proven or not that a rule errs less often than every constant (``quantity.Gate``).

With groups of related rows, claims are about the groups' error rates, where each group counts once; the
constant's error counts likewise, and the most common class is that which makes it smallest on the learning
rows. With numbers the constant is the median of these, and its error the mean clipped one.

The confusion matrix counts rows over the members of F*, each on its estimate set. These sets share rows, so
the matrix is an estimate like the mean error, not a count of independent rows.

``l_ee`` is the paper's figure and never called a confidence bound: it would be proven for each individual
member if the candidate had been fixed beforehand. It is proven neither for the average member nor after
selection on the same data, and the sentences here say so.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckcv_ray.claims.quantity import Claim, Gate, Risk
from ckcv_ray.errors import (
    OPTIONAL,
    Count,
    Fraction,
    Label,
    Probability,
    Stored,
    cut,
    cut_list,
    floor_percent,
    format_level,
    format_number,
    format_percent,
    pluralize,
    read_as,
    round_bound,
)
from ckcv_ray.records.candidates import Searched
from ckcv_ray.study.parts import Condition

LEARNING, HELD_OUT = "learning rows", "held-out rows"
MAX_OF_LABEL = 60
CountMatrix = tuple[tuple[Count, ...], ...]  # rows by true class (a line) and by predicted class
FREE_TEXT_FIELDS = ("label", "labels", "column", "subgroup", "giveaways")  # the user's names and values
PROVISIONAL = (
    "Provisional: evaluations failed, so a better candidate might have been missed. What is proven still "
    "holds for this one, since it allows for any selection."
)


@dataclass(frozen=True)
class Baseline(Stored):
    """Error of always predicting the most common class of the learning rows, or the median of their numbers.

    Attributes:
        on: the rows it is counted on: "learning rows" or "held-out rows".
        predicted: number of the class predicted, a position in ``labels``; 0 with numbers.
        errors: rows of another class, or with another number.
        rows: number of all these rows.
        error: the error rate, in [0, 1]; with groups, the mean of the groups' error rates; with numbers, the
            mean error as a share of the clip.
        value, clip: for numbers, the one predicted, and the largest error that counts; absent with classes.
    """

    on: str
    predicted: Count
    errors: Count
    rows: Count
    error: Fraction
    value: float | None = field(default=None, metadata=OPTIONAL)
    clip: float | None = field(default=None, metadata=OPTIONAL)

    def describe(self, labels: Sequence[Label]) -> str:
        """Return a clause with the error of the constant, and what it predicts."""
        what = "error" if self.clip is None else "mean error"
        return f"{self.figure}, the {what} of always predicting {self.quote(labels)} on the {self.on}"

    @property
    def figure(self) -> str:
        """The error of the constant: a share of rows, or how far off it is on average."""
        return format_percent(self.error) if self.clip is None else format_number(self.clip * self.error)

    def quote(self, labels: Sequence[Label]) -> str:
        """Return the constant prediction: a label in quotes, or a number."""
        return quote_label(labels[self.predicted]) if self.value is None else format_number(self.value)


def quote_label(label: Label | None) -> str:
    """Return a label in quotes, cut to a maximum length."""
    return cut(repr(label), MAX_OF_LABEL)


class Compared:
    """Claims and the constant that an error has to be below to be quoted."""

    labels: tuple[Label, ...]
    claims: tuple[Claim, ...]
    subgroups: tuple[Claim, ...] | None

    @property
    def baseline(self) -> Baseline:
        """The constant's error on the rows that claims rest on."""
        raise NotImplementedError

    @property
    def first(self) -> Claim:
        """The claim to quote."""
        return self.claims[0]

    def is_worthless(self, claim: Claim) -> bool:
        """Return whether a claim about an error says nothing beyond a constant.

        With a gate this is so unless the rule is proven better than every constant; without one, unless the
        bound is below the constant's error.
        """
        if claim.gate is not None:
            return not claim.gate.passed
        return claim.bound is None or claim.bound >= self.baseline.error

    def describe_gate(self, claim: Claim, gate: Gate) -> str:
        """Return a clause that says that a rule is proven better than every constant, or else a sentence."""
        lost = pluralize(gate.lost, "row")
        if self.labels:
            by_weight = ", by weight," * claim.quantity.weighs
            says = f"errs less often{by_weight} than always predicting any one class"
            label = quote_label(self.labels[gate.predicted])
            counts = f"wrong alone: {lost}; always {label} alone: {gate.won:,}"
        else:
            constant = f"always predicting {self.baseline.quote(self.labels)}"
            says, counts = f"is off by less than {constant}", f"further off: {lost}; {constant}: {gate.won:,}"
        if gate.passed:
            return f"{says}: proven, within the same {format_level(claim.delta)} ({counts})"
        unable = ", and these rows cannot prove it, even with none wrong" * (gate.least >= 0.5)
        return (
            f"The bound {claim.limit} ({claim.classifier}) is a figure, not to be quoted alone: that "
            f"it {says} is not proven{unable} ({counts})."
        )

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if a claim is about an error and says nothing beyond a constant; else ""."""
        if not claim.quantity.guarded or not self.is_worthless(claim):
            return ""
        if claim.gate is not None:
            return self.describe_gate(claim, claim.gate)
        constant = self.baseline.describe(self.labels)
        return f"The bound {claim.limit} is not below {constant}: it says nothing beyond that."

    def refuse(self, claim: Claim) -> str:
        """Return a sentence that says why a claim may not be quoted; "" if it may."""
        if claim.bound is None:
            return claim.statement
        if not claim.quantity.is_error and not claim.says_something:
            return f"The {claim.name} is proven to be {claim.says}, which says nothing."
        return self.doubt(claim)

    def describe_guesses(self) -> list[str]:
        """Return a sentence for each quantity that a constant, or a guess, would reach as well.

        Guessing has an AUC of one half, and recalls that add up to 1 whatever the shares of its guesses; a
        single recall is reached by always predicting its class.
        """
        statements = [said for claim in self.claims if (said := claim.quantity.doubt(claim))]
        recalls = dict[str, list[Claim]]()
        for claim in self.claims:
            if claim.quantity.by_class and claim.bound is not None:
                recalls.setdefault(claim.classifier, []).append(claim)
        for made in recalls.values():
            proven = fsum(1 - (claim.bound or 0.0) for claim in made)
            if len(made) < len(self.labels):
                statements += [
                    f"Always predicting {quote_label(claim.label)} reaches any {claim.name}: quote it with "
                    "the recalls of all other classes."
                    for claim in made
                ]
            elif proven <= 1:
                statements.append(
                    f"The recalls proven by {made[0].certification} add up to {floor_percent(proven)}: "
                    "together they say nothing beyond a guess, whose recalls add up to 100 %."
                )
        return statements


@dataclass(frozen=True, kw_only=True)
class Certificate(Compared, Stored):
    """The claims of a result; identical in every value wherever and however the run was made.

    Attributes:
        run_id: identifies the study and the data.
        certification: name of the study's certification.
        seed, salt: what all draws are made from: see ``core.draws``.
        digests: SHA-256 of the data and of the files with candidates and models.
        provisional: whether evaluations failed, so that a better candidate may have been missed. Every claim
            still holds: each allows for any selection among the candidates.
        setting, k: the candidate.
        n_splits, n_select, n_train: its splits, rows of a select or estimate set, rows of TR; with groups,
            the number of groups in these sets.
        criterion: what was minimised: "error", "balanced", "cost" or "mean_error", for numbers "clipped";
            every claim is about the error.
        bound, delta: what l_ee is computed with ("loss" where losses are not counts, "none" for a mean
            error), and the delta of the study.
        l_ms, l_ee: the criterion on the select and estimate sets; for "error" the paper's means.
        search: what the search left open; absent in the file of a race, which leaves nothing open.
        n_rows, n_held: rows of the full table, and how many of them are held out, 0 if none.
        repeats: rows that equal another one in every column that does not number the rows (with groups, one
            in another group).
        labels, class_rows: the original label of each class, and its rows in the full table.
        baselines: error of always predicting the most common class, on the learning rows and, if rows were
            held out, on the held-out rows.
        groups: for a task with groups the "column" that names them, their "count", how many are "held" out,
            and "losses": the sum over the groups of each split's estimate set of the share of wrong rows, or
            of the mean of its rows' clipped errors divided by the clip, each rounded up to a multiple of
            2**-32.
        numbers: where numbers are predicted, the "clip", the largest error that counts, and "losses": the sum
            over the rows of each split's estimate set of the clipped error divided by it, each rounded up to
            a multiple of 2**-20; with groups, their losses.
        giveaways: columns of the learning rows that give the target away; absent in the file if none does.
        errors: wrong rows in each split's estimate set; 0 with numbers.
        error: mean error rate of the members on their estimate sets: estimated, not proven; with groups, mean
            of the groups' error rates; with numbers, mean error as a share of the clip.
        by_class: for each class its wrong rows ("errors") and all its "rows", summed over all estimate sets,
            and the mean over the splits of its Clopper-Pearson "bound" (null with groups, whose rows are
            related).
        constants: for each model that was right only about rows of one class, though scored on several, that
            class; null for one that was right about rows of more classes. Listed for the "members" of F* on
            their estimate sets, and for the model "refit" on the held-out rows, null also without this model.
        confusion: with three or more classes, the rows of all estimate sets by their class (one list each)
            and the class that their split's member predicts; those it is undecided on are in no column.
            Absent in the file of a task with two classes, for which ``by_class`` says the same.
        claims: every proven claim, each valid by itself with its own delta.
        bound_without_copies: what the bound of the first is if rows that equal another have the same origin,
            and one of each is counted; the bound itself if there are none; None if nothing can be claimed.
        subgroups: what is proven of subgroups, and what was counted; absent in the file if none were named.
        statements: the claims, and what to know before quoting them.
        assumptions, not_covered: the conditions of the claims.
    """

    run_id: str
    certification: str
    seed: int
    salt: str
    digests: dict[str, str]
    provisional: bool
    setting: dict[str, Any]
    k: int
    n_splits: Count
    n_select: Count
    n_train: Count
    criterion: str
    bound: str
    delta: Probability
    l_ms: Fraction
    l_ee: Fraction
    search: Searched | None = field(default=None, metadata=OPTIONAL)
    n_rows: Count
    n_held: Count
    repeats: Count
    labels: tuple[Label, ...]
    class_rows: tuple[Count, ...]
    baselines: tuple[Baseline, ...]
    groups: dict[str, Any] | None = field(default=None, metadata=OPTIONAL)
    numbers: dict[str, Any] | None = field(default=None, metadata=OPTIONAL)
    giveaways: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    errors: tuple[Count, ...]
    error: Fraction
    by_class: tuple[dict[str, Any], ...]
    constants: dict[str, Any]
    confusion: CountMatrix | None = field(default=None, metadata=OPTIONAL)
    claims: tuple[Claim, ...]
    bound_without_copies: Risk | None
    subgroups: tuple[Claim, ...] | None = field(default=None, metadata=OPTIONAL)
    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """Create a certificate from the values that ``to_json`` returned.

        Raises:
            ValueError: a field is missing, unknown, of another type, outside its range, or holds control
                characters.
        """
        certificate = read_as(cls, values)
        left: list[Any] = [values]  # a text could control a terminal; some are the user's own
        while left:
            match left.pop():
                case str() as text if not text.isprintable():
                    raise ValueError(f"it holds control characters: {text!r}")
                case dict() as inner:
                    left.extend(value for name, value in inner.items() if name not in FREE_TEXT_FIELDS)
                case list() | tuple() as inner:
                    left.extend(inner)
        return certificate

    @property
    def baseline(self) -> Baseline:
        """The baseline that claims are compared with: the one on the rows that they rest on."""
        return self.baselines[-1]

    def explain_lack_of_cut_off(self, required: Condition) -> str:
        """Return a sentence that says why no cut-off was chosen for a condition; "" if one was."""
        about = (claim for claim in self.claims if str(claim.quantity) == required.name)
        return next((claim.statement for claim in about if claim.bound is None), "")

    @property
    def class_totals(self) -> tuple[int, ...]:
        """Rows of each class in all estimate sets."""
        return tuple(counts["rows"] for counts in self.by_class)

    def tabulate(self) -> NDArray[np.int64]:
        """Return counts of the rows of all estimate sets by class and prediction, (n_classes, n_classes + 1).

        The last column counts rows that their split's member is undecided on; of two classes these are wrong.
        """
        totals, matrix = np.array(self.class_totals), self.confusion
        if matrix is None:
            (first, second) = self.by_class
            right = [counts["rows"] - counts["errors"] for counts in self.by_class]
            matrix = ((right[0], first["errors"]), (second["errors"], right[1]))
        return np.column_stack([matrix, totals - np.sum(matrix, axis=1)])

    def list_cautions(self) -> list[str]:
        """Return a sentence for each reason not to rely on what is proven, or not to use F*."""
        (first, *others), held, units, unit = self.claims, self.n_held, self.n_rows, "row"
        if self.groups is not None:
            held, units, unit = self.groups["held"], self.groups["count"], "group"
        alone = (first, *(claim for claim in others if claim.gate is not None))
        said = [caution for claim in alone if (caution := self.doubt(claim))]
        if self.giveaways:
            listed = ", ".join(cut_list([cut(repr(name), MAX_OF_LABEL) for name in self.giveaways], "more"))
            said.append(f"Columns that give the target away, unless known for a new row: {listed}.")
        said += self.describe_guesses()
        members, refit = self.constants["members"], self.constants["refit"]
        of_class = Counter(number for number in members if number is not None)
        if 2 * of_class.total() >= len(members):
            listed = ", ".join(f"{quote_label(self.labels[n])}: {of_class[n]:,}" for n in sorted(of_class))
            said.append(
                f"{of_class.total():,} of {len(members):,} members of F* are right only about rows of one "
                f"class ({listed}): they are no better than a constant."
            )
        if refit is not None:
            said.append(
                f"The model refit is right only about held-out rows of {quote_label(self.labels[refit])}: it "
                "is no better than a constant."
            )
        said += describe_held_share(held, units, unit)
        if first.gate is None and first.quantity.is_error and not self.is_worthless(first):
            lack = "That this is better than a constant is not proven"
            said.append(f"{lack}: it takes held-out rows (--certify holdout).")
        return said + self.describe_repeats()

    def describe_repeats(self) -> list[str]:
        """Return a list of one sentence if rows equal another row: how much of what is proven remains."""
        if not self.repeats:
            return []
        origin = "if they have the same origin (one patient, one document)"
        instead = replace(self.first, bound=self.bound_without_copies)
        says = f"{origin}, nothing here is proven"
        if instead.says_something:
            limits = f"{instead.says} instead of {self.first.limit}"
            says = f"{origin} and are counted once, the first claim is {limits}"
        equal = describe_equal_rows(self.repeats, self.n_rows, self.groups is None)
        return [f"{equal}: {says}."]


def describe_least(least: float, clip: float | None) -> str:
    """Return the least value that a criterion could still have: in percent, or for numbers in their units."""
    return floor_percent(least) if clip is None else round_bound(clip * least, up=False)


def describe_equal_rows(repeats: int, rows: int, independent: bool = True) -> str:
    """Say how many rows equal another one, as a clause; with groups, one in another group."""
    another = "another row" if independent else "a row of another group"
    return f"{repeats:,} of {rows:,} rows equal {another} in every column that does not number the rows"


def describe_held_share(held: int, units: int, unit: str) -> list[str]:
    """Return a list of one sentence if more than two thirds of the units are held out, else an empty one."""
    part = f"{held:,} of {units:,} {unit}s are held out, more than two thirds"
    return [f"{part}: few are left to learn from."] if 3 * held > 2 * units else []

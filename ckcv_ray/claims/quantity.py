"""Claims, and the base of the quantities that are claimed: what is proven of a rule, in numbers and in words.

A quantity is a class, one file for each family. It counts, bounds, words, sizes and compares itself; all
other code iterates over claims. A claim has its sentence: what it assumes, how sure it is, what is proven,
how. It is counted from each rule's predictions for the held-out rows, which are made once for all claims.

Claims are accompanied by two-sided exact intervals of what was measured on held-out rows, which people expect
with an estimate. The number of wrong rows of a classifier that is fixed without them is binomial, and two
Clopper-Pearson bounds at delta / 2 contain the probability with a probability of at least 1 - delta. Each
interval holds by itself, several of them do not hold jointly, and none is a claim of the study. There are
none where counts are not binomial: scored rows of cross validation, rows of groups, a recall at a cut-off
that was chosen on the same rows.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil
from sys import float_info
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from ckcv_ray.claims.rules import CutOff, Rule
from ckcv_ray.core.bounds.betting import MAX_OPTIMISED, bound_losses
from ckcv_ray.core.bounds.binomial import (
    MAX_ROWS,
    MIN_DELTA,
    bound_in_order,
    clopper_pearson,
    count_without,
    find_first,
)
from ckcv_ray.core.quantities import Declared, parse_quantity
from ckcv_ray.errors import (
    ONE,
    OPTIONAL,
    Count,
    Fraction,
    Index,
    InputError,
    Label,
    Limited,
    Mask,
    Numbers,
    Probability,
    Stored,
    Values,
    ceil_percent,
    cut,
    floor_percent,
    format_level,
    format_percent,
    pluralize,
)
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.study.parts import Condition, Holdout
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.tables.task import Task, TestRows

NOTHING = "Nothing can be claimed for"  # begins the sentence of a claim that lacks rows
METHOD = re.compile(r" \(([^()]*(\([^()]*\)[^()]*)*)\)\.(?= |$)")  # ends the first sentence of a statement
CLOPPER_PEARSON = "Clopper-Pearson"
SAME_RATE = "assuming the same error rate (then with probability about one half)"
MIN_OF_SUBGROUP = 10  # rows of a claimed subgroup: fewer prove no error below a quarter
MOST_OF_UNLIKE = 0.25  # largest level at which Clopper-Pearson bounds the mean of unlike probabilities
LIKE_THESE = (
    " A new row is one like these, of the same source, period and way of collection: nothing is said of rows "
    "that do not meet the condition, of later periods if the source changes, or of rows that are related."
)
MAX_OF_VALUE = 80  # characters of a value in a message
DECIMAL_TOLERANCE = 1e-12  # for a value that was written in decimals

Shares = TypeVar("Shares", float, Values)
Made = TypeVar("Made")
Phrase = str | tuple[str, str]  # the second of two is for groups of rows
Risk = Annotated[float, Limited(ge=0, le=float_info.max)]


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions for the rows that certify, by each rule that is claimed.

    Attributes:
        problem: the problem that was solved.
        models: the models of the run.
        copies: number of held-out rows, or groups, that do not count as independent, not known which.
        part_of_wins: part of the delta of a claim that a share of wins has.
    """

    problem: Problem
    models: Models
    copies: int = 0
    part_of_wins: ClassVar[float] = 1.0
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def without(self, copies: int) -> "HeldOutPredictions":
        """Return the same predictions, made once for both, with this many copies."""
        others = replace(self, copies=copies)
        others._made.update(self._made)
        return others

    def make_once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, which is called only at the first request for this key."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    @property
    def rows(self) -> TestRows:
        """The held-out rows, which must exist."""
        held = self.make_once("rows", self.problem.take_held_rows)
        assert held is not None
        return held

    @property
    def delta(self) -> float:
        """The delta of each of the claims among which the study's delta is divided."""
        return self.problem.study.delta_of_claim

    @cached_property
    def order(self) -> Index:
        """Positions of the held-out units, counted among these by number, in the order drawn."""
        return self.problem.order_held_units()

    @property
    def weights(self) -> Values:
        """The weights of the held-out rows, which must have some, (rows,)."""
        assert self.problem.held is not None
        weights = self.problem.all_rows.weighting.take(self.problem.held)
        assert weights is not None
        return weights

    @property
    def drawn(self) -> bool:
        """Whether the order of the units was drawn, independently of everything else."""
        return self.problem.certification.where is None

    def bound_losses(self, losses: Values, delta: float, shares: Values | None = None) -> float:
        """Return the bound on the mean loss, from those of held-out units; see ``betting.bound_losses``."""
        return bound_losses(losses, delta, shares, self.copies, self.drawn)

    def bound_wrong(self, wrong: Mask, delta: float) -> tuple[float, str]:
        """Return the bound on the probability that a unit, or pair, is wrong, and its name.

        Which are wrong is in the order of the draw; where some are copies, their positions are not used.
        """
        certification = self.problem.certification
        stevens = isinstance(certification, Holdout) and certification.holdout_bound == "stevens"
        if stevens and not self.copies:
            return bound_in_order(wrong, delta), "Stevens by positions in the order of the draw"
        bound = bound_count(int(np.sum(wrong)), len(wrong), delta, self.copies, self.drawn)
        return bound, CLOPPER_PEARSON

    def state_premise(self, of_counts: bool) -> tuple[str, str, str]:
        """Return what is assumed about the held-out rows; what is ``of_counts`` takes only independence.

        These are the words that begin a statement, what its probability is over, and what it does not say.
        """
        units, where = self.problem.task.units, self.problem.certification.where
        if where is None:
            of = units.word("examples", "groups of rows")
            return f"Assuming independent {of} from one source", "data and splits", ""
        these = f"{pluralize(len(self.order), units.word('row', 'group'))} with {where.describe()}"
        independent = "independent of each other and of the learning rows"
        if not (of_counts and units.independent and self.delta <= MOST_OF_UNLIKE):
            independent = "independent draws of one source, drawn independently of the learning rows"
        given = f"Assuming that the {these} are {independent}, and that the condition was named before"
        return f"{given} anything of them was seen", "the drawing of such rows", LIKE_THESE

    def measure_loss(self, predicted: Numbers) -> Values:
        """Return the loss of each held-out row: 1 if it is wrong, or its clipped error by the clip."""
        y = self.rows.y
        by_row = self.problem.measure(np.arange(len(y)))  # each row is a unit, also where rows are groups
        return np.asarray(by_row.measure_losses(y, predicted) / ONE)

    @property
    def constants(self) -> Sequence[float]:
        """What constants predict: each class, or for numbers the median of the learning rows."""
        task = self.problem.task
        if self.problem.clip is None:
            return range(task.n_classes)
        weights = task.units.weigh_rows(task.row_units)
        if weights is None:
            return [float(np.median(task.y))]
        # for groups: the smallest number that half do not exceed
        return [float(np.quantile(task.y, 0.5, weights=weights, method="inverted_cdf"))]

    def find_rule(self, claim: str) -> Rule:
        """Return the rule that a claim by this name is about: for a quantity, the first rule named."""
        named = claim not in self.problem.certification.quantities
        return Rule(claim if named else self.problem.certification.rule_of_quantities)

    def predict(self, rule: Rule) -> Prediction:
        """Return what a rule predicts for the held-out rows."""
        return self.make_once(rule, lambda: rule.predict(self.models, self.rows.X))

    def predict_probabilities(self, rule: Rule) -> Values:
        """Return the probability of each class for the held-out rows, (rows, n_classes)."""
        member, ensemble = self.predict(rule).member, rule.ensemble(self.models)
        return self.make_once(("probabilities", rule), lambda: ensemble.probabilities(self.rows.X, member))

    def find_reference(self, label: str) -> tuple[str, Prediction, Ensemble] | None:
        """Return the model of a learner that the winner is compared with: its name, predictions, and itself.

        It is None if the learner has no model.
        """
        models = () if self.models.references is None else self.models.references.members
        for member in models:
            setting = {**self.problem.learner.codec.setting(member.model)}
            if setting.pop(LABEL) == label:
                one = Ensemble((member,))
                name = f"the best of {label} ({Candidate(setting, member.k)}), fitted on the same rows"
                return name, self.make_once(("reference", label), partial(one.alone, self.rows.X)), one
        return None


@dataclass(frozen=True)
class Gate(Stored):
    """Whether a rule is proven better than every constant; unless it is, its bound is only a figure.

    Attributes:
        predicted: number of the class that the least favourable constant predicts; 0 with numbers, for which
            there is one constant, the median of the learning rows.
        lost, won: rows that only the rule gets wrong, and those that only the constant does; for numbers,
            rows on which the rule, and on which the constant, is further off.
        bound: upper bound on the share of losses against this constant, at the delta of the claim: the rule
            is proven better than every constant if it is below 1/2.
        least: what it would be for the least favourable constant if the rule got no row wrong.
    """

    predicted: Count
    lost: Count
    won: Count
    bound: Fraction
    least: Fraction

    @property
    def passed(self) -> bool:
        """Whether the rule is proven better than every constant."""
        return self.bound < 0.5


@dataclass(frozen=True)
class Claim(Stored):
    """A bound on the risk of one rule that holds with probability 1 - delta, selection included.

    Attributes:
        quantity: what is claimed, such as the error, at most ``bound``, or a recall, at least 1 - ``bound``.
        classifier: name of the rule ("refit", "vote" or "random", see ``rules.Rule``).
        bound: upper bound on its risk, in [0, 1]: on the probability that a new row is misclassified; by
            class, a new row of this class; for auc, that a new pair of rows is not in order; for numbers, a
            share of the clip, or for "within:0.9" in units of the target. None: nothing can be claimed, and
            the statement says why.
        delta: probability, over data and splits, with which the bound may fail.
        statement: the claim in words.
        certification: "paper" or "holdout".
        label: label of the class that it is about; None for error, auc and comparisons.
        errors, rows: what was counted for it: wrong rows and all rows, by class those of this class, for auc
            pairs, summed over the estimate sets of all members; at a cut-off that was chosen for this class,
            the rows that it may miss; for a comparison, the rows that only the rule gets wrong, and those
            that only one of the two does; for "within:0.9", those further off; None for what follows from
            other claims, and for a mean error of numbers.
        measured: for a mean of losses, that of the rows counted, as a share of the largest loss; else None.
        cut_off: the cut-off of the scores from which on a row is classified as positive, if one was chosen.
        guaranteed: whether the cut-off was chosen for this claim: ``errors`` are the rows that it may miss.
        least_confidence: the confidence from which on a row is answered, if something is proven of such rows.
        gate: the gate of an error that is bounded by all held-out rows; else None.
        subgroup: name of the subgroup of rows that it is about, such as "sex = f" or "41.5 <= age < 60".
    """

    quantity: "Quantity"
    classifier: str
    bound: Risk | None
    delta: Probability
    statement: str
    certification: str = Holdout.name
    label: Label | None = None
    errors: Count | None = None
    rows: Count | None = None
    measured: Fraction | None = field(default=None, metadata=OPTIONAL)
    cut_off: float | None = field(default=None, metadata=OPTIONAL)
    guaranteed: bool = field(default=False, metadata=OPTIONAL)
    least_confidence: Risk | None = field(default=None, metadata=OPTIONAL)
    gate: Gate | None = field(default=None, metadata=OPTIONAL)
    subgroup: str | None = field(default=None, metadata=OPTIONAL)

    def __str__(self) -> str:
        """Return what is proven in a few words: "sensitivity (recall of 'sick') at least 90.12 %"."""
        return f"{self.name} {self.says}"

    @property
    def name(self) -> str:
        """A phrase that names what is claimed: "error", "sensitivity (recall of 'sick')", "AUC"."""
        return self.quantity.name_of(self.label)

    @property
    def limit(self) -> str:
        """The number that it states, rounded to the safe side."""
        return self.quantity.format(self.risk)

    @property
    def says(self) -> str:
        """What is proven, without its name: "at most 5.00 %"."""
        return f"{self.quantity.side} {self.limit}"

    @property
    def held_out(self) -> bool:
        """Whether it is proven by held-out rows."""
        return self.certification == Holdout.name

    @property
    def risk(self) -> float:
        """The bound, or if there is none the one that says nothing."""
        return self.quantity.largest if self.bound is None else self.bound

    @property
    def says_something(self) -> bool:
        """Whether the bound is not trivial: an error below 1, a recall above 0."""
        return self.risk < self.quantity.largest

    @property
    def part(self) -> int:
        """The number of its rows that are wrong, or right if it is at least a limit."""
        wrong, rows = self.errors or 0, self.rows or 0
        return wrong if self.quantity.at_most else rows - wrong

    @property
    def rate(self) -> str:
        """What was measured for it: the share of its rows, or a mean; "–" if nothing was."""
        return "–" if self.share is None else self.quantity.format_measured(self.share)

    @property
    def share(self) -> float | None:
        """What was measured for it, in [0, 1]: the share of its rows, or a mean; None if nothing was."""
        return self.part / self.rows if self.measured is None and self.rows else self.measured

    @property
    def comparison(self) -> str:
        """What a comparison with another learner proves, and what was counted, in a few words."""
        if self.bound is None:
            return self.statement
        proven = "proven" if self.bound < 0.5 else "not yet proven"
        counts = f"{self.part:,} held-out rows won, {self.errors or 0:,} lost"
        return f"{proven} better than {self.quantity.reference}: {counts}; share of wins {self.says}"

    @property
    def method(self) -> str:
        """How it was obtained, and from what counts, as its statement ends; "" if nothing can be claimed."""
        found = None if self.bound is None else METHOD.search(self.statement)
        return "" if found is None else found[1]

    def covers(self, rule: Rule) -> bool:
        """Return whether it is about the predictions of a rule."""
        cut_off = None if rule.cut_off is None else rule.cut_off.value
        return (self.classifier, self.cut_off) == (rule.name, cut_off)

    def shares_rule(self, other: "Claim") -> bool:
        """Return whether both are about the same rule: if not, figures side by side have to say so."""
        return (self.classifier, self.cut_off) == (other.classifier, other.cut_off)

    def make_rule(self, problem: Problem) -> Rule:
        """Return the rule that it is about, with the cut-off that was chosen for it."""
        cut_off = None if self.cut_off is None else CutOff(self.cut_off, problem.positive)
        return Rule(self.classifier, cut_off=cut_off)

    def state(self, says: str, method: str, premise: tuple[str, str, str]) -> "Claim":
        """Return it with its sentence: what it assumes, its delta, what it says, and how it was obtained."""
        given, over, limits = premise
        sure = f"with probability at least {format_level(self.delta)} over {over}"
        return replace(self, statement=f"{given}, {sure}, {says} ({method}).{limits}")

    def check(self, name: str, labels: Sequence[Label], of_subgroup: bool = False) -> None:
        """Raise ValueError if it is impossible: its class does not exist, say, or too many rows are wrong."""
        quantity, label, gate = self.quantity, self.label, self.gate
        of_class = quantity.by_class or bool(quantity.made_of)
        guarded = quantity.guarded and self.held_out and not of_subgroup
        can_be = {
            "subgroup": of_subgroup == (self.subgroup is not None),
            "rows": self.rows is not None or not of_subgroup,
            "label": label in (labels if of_class else [None]),
            "bound": self.risk <= quantity.largest,
            "delta": self.delta >= MIN_DELTA,  # else no bound could be computed
            "errors": (self.errors is None) == (self.rows is None) and (self.errors or 0) <= (self.rows or 0),
            "measured": quantity.is_mean == (self.measured is not None),
            "gate": guarded == (gate is not None) and (not gate or gate.predicted < max(1, len(labels))),
        }
        for field_name, possible in can_be.items():
            if not possible:
                value = cut(repr(getattr(self, field_name)), MAX_OF_VALUE)
                raise ValueError(f"{name}.{field_name}: {value} cannot be of the {quantity}")


class Counts(NamedTuple):
    """What was counted on the held-out rows for a claim.

    Attributes:
        losses: loss of each independent unit, in [0, 1], in the order drawn, (units,); for a quantity with a
            bound of its own, what it needs of each, such as the distance of a prediction.
        errors, rows: as in ``Claim``.
        measured: likewise.
        shares: what each unit counts for, in [0, 1], (units,); None if all count the same.
    """

    losses: Values
    errors: int | None = None
    rows: int | None = None
    measured: float | None = None
    shares: Values | None = None


class Need(NamedTuple):
    """What it takes for a claim to say something, and what there will be; known before a run."""

    claim: str  # its quantity
    delta: float  # probability with which it may fail
    of: str  # which rows count for it: "held-out rows of class 'ill'"
    rows: int  # how many of them to expect
    needed: int  # how many it takes at least, with none of them wrong
    lines: list[str]  # in words


class Quantity(Declared):
    """What can be claimed of a rule, by rows that nothing else used.

    A family overrides ``count``, and whatever differs from a mean of independent losses; one that yields
    several claims overrides ``claim``. ``docs/contributing/claims.md`` shows how to add one.

    A ``Phrase`` is formatted with the ``claim``, the ``task``, ``who`` classifies its rows, "{0}" for the
    first argument, and ``two`` classes, the positive one last.

    Attributes:
        states: what is proven, as a clause.
        quoted: the same for the first screen.
        seen: what was counted, on ``rows`` held out in ``units`` that are drawn independently, and by which
            ``bound`` it is proven.
        measured_as: what was measured: {part} of {rows} rows ``on``, which is the {rate}, or a {mean}.
        guarded: whether a claim may be quoted only if its rule is proven better than every constant.
        is_mean: whether it is a mean of losses, which is ``measured``.
        is_binomial: whether its errors are binomial, given its rows, where rows are independent.
        of_flagged: whether it is counted on the rows that are classified as positive.
        largest: the bound that says nothing.
        lack: why nothing is proven where nothing is counted, as the end of a sentence; by default what was.
        caution: a sentence beside whatever is proven of it; "" for none.
        usual: bounds for which a plan says how many rows they take, where the study asks for none.
        width_of: the share of new rows for which it says how far off they are; None if it does not.
        prevalence, worth: for what follows from recalls, the share of the positive class, and the probability
            from which on a row is flagged; else None.
    """

    states: ClassVar[Phrase] = "the {claim.name} of {who} is {claim.says}"
    quoted: ClassVar[Phrase] = "{claim.name} is {claim.says}"
    seen: ClassVar[Phrase] = (
        "{claim.rate} on {units:,} previously unused rows, {bound}",
        "{claim.rate} on {rows:,} rows of {units:,} previously unused groups, {bound}",
    )
    measured_as: ClassVar[Phrase] = "{rate} ({part:,} of {rows:,} {on} right)"
    guarded: ClassVar[bool] = False
    is_mean: ClassVar[bool] = False
    is_binomial: ClassVar[bool] = False
    of_flagged: ClassVar[bool] = False
    largest: ClassVar[float] = 1.0
    lack: ClassVar[str] = ""
    caution: ClassVar[str] = ""
    usual: ClassVar[Sequence[float]] = ()
    width_of: float | None = None
    prevalence: float | None = None
    worth: float | None = None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Read it from its name, and write it as its name."""
        from pydantic_core import core_schema  # pydantic is imported where files are read

        return core_schema.no_info_after_validator_function(read_quantity, core_schema.str_schema())

    @property
    def of_counts(self) -> bool:
        """Whether its errors are binomial, given its rows, whatever each row's own chance of an error."""
        return self.is_binomial and (self.is_error or self.by_class)

    @property
    def side(self) -> str:
        """The side of the limit that it is proven to be on: "at most", or "at least"."""
        return "at most" if self.at_most else "at least"

    def name_of(self, label: Label | None) -> str:
        """Return a phrase that names it, with its class if it is about one."""
        if label is None or not self.by_class:
            return self.title
        return f"{self.title} (recall of {label!r})" if self.two_classes else f"{self.title} of {label!r}"

    def format(self, bound: float) -> str:
        """Format the limit that a bound on the risk implies, rounded to the safe side."""
        return ceil_percent(bound) if self.at_most else floor_percent(1 - bound)

    def format_measured(self, mean: float) -> str:
        """Format what was measured for it, as a share of the largest loss."""
        return format_percent(mean)

    def count(self, held: HeldOutPredictions, rule: Rule) -> Counts:
        """Return what the held-out rows show about it."""
        raise NotImplementedError

    def bound(self, held: HeldOutPredictions, counts: Counts) -> tuple[float | None, str]:
        """Return the bound on the risk, and its name: by counts where these are binomial, else by betting.

        It is None if nothing is proven.
        """
        if not len(counts.losses):
            return None, "and nothing can be counted"
        if self.is_binomial and not held.problem.has_losses:
            return held.bound_wrong(counts.losses > 0, held.delta)
        bound = held.bound_losses(counts.losses, held.delta, counts.shares)
        return bound, name_loss_bound(len(counts.losses), held.problem.task.unit, held.drawn)

    def word(self, phrase: Phrase, claim: Claim, task: Task, **values: object) -> str:
        """Return a phrase about a claim, for rows like those of a task."""
        chosen = phrase if isinstance(phrase, str) else task.units.word(*phrase)
        return chosen.format(*self.shown, claim=claim, task=task, **values)

    def claim(self, held: HeldOutPredictions, rule: Rule) -> Iterator[Claim]:
        """Yield the claims that its name stands for.

        Args:
            held: the held-out rows, and the models.
            rule: what classifies them.
        """
        counts, task = self.count(held, rule), held.problem.task
        (bound, name), (losses, errors, rows, measured, _) = self.bound(held, counts), counts
        claim = Claim(self, rule.name, bound, held.delta, "", errors=errors, rows=rows, measured=measured)
        seen = self.word(self.seen, claim, task, rows=len(held.rows.y), units=len(losses), bound=name)
        yield self.conclude(claim, held, f"holdout: {seen}", "" if len(losses) else self.lack)

    def conclude(self, claim: Claim, held: HeldOutPredictions, method: str, lack: str = "") -> Claim:
        """Return a claim with its sentence: what is proven, or why nothing is.

        Args:
            claim: a claim about it.
            held: the held-out rows, and the models.
            method: how the bound was obtained, and from what counts.
            lack: why nothing is proven, if so, as the end of a sentence; by default the method.
        """
        who = claim.make_rule(held.problem).classifier()
        if lack or claim.bound is None:
            said = f"{NOTHING} the {claim.name} of {who}: {lack or f'{method}.'}"
            return replace(claim, bound=None, statement=said)
        task = held.problem.task
        two = task.classes if held.problem.positive else task.classes[::-1]
        says = self.word(self.states, claim, task, who=who, two=two)
        return claim.state(says, method, held.state_premise(self.of_counts))

    def measure(self, claim: Claim, on: str, mean: float, task: Task) -> str:
        """Say what was measured of what a claim is about; "" if nothing was.

        Args:
            claim: a claim about it.
            on: names the rows that were counted: "held-out rows".
            mean: the measured error of the claim's rule on these rows; for groups, the mean of theirs.
            task: what the rows are like.
        """
        if (claim.measured is None and not claim.rows) or (self.answers and claim.bound is None):
            return ""
        counts = {"part": claim.part, "rows": claim.rows or 0, "rate": claim.rate}
        return self.word(self.measured_as, claim, task, on=on, mean=format_percent(mean), **counts)

    def compute(self, sensitivity: Shares, specificity: Shares) -> Shares:
        """Return what follows from two recalls in [0, 1], elementwise; it increases in both."""
        raise NotImplementedError

    def choose_cut_off(self, held: HeldOutPredictions, rule: Rule) -> tuple[CutOff | None, str, int]:
        """Return the cut-off of a rule's scores that the study requires, or else why none qualifies.

        The last is the number of rows of its class that a recall may miss at this cut-off, which count as
        missed, and for a predictive value that of the cut-offs tested on the same rows.
        """
        raise NotImplementedError

    def scale(self, value: float) -> float:
        """Return the bound on the risk that corresponds to the value of a condition."""
        return value if self.at_most else 1 - value

    def find_least(self, claim: Claim, units: int, has_losses: bool) -> float:
        """Return a lower bound on the risk at the delta of a claim, for ``decide``; 0 if none is known."""
        if has_losses or not self.is_binomial or claim.errors is None or not claim.rows:
            return 0.0
        return 1 - bound_count(claim.rows - claim.errors, claim.rows, claim.delta)

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if a constant, or a guess, would reach what a claim proves; else ""."""
        return "" if claim.bound is None else self.caution

    def foresee(self, problem: Problem) -> Iterator[Need]:
        """Yield what its claims take, and what there will be, before anything is drawn or fitted."""
        held = HeldOutPredictions(problem, Models())
        yield self.need(problem, lambda n: self.bound(held, self.count_flawless(problem, n))[0])

    def need(
        self,
        problem: Problem,
        best: Callable[[int], float | None] | None = None,
        delta: float | None = None,
        label: Label | None = None,
        of: str = "",
        share: float = 1.0,
        most: int = MAX_ROWS,
    ) -> Need:
        """Return what it takes for a claim to reach the value that the study asks for, or the usual ones.

        Args:
            problem: what is to be solved.
            best: returns the bound that this many rows prove if none is wrong, None for nothing; by default
                that on a share of wrong rows.
            delta: probability with which the claim may fail; by default its share.
            label: label of the class that it is about, if any.
            of: says which of the held-out rows count, after "held-out rows"; by default those of the class.
            share: share of the rows of the table that count.
            most: largest number of rows to consider.
        """
        table, asked = problem.all_rows, self.find_asked(problem)
        held, delta = table.n_units - problem.task.n_units, delta or problem.study.delta_of_claim
        rows, units = int(share * held), f"held-out {table.unit}s{of}"
        bad = table.target.word("wrong", "off")
        if label is not None:
            units += f" of class {label!r}"

        def prove(n: int) -> float:
            bound = bound_count(0, n, delta) if best is None else best(n)
            return self.largest if bound is None else bound

        first = f"{self.name_of(label)}, with probability {format_level(delta)}: {self.side} "
        first += f"{self.format(prove(rows))} if none of {'about ' * (share < 1)}{rows:,} {units} is {bad}"
        lines, takes = [first], list[int]()
        for bound in self.usual if asked is None else [asked[1]]:
            needed = find_first(lambda n, limit=bound: prove(n) <= limit, 1, most)  # type: ignore[misc]
            line = f"  {self.side} {self.format(bound)}: not before {needed:,} {units}, none of them {bad}"
            if needed > rows:
                in_all = ceil(needed / (held / table.n_units * share))
                line += f"; expected in a table of {in_all:,} {table.unit}s"
            lines.append(line)
            takes.append(needed)
        return Need(str(self), delta, units, rows, min(takes, default=1), lines)

    def count_flawless(self, problem: Problem, n: int) -> Counts:
        """Return what n units show about it if none is wrong and they are like the learning units."""
        return Counts(np.zeros(n))

    def find_asked(self, problem: Problem) -> tuple[str, float] | None:
        """Return the option by which a study asks for a value of it, and the bound that this takes.

        For example "require=ppv:0.02>=0.3" and 0.7; None if there is no such option.
        """
        required = problem.required
        if required is None or required.name != str(self):
            return None
        return f"require={required}", self.scale(required.value)

    def check(self, problem: Problem) -> None:
        """Raise InputError if the value that a study asks for takes more rows than will be held out."""
        if (asked := self.find_asked(problem)) is None:
            return
        for need in self.foresee(problem):
            if need.rows < need.needed:
                raise InputError(
                    f"{asked[0]} takes at least {need.needed:,} {need.of}, and {need.rows:,} are expected: "
                    "hold out more (holdout_share), ask for less, or take more rows"
                )


def read_quantity(name: str) -> Quantity:
    """Return the quantity that a claim in a file is about.

    Raises:
        ValueError: the quantity is not known here.
    """
    quantity = parse_quantity(name)
    if quantity is None:
        raise ValueError(f"the quantity {name!r} is not known here")
    return cast(Quantity, quantity)


def name_loss_bound(m: int, unit: str, drawn: bool = True) -> str:
    """Return what bounds the mean loss of m units, each a "row" or a "group", whose order was ``drawn``."""
    if m <= MAX_OPTIMISED or not drawn:
        return f"optimised bet on the {unit}s"
    return f"betting on the {unit}s in the order drawn"


def bound_count(wrong: int, units: int, delta: float, copies: int = 0, one_law: bool = True) -> float:
    """Return Clopper-Pearson's bound without ``copies`` of the units, right ones if there are that many.

    Independent units that are not of ``one_law`` have unlike probabilities, whose mean this bounds, except
    where one unit is right, which has a larger bound (docs/theory/bounds.md, "Held out by a column").
    """
    left = count_without(copies, units)
    bound = float(clopper_pearson(min(wrong, left), left, delta))
    return bound if one_law or wrong != left - 1 else max(bound, 1 - delta / left)


class Acceptance(NamedTuple):
    """Whether what is proven meets a condition of the study."""

    condition: Condition
    met: bool
    refuted: bool  # whether the contrary is proven, at the same level
    proven: str  # what is proven of its quantity, in words


def decide(condition: Condition, claims: Sequence[Claim], units: int, has_losses: bool) -> Acceptance:
    """Return whether a condition is met by the first claim about its quantity, for every class.

    Args:
        condition: a condition of the study's certification.
        claims: the claims of the certificate, in their order.
        units: how many independent rows, or groups, were held out.
        has_losses: whether units have losses, instead of being right or wrong.
    """
    about = [
        claim
        for claim in claims  # errors without their clip, which conditions leave out
        if condition.name in (str(claim.quantity), claim.quantity.name if claim.quantity.is_error else "")
    ]
    first = [claim for claim in about if claim.classifier == about[0].classifier]  # one for each class
    met = refuted = False
    if first:
        quantity = first[0].quantity
        allowed = quantity.scale(condition.value) + DECIMAL_TOLERANCE
        met = all(claim.bound is not None and claim.bound <= allowed for claim in first)
        fixed = [claim for claim in first if claim.held_out and claim.cut_off is None]
        refuted = any(quantity.find_least(claim, units, has_losses) > allowed for claim in fixed)
    proven = ", ".join(map(str, first))
    return Acceptance(condition, met, refuted, f"proven {proven}" if proven else "nothing is proven of it")


def format_ends(low: float, high: float) -> str:
    """Format an interval, rounded outwards: "68.36 % to 81.90 %"."""
    return f"{floor_percent(low)} to {ceil_percent(high)}"


def describe_intervals(delta: float) -> str:
    """Return the sentence that says what intervals at this level are."""
    return (
        f"exact {format_level(delta)} intervals (Clopper-Pearson, two-sided), each by itself and not "
        "jointly; they are about what was measured, and are not claims"
    )


def is_fixed_for(quantity: str, required: Condition | None) -> bool:
    """Return whether a cut-off that was chosen for a condition is fixed given the rows of other classes.

    A cut-off chosen for a recall depends only on the rows of its class; one for a predictive value, on all.
    """
    return required is not None and required.kind.by_class and required.name != quantity

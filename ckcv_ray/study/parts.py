"""Parts of a study as frozen values: searches, which select settings, and certifications.

Certifications are sources of claims, with conditions on what is proven; the proofs are in ``claims``.

References: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013, and
Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016
(successive halving: equal budgets for rounds with ever fewer candidates); Maron, Moore, "Hoeffding races",
NIPS 1993 (racing on common splits).
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import Any, ClassVar, NamedTuple, Self

from ckcv_ray import errors
from ckcv_ray.core import quantities
from ckcv_ray.core.options import HasOptions, Option, option
from ckcv_ray.core.quantities import Declared, find_quantity, list_quantities, parse_positive, parse_quantity
from ckcv_ray.errors import InputError, check_choice, expect, inner_share, number, quote, sequence

ONE, EACH = "one", "each"
RACE_WORK = 2.3e13  # units^3 times candidates, up to which "auto" races: 1,300 units, 143 settings, all k
EFFORT_PER_SETTING, EFFORT_PER_SPLIT = 10, 40  # of the default effort

_check_count = partial(errors.integer, least=1, most=errors.MOST)
EXHAUSTIVE = Option(errors.boolean, "Also compute what is provably beaten.", bool, panel="Search")
EFFORT = Option(
    _check_count,
    "Evaluations that a budget allows; a larger number continues a run folder.",
    int,
    "10 for each setting, and 40 for each split",
    "Search",
    may_grow=True,
)


@dataclass(frozen=True)
class Search(HasOptions):
    """How candidates are compared: the base of every search.

    Attributes:
        report_k: values of k whose own best candidate and l_ee are reported in addition to the winner's.
    """

    name: ClassVar[str]
    exhaustive = False  # an option where there is a choice

    report_k: tuple[int, ...] = option(
        (), partial(errors.folds, least=0), "Values of k whose best is reported too, such as 5,10."
    )

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> "Search":
        """Return the search that this one stands for, given how much is searched: itself."""
        return self


@dataclass(frozen=True)
class Race(Search):
    """Minimise a criterion over settings and fold sizes; drop a candidate once it is provably beaten.

    Attributes:
        exhaustive: compute every evaluation of both stages instead of dropping what is provably beaten.
    """

    name: ClassVar[str] = "race"

    exhaustive: bool = option(False, EXHAUSTIVE)


@dataclass(frozen=True)
class Budget(Search):
    """Minimise a criterion within a number of evaluations, in rounds with ever fewer candidates.

    Early rounds compare all settings at one fold size, on few splits and where necessary on part of the rows;
    those that are left are then compared at several fold sizes; the last round is a race, on all splits, of
    the few that look best. What a round computes depends only on the complete results of the rounds before.
    The answer is not that of ``Race``: it may remain unknown whether some candidates are better. Such
    candidates are counted, and what is proven about the winner holds in any case.

    Attributes:
        report_k: as in ``Search``; these values take part in every round.
        effort: evaluations that may be computed; None for the default. It may be raised in a run folder.
        keep: share of the settings that each early round keeps, in (0, 1).
        survivors: number of settings at which the early rounds end.
        least_splits: number of splits below which an early round takes fewer rows instead.
    """

    name: ClassVar[str] = "budget"

    effort: int | None = option(None, EFFORT)
    keep: float = option(
        1 / 3, inner_share, "Share of settings that an early round keeps.", float, inside="search"
    )
    survivors: int = option(
        4, _check_count, "Number of settings at which the early rounds of a budget end.", int, inside="search"
    )
    least_splits: int = option(
        5, _check_count, "Splits below which rounds fit on fewer rows.", int, inside="search"
    )

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> "Budget":
        """Return the search with the effort that the default stands for."""
        default = EFFORT_PER_SETTING * settings + EFFORT_PER_SPLIT * n_splits
        return self if self.effort is not None else replace(self, effort=default)


@dataclass(frozen=True)
class Auto(Search):
    """The search that suits the number of units and of candidates: exact where that is cheap.

    Attributes:
        exhaustive: compute every evaluation, which makes it a race.
        effort: evaluations that may be computed, which makes it a budget; None for what suits.
    """

    name: ClassVar[str] = "auto"

    exhaustive: bool = option(False, EXHAUSTIVE)
    effort: int | None = option(None, EFFORT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exhaustive and self.effort is not None:
            raise InputError(
                f"exhaustive computes everything, and effort={self.effort} limits it: leave one of them out"
            )

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> Race | Budget:
        """Return the search that this one stands for.

        Args:
            units: number of rows, or groups, to learn from.
            settings, sizes: numbers of settings and of fold sizes, whose product is the number of candidates.
            n_splits: largest number of splits of a fold size.
        """
        cheap = float(units) ** 3 * settings * sizes <= RACE_WORK
        if self.effort is None and (self.exhaustive or cheap):
            return Race(self.report_k, self.exhaustive)
        return Budget(self.report_k, self.effort).resolve(units, settings, sizes, n_splits)


WHERE_FORM = re.compile(r"\s*([^<>=]*[^<>=\s])\s*(=|>=|>)\s*(\S.*?)\s*")
CONDITION_FORM = re.compile(r"\s*([^<>=\s]+)\s*(>=|<=|:)\s*([^\s:]+)\s*")


class Condition(NamedTuple):
    """A condition on what is proven.

    Attributes:
        name: of a claim; "error" for that of the first one.
        value: the least or the largest allowed, in (0, 1); for numbers, positive and in units of the target.
        kind: the class of the quantity that it is about.
    """

    name: str
    value: float
    kind: type[Declared]

    def __str__(self) -> str:
        return f"{self.name}{'<=' if self.kind.at_most else '>='}{self.value:g}"


def parse_condition(option: str, text: str, known: Collection[str] = ()) -> Condition:
    """Parse a condition such as "sensitivity>=0.9", "sensitivity:0.9", or for numbers "clipped<=20".

    Args:
        option: of the study, for messages.
        text: the condition.
        known: the names that are allowed, for messages; empty for all.

    Raises:
        InputError: it is not one, or has the wrong side: errors are at most a value, all else at least.
    """
    found = CONDITION_FORM.fullmatch(text)
    name, sign, value = found.groups() if found else (text.strip(), "", "")
    kind = find_quantity(name)
    if kind is None or (known and kind.name not in known):
        names = known or ("error", *(kind.form() for kind in list_quantities()))
        listed = ", ".join(names) + errors.suggest(name, names)
        raise InputError(f"{option}={quote(text)}: {name} is not known here: choose from {listed}")
    right, example = ("<=", 20 if kind.of_numbers else 0.05) if kind.at_most else (">=", 0.9)
    arguments = 0 if kind.is_error else kind.form().count(":")
    if not sign or (sign == ":" and name.count(":") < arguments):
        raise InputError(
            f"{option}={quote(text)} lacks its value: a shell takes {right[0]} for itself, so quote it, as "
            f"'{text}{right}{example}', or write {text}:{example}"
        )
    if sign not in (right, ":"):
        word = "most" if kind.at_most else "least"
        raise InputError(
            f"{option}={quote(text)}: what is proven of {name} is that it is at {word} a value: write "
            f"{name}{right}{value}"
        )
    if kind.is_error and name != kind.name:
        raise InputError(
            f"{option}={quote(text)}: the clip is an option of its own: write {kind.name}<={value}"
        )
    below = inf if kind.of_numbers else 1.0
    limit = parse_positive(f"{option}={text}", value, f"{name}{right}{example}", below)
    return Condition(name if kind.is_error else str(kind.parse(name, option)), limit, kind)


HOLDOUT_BOUNDS = ("clopper_pearson", "stevens")
CLAIMS = ("refit", "vote")
MAX_HALVED_ROWS = 400  # up to here, auto holds out half of the rows
AUTO, HALF, THIRD = "auto", 0.5, 0.33
MIN_HELD_OUT = 10  # rows, or groups: fewer prove nothing useful


class Where(NamedTuple):
    """A condition on a column, by which rows are held out: "site=B", "date>=2025-01-01"."""

    column: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}{self.sign}{self.value}"

    def describe(self) -> str:
        """Return it as a part of a sentence: "site = 'B'"."""
        return f"{self.column} {self.sign} {self.value!r}"


class Certification(HasOptions):
    """A source of claims; its proof is in ``claims.certify``.

    Attributes:
        name: short name.
        claim, positive, accept, require, subgroups, answer, holdout_where: what is requested of it, as in
            ``Holdout``; by default nothing.
    """

    name: ClassVar[str]
    panel: ClassVar[str] = "Certificate"

    claim: tuple[str, ...] = ()
    positive: str | None = None
    accept: tuple[str, ...] = ()
    require: str = ""
    subgroups: tuple[str, ...] = ()
    answer: str = ""
    holdout_where: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        required, claims = self.required, self.claim
        kinds = {name: find_quantity(name) for name in claims}
        about = [name for name, kind in kinds.items() if kind is not None and kind.answers]
        if about and not self.answer:
            raise InputError(
                f"claim={about[0]} is about the rows that are answered, and nothing says which are: add "
                "answer=error<=0.05"
            )
        if required and claims == CLAIMS[:1]:
            claims = ()  # with a cut-off, only what is proven at it is claimed unless more is named
        # added are what is required, recalls that others are made of, and claims about answered rows
        value = (required.name,) if required and required.kind.made_of else ()
        needed = required.kind.brings if required else ()
        parts = [name for kind in kinds.values() if kind is not None for name in kind.made_of]
        answered = [kind.name for kind in list_quantities() if kind.answers] if self.answer else []
        claims = tuple(dict.fromkeys((*claims, *value, *needed, *parts, *answered)))
        object.__setattr__(self, "claim", claims)
        of_two = [name for name, each in self.quantities.items() if each.by_class and each.two_classes]
        if of_two and "recall" in self.claim:
            other = f"require={self.require}" if self.require else f"claim={of_two[0]}"
            raise InputError(
                f"claim=recall is of every class, {of_two[0]} included: leave out recall or {other}"
            )
        rules = set(self.claim) - set(self.quantities) or not self.claim
        for condition in self.accepted:
            of_error = condition.kind.is_error
            if not (rules if of_error else condition.name in self.claim):
                lacks = f"{CLAIMS[0] if of_error else condition.name} to the claims"
                lacks = "answer=error<=0.05" if condition.kind.answers else lacks
                beside = f" beside require={self.require}" if self.require else ""
                raise InputError(f"accept={condition} is about what is not claimed{beside}: add {lacks}")

    @cached_property
    def quantities(self) -> dict[str, Declared]:
        """The quantities among the claims, by name; the other names are those of rules."""
        named = {name: parse_quantity(name) for name in self.claim}
        return {name: quantity for name, quantity in named.items() if quantity is not None}

    @property
    def rule_of_quantities(self) -> str:
        """The rule that the quantities among the claims are about: the first one named."""
        return next((name for name in self.claim if name not in self.quantities), CLAIMS[0])

    @property
    def weighs_rows(self) -> bool:
        """Whether an error weighted by the weights of rows is claimed."""
        return any(quantity.weighs for quantity in self.quantities.values())

    @property
    def accepted(self) -> tuple[Condition, ...]:
        """The conditions without which the result is not accepted."""
        return tuple(parse_condition("accept", text) for text in self.accept)

    @property
    def required(self) -> Condition | None:
        """The condition that the cut-off is chosen for; None for the learner's own cut-off."""
        return parse_condition("require", self.require) if self.require else None

    @property
    def answering(self) -> Condition | None:
        """The condition on the error of the rows that are answered; None if all are."""
        return parse_condition("answer", self.answer) if self.answer else None

    @property
    def where(self) -> Where | None:
        """The condition by which rows are held out; None if they are drawn."""
        found = WHERE_FORM.fullmatch(self.holdout_where)
        return None if found is None else Where(*found.groups())

    @property
    def scope(self) -> str:
        """A clause that names the condition, after what is proven of such rows alone; "" if there is none."""
        return "" if self.where is None else f", for rows with {self.where.describe()}"

    def canonical(self, n: int) -> Self:
        """Return the canonical form for n rows, the same for all equivalent certifications."""
        return self


def _accept(name: str, value: Any) -> tuple[str, ...]:
    texts = sequence(name, value.split(",") if isinstance(value, str) else value, least=0, kind="conditions")
    parsed = (parse_condition(name, str(text)) for text in texts if str(text).strip())
    return tuple(dict.fromkeys(map(str, parsed)))


ACCEPT = Option(
    _accept, "What must be proven, such as specificity>=0.6; else exit code 5 (proven not to hold) or 6."
)


@dataclass(frozen=True)
class Paper(Certification):
    """Certification from the run's own counts: each candidate gets a share of delta. It costs nothing.

    Attributes:
        accept: conditions such as "error<=0.2" on what is proven, without which the result is not accepted.
    """

    name: ClassVar[str] = "paper"

    accept: tuple[str, ...] = option((), ACCEPT)


def _share(name: str, value: Any) -> float | str:
    if isinstance(value, str) and value == AUTO:
        return AUTO
    try:
        share = number(name, float(value) if isinstance(value, str) else value)
    except ValueError:
        raise InputError(f"{name}={quote(value)}: expected a share such as 0.33, or {AUTO}") from None
    return inner_share(name, share)


def _claims(name: str, value: Any) -> tuple[str, ...]:
    listed = sequence(name, value.split(",") if isinstance(value, str) else value, least=0, kind="names")
    named = (str(parse_quantity(c) or c) if isinstance(c, str) else quote(c) for c in listed)
    claims = tuple(dict.fromkeys(named)) or CLAIMS[:1]
    for claim in claims:
        kind = find_quantity(claim)
        if claim not in CLAIMS and (kind is None or kind.is_error):
            check_choice(name, claim, (*CLAIMS, *(kind.form() for kind in list_quantities())))
    return claims


def _condition(name: str, value: Any, known: Collection[str]) -> str:
    expect(name, value, str, "one condition, such as 'sensitivity>=0.9' or 'error<=0.05'")
    return str(parse_condition(name, value, known)) if value else ""


def _where(name: str, value: Any) -> str:
    expect(name, value, str, "a condition such as 'site=B'")
    if not value.strip():
        return ""
    if (found := WHERE_FORM.fullmatch(value)) is None:
        raise InputError(
            f"{name}={quote(value)}: expected a column and a value, site=B, or of times and numbers "
            "date>=2025-01-01, which holds out the later ones"
        )
    return "".join(found.groups())


def _label(name: str, value: Any) -> str:
    expect(name, value, str | bool | int | float, "a label of the target, such as 'sick' or 1")
    return str(value)


CLAIM_HELP = (
    "What is certified; several as a,b share delta. Errors of refit (one model), vote; sensitivity, "
    "specificity, recall, auc; at a prevalence ppv:0.02, npv:0.02, net_benefit:0.02:0.1; better:svm; "
    "weighted_error:4; for numbers within:0.9."
)


@dataclass(frozen=True)
class Holdout(Certification):
    """Certification on a share of the rows, held out from selection and fitting.

    Attributes:
        holdout_share: that share, in (0, 1); "auto": half of up to 400 rows, or groups; a third of more.
        claim: what these rows certify. Rules, by their error: "refit" (one model at the selected setting,
            fitted on all other rows), "vote" (the majority of F*).
            Quantities of the first rule named, or of "refit": "sensitivity", "specificity" (two classes),
            "recall" (of every class), "auc" (two classes); at a stated share of the positive class,
            "ppv:0.02", "npv:0.02", "net_benefit:0.02:0.1" (with the probability from which on a row is worth
            flagging), which follow from the recalls. "better:svm": that it errs less often than one model of
            another learner of the study, at that learner's own best setting, fitted on the same rows as
            "refit". "weighted_error:4": the error where patterns occur in proportion to the weights of the
            task, none of which is ever above 4. delta is shared equally among the rules, the recalls
            together, the AUC, each weighted error, and the comparisons. For numbers: the rules, by their
            clipped error, without "vote"; and "within:0.9", how far off nine in ten new rows are at most,
            each with a share of its own.
        positive: label of the class that sensitivity and the ROC curve are for; None for the second, sorted.
        require: condition such as "sensitivity>=0.9" or "specificity>=0.95", for which the cut-off of the
            scores is chosen on the rows held out, with its guarantee; the recalls are those at this cut-off.
            Without other claims they are all that is claimed. Or a predictive value such as "ppv:0.02>=0.3",
            at the prevalence 0.02, or "npv:0.02>=0.99", for which cut-offs fixed on the other rows
            are tested in a fixed sequence; it has half of the delta of the recalls. "" for the learner's own
            cut-off.
        accept: conditions such as "specificity>=0.6" on what is proven, without which the result is not
            accepted; for numbers, in units of the target, "clipped<=20" on the mean error, and
            "within:0.9<=30".
        subgroups: columns such as "sex" or "age:4", whose groups of rows are certified as well: their error,
            and their recalls; with numbers to predict, their mean error. For a column of numbers, the groups
            are bins of about equal numbers of learning rows, by default ``USUAL_BINS``. All subgroups
            together have an equal share of delta.
        holdout_bound: the bound on what is counted on these rows: "clopper_pearson", or "stevens", which is
            tighter, as it uses the positions of the wrong rows in the order of the draw.
        answer: condition such as "error<=0.05" on the rows that are answered: those with the greatest
            confidence, from a threshold on that is tested on the rows held out. Adds the claims
            "answered_error" and "answered_share", with one share of delta; alone they have all of it if
            ``claim`` names one of them. "" to answer all rows.
        holdout_where: condition on a column, such as "site=B", "role=test", or for times and numbers
            "date>=2025-01-01", by which rows are held out instead of drawn. It is named before anything about
            them is seen. The column is not learned from unless it is named among the features.

    Raises:
        InputError: a field has the wrong type or is out of range.
    """

    name: ClassVar[str] = "holdout"

    holdout_share: float | str = option(
        AUTO, _share, "Share held out; auto: half of up to 400 rows, else a third."
    )
    claim: tuple[str, ...] = option(CLAIMS[:1], _claims, CLAIM_HELP)
    positive: str | None = option(
        None,
        _label,
        "Label of the positive class, for sensitivity, ROC and figures.",
        default_text="the second in sorted order",
    )
    require: str = option(
        "",
        lambda name, value: _condition(name, value, [kind.name for kind in list_quantities() if kind.brings]),
        "Cut-off with this proven: sensitivity>=0.9, specificity, or at a prevalence ppv:0.02>=0.3 or npv.",
    )
    accept: tuple[str, ...] = option((), ACCEPT)
    subgroups: tuple[str, ...] = option(
        (), quantities.parse_subgroups, "Columns whose groups are certified too: sex,age:4 (in 4 bins)."
    )
    holdout_bound: str = option(
        HOLDOUT_BOUNDS[0],
        partial(check_choice, allowed=HOLDOUT_BOUNDS),
        "Bound from held-out rows: clopper_pearson, or stevens (tighter, by their order of draw).",
    )
    holdout_where: str = option(
        "", _where, "Hold out by a column, named before any look: site=B, date>=2025-01-01."
    )
    answer: str = option(
        "",
        partial(_condition, known=("error",)),
        "Answer only confident rows, with error<=0.05 proven for them.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.require and self.answer:
            raise InputError(
                f"answer={self.answer} is about the learner's own cut-off of scores, and require="
                f"{self.require} chooses another one on the same rows: leave one of them out"
            )
        drawn = {"holdout_share": AUTO, "holdout_bound": HOLDOUT_BOUNDS[0]}
        for name, usual in drawn.items() if self.holdout_where else ():
            if (value := getattr(self, name)) != usual:
                raise InputError(
                    f"{name}={value} is for rows that are drawn, and holdout_where={self.holdout_where} "
                    "names them: leave one of them out"
                )

    def canonical(self, n: int) -> Self:
        """Return the certification with the share that "auto" stands for."""
        if self.holdout_share != AUTO or self.holdout_where:
            return self
        return replace(self, holdout_share=HALF if n <= MAX_HALVED_ROWS else THIRD)

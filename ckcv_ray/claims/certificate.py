"""The certificate of a result: its claims, the counts and bounds behind them, and their conditions.

It has six parts: where it comes from, the winner, the rows, what was counted of the models, the claims, and
the words. Each checks what a file says of it, given the parts before it. In ``certificate.json`` the fields
of all parts are one flat object: only ``to_json`` and ``from_json`` know that.

The confusion matrix counts rows over the members of F*, each on its estimate set. These sets share rows, so
that the matrix is an estimate like the mean error, not a count of independent rows.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from math import fsum, inf
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict from Python 3.12 on

from ckcv_ray.claims.baseline import (
    Baseline,
    ScoredConstants,
    check_baseline_class,
    check_baselines,
    describe_constants,
    describe_error,
    name_constant,
    quote_label,
)
from ckcv_ray.claims.quantity import Claim, Gate, SubgroupClaim
from ckcv_ray.claims.wording import (
    L_EE_IS,
    describe_equal_rows,
    describe_giveaways,
    describe_held_share,
)
from ckcv_ray.core.percent import ceil_percent, floor_percent, format_level
from ckcv_ray.core.schedule import Stage
from ckcv_ray.errors import pluralize
from ckcv_ray.learners.ensemble import Ensemble, Models, check_predicted
from ckcv_ray.records.candidates import Searched
from ckcv_ray.study.parts import Condition
from ckcv_ray.study.problem import Candidate, Problem
from ckcv_ray.tables.columns import Label
from ckcv_ray.validation import STRICT, Count, Fraction, check_part, check_probability, read_as

CountMatrix = tuple[tuple[int, ...], ...]  # rows by their class (a line) and by the class predicted
P = TypeVar("P", bound="CertificatePart")


class Mistake(NamedTuple):
    """Rows of one class that are predicted as another.

    Attributes:
        actual, predicted: class numbers; None if undecided.
        rows: how many; share: of the rows of the actual class.
    """

    actual: int
    predicted: int | None
    rows: int
    share: float


class ClassCounts(TypedDict):
    """Wrong rows and all rows of one class, summed over all estimate sets, and the mean bound.

    With groups the bound is null: rows of one group are related, so Clopper-Pearson does not hold.
    """

    errors: Count
    rows: Count
    bound: Fraction | None


class GroupCounts(TypedDict):
    """The groups of rows that belong together.

    Attributes:
        column: the column that names them.
        count: groups in the full table.
        held: groups held out, 0 if none.
        losses: sum over the groups of each split's estimate set of the share of wrong rows, or of the mean
            of its rows' clipped errors divided by the clip, each rounded up to a multiple of 2**-32.
    """

    column: str
    count: Count
    held: Count
    losses: tuple[float, ...]


class NumberCounts(TypedDict):
    """The errors of predicted numbers.

    Attributes:
        clip: the largest error that counts, in units of the target.
        losses: sum over the rows of each split's estimate set of the clipped error divided by ``clip``, each
            rounded up to a multiple of 2**-20; with groups their losses.
    """

    clip: float
    losses: tuple[float, ...]


@dataclass(frozen=True)
class CertificatePart:
    """A part of a certificate: read from a file, it has no other fields, at any depth, and no other types."""

    __pydantic_config__: ClassVar = {**STRICT, "extra": "forbid"}


@dataclass(frozen=True)
class Origin(CertificatePart):
    """What a certificate is made from.

    Attributes:
        run_id: identifies the study and the data.
        certification: name of the study's certification.
        seed, salt: what all draws are made with: see ``core.draws``.
        digests: SHA-256 of the data and of the files with candidates and models.
    """

    run_id: str
    certification: str
    seed: int
    salt: str
    digests: dict[str, str]


@dataclass(frozen=True)
class Winner(CertificatePart):
    """The candidate that was selected, its splits, and the criterion that selected it.

    Attributes:
        provisional: whether evaluations failed, so that a better candidate might have been missed. Every
            claim still holds: each allows for any selection among the candidates.
        setting, k: the candidate.
        n_splits, n_select, n_train: its splits, rows of a select or estimate set, rows of TR; with groups,
            the number of groups in these sets.
        criterion: what was minimised: "error", "balanced", "cost" or "mean_error", of numbers "clipped";
            every claim is about the error.
        bound, delta: what l_ee is computed with ("loss" where losses are no counts, "none" for a mean
            error), and the delta of the study.
        l_ms, l_ee: the criterion on the select and estimate sets; for "error" the paper's means.
        search: what the search left open; absent in the file of a race, which leaves nothing open.
    """

    provisional: bool
    setting: dict[str, Any]
    k: int
    n_splits: Count
    n_select: Count
    n_train: Count
    criterion: str
    bound: str
    delta: float
    l_ms: Fraction
    l_ee: Fraction
    search: Searched | None = None

    def check(self) -> None:
        """Raise ValueError if the criterion or its bound is not known, or a value is outside its range."""
        if self.criterion not in L_EE_IS:
            raise ValueError(f"criterion {self.criterion!r} is not known")
        if self.bound not in L_EE_IS[self.criterion]:
            raise ValueError(f"bound {self.bound!r} is not known")
        check_probability("delta", self.delta)
        if self.search is not None:
            left, candidates = self.search["not_excluded"], self.search["candidates"]
            check_part("search.not_excluded", left, candidates, "candidates")


@dataclass(frozen=True)
class Sample(CertificatePart):
    """The rows of a run.

    Attributes:
        n_rows, n_held: rows of the full table, and how many of them are held out, 0 if none.
        repeats: rows that equal another in every column that does not number the rows (with groups: one of
            another group).
        labels, class_rows: the original label of each class, and its rows in the full table.
        baselines: error of always predicting the most common class, on the learning rows and, if rows were
            held out, on these.
        groups: the groups of the task; absent in the file of a task without groups.
        numbers: the errors of F* where numbers are predicted; absent in the file of a task with classes.
        giveaways: columns of the learning rows that give the target away; absent in the file if none does.
    """

    n_rows: Count
    n_held: Count
    repeats: Count
    labels: tuple[Label, ...]
    class_rows: tuple[Count, ...]
    baselines: tuple[Baseline, ...]
    groups: GroupCounts | None = None
    numbers: NumberCounts | None = None
    giveaways: tuple[str, ...] | None = None

    @property
    def baseline(self) -> Baseline:
        """The baseline that claims are compared with: that on the rows that they rest on."""
        return self.baselines[-1]

    def check(self) -> None:
        """Raise ValueError if the rows of classes, groups or baselines are not those of one table."""
        n_classes, rows = len(self.labels), self.class_rows
        if (self.numbers is None) != bool(n_classes):
            raise ValueError("numbers: they are given where there are no labels, and only there")
        if self.numbers is not None and not 0 < self.numbers["clip"] < inf:
            raise ValueError("numbers.clip: it is not positive and finite")
        in_all = self.n_rows if n_classes else 0
        if len(rows) != n_classes or sum(rows) != in_all:
            raise ValueError(
                f"class_rows: expected {n_classes}, one for each class, with the sum {self.n_rows}"
            )
        check_part("n_held", self.n_held, self.n_rows, "rows")
        check_part("repeats", self.repeats, self.n_rows, "rows")
        check_baselines(self.baselines, self.n_rows, n_classes, self.n_held > 0)
        if self.groups is not None:
            check_part("groups.held", self.groups["held"], self.groups["count"], "groups")


@dataclass(frozen=True)
class ModelCounts(CertificatePart):
    """What was counted of the models.

    Attributes:
        errors: wrong rows in each split's estimate set; 0 with numbers.
        error: mean error rate of the members on their estimate sets: estimated, not proven; with groups, of
            the groups' error rates; with numbers, mean error as a share of the clip.
        by_class: for each class its wrong rows and all its rows, summed over all estimate sets, and the
            mean over the splits of its Clopper-Pearson bounds (null with groups).
        constants: for each split the number of the class that its member predicts for every learning row;
            None if it predicts more than one.
        refit_constant: the same of the model refit; None also if there is no such model.
        scored_constants: the same of the rows that each model was scored on, where it is wrong about some.
        confusion: with three or more classes, the rows of all estimate sets by their class (one list each)
            and the class that their split's member predicts; those it is undecided on are in no column.
            Absent in the file of a task with two classes, for which ``by_class`` says the same.
    """

    errors: tuple[Count, ...]
    error: Fraction
    by_class: tuple[ClassCounts, ...]
    constants: tuple[int | None, ...]
    refit_constant: int | None
    scored_constants: ScoredConstants
    confusion: CountMatrix | None = None

    @property
    def class_totals(self) -> tuple[int, ...]:
        """Rows of each class in all estimate sets."""
        return tuple(counts["rows"] for counts in self.by_class)

    @property
    def confusion_matrix(self) -> CountMatrix:
        """Rows of all estimate sets by class and predicted class; of two classes, the undecided are wrong."""
        errors = [counts["errors"] for counts in self.by_class]
        if not errors:  # numbers
            return ()
        return self.confusion or derive_confusion(errors, self.class_totals)

    @property
    def undecided(self) -> int:
        """Rows of all estimate sets that their split's member is undecided on; 0 with two classes."""
        return sum(self.class_totals) - sum(map(sum, self.confusion_matrix))

    @property
    def constant(self) -> bool:
        """Whether each member of F* predicts a single class for every learning row."""
        return None not in self.constants

    def list_mistakes(self) -> list[Mistake]:
        """Return which classes are predicted as which others, the largest share of a class first."""
        return list_mistakes(self.confusion_matrix, self.class_totals)

    def check(self, winner: Winner, sample: Sample) -> None:
        """Raise ValueError if there is not one count for each split and class, or one is impossible."""
        n_classes, n_splits, groups = len(sample.labels), winner.n_splits, sample.groups
        if len(self.by_class) != n_classes:
            raise ValueError(f"by_class: expected {n_classes}, one for each class")
        self._check_classes(grouped=groups is not None)
        if len(self.errors) != n_splits:
            raise ValueError(f"errors: expected {n_splits}, one for each split")
        for split, errors in enumerate(self.errors):
            rows = winner.n_select if groups is None else sample.n_rows
            check_part(f"errors.{split}", errors, rows, "rows")
        if groups is not None:
            if len(groups["losses"]) != n_splits:
                raise ValueError(f"groups.losses: expected {n_splits}, one for each split")
            for split, loss in enumerate(groups["losses"]):
                check_part(f"groups.losses.{split}", loss, winner.n_select, "groups")
        if sample.numbers is not None:
            if len(sample.numbers["losses"]) != n_splits or any(self.errors):
                raise ValueError(f"numbers.losses: expected {n_splits}, one for each split, and no errors")
            for split, loss in enumerate(sample.numbers["losses"]):
                check_part(f"numbers.losses.{split}", loss, winner.n_select, "rows")
        scored = self.scored_constants
        if {len(self.constants), len(scored["members"])} != {n_splits}:
            raise ValueError(f"constants: expected {n_splits}, one for each split")
        for name, numbers in (
            ("constants", self.constants),
            ("refit_constant", [self.refit_constant]),
            ("scored_constants", [*scored["members"], scored["refit"]]),
        ):
            for number in numbers:
                check_baseline_class(name, number, n_classes)

    def _check_classes(self, grouped: bool) -> None:
        if any((counts["bound"] is None) != grouped for counts in self.by_class):
            raise ValueError("by_class: there are bounds with groups, or none without")
        for number, counts in enumerate(self.by_class):
            check_part(f"by_class.{number}.errors", counts["errors"], counts["rows"], "rows")
        if (self.confusion is None) != (len(self.by_class) <= 2):
            raise ValueError("confusion: it is given with three or more classes, and only then")
        if self.confusion is not None:
            check_confusion(self.confusion, self.class_totals)


@dataclass(frozen=True)
class Claims(CertificatePart):
    """What is proven; iteration yields the claims.

    Attributes:
        claims: every proven claim, each valid by itself with its own delta.
        bound_without_copies: what the bound of the first is if rows that equal another have the same origin,
            and one of each is counted; the bound itself if there are none; None if nothing can be claimed.
        subgroups: what is proven of subgroups, and what was counted; absent in the file if none were named.
    """

    claims: tuple[Claim, ...]
    bound_without_copies: float | None
    subgroups: tuple[SubgroupClaim, ...] | None = None

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)

    @property
    def first(self) -> Claim:
        """The claim to quote."""
        return self.claims[0]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        subgroups = None if self.subgroups is None else [claim.to_json() for claim in self.subgroups]
        return {
            "claims": [claim.to_json() for claim in self.claims],
            "bound_without_copies": self.bound_without_copies,
            "subgroups": subgroups,
        }

    def explain_lack_of_cut_off(self, required: Condition) -> str:
        """Return the sentence that says why no cut-off was chosen for a condition; "" if one was."""
        if any(claim.cut_off is not None for claim in self):
            return ""
        about = (claim for claim in self if str(claim.quantity) == required.name)
        return next((claim.statement for claim in about if claim.bound is None), "")

    def check(self, sample: Sample) -> None:
        """Raise ValueError if a claim is about what is not there, or says more than its counts allow."""
        if not self.claims:
            raise ValueError("claims: there are none")
        if not sample.n_held and any(claim.held_out for claim in self):
            raise ValueError("claims: one is from held-out rows, but no row was held out")
        for number, claim in enumerate(self):
            claim.check(f"claims.{number}", sample.labels)
        largest = self.first.quantity.largest
        first, without = (
            largest if bound is None else bound for bound in (self.first.bound, self.bound_without_copies)
        )
        if not first <= without <= largest:
            raise ValueError("bound_without_copies is below the first claim's bound, or too large")
        for number, part in enumerate(self.subgroups or ()):
            part.check(f"subgroups.{number}", sample.n_held)


@dataclass(frozen=True)
class Wording(CertificatePart):
    """The certificate in words.

    Attributes:
        statements: the claims, and what to know before they are quoted.
        assumptions, not_covered: the conditions of the claims.
    """

    statements: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]


OPTIONAL = ("groups", "confusion", "search", "subgroups", "numbers", "giveaways")  # absent where None
FIELDS = (  # of certificate.json, in their order
    "run_id",
    "certification",
    "seed",
    "salt",
    "provisional",
    "criterion",
    "setting",
    "k",
    "n_splits",
    "n_select",
    "n_train",
    "n_held",
    "n_rows",
    "repeats",
    "bound_without_copies",
    "bound",
    "delta",
    "l_ms",
    "l_ee",
    "errors",
    "error",
    "constants",
    "refit_constant",
    "scored_constants",
    "class_rows",
    "baselines",
    "by_class",
    "claims",
    "labels",
    "statements",
    "assumptions",
    "not_covered",
    "digests",
    *OPTIONAL,
)
FREE_TEXT_FIELDS = ("label", "labels", "column", "subgroup", "giveaways")  # the user's names and values


@dataclass(frozen=True)
class Certificate:
    """The claims of a result; identical in every value wherever and however the run was made.

    Attributes:
        origin: what it is made from.
        winner: the candidate that was selected.
        sample: the rows.
        counts: what was counted of the models.
        claims: what is proven.
        wording: all of it in words.
    """

    origin: Origin
    winner: Winner
    sample: Sample
    counts: ModelCounts
    claims: Claims
    wording: Wording

    def to_json(self) -> dict[str, Any]:
        """Return the fields of all parts as one flat JSON object."""
        values: dict[str, Any] = self.claims.to_json()
        for part in (self.origin, self.winner, self.sample, self.counts, self.wording):
            values |= asdict(part)
        return {name: values[name] for name in FIELDS if name not in OPTIONAL or values[name] is not None}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Certificate":
        """Create a certificate from the values that ``to_json`` returned.

        Raises:
            ValueError: a field is missing, unknown, of another type, outside its range, or holds control
                characters.
        """
        certificate = cls(
            origin=_read(Origin, values),
            winner=_read(Winner, values),
            sample=_read(Sample, values),
            counts=_read(ModelCounts, values),
            claims=_read(Claims, values),
            wording=_read(Wording, values),
        )
        if unknown := sorted(values.keys() - set(FIELDS)):
            raise ValueError(f"{unknown[0]}: a certificate has no such field")
        _check_printable(values)
        certificate.winner.check()
        certificate.sample.check()
        certificate.counts.check(certificate.winner, certificate.sample)
        certificate.claims.check(certificate.sample)
        return certificate

    def check_source(self, problem: Problem, winner: Candidate) -> None:
        """Raise ValueError unless it is of this problem and its winner."""
        certified = self.origin.run_id, self.winner.setting, self.winner.k
        expected = problem.run_id, dict(winner.setting), winner.k
        texts = [json.dumps(values, sort_keys=True) for values in (certified, expected)]
        if texts[0] != texts[1]:  # compared as text: in Python true equals 1.0
            raise ValueError(f"run_id, setting, k are {certified}, in the other files {expected}")
        if (self.sample.groups is None) == problem.task.grouped:
            raise ValueError("it is for a task with groups, or for one without: that of the data differs")
        if len(self.sample.labels) != problem.task.n_classes:
            raise ValueError(f"labels: expected {problem.task.n_classes}, one for each class")
        size = problem.find_size(winner.k)
        if (self.winner.n_select, self.winner.n_splits) != (size.n_select, size.n_splits):
            raise ValueError(f"n_select and n_splits are not {size.n_select} and {size.n_splits}")

    def list_cautions(self) -> list[str]:
        """Return a sentence for each reason not to rely on what is proven, or not to use F*."""
        sample, first = self.sample, self.claims.first
        held, units, unit = sample.n_held, sample.n_rows, "row"
        if sample.groups is not None:
            held, units, unit = sample.groups["held"], sample.groups["count"], "group"
        alone = (first, *(claim for claim in self.claims.claims[1:] if claim.gate is not None))
        worthless = (describe_worthless_bound(claim, sample.baseline, sample.labels) for claim in alone)
        return [
            *chain.from_iterable(worthless),
            *describe_giveaways(sample.giveaways or ()),
            *describe_guesses(self.claims.claims, sample.labels),
            *self.describe_constants(),
            *describe_held_share(held, units, unit),
            *describe_lack_of_gate(first, sample.baseline),
            *self.describe_repeats(),
        ]

    def describe_constants(self) -> list[str]:
        """Return sentences if members of F* are constants, and one if the model refit is."""
        counts = self.counts
        return describe_constants(
            counts.constants, counts.refit_constant, self.sample.labels, counts.scored_constants
        )

    def describe_repeats(self) -> list[str]:
        """Return a sentence if rows equal another row: how much of what is proven is left."""
        sample, claims = self.sample, self.claims
        grouped, without = sample.groups is not None, claims.bound_without_copies
        return describe_repeats(sample.repeats, sample.n_rows, grouped, claims.first, without)


def _read(part: type[P], values: dict[str, Any]) -> P:
    """Return a part of a certificate, from its fields among the values of a file."""
    return read_as(part, {field.name: values[field.name] for field in fields(part) if field.name in values})


def _check_printable(values: dict[str, Any]) -> None:
    """Raise ValueError if a text could control a terminal; labels and the groups' column are the user's."""
    left: list[Any] = [values]
    while left:
        match left.pop():
            case str() as text if not text.isprintable():
                raise ValueError(f"it holds control characters: {text!r}")
            case dict() as inner:
                left.extend(value for name, value in inner.items() if name not in FREE_TEXT_FIELDS)
            case list() | tuple() as inner:
                left.extend(inner)


class Finished(NamedTuple):
    """The results of a finished run, without the log.

    Attributes:
        candidates: their table.
        models: those of the run.
        certificate: the certificate.
        judged: the judged rows; None if the certification judges none.
    """

    candidates: pa.Table
    models: Models
    certificate: Certificate
    judged: pa.Table | None = None


def describe_repeats(
    repeats: int, rows: int, grouped: bool, first: Claim, without: float | None
) -> list[str]:
    """Return a list of one sentence about rows that equal another row; empty if there are none.

    Args:
        repeats, rows: how many do, and all rows.
        grouped: whether the other row is one of another group.
        first: the first claim.
        without: its bound if one row of each origin is counted.
    """
    origin = "if they have the same origin (one patient, one document)"
    instead = replace(first, bound=without)
    if not instead.says_something:
        says = f"{origin}, nothing here is proven"
    else:
        limits = f"{instead.says} instead of {first.limit}"
        says = f"{origin} and are counted once, the first claim is {limits}"
    return [f"{describe_equal_rows(repeats, rows, grouped)}: {says}."] if repeats else []


def list_statements(first: str, claims: list[Claim]) -> tuple[str, ...]:
    """Return ``first``, what L_EE is, then every claim, and what follows for the majority vote."""
    statements = [first, *(claim.statement for claim in claims)]
    drawn = (
        claim.bound for claim in claims if claim.classifier == "random" and not claim.quantity.of_numbers
    )
    if (bound := next(drawn, None)) is not None:  # the one claim of the paper's certification
        doubled = ceil_percent(2 * bound) if bound < 0.5 else "100 %, which says nothing"
        follows = "By majority vote instead of a random member, what is proven is twice this bound"
        statements.append(f"{follows}: {doubled}.")
    return tuple(statements)


def says_nothing(claim: Claim, baseline: Baseline) -> bool:
    """Return whether a claim about an error says nothing beyond a constant.

    With a gate it does unless the rule is proven better than every constant; without one, unless the bound is
    below the constant's error.
    """
    if claim.gate is not None:
        return not claim.gate.passed
    return claim.bound is None or claim.bound >= baseline["error"]


def compare_with_baseline(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> str:
    """Return a clause that compares a claim about an error with its baseline."""
    error = describe_error(baseline)
    said = f"wrong on {error} of" if "clip" not in baseline else f"off by {error} on average on"
    clause = f"{name_constant(baseline, labels)} is {said} the {baseline['on']}"
    if not says_nothing(claim, baseline):
        return clause
    if claim.gate is not None:
        return f"{clause}, and that this is better than a constant is not proven"
    return f"{clause}, so this says nothing beyond it"


def describe_gate(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> str:
    """Say that a claim's rule is proven better than every constant; "" if it is not."""
    if claim.gate is None or not claim.gate.passed:
        return ""
    says, counts = _phrase_gate(claim.gate, claim, baseline, labels)
    return f"{says}: proven, within the same {format_level(claim.delta)} ({counts})"


def describe_worthless_bound(claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> list[str]:
    """Return a list of one sentence if a bound on an error says nothing beyond a constant, else none."""
    if not claim.quantity.guarded or not says_nothing(claim, baseline):
        return []
    if claim.gate is None:
        return [
            f"The bound {claim.limit} is not below {describe_error(baseline)}, the "
            f"{'mean error' if 'clip' in baseline else 'error'} of {name_constant(baseline, labels)} on the "
            f"{baseline['on']}: it says nothing beyond that."
        ]
    says, counts = _phrase_gate(claim.gate, claim, baseline, labels)
    unable = ", and these rows cannot prove it, even with none wrong" * (claim.gate.least >= 0.5)
    return [
        f"The bound {claim.limit} ({claim.classifier}) is a figure, not to be quoted alone: that "
        f"it {says} is not proven{unable} ({counts})."
    ]


def describe_lack_of_gate(claim: Claim, baseline: Baseline) -> list[str]:
    """Return a list of one sentence if a bound on an error says something, but has no gate, else none."""
    if claim.gate is not None or not claim.quantity.is_error or says_nothing(claim, baseline):
        return []
    return ["That this is better than a constant is not proven: it takes rows held out (--certify holdout)."]


def _phrase_gate(gate: Gate, claim: Claim, baseline: Baseline, labels: Sequence[Label]) -> tuple[str, str]:
    lost, won = pluralize(gate.lost, "row"), f"{gate.won:,}"
    if "value" in baseline:
        constant = name_constant(baseline, labels)
        return f"is off by less than {constant}", f"further off: {lost}; {constant}: {won}"
    by_weight = ", by weight," if claim.quantity.weighs else ""
    return (
        f"errs less often{by_weight} than always predicting any one class",
        f"wrong alone: {lost}; always {quote_label(labels[gate.predicted])} alone: {won}",
    )


def describe_guesses(claims: Sequence[Claim], labels: Sequence[Label]) -> list[str]:
    """Return a sentence for each quantity that a constant, or a guess, would reach as well.

    A guess has an AUC of one half, and recalls that add up to 1 whatever the shares it guesses with; one
    recall alone is reached by always predicting its class.
    """
    statements = [said for claim in claims if (said := claim.quantity.doubt(claim))]
    recalls = dict[str, list[Claim]]()
    for claim in claims:
        if claim.quantity.by_class and claim.bound is not None:
            recalls.setdefault(claim.classifier, []).append(claim)
    for made in recalls.values():
        proven = fsum(1 - (claim.bound or 0.0) for claim in made)
        if len(made) < len(labels):
            statements += [
                f"A {claim.name} is reached by always predicting {quote_label(claim.label)}: quote it "
                "with the recalls of all other classes."
                for claim in made
            ]
        elif proven <= 1:
            statements.append(
                f"The recalls proven by {made[0].certification} add up to {floor_percent(proven)}: "
                "together they say nothing beyond a guess, whose recalls add up to 100 %."
            )
    return statements


def count_confusion(problem: Problem, ensemble: Ensemble, k: int) -> CountMatrix:
    """Count the rows of the members' estimate sets by their class and the class that is predicted.

    Rows on which a member is undecided are in no column.

    Args:
        problem: what was solved.
        ensemble: F*.
        k: its number of folds.

    Raises:
        RunError: a member predicts a class that does not exist.
    """
    task, n_classes = problem.task, problem.task.n_classes
    counts = np.zeros((n_classes, n_classes), np.int64)
    size = problem.sizes.index(problem.find_size(k))
    for member in ensemble.members:
        _, scored = problem.rows(Stage.REFIT, size, member.split)
        predicted = member.model.predict(task.X[scored]).label
        check_predicted(member, predicted)
        decided = predicted >= 0
        np.add.at(counts, (task.y[scored][decided], predicted[decided]), 1)
    return tuple(map(tuple, counts.tolist()))


def derive_confusion(errors: Sequence[int], rows: Sequence[int]) -> CountMatrix:
    """Return the matrix of two classes from the wrong rows and all rows of each."""
    (first, second), (n_first, n_second) = errors, rows
    return ((n_first - first, first), (second, n_second - second))


def list_mistakes(matrix: CountMatrix, rows: Sequence[int]) -> list[Mistake]:
    """Return the mistakes that were made, the largest share of a class first.

    Args:
        matrix: counts by actual and predicted class.
        rows: all rows of each actual class.
    """
    found = [
        Mistake(actual, predicted, count, count / n)
        for actual, (counts, n) in enumerate(zip(matrix, rows, strict=True))
        for predicted, count in [*enumerate(counts), (None, n - sum(counts))]
        if count and predicted != actual
    ]
    return sorted(found, key=lambda mistake: -mistake.share)


def check_confusion(matrix: CountMatrix, rows: Sequence[int]) -> None:
    """Raise ValueError unless a matrix fits the number of rows of each class.

    Whether its right rows are those of the members' counts is left to a verification, which names the member.
    """
    n_classes = len(rows)
    if len(matrix) != n_classes or any(len(counts) != n_classes for counts in matrix):
        raise ValueError(f"confusion: expected {n_classes} rows and columns, one for each class")
    for number, counts in enumerate(matrix):
        if min(counts) < 0 or sum(counts) > rows[number]:
            raise ValueError("confusion: it has more rows than there are, or a negative number of them")

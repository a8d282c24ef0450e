"""Judge somebody else's predictions: what labels and predictions prove, and what they show.

Everything is computed by the quantities that a run claims, on rows that all certify (``claims.given``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.certificate import Baseline, Compared, describe_equal_rows
from ckcv_ray.claims.certify import claim_subgroups, prove
from ckcv_ray.claims.given import GIVEN, GivenPredictions, reword
from ckcv_ray.claims.quantity import Acceptance, Claim, decide, format_ends
from ckcv_ray.claims.rules import CutOff
from ckcv_ray.core.quantities import BINARY_RECALLS
from ckcv_ray.errors import (
    InputError,
    Label,
    convert_errors,
    cut_list,
    format_level,
    format_row,
    pluralize,
    quote,
    round_bound,
    sequence,
)
from ckcv_ray.reports.facts import (
    BY_CLASS,
    DETAILS,
    FIRST,
    Fact,
    FactTable,
    Section,
    describe_worst,
    drop_empty,
    list_other_claims,
    tell_classes,
    tell_comparison,
    tell_quote,
)
from ckcv_ray.reports.render import divide_sections, load_template, show_text
from ckcv_ray.storage.pages import add_checksum, write_page
from ckcv_ray.study.study import Study
from ckcv_ray.tables.predictions import PredictionColumns, read_predictions

ERROR = "refit"  # the name by which a study claims an error
RENAMED = {"error": ERROR, "ppv": "precision"}  # as they are requested, where no prevalence is stated
AUC, WEIGHTED, NOT_HERE = "auc", "weighted_error", ("vote", "better", "answered")
OWN_PPV = re.compile(r"\bppv(?=\s*>)")  # in a condition, where no prevalence is stated
MAX_STRANGE = 5  # labels named
FEW_REPEATS = 0.05  # of the rows: so many may be equal by chance where columns are few or rounded
NOT_COVERED = (
    "rows that are related to each other, unless --group names which",
    "rows that were looked at while the predictions were made, or chosen by them",
    "a number of rows that was chosen by looking at figures",
    "a second claim made after seeing these figures, or another group looked at",
    "a source that changes",
)


class Asked(NamedTuple):
    """What is to be claimed about predictions, by default the error, or the AUC of scores; see ``judge``."""

    claim: str | Sequence[str] = ()
    cut_off: float | None = None
    positive: Label | None = None
    require: str = ""
    accept: str | Sequence[str] = ()
    clip: float | None = None
    baseline: float | None = None
    largest_group: float | None = None
    delta: float = 0.05
    seed: int | str = 0
    empty_wrong: bool = False

    def find_lacks(self, columns: PredictionColumns, claims: Mapping[str, str]) -> Iterator[str]:
        """Yield what is wrong with options that have no effect, or need what is not known about the rows."""
        predicts = columns.prediction is not None or self.cut_off is not None  # a cut-off of scores does
        if not predicts and columns.score is None:
            yield "nothing says what was predicted: name its column with --prediction, or scores with --score"
        at_cut_off = {AUC, *(BINARY_RECALLS if self.require else ())}
        about = [option for name, option in claims.items() if name not in at_cut_off]
        about += [f"subgroups={name}" for name in columns.subgroups]
        if about and not predicts:
            yield (
                f"{about[0]} is about predictions, and there are only scores: name a column of predictions "
                "with --prediction, or give a --cut-off that was fixed beforehand"
            )
        cut_offs = bool(self.require) + (self.cut_off is not None)
        if cut_offs > 1:
            yield "a cut-off is either given or required: leave out --cut-off or --require"
        if cut_offs and (columns.score is None or columns.prediction is not None):
            yield "a cut-off, whether given or required, is for scores: name --score, and not --prediction"
        if (columns.weight is not None) != any(name.startswith(WEIGHTED) for name in claims):
            yield "weights and claim=weighted_error:4 need each other: give both, or leave both out"
        lost = [one for name, one in claims.items() if name.startswith(NOT_HERE) and one.startswith("claim=")]
        lost += [f"require={self.require}"] * self.require.startswith(("ppv", "npv"))
        if lost:
            yield (
                f"{lost[0]} needs models, or rows that fix thresholds, which are not here: leave it out; "
                "--against names other predictions, and --cut-off a cut-off that was fixed beforehand"
            )
        for name in ("baseline", "cut_off", "clip", "largest_group"):
            if (value := getattr(self, name)) is not None and not isfinite(value):
                yield f"{name}={value}: expected a finite number"
        if self.largest_group is not None and self.largest_group < 1:
            yield f"largest_group={self.largest_group:g} is below 1, the rows of the smallest group"
        if self.baseline is not None and self.clip is None:
            yield "a baseline is a number to compare with: it needs predicted numbers, and so --clip"
        if self.empty_wrong and ([*claims] != [ERROR] or columns.subgroups):
            yield "rows without a label can only be counted for the error: claim nothing else"


@dataclass(frozen=True, eq=False)
class Judgement(Compared):
    """What predictions prove, and show, about whatever made them.

    Attributes:
        held: the rows, with what was predicted.
        labels: the classes; none for numbers.
        claims: what is proven, each with its share of delta.
        subgroups: what is proven about subgroups of rows.
        decisions: for each condition, whether it is proven.
    """

    held: GivenPredictions
    labels: tuple[Label, ...]
    claims: tuple[Claim, ...]
    subgroups: tuple[Claim, ...]
    decisions: tuple[Acceptance, ...]

    @property
    def baseline(self) -> Baseline:
        """The error of the constant that is wrong least often, or of the number that was named."""
        held, task = self.held, self.held.problem.task
        errors = [held.average(np.full(task.n, constant), self.claims[0]) for constant in held.constants]
        best = int(np.argmin(errors)) if errors else 0
        wrong = int(np.sum(task.y != held.constants[best])) if errors else 0
        least = min(errors, default=0.0)
        return Baseline("rows", best, wrong, task.n, least, held.baseline, held.problem.clip)

    @property
    def delta(self) -> float:
        """Probability with which any of the claims may be false."""
        return self.held.problem.study.delta

    def find_interval(self, claim: Claim) -> tuple[float, float] | None:
        """Return the two-sided interval of what was measured for a claim, a share; None if there is none."""
        return self.held.make_once(("interval", claim), lambda: self.held.find_interval(claim, self.delta))

    @property
    def margin(self) -> float | None:
        """By how much less, at least, they err than the other predictions; None without any."""
        found = [self.held.bound_margin(claim) for claim in self.claims if claim.quantity.reference]
        return found[0] if found else None

    def doubt(self, claim: Claim) -> str:
        """Return a sentence if an error may not be quoted; see ``Compared``."""
        if claim.quantity.guarded and claim.gate is None:
            return "Not to be quoted without a number to compare it with: name one with --baseline."
        return super().doubt(claim).replace(f" ({GIVEN.name})", "")

    def list_cautions(self) -> list[str]:
        """Return a sentence for each reason not to rely on what is proven."""
        said = [caution for claim in self.claims if (caution := self.doubt(claim))]
        said += self.describe_guesses()
        for claim in self.claims:
            if claim.quantity.name == AUC and claim.rows and 2 * (claim.errors or 0) > claim.rows:
                positive = self.labels[1 - self.held.problem.positive]
                said.append(
                    f"Larger scores seem to mean {positive!r}: say with --positive which label they mean."
                )
        if strange := self.held.predictions.strange:
            named = ", ".join(cut_list([quote(label) for label in strange], "more", MAX_STRANGE))
            said.append(f"Predicted, but the label of no row, and so counted as wrong: {named}.")
        alike = "Subgroups by quantiles of these rows: about new rows with {!r} distributed alike."
        said += map(alike.format, self.held.list_quantiles())
        repeats, task = self.held.predictions.repeats, self.held.problem.task
        if repeats > FEW_REPEATS * task.n:
            equal = describe_equal_rows(repeats, task.n, task.units.independent)
            said.append(
                f"{equal}: if they have the same origin (one patient, one document), they are not "
                "independent, and nothing here is proven."
            )
        if empty := int(self.held.predictions.empty.sum()):
            said.append(f"{pluralize(empty, 'row')} without a label count as wrong.")
        return [*dict.fromkeys(map(reword, said))]

    def count_classes(self) -> NDArray[np.int64] | None:
        """Return labelled rows by class and predicted one, none last; None with numbers or scores alone."""
        given, y, n = self.held.predictions, self.held.problem.task.y, len(self.labels)
        if given.predicted is None or not n:
            return None
        cells = y * (n + 1) + np.where(given.predicted < 0, n, given.predicted)
        return np.bincount(cells[~given.empty], minlength=n * (n + 1)).reshape(n, n + 1)

    def to_json(self) -> dict[str, object]:
        """Return the judgement as JSON values."""
        task, counts = self.held.problem.task, self.count_classes()
        ends = {claim: self.find_interval(claim) or (None, None) for claim in self.claims}
        return {
            "rows": task.n,
            "groups": None if task.units.independent else task.n_units,
            "delta": self.delta,
            "seed": self.held.problem.draws.seed,
            "salt": task.salt,
            "may_be_quoted": not self.refuse(self.first),
            "claims": [claim.to_json() | {"low": low, "high": high} for claim, (low, high) in ends.items()],
            "margin": self.margin,
            "baseline": self.baseline.to_json() if self.held.constants else None,
            "subgroups": [claim.to_json() for claim in self.subgroups],
            "labels": [*self.labels],
            "confusion": None if counts is None else counts[:, :-1].tolist(),
            "no_class": None if counts is None else counts[:, -1].tolist(),
            "accepted": [one._asdict() | {"condition": str(one.condition)} for one in self.decisions] or None,
            "cautions": self.list_cautions(),
        }

    def summary(self, details: bool = False) -> str:
        """Return the judgement as text: what may be quoted, and with ``details`` every figure."""
        return show_text(self.facts(), details)

    def report(self, out: str | PathLike[str], title: str = "") -> str:
        """Write the judgement as an HTML page, and return its path.

        Raises:
            InputError: it cannot be written, or would replace something other than a page of ckcv.
        """
        task, columns = self.held.problem.task, self.held.predictions.columns
        of = f" from {task.source}" if task.source else ""
        title = title or f"Predictions of {task.target.name} by {columns.prediction or columns.score}{of}"
        top, rest = divide_sections(self.facts())
        made = {"origin": "ckcv judge", "maker": "ckcv judge from the table", "heading": []}
        head = {"title": title, "purpose": "", "short": False, "level": format_level(self.delta)}
        page = load_template("page.html").render(top=top, rest=rest, task=task, **made, **head)
        write_page(None, out, add_checksum(page.encode()), "a page")
        return str(out)

    def __repr__(self) -> str:
        return self.summary()

    def facts(self) -> list[Section]:
        """Return what it tells, in the order of the page."""
        problem, task, nothing = self.held.problem, self.held.problem.task, self.refuse(self.first)
        quoted = None if nothing else self.first
        again = "The same command on the same table computes every figure again."
        then = "Quote the sentence with its conditions." if quoted else "Judge more rows, none of these."
        told = [
            tell_quote(self, task, quoted, nothing, self.list_cautions(), self.decisions),
            Section("subject", "What is it about?", self._tell_subject()),
            Section("voids", "What voids it?", [Fact("not covered", text) for text in NOT_COVERED]),
            Section("check", "How do I check it?", [Fact("ckcv judge", again), Fact("salt", task.salt)]),
            Section("next", "What do I do next?", [Fact("", then)]),
        ]
        if (counts := self.count_classes()) is not None:
            positive, fixed = problem.positive, BY_CLASS if task.units.independent else ()
            wrong, tables = tell_classes(self.labels, positive, counts, self.delta, fixed, self.claims)
            told.append(Section("performance", "Performance by class", [wrong], tables))
        heads = ("claim", "proven", "rows", "measured", "interval", "subgroup", "level")
        rows = []
        for claim in (*self.claims, *self.subgroups):
            counted = f"{claim.part:,} of {claim.rows:,}" if claim.rows else None
            ends = None if claim.subgroup else self._show_ends(claim) or None
            says = "nothing" if claim.bound is None else claim.says
            level = format_level(claim.delta)
            rows.append(format_row(claim.name, says, counted, claim.rate, ends, claim.subgroup, level))
        level = format_level(self.delta)
        note = (
            f"What is proven holds jointly with probability {level}, each claim with its share. Intervals "
            f"are two-sided, each by itself at {level}: they are about what was measured, and not covered "
            "together with what is proven."
        )
        table = FactTable("Claims and intervals", *drop_empty(heads, rows), note, DETAILS)
        statements = [Fact(claim.name, claim.statement, DETAILS) for claim in self.claims]
        told.append(Section("claims", "Claims", statements, [table]))
        return [replace(each, facts=[replace(f, text=reword(f.text)) for f in each.facts]) for each in told]

    def _tell_subject(self) -> Iterator[Fact]:
        first, task, columns = self.first, self.held.problem.task, self.held.predictions.columns
        rows = f"{task.n:,} rows{task.units.word('', f' in {task.n_units:,} groups')}"
        given = columns.prediction or columns.score
        yield Fact("", f"The column {given!r} of {rows}, compared with {task.target.name!r}.", FIRST)
        if first.bound is not None or first.quantity.is_error:
            on = f"{task.n:,} rows" if first.errors is None else "rows"
            mean = self.held.average(self.held.predict(GIVEN).label, first)
            said, ends = first.quantity.measure(first, on, mean, task), self._show_ends(first)
            interval = f"; {format_level(self.delta)} interval {ends}" if ends else ""
            yield Fact("measured", f"{said}{interval}", FIRST)
        if self.held.constants and first.quantity.guarded:
            yield from tell_comparison(self, task, by_group=first.quantity.is_error)
        yield Fact("proven", list_other_claims(self), FIRST)
        for claim in self.claims:
            if claim.quantity.reference:
                points = round_bound(100 * (self.margin or 0.0), up=False)
                by = f"; by {points} points or more" if self.margin else ""
                yield Fact("against", f"{claim.comparison}{by}", FIRST)
        yield Fact("subgroups", describe_worst(self), FIRST)

    def _show_ends(self, claim: Claim) -> str:
        if (ends := self.find_interval(claim)) is None:
            return ""
        clip = self.held.problem.clip
        if clip is None:
            return format_ends(*ends)
        return f"{round_bound(clip * ends[0], up=False)} to {round_bound(clip * ends[1])}"


def judge(
    y: ArrayLike,
    predicted: ArrayLike | None = None,
    *,
    score: ArrayLike | None = None,
    against: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    **asked: Any,
) -> Judgement:
    """Return what somebody else's predictions prove about whatever made them.

    Args:
        y: labels, or numbers with ``clip``, (rows,).
        predicted: predicted labels or numbers, (rows,); None for a score alone.
        score: for two classes, larger for rows that are more likely of the positive one, (rows,).
        against: other predictions of the same rows, which these are to be proven better than, (rows,).
        groups: which rows belong together, (rows,): groups are independent, but not their rows.
        weights: positive weights of rows, for the claim "weighted_error:W", (rows,).
        **asked: fields of ``Asked``: claim ("sensitivity,auc"; "ppv" without a prevalence is that of the
            source), cut_off of the score, fixed beforehand, positive, require, accept, clip (for numbers, the
            largest error that counts), baseline (for numbers, the constant to compare with), largest_group
            (a limit on the rows of a group, fixed beforehand), delta, seed, empty_wrong.

    Raises:
        InputError: an array does not fit, or a claim does not suit such rows.
    """
    given = {"y": y, "predicted": predicted, "score": score, "against": against}
    given |= {"group": groups, "weight": weights}
    known = {name: values for name, values in given.items() if values is not None}
    with convert_errors(InputError, "arrays have to be columns of text or numbers, with as many rows"):
        table = pa.table({name: pa.array(values, from_pandas=True) for name, values in known.items()})
    others = [name if name in known else None for name in [*given][1:]]
    columns = PredictionColumns._make(["y", *others, ()])
    return judge_table(table, columns, Asked(**asked))


def judge_table(table: pa.Table, columns: PredictionColumns, asked: Asked, source: str = "") -> Judgement:
    """Return what a table of labels and predictions proves; see ``judge``.

    Raises:
        InputError: a column is missing or does not suit its purpose, or a claim does not suit such rows.
    """
    listed = asked.claim.split(",") if isinstance(asked.claim, str) and asked.claim else asked.claim or ()
    names = [str(name) for name in sequence("claim", listed, least=0, kind="names")]
    if not names and not asked.require and asked.largest_group is None:
        names = [AUC if columns.prediction is None and asked.cut_off is None else "error"]
    claims = {RENAMED.get(name, name): f"claim={name}" for name in names}  # with the option that asks for it
    if (largest := asked.largest_group) is not None:
        claims = {f"row_error:{largest:g}": f"largest_group={largest:g}"} | claims
    if columns.against is not None:
        claims[f"better:{columns.against}"] = f"against={columns.against}"
    of_kind: dict[str, Any] = {"learner": "ridge", "clip": asked.clip}
    if asked.clip is None:
        of_kind = {"learner": "svm_nystroem"}  # it is not fitted, but could be, whatever the weights
    named = {name: getattr(asked, name) for name in ("positive", "require", "accept", "delta", "seed")}
    if isinstance(asked.accept, str):
        named["accept"] = OWN_PPV.sub(RENAMED["ppv"], asked.accept)
    try:
        for lack in asked.find_lacks(columns, claims):
            raise InputError(lack)
        claimed = {"claim": (*claims,) or (ERROR,), "subgroups": columns.subgroups}
        study = Study.of(certify="holdout", **of_kind, **named, **claimed)
        found = read_predictions(table, columns, asked.clip is not None, asked.empty_wrong, source)
        if found.score is not None and len(classes := found.task.classes) != 2:
            raise InputError(f"score={columns.score!r} is for two classes, and there are {len(classes)}")
        held = GivenPredictions.of(found, study, asked.baseline)
    except InputError as error:  # it is about the claims of a study: the options given are named instead
        message = str(error)
        for name, option in claims.items():
            message = message.replace(f"claim={name} ", f"{option} ")
        for given, name in RENAMED.items():
            message = message.replace(f"add {name} ", f"add {given} ").replace(f"={name}>", f"={given}>")
        raise InputError(message) from None
    if found.score is not None and not held.problem.positive:
        found = replace(found, score=-found.score)
    if asked.cut_off is not None and found.score is not None:
        cut_off = CutOff(asked.cut_off, held.problem.positive)
        found = replace(found, predicted=cut_off.classify(found.score), cut_off=asked.cut_off)
    held, problem = replace(held, predictions=found), held.problem
    proven = tuple(replace(claim, statement=reword(claim.statement)) for claim in prove(held, 0))
    known, accepted = [*map(held.count_known, proven)], problem.certification.accepted
    decisions = tuple(decide(each, known, found.task.n_units, problem.has_losses) for each in accepted)
    return Judgement(held, found.task.classes, proven, tuple(claim_subgroups(held)), decisions)

"""A run's result: what ``run``, ``evaluate`` and ``load_run`` return, for either kind of study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from secrets import randbits
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.quantity import Acceptance, Claim, decide, is_fixed_for
from ckcv_ray.claims.rules import ONE_MODEL, CutOff, Rule, find_member, parse_rule
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.measures import PROBABILITY, Outputs, make_score
from ckcv_ray.core.options import present
from ckcv_ray.errors import (
    Classes,
    InputError,
    Rows,
    Values,
    ceil_percent,
    format_level,
    format_number,
    integer,
    name_reason,
    pluralize,
)
from ckcv_ray.learners.base import LEARNERS, ZOO, Setting
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.records.candidates import per_k, per_learner
from ckcv_ray.records.record import Records
from ckcv_ray.study.parts import Holdout, Paper
from ckcv_ray.study.problem import Problem, describe_setting
from ckcv_ray.study.study import MAX_SEED, AnyStudy, Study
from ckcv_ray.tables.task import Task, make_rows, make_scored_rows

if TYPE_CHECKING:
    from ckcv_ray.reports.figures import Plots


DRAWING = ("auto", "random")  # rules that draw members


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of a study: its values, predictions, and both as text and as JSON.

    ``run`` and ``load_run`` return a ``Certified`` one, ``evaluate`` and ``load_scores`` a ``Scored`` one.

    Attributes:
        problem: the study on its task.
        execution: what depends on the run: folder, seconds, fits, evaluations, environment, test error.
        models: the models kept: F* and others, or the one fitted on all rows, or none.
        records: those of all evaluations; None unless requested.
    """

    problem: Problem
    execution: dict[str, Any]
    models: Models
    records: Records | None = field(default=None, kw_only=True)

    @property
    def study(self) -> AnyStudy:
        """The study, in its canonical form for the task."""
        return self.problem.asked

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.problem.task

    @property
    def run_id(self) -> str:
        """Identifier of the study and the data."""
        return self.problem.run_id

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is proven: nothing, unless it is ``Certified``."""
        return ()

    @property
    def decisions(self) -> tuple[Acceptance, ...]:
        """For each of the study's conditions, if any, whether what is proven meets it."""
        return ()

    @property
    def complete(self) -> bool:
        """Whether nothing failed that contributes to the result."""
        raise NotImplementedError

    @property
    def setting(self) -> Setting:
        """The hyperparameters of the models by name."""
        raise NotImplementedError

    def table(self) -> pa.Table:
        """Return the candidates, or a row for each entry and split: learner, setting, rows, every score."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return ``table`` as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            return self.table().to_pandas()
        except ImportError:
            raise InputError("to_frame needs pandas: pip install pandas, or use .table() (Arrow)") from None

    def predict(self, X: ArrayLike, by: str = "auto", seed: int | None = None) -> NDArray[np.generic]:
        """Predict the original labels of X [rows, d], or numbers, by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as for ``rule``.
        """
        return self.task.labelled(self.predictions(X, self.rule(by, seed)).label)

    def score(self, X: ArrayLike, y: ArrayLike, by: str = "auto", seed: int | None = None) -> float:
        """Return how good ``predict`` is on rows X [rows, d] with labels, or numbers, y [rows].

        As for estimators of scikit-learn: accuracy, in [0, 1], or for numbers R², at most 1 (nan for
        one row). It is an estimate on these rows, too good on those that were learned from; what is proven is
        in ``claims``.

        Raises:
            InputError: as for ``predict``, there are no rows, or a label in y is not one of the classes.
        """
        rows, target = make_scored_rows(X, y, self.task), self.task.target
        label = self.rule(by, seed).predict(self.models, rows.X).label
        score = make_score(target.word("accuracy", "r2"), target.kind)
        return score.of(rows.y, Outputs(label=label, value=label))

    def rule(self, by: str = "auto", seed: int | None = None) -> Rule:
        """Return how rows are classified: by the rule of the first claim, unless another is requested.

        Args:
            by: "auto", after a holdout certification the rule of its first claim; otherwise, and with a seed,
                "random".
                "random", a member drawn independently for each row from all members of F*, as the paper does.
                "vote", the majority of F*.
                "member:7", the model of split 7.
                "refit", the model fitted on all rows that were not held out.
                "full", the model fitted on all rows.
            seed: for repeating a call that draws members: every call with it draws the same members, so rows
                given one by one would all meet the same one, and what is proven of independent draws is about
                one call. None draws afresh.

        Raises:
            InputError: the seed is not an integer of 0 or more, or the rule does not draw; ``by`` names no
                rule, there is no such member, or no row was held out.
        """
        raise NotImplementedError

    def predictions(self, X: ArrayLike, rule: Rule) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row.

        A rule that draws members has a seed: used in several calls, it repeats the same draws in each.
        """
        return rule.predict(self.models, make_rows(X, self.task))

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        raise NotImplementedError

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values; what is not known is null."""
        raise NotImplementedError

    def summary(self, details: bool = False, folder: str = "") -> str:
        """Return the result for people: what may be quoted and what to do next, or the scores.

        Args:
            details: whether to add every figure and every claim.
            folder: where the run is kept, for commands to paste; "" if in none.
        """
        return str(present("summary", self, details, folder))

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the result for a notebook: a card with a drawing of the bound, or the scores."""
        return str(present("card", self))


def compute_probabilities(result: Result, rows: Rows, rule: Rule, predicted: Prediction) -> Values:
    """Return the probability of each class, (rows, n_classes), as the models give it.

    It comes from the member that decided; for a majority it is the mean over the members. Nothing is proven
    of it.

    Raises:
        InputError: the learner gives no probabilities, or numbers are predicted.
    """
    _, learner = result.problem.find_learner(result.setting)
    if PROBABILITY not in learner.outputs:
        raise InputError(
            f"probabilities: {explain_no_probabilities()}: choose one of these learners, or leave them out"
        )
    return rule.ensemble(result.models).probabilities(rows, predicted.member)


def explain_no_probabilities() -> str:
    """Return a sentence saying that these models give no probabilities, and which learners do."""
    *names, last = [name for name in ZOO if PROBABILITY in LEARNERS[name]().outputs]
    return f"the models give no probabilities; those of {', '.join(names)} and {last} do"


def format_setting(setting: Setting) -> str:
    """Format hyperparameters, without the name of their learner."""
    return describe_setting({name: value for name, value in setting.items() if name != "learner"})


def write_values(value: object) -> Any:
    """Return a value for JSON: named tuples as objects, arrays as lists, nan and infinity as null."""
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {name: write_values(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return [write_values(part) for part in value.tolist()]
    return None if isinstance(value, float) and not isfinite(value) else value


def tabulate_predictions(y: Classes, label: Classes, n_classes: int) -> NDArray[np.int64]:
    """Return rows by class y and predicted class, the undecided (-1) last, (n_classes, n_classes + 1)."""
    counts = np.zeros((n_classes, n_classes + 1), np.int64)
    np.add.at(counts, (y, np.where(label < 0, n_classes, label)), 1)
    return counts


Marks = dict[str, Values | NDArray[np.bool_]]  # what claims say about single rows, by name


@dataclass(frozen=True, eq=False, repr=False)
class Certified(Result):
    """The outcome of a study with a certification: candidates, the winner, its models, and what is proven.

    Attributes:
        candidates: the outcome of each setting and fold size, as an Arrow table.
        certificate: the claims.
        judged: the judged rows; None if the certification judges none or there are too many for a file.
    """

    candidates: pa.Table
    certificate: Certificate
    judged: pa.Table | None = None

    @property
    def study(self) -> Study:
        """The study, in its canonical form for the task."""
        return self.problem.study

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What is proven; the first claim is the one to quote."""
        return self.certificate.claims

    @property
    def decisions(self) -> tuple[Acceptance, ...]:
        """For each of the study's conditions, whether what is proven meets it."""
        problem, accepted = self.problem, self.problem.certification.accepted
        units = len(problem.order_held_units())
        return tuple(decide(each, self.claims, units, problem.has_losses) for each in accepted)

    @property
    def complete(self) -> bool:
        """Whether no evaluation failed; otherwise a better candidate might have been missed."""
        return not self.certificate.provisional

    @property
    def intervals(self) -> list[tuple[Claim, float, float]]:
        """Claims with low and high ends of exact intervals of what was counted, each at the study's level."""
        if not self.task.units.independent:
            return []
        found = list[tuple[Claim, float, float]]()
        for claim in self.claims:  # counts are not binomial of a class at a cut-off that its own rows chose
            fixed = claim.cut_off is None or is_fixed_for(str(claim.quantity), self.problem.required)
            counted = claim.held_out and claim.quantity.of_counts and claim.bound is not None
            if counted and fixed and claim.rows:
                found.append((claim, *bound_both_sides(claim.part, claim.rows, self.certificate.delta)))
        return found

    @property
    def ensemble(self) -> Ensemble:
        """F*."""
        return self.models.best

    @property
    def setting(self) -> Setting:
        """The winner's hyperparameters by name."""
        return self.certificate.setting

    @property
    def k(self) -> int:
        """The winner's number of folds."""
        return self.certificate.k

    @property
    def l_ee(self) -> float:
        """The criterion on the estimate sets: by default the paper's figure."""
        return self.certificate.l_ee

    @property
    def proven(self) -> float:
        """The bound to quote, in [0, 1]: that of the certificate's first claim.

        It is an upper bound on an error (for numbers, as a share of the clip); if the first claim is about a
        quantity such as sensitivity, on 1 minus that quantity; if it is within:0.9, the width itself.
        """
        return self.certificate.first.risk

    @property
    def plot(self) -> "Plots":
        """Plots in matplotlib: ``plot()`` of what is proven, ``plot.roc()`` and others; each returns axes."""
        return cast("Plots", present("plot", self))

    @cached_property
    def _claimed_rows(self) -> pa.Table | None:
        """The judged rows that the first claim counts, as its rule classifies them; None if none are kept."""
        judged, first = self.judged, self.certificate.first
        if judged is None or first.certification == Paper.name:
            return None
        rows = judged.filter(pc.equal(judged["classifier"], first.classifier))
        if first.cut_off is None:
            return rows
        label = CutOff(first.cut_off, self.problem.positive).classify(rows["score"].to_numpy())
        return rows.set_column(rows.column_names.index("predicted"), "predicted", pa.array(label))

    def table(self) -> pa.Table:
        """Return the candidates."""
        return self.candidates

    def rule(self, by: str = "auto", seed: int | None = None) -> Rule:
        """Return how rows are classified; see ``Result``."""
        rule = parse_rule(by)
        if rule.name == "vote" and not self.task.classes:
            raise InputError(
                f"by={by} is a majority of classes, and this run predicts numbers: leave it out, or choose "
                "refit or random"
            )
        if rule.name in ONE_MODEL and self.models.refit is None:
            raise InputError(f"this run has no model {rule.name}: it was made without --certify holdout")
        if rule.name.startswith("member:"):
            integer("member", find_member(rule.name), least=0, most=len(self.ensemble.members) - 1)
        if rule.name not in DRAWING:
            if seed is not None:
                raise InputError(f"seed and {rule.name} exclude each other: {rule.name} draws no members")
            return rule
        first = self.certificate.first
        if rule.name == "auto" and seed is None and first.certification == Holdout.name:
            return first.make_rule(self.problem)
        drawn = randbits(63) if seed is None else integer("seed", seed, least=0, most=MAX_SEED)
        return Rule("random", drawn, repeats=seed is not None)

    def predict_interval(
        self, X: ArrayLike, by: str = "auto", seed: int | None = None
    ) -> tuple[Values, Values]:
        """Return the lower and upper ends of what is claimed around the predicted numbers of X [rows, d].

        Both are as far from the prediction as the rule's claim "within:0.9" says nine in ten new rows are at
        most; of several such claims, the one of most rows is used. Each array is of shape (rows,).

        Raises:
            InputError: no such claim is about the rule, or as for ``predict``.
        """
        rule = self.rule(by, seed)
        if (claim := _find_width(self.claims, rule)) is None:
            raise InputError(
                f"no interval is proven for {rule.classifier()}: ckcv run --certify holdout --claim "
                "refit,within:0.9 proves one, for learners of numbers"
            )
        predicted = self.predictions(X, rule).label
        return predicted - claim.risk, predicted + claim.risk

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        of, covering = rule.classifier(), [claim for claim in self.claims if claim.covers(rule)]
        c, by = self.certificate, f"by {of}{self.problem.certification.scope}"
        if (found := find_error_claim(self.claims, rule)) is not None:
            method = found.method
            if not found.covers(rule):
                method = f"{found.certification}, twice the bound for a member drawn independently"
            what = self.task.units.word(
                f"to be wrong at most {ceil_percent(found.risk)} of the time",
                f"that of a new group's rows on average at most {ceil_percent(found.risk)} are wrong",
            )
            if c.numbers is not None:
                clip = format_number(c.numbers["clip"])
                of_group = self.task.units.word("", "on a new group's rows ")
                counted = f"where an error above {clip} counts as {clip}"
                what = f"to be off {of_group}by at most {found.limit} on average, {counted}"
            sure = f"with probability {format_level(found.delta)} ({method})"
            said = f"{by}: proven {what}, {sure}; against {c.baseline.describe(c.labels)}"
            if c.is_worthless(found):
                said += ", and that this is better is not proven"
        elif covering:
            said = by
        elif rule.name == "full":
            said = (
                f"by {of}: nothing is proven of this model; the bound is of the one that did not see the "
                "held-out rows"
            )
        elif rule.cut_off is None and any(claim.cut_off is not None for claim in self.claims):
            said = f"by {of}: nothing is proven for its own cut-off of scores; column flag has the one chosen"
        else:
            hint = f"; ckcv run --certify holdout --claim {rule.name} would prove a bound"
            said = f"by {of}: nothing is proven for it alone{'' if find_member(rule.name) >= 0 else hint}"
        for claim in (claim for claim in covering if not claim.quantity.is_error):
            level = format_level(claim.delta)
            proven = f"{claim.name} {claim.says}, with probability {level} ({claim.certification})"
            lacking = f"nothing is proven of the {claim.name}"
            said += f"; {lacking if claim.bound is None else proven}"
        repeats = "; this is about one call with a seed: other calls with it repeat its draws"
        return said + repeats * bool(rule.repeats and covering)

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values; what is not known is null."""
        c, first, execution = self.certificate, self.claims[0], self.execution
        counts, test, level = tabulate_claimed(self), execution["test"], 1 - c.delta
        measured = [one.to_json() | {"low": a, "high": b, "level": level} for one, a, b in self.intervals]
        found = present("calibration", self)
        bins = [each._asdict() | {"label": c.labels[each.label]} for each in (found.bins if found else ())]
        constant = c.labels[c.baseline.predicted] if self.task.classes else c.baseline.value or 0.0
        return {
            "run_id": self.run_id,
            "state": "provisional" if c.provisional else "finished",
            "setting": dict(self.setting),
            "k": self.k,
            "l_ms": c.l_ms,
            "l_ee": self.l_ee,
            "error": c.error,
            "proven": first.to_json(),
            "may_be_quoted": not c.refuse(first),
            "cautions": present("cautions", self),
            "baseline": c.baseline.to_json() | {"predicted": constant},
            "below_baseline": self.proven < c.baseline.error if first.quantity.is_error else None,
            "measured": measured or None,
            "calibration": found and found._asdict() | {"bins": bins},
            "accepted": [decision.to_json() for decision in self.decisions] or None,
            "constant": c.constant,
            "classes": [
                {"label": label, "rows": rows, "share": rows / c.n_rows}
                for label, rows in zip(c.labels, c.class_rows, strict=True)
            ],
            "confusion": [] if counts is None else counts[:, :-1].tolist(),
            "rows": c.n_rows,
            "repeats": c.repeats,
            "groups": None if self.task.units.independent else self.problem.all_rows.n_units,
            "question": self.problem.all_rows.units.question or None,
            "search": c.search,
            "per_k": per_k(self.candidates, self.problem),
            "per_learner": per_learner(self.candidates, self.problem),
            **{name: execution[name] for name in ("evaluations", "fits", "not_converged", "seconds")},
            "test_error": test["error"] if test else None,
            "before": execution.get("before"),
        }

    def __repr__(self) -> str:
        first = self.certificate.first
        level = format_level(first.delta)
        return f"<Result {self.run_id}: {first.name} {first.says}, with probability {level}>"


def tabulate_claimed(result: Certified) -> NDArray[np.int64] | None:
    """Return the rows that the first claim counts, by class and by the class that its rule predicts.

    The last column counts undecided rows: (n_classes, n_classes + 1). None for numbers, and where too many
    rows are judged for a file.
    """
    if not (n_classes := result.task.n_classes):
        return None
    if result.certificate.first.certification == Paper.name:
        return result.certificate.tabulate()
    if (rows := result._claimed_rows) is None:
        return None
    return tabulate_predictions(rows["label"].to_numpy(), rows["predicted"].to_numpy(), n_classes)


def measure_error(result: Certified) -> float:
    """Return the error on the rows that the first claim counts, by its rule: an estimate, not a bound.

    With groups, the mean over groups of their error rates; with numbers, the mean error as a share of the
    clip.
    """
    c, first, grouped = result.certificate, result.certificate.first, not result.task.units.independent
    if result.task.classes and grouped and (rows := result._claimed_rows) is not None:
        units = np.unique(rows["unit"], return_inverse=True)[1]
        return float(np.mean(np.bincount(units, rows["loss"]) / np.bincount(units)))
    if result.problem.has_losses or not first.rows:
        return c.error if first.measured is None else first.measured
    return (first.errors or 0) / first.rows


def describe_failed(result: Result) -> str:
    """Return how many paths failed, and why the first did; "" if none failed."""
    failures = result.execution["failures"]
    why = f"{pluralize(len(failures), 'path')} failed: {name_reason(failures[0][-1])}" if failures else ""
    return why and f'{why}; tracebacks are in the report and in execution["failures"]'


def find_quoted(result: Certified) -> tuple[Claim | None, str]:
    """Return the claim that may be quoted, or None, and if it is not the first, why the first may not be.

    If the error says nothing, it is the first proven claim that the study asks for: what the cut-off was
    chosen for, or a condition for accepting the result that is met.
    """
    c = result.certificate
    first, nothing = c.first, c.refuse(c.first)
    if not nothing:
        return first, ""
    asked = {decision.condition.name for decision in result.decisions if decision.met}
    if result.problem.required is not None:
        asked.add(result.problem.required.name)
    proven = (claim for claim in c.claims if str(claim.quantity) in asked and claim.says_something)
    asked_for = next((claim for claim in proven if not claim.quantity.is_error), None)
    return asked_for if first.quantity.is_error else None, nothing


def find_verdict(result: Certified) -> str:
    """Return one of "may be quoted", "with caution", "nothing yet" and "not accepted"."""
    if not all(decision.met for decision in result.decisions):
        return "not accepted"
    if find_quoted(result)[0] is None:
        return "nothing yet"
    cautions = [*present("cautions", result), result.problem.all_rows.units.question]
    return "with caution" if any(cautions) else "may be quoted"


def mark_rows(result: Result, rows: Rows, rule: Rule, predicted: Prediction) -> tuple[Marks, list[str]]:
    """Return what claims say of single rows that a rule has predicted, and sentences on what is proven.

    The marks are arrays (rows,) by name: ``low`` and ``high`` are the ends of what is claimed around numbers,
    as in ``predict_interval``; ``flag`` says whether the score reaches the cut-off that was chosen;
    ``answered`` whether the rule is confident enough: for no row if nothing is proven of such rows.
    """
    marks, claims, problem, told = Marks(), result.claims, result.problem, [result.claim_for(rule)]
    if (width := _find_width(claims, rule)) is not None:
        marks |= {"low": predicted.label - width.risk, "high": predicted.label + width.risk}
    flags = next((claim.make_rule(problem) for claim in claims if claim.cut_off is not None), None)
    if flags is not None:
        flagged = predicted if rule == flags else flags.predict(result.models, rows)
        marks["flag"] = np.asarray(flagged.label == problem.positive)
        told += [f"column flag {result.claim_for(flags)}"] * (flags != rule)
        if flags.cut_off is not None and flags.name == rule.name:  # else the score is of others
            at, label = flags.cut_off.value, result.task.classes[problem.positive]
            told.append(f"column flag: where score, larger for {label!r}, is at least {at}")
    elif isinstance(result, Certified) and (required := problem.required) is not None:
        told.append(f"no column flag: {result.certificate.explain_lack_of_cut_off(required)}")
    for claim in [claim for claim in claims if claim.quantity.answers and claim.quantity.at_most][:1]:
        answers = claim.make_rule(problem)
        if rule == answers:
            least = inf if claim.least_confidence is None else claim.least_confidence
            marks["answered"] = rule.measure_confidence(result.models, rows) >= least
        else:
            told.append(f"no column answered: it is about the predictions by {answers.classifier()}")
    return marks, told


def _find_width(claims: Sequence[Claim], rule: Rule) -> Claim | None:
    """Return the claim that says how far off a rule's numbers are; of several, the one of most rows."""
    widths = {
        claim.quantity.width_of: claim
        for claim in claims
        if claim.quantity.width_of is not None and claim.bound is not None and claim.covers(rule)
    }
    return widths[max(widths)] if widths else None


def find_error_claim(claims: Sequence[Claim], rule: Rule) -> Claim | None:
    """Return the claim that bounds the error of a rule, by its ``risk``, as ``claim_for`` says it.

    For a majority it may be twice the bound of a random member. Of numbers it is about the mean error as a
    share of the clip.
    """
    errors = [replace(claim, bound=min(1.0, claim.risk)) for claim in claims if claim.quantity.is_error]
    drawn = [claim for claim in errors if rule.name == "vote" and claim.classifier == "random"]
    twice = [replace(claim, bound=min(1.0, 2 * claim.risk)) for claim in drawn]
    return next(iter([claim for claim in errors if claim.covers(rule)] + twice), None)

"""A run's result: what ``run``, ``evaluate`` and ``load_run`` return, for either kind of study.

With a certification it is the candidates, the models and what is proven; without one the scores of every
split, and what they amount to. Also here: settings by their scores, and the hyperparameters in which they
differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, nan, sqrt
from secrets import randbits
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from ckcv_ray import errors
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.quantity import Acceptance, Claim, decide, is_fixed_for
from ckcv_ray.claims.rules import ONE_MODEL, CutOff, Rule, find_member, parse_rule
from ckcv_ray.core.bounds.binomial import bound_both_sides
from ckcv_ray.core.bounds.paired import Compared, compare_scores
from ckcv_ray.core.draws import BEST_OF_ROWS, Draws
from ckcv_ray.core.intervals import BBC, BOOTSTRAPS, INTERVALS, LEVEL, MISS, bound_score
from ckcv_ray.core.measures import PROBABILITY, Outputs, Score, make_score
from ckcv_ray.core.options import present
from ckcv_ray.core.resampling.base import Term
from ckcv_ray.core.schedule import Stage
from ckcv_ray.core.selection import choose_setting
from ckcv_ray.engine.queue import Scores
from ckcv_ray.errors import Classes, InputError, Limits, Rows, Values, ceil_percent, format_level, pluralize
from ckcv_ray.learners.base import LEARNERS, ZOO, Setting
from ckcv_ray.learners.choice import LABEL
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.records.candidates import per_k, per_learner
from ckcv_ray.records.judged import read_outputs
from ckcv_ray.records.record import Records
from ckcv_ray.study.parts import EACH, Holdout, Paper
from ckcv_ray.study.problem import OUTER, Problem, check_procedure, describe_setting
from ckcv_ray.study.study import MAX_SEED, AnyStudy, Procedure, Study
from ckcv_ray.tables.questions import Repeats, find_repeats
from ckcv_ray.tables.task import Task, make_rows, make_scored_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ckcv_ray.reports.figures import Plots

DRAWING = ("auto", "random")  # rules that draw members
Marks = dict[str, Values | NDArray[np.bool_]]  # what claims say about single rows, by name
SCORE_DELTA = 0.05  # of the bounds on the scores of one split
CHOSEN = {
    "best": "the best",
    "one_se": "the simplest within one standard error of the best",
    "tolerance": "the simplest within {} of the best",
}


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
        lack = f"probabilities: {explain_no_probabilities()}"
        raise InputError(f"{lack}: choose one of these learners, or leave them out")
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
            lack = f"by={by} is a majority of classes, and this run predicts numbers"
            raise InputError(f"{lack}: leave it out, or choose refit or random")
        if rule.name in ONE_MODEL and self.models.refit is None:
            raise InputError(f"this run has no model {rule.name}: it was made without --certify holdout")
        if rule.name.startswith("member:"):
            errors.integer("member", find_member(rule.name), least=0, most=len(self.ensemble.members) - 1)
        if rule.name not in DRAWING:
            if seed is not None:
                raise InputError(f"seed and {rule.name} exclude each other: {rule.name} draws no members")
            return rule
        first = self.certificate.first
        if rule.name == "auto" and seed is None and first.certification == Holdout.name:
            return first.make_rule(self.problem)
        drawn = randbits(63) if seed is None else errors.integer("seed", seed, least=0, most=MAX_SEED)
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
            cure = "ckcv run --certify holdout --claim refit,within:0.9 proves one, for learners of numbers"
            raise InputError(f"no interval is proven for {rule.classifier()}: {cure}")
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
                clip = errors.format_number(c.numbers["clip"])
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
            other = "the bound is of the one that did not see the held-out rows"
            said = f"by {of}: nothing is proven of this model; {other}"
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
            "accepted": [one._asdict() | {"condition": str(one.condition)} for one in self.decisions] or None,
            "constant": None not in c.constants["members"],
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
    if not failures:
        return ""
    why = f"{pluralize(len(failures), 'path')} failed: {errors.name_reason(failures[0][-1])}"
    return f'{why}; tracebacks are in the report and in execution["failures"]'


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


class Figures(NamedTuple):
    """One score of one entry over all splits.

    Attributes:
        mean, deviation, error: mean over splits, their standard deviation (n - 1), and the standard error,
            which presumes that splits are independent, as they hardly ever are; nan if a split lacks it.
            Where a resampling combines splits into an estimate, the mean is that, and the others are nan.
        pooled: the score of all scored rows as one set; None if it cannot be pooled, nan if a split lacks it.
        missing: splits that failed, or whose setting could not be selected.
        undefined: splits in which the score is not defined, such as AUC where a class is missing.
    """

    mean: float
    deviation: float
    error: float
    pooled: float | None
    missing: int
    undefined: int


class PermutationTest(NamedTuple):
    """How often a mean score with permuted targets is at least as good as the mean score.

    The null hypothesis is that targets do not depend on the other columns (with groups: within groups).
    Ojala, Garriga, "Permutation Tests for Studying Classifier Performance", JMLR 11, 2010, test 1.

    Attributes:
        p: (1 + as_good + undefined) / (1 + n); nan if the mean itself is unknown.
        as_good: number of permutations whose mean is as good or better.
        undefined: number of permutations without a mean, as where a split lacks a class. They count as if
            they were as good, since p may be too large but not too small.
        n: number of permutations.
    """

    p: float
    as_good: int
    undefined: int
    n: int


class Place(NamedTuple):
    """Where a setting ranks by one score.

    Attributes:
        mean, deviation: over splits; the deviation is nan for a single split or an estimate that
            combines splits; both are nan where a split has no score.
        rank: 1 for the best mean among the settings of all learners; equal means share the smallest rank.
            None where there is no mean.
    """

    mean: float
    deviation: float
    rank: int | None


class SettingScores(NamedTuple):
    """The scores of one setting.

    Attributes:
        learner: label of the learner.
        setting: its hyperparameters by name.
        path, step: its position in the search space.
        inner: whether splits are those inside training sets, where a nested resampling selects.
        places: where it ranks by each score, by the score's name.
    """

    learner: str
    setting: Setting
    path: int
    step: int
    inner: bool
    places: Mapping[str, Place]


@dataclass(frozen=True, eq=False)
class Entry:
    """What is compared: a learner at one setting, or at the settings selected for it.

    Attributes:
        learner: label of the learner.
        name: the learner, and its setting if it has entries at others.
        positions: path and step on each split, (n_splits, 2); -1 where nothing could be selected.
        totals: totals of the scores on each split, (n_splits, n_totals); nan where they are missing.
        known: whether there are totals, (n_splits,); those of an undefined score are nan as well.
        settings: the setting on each split; None where nothing could be selected.
    """

    learner: str
    name: str
    positions: errors.Index
    totals: Values
    known: NDArray[np.bool_]
    settings: tuple[Setting | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Scored(Result):
    """The outcome of a study without a certification: the scores of every split, as entries and figures.

    Attributes:
        computed: the scores of every split.
    """

    computed: Scores

    @property
    def study(self) -> Procedure:
        """The procedure, in its canonical form for the task."""
        return self.problem.procedure

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries compared, in the order of the learners and their settings."""
        problem, computed, found = self.problem, self.computed, list[Entry]()
        names, chosen = list(problem.learners), computed.chosen
        numbers = list(range(len(names)))
        if chosen is None:
            lengths = enumerate(problem.learner.space.lengths)
            places = [(path, step) for path, length in lengths for step in range(length)]
            chosen = np.tile(places, (computed.n_splits, 1, 1))
            numbers = problem.learner_of_paths[chosen[0, :, 0]].tolist()
        for number, positions in zip(numbers, chosen.swapaxes(0, 1), strict=True):
            at = np.arange(len(positions)), positions[:, 0], positions[:, 1]
            known = computed.known[at] & (positions[:, 0] >= 0)
            totals = np.where(known[:, None], computed.totals[at], nan)
            setting, learner = problem.learner.space.setting, names[number]
            settings = tuple(setting(*place) if place[0] >= 0 else None for place in positions.tolist())
            listed = len(numbers) > len(names)  # see ``lists_settings``
            name = f"{learner} ({format_setting(settings[0] or {})})" if listed else learner
            found.append(Entry(learner, name, positions, totals, known, settings))
        return tuple(found)

    @cached_property
    def _kept(self) -> Entry | None:
        if not self.study.choose or (best := self._best) is None:
            return None
        score, same = self.scores[0], [entry for entry in self.entries if entry.learner == best.learner]
        found = [self.figures(entry, score) for entry in same]
        losses = np.array([score.loss * figures.mean for figures in found])
        errors, settings = np.array([one.error for one in found]), [entry.settings[0] or {} for entry in same]
        return same[choose_setting(self.study.choose, losses, errors, settings)]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores requested."""
        return tuple(score for score in self.problem.scores if score.name in self.study.measure_names)

    @property
    def complete(self) -> bool:
        """Whether every score of every entry has a value on every split."""
        figures = (self.figures(entry, score) for entry in self.entries for score in self.scores)
        return not any(found.missing or found.undefined for found in figures)

    @cached_property
    def settings(self) -> list[SettingScores]:
        """Mean, standard deviation and rank of every setting, by learner, in the order of its settings.

        With a nested resampling they are those of the inner splits, which score all settings: the mean over
        outer splits of the means over their inner splits, by which one setting for all splits is
        selected, and the deviation over all inner splits.
        """
        inner, problem, nested = self.computed.inner, self.problem, self.computed.inner is not None
        names, space, of_paths = list(problem.learners), problem.learner.space, problem.learner_of_paths
        positions = [(path, step) for path, length in enumerate(space.lengths) for step in range(length)]
        places = [dict[str, Place]() for _ in positions]
        for score in self.scores if inner is None else problem.scores:
            if inner is None:
                found = [self.figures(entry, score)[:2] for entry in self.entries]
            else:
                found, limits = [], list(pairwise(problem.starts.tolist()))
                for path, step in positions:
                    values = inner[:, path, step, problem.columns[score.name].start]
                    mean = float(np.mean([values[first:stop].mean() for first, stop in limits]))
                    found.append((mean, float(values.std(ddof=1)) if len(values) > 1 else nan))
            losses = score.loss * np.array([mean for mean, _ in found])
            known = np.sort(losses[~np.isnan(losses)])
            for of_setting, (mean, deviation), loss in zip(places, found, losses.tolist(), strict=True):
                rank = None if loss != loss else 1 + int(np.searchsorted(known, loss))
                of_setting[score.name] = Place(mean, deviation, rank)
        return [
            SettingScores(names[of_paths[path]], space.setting(path, step), path, step, nested, of_setting)
            for of_setting, (path, step) in zip(places, positions, strict=True)
        ]

    def table(self) -> pa.Table:
        """Return a row for each entry and split: learner, setting, rows, every score."""
        rows = [
            {
                "learner": entry.learner,
                "setting": None if setting is None else format_setting(setting),
                "split": split,
                "rows_fitted": int(self._rows[split, 0]),
                "rows_scored": int(self._rows[split, 1]),
                **{score.name: write_values(self.of_splits(entry, score)[split]) for score in self.scores},
            }
            for entry in self.entries
            for split, setting in enumerate(entry.settings)
        ]
        return pa.Table.from_pylist(rows)

    def rule(self, by: str = "auto", seed: int | None = None) -> Rule:
        """Return the rule of the model fitted on all rows, the only one; see ``Result``."""
        rule = parse_rule(by)
        if self.models.full is None:
            lack = "there is no model to predict by: its scores are all that this study keeps"
            raise InputError(f"{lack}; ckcv evaluate --refit best fits one on all rows")
        if rule.name not in ("auto", "full") or seed is not None:
            asked = rule.name if seed is None else f"seed={seed}"
            raise InputError(f"{asked} is for an ensemble, and this study has one model: leave it out")
        return Rule("full")

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says that nothing is proven, and which model it is."""
        return f"by {rule.classifier()}: nothing is proven for it; {describe_kept(self)}"

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values; what is not known is null."""
        costs = {name: self.execution[name] for name in ("fits", "seconds")}
        settings = [
            {"learner": row.learner, "setting": dict(row.setting), "inner": row.inner}
            | {"scores": write_values(row.places)}
            for row in self.settings
        ]
        return summarize_scores(self) | costs | {"settings": settings}

    def of_splits(self, entry: Entry, score: Score) -> Values:
        """Return a score on each split, (n_splits,); nan where there is none."""
        return entry.totals[:, self.problem.columns[score.name].start]

    def figures(self, entry: Entry, score: Score) -> Figures:
        """Summarize a score over all splits; a score that some split lacks has no mean."""
        terms, totals, at = self._terms, entry.totals, self.problem.columns[score.name]
        used = np.logical_or.reduce([term.splits for term in terms])
        values, missing = totals[used, at.start], ~entry.known[used]
        undefined, pooled = int(np.sum(np.isnan(values) & ~missing)), None
        complete = not (missing.any() or undefined)
        mean = nan
        if complete:
            mean = self._estimate(score, totals, lambda part: float(part[:, at.start].mean()))
        spread = complete and len(terms) == 1 and len(values) > 1
        deviation = float(values.std(ddof=1)) if spread else nan
        if score.sums is not None:
            sums = slice(at.start + 1, at.stop)
            pooled = nan
            if not np.isnan(totals[used, sums]).any():
                pooled = self._estimate(score, totals, lambda part: score.pooled(part[:, sums]))
        return Figures(mean, deviation, deviation / sqrt(len(values)), pooled, int(missing.sum()), undefined)

    def bounds(self, entry: Entry, score: Score) -> Values:
        """Return what a score of each split's model is at most on new rows, (n_splits,), at 95 %.

        It is at least this if larger scores are better; nan where nothing is proven. Each bound holds by
        itself, and for a split and a setting that were named before the scores were seen.
        """
        if not score.bound or explain_no_bound(self):
            return np.full(len(entry.totals), nan)
        sums = entry.totals[:, self.problem.columns[score.name]][:, 1:]
        bounds = (nan if np.isnan(row).any() else bound_score(score, row, SCORE_DELTA) for row in sums)
        return np.array([*bounds])

    def interval(self, entry: Entry, score: Score, name: str = "") -> Limits:
        """Return a 95 % interval around the mean of a score; it is approximate except for a single split.

        Args:
            entry, score: what the interval is of.
            name: an interval in ``core.intervals``; by default the study's.

        Raises:
            InputError: the study has none, or none of this name exists for its splits or this score.
        """
        name = name or self.study.interval
        if not name:
            raise InputError("this study has no interval: name one, such as corrected_t")
        if name != self.study.interval:
            measure = self.study.functions.get(score.name, score.name)
            asked = replace(self.study, interval=name, measure=(measure,))
            check_procedure(asked, (score,), self.task)
        if INTERVALS[name].choosing:
            return self._corrected[score.name] if entry is self._best else Limits(nan, nan)
        values = self.of_splits(entry, score)
        if np.isnan(values).any():
            return Limits(nan, nan)
        if INTERVALS[name].exact:  # of a single split
            part, rows = entry.totals[0, self.problem.columns[score.name]][1:].tolist()
            return Limits(*bound_both_sides(int(part), int(rows), MISS))
        fitted, scored = self._rows.sum(axis=0)
        compared = compare_scores(values, np.zeros(len(values)), float(scored / fitted))
        return Limits(compared.low, compared.high)

    def plot(self, axes: "Axes | None" = None, score: str = "") -> "Axes":
        """Draw a score on each split, its mean over them, and its interval if the study has one.

        Args:
            axes: matplotlib axes to draw on; None makes new ones, which a notebook shows.
            score: name of one of the scores; "" for the first.

        Raises:
            InputError: there is no such score, or no split has it.
        """
        by_name = {each.name: each for each in self.scores}
        chosen = by_name[errors.check_choice("score", score, by_name)] if score else self.scores[0]
        return cast("Axes", present("scores", self, chosen, axes))

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        return self.study.resampling.terms(np.arange(self.computed.n_splits))

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        """How many rows each split fits on, and how many it scores, (n_splits, 2)."""
        parts = (self.problem.rows(Stage.SELECT, OUTER, i) for i in range(self.computed.n_splits))
        return np.array([[len(train), len(scored)] for train, scored in parts])

    @cached_property
    def _repeats(self) -> Repeats:
        return find_repeats(self.task)

    @property
    def _best(self) -> Entry | None:
        """The entry with the best mean of the first score; None if none has a mean."""
        entry, figures = rank_entries(self, self.scores[0])[0]
        return entry if figures.mean == figures.mean else None

    @cached_property
    def _corrected(self) -> dict[str, Limits]:
        """The best entry's BBC interval, corrected for its being chosen, by the name of the score."""
        if (row_values := self.computed.row_values) is None:
            lack = f"interval={BBC} needs the values of rows"
            raise InputError(f"{lack}, which only an evaluation with interval={BBC} keeps")
        first, found = self.scores[0], {name: list[float]() for name in row_values}
        losses = first.loss * row_values[first.name]
        losses = np.where(np.isnan(losses), inf, losses)  # an entry without all values is not chosen
        rng, n = Draws(self.study.seed, self.task.salt).at(*BEST_OF_ROWS).make_generator(), len(losses)
        while len(found[first.name]) < BOOTSTRAPS:
            drawn = rng.integers(n, size=n)
            rest = np.bincount(drawn, minlength=n) == 0
            if rest.any():
                best = int(losses[drawn].sum(axis=0).argmin())
                for name, values in row_values.items():
                    found[name].append(float(values[rest, best].mean()))
        ends = [MISS / 2, 1 - MISS / 2]
        return {name: Limits(*map(float, np.quantile(scores, ends))) for name, scores in found.items()}

    def _estimate(self, score: Score, totals: Values, estimate: Callable[[Values], float]) -> float:
        """Return the weighted sum of what is estimated on each term's splits, corrected as the study does.

        ``totals`` are those of every split, (n_splits, n_totals); ``estimate`` takes those of one term.
        """
        resampling, means = self.study.resampling, [estimate(totals[term.splits]) for term in self._terms]
        first, *rest = (term.factor * mean for term, mean in zip(self._terms, means, strict=True))
        if not resampling.corrected:
            return sum(rest, first)
        last = self.problem.columns[score.name].stop - 1
        without = float(totals[self._terms[-1].splits][:, last].mean())
        losses = [score.loss * mean for mean in means]
        return sum(rest, first) + score.loss * resampling.correct(losses, score.loss * without)

    @property
    def setting(self) -> Setting:
        """The setting of the model that is kept, which has to exist."""
        if (kept := self._kept) is None or kept.settings[0] is None:
            raise InputError("no model is kept: ckcv evaluate --refit best keeps one")
        return kept.settings[0]


def find_kept(result: Scored) -> Entry | None:
    """Return the entry whose setting is chosen to be fitted on all rows.

    None if the study asks for none, or no entry has the first score on every split. Only the settings of the
    best entry's learner are compared for simplicity.
    """
    return result._kept


def count_repeats(result: Scored) -> Repeats:
    """Return which rows equal another one in every column except those that number the rows."""
    return result._repeats


def describe_kept(result: Scored) -> str:
    """Return text: which setting was fitted on all rows, how it was chosen, and what that is worth."""
    kept, score, study = result._kept, result.scores[0], result.study
    if kept is None:
        return f"no setting has {score.name} on every split, so none was fitted on all rows"
    mean = errors.format_score(result.figures(kept, score).mean)
    measured = f"its mean {score.name} by {study.resampling} is {mean}"
    if len(result.entries) == 1:
        return f"{kept.name}; {measured}"
    how, _, tolerance = study.choose.partition(":")
    return (
        f"{kept.name}, {CHOSEN[how].format(tolerance)} of {len(result.entries):,} settings; {measured}, "
        "which is too optimistic: the setting was chosen by it. To see what the choice is worth: "
        f"--resampling nested:5:5 --select-by {score.name}"
    )


def find_shown(result: Scored) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which splits are shown one by one, (n_splits,), and how many rows each of these scores."""
    shown = result._terms[0].splits  # those of the first mean in the estimate
    return shown, result._rows[shown, 1]


def lists_settings(result: Scored) -> bool:
    """Return whether settings of a learner are separate entries, which are listed but not compared."""
    return len(result.entries) > len(result.problem.learners)


def list_short_names(result: Scored) -> list[str]:
    """Return a short name for each entry: its learner, or the values of what differs between settings."""
    if not lists_settings(result):
        return [entry.name for entry in result.entries]
    settings, names = [entry.settings[0] or {} for entry in result.entries], list[str]()
    differing = list_differing(settings)
    for entry, setting in zip(result.entries, settings, strict=True):
        values = ", ".join(str(setting[name]) for name in differing if name in setting)
        names.append(f"{entry.learner}: {values}" if len(result.problem.learners) > 1 else values)
    return names


def rank_entries(result: Scored, score: Score) -> list[tuple[Entry, Figures]]:
    """Return the entries by their mean of a score, the best first; those without a mean come last."""
    found = [(entry, result.figures(entry, score)) for entry in result.entries]
    return sorted(found, key=lambda of: inf if of[1].mean != of[1].mean else of[1].mean * score.loss)


def explain_no_bound(result: Scored) -> str:
    """Return why the rows that a split scores prove nothing about its model; "" if they prove something."""
    study = result.study
    if not result.task.units.independent:
        return "rows belong to groups"
    if study.resampling.no_bound:
        return study.resampling.no_bound
    selected = study.select_by is not None and study.select != EACH
    return "settings were selected by rows of all splits" if selected else ""


def compare_entries(result: Scored, score: Score) -> list[tuple[Entry, Entry, Compared]]:
    """Compare each learner that has a mean with the best one, by the corrected resampled t-test."""
    losses = {entry: result.figures(entry, score).mean * score.loss for entry in result.entries}
    known, n_splits = [entry for entry, loss in losses.items() if loss == loss], result.computed.n_splits
    if len(known) < 2 or lists_settings(result) or n_splits < 2 or len(result._terms) > 1:
        return []
    best = min(known, key=losses.__getitem__)
    fitted, scored = result._rows.sum(axis=0)
    lowest, ratio = result.of_splits(best, score), float(scored / fitted)
    others = (entry for entry in known if entry is not best)
    return [(one, best, compare_scores(result.of_splits(one, score), lowest, ratio)) for one in others]


def judge_by_permutations(result: Scored, entry: Entry, score: Score) -> PermutationTest | None:
    """Test the mean of a score; None without permutations."""
    if (permuted := result.computed.permuted) is None:
        return None
    path, step = entry.positions[0].tolist()
    column = result.problem.columns[score.name].start
    of_place = permuted[:, :, path, step]
    found = (result._estimate(score, each, lambda part: float(part[:, column].mean())) for each in of_place)
    means = np.array([*found])
    mean, n = result.figures(entry, score).mean, len(means)
    as_good, undefined = int(np.sum(score.loss * means <= score.loss * mean)), int(np.isnan(means).sum())
    p = nan if np.isnan(mean) else (1 + as_good + undefined) / (1 + n)
    return PermutationTest(p, as_good, undefined, n)


def summarize_scores(result: Scored) -> dict[str, object]:
    """Return the scores as JSON values, without what depends on the run; what is not known is null."""
    entries = list[dict[str, Any]]()
    for entry in result.entries:
        scores = dict[str, Any]()
        for score in result.scores:
            values = result.figures(entry, score)._asdict()
            values |= {"splits": result.of_splits(entry, score), "bounds": result.bounds(entry, score)}
            if (test := judge_by_permutations(result, entry, score)) is not None:
                values["permutations"] = test
            if result.study.interval:
                interval = {"name": result.study.interval, "level": LEVEL}
                values["approximate_interval"] = interval | result.interval(entry, score)._asdict()
            scores[score.name] = write_values(values)
        same = all(setting == entry.settings[0] for setting in entry.settings)
        settings = [None if setting is None else dict(setting) for setting in entry.settings]
        one, several = (settings[0], None) if same else (None, settings)
        entries.append({"learner": entry.learner, "setting": one, "settings": several, "scores": scores})
    return {
        "run_id": result.run_id,
        "procedure": result.study.to_json(),
        "rows": result.task.n,
        "repeats": result._repeats.rows,
        "splits": result.computed.n_splits,
        "complete": result.complete,
        "unbounded": explain_no_bound(result) or None,
        "entries": entries,
        "comparisons": {
            score.name: [
                {"of": of.name, "and": best.name, **write_values(test)}
                for of, best, test in compare_entries(result, score)
            ]
            for score in result.scores
        },
    }


def add_row_values(result: Scored, held_out: pa.Table | None) -> Scored:
    """Return a result with the values of rows, if its interval needs them.

    Args:
        result: the scores.
        held_out: its predictions, entry by entry and split by split; None if not kept.

    Raises:
        ValueError: these are not predictions of the study.
    """
    if result.study.interval != BBC or held_out is None:
        return result
    y, problem, first = result.task.y, result.problem, 0
    shape = result.task.n, len(result.entries)
    values: dict[str, Values] = {score.name: np.full(shape, np.nan) for score in result.scores}
    for number, entry in enumerate(result.entries):
        for split in np.flatnonzero(entry.known).tolist():
            _, scored = problem.rows(Stage.SELECT, OUTER, split)
            part, first = held_out.slice(first, len(scored)), first + len(scored)
            if part["row"].to_pylist() != scored.tolist():
                raise ValueError(f"its rows are not those that split {split} scores for {entry.name}")
            outputs = read_outputs(part)
            for score in result.scores:
                assert score.rows is not None
                values[score.name][scored, number] = score.rows(y[scored], outputs)
    return replace(result, computed=result.computed._replace(row_values=values))


def list_differing(settings: Sequence[Setting]) -> dict[str, list[object]]:
    """Return the distinct values of each hyperparameter that has several.

    Numbers are in ascending order, other values in order of appearance; a missing value is None.
    """
    found = dict[str, list[object]]()
    for name in dict.fromkeys(name for setting in settings for name in setting if name != LABEL):
        values: list[Any] = [*{repr(setting.get(name)): setting.get(name) for setting in settings}.values()]
        if len(values) > 1:
            found[name] = sorted(values) if is_numeric(values) else values
    return found


def is_numeric(values: Sequence[object]) -> bool:
    """Return whether values of a hyperparameter are finite numbers."""
    return all(isinstance(each, int | float) and type(each) is not bool and isfinite(each) for each in values)


def shorten_setting(setting: Setting | None) -> str:
    """Format hyperparameters to three digits; "" if there are none."""
    return ", ".join(f"{name} = {shorten_value(value)}" for name, value in (setting or {}).items())


def shorten_value(value: object) -> str:
    """Format a hyperparameter to three digits; "" for None."""
    if value is None:
        return ""
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, float | np.floating) else str(value)

"""A run's result: what ``run``, ``evaluate`` and ``load_run`` return."""

from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
from secrets import randbits
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.quantity import Claim
from ckcv_ray.claims.rules import ONE_MODEL, Rule, find_member, parse_rule
from ckcv_ray.core.arrays import Values
from ckcv_ray.core.intervals import LEVEL
from ckcv_ray.core.measures import Output
from ckcv_ray.core.percent import ceil_percent, format_level, format_number
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Learner
from ckcv_ray.learners.ensemble import Ensemble, Prediction
from ckcv_ray.records.record import Records
from ckcv_ray.runs.settings import SettingScores, describe_settings, rank_settings
from ckcv_ray.runs.values import Entry, ResultValues, format_setting, to_number
from ckcv_ray.study.parts import Holdout
from ckcv_ray.study.study import MAX_SEED
from ckcv_ray.tables.columns import Label, Rows
from ckcv_ray.tables.task import make_rows
from ckcv_ray.validation import integer

DRAWING = ("auto", "random")  # rules that draw members
SHOWN = {  # how a result is shown, which is made above this folder, and imported when it is asked for
    "card": "reports.render.make_card",
    "edges": "reports.facts.list_edges",
    "kept": "reports.scores.describe_kept",
    "plot": "reports.figures.Plots",
    "summary": "reports.render.summarize",
}
if TYPE_CHECKING:
    from ckcv_ray.reports.figures import Plots


@dataclass(frozen=True, eq=False, repr=False)
class Result(ResultValues):
    """The outcome of a study: its values, predictions, and both as text and as JSON.

    Attributes:
        records: of all evaluations; None unless they were asked for.
    """

    records: Records | None = None

    @property
    def proven(self) -> float:
        """The bound to quote, in [0, 1]: that of the certificate's first claim.

        An upper bound on an error, of numbers as a share of the clip; if the first claim is about a quantity
        such as sensitivity, an upper bound on 1 minus that quantity; if it is within:0.9, the width itself.
        """
        return self.certificate.claims.first.risk

    @property
    def baseline(self) -> float:
        """Error of always predicting the most common class of the learning rows, on these rows; if the first
        claim is from held-out rows, on those, if it is smaller there. A bound that is not below it says
        nothing beyond this constant.
        """
        return self.certificate.sample.baseline.error

    @property
    def test_error(self) -> float | None:
        """Mean error rate of the members on the test rows, if there were any."""
        test = self.execution.get("test")
        return test["error"] if test else None

    @property
    def plot(self) -> "Plots":
        """Plots for notebooks, such as ``plot.bounds()``, each of which returns axes of matplotlib."""
        plots: Plots = _show("plot", self)
        return plots

    def table(self) -> pa.Table:
        """Return the candidates, or a row for each entry and split: learner, setting, rows, every score."""
        if self.finished is not None:
            return self.candidates
        splits = range(self.n_splits)
        return pa.Table.from_pylist([self._describe_row(entry, i) for entry in self.entries for i in splits])

    @property
    def settings(self) -> list[SettingScores]:
        """Mean, standard deviation and rank of every setting, without a certification."""
        return rank_settings(self)

    def to_frame(self) -> Any:
        """Return ``table`` as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            return self.table().to_pandas()
        except ImportError:
            raise InputError("to_frame needs pandas: pip install pandas, or use .table() (Arrow)") from None

    def edges(self) -> list[str]:
        """Return one sentence for each grid, a list of numbers, that has the winner on its edge."""
        edges: list[str] = _show("edges", self.problem, self.setting)
        return edges

    def predict(self, X: ArrayLike, by: str = "auto", seed: int | None = None) -> NDArray[Any]:
        """Predict the original labels of X [rows, d], or numbers, by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        return self.task.labelled(self.predictions(X, self.rule(by, seed)).label)

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
                given one by one would all meet one of them, and what is proven of independent draws is about
                one call. None draws afresh.

        Raises:
            InputError: the seed is not an integer of 0 or more, or the rule draws nothing; ``by`` names no
                rule, there is no such member, or no row was held out.
        """
        rule = parse_rule(by)
        if self.finished is None:
            return self._check_full(rule, seed)
        if rule.name == "vote" and self.task.has_numbers:
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
        first = self.certificate.claims.first
        if rule.name == "auto" and seed is None and first.certification == Holdout.name:
            return first.make_rule(self.problem)
        drawn = randbits(63) if seed is None else integer("seed", seed, least=0, most=MAX_SEED)
        return Rule("random", drawn, repeats=seed is not None)

    @property
    def flag_rule(self) -> Rule | None:
        """The rule that flags rows by the cut-off that was chosen, if one was."""
        if self.finished is None:
            return None
        chosen = [claim for claim in self.certificate.claims if claim.cut_off is not None]
        return chosen[0].make_rule(self.problem) if chosen else None

    def describe_lack_of_cut_off(self) -> str:
        """Return the sentence that says why no cut-off was chosen; "" if one was, or none is required."""
        if self.finished is None or (required := self.problem.required) is None:
            return ""
        return self.certificate.claims.explain_lack_of_cut_off(required)

    @property
    def answer_rule(self) -> Rule | None:
        """The rule whose predictions are answered only where it is confident, if the study says so."""
        claim = self._find_answer_claim()
        return None if claim is None else claim.make_rule(self.problem)

    def mark_answered(self, rows: Rows) -> NDArray[np.bool_]:
        """Return for rows of numbers whether ``answer_rule`` is confident enough: none if nothing is proven.

        Raises:
            InputError: the study answers all rows.
        """
        if (claim := self._find_answer_claim()) is None:
            raise InputError("all rows are answered: this run was made without --answer")
        rule = claim.make_rule(self.problem)
        return rule.measure_confidence(self.models, rows) >= (
            inf if claim.least_confidence is None else claim.least_confidence
        )

    def _find_answer_claim(self) -> Claim | None:
        claims = () if self.finished is None else self.certificate.claims.claims
        return next((claim for claim in claims if claim.quantity.answers and claim.quantity.at_most), None)

    def predict_interval(
        self, X: ArrayLike, by: str = "auto", seed: int | None = None
    ) -> tuple[Values, Values]:
        """Return the lower and upper ends of what is claimed around the predicted numbers of X [rows, d].

        They are as far from the prediction as the claim "within:0.9" of the rule says that nine in ten new
        rows are at most; of several such claims the one of most rows. Each array is of shape (rows,).

        Raises:
            InputError: no such claim is about the rule, or as ``predict``.
        """
        rule = self.rule(by, seed)
        if (claim := self.find_width(rule)) is None:
            raise InputError(
                f"no interval is proven for {rule.classifier()}: ckcv run --certify holdout --claim "
                "refit,within:0.9 proves one, for learners of numbers"
            )
        predicted = self.predictions(X, rule).label
        return predicted - claim.risk, predicted + claim.risk

    def find_width(self, rule: Rule) -> Claim | None:
        """Return the claim that says how far off numbers by a rule are: of several that of most rows."""
        if self.finished is None:
            return None
        widths = {
            claim.quantity.width_of: claim
            for claim in self.certificate.claims
            if claim.quantity.width_of is not None and claim.bound is not None and claim.covers(rule)
        }
        return widths[max(widths)] if widths else None

    def predictions(self, X: ArrayLike, rule: Rule) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row.

        A rule that draws members has a seed: used for several calls, it repeats its draws in each.
        """
        return self.classify(make_rows(X, self.task), rule)

    def classify(self, rows: Rows, rule: Rule) -> Prediction:
        """Predict for rows of numbers, as ``Task.read`` makes them of columns."""
        return rule.predict(self.models, rows) if self.full is None else self.full.alone(rows)

    def probabilities(self, rows: Rows, rule: Rule, predicted: Prediction) -> Values:
        """Return the probability of each class for rows of numbers, (rows, n_classes), as the models give it.

        It is that of the member that decided, and for a majority the mean over the members. Nothing is proven
        of it.

        Raises:
            InputError: the learner has no probabilities, or numbers are predicted.
        """
        learner = self.learner
        if Output.PROBABILITY not in learner.outputs:
            raise InputError(
                f"probabilities: the learner {learner.name} has none: choose one such as linear or forest, "
                "or leave them out"
            )
        models = Ensemble(self.full.members) if self.full is not None else rule.ensemble(self.models)
        return models.probabilities(rows, predicted.member)

    @property
    def learner(self) -> Learner:
        """The learner of the models: of several the one that was selected."""
        if self.finished is not None:
            setting = self.setting
        elif self.kept is not None and self.kept.settings[0] is not None:
            setting = self.kept.settings[0]
        else:
            raise InputError("no model is kept: ckcv evaluate --refit best keeps one")
        return self.study.learner.by_label.get(setting.get("learner", ""), self.study.learner)

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        if self.finished is None:
            return f"by {rule.classifier()}: nothing is proven for it; {_show('kept', self)}"
        covering = [claim for claim in self.certificate.claims if claim.covers(rule)]
        quantities = [claim for claim in covering if not claim.quantity.is_error]
        repeats = "; this is about one call with a seed: other calls with it repeat its draws"
        condition = repeats if rule.repeats and covering else ""
        return self._error_for(rule, covering) + "".join(map(_also_proven, quantities)) + condition

    def bound_for(self, rule: Rule) -> float | None:
        """Return the bound on the error of a rule, as ``claim_for`` says it, in [0, 1]; None without one.

        Of numbers it is the bound on the mean error as a share of the clip.
        """
        if self.finished is None or (found := self._find_error_claim(rule)) is None:
            return None
        claim, factor = found
        return min(1.0, factor * claim.risk)

    def _find_error_claim(self, rule: Rule) -> tuple[Claim, int] | None:
        """Return the claim that bounds the error of a rule, and what its bound is multiplied by."""
        errors = [claim for claim in self.certificate.claims if claim.quantity.is_error]
        covering = [claim for claim in errors if claim.covers(rule)]
        if covering:
            return covering[0], 1
        drawn = [claim for claim in errors if claim.classifier == "random"]
        return (drawn[0], 2) if rule.name == "vote" and drawn else None

    def _error_for(self, rule: Rule, covering: list[Claim]) -> str:
        of = rule.classifier()
        if (found := self._find_error_claim(rule)) is not None:
            return self._proven(of, *found)
        if covering:
            return f"by {of}"
        if rule.name == "full":
            return (
                f"by {of}: nothing is proven of this model; the bound is of the one that did not see the "
                "held-out rows"
            )
        if rule.cut_off is None and self.flag_rule is not None:
            return f"by {of}: nothing is proven for its own cut-off of scores; column flag has the one chosen"
        hint = f"; ckcv run --certify holdout --claim {rule.name} would prove a bound"
        is_member = find_member(rule.name) >= 0
        return f"by {of}: nothing is proven for it alone{'' if is_member else hint}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values; what is not known is null."""
        if self.finished is None:
            costs = {name: self.execution.get(name) for name in ("fits", "seconds")}
            return self.summary_json() | costs | {"settings": describe_settings(self.settings)}
        certificate, execution = self.certificate, self.execution
        sample, first = certificate.sample, certificate.claims.first
        constant: Label | float = sample.baseline.value or 0.0
        if not self.task.has_numbers:
            constant = sample.labels[sample.baseline.predicted]
        return {
            "run_id": self.run_id,
            "state": "provisional" if certificate.winner.provisional else "finished",
            "setting": dict(self.setting),
            "k": self.k,
            "l_ms": self.l_ms,
            "l_ee": self.l_ee,
            "error": self.error,
            "proven": first.to_json(),
            "baseline": sample.baseline.to_json() | {"predicted": constant},
            "below_baseline": self.proven < self.baseline if first.quantity.is_error else None,
            "measured": [interval.to_json() for interval in self.intervals] or None,
            "accepted": [decision.to_json() for decision in self.decisions] or None,
            "constant": certificate.counts.constant,
            "classes": [
                {"label": label, "rows": rows, "share": rows / sample.n_rows}
                for label, rows in zip(sample.labels, sample.class_rows, strict=True)
            ],
            "confusion": [] if self.class_counts is None else self.class_counts[:, :-1].tolist(),
            "rows": sample.n_rows,
            "repeats": sample.repeats,
            "groups": sample.groups["count"] if sample.groups is not None else None,
            "question": self.problem.all_rows.question or None,
            "search": certificate.winner.search,
            "per_k": self.per_k(),
            "per_learner": self.per_learner(),
            **{name: execution[name] for name in ("evaluations", "fits", "not_converged", "seconds")},
            "test_error": self.test_error,
            "before": execution.get("before"),
        }

    def summary_json(self) -> dict[str, Any]:
        """Return the scores as JSON values, without what depends on the run; what is not known is null."""
        return {
            "run_id": self.run_id,
            "procedure": self.study.to_json(),
            "rows": self.task.n,
            "repeats": self.repeats.rows,
            "splits": self.n_splits,
            "complete": self.complete,
            "unbounded": self.unbounded or None,
            "entries": [self._describe_entry(entry) for entry in self.entries],
            "comparisons": {
                score.name: [
                    {"of": of.name, "and": best.name, **{n: to_number(v) for n, v in test._asdict().items()}}
                    for of, best, test in self.compare_entries(score)
                ]
                for score in self.scores
            },
        }

    def summary(self, details: bool = False, folder: str = "") -> str:
        """Return the result for people: what may be quoted and what to do next, or the scores.

        Args:
            details: whether every figure and every claim follows.
            folder: where the run is kept, for commands to paste; "" without one.
        """
        summary: str = _show("summary", self, details, folder)
        return summary

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        """Return the result in one line, or its scores."""
        if self.finished is None:
            return self.summary()
        first = self.certificate.claims.first
        level = format_level(first.delta)
        return f"<Result {self.run_id}: {first.name} {first.says}, with probability {level}>"

    def _repr_html_(self) -> str:
        """Return the result for a notebook: a card with the bound drawn, or the scores."""
        card: str = _show("card", self)
        return card

    def _describe_entry(self, entry: Entry) -> dict[str, Any]:
        scores: dict[str, Any] = {}
        for score in self.scores:
            found, test = self.figures(entry, score), self.test_by_permutations(entry, score)
            scores[score.name] = {
                **{name: to_number(value) for name, value in found._asdict().items() if name != "name"},
                "splits": list(map(to_number, self.of_splits(entry, score).tolist())),
                "bounds": list(map(to_number, self.bounds(entry, score).tolist())),
            }
            if test is not None:
                numbers = {name: to_number(value) for name, value in test._asdict().items()}
                scores[score.name]["permutations"] = numbers
            if self.study.interval:
                low, high = map(to_number, self.interval(entry, score))
                approximate = {"name": self.study.interval, "level": LEVEL, "low": low, "high": high}
                scores[score.name]["approximate_interval"] = approximate
        same = all(setting == entry.settings[0] for setting in entry.settings)
        settings = [None if setting is None else dict(setting) for setting in entry.settings]
        return {
            "learner": entry.learner,
            "setting": settings[0] if same else None,
            "settings": None if same else settings,
            "scores": scores,
        }

    def _describe_row(self, entry: Entry, split: int) -> dict[str, Any]:
        fitted, scored = self.rows[split].tolist()
        setting = entry.settings[split]
        return {
            "learner": entry.learner,
            "setting": None if setting is None else format_setting(setting),
            "split": split,
            "rows_fitted": fitted,
            "rows_scored": scored,
            **{score.name: to_number(self.of_splits(entry, score)[split]) for score in self.scores},
        }

    def _proven(self, of: str, claim: Claim, factor: int = 1) -> str:
        """Say what a claim proves for predictions whose risk is at most ``factor`` times its own."""
        bound, sample = min(1.0, factor * claim.risk), self.certificate.sample
        seen = f"; {claim.counted}" if claim.counted else ""
        how = ", twice the bound for a member drawn independently" if factor == 2 else seen
        what = f"to be wrong at most {ceil_percent(bound)} of the time"
        if sample.numbers is not None:
            clip = format_number(sample.numbers["clip"])
            counted = f"where an error above {clip} counts as {clip}"
            of_group = "on a new group's rows " if sample.groups is not None else ""
            what = f"to be off {of_group}by at most {claim.limit} on average, {counted}"
        elif sample.groups is not None:
            what = f"that of a new group's rows on average at most {ceil_percent(bound)} are wrong"
        claim = replace(claim, bound=bound)
        return (
            f"by {of}: proven {what}, with probability {format_level(claim.delta)} "
            f"({claim.certification}{how}); "
            f"{self.certificate.compare(claim).clause}"
        )

    def _check_full(self, rule: Rule, seed: int | None) -> Rule:
        """Return the rule of the model fitted on all rows, the only one without a certification."""
        if self.full is None:
            raise InputError(
                "there is no model to predict by: its scores are all that this study keeps; ckcv evaluate "
                "--refit best fits one on all rows"
            )
        if rule.name not in ("auto", "full") or seed is not None:
            asked = rule.name if seed is None else f"seed={seed}"
            raise InputError(f"{asked} is for an ensemble, and this study has one model: leave it out")
        return Rule("full")


def _show(what: str, *shown: Any) -> Any:
    """Return what one of the functions of ``SHOWN`` makes."""
    module, _, function = SHOWN[what].rpartition(".")
    return getattr(import_module(f"ckcv_ray.{module}"), function)(*shown)


def _also_proven(claim: Claim) -> str:
    """Say what a claim about a quantity proves, to be added to a sentence."""
    if claim.bound is None:
        return f"; nothing is proven of the {claim.name}"
    level = format_level(claim.delta)
    proven = f"{claim.name} {claim.says}, with probability {level}"
    return f"; {proven} ({claim.certification})"

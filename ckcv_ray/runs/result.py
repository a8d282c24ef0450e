"""A run's result: what ``run`` and ``load_run`` return."""

from dataclasses import dataclass
from html import escape
from secrets import randbits
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.baseline import Baseline, comparison, select_baseline
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import at_most, format_level
from ckcv_ray.claims.proofs import make_rule
from ckcv_ray.claims.rules import BY, ONE_MODEL, Rule, parse_rule
from ckcv_ray.claims.wording import ERROR, Claim, describe_counts, limit, quantity
from ckcv_ray.core.options import get_values
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction
from ckcv_ray.records.candidates import find_winner, per_k, per_learner
from ckcv_ray.records.record import Records
from ckcv_ray.runs.summary import summary
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import MOST_SEED, Holdout, Problem, Study, member_of
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task, make_rows
from ckcv_ray.validation import integer, quote

FLAGS = {  # of earlier versions: the value of ``by`` that each is now
    "vote": "vote",
    "nested": "nested",
    "member": "member:{}",
    "all_members": "random",
    "best_prefix": "best_prefix",
    "refit": "refit",
    "full": "full",
}
DRAWING = ("auto", "random", "best_prefix")  # rules that draw members
REPEATED = "; this is about one call with a seed: other calls with it repeat its draws"


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a study.

    Attributes:
        problem: the study on its task.
        candidates: the outcome of each setting and fold size, as an Arrow table.
        models: F*, and the other models that the study has.
        certificate: the claims.
        execution: what depends on the run: seconds, fits, evaluations, environment, error on test rows.
        records: of all evaluations; None unless they were asked for.
    """

    problem: Problem
    candidates: pa.Table
    models: Models
    certificate: Certificate
    execution: dict[str, Any]
    records: Records | None = None

    @classmethod
    def of(cls, problem: Problem, finished: Finished, execution: dict[str, Any]) -> "Result":
        """Create a result from what a finished run produced."""
        return cls(problem, *finished, execution)

    @property
    def ensemble(self) -> Ensemble:
        """F*."""
        return self.models.best

    @property
    def nested(self) -> Ensemble | None:
        """The ensemble certified by a nested certification, if there is one."""
        return self.models.nested

    @property
    def study(self) -> Study:
        """The study, in its canonical form for the task."""
        return self.problem.study

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.problem.task

    @property
    def run_id(self) -> str:
        """Identifier of the study and the data."""
        return self.certificate.origin.run_id

    @property
    def setting(self) -> Setting:
        """The winner's hyperparameters by name."""
        return self.certificate.winner.setting

    @property
    def position(self) -> tuple[int, int]:
        """The winner's path and step in the learner's search space."""
        return find_winner(self.candidates)

    @property
    def k(self) -> int:
        """The winner's number of folds."""
        return self.certificate.winner.k

    @property
    def l_ms(self) -> float:
        """The criterion at the winner, on the select sets: by default the mean bound on the error."""
        return self.certificate.winner.l_ms

    @property
    def l_ee(self) -> float:
        """The criterion on the estimate sets: by default the paper's figure."""
        return self.certificate.winner.l_ee

    @property
    def proven(self) -> float:
        """The bound to quote, in [0, 1]: that of the certificate's first claim.

        An upper bound on an error; if the first claim is about a quantity such as sensitivity, an upper bound
        on 1 minus that quantity.
        """
        return self.certificate.claims.first["bound"]

    @property
    def error(self) -> float:
        """Mean error rate of the members of F* on their estimate sets: what is estimated, not proven.

        With groups, the mean over groups of their error rates.
        """
        return self.certificate.counts.error

    @property
    def baseline(self) -> float:
        """Error of always predicting the most common class of the learning rows, on these rows; if the first
        claim is from held-out rows, on those, if it is smaller there. A bound that is not below it says
        nothing beyond this constant.
        """
        return self._baseline["error"]

    @property
    def test_error(self) -> float | None:
        """Mean error rate of the members on the test rows, if there were any."""
        test = self.execution.get("test")
        return test["error"] if test else None

    def per_k(self) -> list[dict[str, Any]]:
        """Return the outcome of every fold size."""
        return per_k(self.candidates, self.problem)

    def per_learner(self) -> list[dict[str, Any]]:
        """Return the outcome of each learner: its best candidate, or a lower bound of all it has.

        ``setting``, ``k``, ``l_ms`` are those of its best candidate, None if that is not known because the
        learner was beaten before. ``lower_bound`` is what L_MS is at least for each of its candidates.
        """
        return per_learner(self.candidates, self.problem)

    def to_frame(self) -> Any:
        """Return the candidates as a pandas DataFrame.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            return self.candidates.to_pandas()
        except ImportError:
            raise InputError(
                "to_frame needs pandas: pip install pandas, or use .candidates (Arrow)"
            ) from None

    def edges(self) -> list[str]:
        """Return one sentence for each grid, a list of numbers, that has the winner on its edge."""
        sentences = []
        _, learner = self.problem.learner_of(self.setting)
        for name, known in get_values(learner).items():
            value = self.setting.get(name)
            grid = isinstance(known, tuple) and isinstance(value, int | float) and len(known) > 1
            if grid and value in (known[0], known[-1]):
                flag = name.replace("_", "-")
                sentences.append(
                    f"{name} = {value:g} is on the edge of its grid: widen --{flag} beyond {value:g}"
                )
        return sentences

    def predict(self, X: ArrayLike, by: str = "auto", seed: int | None = None, **flags: Any) -> NDArray[Any]:
        """Predict the original labels of X [rows, d], by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        return self.task.labelled(self.predictions(X, self.rule(by, seed, **flags)).label)

    def rule(self, by: str = "auto", seed: int | None = None, **flags: Any) -> Rule:
        """Return how rows are classified: by the rule of the first claim, unless another is requested.

        Args:
            by: "auto", after a holdout certification the rule of its first claim; otherwise, and with a seed,
                "random".
                "random", a member drawn independently for each row from all members of F*, as the paper does.
                "best_prefix", the same from the members alone that the closest claim is about.
                "vote", the majority of F*.
                "member:7", the model of split 7.
                "refit", the model fitted on all rows that were not held out.
                "full", the model fitted on all rows.
                "nested", a member of the nested ensemble instead of F* drawn independently for each row.
                "nested:best_prefix", "nested:vote" and "nested:member:7", the same as without "nested:", of
                the nested ensemble.
            seed: for repeating a call that draws members: every call with it draws the same members, so rows
                given one by one would all meet one of them, and what is proven of independent draws is about
                one call. None draws afresh.
            flags: those of earlier versions, which are refused with the value of ``by`` that each is now.

        Raises:
            InputError: the seed is not an integer of 0 or more, or the rule draws nothing; ``by`` names no
                rule, there is no nested ensemble, no such member, or no row was held out.
        """
        _refuse_flags(flags)
        rule = parse_rule(by)
        ensemble = self._ensemble(rule.nested)
        if rule.name in ONE_MODEL and self.models.refit is None:
            raise InputError(f"this run has no model {rule.name}: it was made without --certify holdout")
        if rule.name.startswith("member:"):
            integer("member", member_of(rule.name), least=0, most=len(ensemble.members) - 1)
        if rule.name not in DRAWING:
            if seed is not None:
                raise InputError(f"seed and {rule.name} exclude each other: {rule.name} draws no members")
            return rule
        first = self.certificate.claims.first
        if rule.name == "auto" and seed is None and first["certification"] == Holdout.name:
            return make_rule(self.study, first["classifier"])
        drawn = randbits(63) if seed is None else integer("seed", seed, least=0, most=MOST_SEED)
        splits = self._drawn_claims(rule.nested)[-1]["splits"] if rule.name == "best_prefix" else ()
        return Rule("random", drawn, splits, repeats=seed is not None, nested=rule.nested)

    def predictions(self, X: ArrayLike, rule: Rule) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row.

        A rule that draws members has a seed: used for several calls, it repeats its draws in each.
        """
        return self.classified(make_rows(X, self.task), rule)

    def classified(self, rows: Rows, rule: Rule) -> Prediction:
        """Predict for rows of numbers, as ``Task.read`` makes them of columns."""
        return rule.predict(self.models, rows)

    def claim_for(self, rule: Rule) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        covering = [claim for claim in self.certificate.claims if _covers(claim, rule)]
        quantities = [claim for claim in covering if claim["quantity"] != ERROR]
        condition = REPEATED if rule.repeats and covering and len(rule.splits) != 1 else ""
        return self._error_for(rule, covering) + "".join(map(_also_proven, quantities)) + condition

    def _error_for(self, rule: Rule, covering: list[Claim]) -> str:
        """Say what is proven for the error of a rule, given the claims about it."""
        of = rule.classifier()
        errors = [claim for claim in covering if claim["quantity"] == ERROR]
        if errors:
            return self._proven(of, errors[0])
        drawn = [claim for claim in self._drawn_claims(rule.nested) if claim["quantity"] == ERROR]
        if rule.name == "vote" and drawn:
            return self._proven(of, drawn[0], factor=2)
        if covering:
            return f"by {of}"
        if rule.name == "full":
            return f"by {of}: nothing is proven for it; ckcv run --unlabelled FILE would prove a bound"
        hint = f"; ckcv run --certify holdout --claim {rule.name} would prove a bound"
        return f"by {of}: nothing is proven for it alone{'' if rule.nested else hint}"

    def referred(self, rows: Rows, rule: Rule) -> NDArray[np.bool_]:
        """Return for rows of numbers whether to refer each to a person: the model fitted on all rows differs.

        ``claim_for_referral`` says what is proven of the others.

        Raises:
            InputError: no row was held out, or nothing is proven for the predictions of the rule.
        """
        self._claim_of_referral(rule)
        return np.asarray(self.classified(rows, rule).label != self.classified(rows, Rule("full")).label)

    def claim_for_referral(self, rule: Rule) -> str:
        """Return one sentence that says what is proven of the rows that are not referred.

        Raises:
            InputError: as for ``referred``.
        """
        claim, of = self._claim_of_referral(rule), "of all patterns"
        if self.certificate.sample.groups is not None:
            of = "of a new group's rows, on average,"
        return (
            f"referred: rows that {Rule('full').classifier()} classifies otherwise; at most "
            f"{at_most(claim['bound'])} {of} are wrong and not referred, with probability "
            f"{format_level(claim['delta'])} ({claim['certification']})"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        certificate, execution = self.certificate, self.execution
        sample, first = certificate.sample, certificate.claims.first
        return {
            "run_id": self.run_id,
            "state": "provisional" if certificate.winner.provisional else "finished",
            "setting": dict(self.setting),
            "k": self.k,
            "l_ms": self.l_ms,
            "l_ee": self.l_ee,
            "error": self.error,
            "proven": first,
            "baseline": self._baseline | {"predicted": sample.labels[self._baseline["predicted"]]},
            "below_baseline": self.proven < self.baseline if first["quantity"] == ERROR else None,
            "constant": certificate.counts.constant,
            "classes": [
                {"label": label, "rows": rows, "share": rows / sample.n_rows}
                for label, rows in zip(sample.labels, sample.class_rows, strict=True)
            ],
            "confusion": [list(counts) for counts in certificate.counts.confusion_matrix],
            "rows": sample.n_rows,
            "repeats": sample.repeats,
            "groups": sample.groups["count"] if sample.groups is not None else None,
            "question": self.problem.all_rows.question or None,
            "per_k": self.per_k(),
            "per_learner": self.per_learner(),
            **{name: execution[name] for name in ("evaluations", "fits", "not_converged", "seconds")},
            "test_error": self.test_error,
        }

    def summary(self) -> str:
        """Return the result for people."""
        tables = self.per_k(), self.per_learner()
        return summary(self.problem, self.certificate, self.execution, *tables, self.edges())

    __repr__ = summary

    def _repr_html_(self) -> str:
        """Return the result for a notebook."""
        return f"<pre>{escape(self.summary())}</pre>"

    @property
    def _baseline(self) -> Baseline:
        return select_baseline(self.certificate.claims.first, self.certificate.sample.baselines)

    def _drawn_claims(self, nested: bool) -> list[Claim]:
        """Return the claims for a member drawn independently, that for all members first."""
        classifier = "nested" if nested else "random"
        return [claim for claim in self.certificate.claims if claim["classifier"] == classifier]

    def _proven(self, of: str, claim: Claim, factor: int = 1) -> str:
        """Say what a claim proves for predictions whose risk is at most ``factor`` times its own."""
        bound, sample = min(1.0, factor * claim["bound"]), self.certificate.sample
        seen = f"; {describe_counts(claim)}" if describe_counts(claim) else ""
        how = ", twice the bound for a member drawn independently" if factor == 2 else seen
        what = f"to be wrong at most {at_most(bound)} of the time"
        if self.certificate.sample.groups is not None:
            what = f"that of a new group's rows on average at most {at_most(bound)} are wrong"
        return (
            f"by {of}: proven {what}, with probability {format_level(claim['delta'])} "
            f"({claim['certification']}{how}); "
            f"{comparison(bound, select_baseline(claim, sample.baselines), sample.labels)}"
        )

    def _claim_of_referral(self, rule: Rule) -> Claim:
        if self.models.full is None:
            raise InputError(
                "referring rows needs the model fitted on all rows and a certified one: this run was made "
                "without --certify holdout"
            )
        errors = [claim for claim in self.certificate.claims if claim["quantity"] == ERROR]
        covering = [claim for claim in errors if _covers(claim, rule)]
        if not covering or rule.name == "full":
            raise InputError(
                f"rows are referred where the model fitted on all rows differs from a rule whose error is "
                f"certified, which that of {rule.classifier()} is not: predict by the rule of a claim about "
                "the error, such as --claim refit"
            )
        return covering[0]

    def _ensemble(self, nested: bool) -> Ensemble:
        if not nested:
            return self.ensemble
        if self.nested is None:
            raise InputError("this run has no nested ensemble: it was made without --certify nested")
        return self.nested


def _refuse_flags(flags: dict[str, Any]) -> None:
    """Raise InputError if there are any, with the value of ``by`` that each is now.

    Raises:
        TypeError: one is not in ``FLAGS``.
    """
    if unknown := [name for name in flags if name not in FLAGS]:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}: there are by and seed")
    if flags:
        now = []
        for name, value in flags.items():
            by = f"by={FLAGS[name].format(quote(value))!r}"
            now.append(
                f"{name}={quote(value)} is {'left out' if value is None or value is False else by} now"
            )
        raise InputError(f"{'; '.join(now)} (the values of by are {', '.join(BY)}, member:0 and so on)")


def _covers(claim: Claim, rule: Rule) -> bool:
    """Return whether a claim is about the predictions of a rule."""
    drawn = claim["classifier"] == ("nested" if rule.nested else "random")
    if rule.name == "random":
        return drawn and claim["splits"] == rule.splits
    if drawn and len(claim["splits"]) == 1:
        return rule.name == f"member:{claim['splits'][0]}"
    return not rule.nested and claim["classifier"] == rule.name


def _also_proven(claim: Claim) -> str:
    """Say what a claim about a quantity proves, to be added to a sentence."""
    level = format_level(claim["delta"])
    return f"; {quantity(claim)} at least {limit(claim)}, with probability {level} ({claim['certification']})"

"""A run's result: what ``run`` and ``load_run`` return."""

from dataclasses import dataclass
from html import escape
from secrets import randbits
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.baseline import Baseline, comparison
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.percent import at_most, level_of
from ckcv_ray.claims.proofs import rule_of
from ckcv_ray.claims.rules import ENSEMBLE, NESTED, Rule
from ckcv_ray.claims.wording import ERROR, Claim, describe_counts, limit, quantity
from ckcv_ray.core.options import values
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Models, Prediction, Records
from ckcv_ray.runs.summary import summary
from ckcv_ray.storage.candidates import per_k, per_learner, winning_position
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import MOST_SEED, Holdout, Problem, Study
from ckcv_ray.tables.target import Rows
from ckcv_ray.tables.task import Task, rows_of
from ckcv_ray.validation import integer

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
        return self.certificate.run_id

    @property
    def setting(self) -> Setting:
        """The winner's hyperparameters by name."""
        return self.certificate.setting

    @property
    def position(self) -> tuple[int, int]:
        """The winner's path and step in the learner's search space."""
        return winning_position(self.candidates)

    @property
    def k(self) -> int:
        """The winner's number of folds."""
        return self.certificate.k

    @property
    def l_ms(self) -> float:
        """The criterion at the winner, on the select sets: by default the mean bound on the error."""
        return self.certificate.l_ms

    @property
    def l_ee(self) -> float:
        """The criterion on the estimate sets: by default the paper's figure."""
        return self.certificate.l_ee

    @property
    def proven(self) -> float:
        """The bound to quote, in [0, 1]: that of the certificate's first claim.

        An upper bound on an error; if the first claim is about a quantity such as sensitivity, an upper bound
        on 1 minus that quantity.
        """
        return self.certificate.proven["bound"]

    @property
    def error(self) -> float:
        """Mean error rate of the members of F* on their estimate sets: what is estimated, not proven.

        With groups, the mean over groups of their error rates.
        """
        return self.certificate.error

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
        for name, known in values(learner).items():
            value = self.setting.get(name)
            grid = isinstance(known, tuple) and isinstance(value, int | float) and len(known) > 1
            if grid and value in (known[0], known[-1]):
                flag = name.replace("_", "-")
                sentences.append(
                    f"{name} = {value:g} is on the edge of its grid: widen --{flag} beyond {value:g}"
                )
        return sentences

    def predict(
        self,
        X: ArrayLike,
        seed: int | None = None,
        vote: bool = False,
        nested: bool = False,
        member: int | None = None,
        all_members: bool = False,
        refit: bool = False,
        full: bool = False,
        best_prefix: bool = False,
    ) -> NDArray[Any]:
        """Predict the original labels of X [rows, d], by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        rule = self.rule(seed, vote, nested, member, all_members, refit, full, best_prefix)
        return self.task.labelled(self.predictions(X, rule, nested).label)

    def rule(
        self,
        seed: int | None = None,
        vote: bool = False,
        nested: bool = False,
        member: int | None = None,
        all_members: bool = False,
        refit: bool = False,
        full: bool = False,
        best_prefix: bool = False,
    ) -> Rule:
        """Return how rows are classified: by the rule of the first claim, unless another is requested.

        After a holdout certification that is the rule of its first claim. Otherwise each row is classified by
        a member drawn independently from all members of F*, as the paper does. ``all_members`` asks for this
        whatever the first claim is about, and ``best_prefix`` draws among the members alone that the closest
        claim is about. A ``seed`` is for repeating a call: every call with it draws the same members, so rows
        given one by one would all meet one of them, and what is proven of independent draws is about one
        call. ``vote`` takes the majority, and ``member`` the model of this split. ``nested`` uses the nested
        ensemble instead of F*. ``refit`` is the model fitted on all rows that were not held out, ``full``
        that fitted on all rows.

        Raises:
            InputError: the seed is not an integer of 0 or more; there is no nested ensemble, no such member,
                or no row was held out; or two rules exclude each other.
        """
        ensemble = self._ensemble(nested)
        draws = {"seed": seed is not None, "all_members": all_members, "best_prefix": best_prefix}
        options = {"vote": vote, "member": member is not None, "refit": refit, "full": full}
        others = draws | options | {"nested": nested and (refit or full)}
        chosen = [name for name, is_given in options.items() if is_given]
        if chosen and len(given := [name for name, is_given in others.items() if is_given]) > 1:
            raise InputError(f"{' and '.join(given)} exclude each other: choose one of them")
        if all_members and best_prefix:
            raise InputError("all_members and best_prefix exclude each other: choose one of them")
        if member is not None:
            return Rule(f"member:{integer('member', member, least=0, most=len(ensemble.members) - 1)}")
        if refit or full:
            return self._one_model(chosen[0])
        if vote:
            return Rule("vote")
        first = self.certificate.proven
        if first["certification"] == Holdout.name and not (nested or any(draws.values())):
            return rule_of(self.study, first["classifier"])
        drawn = randbits(63) if seed is None else integer("seed", seed, least=0, most=MOST_SEED)
        splits = self._drawn_claims(nested)[-1]["splits"] if best_prefix else ()
        return Rule("random", drawn, splits, repeats=seed is not None)

    def predictions(self, X: ArrayLike, rule: Rule, nested: bool = False) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row.

        A rule that draws members has a seed: used for several calls, it repeats its draws in each.
        """
        return self.classified(rows_of(X, self.task), rule, nested)

    def classified(self, rows: Rows, rule: Rule, nested: bool = False) -> Prediction:
        """Predict for rows of numbers, as ``Task.read`` makes them of columns."""
        return rule.predict(self.models, rows, nested)

    def claim_for(self, rule: Rule, nested: bool = False) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        of = rule.classifier(NESTED if nested else ENSEMBLE)
        covering = [claim for claim in self.certificate.claims if _covers(claim, rule, nested)]
        quantities = [claim for claim in covering if claim["quantity"] != ERROR]
        condition = REPEATED if rule.repeats and covering and len(rule.splits) != 1 else ""
        return (
            self._error_for(rule, nested, of, covering) + "".join(map(_also_proven, quantities)) + condition
        )

    def _error_for(self, rule: Rule, nested: bool, of: str, covering: list[Claim]) -> str:
        """Say what is proven for the error of a rule, given the claims about it."""
        errors = [claim for claim in covering if claim["quantity"] == ERROR]
        if errors:
            return self._proven(of, errors[0])
        drawn = [claim for claim in self._drawn_claims(nested) if claim["quantity"] == ERROR]
        if rule.name == "vote" and drawn:
            return self._proven(of, drawn[0], factor=2)
        if covering:
            return f"by {of}"
        if rule.name == "full":
            return f"by {of}: nothing is proven for it; ckcv run --unlabelled FILE would prove a bound"
        hint = f"; ckcv run --certify holdout --claim {rule.name} would prove a bound"
        return f"by {of}: nothing is proven for it alone{'' if nested else hint}"

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
        if self.certificate.groups is not None:
            of = "of a new group's rows, on average,"
        return (
            f"referred: rows that {Rule('full').classifier()} classifies otherwise; at most "
            f"{at_most(claim['bound'])} {of} are wrong and not referred, with probability "
            f"{level_of(claim['delta'])} ({claim['certification']})"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        certificate, execution = self.certificate, self.execution
        return {
            "run_id": self.run_id,
            "state": "provisional" if certificate.provisional else "finished",
            "setting": dict(self.setting),
            "k": self.k,
            "l_ms": self.l_ms,
            "l_ee": self.l_ee,
            "error": self.error,
            "proven": certificate.proven,
            "baseline": self._baseline | {"predicted": certificate.labels[self._baseline["predicted"]]},
            "below_baseline": self.proven < self.baseline
            if certificate.proven["quantity"] == ERROR
            else None,
            "constant": certificate.constant,
            "classes": [
                {"label": label, "rows": rows, "share": rows / certificate.n_rows}
                for label, rows in zip(certificate.labels, certificate.class_rows, strict=True)
            ],
            "confusion": [list(counts) for counts in certificate.confusion_matrix],
            "rows": certificate.n_rows,
            "repeats": certificate.repeats,
            "groups": certificate.groups["count"] if certificate.groups is not None else None,
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
        return self.certificate.baseline_of(self.certificate.proven)

    def _drawn_claims(self, nested: bool) -> list[Claim]:
        """Return the claims for a member drawn independently, that for all members first."""
        classifier = "nested" if nested else "random"
        return [claim for claim in self.certificate.claims if claim["classifier"] == classifier]

    def _proven(self, of: str, claim: Claim, factor: int = 1) -> str:
        """Say what a claim proves for predictions whose risk is at most ``factor`` times its own."""
        bound = min(1.0, factor * claim["bound"])
        seen = f"; {describe_counts(claim)}" if describe_counts(claim) else ""
        how = ", twice the bound for a member drawn independently" if factor == 2 else seen
        what = f"to be wrong at most {at_most(bound)} of the time"
        if self.certificate.groups is not None:
            what = f"that of a new group's rows on average at most {at_most(bound)} are wrong"
        return (
            f"by {of}: proven {what}, with probability {level_of(claim['delta'])} "
            f"({claim['certification']}{how}); "
            f"{comparison(bound, self.certificate.baseline_of(claim), self.certificate.labels)}"
        )

    def _claim_of_referral(self, rule: Rule) -> Claim:
        if self.models.full is None:
            raise InputError(
                "referring rows needs the model fitted on all rows and a certified one: this run was made "
                "without --certify holdout"
            )
        errors = [claim for claim in self.certificate.claims if claim["quantity"] == ERROR]
        covering = [claim for claim in errors if _covers(claim, rule, nested=False)]
        if not covering or rule.name == "full":
            raise InputError(
                f"rows are referred where the model fitted on all rows differs from a rule whose error is "
                f"certified, which that of {rule.classifier()} is not: predict by the rule of a claim about "
                "the error, such as --claim refit"
            )
        return covering[0]

    def _one_model(self, name: str) -> Rule:
        if self.models.refit is None:
            raise InputError(f"this run has no model {name}: it was made without --certify holdout")
        return Rule(name)

    def _ensemble(self, nested: bool) -> Ensemble:
        if not nested:
            return self.ensemble
        if self.nested is None:
            raise InputError("this run has no nested ensemble: it was made without --certify nested")
        return self.nested


def _covers(claim: Claim, rule: Rule, nested: bool) -> bool:
    """Return whether a claim is about the predictions of a rule."""
    drawn = claim["classifier"] == ("nested" if nested else "random")
    if rule.name == "random":
        return drawn and claim["splits"] == rule.splits
    if drawn and len(claim["splits"]) == 1:
        return rule.name == f"member:{claim['splits'][0]}"
    return not nested and claim["classifier"] == rule.name


def _also_proven(claim: Claim) -> str:
    """Say what a claim about a quantity proves, to be added to a sentence."""
    level = level_of(claim["delta"])
    return f"; {quantity(claim)} at least {limit(claim)}, with probability {level} ({claim['certification']})"

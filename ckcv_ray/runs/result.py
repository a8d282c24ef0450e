"""A run's result: what ``run`` and ``load_run`` return."""

from dataclasses import dataclass
from html import escape
from secrets import randbits
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.proofs import keyed
from ckcv_ray.claims.rules import ENSEMBLE, NESTED, Rule
from ckcv_ray.claims.wording import Claim, at_most, level_of
from ckcv_ray.core.options import values
from ckcv_ray.data.task import Task, rows_of
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Setting
from ckcv_ray.learners.ensemble import Ensemble, Prediction
from ckcv_ray.runs.summary import summary
from ckcv_ray.storage.candidates import per_k, winning_position
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import MOST_SEED, Problem, Study
from ckcv_ray.validation import integer


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a study.

    Attributes:
        problem: the study on its task.
        candidates: the outcome of each setting and fold size, as an Arrow table.
        ensemble: F*.
        certificate: the claims.
        execution: what depends on the run: seconds, fits, evaluations, environment, error on test rows.
        nested: the ensemble certified by a nested certification, if there is one.
    """

    problem: Problem
    candidates: pa.Table
    ensemble: Ensemble
    certificate: Certificate
    execution: dict[str, Any]
    nested: Ensemble | None = None

    @classmethod
    def of(cls, problem: Problem, finished: Finished, execution: dict[str, Any]) -> "Result":
        """Create a result from what a finished run produced."""
        table, ensemble, certificate, nested = finished
        return cls(problem, table, ensemble, certificate, execution, nested)

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
        """The criterion at the winner: mean bound on the select sets."""
        return self.certificate.l_ms

    @property
    def l_ee(self) -> float:
        """The paper's figure: mean bound on the estimate sets."""
        return self.certificate.l_ee

    @property
    def proven(self) -> float:
        """The bound to quote: what the first claim of the certificate proves, in [0, 1]."""
        return self.certificate.proven["bound"]

    @property
    def error(self) -> float:
        """Mean error rate of the members of F* on their estimate sets: what is estimated, not proven."""
        return sum(self.certificate.errors) / (self.certificate.n_splits * self.certificate.n_select)

    @property
    def test_error(self) -> float | None:
        """Mean error rate of the members on the test rows, if there were any."""
        test = self.execution.get("test")
        return test["error"] if test else None

    def per_k(self) -> list[dict[str, Any]]:
        """Return the outcome of every fold size."""
        return per_k(self.candidates, tuple(self.setting))

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
        for name, known in values(self.problem.learner).items():
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
    ) -> NDArray[Any]:
        """Predict the original labels of X [rows, d], by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        rule = self.rule(seed, vote, nested, member, all_members)
        return self.task.labelled(self.predictions(X, rule, nested).label)

    def rule(
        self,
        seed: int | None = None,
        vote: bool = False,
        nested: bool = False,
        member: int | None = None,
        all_members: bool = False,
    ) -> Rule:
        """Return how rows are classified: by the rule of the first claim, unless another is requested.

        By default each row is classified by a member drawn independently, among those that the first claim
        is about; if holdout certified the keyed draw, by that. A ``seed`` makes the draws repeatable,
        ``all_members`` draws among all members, as the paper does, ``vote`` takes the majority, and
        ``member`` the model of this split. ``nested`` uses the nested ensemble instead of F*.

        Raises:
            InputError: the seed is not an integer of 0 or more; there is no nested ensemble, or no such
                member; or two rules exclude each other.
        """
        ensemble = self._ensemble(nested)
        draws = {"seed": seed is not None, "all_members": all_members}
        options = {"vote": vote, "member": member is not None}
        chosen = [name for name, is_given in options.items() if is_given]
        if chosen and len(given := [name for name, is_given in (draws | options).items() if is_given]) > 1:
            raise InputError(f"{' and '.join(given)} exclude each other: choose one of them")
        if member is not None:
            return Rule(f"member:{integer('member', member, least=0, most=len(ensemble.members) - 1)}")
        if vote:
            return Rule("vote")
        certified = any(claim["classifier"] == "keyed" for claim in self.certificate.claims)
        if certified and not (nested or any(draws.values())):
            return keyed(self.study)
        drawn = randbits(63) if seed is None else integer("seed", seed, least=0, most=MOST_SEED)
        return Rule("random", drawn, () if all_members else self._drawn_claims(nested)[0]["splits"])

    def predictions(self, X: ArrayLike, rule: Rule, nested: bool = False) -> Prediction:
        """Predict by a given rule, with member, score and share of the ensemble for each row."""
        return rule.predict(self._ensemble(nested), rows_of(X, self.task.features))

    def claim_for(self, rule: Rule, nested: bool = False) -> str:
        """Return one sentence that says what is proven for the predictions of a rule."""
        of = rule.classifier(NESTED if nested else ENSEMBLE)
        covering = [claim for claim in self.certificate.claims if _covers(claim, rule, nested)]
        if covering:
            return _proven(of, covering[0])
        if rule.name == "vote":
            return _proven(of, self._drawn_claims(nested)[-1], factor=2)
        hint = f"; ckcv run --certify holdout --claim {rule.name} would prove a bound"
        return f"by {of}: nothing is proven for it alone{'' if nested else hint}"

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
            "rows": certificate.n_rows,
            "repeats": certificate.repeats,
            "per_k": self.per_k(),
            **{name: execution[name] for name in ("evaluations", "fits", "not_converged", "seconds")},
            "test_error": self.test_error,
        }

    def summary(self) -> str:
        """Return the result for people."""
        return summary(self.problem, self.certificate, self.execution, self.per_k(), self.edges())

    __repr__ = summary

    def _repr_html_(self) -> str:
        """Return the result for a notebook."""
        return f"<pre>{escape(self.summary())}</pre>"

    def _drawn_claims(self, nested: bool) -> list[Claim]:
        """Return the claims for a member drawn independently, that for all members last."""
        classifier = "nested" if nested else "random"
        return [claim for claim in self.certificate.claims if claim["classifier"] == classifier]

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


def _proven(of: str, claim: Claim, factor: int = 1) -> str:
    """Say what a claim proves for predictions whose risk is at most ``factor`` times that of the claim."""
    bound = min(1.0, factor * claim["bound"])
    twice = ", twice the bound for a member drawn independently" if factor == 2 else ""
    return (
        f"by {of}: proven to be wrong at most {at_most(bound)} of the time, with probability "
        f"{level_of(claim['delta'])} ({claim['certification']}{twice})"
    )

"""A run's result: what ``run`` and ``load_run`` hand back, with its account in numbers and in words."""

from dataclasses import dataclass
from secrets import randbits
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ckcv_ray.claims.certificate import Certificate, Claim, at_most, keyed, level_of, repeats_told
from ckcv_ray.claims.rules import ENSEMBLE, NESTED, Rule
from ckcv_ray.data.task import Table, rows_of
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Ensemble, Prediction
from ckcv_ray.storage.candidates import per_k
from ckcv_ray.storage.folder import Finished
from ckcv_ray.study import MOST_SEED, Study
from ckcv_ray.validation import whole

LIKEWISE = {
    "clopper_pearson": "the paper's figure: likewise on the estimate sets",
    "stevens": "mean randomised bound (Stevens) on the estimate sets",
    "safe": "averaging-safe bound on the estimate sets",
    "catoni": "Catoni's bound on the estimate sets",
}


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a study.

    Attributes:
        study: the question.
        table: the learning set.
        triples: what became of each (C, gamma, k), as an Arrow table.
        ensemble: F*.
        certificate: the claim.
        execution: what depends on the run: seconds, fits, cells, environment, error on test rows.
        nested: the ensemble certified by the protocol nested, if it was asked for.
    """

    study: Study
    table: Table
    triples: pa.Table
    ensemble: Ensemble
    certificate: Certificate
    execution: dict[str, Any]
    nested: Ensemble | None = None

    @classmethod
    def of(cls, study: Study, table: Table, finished: Finished, execution: dict[str, Any]) -> "Result":
        """Put a result together."""
        triples, ensemble, certificate, nested = finished
        return cls(study, table, triples, ensemble, certificate, execution, nested)

    @property
    def run_id(self) -> str:
        """Name of study and data."""
        return self.certificate.run_id

    @property
    def C(self) -> float:
        """The winner's cost."""
        return self.certificate.C

    @property
    def gamma(self) -> float:
        """The winner's kernel width."""
        return self.certificate.gamma

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
    def test_error(self) -> float | None:
        """Mean error of the members on the test rows, if there were any."""
        test = self.execution.get("test")
        return test["error"] if test else None

    def per_k(self) -> list[dict[str, Any]]:
        """What became of every k."""
        return per_k(self.triples)

    def edges(self) -> list[str]:
        """One sentence for each grid on whose edge the winner lies."""
        grids = {"C": (self.study.C, self.C), "gamma": (self.study.gamma, self.gamma)}
        return [
            f"{name} = {value:g} lies on the edge of its grid: widen --{name} beyond {value:g}"
            for name, (grid, value) in grids.items()
            if len(grid) > 1 and value in (grid[0], grid[-1])
        ]

    def predict(
        self,
        X: ArrayLike,
        seed: int | None = None,
        vote: bool = False,
        nested: bool = False,
        member: int | None = None,
    ) -> NDArray[Any]:
        """Predictions for X [rows, d] in the original labels, by the rule that ``rule`` returns.

        A data frame is matched by column names.

        Raises:
            InputError: X has other columns, or numbers that are not finite; or as ``rule``.
        """
        return self.named(self.predictions(X, self.rule(seed, vote, nested, member), nested).sign)

    def rule(
        self,
        seed: int | None = None,
        vote: bool = False,
        nested: bool = False,
        member: int | None = None,
    ) -> Rule:
        """How rows are classified: the rule that the first claim speaks of, unless another is asked for.

        By default each row by a member drawn afresh, as the paper demands; after a hold-out that certified
        the keyed draw, by that. With a ``seed`` by draws that this seed repeats; with ``vote`` by the
        majority; or by the one ``member`` of this split. ``nested`` takes the nested ensemble instead of F*.

        Raises:
            InputError: the seed is not a whole number of 0 or more; there is no nested ensemble, or no such
                member; or one rule excludes another.
        """
        ensemble = self._ensemble(nested)
        asked = {"seed": seed is not None, "vote": vote, "member": member is not None}
        if len(both := [name for name, given in asked.items() if given]) > 1:
            raise InputError(f"{' and '.join(both)} exclude each other: one of them decides")
        if member is not None:
            return Rule(f"member:{whole('member', member, least=0, most=len(ensemble.members) - 1)}")
        if vote:
            return Rule("vote")
        certified = any(claim["classifier"] == "keyed" for claim in self.certificate.claims)
        if seed is None and certified and not nested:
            return keyed(self.study)
        return Rule("random", randbits(63) if seed is None else whole("seed", seed, least=0, most=MOST_SEED))

    def predictions(self, X: ArrayLike, rule: Rule, nested: bool = False) -> Prediction:
        """As ``predict`` by a given rule, with member, score and share of the ensemble for each row."""
        return rule.predict(self._ensemble(nested), rows_of(X, self.table.features))

    def claim_for(self, rule: Rule, nested: bool = False) -> str:
        """One sentence: what is proven of the predictions of a rule."""
        claims = {claim["classifier"]: claim for claim in reversed(self.certificate.claims)}
        of = rule.classifier(NESTED if nested else ENSEMBLE)
        mean = claims.get("nested" if nested else "random")  # of the members' mean risk
        exact = mean if rule.name == "random" else None if nested else claims.get(rule.name)
        if exact is not None:
            return _proven(of, exact)
        if rule.name == "vote" and mean is not None:
            return _proven(of, mean, factor=2)
        asked = f"; ckcv run --certify holdout --claim {rule.name} would prove something"
        return f"by {of}: nothing is proven of it alone{'' if nested else asked}"

    def _ensemble(self, nested: bool) -> Ensemble:
        if not nested:
            return self.ensemble
        if self.nested is None:
            raise InputError("this run has no nested ensemble: it was made without --certify nested")
        return self.nested

    def named(self, signs: NDArray[np.int8]) -> NDArray[Any]:
        """Original labels of classes -1 and +1."""
        original: NDArray[Any] = np.array(self.table.labels)
        return np.take(original, (signs > 0).astype(int))

    def to_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        certificate = self.certificate
        return {
            "run_id": self.run_id,
            "state": "provisional" if certificate.provisional else "finished",
            "C": self.C,
            "gamma": self.gamma,
            "k": self.k,
            "l_ms": self.l_ms,
            "l_ee": self.l_ee,
            "proven": certificate.proven,
            "rows": certificate.n_rows,
            "repeats": certificate.repeats,
            "per_k": self.per_k(),
            "cells": self.execution["cells"],
            "fits": self.execution["fits"],
            "capped": self.execution["capped"],
            "seconds": self.execution["seconds"],
            "test_error": self.test_error,
        }

    def summary(self) -> str:
        """The result for people."""
        return "\n".join([*self._headline(), *self._reported(), *self._account(), "", *self._words()])

    __repr__ = summary

    def _headline(self) -> list[str]:
        c = self.certificate
        kinds = ((c.false_positives, c.labels[0], c.labels[1]), (c.false_negatives, c.labels[1], c.labels[0]))
        level = level_of(c.delta)
        return [
            f"run {self.run_id}: {self.table.n} rows, {len(self.table.features)} features, "
            f"{c.labels[0]!r} against {c.labels[1]!r}",
            f"best triple    C = {self.C:g}, gamma = {self.gamma:g}, k = {self.k}"
            f"   (train {c.n_train}, select {c.n_select}, estimate {c.n_select} rows; {c.n_splits} splits)",
            f"L_MS           {100 * self.l_ms:6.2f} %   mean {level} bound on the select sets, minimised",
            f"L_EE           {100 * self.l_ee:6.2f} %   {LIKEWISE[c.bound]}",
            *map(_claimed, c.claims),
            *(f"CAUTION        {sentence}" for sentence in repeats_told(c.repeats, c.n_rows)),
            *(
                f"  {actual!r} taken for {taken!r}:  {100 * side['errors'] / max(1, side['rows']):.2f} %"
                f" of such rows on average, mean {level} bound {100 * side['bound']:.2f} %"
                for side, actual, taken in kinds
            ),
        ]

    def _reported(self) -> list[str]:
        tests = (self.execution.get("test") or {}).get("reported", {})
        return [
            f"k = {row['k']:<10} L_MS {100 * row['l_ms']:.2f} %, L_EE {_percent(row['l_ee'])}"
            f"   C = {row['C']:g}, gamma = {row['gamma']:g}"
            + (f", test error {_percent(test['error'])}" if (test := tests.get(str(row["k"]))) else "")
            for row in self.per_k()
            if row["k"] in self.study.report_k and row["l_ms"] is not None
        ]

    def _account(self) -> list[str]:
        cells = self.execution["cells"]
        lines = [
            f"cells          {cells['computed']:,} of {cells['planned']:,} computed "
            f"({100 * cells['computed'] / cells['planned']:.1f} %), {cells['dropped']:,} dropped as provably "
            f"beaten, {cells['failed']:,} failed",
            f"fits           {self.execution['fits']:,} in {self.execution['seconds']:.1f} s",
        ]
        if self.execution["capped"]:
            lines.append(f"capped         {self.execution['capped']:,} fits stopped at the iteration cap")
        if test := self.execution.get("test"):
            lines.append(
                f"test error     {_percent(test['error'])} on {test['rows']:,} rows by a random member, "
                f"{_percent(test['vote_error'])} by the majority (as the run reports it)"
            )
        return lines + [f"note           {sentence}" for sentence in self.edges()]

    def _words(self) -> list[str]:
        told = repeats_told(self.certificate.repeats, self.certificate.n_rows)
        return [statement for statement in self.certificate.statements if statement not in told]


def _proven(of: str, claim: Claim, factor: int = 1) -> str:
    """What a claim says of predictions made so; of those with ``factor`` times its risk."""
    bound = min(1.0, factor * claim["bound"])
    twice = ", twice that of a member drawn afresh" if factor == 2 else ""
    return (
        f"by {of}: proven to be wrong at most {at_most(bound)} of the time, with probability "
        f"{level_of(claim['delta'])} ({claim['protocol']}{twice})"
    )


def _claimed(claim: Claim) -> str:
    """A claim in one line."""
    level = level_of(claim["delta"])
    who = f"{claim['protocol']}, {claim['classifier']}"
    return (
        f"proven        {at_most(claim['bound'], 2):>9}   {who}: with probability {level}, selection included"
    )


def _percent(value: float | None) -> str:
    return "not available" if value is None else f"{100 * value:.2f} %"

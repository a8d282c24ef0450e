"""What every quantity that can be claimed has to do, as a test suite that can be run on any of them.

    from quantity_contract import QuantityContract, Row

    class TestMine(QuantityContract):
        claim = "mine:0.5"                   # as a study names it
        kinds = ((Row(1, 1),), (Row(0, 1),))  # of held-out units: the best first
        laws = ((9, 1), (4, 6))              # how often each kind occurs, in one list for each law
        worse = ((0, 1),)                    # the second of two kinds is never better than the first

        def find_risk(self, claim, law):     # the true risk, of which ``claim.bound`` is an upper bound
            return law[1]

Few units are held out, and every outcome of them is gone through: the probability that what is claimed,
besides the error of the same model and its gate, is false is a finite sum. Laws should be the worst ones: the
true values next to a bound, and rules that are as good as a constant. Where rows are groups, a kind has
several rows.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache, partial
from io import StringIO
from itertools import combinations_with_replacement, pairwise, product
from math import factorial, fsum, prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from claimed import predict_held, run
from numpy.typing import NDArray

from ckcv_ray import InputError, Study, Task
from ckcv_ray.claims.certify import list_needs, prove
from ckcv_ray.claims.quantity import NOTHING, Claim, HeldOutPredictions, decide, read_quantity
from ckcv_ray.errors import format_level, read_as
from ckcv_ray.runs.finished import load_run
from ckcv_ray.runs.verify import verify
from ckcv_ray.study.parts import Condition
from ckcv_ray.study.problem import Problem
from jobs.check_certificate import main as check_certificate

ROUNDING = 1e-9  # of risks, and of probabilities
MIN_UNITS = 28  # of the table, without which a study is refused
Law = Sequence[float]
Outcome = tuple[int, ...]  # the kind of each unit
CHECKED: dict[str, "CheckedRun"] = {}


class Row(NamedTuple):
    """A held-out row: target, prediction and score of the model; prediction of another model; weight."""

    y: float
    predicted: float
    score: float = 0.0
    other: float = 0
    weight: float = 1.0

    def classify(self, claim: Claim) -> float:
        """Return its class by the rule of a claim; class 1 is flagged."""
        return self.predicted if claim.cut_off is None else float(self.score >= claim.cut_off)


class QuantityContract:
    """The tests; see above.

    Attributes:
        claim: what the study claims besides the error of "refit".
        options: further options of the study.
        kinds, laws, worse: see above.
        units: units held out.
        ordered: whether the order of units plays a part in a bound, as that of rows in pairs.
        perfect: an outcome of which something is proven; by default, units of the first kinds.
        lack: what the sentence says where nothing is proven of outcomes; "" if there are no such outcomes.
        refused: what is said where too few units are held out for a claim; "" if none are too few.
        together: the claims of the run whose folder is checked, where several contracts share one.
        is_known: whether ``jobs/check_certificate`` knows it.
    """

    claim: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    kinds: ClassVar[tuple[tuple[Row, ...], ...]]
    laws: ClassVar[Sequence[Law]]
    worse: ClassVar[Sequence[tuple[int, int]]]
    units: ClassVar[int] = 7
    ordered: ClassVar[bool] = False
    perfect: ClassVar[Outcome] = ()
    lack: ClassVar[str] = ""
    refused: ClassVar[str] = ""
    together: ClassVar[str] = ""
    is_known: ClassVar[bool] = True

    # What a subclass may say of itself

    def find_risk(self, claim: Claim, law: Law) -> float:
        """Return the true risk of what a claim is about."""
        raise NotImplementedError

    def add(self, held: HeldOutPredictions, rows: Sequence[Row]) -> None:
        """Add what is known about the held-out rows besides predictions and scores."""

    # What the tests are made of

    @property
    def study(self) -> Study:
        """A study that claims it, and the error of the same model."""
        fixed = {"learner": "linear", "k": (3,), "n_splits": 3, "certify": "holdout", "holdout_share": 0.5}
        claim = ",".join(dict.fromkeys(["refit", self.claim]))
        return Study.of(**fixed | {"claim": claim, "delta": 0.3} | self.options)

    @property
    def problem(self) -> Problem:
        """The study on a table that has as many units of each kind as are held out."""
        return make_problem(type(self))

    def judge(self, outcome: Outcome) -> HeldOutPredictions:
        """Return the rows held out, given the kind of each unit."""
        size, n = len(self.kinds[0]), len(self.kinds)
        held = [(i * n + kind) * size + row for i, kind in enumerate(outcome) for row in range(size)]
        rows = [row for kind in outcome for row in self.kinds[kind]]
        problem = replace(self.problem, held=np.array(held))
        vars(problem)["every_row"] = self.problem.every_row  # which are the same
        made = predict_held(problem, *np.array([(row.predicted, row.score) for row in rows]).T)
        self.add(made, rows)
        return made

    def list_outcomes(self) -> Iterator[Outcome]:
        """Yield every outcome; where the order of units plays no part, one for all orders."""
        kinds = range(len(self.kinds))
        if self.ordered:
            return product(kinds, repeat=self.units)
        return combinations_with_replacement(kinds, self.units)

    def prove(self) -> dict[Outcome, list[Claim]]:
        """Return what is claimed of every outcome; computed once."""
        return prove_all(type(self))

    def own(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return the claims that are of this quantity."""
        return [claim for claim in claims if claim.quantity == self.quantity]

    @property
    def quantity(self) -> Any:
        """What is claimed; for the name of a rule, its error."""
        name = self.claim if self.claim != "refit" else str(prove_all(type(self))[self.best][0].quantity)
        return read_quantity(name)

    @property
    def best(self) -> Outcome:
        """An outcome of which something is proven."""
        return self.perfect or (0,) * self.units

    def weigh(self, outcome: Outcome, law: Law) -> float:
        """Return the probability of an outcome, in every order of its units if order plays no part."""
        counts = np.bincount(outcome, minlength=len(law))
        orders = 1 if self.ordered else factorial(self.units) // prod(map(factorial, counts.tolist()))
        return float(orders * np.prod(np.power(law, counts)))

    def measure_error(self, claim: Claim, law: Law, constant: float | None = None) -> float:
        """Return the true error of the rule of a claim, or of a constant, as a share of the largest loss."""
        clip = self.problem.clip
        lost = total = 0.0
        for chance, rows in zip(law, self.kinds, strict=True):
            for row in rows:
                predicted = row.predicted if constant is None else constant
                loss = float(predicted != row.y) if clip is None else min(abs(predicted - row.y), clip) / clip
                weight = row.weight if claim.quantity.weighs else 1.0
                lost, total = lost + chance * weight * loss, total + chance * weight
        return lost / total

    def find_true(self, claim: Claim, law: Law) -> float:
        """Return the true risk of a claim: that of the error of the model, or of the quantity."""
        return self.measure_error(claim, law) if claim.quantity.guarded else self.find_risk(claim, law)

    def is_false(self, claim: Claim, law: Law) -> bool:
        """Return whether a bound is below the true risk."""
        return claim.bound is not None and self.find_true(claim, law) > claim.bound + ROUNDING

    def is_refuted(self, claim: Claim, law: Law) -> bool:
        """Return whether the contrary of the truth is proven; a chosen cut-off refutes nothing."""
        least = claim.quantity.find_least(claim, self.units, self.problem.has_losses)
        return claim.cut_off is None and least > self.find_true(claim, law) + ROUNDING

    def is_quoted_wrongly(self, claim: Claim, law: Law) -> bool:
        """Return whether what may be quoted of a claim is false: an error, only where its gate is passed."""
        if claim.gate is None:
            return self.is_false(claim, law)
        constants = range(self.problem.task.n_classes)
        if self.problem.clip is not None:
            constants = [float(np.median(self.problem.task.y))]
        least = min(self.measure_error(claim, law, constant) for constant in constants)
        beaten = self.measure_error(claim, law) < least - ROUNDING
        return claim.gate.passed and (not beaten or self.is_false(claim, law))

    def list_laws(self) -> list[Law]:
        """Return the chances of each kind, by every law."""
        return [(np.array(law) / sum(law)).tolist() for law in self.laws]

    def sum_chances(self, law: Law, is_bad: Callable[[list[Claim]], bool]) -> float:
        """Return the probability of the outcomes whose claims are bad."""
        return fsum(self.weigh(outcome, law) for outcome, claims in self.prove().items() if is_bad(claims))

    def check_rare(self, is_bad: Callable[[Claim, Law], bool]) -> None:
        """Check that each claim is bad with a probability of at most its delta."""
        for law in self.list_laws():
            for number, claim in enumerate(self.prove()[self.best]):
                chance = self.sum_chances(law, lambda made, n=number, of=law: is_bad(made[n], of))
                assert chance <= claim.delta * (1 + ROUNDING), (law, str(claim))

    # The tests

    def test_each_claim_fails_as_rarely_as_its_delta_says(self) -> None:
        self.check_rare(self.is_false)

    def test_a_condition_that_holds_is_refuted_as_rarely(self) -> None:
        self.check_rare(self.is_refuted)

    def test_all_claims_of_a_run_hold_jointly_and_the_error_only_behind_its_gate(self) -> None:
        for law in self.list_laws():
            quoted = partial(self.is_quoted_wrongly, law=law)
            assert self.sum_chances(law, lambda made, is_false=quoted: any(map(is_false, made))) <= (
                self.study.delta * (1 + ROUNDING)
            ), law

    def test_a_worse_unit_makes_no_bound_smaller(self) -> None:
        proven = self.prove()
        for outcome, claims in proven.items():
            for better, worse in self.worse:
                if better in outcome:
                    place = outcome.index(better)
                    changed = (*outcome[:place], worse, *outcome[place + 1 :])
                    of_worse = proven[changed if self.ordered else tuple(sorted(changed))]
                    pairs = zip(self.own(claims), self.own(of_worse), strict=True)
                    assert all(one.risk <= other.risk + ROUNDING for one, other in pairs), (outcome, changed)

    def test_units_that_are_copies_make_no_bound_smaller(self) -> None:
        for outcome in self.pick():
            proven = [prove(self.judge(outcome).without(n), 3) for n in range(self.units + 2)]
            for less, more in pairwise(proven):
                pairs = zip(less, more, strict=True)
                assert all(one.risk <= other.risk + ROUNDING for one, other in pairs), outcome
            assert not any(claim.says_something for claim in proven[-1])

    def test_the_claims_of_a_run_share_its_delta(self) -> None:
        claims = self.prove()[self.best]
        own = [claim for claim in claims if not claim.quantity.made_of or claim.cut_off is not None]
        assert sum(claim.delta for claim in own) == pytest.approx(self.study.delta)
        assert all(claim.delta <= self.study.delta for claim in claims)

    def test_a_claim_is_read_as_it_was_written(self) -> None:
        assert read_quantity(str(self.quantity)) == self.quantity
        assert isinstance(read_quantity(self.quantity.form()), type(self.quantity))
        for outcome in self.pick():
            for claim in self.prove()[outcome]:
                assert read_claim(claim) == claim
                claim.check("claim", self.problem.task.classes)

    def test_a_sentence_says_the_number_and_the_level(self) -> None:
        for outcome, claims in self.prove().items():
            for claim in self.own(claims):
                if claim.bound is None:
                    assert (claim.statement.startswith(NOTHING), claim.method) == (True, ""), outcome
                    continue
                assert claim.method
                assert claim.statement.endswith(f" ({claim.method}).")
                assert claim.limit in claim.statement
                assert f"with probability at least {format_level(claim.delta)}" in claim.statement
                assert claim.statement.startswith("Assuming independent ")
                quoted = claim.quantity.word(claim.quantity.quoted, claim, self.problem.task)
                assert claim.limit in quoted
                assert claim.says in str(claim)

    def test_something_is_proven_and_where_nothing_is_it_is_said_why(self) -> None:
        assert all(claim.says_something for claim in self.own(self.prove()[self.best]))
        own = [claim for claims in self.prove().values() for claim in self.own(claims)]
        lacking = [claim for claim in own if claim.bound is None]
        assert bool(lacking) == bool(self.lack)
        assert not lacking or any(self.lack in claim.statement for claim in lacking)
        if self.refused:
            with pytest.raises(InputError, match=self.refused):
                Problem.of(self.study.replace(delta=1e-9), self.problem.all_rows)

    def test_a_plan_says_how_many_rows_it_takes(self) -> None:
        """And what they prove if none is wrong, which is claimed where as many rows are held out."""
        claims = self.prove()[self.best]
        flawless = [claim for claim in claims if claim.errors == 0 and claim.quantity.is_binomial]
        for need in list_needs(self.problem):
            assert f"{need.needed:,}" in "\n".join(need.lines) or need.needed == 1
            assert f"with probability {format_level(need.delta)}: " in need.lines[0]
            assert need.delta in {claim.delta for claim in claims}
            for claim in flawless:
                if (str(claim.quantity), claim.rows) == (need.claim, need.rows):
                    assert f": {claim.says} if none of " in need.lines[0]

    def test_a_condition_is_met_by_the_bound(self) -> None:
        for claims in map(self.own, self.prove().values()):
            claim = max(claims, key=lambda claim: claim.risk)  # of every class
            if not claim.quantity.is_error and claim.quantity.largest == 1:
                for value in (claim.risk + 0.01, claim.risk - 0.01):
                    stated = value if claim.quantity.at_most else 1 - value
                    condition = Condition(str(claim.quantity), stated, type(claim.quantity))
                    decided = decide(condition, claims, self.units, self.problem.has_losses)
                    proven = [each.bound is not None and value > each.bound for each in claims]
                    assert decided.met == all(proven)
                    assert not (decided.met and decided.refuted)

    def test_a_forged_claim_is_refused(self) -> None:
        labels = self.problem.task.classes
        for claim in self.prove()[self.best]:
            changes = [{"bound": -0.1}, {"delta": 0.0}, {"label": "nobody"}, {"cut_off": np.inf}]
            changes += [{"least_confidence": -1.0}, {"bound": np.inf}, {"quantity": read_quantity("recall")}]
            changes += [{"delta": 1e-300}, *([{"bound": 1.5}] if claim.quantity.largest == 1 else [])]
            changes += [{"measured": None if claim.quantity.is_mean else 0.5}, {"subgroup": "women"}]
            if claim.errors is not None:
                changes += [{"errors": claim.rows + 1}, {"errors": -1}, {"rows": None}]
            if claim.gate is not None:
                wrong = {"bound": 1.5}, {"won": -1}, {"least": -0.1}, {"predicted": len(labels) + 1}
                changes += [{"gate": None}, *({"gate": replace(claim.gate, **part)} for part in wrong)]
            for change in changes:
                is_other = claim.label is None or "quantity" not in change  # else a recall of the same class
                if is_other and (forged := replace(claim, **change)) != claim:
                    with pytest.raises(ValueError, match=r"\S"):
                        read_claim(forged).check("claim", labels)

    def test_a_run_is_stored_and_computed_again(self) -> None:
        found = check_run(self.study.replace(claim=self.together) if self.together else self.study, self)
        assert self.own(found.claims)
        assert found.differences == []
        assert (found.code, "DIFFERS" in found.said) == (0 if self.is_known else 2, False), found.said
        assert str(self.quantity) in found.said or not self.is_known

    def pick(self) -> list[Outcome]:
        """Return a few outcomes: the best, and some at regular intervals."""
        return [self.best, *list(self.prove())[:: max(1, len(self.prove()) // 4)]]


@cache
def make_problem(contract: type[QuantityContract]) -> Problem:
    """Return the problem of a contract."""
    kinds, units = contract.kinds, contract.units
    places = max(units, MIN_UNITS // len(kinds))
    rows = [row for _ in range(places) for kind in kinds for row in kind]
    groups = np.repeat(np.arange(places * len(kinds)), len(kinds[0])) if len(kinds[0]) > 1 else None
    weights = [row.weight for row in rows] if len({row.weight for row in rows}) > 1 else None
    X = np.random.default_rng(0).normal(size=(len(rows), 2))
    numbers = contract.options.get("clip") is not None
    task = Task.of(X, [row.y for row in rows], groups=groups, sample_weight=weights, numbers=numbers)
    problem = Problem.of(contract().study, task)
    left = np.arange(units * len(kinds[0]), task.n)  # as many are held out; which ones, is said by an outcome
    return replace(problem, task=problem.all_rows.take_part(left))


@cache
def prove_all(contract: type[QuantityContract]) -> dict[Outcome, list[Claim]]:
    """Return what is claimed of every outcome of a contract."""
    made = contract()
    return {outcome: prove(made.judge(outcome), 3) for outcome in made.list_outcomes()}


def read_claim(claim: Claim) -> Claim:
    """Return a claim as it is read from a file."""
    return read_as(Claim, json.loads(json.dumps(claim.to_json())))


class CheckedRun(NamedTuple):
    """A run: its claims, what differs when it is verified, and what ``jobs/check_certificate`` says."""

    claims: list[Claim]
    differences: list[str]
    code: int
    said: str


def check_run(study: Study, contract: QuantityContract) -> CheckedRun:
    """Run a study in a folder, read it again, and recompute it in both ways; each study once."""
    if (key := json.dumps(study.to_json())) not in CHECKED:
        with TemporaryDirectory() as folder, redirect_stdout(StringIO()) as said:
            result = run(study, make_table(contract.problem), Path(folder) / "run")
            assert load_run(Path(folder) / "run").certificate == result.certificate
            differences, claims = verify(Path(folder) / "run").differences, [*result.certificate.claims]
            code = check_certificate(f"{folder}/run")
            CHECKED[key] = CheckedRun(claims, differences, code, said.getvalue())
    return CHECKED[key]


def make_table(problem: Problem, n: int = 90) -> Task:
    """Return a table of the same kind as a problem's, with rows that can be told apart."""
    rng, n_classes = np.random.default_rng(5), problem.task.n_classes
    y: NDArray[Any] = np.arange(n) % max(2, n_classes)
    X = rng.normal(size=(n, 2)) + np.array([[0, 0], [2.5, 0], [0, 2.5]])[y]
    groups = None if problem.task.units.independent else np.arange(n) // 2
    weights = np.resize([0.5, 1.0], n) if problem.all_rows.weighting.named is not None else None
    if problem.clip is not None:
        return Task.of(X, X[:, 0] + rng.normal(size=n) / 4, numbers=True)
    return Task.of(X, y if groups is None else y[groups], groups=groups, sample_weight=weights)

"""The certificate: its counts and cautions, stored and read again, and what it refuses to speak about."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claimed import SMALL, read_again, run
from conftest import blobs, unwrap
from forgery import column
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ckcv_ray import Result, Study, Task, load_run
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.quantity import HeldOutPredictions
from ckcv_ray.errors import RunError, ceil_percent, floor_percent, format_level, format_percent
from ckcv_ray.learners.base import Predicted
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.questions import Repeats, count_repeated, find_known, find_repeats

ONE = Study.paper(C=1.0, gamma=0.3, k=3, n_splits=4)


@pytest.fixture(scope="module")
def two() -> Result:
    return run(SMALL, blobs(60))


@pytest.fixture(scope="module")
def three() -> Result:
    """A run on three clouds."""
    rng, y = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(3,))), np.arange(36) % 3
    centres = 2.5 * rng.normal(size=(3, 2))
    return run(ONE, Task.of(rng.normal(size=(36, 2)) + centres[y], [f"kind {i:02d}" for i in y]))


def test_what_failed_leaves_every_claim_as_it_is(two: Result) -> None:
    """Each allows for any selection: the bound of paper is a union over what failed, too."""
    table = column("state", lambda states: ["failed", *states[1:]])(two.candidates)
    assert two.candidates["state"][0].as_py() == "beaten"
    c = certify(HeldOutPredictions(two.problem, two.models), table, {})
    assert c.claims == two.certificate.claims
    assert sum("Provisional" in sentence for sentence in c.statements) == 1
    assert "Provisional" not in " ".join(two.certificate.statements)


def part(name: str, **values: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A change of a field with fields of its own, or of the first of several."""
    return lambda c: {name: [c[name][0] | values] if isinstance(c[name], list) else c[name] | values}


@pytest.mark.parametrize(
    ("kind", "changed", "said"),
    [
        (
            "two",
            lambda _: {"criterion": "auc"},
            "^criterion is 'auc', but 'error' follows from the other files",
        ),
        ("two", lambda _: {"bound_without_copies": -1.0}, "^bound_without_copies: "),
        ("two", part("constants", members=[True] * 5), "^constants is "),
        ("two", part("baselines", errors=61), "^baselines is "),
        ("two", part("baselines", error=-0.1), "^baselines.0.error: "),
        ("two", part("claims", certification="holdout"), "claims: the study has 1; these are of .*'holdout'"),
        ("two", lambda _: {"claims": []}, "claims: the study has 1; these"),
        ("three", lambda c: {"confusion": c["confusion"][:2]}, "a row and a column for each of 3 classes"),
        ("three", lambda c: {"confusion": [[99, 0, 0], *c["confusion"][1:]]}, "more rows than there are"),
        ("three", lambda _: {"confusion": None}, "expected a row and a column"),
    ],
)
def test_a_certificate_that_contradicts_itself_or_its_study_is_refused(
    kind: str, changed: Any, said: str, request: pytest.FixtureRequest
) -> None:
    result = request.getfixturevalue(kind)
    stored = json.loads(json.dumps(result.certificate.to_json()))
    assert read_again(stored, result) == result.certificate
    with pytest.raises(ValueError, match=said):
        read_again(stored | changed(stored), result)


# The confusion matrix


def test_it_counts_the_rows_of_all_estimate_sets(three: Result) -> None:
    problem, expected = three.problem, np.zeros((3, 3), int)
    for member in three.ensemble.members:
        _, estimate = problem.split(0, member.split).merge_select()
        np.add.at(
            expected, (problem.task.y[estimate], member.model.predict(problem.task.X[estimate]).label), 1
        )
    assert np.array_equal(three.certificate.confusion, expected)
    for number, side in enumerate(three.certificate.by_class):
        assert side["rows"] - side["errors"] == expected[number, number]
        assert side["rows"] == expected[number].sum()


def test_undecided_rows_are_in_no_column_and_a_class_that_does_not_exist_is_an_error(three: Result) -> None:
    def certify_with(label: int) -> Certificate:
        """The certificate of F* if its second model gives every row the same label."""
        first, second, *others = three.ensemble.members
        made = Predicted(np.full(three.problem.sizes[0].n_select, label, np.int32), np.empty(0))
        constant = replace(second, model=SimpleNamespace(predict=lambda X: made))
        models = replace(three.models, best=Ensemble((first, constant, *others)))
        return certify(HeldOutPredictions(three.problem, models), three.candidates, {})

    counts = certify_with(-1).tabulate()
    assert counts[:, -1].sum() == three.problem.sizes[0].n_select
    assert counts.sum(axis=1).tolist() == [side["rows"] for side in three.certificate.by_class]
    with pytest.raises(RunError, match="model of split 1 predicts class number 3, but there are 3 classes"):
        certify_with(3)


# The baseline


@pytest.fixture(scope="module")
def constant() -> Result:
    """A run whose winner is a constant: it gives too little weight to the rows to learn anything."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(60, 12)))
    task = Task.of(rng.normal(size=(60, 2)), np.where(np.arange(60) < 12, "ill", "well"))
    return run(SMALL.replace(C=(1e-3,), gamma=(1e-3,), k=3), task)


def test_a_constant_winner_and_a_bound_that_is_not_below_the_baseline_are_pointed_out(
    constant: Result,
) -> None:
    made = constant.certificate
    assert (made.constants["members"], constant.to_json()["constant"]) == ([1] * 5, True)
    assert constant.summary().startswith("Nothing can be quoted yet. The bound")
    claims = [replace(made.first, bound=bound) for bound in (0.2, float(np.nextafter(0.2, 0)))]
    assert [made.is_worthless(claim) for claim in claims] == [True, False]
    for members, said in (
        ((1, None, None), []),  # by chance
        ((1, None, 1), ["2 of 3 members of F* are right only about rows of one class ('well': 2)"]),
        ((1, 0, 1), ["3 of 3 members of F* are right only about rows of one class ('ill': 1, 'well'"]),
    ):
        cautions = replace(made, constants={"members": members, "refit": None}).list_cautions()
        found = [one for one in cautions if "members of F*" in one]
        assert [one[: len(start)] for one, start in zip(found, said, strict=True)] == said


def test_members_that_know_their_rows_by_heart_are_no_better_elsewhere() -> None:
    """On every split rows of one class alone are right, though the learning rows are all right."""
    rng, n_classes = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(90, 3))), 3
    task = Task.of(rng.normal(size=(90, 30)), rng.permutation(np.arange(90) % n_classes))
    study = Study.paper(C=1000.0, gamma=100.0, k=3, n_splits=6)  # a narrow kernel knows its rows by heart
    result = run(study.replace(certify="holdout"), task)
    certificate, members = result.certificate, result.ensemble.members
    for member, number in zip(members, certificate.constants["members"], strict=True):
        right = [c for c in range(n_classes) if member.errors[c] < member.n_estimate[c]]
        assert right in ([number], [])  # none: it is undecided, and the first class is predicted
    said = certificate.list_cautions()
    sentence, *of_refit = [one for one in said if " right only about" in one]
    assert bool(of_refit) == (certificate.constants["refit"] is not None)
    assert f"CAUTION {sentence}" in unwrap(result.summary(details=True))


# Rows that repeat, and columns that give the target away


def noisy(n: int, copies: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows that are separated with some errors; the first of them stand twice, but for the sign of a zero."""
    rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(n, copies, 0)))
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    X[:copies, 2] = 0.0
    return np.concatenate([X, X[:copies] * [1.0, 1.0, -1.0]]), np.concatenate([y, y[:copies]])


def test_what_is_left_may_be_nothing() -> None:
    few = run(ONE.replace(certify="holdout"), Task.of(*noisy(200, 5))).certificate
    assert few.first.bound < few.bound_without_copies < 1
    (X, y), times = noisy(30, 0), 8
    copied = Task.of(np.tile(X, (times, 1)), np.tile(y, times))
    known = run(ONE.replace(certify="holdout"), copied).certificate
    assert any(one.endswith("nothing here is proven.") for one in known.list_cautions())


@pytest.mark.parametrize("name", ["customer_no", "name"])
def test_a_column_that_numbers_the_rows_hides_no_repeats(name: str) -> None:
    X, y = noisy(60, 4)
    shuffled = np.random.default_rng(2).permutation(64)
    numbers = {"customer_no": 10**6 + 997 * shuffled, "name": [f"row {i}" for i in shuffled]}
    columns = {**{f"x{i}": X[:, i] for i in range(3)}, name: numbers[name]}
    task = Task.of(pa.table(columns), y, asked=DeclaredTypes(categorical=("name",) if name == "name" else ()))
    assert find_repeats(task) == Repeats(8, 4)
    new = task.X[:3].copy()
    new[:, 3] = [70, 71, 72]
    assert int(find_known(new, task).sum()) == 3
    assert count_repeated(np.concatenate([new, np.add(new[:1], [0, 0, 0, 5])]), task) == 2


def test_a_column_that_gives_the_target_away_is_a_caution_of_the_certificate(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    age, grams = rng.normal(size=200), np.round(rng.normal(2945, 729, 200))
    task = Task.of(pa.table({"age": age, "bwt\x1b": grams}), (grams < 2500).astype(int))
    study = Study.of(learner="naive_bayes", k=(3,), n_splits=3, certify="holdout")
    result = run(study, task, tmp_path / "run")
    caution = "Columns that give the target away, unless known for a new row: 'bwt\\x1b'."
    assert caution in result.certificate.list_cautions()
    assert result.summary().startswith("Quote with CAUTION")
    assert load_run(tmp_path / "run").certificate == result.certificate


# Percentages


@given(st.integers(0, 10**7))
def test_rounding_is_that_of_exact_decimals(units: int) -> None:
    """Every multiple of 1e-7 in [0, 1], and so every share of up to thousands of rows but for ties."""
    percent = Decimal(units) / 10**5
    roundings = {ceil_percent: ROUND_CEILING, floor_percent: ROUND_FLOOR, format_percent: ROUND_HALF_EVEN}
    for formatted, rounding in roundings.items():
        expected = percent.quantize(Decimal("0.01"), rounding)
        tie = formatted is format_percent and units % 1000 == 500
        assert formatted(units / 10**7) == f"{expected} %" or tie


@pytest.mark.parametrize(("delta", "said"), [(0.05 / 7, "99.28 %"), (7.14e-5, "99.9928 %")])
def test_a_level_is_never_rounded_up(delta: float, said: str) -> None:
    assert format_level(delta) == said
    assert float(said[:-2]) <= 100 * (1 - delta) * (1 + 1e-15)

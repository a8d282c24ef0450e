"""A study on a task: its canonical form, what auto stands for, its sizes, its rows by stage, refusals."""

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import nan
from typing import Any

import numpy as np
import pytest
from conftest import blobs, limit_examples, unwrap
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray import Execution, Job, verify
from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.core.options import options
from ckcv_ray.core.quantities import list_quantities
from ckcv_ray.core.resampling.complete import Complete
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import estimate_memory, share
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import InputError
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.parts import (
    EFFORT_PER_SETTING,
    EFFORT_PER_SPLIT,
    RACE_WORK,
    Auto,
    Budget,
    Holdout,
    Race,
    parse_condition,
)
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import SLOTS, Study, run_id
from ckcv_ray.tables.task import Task

COMBINATIONS = [
    {"resampling": resampling, "certify": certify}
    for resampling, certify in product(SLOTS["resampling"], SLOTS["certify"])
]
folds = st.lists(st.integers(3, 30), min_size=1, max_size=8).map(tuple)


@pytest.mark.parametrize("parts", COMBINATIONS, ids=str)
@settings(derandomize=True, deadline=None, max_examples=15)
@given(k=st.none() | folds, n=st.integers(60, 80), seed=st.integers(0, 2**40))
def test_a_problem_of_a_canonical_study_is_the_same_problem(parts, k, n, seed):
    task = blobs(n)
    problem = Problem.of(Study.paper(k=k, seed=seed, **parts), task)
    again = Problem.of(problem.study, task)
    assert (again.study, again.sizes, again.run_id) == (problem.study, problem.sizes, problem.run_id)
    assert problem.run_id == run_id(problem.study, task.digest)
    assert problem.sizes == problem.study.resampling.fold_sizes(problem.task.n)


def test_rows_held_out_are_seen_by_no_worker():
    task = blobs(40)
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.25), task)
    assert problem.all_rows is task
    assert len(problem.held) == 10
    left = np.setdiff1d(np.arange(40), problem.held)
    assert np.array_equal(problem.task.X, task.X[left])
    rows = problem.take_held_rows()
    assert np.array_equal(rows.X, task.X[problem.held])
    assert np.array_equal(rows.y, task.y[problem.held])
    sent = pickle.loads(pickle.dumps(share(problem).problem))
    assert sent.take_held_rows() is None
    assert np.array_equal(sent.all_rows.X, problem.task.X)
    assert (sent.run_id, sent.sizes, sent.study) == (problem.run_id, problem.sizes, problem.study)


# Groups: whole groups in every part of every split, fold sizes and costs in groups


RNG = np.random.default_rng(np.random.SeedSequence(0))
SIZES = RNG.integers(1, 7, size=20)
GROUPS = RNG.permutation(np.repeat(np.arange(20), SIZES))
N = len(GROUPS)
TASK = Task.of(blobs(N).X, blobs(N).y, groups=GROUPS)
GRIDS = {"C": (1.0,), "gamma": (1.0,)}


def groups_in(rows: np.ndarray, task: Task = TASK) -> set[int]:
    """The groups of some rows, which must include all rows of each."""
    assert not task.units.independent
    assert np.all(np.diff(rows) > 0)
    groups = np.unique(task.row_units[rows])
    assert np.array_equal(np.flatnonzero(np.isin(task.row_units, groups)), rows)
    return set(groups.tolist())


@pytest.mark.parametrize("resampling", ["complete", "rotation"])
@pytest.mark.parametrize("certify", ["paper", "holdout"])
def test_every_part_of_every_split_is_made_of_whole_groups(resampling: str, certify: str) -> None:
    share = {"holdout_share": 0.5} if certify == "holdout" else {}
    problem = Problem.of(Study.paper(resampling=resampling, certify=certify, **share, **GRIDS), TASK)
    task = problem.task
    for j, size in enumerate(problem.sizes):
        for number in range(min(size.n_splits, 4)):
            train, select, estimate = (groups_in(part, task) for part in problem.split(j, number))
            assert train | select | estimate == set(range(task.n_units))
            assert (len(train), len(select), len(estimate)) == (size.n_train, size.n_select, size.n_select)
            assert len(train) + len(select) + len(estimate) == task.n_units
            together, scored = problem.rows(Stage.REFIT, j, number)
            assert groups_in(together, task) == train | select
            assert groups_in(scored, task) == estimate


def test_whole_groups_are_held_out() -> None:
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.6, seed=5, **GRIDS), TASK)
    assert sorted(groups_in(problem.held)) == hold_out(20, 0.6, Draws(5, TASK.salt)).tolist()
    assert np.array_equal(problem.take_held_rows().row_units, TASK.row_units[problem.held])
    assert problem.task.n_units == 8
    assert share(problem).problem.task.row_units is problem.task.row_units


def test_k_goes_up_to_the_number_of_groups() -> None:
    problem = Problem.of(Study.paper(resampling="rotation", **GRIDS), TASK)
    assert [size.k for size in problem.sizes] == list(range(3, 21))
    assert Problem.of(Study.paper(k=range(3, 21), **GRIDS), TASK).study.resampling.k is None


HOLD = {"certify": "holdout"}
REFUSED = [
    *((blobs(400), {"report_k": k}, rf"^report_k={k} is outside 3\.\.400: .* 400 rows") for k in (2, 401)),
    (blobs(40), {"k": (3, 4), "report_k": (3, 5)}, r"report_k=5 is not among k=3,4: add it"),
    (TASK, {"report_k": 21}, "^report_k=21 is outside 3..20: there are 20 groups to"),
    (TASK, {"criterion": "balanced"}, "criterion=balanced counts rows as independent, .* leave it out"),
    (TASK, {"criterion": "cost:-1=1,1=2"}, "criterion=cost counts rows as independent"),
    *(
        (TASK, HOLD | {"claim": c}, f"claim={c} counts rows .* leave it out, or --gr")
        for c in ("recall", "auc")
    ),
    *((TASK, HOLD | {"holdout_share": each}, "^holdout_share=") for each in (0, nan, "most", True)),
    (TASK, HOLD | {"holdout_share": 0.8}, "16 of 20 groups held out leave 4: .* hold out 14 at most"),
    (blobs(19), HOLD | {"holdout_share": "auto"}, "^9 rows of 19 held .* 10, .* half of 20.* --paper"),
    (blobs(99), HOLD | {"holdout_share": 0.1}, "^9 rows of 99 held .* 10, .* half of 20.* --paper"),
]


@pytest.mark.parametrize(("task", "options", "message"), REFUSED)
def test_what_does_not_go_with_a_task_is_refused(task: Task, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem.of(Study.paper(**options, **GRIDS), task)


def test_costs_are_of_rows_and_memory_is_an_upper_bound() -> None:
    problem, plain = (Problem.of(Study.paper(**GRIDS), task) for task in (TASK, blobs(N)))
    assert problem.compute_cost(20) == plain.compute_cost(N)
    assert plain.most_rows_in(range(N + 1)).tolist() == list(range(N + 1))
    most = max(
        problem.learner.trainer.memory(len(train), len(score), 2)
        for j, size in enumerate(problem.sizes)
        for number in range(size.n_splits)
        for train, score in [problem.rows(Stage.REFIT, j, number)]
    )
    assert estimate_memory(problem) >= most
    largest = np.sort(SIZES)[::-1]
    assert problem.most_rows_in((0, 1, 5, 20)).tolist() == [0, largest[0], largest[:5].sum(), N]


counts = st.tuples(st.integers(3, 10**6), st.integers(1, 10**4), st.integers(1, 2_000), st.integers(1, 500))
QUICK = {"learner": "naive_bayes"}


def make_task(n: int, labels: int = 0) -> Task:
    """Return n rows of one column; ``labels`` shuffles which class each of them has."""
    y = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(labels,))).permutation(np.arange(n) % 2)
    return Task.of(np.arange(float(n))[:, None], y)


@given(counts, st.integers(1, 10**9))
@settings(derandomize=True, deadline=None, max_examples=limit_examples(100))
def test_auto_races_where_that_is_cheap_and_else_has_the_budget_of_the_help(numbers, effort):
    units, n_settings, sizes, n_splits = numbers
    text = options(Budget)["effort"].metadata["option"].default_text
    of_setting, of_split = map(int, re.findall(r"\d+", text))
    default = Budget((3, 5), of_setting * n_settings + of_split * n_splits)
    is_cheap = units**3 * n_settings * sizes <= RACE_WORK
    assert Auto((3, 5)).resolve(*numbers) == (Race((3, 5)) if is_cheap else default)
    assert Budget((3, 5)).resolve(*numbers) == default
    assert Auto(exhaustive=True).resolve(*numbers) == Race(exhaustive=True)
    assert Auto(effort=effort).resolve(*numbers) == Budget(effort=effort)
    assert Budget(effort=effort, keep=0.5).resolve(*numbers) == Budget(effort=effort, keep=0.5)
    assert Race().resolve(*numbers) == Race()


# What a study that says auto is stored as


def test_rows_that_are_held_out_do_not_count_among_those_to_learn_from():
    """1,900 rows leave 1,273 to learn from, of which every k is taken; 2,000 leave 1,340."""
    few, many = (Problem.of(Study.of(**QUICK), make_task(n)) for n in (1_900, 2_000))
    assert few.study.certification == many.study.certification == Holdout(0.33)
    assert few.study == Study.paper(**QUICK, certify="holdout").replace(**few.study.options())
    assert few.study.resampling == Complete()
    n, n_settings = many.task.n_units, many.n_settings
    assert many.study.resampling == Complete("auto").canonical(n, n_settings, 0.05)
    assert few.study.search == many.study.search == Race()


def test_auto_is_stored_as_what_it_resolved_to():
    task = make_task(40_000)
    found = Problem.of(Study.of(**QUICK, n_splits=3), task)
    again = Problem.of(Study.from_json(found.study.to_json()), task)
    assert (again.run_id, again.study) == (found.run_id, found.study)
    assert "auto" not in {part["name"] for part in found.study.to_json().values() if isinstance(part, dict)}
    assert isinstance(found.study.resampling.k, tuple)
    assert isinstance(found.study.search, Budget)
    assert found.study.search.effort == EFFORT_PER_SETTING * found.n_settings + EFFORT_PER_SPLIT * 3
    assert isinstance(found.study.certification, Holdout)


@pytest.mark.parametrize("n", [60, 1_999, 40_000])
def test_labels_have_no_part_in_what_auto_stands_for(n):
    first, second = (Problem.of(Study.of(**QUICK), make_task(n, labels)) for labels in (0, 1))
    assert not np.array_equal(first.all_rows.y, second.all_rows.y)
    assert first.study == second.study
    assert first.sizes == second.sizes


@pytest.mark.parametrize(("n", "share"), [(20, 0.5), (400, 0.5), (401, 0.33), (5_000, 0.33)])
def test_auto_holds_out_half_of_few_rows_and_a_third_of_many(n, share):
    auto = Holdout("auto")
    assert auto.canonical(n) == Holdout(share)
    assert Holdout() == auto
    assert Holdout(claim=("vote", "auc")).canonical(n) == Holdout(share, ("vote", "auc"))
    assert Holdout("0.25") == Holdout(0.25) == Holdout(0.25).canonical(n)


@pytest.mark.parametrize(("learner", "classes"), [("svm", 2), ("linear", 3)])
def test_a_class_that_is_held_out_whole_is_never_predicted_and_a_caution(learner, classes, tmp_path):
    """It is no reason to draw again: the draw would depend on labels."""
    task = blobs(40)
    held = Problem.of(Study.of(), task).held[:2]
    y = task.y.copy() if classes == 3 else np.zeros(40, int)
    y[held] = classes - 1
    study = Study.of(learner=learner, k=(3,), n_splits=3)
    other = replace(Task.of(task.X, y), salt=task.salt)
    result = run_job(Job(study, other, tmp_path / "run"), Execution("serial"))
    wrong = result.predict(task.X, by="refit") != y
    assert wrong[held].all()
    assert result.certificate.first.errors == np.sum(wrong[Problem.of(study, other).held])
    said = f"Never predicted, with all rows held out, so that all count as wrong: {classes - 1} (2 rows)."
    assert said in unwrap(result.summary())
    assert verify(tmp_path / "run").ok
    for asked in ({"claim": "refit,recall"}, {"claim": "auc"}):
        if classes == 2 or "recall" in str(asked):
            assert plan_problem(Problem.of(study.replace(**asked), other)).evaluations > 0


def test_claims_are_names_in_their_order_each_once():
    for asked, claims in ((["vote", "vote", "refit"], ("vote", "refit")), ((), ("refit",))):
        assert Holdout(claim=asked) == Holdout(claim=claims) == Holdout(claim=",".join(claims))
        assert Holdout(claim=asked).claim == claims
    for claim in (1, {"vote": 1}, [None], b"vote"):
        with pytest.raises(InputError, match=r"^claim="):
            Holdout(claim=claim)


ROWS = 90
DRAWN = np.random.default_rng(0)
XS = DRAWN.normal(size=(ROWS, 2))
YS = XS @ [1.0, 2.0] + DRAWN.normal(size=ROWS)
NUMBERS = Task.of(XS, YS, numbers=True)
GROUPED = Task.of(XS, YS, numbers=True, groups=[f"g{i // 3}" for i in range(ROWS)])
OF_TWO = Task.of(XS, np.greater(YS, 0))
USUAL_OF_CLASSES = {"learner": "forest", "clip": None, "criterion": "error", "certify": "holdout"}


def make_problem(task: Task = NUMBERS, /, **options: Any) -> Problem:
    """A problem of numbers in which ``options`` replace the usual ones."""
    usual = {"learner": "ridge", "clip": 5.0, "k": (3,), "n_splits": 3}
    given = {name: value for name, value in (usual | options).items() if value is not None}
    return Problem.of(Study.of(**given), task)


def test_a_clip_alone_chooses_the_criterion_of_numbers():
    for asked in ({"clip": 5.0}, {"criterion": "clipped", "clip": 5}):
        assert Study.of(learner="ridge", **asked) == Study.of(learner="ridge", clip=5.0)
    assert make_problem().clip == 5.0
    assert make_problem(clip=1 / 3).clip == float(f"{1 / 3:.12g}")


def plain(words, task=NUMBERS, /, **options):
    """A case: what is said about options on a table."""
    return words, task, options


def held(words, task=NUMBERS, /, **options):
    """A case with held-out rows."""
    return plain(words, task, certify="holdout", **options)


def accepts(words, condition, claim="refit,within:0.9"):
    """A case with a condition on what is claimed."""
    return held(words, accept=condition, claim=claim)


REFUSED_OF_NUMBERS = [
    plain("criterion=clipped needs a clip", clip=None, criterion="clipped"),
    plain("criterion=error is for classes, and the target 'y' has numbers", clip=None, criterion="error"),
    plain("choose one of numbers, such as ridge", learner="forest"),
    plain("criterion=clipped is for numbers, and", OF_TWO, learner="forest"),
    plain("claim=within:0.5 is for numbers, and", OF_TWO, **USUAL_OF_CLASSES, claim="within:0.5"),
    *(plain("is not allowed: name the error from which a", clip=clip) for clip in (0, np.nan)),
    plain("clip=1e+09 is over 1,000 times the range of the target", clip=1e9),
    held("claim=within:0.5 counts rows as independent", GROUPED, claim="refit,within:0.5"),
    held("subgroups=x0 counts rows of a subgroup as", GROUPED, subgroups="x0"),
    held("claim=vote is for classes, and the target 'y' has numbers: leave it out", claim="vote"),
    held("require=sensitivity>=0.9 is for two classes", require="sensitivity>=0.9"),
    held("answer=error<=0.1 is for classes", answer="error<=0.1"),
    held("holdout_bound=stevens is for classes", holdout_bound="stevens"),
    *(held("write within:0.9", claim=f"within{share}") for share in ("", ":1", ":x")),
    accepts("the clip is an option of its own: write clipped<=2", "clipped:5<=2"),
    accepts("accept=clipped<=0: '0' is not a positive number: write clipped<=20", "clipped<=0"),
    accepts("is that it is at most a value: write within:0.9<=3", "within:0.9>=3"),
    accepts("is about what is not claimed: add refit", "clipped<=3", claim="within:0.9"),
    accepts("mean is not known here: choose from error, answered_error, answered", "mean<=3"),
]


@pytest.mark.parametrize(("words", "task", "options"), REFUSED_OF_NUMBERS)
def test_what_does_not_go_with_numbers_is_refused(words, task, options):
    with pytest.raises(InputError) as refused:
        make_problem(task, **options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "means"), [(" error:0.05 ", "error<=0.05"), ("ppv:0.02:0.3", "ppv:0.02>=0.3")]
)
def test_a_condition_without_its_sign_means_the_same(text, means):
    """A shell takes signs for itself where they are not quoted."""
    assert str(parse_condition("accept", text)) == str(parse_condition("accept", means)) == means
    for wrong in (re.split("[<>]=", means)[0], f"{text}:", f"{means}:1", "speed:0.9"):
        with pytest.raises(InputError):
            parse_condition("accept", wrong)


Pair = tuple[str, Any]
BY_NIGHT = 1_000
X = np.random.default_rng(0).normal(size=(120, 3))
Y = np.arange(120) % 2
TABLES: dict[str, tuple[Task, dict[str, Any]]] = {
    "two classes": (Task.of(X, Y), {}),
    "three classes": (Task.of(X, np.arange(120) % 3), {}),
    "numbers": (Task.of(X, X[:, 0], numbers=True), {"learner": "ridge", "clip": 2.0}),
    "groups": (Task.of(X, Y, groups=np.arange(120) // 2), {}),
}
VALUES: dict[str, list[Any]] = {
    **{slot: [*parts] for slot, parts in SLOTS.items()},
    "learner": ["linear", "ridge", "tree", "linear,svm", "sklearn.dummy:DummyClassifier"],
    "criterion": ["balanced", "cost:0=1,1=2", "mean_error", "clipped"],
    "claim": ["refit", "vote", *(quantity.form() for quantity in list_quantities())],
    "require": ["sensitivity>=0.6", "ppv:0.2>=0.3"],
    "accept": ["error<=0.5", "auc>=0.5", "within:0.9<=3"],
    "answer": ["error<=0.2"],
    "subgroups": ["x0"],
    "positive": ["1"],
    "holdout_bound": ["stevens"],
    "holdout_share": [0.5],
    "report_k": ["3"],
    "effort": [100_000],
    "exhaustive": [True],
    "clip": [2.0],
    "C": ["1"],
    "class_weight": ["balanced"],
    "balance": ["equal"],
    "encode": ["onehot"],
    "scale": ["standard"],
    "param": ["max_iter=100"],
    "sample": [3],
    "delta": [0.1],
}


def explain_refusal(table: str, *given: Pair) -> str:
    task, usual = TABLES[table]
    try:
        Problem.of(Study.of(k=3, n_splits=4, **{**usual, **dict(given)}), task)
    except InputError as error:
        return str(error)
    return ""


def list_pairs(table: str) -> Iterator[tuple[Pair, Pair]]:
    """Yield what the table allows of each option alone, in pairs; by day, every third pair."""
    every = [(option, value) for option, values in VALUES.items() for value in values]
    alone = {each: explain_refusal(table, each) for each in every}
    for (option, _), refusal in alone.items():
        assert not refusal or option in refusal or "learner" in refusal
    allowed = [each for each, refusal in alone.items() if not refusal]
    pairs = [(one, other) for one, other in combinations(allowed, 2) if one[0] != other[0]]
    assert len(pairs) > 100
    yield from pairs[:: 3 if limit_examples(BY_NIGHT) < BY_NIGHT else 1]


@pytest.mark.parametrize("table", TABLES)
def test_two_options_go_together_or_the_refusal_names_both(table: str) -> None:
    refused = 0
    for one, other in list_pairs(table):
        refusal = explain_refusal(table, one, other)
        refused += bool(refusal)
        for option, value in (one, other) if refusal else ():
            named = option in refusal or (option == "learner" and "Classifier" in refusal)
            assert named, f"{one} and {other} are refused without {option}={value}: {refusal}"
    assert refused

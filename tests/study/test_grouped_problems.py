"""A task with groups: whole groups in every part of every split, fold sizes and costs in groups."""

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray.core.draws import Draws, hold_out
from ckcv_ray.core.resampling.complete import split_complete, split_rotation
from ckcv_ray.core.schedule import Stage
from ckcv_ray.engine.evaluate import estimate_memory
from ckcv_ray.errors import InputError
from ckcv_ray.study import Problem, Study
from ckcv_ray.tables.task import Task

RNG = np.random.default_rng(np.random.SeedSequence(0))
SIZES = RNG.integers(1, 7, size=20)
GROUPS = RNG.permutation(np.repeat(np.arange(20), SIZES))
N = len(GROUPS)
TASK = Task.of(blobs(N).X, blobs(N).y, groups=GROUPS)
GRIDS = {"C": (1.0,), "gamma": (1.0,)}


def groups_in(rows: np.ndarray, task: Task = TASK) -> set[int]:
    """The groups of some rows, which must have all rows of each."""
    assert task.grouped
    assert np.all(np.diff(rows) > 0)
    groups = np.unique(task.groups[rows])
    assert np.array_equal(np.flatnonzero(np.isin(task.groups, groups)), rows)
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


def test_splits_of_groups_are_those_of_as_many_rows() -> None:
    draws = {
        "complete": lambda k, i: split_complete(20, k, i, 20, Draws(3, TASK.salt)),
        "rotation": lambda k, i: split_rotation(20, k, i, Draws(3, TASK.salt)),
    }
    for name, draw in draws.items():
        problem = Problem.of(Study.paper(resampling=name, k=(3, 7), seed=3, **GRIDS), TASK)
        for j, k in enumerate((3, 7)):
            for drawn, part in zip(draw(k, 1), problem.split(j, 1), strict=True):
                assert sorted(groups_in(part)) == drawn.tolist()


def test_whole_groups_are_held_out() -> None:
    problem = Problem.of(Study.paper(certify="holdout", holdout_share=0.6, seed=5, **GRIDS), TASK)
    assert problem.held is not None
    assert sorted(groups_in(problem.held)) == hold_out(20, 0.6, Draws(5, TASK.salt)).tolist()
    assert np.array_equal(problem.take_held_rows().groups, TASK.groups[problem.held])
    assert problem.task.n_units == 8
    assert problem.for_workers().task.groups is problem.task.groups


def test_k_goes_up_to_the_number_of_groups() -> None:
    problem = Problem.of(Study.paper(resampling="rotation", **GRIDS), TASK)
    assert [size.k for size in problem.sizes] == list(range(3, 21))
    assert Problem.of(Study.paper(k=range(3, 21), **GRIDS), TASK).study.resampling.k is None
    for options, named in (({"k": 21}, "k=21"), ({"report_k": 21}, "report_k=21")):
        with pytest.raises(InputError, match=f"{named} is outside 3..20: there are 20 groups to learn from"):
            Problem.of(Study.paper(**options, **GRIDS), TASK)


@pytest.mark.parametrize("criterion", [{"criterion": "balanced"}, {"criterion": "cost", "costs": "-1=1,1=2"}])
def test_a_criterion_for_rows_is_refused(criterion: dict[str, str]) -> None:
    name = criterion["criterion"]
    with pytest.raises(InputError, match=f"criterion={name} is not defined for groups .* leave out --group"):
        Problem.of(Study.paper(**criterion), TASK)


@pytest.mark.parametrize("claim", ["sensitivity", "recall", "auc"])
def test_a_claim_by_class_is_refused(claim: str) -> None:
    with pytest.raises(InputError, match=f"claim={claim} counts rows .* leave it out, or --group"):
        Problem.of(Study.paper(certify="holdout", claim=claim, **GRIDS), TASK)


def test_a_cut_off_is_refused_by_the_name_of_its_option() -> None:
    with pytest.raises(InputError, match=r"^require=sensitivity>=0.8 counts .* leave it out, or --group"):
        Problem.of(Study.paper(certify="holdout", require="sensitivity>=0.8", **GRIDS), TASK)


def test_holding_out_too_many_groups_is_refused() -> None:
    with pytest.raises(InputError, match=r"16 of 20 groups held out leave 4: .* hold out 14 at most"):
        Problem.of(Study.paper(certify="holdout", holdout_share=0.8, **GRIDS), TASK)
    with pytest.raises(InputError, match="0 groups of 20 held out would prove an error of at most 100 in"):
        Problem.of(Study.paper(certify="holdout", holdout_share=0.04, **GRIDS), TASK)


def test_costs_are_of_rows_and_memory_is_an_upper_bound() -> None:
    problem, plain = (Problem.of(Study.paper(**GRIDS), task) for task in (TASK, blobs(N)))
    assert problem.compute_cost(20) == plain.compute_cost(N)
    assert [plain.rows_in(n) for n in range(N + 1)] == [plain.most_rows_in(n) for n in range(N + 1)]
    most = max(
        problem.learner.trainer.memory(len(train), len(score), 2)
        for j, size in enumerate(problem.sizes)
        for number in range(size.n_splits)
        for train, score in [problem.rows(Stage.REFIT, j, number)]
    )
    assert estimate_memory(problem) >= most
    largest = np.sort(SIZES)[::-1]
    assert [problem.most_rows_in(n) for n in (0, 1, 5, 20)] == [0, largest[0], largest[:5].sum(), N]


def test_without_groups_nothing_is_different() -> None:
    problem = Problem.of(Study.paper(**GRIDS), blobs(30))
    assert problem.criterion is problem.study.criterion
    assert problem.measure(None) is problem.criterion.measure
    assert (problem.n_totals, problem.total_type) == (2, np.int32)
    grouped = Problem.of(Study.paper(**GRIDS), TASK)
    assert (grouped.n_totals, grouped.total_type) == (3, np.int64)

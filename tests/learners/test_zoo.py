"""``learner=all``: the learners that suit a table's size, whatever its labels are."""

import numpy as np
import pytest

from ckcv_ray import Execution, InputError, Study, Task, run
from ckcv_ray.learners.base import ALL, LEARNERS, ZOO
from ckcv_ray.learners.choice import Choice
from ckcv_ray.study.problem import Problem

SERIAL = Execution("serial")
STUDY = Study.paper(learner=ALL, k=(3,), n_splits=2)


def task(n: int, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    return Task.of(rng.normal(size=(n, 2)), rng.permutation(np.arange(n) % 2))


def names(study: Study) -> tuple[str, ...]:
    assert isinstance(study.learner, Choice)
    return study.learner.names


@pytest.mark.parametrize("n", sorted({rows for rows in ZOO.values() if rows < 10**6}))
def test_a_learner_is_left_out_of_tables_larger_than_it_is_for(n: int) -> None:
    for rows in (n, n + 1):
        kept = names(Problem.of(STUDY, task(rows)).study)
        assert kept == tuple(name for name, most in ZOO.items() if rows <= most)
    assert len(kept) >= 2


def test_the_choice_does_not_depend_on_labels() -> None:
    one, other = (Problem.of(STUDY, task(60, seed)).study for seed in (0, 1))
    assert one == other


def test_it_is_written_read_and_changed_like_any_study() -> None:
    assert Study.from_json(STUDY.to_json()) == STUDY
    assert Study.paper(**STUDY.options()) == STUDY
    changed = STUDY.replace(C=(1.0,), seed=3)
    assert changed == Study.paper(learner=ALL, k=(3,), n_splits=2, C=(1.0,), seed=3)
    assert changed.options()["learner"] == ALL


def test_what_a_folder_holds_names_the_learners() -> None:
    canonical = Problem.of(STUDY, task(60)).study
    assert canonical.options()["learner"] == ",".join(ZOO)
    assert canonical.learner.most_rows is None


def test_the_simplest_of_equals_wins() -> None:
    """A column that tells nothing: nothing is better than the commonest class, and some are as good."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 1)), (rng.random(60) < 0.1).astype(int)
    study = Study.paper(learner=ALL, k=(3,), n_splits=2, param=["n_estimators=5", "boosting.max_iter=2"])
    result = run(study, X, y, execution=SERIAL)
    assert result.setting["learner"] == next(iter(ZOO)) == "constant"


def test_sizes_have_to_match_the_learners() -> None:
    tree, bayes = LEARNERS["tree"](), LEARNERS["naive_bayes"]()
    with pytest.raises(InputError, match="most_rows: there is 1 for 2 learners: give one for each"):
        Choice((tree, bayes), most_rows=(5,))
    with pytest.raises(InputError, match="most_rows leaves 1 learners for 60 rows"):
        Choice((tree, bayes), most_rows=(5, 100)).canonical(task(60))

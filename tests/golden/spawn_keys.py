"""The spawn keys of every ``SeedSequence`` that is made while a study runs: what its draws depend on.

They are observed, not asked for: ``numpy.random.SeedSequence`` is replaced while each study runs. All
evaluations are computed, so that the keys do not depend on how long these take.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import places
from exact import Values, digest
from samples import Sample, cloud, clouds

from ckcv_ray import Execution, KFold, NestedSplits, evaluate, run
from ckcv_ray.extend import Subsampling

SERIAL = Execution("serial")
FIRST_SEED = 20_261_124  # of no other study in this process: splits that are remembered are not drawn again
GRID = {"C": (1.0, 10.0), "gamma": (0.1, 1.0), "exhaustive": True}
SVM = {**GRID, "n_splits": 4}
BAYES = {"learner": "naive_bayes", "param": {"var_smoothing": [1e-9, 1e-3]}}
FOREST = {
    "learner": "forest",
    "param": {"n_estimators": [3], "max_features": ["sqrt"], "min_samples_leaf": [1]},
}


class Golden(NamedTuple):
    """A study (``certified``) or a procedure, on a table."""

    certified: bool
    sample: Sample
    options: dict[str, Any]


STUDIES = {
    "complete": Golden(True, cloud(30), {**SVM, "k": (3, 5, 10)}),
    "complete, every split enumerated": Golden(True, cloud(8), {**SVM, "k": (8,), "n_splits": 60}),
    "rotation": Golden(True, cloud(30), {**GRID, "k": (3, 5), "resampling": "rotation"}),
    "holdout, every claim": Golden(
        True,
        cloud(60),
        {
            **SVM,
            "k": (3,),
            "certify": "holdout",
            "holdout_share": 0.33,
            "claim": "vote,sensitivity,auc",
        },
    ),
    "three classes": Golden(True, clouds(60, 3), {**SVM, "k": (4,), "criterion": "balanced"}),
    "a forest": Golden(True, cloud(30), {**FOREST, "k": (3,), "n_splits": 3, "exhaustive": True}),
    "k folds": Golden(False, cloud(30), {**BAYES, "resampling": "kfold:5"}),
    "k folds, the rest in the last": Golden(False, cloud(30), {**BAYES, "resampling": "kfold:4:last"}),
    "repeated k folds, stratified": Golden(
        False, cloud(30), {**BAYES, "resampling": "repeated_kfold:4x3", "stratify": True}
    ),
    "holdout of rows": Golden(False, cloud(30), {**BAYES, "resampling": "holdout:0.3"}),
    "sub-sampling": Golden(False, cloud(30), {**BAYES, "resampling": "subsampling:5:0.3"}),
    "drawn folds": Golden(False, cloud(30), {**BAYES, "resampling": "drawn_folds:4"}),
    "bootstrap": Golden(False, cloud(30), {**BAYES, "resampling": "bootstrap:5"}),
    "one row left out": Golden(False, cloud(12), {**BAYES, "resampling": "loo"}),
    "nested, a new setting in each split": Golden(
        False,
        cloud(30),
        {**BAYES, "resampling": "nested:3:2", "select_by": "zero_one", "select": "each"},
    ),
    "nested, other parts": Golden(
        False,
        cloud(30),
        {
            **BAYES,
            "resampling": NestedSplits(Subsampling(3, 0.3), KFold(3, stratify=True)),
            "select_by": "zero_one",
        },
    ),
}
NAMES = tuple(STUDIES)


@cache
def observe(name: str) -> Values:
    """Run a study in this process; return the spawn keys that are used, sorted, and what else is drawn from.

    "seeds of fits" are sequences without a key, made of the numbers of training rows; "other seeds" are those
    of sequences with a key that are not of the table's salt with the study's seed.
    """
    certified, sample, options = STUDIES[name]
    seed = FIRST_SEED + NAMES.index(name)
    with record() as made:
        if certified:
            study = places.make_study(**options, seed=seed)
            result = run(study, sample.X, sample.y, execution=SERIAL, groups=sample.groups)
            places.predict(result, sample.X, "random", seed=seed)
        else:
            evaluate(sample.X, sample.y, execution=SERIAL, groups=sample.groups, seed=seed, **options)
    keys = sorted({key for entropy, key in made if _is_salted(entropy, seed)})
    others = sorted({(entropy, key) for entropy, key in made if not _is_salted(entropy, seed) and key})
    fits = sorted({hex(entropy) for entropy, key in made if not key})
    return {
        "keys": [_text(key) for key in keys],
        "other seeds": [f"{entropy}: {_text(key)}" for entropy, key in others],
        "seeds of fits": [len(fits), digest(fits)],
    }


def _is_salted(entropy: Any, seed: int) -> bool:
    """Whether it is the eight words of a salt, and then the four of the seed."""
    return isinstance(entropy, list) and len(entropy) == 12 and entropy[8:] == [seed, 0, 0, 0]


def _text(key: tuple[int, ...]) -> str:
    return " ".join(map(str, key))


@contextmanager
def record() -> Iterator[list[tuple[Any, tuple[int, ...]]]]:
    """Record the entropy and the spawn key of each ``numpy.random.SeedSequence`` that is made meanwhile."""
    made: list[tuple[Any, tuple[int, ...]]] = []
    original = np.random.SeedSequence

    class Recorded(original):
        def __init__(self, entropy: Any = None, *, spawn_key: Any = (), **more: Any) -> None:
            made.append((entropy, tuple(map(int, spawn_key))))
            super().__init__(entropy, spawn_key=spawn_key, **more)

    np.random.SeedSequence = Recorded
    try:
        yield made
    finally:
        np.random.SeedSequence = original

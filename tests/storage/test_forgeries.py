"""What readers rely on in each file is checked, though the manifest agrees: who reads it refuses it in a
sentence, and a verification says the same.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from finished import Finished
from forgery import (
    ACCOUNT,
    CANDIDATES,
    CERTIFICATE,
    LOG,
    MODELS,
    Change,
    check_refused,
    column,
    first,
    put,
)

from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import SPLITS, make_splits, read_splits

CLAIM = {
    "quantity": "error",
    "label": None,
    "certification": "paper",
    "classifier": "random",
    "bound": 0.5,
    "errors": 1,
    "rows": 9,
    "delta": 0.05,
    "statement": "so",
}
SIDE = {"errors": 1, "rows": 9, "bound": 0.5}


class Forged(NamedTuple):
    """A file, what is changed in it, and what is said of it; the kind of another run than the usual one."""

    file: str
    change: Change
    message: str
    kind: str = ""


def claimed(**changed: object) -> Change:
    """Another claim before the one that there is."""
    return put(claims=[CLAIM | changed, CLAIM])


def split(values: Change, message: str = "are not numbered from 0") -> Forged:
    return Forged(SPLITS, column("split", values), message, "given")


FORGED = {
    # candidates
    "another C": Forged(CANDIDATES, first("C", 9.0), "C does not have the values"),
    "no k": Forged(CANDIDATES, first("k_first", None), "k_first does not have the values"),
    "another order": Forged(
        CANDIDATES, lambda t: t.take([*range(len(t))][::-1]), "in the order of the study"
    ),
    "rows that are missing": Forged(CANDIDATES, lambda t: t.slice(1), "does not have the values"),
    "an unknown state": Forged(CANDIDATES, first("state", "lucky"), "'lucky' is not known"),
    "no winner": Forged(CANDIDATES, column("state", lambda v: ["tied"] * len(v)), "0 winners"),
    "winners alone": Forged(CANDIDATES, column("state", lambda v: ["winner"] * len(v)), "l_ms has empty"),
    "no l_ee of the winner": Forged(CANDIDATES, column("l_ee", lambda v: [None] * len(v)), "with an l_ee"),
    "a state is lost": Forged(CANDIDATES, first("state", None), "state has empty cells"),
    "a lower bound beyond 1": Forged(
        CANDIDATES, first("lower_bound", 1e300), "lower_bound has values outside"
    ),
    "a bound that is no number": Forged(CANDIDATES, first("l_ms", float("nan")), "l_ms has values outside"),
    # the certificate
    "C is text": Forged(CERTIFICATE, put(setting__C="a"), "setting is {'C': 'a'"),
    "a setting is true where it is 1": Forged(
        CERTIFICATE,
        lambda c: c["setting"].update({n: True for n, v in c["setting"].items() if v == 1.0}) or c,
        "setting is {",
    ),
    "another run's": Forged(CERTIFICATE, put(run_id="f" * 12), "run_id is 'ffffffffffff'"),
    "k is a share": Forged(CERTIFICATE, put(k=3.5), "k: Input should be a valid integer"),
    "the bound is unknown": Forged(
        CERTIFICATE, put(bound="luck"), "bound is 'luck', and from the other files"
    ),
    "a claim is empty": Forged(CERTIFICATE, put(claims=[{}]), "claims.0.quantity: Field required"),
    "a claim of luck": Forged(CERTIFICATE, claimed(quantity="luck"), "'luck' is not known"),
    "a recall of no class": Forged(
        CERTIFICATE,
        claimed(quantity="recall", label="green"),
        "claims: the study has 1; these are of one side",
    ),
    "an error of one class": Forged(
        CERTIFICATE, claimed(label=1), "claims.0.label: 1 cannot be of the error"
    ),
    "a sure claim": Forged(CERTIFICATE, claimed(delta=1.0), "claims.0.delta: "),
    "a bound beyond 1": Forged(CERTIFICATE, put(l_ee=1.5), "l_ee: Input should be less than or equal to 1"),
    **{f"a delta of {x:g}": Forged(CERTIFICATE, put(delta=x), "delta: ") for x in (0.0, 1.0, -0.05, 1e300)},
    "an unknown field": Forged(CERTIFICATE, put(note="good"), "note: Unexpected keyword argument"),
    "a side without rows": Forged(CERTIFICATE, put(by_class=[{}, {}]), "by_class.0.errors: Field required"),
    "a class too few": Forged(CERTIFICATE, put(by_class=[SIDE]), "by_class is "),
    # the account
    "seconds are nothing": Forged(ACCOUNT, put(seconds=None), "seconds: Input should be a valid number"),
    "a test of nothing": Forged(ACCOUNT, put(test={}), "test.error: Field required"),
    "environment of nothing": Forged(ACCOUNT, put(environment=True), "environment: Input should be"),
    "no evaluations planned": Forged(ACCOUNT, put(evaluations__planned=0), "exceed planned"),
    "evaluations below 0": Forged(ACCOUNT, put(evaluations__failed=-1), "exceed planned, or are below 0"),
    "a failure without an end": Forged(ACCOUNT, put(failures=[[0, 3]]), "failures.0.2: Field required"),
    "a failure of a number": Forged(
        ACCOUNT, put(failures=[[0.1, 3, 0, "fire"]]), "failures.0.0: Input should be"
    ),
    # the log
    "no size": Forged(LOG, first("size", None), "size has empty cells"),
    "no stage": Forged(LOG, first("stage", None), "stage None is not known"),
    "an unknown stage": Forged(LOG, first("stage", "guess"), "stage 'guess' is not known"),
    **{
        f"{name} {at}": Forged(LOG, first(name, at), f"{name} is outside the study")
        for name, beyond in (("size", 2), ("path", 2), ("split", 3), ("step", 2))
        for at in (beyond, -1)
    },
    "no errors": Forged(LOG, first("total_0", None), "total_0 has empty"),
    "errors below 0 in the log": Forged(LOG, first("total_1", -2), "more errors than rows"),
    "more errors than rows in the log": Forged(LOG, first("total_0", 9), "more errors than rows"),
    "so many errors that they overflow": Forged(
        LOG, lambda t: first("total_0", 2**31 - 1)(first("total_1", 2**31 - 1)(t)), "more errors than rows"
    ),
    "no iterations": Forged(LOG, first("n_iter", None), "n_iter has empty"),
    "a failure without a reason": Forged(LOG, first("status", "failed"), "traceback has empty cells"),
    # models
    "no centre": Forged(MODELS, first("centre", None), "centre has empty cells"),
    "a hole in the centre": Forged(MODELS, first("centre", [0.0, None]), "centre has empty cells"),
    "a scale of 0": Forged(MODELS, first("scale", [1.0, 0.0]), "must be positive"),
    "an endless offset": Forged(MODELS, first("offset", float("inf")), "not finite"),
    "too few coefficients": Forged(MODELS, first("dual_coef", [1.0]), "one coefficient each"),
    "support of no row": Forged(MODELS, first("support", [99]), "in ascending order"),
    "support from the end": Forged(MODELS, first("support", [-1]), "in ascending order"),
    "split before the first": Forged(MODELS, first("split", -1), "each of the 3 splits"),
    "no model": Forged(MODELS, lambda t: t.slice(0, 0), "each of the 3 splits"),
    "more errors than rows": Forged(MODELS, first("errors", [99, 0]), "more errors than rows"),
    "errors below 0": Forged(MODELS, first("errors", [-1, 0]), "more errors than rows"),
    "errors of one class": Forged(MODELS, first("errors", [0]), "more errors than rows"),
    "counts of three classes": Forged(
        MODELS,
        lambda t: column("errors", lambda v: [[0, 0, 0]] * 3)(
            column("n_estimate", lambda v: [[9, 9, 9]] * 3)(t)
        ),
        "counts for 2 classes",
    ),
    # judged rows
    "half a loss": Forged(JUDGED_ROWS, first("loss", 0.5), "loss has values other than 0 and 1", "held"),
    "no such label": Forged(JUDGED_ROWS, first("label", 7), "label has values outside 0..1", "held"),
    "no such class": Forged(
        JUDGED_ROWS, first("predicted", -2), "predicted has values outside -1..1", "held"
    ),
    "no such row": Forged(JUDGED_ROWS, first("row", 60), "row has values outside 0..59", "held"),
    "no unit": Forged(JUDGED_ROWS, first("unit", None), "unit has empty cells", "held"),
    "too many rows": Forged(JUDGED_ROWS, lambda t: pa.concat_tables([t] * 5), "at most 60 rows", "held"),
    # splits that were given; a part is made for no number that a file names, but for as many as it has
    "a number far above": split(lambda v: [*v[:-1], 1_000_000]),
    "no number": split(lambda v: [None, *v[1:]]),
    "no splits": Forged(SPLITS, lambda table: table.slice(0, 0), "gives no splits", "given"),
    "other rows": Forged(
        SPLITS, column("row", lambda v: [v[-1], *v[1:-1], v[0]]), "their digest differs", "given"
    ),
    "a row of neither part": Forged(SPLITS, column("train", lambda v: [None, *v[1:]]), "", "given"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_figure_is_refused_though_the_manifest_agrees(
    name: str, finished: Finished, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    forged = FORGED[name]
    run = finished(forged.kind, to=tmp_path) if forged.kind else request.getfixturevalue("run")
    check_refused(run, *forged[:3])


@pytest.mark.parametrize("count", [1, 2, 150])
def test_splits_of_any_sizes_are_read_as_they_were(count: int, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(count), 40
    orders = [rng.permutation(n) for _ in range(count)]
    sizes = [rng.integers(1, n // 2, 2) for _ in range(count)]
    sets = [(order[:a], order[a : a + b]) for order, (a, b) in zip(orders, sizes, strict=True)]
    given = Splits.of(sets, n)
    (tmp_path / SPLITS).write_bytes(make_splits([(one.train, one.estimate) for one in given.sets], "run"))
    found = read_splits(LocalFiles(tmp_path), Splits(digest=given.digest), "run", n)
    assert found.digest == given.digest
    for one, again in zip(given.sets, found.sets, strict=True):
        np.testing.assert_array_equal(one.train, again.train)
        np.testing.assert_array_equal(one.estimate, again.estimate)

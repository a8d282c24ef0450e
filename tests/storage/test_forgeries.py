"""What readers rely on in each file is checked, though the manifest agrees: whoever reads it refuses it in a
sentence, and a verification says the same.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forgery import ACCOUNT, CANDIDATES, CERTIFICATE, LOG, MODELS, Change, check_refused, column, first, put

from ckcv_ray.core.resampling.base import Splits
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import SPLITS, make_splits, read_splits

SIDE = {"errors": 1, "rows": 9, "bound": 0.5}


def claimed(**changed: object) -> Change:
    """Another claim before the existing one."""
    return lambda c: c | {"claims": [c["claims"][0] | changed, *c["claims"]]}


def every(name: str, value: object) -> Change:
    return column(name, lambda values: [value] * len(values))


def put_true(certificate: dict[str, Any]) -> dict[str, Any]:
    """Say true where a setting is 1."""
    setting = certificate["setting"]
    setting.update({name: True for name, value in setting.items() if value == 1.0})
    return certificate


def overflow(records: pa.Table) -> pa.Table:
    return first("total_0", 2**31 - 1)(first("total_1", 2**31 - 1)(records))


def count_three(models: pa.Table) -> pa.Table:
    return every("errors", [0, 0, 0])(every("n_estimate", [9, 9, 9])(models))


MORE, POSITIONS = "more errors than rows", {"size": 2, "path": 2, "split": 3, "step": 2}
FORGED: dict[str, dict[str, tuple[Change, str]]] = {  # by file what is changed, and what is said of it
    CANDIDATES: {
        "another C": (first("C", 9.0), "C does not have the values"),
        "another order": (lambda t: t.take([*range(len(t))][::-1]), "in the order of the study"),
        "an unknown state": (first("state", "lucky"), "'lucky' is not known"),
        "no winner": (every("state", "tied"), "0 winners"),
        "no l_ee of the winner": (every("l_ee", None), "with an l_ee"),
        "a lower bound beyond 1": (first("lower_bound", 1e300), "lower_bound has values outside"),
    },
    CERTIFICATE: {
        "C is text": (put(setting__C="a"), "setting is {'C': 'a'"),
        "a setting is true where it is 1": (put_true, "setting is {"),
        "another run's": (put(run_id="f" * 12), "run_id is 'ffffffffffff'"),
        "the bound is unknown": (put(bound="luck"), "bound is 'luck', but 'clopper_pearson' follows"),
        "a claim of luck": (claimed(quantity="luck"), "'luck' is not known"),
        "an error of one class": (claimed(label=1), "claims.0.label: 1 cannot be of the error"),
        "a recall of no class": (claimed(quantity="recall", label="green"), "claims: the study has 1; these"),
        "a bound beyond 1": (put(l_ee=1.5), "l_ee: Input should be less than or equal to 1"),
        "a delta of 1": (put(delta=1.0), "delta: "),
        "an unknown field": (put(note="good"), "note: Unexpected keyword argument"),
        "a class too few": (put(by_class=[SIDE]), "by_class is "),
    },
    ACCOUNT: {
        "evaluations below 0": (put(evaluations__failed=-1), "exceed planned, or are below 0"),
        "a failure without an end": (put(failures=[[0, 3]]), "failures.0.2: Field required"),
    },
    LOG: {
        "an unknown stage": (first("stage", "guess"), "stage 'guess' is not known"),
        **{
            f"{name} {at}": (first(name, at), f"{name} is outside the study")
            for name, beyond in POSITIONS.items()
            for at in (beyond, -1)
        },
        "more errors than rows": (first("total_0", 9), MORE),
        "errors below 0": (first("total_1", -2), MORE),
        "so many errors that they overflow": (overflow, MORE),
        "a failure without a reason": (first("status", "failed"), "traceback has empty cells"),
    },
    MODELS: {
        "no centre": (first("centre", None), "centre has empty cells"),
        "a scale of 0": (first("scale", [1.0, 0.0]), "must be positive"),
        "an endless offset": (first("offset", float("inf")), "not finite"),
        "too few coefficients": (first("dual_coef", [1.0]), "one coefficient each"),
        "support from the end": (first("support", [-1]), "in ascending order"),
        "no model": (lambda t: t.slice(0, 0), "each of the 3 splits"),
        "more errors than rows": (first("errors", [99, 0]), MORE),
        "counts of three classes": (count_three, "counts for 2 classes"),
    },
    JUDGED_ROWS: {
        "half a loss": (first("loss", 0.5), "loss has values other than 0 and 1"),
        "no such label": (first("label", 7), "label has values outside 0..1"),
        "no unit": (first("unit", None), "unit has empty cells"),
        "too many rows": (lambda t: pa.concat_tables([t] * 5), "at most 60 rows"),
    },
    SPLITS: {  # a part is made for no number that a file names, but for as many as it has
        "a number far above": (column("split", lambda v: [*v[:-1], 1_000_000]), "are not numbered from 0"),
        "no splits": (lambda t: t.slice(0, 0), "gives no splits"),
        "other rows": (column("row", lambda v: [v[-1], *v[1:-1], v[0]]), "their digest differs"),
        "a row of neither part": (first("train", None), ""),
    },
}
KINDS = {JUDGED_ROWS: "held", SPLITS: "given"}  # of another run than the usual one


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in FORGED for name in FORGED[file]])
def test_a_forged_figure_is_refused_though_the_manifest_agrees(file, name, finished, tmp_path, request):
    run = finished(KINDS[file], to=tmp_path) if file in KINDS else request.getfixturevalue("run")
    check_refused(run, file, *FORGED[file][name])


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

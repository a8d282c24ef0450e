"""Encoders, fitted in every split: they do what scikit-learn's do, and see only the training rows."""

import json
import warnings
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from untidy import untidy

from ckcv_ray import Execution, InputError, Job, StoreError, Study, load_run, verify
from ckcv_ray.learners import steps
from ckcv_ray.learners.steps import (
    PARTS,
    Categories,
    Encoder,
    Encoding,
    Gaps,
    expand_dates,
    list_expanded_columns,
)
from ckcv_ray.runs.run import run_job
from ckcv_ray.study.problem import Problem
from ckcv_ray.tables.columns import Column, ColumnKind, Schema
from ckcv_ray.tables.roles import Roles, Units
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
ENCODINGS = [
    Encoding(Categories.ONEHOT),
    Encoding(Categories.ONEHOT, Gaps.MEAN, 0.1),
    Encoding(Categories.ORDINAL),
    Encoding(Categories.ORDINAL, Gaps.MOST_FREQUENT, 0.0),
]
TARGET = Encoding(Categories.TARGET)


@pytest.fixture(scope="module")
def task() -> Task:
    return Task.from_table(untidy(80), Roles("outcome"))


def fit_by_hand(encoding, known, is_words):
    """Fit to a column what one would write by hand with scikit-learn, without a column of gaps."""
    impute, onehot = SimpleImputer(strategy=str(encoding.gaps)), encoding.categories is Categories.ONEHOT
    if not is_words:
        return (make_pipeline(impute, StandardScaler()) if onehot else impute).fit(known)
    options = {"min_frequency": max(2, int(np.ceil(encoding.rare * len(known))))}
    if onehot:
        options |= {"handle_unknown": "infrequent_if_exist", "sparse_output": False}
        return OneHotEncoder(**options).fit(known)
    options |= {"unknown_value": -1, "encoded_missing_value": -2}
    return OrdinalEncoder(handle_unknown="use_encoded_value", **options).fit(known)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda one: f"{one.categories}-{one.gaps}")
@pytest.mark.parametrize("n", [7, 30, 80])
def test_columns_are_encoded_as_by_scikit_learn(encoding, n, task):
    train = np.random.default_rng(n).permutation(task.n)[:n]
    encoder, X = encoding.fit(task, train), expand_dates(task.X, task.schema)
    for about, one, x in zip(list_expanded_columns(task.schema), encoder.fitted, X.T, strict=True):
        by_hand = fit_by_hand(encoding, x[train, None], bool(about.levels))
        made, expected = np.column_stack(list(one.columns(x))), by_hand.transform(x[:, None])
        if not about.levels:
            says = np.isnan(x[train]).any() and ("." not in about.name or about.name.endswith(f".{PARTS[0]}"))
            assert made.shape[1] == 1 + one.missing == 1 + says
        elif hasattr(by_hand, "unknown_value"):
            (rare,), (found,) = by_hand.infrequent_categories_, by_hand.categories_
            if rare is not None:  # what was never seen counts as rare; in scikit-learn it is -1
                expected[expected == -1] = np.sum(~np.isnan(found)) - len(rare)
        assert np.array_equal(made[:, : expected.shape[1]], expected)
    assert np.isfinite(encoder.transform(task.X)).all()
    assert encoder.transform(task.X).shape[1] <= encoding.width(task.schema, 2)


def test_parts_of_a_date_are_those_of_the_calendar():
    moments = [datetime(1969, 12, 31, 6), datetime(2024, 2, 29, 18, 30), datetime(1970, 1, 1)]
    days = [(moment - datetime(1970, 1, 1)) / timedelta(days=1) for moment in moments] + [np.nan]
    parts = [[m.year, m.month, m.day, m.weekday(), m.hour + m.minute / 60] for m in moments] + [[np.nan] * 5]
    found = expand_dates(86_400_000 * np.array(days)[:, None], Schema((Column("day", ColumnKind.DATE),)))
    assert np.array_equal(found, np.column_stack([days, parts]), equal_nan=True)


@pytest.mark.parametrize("encoding", [ENCODINGS[0], TARGET])
def test_rows_are_encoded_the_same_some_at_a_time(encoding, task, monkeypatch):
    encoder = encoding.fit(task, np.arange(60))
    whole = encoder.transform(task.X)
    assert whole.flags.c_contiguous
    monkeypatch.setattr(steps, "PART", 7)
    for n in (80, 77, 7, 3, 1, 0):
        assert encoder.transform(task.X[:n]).tobytes() == whole[:n].tobytes()
        assert encoder.transform(task.X[:n]).shape == whole[:n].shape


@given(st.data())
def test_an_encoder_depends_on_its_training_rows_alone(data):
    task = Task.from_table(untidy(40), Roles("outcome"))
    train = np.arange(0, 40, 2)
    others = np.arange(1, 40, 2)
    X = task.X.copy()
    X[others] = X[data.draw(st.permutations(list(range(40)))), :][: len(others)]
    encoding = data.draw(st.sampled_from(ENCODINGS))
    assert encoding.fit(replace(task, X=X, y=1 - task.y), train).text == encoding.fit(task, train).text


def test_in_a_split_an_encoder_is_fitted_to_the_rows_that_train(task):
    problem, train = Problem.of(Study.of(learner="linear"), task), np.arange(0, task.n, 2)
    trainer = problem.learner.trainer
    encoder, _ = trainer.prepare(trainer.share(task), train, np.arange(1, task.n, 2)).prepare(0)
    assert encoder.text == problem.learner.prepared[None].encoding.fit(task, train).text
    assert encoder.text != problem.learner.prepared[None].encoding.fit(task, np.arange(task.n)).text


FOREIGN = [
    (Categories.ONEHOT, lambda c: c["columns"][0].update(scale=0.0), "divides by 0.0"),
    (Categories.ONEHOT, lambda c: c["columns"][1].update(width=1), "a column that does not exist"),
    (Categories.ONEHOT, lambda c: c["columns"][1]["value"].pop(), "encoder of 'city' has another number of"),
    (Categories.ONEHOT, lambda c: c["columns"].pop(), "is not for 9 columns"),
    (Categories.ONEHOT, lambda c: c.pop("folds"), "columns and folds"),
    (Categories.TARGET, lambda c: c["folds"].pop(), "has another number of"),
    (Categories.TARGET, lambda c: c["folds"][0].append(80), "not below 80"),
    (Categories.TARGET, lambda c: c["folds"][0].append(c["folds"][1][0]), "in two folds"),
    (Categories.TARGET, lambda c: c["columns"][1]["of_all"][0].pop(), "has another number of"),
    (Categories.TARGET, lambda c: c["columns"][1]["of_others"][1].clear(), "inhomogeneous shape"),
]


@pytest.mark.parametrize(("categories", "change", "messages"), FOREIGN)
def test_a_foreign_encoder_is_refused(categories, change, messages, task):
    content = json.loads(Encoding(categories).fit(task, np.arange(50)).text)
    change(content)
    with pytest.raises(ValueError, match=messages):
        Encoder.from_json(json.dumps(content), task.schema, task.n)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
def test_shares_of_classes_are_those_of_scikit_learn(n_classes, grouped):
    """Training rows are encoded as by ``fit_transform`` with the same folds, others as by ``transform``."""
    rng = np.random.default_rng(np.random.SeedSequence(5))
    n = 90
    word = rng.integers(0, 12, n)
    texts = [None if one == 11 else f"w{one}" for one in word]
    y = (word + rng.integers(0, 2, n)) % n_classes
    groups = rng.integers(0, 20, n) if grouped else None
    task = Task.of(pa.table({"word": texts, "x": rng.normal(size=n)}), y, groups=groups)
    train = rng.permutation(n)[:60]
    encoder = TARGET.fit(task, train)
    assert len(encoder.folds) == 5
    assert sorted(row for rows in encoder.folds for row in rows) == sorted(train)
    if grouped:
        of_fold = [set(task.row_units[list(rows)]) for rows in encoder.folds]
        assert sum(map(len, of_fold)) == len(set().union(*of_fold))

    in_fold = [np.isin(train, rows) for rows in encoder.folds]
    hand = TargetEncoder(cv=PredefinedSplit(np.argmax(in_fold, axis=0)))
    word = task.X[:, [0]]
    expected = np.empty((n, 1 if n_classes == 2 else n_classes))
    expected[train] = hand.fit_transform(word[train], y[train])
    others = np.setdiff1d(np.arange(n), train)
    expected[others] = hand.transform(word[others])
    made = encoder.task(task).X
    assert np.array_equal(made[:, : expected.shape[1]], expected)
    assert made.shape[1] <= TARGET.width(task.schema, n_classes)


def test_shares_of_classes_need_two_rows_of_each_in_every_split():
    y = np.array([0] * 20 + [1] * 2)
    task = Task.of(pa.table({"word": ["a", "b"] * 11, "x": np.arange(22.0)}), y)
    with pytest.raises(InputError, match="a class has a single row: choose encode=onehot"):
        TARGET.fit(task, np.arange(21))
    grouped = replace(task, units=Units(22, groups=np.repeat([0, 1], 11), name="g"))
    with pytest.raises(InputError, match="all are of one group"):
        TARGET.fit(grouped, np.arange(10))


@pytest.mark.parametrize("encode", ["auto", "target"])
def test_a_column_that_knows_the_labels_of_other_rows_fools_no_claim(encode):
    """Labels are a toss of a coin; each category has a few rows, so its mean label nearly gives them away.

    Whoever fits an encoder to all rows first sees an error far below one half, and certifies it.
    """
    rng = np.random.default_rng(np.random.SeedSequence(18))
    n = 120
    y = rng.integers(0, 2, n)
    word = rng.integers(0, n // 3, n)
    mean = np.array([y[word == one].mean() for one in word])  # what an encoder of all rows would say
    assert np.mean((mean > 0.5) != y) < 0.3
    task = Task.of(pa.table({"word": [f"w{i:03}" for i in word], "x": rng.normal(size=n)}), y)
    study = Study.paper(learner="linear,tree", k=(3, 5), n_splits=5, encode=encode)
    study = study.replace(
        certify="holdout", holdout_share=0.33, **({"rare": 0.0} if encode == "auto" else {})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_job(Job(study, task), SERIAL)
    assert all(claim.bound >= 0.5 for claim in result.certificate.claims)
    assert result.certificate.error > 0.35


def test_a_row_that_is_drawn_twice_stays_in_one_fold(task):
    train = np.sort(np.random.default_rng(1).integers(0, task.n, task.n))
    folds = TARGET.fit(task, train).folds
    assert sorted(row for rows in folds for row in rows) == train.tolist()
    assert sum(len(set(rows)) for rows in folds) == len(set(train.tolist()))


def test_damaged_kinds_of_columns_are_a_damaged_folder(finished, tmp_path):
    run = finished("encoded", to=tmp_path)
    file = run / "data.parquet"
    table = parquet.read_table(file)
    sound = json.loads(table.schema.metadata[b"columns"])
    changes = ({"kind": "colour"}, {"kind": "date"}, {"levels": 3}, {"name": "other"}, {"more": 1})
    for text in ("{", "[]", "3", *(json.dumps([{**sound[0], **change}, *sound[1:]]) for change in changes)):
        metadata = {**table.schema.metadata, b"columns": text.encode()}
        parquet.write_table(table.replace_schema_metadata(metadata), file)
        with pytest.raises(StoreError, match=r"data\.parquet"):
            load_run(run)


# How numbers are scaled for an estimator of one's own is the study's, and no empty cell changes it


OWN = "sklearn.linear_model:LogisticRegression"
X = np.random.default_rng(np.random.SeedSequence(4)).lognormal(3, 2, (60, 3))
Y = (X[:, 0] > np.median(X[:, 0])).astype(int)
SPOILT = X.copy()
SPOILT[7, 1] = np.nan
PLAIN, HOLED = (
    Task.of(pa.table({f"c{i}": pa.array(x, from_pandas=True) for i, x in enumerate(values.T)}), Y)
    for values in (X, SPOILT)
)


def make_study(learner: object = OWN, **options: object) -> Study:
    return Study.paper(learner=learner, k=(3,), n_splits=3, param={"C": (1.0,)}, **options)


def encode(task: Task, train: np.ndarray, **options: object) -> np.ndarray:
    """Return the numbers that the estimator is given."""
    (prepared,) = Problem.of(make_study(**options), task).prepared.values()
    return task.X if prepared.encoding is None else prepared.encoding.fit(task, train).transform(task.X)


def test_numbers_are_scaled_as_the_study_says() -> None:
    for train in (np.arange(0, 60, 2), np.arange(1, 60, 2)):  # without the empty cell, and with it
        scaled = StandardScaler().fit(X[train]).transform(X)
        for options, expected in (({}, X), ({"scale": "none"}, X), ({"scale": "standard"}, scaled)):
            plain, holed = (encode(task, train, **options)[:, [0, -1]] for task in (PLAIN, HOLED))
            assert holed.tobytes() == plain.tobytes()
            assert holed[:, 0].tolist() == expected[:, 0].tolist()


def test_a_run_in_which_one_learner_of_several_is_scaled_is_stored_and_verified(tmp_path: Path) -> None:
    learners = [LogisticRegression(max_iter=10_000), "linear"]
    study = make_study(learners, **{"LogisticRegression.scale": "standard"})
    result = run_job(Job(study, HOLED, tmp_path / "run"), SERIAL)
    assert verify(tmp_path / "run").ok
    columns = HOLED.columns()
    again = load_run(tmp_path / "run")
    assert again.predict(columns, by="vote").tolist() == result.predict(columns, by="vote").tolist()
    assert "are standardised in each split for" in again.summary(details=True)

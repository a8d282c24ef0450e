"""Answers to rows: the predictions of the run, each row alone, with what is proven of them."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from services import ROW, make_model, make_result, make_table

from ckcv_ray.claims.rules import Rule
from ckcv_ray.errors import InputError
from ckcv_ray.serving import answers
from ckcv_ray.serving.answers import OF_PROBABILITIES, Service, parse_json, tabulate_rows
from ckcv_ray.tables.columns.types import Column, ColumnKind

VOTE = Service(make_result(), "vote")
RULES = [
    (make_result, {}, "auto"),
    (make_result, {}, "vote"),
    (make_result, {"certify": "holdout"}, "auto"),
    (make_result, {"certify": "holdout", "claim": "random"}, "auto"),
    (make_result, {"certify": "nested", "outer_splits": 2}, "nested"),
    (make_result, {"learner": "svm,tree"}, "auto"),
    (make_model, {}, "auto"),
    (make_model, {"learner": "ridge"}, "auto"),
]


def ask(service: Service, *rows: dict[str, Any]) -> list[Any]:
    return service.predict({"rows": list(rows)})["predictions"]


@pytest.mark.parametrize(("make", "options", "by"), RULES)
def test_an_answer_is_json_and_carries_what_is_proven(make: Any, options: dict[str, Any], by: str) -> None:
    result = make(**options)
    service = Service(result, by)
    answer = service.predict({"rows": [ROW, ROW]})
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    rule = result.rule(by)
    claim = {"statement": result.claim_for(rule), "bound": result.bound_for(rule), "run_id": result.run_id}
    assert answer["claim"] == service.describe()["claim"] == claim
    assert len(answer["predictions"]) == 2
    assert answer["classes"] == (None if result.task.has_numbers else list(result.task.classes))


def test_labels_are_those_that_the_run_predicts() -> None:
    table, _ = make_table()
    answered = [row["prediction"] for row in ask(VOTE, *table.to_pylist())]
    assert answered == make_result().predict(table, by="vote").tolist()


def test_a_row_is_answered_as_if_it_were_alone() -> None:
    rows = make_table()[0].to_pylist()
    rows[3]["age"], rows[5]["ward"], rows[7]["dose"] = None, "never seen", 10**400
    together = ask(VOTE, *rows)
    assert together[7] is None
    for i in (0, 3, 5, 20):
        assert ask(VOTE, rows[i]) == [together[i]]


def test_members_are_drawn_for_each_row_and_each_request() -> None:
    service = Service(make_result())
    once, again = ([row["member"] for row in ask(service, *[ROW] * 200)] for _ in range(2))
    assert set(once) == {0, 1, 2}  # 3 (2/3)^200 is below 10^-34
    assert once != again


def test_probabilities_are_those_of_the_model_that_decides() -> None:
    for row in ask(Service(make_result()), *make_table()[0].to_pylist()):
        ill, well = row["probabilities"]
        assert ill + well == pytest.approx(1.0)
        assert row["score"] == pytest.approx(well - ill)
        assert row["prediction"] == ("well" if well > ill else "ill")


@pytest.mark.parametrize(
    ("service", "known"),
    [
        (Service(make_result()), True),
        (Service(make_result(certify="holdout"), "auto"), True),
        (Service(make_model()), True),
        (Service(make_result(certify="nested", outer_splits=2), "nested"), True),
        (VOTE, False),  # which has shares
        (Service(make_result("svm")), False),
        (Service(make_model("ridge")), False),
    ],
)
def test_it_is_said_whether_there_are_probabilities(service: Service, known: bool) -> None:
    (answer,) = ask(service, ROW)
    assert (answer["probabilities"] is not None) == known
    assert service.describe()["probabilities"] == (OF_PROBABILITIES if known else None)


def test_what_rows_need_and_what_voids_the_claim_is_described() -> None:
    described = VOTE.describe()
    certificate = make_result().certificate
    assert described["cautions"] == certificate.list_cautions()
    assert described["assumptions"] == list(certificate.wording.assumptions)
    assert described["not_covered"] == list(certificate.wording.not_covered)
    assert [column["name"] for column in described["columns"]] == ["age", "dose", "ward"]
    assert described["columns"][2]["kind"] == "category"
    assert described["limits"] == {"rows": answers.ROWS_AT_ONCE, "cells": answers.CELLS_AT_ONCE}
    assert Service(make_model()).describe()["assumptions"] == []


def test_the_bound_of_a_rule_is_that_of_its_sentence() -> None:
    result = make_result()
    (drawn,) = result.certificate.claims
    assert result.bound_for(result.rule()) == drawn["bound"]
    assert result.bound_for(result.rule("vote")) == min(1.0, 2 * drawn["bound"])
    assert result.bound_for(Rule("member:1")) is None
    held = make_result(certify="holdout")
    assert held.bound_for(held.rule("refit")) == held.proven
    assert held.bound_for(held.rule("full")) is None
    assert make_model().bound_for(Rule("full")) is None


def test_notes_name_what_is_strange() -> None:
    rows = [ROW | {"ward": "z", "id": 7}, ROW | {"dose": 1e300}]
    answer = VOTE.predict({"rows": rows})
    assert [row is None for row in answer["predictions"]] == [False, True]
    assert answer["notes"] == [
        "1 row has a category that was never seen, 'z' in column 'ward': it counts as a rare one",
        "1 of 2 rows could not be judged: column 'dose' has 1e+300 in row 2, and magnitudes are at most "
        "1e+150: fix it",
        "1 column ignored: id",
    ]
    assert VOTE.predict({"rows": [ROW]})["notes"] == []


FORM = '{"rows": [{"age": 61, "dose": 2.5}]}'
REFUSED: list[tuple[Any, str]] = [
    ([ROW], f"expected an object with a list of rows and nothing else: {FORM}"),
    ({"rows": []}, "expected an object with a list of rows"),
    ({"rows": ROW}, "expected an object with a list of rows"),
    ({"rows": [ROW], "by": "vote"}, "and nothing else"),
    ({"rows": [ROW, 3]}, f"row 2 is 3: expected an object, as in {FORM}"),
    ({"rows": [{}] * 10_001}, "the request has 10,001 rows: at most 10,000 are answered at once; send parts"),
    (
        {"rows": [{"age": 1, "ward": "a", "Dose": 2}]},
        "there is no column 'dose': the columns are age, ward, Dose",
    ),
    (
        {"rows": [ROW | {"age": [1]}]},
        "column 'age' has [1] in row 1: expected a number, text, true, false or null",
    ),
    (
        {"rows": [ROW, ROW | {"age": "old"}]},
        "column 'age' has 'old' in row 2, and numbers in other rows: write all of its values alike",
    ),
    ({"rows": [ROW | {"age": "old"}]}, "column 'age' has 'old' in row 1, not a number: fix it"),
    (
        {"rows": [{f"c{i}": 1 for i in range(65_537)}]},
        "the rows have 65,537 columns: at most 65,536 are read; leave out those that the run does not use",
    ),
]


@pytest.mark.parametrize(("content", "sentence"), REFUSED, ids=[sentence[:40] for _, sentence in REFUSED])
def test_rows_that_cannot_be_answered_are_refused(content: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        VOTE.predict(content)
    assert sentence in str(refused.value)


def test_cells_are_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CELLS_AT_ONCE", 7)
    assert len(ask(VOTE, ROW, ROW)) == 2
    with pytest.raises(InputError, match="has 3 rows: at most 2 are answered at once"):
        ask(VOTE, ROW, ROW, ROW)


NUMBER, WARD = Column("c"), Column("c", ColumnKind.CATEGORY, ("1", "a"))
DATE = Column("c", ColumnKind.DATE)
CELLS: list[tuple[Column, list[Any], pa.DataType, list[Any]]] = [
    (NUMBER, [1, None, 3], pa.int64(), [1, None, 3]),
    (NUMBER, [1, 2.5, "NA", " "], pa.float64(), [1.0, 2.5, None, None]),
    (NUMBER, [True, 3], pa.int64(), [1, 3]),
    (NUMBER, [2**63, -(10**400)], pa.float64(), [2.0**63, -np.inf]),
    (NUMBER, ["1.5", "NA", None], pa.string(), ["1.5", "NA", None]),
    (NUMBER, [None], pa.null(), [None]),
    (NUMBER, ["NA"], pa.null(), [None]),
    (WARD, [1, 1.0, 2.5, True, "a", None], pa.string(), ["1", "1", "2.5", "true", "a", None]),
    (DATE, ["2026-11-25", None], pa.string(), ["2026-11-25", None]),
    (DATE, [20261125], pa.int64(), [20261125]),
]


@pytest.mark.parametrize(("column", "values", "kind", "cells"), CELLS)
def test_cells_are_of_one_kind(
    column: Column, values: list[Any], kind: pa.DataType, cells: list[Any]
) -> None:
    made = tabulate_rows([{"c": value, "other": {}} for value in values], (column,))
    assert made["c"].type == kind
    assert made["c"].to_pylist() == cells
    assert pa.types.is_null(made["other"].type)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"rows", f"the request is no JSON (Expecting value: line 1 column 1 (char 0)): expected {FORM}"),
        (b"\xff", "the request is no JSON ("),
        (b"[" * 100_000, "the request is no JSON ("),
        (b"1" * 5000, "the request is no JSON ("),
        (b'{"a": NaN}', "NaN is no JSON: write null for a gap, and numbers that are finite"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' is twice in one object: leave one of them out"),
    ],
)
def test_what_is_no_json_is_refused(body: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_json(body)
    assert sentence in str(refused.value)


def test_json_is_read() -> None:
    assert parse_json(b'{"rows": [{"age": 1e3}]}') == {"rows": [{"age": 1000.0}]}

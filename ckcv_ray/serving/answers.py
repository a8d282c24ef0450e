"""Answers: rows as JSON values in, predictions and what is proven of them out.

A row is an object with a value for each column: a number, text, true, false, or null for a gap. What a cell
becomes depends on the cell and on the run alone, never on the other rows of the request.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.scores import Output
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.learners.ensemble import Prediction
from ckcv_ray.runs.result import Result
from ckcv_ray.tables.columns.formats import GAPS, bare
from ckcv_ray.tables.columns.types import Column, ColumnKind
from ckcv_ray.tables.readers.limits import MOST_TABLE_COLUMNS
from ckcv_ray.tables.target import Rows, some
from ckcv_ray.validation import quote

ROWS_AT_ONCE = 10_000  # of one request
CELLS_AT_ONCE = 1 << 22  # rows times columns of the run
WHOLE = 1 << 63  # whole numbers below are kept as they are
ROWS_FORM = '{"rows": [{"age": 61, "dose": 2.5}]}'
OF_PROBABILITIES = "as the model that decides gives them: nothing is proven of them"


@dataclass(frozen=True, eq=False)
class Service:
    """What is served: a finished run, and how it predicts.

    Attributes:
        result: of a finished run, or of an evaluation with a model.
        by: as for ``Result.rule``; members that are drawn are drawn again for each request.
    """

    result: Result
    by: str = "auto"

    def predict(self, content: Any) -> dict[str, Any]:
        """Return predictions for rows, with what is proven of them, as JSON values.

        Args:
            content: an object with the list ``rows``, of at most ``ROWS_AT_ONCE`` objects.

        Raises:
            InputError: the rows are no such list, lack a column of the run, or none of them can be judged.
        """
        task = self.result.task
        rows = _check_rows(content, len(task.schema.names))
        columns = tabulate_rows(rows, task.schema.columns, task.provenance.keep_values)
        read = task.read(columns)
        if read.bad.all():
            read.check()
        judged, rule = np.flatnonzero(~read.bad), self.result.rule(self.by)
        X = read.X[judged]
        predicted = self.result.classify(X, rule)
        shares = self._find_probabilities(X, rule, predicted)
        answers: list[dict[str, Any] | None] = [None] * len(rows)
        for place, row in zip(judged.tolist(), self._list_answers(predicted, shares), strict=True):
            answers[place] = row
        notes = [read.unseen] if read.unseen else []
        if read.reason:
            notes.append(f"{int(read.bad.sum())} of {len(rows)} rows could not be judged: {read.reason}")
        if ignored := [name for name in columns.column_names if name not in task.features]:
            notes.append(f"{pluralize(len(ignored), 'column')} ignored: {some(ignored)}")
        return {
            "claim": self._describe_claim(rule),
            "classes": None if task.has_numbers else list(task.classes),
            "predictions": answers,
            "notes": notes,
        }

    def describe(self) -> dict[str, Any]:
        """Return what is proven of the predictions and what voids it, and what rows need, as JSON values."""
        result, rule = self.result, self.result.rule(self.by)
        task, certified = result.task, result.finished is not None
        wording = result.certificate.wording if certified else None
        kinds = [{"name": column.name, "kind": str(column.kind)} for column in task.schema]
        return {
            "claim": self._describe_claim(rule),
            "cautions": result.certificate.list_cautions() if certified else [],
            "assumptions": [] if wording is None else list(wording.assumptions),
            "not_covered": [] if wording is None else list(wording.not_covered),
            "target": task.target,
            "classes": None if task.has_numbers else list(task.classes),
            "columns": kinds,
            "probabilities": OF_PROBABILITIES if self._gives_probabilities(rule) else None,
            "limits": {"rows": ROWS_AT_ONCE, "cells": CELLS_AT_ONCE},
        }

    def _describe_claim(self, rule: Rule) -> dict[str, Any]:
        """Return what is proven of a rule: its sentence, the bound on its error (None: none), and the run."""
        result = self.result
        return {
            "statement": result.claim_for(rule),
            "bound": result.bound_for(rule),
            "run_id": result.run_id,
        }

    def _gives_probabilities(self, rule: Rule) -> bool:
        """Return whether the models that a rule decides by have probabilities; a vote has none of its own."""
        result, problem = self.result, self.result.problem
        if result.task.has_numbers or rule.name == "vote":
            return False
        setting = result.setting if result.kept is None else result.kept.settings[0]
        assert setting is not None
        return Output.PROBABILITY in problem.find_learner(setting)[1].outputs

    def _find_probabilities(self, X: Rows, rule: Rule, predicted: Prediction) -> NDArray[np.float64] | None:
        """Return the probability of each class, (rows, n_classes), by the model that decides each row."""
        if not self._gives_probabilities(rule):
            return None
        result = self.result
        ensemble = rule.ensemble(result.models) if result.full is None else result.full
        shares = np.empty((len(X), result.task.n_classes))
        for number in np.unique(predicted.member).tolist():
            rows = predicted.member == number
            model = ensemble.members[max(0, number)].model  # -1: the only one
            shares[rows] = model.predict_outputs(X[rows], frozenset({Output.PROBABILITY})).probability
        return shares

    def _list_answers(
        self, predicted: Prediction, shares: NDArray[np.float64] | None
    ) -> list[dict[str, Any]]:
        """Return the answer of each row that was judged; what is not known is None."""
        labels = self.result.task.labelled(predicted.label).tolist()
        listed = [
            {
                "prediction": label,
                "member": None if member < 0 else member,
                "score": None if isnan(score) else score,
                "share": None if isnan(share) else share,
                "probabilities": None,
            }
            for label, member, score, share in zip(
                labels,
                predicted.member.tolist(),
                predicted.score.tolist(),
                predicted.share.tolist(),
                strict=True,
            )
        ]
        if shares is not None:
            for answer, probabilities in zip(listed, shares.tolist(), strict=True):
                answer["probabilities"] = probabilities
        return listed


def parse_json(body: bytes) -> Any:
    """Return the JSON values of a request.

    Raises:
        InputError: it is no JSON, has a number that is not finite, or an object has a name twice.
    """
    try:
        return json.loads(body, object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # also of text that is not UTF-8, and of endless digits
        raise InputError(f"the request is no JSON ({error}): expected {ROWS_FORM}") from None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{quote(twice)} is twice in one object: leave one of them out")
    return content


def _refuse_constant(text: str) -> Any:
    raise InputError(f"{text} is no JSON: write null for a gap, and numbers that are finite")


def _check_rows(content: Any, n_columns: int) -> list[dict[str, Any]]:
    """Return the rows of a request.

    Raises:
        InputError: it has none, or too many, or they are no objects.
    """
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or len(content) > 1:
        raise InputError(f"expected an object with a list of rows and nothing else: {ROWS_FORM}")
    most = min(ROWS_AT_ONCE, max(1, CELLS_AT_ONCE // max(1, n_columns)))
    if len(rows) > most:
        raise InputError(
            f"the request has {len(rows):,} rows: at most {most:,} are answered at once; send parts"
        )
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError(f"row {number} is {quote(row)}: expected an object, as in {ROWS_FORM}")
    return rows


def tabulate_rows(
    rows: list[dict[str, Any]], known: tuple[Column, ...], kept: Collection[str] = ()
) -> pa.Table:
    """Return rows as a table: the columns that are known by their values, others without any.

    Words that are ``kept`` are no gaps.

    Raises:
        InputError: a cell is an object or a list, text is among numbers, or there are too many names.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    if len(names) > MOST_TABLE_COLUMNS:
        raise InputError(
            f"the rows have {len(names):,} columns: at most {MOST_TABLE_COLUMNS:,} are read; leave out those "
            "that the run does not use"
        )
    by_name = {column.name: column for column in known}
    columns = {
        name: _make_column([row.get(name) for row in rows], by_name[name], GAPS.difference(kept))
        if name in by_name
        else pa.nulls(len(rows))
        for name in names
    }
    return pa.table(columns)


def _make_column(values: list[Any], column: Column, gaps: Collection[str]) -> pa.Array:
    """Return the cells of a column: text of categories, else text alone or numbers alone."""
    for number, value in enumerate(values, 1):
        if isinstance(value, dict | list):
            raise InputError(
                f"column {column.name!r} has {quote(value)} in row {number}: expected a number, text, true, "
                "false or null"
            )
    if column.kind is ColumnKind.CATEGORY:
        return pa.array([_write_level(value) for value in values], pa.string())
    texts = [value for value in values if isinstance(value, str) and bare(value).lower() not in gaps]
    numbers = [value for value in values if isinstance(value, bool | int | float)]
    if texts and numbers:
        raise InputError(
            f"column {column.name!r} has {quote(texts[0])} in row {values.index(texts[0]) + 1}, and numbers "
            "in other rows: write all of its values alike"
        )
    if texts:
        return pa.array(values, pa.string())
    cells = [None if isinstance(value, str) else value for value in values]
    if all(isinstance(value, int) and abs(value) < WHOLE for value in numbers):
        return pa.array(
            [None if cell is None else int(cell) for cell in cells], pa.int64() if numbers else None
        )
    return pa.array([None if cell is None else _make_float(cell) for cell in cells], pa.float64())


def _write_level(value: Any) -> str | None:
    """Return a cell of a category as text: 1 for 1.0, true for True."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and isfinite(value) and value == int(value):
        return str(int(value))
    return None if value is None else str(value)


def _make_float(value: int | float) -> float:
    """Return a number as a float, infinite if it is too large to be one: such a row cannot be judged."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf

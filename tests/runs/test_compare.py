"""Comparing on judged rows: what is measured and proven, what is a caution, what is refused, and each use."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from finished import KINDS, SCORED, Finished

from ckcv_ray import InputError, StoreError, Study, Task, load_run, verify
from ckcv_ray.core.bounds.paired import BETTING, COUNTS, SIGN
from ckcv_ray.runs.later import BETTER, NOT_WORSE, OPEN, WORSE, Question, compare
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.pieces import USES, Use, read_uses
from ckcv_ray.tables.roles import Roles

SMALL = Study.paper(C=(1.0, 10.0), gamma=(0.1, 1.0), k=(3,), n_splits=3)
HELD = SMALL.replace(certify="holdout")


def draw(n: int, seed: int) -> pa.Table:
    """Rows whose label a and b tell, noise does not, and a physician gets right in 85 % of them."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n)).round(4)
    ill = a + 0.7 * b + 0.3 * rng.normal(size=n) > 0
    physician = np.where(rng.random(n) < 0.15, ~ill, ill)
    names = {name: np.where(x, "ill", "well") for name, x in (("y", ill), ("physician", physician))}
    return pa.table({"a": a, "b": b, "noise": noise, **names, "patient": np.arange(n) // 3})


def coarsen(table: pa.Table) -> pa.Table:
    """Rows of which many are equal."""
    return pa.table({x: pc.round(table[x]) for x in "ab"} | {x: table[x] for x in ("y", "physician")})


LEARNED, JUDGED = draw(120, 0), draw(240, 1)

Y, AB = LEARNED["y"].to_numpy(), LEARNED.select(["a", "b"])
BEST: dict[str, Any] = {"X": AB, "y": Y, "resampling": "kfold:3", "refit": "best"}
KINDS |= {
    "new": (HELD, Task.of(AB, Y)),
    "old": (HELD, Task.of(LEARNED.select(["noise"]), Y)),
    "drawn": (SMALL, Task.of(AB, Y)),
    "grouped": (HELD, Task.of(AB, Y, groups=np.arange(120) // 3)),
    "coarse": (HELD, Task.from_table(coarsen(LEARNED), Roles("y", drop=["physician"]))),
    "another target": (HELD, Task.from_table(AB.append_column("outcome", LEARNED["y"]), Roles("outcome"))),
}
SCORED |= {
    "scored": {**BEST, "learner": "naive_bayes"},
    "of numbers": {**BEST, "y": LEARNED["noise"].to_numpy(), "learner": "ridge"},
}
Runs = Callable[[str], Path]


@pytest.fixture
def runs(finished: Finished, tmp_path: Path) -> Runs:
    """Copies of the runs, with no uses counted."""
    return cache(lambda name: Path(shutil.copytree(finished(name), tmp_path / name)))


def forget(folder: Path) -> None:
    """Let the rows be new again for all runs."""
    for file in folder.parent.glob("*/uses*.json"):
        file.unlink()


def test_what_is_measured_is_counted_one_by_one(runs: Runs) -> None:
    new, old = runs("new"), runs("old")
    found, results = compare(new, JUDGED, old), map(load_run, (new, old))
    first, second = (
        one.predict(JUDGED.select(one.task.features)) != JUDGED["y"].to_numpy() for one in results
    )
    assert found.errors == (first.mean(), second.mean())
    assert found.counts == (np.sum(second & ~first), np.sum(first & ~second))
    assert (found.answer, found.verdict.method, found.units) == (BETTER, SIGN, 240)
    said = "\n".join(found.describe())
    assert f"{new}: error {100 * first.mean():.2f} % ({first.sum()} of 240 rows wrong), by the model" in said


@pytest.mark.parametrize(("rows", "method"), [(60, COUNTS), (240, BETTING)])
def test_with_a_margin_the_difference_is_bounded(runs: Runs, rows: int, method: str) -> None:
    judged, new, old = JUDGED.slice(60 if rows == 60 else 0, rows), runs("new"), runs("old")
    found = compare(new, judged, old, question=Question(no_worse=0.01))
    assert (found.answer, found.verdict.method) == (NOT_WORSE, method)
    assert found.verdict.low <= found.errors[0] - found.errors[1] <= found.verdict.high <= 0.01
    forget(new)
    assert compare(old, judged, new, question=Question(no_worse=0.01)).answer == WORSE


def test_equal_rows_of_columns_with_few_values_count_with_a_caution(runs: Runs) -> None:
    """They may well be different examples, so they are not left out; see ``MAX_TWINS``."""
    found = compare(runs("coarse"), coarsen(JUDGED), predictions="physician")
    assert (found.units, found.left_out) == (240, 0)
    assert any("learned from, as rows of these columns often do" in caution for caution in found.cautions)
    forget(runs("coarse"))
    for half in (JUDGED.slice(0, 120), JUDGED.slice(120)):  # nor is equal to have been used
        assert not compare(runs("coarse"), coarsen(half), predictions="physician").repeated
    forget(runs("coarse"))
    apart = coarsen(JUDGED).append_column("noise", JUDGED["noise"])  # which tells rows apart
    compare(runs("coarse"), apart.slice(0, 120), predictions="physician")
    with pytest.raises(InputError, match="--uses"):
        compare(runs("coarse"), apart.slice(119), predictions="physician")


def test_groups_are_units(runs: Runs) -> None:
    found = compare(runs("grouped"), JUDGED, predictions="physician", question=Question(group="patient"))
    assert (found.units, found.verdict.method) == (80, BETTING)
    shares = found.run.wrong.reshape(80, 3).mean(axis=1)
    assert found.errors[0] == pytest.approx(shares.mean())
    assert "the rows of a new group are on average misclassified" in found.state()


def test_what_is_not_yet_proven_says_how_many_rows_it_would_take(runs: Runs) -> None:
    new, judged = runs("new"), JUDGED.slice(0, 60)
    same = load_run(new).predict(judged.select(["a", "b"]))
    other = np.where(np.arange(60) % 15 == 0, np.where(same == "ill", "well", "ill"), same)  # four others
    found = compare(new, judged.append_column("other", pa.array(other)), predictions="other")
    assert (found.answer, sum(found.counts)) == (OPEN, 4)
    assert f"about {found.expected:,} new rows, like these but none of them, are expected" in found.state()
    forget(new)
    never = compare(new, judged.append_column("same", pa.array(same)), predictions="same")
    assert never.expected is None
    assert "as measured, no number of rows up to 100,000 is expected to prove it" in never.state()


def test_members_are_drawn_by_the_seed_of_the_study_so_that_an_answer_repeats(runs: Runs) -> None:
    first, second = (compare(runs("drawn"), JUDGED, runs("old")) for _ in range(2))
    assert np.array_equal(first.run.predicted, second.run.predicted)
    assert "drawn independently for each row" in first.run.by
    assert second.repeated


# Cautions


def test_rows_that_cannot_be_used_are_left_out_and_counted(runs: Runs) -> None:
    a, target = JUDGED["a"].to_pylist(), JUDGED["y"].to_pylist()
    a[0], target[1], target[2] = None, None, ""
    judged = JUDGED.set_column(0, "a", pa.array(a)).set_column(3, "y", pa.array(target))
    found = compare(runs("new"), judged, runs("old"))
    assert found.units == 237
    assert "2 rows without a label left out" in found.cautions
    assert any(line.startswith("1 row that cannot be classified left out: ") for line in found.cautions)


def test_rows_that_a_run_has_learned_from_do_not_count_whatever_their_label(runs: Runs) -> None:
    alone = compare(runs("drawn"), JUDGED, predictions="physician")
    forget(runs("drawn"))
    flipped = pc.if_else(pc.equal(LEARNED["y"], "ill"), "well", "ill")
    learned = LEARNED.set_column(LEARNED.column_names.index("y"), "y", flipped).slice(0, 20)
    found = compare(runs("drawn"), pa.concat_tables([learned, JUDGED]), predictions="physician")
    assert (found.errors[1], found.units, found.left_out) == (alone.errors[1], 240, 20)
    assert "20 rows of 260 left out, whose features a run has learned from" in found.cautions


def test_more_than_a_tenth_of_learning_rows_is_refused(runs: Runs) -> None:
    for judged in (LEARNED, pa.concat_tables([JUDGED, LEARNED.slice(0, 30)])):
        with pytest.raises(InputError, match="leave the learning rows out of the table, and judge rows"):
            compare(runs("drawn"), judged, predictions="physician")
    assert not (runs("drawn") / USES).exists()


# Uses


TEN = Question(uses=10)


def test_each_use_is_counted_under_the_digest_of_the_rows(runs: Runs) -> None:
    """Another order, another column and another run leave the rows the same."""
    new, old, other = runs("new"), runs("old"), replace(TEN, no_worse=0.01)
    shuffled = JUDGED.take(np.random.default_rng(0).permutation(240))
    numbers = [
        compare(new, JUDGED, old, question=TEN),
        compare(new, shuffled, predictions="physician", question=TEN),
        compare(new, JUDGED.append_column("nurse", JUDGED["physician"]), old, question=other),
        compare(new, draw(200, 2), old, question=TEN),
        compare(new, JUDGED, old, question=TEN),
    ]
    assert [found.number for found in numbers] == [1, 2, 3, 1, 1]
    assert [found.repeated for found in numbers] == [False] * 4 + [True]
    assert len(read_uses(RunFolder(new).files)) == 4
    assert compare(old, JUDGED, runs("drawn"), question=TEN).number == 3  # that old knows


@pytest.mark.parametrize("share", ["one row", "whole numbers", "relabelled"])
def test_a_second_use_of_some_rows_takes_a_number_of_uses_that_was_named(runs: Runs, share: str) -> None:
    first = draw(200, 3)
    first = first.set_column(2, "noise", pc.cast(pc.multiply(first["noise"], 1e4), pa.int64(), safe=False))
    second = {
        "one row": pa.concat_tables([JUDGED.slice(0, 50).cast(first.schema, safe=False), first.slice(7, 1)]),
        "whole numbers": first.set_column(2, "noise", first["noise"].cast(pa.float64())).slice(50),
        "relabelled": first.set_column(3, "y", first["physician"]),
    }[share]
    compare(runs("new"), first, runs("old"))
    for question in (Question(uses=4), Question()):
        with pytest.raises(InputError, match=r"some of these rows.* shared among 1 use, 1 of them counted"):
            compare(runs("new"), second, runs("old"), question=question)


def test_uses_that_are_linked_by_shared_rows_never_sum_to_more_than_delta(runs: Runs) -> None:
    """Ten looks, at random parts of one table: of those that are accepted each link has at most delta."""
    rng, question, accepted, table = np.random.default_rng(4), Question(uses=2), [], draw(300, 5)
    for _ in range(10):
        begin, size = int(rng.integers(240)), int(rng.integers(20, 60))
        with suppress(InputError):
            compare(runs("new"), table.slice(begin, size), predictions="physician", question=question)
            accepted.append(set(range(begin, begin + size)))
    linked = [set(rows) for rows in accepted]
    for rows in accepted:  # join what overlaps
        joined = set.union(*(one for one in linked if one & rows))
        linked = [one for one in linked if not one & rows] + [joined]
    assert 2 < len(accepted) < 10
    assert all(sum(rows <= one for rows in accepted) <= 2 for one in linked)


def test_delta_is_shared_among_uses_and_refused_beyond(runs: Runs) -> None:
    new, shared = runs("new"), Question(uses=2)
    first = compare(new, JUDGED, runs("old"), question=shared)
    assert "with probability at least 98.75 %" in first.state()
    assert compare(new, JUDGED, runs("scored"), question=shared).number == 2
    assert compare(new, JUDGED, runs("old"), question=shared).repeated
    for question in (shared, Question(), Question(uses=3), Question(uses=2, delta=0.1)):
        with pytest.raises(
            InputError, match=r"^some of .* with a delta of 0\.05 shared among 2 uses, 2 of them counted"
        ):
            compare(new, JUDGED, predictions="physician", question=question)


def test_a_ledger_counts_instead_of_the_folders(runs: Runs, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    compare(runs("new"), JUDGED, runs("old"), question=TEN)
    counted = compare(runs("new"), JUDGED, predictions="physician", question=TEN, ledger=ledger)
    assert (counted.number, counted.places) == (2, (str(ledger),))
    assert len(read_uses(RunFolder(runs("new")).files)) == 1
    assert compare(runs("new"), JUDGED, runs("scored"), question=TEN, ledger=ledger).number == 3
    assert not (tmp_path / ".lock").exists()


def test_a_folder_that_cannot_be_written_is_compared_and_said(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, old, closed = runs("new"), runs("old"), ["old"]

    def refuse(files: LocalFiles) -> None:
        if files.root.name in closed:
            raise InputError(f"cannot write to {str(files)!r}: Read-only file system")

    monkeypatch.setattr(LocalFiles, "check_writable", refuse)
    found = compare(new, JUDGED, old)
    assert found.places == (str(new / USES),)
    closed.append("new")
    fresh, shared = draw(200, 2), Question(uses=3)
    assert compare(new, fresh, old).places == ()
    with pytest.raises(InputError, match=r"uses=3: uses cannot be counted in .*new or .*old, which cannot"):
        compare(new, fresh, old, question=shared)
    assert compare(new, fresh, old, question=shared, ledger=tmp_path / "l.json").places


def test_a_run_with_uses_is_as_it_was(runs: Runs) -> None:
    new, before = runs("new"), RunFolder(runs("new")).manifest()
    compare(new, JUDGED, runs("old"))
    assert RunFolder(new).manifest() == before
    assert verify(new).ok


MOMENT = "2026-11-25T13:00:00+00:00"
USE = Use(("0" * 64,), "2" * 32, "", "1" * 64, "a, b", shares=1, delta=0.05, date=MOMENT).to_json()


def test_a_damaged_file_of_uses_is_refused_and_kept(runs: Runs) -> None:
    file, damaged = runs("new") / USES, json.dumps(USE | {"compared": "\x1b[2J"})
    file.write_text(damaged)
    with pytest.raises(StoreError, match="compared: String should match"):
        compare(runs("new"), JUDGED, runs("old"))
    assert file.read_text() == damaged
    assert not (runs("new") / ".lock").exists()


# Refusals


def test_what_does_not_suit_is_refused_in_a_sentence(runs: Runs) -> None:
    new, old = runs("new"), runs("old")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "either the folder of another run, or predictions=COLUMN"),
        ({"reference": runs("of numbers")}, "predicts numbers: only classes are compared"),
        ({"reference": runs("another target")}, "compare runs that predict the same column"),
        ({"reference": runs("grouped")}, "made with groups .*say which of the judged rows belong together"),
        ({"reference": old, "ledger": old / "ledger.json"}, "is in a run folder"),
    ]
    gaps = JUDGED.append_column("gaps", pa.array(["ill"] * 239 + [None]))
    cases += [
        ({"columns": gaps, "predictions": "gaps"}, "no prediction in 1 of 240 labelled rows: fill them"),
    ]
    for options, said in cases:
        with pytest.raises(InputError, match=said):
            compare(**{"folder": new, "columns": JUDGED} | options)
    assert not (new / USES).exists()

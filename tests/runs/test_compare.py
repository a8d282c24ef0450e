"""Comparing on judged rows: what is measured and proven, what is a caution, what is refused, and each use."""

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ckcv_ray import Execution, InputError, StoreError, Study, evaluate, load_run, run, verify
from ckcv_ray.core.bounds.paired import BETTING, COUNTS, SIGN
from ckcv_ray.runs.compare import BETTER, NOT_WORSE, OPEN, WORSE, Question, compare
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.uses import USES, read_uses

SERIAL = Execution("serial")
SMALL = Study.paper(C=(1.0, 10.0), gamma=(0.1, 1.0), k=(3,), n_splits=3)
HELD = SMALL.replace(certify="holdout")


def draw(n: int, seed: int) -> pa.Table:
    """Rows of which a and b say the label, noise does not, and a physician is right in 85 % of them."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n)).round(4)
    ill = a + 0.7 * b + 0.3 * rng.normal(size=n) > 0
    physician = np.where(rng.random(n) < 0.15, ~ill, ill)
    names = {name: np.where(x, "ill", "well") for name, x in (("y", ill), ("physician", physician))}
    return pa.table({"a": a, "b": b, "noise": noise, **names, "patient": np.arange(n) // 3})


LEARNED, JUDGED = draw(120, 0), draw(240, 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: of a and b, of noise, with draws of members, with groups, and others that do not suit."""
    root, y = tmp_path_factory.mktemp("runs"), LEARNED["y"].to_numpy()
    run(HELD, LEARNED.select(["a", "b"]), y, root / "new", SERIAL)
    run(HELD, LEARNED.select(["noise"]), y, root / "old", SERIAL)
    run(SMALL, LEARNED.select(["a", "b"]), y, root / "drawn", SERIAL)
    run(HELD, LEARNED.select(["a", "b"]), y, root / "grouped", SERIAL, groups=np.arange(120) // 3)
    run(HELD, LEARNED.select(["a", "b"]), np.where(y == "ill", "yes", "no"), root / "words", SERIAL)
    options: dict[str, Any] = {"resampling": "kfold:3", "refit": "best"}
    evaluate(LEARNED.select(["a", "b"]), y, root / "scored", SERIAL, learner="naive_bayes", **options)
    evaluate(
        LEARNED.select(["a"]), LEARNED["b"].to_numpy(), root / "numbers", SERIAL, learner="ridge", **options
    )
    renamed = LEARNED.select(["a", "noise"]).append_column("y", LEARNED["b"])
    run(HELD, renamed, y, root / "other_target", SERIAL)
    return root


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """Copies of the runs, which know of no use."""
    return Path(shutil.copytree(made, tmp_path / "runs"))


def forget(runs: Path) -> None:
    """Let the rows be new again."""
    for file in runs.glob("*/uses*.json"):
        file.unlink()


def wrong(folder: Path, rule: str = "auto") -> np.ndarray:
    result = load_run(folder)
    predicted = result.predict(JUDGED.select(result.task.features), by=rule)
    return np.asarray(predicted != JUDGED["y"].to_numpy())


def test_what_is_measured_is_counted_one_by_one(runs: Path) -> None:
    found = compare(runs / "new", JUDGED, runs / "old")
    first, second = wrong(runs / "new"), wrong(runs / "old")
    assert found.errors == (first.mean(), second.mean())
    assert found.counts == (np.sum(second & ~first), np.sum(first & ~second))
    assert (found.answer, found.verdict.method, found.units) == (BETTER, SIGN, 240)
    said = "\n".join(found.describe())
    assert (
        f"{runs / 'new'}: error {100 * first.mean():.2f} % ({first.sum()} of 240 rows wrong), by the model"
        in said
    )
    assert "proven better: a new row is misclassified less often by" in said
    assert "with probability at least 97.5 % over the judged rows (exact sign test)" in said


@pytest.mark.parametrize(("rows", "method"), [(60, COUNTS), (240, BETTING)])
def test_with_a_margin_the_difference_is_bounded(runs: Path, rows: int, method: str) -> None:
    judged = JUDGED.slice(60 if rows == 60 else 0, rows)
    found = compare(runs / "new", judged, runs / "old", question=Question(no_worse=0.01))
    assert (found.answer, found.verdict.method) == (NOT_WORSE, method)
    assert found.verdict.low <= found.errors[0] - found.errors[1] <= found.verdict.high <= 0.01
    assert "misclassified at most 1 percentage point more often" in found.state()
    forget(runs)
    worse = compare(runs / "old", judged, runs / "new", question=Question(no_worse=0.01))
    assert worse.answer == WORSE
    assert "misclassified more than 1 percentage point more often" in worse.state()
    assert "the difference of the errors is between " in worse.describe()[2]


def test_groups_are_units(runs: Path) -> None:
    found = compare(runs / "grouped", JUDGED, predictions="physician", question=Question(group="patient"))
    assert (found.units, found.verdict.method) == (80, BETTING)
    shares = found.run.wrong.reshape(80, 3).mean(axis=1)
    assert found.errors[0] == pytest.approx(shares.mean())
    assert "mean over 80 groups" in found.describe()[0]
    assert "the rows of a new group are on average misclassified" in found.state()
    assert found.to_json()["groups"] == 80


def test_what_is_not_yet_proven_says_how_many_rows_it_would_take(runs: Path) -> None:
    judged = JUDGED.slice(0, 60)
    same = compare(runs / "new", judged, runs / "old").run.predicted
    forget(runs)
    other = np.where(np.arange(60) % 15 == 0, np.where(same == "ill", "well", "ill"), same)  # four others
    judged = judged.append_column("same", pa.array(same)).append_column("fewer", pa.array(other))
    found = compare(runs / "new", judged, predictions="fewer")
    assert (found.answer, sum(found.counts)) == (OPEN, 4)
    assert found.expected is not None
    assert (
        f"about {found.expected:,} new rows, none of these but like them, are expected to prove it"
        in found.state()
    )
    forget(runs)
    never = compare(runs / "new", judged, predictions="same")
    assert never.expected is None
    assert "as measured, no number of rows up to 100,000 is expected to prove it" in never.state()


def test_members_are_drawn_by_the_seed_of_the_study_so_that_an_answer_repeats(runs: Path) -> None:
    first, second = (compare(runs / "drawn", JUDGED, runs / "old") for _ in range(2))
    assert np.array_equal(first.run.predicted, second.run.predicted)
    assert "drawn independently for each row" in first.run.by
    assert second.counted.repeated


# Cautions


def test_rows_that_cannot_be_used_are_left_out_and_counted(runs: Path) -> None:
    a, target = JUDGED["a"].to_pylist(), JUDGED["y"].to_pylist()
    a[0], target[1], target[2] = None, None, ""
    judged = JUDGED.set_column(0, "a", pa.array(a)).set_column(3, "y", pa.array(target))
    found = compare(runs / "new", judged, runs / "old")
    assert found.units == 237
    assert "2 rows without a label left out" in found.cautions
    assert any(line.startswith("1 row that cannot be classified left out: ") for line in found.cautions)


def test_rows_that_a_run_has_learned_from_do_not_count_whatever_their_label(runs: Path) -> None:
    alone = compare(runs / "drawn", JUDGED, predictions="physician")
    forget(runs)
    flipped = pc.if_else(pc.equal(LEARNED["y"], "ill"), "well", "ill")
    learned = LEARNED.set_column(LEARNED.column_names.index("y"), "y", flipped).slice(0, 20)
    judged = pa.concat_tables([learned, JUDGED])
    found = compare(runs / "drawn", judged, predictions="physician")
    assert (found.errors[1], found.units, found.left_out) == (alone.errors[1], 240, 20)
    assert "20 rows of 260 left out, whose features a run has learned from" in found.cautions
    assert "a new row whose features were not learned from is misclassified" in found.state()
    assert "not learned from" not in alone.state()


def test_more_than_a_tenth_of_learning_rows_is_refused(runs: Path) -> None:
    for judged in (LEARNED, pa.concat_tables([JUDGED, LEARNED.slice(0, 30)])):
        with pytest.raises(InputError, match="leave the learning rows out of the table, and judge rows"):
            compare(runs / "drawn", judged, predictions="physician")
    assert not (runs / "drawn" / USES).exists()


def test_columns_in_which_other_examples_are_often_equal_are_a_caution(runs: Path) -> None:
    """Of two learned columns of one digit 3 % of the learning rows have a twin: all rows count."""
    learned, judged = (
        pa.table(
            {"a": t["a"].to_numpy().round(1), "b": t["b"].to_numpy().round(1), "physician": t["physician"]}
        )
        for t in (LEARNED, JUDGED)
    )
    run(HELD, learned.select(["a", "b"]), LEARNED["y"].to_numpy(), runs / "rough", SERIAL)
    judged = judged.append_column("y", JUDGED["y"])
    found = compare(runs / "rough", judged, predictions="physician")
    assert (found.units, found.left_out) == (240, 0)
    assert any("as rows of these columns often do" in caution for caution in found.cautions)


def test_equal_rows_are_a_caution(runs: Path) -> None:
    judged = pa.concat_tables([JUDGED, JUDGED.slice(0, 5)])
    said = "\n".join(compare(runs / "drawn", judged, predictions="physician").cautions)
    assert "caution: 10 judged rows equal another one" in said


# Uses


TEN = Question(uses=10)


def test_each_use_is_counted_under_the_digest_of_the_rows(runs: Path) -> None:
    numbers = [
        compare(runs / "new", JUDGED, runs / "old", question=TEN).counted,
        compare(runs / "new", JUDGED, predictions="physician", question=TEN).counted,
        compare(runs / "new", JUDGED, runs / "old", question=replace(TEN, no_worse=0.01)).counted,
        compare(runs / "new", draw(200, 2), runs / "old", question=TEN).counted,
        compare(runs / "new", JUDGED, runs / "old", question=TEN).counted,
    ]
    assert [counted.number for counted in numbers] == [1, 2, 3, 1, 1]
    assert [counted.repeated for counted in numbers] == [False] * 4 + [True]
    assert "how many rows were added, was not chosen by what earlier uses showed" in numbers[2].describe()[1]
    assert "the same comparison as before" in numbers[4].describe()[0]
    assert len(read_uses(RunFolder(runs / "new").files)) == 4


def test_another_order_another_column_and_another_run_leave_rows_the_same(runs: Path) -> None:
    compare(runs / "new", JUDGED, runs / "old", question=TEN)
    shuffled = JUDGED.take(np.random.default_rng(0).permutation(240))
    assert compare(runs / "new", shuffled, predictions="physician", question=TEN).counted.number == 2
    more = JUDGED.append_column("nurse", JUDGED["physician"])
    other = replace(TEN, no_worse=0.5)
    assert compare(runs / "new", more, runs / "old", question=other).counted.number == 3
    assert compare(runs / "old", JUDGED, runs / "drawn", question=TEN).counted.number == 3  # that old knows


@pytest.mark.parametrize("share", ["grown", "one row", "whole numbers", "relabelled"])
def test_a_second_use_of_some_of_the_rows_takes_a_number_of_uses_that_was_named(
    runs: Path, share: str
) -> None:
    first = draw(200, 3)
    first = first.set_column(2, "noise", pc.cast(pc.multiply(first["noise"], 1e4), pa.int64(), safe=False))
    second = {
        "grown": pa.concat_tables([first, first.set_column(0, "a", pa.array(np.arange(200) + 0.5))]),
        "one row": pa.concat_tables([JUDGED.slice(0, 50).cast(first.schema, safe=False), first.slice(7, 1)]),
        "whole numbers": first.set_column(2, "noise", first["noise"].cast(pa.float64())).slice(50),
        "relabelled": first.set_column(3, "y", first["physician"]),
    }[share]
    compare(runs / "new", first, runs / "old")
    with pytest.raises(InputError, match=r"some of these rows were judged on .* that took all of delta"):
        compare(runs / "new", second, runs / "old", question=Question(uses=4))
    with pytest.raises(InputError, match="1 use of these rows, or of rows linked with them, counted"):
        compare(runs / "new", second, runs / "old")


def test_uses_that_are_linked_by_shared_rows_never_sum_to_more_than_delta(runs: Path) -> None:
    """Ten looks, at random parts of one table: of those that are accepted each link has at most delta."""
    rng, question, accepted, table = np.random.default_rng(4), Question(uses=2), [], draw(300, 5)
    for _ in range(10):
        begin, size = int(rng.integers(240)), int(rng.integers(20, 60))
        with suppress(InputError):
            compare(runs / "new", table.slice(begin, size), predictions="physician", question=question)
            accepted.append(set(range(begin, begin + size)))
    linked = [set(rows) for rows in accepted]
    for rows in accepted:  # join what overlaps
        joined = set.union(*(one for one in linked if one & rows))
        linked = [one for one in linked if not one & rows] + [joined]
    assert 2 < len(accepted) < 10
    assert all(sum(rows <= one for rows in accepted) <= 2 for one in linked)


def test_delta_is_shared_among_uses_and_refused_beyond(runs: Path) -> None:
    shared = Question(uses=2)
    first = compare(runs / "new", JUDGED, runs / "old", question=shared)
    assert "with probability at least 98.75 %" in first.state()
    assert first.counted.describe()[0].startswith("use 1 of 2 of these rows")
    assert compare(runs / "new", JUDGED, runs / "scored", question=shared).counted.number == 2
    with pytest.raises(InputError, match=r"uses=2: 2 uses of these rows, .* and no share of delta is left"):
        compare(runs / "new", JUDGED, predictions="physician", question=shared)
    assert compare(runs / "new", JUDGED, runs / "old", question=shared).counted.repeated
    for other in (Question(), Question(uses=3), Question(uses=2, delta=0.1)):
        with pytest.raises(
            InputError, match=r"with delta=0\.05 shared among 2 uses: give --uses 2 and --delta"
        ):
            compare(runs / "new", JUDGED, predictions="physician", question=other)


def test_a_ledger_counts_instead_of_the_folders(runs: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    compare(runs / "new", JUDGED, runs / "old", question=TEN)
    counted = compare(runs / "new", JUDGED, predictions="physician", question=TEN, ledger=ledger).counted
    assert (counted.number, counted.places) == (2, (str(ledger),))
    assert len(read_uses(RunFolder(runs / "new").files)) == 1
    third = compare(runs / "new", JUDGED, runs / "scored", question=TEN, ledger=ledger)
    assert third.counted.number == 3
    assert not (tmp_path / ".lock").exists()


def refuse_to_write(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def refuse(files: LocalFiles) -> None:
        if files.root.name in names:
            raise InputError(f"cannot write to {str(files)!r}: Read-only file system")

    monkeypatch.setattr(LocalFiles, "check_writable", refuse)


def test_a_folder_that_cannot_be_written_is_compared_and_said(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_write(monkeypatch, "old")
    found = compare(runs / "new", JUDGED, runs / "old")
    assert found.counted.places == (str(runs / "new" / USES),)
    said = f"not counted in {runs / 'old'}, which cannot be written: name a file with --ledger"
    assert said in found.counted.describe()[0]
    refuse_to_write(monkeypatch, "new", "old")
    fresh, shared = draw(200, 2), Question(uses=3)
    alone = compare(runs / "new", fresh, runs / "old")
    assert alone.counted.places == ()
    with pytest.raises(InputError, match=r"uses=3: uses cannot be counted in .*new or .*old, which cannot"):
        compare(runs / "new", fresh, runs / "old", question=shared)
    ledger = tmp_path / "l.json"
    assert compare(runs / "new", fresh, runs / "old", question=shared, ledger=ledger).counted.places


def test_a_run_with_uses_is_as_it_was(runs: Path) -> None:
    before = RunFolder(runs / "new").manifest()
    compare(runs / "new", JUDGED, runs / "old")
    assert RunFolder(runs / "new").manifest() == before
    assert verify(runs / "new").ok
    assert load_run(runs / "new").run_id == load_run(runs / "new").run_id


USE = {
    "tables": ["0" * 64],
    "rows": "2" * 32,
    "learned": "",
    "answer": "1" * 64,
    "compared": "a, b",
    "shares": 1,
    "delta": 0.05,
    "date": "2026-11-25T13:00:00+00:00",
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tables": ["0" * 63]}, "should match pattern"),
        ({"answer": "G" * 64}, "answer: String should match"),
        ({"compared": "\x1b[2J"}, "compared: String should match"),
        ({"shares": 0}, "greater than or equal to 1"),
        ({"delta": 1.5}, "delta: Input should be less than 1"),
        ({"learned": "2" * 31}, "learned: String should match"),
        ({"date": "2026-11-25"}, "date: "),
        ({"key": 1}, "key"),
    ],
)
def test_a_damaged_file_of_uses_is_refused_and_kept(runs: Path, change: dict[str, Any], reason: str) -> None:
    file = runs / "new" / USES
    file.write_text(json.dumps(USE | change))
    before = file.read_bytes()
    with pytest.raises(StoreError, match=reason):
        compare(runs / "new", JUDGED, runs / "old")
    assert file.read_bytes() == before
    assert not (runs / "new" / ".lock").exists()


def test_too_many_uses_and_another_file_are_refused(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "new" / USES).write_text(json.dumps(USE))
    monkeypatch.setattr("ckcv_ray.storage.uses.MAX_USES", 1)
    with pytest.raises(InputError, match="has 1 uses, the maximum: begin another file with --ledger"):
        compare(runs / "new", JUDGED, runs / "old")
    other = tmp_path / "mine.json"
    other.write_text('{"mine": 1}')
    with pytest.raises(StoreError, match=r"mine\.json is damaged"):
        compare(runs / "new", JUDGED, runs / "old", ledger=other)
    assert other.read_text() == '{"mine": 1}'


# Refusals


def test_what_does_not_suit_is_refused_in_a_sentence(runs: Path, tmp_path: Path) -> None:
    new, old = runs / "new", runs / "old"
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "either the folder of another run, or predictions=COLUMN"),
        ({"reference": old, "predictions": "physician"}, "either the folder of another run"),
        ({"reference": new}, "is both runs"),
        ({"reference": runs / "numbers"}, "predicts numbers: what is compared are classes"),
        ({"reference": runs / "other_target"}, "compare runs that predict the same column"),
        ({"reference": runs / "words"}, "words'.*holds 'ill'.*the labels are 'no' and 'yes'"),
        ({"reference": runs / "grouped"}, "made with groups .*say which of the judged rows belong together"),
        ({"predictions": "nobody"}, "there is no column 'nobody' with predictions"),
        ({"predictions": "y"}, "is the column of the true labels"),
        ({"predictions": "a"}, "the labels are 'ill' and 'well'"),
        ({"reference": old, "question": Question(group="ward")}, "there is no column 'ward' for the groups"),
        ({"reference": old, "ledger": old / "ledger.json"}, "is in a run folder"),
        ({"reference": old, "ledger": tmp_path / "none" / "ledger.json"}, "there is no folder"),
    ]
    unlabelled = JUDGED.set_column(3, "y", pa.array([None] * 240, pa.string()))
    gaps = JUDGED.append_column("gaps", pa.array(["ill"] * 239 + [None]))
    cases += [
        ({"columns": JUDGED.drop_columns("y"), "reference": old}, "no column 'y' with the labels"),
        ({"columns": JUDGED.drop_columns("noise"), "reference": old}, "old'.*'noise'"),
        ({"columns": JUDGED.slice(0, 0), "reference": old}, "no row to compare on: the table is empty"),
        ({"columns": unlabelled, "reference": old}, "no row .*: 240 rows without a label left out"),
        ({"columns": gaps, "predictions": "gaps"}, "no prediction in 1 of 240 rows: fill them"),
    ]
    for options, said in cases:
        with pytest.raises(InputError, match=said):
            compare(**{"folder": new, "columns": JUDGED} | options)
    assert not (new / USES).exists()
    with pytest.raises(StoreError, match="holds no run"):
        compare(runs / "nothing", JUDGED, old)

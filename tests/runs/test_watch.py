"""Watched runs: rows join a stream, each once, and the stream says whether what is certified still holds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import Command, blobs, snapshot, unwrap
from finished import KINDS, SERIAL, Finished
from forgery import reseal
from pyarrow import csv

from ckcv_ray import InputError, Job, StoreError, Study, Task, load_run, verify, watch
from ckcv_ray.core.bounds.betting import limit_at_all_times, make_prior
from ckcv_ray.runs.later import (
    ALARM,
    HOLDS,
    UNCERTIFIED,
    UNKNOWN,
    Watched,
    _judge_losses,
    _list_watched,
    find_alarm,
)
from ckcv_ray.runs.result import find_error_claim, find_verdict
from ckcv_ray.runs.run import run_job
from ckcv_ray.storage import pieces
from ckcv_ray.storage.pieces import STREAM
from ckcv_ray.tables.roles import Roles

N = 160
TASK = blobs(N, shift=3.0)
GROUPED = Task.of(TASK.X, TASK.labelled(TASK.y), groups=np.arange(N) // 2)
BEDS = dict(zip(TASK.features, TASK.X.T, strict=True)) | {
    "ward": np.arange(N) // 8,
    "bed": np.arange(N) // 2 % 4,
}
BEDS |= {TASK.target.name: TASK.labelled(TASK.y)}
SMALL = Study.paper(C=(1.0,), gamma=(0.1,), k=(3,), n_splits=3)
HELD = SMALL.replace(certify="holdout", claim="refit,recall")
STUDIES = {
    "live": (HELD, TASK),
    "live members": (SMALL, TASK),
    "live groups": (HELD.replace(claim="refit"), GROUPED),
    "live beds": (
        HELD.replace(claim="refit"),
        Task.from_table(pa.table(BEDS), Roles(TASK.target.name, group="ward,bed")),
    ),
    "hopeless": (SMALL, blobs(8, shift=0.0)),
}
KINDS.update(STUDIES)
LABELS = TASK.classes
Runs = Callable[..., Path]


@pytest.fixture
def runs(finished: Finished, tmp_path: Path) -> Runs:
    """Copies of finished runs by name."""
    return lambda name="live": finished(name, to=tmp_path / name)


def rows(n: int, wrong: float, first: int = 0, seed: int = 0, **columns: Any) -> pa.Table:
    """Live rows with predictions, a share of which is wrong; ``columns`` are more columns."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    answer = np.where(rng.random(n) < wrong, 1 - truth, truth)
    labels = {"prediction": np.array(LABELS)[answer], TASK.target.name: np.array(LABELS)[truth]}
    return pa.table({"id": [f"p{first + i}" for i in range(n)], **labels, **columns})


def features(n: int) -> dict[str, Any]:
    task = blobs(n, seed=5, shift=3.0)
    return dict(zip(TASK.features, task.X.T, strict=True)) | {TASK.target.name: task.labelled(task.y)}


def test_a_quiet_stream_confirms_the_certificate(runs: Runs) -> None:
    run = runs()
    live, (first, *recalls) = rows(600, 0.01), load_run(run).certificate.claims
    found, truth = watch(run, live), live[TASK.target.name].to_numpy()
    error, *of_class = found.findings
    assert (found.rows, found.added, found.alarm) == (600, 600, False)
    assert [finding.state for finding in found.findings] == [HOLDS] * 3
    assert [finding.units for finding in of_class] == [np.sum(truth == label) for label in LABELS]
    assert [finding.watched.bound for finding in of_class] == [claim.bound for claim in recalls]
    assert (error.units, error.errors) == (600, sum(finding.errors for finding in of_class))
    assert sum(finding.watched.delta for finding in found.findings) == pytest.approx(found.delta)
    prior = make_prior(first.errors / first.rows, first.rows)
    assert error.limits == limit_at_all_times(error.errors, 600, prior, found.delta / 2)
    assert error.watched.bound == first.bound
    json.dumps(found.to_json(), allow_nan=False)


def test_a_shifted_stream_raises_an_alarm_once_and_for_all(runs: Runs) -> None:
    run = runs()
    assert not watch(run, rows(100, 0.01)).alarm
    found = watch(run, rows(300, min(0.9, 4 * load_run(run).proven), first=100, seed=1))
    assert (found.alarm, found.findings[0].state, found.findings[0].alarm_batch) == (True, ALARM, 2)
    again = watch(run, rows(5000, 0.0, first=400, seed=2))
    assert again.findings[0].alarm_batch == 2  # whatever comes later


@pytest.mark.parametrize("name", ["live", "live groups"])
def test_a_batch_that_is_sorted_says_what_it_says_in_any_order(runs: Runs, tmp_path: Path, name: str) -> None:
    run, of = runs(name), GROUPED.units.name or "group"
    batches = [rows(60, 0.1, first=100), rows(90, 0.4, first=200, seed=1)]
    batches = [batch.append_column(of, pc.utf8_slice_codeunits(batch["id"], 0, 3)) for batch in batches]
    orders = {"drawn": [("id", "ascending")], "labels": [(TASK.target.name, "ascending")]}
    orders |= {"predictions": [("prediction", "descending"), (TASK.target.name, "ascending")]}
    found = {}
    for order, keys in orders.items():
        for batch in batches:
            found[order] = watch(run, batch.sort_by(keys), stream=tmp_path / order).findings
    assert found["labels"] == found["drawn"] == found["predictions"]


def test_a_decision_is_foreseen_unless_the_bound_is_at_the_rate_so_far() -> None:
    prior = make_prior(0.05, 100)
    for wrong, right, bound, unit, ends in (
        (0, 20, 0.1, "row", "at the rate so far, a decision takes about {} more rows"),
        (2, 38, prior.update(2, 40), "group", "at the rate so far, no decision is in sight"),
    ):
        losses = np.repeat([0.0, 1.0], [right, wrong])
        found = _judge_losses(Watched(None, bound, prior, 0.05), losses, 10 * np.arange(len(losses)))
        assert found.describe(unit)[1].endswith(ends.format(found.more))
        assert (found.more is None) == (wrong > 0)
    often = np.tile([0.0, 0, 1, 0, 0], 6)  # for whose rate more labels bring an alarm
    worse = _judge_losses(Watched(None, 0.1, make_prior(0.2, 50), 0.05), often, np.arange(30))
    assert (worse.state, worse.more is None) == (UNKNOWN, False)


def test_without_labels_nothing_is_measured_and_nothing_is_written(runs: Runs) -> None:
    run = runs()
    before = snapshot(run)
    found = watch(run)
    assert snapshot(run) == before
    assert (found.rows, found.head, found.findings[0].rate) == (0, "", None)
    assert "error: no label yet" in found.summary()
    assert found.to_json()["head"] is None


@pytest.mark.parametrize("by", ["auto", "vote"])
def test_what_is_watched_is_the_claim_of_the_rule(runs: Runs, by: str) -> None:
    run = runs("live members")
    result = load_run(run)
    rule = result.rule(by)
    error, *of_class = _list_watched(result, rule, 0.05)
    assert error.bound == find_error_claim(result.claims, rule).risk
    assert 10 < error.prior.a + error.prior.b - 2 < N  # rows of one estimate set, not of all of them
    assert all(quantity.bound is None for quantity in of_class)
    found = watch(run, rows(30, 0.1), by=by)
    assert {finding.state for finding in found.findings[1:]} == {UNCERTIFIED}
    assert rule.classifier() == found.by


def test_a_rule_without_a_claim_is_refused(runs: Runs) -> None:
    for name, by in (("live members", "member:0"), ("hopeless", "auto")):
        with pytest.raises(InputError, match=r"no error below 100 % is certified, .* run the study"):
            watch(runs(name), by=by)


def test_rows_are_predicted_by_the_rule_and_other_predictions_are_a_caution(runs: Runs) -> None:
    run, table = runs(), features(40)
    answers = load_run(run).predict(np.column_stack([table[name] for name in TASK.features]), by="refit")
    found = watch(run, pa.table({"id": [f"n{i}" for i in range(40)], **table}))
    by = "the model fitted on the learning rows"
    assert f"there is no column 'prediction': predicted here, by {by}" in found.notes[0]
    assert found.findings[0].errors == np.sum(answers != table[TASK.target.name])
    swapped = np.where(answers == LABELS[0], LABELS[1], LABELS[0])
    three = np.where(np.arange(40) < 3, swapped, answers)
    other = pa.table({"id": [f"q{i}" for i in range(40)], "prediction": three, **table})
    assert watch(run, other).notes == (
        f"CAUTION: 3 of 40 predictions are not those of {by}: what is certified is about its own",
    )
    assert watch(runs("live members"), other).notes == ()  # are drawn: nothing can be compared


def test_rows_that_the_run_knows_and_rows_that_are_equal_are_a_caution(runs: Runs) -> None:
    known = {"id": list("abcd")} | {name: np.repeat(TASK.X[:2, i], 2) for i, name in enumerate(TASK.features)}
    found = watch(runs(), pa.table(known | {TASK.target.name: np.repeat(TASK.labelled(TASK.y)[:2], 2)}))
    assert "CAUTION: 4 of 4 rows equal a row that the run has learned from or was judged on" in found.notes[1]
    assert "CAUTION: 4 of 4 rows equal another row of the table" in found.notes[2]


def test_rows_whose_label_is_not_known_wait_for_it(runs: Runs) -> None:
    run, table = runs(), rows(4, 0.0)
    labels = [None, *table[TASK.target.name].to_pylist()[1:]]
    found = watch(run, table.set_column(2, TASK.target.name, pa.array(labels)))
    assert found.rows == 3
    assert found.notes == ("1 row without a label: not counted; append them when they have one",)
    assert watch(run, table.slice(0, 1)).rows == 4


def with_cells(column: str, *cells: object) -> pa.Table:
    """Rows with other cells in a column."""
    table = rows(len(cells), 0.0)
    return table.set_column(table.column_names.index(column), column, pa.array(cells))


REFUSED = {
    "twice": (pa.concat_tables([rows(3, 0.0), rows(1, 0.0)]), "the row 'p0' appears twice: .* counts once"),
    "no name": (with_cells("id", "a", None), "column 'id' has no name .* row 2"),
    "no prediction": (
        with_cells("prediction", LABELS[0], None),
        "column 'prediction' has no prediction in 1 of 2 labelled rows",
    ),
    "unknown label": (
        with_cells(TASK.target.name, "ill"),
        "for a new class make a new run",
    ),
    "no features": (
        rows(1, 0.0).drop_columns("prediction"),
        r"no column 'prediction' with predictions \(--prediction\), and none can be made here: .*x0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_cannot_be_counted_are_refused_and_nothing_is_written(runs: Runs, name: str) -> None:
    run, (table, words) = runs(), REFUSED[name]
    before = snapshot(run)
    with pytest.raises(InputError, match=words):
        watch(run, table)
    assert snapshot(run) == before


def test_a_row_counts_once_and_what_is_watched_is_fixed_with_the_first_rows(runs: Runs) -> None:
    run = runs("live members")
    found = watch(run, rows(5, 0.0), by="vote", delta=0.01)
    with pytest.raises(InputError, match="the row 'p2' appears twice"):
        watch(run, rows(2, 0.0, first=2))
    assert (found.delta, found.by) == (0.01, "the majority vote of F*")
    assert watch(run).by == found.by
    for other in ({"by": "random"}, {"delta": 0.05}):
        with pytest.raises(InputError, match=r"has by='vote' and delta=0\.01, fixed with its first rows"):
            watch(run, **other)


def test_a_group_counts_once_by_its_share_of_wrong_rows(runs: Runs) -> None:
    run, name = runs("live groups"), GROUPED.units.name
    table = rows(6, 0.0, **{name: ["a", "b", "a", "b", "a", "c"]})
    answers = table[TASK.target.name].to_pylist()
    for i in (0, 5):
        answers[i] = LABELS[LABELS.index(answers[i]) - 1]
    found = watch(run, table.set_column(1, "prediction", pa.array(answers)))
    (error,) = found.findings
    assert (found.unit, error.units, error.watched.delta) == ("group", 3, found.delta)
    assert error.errors == pytest.approx(1 / 3 + 0 + 1)
    assert 10 < error.watched.prior.a + error.watched.prior.b - 2 < N // 2
    assert "(mean over 3 groups)" in found.summary()
    with pytest.raises(InputError, match="one group is in two of them"):
        watch(run, rows(1, 0.0, first=9, **{name: ["a"]}))
    assert verify(run).ok


def test_a_group_of_several_columns_is_their_rows_in_common(runs: Runs) -> None:
    found = watch(runs("live beds"), rows(4, 0.0, ward=list("aabb"), bed=["1", "2", "2", "2"]))
    assert found.findings[0].units == 3


def test_a_group_waits_until_all_of_its_rows_have_labels(runs: Runs) -> None:
    run, table = runs("live groups"), rows(4, 0.0, **{GROUPED.units.name: list("aabb")})
    labels = [None, *table[TASK.target.name].to_pylist()[1:]]
    found = watch(run, table.set_column(2, TASK.target.name, pa.array(labels)))
    assert (found.rows, found.findings[0].units) == (2, 1)
    assert found.notes[0].startswith("2 rows of groups with an unlabelled row: not counted")
    assert watch(run, table.slice(0, 2)).rows == 4


def test_a_watched_run_is_verified_listed_loaded_and_computed_again(runs: Runs) -> None:
    run, job = runs(), Job(*STUDIES["live"])
    watch(run, rows(20, 0.1))
    found = verify(run)
    assert found.ok
    assert any("the chain of digests of stream.jsonl: 20 rows, head" in line for line in found.recomputed)
    assert f"that {STREAM} has all rows that arrived, with their true labels" in found.trusted
    (run / "certificate.json").write_text("{}")
    run_job(job._replace(out=run), SERIAL)
    assert watch(run).rows == 20
    assert verify(run).ok


def test_a_stream_that_is_missing_or_not_listed_is_a_difference(runs: Runs) -> None:
    run = runs()
    watch(run, rows(6, 0.0))
    content = (run / STREAM).read_bytes()
    (run / STREAM).unlink()
    differs = f"{STREAM} is missing or does not match the manifest: put back the file"
    with pytest.raises(StoreError, match=differs):
        watch(run, rows(6, 0.0))
    assert verify(run).differences == [f"{STREAM} is missing"]
    (run / STREAM).write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_text())
    assert verify(run).ok
    del manifest[STREAM]
    (run / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    assert verify(run).differences == [f"{STREAM} is not in the manifest"]
    watch(run, rows(1, 0.0, first=9))
    assert verify(run).ok


def test_the_stream_of_another_run_or_certificate_is_refused(runs: Runs, tmp_path: Path) -> None:
    run, other = runs(), runs("live members")
    watch(other, rows(3, 0.0), stream=tmp_path / "live.jsonl")
    with pytest.raises(StoreError, match="is the stream of run"):
        watch(run, stream=tmp_path / "live.jsonl")
    watch(run, rows(3, 0.0))
    (other / STREAM).write_bytes((run / STREAM).read_bytes())
    assert any(f"{STREAM} is the stream of run" in line for line in verify(other).differences)


Change = Callable[[Path], object]


def put(line: int, **values: Any) -> Change:
    """Change fields of an object, then reseal all lines and relist the file, as its author could."""

    def change(run: Path) -> None:
        objects = [json.loads(text) for text in (run / STREAM).read_text().splitlines()]
        objects[line] |= values
        content, head = b"", ""
        for each in objects:
            each.pop("sha256", None)
            sealed, head = pieces._seal(each, head)
            content += sealed
        (run / STREAM).write_bytes(content)
        reseal(run)

    return change


def edit(change: Callable[[list[str]], list[str]], end: str = "\n") -> Change:
    """Change the lines without resealing them."""

    def write(run: Path) -> None:
        lines = (run / STREAM).read_text().splitlines()
        (run / STREAM).write_text("\n".join(change(lines)) + end)

    return write


DAMAGED = {
    "another name": (
        edit(lambda lines: [text.replace('"p0"', '"q0"') for text in lines]),
        "line 2 does not continue the chain of digests",
    ),
    "a row removed": (edit(lambda lines: [*lines[:3], *lines[4:]]), "line 4 does not continue"),
    "half a line": (edit(lambda lines: [*lines, '{"id": "p9'], ""), "its last line is not complete"),
    "delta": (put(0, delta=1.5), "delta: Input should be less than 1"),
    "twice": (put(2, id="p0"), "the row 'p0' appears twice"),
    "order": (put(1, batch=3), "its batches are out of order"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_stream_that_was_edited_or_could_not_have_been_written_is_refused(runs: Runs, name: str) -> None:
    run, (change, words) = runs(), DAMAGED[name]
    watch(run, rows(6, 0.0))
    change(run)
    with pytest.raises(StoreError, match=words):
        watch(run, rows(1, 0.0, first=9))
    assert words in " ".join(verify(run).differences)
    assert load_run(run).proven < 1  # which no row of the stream has a part in


def test_a_label_or_a_group_that_no_row_of_the_run_has_is_damage(runs: Runs) -> None:
    for name, change, words in (
        ("live", put(2, label="ill"), "is damaged: 'ill' is no class of the run"),
        ("live members", put(2, unit="a"), "is damaged: its rows have groups, or none, and those of the run"),
        ("live groups", put(4, batch=1), "one group is in two of them"),
    ):
        run, groups = runs(name), {GROUPED.units.name: list("aabb")} if "groups" in name else {}
        watch(run, rows(4, 0.0, **groups))
        change(run)
        with pytest.raises(StoreError, match=words):
            watch(run)


def test_a_stream_of_a_certificate_that_has_grown_is_refused_and_noted(runs: Runs) -> None:
    run = runs()
    watch(run, rows(3, 0.0))
    put(0, certificate="0" * 64)(run)
    with pytest.raises(StoreError, match="watches what was certified before the run grew"):
        watch(run)
    found = verify(run)
    assert found.ok
    assert f"{STREAM}, which watches another certificate than this one" in found.trusted


def test_a_file_that_is_no_stream_is_never_written(runs: Runs, tmp_path: Path) -> None:
    file, run = tmp_path / "notes.txt", runs()
    for content in ("not JSON\n", "{}\n"):
        file.write_text(content)
        with pytest.raises(StoreError, match=r"notes.txt is damaged"):
            watch(run, rows(3, 0.0), stream=file)
        assert file.read_text() == content


def test_a_stream_may_be_elsewhere_and_the_run_folder_stays_as_it_is(runs: Runs, tmp_path: Path) -> None:
    run = runs()
    before = snapshot(run)
    watch(run, rows(3, 0.0), stream=tmp_path / "live.jsonl")
    assert watch(run, rows(3, 0.0, first=3), stream=tmp_path / "live.jsonl").rows == 6
    assert snapshot(run) == before
    files = sorted(file.name for file in tmp_path.iterdir() if file.is_file())
    assert files == ["live-000001.jsonl", "live.jsonl"]


@pytest.fixture
def tell(ckcv: Command, tmp_path: Path) -> Callable[..., list[str]]:
    """What status, its JSON, list, its JSON, predict and a report say of a run, which they leave as it is."""
    csv.write_csv(pa.table(features(8)), tmp_path / "new.csv")

    def say(run: Path) -> list[str]:
        before, out = snapshot(run), tmp_path / "page.md"
        commands = [("status", run), ("status", run, "--json"), ("list", run), ("list", run, "--json")]
        commands += [("predict", run, tmp_path / "new.csv", *more) for more in ((), ("--full",))]
        done = [ckcv(*words) for words in [*commands, ("report", run, "--out", out)]]
        assert [code for code, *_ in done] == [0] * len(done)
        assert snapshot(run) == before
        shown = [f"{shown}{messages}" for _, shown, messages in done[:-1]]
        return [*map(unwrap, shown), out.read_text().replace("\\", "")]

    return say


Tell = Callable[[Path], list[str]]


def test_an_alarm_is_told_wherever_what_is_proven_is(runs: Runs, tell: Tell) -> None:
    run = runs()
    watch(run, rows(100, 0.01))
    assert not any("ckcv watch has" in text for text in tell(run))
    held = load_run(run)
    assert find_alarm(held) == ""
    watch(run, rows(300, 0.5, first=100))
    result, errors = load_run(run), [f"error on class {label!r} (batch 2)" for label in LABELS]
    alarm = (
        "ckcv watch has raised an ALARM: the model fitted on the learning rows is wrong more often than "
        f"certified, on live rows: {', '.join(['error (batch 2)', *errors])}."
    )
    assert (find_alarm(result), result.to_json()["cautions"][0]) == (alarm, alarm)
    assert find_alarm(held) == alarm  # which was raised since it was loaded
    assert (find_verdict(result), result.to_json()["may_be_quoted"]) == ("with caution", True)
    status, values, listed, entries, predicted, by_full, _ = told = tell(run)
    assert all(alarm in text for text in told)
    assert status.startswith("Quote with CAUTION: ")
    assert json.loads(values)["cautions"][0] == alarm
    assert f"{run}: {alarm}" in listed
    (entry,) = json.loads(entries)["runs"]
    assert (entry["state"], entry["verdict"], entry["problem"]) == ("finished", "with caution", alarm)
    assert f"Quote with CAUTION: in the long run at most {result.claims[0].limit}" in predicted
    assert f"CAUTION: {alarm}" in predicted
    assert "Quote with CAUTION" not in by_full  # of which nothing is proven
    assert alarm in result._repr_html_().replace("&#39;", "'")


def test_an_alarm_of_a_rule_names_it_and_counts_for_groups_as_well(runs: Runs, tmp_path: Path) -> None:
    run = runs("live members")
    assert watch(run, rows(400, 0.9), by="vote").alarm
    assert "an ALARM: the majority vote of F* is wrong" in unwrap(load_run(run).summary())
    run, of = runs("live groups"), GROUPED.units.name or "group"
    groups = {of: [str(i // 2) for i in range(400)]}
    assert watch(run, rows(400, 0.9, **groups), stream=tmp_path / "live.jsonl").alarm
    assert find_alarm(load_run(run)) == ""  # it is elsewhere
    watch(run, rows(400, 0.9, **groups))
    assert find_alarm(load_run(run)).endswith("on live rows: error (batch 1).")


def test_a_run_that_is_repaired_tells_the_alarm_of_its_stream(runs: Runs, monkeypatch: Any) -> None:
    run, job = runs(), Job(*STUDIES["live"])
    watch(run, rows(400, 0.5))
    alarm = find_alarm(load_run(run))
    (run / "certificate.json").write_text("{}")
    found = [run_job(job._replace(out=run), SERIAL) for _ in range(2)]  # repaired, then finished
    assert [find_alarm(result) for result in found] == [alarm] * 2
    assert find_alarm(run_job(job, SERIAL)) == ""
    monkeypatch.chdir(run.parent)
    result = load_run(run.name)
    monkeypatch.chdir("/")  # where it is not
    assert find_alarm(result) == ""


@pytest.mark.parametrize("name", [*DAMAGED, "removed", "no label", "no rule", "no claim", "smallest delta"])
def test_a_damaged_stream_is_a_caution_wherever_an_alarm_would_be(runs: Runs, tell: Tell, name: str) -> None:
    changes: dict[str, tuple[Change, str]] = {
        "removed": (lambda run: (run / STREAM).unlink(), "does not match the manifest: put back the file"),
        "no label": (put(2, label="ill"), "'ill' is no class of the run"),
        "no rule": (put(0, by="\n<b>magic"), "by='\\n<b>magic'"),
        "no claim": (put(0, by="member:0"), "no error below 100 % is certified"),
        "smallest delta": (put(0, delta=5e-324), "delta"),
    }
    run, (change, words) = runs(), (DAMAGED | changes)[name]
    watch(run, rows(400, 0.5))
    change(run)
    with pytest.raises((StoreError, InputError), match=None if name in changes else words):
        watch(run)
    assert words in find_alarm(load_run(run))
    assert find_alarm(load_run(run)).startswith("What ckcv watch has found is not known: ")
    assert all("What ckcv watch has found is not known: " in text for text in tell(run))

"""One finished folder of each kind, one table of edits: what a verification says of each.

A careful forger reseals the manifest, so every edit here does. ``SAME`` is verified, ``DIFFERS`` is not, and
``ELSEWHERE`` says that other versions or another processor may be why.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from alike import breaking
from conftest import blobs
from finished import PLAIN, RUNS, SMALL, TREE, Finished, N
from forgery import (
    ACCOUNT,
    CANDIDATES,
    CERTIFICATE,
    MODELS,
    SERIAL,
    column,
    fit_on,
    forge,
    of,
    position,
    put,
    reseal,
    rewrite,
    rewrite_json,
    rewrite_run,
    stored,
)
from moved import last_place, moved

from ckcv_ray import Job, Procedure, Progress, TestRows
from ckcv_ray.core.measures import OwnScore
from ckcv_ray.core.selection import Leader
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.records.judged import HELD_OUT, JUDGED_ROWS
from ckcv_ray.records.record import Failure, Records
from ckcv_ray.runs.load import load_scores, read_result
from ckcv_ray.runs.run import assess, run_job
from ckcv_ray.runs.verify import Verification, verify
from ckcv_ray.storage.folder import SCORES, SETTINGS, SPLITS, SUMMARY, RunFolder, make_results
from ckcv_ray.storage.models import FULL, make_model_table
from ckcv_ray.tables.read import from_matrix

SAME, DIFFERS, ELSEWHERE = "same", "differs", "elsewhere"
ANOTHER = "another processor"
HONEST = [*(kind for kind in RUNS if kind not in ("trees", "held auc")), "folds", "nested", "kept", "given"]
Edit = Callable[[Path], object]


def judge(found: Verification) -> str:
    return SAME if found.ok else DIFFERS if found.differences else ELSEWHERE


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_folder_is_verified_and_run_again(kind: str, finished: Finished) -> None:
    found, moments = verify(finished(kind)), list[Progress]()
    assert (found.differences, found.unverified) == ([], [])
    assert found.verdict.startswith("nothing contradicts the files; taken on trust: the results of ")
    held = "held" in kind or kind in ("patients", "prices")
    assert any("rests on that alone" in one for one in found.trusted) == held
    again = verify(finished(kind), rerun=True, execution=SERIAL, listen=moments.append)
    assert (again.differences, again.unverified) == ([], [])
    assert again.verdict == "every figure follows from the data"
    assert not any("--rerun" in sentence for sentence in again.trusted)
    assert moments[-1].computed + moments[-1].dropped == moments[-1].planned


# Edits


def cell(file: str, name: str, change: Callable[[Any], Any]) -> Edit:
    """Change the first cell of a column."""
    return lambda out: rewrite(out, file, column(name, lambda values: [change(values[0]), *values[1:]]))


def every(file: str, name: str, change: Callable[[Any], Any]) -> Edit:
    """Change every cell of a column that is not empty."""
    return lambda out: rewrite(out, file, column(name, lambda v: [x if x is None else change(x) for x in v]))


def written(file: str, **values: Any) -> Edit:
    """Change fields of a JSON file."""
    return lambda out: rewrite_json(out, file, put(**values))


def without_judged_rows(out: Path) -> None:
    """Remove the file, and what the certificate says of it."""
    (out / JUDGED_ROWS).unlink()
    rewrite_json(out, CERTIFICATE, lambda c: c["digests"].pop(JUDGED_ROWS) and c)


def copied(number: str) -> Edit:
    """Put the pickle of the second model in the place of another number."""

    def edit(out: Path) -> None:
        shutil.copy(out / "ensemble" / "model-00001.pkl", out / "ensemble" / f"model-{number}.pkl")
        reseal(out)

    return edit


def models_of(change: Callable[[Any, Models], Models], environment: str = "") -> Edit:
    """Change the models of a run, and make everything but the log agree with them."""

    def edit(out: Path) -> None:
        problem = RunFolder(out).problem()
        models = read_result(RunFolder(out), problem).models
        rewrite_run(out, models=change(problem, models), environment=environment)

    return edit


def other_scores(problem: Any, models: Models) -> Models:
    """A refit that classifies every row as before, by scores that are half as large."""

    def halve(model: Any) -> Any:
        changed = replace(model, dual_coef=(model.dual_coef[0] / 2,), offset=model.offset / 2)
        X = problem.every_row.X
        assert np.array_equal(changed.predict(X).label, model.predict(X).label)
        return changed

    return replace(models, refit=of_single(models.refit, halve))


def of_single(ensemble: Ensemble, change: Callable[[Any], Any]) -> Ensemble:
    """The ensemble of a single model, which is changed."""
    (member,) = ensemble.members
    return Ensemble((replace(member, model=change(member.model)),))


def nudge(problem: Any, models: Models) -> Models:
    """Models that differ in the last place of their numbers, as fitted on another machine."""
    refit, full = (
        of_single(ensemble, lambda model, rows=rows: moved(problem.learner, rows, model, last_place))
        for ensemble, rows in ((models.refit, problem.task), (models.full, problem.every_row))
    )
    return replace(models, refit=refit, full=full)


def seen_all(problem: Any, models: Models) -> Models:
    """The model of all rows in place of the one that is claimed."""
    (full,) = models.full.members
    return replace(models, refit=of_single(models.refit, lambda _: full.model))


def of_half(out: Path) -> None:
    """Keep a model of half of the rows in place of the one of all."""
    scores, folder = load_scores(out), RunFolder(out)
    path, step = scores.kept.positions[0].tolist()
    half = fit_on(scores.problem, Leader(0.0, step, path, 0), np.arange(0, N, 2))
    forged = of_single(scores.models.full, lambda _: half)
    folder.write_manifest(folder.execution(), {FULL: make_model_table(scores.problem, forged)})


def lucky(out: Path) -> None:
    """Another candidate than the winner: sound models of it, and a log that selects it."""
    leader = position(out)
    other = leader._replace(step=leader.step - 1 if leader.step else 1)

    def edit(records: Records) -> None:
        records["totals"][of(records, other) & ~records["estimate"]] = 0

    rewrite_run(out, edit)


def unbeaten(out: Path) -> None:
    """A log with other counts of a candidate that loses all the same."""
    leader = position(out)

    def edit(records: Records) -> None:
        records["totals"][~of(records, leader) & ~records["estimate"] & (records["split"] == 0)] += 1

    rewrite_run(out, edit)


def better(out: Path) -> None:
    def edit(records: Records) -> None:
        records["totals"][records["size"] == 0, 0] *= 0.1

    rewrite_run(out, edit)


def lost(out: Path) -> None:
    """A learner that has no score on a split is not compared: so its rivals look better."""
    keep = lambda records: records[(records["path"] > 0) | (records["split"] > 0)]  # noqa: E731
    rewrite_run(out, keep=keep, failures=[Failure(False, 0, 0, 0, 0, 1, "MemoryError: no room")])


def ulp(value: float) -> float:
    return value * (1 + 1e-12)


def other_last_places(out: Path) -> None:
    """Scores that differ a little, with a certificate of that file: as of a run on another processor."""
    every(JUDGED_ROWS, "score", ulp)(out)
    digest = RunFolder(out).sha256(JUDGED_ROWS)
    rewrite_json(out, CERTIFICATE, lambda c: c["digests"].update({JUDGED_ROWS: digest}) or c)


class Case(NamedTuple):
    """An edit of a folder, what a verification says of it, and words of its first sentences."""

    kind: str
    edit: Edit
    verdict: str
    words: str = ""
    rerun: str = ""  # what it says after a run again, if that is something else


FORGED = "fitted again, it "
CASES = {
    # cells of what is derived
    "a row left out": Case(
        "held", lambda out: rewrite(out, JUDGED_ROWS, lambda t: t.slice(1)), DIFFERS, "made again it has"
    ),
    "no judged rows": Case("held", without_judged_rows, DIFFERS, f"{JUDGED_ROWS} is missing"),
    "a better bound": Case("paper", every(CANDIDATES, "l_ms", lambda x: x / 2), DIFFERS, "l_ms."),
    "a claim": Case(
        "held",
        lambda out: rewrite_json(out, CERTIFICATE, lambda c: c["claims"][0].update(bound=0.01) or c),
        DIFFERS,
        f"{CERTIFICATE}: claims.0.bound is 0.01, made again it is",
    ),
    "a sentence": Case(
        "paper",
        lambda out: rewrite_json(
            out, CERTIFICATE, lambda c: c["statements"].__setitem__(0, "luck " * 1000) or c
        ),
        DIFFERS,
        f"{CERTIFICATE}: statements.0",
    ),
    "a digest": Case("held", written(CERTIFICATE, digests__data="0" * 64), DIFFERS, "digests.data"),
    "a figure": Case("folds", written(SUMMARY, run_id="0" * 12), DIFFERS, f"{SUMMARY}: run_id"),
    "a stray pickle": Case(
        "paper", copied("00099"), DIFFERS, "model-00099.pkl is not the pickle of any model"
    ),
    "a pickle": Case("paper", copied("00000"), DIFFERS, "model-00000.pkl is not what the models in it give"),
    # models in their file alone
    "lower counts": Case("paper", every(MODELS, "errors", lambda x: [0, 0]), DIFFERS, "its counts are not"),
    "lower losses": Case("visits", every(MODELS, "loss", lambda x: x / 2), DIFFERS, "its counts are not"),
    "another offset": Case("paper", every(MODELS, "offset", lambda x: x + 9), DIFFERS, "split 0: " + FORGED),
    # whole runs that agree with themselves
    "nothing": Case("paper", rewrite_run, SAME),
    "the model of all rows": Case("held vote", models_of(seen_all), DIFFERS, "model refit: " + FORGED),
    "the model of half of the rows": Case("kept", of_half, DIFFERS, "model full: fitted again, "),
    "scores alone": Case(
        "held", models_of(other_scores), DIFFERS, "it predicts all 60 rows alike, but its content differs"
    ),
    "no references": Case(
        "held better",
        models_of(lambda problem, models: replace(models, references=None)),
        DIFFERS,
        "there are 0 models to compare with, and",
    ),
    **{
        f"forged, {kind}": Case(kind, forge, DIFFERS, "fitted again, ")
        for kind in ("paper", "encoded", "visits", "held better", "prices")
    },
    "forged, held vote": Case(
        "held vote", forge, DIFFERS, "models fitted again, certificate.json: errors.0 is "
    ),
    **{
        f"forged elsewhere, {kind}": Case(kind, lambda out: forge(out, ANOTHER), ELSEWHERE, "fitted again, ")
        for kind in ("paper", "held", "prices")
    },
    **{
        f"one ulp away{place}": Case(
            "held", models_of(nudge, place), SAME, "7 models, fitted again: 2 not equal in every bit"
        )
        for place in ("", ANOTHER)
    },
    # the search
    "a lucky choice": Case("paper", lucky, SAME, rerun=DIFFERS),
    "counts that decide nothing": Case("trees", unbeaten, SAME, rerun=DIFFERS),
    "better scores": Case("folds", better, SAME, rerun=DIFFERS),
    "a split said to have failed": Case("folds", lost, SAME, rerun=DIFFERS),
    # what may differ
    "a score one ulp away": Case("held", other_last_places, SAME),
    "a score of a split one ulp away": Case("nested", every(SCORES, "zero_one", ulp), SAME),
    "a probability one ulp away": Case(
        "kept", every(HELD_OUT, "probability", lambda x: [ulp(y) for y in x]), SAME
    ),
    **{
        f"from elsewhere, {kind}": Case(kind, written(ACCOUNT, environment__processor=ANOTHER), SAME)
        for kind in ("paper", "folds")
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_of_an_edit(name: str, finished: Finished, tmp_path: Path) -> None:
    case = CASES[name]
    out = finished(case.kind, to=tmp_path)
    case.edit(out)
    found = verify(out)
    assert judge(found) == case.verdict, found
    assert case.words in "\n".join(found.differences + found.unverified + found.recomputed)
    assert "every figure" not in found.verdict
    assert max(map(len, found.differences), default=0) < 700
    if case.rerun:
        assert judge(verify(out, rerun=True, execution=SERIAL)) == case.rerun


CELLS: dict[tuple[str, str], dict[str, Callable[[Any], Any]]] = {
    ("held", JUDGED_ROWS): {
        **dict.fromkeys(("row", "unit", "order", "score"), lambda x: x + 1),
        **dict.fromkeys(("label", "predicted", "loss"), lambda x: 1 - x),
        "classifier": lambda x: "vote",
    },
    ("kept", HELD_OUT): {
        **dict.fromkeys(("prediction", "truth"), lambda x: 1 - x),
        "row": lambda x: (x + 1) % N,
        "learner": lambda x: "svm",
        "setting": lambda x: "C=1e9",
        "probability": lambda x: [0.4, 0.6],
    },
    ("kept", SPLITS): {"row": lambda x: (x + 1) % N},
    ("folds", SETTINGS): {"rank": lambda x: x + 1},
    ("nested", SCORES): {"zero_one": lambda x: x + 1},
}


@pytest.mark.parametrize(("kind", "file"), CELLS)
def test_every_derived_cell_is_compared(kind: str, file: str, finished: Finished, tmp_path: Path) -> None:
    out = finished(kind, to=tmp_path)
    for name, change in CELLS[kind, file].items():
        cell(file, name, change)(out)
    found = "\n".join(verify(out).differences)
    for name in CELLS[kind, file]:
        assert f"{file}: {name}.0" in found


# What is not looked at, or cannot be computed here


@pytest.mark.parametrize(
    ("kind", "done", "ok"),
    [("held", 0, False), ("held", 1, False), ("held auc", 1, True), ("paper", 1, False)],
)
def test_what_is_left_at_the_limit_is_listed(
    kind: str, done: int, ok: bool, finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that is claimed comes first: what no claim rests on may be left."""
    times = iter([0.0] * (done + 2 if done else 1))
    monkeypatch.setattr("ckcv_ray.runs.verify.monotonic", lambda: next(times, 1e9))
    found = verify(finished(kind))
    assert (found.differences, found.ok) == ([], ok)
    assert any("not looked at within 3,600 s (--limit): " in one for one in found.trusted + found.unverified)
    assert bool(found.unverified) != ok


def test_a_fit_that_fails_here_is_not_verified(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise MemoryError("no room")

    trees, held_auc = finished("trees"), finished("held auc")
    monkeypatch.setattr("ckcv_ray.learners.sklearn.paths.SplitFits.fit_alone", no_room)
    found, held = verify(trees), verify(held_auc)
    messages = "could not be fitted again here: MemoryError: no room"
    assert found.differences == []
    assert found.unverified == [f"the model of split {i} {messages}" for i in range(3)]
    assert f"the models refit and full {messages}" in held.unverified
    again = verify(trees, rerun=True, execution=SERIAL)
    assert any("the study could not be run again here" in sentence for sentence in again.unverified)


def test_what_fails_in_one_of_two_runs_is_tried_again(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a difference where it failed in the run alone."""
    out, whole = tmp_path / "run", finished("paper")
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 1))
        run_job(Job(SMALL, blobs(60, seed=2), out), SERIAL)
        assert verify(out, rerun=True, execution=SERIAL).ok
        assert judge(verify(whole, rerun=True, execution=SERIAL)) == ELSEWHERE
    assert "failed" in verify(out).verdict
    assert judge(verify(out, rerun=True, execution=SERIAL)) == DIFFERS


def test_a_verification_stops_when_asked(finished: Finished) -> None:
    with pytest.raises(KeyboardInterrupt):
        verify(finished("paper"), rerun=True, execution=SERIAL, stop=lambda: True)


def test_a_model_that_raises_is_a_difference(finished: Finished, tmp_path: Path) -> None:
    """One that predicts the first row, which is tried when a file is read, and for others no class."""
    out = finished("held vote", to=tmp_path)
    problem, ensemble = stored(out)
    wrong = replace(problem, task=replace(problem.task, y=np.where(np.arange(problem.task.n) == 0, 0, 7)))
    model = fit_on(wrong, position(out), np.arange(problem.task.n))
    assert model.predict(problem.task.X[:1]).label[0] == 0
    members = tuple(replace(member, model=model) for member in ensemble.members)
    folder = RunFolder(out)
    models = replace(read_result(folder, problem).models, best=Ensemble(members))
    folder.acquire()
    table, certificate = folder.candidates(problem)[0], folder.files.read(CERTIFICATE, 1 << 20)
    results = make_results(problem, table, models) | {CERTIFICATE: certificate}
    folder.write_end(folder.execution(), results)
    folder.release()
    found = " ".join(verify(out).differences)
    assert "judged rows and certificate cannot be made again: " in found
    assert "model of split 0: it cannot predict the rows of the table" in found


def test_a_test_error_is_trusted_aloud_and_measured_again(tmp_path: Path) -> None:
    out, task, test = tmp_path / "run", blobs(60, seed=2), blobs(40, seed=3)
    rows = TestRows(test.X, test.y)
    run_job(Job(SMALL, task, out, rows), SERIAL)
    columns = from_matrix(test.X, test.labelled(test.y), list(task.features), task.target.name)
    assert "the test error (--test)" in verify(out).assumed
    found = verify(out, test=columns)
    assert (found.differences, "the test error of F* on 40 rows" in found.recomputed) == ([], True)
    rewrite_json(out, ACCOUNT, lambda c: c["test"].update(error=c["test"]["error"] / 2) or c)
    messages = [one for one in verify(out, test=columns).differences if "test.error is" in one]
    assert messages == [one for one in verify(out, test=rows).differences if "test.error is" in one] != []
    for others in (columns.slice(1), TestRows(test.X[1:], test.y[1:])):
        with pytest.raises(InputError, match="not the rows"):
            verify(out, test=others)


def test_test_rows_for_a_run_without_any_are_refused(finished: Finished) -> None:
    with pytest.raises(InputError, match="not measured on any test rows"):
        verify(finished("paper"), test=blobs(40, seed=3).columns())
    with pytest.raises(InputError, match="expected a class number below 2"):
        verify(finished("paper"), test=TestRows(np.zeros((2, 2)), np.array([0, 2])))
    with pytest.raises(InputError, match="have no other rows"):
        verify(finished("folds"), test=blobs(40, seed=3).columns())


def own_loss(y: np.ndarray, predicted: np.ndarray) -> float:
    return 0.0


@pytest.mark.parametrize(("name", "verdict"), [("zero_one", DIFFERS), ("own_loss", ELSEWHERE)])
def test_a_score_of_a_folder_is_not_called_like_a_measure(name: str, verdict: str, tmp_path: Path) -> None:
    """Else figures that nothing can compute again stand under the name of a known one."""
    own = OwnScore(name, "0" * 64, own_loss)
    procedure = replace(Procedure.of(resampling="kfold:3", learner="tree"), measure=(own,))
    assess(procedure, PLAIN, tmp_path / "run", SERIAL)
    found = verify(tmp_path / "run", rerun=True, execution=SERIAL)
    assert judge(found) == verdict
    says = "the scores by own_loss: the folder does not keep functions"
    assert found.unverified == [says] * (verdict == ELSEWHERE)


def test_an_estimator_that_cannot_be_fitted_here_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is trusted and missing, or not trusted: exit code 6, and no word of damage."""
    monkeypatch.setattr(spec, "_trusted", {"sklearn", "no_such_package"})
    learner = AnyEstimator(estimator="sklearn.tree:DecisionTreeClassifier", param={"max_depth": (2,)})
    run_job(Job(TREE.with_learner(learner), PLAIN, tmp_path / "run"), SERIAL)
    file = tmp_path / "run" / "study.json"
    content = json.loads(file.read_text())
    for name, words in (
        ("no_such_package:Thing", "needs what is not here: "),
        ("json:JSONDecoder", "importing json runs its code"),
    ):
        content["study"]["learner"]["estimator"] = {"class": name}
        file.write_text(json.dumps(content))
        assert words in " ".join(verify(tmp_path / "run").unverified)

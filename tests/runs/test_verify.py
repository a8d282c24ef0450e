"""One finished folder of each kind, one table of edits: what a verification says about each.

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
from finished import EXACT, PLAIN, RUNS, SMALL, TABLE, TREE, Finished, N
from forgery import (
    ACCOUNT,
    CANDIDATES,
    CERTIFICATE,
    MODELS,
    SERIAL,
    altered,
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
    with_errors_of,
)
from moved import last_place, moved
from sklearn.base import clone
from sklearn.tree._tree import Tree

from ckcv_ray import Job, Procedure, Progress, TestRows
from ckcv_ray.core.measures import OwnScore
from ckcv_ray.errors import InputError
from ckcv_ray.learners.ensemble import Ensemble, Models
from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.store import FittedEstimator
from ckcv_ray.records.judged import HELD_OUT, JUDGED_ROWS
from ckcv_ray.records.record import Records
from ckcv_ray.runs.finished import read_result
from ckcv_ray.runs.run import assess, run_job
from ckcv_ray.runs.verify import Verification, verify
from ckcv_ray.storage.folder import (
    FULL,
    SCORES,
    SETTINGS,
    SPLITS,
    SUMMARY,
    RunFolder,
    make_model_table,
    make_results,
    read_full,
)
from ckcv_ray.tables.read import from_matrix

SAME, DIFFERS, ELSEWHERE = "same", "differs", "elsewhere"
ANOTHER = "another processor"
HONEST = [*(kind for kind in RUNS if kind not in ("trees", "held auc")), "folds", "nested", "kept", "given"]
NEW = blobs(2000, seed=5, shift=2.0)  # rows of the source of TABLE
FAR = np.array([1e6, 0.0])
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


def stray(out: Path) -> None:
    shutil.copy(out / "ensemble" / "model-00000.pkl", out / "ensemble" / "model-00099.pkl")
    reseal(out)


def of_another_split(out: Path) -> None:
    problem, ensemble = stored(out)
    models = [member.model for member in ensemble.members]
    swapped = [replace(m, model=model) for m, model in zip(ensemble.members, models[::-1], strict=True)]
    forged = Ensemble(tuple(altered(member, problem) for member in swapped))
    rewrite_run(out, with_errors_of(forged, position(out)), forged)


def models_of(change: Callable[[Any, Models], Models], environment: str = "") -> Edit:
    """Change the models of a run, and make everything but the log agree with them."""

    def edit(out: Path) -> None:
        problem = RunFolder(out).problem()
        models = read_result(RunFolder(out), problem).models
        rewrite_run(out, models=change(problem, models), environment=environment)

    return edit


def fewer_references(problem: Any, models: Models) -> Models:
    return replace(models, references=None)


def of_single(ensemble: Ensemble | None, change: Callable[[Any], Any]) -> Ensemble:
    """The ensemble of a single model, changed."""
    assert ensemble is not None
    (member,) = ensemble.members
    return Ensemble((replace(member, model=change(member.model)),))


def plant(model: FittedEstimator) -> FittedEstimator:
    """A tree with one more node: above a value that no row of the table has, a leaf gives the other class."""
    tree = model.estimator.tree_
    state, n = tree.__getstate__(), tree.node_count
    nodes, values = state["nodes"], state["values"]
    leaf = int(np.bincount(model.estimator.apply(NEW.X + FAR)).argmax())
    state["nodes"] = np.concatenate([nodes, nodes[[leaf, leaf]]])
    state["values"] = np.concatenate([values, values[[leaf]], values[[leaf]][..., ::-1]])
    at = state["nodes"][leaf : leaf + 1]
    at["left_child"], at["right_child"], at["feature"], at["threshold"] = n, n + 1, 0, 1e3
    planted = Tree(tree.n_features, tree.n_classes, tree.n_outputs)
    planted.__setstate__(state | {"node_count": n + 2, "max_depth": tree.max_depth + 1})
    estimator = clone(model.estimator).fit(TABLE.X, TABLE.y)
    estimator.tree_ = planted
    forged = FittedEstimator(model.setting, estimator, model.n_classes)
    assert (forged.predict(TABLE.X).label == model.predict(TABLE.X).label).all()
    assert np.mean(forged.predict(NEW.X + FAR).label != model.predict(NEW.X + FAR).label) > 0.3
    return forged


def plant_in_refit(problem: Any, models: Models) -> Models:
    return replace(models, refit=of_single(models.refit, plant))


def plant_in_full(out: Path) -> None:
    """Change the model that a procedure keeps."""
    folder = RunFolder(out)
    problem = folder.problem()
    ensemble = read_full(folder.files, problem, problem.learner.space.setting(0, 0))
    forged = make_model_table(problem, of_single(ensemble, plant))
    folder.write_end(folder.execution(), {FULL: forged})


def nudge(problem: Any, models: Models) -> Models:
    """Models that differ in the last place of their numbers, as fitted on another machine."""
    refit, full = (
        of_single(ensemble, lambda model, rows=rows: moved(problem.learner, rows, model, last_place))
        for ensemble, rows in ((models.refit, problem.task), (models.full, problem.every_row))
    )
    return replace(models, refit=refit, full=full)


def seen_all(problem: Any, models: Models) -> Models:
    """The model fitted on all rows in place of the one that is claimed."""
    assert models.full is not None
    (full,) = models.full.members
    return replace(models, refit=of_single(models.refit, lambda _: full.model))


def lucky(out: Path) -> None:
    """A candidate other than the winner: sound models of it, and a log that selects it."""
    leader = position(out)
    other = leader._replace(step=leader.step - 1 if leader.step else 1)

    def edit(records: Records) -> None:
        records["totals"][of(records, other) & ~records["estimate"]] = 0

    rewrite_run(out, edit)


def better(out: Path) -> None:
    def edit(records: Records) -> None:
        records["totals"][records["size"] == 0, 0] *= 0.1

    rewrite_run(out, edit)


def from_elsewhere(out: Path) -> None:
    rewrite_json(out, ACCOUNT, put(environment__processor=ANOTHER))


def ulp(value: float) -> float:
    return value * (1 + 1e-12)


def other(value: Any) -> Any:
    return 1 - value


class Case(NamedTuple):
    """An edit of a folder, what a verification says about it, and words of its first sentences."""

    kind: str
    edit: Edit
    verdict: str
    words: str = ""
    rerun: str = ""  # what it says after a run again, if that is something else


FORGED = "fitted again, its content differs"
CASES = {
    # cells of what is derived
    "a row left out": Case(
        "held", lambda out: rewrite(out, JUDGED_ROWS, lambda t: t.slice(1)), DIFFERS, "recomputed it has"
    ),
    "a better bound": Case("paper", every(CANDIDATES, "l_ms", lambda x: x / 2), DIFFERS, "l_ms."),
    "a claim": Case(
        "held",
        lambda out: rewrite_json(out, CERTIFICATE, lambda c: c["claims"][0].update(bound=0.01) or c),
        DIFFERS,
        f"{CERTIFICATE}: claims.0.bound is 0.01, recomputed it is",
    ),
    "a digest": Case("held", written(CERTIFICATE, digests__data="0" * 64), DIFFERS, "digests.data"),
    "a figure": Case("folds", written(SUMMARY, run_id="0" * 12), DIFFERS, f"{SUMMARY}: run_id"),
    **{
        f"a cell of {file}": Case(kind, cell(file, name, change), DIFFERS, f"{file}: {name}.0")
        for kind, file, name, change in (
            ("held", JUDGED_ROWS, "loss", other),
            ("kept", HELD_OUT, "prediction", other),
            ("kept", SPLITS, "row", lambda x: (x + 1) % N),
            ("folds", SETTINGS, "rank", lambda x: x + 1),
            ("nested", SCORES, "zero_one", lambda x: x + 1),
        )
    },
    "a stray pickle": Case("paper", stray, DIFFERS, "model-00099.pkl is not the pickle of any model"),
    "a pickle": Case(
        "paper",
        lambda out: (
            shutil.copy(out / "ensemble/model-00001.pkl", out / "ensemble/model-00000.pkl"),
            reseal(out),
        ),
        DIFFERS,
        "model-00000.pkl is not what the models in it give",
    ),
    # models in their file alone
    "lower counts": Case(
        "paper", every(MODELS, "errors", lambda x: [0, 0]), DIFFERS, "its k or its counts are not"
    ),
    "another offset": Case("paper", every(MODELS, "offset", lambda x: x + 9), DIFFERS, FORGED),
    # whole runs that agree with themselves
    "nothing": Case("paper", rewrite_run, SAME),
    "another split": Case("paper", of_another_split, DIFFERS, "model of split 0: " + FORGED),
    "the model of all rows": Case("held vote", models_of(seen_all), DIFFERS, "model refit: " + FORGED),
    "the model of all rows, elsewhere": Case(
        "held auc", models_of(seen_all, ANOTHER), ELSEWHERE, "model refit: " + FORGED
    ),
    "no references": Case(
        "held better", models_of(fewer_references), DIFFERS, "there are 0 models to compare with, and"
    ),
    **{
        f"forged, {kind}": Case(kind, forge, DIFFERS, "fitted again, ")
        for kind in ("paper", "encoded", "visits", "three", "held better")
    },
    "forged, prices": Case("prices", forge, DIFFERS, f"{FORGED}: predictions differ by up to "),
    "forged, held vote": Case(
        "held vote", forge, DIFFERS, "models fitted again, certificate.json: errors.0 is "
    ),
    **{
        f"forged elsewhere, {kind}": Case(kind, lambda out: forge(out, ANOTHER), ELSEWHERE, "fitted again, ")
        for kind in ("paper", "held", "prices")
    },
    # models that are right on every row of the table
    **{
        f"wrong elsewhere{place}": Case(
            "exact tree", models_of(plant_in_refit, place), verdict, "model refit: fitted again, "
        )
        for place, verdict in (("", DIFFERS), (ANOTHER, ELSEWHERE))
    },
    "wrong elsewhere, scored": Case("scored tree", plant_in_full, DIFFERS, "model full: fitted again, "),
    **{
        f"one ulp away{place}, {kind}": Case(
            kind, models_of(nudge, place), SAME, "5 models, fitted again: 2 not equal in every bit"
        )
        for kind in EXACT
        for place in ("", *[ANOTHER] * (kind == "exact svm"))
    },
    # the search
    "a lucky choice": Case("paper", lucky, SAME, rerun=DIFFERS),
    "better scores": Case("folds", better, SAME, rerun=DIFFERS),
    # what may differ
    "a score of a split one ulp away": Case("nested", every(SCORES, "zero_one", ulp), SAME),
    "from elsewhere": Case("held", from_elsewhere, SAME),
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

    trees = finished("trees")
    monkeypatch.setattr("ckcv_ray.learners.sklearn.paths.SplitFits.fit_alone", no_room)
    found, said = verify(trees), "could not be fitted again here: MemoryError: no room"
    assert found.differences == []
    assert found.unverified == [f"the model of split {i} {said}" for i in range(3)]
    again = verify(trees, rerun=True, execution=SERIAL)
    assert any("the study could not be run again here" in sentence for sentence in again.unverified)


def test_what_failed_in_the_run_is_tried_again(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what fails in the run again alone is no difference."""
    whole = finished("paper")
    with monkeypatch.context() as patch:
        breaking(patch, lambda unit: (unit.size, unit.split) == (1, 1))
        run_job(Job(SMALL, blobs(60, seed=2), tmp_path / "run"), SERIAL)
        assert verify(tmp_path / "run", rerun=True, execution=SERIAL).ok
        assert judge(verify(whole, rerun=True, execution=SERIAL)) == ELSEWHERE
    assert "failed" in verify(tmp_path / "run").verdict
    assert judge(verify(tmp_path / "run", rerun=True, execution=SERIAL)) == DIFFERS


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
    assert "judged rows and certificate cannot be recomputed: " in found
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
    for given in (columns, rows):
        assert "test.error is" in " ".join(verify(out, test=given).differences)
    with pytest.raises(InputError, match="not the rows"):
        verify(out, test=columns.slice(1))


def test_test_rows_for_a_run_without_any_are_refused(finished: Finished) -> None:
    for kind, said in (("paper", "not measured on any test rows"), ("folds", "have no other rows")):
        with pytest.raises(InputError, match=said):
            verify(finished(kind), test=blobs(40, seed=3).columns())


def own_loss(y: np.ndarray, predicted: np.ndarray) -> float:
    return 0.0


@pytest.mark.parametrize(("name", "verdict"), [("zero_one", DIFFERS), ("own_loss", ELSEWHERE)])
def test_a_score_of_a_folder_is_not_called_like_a_measure(name: str, verdict: str, tmp_path: Path) -> None:
    """Else figures that nothing can compute again stand under the name of a known one."""
    own = OwnScore(name, "0" * 64, own_loss)
    procedure = replace(Procedure.of(resampling="kfold:3", learner="tree"), measure=(own,))
    assess(procedure, PLAIN, tmp_path / "run", SERIAL)
    assert judge(verify(tmp_path / "run", rerun=True, execution=SERIAL)) == verdict


def test_an_estimator_that_cannot_be_fitted_here_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is trusted and missing, or not trusted: exit code 6, and no word of damage."""
    monkeypatch.setattr(spec, "_trusted", {"sklearn", "no_such_package"})
    learner = AnyEstimator(estimator="sklearn.tree:DecisionTreeClassifier", param={"max_depth": (2,)})
    run_job(Job(TREE.with_learner(learner), PLAIN, tmp_path), SERIAL)
    file = tmp_path / "study.json"
    content = json.loads(file.read_text())
    for name, said in (("no_such_package:Thing", "not here: "), ("json:JSONDecoder", "json runs its code")):
        content["study"]["learner"]["estimator"] = {"class": name}
        file.write_text(json.dumps(content))
        assert said in " ".join(verify(tmp_path).unverified)

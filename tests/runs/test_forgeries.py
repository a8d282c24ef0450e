"""Models and logs that fit the rows that certify, for every kind of study and claim: none passes as verified.

Labels are drawn at random, so a classifier errs on about half of new rows (two thirds with three classes),
and whatever claims much less is forged. Each forged folder is consistent in itself, its digests included.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from forgery import SERIAL, forge, of, position, rewrite_run, rewrite_scores, stored, swap_labels
from sklearn.tree import DecisionTreeClassifier

from ckcv_ray import Job, Study, Task, evaluate, load_run
from ckcv_ray.core.measures import OwnScore
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import LEARNERS
from ckcv_ray.learners.choice import Choice
from ckcv_ray.learners.ensemble import Ensemble
from ckcv_ray.learners.sklearn import spec
from ckcv_ray.learners.sklearn.learner import AnyEstimator
from ckcv_ray.learners.sklearn.store import FittedEstimator
from ckcv_ray.records.record import Failure, Records
from ckcv_ray.runs.load import read_results, replay
from ckcv_ray.runs.run import assess, run_job
from ckcv_ray.runs.verification import Verification
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder, make_results
from ckcv_ray.tables.task import Roles

ANOTHER = "another processor"
N = 90
RNG = np.random.default_rng(np.random.SeedSequence(29))
X = RNG.normal(size=(N, 3))
TREE = Study.paper(
    learner="tree", param=("max_depth=2,4", "min_samples_leaf=1"), k=(3, 4), n_splits=3, seed=1
)
SVM = Study.paper(C=(1.0, 10.0), gamma=(0.1, 1.0), k=(3, 4), n_splits=3, seed=1)
TREES = TREE.with_learner(
    Choice(
        (
            LEARNERS["tree"](param={"max_depth": (2, 4), "min_samples_leaf": (1,)}),
            AnyEstimator(param={"max_depth": (2, 4)}, estimator="sklearn.tree:ExtraTreeClassifier"),
        )
    )
)


AGAINST = tuple(f"better:{label}" for label in TREES.learner.by_label)  # one of them is the winner


def numbers(classes: int = 2) -> Task:
    """Plain numbers, and labels that nothing predicts."""
    return Task.of(X, RNG.permutation(np.arange(N) % classes))


def words() -> Task:
    """Numbers with gaps, and text."""
    gaps = np.where(RNG.random(N) < 0.1, np.nan, X[:, 0])
    table = pa.table(
        {
            "size": pa.array(gaps, from_pandas=True),
            "width": X[:, 1],
            "town": RNG.choice(["here", "there", "nowhere"], N),
            "outcome": RNG.permutation(np.where(np.arange(N) % 2, "ill", "well")),
        }
    )
    return Task.from_table(table, Roles("outcome"))


def visits() -> Task:
    """Groups of three related rows."""
    return Task.of(
        X, np.repeat(RNG.permutation(np.arange(N // 3) % 2), 3), groups=np.repeat(range(N // 3), 3)
    )


def held(learner: Study, **options: object) -> Study:
    return learner.replace(certify="holdout", holdout_share=0.5, **options)


class Kind(NamedTuple):
    study: Study
    task: Task


KINDS = {
    "plain": Kind(TREE.replace(seed=2), numbers()),
    "encoded": Kind(TREE, words()),
    "groups": Kind(TREE, visits()),
    "three classes": Kind(TREE, numbers(3)),
    "several learners": Kind(TREES, numbers()),
    "several learners, encoded": Kind(TREES, words()),
    "holdout, refit": Kind(held(TREE), numbers()),
    "holdout, vote": Kind(held(TREE, claim=("vote",)), numbers()),
    "holdout, refit and vote": Kind(held(TREE, claim=("refit", "vote")), numbers()),
    "holdout, groups": Kind(held(TREE), visits()),
    "holdout, encoded": Kind(held(TREE), words()),
    "holdout, by class": Kind(held(TREE, claim=("sensitivity", "specificity")), numbers()),
    "holdout, recall": Kind(held(TREE, claim=("recall",)), numbers(3)),
    "holdout, auc": Kind(held(TREE, claim=("auc",)), numbers()),
    "holdout, several learners": Kind(held(TREES), numbers()),
    "holdout, better": Kind(held(TREES, claim=("refit", *AGAINST)), numbers()),
    "holdout, better, groups": Kind(held(TREES, claim=("refit", *AGAINST)), visits()),
    "svm": Kind(SVM, numbers()),
    "svm, holdout": Kind(held(SVM), numbers()),
    "svm, holdout, vote": Kind(held(SVM, claim=("vote",)), numbers()),
}

CERTIFIED = [name for name in KINDS if "holdout" in name]
UNLOGGED = [name for name in CERTIFIED if name != "svm, holdout, vote"]  # whose models are all logged
UNCHANGED = [(name, "") for name in ("plain", "holdout, refit", "svm")]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Path]:
    """Make a copy of the honest run of a kind, which is made once."""
    made = tmp_path_factory.mktemp("honest")

    def copy(name: str, to: Path) -> Path:
        whole, kind = made / name, KINDS[name]
        if not whole.exists():
            run_job(Job(kind.study, kind.task, whole), SERIAL)
        return Path(shutil.copytree(whole, to / "run"))

    return copy


Honest = Callable[[str, Path], Path]


def fooled(found: Verification) -> bool:
    """Whether a verification says, or lets a reader think, that all is computed and well."""
    return found.ok and "every figure" in found.verdict


@pytest.mark.parametrize("name", KINDS)
def test_an_honest_run_is_verified_whatever_environment_it_names(
    name: str, honest: Honest, tmp_path: Path
) -> None:
    out = honest(name, tmp_path)
    reseal_environment(out)
    plain = verify(out)
    assert plain.ok, plain
    assert plain.verdict.startswith("nothing contradicts the files; taken on trust: the results of ")
    whole = verify(out, refit=1.0, execution=SERIAL)
    assert whole.ok, whole
    assert whole.verdict == "every figure follows from the data"


def reseal_environment(out: Path) -> None:
    """Have a run say that it was made elsewhere."""
    folder = RunFolder(out)
    execution, certificate = folder.execution(), read_results(folder, folder.problem()).certificate
    execution["environment"]["processor"] = ANOTHER
    folder.acquire()
    folder.write_end(certificate.to_json(), execution)
    folder.release()


@pytest.mark.parametrize(("name", "environment"), [*((name, ANOTHER) for name in KINDS), *UNCHANGED])
def test_models_that_fit_what_certifies_are_found_and_the_true_bound_is_said(
    name: str, environment: str, honest: Honest, tmp_path: Path
) -> None:
    out = honest(name, tmp_path)
    true = load_run(out).certificate.claims.claims
    forge(out, environment)
    forged = load_run(out).certificate.claims.claims
    assert forged[0].bound < true[0].bound - 0.05  # the forgery is worth its trouble, and can be loaded
    found = verify(out)
    assert not found.ok
    sentences = found.unverified if environment else found.differences
    assert any("fitted again, it classifies" in sentence for sentence in sentences)
    said = "\n".join(sentence for sentence in sentences if sentence.startswith("computed again, "))
    assert (true[0].limit if true[0].quantity.is_error else str(true[0].quantity)) in said


@pytest.mark.parametrize("name", UNLOGGED)
def test_models_that_no_log_speaks_of_are_found(name: str, honest: Honest, tmp_path: Path) -> None:
    """The log, and all that it says, is that of the honest run."""
    out = honest(name, tmp_path)
    true = load_run(out).certificate.claims.claims
    forge(out, ANOTHER, logged=False)
    assert load_run(out).certificate.claims.first.bound < true[0].bound - 0.05
    for refit in (0.0, 1.0) if name in ("holdout, vote", "svm, holdout") else (0.0,):
        found = verify(out, refit=refit, execution=SERIAL)
        assert not found.ok
        assert any("fitted again, it classifies" in sentence for sentence in found.unverified)
        assert any(sentence.startswith("computed again, the bound of ") for sentence in found.unverified)


@pytest.mark.parametrize("name", ["plain", "encoded", "groups", "three classes", "several learners"])
def test_labels_swapped_for_what_the_models_predict_are_found(
    name: str, honest: Honest, tmp_path: Path
) -> None:
    out = honest(name, tmp_path)
    swap_labels(out, tmp_path / "swapped")
    assert load_run(tmp_path / "swapped").l_ee < load_run(out).l_ee - 0.05
    found = verify(tmp_path / "swapped")
    assert any("fitted again, it classifies" in sentence for sentence in found.differences)


def test_scores_that_order_what_certifies_are_found_where_no_label_differs(
    honest: Honest, tmp_path: Path
) -> None:
    """A claim of the AUC rests on scores: labels alone do not decide."""
    out = honest("holdout, auc", tmp_path)
    problem, _ = stored(out)
    models = read_results(RunFolder(out), problem).models
    rows, test = problem.all_rows, problem.take_held_rows()
    assert models.refit is not None
    assert test is not None
    (member,) = models.refit.members
    label = member.model.predict(rows.X).label
    shares = (1 + 2 * label + rows.y) / 5  # of the second class: on the side of the label, by the true one
    tens = np.round(10 * shares).astype(int)
    X10 = np.repeat(rows.X, 10, axis=0)
    y10 = np.concatenate([np.arange(10) < ten for ten in tens]).astype(int)
    model = FittedEstimator(member.model.setting, DecisionTreeClassifier(random_state=0).fit(X10, y10), 2)
    assert np.array_equal(model.predict(rows.X).label, label)
    refit = Ensemble((replace(member, model=model),))
    true = load_run(out).certificate.claims.first
    rewrite_run(out, models=replace(models, refit=refit), environment=ANOTHER)
    assert load_run(out).certificate.claims.first.bound < true.bound - 0.05
    found = verify(out)
    assert found.differences == []
    scores, messages = found.unverified
    assert "classifies all 90 rows alike, but its score differs by up to" in scores
    assert messages.startswith("computed again, the bound of holdout, refit, on the auc is ")


LUCKY = ["plain", "svm", "encoded", "groups", "several learners"]


@pytest.mark.parametrize("name", LUCKY)
def test_a_lucky_choice_rests_on_trust_and_is_found_by_a_refit(name: str, tmp_path: Path) -> None:
    """Sound models of the candidate with the fewest errors on the estimate sets: the log selects it."""
    out, kind = tmp_path / "run", KINDS[name]
    run_job(Job(kind.study.replace(exhaustive=True), kind.task, out), SERIAL)
    before = position(out)

    def lucky(records: Records) -> None:
        estimates = records[records["estimate"]]
        keys = np.unique(estimates[["size", "path", "step"]])
        chances = [one for one in keys if tuple(one) != (before.size, before.path, before.step)]
        errors = {
            i: estimates["totals"][estimates[["size", "path", "step"]] == one][:, -1].mean()
            for i, one in enumerate(chances)
        }
        best = chances[min(errors, key=errors.__getitem__)]
        records["totals"][(records[["size", "path", "step"]] == best) & ~records["estimate"]] = 0

    rewrite_run(out, lucky, environment=ANOTHER)
    assert position(out)[1:] != before[1:]
    plain = verify(out)
    assert plain.ok
    assert not fooled(plain)
    assert "taken on trust: the results of " in plain.verdict
    whole = verify(out, refit=1.0, execution=SERIAL)
    assert any("select set of split" in sentence for sentence in whole.differences)


@pytest.mark.parametrize("told", [True, False], ids=["failed", "left out"])
def test_candidates_said_to_have_failed_rest_on_trust_and_are_tried_again(told: bool, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_job(Job(TREE.replace(exhaustive=True), numbers(), out), SERIAL)
    first = position(out)

    def without(records: Records) -> Records:
        return records[~of(records, first) | records["estimate"]]

    failed = [
        Failure(False, first.size, split, first.path, first.step, first.step + 1, "MemoryError: no room")
        for split in range(3)
    ]
    failures = failed if told else None
    rewrite_run(out, keep=without, provisional=True, failures=failures, environment=ANOTHER)
    plain = verify(out)
    assert plain.ok
    assert "candidates failed" in plain.verdict
    assert any(
        "the log has none" in messages for messages in verify(out, refit=1.0, execution=SERIAL).differences
    )


# procedures


SCORED = {
    "classes": {"learner": "tree", "measure": "zero_one,accuracy", "resampling": "holdout:0.5"},
    "numbers": {"learner": "ridge", "measure": "clipped:2", "resampling": "holdout:0.5"},
    "folds": {"learner": "tree,naive_bayes", "measure": "zero_one,log_loss", "resampling": "kfold:3"},
    "nested": {"learner": "tree", "measure": "zero_one", "select_by": "zero_one", "resampling": "nested:3:3"},
}


@pytest.mark.parametrize("name", SCORED)
def test_forged_scores_rest_on_trust_and_are_found_by_a_refit(name: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    y = 10 * RNG.normal(size=N) if name == "numbers" else RNG.permutation(np.arange(N) % 2)
    evaluate(X, y, out, SERIAL, **SCORED[name])
    rewrite_scores(out, environment=ANOTHER)
    assert verify(out).ok
    whole = verify(out, refit=1.0, execution=SERIAL)
    assert (whole.ok, whole.verdict) == (True, "every figure follows from the data")

    def better(records: Records) -> None:
        records["totals"][records["size"] == 0, 0] *= 0.1
        records["totals"][records["size"] == 0, 1] = np.floor(
            0.1 * records["totals"][records["size"] == 0, 1]
        )

    rewrite_scores(out, better, ANOTHER)
    plain = verify(out)
    assert plain.ok
    assert not fooled(plain)
    found = verify(out, refit=1.0, execution=SERIAL).differences
    assert any(", computed again, is " in sentence for sentence in found)
    assert any(sentence.startswith("computed again, the mean ") for sentence in found)


def test_splits_said_to_have_failed_are_tried_again(tmp_path: Path) -> None:
    """A learner that has no score on a split is not compared: so its rivals look better."""
    out = tmp_path / "run"
    evaluate(X, RNG.permutation(np.arange(N) % 2), out, SERIAL, **SCORED["folds"])
    rewrite_scores(
        out,
        keep=lambda records: records[(records["path"] > 0) | (records["split"] > 0)],
        failures=[Failure(False, 0, 0, 0, 0, 1, "MemoryError: no room")],
    )
    plain = verify(out)
    assert plain.ok
    assert "that 1 of them failed" in " ".join(plain.trusted)
    found = verify(out, refit=1.0, execution=SERIAL).differences
    assert any("the log has no scores; computed again there are some" in sentence for sentence in found)


def own_loss(y: np.ndarray, predicted: np.ndarray) -> float:
    return 0.0


def test_a_score_of_a_folder_cannot_be_called_like_a_measure(tmp_path: Path) -> None:
    """As in Python: else figures that nothing can compute again stand under the name of a known one."""
    out, task = tmp_path / "run", Task.of(X, RNG.permutation(np.arange(N) % 2))
    for name, messages in (("zero_one", "needs a name of its own"), ("own_loss", "")):
        own = OwnScore(name, "0" * 64, own_loss)
        procedure = replace(Study.without_certification("kfold:3", learner="tree"), measures=(own,))
        shutil.rmtree(out, ignore_errors=True)
        assess(procedure, task, out, SERIAL)
        plain, whole = verify(out), verify(out, refit=1.0, execution=SERIAL)
        assert not fooled(plain)
        assert not whole.ok
        if messages:
            assert messages in " ".join(plain.differences)
        else:
            assert "the scores by own_loss" in " ".join(whole.unverified)


@pytest.mark.parametrize(
    "described",
    [
        {"name": "zero_one", "sha256": "0" * 64},
        {"name": "accuracy", "sha256": "0" * 64},
        {"name": "own loss", "sha256": "0" * 64},
        {"name": "own_loss", "sha256": "short"},
        {"name": "own_loss"},
        {"name": "own_loss", "sha256": "0" * 64, "more": 1},
        "own_loss",
    ],
)
def test_what_cannot_be_a_function_of_a_user_is_refused(described: object) -> None:
    content = Study.without_certification("kfold:3", learner="tree", measure=own_loss).to_json()
    assert list(Study.from_json(content).functions) == ["own_loss"]
    with pytest.raises(InputError):
        Study.from_json({**content, "functions": [described]})
    with pytest.raises(InputError, match="among the measures"):
        Study.from_json({**content, "measures": ["zero_one"]})


# what cannot be computed here


def test_a_fit_that_fails_here_is_not_verified(
    honest: Honest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder nothing is wrong, and nothing of it can be compared: this is no verification."""
    plain, held_out = (honest(name, tmp_path / name) for name in ("plain", "holdout, refit"))

    def no_room(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("ckcv_ray.learners.sklearn.paths.SplitFits.fit", no_room)
    found = verify(plain)
    messages = "could not be fitted again here: MemoryError: no room"
    assert (found.differences, found.ok) == ([], False)
    assert found.unverified == [f"model of split {i} {messages}" for i in range(3)]
    assert f"the models refit and full {messages}" in verify(held_out).unverified
    assert any("could not be computed again here" in s for s in verify(plain, 1.0, None, SERIAL).unverified)


def test_a_model_that_raises_is_a_difference(honest: Honest, tmp_path: Path) -> None:
    """One that classifies the first row, which is tried when a file is read, and no other."""
    out = honest("holdout, vote", tmp_path)
    problem, ensemble = stored(out)
    models = read_results(RunFolder(out), problem).models
    wrong = np.where(np.arange(problem.task.n) == 0, 0, 7)
    tree = DecisionTreeClassifier(random_state=0).fit(problem.task.X, wrong)
    first = ensemble.members[0]
    broken = replace(first, model=FittedEstimator(first.model.setting, tree, 2))
    folder = RunFolder(out)
    execution, certificate = folder.execution(), read_results(folder, problem).certificate
    folder.reopen()
    folder.acquire()
    forged = replace(models, best=Ensemble((broken, *ensemble.members[1:])))
    results = make_results(problem, replay(out).candidates(), forged)
    folder.write_end(certificate.to_json(), execution, results)
    folder.release()
    found = verify(out)
    assert any("model of split 0: it cannot classify the rows" in sentence for sentence in found.differences)
    assert any("certificate.json: it cannot be made again" in sentence for sentence in found.differences)


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"class": "no_such_package:Thing"}, "no_such_package, which is not installed here"),
        ({"class": "json:JSONDecoder"}, "importing json runs its code"),
    ],
)
def test_an_estimator_that_cannot_be_fitted_here_is_not_verified(
    change: dict[str, str], messages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is trusted and missing, or not trusted: exit code 6, and no word of damage."""
    monkeypatch.setattr(spec, "_trusted", {"sklearn", "no_such_package"})
    out = tmp_path / "run"
    learner = AnyEstimator(estimator="sklearn.tree:DecisionTreeClassifier", param={"max_depth": (2,)})
    run_job(Job(TREE.with_learner(learner), numbers(), out), SERIAL)
    content = json.loads((out / "study.json").read_text())
    content["study"]["learner"]["estimator"] = change
    (out / "study.json").write_text(json.dumps(content))
    found = verify(out)
    assert not found.ok
    assert messages in " ".join(found.unverified)

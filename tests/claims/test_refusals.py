"""What is refused for lack of rows of a class: which claims are left, and that these keep their level."""

import json
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from claimed import run
from conftest import Ran, blobs
from numpy.typing import NDArray
from pyarrow import csv, parquet

from ckcv_ray import Result, Study, Task
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.wording import describe_held_share
from ckcv_ray.core.bounds.binomial import bound_claim, tabulate_claim
from ckcv_ray.core.resampling.complete import Outer
from ckcv_ray.engine.forecast import plan_problem
from ckcv_ray.errors import InputError
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.report import report
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Problem, problem

STUDY = Study.paper(learner="naive_bayes", k=(3,), n_splits=4, certify="nested", outer_splits=6)
N, FEW = 45, 4


def rare(seed: int, few: int = FEW) -> Task:
    """A table of three classes, one of them with few rows."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    y = np.arange(N) % 2
    y[rng.permutation(N)[:few]] = 2
    X = rng.normal(size=(N, 2)) + 2.0 * np.stack([y == 0, y == 2], axis=1)
    return Task.of(X, np.array(["ill", "well", "rare"])[y])


def refused_at(split: int) -> Task:
    """A table whose first refused outer split is this one."""
    tasks = (rare(seed) for seed in range(500))
    return next(task for task in tasks if _first_refused(task) == split)


def _first_refused(task: Task) -> int | None:
    """Count by hand."""
    words = np.frombuffer(bytes.fromhex(task.salt) + bytes(16), "<u4").tolist()
    for split in range(6):
        estimated = np.random.default_rng(
            np.random.SeedSequence(words, spawn_key=(N // 3, split))
        ).permutation(N)
        left = np.delete(task.y, estimated[N // 3 : 2 * (N // 3)])
        if np.bincount(left, minlength=3).min() < 2:
            return split
    return None


def nested_claims(result: Result) -> list[tuple[float, tuple[int, ...]]]:
    made = result.certificate.claims
    return [(one["bound"], one["splits"]) for one in made if one["certification"] == "nested"]


# Outer splits


@pytest.mark.parametrize("split", [1, 3])
def test_the_splits_before_the_first_refused_one_are_claimed_and_no_others(
    split: int, tmp_path: Path
) -> None:
    task, out = refused_at(split), tmp_path / "run"
    result = run(STUDY, task, out)
    assert result.nested is not None
    assert [member.split for member in result.nested.members] == list(range(split))
    before = run(STUDY.replace(outer_splits=split), task)
    assert nested_claims(result) == nested_claims(before)
    losses = [sum(member.errors) for member in result.nested.members]
    bound, _ = nested_claims(result)[0]
    assert bound == bound_claim("safe", losses, N // 3, 0.05)
    assert result.run_id == before.run_id
    assert RunFolder(out).outer_splits() == split
    assert result.certificate.claims.refused == {
        "split": split,
        "splits": 6,
        "label": "rare",
        "rows": rows_left(task, split),
    }
    assert before.certificate.claims.refused is None
    assert load_run(out).certificate == result.certificate


def rows_left(task: Task, split: int) -> int:
    problem = Problem.of(STUDY, task)
    assert problem.refused is not None
    assert problem.refused.split == problem.outer_splits == split
    return problem.refused.rows


def test_how_many_splits_certify_is_said_everywhere(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = run(STUDY, refused_at(3), out)
    said = "3 of 6 outer splits certify: split 3 leaves "
    certificate = json.loads((out / "certificate.json").read_text())
    assert any(sentence.startswith(said) for sentence in certificate["statements"])
    assert said in result.summary(details=True)
    assert all("all before one with too few rows" in c["statement"] for c in certificate["claims"][:-1][:1])
    assert said in Path(report(out)).read_text()
    found = verify(out, refit=1.0)
    assert found.differences == []
    assert "that outer split 3 of 6 is refused: claims are about the 3 splits before it" in found.recomputed


@pytest.mark.parametrize("forged", ["refused", "split", "splits", "label", "rows"])
def test_what_is_said_of_a_refusal_is_verified(forged: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    content = run(STUDY, refused_at(2), out).certificate.to_json()
    refused = content.pop("refused")
    others = {"split": 4, "splits": 9, "label": "ill", "rows": 1 - refused["rows"]}
    if forged in others:
        content["refused"] = refused | {forged: others[forged]}
    (out / "certificate.json").write_text(json.dumps(content))
    assert any("certificate.json: refused" in sentence for sentence in verify(out).differences)


@pytest.mark.parametrize("wrong", [{"split": 6}, {"split": 0}, {"label": "unknown"}, {"rows": 2}])
def test_a_refusal_that_cannot_be_is_not_read(wrong: dict[str, object]) -> None:
    content = run(STUDY, refused_at(3)).certificate.to_json()
    content["refused"] |= wrong
    with pytest.raises(ValueError, match="refused: "):
        Certificate.from_json(json.loads(json.dumps(content)))


def test_a_claim_about_a_split_that_is_refused_is_not_read() -> None:
    content = json.loads(json.dumps(run(STUDY, refused_at(3)).certificate.to_json()))
    content["claims"][0]["splits"] = [0, 3]
    content["proven"] = content["claims"][0]
    with pytest.raises(ValueError, match="a claim is about a split that is not before the one refused"):
        Certificate.from_json(content)


def test_a_run_that_grows_past_a_refusal_has_the_bytes_of_all_splits_at_once(tmp_path: Path) -> None:
    task = refused_at(3)
    for splits in (2, 4, 6, 5):
        run(STUDY.replace(outer_splits=splits), task, tmp_path / "grown")
    run(STUDY, task, tmp_path / "whole")
    names = ("certificate.json", "study.json", "ensemble/nested.parquet", "candidates.parquet")
    for name in names:
        assert (tmp_path / "grown" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert verify(tmp_path / "grown").differences == []


def test_claims_by_class_are_about_the_same_splits() -> None:
    task = refused_at(3)
    result = run(STUDY.replace(claim="random,recall"), task)
    before = run(STUDY.replace(claim="random,recall", outer_splits=3), task)
    assert nested_claims(result) == nested_claims(before)
    assert all("before one with too few" in one["statement"] for one in result.certificate.claims.claims[2:3])


def test_nothing_is_claimed_if_the_first_split_is_refused() -> None:
    words = rf"^class 'rare' has {FEW} rows, of which the first .* leaves [01] to .*: choose certify=holdout$"
    with pytest.raises(InputError, match=words):
        Problem.of(STUDY, refused_at(0))


def test_opening_a_folder_draws_no_more_than_one_outer_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many splits its study names: the others are drawn when the run is verified."""
    run(STUDY, refused_at(3), tmp_path / "run")
    drawn: list[int] = []
    split = Outer.split
    monkeypatch.setattr(Outer, "split", lambda *given: drawn.append(given[3]) or split(*given))
    assert load_run(tmp_path / "run").certificate.claims.refused is not None
    assert drawn == [0, 3]
    drawn.clear()
    balanced = Problem.of(STUDY, blobs(60))
    assert (balanced.refused, balanced.outer_splits, drawn) == (None, 6, [])


def test_an_unfinished_run_says_how_many_inner_selections_there_are(
    ckcv: Callable[..., Ran], tmp_path: Path
) -> None:
    run(STUDY, refused_at(3), tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    assert "inner selections: 3 of 3 finished" in ckcv("status", tmp_path / "run")[1]


@pytest.mark.parametrize("kept", [[0], [0, 1], [0, 1, 2, 2]])
def test_other_numbers_of_members_are_not_read(kept: list[int], tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(STUDY, refused_at(3), out)
    file = out / "ensemble" / "nested.parquet"
    parquet.write_table(parquet.read_table(file).take(kept), file, write_page_checksum=True)
    assert any("damaged" in sentence or "too" in sentence for sentence in verify(out).differences)


def test_members_of_refused_splits_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(problem, "LEAST_OF_CLASS", 0)
        forged = run(STUDY, refused_at(3), tmp_path / "run")
    assert forged.nested is not None
    assert len(forged.nested.members) == 6
    found = verify(tmp_path / "run").differences
    assert "there are models of 6 outer splits, and split 3 is refused: 3 are used" in found
    assert any(sentence.startswith("certificate.json: refused is None") for sentence in found)


def test_what_is_planned_is_what_is_computed() -> None:
    problem = Problem.of(STUDY, refused_at(3))
    assert plan_problem(problem).splits == 4 * (1 + 3)


def test_what_is_refused_is_said_before_anything_is_computed(
    ckcv: Callable[..., Ran], tmp_path: Path
) -> None:
    csv.write_csv(refused_at(3).columns(), tmp_path / "rare.csv")
    words = [tmp_path / "rare.csv", "--target", "y", "--learner", "naive_bayes", "--k", "3"]
    code, _, said = ckcv("plan", *words, "--certify", "nested", "--outer-splits", "6")
    assert code == 0
    assert "3 of 6 outer splits certify: split 3 leaves" in " ".join(said.split())
    csv.write_csv(rare(0, few=15).columns(), tmp_path / "rare.csv")
    code, _, said = ckcv("plan", *words, "--certify", "holdout", "--holdout-share", "0.7")
    assert code == 0
    assert "31 of 45 rows are held out, more than two thirds" in " ".join(said.split())


# The level of nested claims, exactly

ROWS, M, DELTA = 9, 3, 0.3
tables = np.array(list(product(range(3), repeat=ROWS)))
totals = np.stack([np.sum(tables == c, axis=1) for c in range(3)], axis=1)
A = tabulate_claim(M, DELTA).A
Counted = tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.float64]]


def counted(estimated: tuple[int, ...], shares: NDArray[np.float64], always: bool) -> Counted:
    """Whether a split is refused, its errors, and its member's risk, on every table of nine labels.

    The member predicts the class 0, or the commonest one of the training rows.
    """
    inside = np.isin(np.arange(ROWS), estimated)
    of_train = np.stack([np.sum(tables[:, ~inside] == c, axis=1) for c in range(3)], axis=1)
    refused = np.any((totals > 0) & (of_train < 2), axis=1) | (np.sum(totals > 0, axis=1) < 2)
    predicted = np.zeros(len(tables), int) if always else np.argmax(of_train, axis=1)
    return refused, np.sum(tables[:, inside] != predicted[:, None], axis=1), 1 - shares[predicted]


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize(
    "shares", [(0.642, 0.179, 0.179), (0.64, 0.26, 0.1), (0.64, 0.35, 0.01), (0.3, 0.5, 0.2)]
)
def test_no_prefix_before_a_refused_split_fails_too_often(shares: tuple[float, ...], always: bool) -> None:
    """All tables of nine labels and all pairs of outer splits; by symmetry the first one is fixed."""
    of = np.array(shares)
    weight = np.prod(of[tables], axis=1)
    refused, wrong, risk = counted((0, 1, 2), of, always)
    first = ~refused & (risk >= A[wrong])
    failed = 0.0
    others = list(combinations(range(ROWS), M))
    for estimated in others:
        also, wrong_also, risk_also = counted(estimated, of, always)
        both = ~refused & ~also & (risk + risk_also >= A[wrong] + A[wrong_also])
        failed += float(np.sum(weight[first | both])) / len(others)
    assert 0 < failed <= DELTA
    given = np.sum(weight[first]) / np.sum(weight[~refused])
    if always and shares[1] == shares[2]:
        assert given > 1.4 * DELTA  # so going on to another seed until none is refused would void the claim


# Large shares


@pytest.mark.parametrize(("share", "warned"), [(0.66, False), (0.7, True)])
def test_a_share_above_two_thirds_is_cautioned_against(share: float, warned: bool, tmp_path: Path) -> None:
    task = rare(0, few=15)
    study = STUDY.replace(certify="holdout", holdout_share=share)
    result = run(study, task, tmp_path / "run")
    assert ("more than two thirds" in result.summary(details=True)) == warned
    assert bool(describe_held_share(result.certificate.sample.n_held, N, "row")) == warned
    assert verify(tmp_path / "run").differences == []
    assert [bool(describe_held_share(held, 9, "group")) for held in (6, 7)] == [False, True]

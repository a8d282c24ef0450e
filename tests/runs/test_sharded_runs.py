"""A run in shards has the bytes of a single run, whatever became of its shards on the way."""

import json
import shutil
from functools import partial

import pytest
from conftest import blobs
from failing_learner import Failing
from nearest_centroid import NearestCentroid

from ckcv_ray import Execution, Job, Study
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.learners import Choice
from ckcv_ray.runs.load import is_finished
from ckcv_ray.runs.run import check_job, run_job, run_work
from ckcv_ray.runs.shards import compute_shard, count_recorded, divide_run, find_states, list_ranges
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.shards import ShardFolder
from ckcv_ray.study import CERTIFIED, SCORED

SERIAL = Execution("serial")
GRID = {"C": (0.1, 1.0, 10.0), "gamma": (0.1, 1.0)}
CERTIFIED_STUDY = Study.paper(**GRID, k=(3, 4, 5), n_splits=4)
STUDIES = {
    "race": CERTIFIED_STUDY,
    "exhaustive": CERTIFIED_STUDY.replace(exhaustive=True, report_k=5),
    "holdout": CERTIFIED_STUDY.replace(certify="holdout"),
    "kfold": Study.without_certification(
        "kfold:5", learner="svm", **GRID, refit="best", save_predictions=True
    ),
    "inner": Study.without_certification("nested:3:2", **GRID),
    "permuted": Study.without_certification("kfold:3", permutations=3),
}
OF_THE_RUN = {"execution.json", "manifest.json", "shards.json"}
SHARDS = 5


def never():
    return False


def list_content(folder):
    """Every file that may not depend on how the run went, by name; inner runs included."""
    names = (file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file())
    kept = (name for name in names if "log" not in name.parts and name.name not in OF_THE_RUN)
    return {name.as_posix(): (folder / name).read_bytes() for name in kept}


def check(name, out):
    study = STUDIES[name]
    return check_job(Job(study, blobs(60, seed=2), out), SCORED if study.certification is None else CERTIFIED)


def divide(name, out, shards=SHARDS):
    job = check(name, out)
    assert not is_finished(job.problem, RunFolder(out))
    divide_run(job.problem, out, shards)
    return job


def compute_all(out, numbers=range(SHARDS, 0, -1)):
    for number in numbers:
        compute_shard(out, number, None, never)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The files of a single run of a study, by its name."""
    found = {}

    def read(name):
        if name not in found:
            out = tmp_path_factory.mktemp("single") / name
            run_work(check(name, out), SERIAL)
            found[name] = list_content(out)
        return found[name]

    return read


@pytest.mark.parametrize("name", STUDIES)
def test_a_run_in_shards_has_the_bytes_of_a_single_run(name, expected, tmp_path):
    out = tmp_path / "run"
    job = divide(name, out)
    assert find_states(out).waiting == (1, 2, 3, 4, 5)
    compute_all(out)
    assert find_states(out) == (SHARDS, (), ())
    assert find_states(out).complete
    computed = count_recorded(job.problem, out)
    log = list(out.rglob("part-*.parquet"))
    run_work(job, SERIAL)
    assert list_content(out) == expected(name)
    assert set(log) <= set(out.rglob("part-*.parquet"))
    assert count_recorded(job.problem, out) >= computed
    assert find_states(out).complete
    assert compute_shard(out, 1, None, never) == 0  # of a finished run: nothing


def test_a_finished_run_in_shards_is_verified(tmp_path):
    job = divide("race", tmp_path / "run")
    compute_all(tmp_path / "run")
    run_work(job, SERIAL)
    assert verify(tmp_path / "run").ok
    (tmp_path / "run" / "log" / "shard-00002" / "part-000000.parquet").unlink()
    assert not verify(tmp_path / "run").ok


def test_the_plan_depends_on_study_data_and_number_alone(tmp_path):
    for name in ("one", "two"):
        divide("race", tmp_path / name)
    compute_shard(tmp_path / "two", 1, None, never)
    divide("race", tmp_path / "two")  # repeated
    plans = {(tmp_path / name / "shards.json").read_bytes() for name in ("one", "two")}
    assert len(plans) == 1


def test_a_shard_that_was_stopped_goes_on_from_its_log(expected, tmp_path, monkeypatch):
    monkeypatch.setattr("ckcv_ray.engine.batches.BATCH_SECONDS", 0.0)
    monkeypatch.setattr("ckcv_ray.engine.backend.SerialBackend.least_seconds", 0.0)  # a unit at a time
    out = tmp_path / "run"
    job = divide("race", out, 2)
    for _ in range(3):
        looks = iter([False, False, True])
        with pytest.raises(KeyboardInterrupt):
            compute_shard(out, 1, None, partial(next, looks))
        assert find_states(out).running == ()
    computed = count_recorded(job.problem, out)
    assert 0 < computed < job.problem.n_evaluations
    compute_all(out, (1, 2))
    assert count_recorded(job.problem, out) == job.problem.n_evaluations
    run_work(job, SERIAL)
    assert list_content(out) == expected("race")


def test_what_was_computed_before_is_not_computed_again(expected, tmp_path):
    """A run that began as a single one is divided."""
    out = tmp_path / "run"
    stops = iter([False] * 4)
    with pytest.raises(KeyboardInterrupt):
        run_work(check("race", out)._replace(stop=lambda: next(stops, True)), SERIAL)
    before = {file.name: file.read_bytes() for file in (out / "log").glob("part-*")}
    job = divide("race", out)
    known = count_recorded(job.problem, out)
    assert known > 0
    compute_all(out)
    every = job.problem.n_evaluations  # paths that a race left unfinished are computed as a whole
    assert every <= count_recorded(job.problem, out) < every + known
    assert {name: (out / "log" / name).read_bytes() for name in before} == before
    run_work(job, SERIAL)
    assert list_content(out) == expected("race")


@pytest.mark.parametrize("how", ["deleted", "cut", "locked"])
def test_a_damaged_log_is_computed_again(how, expected, tmp_path):
    out = tmp_path / "run"
    job = divide("race", out)
    compute_all(out)
    part = out / "log" / "shard-00003" / "part-000000.parquet"
    if how == "deleted":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:50])
    if how == "locked":  # and what a killed process leaves
        (part.parent / ".lock").touch()
        (part.parent / ".part-000001.parquet-0123.tmp").write_text("half")
    assert find_states(out).waiting == (3,)
    compute_shard(out, 3, None, never)
    assert find_states(out).complete
    run_work(job, SERIAL)
    assert list_content(out) == expected("race")
    assert not [file for file in out.rglob(".*") if file.is_file()]


def test_a_part_of_a_damaged_log_is_put_aside_by_the_run(expected, tmp_path):
    out = tmp_path / "run"
    job = divide("race", out)
    compute_all(out)
    part = out / "log" / "shard-00003" / "part-000000.parquet"
    part.write_bytes(part.read_bytes()[:50])
    result = run_work(job, SERIAL)
    assert result.execution["damaged"] == ["log/shard-00003/part-000000.parquet"]
    assert list_content(out) == expected("race")


def test_a_damaged_log_of_the_run_keeps_no_shard_from_its_work(tmp_path):
    out = tmp_path / "run"
    job = divide("race", out)
    (out / "log" / "part-000000.parquet").write_text("no table")
    assert count_recorded(job.problem, out) == 0
    compute_all(out)
    assert find_states(out).complete


def test_a_shard_that_is_computed_is_running(tmp_path):
    divide("race", tmp_path)
    shard = ShardFolder(RunFolder(tmp_path).files, 2)
    shard.acquire()
    states = find_states(tmp_path)
    assert (states.running, states.waiting) == ((2,), (1, 3, 4, 5))
    assert states.describe() == "5 shards, 1 running, 4 not computed: 1,3-5"
    with pytest.raises(StoreError, match=r"shard 2 of .* is computed by another process"):
        compute_shard(tmp_path, 2, None, never)
    shard.release()


def test_a_failure_is_no_missing_shard(tmp_path):
    study = Study.paper(k=(3, 5), n_splits=3).with_learner(Choice((NearestCentroid(), Failing())))
    job = check_job(Job(study, blobs(60), tmp_path / "run"))
    divide_run(job.problem, tmp_path / "run", 3)
    failed = [compute_shard(tmp_path / "run", number, None, never) for number in (1, 2, 3)]
    assert sum(failed) == 2 * 3 * job.problem.n_settings // 2  # k, splits, settings
    assert find_states(tmp_path / "run").complete
    run_work(job, SERIAL)
    run_job(Job(study, blobs(60), tmp_path / "single"), SERIAL)
    assert list_content(tmp_path / "run") == list_content(tmp_path / "single")


def test_a_folder_has_the_shards_of_one_study(tmp_path):
    divide("race", tmp_path / "race")
    other = check("holdout", None)
    with pytest.raises(StoreError, match="holds run"):
        divide_run(other.problem, tmp_path / "race", SHARDS)
    divide("holdout", tmp_path / "holdout")
    compute_shard(tmp_path / "holdout", 1, None, never)
    shutil.copytree(tmp_path / "holdout" / "log" / "shard-00001", tmp_path / "race" / "log" / "shard-00001")
    assert find_states(tmp_path / "race").waiting == (1, 2, 3, 4, 5)  # they count as nothing
    shutil.copy(tmp_path / "holdout" / "shards.json", tmp_path / "race")
    with pytest.raises(StoreError, match="has the shards of one study"):
        find_states(tmp_path / "race")


def test_another_number_of_shards_is_refused(tmp_path):
    job = divide("race", tmp_path)
    with pytest.raises(StoreError, match=r"is divided into 5 shards already: give --shards 5"):
        divide_run(job.problem, tmp_path, 6)
    (tmp_path / "shards.json").write_text("{}")  # a damaged plan says nothing
    divide_run(job.problem, tmp_path, 6)
    assert find_states(tmp_path).shards == 6


@pytest.mark.parametrize(
    ("shards", "what"),
    [
        (0, "shards=0 is below 1"),
        (10_001, "shards=10001 is above 10000"),
        (25, "shards=25: the study has 24 paths to fit, counted on every split, .* give 24 or fewer"),
    ],
)
def test_a_number_of_shards_that_cannot_be_is_refused(tmp_path, shards, what):
    with pytest.raises(InputError, match=what):
        divide_run(check("race", None).problem, tmp_path / "run", shards)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [0, 6, -1])
def test_a_shard_that_is_not_there_is_refused(tmp_path, number):
    divide("race", tmp_path)
    with pytest.raises(InputError, match=rf"number={number}: the run in .* has shards 1 to 5"):
        compute_shard(tmp_path, number, None, never)


def test_a_folder_without_shards_is_refused(tmp_path):
    with pytest.raises(StoreError, match="holds no run"):
        find_states(tmp_path)
    run_work(check("race", tmp_path), SERIAL)
    for read in (find_states, lambda out: compute_shard(out, 1, None, never)):
        with pytest.raises(StoreError, match="is not divided into shards: ckcv submit divides"):
            read(tmp_path)


def change_plan(out, change):
    content = json.loads((out / "shards.json").read_text())
    change(content["shards"])
    (out / "shards.json").write_text(json.dumps(content))


@pytest.mark.parametrize("change", [lambda shards: shards.pop(), lambda shards: shards.append([[1, 0, 3]])])
def test_a_plan_of_other_work_is_refused(tmp_path, change):
    divide("race", tmp_path)
    change_plan(tmp_path, change)
    for read in (find_states, lambda out: compute_shard(out, 1, None, never)):
        with pytest.raises(StoreError, match="does not divide the work of the study: repeat the command"):
            read(tmp_path)
    divide("race", tmp_path / "new")


def test_a_budget_is_refused(tmp_path):
    study = CERTIFIED_STUDY.replace(search="budget", effort=300)
    with pytest.raises(InputError, match="cannot be divided into shards"):
        divide_run(check_job(Job(study, blobs(60))).problem, tmp_path / "run", 2)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((1, 2, 3), "1-3"), ((1, 3, 4, 7, 9, 10), "1,3-4,7,9-10")]
)
def test_numbers_as_ranges(numbers, text):
    assert list_ranges(numbers) == text

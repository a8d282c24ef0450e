"""One contract, several backends: whatever the order, the number and the fate of batches, one answer."""

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.data.task import Table, TestRows
from ckcv_ray.engine import evaluate as worker
from ckcv_ray.engine import ray_backend as cluster
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.backend import SerialBackend
from ckcv_ray.engine.estimate import estimate
from ckcv_ray.errors import InputError, RunError, StoreError
from ckcv_ray.learners.svm import SOLVERS
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, run_many, run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Stage, Study, Task, run_id

SERIAL = Execution("serial")
FILES = ("triples.parquet", "certificate.json", "study.json", "data.parquet", "ensemble/models.parquet")


class Unruly(SerialBackend):
    """Keeps several batches waiting, takes them in any order, and hands some of them back twice."""

    name = "unruly"

    def __init__(self, seed: int, window: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.window = window

    def wait(self) -> list[worker.Outcome]:
        self.queue.rotate(int(self.rng.integers(len(self.queue))))
        tasks = self.queue.popleft()
        if len(tasks) > 1 and self.rng.random() < 0.5:
            self.queue.append(tasks[1:])
            tasks = tasks[:1]
        outcome = worker.evaluate(tasks, self.study, self.data)
        outcome = outcome._replace(records=self._shuffled(outcome.records), members=outcome.members[::-1])
        return [outcome] * int(self.rng.integers(1, 3))

    def _shuffled(self, records: worker.Records) -> worker.Records:
        paths = [records[records["gamma"] == gamma] for gamma in np.unique(records["gamma"])]
        order = self.rng.permutation(len(paths))
        return np.concatenate([paths[i] for i in order]) if paths else records


class Failing(SerialBackend):
    """Loses every task that ``doomed`` picks."""

    def __init__(self, doomed: object) -> None:
        self.doomed = doomed

    def wait(self) -> list[worker.Outcome]:
        tasks = self.queue.popleft()
        lost = [task for task in tasks if self.doomed(task)]
        kept = [task for task in tasks if not self.doomed(task)]
        return [
            worker.evaluate(kept, self.study, self.data),
            worker.failed(lost, self.study, "Traceback: the machine caught fire"),
        ]


class Lying(SerialBackend):
    """Changes one count the second time it is asked."""

    def wait(self) -> list[worker.Outcome]:
        (outcome,) = super().wait()
        altered = outcome.records.copy()
        altered["errors_positive"][-1] += 1
        return [outcome, outcome._replace(records=altered)]


def signature(result: Result) -> tuple[object, ...]:
    """Everything that must be equal in every bit."""
    members = [
        (m.mc_index, m.C, m.gamma, m.errors, m.offset, m.dual_coef.tobytes(), m.support.tobytes())
        for m in result.ensemble.members
    ]
    certificate = result.certificate.to_json()
    certificate.pop("digests")
    return result.triples.to_pydict(), members, certificate


def files(folder: Path) -> dict[str, bytes]:
    pickles = sorted(file.relative_to(folder).as_posix() for file in folder.glob("ensemble/*.pkl"))
    return {name: (folder / name).read_bytes() for name in (*FILES, *pickles)}


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("workers", [1, 3])
def test_ray_equals_serial_in_every_byte(
    ray_session: None, tmp_path: Path, workers: int, scaling: str
) -> None:
    study = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5, scaling=scaling, report_k=(5,))
    table = blobs(36)
    run_table(study, table, tmp_path / "serial", Execution("serial"))
    run_table(study, table, tmp_path / "ray", Execution("ray", workers))
    assert files(tmp_path / "serial") == files(tmp_path / "ray")
    assert verify(tmp_path / "ray").differences == []


@given(seed=st.integers(0, 10**6), window=st.integers(1, 9))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_order_repetition_and_batching_change_nothing(seed: int, window: int) -> None:
    study = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=4, seed=seed % 7, report_k=(4,))
    table = blobs(24, seed=seed % 5)
    quiet = run_table(study, table, execution=Execution("serial"))
    noisy = run_table(study, table, backend=Unruly(seed, window))
    assert signature(quiet) == signature(noisy)


def test_a_record_that_changes_stops_the_run(study: Study, table: Table, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not deterministic"):
        run_table(study, table, tmp_path / "run", backend=Lying())


def test_a_failed_path_is_recorded_and_the_rest_completes(study: Study, table: Table, tmp_path: Path) -> None:
    def doomed(task: Task) -> bool:
        return task.stage is Stage.SELECT and task.mc_index == 2 and task.k == 3

    result = run_table(study, table, tmp_path / "run", backend=Failing(doomed))
    states = result.triples.to_pydict()["state"]
    assert result.execution["cells"]["failed"] >= 6  # and what can no longer be reached behind them
    assert result.certificate.provisional == ("failed" in states)
    assert "machine caught fire" in result.execution["failures"][0][-1]
    cells = result.execution["cells"]
    assert cells["planned"] == cells["computed"] + cells["dropped"] + cells["failed"]
    again = run_table(study, table, tmp_path / "run")
    assert signature(again) == signature(result)


def test_what_failed_is_tried_again_on_resume(study: Study, table: Table, tmp_path: Path) -> None:
    """A batch lost to a broken machine must not decide the result of a run taken up on a sound one."""
    with pytest.raises(RunError):
        run_table(study, table, tmp_path / "run", backend=Failing(lambda task: True))
    resumed = run_table(study, table, tmp_path / "run", Execution("serial"))
    assert signature(resumed) == signature(run_table(study, table, execution=Execution("serial")))
    assert resumed.execution["failures"] == []
    assert resumed.execution["cells"]["failed"] == 0


def test_failures_that_are_provably_beaten_leave_the_certificate_whole() -> None:
    table = blobs(30, shift=4.0)
    study = Study(C=(1.0,), gamma=(1e-6, 1.0), k=(3,), n_splits=5)
    whole = run_table(study, table, execution=Execution("serial"))
    loser = next(g for g, gamma in enumerate(study.gamma) if gamma != whole.gamma)

    class LosesLast(SerialBackend):
        def wait(self) -> list[worker.Outcome]:
            (outcome,) = super().wait()
            records = outcome.records
            last = (records["mc_index"] == 4) & (records["gamma"] == study.gamma[loser])
            if not last.any():
                return [outcome]
            task = Task(Stage.SELECT, 3, 4, ((loser, 1),))
            return [outcome._replace(records=records[~last]), worker.failed([task], study, "lost")]

    result = run_table(study, table, backend=LosesLast())
    assert not result.certificate.provisional
    assert result.l_ms == whole.l_ms


def test_when_everything_fails_the_run_says_why(study: Study, table: Table) -> None:
    with pytest.raises(RunError, match=r"no triple could be completed(.|\n)*caught fire"):
        run_table(study, table, backend=Failing(lambda task: True))


def test_when_the_winner_cannot_be_refitted_the_run_says_why(study: Study, table: Table) -> None:
    with pytest.raises(RunError, match=r"could not be refitted(.|\n)*caught fire"):
        run_table(study, table, backend=Failing(lambda task: task.stage is Stage.REFIT))


def test_a_solver_that_raises_is_data_not_a_crash(
    study: Study, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise FloatingPointError("the matrix is a pineapple")

    monkeypatch.setitem(SOLVERS, study.solver, broken)
    task = Task(Stage.SELECT, 3, 0, ((0, 3), (1, 2)))
    outcome = worker.evaluate([task], study, worker.share(table.X, table.y, study))
    assert not len(outcome.records)
    assert [(f.path.gamma, f.first, f.stop) for f in outcome.failures] == [(0.1, 0, 3), (1.0, 0, 2)]
    assert all("pineapple" in failure.traceback for failure in outcome.failures)


def test_whether_a_cell_fails_depends_on_its_key_alone(
    study: Study, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that raises at its largest C keeps the counts of the others, as a shorter path would."""
    sound = SOLVERS[study.solver]

    def fragile(M: object, y: object, C_values: tuple[float, ...], *rest: object) -> object:
        if C_values[-1] > 1.0:
            raise FloatingPointError("C is too large")
        return sound(M, y, C_values, *rest)

    monkeypatch.setitem(SOLVERS, study.solver, fragile)
    data = worker.share(table.X, table.y, study)
    whole = worker.evaluate([Task(Stage.SELECT, 3, 0, ((0, 3),))], study, data)
    short = worker.evaluate([Task(Stage.SELECT, 3, 0, ((0, 2),))], study, data)
    assert np.array_equal(whole.records, short.records)
    assert not short.failures
    assert [(f.first, f.stop) for f in whole.failures] == [(2, 3)]


def test_a_batch_ray_gives_up_on_becomes_failures(ray_session: None, study: Study, table: Table) -> None:
    """Sent again, then halved, until each path has failed by itself."""

    @ray.remote(max_retries=0)
    def dying(tasks: list[Task], study: Study, data: worker.LearningSet) -> None:
        os._exit(1)

    backend = cluster.RayBackend(1)
    try:
        aggregator = backend.start(study, table, None)
        backend._task = dying
        backend.submit([Task(Stage.SELECT, 3, 0, ((0, 3), (1, 2)))])
        while backend.in_flight():
            for outcome in backend.wait():
                aggregator.add(outcome)
        assert sorted((f.first, f.stop) for f in aggregator.failures()) == [(0, 2), (0, 3)]
    finally:
        backend.close()


def test_an_error_in_the_actor_arrives_as_it_was_raised(
    ray_session: None, study: Study, table: Table, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    with pytest.raises(StoreError, match="in use by another run"):
        run_table(study, table, tmp_path / "run", Execution("ray", 1))
    folder.release()


def test_an_address_where_nobody_answers_is_refused_at_once() -> None:
    for address, told in (("127.0.0.1:1", "no Ray cluster answers"), ("nonsense", "expected host:port")):
        with pytest.raises(InputError, match=told):
            cluster._reach(address)


def test_a_relative_folder_is_the_drivers(
    ray_session: None, study: Study, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator's process has another working directory."""
    monkeypatch.chdir(tmp_path)
    run_table(study, table, Path("rel/run"), Execution("ray", 1))
    assert (tmp_path / "rel" / "run" / "manifest.json").exists()


def test_a_ray_of_our_own_listens_on_loopback_alone_and_keeps_its_token(tmp_path: Path) -> None:
    script = (
        "from ckcv_ray.engine.backend import _reachable, make_backend; from ckcv_ray.study import Execution\n"
        "_reachable(Execution('ray', 1))\n"  # says to Ray what it reads when it is imported
        "from ray._private import worker\n"
        "worker.enable_token_auth_by_default = lambda: False\n"  # as earlier versions of Ray
        "backend = make_backend(Execution('ray', 1), 0.0)\n"
        "import ray\n"
        "told = {node['NodeManagerAddress'] for node in ray.nodes()}\n"
        "told.add(ray.get_runtime_context().gcs_address.split(':')[0])\n"
        "from ray._private.authentication.authentication_utils import is_token_auth_enabled\n"
        "backend.close(); print(*told, is_token_auth_enabled())"
    )
    plain = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    plain["HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", script], env=plain, capture_output=True, text=True)
    assert done.stdout.split() == ["127.0.0.1", "True"], done.stderr
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o777 == 0o600


def test_the_token_is_never_readable_to_others_and_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / ".ray" / "auth_token"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    before = os.umask(0)
    try:
        cluster._keep_token()
    finally:
        os.umask(before)
    assert token.parent.stat().st_mode & 0o777 == 0o700
    assert (token.stat().st_mode & 0o777, len(token.read_text())) == (0o600, 64)
    token.write_text("one of the user's own")
    token.chmod(0o644)
    cluster._keep_token()
    assert (token.stat().st_mode & 0o777, token.read_text()) == (0o600, "one of the user's own")
    assert list(token.parent.iterdir()) == [token]
    assert "RAY_AUTH_TOKEN_PATH" not in os.environ


@pytest.fixture
def own_token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No token of the environment before or after."""
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")
    cluster._own_token.cache_clear()
    yield
    cluster._own_token.cache_clear()


@pytest.mark.parametrize("home", [None, "", "/dev/null", "/proc", "/no/such/home", "with a file"])
def test_without_a_home_the_token_is_kept_in_a_private_folder(
    home: str | None, tmp_path: Path, own_token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ray").write_text("no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", str(tmp_path) if home == "with a file" else home)
    before = os.umask(0)
    try:
        cluster._keep_token()
    finally:
        os.umask(before)
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert [one.stat().st_mode & 0o777 for one in (token.parent, token)] == [0o700, 0o600]
    assert token.parent.parent == tmp_path
    assert len(token.read_text()) == 64


def test_with_no_place_at_all_for_the_token_it_says_how_to_go_on(
    own_token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**options: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setattr(cluster, "mkdtemp", full)
    with pytest.raises(
        InputError, match=r"HOME='/dev/null' cannot keep .*No space left.* set HOME or TMPDIR"
    ):
        cluster._keep_token()


UNKNOWN = """
import pathlib, sys
def home():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = home
from ckcv_ray.cli.main import main
main()
"""


@pytest.mark.parametrize("home", ["with a file", "of an unknown user"])
def test_a_run_on_ray_needs_no_home(home: str) -> None:
    """And nothing of it is left: no process, no token."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="h") as folder:  # short: Ray's sockets lie within
        run_homeless(home, Path(folder))


def run_homeless(home: str, tmp_path: Path) -> None:
    (tmp_path / ".ray").write_text("no folder")
    mark = f"CKCV_HOMELESS={tmp_path}"
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "HOME"))}
    plain |= dict([mark.split("=")]) | {"TMPDIR": str(tmp_path)}
    plain |= {"HOME": str(tmp_path)} if home == "with a file" else {}
    words = ["run", "twonorm:60:0", "--k", "3,4", "--n-splits", "2", "--C", "1", "--gamma", "0.1"]
    options = ["--backend", "ray", "--workers", "1", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-c", UNKNOWN, *words, *options],
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
        umask=0,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "best triple" in done.stdout
    kept = {".cache"} if home == "with a file" else set()  # the compiled solver
    assert {file.name for file in tmp_path.iterdir()} == {".ray", "ray", "run", *kept}
    assert not left_of(mark)


def left_of(mark: str, seconds: float = 20.0) -> list[str]:
    """Processes that have this in their environment, once they had time to end."""
    until = time.monotonic() + seconds
    while (left := [p.parent.name for p in Path("/proc").glob("[0-9]*/environ") if mark in of(p)]) and (
        time.monotonic() < until
    ):
        time.sleep(0.1)
    return left


def of(environ: Path) -> list[str]:
    try:
        return environ.read_text(errors="replace").split("\0")
    except OSError:  # it ended meanwhile
        return []


def test_a_refused_run_leaves_no_trace(study: Study, table: Table, tmp_path: Path) -> None:
    holder = RunFolder(tmp_path / "run")
    holder.acquire()
    before = sorted(file.name for file in (tmp_path / "run").rglob("*"))
    with pytest.raises(StoreError, match="in use"):
        run_table(study, table, tmp_path / "run", Execution("serial"))
    assert sorted(file.name for file in (tmp_path / "run").rglob("*")) == before
    holder.release()


def test_a_run_killed_as_it_began_goes_on(study: Study, table: Table, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.acquire()
    folder.begin(study, table, run_id(study.for_rows(table.n), table.digest))
    (tmp_path / "run" / "study.json").unlink()
    (tmp_path / "run" / "cells" / ".part-000000.parquet-x.tmp").write_text("half")
    folder.release()
    run_table(study, table, tmp_path / "run", Execution("serial"))
    assert not list((tmp_path / "run").rglob(".*"))


def test_the_trial_is_not_computed_again(study: Study, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckcv_ray.engine.estimate.TRIAL_SECONDS", 0.0)
    expected = estimate(study, table)
    tried = set(expected.outcome.records[["gamma", "k", "mc_index"]].tolist())
    assert tried == {(study.gamma[0], 3, 0)}
    aggregator = Aggregator(study, table)
    aggregator.add(expected.outcome)
    tasks = [task for _ in range(50) for task in aggregator.plan(1)]
    planned = {(study.gamma[g], task.k, task.mc_index) for task in tasks for g, _ in task.paths}
    assert (study.gamma[1], 3, 0) in planned
    assert not tried & planned


def test_a_trial_that_decides_all_leaves_nothing_but_the_refits(study: Study, table: Table) -> None:
    expected = estimate(study, table)
    aggregator = Aggregator(study.for_rows(table.n), table)
    aggregator.add(expected.outcome)
    assert aggregator.forecast() == 0
    assert 0 < expected.seconds < expected.outcome.seconds
    whole, tried = run_table(study, table, execution=SERIAL), run_table(study, table, expected=expected)
    assert signature(tried) == signature(whole)


# Many studies


def many(tmp_path: Path | None) -> list[Job]:
    """Studies of several sizes; one holds rows out, one reports a k."""
    studies = [
        Study(C=(0.1, 1.0), gamma=(0.1, 1.0), n_splits=4, seed=seed, k=(3, 4, 5), report_k=(5,))
        for seed in range(5)
    ]
    studies[2] = Study(C=(1.0,), gamma=(1.0,), n_splits=3, protocol="holdout")
    tables = [blobs(30 + 4 * seed, seed=seed) for seed in range(5)]
    rows = [TestRows(table.X[::2], table.y[::2]) for table in tables]
    outs = [tmp_path / str(i) if tmp_path else None for i in range(5)]
    return [Job(*job) for job in zip(studies, tables, outs, rows, strict=True)]


@pytest.mark.usefixtures("ray_session")
def test_many_studies_give_what_each_gives_alone(tmp_path):
    alone = [run_table(j.study, j.table, execution=SERIAL, test=j.test) for j in many(None)]
    serial = list(run_many(many(None), SERIAL))
    together = list(run_many(many(tmp_path), Execution("ray")))
    again = list(run_many(many(tmp_path), Execution("ray")))
    for results in (serial, together, again):
        for mine, theirs in zip(results, alone, strict=True):
            assert mine.triples.equals(theirs.triples)
            assert mine.certificate.proven == theirs.certificate.proven
            assert mine.execution["test"] == theirs.execution["test"]
    assert [verify(tmp_path / str(i)).differences for i in range(5)] == [[]] * 5
    told = alone[0].execution["test"]
    assert set(told["reported"]) == {"5"}
    assert 0 <= told["reported"]["5"]["error"] <= 1


@pytest.mark.usefixtures("ray_session")
def test_a_job_that_fails_stops_the_others_and_keeps_what_is_done(tmp_path):
    jobs = many(tmp_path)
    jobs[1] = jobs[1]._replace(study=Study(k=(99,)))
    with pytest.raises(InputError, match="k=99"):
        list(run_many(iter(jobs), Execution("ray")))
    jobs[1] = many(tmp_path)[1]
    assert [result.run_id for result in run_many(jobs, Execution("ray"))] == [
        run_table(j.study, j.table, execution=SERIAL).run_id for j in jobs
    ]

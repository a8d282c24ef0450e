"""Shared fixtures: one Ray for the session, small tasks, the IDA archive if available, the command line."""

import functools
import gc
import os
import re
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # before ray is imported: loopback only
# Else the workers of Ray wait for whatever the other tests compute.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
os.environ["RAY_metrics_report_interval_ms"] = "1000"  # noqa: SIM112  # by itself, each 10 seconds
os.environ["OMP_NUM_THREADS"] = "1"  # else the threads of small fits keep the processors from the other tests
# Inherited by the processes of our Ray, so that test sessions can run in parallel.
os.environ["CKCV_TESTS"] = str(os.getpid())
# For workers and other processes, which import a learner from there.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(__file__).parent / "contracts"), os.environ.get("PYTHONPATH")))
)

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from durations import LIMITS, Clock, Durations
from pyarrow import csv
from xdist.scheduler import LoadFileScheduling

from ckcv_ray.cli import main as cli
from ckcv_ray.learners import base
from ckcv_ray.learners.sklearn.learner import BOOSTING
from ckcv_ray.reports.facts import facts
from ckcv_ray.runs.result import Result
from ckcv_ray.study.study import Study
from ckcv_ray.tables.task import Task

pytest.register_assert_rewrite("learner_contract")
pytest_plugins = ["finished", "forgery", "stores"]  # of finished runs, copies of them, and object stores
FOLDER = Path(__file__).parent
DAY_EXAMPLES = 15  # of a property of hypothesis, by day
Ran = tuple[int, str, str]
Command = Callable[..., Ran]  # the command line: see ckcv
register_once = functools.cache(base.register_installed)  # it reads the metadata of all packages

# Learners whose libraries only nights have.
NOT_INSTALLED = {name for kind in BOOSTING if not find_spec((name := kind.name).partition("_")[0])}


LONG = {Path(file).stem for file in tomllib.loads(LIMITS.read_text())["tests"]}  # may take long by day
# Slow folders and files of which it is counted what they cover, which doubles their time.
COUNTED = {"golden", "reports", "runs", "test_estimator", "test_formats", "test_spec", "test_stores"}
# Those that start processes, compile, make whole runs, or check a property at length: not for --quick.
SLOW = {
    *LONG,
    *COUNTED,
    *("acceptance", "cli", "jobs", "paper", "test_added_claim", "test_better", "test_boosting_libraries"),
    *("test_column_types", "test_folder", "test_forgeries", "test_gallery", "test_loop"),
    *("test_machine_code", "test_nystroem", "test_paths", "test_refusals", "test_resamplings"),
    *("test_second_learner", "test_svm", "test_weights"),
}


@functools.cache
def needs_ray(file: Path) -> bool:
    """Return whether a file has tests that need Ray: they come first, in one process, which then ends Ray."""
    return file.is_file() and re.search("ray_session|LearnerContract", file.read_text()) is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, text in {
        "--quick": "leave out the tests that are marked slow",
        "--long": "run the long code blocks of the documentation in full",
        "--night": "run the tests of tests/night.txt as well; --long does so",
    }.items():
        parser.addoption(option, action="store_true", help=text)
    parser.addoption(
        "--durations-file", type=Path, help="add how long each test takes to this file, the longest first"
    )


def read_names(file: str) -> list[str]:
    """Return the tests that a list names, one per line; a line that begins with # says why."""
    return [line for line in (FOLDER / file).read_text().splitlines() if not line.startswith("#")]


COLLECTED = pytest.StashKey[set[str]]()  # all tests of the files that were collected
NIGHT = {*read_names("night.txt")} - {*read_names("day.txt")}  # what jobs/check leaves to the night


hypothesis.settings.register_profile("night", deadline=None)  # times depend on what else the machine does
hypothesis.settings.register_profile("day", deadline=None, max_examples=DAY_EXAMPLES)
hypothesis.settings.load_profile("day")


def limit_examples(number: int) -> int:
    """Return how many examples to try for a property with its own number of them: by day, few."""
    by_day = hypothesis.settings.get_current_profile_name() == "day"
    return min(number, DAY_EXAMPLES) if by_day else number


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background, or by nohup, a process ignores them, and so do those that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.freeze()  # what is imported stays: looking through it for garbage takes a twentieth of the time
    gc.set_threshold(50_000, 20, 50)
    config.addinivalue_line("markers", "slow: takes long; left out by --quick")
    config.addinivalue_line("markers", "night: a code block or an acceptance case that is not run by day")
    if is_night(config) and not config.getoption("--hypothesis-profile"):
        hypothesis.settings.load_profile("night")
    if file := config.getoption("--durations-file"):
        config.pluginmanager.register(Clock())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Durations(file, by_day=not is_night(config)))


def is_night(config: pytest.Config) -> bool:
    """Return whether all tests run, and properties are tried on as many examples as usual."""
    return bool(config.getoption("--night") or config.getoption("--long"))


class ByFileOrPage(LoadFileScheduling):
    """Gives a process whole files, since a file's tests share what they make; for the documentation, pages.

    One process gets all files that need Ray.
    """

    def _split_scope(self, nodeid: str) -> str:
        if needs_ray(FOLDER.parent / nodeid.partition("::")[0]):
            return "ray"
        page = re.search(r"test_documentation\.py::.*\[(.+\.md)", nodeid)
        return page[1] if page else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return ByFileOrPage(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the files that --quick leaves out as a whole."""
    return True if config.getoption("--quick") and SLOW & _parts(collection_path) else None


def _parts(path: Path) -> set[str]:
    """Return the names of the folders and of the file."""
    return set(path.relative_to(FOLDER).with_suffix("").parts)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need Ray, and those named above; files with Ray come first, then slow ones.

    Processes that share the files (``jobs/check``) then end at about the same time. Tests marked night
    are left out by day, those marked slow by --quick.
    """
    for item in items:
        parts, ray_is_used = _parts(item.path), "ray_session" in getattr(item, "fixturenames", ())
        if ray_is_used and not needs_ray(item.path):
            raise pytest.UsageError(
                f"{item.path.name} needs Ray, which needs_ray in tests/conftest.py overlooks"
            )
        if (SLOW - COUNTED) & parts or ray_is_used:
            item.add_marker(pytest.mark.no_cover)
        if SLOW & parts or ray_is_used:
            item.add_marker(pytest.mark.slow)
    config.stash[COLLECTED] = {item.nodeid for item in items}
    if not is_night(config):
        _deselect(config, items, lambda item: item.nodeid in NIGHT or item.get_closest_marker("night"))
    if config.getoption("--quick"):
        _deselect(config, items, lambda item: item.get_closest_marker("slow"))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not needs_ray(item.path), item.path not in slow))


@pytest.hookimpl(trylast=True)  # fixtures end first
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Ray after the last file that needs it: idle, it takes a tenth of a processor."""
    if needs_ray(item.path) and not (nextitem and needs_ray(nextitem.path)):
        _end_ray()


def _end_ray() -> None:
    if ray := sys.modules.get("ray"):
        ray.shutdown()


def _deselect(config: pytest.Config, items: list[pytest.Item], leaves: Callable[[pytest.Item], Any]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if leaves(item)])
    items[:] = [item for item in items if not leaves(item)]


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    import ray  # here, since other tests need not wait for it

    options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    ray.init(address="local", num_cpus=3, _node_ip_address="127.0.0.1", **options)
    yield
    _end_ray()


@pytest.fixture(scope="session")
def ida() -> Path:
    archive = os.environ.get("CKCV_IDA", "")
    if not archive.endswith(".npz"):
        pytest.skip("CKCV_IDA does not name the IDA archive (.npz)")
    return Path(archive)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder for the cache, with no archive named in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.delenv("CKCV_IDA", raising=False)
    return tmp_path / "home"


def tell(result: Result) -> dict[str, str]:
    """What a result tells, by the names of facts; the first of several with one name."""
    told = [fact for section in facts(result) for fact in section.facts]
    return {fact.name: fact.text for fact in reversed(told)}


def unwrap(text: str) -> str:
    """Return wrapped text as one line."""
    return " ".join(text.split())


def blobs(n: int, d: int = 2, seed: int = 0, shift: float = 1.0) -> Task:
    """Draw two overlapping clouds, with both classes present."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n, d)))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return Task.of(rng.normal(size=(n, d)) + shift * y[:, None] / 2, y)


@pytest.fixture
def task() -> Task:
    return blobs(30)


@pytest.fixture
def study() -> Study:
    return Study.paper(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5)


def call(*words: object) -> int:
    """Run a command in this process, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "register_installed", register_once)
        patch.setattr(sys, "argv", ["ckcv", *map(str, words)])
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


@pytest.fixture
def ckcv(capfd: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process: arguments to exit code, standard output and standard error."""

    def call_captured(*words: object) -> Ran:
        capfd.readouterr()
        return (call(*words), *capfd.readouterr())

    return call_captured


def draw_patients() -> pa.Table:
    """Draw 40 rows with text labels."""
    drawn = blobs(40, seed=3, shift=2.0)
    names = pa.array(np.where(drawn.y == 1, "well", "ill"))
    return pa.table({"age": drawn.X[:, 0], "dose, mg": drawn.X[:, 1], "outcome": names})


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    """A CSV of the patients."""
    csv.write_csv(draw_patients(), tmp_path / "patients.csv")
    return tmp_path / "patients.csv"


@pytest.fixture
def patients_run(finished: Callable[..., Path], tmp_path: Path) -> Path:
    """A finished run on the patients."""
    return finished("patients", to=tmp_path)


def snapshot(*folders):
    """Every file and folder under these, with its size and the time of its last change."""
    found = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}

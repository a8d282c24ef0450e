"""Run folders made to attack whoever opens them: read under an audit hook, in which nothing may happen.

Each folder comes from an honest run in which one to three things were replaced: the study by one that names
other classes, caches, functions or sizes, models by files of other types, pickles by some that run commands,
files by links. All digests and names agree again, as a careful forger sees to. A process that has read an
honest folder of each kind then reads them as ``status``, ``report``, ``predict`` and ``load_run`` do: nothing
may be imported, executed, unpickled, fitted, written, or opened outside the folder; whatever is not read is
refused by one of the package's errors, in bounded time and memory.

    python -m jobs.faults.hostile --folders 1000
"""

import functools
import hashlib
import json
import operator
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import skops.io
import typer
from joblib import Memory
from pyarrow import parquet
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from ckcv_ray import Execution, Study, evaluate, load_run, run
from ckcv_ray.errors import CKCVError
from ckcv_ray.learners.sklearn import store
from ckcv_ray.learners.sklearn.spec import LIBRARIES, MODULES
from ckcv_ray.reports.render import make_page
from ckcv_ray.runs.finished import load_scores, replay

SECONDS, MAX_BYTES = 30, 2 << 30  # per folder; memory besides what the process has
HUGE = 10**9
SERIAL = Execution("serial")
Change = Callable[[np.random.Generator, Path, Path], None]


class Neighbour(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Looks like a nearest-neighbour estimator, with a fit that writes a file."""

    _tree = None

    def __init__(self, place: str = "") -> None:
        self.place, self._fit_X, self._y, self.classes_ = place, np.zeros((2, 2)), np.arange(2), np.arange(2)
        self.n_features_in_ = 2

    def fit(self, X: Any, y: Any) -> "Neighbour":
        """Write a file."""
        Path(self.place).touch()
        return self

    def predict(self, X: Any) -> Any:
        """Write a file."""
        return self.fit(X, None)


class Shell:
    """Runs a command when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        """Return the command."""
        return os.system, (f"touch {self.place}",)


def make_honest(root: Path) -> list[Path]:
    """Make the folder of an honest run of each kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=36) > 0, "b", "a")
    few = {"k": (3,), "n_splits": 2}
    steps = make_pipeline(StandardScaler(), LogisticRegression())
    functions = make_pipeline(FunctionTransformer(np.square), SelectKBest(k=1), LogisticRegression())
    studies = {
        "svm": Study.paper(C=(1.0, 10.0), gamma=(0.1,), **few),
        "estimator": Study.paper(learner=steps, param={"C": (0.1, 1.0)}, **few),
        "functions": Study.paper(learner=functions, param={"C": (0.1, 1.0)}, **few),
        "forest": Study.paper(learner="forest", param={"n_estimators": (2, 3)}, **few),
        "neighbors": Study.paper(learner="neighbors", param={"n_neighbors": (1, 3)}, **few),
        "boosting": Study.paper(learner="boosting", param={"max_iter": (2,), "max_leaf_nodes": (3,)}, **few),
        "held": Study.paper(learner="linear", param={"C": (1.0,)}, certify="holdout", **few),
    }
    for name, study in studies.items():
        run(study, X, y, out=root / name, execution=SERIAL)
    evaluate(X, y, out=root / "scores", execution=SERIAL, learner=steps, resampling="kfold:3")
    return [*(root / name for name in studies), root / "scores"]


def list_specs(place: Path) -> list[Any]:
    """Return estimators in JSON that no study may hold."""
    logistic = {"class": "sklearn.linear_model:LogisticRegression"}
    steps = [["one", {"class": "sklearn.preprocessing:StandardScaler"}], ["two", logistic]]

    def pipeline(**params: Any) -> Any:
        return {"class": "sklearn.pipeline:Pipeline", "params": {"steps": steps, **params}}

    def grid(**params: Any) -> Any:
        asked = {"estimator": pipeline(), "param_grid": {"two__C": [1.0]}, **params}
        return {"class": "sklearn.model_selection:GridSearchCV", "params": asked}

    def with_step(path: str, **params: Any) -> Any:
        return pipeline(steps=[["odd", {"class": path, "params": params}], ["two", logistic]])

    command = f"__import__('os').system('touch {place}')"
    deep: Any = logistic
    for _ in range(60):
        deep = {"class": "sklearn.ensemble:BaggingClassifier", "params": {"estimator": deep}}
    return [
        pipeline(memory=str(place)),
        pipeline(memory={"class": "joblib:Memory", "params": {"location": str(place)}}),
        pipeline(memory="."),
        grid(pre_dispatch=command),
        grid(param_grid={"memory": [str(place)]}),
        grid(scoring={"class": "os:system"}),
        with_step("sklearn.preprocessing:FunctionTransformer", func={"class": "os:system"}),
        with_step("sklearn.preprocessing:FunctionTransformer", func="os.system"),
        *(
            with_step("sklearn.preprocessing:FunctionTransformer", func=name)
            for name in ("os:system", "numpy:load", "numpy:log1p.__call__", "evil_module:evil")
        ),
        with_step("sklearn.feature_selection:SelectKBest", score_func="builtins:eval"),
        with_step(
            "sklearn.preprocessing:FunctionTransformer",
            func="numpy:log1p",
            kw_args={"out": str(place)},
        ),
        {"class": "sklearn.linear_model:LogisticRegression", "params": {"C": "numpy:exp"}},
        grid(param_grid={"two__C": ["os:system"]}),
        with_step("sklearn.preprocessing:PolynomialFeatures", degree=HUGE),
        with_step("sklearn.feature_extraction.text:CountVectorizer", input="filename"),
        with_step("sklearn.kernel_approximation:PolynomialCountSketch", n_components=HUGE),
        with_step("sklearn.cluster:FeatureAgglomeration", memory=str(place)),
        with_step("sklearn.feature_selection:RFE", importance_getter="__class__"),
        {"class": "subprocess:Popen", "params": {"args": ["touch", str(place)]}},
        {"class": "os:system", "params": {"command": f"touch {place}"}},
        {"class": "evil_module:Evil"},
        {"class": "lightgbm.sklearn:LGBMClassifier"},
        {"class": "sklearn.evil_module:Evil"},
        {"class": "sklearn.datasets:fetch_openml"},
        {"class": "sklearn.experimental.enable_halving_search_cv:HalvingGridSearchCV"},
        {"class": "sklearn.linear_model:LogisticRegression.__init__"},
        {"class": "sklearn.ensemble:RandomForestClassifier", "params": {"n_estimators": HUGE}},
        {"class": "sklearn.ensemble:RandomForestClassifier", "params": {"n_jobs": HUGE}},
        {"class": "sklearn.neural_network:MLPClassifier", "params": {"hidden_layer_sizes": [HUGE, HUGE]}},
        {"class": "sklearn.neighbors:KNeighborsClassifier", "params": {"metric": "pyfunc"}},
        {"class": "sklearn.ensemble:StackingClassifier", "params": {"estimators": [["memory", pipeline()]]}},
        deep,
    ]


def list_spaces(place: Path) -> list[Any]:
    """Return search spaces that set what no study may set, or that are large."""
    return [
        {"memory": [str(place)]},
        {"logisticregression__solver": ["__import__('os')"]},
        {"steps": [["passthrough"]]},
        {"max_iter": [HUGE]},
        {"C": [1.0] * 5000},
        {"C": "loguniform:1e-300:1e300"},
        {"standardscaler": [str(place)]},
        {f"C{'_' * 500}": [1.0]},
    ]


def list_models(place: Path) -> list[Any]:
    """Return objects that are not fitted estimators, or not as a fit leaves them."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    fitted = LogisticRegression().fit(X, y)
    odd, machine, powers = (kind().fit(X, y) for kind in (LogisticRegression, SVC, PolynomialFeatures))
    odd.coef_ = functools.partial(os.system, f"touch {place}")
    listed = LogisticRegression().fit(X, y)
    listed.coef_ = np.exp
    machine._dual_coef_ = machine._dual_coef_[:, :1]
    powers.degree = HUGE
    return [
        Neighbour(str(place)),
        functools.partial(os.system, f"touch {place}"),
        operator.methodcaller("system", f"touch {place}"),
        odd,
        listed,
        machine,
        make_pipeline(powers, fitted),
        make_pipeline(StandardScaler().fit(X), fitted, memory=Memory(str(place), verbose=0)),
        make_pipeline(FunctionTransformer(os.system), fitted),
        make_pipeline(FunctionTransformer(np.load), fitted),
        make_pipeline(FunctionTransformer(functools.partial(np.exp, out=None)), fitted),
        fitted.predict,
        subprocess.Popen,
        np.random.default_rng(0),
        [fitted] * 3,
        fitted,
    ]


def put_study(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Replace the learner of the study, and name the run after what it is now."""
    content = json.loads((folder / "study.json").read_text())
    kind = "study" if "study" in content else "procedure"
    learner = content[kind]["learner"]
    specs, spaces = list_specs(place), list_spaces(place)
    if rng.random() < 0.7:
        learners = [{"name": "estimator", "estimator": spec} for spec in specs]
        learners += [{"name": library} for library in LIBRARIES]
        learner = learners[rng.integers(len(learners))]
    if rng.random() < 0.4:
        learner["param"] = spaces[rng.integers(len(spaces))]
    content[kind]["learner"] = learner
    seal_study(folder, content, kind)


def put_sizes(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Ask for more splits, folds, candidates or rows than anybody could compute."""
    content = json.loads((folder / "study.json").read_text())
    kind = "study" if "study" in content else "procedure"
    sizes = [
        {"resampling": {"name": "complete", "k": None, "n_splits": HUGE}},
        {"resampling": {"name": "complete", "k": [3], "n_splits": HUGE}},
        {"resampling": {"name": "complete", "k": [3], "n_splits": 1 << 20}},
        {"resampling": {"name": "kfold", "folds": HUGE, "remainder": "spread", "stratify": False}},
        {"resampling": {"name": "repeated_kfold", "folds": 3, "repeats": HUGE, "stratify": False}},
        {"resampling": {"name": "bootstrap", "times": HUGE}},
        {"certify": {"name": "holdout", "holdout_share": 1e-300}},
        {"search": {"name": "race", "report_k": list(range(3, 36)), "exhaustive": False}},
        {"seed": 10**38},
        {"learner": {"name": "choice", "learners": [content[kind]["learner"]] * 2000}},
    ]
    content[kind] |= sizes[rng.integers(len(sizes))]
    seal_study(folder, content, kind)


def seal_study(folder: Path, content: dict[str, Any], kind: str) -> None:
    """Write a study, and name the run after it in every file."""
    text = json.dumps({kind: content[kind], "data": content["data"]}, sort_keys=True, separators=(",", ":"))
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    content["run_id"] = name
    (folder / "study.json").write_text(json.dumps(content, indent=2) + "\n")
    for file in folder.rglob("*.parquet"):
        if not file.is_symlink():
            table = parquet.read_table(file)
            table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"run_id": name.encode()})
            parquet.write_table(table, file)
    if (folder / "certificate.json").exists():
        put_json(folder / "certificate.json", lambda content: content.update(run_id=name))


def put_json(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content, indent=2) + "\n")


def put_models(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Replace fitted estimators, or what a file of one says of its types."""
    for file in sorted((folder / "ensemble").glob("*.parquet")):
        table = parquet.read_table(file)
        if "estimator" not in table.column_names:
            continue
        contents = table["estimator"].to_pylist()
        if rng.random() < 0.7:
            models = list_models(place)
            content = skops.io.dumps(models[rng.integers(len(models))])
            with suppress(ValueError):
                content = store._canonical(content)
        else:
            words = [(b"sklearn", b"evil_module"), (b"ObjectNode", b"MethodNode"), (b"numpy", b"subprocess")]
            content = contents[0].replace(*words[rng.integers(len(words))])
        at = table.column_names.index("estimator")
        column = pa.array([content, *contents[1:]], table.schema.field(at).type)
        parquet.write_table(table.set_column(at, table.schema.field(at), column), file)


def put_columns(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Replace a value of a table, or drop, repeat or mix its columns and rows."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file() and not file.is_symlink())
    file = files[rng.integers(len(files))]
    table = parquet.read_table(file)
    at, rows = int(rng.integers(table.num_columns)), np.arange(table.num_rows)
    field, column = table.schema.field(at), table.column(at)
    odd = [None, -1, 99, HUGE, 2**63 - 1, 1e308, float("nan"), "", "x" * 3000, str(place), [], [-1] * 99]
    values = np.where(rows == rng.integers(max(1, len(rows))), rng.integers(len(odd)), -1).tolist()
    changed = [odd[i] if i >= 0 else value for i, value in zip(values, column.to_pylist(), strict=True)]
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        changes = (
            lambda: table.set_column(at, field, pa.array(changed, field.type)),
            lambda: table.remove_column(at),
            lambda: table.append_column(field, column),
            lambda: table.take(rng.permutation(rows)[: int(rng.integers(1, 50))]),
        )
        parquet.write_table(changes[rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])](), file)


def put_pickles(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Leave pickles that run a command, under the names of models and of a cache."""
    bad = pickle.dumps(Shell(place))
    for file in folder.rglob("*.pkl"):
        file.write_bytes(bad)
    for cached in ("joblib/sklearn/pipeline/_fit_transform_one/x", "ensemble", "."):
        (folder / cached).mkdir(parents=True, exist_ok=True)
        (folder / cached / "output.pkl").write_bytes(bad)
    (folder / "evil_module.py").write_text(f"open({str(place)!r}, 'w')\nclass Evil: pass\n")
    (folder / "sitecustomize.py").write_text(f"open({str(place)!r}, 'w')\n")


def put_links(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Replace a file or a folder by a link."""
    inside = sorted(one for one in folder.rglob("*") if not one.is_symlink())
    chosen = inside[rng.integers(len(inside))]
    targets = ["/etc/passwd", "/proc/self/mem", str(place.parent), "/dev/zero", chosen.name]
    shutil.rmtree(chosen) if chosen.is_dir() else chosen.unlink()
    chosen.symlink_to(targets[rng.integers(len(targets))])


def put_values(rng: np.random.Generator, folder: Path, place: Path) -> None:
    """Replace a value somewhere in a JSON file."""
    files = [file for file in sorted(folder.glob("*.json")) if file.is_file() and not file.is_symlink()]
    odd = [str(place), f"file://{place}", HUGE, 1e300, -1, None, [], {}, "8.0", 8.0, True, "../" * 9, [[[]]]]
    odd += [{"class": "os:system"}, "x" * 10_000, "\x1b[2J", [0] * 10_000]

    def change(content: Any) -> None:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        key = keys[rng.integers(len(keys))]
        if isinstance(content[key], dict | list) and content[key] and rng.random() < 0.8:
            change(content[key])
        elif isinstance(content, dict) and rng.random() < 0.2:
            content["unknown"] = odd[rng.integers(len(odd))]
        else:
            content[key] = odd[rng.integers(len(odd))]

    put_json(files[rng.integers(len(files))], change)


CHANGES: dict[Change, float] = {  # with how often each is made
    **{put_study: 0.25, put_sizes: 0.15, put_models: 0.2, put_columns: 0.1},
    **{put_pickles: 0.1, put_links: 0.1, put_values: 0.1},
}


def forge(honest: Path, folder: Path, place: Path, seed: int) -> None:
    """Make a hostile folder from an honest one, with digests that agree."""
    rng = np.random.default_rng(seed)
    shutil.copytree(honest, folder)
    count = 1 + int(rng.integers(3))
    for i in sorted(rng.choice(len(CHANGES), count, replace=False, p=[*CHANGES.values()])):
        [*CHANGES][i](rng, folder, place)
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    names = {file.relative_to(folder).as_posix(): file for file in files}
    digests = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in names.items()
        if name not in ("manifest.json", "report.html")
    }
    if not (folder / "manifest.json").is_symlink():
        (folder / "manifest.json").write_text(json.dumps(digests, indent=2) + "\n")


# In the process that reads

WATCHED = (
    *("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "tempfile."),
    *("exec", "code.", "import", "pickle.", "subprocess.", "os.system", "os.exec", "os.fork"),
    *("os.posix_spawn", "socket.", "urllib.", "http.", "ctypes.", "shutil.", "os.kill", "os.putenv", "mmap."),
)
DISTRIBUTIONS = "scipy.stats._distn_infrastructure"  # it executes its own text for each distribution
SYSTEM = ("/proc/self/", f"/proc/{os.getpid()}/statm", "/sys/")


class Guard:
    """An audit hook that notes what must not happen while a folder is read."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.found: list[str] = []
        sys.addaudithook(self.see)

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        """Note an event."""
        if self.folder is None or not event.startswith((*WATCHED, "open")):
            return
        if event == "exec" and sys._getframe(1).f_globals.get("__name__") == DISTRIBUTIONS:
            return
        if event.startswith(WATCHED) or (event == "open" and self._is_wrong(*args)):
            self.found.append(f"{event} {str(args)[:200]}")

    def _is_wrong(self, path: Any, mode: Any, flags: Any) -> bool:
        if isinstance(path, int):
            return False
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return True
        text = os.path.realpath(os.fsdecode(path))
        return not text.startswith((f"{self.folder}/", *SYSTEM))


def list_readers(folder: Path) -> list[Callable[[], object]]:
    """Return what status, report, predict and load_run do with a folder."""
    rows = np.zeros((2, 2))

    def classify() -> object:
        result = load_run(folder)
        return result.summary(), result.to_json(), result.predict(rows)

    first = (lambda: load_scores(folder).summary()) if folder.name.startswith("scores") else classify
    return [first, lambda: make_page(folder), lambda: replay(folder)]


def read_all(honest: list[Path], folders: list[Path]) -> Iterator[str]:
    """Yield what happened that must not, in the order of the folders."""
    warnings.simplefilter("ignore")
    for folder in honest:
        for read in list_readers(folder):
            read()
    for module in MODULES:
        __import__(f"sklearn.{module}")
    guard = Guard()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, resource.RLIM_INFINITY))
    for folder in folders:
        os.chdir(folder)
        sys.path.insert(0, "")
        for read in list_readers(folder):
            signal.alarm(SECONDS)
            guard.folder = os.path.realpath(folder)
            try:
                read()
            except CKCVError:
                pass
            except BaseException as error:  # anything else is a finding
                guard.found.append(f"{type(error).__name__}: {str(error)[:200]}")
            guard.folder = None
            signal.alarm(0)
        yield from (f"{folder.name}: {one}" for one in dict.fromkeys(guard.found))
        guard.found.clear()
        sys.path.pop(0)
        os.chdir("/")


def try_folders(count: int, first: int, scratch: Path) -> list[str]:
    """Make hostile folders and read them in another process; return what happened that must not."""
    honest = make_honest(scratch / "honest")
    place = scratch / "elsewhere" / "written"
    place.parent.mkdir()
    folders = []
    for seed in range(first, first + count):
        base = honest[seed % len(honest)]
        folders.append(scratch / f"{base.name}-{seed}")
        forge(base, folders[-1], place, seed)
    before = list_tree(scratch)
    command = [sys.executable, "-m", "jobs.faults.hostile", "--child", *map(str, [scratch, *folders])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    found = done.stdout.splitlines()
    if done.returncode:
        found.append(f"the process that reads ended with {done.returncode}: {done.stderr[-1000:]}")
    return found + [f"written: {one}" for one in sorted(list_tree(scratch) ^ before)]


def list_tree(root: Path) -> set[str]:
    """Return the names of everything below a folder."""
    return {str(one.relative_to(root)) for one in root.rglob("*")}


def main(
    folders: Annotated[int, typer.Option(help="Number of hostile folders.")] = 1000,
    first: Annotated[int, typer.Option(help="Seed of the first of them.")] = 0,
) -> None:
    """Read hostile folders; exit code 1 if anything happened that must not."""
    with tempfile.TemporaryDirectory() as scratch:
        found = try_folders(folders, first, Path(scratch).resolve())
    print("\n".join(found) or f"{folders:,} hostile folders read: nothing ran, nothing was written")
    if found:
        raise typer.Exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        scratch, *paths = map(Path, sys.argv[2:])
        kinds = sorted((scratch / "honest").iterdir())
        for line in read_all(kinds, paths):
            print(line, flush=True)
    else:
        typer.run(main)

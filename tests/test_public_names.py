"""A whole job using only public names, run, and type-checked against the package as others install it."""

import ast
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import ckcv_ray

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
from typing import assert_type

import ckcv_ray
from ckcv_ray import extend

ckcv_ray.trust("sklearn")
task, test = ckcv_ray.read_task("table.csv")
assert_type((ckcv_ray.__version__, task, test), tuple[str, ckcv_ray.Task, ckcv_ray.TestRows | None])
assert test is None
columns = task.X, task.labelled(task.y)
study = ckcv_ray.Study.paper(C="0.1,1,10", gamma=(0.1, 1), k="3:5", n_splits=4)
serial = ckcv_ray.Execution("serial")

expected = ckcv_ray.plan(study, *columns, workers=[1, 4])
assert_type(expected, ckcv_ray.Plan)
assert set(expected.seconds_by_workers) == {1, 4}

moments: list[ckcv_ray.Progress] = []
result = ckcv_ray.run(study, *columns, out="one", execution=serial, listen=moments.append)
assert_type((result, result.task), tuple[ckcv_ray.Certified, ckcv_ray.Task])
assert_type((result.l_ee, result.proven), tuple[float, float])
assert expected.evaluations == moments[-1].planned == result.execution["evaluations"]["planned"]
winner, errors = result.certificate, result.certificate.errors
m, splits = winner.n_select, winner.n_splits
assert abs(sum(map(float, ckcv_ray.clopper_pearson(errors, m))) / splits - result.l_ee) < 1e-12

rows = ckcv_ray.TestRows(task.X[:20], task.y[:20])
other = ckcv_ray.Study(
    learner=ckcv_ray.GaussianSVM(C=(1,), gamma=(0.1, 1)),
    resampling=extend.Rotation(k=(3, 4)),
    search=ckcv_ray.Race(),
    certification=ckcv_ray.Holdout(claim=("vote",)),
    criterion=extend.MeanBound(delta=0.1),
)
costs = ",".join(f"{label}={1 + (label == task.classes[0])}" for label in task.classes)
studies = {
    "two": other,
    "four": ckcv_ray.Study(
        learner=extend.Choice(
            (other.learner, ckcv_ray.GaussianSVM(C=(1,), gamma=(1,))), ("wide", "narrow")
        ),
        resampling=ckcv_ray.Complete(k=(3,), n_splits=2),
        certification=ckcv_ray.Paper(),
    ),
}
costly = extend.MeanCost(costs=costs)
studies["costly"] = ckcv_ray.Study(other.learner, other.resampling, criterion=costly)
few = ckcv_ray.Complete(k=(3, 4), n_splits=2)
for search in (ckcv_ray.Budget(effort=40), extend.Auto()):
    studies[search.name] = ckcv_ray.Study(other.learner, few, search)
jobs = [ckcv_ray.Job(study, task, out, rows) for out, study in studies.items()]
found = [result, *ckcv_ray.run_many(jobs, serial)]
assert_type(found, list[ckcv_ray.Certified])

told: dict[str, list[object]] = {}
for out, made in zip(["one", *studies], found, strict=True):
    checked = ckcv_ray.verify(out, rerun=True, test=rows if out != "one" else None, execution=serial)
    assert_type(checked.differences, list[str])
    assert isinstance(checked, ckcv_ray.Verification) and checked.differences == []
    loaded = ckcv_ray.load_run(out)
    assert_type(loaded, ckcv_ray.Certified)
    assert loaded.certificate == made.certificate and loaded.execution["test"] == made.execution["test"]
    labels = loaded.predict(task.X, seed=1)
    assert labels.tolist() == made.predict(task.X, seed=1).tolist()
    page: str = ckcv_ray.report(out) if out == "one" else f"{out}/report.html"
    told[page] = [loaded.proven, loaded.certificate.error, float((labels == columns[1]).mean())]

seen = ckcv_ray.watch("two", task.columns(), task.features[0], by="vote")
assert isinstance(seen, ckcv_ray.WatchedRun) and seen.rows == len(task.y)

for part in (ckcv_ray.KFold(3), extend.Bootstrap(3)):
    scores = ckcv_ray.evaluate(*columns, execution=serial, resampling=part, learner="tree")
    assert isinstance(scores, ckcv_ray.Scored | ckcv_ray.Result) and scores.complete
inner = ckcv_ray.NestedSplits(ckcv_ray.KFold(3), extend.SingleSplit(0.5))
procedure = ckcv_ray.Procedure.of(resampling=inner, measure="accuracy", learner="tree")
assert procedure.select_by == "accuracy" and procedure.kind == "procedure"
scores = ckcv_ray.assess(procedure, task, "scores", serial)
assert ckcv_ray.load_scores("scores").to_json()["entries"] == scores.to_json()["entries"]

judged = ckcv_ray.judge(columns[1], labels, claim="error,recall")
assert judged.claims[0].errors == int((labels != columns[1]).sum())

fitted = ckcv_ray.CKCVClassifier(params={"C": (1,), "gamma": (0.1,)}, k=3, n_splits=3).fit(task.X, task.y)
assert fitted.error_bound_ <= 1 and fitted.score(task.X, task.y) > 0.5
try:
    ckcv_ray.run(study, task.X, task.y[1:])
except ckcv_ray.CKCVError as error:
    assert isinstance(error, ckcv_ray.InputError)
try:
    ckcv_ray.load_run("nowhere")
except ckcv_ray.StoreError as error:
    told["error"] = [str(error)]
assert issubclass(ckcv_ray.RunError, ckcv_ray.CKCVError)
print(told)
"""


def test_the_script_imports_the_package_alone_and_uses_all_its_public_names() -> None:
    nodes = list(ast.walk(ast.parse(SCRIPT)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    first, *others = map(ast.unparse, imports)
    assert first == "from typing import assert_type"
    assert others == ["import ckcv_ray", "from ckcv_ray import extend"]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if ast.unparse(node.value) == "ckcv_ray"}
    assert used == {"__version__", *ckcv_ray.__all__}


def test_a_whole_job_is_done_with_public_names_alone(tmp_path: Path) -> None:
    """Read, plan, run, run many, verify with refits, report, load, predict, in a process of its own."""
    (tmp_path / "table.csv").write_text(table())
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    messages = ast.literal_eval(done.stdout)
    assert messages.pop("error") == ["'nowhere' holds no run"]
    assert len({Path(page).parent.name for page in messages}) == 6
    for proven, error, right in messages.values():
        assert 0 <= error <= proven <= 1
        assert right > 0.5
    assert "</html>" in (tmp_path / next(iter(messages))).read_text()


def table() -> str:
    """Sixty rows of two overlapping classes."""
    columns, _ = ckcv_ray.read_task("twonorm:60:0")
    names = [*columns.features[:2], "label"]
    rows = zip(*columns.X[:, :2].T.tolist(), columns.labelled(columns.y).tolist(), strict=True)
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_type_checkers_see_the_names_that_are_imported_on_use() -> None:
    (block,) = (
        node
        for node in ast.parse(Path(ckcv_ray.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == ckcv_ray._MODULES
    assert sorted(seen) == ckcv_ray.__all__
    assert {*ckcv_ray.__all__} <= {*dir(ckcv_ray)}


@pytest.mark.parametrize("name", ckcv_ray.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    assert getattr(ckcv_ray, name).__doc__


@pytest.mark.parametrize("kind", [ckcv_ray.Certified, ckcv_ray.Scored])
def test_a_result_has_few_names(kind: type) -> None:
    assert len([name for name in dir(kind) if not name.startswith("_")]) <= 25


# What is in the wheel


def python(*words: object, folder: Path = ROOT) -> None:
    done = subprocess.run([sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def pip(*words: object) -> None:
    python("-m", "pip", "--disable-pip-version-check", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the locked back end without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (built,) = folder.iterdir()
    return built


def test_the_wheel_holds_the_package_and_says_that_it_is_typed(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert "ckcv_ray/py.typed" in names
    assert {"ckcv_ray/__main__.py", "ckcv_ray/reports/templates/page.html"} <= set(names)
    assert not [name for name in names if not name.startswith("ckcv_ray")]
    assert wheel.name.startswith(f"ckcv_ray-{ckcv_ray.__version__}-")


def test_a_users_script_is_type_checked_against_it(wheel: Path, tmp_path: Path) -> None:
    """Strictly, in an environment that holds nothing else: what lies beneath is not looked into."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    interpreter = tmp_path / "venv" / "bin" / "python"
    pip("--python", interpreter, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    options = ["--python-executable", str(interpreter), "--cache-dir", str(tmp_path / "cache")]
    python("-m", "mypy", *options, "script.py", folder=tmp_path)

"""Rules of the house, as tests: which way imports point, who prints, who knows Ray, who writes."""

import ast
from pathlib import Path

import pytest

import ckcv_ray

PACKAGE = Path(ckcv_ray.__file__).parent
MODULES = {file.relative_to(PACKAGE.parent).with_suffix(""): file for file in PACKAGE.rglob("*.py")}
ORDER = [
    "errors",
    "version",
    "validation",
    "core",
    "tables",
    "learners",
    "study",
    "claims",
    "storage",
    "engine",
    "runs",
    "reports",
    "estimator",
    "cli",
    "__main__",
]
NEVER = {  # beside what the order says
    "tables": {"study"},
    "engine": {"learners.svm"},
    "storage": {"learners.svm"},
    "claims": {"learners.svm"},
    "reports": {"learners.svm"},
    "study": {"learners.svm"},
}
PRINTS = {"cli"}
KNOW_RAY = {"engine.ray_backend", "engine.metrics"}
UNPICKLE = {"learners.ensemble", "learners.svm.machine_code"}  # models on request; compiled code of our own


def name_of(file: Path) -> str:
    """The dotted name of a module inside the package."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            names |= {f"{module}.{a.name}" for a in node.names} if module == "ckcv_ray" else {module}
    return names


FILES = [pytest.param(file, id=str(module)) for module, file in sorted(MODULES.items())]


def imported_here(file: Path) -> set[str]:
    """Dotted names inside the package that a module imports."""
    return {name.partition(".")[2] for name in imported(file) if name.startswith("ckcv_ray.")}


@pytest.mark.parametrize("file", FILES)
def test_imports_go_down(file: Path) -> None:
    own = name_of(file).split(".")[0]
    if own == "__init__":
        return
    for module in imported_here(file):
        other = module.split(".")[0]
        assert other in ORDER, f"{module} has no place in the order"
        assert ORDER.index(other) < ORDER.index(own) or other == own, f"{own} imports {module}: that goes up"


@pytest.mark.parametrize("file", FILES)
def test_what_may_never_be_imported_is_not(file: Path) -> None:
    for barred in NEVER.get(name_of(file).split(".")[0], ()):
        assert not [name for name in imported_here(file) if f"{name}.".startswith(f"{barred}.")]


@pytest.mark.parametrize("file", FILES)
def test_the_ray_backend_alone_imports_ray(file: Path) -> None:
    if name_of(file) not in KNOW_RAY:
        assert not {module for module in imported(file) if module.split(".")[0] == "ray"}


@pytest.mark.parametrize("file", FILES)
def test_the_ray_backend_is_imported_lazily(file: Path) -> None:
    tops = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom)]
    assert "ckcv_ray.engine.ray_backend" not in {node.module for node in tops}


@pytest.mark.parametrize("file", FILES)
def test_the_command_line_alone_prints(file: Path) -> None:
    calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    prints = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not prints or name_of(file).split(".")[0] in PRINTS


@pytest.mark.parametrize("file", FILES)
def test_core_knows_no_files(file: Path) -> None:
    if name_of(file).startswith("core"):
        forbidden = {"pathlib", "os", "io", "pyarrow", "ray"}
        assert not {module.split(".")[0] for module in imported(file)} & forbidden


@pytest.mark.parametrize("file", FILES)
def test_pickles_are_opened_in_one_place(file: Path) -> None:
    assert file.read_text().count("pickle.load") == (name_of(file) in UNPICKLE)


@pytest.mark.parametrize("file", FILES)
def test_public_things_have_docstrings(file: Path) -> None:
    tree = ast.parse(file.read_text())
    owners = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    for node in (node for owner in owners for node in owner.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{file}: {node.name}"


def test_the_public_names_are_all_there() -> None:
    assert all(hasattr(ckcv_ray, name) for name in ckcv_ray.__all__)

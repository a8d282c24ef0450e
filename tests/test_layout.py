"""Rules of the house, as tests: which way imports point, who prints, who knows Ray, who writes."""

import ast
from pathlib import Path

import pytest

import ckcv_ray

PACKAGE = Path(ckcv_ray.__file__).parent
MODULES = {file.relative_to(PACKAGE.parent).with_suffix(""): file for file in PACKAGE.rglob("*.py")}
LEVELS = [
    {"errors", "version", "typed", "matlab", "supervise", "files"},
    {"account", "arguments", "machine_code"},
    {"environment"},
    {"core", "fetch", "readers"},
    {"study", "datasets"},
    {"data"},
    {"ensemble", "triples", "blocks"},
    {"rules", "worker"},
    {"certificate"},
    {"cells", "ledger"},
    {"store"},
    {"aggregator", "result"},
    {"retry", "display", "estimate", "nested", "figures", "archive", "options", "metrics"},
    {"cluster", "plan"},
    {"backend", "refit"},
    {"driver"},
    {"verify", "report"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: i for i, names in enumerate(LEVELS) for name in names}


def room(module: str) -> str:
    """The part of the package a dotted module name belongs to."""
    return module.split(".")[1] if "." in module else ""


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


@pytest.mark.parametrize("file", FILES)
def test_imports_point_one_way(file: Path) -> None:
    own = room(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
    if own == "__init__":
        return
    for module in imported(file):
        if module.startswith("ckcv_ray"):
            other = room(module)
            assert other in LEVEL, f"{module} has no place in LEVELS"
            allowed = LEVEL[other] < LEVEL[own] or (own == other == "core")
            assert allowed, f"{own} imports {other}: that arrow points the other way"


@pytest.mark.parametrize("file", FILES)
def test_ray_is_known_to_one_module(file: Path) -> None:
    if file.name not in ("cluster.py", "metrics.py"):
        assert not {module for module in imported(file) if module.split(".")[0] == "ray"}


@pytest.mark.parametrize("file", FILES)
def test_cluster_is_imported_lazily(file: Path) -> None:
    tops = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom)]
    assert "ckcv_ray.engine.ray_backend" not in {node.module for node in tops}


@pytest.mark.parametrize("file", FILES)
def test_core_knows_no_study_and_no_files(file: Path) -> None:
    if "core" in file.parts:
        forbidden = {"pathlib", "os", "io", "pyarrow", "ray"}
        assert not {module.split(".")[0] for module in imported(file)} & forbidden


@pytest.mark.parametrize("file", FILES)
def test_pickles_of_models_are_opened_in_one_place_and_numbas_in_another(file: Path) -> None:
    assert file.read_text().count("pickle.load") == (file.name in ("ensemble.py", "machine_code.py"))
    assert ("from_pickles" in file.read_text()) == (file.name in ("ensemble.py", "archive.py"))


@pytest.mark.parametrize("file", FILES)
def test_public_things_have_docstrings(file: Path) -> None:
    tree = ast.parse(file.read_text())
    owners = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")]
    for node in (node for owner in owners for node in owner.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{file}: {node.name}"


def test_the_public_names_are_all_there() -> None:
    assert all(hasattr(ckcv_ray, name) for name in ckcv_ray.__all__)

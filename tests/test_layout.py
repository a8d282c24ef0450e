"""Rules of the house, as tests: which way imports point, who prints, who knows Ray, who writes.

Every file of the package is parsed once, and a test lists all modules that break its rule. An import counts
wherever it is written: at the top of a module, under ``TYPE_CHECKING``, or in a function. Two things are not
counted: that a module runs the ``__init__`` of its folders first, and imports of names made at run time.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import ckcv_ray

PACKAGE = "ckcv_ray"
ORDER = [
    "errors",
    "version",
    "removed",
    "validation",
    "core",
    "tables",
    "learners",
    "study",
    "records",
    "claims",
    "storage",
    "engine",
    "reports",
    "runs",
    "estimator",
    "cli",
    "__main__",
    "extend",  # what authors of learners, measures and resamplings import
    "",  # the package itself: what users import
]
NEVER = {  # besides what the order says
    "study": {"learners.svm"},
    "records": {"learners.svm"},
    "claims": {"learners.svm"},
    "storage": {"learners.svm", "core.selection"},
    "engine": {"learners.svm"},
    "reports": {"learners.svm"},
}
DEEPEST_CHAIN = 36  # modules, each of which imports the next: a smaller number is better, and replaces this
PRINTS = {"cli"}
KNOW_RAY = {"engine.ray_backend", "engine.ray_cluster", "engine.metrics"}
UNPICKLE = {"learners.ensemble", "learners.svm.machine_code"}  # models on request; compiled code of our own
FORBIDDEN_IN_CORE = {"pathlib", "os", "io", "pyarrow", "ray"}


class Import(NamedTuple):
    """One imported name.

    Attributes:
        target: a module of the package without its name, such as "engine.loop"; None of another package.
        package: the top-level package.
        lazy: whether it is imported when a function is called.
    """

    target: str | None
    package: str
    lazy: bool


class Module(NamedTuple):
    """A module of the package, by its dotted name without that of the package."""

    name: str
    text: str
    tree: ast.Module
    imports: frozenset[Import]

    @property
    def layer(self) -> str:
        """The folder, or the module at the top level."""
        return layer(self.name)

    @property
    def uses(self) -> set[str]:
        """The other modules of the package that it imports."""
        return {one.target for one in self.imports if one.target is not None} - {self.name}


def layer(name: str) -> str:
    return name.partition(".")[0]


def read_package(root: Path) -> dict[str, Module]:
    """Parse every file below the folder of a package; return its modules by name."""
    files = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text()
    return {name: parse(name, text, set(files)) for name, text in files.items()}


def parse(name: str, text: str, names: set[str]) -> Module:
    tree = ast.parse(text)
    imports = [one for node, lazy in find_imports(tree) for one in resolve(node, lazy, names)]
    return Module(name, text, tree, frozenset(imports))


def find_imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from find_imports(child, lazy or function)


def resolve(node: ast.Import | ast.ImportFrom, lazy: bool, names: set[str]) -> Iterator[Import]:
    """Yield what a statement imports: ``from a import b`` imports a.b if that is a module, else a."""
    module = node.module if isinstance(node, ast.ImportFrom) else None
    for alias in node.names:
        path = alias.name if module is None else f"{module}.{alias.name}"
        package, _, inside = path.partition(".")
        target = inside if inside in names else inside.rpartition(".")[0]
        yield Import(target if package == PACKAGE else None, package, lazy)


@cache
def package() -> dict[str, Module]:
    return read_package(Path(ckcv_ray.__file__).parent)


def find_circles(modules: dict[str, Module]) -> list[str]:
    """Return circles of imports; each is broken at one import before the next is looked for."""
    graph = {name: module.uses for name, module in modules.items()}
    circles = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = error.args[1]  # each is imported by the next
            circles.append(" imports ".join(reversed(circle)))
            graph[circle[1]].discard(circle[0])
        else:
            return circles


def find_longest_chain(modules: dict[str, Module]) -> list[str]:
    """Return the longest chain of modules, each of which imports the next; there are no circles."""
    chains: dict[str, list[str]] = {}
    for name in TopologicalSorter({name: module.uses for name, module in modules.items()}).static_order():
        longest = max((chains[used] for used in sorted(modules[name].uses)), key=len, default=[])
        chains[name] = [name, *longest]
    return max(chains.values(), key=len)


def test_imports_go_down() -> None:
    assert [name for name, module in package().items() if module.layer not in ORDER] == []
    place = ORDER.index
    assert [
        f"{module.name} imports {used}"
        for module in package().values()
        for used in module.uses
        if layer(used) != module.layer and place(layer(used)) > place(module.layer)
    ] == []


def test_there_are_no_circles() -> None:
    assert find_circles(package()) == []


def test_the_deepest_chain_of_imports_gets_no_deeper() -> None:
    chain = find_longest_chain(package())
    assert len(chain) == DEEPEST_CHAIN, " > ".join(chain)


def test_what_may_never_be_imported_is_not() -> None:
    assert [
        f"{module.name} imports {used}"
        for module in package().values()
        for used in module.uses
        for barred in NEVER.get(module.layer, ())
        if f"{used}.".startswith(f"{barred}.")
    ] == []


def test_few_modules_import_ray_and_are_imported_where_they_are_used() -> None:
    others = [module for name, module in package().items() if name not in KNOW_RAY]
    imports = [(module.name, one) for module in others for one in module.imports]
    assert [name for name, one in imports if one.package == "ray"] == []
    early = [(name, one.target) for name, one in imports if not one.lazy]
    assert [f"{name} imports {target}" for name, target in early if target in KNOW_RAY] == []


def test_the_command_line_alone_prints() -> None:
    calls = (
        (module, node.func)
        for module in package().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
    )
    prints = (module for module, called in calls if isinstance(called, ast.Name) and called.id == "print")
    assert [module.name for module in prints if module.layer not in PRINTS] == []


def test_core_knows_no_files() -> None:
    core = [module for module in package().values() if module.layer == "core"]
    assert [
        f"{module.name} imports {one.package}"
        for module in core
        for one in module.imports
        if one.package in FORBIDDEN_IN_CORE
    ] == []


def test_pickles_are_opened_in_one_place() -> None:
    found = {name: module.text.count("pickle.load") for name, module in package().items()}
    assert {name: count for name, count in found.items() if count} == dict.fromkeys(UNPICKLE, 1)


def test_public_things_have_docstrings() -> None:
    owners = [
        (module.name, owner)
        for module in package().values()
        for owner in (module.tree, *module.tree.body)
        if isinstance(owner, ast.Module) or (isinstance(owner, ast.ClassDef) and owner.name[0] != "_")
    ]
    public = [
        (name, node)
        for name, owner in owners
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [f"{name}: {node.name}" for name, node in public if not ast.get_docstring(node)] == []


def test_imports_are_absolute() -> None:
    assert [
        module.name
        for module in package().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ] == []


def test_the_public_names_are_all_there() -> None:
    assert [name for name in ckcv_ray.__all__ if not hasattr(ckcv_ray, name)] == []


HIDDEN = {
    "__init__": "",
    "a": "if TYPE_CHECKING:\n    from ckcv_ray.b import B",
    "b": "import ckcv_ray.a",
    "c/__init__": "from ckcv_ray.c import d",
    "c/d": "class D:\n    def load(self):\n        from ckcv_ray import c",
    "e": "from ckcv_ray.a import A\nfrom ckcv_ray.c.d import D",
}


def test_hidden_circles_are_found(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    for name, text in HIDDEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = [set(circle.split(" imports ")) for circle in find_circles(read_package(tmp_path))]
    assert sorted(found, key=min) == [{"a", "b"}, {"c", "c.d"}]

"""House rules: which way imports point, who knows Ray, and how much there may be of anything.

What is measured may not exceed ``budgets.toml``, nor be far below; ``python tests/test_layout.py`` lowers it.
Whoever needs more raises a number by hand, and says in the commit message what was removed elsewhere.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = Path(__file__).with_name("budgets.toml")
FOLDERS = (
    *("core", "tables", "learners", "study", "records", "claims", "storage", "engine", "runs"),
    *("reports", "apps"),  # not "report", which is a function of the package
)
ORDER = [  # each imports those before it; "" is the package itself
    *("errors", "version", *FOLDERS, "estimator", "cli", "__main__", "extend", ""),
]
NOT_THE_SOLVER = ("study", "records", "claims", "storage", "engine", "reports")
BY_NAME = {"", "cli.main", "core.options"}  # import modules of the package by name
SHOWN = ("runs.result", "reports.figures")  # an import upward, for type checkers: at run time by name
SEEN_BY_APPS = {"errors", "reports.facts", "reports.render", "storage.pages"}
KNOW_RAY = {"engine.ray_backend"}
UNPICKLE = {"learners.ensemble", "learners.svm.compile", "engine.worker"}  # models; code; answers of our own
NOT_IN_CORE = {"pathlib", "os", "io", "pyarrow", "ray"}
DATA = (".json", ".toml", ".html", ".css", ".csv", ".txt", ".typed")
SLACK = 0.01  # of a number: what is further below it is lowered
LONGEST = 60  # lines of a function
COMPILED = {"iterate"}  # may be longer
KINDS = {  # by the module that may ask which one it is; others ask the object to do it
    "tables.roles": {"Target", "ClassTarget", "Units"},
    "study.study": {"BaseStudy", "Study", "Procedure"},
    "runs.result": {"Certified", "Result", "Scored"},
}
MOST_ASKED = 10
CONCERNS = {  # attributes and arguments of these names; those of learners are about their own numbers
    "groups": {"groups", "group", "grouped", "grouping"},
    "numbers": {"numbers", "has_numbers", "clip"},
    "weights": {"weights", "weight", "weighting"},
}


class Module(NamedTuple):
    """A module of the package, by its dotted name without the package's; "" is the package."""

    name: str
    text: str
    tree: ast.Module
    top: set[str]  # modules of the package that it imports, at its top and
    inside: list[str]  # in functions, once for each name
    packages: set[str]  # other packages

    @property
    def folder(self) -> str:
        return self.name.partition(".")[0]


@cache
def package() -> dict[str, Module]:
    files = {}
    for file in sorted((ROOT / "ckcv_ray").rglob("*.py")):
        parts = file.relative_to(ROOT / "ckcv_ray").with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text()
    return {name: parse(name, text, set(files)) for name, text in files.items()}


def parse(name: str, text: str, names: set[str]) -> Module:
    module = Module(name, text, ast.parse(text), set(), [], set())
    for node, lazy in find_imports(module.tree):
        for alias in node.names:
            path = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            owner, _, inside = path.partition(".")
            used = inside if inside in names else inside.rpartition(".")[0]
            if owner != "ckcv_ray":
                module.packages.add(owner)
            elif used != name and (name, used) != SHOWN:
                module.inside.append(used) if lazy else module.top.add(used)
    return module


def find_imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[Any, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        yield from find_imports(child, lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def find_longest_chain() -> list[str]:
    """Return the longest chain of modules, each of which imports the next at module level."""
    chains: dict[str, list[str]] = {}
    for name in TopologicalSorter({name: module.top for name, module in package().items()}).static_order():
        chains[name] = [
            name,
            *max((chains[used] for used in sorted(package()[name].top)), key=len, default=[]),
        ]
    return max(chains.values(), key=len)


def measure() -> dict[str, int]:
    """Return all that has a budget; lines are counted as formatted."""
    found, names = Counter[str](), Counter[str]()
    for module in package().values():
        folder = module.folder if module.folder in (*FOLDERS, "cli") else "at the top"
        found[f"lines, {folder}"] += module.text.count("\n")
        found[f"statements, {folder}"] += sum(isinstance(node, ast.stmt) for node in ast.walk(module.tree))
        found["imports inside functions"] += len(module.inside)
        found["arrows between modules"] += len(module.top.union(module.inside))
        words = {getattr(node, "attr", getattr(node, "arg", None)) for node in ast.walk(module.tree)}
        for concern, concerned in CONCERNS.items():
            found[f"modules that name {concern}"] += folder != "learners" and not words.isdisjoint(concerned)
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                names[node.name] += 1
                found["Any in public signatures"] += count_any(node)
    for folder in ("ckcv_ray", "tests", "jobs"):
        for file in (file for file in (ROOT / folder).rglob("*") if file.is_file() and file.suffix != ".pyc"):
            found[f"{folder}, {'data' if file.suffix in DATA else 'lines'}"] += file.read_bytes().count(b"\n")
            found["modules"] += folder == "ckcv_ray" and file.suffix == ".py" and file.stem != "__init__"
    del found["tests, data"]
    for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"):
        found[f"{page.relative_to(ROOT).parts[0]}, words"] += len(page.read_text().split())
    found["chain of imports"] = len(find_longest_chain())
    found["public definitions"] = names.total()
    found["names defined twice"] = sum(count > 1 for count in names.values())
    return found


def count_any(node: Any) -> int:
    """Return the number of annotations with Any of a public function, or of a class's public methods."""
    if isinstance(node, ast.ClassDef):
        methods = (inside for inside in node.body if isinstance(inside, ast.FunctionDef))
        return sum(count_any(method) for method in methods if not method.name.startswith("_"))
    annotations = [node.returns, *(argument.annotation for argument in node.args.args)]
    return sum("Any" in ast.unparse(annotation) for annotation in annotations if annotation)


def test_nothing_grows_and_what_shrinks_stays_small() -> None:
    most, found = tomllib.loads(BUDGETS.read_text()), measure()
    grown = [f"{name}: {value}, not {most[name]}" for name, value in found.items() if value > most[name]]
    assert grown == [], f"the longest chain: {' > '.join(find_longest_chain())}"
    assert [name for name in most if found[name] < (1 - SLACK) * most[name]] == [], "lower them"


def test_imports_go_down() -> None:
    for module in package().values():
        for used in module.top.union(module.inside):
            to = ORDER.index(used.partition(".")[0])
            assert to <= ORDER.index(module.folder), f"{module.name} imports {used}"
            assert module.folder not in NOT_THE_SOLVER or not used.startswith("learners.svm.")
        if module.folder == "apps":
            assert module.top <= SEEN_BY_APPS | package()[""].top | package()["extend"].top
        by_name = re.search("import_module.*(ckcv_ray|_MODULES)", module.text) is not None
        assert by_name == (module.name in BY_NAME), module.name
        if module.name not in KNOW_RAY:
            assert "ray" not in module.packages, module.name
            assert module.top.isdisjoint(KNOW_RAY), f"{module.name} imports Ray before it is used"
        assert module.folder != "core" or not module.packages & NOT_IN_CORE
        assert module.text.count("pickle.load") == (module.name in UNPICKLE)


def test_hardly_anybody_asks_which_kind_it_is() -> None:
    asked = []
    for module in package().values():
        kinds = set[str]().union(*(names for own, names in KINDS.items() if own != module.name))
        calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
        asked += [
            f"{module.name}: {ast.unparse(call)}"
            for call in calls
            if ast.unparse(call.func) == "isinstance"
            and kinds & set(re.findall(r"\w+", ast.unparse(call.args[1])))
        ]
    assert len(asked) <= MOST_ASKED, asked


def test_no_function_is_long() -> None:
    nodes = (node for module in package().values() for node in ast.walk(module.tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    long = {node.name for node in functions if node.end_lineno - node.lineno >= LONGEST}
    assert long == COMPILED


if __name__ == "__main__":
    before = tomllib.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
    lower = {name: min(value, before.get(name, value)) for name, value in sorted(measure().items())}
    BUDGETS.write_text("".join(f'"{name}" = {value}\n' for name, value in lower.items()))

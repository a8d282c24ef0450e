"""Imports of the package that run late: in functions of tests and jobs, and in scripts for other processes.

Some run at night alone, where a name that has changed would be noticed days later.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE_UP = {"test_layout.py", "test_scripts.py"}  # have imports of what is not there, to be refused
FILES = [file for folder in ("tests", "jobs") for file in sorted((ROOT / folder).rglob("*.py"))]


def find_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield imports of names of the package, of scripts in strings as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ckcv_ray":
            yield node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "ckcv_ray" in node.value:
            try:
                script = ast.parse(node.value)
            except SyntaxError:  # a text, or a part of a script
                continue
            yield from find_imports(script)


def is_there(module: str, name: str) -> bool:
    """Return whether a module is there and has a name, or a module of this name."""
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
def test_what_is_imported_late_is_there() -> None:
    asked = {
        (str(node.module), alias.name): f"{file.relative_to(ROOT)}: from {node.module} import {alias.name}"
        for file in FILES
        for node in find_imports(ast.parse(file.read_text()))
        if file.name not in MADE_UP
        for alias in node.names
    }
    assert len(asked) > 300
    assert [said for (module, name), said in asked.items() if not is_there(module, name)] == []

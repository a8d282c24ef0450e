"""The package as others install it: what is in the wheel, and what a type checker learns from it."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from test_public_names import SCRIPT

import ckcv_ray

ROOT = Path(__file__).resolve().parent.parent


def python(*words: object, folder: Path = ROOT) -> None:
    done = subprocess.run([sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def pip(*words: object) -> None:
    python("-m", "pip", "--disable-pip-version-check", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the locked back end, without a network."""
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


def test_the_readme_is_shown_by_a_package_index(wheel: Path, tmp_path: Path) -> None:
    python("-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path)
    python("-m", "twine", "check", "--strict", wheel, *tmp_path.iterdir())


def test_a_users_script_is_type_checked_against_it(wheel: Path, tmp_path: Path) -> None:
    """Strictly, in an environment that holds nothing else: what lies beneath is not looked into."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    interpreter = tmp_path / "venv" / "bin" / "python"
    pip("--python", interpreter, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    options = ["--python-executable", str(interpreter), "--cache-dir", str(tmp_path / "cache")]
    python("-m", "mypy", *options, "script.py", folder=tmp_path)

"""No dependency version with a known vulnerability: neither a locked one, nor one that may be installed.

Below, where each was fixed (advisories); `pip-audit -r requirements.lock --disable-pip` asks for new ones.
"""

import re
import tomllib
from datetime import date
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import ckcv_ray
from ckcv_ray.cli import main as cli
from ckcv_ray.errors import write_install
from jobs.floors.__main__ import list_commands, read_floors

ROOT = Path(__file__).resolve().parent.parent
MENDED = {
    "aiohttp": ("3.14.3", "CVE-2026-69244"),
    "certifi": ("2024.7.4", "CVE-2024-39689"),
    "cryptography": ("50.0.0", "CVE-2026-69247"),
    "filelock": ("3.20.3", "CVE-2026-22701"),
    "fonttools": ("4.60.2", "CVE-2025-66034"),
    "idna": ("3.15", "PYSEC-2026-215"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "joblib": ("1.2.0", "CVE-2022-21797"),
    "msgpack": ("1.2.3", "CVE-2026-114613"),
    "pillow": ("12.3.0", "CVE-2026-59200"),
    "protobuf": ("6.33.5", "CVE-2026-0994"),
    "pyarrow": ("23.0.1", "CVE-2026-25087"),
    "pyasn1": ("0.6.4", "CVE-2026-59885"),
    "pygments": ("2.20.0", "CVE-2026-4539"),
    "pytest": ("9.0.3", "CVE-2025-71176"),
    "ray": ("2.56.0", "CVE-2026-57516"),  # and 2.55 CVE-2026-41486, 2.54 CVE-2026-27482
    "requests": ("2.33.0", "CVE-2026-25645"),
    "scikit-learn": ("1.5.0", "CVE-2024-5206"),
    "scipy": ("1.10.0", "PYSEC-2023-102"),
    "urllib3": ("2.7.0", "CVE-2026-44432"),
    "virtualenv": ("20.36.1", "CVE-2026-22702"),
}
PROJECT, PAPER = (
    tomllib.loads((ROOT / file).read_text()) for file in ("pyproject.toml", "jobs/paper/pyproject.toml")
)
EXTRAS = PROJECT["project"]["optional-dependencies"]
WANTED = [
    *map(Requirement, PROJECT["project"]["dependencies"]),
    *map(Requirement, PAPER["project"]["dependencies"]),
    *map(Requirement, chain(*EXTRAS.values())),
]
OF_NIGHTS = ("boosting", "imblearn")
NIGHTLY = {Requirement(wanted).name for name in OF_NIGHTS for wanted in EXTRAS[name]}
FREE = NIGHTLY - {"lightgbm"}  # which only tests of the night need


def test_what_is_said_to_be_installed_is_in_the_clone_and_quoted() -> None:
    """No registry has this package, and somebody else could give theirs its name."""
    places = ("ckcv_ray", "docs", "jobs", "README.md")
    files = [file for place in places for file in [ROOT / place, *(ROOT / place).rglob("*")]]
    texts = [file.read_text() for file in files if file.suffix in {".py", ".md", ".ipynb", ".toml", ".yaml"}]
    said = [line for text in texts for line in text.splitlines() if "pip install" in line]
    named = {extra for line in said for extra in re.findall(r"""\\?"\.\[(\w+)\]\\?\"""", line)}
    assert not [line for line in said if re.search(r"install .?ckcv-ray\b|install \.\[", line)]
    assert {"boosting", "objects"} <= named <= set(EXTRAS)
    assert write_install("boosting") == 'pip install ".[boosting]" in the clone of ckcv_ray'


def locked() -> list[tuple[str, Version]]:
    """Name and version of all that is installed, for every Python and platform."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = (Requirement(line.split(" \\")[0]) for line in lines if "==" in line)
    return [(pin.name, Version(next(iter(pin.specifier)).version)) for pin in pins]


def read_entries(file: str) -> list[str]:
    """Name, version and hashes of all that a file locks."""
    return [entry.rstrip() for entry in re.split(r"(?m)^(?=[a-z0-9])", (ROOT / file).read_text())[1:]]


@pytest.mark.parametrize("name", MENDED)
def test_what_is_locked_has_no_known_hole(name: str) -> None:
    least, hole = MENDED[name]
    versions = [version for other, version in locked() if other == name]
    assert versions
    assert min(versions) >= Version(least), hole


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_what_is_wanted_has_no_known_hole_at_its_floor_and_is_what_is_locked(wanted: Requirement) -> None:
    floors = [Version(part.version) for part in wanted.specifier if part.operator in (">=", "==")]
    assert floors, "every dependency has a floor"
    least, hole = MENDED.get(wanted.name, ("0", ""))
    assert max(floors) >= Version(least), hole
    versions = [version for name, version in locked() if name == wanted.name]
    assert versions or wanted.name in FREE
    assert all(version in wanted.specifier for version in versions)


def test_the_package_is_built_by_what_is_locked() -> None:
    """The build back end is named exactly, and its hash is in the lock, with that of all it needs."""
    (back_end,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert PAPER["build-system"] == PROJECT["build-system"]
    (pin,) = back_end.specifier
    assert pin.operator == "=="
    assert (back_end.name, Version(pin.version)) in locked()
    assert {"editables", "pathspec", "pluggy", "tomlkit", "trove-classifiers"} <= {
        name for name, _ in locked()
    }
    for file in ("docker/install", "jobs/environment"):
        (line,) = [line for line in (ROOT / file).read_text().splitlines() if line.endswith(" .")]
        assert {"--no-deps", "--no-build-isolation"} <= set(line.split()), (
            "or pip would fetch a back end without its hash"
        )


def test_machines_get_a_part_of_what_is_locked() -> None:
    """All that a run and the build back end need, by the same hashes, and no tools of tests."""
    of_machines = read_entries("docker/requirements.lock")
    assert set(of_machines) < set(read_entries("requirements.lock"))
    names = {entry.split("==")[0] for entry in of_machines}
    needed = [*PROJECT["project"]["dependencies"], *EXTRAS["cluster"], *EXTRAS["excel"]]
    needed += PROJECT["build-system"]["requires"]
    assert {Requirement(wanted).name for wanted in needed} <= names
    assert not names & {"pytest", "mypy", "sphinx", "polars", "pandas"}


# The job that installs the bounds of the dependencies


def test_the_floors_are_those_of_the_package() -> None:
    wanted = [*PROJECT["project"]["dependencies"], *EXTRAS["excel"]]
    floors = {one.name: one.specifier for one in map(Requirement, wanted)}
    read = read_floors()
    assert read.keys() == floors.keys()
    assert all(f">={read[name]}" in str(floors[name]).split(",") for name in read)


@pytest.mark.parametrize("words", list(list_commands()), ids=" ".join)
def test_the_options_of_each_command_are_known(words: tuple[str, ...]) -> None:
    name, *options = words
    if not name.startswith("-"):
        known = {option for parameter in cli.load_command(name).params for option in parameter.opts} | {
            "--help"
        }
        assert {option for option in options if option.startswith("--")} <= known


# The files about the project: what they say agrees with the package


HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}  # of Keep a Changelog 1.1.0


def test_the_changelog_has_the_version_of_the_package_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"(?m)^## \[([\d.]+)\] - (\S+)$", text)
    assert len(versions) == len(re.findall(r"(?m)^## ", text))
    assert versions[0][0] == ckcv_ray.__version__
    for _, when in versions:
        assert when == "unreleased" or date.fromisoformat(when)
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= HEADINGS

"""No dependency of a version with a known hole: neither what is locked, nor what an installation may take.

Where each was mended, by the advisories; `pip-audit -r requirements.lock --disable-pip` asks for new ones.
"""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
MENDED = {
    "aiohttp": ("3.13.3", "CVE-2025-69223"),
    "certifi": ("2024.7.4", "CVE-2024-39689"),
    "cryptography": ("46.0.5", "CVE-2026-26007"),
    "filelock": ("3.20.3", "CVE-2026-22701"),
    "fonttools": ("4.60.2", "CVE-2025-66034"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "joblib": ("1.2.0", "CVE-2022-21797"),
    "pillow": ("12.1.1", "CVE-2026-25990"),
    "protobuf": ("6.33.5", "CVE-2026-0994"),
    "pyarrow": ("23.0.1", "CVE-2026-25087"),
    "ray": ("2.54.0", "CVE-2026-27482"),
    "requests": ("2.32.4", "CVE-2024-47081"),
    "scikit-learn": ("1.5.0", "CVE-2024-5206"),
    "urllib3": ("2.6.3", "CVE-2026-21441"),
    "virtualenv": ("20.36.1", "CVE-2026-22702"),
}


def locked() -> list[tuple[str, Version]]:
    """Name and version of all that is installed, for every Python and platform."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = (Requirement(line.split(" \\")[0]) for line in lines if "==" in line)
    return [(pin.name, Version(next(iter(pin.specifier)).version)) for pin in pins]


@pytest.mark.parametrize("name", MENDED)
def test_what_is_locked_has_no_known_hole(name: str) -> None:
    least, hole = MENDED[name]
    versions = [version for other, version in locked() if other == name]
    assert versions
    assert min(versions) >= Version(least), hole


def test_no_installation_may_take_a_version_with_a_known_hole() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in map(Requirement, project["dependencies"]):
        if wanted.name in MENDED:
            least, hole = MENDED[wanted.name]
            floors = [Version(part.version) for part in wanted.specifier if part.operator == ">="]
            assert max(floors) >= Version(least), hole

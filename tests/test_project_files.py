"""The files about the project: what they say agrees with the package."""

import re
import tomllib
from datetime import date
from pathlib import Path

import yaml

import ckcv_ray

ROOT = Path(__file__).resolve().parent.parent
HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}  # of Keep a Changelog 1.1.0


def test_the_changelog_has_the_version_of_the_package_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"(?m)^## \[([\d.]+)\] - (\S+)$", text)
    assert len(versions) == len(re.findall(r"(?m)^## ", text))
    assert versions[0][0] == ckcv_ray.__version__
    for _, when in versions:
        assert when == "unreleased" or date.fromisoformat(when)
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= HEADINGS


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == ckcv_ray.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]
    paper = citation["preferred-citation"]
    authors = ", ".join(f"{one['given-names']} {one['family-names']}" for one in paper["authors"])
    for page in ("README.md", "docs/theory/index.md"):
        text = " ".join((ROOT / page).read_text().replace("\n> ", " ").split())
        assert f'{authors}, "{paper["title"]}"' in text


def test_reports_of_vulnerabilities_are_private_and_name_no_address() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "private security advisory" in text
    assert "@" not in text

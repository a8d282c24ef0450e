"""What users see is what it was: see ``acceptance``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import acceptance
import pytest
from cases import BY_DAY, CASES

MOST_OPTIONS = 63  # of a command


@pytest.mark.parametrize("name", [name for name in CASES if name in BY_DAY])
def test_by_day(name: str) -> None:
    check(name)


@pytest.mark.night
@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_DAY])
def test_by_night(name: str) -> None:
    check(name)


def check(name: str) -> None:
    kept = acceptance.read_recorded()
    now = json.loads(json.dumps(acceptance.observe(name)))
    exact = kept["environment"] == acceptance.find_environment()
    changed = list(acceptance.compare(kept["cases"][name], now, exact, name))
    assert not changed, "\n".join(changed)


def test_options_and_public_names_are_what_they_were() -> None:
    """In a process of their own: other tests register learners, whose parameters become options."""
    kept = acceptance.read_recorded()
    assert list(kept["cases"]) == list(CASES)
    code = "import json, acceptance; print(json.dumps(acceptance.observe_outside()))"
    places = os.pathsep.join([str(Path(acceptance.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": places}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert list(acceptance.compare(kept["outside"], json.loads(done.stdout), True)) == []
    options = [
        [name for name in names if name.startswith("--")] for names in kept["outside"]["options"].values()
    ]
    assert max(map(len, options)) <= MOST_OPTIONS


def test_any_change_is_described() -> None:
    kept = {"a": [1, {"b": 0.25}], "c": None}
    assert list(acceptance.compare(kept, {"a": [1, {"b": 0.25}], "c": None}, exact=True)) == []
    (line,) = acceptance.compare(kept, {"a": [1, {"b": 0.25 + 2e-16}], "c": None}, exact=True)
    assert line.startswith("a[1]: b\n   was 0.25")
    assert not list(acceptance.compare(kept, {"a": [1, {"b": 0.25 + 2e-16}], "c": None}, exact=False))
    assert list(acceptance.compare(kept, {"a": [1], "c": None}, exact=False))
    row = "18,benign,-2.2755837424596095"
    assert not list(acceptance.compare([row], [row.replace("6095", "6734")], exact=False))
    for other in (row.replace("benign", "other"), row.replace("-2.27", "-2.28"), row + ",1.5"):
        assert list(acceptance.compare([row], [other], exact=False))
    (line,) = acceptance.compare([1, 2, 3], [1, 3], exact=True, place="statements")
    assert line == "statements: 3 -> 2\n   was [2]\n   now []"
    claim = {"quantity": "error", "bound": 1.0}
    assert not list(acceptance.compare([claim], [claim | {"label": None}], exact=True))
    (line,) = acceptance.compare({"r": [claim]}, {"r": [{"quantity": "error"}]}, True, "groups")
    assert line == "groups: r[0 error]: bound\n   was 1.0\n   now null"

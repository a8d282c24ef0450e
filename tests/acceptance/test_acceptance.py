"""The outside is what it was: see ``acceptance``."""

import json

import acceptance
import pytest
from cases import BY_DAY, CASES


@pytest.mark.parametrize("name", [name for name in CASES if name in BY_DAY])
def test_by_day(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_DAY])
def test_by_night(name: str) -> None:
    check(name)


def check(name: str) -> None:
    kept = acceptance.read_recorded()
    now = json.loads(json.dumps(acceptance.observe(name)))
    exact = kept["environment"] == acceptance.find_environment()
    assert list(acceptance.compare(kept["cases"][name], now, exact)) == []


def test_options_and_public_names_are_what_they_were() -> None:
    kept = acceptance.read_recorded()
    assert list(kept["cases"]) == list(CASES)
    assert (
        list(acceptance.compare(kept["outside"], json.loads(json.dumps(acceptance.observe_outside())), True))
        == []
    )


def test_any_change_is_described() -> None:
    kept = {"a": [1, {"b": 0.25}], "c": None}
    assert list(acceptance.compare(kept, {"a": [1, {"b": 0.25}], "c": None}, exact=True)) == []
    (line,) = acceptance.compare(kept, {"a": [1, {"b": 0.25 + 2e-16}], "c": None}, exact=True)
    assert line.startswith("a[1]: b\n   was 0.25")
    assert not list(acceptance.compare(kept, {"a": [1, {"b": 0.25 + 2e-16}], "c": None}, exact=False))
    assert list(acceptance.compare(kept, {"a": [1], "c": None}, exact=False))

"""The golden values: see ``golden``."""

import json
import re
from importlib import import_module
from typing import Any

import golden
import pytest

from ckcv_ray.core.resampling.folds import RESAMPLINGS
from ckcv_ray.learners import BUILT_IN
from ckcv_ray.learners.choice import Choice
from ckcv_ray.study.study import SLOTS

MODULES = {section: import_module(section) for section in golden.SECTIONS}
EVERY = [
    pytest.param(section, name, id=f"{section}: {name}")
    for section in MODULES
    for name in MODULES[section].NAMES
]


def kept(section: str) -> dict[str, Any]:
    return golden.read()[section]


@pytest.mark.parametrize(("section", "name"), EVERY)
def test_nothing_has_changed(section: str, name: str, request: pytest.FixtureRequest) -> None:
    if golden.is_missing(name):
        request.getfixturevalue("ida")  # which skips the test
    observed = MODULES[section].observe(name)
    assert golden.compare(section, name, kept(section)[name], observed, golden.is_exact()) == []


@pytest.mark.parametrize("section", golden.SECTIONS)
def test_what_is_recorded_is_what_is_observed(section: str) -> None:
    assert list(kept(section)) == list(MODULES[section].NAMES)


def test_the_studies_are_what_they_are_called() -> None:
    assert kept("studies")["a failed split"]["provisional"]
    claims = kept("studies")["holdout with two claims"]["claims"]
    assert [claim[1] for claim in claims] == ["vote", "refit"]
    assert kept("procedures")["splits that were given, fits of few rows fail"]["splits without a score"]


def test_every_part_of_a_study_has_an_identity() -> None:
    hashed = [json.loads(values["hashed"]) for values in kept("identities").values()]
    studies = [content["study"] for content in hashed if "study" in content]
    for slot, parts in SLOTS.items():
        if slot != "learner":  # auto is stored as what it stands for
            assert {study[slot]["name"] for study in studies} == set(parts) - {"auto"}
    procedures = [content["procedure"] for content in hashed if "procedure" in content]
    ours = {name for name, kind in RESAMPLINGS.items() if kind.__module__.startswith("ckcv_ray.")}
    assert {one["resampling"]["name"] for one in procedures} == ours - set(SLOTS["resampling"])
    assert len(studies) + len(procedures) == len(hashed)
    named = re.findall(r'"name":"(\w+)"', "".join(values["hashed"] for values in kept("identities").values()))
    assert {one.name for one in BUILT_IN} | {Choice.name} <= set(named)
    run_ids = {(values["hashed"], values["run_id"]) for values in kept("identities").values()}
    assert len({run_id for _, run_id in run_ids}) == len({text for text, _ in run_ids}) == len(run_ids)

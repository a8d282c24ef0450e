"""The certificate: stored and read again, verified, and what it refuses to speak of."""

import json
from dataclasses import fields

import pytest
from claimed import SMALL, read_again, run
from conftest import blobs
from forgery import column

from ckcv_ray import Result
from ckcv_ray.claims.certificate import Certificate
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.judged import HeldOutPredictions
from ckcv_ray.errors import InputError


def test_what_failed_leaves_every_claim_as_it_is():
    """Each allows for any selection: the bound of paper is a union over what failed, too."""
    result = run(SMALL, blobs(60))
    table = column("state", lambda states: ["failed", *states[1:]])(result.candidates)
    assert result.candidates["state"][0].as_py() == "beaten"
    c = certify(HeldOutPredictions(result.problem, result.models), table, {})
    assert c.claims == result.certificate.claims
    assert sum("Provisional" in sentence for sentence in c.wording.statements) == 1
    assert "Provisional" not in " ".join(result.certificate.wording.statements)


@pytest.fixture(scope="module")
def result() -> Result:
    return run(SMALL, blobs(60))


@pytest.fixture(scope="module")
def finished(result) -> dict:
    """The values of a certificate, as a file has them."""
    return json.loads(json.dumps(result.certificate.to_json()))


def baseline(content: dict, **values: object) -> dict:
    return {"baselines": [content["baselines"][0] | values]}


def from_held_out(content: dict) -> dict:
    return {"claims": [content["claims"][0] | {"certification": "holdout"}, *content["claims"][1:]]}


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        (
            lambda c: {"bound": "mid-p"},
            "^bound is 'mid-p', and from the other files follows 'clopper_",
        ),
        (lambda c: {"criterion": "auc"}, "^criterion is 'auc', and from the other files follows 'error'"),
        (lambda c: {"criterion": "cost"}, "^criterion is 'cost'"),
        (lambda c: {"l_ms": 1.5}, "^l_ms: "),
        (lambda c: {"by_class": c["by_class"][:1]}, "^by_class is "),
        (lambda c: {"by_class": [c["by_class"][0] | {"errors": 99}] * 2}, "^by_class is "),
        (lambda c: {"errors": c["errors"][:-1]}, "^errors is "),
        (lambda c: {"errors": [-1, *c["errors"][1:]]}, "^errors.0: "),
        (lambda c: {"repeats": -1}, "^repeats: "),
        (lambda c: {"error": 1.5}, "^error: "),
        (lambda c: {"class_rows": [30, 29]}, "^class_rows is "),
        (
            lambda c: {"constants": c["constants"] | {"members": [2] * 5}},
            "constants: the class number 2 is outside 0..1",
        ),
        (lambda c: {"constants": c["constants"] | {"members": [True] * 5}}, "^constants.members.0"),
        (lambda c: {"baselines": []}, "^baselines is "),
        (lambda c: baseline(c, errors=61), "^baselines is "),
        (lambda c: baseline(c, rows=59), "^baselines is "),
        (lambda c: baseline(c, error=-0.1), "^baselines.0.error: "),
        (lambda c: baseline(c, predicted=2), "^baselines is "),
        (lambda c: from_held_out(c), "claims: the study has 1; these are of one side alone: .*'holdout'"),
        (lambda c: {"claims": []}, "claims: the study has 1; these"),
        (lambda c: {"claims": [c["claims"][0] | {"errors": 1.0}]}, "^claims.0.errors: "),
        (lambda c: {"claims": [c["claims"][0] | {"bound": -0.5}]}, "^claims.0.bound: "),
        (lambda c: {"claims": [c["claims"][0] | {"note": "so"}]}, "^claims.0.note: "),
        (lambda c: {"by_class": [c["by_class"][0] | {"bound": 2}] * 2}, "^by_class.0.bound: "),
        (lambda c: {"n_held": -1}, "^n_held: "),
        (lambda c: {"bound_without_copies": -1.0}, "^bound_without_copies: "),
        (
            lambda c: {"claims": [c["claims"][0] | {"bound": 1.5}]},
            "^claims.0.bound: 1.5 cannot be",
        ),
        (lambda c: {"claims": [c["claims"][0] | {"errors": 10**6}]}, "^claims.0.errors: 1000000 cannot be"),
        (lambda c: {"claims": [c["claims"][0] | {"delta": 1e-300}]}, "^claims.0.delta: 1e-300 cannot be"),
        (lambda c: {"claims": [c["claims"][0] | {"measured": 0.5}]}, "^claims.0.measured: 0.5 cannot be"),
        (
            lambda c: {"constants": c["constants"] | {"refit": 2}},
            "constants: the class number 2 is outside 0..1",
        ),
        (lambda c: {"protocol": "paper"}, "^protocol: a certificate has no such field"),
        (lambda c: {"k": "3"}, "^k: "),
    ],
)
def test_a_certificate_that_contradicts_itself_or_its_study_is_refused(result, finished, changed, messages):
    assert json.loads(json.dumps(read_again(finished, result).to_json())) == finished
    with pytest.raises(ValueError, match=messages):
        read_again(finished | changed(finished), result)


def test_the_file_has_each_field_of_each_part_once():
    certificate = run(SMALL, blobs(60)).certificate
    names = [field.name for part in fields(certificate) for field in fields(getattr(certificate, part.name))]
    assert len(set(names)) == len(names)
    values = certificate.to_json()
    assert set(names) - set(values) == {"groups", "confusion", "search", "subgroups", "numbers", "giveaways"}
    assert values["claims"] == [claim.to_json() for claim in certificate.claims]
    values["setting"].clear()  # a copy
    assert certificate.winner.setting


def test_a_certificate_without_one_of_its_fields_is_refused(finished):
    for name in finished:
        with pytest.raises(ValueError, match=f"^{name}"):
            Certificate.from_json({key: value for key, value in finished.items() if key != name})


# What is refused


@pytest.mark.parametrize(("share", "refused"), [(0.001, "0 rows of 60 held"), (0.95, "57 of 60 rows held")])
def test_a_share_that_holds_out_or_leaves_too_little_is_refused(share, refused):
    with pytest.raises(InputError, match=refused):
        run(SMALL.replace(certify="holdout", holdout_share=share), blobs(60))


def test_k_is_judged_by_the_rows_left():
    with pytest.raises(InputError, match=r"k=42 is outside 3..30: there are 30 rows to learn from"):
        run(SMALL.replace(certify="holdout", k=(3, 42)), blobs(60))

"""The certificate: stored and read again, verified, and what it refuses to speak of."""

import json
from collections.abc import Callable

import pytest
from claimed import SMALL, read_again, run
from conftest import blobs
from forgery import column

from ckcv_ray import Result
from ckcv_ray.claims.certify import certify
from ckcv_ray.claims.judged import HeldOutPredictions


def test_what_failed_leaves_every_claim_as_it_is():
    """Each allows for any selection: the bound of paper is a union over what failed, too."""
    result = run(SMALL, blobs(60))
    table = column("state", lambda states: ["failed", *states[1:]])(result.candidates)
    assert result.candidates["state"][0].as_py() == "beaten"
    c = certify(HeldOutPredictions(result.problem, result.models), table, {})
    assert c.claims == result.certificate.claims
    assert sum("Provisional" in sentence for sentence in c.statements) == 1
    assert "Provisional" not in " ".join(result.certificate.statements)


@pytest.fixture(scope="module")
def result() -> Result:
    return run(SMALL, blobs(60))


@pytest.fixture(scope="module")
def finished(result) -> dict:
    """The values of a certificate, as a file has them."""
    return json.loads(json.dumps(result.certificate.to_json()))


def part(name: str, **values: object) -> Callable[[dict], dict]:
    """A change of a field with fields of its own, or of the first of several."""
    return lambda c: {name: [c[name][0] | values] if isinstance(c[name], list) else c[name] | values}


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        (lambda _: {"criterion": "auc"}, "^criterion is 'auc', and from the other files follows 'error'"),
        (lambda _: {"class_rows": [30, 29]}, "^class_rows is "),
        (lambda _: {"bound_without_copies": -1.0}, "^bound_without_copies: "),
        (part("constants", members=[1] * 5), "^constants is "),
        (part("constants", members=[True] * 5), "^constants is "),
        (part("constants", refit=1), "^constants is "),
        (part("baselines", errors=61), "^baselines is "),
        (part("baselines", error=-0.1), "^baselines.0.error: "),
        (part("claims", certification="holdout"), "claims: the study has 1; these are of .*'holdout'"),
        (lambda _: {"claims": []}, "claims: the study has 1; these"),
    ],
)
def test_a_certificate_that_contradicts_itself_or_its_study_is_refused(result, finished, changed, messages):
    assert json.loads(json.dumps(read_again(finished, result).to_json())) == finished
    with pytest.raises(ValueError, match=messages):
        read_again(finished | changed(finished), result)

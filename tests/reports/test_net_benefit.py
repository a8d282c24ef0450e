"""The decision curve: what is measured of it, what is proven, and what is drawn."""

from typing import Any

import numpy as np
import pytest
from conftest import blobs

from ckcv_ray import Execution, Result, Study, Task
from ckcv_ray.claims.predictive import NetBenefit
from ckcv_ray.reports.figures import draw_performance
from ckcv_ray.runs.judged import BY_BEST, BY_PROBABILITY, Judged, judge_rows, trace_net_benefit
from ckcv_ray.runs.run import Job, run_job

SERIAL = Execution("serial")
CLAIMED = "refit,net_benefit:0.02:0.1,net_benefit:0.02:0.03,net_benefit:0.2:0.1,sensitivity,specificity"


def make(claim: str = CLAIMED, learner: str = "linear", **options: Any) -> Result:
    small: dict[str, Any] = {"k": (3,), "n_splits": 3, "learner": learner, "certify": "holdout"}
    small |= {"C": (1.0,), "gamma": (0.1,)} if learner == "svm" else {}
    return run_job(Job(Study.paper(**small, claim=claim, **options), blobs(240, shift=2.0)), SERIAL)


@pytest.fixture(scope="module")
def result() -> Result:
    return make()


def find_recalls(judged: Judged, positive: int) -> tuple[float, float]:
    ill, flagged = judged.y == positive, judged.label == positive
    return float(np.mean(flagged[ill])), float(np.mean(~flagged[~ill]))


def test_the_points_are_what_is_claimed_at_the_prevalence(result: Result) -> None:
    judged = judge_rows(result)
    found = trace_net_benefit(result, judged)
    assert found.prevalence == 0.02
    claims = {str(claim.quantity): claim for claim in result.certificate.claims}
    assert [point.worth for point in found.points] == [0.1, 0.03]
    for point in found.points:
        name = NetBenefit(0.02, point.worth)
        assert point.proven == 1 - claims[str(name)].bound
        assert point.measured == name.compute(*find_recalls(judged, 1))
        assert point.proven < point.measured
    assert found.worth[0] == 0
    assert found.worth[-1] == pytest.approx(0.15)


def test_the_curves_are_net_benefits(result: Result) -> None:
    judged = judge_rows(result)
    found = trace_net_benefit(result, judged)
    assert found.cut_off == BY_PROBABILITY
    ill, share = judged.y == 1, np.mean(judged.y == 1)
    for i in range(0, len(found.worth), 10):
        w = float(found.worth[i])
        named = NetBenefit(0.02, w)
        assert found.by_rule[i] == pytest.approx(named.compute(*find_recalls(judged, 1)))
        assert found.everybody[i] == pytest.approx(named.compute(1.0, 0.0))
        given = judged.probability[:, 1]
        odds = given / (1 - given) * (0.02 / 0.98) / (share / (1 - share))
        flagged = odds >= w / (1 - w)
        expected = named.compute(np.mean(flagged[ill]), np.mean(~flagged[~ill]))
        assert found.by_cut_off[i] == pytest.approx(expected, abs=1e-12)


def test_without_claims_the_share_is_that_of_the_rows_and_nothing_is_proven() -> None:
    result = make("refit", "svm")
    judged = judge_rows(result)
    found = trace_net_benefit(result, judged)
    assert found.prevalence == np.mean(judged.y == 1)
    assert found.points == ()
    assert found.cut_off == BY_BEST
    assert np.all(found.by_cut_off >= np.maximum(found.by_rule, found.everybody) - 1e-12)
    assert np.all(found.by_cut_off >= 0)
    several = trace_net_benefit(result, judged._replace(classifier=np.arange(len(judged.y)) % 2))
    assert several.by_cut_off is None
    assert several.cut_off == ""


def test_a_claim_at_another_cut_off_is_no_point_of_this_rule() -> None:
    result = make("refit,net_benefit:0.02:0.1", require="sensitivity>=0.8")
    found = trace_net_benefit(result, judge_rows(result))
    assert found.points == ()
    alone = make("net_benefit:0.02:0.1,ppv:0.3", require="sensitivity>=0.8")
    found = trace_net_benefit(alone, judge_rows(alone))
    assert [point.worth for point in found.points] == [0.1]


def test_what_is_not_proven_is_no_point() -> None:
    rng = np.random.default_rng(0)
    noise = Task.of(rng.normal(size=(600, 2)), np.arange(600) % 2)
    study = Study.paper(
        k=(3,), n_splits=3, learner="linear", certify="holdout", require="ppv:0.1>=0.3",
        claim="net_benefit:0.1:0.2",
    )  # fmt: skip
    result = run_job(Job(study, noise), SERIAL)
    found = trace_net_benefit(result, judge_rows(result))
    assert found.points == ()
    assert found.prevalence == 0.1


def test_rows_of_one_class_have_none(result: Result) -> None:
    judged = judge_rows(result)
    one = judged._replace(y=np.zeros_like(judged.y))
    assert trace_net_benefit(result, one) is None
    picture = next(p for p in draw_performance(result, one) if "Decision" in p.title)
    assert picture.caption == "There is none: it takes two classes, and rows of both."

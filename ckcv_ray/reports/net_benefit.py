"""The decision curve: net benefit over the probability from which on a row is worth flagging.

Vickers and Elkin (Medical Decision Making 26, 2006): whoever flags rows from a probability w on counts a row
that is wrongly flagged as w / (1 - w) of one rightly flagged. The curves are measured, at one stated share of
the positive class; what the study proves of net benefits at this share are points.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckcv_ray.claims.claim import claims_nothing, share_rule
from ckcv_ray.core.arrays import Values
from ckcv_ray.reports.performance import DecisionCurve, Judged, ProvenPoint, trace_rates
from ckcv_ray.reports.values import ResultValues
from ckcv_ray.study import Predictive, parse_predictive

N_WORTHS = 101  # of the curves
BY_PROBABILITY = "rows with at least this probability"
BY_BEST = "best cut-off for these rows"
LARGEST_WORTH = 0.9
BEYOND_SHARE, BEYOND_LAST = 3.0, 1.5  # how far the curves go: times the prevalence, and the last point


def trace_net_benefit(result: ResultValues, judged: Judged) -> DecisionCurve | None:
    """Return the decision curve of judged rows; None without two classes, or rows of both."""
    if result.task.n_classes != 2 or len(np.unique(judged.y)) < 2:
        return None
    is_positive, flagged = judged.y == judged.positive, judged.label == judged.positive
    recalls = float(np.mean(flagged[is_positive])), float(np.mean(~flagged[~is_positive]))
    claimed = list(_list_claimed(result))
    share = float(np.mean(is_positive))
    prevalence = next(
        (each.prevalence for each, _ in sorted(claimed, key=lambda each: each[0].worth is None)), share
    )
    points = tuple(
        ProvenPoint(each.worth, proven, each.compute(*recalls))
        for each, proven in claimed
        if each.worth is not None and each.prevalence == prevalence and proven is not None
    )
    last = max([BEYOND_SHARE * prevalence, *(BEYOND_LAST * point.worth for point in points)])
    worth = np.linspace(0.0, min(LARGEST_WORTH, last), N_WORTHS)
    return DecisionCurve(
        prevalence,
        worth,
        _compute_benefits(prevalence, worth, *recalls),
        *_trace_by_cut_off(judged, prevalence, worth),
        _compute_benefits(prevalence, worth, 1.0, 0.0),
        points,
    )


def _list_claimed(result: ResultValues) -> Iterator[tuple[Predictive, float | None]]:
    """Yield what is claimed at a stated share of the rule that is judged, and what is proven."""
    claims = () if result.finished is None else result.certificate.claims.claims
    for claim in claims:
        found = parse_predictive(claim["quantity"])
        if found is not None and share_rule(claim, claims[0]):
            yield found, None if claims_nothing(claim) else 1 - claim["bound"]


def _trace_by_cut_off(judged: Judged, prevalence: float, worth: Values) -> tuple[Values | None, str]:
    """Return the net benefits at a cut-off for each probability, and which cut-off it is; or None and ""."""
    is_positive = judged.y == judged.positive
    if judged.probability is not None:
        share, given = float(np.mean(is_positive)), judged.probability[:, judged.positive]
        right = given * prevalence * (1 - share)
        wrong = (1 - given) * (1 - prevalence) * share
        flags = [right * (1 - w) >= wrong * w for w in worth.tolist()]
        found = [
            float(_compute_benefits(prevalence, w, np.mean(flag[is_positive]), np.mean(~flag[~is_positive])))
            for w, flag in zip(worth, flags, strict=True)
        ]
        return np.array(found), BY_PROBABILITY
    if judged.rank is None or len(np.unique(judged.classifier)) > 1:
        return None, ""
    false, true = trace_rates(is_positive, judged.rank)
    curves = _compute_benefits(prevalence, worth[:, None], true, 1 - false)
    return np.asarray(curves.max(axis=1)), BY_BEST


def _compute_benefits(prevalence: float, worth: Values, sensitivity: Any, specificity: Any) -> Values:
    wrong = (1 - prevalence) * (1 - specificity) * worth / (1 - worth)
    return np.asarray(prevalence * sensitivity - wrong)

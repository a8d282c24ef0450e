"""What a certificate claims besides errors, written a second time for ``jobs/check_certificate.py``.

Recalls, what follows from them, subgroups, and answered rows: their shares of delta and their
bounds, from counts. Nothing here is shared with the package.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.independent_bounds import bound_count

Array = NDArray[Any]
OF_CLASS = ("sensitivity", "specificity", "recall")
PREDICTIVE = ("ppv", "npv", "net_benefit")
ANSWERED = ("answered_error", "answered_share")


def share_claims(certify: dict[str, Any], n_classes: int, delta: float) -> tuple[int, float]:
    """Return how many recalls are claimed jointly, and the share of delta of each claim, or of them."""
    free = (*PREDICTIVE, *ANSWERED)  # what follows from recalls, and what shares one part
    asked = [name for name in certify.get("claim", ["random"]) if name.split(":")[0] not in free]
    jointly = sum(n_classes if name == "recall" else name in OF_CLASS for name in asked)
    shares = sum(name not in OF_CLASS for name in asked) + (jointly > 0)
    return jointly, delta / (shares + sum(bool(certify.get(name)) for name in ("subgroups", "answer")))


def bound_answered(
    claim: dict[str, Any], wrong: int, rows: int, most: float, held: int, delta: float, copies: int
) -> list[Any]:
    """Return the bound of a claim about the rows answered, its counts and delta.

    The error is bounded by what was asked, at the last threshold that passed; the share answered by the rows
    not answered, at the thresholds' part of delta.
    """
    if copies:
        raise NotImplementedError("the rows answered at every threshold, which are not stored")
    if claim["quantity"] == "answered_error":
        passed = float(bound_count(wrong, rows, delta)) <= most if rows else False
        return [most if passed else None, wrong, rows, delta]
    if "least_confidence" not in claim:
        return [None, wrong, held, delta]
    found = re.search(r"Clopper-Pearson for (\d+) thresholds together", claim["statement"])
    assert found is not None
    return [float(bound_count(wrong, held, delta / int(found[1]))), wrong, held, delta]


def name_required(certify: dict[str, Any]) -> str:
    """Return the name of the predictive value that a cut-off was chosen for; "" if none was."""
    name: str = certify.get("require", "").partition(">=")[0]
    return name if ":" in name else ""


def bound_tested(
    claim: dict[str, Any],
    certificate: dict[str, Any],
    certify: dict[str, Any],
    y: Array,
    delta: float,
    copies: int,
) -> list[Any]:
    """Return the bound of a claim at the last of several tests that passed, its counts and delta.

    Of a required predictive value (what was asked, if it follows from both recalls at the cut-off), or of one
    of these recalls (by the cut-offs' part of delta). ``y`` are classes of rows held out.
    """
    if copies:
        raise NotImplementedError("the rows wrong at every cut-off, which are not stored")
    held = {label: int(np.sum(y == number)) for number, label in enumerate(certificate["labels"])}
    pair = find_recalls(certificate["claims"], claim)
    value, each = name_required(certify), delta / 2
    counts = [(recall["errors"], held[recall["label"]]) for recall in pair]
    if claim["quantity"] == value:
        least = float(certify["require"].partition(">=")[2])
        recalls = (1 - float(bound_count(*count, each)) for count in counts)
        passed = "cut_off" in claim and predict(value, *recalls) >= least
        return [1 - least if passed else None, None, None, delta]
    found = re.search(r"Clopper-Pearson for (\d+) cut-offs together", claim["statement"])
    wrong, rows = claim["errors"], held[claim["label"]]
    bound = None if found is None else float(bound_count(wrong, rows, each / int(found[1])))
    return [bound, wrong, rows, each]


def predict(name: str, sensitivity: float, specificity: float) -> float:
    """Return a predictive value or net benefit, such as "ppv:0.02", from both recalls (Bayes)."""
    kind, *given = name.split(":")
    q = float(given[0])
    true, false = q * sensitivity, (1 - q) * (1 - specificity)
    if kind == "net_benefit":
        return true - false * float(given[1]) / (1 - float(given[1]))
    if kind == "npv":
        true, false = (1 - q) * specificity, q * (1 - sensitivity)
    return true / (true + false) if true else 0.0


def find_recalls(claims: list[dict[str, Any]], claim: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the claims about sensitivity and specificity of the rule of a claim."""
    recalls = [each for each in claims if each["quantity"] in ("sensitivity", "specificity")]
    pair = [each for each in recalls if each["classifier"] == claim["classifier"]]
    return sorted(pair, key=lambda each: str(each["quantity"]))


def is_guarded(claim: dict[str, Any]) -> bool:
    """Return whether a claim has to be of a rule that is proven better than every constant."""
    of_error = claim["quantity"].split(":")[0] in ("error", "weighted_error")
    return of_error and claim["certification"] == "holdout"


def bound_subgroups(parts: list[dict[str, Any]], columns: list[str], delta: float) -> list[float | None]:
    """Return the bound of each error and recall of subgroups of columns, which share delta equally."""
    bounds = list[float | None]()
    delta /= len(columns)
    lines = sum(part["subgroup"] == parts[0]["subgroup"] for part in parts)  # the error and every recall
    named = [re.sub(r":\d+$", "", column)[:60] for column in columns]
    of = [max((name for name in named if name in part["subgroup"]), key=len) for part in parts]
    for part, column in zip(parts, of, strict=True):
        about = [one for one, name in zip(parts, of, strict=True) if name == column]
        claimed = sum(one["quantity"] == "error" and one["rows"] >= 10 for one in about)
        level = delta / max(1, claimed) / lines
        bounds.append(
            None if part["bound"] is None else float(bound_count(part["errors"], part["rows"], level))
        )
    return bounds


def agree(stored: Any, computed: Any) -> bool:
    """Return whether two figures, or lists of them, agree."""
    if isinstance(stored, list) and isinstance(computed, list):
        return len(stored) == len(computed) and all(map(agree, stored, computed))
    if isinstance(stored, float) and isinstance(computed, int | float):
        return bool(abs(stored - computed) <= 1e-9 * abs(computed))
    return bool(stored == computed)

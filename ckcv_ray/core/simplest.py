"""Which of several settings to keep: the one with the least mean loss, or the simplest that is about as good.

References: Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984, section 3.4.3 (one
standard error); Kuhn, "Building predictive models in R using the caret package", Journal of Statistical
Software 28, 2008 (a tolerance in percent of the best).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from ckcv_ray.core.arrays import Values
from ckcv_ray.errors import InputError
from ckcv_ray.validation import quote

BEST_MEAN, ONE_SE, TOLERANCE = "best", "one_se", "tolerance"
EXPECTED = "expected best, one_se (within one standard error of the best), or tolerance:2% (within 2 % of it)"
SMALLER, LARGER = 1, -1
SIMPLER = {  # which values of a hyperparameter make a simpler model, those that decide first coming first
    "max_depth": SMALLER,
    "max_leaf_nodes": SMALLER,
    "num_leaves": SMALLER,
    "depth": SMALLER,
    "n_components": SMALLER,
    "degree": SMALLER,
    "ccp_alpha": LARGER,
    "min_samples_leaf": LARGER,
    "n_neighbors": LARGER,
    "C": SMALLER,
    "alpha": LARGER,
    "gamma": SMALLER,
    "shrinkage": LARGER,
    "var_smoothing": LARGER,
    "hidden_layer_sizes": SMALLER,
    "n_estimators": SMALLER,
    "iterations": SMALLER,
    "max_iter": SMALLER,
    "learning_rate": SMALLER,
    "max_features": SMALLER,
}


def check_choose(choose: Any) -> str:
    """Return how a setting is chosen, in its canonical form, such as "one_se" or "tolerance:2%".

    Raises:
        InputError: it is none of these.
    """
    if choose in (BEST_MEAN, ONE_SE):
        return str(choose)
    word, _, rest = choose.partition(":") if isinstance(choose, str) else ("", "", "")
    with suppress(ValueError):
        if word == TOLERANCE and rest.endswith("%") and 0 <= (percent := float(rest[:-1])) < inf:
            return f"{TOLERANCE}:{percent:g}%"
    raise InputError(f"choose={quote(choose)}: {EXPECTED}")


def choose_setting(choose: str, means: Values, errors: Values, settings: Sequence[Mapping[str, Any]]) -> int:
    """Return the position of the setting to keep.

    Args:
        choose: "best", "one_se" or "tolerance:2%".
        means: mean loss of each setting, (n,); nan where it is not known, of all but one at most.
        errors: its standard error, (n,).
        settings: hyperparameters of each, (n,), all of one learner.
    """
    best = int(np.nanargmin(means))
    if choose == BEST_MEAN:
        return best
    share = float(choose.partition(":")[2].removesuffix("%") or 0) / 100
    limit = means[best] + (errors[best] if choose == ONE_SE else share * abs(means[best]))
    names = list_simplifying(settings)
    close = np.flatnonzero(means <= limit).tolist()
    return int(min(close, key=lambda i: (*(_weigh(name, settings[i]) for name in names), means[i], i)))


def list_simplifying(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the hyperparameters in which settings differ and of which it is known what is simpler."""
    names = (name for name in SIMPLER if name in settings[0])
    return [name for name in names if len({str(setting.get(name)) for setting in settings}) > 1]


def _weigh(name: str, setting: Mapping[str, Any]) -> float:
    """Return a number that is smaller for a simpler value; text, such as "sqrt", is as simple as any."""
    value = setting[name]
    if value is None:  # no limit, or no penalty
        return inf
    size = sum(value) if isinstance(value, list | tuple) else value
    return SIMPLER[name] * float(size) if isinstance(size, int | float) else 0.0

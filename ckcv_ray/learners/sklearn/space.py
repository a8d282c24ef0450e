"""Search spaces: for each parameter a list of values or a distribution, and the settings they give.

max_features=sqrt,0.5       values: numbers, true, false, none, lists such as [50,50], and other text
C=log:-2:4:13               13 values from 10^-2 to 10^4
C=loguniform:1e-3:1e2       a distribution, of which ``sample`` settings are drawn; also uniform and randint
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.functions import describe_value
from ckcv_ray.validation import MOST_GRID, check_count, expect, parse_grid, quote

Values = dict[str, Any]  # by parameter: a tuple of values, or a distribution as text
Params = dict[str, Any]
DISTRIBUTIONS = ("loguniform", "uniform", "randint")
WORDS = {"true": True, "false": False, "none": None, "null": None}
MOST_SETTINGS = 100_000


def check_space(name: str, value: Any) -> Values | None:
    """Return a search space in canonical form; None if it is empty.

    Args:
        name: of the option, for messages.
        value: lists of values, texts or distributions by parameter; or texts such as "C=0.1,1".

    Raises:
        InputError: it is not one.
    """
    if value is None or value in ((), [], {}):
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Mapping):
        expect(name, value, Sequence, 'a mapping of lists, such as {"max_features": ["sqrt", 0.5]}')
        pairs = [_split_pair(name, text) for text in value]
        value = dict(pairs)
        if len(value) < len(pairs):
            twice = next(repeated for repeated in value if sum(key == repeated for key, _ in pairs) > 1)
            raise InputError(
                f"{name} {quote(twice)} is given twice: give all its values at once, {twice}=1,2"
            )
    expect(name, value, Mapping, 'a mapping of lists, such as {"max_features": ["sqrt", 0.5]}')
    return {key: _parse_values(f"{name} {key}", value[key]) for key in sorted(value)}


def list_settings(space: Values, sample: int | None) -> list[Params]:
    """Return the settings of a space: all combinations in order, or a random sample of them.

    The sample depends on the space and its size alone.

    Raises:
        InputError: it has distributions and no sample size, or too many settings.
    """
    drawn = [key for key, values in space.items() if isinstance(values, str)]
    if sample is None:
        if drawn:
            raise InputError(
                f"param {drawn[0]}={space[drawn[0]]} is a distribution: give sample, the number of settings "
                "to draw, such as 60"
            )
        count = int(np.prod([len(values) for values in space.values()], dtype=float))
        if count > MOST_SETTINGS:
            raise InputError(
                f"the search space has {count:,} settings: at most {MOST_SETTINGS:,}: give sample, or fewer"
            )
        return [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if not drawn and len(ParameterGrid(_list_choices(space))) <= sample:
        return list_settings(space, None)
    sampler = ParameterSampler(_list_choices(space), sample, random_state=0)
    found = [{key: _round_value(setting[key]) for key in space} for setting in sampler]
    texts = {json.dumps(setting, sort_keys=True): setting for setting in reversed(found)}
    return list(reversed(texts.values()))


def _list_choices(space: Values) -> dict[str, Any]:
    """Return the space as ParameterSampler takes it."""
    return {k: _make_distribution(v) if isinstance(v, str) else list(v) for k, v in space.items()}


def _make_distribution(text: str) -> Any:
    from scipy import stats

    kind, low, high = text.split(":")
    if kind == "uniform":
        return stats.uniform(float(low), float(high) - float(low))
    if kind == "randint":
        return stats.randint(int(low), int(high))
    return stats.loguniform(float(low), float(high))


def _round_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _split_pair(name: str, text: Any) -> tuple[str, str]:
    key, equals, values = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not (equals and key.strip() and values.strip()):
        raise InputError(f"{name}={quote(text)}: expected a parameter and its values, such as C=0.1,1,10")
    return key.strip(), values.strip()


def _parse_values(name: str, given: Any) -> Any:
    """Return the values of a parameter, as a tuple, or a distribution as text."""
    if hasattr(given, "dist") and hasattr(given, "rvs"):
        given = _write_distribution(name, given)
    if isinstance(given, str):
        if given.count(":") == 2 and given.partition(":")[0] in DISTRIBUTIONS:
            return _check_distribution(name, given)
        if given.startswith("log:"):
            return tuple(parse_grid(given, name))
        given = [_parse_word(part) for part in _split(given)]
    if isinstance(given, bool | int | float | type(None)):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise InputError(f"{name}={quote(given)} is not a list of values")
    values = [_check_value(name, value) for value in given]
    check_count(name, len(values), MOST_GRID)
    if not values:
        raise InputError(f"{name} is empty: give at least one value")
    texts = [json.dumps(value) for value in values]
    if len(set(texts)) < len(texts):
        raise InputError(f"{name}={quote(given)} has a value twice")
    return tuple(values)


def _check_value(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return [_check_value(name, item) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, float) and np.isinf(value):
        return describe_value(value)
    if isinstance(value, str) and value.isprintable():
        return value
    raise InputError(f"{name}={quote(value)}: values are numbers, inf, text, true, false, none, or lists")


def _check_distribution(name: str, text: str) -> str:
    try:
        distribution = _make_distribution(text)
        low, high = distribution.support()
        if not (np.isfinite([low, high]).all() and low < high + (text[0] == "r")):
            raise ValueError
    except (ValueError, TypeError):
        raise InputError(
            f"{name}={text!r}: expected loguniform:1e-3:1e2, uniform:0:1 or randint:1:100, the smaller first"
        ) from None
    return text


def _write_distribution(name: str, distribution: Any) -> str:
    kind, args = distribution.dist.name, distribution.args
    names = {
        "loguniform": "loguniform",
        "reciprocal": "loguniform",
        "uniform": "uniform",
        "randint": "randint",
    }
    if kind not in names or distribution.kwds or not 1 <= len(args) <= 2:
        raise InputError(f"{name}: a distribution is one of {', '.join(DISTRIBUTIONS)}, given by position")
    low, high = distribution.support()
    high = high + 1 if kind == "randint" else high
    return f"{names[kind]}:{low.item() if hasattr(low, 'item') else low}:{high}"


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parse_word(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text

"""Columns that an estimator selects by name: their positions, once the columns of the table are known.

An estimator that selects columns by name is given the columns of the table as they are, one for each: numbers
with gaps (nan), dates in milliseconds, and of a category the number of its level, in sorted order. It encodes
them itself, by scikit-learn's encoders of categories, for which a number is as good as the text. Any other
part of it would take such a number for a quantity, as it would not take the text; so that is refused.
The boosting libraries are given categories likewise, if one of their estimators asks for them.

    {"kinds": ["number"]}     the columns of these kinds, which ``make_column_selector`` asks for
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.errors import InputError
from ckcv_ray.learners.sklearn.allowed import NO_STEP, list_specs
from ckcv_ray.learners.sklearn.functions import KINDS, SLICE
from ckcv_ray.learners.sklearn.libraries import BOOSTERS, CATBOOST, LIGHTGBM, XGBOOST
from ckcv_ray.tables.columns.schema import Schema
from ckcv_ray.tables.columns.types import Column
from ckcv_ray.tables.target import some
from ckcv_ray.validation import quote, suggest

Spec = dict[str, Any]
COLUMN_TRANSFORMER, PIPELINE = "sklearn.compose:ColumnTransformer", "sklearn.pipeline:Pipeline"
TRANSFORMERS = "transformers"
ENCODERS = {  # of categories, and what they need for one that was never seen
    "sklearn.preprocessing:OneHotEncoder": 'handle_unknown="ignore"',
    "sklearn.preprocessing:OrdinalEncoder": 'handle_unknown="use_encoded_value", unknown_value=-1',
    "sklearn.preprocessing:TargetEncoder": "",
}
FILLS = {"sklearn.impute:SimpleImputer": ("most_frequent", "constant")}  # what these give is categories again
BRANCHES = {  # estimators of which each part is given the rows as they are, and the parameter that holds them
    "sklearn.pipeline:FeatureUnion": "transformer_list",
    **{
        f"sklearn.ensemble:{name}{kind}": "estimators"
        for name in ("Voting", "Stacking")
        for kind in ("Classifier", "Regressor")
    },
}
AROUND = {  # estimators that give the rows on as they are, and the parameter that holds the one inside
    "sklearn.calibration:CalibratedClassifierCV": "estimator",
    "sklearn.compose:TransformedTargetRegressor": "regressor",
    **{
        f"sklearn.model_selection:{name}": "estimator"
        for name in (
            *("FixedThresholdClassifier", "TunedThresholdClassifierCV"),
            *("GridSearchCV", "RandomizedSearchCV"),
        )
    },
}


OWN_CATEGORIES = {XGBOOST: "enable_categorical", LIGHTGBM: "categorical_feature", CATBOOST: "cat_features"}
AUTO = "auto"


class Seen(NamedTuple):
    """What a part of an estimator is given."""

    columns: tuple[Column, ...] | None = None  # of the table; None: what another part makes
    levels: tuple[str, ...] = ()  # names of categories whose numbers are among what another part makes

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of all categories whose numbers are given."""
        return (*(column.name for column in self.columns or () if column.levels), *self.levels)

    def pass_on(self) -> "Seen":
        """Return what a part makes that leaves the numbers of categories as they are."""
        return Seen(levels=self.categories)


MADE = Seen()  # no categories


def selects_by_name(spec: Mapping[str, Any]) -> bool:
    """Return whether an estimator, in its JSON form, selects columns by name or kind."""
    if _asks_for_categories(spec):
        return True
    selections = [columns for inside in list_specs(spec) for columns in _list_selections(inside)]
    return any(
        _list_names(columns) or (isinstance(columns, Mapping) and KINDS in columns) for columns in selections
    )


def find_columns(spec: Spec, schema: Schema) -> Spec | None:
    """Return the JSON form of an estimator with the positions of columns for their names and kinds.

    None of one that selects none, and takes encoded columns.

    Raises:
        InputError: there is no such column, the columns are not those of the table where they are selected,
            or a category is given to what would take its number for a quantity.
    """
    if not selects_by_name(spec):
        return None
    if _asks_for_categories(spec):
        return _find_categories("estimator", spec, schema.columns)
    found, _ = _find_in("estimator", spec, Seen(schema.columns))
    return found


def _asks_for_categories(spec: Mapping[str, Any]) -> bool:
    """Return whether an estimator of a boosting library, by itself, is to treat categories as such."""
    if (library := BOOSTERS.get(str(spec.get("class")))) is None:
        return False
    given = spec.get("params", {}).get(OWN_CATEGORIES[library])
    return bool(_list_names(given)) if library == LIGHTGBM else bool(given)  # positions are of encoded ones


def _find_categories(label: str, spec: Spec, columns: Sequence[Column]) -> Spec | None:
    """Return an estimator of a boosting library with the positions of the categories.

    None of XGBoost's where there are none, which it need not know.

    Raises:
        InputError: it does not name a column of categories, or names one of numbers.
    """
    library = BOOSTERS[spec["class"]]
    parameter, every = OWN_CATEGORIES[library], [i for i, column in enumerate(columns) if column.levels]
    if library == XGBOOST:
        types = ["c" if column.levels else "q" for column in columns]
        return _replace(spec, feature_types=types) if every else None
    label, given = f"{label}.{parameter}", spec["params"][parameter]
    named = every if given == AUTO else np.ravel(_find_positions(label, given, columns)).tolist()
    if wrong := sorted({*named} ^ {*every}):
        raise InputError(
            f"{label} does not name the columns that hold categories: it differs in "
            f"{some([columns[i].name for i in wrong])}; name all of these and no others (--categorical makes "
            "categories of numbers)"
        )
    return _replace(spec, **{parameter: named})


def _find_in(label: str, spec: Spec, seen: Seen) -> tuple[Spec, Seen]:
    path, params = spec["class"], spec.get("params", {})
    if path == PIPELINE:
        steps = []
        for name, step in params["steps"]:
            if isinstance(step, Mapping):
                step, seen = _find_in(f"{label}.{name}", dict(step), seen)
            steps.append([name, step])
        return _replace(spec, steps=steps), seen
    if path == COLUMN_TRANSFORMER:
        return _find_in_transformers(label, spec, seen)
    if (branches := BRANCHES.get(path)) is not None:
        each = [_find_part(f"{label}.{name}", part, seen) for name, part in params[branches]]
        parts = [[name, part] for (name, _), (part, _) in zip(params[branches], each, strict=True)]
        return _replace(spec, **{branches: parts}), _join(made for _, made in each)
    if (inside := AROUND.get(path)) is not None and isinstance(params.get(inside), Mapping):
        part, _ = _find_in(f"{label}.{inside}", params[inside], seen)
        return _replace(spec, **{inside: part}), MADE
    return spec, _check_part(label, spec, seen)


def _check_part(label: str, spec: Spec, seen: Seen) -> Seen:
    """Return what an estimator makes of what it sees, whose parts are not looked at.

    Raises:
        InputError: it holds what selects columns by name, or takes numbers of categories for quantities.
    """
    path, params = spec["class"], spec.get("params", {})
    name = path.partition(":")[2]
    if selects_by_name(spec):
        raise InputError(
            f"{label}: columns are selected by name inside {name}, which may give other columns to what it "
            "holds: select them in a Pipeline, before it"
        )
    if params.get("strategy") in FILLS.get(path, ()):
        return seen.pass_on()
    if path not in ENCODERS:
        _refuse_categories(label, name, seen)
    elif seen.categories and ENCODERS[path] and params.get("handle_unknown", "error") == "error":
        raise InputError(
            f"{label}: rows that are scored may hold categories of {some(seen.categories)} that were never "
            f"seen, which {name} refuses: give it {ENCODERS[path]}"
        )
    return MADE


def _refuse_categories(label: str, name: str, seen: Seen) -> None:
    if seen.categories:
        raise InputError(
            f"{label}: {name} takes numbers, and is given the categories of {some(seen.categories)}: put "
            "OneHotEncoder, OrdinalEncoder or TargetEncoder before it, or leave them out"
        )


def _find_in_transformers(label: str, spec: Spec, seen: Seen) -> tuple[Spec, Seen]:
    params = spec["params"]
    if seen.columns is None:
        _refuse_categories(label, "selecting by position", seen)
        if names := [name for selection in _list_selections(spec) for name in _list_names(selection)]:
            raise InputError(
                f"{label}: it selects columns by name ({some(names)}) among those that a step before it "
                "makes, which have none: select them by position, or in the first step"
            )
        return spec, MADE
    steps, made, left = [], list[Seen](), set(range(len(seen.columns)))
    for name, part, selection in params[TRANSFORMERS]:
        found = _find_positions(f"{label}.{name}", selection, seen.columns)
        chosen = np.ravel(found).tolist()
        placed, makes = _find_part(f"{label}.{name}", part, _take(seen.columns, chosen))
        steps.append([name, placed, found])
        made.append(makes)
        left -= set(chosen)
    remaining = _take(seen.columns, sorted(left))
    remainder, makes = _find_part(f"{label}.remainder", params.get("remainder", NO_STEP[0]), remaining)
    return _replace(spec, **{TRANSFORMERS: steps, "remainder": remainder}), _join([*made, makes])


def _find_part(label: str, part: Any, seen: Seen) -> tuple[Any, Seen]:
    if isinstance(part, Mapping):
        return _find_in(label, dict(part), seen)
    return part, MADE if part in (NO_STEP[0], None) else seen.pass_on()


def _find_positions(label: str, selection: Any, columns: Sequence[Column]) -> Any:
    names = [column.name for column in columns]
    if isinstance(selection, Mapping) and KINDS in selection:
        return [i for i, column in enumerate(columns) if column.kind in selection[KINDS]]
    if missing := [name for name in _list_names(selection) if name not in names]:
        raise InputError(
            f"{label}: there is no column {quote(missing[0])}: the columns are {some(names)}"
            f"{suggest(missing[0], names)}"
        )
    try:
        return np.arange(len(names))[_place(selection, names)].tolist()
    except (IndexError, TypeError):
        raise InputError(
            f"{label}: {quote(selection)} selects no columns: there are {len(names)}, from 0"
        ) from None


def _place(selection: Any, names: Sequence[str]) -> Any:
    """Return a selection with positions for names; the last of a slice of names is among them."""
    if isinstance(selection, Mapping):
        start, stop, step = selection[SLICE]
        start = names.index(start) if isinstance(start, str) else start
        return slice(start, names.index(stop) + 1 if isinstance(stop, str) else stop, step)
    if isinstance(selection, list | tuple):
        return [names.index(column) if isinstance(column, str) else column for column in selection]
    return names.index(selection) if isinstance(selection, str) else int(selection)


def _list_selections(spec: Mapping[str, Any]) -> Iterator[Any]:
    if spec.get("class") == COLUMN_TRANSFORMER:
        yield from (step[2] for step in spec["params"][TRANSFORMERS])


def _list_names(selection: Any) -> list[str]:
    if isinstance(selection, Mapping):
        selection = selection.get(KINDS) or selection.get(SLICE)
    listed = selection if isinstance(selection, list | tuple) else [selection]
    return [name for name in listed if isinstance(name, str)]


def _take(columns: Sequence[Column], positions: Sequence[int]) -> Seen:
    return Seen(tuple(columns[i] for i in positions))


def _join(made: Iterable[Seen]) -> Seen:
    return Seen(levels=tuple(dict.fromkeys(name for part in made for name in part.categories)))


def _replace(spec: Spec, **params: Any) -> Spec:
    return {**spec, "params": {**spec.get("params", {}), **params}}

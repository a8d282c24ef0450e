"""XGBoost, LightGBM and CatBoost: what makes their estimators silent and reproducible; how rounds share work.

Nothing of a library is imported before one of its estimators is made, which takes trust (``spec.trust``).
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from inspect import Parameter, signature
from math import nan
from typing import Any, NamedTuple

from ckcv_ray.errors import InputError, write_install

INSTALL = write_install("boosting")
FILE_WORDS = ("file", "dir", "snapshot", "machine")  # in names of parameters that are files or hosts
XGBOOST, LIGHTGBM, CATBOOST = "xgboost", "lightgbm", "catboost"


class BoostingLibrary(NamedTuple):
    """What differs between the libraries.

    Attributes:
        forced: parameters that every estimator gets, each in all its spellings: those that are given are set,
            or the first. They ask for one thread, no output and no files.
        usual: parameters that it gets unless they are given.
        rounds: parameter that is the number of rounds.
        limit: takes a number of rounds; returns what limits predictions to the first of them.
        stop: parameters of which any asks to stop early.
        sharing: parameters, besides those above, with which the first rounds of a long fit are a short fit.
    """

    forced: tuple[Mapping[str, Any], ...]
    usual: Mapping[str, Any]
    rounds: str
    limit: Callable[[int], Mapping[str, Any]]
    stop: frozenset[str]
    sharing: frozenset[str]


LIBRARIES = {
    XGBOOST: BoostingLibrary(
        forced=({"n_jobs": 1, "nthread": 1}, {"verbosity": 0}),
        usual={},
        rounds="n_estimators",
        limit=lambda rounds: {"iteration_range": (0, rounds)},
        stop=frozenset(["early_stopping_rounds"]),
        sharing=frozenset(
            [
                *("colsample_bylevel", "colsample_bynode", "colsample_bytree", "enable_categorical", "gamma"),
                *("grow_policy", "learning_rate", "max_bin", "max_depth", "max_leaves", "min_child_weight"),
                *("missing", "n_estimators", "objective", "random_state", "reg_alpha", "reg_lambda"),
                *("scale_pos_weight", "subsample"),
            ]
        ),
    ),
    LIGHTGBM: BoostingLibrary(
        forced=(
            dict.fromkeys(("n_jobs", "num_threads", "num_thread", "nthread", "nthreads"), 1),
            {"verbose": -1, "verbosity": -1},
        ),
        usual={"deterministic": True, "force_col_wise": True},  # else it times two ways, and takes the faster
        rounds="n_estimators",
        limit=lambda rounds: {"num_iteration": rounds},
        stop=frozenset(
            ["early_stopping", "early_stopping_round", "early_stopping_rounds", "n_iter_no_change"]
        ),
        sharing=frozenset(
            [
                *("boosting_type", "class_weight", "colsample_bytree", "importance_type", "learning_rate"),
                *("max_bin", "max_depth", "min_child_samples", "min_child_weight", "min_split_gain"),
                *("n_estimators", "num_leaves", "objective", "random_state", "reg_alpha", "reg_lambda"),
                *("subsample", "subsample_for_bin", "subsample_freq"),
            ]
        ),
    ),
    CATBOOST: BoostingLibrary(
        forced=(
            {"thread_count": 1},
            {"logging_level": "Silent", "verbose": False, "verbose_eval": False, "silent": True},
            {"allow_writing_files": False},
        ),
        usual={},
        rounds="iterations",
        limit=lambda rounds: {"ntree_end": rounds},
        stop=frozenset(["early_stopping_rounds", "od_pval", "od_type", "od_wait"]),
        sharing=frozenset(
            [
                *("border_count", "depth", "iterations", "l2_leaf_reg", "learning_rate", "random_seed"),
                *("random_state", "random_strength", "rsm"),
            ]
        ),
    ),
}
BOOSTERS = {  # classes of estimators, where each is defined
    **dict.fromkeys(("xgboost.sklearn:XGBClassifier", "xgboost.sklearn:XGBRegressor"), XGBOOST),
    **dict.fromkeys(("lightgbm.sklearn:LGBMClassifier", "lightgbm.sklearn:LGBMRegressor"), LIGHTGBM),
    **dict.fromkeys(("catboost.core:CatBoostClassifier", "catboost.core:CatBoostRegressor"), CATBOOST),
}


def find_library(estimator: Any) -> str | None:
    """Return the package of an estimator of one of these libraries; None of any other."""
    return BOOSTERS.get(f"{type(estimator).__module__}:{type(estimator).__qualname__}")


def check_installed(package: str) -> None:
    """Raise InputError unless a library can be found; nothing of it is run."""
    if find_spec(package) is None:
        raise InputError(f"{package} is not installed: {INSTALL}")


def check_parameters(name: str, estimator: Any, parameters: Iterable[str]) -> None:
    """Raise InputError if a parameter of an estimator of these libraries names a file or a host."""
    named = [parameter for parameter in parameters if _is_outside(parameter)]
    if named and find_library(estimator):
        raise InputError(
            f"{name}.{named[0]} cannot be part of a study: it names a file or a host: leave it out"
        )


def list_declared(estimator: Any) -> dict[str, Any]:
    """Return the parameters that an estimator of these libraries takes besides those it lists, and defaults.

    CatBoost's estimators list what they were given. LightGBM's take any keyword, and ignore unknown ones.
    """
    if (library := find_library(estimator)) is None:
        return {}
    declared = signature(type(estimator).__init__).parameters
    found = {name: each.default for name, each in declared.items() if each.default is not Parameter.empty}
    if library == LIGHTGBM:
        from lightgbm import basic

        known = basic._ConfigAliases._get_all_param_aliases().values()
        found |= dict.fromkeys(sorted({name for names in known for name in names}))
    return {parameter: default for parameter, default in found.items() if not _is_outside(parameter)}


def prepare(estimator: Any) -> None:
    """Make an estimator of these libraries silent and reproducible; leave any other as it is."""
    if (package := find_library(estimator)) is None:
        return
    library, given = LIBRARIES[package], estimator.get_params(deep=False)
    changes = {name: value for name, value in library.usual.items() if name not in given}
    if "force_row_wise" in given:  # the other of two ways
        changes.pop("force_col_wise", None)
    for spellings in library.forced:
        changes |= {name: spellings[name] for name in spellings if name in given} or dict(
            [*spellings.items()][:1]
        )
    if given.get("missing") == "nan":  # as the command line gives it
        changes["missing"] = nan
    if package == CATBOOST and not {"random_seed", "random_state"} & set(given):
        changes["random_state"] = None  # lists it, so that it is given a seed
    estimator.set_params(**changes)


def shares_rounds(estimator: Any, package: str) -> bool:
    """Return whether the first rounds of a long fit of an estimator are a short fit.

    Only parameters count that are known to allow it. CatBoost's learning rate depends on the number of rounds
    unless it is given.
    """
    if find_library(estimator) != package:
        return False
    library, defaults = LIBRARIES[package], type(estimator)().get_params()
    forced = {name for spellings in library.forced for name in spellings}
    params = estimator.get_params()
    given = {name for name, value in params.items() if name not in defaults or value != defaults[name]}
    if package == CATBOOST and params.get("learning_rate") is None:
        return False
    known = library.sharing | library.usual.keys() | forced
    return given <= known and params.get("boosting_type", "gbdt") == "gbdt"


def _is_outside(parameter: str) -> bool:
    return "allow" not in parameter and any(word in parameter for word in FILE_WORDS)

"""Bad studies, as cases of ``test_bad_arguments``: options, parts, and what JSON, TOML and text say."""

from pathlib import Path

import numpy as np
from refused import case

from ckcv_ray import Execution, Study
from ckcv_ray.extend import Rotation
from ckcv_ray.study.study import read_toml
from ckcv_ray.validation import parse_folds, parse_grid

DIGITS = 10**5000  # Python does not write so long a number
HOLDOUT = {"certify": "holdout"}


def study(*messages, **options):
    return case(lambda: Study.paper(**options), *messages)


def parts(*messages, **given):
    return case(lambda: Study(**given), *messages)


def part(kind, *messages, **options):
    return case(lambda: kind(**options), *messages)


def replaced(*messages, **options):
    return case(lambda: Study().replace(**options), *messages)


def from_json(values, *messages):
    return case(lambda: Study.from_json(values), *messages)


def described(*messages, **changed):
    return from_json(Study().to_json() | changed, *messages)


def how(*messages, **fields):
    return case(lambda: Execution(**fields), *messages)


CASES = {
    # grids and lists
    "C a matrix": study("C=array", "is not a number", C=np.ones((2, 2))),
    # numbers
    "splits beyond the most": study("n_splits=1000001 is above 1000000", n_splits=1_000_001),
    "seed of 5001 digits": study("seed", seed=DIGITS),
    "delta below what is computed": study("delta=1e-13 is below 1e-12", "the smallest", delta=1e-13),
    "iterations beyond int32": study("max_iter=2147483648 is above 2147483647", param={"max_iter": 2**31}),
    # choices
    "solver an array": study("solver=7", "choose from newton", param={"solver": 7}),
    "weights misspelt": study("class_weight='balance'", "equal, balanced, or LABEL=", class_weight="balance"),
    "weight zero": study("class_weight of 'a' is 0.0", "positive and finite", class_weight={"a": 0}),
    "weights and costs beyond float64": study(
        "class_weight='a=1e+200' with C=1e+200", "positive and finite", class_weight="a=1e200", C=1e200
    ),
    "balanced weights and costs beyond float64": study(
        "class_weight='balanced' with C=1e+308", "less extreme", class_weight="balanced", C=1e308
    ),
    "criterion with what it has not": study("criterion='error:1' is not known", criterion="error:1"),
    "cost of 501 digits": study("costs of 'b' is inf", "finite", criterion=f"cost:b={'9' * 501}"),
    "costs of words": study("costs='a=ten': expected LABEL=NUMBER", "sick=10", criterion="cost:a=ten"),
    "a certification of very many digits": study("certify=", "is not known", certify=[10**5000]),
    "costs all zero": study("costs are all 0", "must cost something", criterion="cost:a=0,b=0"),
    # changed options
    "replaced by one misspelt": replaced("unknown option 'n_split' of a study", "n_splits", n_split=5),
    "replaced by a part": replaced("resampling=Rotation", "complete, rotation", resampling=Rotation()),
    # Study.from_json, read_toml, parse_grid, parse_folds
    "study of nothing": from_json(None, "study=None", "mapping"),
    "study in pairs": from_json([("seed", 1)], "mapping"),
    "study a text": from_json("seed", "'seed'", "mapping"),
    "fields named by numbers": from_json(Study().to_json() | {1: 2}, "unknown option 1", "the options are"),
    "part with an option of no name": described("unknown option 1 of svm", learner={"name": "svm", 1: 2}),
    "grid in JSON from not a number": described(
        "C=nan", "positive and finite", learner={"name": "svm", "C": "log:nan:1:3"}
    ),
    "folds in JSON without end": described(
        "k='4:'", "3:20", resampling={"name": "complete", "k": "4:"}
    ),
    "study file that is a folder": case(lambda: read_toml(Path("run")), "study file 'run'", "directory"),
    "grid of 5000 digits": case(lambda: parse_grid("log:0:1:" + "9" * 5000, "C"), "log:-2:4:13"),
    "folds of all but one": case(lambda: parse_folds("4:n", "k"), "k='4:n'", "3:n for all"),
    # Execution
    "backend a list": how("backend=['ray'] is not known", backend=["ray"]),
    "workers beyond int32": how("workers=2147483648 is above 2147483647", workers=2**31),
    "address a number": how("address=6379", "host:port", address=6379),
    "address empty": how("address=''", "host:port", address=""),
}  # fmt: skip

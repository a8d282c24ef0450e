"""Bad studies, as cases of ``test_bad_arguments``: options, parts, and what JSON, TOML and text say."""

from pathlib import Path

import numpy as np
from refused import case

from ckcv_ray import Complete, Execution, GaussianSVM, Holdout, MeanBound, Race, Rotation, Study
from ckcv_ray.study import read_toml
from ckcv_ray.validation import parse_folds, parse_grid

DIGITS = 10**5000  # Python does not write so long a number
HOLDOUT = {"certify": "holdout"}
COST = {"criterion": "cost"}
SEED = {"seed": 3}


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
    "C of nothing": study("C=None is not a sequence", "list of numbers", C=None),
    "C a text of words": study("C='much': expected numbers like 0.1,1,10", "log:-2:4:13", C="much"),
    "C a text without a number": study("C='': expected numbers", C=""),
    "C an array of no dimension": study("C=", "is not a sequence", C=np.array(1.0)),
    "C a matrix": study("C=array", "is not a number", C=np.ones((2, 2))),
    "C a number below zero": study("C=-1.0 is not allowed", "positive and finite", C=-1),
    "C beyond float64": study("is too large", "finite", C=(10**400,)),
    "gamma of nothing to draw from": study("gamma is empty", "at least one", gamma=iter(())),
    "gamma of zero": study("gamma=0.0 is not allowed", "positive and finite", gamma=(0,)),
    "k a fraction": study("k=3.0 is not a whole number", k=3.0),
    "k a truth value": study("k=True is not a sequence", k=True),
    "k a text of words": study("k='three': expected whole numbers", "3:n for all", k="three"),
    "k of fractions": study("k=3.0 is not a whole number", k=(3.0,)),
    "k below zero": study("k=-1 is below 0", k=(-1,)),
    "report_k of nothing": study("report_k=None is not a sequence", report_k=None),
    "report_k of all": study("report_k='3:n': expected whole numbers", report_k="3:n"),
    # numbers
    "splits a fraction": study("n_splits=20.0 is not a whole number", n_splits=20.0),
    "splits beyond the most": study("n_splits=1000001 is above 1000000", n_splits=1_000_001),
    "seed a text": study("seed='zero' is not a whole number", seed="zero"),
    "seed of 5001 digits": study("seed", seed=DIGITS),
    "delta a text": study("delta='0.05' is not a number", delta="0.05"),
    "delta below what is computed": study("delta=1e-13 is below 1e-12", "the smallest", delta=1e-13),
    "tolerance one": study("tolerance=1.0 is outside (0, 1)", "0.001", tolerance=1.0),
    "iterations beyond int32": study("max_iter=2147483648 is above 2147483647", max_iter=2**31),
    # choices
    "solver an array": study("solver=array", "choose from newton", solver=np.array(["newton"])),
    "scale true": study("scale=True is not known", "standard, none", scale=True),
    "weights misspelt": study("class_weight='balance'", "equal, balanced, or LABEL=", class_weight="balance"),
    "weights a number": study("class_weight=3", "equal, balanced, or LABEL=", "mapping", class_weight=3),
    "weight zero": study("class_weight of 'a' is 0.0", "positive and finite", class_weight={"a": 0}),
    "weight of a label twice": study("names 'a' twice", class_weight="a=1,a=2"),
    "weights and costs beyond float64": study(
        "class_weight='a=1e+200' with C=1e+200", "positive and finite", class_weight="a=1e200", C=1e200
    ),
    "balanced weights and costs beyond float64": study(
        "class_weight='balanced' with C=1e+308", "less extreme", class_weight="balanced", C=1e308
    ),
    "weights in JSON": described(
        "class_weight of 'a' is -1.0", learner={"name": "svm", "class_weight": {"a": -1}}
    ),
    "learner unknown": study("learner='jungle' is not known", "choose from svm", learner="jungle"),
    "learner a learner by name": study("learner=GaussianSVM", "choose from svm", learner=GaussianSVM()),
    "resampling unknown": study("resampling='bootstrip'", "complete, rotation", resampling="bootstrip"),
    "resampling of scores": study("complete or rotation, not bootstrap", resampling="bootstrap"),
    "criterion unknown": study("criterion='auc'", "choose from error", criterion="auc"),
    "criterion with what it has not": study("criterion='error:1' is not known", criterion="error:1"),
    "costs of another criterion": study("costs={'a': 1} requires criterion cost, not error", costs={"a": 1}),
    "costs given twice": study(
        "costs are given twice: by criterion='cost:a=1'", criterion="cost:a=1", costs={"a": 1}
    ),
    "costs of one class twice": study("costs='a=1,a=2' names 'a' twice", criterion="cost:a=1,a=2"),
    "costs of a number and its text": study("names '1' twice", **COST, costs={1: 2, "1": 3}),
    "cost below zero": study("costs of 'a' is -1.0", "0 or more", criterion="cost:a=-1,b=1"),
    "cost of 5001 digits": study("costs of 'b'=", "too large", **COST, costs={"b": DIGITS}),
    "costs all zero": study("costs are all 0", "must cost something", criterion="cost:a=0,b=0"),
    "costs of words": study("costs='a=ten': expected LABEL=NUMBER", "sick=10", criterion="cost:a=ten"),
    "costs without a number": study("costs='a': expected LABEL=NUMBER", criterion="cost:a"),
    "costs without a label": study("costs='=1': expected LABEL=NUMBER", criterion="cost:=1"),
    "costs a number": study("costs=10: expected LABEL=NUMBER", "mapping", **COST, costs=10),
    "certification misspelt": study("certify='hold-out'", "holdout, paper", certify="hold-out"),
    "certification of nothing": study("certify=None is not known", "holdout, paper", certify=None),
    "exhaustive one": study("exhaustive=1 is not true or false", exhaustive=1),
    # options that there are none of, or that do not go together
    "option misspelt": study("unknown option 'n_split' of a study", "the options are", "n_splits", n_split=5),
    "precision": study("unknown option 'precision'", "the options are", precision="float64"),
    "protocol": study("unknown option 'protocol'", "certify", protocol="holdout"),
    "rotation with splits": study(
        "n_splits=7 requires resampling complete, not rotation", resampling="rotation", n_splits=7
    ),
    "share without holdout": study("holdout_share=0.3 requires certify holdout", holdout_share=0.3),
    "claim without holdout": study(
        "claim=('vote',) requires certify holdout", claim=("vote",)
    ),
    "all held out": study("holdout_share=1.0 is outside (0, 1)", "third", **HOLDOUT, holdout_share=1),
    "share a text": study("holdout_share='third': expected a share", **HOLDOUT, holdout_share="third"),
    "claim a number": study("claim=3 is not a sequence", "list of names", **HOLDOUT, claim=3),
    "claim better than nothing": study(
        "claim='better' takes the label of a learner", "write better:svm", **HOLDOUT, claim="better"
    ),
    "claim of numbers": study("claim='3' is not known", "vote", **HOLDOUT, claim=[3]),
    "claim unknown": study("claim='best'", "within:0.9", **HOLDOUT, claim=["best"]),
    "claim a text of one unknown": study("claim='best'", "vote", **HOLDOUT, claim="vote,best"),
    "bound of held rows unknown": study(
        "holdout_bound='exact' is not known", "clopper_pearson, stevens", **HOLDOUT, holdout_bound="exact"
    ),
    "bound of held rows without any": study(
        "holdout_bound='stevens' requires certify holdout, not paper", holdout_bound="stevens"
    ),
    # changed options
    "replaced by one misspelt": replaced("unknown option 'n_split' of a study", "n_splits", n_split=5),
    "replaced by what does not go": replaced("effort=3 requires search", search="race", effort=3),
    "replaced out of range": replaced("delta=2.0 is outside (0, 1)", delta=2),
    "replaced by a part": replaced("resampling=Rotation", "complete, rotation", resampling=Rotation()),
    # parts
    "learner of nothing": parts("learner=None is not one of svm", learner=None),
    "learner a name": parts("learner='svm' is not one of svm", learner="svm"),
    "learner a class": parts("learner=<class", "is not one of svm", learner=GaussianSVM),
    "resampling a name": parts("resampling='rotation' is not one of complete", resampling="rotation"),
    "resampling a learner": parts("resampling=GaussianSVM", "complete, rotation", resampling=GaussianSVM()),
    "criterion a number": parts("criterion=0.05 is not one of error", search=Race(criterion=0.05)),
    "certification of nothing in its place": parts("certify=None", "holdout, paper", certification=None),
    "seed of a study of parts": parts("seed=-1 is below 0", seed=-1),
    "grid of a learner": part(GaussianSVM, "C is empty", C=()),
    "k of a rotation": part(Rotation, "k=-3 is below 0", k=(-3,)),
    "splits of a resampling": part(Complete, "n_splits=0 is below 1", n_splits=0),
    "delta of a criterion": part(MeanBound, "delta=1.0 is outside (0, 1)", delta=1),
    "share of a certification": part(Holdout, "holdout_share=nan is outside", holdout_share=float("nan")),
    # Study.from_json, read_toml, parse_grid, parse_folds
    "study of nothing": from_json(None, "study=None", "mapping"),
    "study in pairs": from_json([("seed", 1)], "mapping"),
    "study a text": from_json("seed", "'seed'", "mapping"),
    "study without parts": from_json(SEED, "learner=None"),
    "field misspelt": described("unknown option 'seeds' of a study", "the options are", "seed", seeds=5),
    "fields named by numbers": from_json(Study().to_json() | {1: 2}, "unknown option 1", "the options are"),
    "field of null": described("seed=None is not a whole number", seed=None),
    "part a name": described("learner='svm'", "mapping", learner="svm"),
    "part without a name": described("learner=None is not known", "choose from svm", learner={"C": [1.0]}),
    "part named by a list": described("learner=['svm'] is not known", learner={"name": ["svm"]}),
    "part unknown": described("learner='jungle' is not known", learner={"name": "jungle"}),
    "part with an option misspelt": described(
        "unknown option 'cost' of svm", "C, class_weight, gamma", learner={"name": "svm", "cost": [1.0]}
    ),
    "part with an option of another": described(
        "unknown option 'seed' of rotation", "options are k", resampling={"name": "rotation"} | SEED
    ),
    "part with an option of no name": described("unknown option 1 of svm", learner={"name": "svm", 1: 2}),
    "option of a part outside it": described("unknown option 'C' of a study", C=[1.0]),
    "grid in JSON from not a number": described(
        "C=nan", "positive and finite", learner={"name": "svm", "C": "log:nan:1:3"}
    ),
    "folds in JSON without end": described(
        "k='4:'", "3:20", resampling={"name": "complete", "k": "4:"}
    ),
    "study file that is a folder": case(lambda: read_toml(Path("run")), "study file 'run'", "directory"),
    "grid of too many": case(lambda: parse_grid("log:0:1:10001", "C"), "C='log:0:1:10001'", "log:-2:4:13"),
    "grid of 5000 digits": case(lambda: parse_grid("log:0:1:" + "9" * 5000, "C"), "log:-2:4:13"),
    "folds with a step": case(lambda: parse_folds("3:9:2", "k"), "k='3:9:2'", "a range like 3:20"),
    "folds of all but one": case(lambda: parse_folds("4:n", "k"), "k='4:n'", "3:n for all"),
    # Execution
    "backend of nothing": how("backend=None is not known", "auto, ray, serial", backend=None),
    "backend a list": how("backend=['ray'] is not known", backend=["ray"]),
    "workers a fraction": how("workers=2.0 is not a whole number", workers=2.0),
    "workers beyond int32": how("workers=2147483648 is above 2147483647", workers=2**31),
    "workers of a serial run": how("workers=2", "leave out --backend serial", backend="serial", workers=2),
    "address a number": how("address=6379", "host:port", address=6379),
    "address empty": how("address=''", "host:port", address=""),
}  # fmt: skip

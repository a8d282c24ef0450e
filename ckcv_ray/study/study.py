"""Studies, which hold everything that decides a result and nothing else, and executions.

A Study and the digest of the data give the ``run_id``. A Study consists of a learner, a resampling, a
criterion and a certification, which declare what they can be combined with. Their fields are the options of
the command line and of TOML files. An Execution holds what may differ from run to run without changing any
result.
"""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ckcv_ray.core.criteria import Balanced, Criterion, MeanBound, MeanCost, MeanError
from ckcv_ray.core.options import Option, as_json, check_options, described, option, options, values
from ckcv_ray.core.resampling import Complete, Outer, Resampling, Rotation
from ckcv_ray.errors import InputError
from ckcv_ray.learners import DEFAULT, LEARNERS, AnyEstimator, Choice, Learner, learners_of
from ckcv_ray.learners.sklearn import packages, trust
from ckcv_ray.learners.sklearn.space import check_space
from ckcv_ray.study.certification import Certification, Holdout, Nested, Occam
from ckcv_ray.validation import (
    MOST,
    as_path,
    boolean,
    check_choice,
    expect,
    folds,
    integer,
    nearest,
    quoted,
    sequence,
)

BACKENDS = ("auto", "ray", "serial")
MOST_SEED = 2**128 - 1
MOST_TOML_BYTES = 1 << 24
SLOTS: dict[str, dict[str, Any]] = {  # parts of a study: the option that chooses one, and the choices
    "learner": LEARNERS,
    "resampling": {part.name: part for part in (Complete, Rotation)},
    "criterion": {part.name: part for part in (MeanBound, Balanced, MeanCost, MeanError)},
    "certify": {part.name: part for part in (Occam, Holdout, Nested)},
}
FIELDS = {"certify": "certification"}  # fields of a Study whose names differ from the option's
SEVERAL = "learner"  # the slot that may name several parts, as in svm,linear
INLINE = {"criterion": {MeanCost.name: "costs"}}  # options that may follow a choice, as in cost:a=1,b=2


@dataclass(frozen=True)
class Study:
    """What decides the result: what is fitted, how rows are divided, what is minimised and what is certified.

    ``Study.of`` makes one from named options, as the command line does.

    Attributes:
        learner: what is fitted, with its search space.
        resampling: how rows are divided.
        criterion: what is minimised over the candidates.
        certification: what produces claims in addition to the occam bound.
        seed: seed of the splits, non-negative.
        report_k: values of k whose own best candidate and l_ee are reported in addition to the winner's.
        exhaustive: compute every evaluation of both stages instead of dropping what is provably beaten.

    Raises:
        InputError: a field has the wrong type or is out of range, or the parts cannot be combined.
    """

    learner: Learner = field(default_factory=DEFAULT)
    resampling: Resampling = field(default_factory=Complete)
    criterion: Criterion = field(default_factory=MeanBound)
    certification: Certification = field(default_factory=Occam)
    seed: int = option(
        0,
        Option(
            lambda name, value: integer(name, value, least=0, most=MOST_SEED), "Seed of the splits.", int, "0"
        ),
    )
    report_k: tuple[int, ...] = option(
        (),
        Option(
            lambda name, value: folds(name, value, least=0),
            "Values of k whose own best candidate is reported as well, such as 5,10.",
        ),
    )
    exhaustive: bool = option(
        False,
        Option(
            boolean,
            "Compute every evaluation instead of dropping what is provably beaten; the winner is the same.",
            bool,
        ),
    )

    def __post_init__(self) -> None:
        for slot, part in self.parts.items():
            _check_part(slot, part)
        check_options(self)
        for slot, proven in (("resampling", "resamplings"), ("criterion", "criteria")):
            part, allowed = getattr(self, slot), getattr(self.certification, proven)
            if part.name not in allowed:
                raise InputError(
                    f"certify={self.certification.name} requires {slot} {' or '.join(sorted(allowed))}, "
                    f"not {part.name}"
                )

    @property
    def parts(self) -> dict[str, Any]:
        """Learner, resampling, criterion and certification, by the option that chooses each."""
        return {slot: getattr(self, FIELDS.get(slot, slot)) for slot in SLOTS}

    @classmethod
    def of(cls, /, **asked: Any) -> "Study":
        """Make a study from named options such as C, gamma, k, n_splits, certify; lists may be given as text.

        With several learners, ``learner="svm,linear"``, an option is given to each learner that has it;
        ``svm={"C": (1, 10)}`` gives it to one of them alone.

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        return _assembled(_separated(asked), {}, {})

    def replace(self, /, **asked: Any) -> "Study":
        """Return this study with some options changed; a new part keeps only those that it shares."""
        parts, asked = self.parts, _separated(asked)
        return _assembled(_chosen(parts) | asked, parts, values(self))

    def options(self, fixed: bool = False) -> dict[str, Any]:
        """Return every option of the study by name, including the choices of its parts.

        An option that several learners have is named after each of them, such as "svm.C"; "LABEL.learner" is
        the learner of a label. ``fixed`` leaves out those that may grow in an existing run folder.
        """
        parts = self.parts
        others = [part for slot, part in parts.items() if slot != SEVERAL]
        own = values(self, fixed)
        of_others = {n: v for part in others for n, v in values(part, fixed).items()}
        return _chosen(parts) | _values_of_learners(learners_of(self.learner), fixed) | of_others | own

    def to_json(self, fixed: bool = False) -> dict[str, Any]:
        """Return the study as JSON values, the inverse of ``from_json``.

        ``fixed`` leaves out the options that may grow in an existing run folder: the rest gives the run_id.
        """
        parts = {slot: described(part, fixed) for slot, part in self.parts.items()}
        return parts | as_json(values(self, fixed))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Study":
        """Make a study from what ``to_json`` returned.

        Raises:
            InputError: a part or an option is unknown, or an option has an invalid value.
        """
        expect("study", content, Mapping, "a mapping of a study's parts and options, as to_json returns it")
        others = {name: value for name, value in content.items() if name not in SLOTS}
        _check_names("a study", others, options(cls))
        parts = {FIELDS.get(slot, slot): _read_part(slot, content.get(slot)) for slot in SLOTS}
        return cls(**parts, **others)

    def differences(self, other: "Study") -> list[str]:
        """Return one line for each option that differs from ``other``, the study of a run folder.

        Options that only one of them has belong to a part that differs, which has a line itself; those that
        may grow are no difference.
        """
        ours, theirs = self.options(fixed=True), other.options(fixed=True)
        return [
            f"{name}: requested {_short(ours[name])}, in the folder {_short(theirs[name])}"
            for name in ours
            if name in theirs and ours[name] != theirs[name]
        ]

    @property
    def delta(self) -> float:
        """Failure probability of each bound."""
        return self.criterion.delta

    @property
    def outer(self) -> Outer | None:
        """How a nested certification divides the rows into outer splits; None without one."""
        return self.certification.outer if isinstance(self.certification, Nested) else None

    @property
    def outer_splits(self) -> int | None:
        """Number of outer splits of a nested certification; None without one."""
        return self.outer.n_splits if self.outer is not None else None

    def with_learner(self, learner: Learner) -> "Study":
        """Return this study with another learner."""
        return replace(self, learner=learner)

    def inner(self) -> "Study":
        """Return the study to run inside each outer split of a nested certification."""
        return replace(self, certification=Occam(), report_k=())


@dataclass(frozen=True)
class Execution:
    """The way a study is run; nothing here changes a result.

    Attributes:
        backend: "ray", "serial" or "auto" (serial if little work is expected).
        workers: number of parallel processes; None for one per CPU of the machine or cluster.
        address: address of an existing Ray cluster; None for RAY_ADDRESS, else a private Ray on loopback.
    """

    backend: str = "auto"
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        check_choice("backend", self.backend, BACKENDS)
        if self.workers is not None:
            object.__setattr__(self, "workers", integer("workers", self.workers, least=1, most=MOST))
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            raise InputError(
                f"address={quoted(self.address)}: expected host:port, or auto for the cluster on this machine"
            )
        for name, value in (("address", self.address), ("workers", self.workers)):
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} requires the ray backend: leave out --backend serial")


def run_id(study: Study, data_digest: str) -> str:
    """Return the name of a run: 12 hexadecimal digits of the SHA-256 of study and data.

    The options that may grow in an existing run folder have no part in it.
    """
    named = {"study": study.to_json(fixed=True), "data": data_digest}
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read options of a study from a TOML file, such as n-splits or n_splits.

    Raises:
        InputError: the file is missing, too large, not TOML, or sets an option twice.
    """
    path = as_path("path", path)
    try:
        if path.stat().st_size > MOST_TOML_BYTES:
            raise ValueError(f"it has more than {MOST_TOML_BYTES >> 20} MiB")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        named = {name.replace("-", "_"): value for name, value in given.items()}
        if len(named) < len(given):
            raise ValueError(f"two of {', '.join(given)} are the same option")
        return named
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the study file {str(path)!r}: {error}") from None


class Asked(NamedTuple):
    """A part of a study to be made.

    Attributes:
        slot: the option that chooses it.
        label: of a learner, what it is called; else "".
        kind: its class.
        before: the values it keeps from an earlier study.
    """

    slot: str
    label: str
    kind: Any
    before: dict[str, Any]

    @property
    def names(self) -> dict[str, str]:
        """The names by which its options may be given, and the name of each: those for it alone come last."""
        plain = {name: name for name in options(self.kind)}
        return plain | ({f"{self.label}.{name}": name for name in plain} if self.label else {})

    def given(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of its options."""
        return self.before | {name: asked[full] for full, name in self.names.items() if full in asked}


def named_parts(slot: str) -> dict[str, Any]:
    """Return the parts that the option of a slot can name; several learners are named one by one."""
    return {name: part for name, part in SLOTS[slot].items() if part is not Choice}


def _assembled(asked: Mapping[str, Any], earlier: Mapping[str, Any], others: dict[str, Any]) -> Study:
    """Make the study of some options, keeping those of an earlier one that the parts still have."""
    named = _listed(asked.get(SEVERAL, DEFAULT.name))
    asked = _flat(asked, [_label_of(name) for name in named])
    parts = [
        *_asked_learners(named, asked, learners_of(earlier[SEVERAL]) if SEVERAL in earlier else {}),
        *(_asked(slot, asked, earlier) for slot in SLOTS if slot != SEVERAL),
    ]
    labels = tuple(part.label for part in parts if part.slot == SEVERAL)
    _check_known([name for name in asked if name not in _named_kinds(labels)], parts)
    known = {name for part in parts for name in part.names} | set(options(Study)) | set(SLOTS)
    for name in asked:
        if name not in known | _named_kinds(labels):
            raise InputError(_misplaced(name, asked[name], parts))
    if len(labels) > 1:
        asked = _with_params(asked, parts)
    made: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    for part in parts:
        made[part.slot].append(part.kind(**part.given(asked)))
    if len(labels) > 1:
        made[SEVERAL] = [Choice(tuple(made[SEVERAL]), labels)]
    chosen = {FIELDS.get(slot, slot): one for slot, (one,) in made.items()}
    return Study(**chosen, **others | {name: asked[name] for name in options(Study) if name in asked})


def _asked(slot: str, asked: Mapping[str, Any], earlier: Mapping[str, Any]) -> Asked:
    """Return the part that is asked for in a slot other than the learner's."""
    choices = SLOTS[slot]
    kind = choices[check_choice(slot, asked.get(slot, next(iter(choices))), choices)]
    return Asked(slot, "", kind, _shared(earlier[slot], kind) if slot in earlier else {})


def _asked_learners(
    named: Sequence[Any], asked: Mapping[str, Any], before: Mapping[str, Learner]
) -> list[Asked]:
    """Return the learners that are asked for.

    A name is that of a learner, the label of one in the earlier study, or a new label, of which
    "LABEL.learner" is the learner; or it is an estimator of scikit-learn, whose class is its label.
    """
    found: list[Asked] = []
    known = named_parts(SEVERAL) | {label: type(one) for label, one in before.items()}
    for name in named:
        label, kind, kept = _label_of(name), None, {}
        if _is_estimator(name):
            kind, kept = AnyEstimator, {"estimator": name}
            _trust_named(name)
        elif len(named) > 1 and f"{name}.{SEVERAL}" in asked:
            choices = named_parts(SEVERAL)
            kind = choices[check_choice(f"{name}.{SEVERAL}", asked[f"{name}.{SEVERAL}"], choices)]
        elif name == "" and len(named) > 1:
            raise InputError(f"{SEVERAL}={quoted(asked[SEVERAL])} has an empty name: name a learner there")
        kind = kind or known[check_choice(SEVERAL, name, known)]
        if label in [part.label for part in found]:
            raise InputError(f"{SEVERAL}={quoted(asked[SEVERAL])} names {label} twice: leave one out")
        found.append(Asked(SEVERAL, label, kind, kept or _kept(label, kind, before, alone=len(named) == 1)))
    return found


def _label_of(name: Any) -> Any:
    """Return the label of a learner: its name, or the class of an estimator."""
    if not _is_estimator(name):
        return name
    return name.rpartition(":")[2] if isinstance(name, str) else type(name).__name__


def _named_kinds(labels: Iterable[str]) -> set[str]:
    """Return the options that say which learner a label is of, where several are compared."""
    return {f"{label}.{SEVERAL}" for label in labels}


def _listed(learner: Any) -> Sequence[Any]:
    """Return the learners named by text such as svm,linear, or by a list."""
    if isinstance(learner, str) and "," in learner:
        return [name.strip() for name in learner.split(",")]
    return learner if isinstance(learner, list | tuple) and learner else [learner]


def _every_part(slot: str) -> list[Asked]:
    """Return every part that could be asked for in a slot."""
    return [
        Asked(slot, name if slot == SEVERAL else "", part, {}) for name, part in named_parts(slot).items()
    ]


def _kept(label: str, kind: Any, before: Mapping[str, Learner], alone: bool) -> dict[str, Any]:
    """Return the values that a learner keeps from an earlier study.

    They are those of the learner of its label, if that was of the same kind; a single learner that takes the
    place of a single one keeps what both have.
    """
    if label in before and type(before[label]) is kind:
        return values(before[label])
    (*_, last) = (None, *before.values())
    return _shared(last, kind) if alone and len(before) == 1 else {}


def _with_params(asked: Mapping[str, Any], parts: Sequence[Asked]) -> dict[str, Any]:
    """Return the options with each parameter given to the learners that have one of its name.

    "forest.max_features" is given to forest alone.
    """
    if "param" not in asked:
        return dict(asked)
    others = {name: value for name, value in asked.items() if name != "param"}
    without = [part for part in parts if "param" in options(part.kind)]
    made = {part.label: part.kind(**{**part.given(others), "param": None}) for part in without}
    given: dict[str, dict[str, Any]] = {}
    for name, value in (check_space("param", asked["param"]) or {}).items():
        label, _, own = name.rpartition(".")
        owners = [label] if label in made else [one for one in made if not label and made[one].has(own)]
        if not owners:
            every = [known for one in made.values() for known in one.parameter_names()]
            raise InputError(
                f"param {quoted(name)} is a parameter of none of {', '.join(made)}{nearest(own, every)}"
            )
        for one in owners:
            given.setdefault(one, {})[own] = value
    for label, params in given.items():
        others[f"{label}.param"] = params | (check_space("param", others.get(f"{label}.param")) or {})
    return others


def _chosen(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice in each slot, as an option gives it."""
    return {slot: ",".join(learners_of(p)) if slot == SEVERAL else p.name for slot, p in parts.items()}


def _values_of_learners(learners: Mapping[str, Learner], fixed: bool) -> dict[str, Any]:
    """Return the options of learners by name, after the label if several learners have one of that name."""
    named = [(label, name, v) for label, one in learners.items() for name, v in values(one, fixed).items()]
    times = Counter(name for _, name, _ in named)
    kinds = {f"{label}.{SEVERAL}": one.name for label, one in learners.items() if label != one.name}
    return kinds | {name if times[name] == 1 else f"{label}.{name}": v for label, name, v in named}


def _flat(asked: Mapping[str, Any], labels: Sequence[Any]) -> dict[str, Any]:
    """Return the options, those of one learner in a mapping named after it as options such as "svm.C"."""
    flat: dict[str, Any] = {}
    taken = {name for slot in SLOTS for part in named_parts(slot).values() for name in options(part)}
    for name, value in asked.items():
        if isinstance(value, Mapping) and name not in taken and (name in labels or name in LEARNERS):
            own = {f"{name}.{str(option).replace('-', '_')}": v for option, v in value.items()}
            if twice := own.keys() & asked.keys():
                raise InputError(f"{min(twice)} is given twice: leave one of them out")
            flat |= own
        else:
            flat[name] = value
    return flat


def _shared(earlier: Any, part: Any) -> dict[str, Any]:
    """Return the values of an earlier part's options that another part declares in the same way."""
    declared = {name: field.metadata["option"] for name, field in options(part).items()}
    before = {name: field.metadata["option"] for name, field in options(earlier).items()}
    return {name: v for name, v in values(earlier).items() if before[name] is declared.get(name)}


def _separated(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with what follows a choice, as in "cost:a=1,b=2", as an option of its own."""
    separated = dict(asked)
    if _is_estimator(asked.get(SEVERAL)):
        if "estimator" in asked:
            raise InputError("estimator is given twice: as the learner, and by estimator")
        separated |= {"learner": AnyEstimator.name, "estimator": asked["learner"]}
    _trust_named(separated.get("estimator"))
    for slot, named in INLINE.items():
        choice, colon, text = asked[slot].partition(":") if isinstance(asked.get(slot), str) else ("", "", "")
        if not colon or choice not in named:
            continue
        if (name := named[choice]) in asked:
            raise InputError(f"{name} are given twice: by {slot}={quoted(asked[slot])} and by {name}")
        separated |= {slot: choice, name: text}
    return separated


def _trust_named(estimator: Any) -> None:
    """Trust the packages of an estimator that the user names, here and not in the file of a run."""
    for package in packages(estimator):
        trust(package)


def _is_estimator(learner: Any) -> bool:
    """Return whether a learner is given as an estimator: its class as "module:Class", or an object."""
    if isinstance(learner, str) and "," in learner:
        return False
    return ":" in learner if isinstance(learner, str) else hasattr(learner, "get_params")


def _read_part(slot: str, content: Any) -> Any:
    """Make a part of a study from its name and options."""
    expect(slot, content, Mapping, "a mapping with the name and the options of a part of a study")
    given = {name: value for name, value in content.items() if name != "name"}
    part = SLOTS[slot][check_choice(slot, content.get("name"), SLOTS[slot])]
    _check_names(part.name, given, options(part))
    if part is Choice and "learners" in given:
        listed = sequence("learners", given["learners"], least=0, kind="learners")
        if any(isinstance(one, Mapping) and one.get("name") == Choice.name for one in listed):
            raise InputError(f"learners: a {Choice.name} cannot hold another one")
        given["learners"] = [_read_part(slot, one) for one in listed]
    return part(**given)


def _check_part(slot: str, part: Any) -> None:
    """Raise InputError if a part is not one that a file could name."""
    known = SLOTS[slot]
    for one in part.learners if isinstance(part, Choice) else [part]:
        if not isinstance(one, tuple(known.values())) or getattr(one, "name", None) not in known:
            raise InputError(f"{slot}={quoted(one)} is not one of {', '.join(known)}")


def _check_names(of: str, given: Iterable[Any], known: Iterable[str]) -> None:
    """Raise InputError if an option is not one of a part or of a study."""
    if unknown := [name for name in given if name not in known]:
        raise InputError(
            f"unknown option {quoted(unknown[0])} of {of}: the options are {', '.join(sorted(known))}"
            f"{nearest(unknown[0], known)}"
        )


def _check_known(asked: Iterable[str], parts: Sequence[Asked]) -> None:
    """Raise InputError if no part that could be chosen has an option of this name."""
    every = [*parts, *(part for slot in SLOTS for part in _every_part(slot))]
    known = {*SLOTS, *options(Study), *(name for part in every for name in part.names)}
    for name in asked:
        if name not in known:
            label, _, option = name.rpartition(".")
            owner = next((part for part in parts if part.label == label != ""), None)
            if owner is not None:
                _check_names(label, [option], options(owner.kind))
            _check_names("a study", [name], [one for one in known if "." not in one])


def _misplaced(name: str, value: Any, parts: Sequence[Asked]) -> str:
    """Explain why an option cannot be used with the parts chosen."""
    chosen = {slot: ",".join(p.label or p.kind.name for p in parts if p.slot == slot) for slot in SLOTS}
    for slot in SLOTS:
        owners = [part.kind.name for part in _every_part(slot) if name in part.names]
        if owners:
            return f"{name}={quoted(value)} requires {slot} {' or '.join(owners)}, not {chosen[slot]}"
    raise AssertionError(name)


def _short(value: object) -> str:
    text = "3:n" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."

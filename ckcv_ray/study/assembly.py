"""The parts of a study from named options, as the command line and TOML files give them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ckcv_ray.core.criteria import MeanCost
from ckcv_ray.core.options import options, values
from ckcv_ray.errors import InputError
from ckcv_ray.learners import ALL, DEFAULT, LEARNERS, ZOO, AnyEstimator, Choice, Learner
from ckcv_ray.learners.sklearn.space import check_space
from ckcv_ray.learners.sklearn.spec import list_packages, trust
from ckcv_ray.study.parts import FIELDS, SEVERAL, SLOTS, check_names, named_parts
from ckcv_ray.validation import check_choice, nearest, quoted

INLINE = {"criterion": {MeanCost.name: "costs"}}  # options that may follow a choice, as in cost:a=1,b=2


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


def assembled(asked: Mapping[str, Any], earlier: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """Return the fields of the study that some options ask for.

    Args:
        asked: the options, by name.
        earlier: parts of an earlier study, of which those chosen now keep the options they share; or none.
        own: names of the options that are the study's own.

    Raises:
        InputError: an option is unknown, out of range, or not an option of the parts chosen.
    """
    asked = (chosen(earlier) if earlier else {}) | _separated(asked)
    learner = asked.get(SEVERAL, DEFAULT.name)
    named = _listed(learner)
    asked = _flat(asked, [_label_of(name) for name in named])
    parts = [
        *_asked_learners(named, asked, earlier[SEVERAL].by_label if SEVERAL in earlier else {}),
        *(_asked(slot, asked, earlier) for slot in SLOTS if slot != SEVERAL),
    ]
    labels = tuple(part.label for part in parts if part.slot == SEVERAL)
    _check_known([name for name in asked if name not in _named_kinds(labels)], parts, own)
    known = {name for part in parts for name in part.names} | set(own) | set(SLOTS)
    for name in asked:
        if name not in known | _named_kinds(labels):
            raise InputError(_misplaced(name, asked[name], parts))
    if len(labels) > 1:
        asked = _with_params(asked, parts)
    made: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    for part in parts:
        made[part.slot].append(part.kind(**part.given(asked)))
    if len(labels) > 1:
        made[SEVERAL] = [
            Choice(tuple(made[SEVERAL]), labels, tuple(ZOO.values()) if learner == ALL else None)
        ]
    fields = {FIELDS.get(slot, slot): one for slot, (one,) in made.items()}
    return fields | {name: asked[name] for name in own if name in asked}


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
    """Return the learners named by text such as svm,linear or all, or by a list."""
    if learner == ALL:
        return list(ZOO)
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
        owners = (
            [label]
            if label in made
            else [one for one in made if not label and own in made[one].parameter_names()]
        )
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


def chosen(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice in each slot, as an option gives it."""
    names = {slot: part.name for slot, part in parts.items()}
    learner = parts[SEVERAL]
    of_size = isinstance(learner, Choice) and learner.most_rows is not None
    return names | {SEVERAL: ALL if of_size else ",".join(learner.by_label)}


def values_of_learners(learners: Mapping[str, Learner], fixed: bool) -> dict[str, Any]:
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
    for package in list_packages(estimator):
        trust(package)


def _is_estimator(learner: Any) -> bool:
    """Return whether a learner is given as an estimator: its class as "module:Class", or an object."""
    if isinstance(learner, str) and "," in learner:
        return False
    return ":" in learner if isinstance(learner, str) else hasattr(learner, "get_params")


def _check_known(asked: Iterable[str], parts: Sequence[Asked], own: Iterable[str]) -> None:
    """Raise InputError if no part that could be chosen has an option of this name."""
    every = [*parts, *(part for slot in SLOTS for part in _every_part(slot))]
    known = {*SLOTS, *own, *(name for part in every for name in part.names)}
    for name in asked:
        if name not in known:
            label, _, option = name.rpartition(".")
            owner = next((part for part in parts if part.label == label != ""), None)
            if owner is not None:
                check_names(label, [option], options(owner.kind))
            check_names("a study", [name], [one for one in known if "." not in one])


def _misplaced(name: str, value: Any, parts: Sequence[Asked]) -> str:
    """Explain why an option cannot be used with the parts chosen."""
    chosen = {slot: ",".join(p.label or p.kind.name for p in parts if p.slot == slot) for slot in SLOTS}
    for slot in SLOTS:
        owners = [part.kind.name for part in _every_part(slot) if name in part.names]
        if owners:
            why = f"{name}={quoted(value)} requires {slot} {' or '.join(owners)}, not {chosen[slot]}"
            own = [p.label or p.kind.name for p in parts if p.slot == slot and "param" in p.names]
            return f"{why}; parameters of {' or '.join(own)} are given by param" if own else why
    raise AssertionError(name)

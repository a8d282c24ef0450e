"""Parts of a study (learner, resampling, criterion, certification) by name, from JSON and from named options.

The command line and TOML files give such options.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ckcv_ray.core.criteria import Balanced, MeanBound, MeanClippedError, MeanCost, MeanError
from ckcv_ray.core.options import Named, get_values, list_inside, list_names, options
from ckcv_ray.core.resampling.folds import NestedSplits
from ckcv_ray.core.resampling.parse import CERTIFIABLE, RESAMPLINGS, parse_resampling
from ckcv_ray.errors import InputError, explain_removed_option
from ckcv_ray.learners.base import ALL, ANY, CHOICE, DEFAULT, LEARNERS, ZOO, Learner
from ckcv_ray.learners.sklearn.spec import check_space, list_packages, trust
from ckcv_ray.study.parts import Auto, Budget, Holdout, Paper, Race
from ckcv_ray.validation import check_choice, expect, quote, sequence, suggest

SLOTS: dict[str, dict[str, Any]] = {  # parts of a study: the option that chooses one, and the choices
    "learner": LEARNERS,
    "resampling": CERTIFIABLE,
    "search": {part.name: part for part in (Auto, Race, Budget)},
    "criterion": {part.name: part for part in (MeanBound, Balanced, MeanCost, MeanError, MeanClippedError)},
    "certify": {part.name: part for part in (Holdout, Paper)},
}
READABLE = SLOTS | {"resampling": RESAMPLINGS}  # parts that a file can name, in studies of either kind
FIELD_NAMES = {"certify": "certification"}  # fields of a Study whose names differ from the option's
CLIP = "clip"  # the option of the criterion of numbers
OTHER_NAMES = {  # of options, by which scikit-learn and others know them
    "cv": "resampling",
    "folds": "k",
    "scoring": "measure",
    "measures": "measure",
    "estimator": "learner",
    "random_state": "seed",
    "n_permutations": "permutations",
    "n_jobs": 'execution=Execution("ray", workers)',
}
SEVERAL = "learner"  # the slot that may name several parts, as in svm,linear


def list_parts(slot: str) -> dict[str, type[Named]]:
    """Return the parts that the option of a slot can name; several learners are named one by one."""
    return {name: part for name, part in SLOTS[slot].items() if name != CHOICE}


def read_part(slot: str, content: object) -> object:
    """Make a part of a study from its name and options."""
    expect(slot, content, Mapping, "a mapping with the name and the options of a part of a study")
    assert isinstance(content, Mapping)
    given = {name: value for name, value in content.items() if name != "name"}
    part = READABLE[slot][check_choice(slot, content.get("name"), READABLE[slot])]
    check_names(part.name, given, options(part))
    if part.name == CHOICE and "learners" in given:
        listed = sequence("learners", given["learners"], least=0, kind="learners")
        if any(isinstance(learner, Mapping) and learner.get("name") == CHOICE for learner in listed):
            raise InputError(f"learners: a {CHOICE} cannot hold another one")
        given["learners"] = [read_part(slot, learner) for learner in listed]
    if part is NestedSplits:
        given = {name: read_part(slot, inside) for name, inside in given.items()}
    return part(**given)


def check_known_part(slot: str, part: object) -> None:
    """Raise InputError if a part is not one that a file could name."""
    known = READABLE[slot]
    for single in part.by_label.values() if isinstance(part, Learner) else [part]:
        if not isinstance(single, tuple(known.values())) or getattr(single, "name", None) not in known:
            raise InputError(f"{slot}={quote(single)} is not one of {', '.join(known)}")


def check_names(of: str, given: Iterable[object], known: Collection[str]) -> None:
    """Raise InputError if an option is not one of a part or of a study."""
    if unknown := [name for name in given if name not in known]:
        if gone := explain_removed_option(str(unknown[0])):
            raise InputError(gone)
        raise InputError(
            f"unknown option {quote(unknown[0])} of {of}: the options are {', '.join(sorted(known))}"
            f"{suggest(unknown[0], known)}"
        )


class Asked(NamedTuple):
    """A part of a study to be made."""

    slot: str  # the option that chooses it
    label: str  # of a learner, what it is called; else ""
    kind: Any  # its class
    before: dict[str, Any]  # the values it keeps from an earlier study

    @property
    def names(self) -> dict[str, str]:
        """The names by which its options may be given, and the name of each: those for it alone come last."""
        plain = {name: name for name in list_names(self.kind)}
        return plain | ({f"{self.label}.{name}": name for name in plain} if self.label else {})

    def get_given(self, asked: Mapping[str, object]) -> dict[str, object]:
        """Return the values of its options."""
        given = {name: asked[full] for full, name in self.names.items() if full in asked}
        declared = {name: field.metadata["option"] for name, field in options(self.kind).items()}
        values = {name: v for name, v in self.before.items() if declared[name].inside not in given}
        for whole in given.keys() - declared.keys():
            values |= _read_inside(self.kind, whole, given.pop(whole))
        return values | given


def assemble(
    slots: Collection[str], asked: Mapping[str, object], earlier: Mapping[str, Named], of_study: Iterable[str]
) -> dict[str, Any]:
    """Return the fields of the study that some options ask for.

    Args:
        slots: the parts that the study has, of ``SLOTS``.
        asked: the options, by name.
        earlier: parts of an earlier study, of which those chosen now keep the options they share; or none.
        of_study: names of the options that are those of no part.

    Raises:
        InputError: an option is unknown, out of range, or not an option of the parts chosen.
    """
    of_clip = {"criterion": MeanClippedError.name} if CLIP in asked else {}  # only this criterion has one
    asked = (name_choices(earlier) if earlier else {}) | of_clip | dict(asked)
    _trust_named(asked.get("estimator"))
    learner = asked.get(SEVERAL, DEFAULT)
    named = _list_learners(learner)
    asked = _flatten(asked, [_find_label(name) for name in named])
    parts = [
        *_choose_learners(
            named, asked, before.by_label if isinstance(before := earlier.get(SEVERAL), Learner) else {}
        ),
        *(_choose_part(slot, asked, earlier) for slot in slots if slot != SEVERAL),
    ]
    labels = tuple(part.label for part in parts if part.slot == SEVERAL)
    usable = {*slots, *of_study, *(name for part in parts for name in part.names)}
    usable |= {f"{label}.{SEVERAL}" for label in labels}  # which learner a label is of
    _refuse(slots, {name: value for name, value in asked.items() if name not in usable}, parts, of_study)
    if len(labels) > 1:
        asked = _hand_out_params(asked, parts)
    made: dict[str, list[Any]] = {slot: [] for slot in slots}
    for part in parts:
        made[part.slot].append(part.kind(**part.get_given(asked)))
    if len(labels) > 1:
        made[SEVERAL] = [
            LEARNERS[CHOICE](tuple(made[SEVERAL]), labels, tuple(ZOO.values()) if learner == ALL else None)
        ]
    fields = {FIELD_NAMES.get(slot, slot): part for slot, (part,) in made.items()}
    return fields | {name: asked[name] for name in of_study if name in asked}


def _choose_part(slot: str, asked: Mapping[str, Any], earlier: Mapping[str, Any]) -> Asked:
    choices = SLOTS[slot]
    choice = asked.get(slot, next(iter(choices)))
    if slot == "resampling":  # also one for no certification, which the study refuses
        part = parse_resampling(choice)
        kind, before = type(part), get_values(part)
    else:
        name, _, inside = choice.partition(":") if isinstance(choice, str) else (choice, "", "")
        if inside and not (name in choices and list_inside(choices[name], slot)):
            name = choice
        kind, before = choices[check_choice(slot, name, choices)], {}
    return Asked(slot, "", kind, before | (_share_values(earlier[slot], kind) if slot in earlier else {}))


def _choose_learners(
    named: Sequence[Any], asked: Mapping[str, Any], before: Mapping[str, Learner]
) -> list[Asked]:
    """Return the learners that are asked for.

    A name is that of a learner, the label of one in the earlier study, or a new label, of which
    "LABEL.learner" is the learner; or it is an estimator of scikit-learn, whose class is its label. It keeps
    the values of the learner of its label in the earlier study, if that was of the same kind.
    """
    found: list[Asked] = []
    known = list_parts(SEVERAL) | {label: type(learner) for label, learner in before.items()}
    for name in named:
        label, kind, kept = _find_label(name), None, {}
        if _is_estimator(name):
            if "estimator" in asked:
                raise InputError("estimator is given twice: as the learner, and by estimator")
            kind, kept = LEARNERS[ANY], {"estimator": name}
            _trust_named(name)
        elif len(named) > 1 and f"{name}.{SEVERAL}" in asked:
            choices = list_parts(SEVERAL)
            kind = choices[check_choice(f"{name}.{SEVERAL}", asked[f"{name}.{SEVERAL}"], choices)]
        elif name == "" and len(named) > 1:
            raise InputError(f"{SEVERAL}={quote(asked[SEVERAL])} has an empty name: name a learner there")
        kind = kind or known[check_choice(SEVERAL, name, known)]
        _trust_named(getattr(kind, "spec", None))
        if label in [part.label for part in found]:
            raise InputError(f"{SEVERAL}={quote(asked[SEVERAL])} names {label} twice: leave one out")
        if label in before and type(before[label]) is kind:
            kept = get_values(before[label]) | kept
        elif len(named) == len(before) == 1:  # a single one takes the place of a single one
            kept = _share_values(next(iter(before.values())), kind) | kept
        found.append(Asked(SEVERAL, label, kind, kept))
    return found


def _find_label(name: Any) -> Any:
    if not _is_estimator(name):
        return name
    return name.rpartition(":")[2] if isinstance(name, str) else type(name).__name__


def _list_learners(learner: Any) -> Sequence[Any]:
    """Return the learners named by text such as svm,linear or all, or by a list."""
    if learner == ALL:
        return list(ZOO)
    if isinstance(learner, str) and "," in learner:
        return [name.strip() for name in learner.split(",")]
    return learner if isinstance(learner, list | tuple) and learner else [learner]


def _hand_out_params(asked: Mapping[str, Any], parts: Sequence[Asked]) -> dict[str, Any]:
    """Return the options with each parameter given to the learners that have one of its name.

    "forest.max_features" is given to forest alone.
    """
    if "param" not in asked:
        return dict(asked)
    rest = {name: value for name, value in asked.items() if name != "param"}
    taking = [part for part in parts if "param" in part.names]
    known: dict[str, Iterable[str]] = {
        part.label: list_inside(part.kind, "param")
        or part.kind(**{**part.get_given(rest), "param": None}).parameter_names()
        for part in taking
    }
    given: dict[str, dict[str, Any]] = {}
    for name, value in (check_space("param", asked["param"]) or {}).items():
        label, _, param = name.rpartition(".")
        owners = [label] if label in known else [part for part in known if not label and param in known[part]]
        if not owners:
            every = [each for names in known.values() for each in names]
            raise InputError(f"param {quote(name)}: none of {', '.join(known)} has it{suggest(param, every)}")
        for owner in owners:
            given.setdefault(owner, {})[param] = value
    for label, params in given.items():
        rest[f"{label}.param"] = params | (check_space("param", rest.get(f"{label}.param")) or {})
    return rest


def _read_inside(kind: Any, whole: str, given: Any) -> dict[str, Any]:
    """Return the options that are written in the value of another one, such as "budget:keep=0.5"."""
    inside = list_inside(kind, whole)
    if whole in SLOTS:
        text = given.partition(":")[2]
        if len(inside) == 1 or not text:
            return dict.fromkeys(inside, text) if text else {}
        given = dict(pair.partition("=")[::2] for pair in text.split(","))
        check_names(kind.name, given, inside)
    found: dict[str, Any] = {}
    for name, values in (check_space(whole, given) or {}).items():
        if name not in inside:
            own = f"; {name} is an option of its own" if name in options(kind) else suggest(name, inside)
            raise InputError(f"{whole} {quote(name)}: of {kind.name} it takes {', '.join(inside)}{own}")
        single = isinstance(values, tuple) and not isinstance(inside[name].default, tuple)
        if single and len(values) > 1:
            raise InputError(f"{whole} {name}={_write(values)}: of {kind.name} it has one value")
        found[name] = values[0] if single else values
    return found


def _write(values: Iterable[Any]) -> str:
    return ",".join(map(str, values))


def fold_values(part: Named, fixed: bool = False) -> dict[str, object]:
    """Return the values of a part's options by the names by which they are given; see ``get_values``."""
    values = get_values(part, fixed)
    folded = {
        whole: {name: values.pop(name) for name in list_inside(part, whole)} for whole in list_names(part)
    }
    return values | {whole: inside for whole, inside in folded.items() if inside and whole not in values}


def name_choices(parts: Mapping[str, Named]) -> dict[str, str]:
    """Return the choice in each slot, as an option gives it."""
    names = {}
    for slot, part in parts.items():
        inside = {name: getattr(part, name) for name in list_inside(part, slot)}
        pairs = inside.values() if len(inside) == 1 else [f"{name}={v}" for name, v in inside.items()]
        names[slot] = ":".join(filter(None, (part.name, _write(pairs))))
    learner = parts[SEVERAL]
    assert isinstance(learner, Learner)
    of_size = get_values(learner).get("most_rows") is not None
    return names | {SEVERAL: ALL if of_size else ",".join(learner.by_label)}


def get_learner_values(learners: Mapping[str, Learner], fixed: bool) -> dict[str, object]:
    """Return the options of learners by name, after the label if several learners have one of that name."""
    every = ((label, fold_values(learner, fixed)) for label, learner in learners.items())
    named = [(label, name, value) for label, values in every for name, value in values.items()]
    times = Counter(name for _, name, _ in named)
    kinds = {f"{label}.{SEVERAL}": part.name for label, part in learners.items() if label != part.name}
    return kinds | {name if times[name] == 1 else f"{label}.{name}": value for label, name, value in named}


def _flatten(asked: Mapping[str, Any], labels: Sequence[Any]) -> dict[str, Any]:
    """Return the options, those of one learner in a mapping named after it as options such as "svm.C"."""
    flat: dict[str, Any] = {}
    taken = {name for slot in SLOTS for part in list_parts(slot).values() for name in options(part)}
    for name, value in asked.items():
        if isinstance(value, Mapping) and name not in taken and (name in labels or name in LEARNERS):
            inner = {f"{name}.{str(option).replace('-', '_')}": v for option, v in value.items()}
            if twice := inner.keys() & asked.keys():
                raise InputError(f"{min(twice)} is given twice: leave one of them out")
            flat |= inner
        else:
            flat[name] = value
    return flat


def _share_values(earlier: Any, part: Any) -> dict[str, Any]:
    """Return the values of an earlier part's options that another part declares in the same way."""
    declared = {name: field.metadata["option"] for name, field in options(part).items()}
    before = {name: field.metadata["option"] for name, field in options(earlier).items()}
    return {name: v for name, v in get_values(earlier).items() if before[name] is declared.get(name)}


def _trust_named(estimator: Any) -> None:
    """Trust the packages of an estimator that the user names, here and not in the file of a run."""
    for package in list_packages(estimator):
        trust(package)


def _is_estimator(learner: Any) -> bool:
    if isinstance(learner, str) and "," in learner:
        return False
    return ":" in learner if isinstance(learner, str) else hasattr(learner, "get_params")


def _refuse(
    slots: Collection[str], unusable: Mapping[str, Any], parts: Sequence[Asked], of_study: Iterable[str]
) -> None:
    """Raise InputError about the first option that the parts chosen do not have: unknown, or of others."""
    every = [
        Asked(slot, name if slot == SEVERAL else "", part, {})
        for slot in SLOTS
        for name, part in list_parts(slot).items()
    ]
    known = {*slots, *of_study}
    known |= {name for part in [*parts, *every] if part.slot in slots for name in part.names}
    for name, value in unusable.items():
        if (meant := OTHER_NAMES.get(name, "")) in known or "=" in meant:
            raise InputError(f"{name} is called {meant} here")
        owners = [part for part in every if name in part.names]
        if name in SLOTS or (owners and owners[0].slot not in slots):
            raise InputError(f"{name} is an option of ckcv run, and not of a procedure: leave it out")
        if not owners:
            label, _, option = name.rpartition(".")
            for part in parts:
                if part.label == label != "":
                    check_names(label, [option], list_names(part.kind))
            check_names("a study", [name], [known_name for known_name in known if "." not in known_name])
        chosen = [part for part in parts if part.slot == owners[0].slot]
        labels = [part.label or part.kind.name for part in chosen]
        wanted = f"{owners[0].slot} {' or '.join(part.kind.name for part in owners)}"
        why = f"{name}={quote(value)} requires {wanted}, not {','.join(labels)}"
        if able := [label for label, part in zip(labels, chosen, strict=True) if "param" in part.names]:
            why += f"; parameters of {' or '.join(able)} are given by param"
        raise InputError(why)

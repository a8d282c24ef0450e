"""Parts of a study by name: learner, resampling, criterion and certification, and their JSON form."""

from collections.abc import Iterable, Mapping
from typing import Any

from ckcv_ray.core.criteria import Balanced, MeanBound, MeanCost, MeanError
from ckcv_ray.core.options import options
from ckcv_ray.core.resampling.kfold import NestedSplits
from ckcv_ray.core.resampling.parse import CERTIFIABLE, RESAMPLINGS
from ckcv_ray.errors import InputError
from ckcv_ray.learners import LEARNERS, Choice
from ckcv_ray.study.certification import Holdout, Nested, Occam
from ckcv_ray.validation import check_choice, expect, quote, sequence, suggest

SLOTS: dict[str, dict[str, Any]] = {  # parts of a study: the option that chooses one, and the choices
    "learner": LEARNERS,
    "resampling": CERTIFIABLE,
    "criterion": {part.name: part for part in (MeanBound, Balanced, MeanCost, MeanError)},
    "certify": {part.name: part for part in (Occam, Holdout, Nested)},
}
READABLE = SLOTS | {"resampling": RESAMPLINGS}  # parts that a file can name, in studies of either kind
FIELD_NAMES = {"certify": "certification"}  # fields of a Study whose names differ from the option's
SEVERAL = "learner"  # the slot that may name several parts, as in svm,linear


def named_parts(slot: str) -> dict[str, Any]:
    """Return the parts that the option of a slot can name; several learners are named one by one."""
    return {name: part for name, part in SLOTS[slot].items() if part is not Choice}


def read_part(slot: str, content: Any) -> Any:
    """Make a part of a study from its name and options."""
    expect(slot, content, Mapping, "a mapping with the name and the options of a part of a study")
    given = {name: value for name, value in content.items() if name != "name"}
    part = READABLE[slot][check_choice(slot, content.get("name"), READABLE[slot])]
    check_names(part.name, given, options(part))
    if part is Choice and "learners" in given:
        listed = sequence("learners", given["learners"], least=0, kind="learners")
        if any(isinstance(one, Mapping) and one.get("name") == Choice.name for one in listed):
            raise InputError(f"learners: a {Choice.name} cannot hold another one")
        given["learners"] = [read_part(slot, one) for one in listed]
    if part is NestedSplits:
        given = {name: read_part(slot, inside) for name, inside in given.items()}
    return part(**given)


def check_known_part(slot: str, part: Any) -> None:
    """Raise InputError if a part is not one that a file could name."""
    known = READABLE[slot]
    for one in part.learners if isinstance(part, Choice) else [part]:
        if not isinstance(one, tuple(known.values())) or getattr(one, "name", None) not in known:
            raise InputError(f"{slot}={quote(one)} is not one of {', '.join(known)}")


def check_names(of: str, given: Iterable[Any], known: Iterable[str]) -> None:
    """Raise InputError if an option is not one of a part or of a study."""
    if unknown := [name for name in given if name not in known]:
        raise InputError(
            f"unknown option {quote(unknown[0])} of {of}: the options are {', '.join(sorted(known))}"
            f"{suggest(unknown[0], known)}"
        )

"""Studies, which hold everything that decides a result and nothing else, and executions.

A Study and the digest of the data give the ``run_id``. A Study consists of a learner, a resampling, a
criterion and a certification, which declare what they can be combined with. Their fields are the options of
the command line and of TOML files. An Execution holds what may differ from run to run without changing any
result.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ckcv_ray.core.criteria import Criterion, MeanBound
from ckcv_ray.core.options import Option, check_options, described, option, options, values
from ckcv_ray.core.resampling import Complete, Resampling, Rotation
from ckcv_ray.errors import InputError
from ckcv_ray.learners import DEFAULT, LEARNERS, Learner
from ckcv_ray.study.certification import OUTER_K, Certification, Holdout, Nested, Occam
from ckcv_ray.validation import MOST, as_path, boolean, check_choice, expect, folds, integer, quoted

BACKENDS = ("auto", "ray", "serial")
MOST_SEED = 2**128 - 1
MOST_TOML_BYTES = 1 << 24
SLOTS: dict[str, dict[str, Any]] = {  # parts of a study: the option that chooses one, and the choices
    "learner": LEARNERS,
    "resampling": {part.name: part for part in (Complete, Rotation)},
    "criterion": {MeanBound.name: MeanBound},
    "certify": {part.name: part for part in (Occam, Holdout, Nested)},
}
FIELDS = {"certify": "certification"}  # fields of a Study whose names differ from the option's


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

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        return _assembled(asked, {slot: {} for slot in SLOTS}, {})

    def replace(self, /, **asked: Any) -> "Study":
        """Return this study with some options changed; those that a new part lacks are dropped."""
        parts = self.parts
        chosen = {slot: part.name for slot, part in parts.items()} | {
            s: asked[s] for s in SLOTS if s in asked
        }
        kept = {slot: values(part) for slot, part in parts.items()}
        return _assembled(chosen | asked, kept, values(self))

    def options(self) -> dict[str, Any]:
        """Return every option of the study by name, including the choices of its parts."""
        parts = self.parts
        chosen = {slot: part.name for slot, part in parts.items()}
        return chosen | {n: v for part in parts.values() for n, v in values(part).items()} | values(self)

    def to_json(self) -> dict[str, Any]:
        """Return the study as JSON values, the inverse of ``from_json``."""
        parts = {slot: described(part) for slot, part in self.parts.items()}
        others = {name: list(v) if isinstance(v, tuple) else v for name, v in values(self).items()}
        return parts | others

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

        Options that only one of them has belong to a part that differs, which has a line itself.
        """
        ours, theirs = self.options(), other.options()
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
    def outer_splits(self) -> int | None:
        """Number of outer splits of a nested certification; None without one."""
        return self.certification.outer_splits if isinstance(self.certification, Nested) else None

    def with_learner(self, learner: Learner) -> "Study":
        """Return this study with another learner."""
        return replace(self, learner=learner)

    def inner(self) -> "Study":
        """Return the study to run inside each outer split of a nested certification."""
        return replace(self, certification=Occam(), report_k=())

    def outer(self) -> "Study":
        """Return the study of the outer splits: three folds, whose estimate sets certify."""
        assert self.outer_splits is not None
        return replace(self.inner(), resampling=Complete((OUTER_K,), self.outer_splits))


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
    """Return the name of a run: 12 hexadecimal digits of the SHA-256 of study and data."""
    text = json.dumps({"study": study.to_json(), "data": data_digest}, sort_keys=True, separators=(",", ":"))
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


def _assembled(asked: Mapping[str, Any], kept: dict[str, dict[str, Any]], others: dict[str, Any]) -> Study:
    """Make the study of some options, keeping those of an earlier one that the parts still have."""
    _check_known(asked)
    parts = {}
    for slot, choices in SLOTS.items():
        part = choices[asked.get(slot, next(iter(choices)))]
        before = {name: value for name, value in kept[slot].items() if name in options(part)}
        parts[slot] = part, before | {name: asked[name] for name in options(part) if name in asked}
    known = {name for part, given in parts.values() for name in given} | set(SLOTS) | set(options(Study))
    for name in asked:
        if name not in known:
            raise InputError(_misplaced(name, asked[name], {slot: part for slot, (part, _) in parts.items()}))
    chosen = {FIELDS.get(slot, slot): part(**given) for slot, (part, given) in parts.items()}
    return Study(**chosen, **others | {name: asked[name] for name in options(Study) if name in asked})


def _read_part(slot: str, content: Any) -> Any:
    """Make a part of a study from its name and options."""
    expect(slot, content, Mapping, "a mapping with the name and the options of a part of a study")
    given = {name: value for name, value in content.items() if name != "name"}
    part = SLOTS[slot][check_choice(slot, content.get("name"), SLOTS[slot])]
    _check_names(part.name, given, options(part))
    return part(**given)


def _check_part(slot: str, part: Any) -> None:
    """Raise InputError if a part is not one that a file could name."""
    known = SLOTS[slot]
    if not isinstance(part, tuple(known.values())) or getattr(part, "name", None) not in known:
        raise InputError(f"{slot}={quoted(part)} is not one of {', '.join(known)}")


def _check_names(of: str, given: Mapping[Any, Any], known: Iterable[str]) -> None:
    """Raise InputError if an option is not one of a part or of a study."""
    if unknown := [name for name in given if name not in known]:
        raise InputError(
            f"unknown option {quoted(unknown[0])} of {of}: the options are {', '.join(sorted(known))}"
        )


def _check_known(asked: Mapping[str, Any]) -> None:
    for slot in [slot for slot in SLOTS if slot in asked]:
        check_choice(slot, asked[slot], SLOTS[slot])
    known = {
        *SLOTS,
        *options(Study),
        *(n for s in SLOTS.values() for part in s.values() for n in options(part)),
    }
    _check_names("a study", asked, known)


def _misplaced(name: str, value: Any, chosen: Mapping[str, Any]) -> str:
    """Explain why an option cannot be used with the parts chosen."""
    for slot, choices in SLOTS.items():
        owners = [part.name for part in choices.values() if name in options(part)]
        if owners:
            return f"{name}={quoted(value)} requires {slot} {' or '.join(owners)}, not {chosen[slot].name}"
    raise AssertionError(name)


def _short(value: object) -> str:
    text = "3:n" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."

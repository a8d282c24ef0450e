"""Studies, which hold everything that decides a result and nothing else, and executions.

A Study and the digest of the data give the ``run_id``. A Study consists of a learner, a resampling, a
criterion and a certification, which declare what they can be combined with. Their fields are the options of
the command line and of TOML files. An Execution holds what may differ from run to run without changing any
result.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ckcv_ray.core.criteria import Criterion, MeanBound
from ckcv_ray.core.options import Option, check_options, described, option, options, said, values
from ckcv_ray.core.resampling import Complete, Outer, Resampling
from ckcv_ray.errors import InputError
from ckcv_ray.learners import DEFAULT, Learner, learners_of
from ckcv_ray.learners.encoding import RARE, Categories, Encoding, Gaps
from ckcv_ray.study.assembly import assembled, chosen, values_of_learners
from ckcv_ray.study.certification import Certification, Nested, Occam
from ckcv_ray.study.parts import FIELDS, SEVERAL, SLOTS, check_names, check_part, read_part
from ckcv_ray.validation import (
    MOST,
    as_path,
    boolean,
    check_choice,
    expect,
    folds,
    integer,
    number,
    quoted,
    share,
)

BACKENDS = ("auto", "ray", "serial")
MOST_SEED = 2**128 - 1
MOST_TOML_BYTES = 1 << 24
LEAST_TIMEOUT = 0.1


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
        encode: how categories become numbers: "onehot", "ordinal", "target", or "auto" for what suits
            the learner.
        fill: what fills gaps in numbers and dates: "median", "mean" or "most_frequent".
        rare: share of the training rows below which categories are joined.

    Raises:
        InputError: a field has the wrong type or is out of range, or the parts cannot be combined.
    """

    kind: ClassVar[str] = "study"

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
    encode: str = option(
        Categories.AUTO,
        Option(
            lambda name, value: Categories(check_choice(name, value, Categories)),
            "How categories become numbers in each split: onehot, ordinal, target (the share of each class "
            "among the rows of a category, for a training row in other folds), or auto, as suits the "
            "learner.",
            shown="auto",
            panel="Columns",
            unsaid=True,
        ),
    )
    fill: str = option(
        Gaps.MEDIAN,
        Option(
            lambda name, value: Gaps(check_choice(name, value, Gaps)),
            "What fills gaps in numbers and dates in each split: median, mean or most_frequent.",
            shown="median",
            panel="Columns",
            unsaid=True,
        ),
    )
    rare: float = option(
        RARE,
        Option(
            share,
            "Share of a split's training rows below which categories are joined.",
            float,
            "0.01",
            panel="Columns",
            unsaid=True,
        ),
    )

    def __post_init__(self) -> None:
        for slot, part in self.parts.items():
            check_part(slot, part)
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
        return cls(**assembled(asked, {}, options(cls)))

    def replace(self, /, **asked: Any) -> "Study":
        """Return this study with some options changed; a new part keeps only those that it shares."""
        return replace(self, **assembled(asked, self.parts, options(self)))

    def options(self, fixed: bool = False) -> dict[str, Any]:
        """Return every option of the study by name, including the choices of its parts.

        An option that several learners have is named after each of them, such as "svm.C"; "LABEL.learner" is
        the learner of a label. ``fixed`` leaves out those that may grow in an existing run folder.
        """
        parts = self.parts
        others = [part for slot, part in parts.items() if slot != SEVERAL]
        own = values(self, fixed)
        of_others = {n: v for part in others for n, v in values(part, fixed).items()}
        return chosen(parts) | values_of_learners(learners_of(self.learner), fixed) | of_others | own

    def to_json(self, fixed: bool = False) -> dict[str, Any]:
        """Return the study as JSON values, the inverse of ``from_json``.

        ``fixed`` leaves out the options that may grow in an existing run folder: the rest gives the run_id.
        """
        parts = {slot: described(part, fixed) for slot, part in self.parts.items()}
        return parts | said(self, fixed)

    @property
    def encoding(self) -> Encoding:
        """How columns that are not plain numbers are encoded in each split."""
        return Encoding(Categories(self.encode), Gaps(self.fill), self.rare)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Study":
        """Make a study from what ``to_json`` returned.

        Raises:
            InputError: a part or an option is unknown, or an option has an invalid value.
        """
        expect("study", content, Mapping, "a mapping of a study's parts and options, as to_json returns it")
        others = {name: value for name, value in content.items() if name not in SLOTS}
        check_names("a study", others, options(cls))
        parts = {FIELDS.get(slot, slot): read_part(slot, content.get(slot)) for slot in SLOTS}
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
        fit_timeout: seconds that one fit may take; None for any. The worker of a longer one is killed, and
            the fit counts as failed after a few attempts. It requires the ray backend; "auto" chooses it.
    """

    backend: str = "auto"
    workers: int | None = None
    address: str | None = None
    fit_timeout: float | None = None

    def __post_init__(self) -> None:
        check_choice("backend", self.backend, BACKENDS)
        if self.workers is not None:
            object.__setattr__(self, "workers", integer("workers", self.workers, least=1, most=MOST))
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            raise InputError(
                f"address={quoted(self.address)}: expected host:port, or auto for the cluster on this machine"
            )
        if self.fit_timeout is not None:
            seconds = number("fit_timeout", self.fit_timeout)
            if not LEAST_TIMEOUT <= seconds <= MOST:
                raise InputError(f"fit_timeout={seconds!r}: expected seconds from {LEAST_TIMEOUT} to {MOST}")
            object.__setattr__(self, "fit_timeout", seconds)
        for name, value in (
            ("address", self.address),
            ("workers", self.workers),
            ("fit_timeout", self.fit_timeout),
        ):
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} requires the ray backend: leave out --backend serial")


class Identified(Protocol):
    """What is run: a study, or a procedure; ``kind`` says which."""

    kind: ClassVar[str]

    def to_json(self, fixed: bool = False) -> dict[str, Any]:
        """Return it as JSON values; ``fixed`` leaves out what may grow in an existing run folder."""


def run_id(study: Identified, data_digest: str) -> str:
    """Return the name of a run: 12 hexadecimal digits of the SHA-256 of study and data.

    The options that may grow in an existing run folder have no part in it.
    """
    named = {study.kind: study.to_json(fixed=True), "data": data_digest}
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


def _short(value: object) -> str:
    text = "3:n" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""Procedures of cross validation: what is fitted, how rows are divided, what is measured, how one selects.

Without a selection every setting is scored on every split. With one, the settings are scored inside each
training set first (``NestedSplits``), by one of the measures, and only what is selected is scored on the
split: for each learner the one setting that is best on average over all splits, or a new one in each of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ckcv_ray.core.divisions import DIVISIONS, Division
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.named_divisions import NestedSplits, parse_division, read_division
from ckcv_ray.core.options import described, options
from ckcv_ray.core.own_scores import Function, OwnScore
from ckcv_ray.errors import InputError, cut
from ckcv_ray.learners import Learner, learners_of
from ckcv_ray.learners.encoding import Encoding
from ckcv_ray.study.parts import SLOTS, check_names, read_part
from ckcv_ray.study.study import Study
from ckcv_ray.validation import boolean, expect, integer, quoted, sequence

MOST_SEED = 2**63 - 1
LONGEST_SHOWN = 200
ONE, EACH = "one", "each"
ENCODING = Encoding()
FIELDS = (
    *("learner", "resampling", "measures", "functions", "select_by", "select", "seed"),
    *("encode", "fill", "rare"),
)


@dataclass(frozen=True)
class Procedure:
    """A procedure of cross validation.

    Attributes:
        learner: what is fitted; several learners are compared on the same splits.
        resampling: how rows are divided, such as ``KFold(10)``; with a selection ``NestedSplits``.
        measures: names of the scores.
        select_by: name of the score that selects settings; None to score all of them.
        select: "one" setting for all splits, or another in "each".
        seed: of the splits.
        encoding: how columns that are not plain numbers are encoded in each split.
        functions: the measures that are functions of the user.
    """

    kind: ClassVar[str] = "procedure"

    learner: Learner
    resampling: Division
    measures: tuple[str, ...]
    select_by: str | None = None
    select: str = ONE
    seed: int = 0
    encoding: Encoding = ENCODING
    functions: tuple[OwnScore, ...] = ()

    def __post_init__(self) -> None:
        if not self.learner.kinds:
            named = ", ".join(learners_of(self.learner))
            raise InputError(
                f"learners: some of {named} predict numbers and others classes: compare those of one kind"
            )
        if not self.measures:
            raise InputError("measure is empty: name one, such as zero_one, or several: accuracy,auc")
        own = [one.name for one in self.functions]
        if len(set(own)) < len(own) or not set(own) <= set(self.measures):
            raise InputError(f"functions: {', '.join(own)}: expected each once, and among the measures")
        if len(set(self.measures)) < len(self.measures):
            raise InputError(f"measure={','.join(self.measures)} names one twice: leave it out")
        nested = isinstance(self.resampling, NestedSplits)
        if nested and self.select_by is None:
            raise InputError(
                "a nested resampling selects settings: say by which score, such as "
                f"select_by={self.measures[0]}"
            )
        if not nested and self.select_by is not None:
            raise InputError(
                f"select_by={self.select_by} requires a resampling inside the training sets, such as "
                "nested:5:5 or nested_halves:5"
            )
        if self.select not in (ONE, EACH):
            raise InputError(f"select={quoted(self.select)}: expected {ONE} or {EACH}")
        if self.select == EACH and not nested:
            raise InputError(f"select={EACH} requires a resampling that selects, such as nested:5:5")

    @classmethod
    def of(
        cls,
        resampling: str | Division = "kfold:10",
        measure: str | Function | Sequence[str | Function] | None = None,
        select_by: str | None = None,
        select: str = ONE,
        seed: int = 0,
        stratify: bool = False,
        **learner: Any,
    ) -> "Procedure":
        """Make a procedure from named options; those that are not named here are the learner's.

        Without a measure it is ``zero_one`` for classes, and ``rmse`` for numbers.

        Raises:
            InputError: an option is unknown or out of range.
        """
        _check_learners(learner)
        study = Study.of(**learner)
        division = parse_division(resampling) if isinstance(resampling, str) else resampling
        expect("resampling", division, Division, "text such as kfold:10, or a Division")
        if measure is None:
            measure = "rmse" if Kind.REGRESSION in study.learner.kinds else "zero_one"
        if isinstance(measure, str):
            measure = [name.strip() for name in measure.split(",")]
        if not (callable(measure) or isinstance(measure, Iterable)):
            raise InputError(
                f"measure={quoted(measure)}: expected names such as 'accuracy,auc', or functions"
            )
        listed = [measure] if callable(measure) else list(measure)
        functions = {i: OwnScore.of(one) for i, one in enumerate(listed) if not isinstance(one, str)}
        measures = tuple(functions[i].name if i in functions else str(one) for i, one in enumerate(listed))
        seed = integer("seed", seed, least=0, most=MOST_SEED)
        if boolean("stratify", stratify):
            division = stratified(division)
        own = tuple(functions.values())
        return cls(study.learner, division, measures, select_by, select, seed, study.encoding, own)

    @property
    def selects(self) -> bool:
        """Whether settings are selected inside the training sets."""
        return self.select_by is not None

    @property
    def predicts_numbers(self) -> bool:
        """Whether the target has numbers, and not classes: that is up to the learner."""
        return Kind.REGRESSION in self.learner.kinds

    @property
    def outer_splits(self) -> None:
        """None: there is no nested certification."""
        return None

    def to_json(self, fixed: bool = False) -> dict[str, Any]:
        """Return the procedure as JSON values, the inverse of ``from_json``."""
        return {
            "learner": described(self.learner, fixed),
            "resampling": described(self.resampling),
            "measures": list(self.measures),
            "functions": [{"name": one.name, "sha256": one.digest} for one in self.functions],
            "select_by": self.select_by,
            "select": self.select,
            "seed": self.seed,
            "encode": str(self.encoding.categories),
            "fill": str(self.encoding.gaps),
            "rare": self.encoding.rare,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Procedure":
        """Make a procedure from what ``to_json`` returned; splits that were given are without their sets.

        Raises:
            InputError: a part or an option is unknown, or has an invalid value.
        """
        expect("procedure", content, Mapping, "a mapping as to_json returns it")
        check_names("a procedure", content, FIELDS)
        given: dict[str, Any] = {name: content.get(name) for name in FIELDS}
        study = Study.of(encode=given["encode"], fill=given["fill"], rare=given["rare"])
        measures = sequence("measures", given["measures"], least=1, kind="names of measures")
        return cls(
            read_part("learner", given["learner"]),
            read_division(given["resampling"]),
            tuple(map(str, measures)),
            given["select_by"],
            given["select"],
            integer("seed", given["seed"], least=0, most=MOST_SEED),
            study.encoding,
            tuple(map(OwnScore.from_json, sequence("functions", given["functions"] or (), least=0))),
        )

    def differences(self, other: "Procedure") -> list[str]:
        """Return one line for each part that differs from ``other``, the procedure of a folder."""
        ours, theirs = ({n: json.dumps(v) for n, v in one.to_json().items()} for one in (self, other))
        return [
            f"{name}: requested {cut(ours[name], LONGEST_SHOWN)}, in the folder "
            f"{cut(theirs[name], LONGEST_SHOWN)}"
            for name in ours
            if ours[name] != theirs[name]
        ]


def _check_learners(asked: Iterable[str]) -> None:
    """Raise InputError if an option is one of a study's other parts, which have none here."""
    parts = [part for slot in SLOTS if slot != "learner" for part in SLOTS[slot].values()]
    others = {name for part in parts for name in options(part)}
    others |= {*SLOTS, *options(Study)} - {"learner", "encode", "fill", "rare"}
    for name in asked:
        if name in others:
            raise InputError(f"{name} is an option of ckcv run, and not of a procedure: leave it out")


def stratified(division: Division) -> Division:
    """Return a division that gives each part the same share of every class.

    Raises:
        InputError: there is no such form of it.
    """
    if isinstance(division, NestedSplits):
        return NestedSplits(stratified(division.outer), stratified(division.inner))
    if "stratify" not in options(division):
        able = [name for name, one in DIVISIONS.items() if "stratify" in options(one)]
        raise InputError(f"stratify is for {', '.join(able)}, not {division.name}: leave it out")
    return replace(division, stratify=True)  # type: ignore[type-var]

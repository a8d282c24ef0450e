"""Studies, which hold everything that decides a result and nothing else.

A Study and the digest of the data give the ``run_id``. A Study consists of a learner, a resampling, a search
and a certification, which declare what they can be combined with. Their fields are the options of the
command line and of TOML files. A Procedure is the other kind of study, without a certification: an ordinary
procedure of cross validation, whose measures are computed on every split.

An Execution holds what may differ from run to run without changing any result.
"""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import randbits
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from ckcv_ray import errors
from ckcv_ray.core import options as core_options
from ckcv_ray.core.criteria import Balanced, Criterion, MeanBound, MeanClippedError, MeanCost, MeanError
from ckcv_ray.core.intervals import INTERVALS
from ckcv_ray.core.measures import SCORE_NAMES, Kind, OwnScore
from ckcv_ray.core.options import HasOptions, Option, get_values, list_inside, list_names, option, options
from ckcv_ray.core.resampling import folds
from ckcv_ray.core.resampling.base import Resampling
from ckcv_ray.core.resampling.complete import AUTO, Complete
from ckcv_ray.core.selection import BEST_MEAN, check_choose
from ckcv_ray.errors import InputError, Named, boolean, check_choice, expect, integer, quote, suggest
from ckcv_ray.learners.base import ALL, ANY, CHOICE, DEFAULT, LEARNERS, ZOO, Learner
from ckcv_ray.learners.sklearn.spec import check_space, list_packages, trust
from ckcv_ray.learners.steps import RARE, Balance, Categories, Encoding, Gaps
from ckcv_ray.study.parts import EACH, ONE, Auto, Budget, Certification, Holdout, Paper, Race, Search

MAX_SEED, MAX_SEED_OF_SCORES = 2**128 - 1, 2**63 - 1
LONGEST_SHOWN = 80
MAX_PERMUTATIONS = 1_000_000
MAX_TOML_BYTES = 1 << 24
SLOTS: dict[str, dict[str, Any]] = {  # parts of a study: the option that chooses one, and the choices
    "learner": LEARNERS,
    "resampling": folds.CERTIFIABLE,
    "search": {part.name: part for part in (Auto, Race, Budget)},
    "criterion": {part.name: part for part in (MeanBound, Balanced, MeanCost, MeanError, MeanClippedError)},
    "certify": {part.name: part for part in (Holdout, Paper)},
}
READABLE = SLOTS | {"resampling": folds.RESAMPLINGS}  # parts that a file can name, in studies of either kind
FIELD_NAMES = {"certify": "certification"}  # fields of a Study whose names differ from the option's
CLIP = "clip"  # the option of the criterion of numbers
SEVERAL = "learner"  # the slot that may name several parts, as in svm,linear
BACKENDS = ("auto", "ray", "serial")
MIN_TIMEOUT = 0.1


def _read_seed(name: str, value: object, most: int) -> int:
    """Return a seed in 0 .. ``most``; "random" draws 63 bits from the system, which the study records."""
    if value == "random":
        return randbits(63)
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        value = int(value)
    return integer(name, value, 0, most)


SEED = Option(partial(_read_seed, most=MAX_SEED), "Seed of the splits, or random.", default_text="0")


@dataclass(frozen=True)
class BaseStudy(HasOptions):
    """What both kinds of studies have: what is fitted, how rows are divided, and how columns are encoded.

    Attributes:
        kind: its name in files and in messages.
        command: the command that runs it.
        slots: the options that choose its parts.
        learner: what is fitted, with its search space; several learners are compared on the same splits.
        seed: seed of the splits, non-negative; "random" draws one.
        encode: how categories become numbers: "onehot", "ordinal", "target", or "auto" for what suits
            the learner.
        fill: what fills gaps in numbers and dates: "median", "mean" or "most_frequent".
        rare: share of the training rows below which categories are joined.
        balance: how classes are made equal in size among training rows: "none", "up" or "down".
    """

    kind: ClassVar[str]
    command: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]

    learner: Learner = field(default_factory=lambda: LEARNERS[DEFAULT]())
    _: KW_ONLY
    seed: int = option(0, SEED)
    encode: str = option(
        Categories.AUTO,
        partial(check_choice, allowed=Categories),
        "How categories become numbers: onehot, ordinal, target or auto.",
        panel="Columns",
    )
    fill: str = option(
        Gaps.MEDIAN,
        partial(check_choice, allowed=Gaps),
        "What fills gaps: median, mean or most_frequent.",
        panel="Columns",
    )
    rare: float = option(
        RARE, errors.proportion, "Categories below this share are joined.", float, panel="Columns"
    )
    balance: str = option(
        Balance.NONE,
        partial(check_choice, allowed=Balance),
        "How classes are balanced in fits: none, up or down.",
        panel="Columns",
    )

    def __post_init__(self) -> None:
        for slot, part in self.parts.items():  # each is one that a file could name
            known = READABLE[slot]
            for single in part.by_label.values() if isinstance(part, Learner) else [part]:
                name = getattr(single, "name", None)
                if not isinstance(single, tuple(known.values())) or name not in known:
                    raise InputError(f"{slot}={quote(single)} is not one of {', '.join(known)}")
        super().__post_init__()

    @property
    def parts(self) -> dict[str, Named]:
        """The parts that options choose, by these options."""
        return {slot: getattr(self, FIELD_NAMES.get(slot, slot)) for slot in self.slots}

    @property
    def encoding(self) -> Encoding:
        """How columns that are not plain numbers are encoded in each split."""
        return Encoding(Categories(self.encode), Gaps(self.fill), self.rare)

    @property
    def predicts_numbers(self) -> bool:
        """Whether the target has numbers rather than classes, as the learner says."""
        return Kind.REGRESSION in self.learner.kinds

    @property
    def effort(self) -> int | None:
        """Evaluations that the search may cost; None without a budget, and for the default."""
        effort: int | None = getattr(self.parts.get("search"), "effort", None)
        return effort

    def replace(self, /, **asked: object) -> Self:
        """Return this study with some options changed; a new part keeps only those that it shares."""
        return replace(self, **_assemble(type(self), asked, self.parts))

    def with_learner(self, learner: Learner) -> Self:
        """Return this study with another learner."""
        return replace(self, learner=learner)

    def options(self, fixed: bool = False) -> dict[str, object]:
        """Return every option by name, including the choices of its parts.

        An option that several learners have is named after each of them, such as "svm.C"; "LABEL.learner" is
        the learner of a label. ``fixed`` leaves out those that may grow in an existing run folder.
        """
        parts, learners, named = self.parts, self.learner.by_label, list[tuple[str, str, object]]()
        others = [("", part) for slot, part in parts.items() if slot != SEVERAL]
        for label, part in (*learners.items(), *others):
            values = get_values(part, fixed)
            for whole in list_names(part):
                inside = {name: values.pop(name) for name in list_inside(part, whole)}
                values |= {whole: inside} if inside and whole not in values else {}
            named += [(label, name, value) for name, value in values.items() if label or name not in SLOTS]
        times = Counter(name for _, name, _ in named)
        found: dict[str, object] = {**_name_choices(parts)}
        found |= {f"{label}.{SEVERAL}": part.name for label, part in learners.items() if label != part.name}
        found |= {name if times[name] == 1 else f"{label}.{name}": value for label, name, value in named}
        return found | core_options.options_to_json(self, fixed)

    def to_json(self, fixed: bool = False) -> dict[str, object]:
        """Return the study as JSON values, the inverse of ``from_json``.

        ``fixed`` leaves out the options that may grow in an existing run folder: the rest gives the run_id.
        """
        parts = {slot: core_options.value_to_json(part, fixed) for slot, part in self.parts.items()}
        return parts | core_options.options_to_json(self, fixed)

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Self:
        """Make a study from what ``to_json`` returned; given splits come without their sets.

        Raises:
            InputError: a part or an option is unknown, or an option has an invalid value.
        """
        expect(cls.kind, content, Mapping, "a mapping of a study's parts and options, as to_json returns it")
        parts = {FIELD_NAMES.get(slot, slot): _read_part(slot, content.get(slot)) for slot in cls.slots}
        rest: dict[str, Any] = {name: value for name, value in content.items() if name not in cls.slots}
        _check_names(f"a {cls.kind}", rest, options(cls))
        return cls(**rest | parts)

    def differences(self, stored: "BaseStudy") -> list[str]:
        """Return one line for each option that differs from ``stored``, the study of a run folder.

        Options that only one of them has belong to a part that differs, which has its own line; those that
        may grow do not count as differences.
        """
        ours, theirs, lines = self.options(fixed=True), stored.options(fixed=True), list[str]()
        for name in ours:
            if name in theirs and ours[name] != theirs[name]:
                every = "3:n" if name == "k" else None  # every k
                values = (every if value is None else value for value in (ours[name], theirs[name]))
                asked, there = (errors.cut(str(value) or '""', LONGEST_SHOWN) for value in values)
                lines.append(f"{name}: requested {asked}, in the folder {there}")
        return lines


@dataclass(frozen=True)
class Study(BaseStudy):
    """What decides the result: what is fitted, how rows are divided, how to select, and what is certified.

    ``Study.of`` makes one from the options of ``ckcv run``; see ``Procedure`` for those of ``ckcv evaluate``.

    Attributes:
        resampling: how rows are divided.
        search: what is computed.
        certification: what produces claims.
        criterion: what is minimised over the candidates.
        learner, seed, encode, fill, rare, balance: as in ``BaseStudy``.

    Raises:
        InputError: a field has the wrong type or is out of range, or the parts cannot be combined.
    """

    kind: ClassVar[str] = "study"
    command: ClassVar[str] = "run"
    slots: ClassVar[tuple[str, ...]] = tuple(SLOTS)

    resampling: Resampling = field(default_factory=Complete)
    search: Search = field(default_factory=Race)
    certification: Certification = field(default_factory=Paper)
    criterion: Criterion = field(default_factory=MeanBound)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resampling.name not in folds.CERTIFIABLE:
            raise InputError(
                f"certify={self.certify} requires resampling {' or '.join(folds.CERTIFIABLE)}, not "
                f"{self.resampling.name}, which ckcv evaluate has, without a certification"
            )

    @classmethod
    def of(cls, /, **asked: object) -> "Study":
        """Make a study from named options such as C, gamma, k, n_splits, certify; lists may be given as text.

        Search, fold sizes and certification suit the size of the table unless they are named.

        With several learners, ``learner="svm,linear"``, an option is given to each learner that has it;
        ``svm={"C": (1, 10)}`` gives it to that one alone.

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        varied = "resampling" not in asked or asked["resampling"] in folds.CERTIFIABLE
        return cls(**_assemble(cls, ({"k": AUTO} if varied else {}) | asked, {}))

    @classmethod
    def paper(cls, /, **asked: object) -> "Study":
        """Make a study from named options whose defaults are Algorithm 1 as published, on all rows.

        They are an exact race over every k from 3 to n with 20 splits, and the bound from the run's counts.

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        return cls(**_assemble(cls, {"search": Race.name, "certify": Paper.name} | asked, {}))

    @property
    def column(self) -> str | None:
        """The column by which rows are held out; None if they are drawn."""
        where = self.certification.where
        return None if where is None else where.column

    @property
    def certify(self) -> str:
        """Name of the certification."""
        return self.certification.name

    @property
    def delta(self) -> float:
        """Failure probability of each bound."""
        return self.criterion.delta

    @property
    def delta_of_claim(self) -> float:
        """What each claim gets of delta: a rule, quantities that share one, or all subgroups together."""
        asked, quantities = self.certification, self.certification.quantities
        shares = {quantities[name].share or name if name in quantities else name for name in asked.claim}
        return self.delta / (len(shares) + bool(asked.subgroups))


def _read_resampling(name: str, value: Any) -> Resampling:
    drawn = _read_part(name, value) if isinstance(value, Mapping) else value
    drawn = folds.parse_resampling(drawn) if isinstance(drawn, str) else drawn
    expect(name, drawn, Resampling, "text such as kfold:10, or a Resampling")
    assert isinstance(drawn, Resampling)
    if drawn.selects:
        raise InputError(
            f"{name}={drawn.name} requires a certification, which ckcv run has: without one, choose a "
            "resampling such as kfold:10"
        )
    return drawn


def _list_measures(name: str, value: Any) -> tuple[str | OwnScore, ...]:
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",")]
    named = [value] if callable(value) else value
    listed = errors.sequence(name, named, least=1, kind="names such as accuracy, or functions")
    return tuple(each if isinstance(each, str | OwnScore) else OwnScore.of(each) for each in listed)


def _or_nothing(check: Callable[[str, Any], str]) -> Callable[[str, Any], str]:
    return lambda name, value: "" if value is None or str(value) == "" else check(name, value)


@dataclass(frozen=True)
class Procedure(BaseStudy):
    """An ordinary procedure of cross validation: measures on every split of a resampling, and no claims.

    Without a selection every setting is scored on every split. With one, the settings are scored inside each
    training set first (``NestedSplits``), and only what is selected is scored on the split.
    ``Procedure.of`` makes one from the options of ``ckcv evaluate``.

    Attributes:
        resampling: how rows are divided, such as "kfold:10" or ``KFold(10)``.
        measure: names of scores, or functions; without it "zero_one" for classes, and "rmse" for numbers.
        select_by: name of the score that selects settings, where the resampling selects; None for the
            first measure.
        select: "one" setting for all splits, the best on average, or another in "each".
        stratify: whether each part of a split gets the same share of every class.
        time, gap: column and gap of ``ForwardSplits``; None for those of the resampling.
        refit: "best" to score all settings of the learner and fit one on all rows; "" for no model.
        choose: which one: the "best" by the first measure, or the simplest within one standard error of it,
            "one_se", or within "tolerance:2%".
        permutations: how many times the targets are permuted, for a test of every mean score.
        interval: name of an approximate interval, which is not proven (``core.intervals``); "" for none.
        save_predictions: whether to keep predictions for the rows that each split scores, and the splits:
            for the chosen setting, or else for every one; an interval "bbc" keeps them.
        learner, seed, encode, fill, rare, balance: as in ``BaseStudy``.

    Raises:
        InputError: a field has the wrong type or is out of range, or they cannot be combined.
    """

    kind: ClassVar[str] = "procedure"
    command: ClassVar[str] = "evaluate"
    slots: ClassVar[tuple[str, ...]] = (SEVERAL,)
    panel: ClassVar[str] = "Procedure"

    _: KW_ONLY
    resampling: Resampling = option(
        "kfold:10",
        _read_resampling,
        f"How rows are divided: {folds.FORMS}; nested ones select settings inside each training set.",
        default_text="kfold:10",
        panel=None,
    )
    measure: tuple[str | OwnScore, ...] = option(
        None,
        _list_measures,
        f"What is measured on every split, as a,b: {', '.join(SCORE_NAMES)}, or a scorer of scikit-learn.",
        default_text="zero_one, of numbers rmse",
        panel=None,
    )
    select_by: str | None = option(
        None,
        partial(errors.text, what="the name of a measure, such as auc"),
        "Measure by which a nested resampling selects settings.",
        default_text="the first measure",
    )
    select: str = option(
        ONE,
        partial(check_choice, allowed=(ONE, EACH)),
        "What is selected: one setting, the best on average over all splits, or each split's own (each).",
    )
    stratify: bool = option(False, boolean, "Give each part of a split the same share of every class.", bool)
    time: str | None = option(
        None, errors.text, "Column of times that time:5 sorts by.", default_text="the order of the table"
    )
    gap: float | str | None = option(
        None, folds.read_gap, "Time left out before the first scored row: 30d, 12h, or a number."
    )
    permutations: int = option(
        0,
        partial(integer, least=0, most=MAX_PERMUTATIONS),
        "How many times the target is permuted, such as 100, to test every mean score.",
        int,
    )
    interval: str = option(
        "",
        _or_nothing(partial(check_choice, allowed=INTERVALS)),
        "A 95 % interval around every mean score: corrected_t or bbc, which are approximate and not "
        "proven, or clopper_pearson, of a single split; each for some resamplings.",
        default_text="none",
    )
    seed: int = option(0, replace(SEED, check=partial(_read_seed, most=MAX_SEED_OF_SCORES)))
    refit: str = option(
        "",
        _or_nothing(partial(check_choice, allowed=[BEST_MEAN])),
        "best: score every setting, and fit the best on all rows, for ckcv predict.",
        default_text="no model is kept",
    )
    choose: str = option(
        "",
        _or_nothing(lambda name, value: check_choose(value)),
        "With --refit: best by the first measure, or the simplest within one_se or tolerance:2% of it.",
        default_text=BEST_MEAN,
    )
    save_predictions: bool = option(
        False, boolean, "Keep predictions for the rows that each split scores, in predictions.parquet.", bool
    )

    @property
    def column(self) -> str | None:
        """The column that the resampling divides rows by; None without one."""
        return self.resampling.column

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.learner.kinds:
            named = ", ".join(self.learner.by_label)
            raise InputError(f"some of {named} predict numbers, others classes: compare those of one kind")
        if self.measure is None:
            usual = "rmse" if self.predicts_numbers else "zero_one"
            object.__setattr__(self, "measure", (usual,))
        if self.stratify and not self.resampling.stratify:
            object.__setattr__(self, "resampling", folds.add_strata(self.resampling))
        object.__setattr__(self, "stratify", self.resampling.stratify)
        if self.time is None and self.gap is not None:
            raise InputError(f"gap={self.gap} is for times: name their column with time, or say time:5:2")
        if self.time is not None:
            drawn = self.resampling
            if not isinstance(drawn, folds.ForwardSplits) or (drawn.in_order and drawn.gap):
                raise InputError(
                    f"time={quote(self.time)} is for resampling=time:5, with a gap such as gap=30d, not "
                    f"{drawn}: leave one of them out"
                )
            object.__setattr__(self, "resampling", replace(drawn, column=self.time, gap=self.gap or 0))
        names, nested = self.measure_names, self.resampling.inner is not None
        if len(set(names)) < len(names):
            raise InputError(f"measure={','.join(names)} names one twice: leave it out")
        if self.choose and not self.refit:
            raise InputError(f"choose={quote(self.choose)} is for a model of all rows: add refit={BEST_MEAN}")
        of_nested = {"select": self.select if self.select == EACH else "", "select_by": self.select_by}
        of_others = {"refit": self.refit, "permutations": self.permutations}
        does = "scores every setting, such as kfold:10" if nested else "selects, such as nested:5:5"
        for name, value in (of_others if nested else of_nested).items():
            if value:
                raise InputError(f"{name}={value} requires a resampling that {does}")
        object.__setattr__(self, "select_by", self.select_by or (names[0] if nested else None))
        object.__setattr__(self, "choose", self.choose or self.refit)
        if not self.interval:
            return
        interval = INTERVALS[self.interval]
        choosing = interval.choosing
        outer = self.resampling if choosing else getattr(self.resampling, "outer", self.resampling)
        measures = f" and measure {', '.join(interval.scores)}" if interval.scores else ""
        fit = not measures or {name.partition(":")[0] for name in names} <= set(interval.scores)
        if outer.name not in interval.resamplings or not fit:
            raise InputError(
                f"interval={self.interval} is for resampling {', '.join(interval.resamplings)}{measures}, "
                f"not for {outer.name} and {', '.join(names)}: choose among these, or leave the interval out"
            )
        if outer is not self.resampling and self.select != EACH:
            raise InputError(
                f"interval={self.interval} is for settings that are selected by rows of their own split: "
                f"with select={EACH}, or without a selection"
            )
        if choosing and self.choose not in ("", BEST_MEAN):
            raise InputError(
                f"interval={self.interval} is of the setting with the best mean, and choose={self.choose} "
                "may keep another: leave one of them out"
            )
        if choosing:  # it needs what every setting predicts
            object.__setattr__(self, "save_predictions", True)

    @classmethod
    def of(cls, /, **asked: object) -> "Procedure":
        """Make a procedure from named options: its fields, and those of the learner, such as ``C=1``.

        Raises:
            InputError: an option is unknown or out of range, or needs a package that is not installed.
        """
        return cls(**_assemble(cls, asked, {}))

    @property
    def measure_names(self) -> list[str]:
        """Names of the measures."""
        return [measure if isinstance(measure, str) else measure.name for measure in self.measure]

    @property
    def functions(self) -> dict[str, OwnScore]:
        """The measures that are functions of the user, by name."""
        return {measure.name: measure for measure in self.measure if isinstance(measure, OwnScore)}


AnyStudy: TypeAlias = Study | Procedure


def run_id(study: AnyStudy, data_digest: str) -> str:
    """Return the name of a run: 12 hexadecimal digits of the SHA-256 of study and data.

    The options that may grow in an existing run folder are not part of it.
    """
    named = {study.kind: study.to_json(fixed=True), "data": data_digest}
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def list_parts(slot: str) -> dict[str, type[Named]]:
    """Return the parts that the option of a slot can name; several learners are named one by one."""
    return {name: part for name, part in SLOTS[slot].items() if name != CHOICE}


def _read_part(slot: str, content: object) -> object:
    expect(slot, content, Mapping, "a mapping with the name and the options of a part of a study")
    assert isinstance(content, Mapping)
    given = {name: value for name, value in content.items() if name != "name"}
    part = READABLE[slot][check_choice(slot, content.get("name"), READABLE[slot])]
    _check_names(part.name, given, options(part))
    if part.name == CHOICE and "learners" in given:
        listed = errors.sequence("learners", given["learners"], least=0, kind="learners")
        if any(isinstance(learner, Mapping) and learner.get("name") == CHOICE for learner in listed):
            raise InputError(f"learners: a {CHOICE} cannot hold another one")
        given["learners"] = [_read_part(slot, learner) for learner in listed]
    if part is folds.NestedSplits:
        given = {name: _read_part(slot, inside) for name, inside in given.items()}
    return part(**given)


def _check_names(of: str, given: Iterable[object], known: Collection[str]) -> None:
    if unknown := [name for name in given if name not in known]:
        if gone := errors.explain_removed(f"--{unknown[0]}".replace("_", "-")):
            raise InputError(gone)
        raise InputError(
            f"unknown option {quote(unknown[0])} of {of}: the options are {', '.join(sorted(known))}"
            f"{suggest(unknown[0], known)}"
        )


class _Asked(NamedTuple):
    """A part of a study to be made."""

    slot: str  # the option that chooses it
    label: str  # what a learner is called; "" for other parts
    kind: Any  # its class
    parsed: Mapping[str, Any]  # the values that its name says
    earlier: Any  # the part of an earlier study whose values it keeps where it declares them in the same way

    @property
    def names(self) -> dict[str, str]:
        """The names under which its options may be given, with their own; those for it alone come last."""
        plain = {name: name for name in list_names(self.kind)}
        return plain | ({f"{self.label}.{name}": name for name in plain} if self.label else {})

    def make(self, asked: Mapping[str, object]) -> Any:
        """Make it with those of the given options that are its own.

        Some may be written inside the value of another one, as in "budget:keep=0.5".
        """
        given: dict[str, Any] = {name: asked[full] for full, name in self.names.items() if full in asked}
        declared = {name: field.metadata["option"] for name, field in options(self.kind).items()}
        before = {} if self.earlier is None else options(self.earlier)
        shared = [name for name, field in before.items() if field.metadata["option"] is declared.get(name)]
        kept = {**{name: getattr(self.earlier, name) for name in shared}, **self.parsed}
        values = {name: v for name, v in kept.items() if declared[name].inside not in given}
        for whole in given.keys() - declared.keys():
            inside, written = list_inside(self.kind, whole), given.pop(whole)
            if whole in SLOTS:
                text = written.partition(":")[2]
                if len(inside) == 1 or not text:
                    values |= dict.fromkeys(inside, text) if text else {}
                    continue
                written = dict(pair.partition("=")[::2] for pair in text.split(","))
                _check_names(self.kind.name, written, inside)
            for name, listed in (check_space(whole, written) or {}).items():
                if name not in inside:
                    own = f"; {name} is an option of its own" if name in declared else suggest(name, inside)
                    raise InputError(
                        f"{whole} {quote(name)}: {self.kind.name} takes {', '.join(inside)}{own}"
                    )
                single = isinstance(listed, tuple) and not isinstance(inside[name].default, tuple)
                if single and len(listed) > 1:
                    shown = ",".join(map(str, listed))
                    raise InputError(f"{whole} {name}={shown}: {self.kind.name} takes one value")
                values[name] = listed[0] if single else listed
        return self.kind(**values | given)


def _assemble(
    study: type[BaseStudy], given: Mapping[str, object], earlier: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a study; its parts keep options that they share with those of an earlier one."""
    of_clip = {"criterion": MeanClippedError.name} if CLIP in given else {}  # only this criterion has one
    named = (_name_choices(earlier) if earlier else {}) | of_clip | dict(given)
    asked, learners = _choose_learners(named, earlier[SEVERAL].by_label if earlier else {})
    others = list[_Asked]()
    for slot in (slot for slot in study.slots if slot != SEVERAL):
        choices, parsed = SLOTS[slot], dict[str, Any]()
        choice = asked.get(slot, next(iter(choices)))
        if slot == "resampling":  # also one for no certification, which the study refuses
            drawn = folds.parse_resampling(choice)
            kind, parsed = type(drawn), {} if drawn.selects else get_values(drawn)
        else:
            name, _, inside = choice.partition(":") if isinstance(choice, str) else (choice, "", "")
            if inside and not (name in choices and list_inside(choices[name], slot)):
                name = choice
            kind = choices[check_choice(slot, name, choices)]
        others.append(_Asked(slot, "", kind, parsed, earlier.get(slot)))
    _refuse(study, asked, [*learners, *others])
    if len(learners) > 1 and "param" in asked:  # each has those that are parameters of its own
        params, taken, known = asked.pop("param"), dict[str, dict[str, Any]](), dict[str, Iterable[str]]()
        for part in learners:
            if "param" in part.names:
                listed = list_inside(part.kind, "param")
                known[part.label] = listed or part.make(asked | {"param": None}).parameter_names()
        for name, value in (check_space("param", params) or {}).items():
            label, _, param = name.rpartition(".")  # as in forest.max_features, which forest alone is given
            sharing = [one for one in known if not label and param in known[one]]
            owners = [label] if label in known else sharing
            if not owners:
                every = suggest(param, [each for names in known.values() for each in names])
                raise InputError(f"param {quote(name)}: none of {', '.join(known)} has it{every}")
            for owner in owners:
                taken.setdefault(owner, {})[param] = value
        for label, own in taken.items():
            asked[f"{label}.param"] = own | (check_space("param", asked.get(f"{label}.param")) or {})
    made = [part.make(asked) for part in learners]
    fields = {name: asked[name] for name in options(study) if name in asked}
    fields |= {FIELD_NAMES.get(part.slot, part.slot): part.make(asked) for part in others}
    if len(made) > 1:
        most_rows = tuple(ZOO.values()) if asked[SEVERAL] == ALL else None
        labels = tuple(part.label for part in learners)
        return fields | {SEVERAL: LEARNERS[CHOICE](tuple(made), labels, most_rows)}
    return fields | {SEVERAL: made[0]}


def _choose_learners(
    asked: Mapping[str, Any], before: Mapping[str, Learner]
) -> tuple[dict[str, Any], list[_Asked]]:
    """Return the options, those of a single learner under names such as "svm.C", and the learners.

    A name is that of a learner, the label of one in the earlier study, or a new label, whose learner
    "LABEL.learner" names; or it is an estimator of scikit-learn, whose class is its label. It keeps
    the values of the learner of its label in the earlier study, if that was of the same kind.
    """
    learner, given, found = asked.get(SEVERAL, DEFAULT), dict[str, Any](), list[_Asked]()
    named: Any = list(ZOO) if learner == ALL else learner
    if isinstance(named, str) and "," in named:  # such as svm,linear
        named = [name.strip() for name in named.split(",")]
    elif not isinstance(named, list | tuple) or not named:
        named = [named]
    classes = [type(each).__name__ if hasattr(each, "get_params") else each for each in named]
    labels = [
        c.rpartition(":")[2] if isinstance(c, str) and ":" in c and "," not in c else c for c in classes
    ]
    for name, value in asked.items():
        if isinstance(value, Mapping) and name != ANY and (name in labels or name in LEARNERS):
            inner = {f"{name}.{str(option).replace('-', '_')}": v for option, v in value.items()}
            if twice := inner.keys() & asked.keys():
                raise InputError(f"{min(twice)} is given twice: leave one of them out")
            given |= inner
        else:
            given[name] = value
    choices = list_parts(SEVERAL)
    known = choices | {label: type(learner) for label, learner in before.items()}
    for name, label in zip(named, labels, strict=True):
        if isinstance(name, Learner):
            raise InputError(
                f"{SEVERAL}={type(name).__name__}(...) is a learner as an object, which Study({SEVERAL}=...) "
                "takes: give the name of one here"
            )
        is_class = label is not name  # it is an estimator or the path of one
        if is_class and "estimator" in asked:
            raise InputError("estimator is given twice: as the learner, and by estimator")
        if not is_class and len(named) > 1 and (of_label := f"{name}.{SEVERAL}") in given:
            kind = choices[check_choice(of_label, given[of_label], choices)]
        else:
            kind = LEARNERS[ANY] if is_class else known[check_choice(SEVERAL, name, known)]
        parsed = {"estimator": name} if is_class else {}
        # trusted are packages that the user names here, but not those of an estimator in a run's file
        for estimator in (asked.get("estimator"), *parsed.values(), getattr(kind, "spec", None)):
            for package in list_packages(estimator):
                trust(package)
        old = before.get(label)
        if type(old) is not kind:  # but a single one replaces a single one
            old = next(iter(before.values())) if len(named) == len(before) == 1 else None
        found.append(_Asked(SEVERAL, label, kind, parsed, old))
    return given, found


def _name_choices(parts: Mapping[str, Named]) -> dict[str, str]:
    names = {}
    for slot, part in parts.items():
        inside = {name: getattr(part, name) for name in list_inside(part, slot)}
        pairs = inside.values() if len(inside) == 1 else [f"{name}={v}" for name, v in inside.items()]
        names[slot] = ":".join(filter(None, (part.name, ",".join(map(str, pairs)))))
    learner = parts[SEVERAL]
    assert isinstance(learner, Learner)
    of_size = get_values(learner).get("most_rows") is not None
    return names | {SEVERAL: ALL if of_size else ",".join(learner.by_label)}


def _refuse(study: type[BaseStudy], asked: Mapping[str, Any], parts: Sequence[_Asked]) -> None:
    """Raise InputError about the first option that no chosen part has: unknown, or another part's."""
    usable = {*study.slots, *options(study), *(name for part in parts for name in part.names)}
    usable |= {f"{part.label}.{SEVERAL}" for part in parts if part.label}  # which learner a label is of
    name = next((name for name in asked if name not in usable), None)
    if name is None:
        return
    named = [(slot, *each) for slot in study.slots for each in list_parts(slot).items()]
    every = [_Asked(slot, name if slot == SEVERAL else "", part, {}, None) for slot, name, part in named]
    owners = [part for part in every if name in part.names]
    if not owners:
        label, _, option = name.rpartition(".")
        for part in parts:
            if part.label == label != "":
                _check_names(label, [option], list_names(part.kind))
        known = usable.union(*(part.names for part in every))
        _check_names("a study", [name], [name for name in known if "." not in name])
    chosen = [part for part in parts if part.slot == owners[0].slot]
    labels = [part.label or part.kind.name for part in chosen]
    wanted = f"{owners[0].slot} {' or '.join(part.kind.name for part in owners)}"
    why = f"{name}={quote(asked[name])} requires {wanted}, not {','.join(labels)}"
    if able := [label for label, part in zip(labels, chosen, strict=True) if "param" in part.names]:
        why += f"; parameters of {' or '.join(able)} are given by param"
    raise InputError(why)


def read_toml(path: str | Path) -> dict[str, object]:
    """Read options of a study from a TOML file, such as n-splits or n_splits.

    Raises:
        InputError: the file is missing, not TOML, or sets an option twice.
    """
    path = errors.as_path("path", path)
    with errors.convert_errors(InputError, f"cannot read the study file {str(path)!r}"):
        if path.stat().st_size > MAX_TOML_BYTES:
            raise ValueError(f"it has more than {MAX_TOML_BYTES >> 20} MiB")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        repr(given)  # fails for a number with more digits than Python writes, which base 16 allows
        named = {name.replace("-", "_"): value for name, value in given.items()}
        if len(named) < len(given):
            raise ValueError(f"two of {', '.join(given)} are the same option")
    return named


def format_toml(study: Study) -> str:
    """Return every option of a study with a certification that has a value, as a file for ``read_toml``."""
    given = {name: value for name, value in study.options().items() if value not in (None, (), "")}
    given.setdefault("k", "3:n")  # every k, while a file without it has "auto"
    names = {name: name if name.isidentifier() else _to_toml(name) for name in given}  # such as "svm.C"
    return "".join(f"{names[name]} = {_to_toml(value)}\n" for name, value in given.items())


def _to_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_to_toml(name)} = {_to_toml(inside)}' for name, inside in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_to_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else repr(value)


def check_kind(study: BaseStudy, kind: type[AnyStudy]) -> None:
    """Raise InputError unless this is a study of a kind: with a certification, or without."""
    expect("study", study, AnyStudy, "a Study, such as Study.of(k=(3, 5, 10))")
    if not isinstance(study, kind):
        raise InputError(f"a {study.kind} is computed by {study.command}, and a {kind.kind} is expected here")


def _check_address(name: str, value: Any) -> str:
    if not (isinstance(value, str) and value):
        raise InputError(f"{name}={quote(value)}: expected host:port, or auto for the one on this machine")
    return value


def _check_timeout(name: str, value: Any) -> float:
    if isinstance(value, str):
        value = errors.parse_seconds(name, value + "s" * value[-1:].isdigit())
    seconds = errors.number(name, value)
    if not MIN_TIMEOUT <= seconds <= errors.MOST:
        raise InputError(f"{name}={seconds!r}: expected seconds from {MIN_TIMEOUT} to {errors.MOST}")
    return seconds


@dataclass(frozen=True)
class Execution(HasOptions):
    """The way a study is run; nothing here changes a result.

    Attributes:
        backend: "ray", "serial" or "auto" (serial if little work is expected).
        workers: number of parallel processes; None for one per CPU of the machine or cluster.
        address: address of an existing Ray cluster; None for RAY_ADDRESS, else a private Ray on loopback.
        fit_timeout: seconds that one fit may take, or a time such as "10m"; None for no limit. If a fit takes
            longer, its worker is killed, and the fit counts as failed after a few attempts.
    """

    panel: ClassVar[str] = "Execution"

    backend: str = option(
        "auto", partial(check_choice, allowed=BACKENDS), "serial, ray, or auto (by estimated time)."
    )
    workers: int | None = option(
        None, partial(integer, least=1, most=errors.MOST), "Number of worker processes.", int, "every CPU"
    )
    address: str | None = option(
        None, _check_address, "Ray cluster: host:port, or auto.", default_text="RAY_ADDRESS or local"
    )
    fit_timeout: float | None = option(
        None,
        _check_timeout,
        "Seconds that one fit may take, such as 60, or a time such as 10m; a longer one counts as failed.",
        str,
        "no limit",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("address", "workers"):
            value = getattr(self, name)
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} requires the ray backend: leave out --backend serial")

"""Studies, which hold everything that decides a result and nothing else.

A Study and the digest of the data give the ``run_id``. A Study consists of a learner, a resampling, a search
and a certification, which declare what they can be combined with. Their fields are the options of the
command line and of TOML files. A study without a certification is a usual procedure of cross validation: its
measures are computed on every split.

Executions, which hold what may differ from run to run without changing any result.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from pathlib import Path
from secrets import randbits
from typing import Any

from ckcv_ray.core.criteria import Criterion
from ckcv_ray.core.intervals import BBC, check_interval
from ckcv_ray.core.measures import Function, Kind, OwnScore, check_score_name
from ckcv_ray.core.options import (
    Option,
    check_options,
    describe_part,
    get_values,
    option,
    options,
    options_to_json,
)
from ckcv_ray.core.resampling.base import Resampling
from ckcv_ray.core.resampling.complete import AUTO, Complete
from ckcv_ray.core.resampling.parse import CERTIFIABLE, add_strata, parse_resampling
from ckcv_ray.core.selection import BEST_MEAN
from ckcv_ray.errors import InputError, cut
from ckcv_ray.learners.base import DEFAULT, LEARNERS, Learner
from ckcv_ray.learners.steps import RARE, Balance, Categories, Encoding, Gaps
from ckcv_ray.study.options import (
    FIELD_NAMES,
    SEVERAL,
    SLOTS,
    assemble,
    check_known_part,
    check_names,
    fold_values,
    get_learner_values,
    name_choices,
    read_part,
)
from ckcv_ray.study.parts import (
    EACH,
    ONE,
    All,
    Auto,
    Budget,
    Certification,
    Inner,
    Paper,
    Race,
    Search,
    Selecting,
    Uncertified,
)
from ckcv_ray.validation import (
    MOST,
    as_path,
    boolean,
    check_choice,
    expect,
    integer,
    number,
    proportion,
    quote,
    sequence,
)

CERTIFIED, SCORED = "study", "procedure"  # kinds of studies: with a certification, and without
WRONG_KIND = {  # why a study of another kind is refused
    CERTIFIED: "the study has no certification: its scores are computed by evaluate, or assess",
    SCORED: "the study has a certification: it is computed by run, or run_job",
}
MAX_SEED, MAX_SEED_OF_SCORES = 2**128 - 1, 2**63 - 1
MAX_TOML_BYTES = 1 << 24
LONGEST_SHOWN = 200
ENCODING, BALANCE = ("encode", "fill", "rare"), "balance"
PROCEDURE_OPTIONS = ("seed", *ENCODING, "choose", BALANCE, "permutations", "interval", "save_predictions")
SCORE_FIELDS = (  # what the JSON of a study without a certification holds
    *("learner", "resampling", "measures", "functions", "select_by", "select"),
    *PROCEDURE_OPTIONS,
)
MAX_PERMUTATIONS = 1_000_000


def read_seed(name: str, value: Any, most: int) -> int:
    """Return a seed in 0 .. ``most``; "random" draws 63 bits from the system, which the study records."""
    if value == "random":
        return randbits(63)
    whole = isinstance(value, str) and value.removeprefix("-").isdecimal()
    return integer(name, int(value) if whole else value, 0, most)


@dataclass(frozen=True)
class Study:
    """What decides the result: what is fitted, how rows are divided, how one selects, and what is certified.

    ``Study.of`` makes one from the options of ``ckcv run``, and ``Study.without_certification`` from those of
    ``ckcv evaluate``.

    Attributes:
        learner: what is fitted, with its search space; several learners are compared on the same splits.
        resampling: how rows are divided.
        search: what is computed, and by what one selects.
        certification: what produces claims; ``Uncertified`` if nothing does.
        seed: seed of the splits, non-negative; "random" draws one.
        encode: how categories become numbers: "onehot", "ordinal", "target", or "auto" for what suits
            the learner.
        fill: what fills gaps in numbers and dates: "median", "mean" or "most_frequent".
        rare: share of the training rows below which categories are joined.
        balance: how classes are made equal in size among training rows: "none", "up" or "down".
        measures: what is computed on every split, names of scores and functions; none with a certification.
        permutations: how many times the targets are permuted to test the scores; 0 with a certification.
        interval: name of the approximate interval around mean scores; "" for none.
        save_predictions: whether predictions for the rows that each split scores are kept, without a
            certification.

    Raises:
        InputError: a field has the wrong type or is out of range, or the parts cannot be combined.
    """

    learner: Learner = field(default_factory=lambda: LEARNERS[DEFAULT]())
    resampling: Resampling = field(default_factory=Complete)
    search: Search = field(default_factory=Race)
    certification: Certification = field(default_factory=Paper)
    seed: int = option(
        0,
        Option(
            lambda name, value: read_seed(name, value, MAX_SEED),
            "Seed of the splits, or random.",
            default_text="0",
        ),
    )
    encode: str = option(
        Categories.AUTO,
        Option(
            lambda name, value: Categories(check_choice(name, value, Categories)),
            "How categories become numbers: onehot, ordinal, target or auto.",
            default_text="auto",
            panel="Columns",
        ),
    )
    fill: str = option(
        Gaps.MEDIAN,
        Option(
            lambda name, value: Gaps(check_choice(name, value, Gaps)),
            "What fills gaps: median, mean or most_frequent.",
            default_text="median",
            panel="Columns",
        ),
    )
    rare: float = option(
        RARE,
        Option(proportion, "Categories below this share are joined.", float, "0.01", panel="Columns"),
    )

    balance: str = option(
        Balance.NONE,
        Option(
            lambda name, value: Balance(check_choice(name, value, Balance)),
            "How classes are made equal in fits: none, up or down.",
            default_text="none",
            panel="Columns",
        ),
    )

    measures: tuple[str | OwnScore, ...] = ()
    permutations: int = 0
    interval: str = ""
    save_predictions: bool = False

    def __post_init__(self) -> None:
        expect("search", self.search, Search, "a search: Race(), Budget(), Inner('auc') or All()")
        for slot, part in self.parts.items():
            check_known_part(slot, part)
        check_options(self)
        if not self.search.certifies:
            _check_scored(self)
            return
        for name in ("measures", "permutations", "interval", "save_predictions"):
            if getattr(self, name):
                raise InputError(f"a study with a certification has no {name}: leave it out")
        for slot, proven in (("resampling", "resamplings"), ("criterion", "criteria")):
            part, allowed = self.parts[slot], getattr(self.certification, proven)
            if part.name not in allowed:
                usable = isinstance(part, Resampling) and not part.selects
                raise InputError(
                    f"certify={self.certification.name} requires {slot} {' or '.join(sorted(allowed))}, "
                    f"not {part.name}{', which ckcv evaluate has, without a certification' * usable}"
                )

    @property
    def kind(self) -> str:
        """The name of its kind in files: with a certification or without."""
        return CERTIFIED if self.certify else SCORED

    @property
    def parts(self) -> dict[str, Any]:
        """The parts that options choose, by these options: without a certification the learner alone."""
        if not isinstance(self.search, Selecting):
            return {SEVERAL: self.learner}
        return {
            "learner": self.learner,
            "resampling": self.resampling,
            "search": self.search,
            "criterion": self.search.criterion,
            "certify": self.certification,
        }

    @classmethod
    def of(cls, /, **asked: Any) -> "Study":
        """Make a study from named options such as C, gamma, k, n_splits, certify; lists may be given as text.

        Search, fold sizes and certification suit the size of the table unless they are named.

        With several learners, ``learner="svm,linear"``, an option is given to each learner that has it;
        ``svm={"C": (1, 10)}`` gives it to one of them alone.

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        varied = "resampling" not in asked or asked["resampling"] in CERTIFIABLE
        defaults = {"k": AUTO} if varied else {}
        return cls(**_set_criterion(assemble(defaults | asked, {}, list_options())))

    @classmethod
    def paper(cls, /, **asked: Any) -> "Study":
        """Make a study from named options whose defaults are Algorithm 1 as published, on all rows.

        They are an exact race over every k from 3 to n with 20 splits, and the bound from the run's counts.

        Raises:
            InputError: an option is unknown, out of range, or not an option of the parts chosen.
        """
        published = {"search": Race.name, "certify": Paper.name}
        return cls(**_set_criterion(assemble(published | asked, {}, list_options())))

    @classmethod
    def without_certification(
        cls,
        resampling: str | Resampling = "kfold:10",
        measure: str | Function | Sequence[str | Function] | None = None,
        select_by: str | None = None,
        select: str = ONE,
        seed: int | str = 0,
        stratify: bool = False,
        refit: str | None = None,
        choose: str | None = None,
        permutations: int = 0,
        interval: str | None = None,
        save_predictions: bool = False,
        **learner: Any,
    ) -> "Study":
        """Make a usual procedure of cross validation from named options, which has scores and no claims.

        Without a selection every setting is scored on every split. With one, the settings are scored inside
        each training set first (``NestedSplits``), and only what is selected is scored on the split.

        Args:
            resampling: how rows are divided, such as "kfold:10" or ``KFold(10)``.
            measure: names of scores, or functions; without it "zero_one" for classes, and "rmse" for numbers.
            select_by: name of the score that selects settings, where the resampling selects; None for the
                first measure.
            select: "one" setting for all splits, or another in "each".
            seed: of the splits; "random" draws one.
            stratify: whether each part of a split gets the same share of every class.
            refit: "best" to score all settings of the learner and fit one on all rows; None for no model.
            choose: which one: the "best" by the first measure, or the simplest within "one_se" of it, one
                standard error, or within "tolerance:2%".
            permutations: how many times the targets are permuted, for a test of every mean score.
            interval: name of an approximate interval, which is not proven (``core.intervals``).
            save_predictions: whether to keep predictions for the rows that each split scores, and the splits:
                of the setting that is chosen, or else of every one.
            learner: options of the learner, and of how columns are encoded and classes balanced.

        Raises:
            InputError: an option is unknown or out of range, or needs a package that is not installed.
        """
        made = _make_learner(learner, {})
        drawn = parse_resampling(resampling) if isinstance(resampling, str) else resampling
        expect("resampling", drawn, Resampling, "text such as kfold:10, or a Resampling")
        if boolean("stratify", stratify):
            drawn = add_strata(drawn)
        measures = _list_measures(measure, made["learner"])
        _check_names([*measures, select_by], made["learner"].kinds)
        if select_by is None and drawn.inner is not None and measures:
            select_by = _name_measures(measures)[0]
        return cls(
            resampling=drawn,
            search=_make_search(select_by, select, drawn, _check_refit(refit, choose)),
            certification=Uncertified(),
            seed=read_seed("seed", seed, MAX_SEED_OF_SCORES),
            measures=measures,
            permutations=permutations,
            interval="" if interval is None else interval,
            save_predictions=save_predictions,
            **made,
        )

    def replace(self, /, **asked: Any) -> "Study":
        """Return this study with some options changed; a new part keeps only those that it shares.

        Of a study without a certification they are options of the learner, and of how columns are encoded.
        """
        if not isinstance(self.search, Selecting):
            return replace(self, **_make_learner(asked, self.parts))
        return replace(self, **_set_criterion(assemble(asked, self.parts, list_options())))

    def options(self, fixed: bool = False) -> dict[str, Any]:
        """Return every option of a study with a certification by name, including the choices of its parts.

        An option that several learners have is named after each of them, such as "svm.C"; "LABEL.learner" is
        the learner of a label. ``fixed`` leaves out those that may grow in an existing run folder.
        """
        parts = self.parts
        rest = [part for slot, part in parts.items() if slot != SEVERAL]
        of_study = {"seed": self.seed} | get_values(self, fixed)
        of_others = {n: v for part in rest for n, v in fold_values(part, fixed).items() if n not in SLOTS}
        if required := self.certification.required:
            of_others["require"] = str(required)
        return name_choices(parts) | get_learner_values(self.learner.by_label, fixed) | of_others | of_study

    def to_json(self, fixed: bool = False) -> dict[str, Any]:
        """Return the study as JSON values, the inverse of ``from_json``.

        ``fixed`` leaves out the options that may grow in an existing run folder: the rest gives the run_id.
        """
        if isinstance(self.search, Selecting):
            parts = {slot: describe_part(part, fixed) for slot, part in self.parts.items()}
            return parts | options_to_json(self, fixed)
        return {
            "learner": describe_part(self.learner, fixed),
            "resampling": describe_part(self.resampling),
            "measures": self.measure_names,
            "functions": [
                {"name": name, "sha256": function.digest} for name, function in self.functions.items()
            ],
            "select_by": self.select_by,
            "select": EACH if self.selects_each else ONE,
            **{name: getattr(self, name) for name in PROCEDURE_OPTIONS},
        }

    @property
    def encoding(self) -> Encoding:
        """How columns that are not plain numbers are encoded in each split."""
        return Encoding(Categories(self.encode), Gaps(self.fill), self.rare)

    @property
    def balancing(self) -> Balance:
        """How classes are made equal in size among the training rows of each split."""
        return Balance(self.balance)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Study":
        """Make a study from what ``to_json`` returned; splits that were given are without their sets.

        Raises:
            InputError: a part or an option is unknown, or an option has an invalid value.
        """
        expect("study", content, Mapping, "a mapping of a study's parts and options, as to_json returns it")
        if "measures" in content:
            return cls._read_scored(content)
        parts = {FIELD_NAMES.get(slot, slot): read_part(slot, content.get(slot)) for slot in SLOTS}
        rest = {name: value for name, value in content.items() if name not in SLOTS}
        check_names("a study", rest, list_options())
        return cls(**_set_criterion(parts | rest))

    @classmethod
    def _read_scored(cls, content: Mapping[str, Any]) -> "Study":
        check_names("a procedure", content, SCORE_FIELDS)
        given: dict[str, Any] = dict.fromkeys(SCORE_FIELDS) | dict(content)
        measures = sequence("measures", given["measures"], least=1, kind="names of measures")
        resampling = read_part("resampling", given["resampling"])
        described = sequence("functions", given["functions"] or (), least=0)
        functions = {function.name: function for function in map(OwnScore.from_json, described)}
        names = list(map(str, measures))
        if len(functions) < len(described) or not functions.keys() <= set(names):
            raise InputError(f"functions: {', '.join(functions)}: expected each once, and among the measures")
        return cls(
            read_part("learner", given["learner"]),
            resampling,
            _make_search(given["select_by"], given["select"], resampling, given["choose"]),
            certification=Uncertified(),
            measures=tuple(functions.get(name, name) for name in names),
            **{name: given[name] for name in PROCEDURE_OPTIONS if name != "choose"},
        )

    def differences(self, stored: "Study") -> list[str]:
        """Return one line for each option that differs from ``other``, the study of a run folder.

        Options that only one of them has belong to a part that differs, which has a line itself; those that
        may grow are no difference.
        """
        if self.kind == SCORED:
            ours, theirs, show = self.to_json(), stored.to_json(), _short_json
        else:
            ours, theirs, show = self.options(fixed=True), stored.options(fixed=True), _short
        return [
            f"{name}: requested {show(ours[name])}, in the folder {show(theirs[name])}"
            for name in ours
            if name in theirs and ours[name] != theirs[name]
        ]

    @property
    def measure_names(self) -> list[str]:
        """Names of the measures."""
        return _name_measures(self.measures)

    @property
    def functions(self) -> dict[str, OwnScore]:
        """The measures that are functions of the user, by name."""
        return {measure.name: measure for measure in self.measures if isinstance(measure, OwnScore)}

    @property
    def selecting(self) -> Selecting:
        """The search of a study with a certification."""
        assert isinstance(self.search, Selecting)
        return self.search

    @property
    def certify(self) -> str:
        """Name of the certification; "" without one."""
        return self.certification.name

    @property
    def criterion(self) -> Criterion:
        """What is minimised over the candidates."""
        return self.selecting.criterion

    @property
    def delta_of_claim(self) -> float:
        """The delta of each of the claims that share that of the study."""
        return self.delta / self.certification.n_shares

    @property
    def report_k(self) -> tuple[int, ...]:
        """Values of k whose own best candidate is reported."""
        return self.selecting.report_k

    @property
    def effort(self) -> int | None:
        """Evaluations that the search may cost; None without a budget, and for the default."""
        return self.search.effort if isinstance(self.search, Budget | Auto) else None

    @property
    def exhaustive(self) -> bool:
        """Whether every evaluation is computed."""
        return self.selecting.exhaustive

    @property
    def select_by(self) -> str | None:
        """Name of the score that selects inside training sets; None if none does."""
        return self.search.select_by if isinstance(self.search, Inner) else None

    @property
    def selects_each(self) -> bool:
        """Whether a setting is selected inside each training set, and not one for all of them."""
        return isinstance(self.search, Inner) and self.search.each

    @property
    def choose(self) -> str:
        """How the setting is chosen that is fitted on all rows, without a certification; "" if none is."""
        return self.search.choose if isinstance(self.search, All) else ""

    @property
    def predicts_numbers(self) -> bool:
        """Whether the target has numbers, and not classes, which the learner says."""
        return Kind.REGRESSION in self.learner.kinds

    @property
    def delta(self) -> float:
        """Failure probability of each bound."""
        return self.criterion.delta

    def with_learner(self, learner: Learner) -> "Study":
        """Return this study with another learner."""
        return replace(self, learner=learner)


def run_id(study: Study, data_digest: str) -> str:
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
        if path.stat().st_size > MAX_TOML_BYTES:
            raise ValueError(f"it has more than {MAX_TOML_BYTES >> 20} MiB")
        given = _parse_toml(path.read_text(encoding="utf-8"))
        named = {name.replace("-", "_"): value for name, value in given.items()}
        if len(named) < len(given):
            raise ValueError(f"two of {', '.join(given)} are the same option")
        return named
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the study file {str(path)!r}: {error}") from None


def format_toml(study: Study) -> str:
    """Return every option of a study with a certification that has a value, as a file for ``read_toml``."""
    given = {name: value for name, value in study.options().items() if value not in (None, (), "")}
    given.setdefault("k", "3:n")  # every k, while a file without it has "auto"
    names = {name: name if name.isidentifier() else _to_toml(name) for name in given}  # as of "svm.C"
    return "".join(f"{names[name]} = {_to_toml(value)}\n" for name, value in given.items())


def _to_toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_to_toml(name)} = {_to_toml(inside)}' for name, inside in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_to_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else repr(value)


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = len(text.splitlines())
        raise ValueError(str(error).replace("end of document", f"line {last}, the end of the file")) from None


def check_kind(study: Any, kind: str) -> None:
    """Raise InputError unless this is a study of a kind: with a certification, or without."""
    expect("study", study, Study, "a Study, such as Study.of(k=(3, 5, 10))")
    if study.kind != kind:
        raise InputError(WRONG_KIND[kind])


def list_options() -> dict[str, Field[Any]]:
    """Return the options of a study with a certification that are not those of a part, by name."""
    of_study = options(Study)
    return {"seed": of_study["seed"]} | of_study


def _set_criterion(given: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in given.items() if name != "criterion"}
    return rest | {"search": replace(given["search"], criterion=given["criterion"])}


def _make_learner(asked: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return the learner and the encoding that options ask for, as fields of a study.

    Raises:
        InputError: an option is unknown, out of range, or one of a study's other parts.
    """
    parts = [part for slot in SLOTS if slot != SEVERAL for part in SLOTS[slot].values()]
    misplaced = {name for part in parts for name in options(part)}
    misplaced |= {*SLOTS, *list_options()} - {SEVERAL, *ENCODING, BALANCE}
    for name in asked:
        if name in misplaced:
            raise InputError(f"{name} is an option of ckcv run, and not of a procedure: leave it out")
    made = assemble(asked, earlier, list_options())
    return {name: made[name] for name in (SEVERAL, *ENCODING, BALANCE) if name in made}


def _check_refit(refit: str | None, choose: str | None) -> str:
    """Return how the setting is chosen that is fitted on all rows; "" if none is."""
    if refit is None and choose is not None:
        raise InputError(f"choose={quote(choose)} is for the model fitted on all rows: add refit={BEST_MEAN}")
    if refit not in (None, BEST_MEAN):
        raise InputError(f"refit={quote(refit)}: expected {BEST_MEAN}, or leave it out to keep no model")
    return "" if refit is None else choose or BEST_MEAN


def _make_search(select_by: str | None, select: str, resampling: Resampling, choose: str) -> Search:
    """Return the search inside training sets, or the one that scores every setting."""
    if select not in (ONE, EACH):
        raise InputError(f"select={quote(select)}: expected {ONE} or {EACH}")
    if select == EACH and resampling.inner is None:
        raise InputError(f"select={EACH} requires a resampling that selects, such as nested:5:5")
    if choose and (select_by is not None or resampling.inner is not None):
        raise InputError(
            f"refit={BEST_MEAN} chooses among settings by their scores on all splits, and {resampling.name} "
            "selects inside each training set, which evaluates that choice: for a model choose a resampling "
            "such as kfold:10"
        )
    return All(choose) if select_by is None else Inner(select_by, select == EACH)


def _list_measures(
    measure: str | Function | Sequence[str | Function] | None, learner: Learner
) -> tuple[str | OwnScore, ...]:
    if measure is None:
        measure = "rmse" if Kind.REGRESSION in learner.kinds else "zero_one"
    if isinstance(measure, str):
        measure = [name.strip() for name in measure.split(",")]
    if not (callable(measure) or isinstance(measure, Iterable)):
        raise InputError(f"measure={quote(measure)}: expected names such as 'accuracy,auc', or functions")
    listed = [measure] if callable(measure) else list(measure)
    return tuple(name if isinstance(name, str) else OwnScore.of(name) for name in listed)


def _check_scored(study: Study) -> None:
    """Raise InputError unless the parts of a study without a certification can be combined."""
    if study.certify:
        check_known_part("certify", study.certification)
        raise InputError(
            f"certify={study.certify} requires a Race, which selects what is certified, not "
            f"{type(study.search).__name__}"
        )
    expect("resampling", study.resampling, Resampling, "text such as kfold:10, or a Resampling")
    if study.resampling.selects:
        raise InputError(
            f"resampling={study.resampling.name} requires a certification, which ckcv run has: without one, "
            "choose a resampling such as kfold:10"
        )
    integer("seed", study.seed, least=0, most=MAX_SEED_OF_SCORES)
    integer("permutations", study.permutations, least=0, most=MAX_PERMUTATIONS)
    boolean("save_predictions", study.save_predictions)
    if study.permutations and study.resampling.inner is not None:
        raise InputError(
            f"permutations={study.permutations} is for settings that are named, and a nested resampling "
            "selects them: choose a resampling such as kfold:10"
        )
    if not study.learner.kinds:
        named = ", ".join(study.learner.by_label)
        raise InputError(
            f"learners: some of {named} predict numbers and others classes: compare those of one kind"
        )
    if not study.measures:
        raise InputError("measure is empty: name one, such as zero_one, or several: accuracy,auc")
    names = study.measure_names
    if len(set(names)) < len(names):
        raise InputError(f"measure={','.join(names)} names one twice: leave it out")
    nested = study.resampling.inner is not None
    if nested and isinstance(study.search, All):
        raise InputError(
            f"a nested resampling selects settings: say by which score, such as select_by={names[0]}"
        )
    if not nested and isinstance(study.search, Inner):
        raise InputError(
            f"select_by={study.search.select_by} requires a resampling inside the training sets, such as "
            "nested:5:5 or nested_halves:5"
        )
    _check_interval(study)


def _check_interval(study: Study) -> None:
    """Raise InputError unless there is such an interval for the study's splits and measures."""
    if study.interval == "":
        return
    expect("interval", study.interval, str, "text such as corrected_t")
    if isinstance(study.search, Inner) and not study.search.each:
        raise InputError(
            f"interval={study.interval} is for settings that are selected by rows of their own split: with "
            f"select={EACH}, or without a selection"
        )
    outer = getattr(study.resampling, "outer", study.resampling)
    check_interval(study.interval, outer.name, study.measure_names)
    if study.interval != BBC:
        return
    if isinstance(study.search, Inner):
        raise InputError(
            f"interval={BBC} is for settings that are scored on every split, and a nested resampling selects "
            "among them: choose interval=corrected_t, or a resampling such as kfold:10"
        )
    if study.choose not in ("", BEST_MEAN):
        raise InputError(
            f"interval={BBC} is of the setting with the best mean, and choose={study.choose} may keep "
            "another: leave one of them out"
        )
    if not study.save_predictions:
        raise InputError(
            f"interval={BBC} needs what every setting predicts for every held-out row: add "
            "save_predictions=True (--save-predictions)"
        )


def _name_measures(measures: Iterable[str | OwnScore]) -> list[str]:
    return [measure if isinstance(measure, str) else measure.name for measure in measures]


def _check_names(measures: Sequence[str | OwnScore | None], kinds: Iterable[Kind]) -> None:
    functions = {measure.name for measure in measures if isinstance(measure, OwnScore)}
    for name in measures:
        if isinstance(name, str) and name not in functions:
            check_score_name(name, kinds)


def _short(value: object) -> str:
    text = "3:n" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _short_json(value: object) -> str:
    return cut(json.dumps(value), LONGEST_SHOWN)


BACKENDS = ("auto", "ray", "serial")
MIN_TIMEOUT = 0.1


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
                f"address={quote(self.address)}: expected host:port, or auto for the cluster on this machine"
            )
        if self.fit_timeout is not None:
            seconds = number("fit_timeout", self.fit_timeout)
            if not MIN_TIMEOUT <= seconds <= MOST:
                raise InputError(f"fit_timeout={seconds!r}: expected seconds from {MIN_TIMEOUT} to {MOST}")
            object.__setattr__(self, "fit_timeout", seconds)
        for name in ("address", "workers", "fit_timeout"):
            value = getattr(self, name)
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} requires the ray backend: leave out --backend serial")

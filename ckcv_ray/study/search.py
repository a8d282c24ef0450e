"""Searches: which evaluations are computed, and by what settings are selected.

A search is a frozen value, part of a study. ``Race`` and ``Budget`` select for a certification; the others
belong to usual procedures of cross validation, which certify nothing.

References: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013, and
Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016
(successive halving: equal budgets for rounds with ever fewer candidates); Maron, Moore, "Hoeffding races",
NIPS 1993 (racing on common splits).
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from ckcv_ray.core.criteria import Criterion, MeanBound
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.simplest import check_choose
from ckcv_ray.errors import InputError
from ckcv_ray.validation import MOST, boolean, folds, integer, number

ONE, EACH = "one", "each"
RACE_WORK = 2.3e13  # units^3 times candidates, up to which "auto" races: 1,300 units, 143 settings, all k
EFFORT_PER_SETTING, EFFORT_PER_SPLIT = 10, 40  # of the default effort

REPORT_K = Option(
    lambda name, value: folds(name, value, least=0),
    "Values of k whose own best is reported too, such as 5,10.",
)
EXHAUSTIVE = Option(
    boolean,
    "Compute what is provably beaten too.",
    bool,
    panel="Search",
)


def _check_effort(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value, least=1, most=MOST)


EFFORT = Option(
    _check_effort,
    "Evaluations that a budget allows; a larger number continues a run folder.",
    int,
    "10 for each setting, and 40 for each split",
    "Search",
    may_grow=True,
)


def _check_keep(name: str, value: Any) -> float:
    share = number(name, value)
    if not 0.0 < share < 1.0:
        raise InputError(f"{name}={share!r} is outside (0, 1): 0.33 keeps a third in each round")
    return share


@dataclass(frozen=True)
class Race:
    """Minimise a criterion over settings and fold sizes; drop a candidate once it is provably beaten.

    Attributes:
        criterion: what is minimised over the candidates.
        report_k: values of k whose own best candidate and l_ee are reported in addition to the winner's.
        exhaustive: compute every evaluation of both stages instead of dropping what is provably beaten.
    """

    name: ClassVar[str] = "race"
    certifies: ClassVar[bool] = True

    criterion: Criterion = field(default_factory=MeanBound)
    report_k: tuple[int, ...] = option((), REPORT_K)
    exhaustive: bool = option(False, EXHAUSTIVE)

    def __post_init__(self) -> None:
        check_options(self)

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> "Race | Budget":
        """Return the search that this one stands for, given the numbers of what is searched: itself."""
        return self


@dataclass(frozen=True)
class Budget:
    """Minimise a criterion within a number of evaluations, in rounds with ever fewer candidates.

    Early rounds compare all settings at one fold size, on few splits and where necessary on a part of the
    rows; then those that are left are compared at several fold sizes; the last round is a race among the few
    that look best, on all splits. What a round computes depends on the complete results of the rounds before
    alone. The answer is not that of ``Race``: candidates may be left of which it is not known whether they
    are better. They are counted, and what is proven about the winner holds in any case.

    Attributes:
        criterion: what is minimised over the candidates.
        report_k: values of k whose own best candidate is reported as well; they take part in every round.
        effort: evaluations that may be computed; None for the default. It may be raised in a run folder.
        keep: share of the settings that each early round keeps, in (0, 1).
        survivors: number of settings at which the early rounds end.
        least_splits: number of splits below which an early round takes fewer rows instead.
    """

    name: ClassVar[str] = "budget"
    certifies: ClassVar[bool] = True
    exhaustive: ClassVar[bool] = False

    criterion: Criterion = field(default_factory=MeanBound)
    report_k: tuple[int, ...] = option((), REPORT_K)
    effort: int | None = option(None, EFFORT)
    keep: float = option(
        1 / 3,
        Option(_check_keep, "Share of settings that an early round keeps.", float, "1/3", "Search"),
    )
    survivors: int = option(
        4,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST),
            "Settings at which the early rounds of budget end.",
            int,
            "4",
            "Search",
        ),
    )
    least_splits: int = option(
        5,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST),
            "Splits below which rounds fit on fewer rows.",
            int,
            "5",
            "Search",
        ),
    )

    def __post_init__(self) -> None:
        check_options(self)

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> "Budget":
        """Return it with the effort that the default stands for."""
        default = EFFORT_PER_SETTING * settings + EFFORT_PER_SPLIT * n_splits
        return self if self.effort is not None else replace(self, effort=default)


@dataclass(frozen=True)
class Auto:
    """The search that suits the number of units and of candidates: exact where that is cheap.

    Attributes:
        criterion: what is minimised over the candidates.
        report_k: values of k whose own best candidate is reported as well.
        exhaustive: compute every evaluation: then it is a race.
        effort: evaluations that may be computed: then it is a budget; None for what suits.
    """

    name: ClassVar[str] = "auto"
    certifies: ClassVar[bool] = True

    criterion: Criterion = field(default_factory=MeanBound)
    report_k: tuple[int, ...] = option((), REPORT_K)
    exhaustive: bool = option(False, EXHAUSTIVE)
    effort: int | None = option(None, EFFORT)

    def __post_init__(self) -> None:
        check_options(self)
        if self.exhaustive and self.effort is not None:
            raise InputError(
                f"exhaustive computes everything, and effort={self.effort} limits it: leave one of them out"
            )

    def resolve(self, units: int, settings: int, sizes: int, n_splits: int) -> Race | Budget:
        """Return the search that this one stands for.

        Args:
            units: number of rows, or groups, to learn from.
            settings, sizes: numbers of settings and of fold sizes, whose product is that of the candidates.
            n_splits: largest number of splits of a fold size.
        """
        cheap = float(units) ** 3 * settings * sizes <= RACE_WORK
        if self.effort is None and (self.exhaustive or cheap):
            return Race(self.criterion, self.report_k, self.exhaustive)
        budget = Budget(self.criterion, self.report_k, self.effort)
        return budget.resolve(units, settings, sizes, n_splits)


@dataclass(frozen=True)
class Inner:
    """Select inside each training set of a nested resampling, and score what is selected.

    Attributes:
        select_by: name of the score that selects.
        each: whether to select a setting in each split, instead of one for all: the best on average.
    """

    certifies: ClassVar[bool] = False

    select_by: str
    each: bool = False


@dataclass(frozen=True)
class All:
    """Score every setting on every split.

    Attributes:
        choose: how the setting is chosen that is fitted on all rows at the end: "best", "one_se" or
            "tolerance:2%" (``core.simplest``); "" if none is.
    """

    certifies: ClassVar[bool] = False

    choose: str = ""

    def __post_init__(self) -> None:
        if self.choose:
            object.__setattr__(self, "choose", check_choose(self.choose))


Selecting: TypeAlias = Race | Budget | Auto
Search: TypeAlias = Selecting | Inner | All

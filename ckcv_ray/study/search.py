"""Searches: which evaluations are computed, and by what settings are selected.

A search is a frozen value, part of a study. A race selects for a certification; the others belong to usual
procedures of cross validation, which certify nothing.
"""

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from ckcv_ray.core.criteria import Criterion, MeanBound
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.validation import boolean, folds

ONE, EACH = "one", "each"


@dataclass(frozen=True)
class Race:
    """Minimise a criterion over settings and fold sizes; drop a candidate once it is provably beaten.

    Attributes:
        criterion: what is minimised over the candidates.
        report_k: values of k whose own best candidate and l_ee are reported in addition to the winner's.
        exhaustive: compute every evaluation of both stages instead of dropping what is provably beaten.
    """

    certifies: ClassVar[bool] = True

    criterion: Criterion = field(default_factory=MeanBound)
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
        check_options(self)


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
    """Score every setting on every split; nothing is selected."""

    certifies: ClassVar[bool] = False


Search: TypeAlias = Race | Inner | All

"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

Two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
With more classes there is a path for each pair of them (``blocks``).

This module also holds what support vector machines with a Gaussian kernel share: paths with steps of C.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

from ckcv_ray.core.measures import Kind, Output, parse_pairs
from ckcv_ray.core.options import Option, option
from ckcv_ray.errors import MOST, InputError, Label, check_choice, grid, inner_share, integer, quote
from ckcv_ray.learners.base import Codec, Learner, Path, Space, Trainer
from ckcv_ray.learners.steps import BALANCED, CLASS_WEIGHT, EQUALLY, NAME, match_labels
from ckcv_ray.tables.task import Task

COST_GRID = grid("C", tuple(10.0 ** (e / 2) for e in range(-4, 9)))
WIDTHS = grid("gamma", tuple(10.0 ** (e / 2) for e in range(-8, 3)))
COST = Option(
    grid,
    "Values of C: 0.1,1,10, or log:-2:4:13 for 13 values from 10^-2 to 10^4.",
    default_text="log:-2:4:13",
    panel="SVM",
    single_default="1",
)
GAMMA = Option(
    grid,
    "Values of gamma, in the same form.",
    panel="SVM",
    default_text="log:-4:1:11",
    single_default="1 / number of columns",
)
SCALE = Option(
    partial(check_choice, allowed=("standard", "none")),
    "Scaling by training rows: standard or none; module:Class has none unless it is asked for.",
    panel="SVM",
)


@dataclass(frozen=True)
class KernelMachine(Learner):
    """A learner with the kernel ``exp(-gamma |x - z|^2)``, whose loss on training rows is multiplied by C.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    C: tuple[float, ...] = option(COST_GRID, COST)
    gamma: tuple[float, ...] = option(WIDTHS, GAMMA)
    scale: str = option("standard", SCALE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_products()

    @property
    @abstractmethod
    def class_weight(self) -> str | Mapping[Label, float] | None:
        """Factors of C by class."""

    @cached_property
    def space(self) -> Space:
        """A path for each gamma, whose steps are the costs."""

        def make_path(gamma: float) -> Path:
            return Path(len(self.C), lambda step: {"C": self.C[step], "gamma": gamma})

        return Space(map(make_path, self.gamma))

    def canonical(self, task: Task) -> Self:
        """Return the learner with class weights as the task's labels; see ``base.Learner``."""
        self._check_products(task.n_classes)
        changes: dict[str, Any] = {"class_weight": match_labels(str(self.class_weight), task.classes)}
        return replace(self, **changes)

    def usual(self, task: Task) -> Self:
        """Return the learner at C = 1 and gamma = 1 / d for d columns, unless other values were given."""
        C = (1.0,) if self.C == COST_GRID else self.C
        gamma = (1.0 / task.X.shape[1],) if self.gamma == WIDTHS else self.gamma
        return replace(self, C=C, gamma=gamma)

    def _check_products(self, n_classes: int = 2) -> None:
        """Raise InputError unless the product of every C and every weight is positive and finite."""
        given = str(self.class_weight)
        if given == EQUALLY:
            return
        weights = [1 / n_classes, float(MOST)] if given == BALANCED else [w for _, w in parse_pairs(given)]
        for C, weight in ((self.C[0], min(weights)), (self.C[-1], max(weights))):
            if not (math.isfinite(C * weight) and C * weight > 0):
                raise InputError(
                    f"{NAME}={quote(given)} with C={C!r}: the product of C and a weight must be "
                    "positive and finite: choose less extreme values"
                )


@dataclass(frozen=True)
class GaussianSVM(KernelMachine):
    """The C-SVM with offset and kernel ``exp(-gamma |x - z|^2)``; with several classes, one for each pair.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".
        solver: name of the solver.
        tolerance: largest KKT violation of a converged fit.
        max_iter: iterations after which a fit is stopped; such fits are counted and reported.
        class_weight: factors of C by class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of them of class c, one of K), or by label as a mapping or as text such as "sick=10,well=1",
            where a class that is not named weighs 1; "equal" or None for equal weights.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "svm"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})
    outputs: ClassVar[frozenset[Output]] = frozenset({Output.RANK})

    solver: str = option(
        "newton",
        partial(check_choice, allowed=("newton",)),
        "Solver of the SVM: newton is the only one.",
        inside="param",
    )
    tolerance: float = option(
        1e-3, inner_share, "Largest KKT violation of a converged fit.", float, inside="param"
    )
    max_iter: int = option(
        10_000_000,
        partial(integer, least=1, most=MOST),
        "Iterations after which a fit is stopped.",
        int,
        inside="param",
    )

    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    @cached_property
    def trainer(self) -> Trainer:
        """The trainer, which fits and checks; this imports the compiled solver."""
        from ckcv_ray.learners.svm.trainer import SVMTrainer

        return SVMTrainer(self)

    @cached_property
    def codec(self) -> Codec[Any]:
        """The codec, which stores support vectors by their row numbers; this imports what predicts."""
        from ckcv_ray.learners.svm.trainer import SVMCodec

        return SVMCodec()

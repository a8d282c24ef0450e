"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

Two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
With more classes there is a path for each pair of them (``one_against_one``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ckcv_ray.core.by_label import parse_numbers_by_label
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, check_options, option
from ckcv_ray.core.scores import Output
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Learner, Path, Space
from ckcv_ray.learners.class_weight import BALANCED, CLASS_WEIGHT, EQUALLY, NAME, match_labels
from ckcv_ray.learners.svm.problem import Options
from ckcv_ray.tables.target import Label
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, check_choice, grid, integer, number, quote

if TYPE_CHECKING:
    from ckcv_ray.learners.svm.codec import SVMCodec
    from ckcv_ray.learners.svm.trainer import SVMTrainer

SOLVER_NAMES = ("newton",)  # names in ``solvers``
SCALES = ("standard", "none")


def _tolerance(name: str, value: Any) -> float:
    tolerance = number(name, value)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"{name}={tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
    return tolerance


def check_products(class_weight: str, C: tuple[float, ...], n_classes: int = 2) -> None:
    """Raise InputError unless the product of every C and every weight is positive and finite."""
    if class_weight == EQUALLY:
        return
    balanced = class_weight == BALANCED
    given = [1 / n_classes, float(MOST)] if balanced else list(parse_numbers_by_label(class_weight).values())
    for product, end in ((C[0] * min(given), C[0]), (C[-1] * max(given), C[-1])):
        if not (math.isfinite(product) and product > 0):
            raise InputError(
                f"{NAME}={quote(class_weight)} with C={end!r}: the product of C and a weight must be "
                "positive and finite: choose less extreme values"
            )


@dataclass(frozen=True)
class GaussianSVM(Learner):
    """The C-SVM with offset and the kernel ``exp(-gamma |x - z|^2)``; of several classes, one for each pair.

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
    convergence_advice: ClassVar[str] = "raise max_iter or narrow the grid"

    C: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-4, 9)),
        Option(
            grid,
            "Values of C to try: a list such as 0.1,1,10, or log:-2:4:13 for 13 values from 10^-2 to 10^4.",
            default_text="log:-2:4:13",
            single_default="1",
        ),
    )
    gamma: tuple[float, ...] = option(
        tuple(10.0 ** (e / 2) for e in range(-8, 3)),
        Option(
            grid,
            "Values of gamma to try, in the same form as C.",
            default_text="log:-4:1:11",
            single_default="1 / number of columns",
        ),
    )
    scale: str = option(
        "standard",
        Option(
            lambda name, value: check_choice(name, value, SCALES),
            "Scaling of the features: standard (fitted on each split's training rows alone) or none.",
            default_text="standard",
        ),
    )
    solver: str = option(
        "newton",
        Option(
            lambda name, value: check_choice(name, value, SOLVER_NAMES),
            "Solver of the SVM: newton is the only one.",
            default_text="newton",
            hidden=True,
        ),
    )
    tolerance: float = option(
        1e-3, Option(_tolerance, "Largest KKT violation of a converged fit.", float, "0.001")
    )
    max_iter: int = option(
        10_000_000,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST),
            "Iterations after which a fit is stopped and counted as not converged.",
            int,
            "10000000",
        ),
    )

    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    def __post_init__(self) -> None:
        check_options(self)
        check_products(self._class_weight, self.C)

    @property
    def _class_weight(self) -> str:
        """The canonical form of ``class_weight``."""
        assert isinstance(self.class_weight, str)
        return self.class_weight

    @cached_property
    def space(self) -> Space:
        """A path for each gamma, whose steps are the costs."""

        def make_path(gamma: float) -> Path:
            return Path(len(self.C), lambda step: {"C": self.C[step], "gamma": gamma})

        return Space(map(make_path, self.gamma))

    @cached_property
    def trainer(self) -> "SVMTrainer":
        """What fits and checks; the compiled solver is imported with it."""
        from ckcv_ray.learners.svm.trainer import SVMTrainer

        options = Options(self.C, self.solver, self.tolerance, self.max_iter)
        return SVMTrainer(self.gamma, options, self.scale, self._class_weight)

    @cached_property
    def codec(self) -> "SVMCodec":
        """What stores support vectors by their row numbers; what predicts is imported with it."""
        from ckcv_ray.learners.svm.codec import SVMCodec

        return SVMCodec()

    def canonical(self, task: Task) -> Self:
        """Return the learner with class weights as the task's labels; see ``base.Learner``."""
        check_products(self._class_weight, self.C, task.n_classes)
        return replace(self, class_weight=match_labels(self._class_weight, task.classes))

    def usual(self, task: Task) -> Self:
        """Return the learner at C = 1 and gamma = 1 / d for d columns, unless other values were given."""
        default = GaussianSVM()
        C = (1.0,) if self.C == default.C else self.C
        gamma = (1.0 / task.X.shape[1],) if self.gamma == default.gamma else self.gamma
        return replace(self, C=C, gamma=gamma)

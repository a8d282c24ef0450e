"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

Two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
With more classes there is a path for each pair of them (``one_against_one``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, option
from ckcv_ray.core.scores import Output
from ckcv_ray.errors import InputError
from ckcv_ray.learners.class_weight import CLASS_WEIGHT, EQUALLY
from ckcv_ray.learners.kernel_machine import KernelMachine
from ckcv_ray.learners.svm.problem import Options
from ckcv_ray.tables.target import Label
from ckcv_ray.validation import MOST, check_choice, integer, number

if TYPE_CHECKING:
    from ckcv_ray.learners.svm.codec import SVMCodec
    from ckcv_ray.learners.svm.trainer import SVMTrainer

SOLVER_NAMES = ("newton",)  # names in ``solvers``


def _tolerance(name: str, value: Any) -> float:
    tolerance = number(name, value)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"{name}={tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
    return tolerance


@dataclass(frozen=True)
class GaussianSVM(KernelMachine):
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
    stores_repeats: ClassVar[bool] = False  # a dual variable is that of a row of the table

    solver: str = option(
        "newton",
        Option(
            lambda name, value: check_choice(name, value, SOLVER_NAMES),
            "Solver of the SVM: newton is the only one.",
            default_text="newton",
            panel="SVM",
            hidden=True,
        ),
    )
    tolerance: float = option(
        1e-3, Option(_tolerance, "Largest KKT violation of a converged fit.", float, "0.001", "SVM")
    )
    max_iter: int = option(
        10_000_000,
        Option(
            lambda name, value: integer(name, value, least=1, most=MOST),
            "Iterations after which a fit is stopped.",
            int,
            "10000000",
            "SVM",
        ),
    )

    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    @cached_property
    def trainer(self) -> "SVMTrainer":
        """What fits and checks; the compiled solver is imported with it."""
        from ckcv_ray.learners.svm.trainer import SVMTrainer

        options = Options(self.C, self.solver, self.tolerance, self.max_iter)
        return SVMTrainer(self.gamma, options, self.scale, self.class_weight_text)

    @cached_property
    def codec(self) -> "SVMCodec":
        """What stores support vectors by their row numbers; what predicts is imported with it."""
        from ckcv_ray.learners.svm.codec import SVMCodec

        return SVMCodec()

"""The Gaussian support vector machine as a learner: a path for each gamma, whose steps are the costs C.

Two classes, 0 and 1, are -1 and +1 internally. All C of one gamma share the kernel, and each starts from
the previous solution; all gammas of a split share its distances; without scaling all splits share one matrix.
With more classes there is a path for each pair of them (``one_against_one``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.measures import Kind
from ckcv_ray.core.options import Option, check_options, option, thin
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Block, Checked, Setting
from ckcv_ray.learners.class_weight import CLASS_WEIGHT, EQUALLY, of_task
from ckcv_ray.learners.svm.class_weight import check_products, weights
from ckcv_ray.learners.svm.problem import Options, Weights
from ckcv_ray.tables.target import Label
from ckcv_ray.tables.task import Task
from ckcv_ray.validation import MOST, check_choice, grid, integer, number

if TYPE_CHECKING:
    from ckcv_ray.learners.svm.model import SVMModel
    from ckcv_ray.learners.svm.pairwise import PairwiseSVM
    from ckcv_ray.learners.svm.trainer import Shared, Trainer

SOLVER_NAMES = ("newton",)  # names in ``solvers``
SCALES = ("standard", "none")


def _tolerance(name: str, value: Any) -> float:
    tolerance = number(name, value)
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"{name}={tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
    return tolerance


@dataclass(frozen=True)
class GaussianSVM:
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
    ranks: ClassVar[bool] = True
    probabilities: ClassVar[bool] = False
    convergence_advice: ClassVar[str] = "raise max_iter or narrow the grid"
    gaps: ClassVar[bool] = False

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

    @property
    def lengths(self) -> Sequence[int]:
        """The number of costs, for each gamma."""
        return [len(self.C)] * len(self.gamma)

    def setting(self, path: int, step: int) -> Setting:
        """Return C and gamma at a position."""
        return {"C": self.C[step], "gamma": self.gamma[path]}

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return C and gamma of all positions, path by path."""
        return {"C": np.tile(self.C, len(self.gamma)), "gamma": np.repeat(self.gamma, len(self.C))}

    def canonical(self, task: Task) -> Self:
        """Return the learner with class weights as the task's labels; see ``base.Learner``."""
        check_products(self._class_weight, self.C, task.n_classes)
        return replace(self, class_weight=of_task(self._class_weight, task.classes))

    def on_part(self, task: Task) -> Self:
        """Return the learner itself: its canonical form depends on the labels alone."""
        return self

    def thinned(self, most: int) -> Self:
        """Return the learner with at most ``most`` values in each grid, evenly spaced."""
        return thin(self, most)

    def usual(self, task: Task) -> "GaussianSVM":
        """Return the learner at C = 1 and gamma = 1 / d for d columns, unless other values were given."""
        default = GaussianSVM()
        C = (1.0,) if self.C == default.C else self.C
        gamma = (1.0 / task.X.shape[1],) if self.gamma == default.gamma else self.gamma
        return replace(self, C=C, gamma=gamma)

    def on_encoded(self) -> "GaussianSVM":
        """Return the learner itself."""
        return self

    @cached_property
    def _trainer(self) -> "Trainer":
        """What fits and checks; the compiled solver is imported with it."""
        from ckcv_ray.learners.svm.trainer import Trainer

        options = Options(self.C, self.solver, self.tolerance, self.max_iter)
        return Trainer(self.gamma, options, self.scale, self._class_weight)

    def share(self, task: Task) -> "Shared":
        """Compute what all workers share."""
        return self._trainer.share(task)

    def prepare(self, shared: "Shared", train: Index, score: Index) -> Block:
        """Prepare the distances of a split."""
        return self._trainer.prepare(shared, train, score)

    def weights(self, classes: tuple[Label, ...], y: NDArray[Any]) -> Weights:
        """Return the class weights for training rows with classes y, -1 or +1, given the original labels."""
        return weights(self._class_weight, classes, y)

    def cost(self, n_train: int) -> float:
        """Return the squared number of training rows."""
        return float(n_train) ** 2

    def memory(self, n_train: int, n_score: int, d: int) -> int:
        """Return the bytes of a split's block, solver included."""
        return self._trainer.memory(n_train, n_score, d)

    def check(self, model: "SVMModel | PairwiseSVM", task: Task, train: Index, converged: bool) -> Checked:
        """Check the scaling, the dual variables and the KKT conditions of a model."""
        return self._trainer.check(model, task, train, converged)

    def setting_of(self, model: "SVMModel | PairwiseSVM") -> Setting:
        """Return C and gamma of a model."""
        return {"C": model.C, "gamma": model.gamma}

    def columns(self, task: Task) -> pa.Schema:
        """Return the columns of the table of its models: for more than two classes, lists for each pair."""
        return _tables(task).SCHEMA

    def table(self, models: Sequence[Any], task: Task) -> pa.Table:
        """Return a table with a row of ``columns`` for each model."""
        return _tables(task).to_table(models)

    def from_table(self, table: pa.Table, task: Task) -> list[Any]:
        """Return the models stored in a table; see ``base.Learner``."""
        return list(_tables(task).from_table(table, task))

    def most_values(self, task: Task) -> int:
        """Return the number of values of a model whose support vectors are all rows."""
        return int(_tables(task).most_values(task))

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two models are equal in every bit."""
        from ckcv_ray.learners.svm import model, pairwise

        if isinstance(a, pairwise.PairwiseSVM) or isinstance(b, pairwise.PairwiseSVM):
            return type(a) is type(b) and pairwise.same(a, b)
        return model.same(a, b)

    def load(self) -> None:
        """Load the compiled solver, compiling it first if necessary."""
        self._trainer.load()

    def state(self) -> dict[str, str]:
        """Return a digest of what determines the machine code of the solver."""
        return self._trainer.state()


def _tables(task: Task) -> Any:
    """Return the module with the table of the models of a task."""
    from ckcv_ray.learners.svm import model, pairwise

    return model if task.n_classes == 2 else pairwise

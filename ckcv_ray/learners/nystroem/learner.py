"""The Gaussian support vector machine on Nyström features as a learner, for up to a million rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ckcv_ray.core.measures import Kind, Output
from ckcv_ray.core.options import Option, option
from ckcv_ray.errors import InputError
from ckcv_ray.learners.steps import CLASS_WEIGHT, EQUALLY
from ckcv_ray.learners.svm.learner import KernelMachine
from ckcv_ray.tables.target import Label
from ckcv_ray.validation import integer

if TYPE_CHECKING:
    from ckcv_ray.learners.nystroem.trainer import NystroemCodec, NystroemTrainer

MAX_LANDMARKS = 10_000  # their kernel matrix takes 800 MB


@dataclass(frozen=True)
class NystroemSVM(KernelMachine):
    """A linear SVM on Nyström features of the Gaussian kernel, with offset and squared hinge loss.

    The kernel is approximated: by its values at ``landmarks`` rows, drawn at random from the training rows of
    each split. The linear problem is solved exactly, to the tenth digit of what it minimises. Time grows with
    rows, and not with their square. Of more than two classes, each is separated from all others.

    Attributes:
        C: costs, positive; sorted, made unique, rounded to 12 significant digits.
        gamma: kernel widths, like ``C``.
        scale: "standard" (fitted only on the training rows of each split) or "none".
        landmarks: number of landmarks: more are closer to the kernel, time grows with their square.
        class_weight: factors of C by class: "balanced" (n / (K n_c), from the n training rows of each split,
            n_c of them of class c, one of K), or by label as a mapping or as text such as "sick=10,well=1",
            where a class that is not named weighs 1; "equal" or None for equal weights.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    name: ClassVar[str] = "svm_nystroem"
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.BINARY, Kind.MULTICLASS})
    outputs: ClassVar[frozenset[Output]] = frozenset({Output.RANK})
    weighs_rows: ClassVar[bool] = True
    convergence_advice: ClassVar[str] = "leave out the largest values of C"

    landmarks: int = option(
        500,
        Option(
            lambda name, value: integer(name, value, least=1, most=MAX_LANDMARKS),
            "Rows by which svm_nystroem approximates.",
            int,
            "500",
            "SVM",
        ),
    )
    class_weight: str | Mapping[Label, float] | None = option(EQUALLY, CLASS_WEIGHT)

    @cached_property
    def trainer(self) -> "NystroemTrainer":
        """What fits and checks."""
        from ckcv_ray.learners.nystroem.trainer import NystroemTrainer

        return NystroemTrainer(self.gamma, self.C, self.landmarks, self.scale, self.class_weight_text)

    @cached_property
    def codec(self) -> "NystroemCodec":
        """What stores landmarks by their row numbers."""
        from ckcv_ray.learners.nystroem.trainer import NystroemCodec

        return NystroemCodec(self.landmarks)

    def check_rows(self, n_train: int) -> None:
        """Check that there are as many training rows as landmarks; see ``base.Learner``."""
        if self.landmarks > n_train:
            by_default = " (the default)" if self.landmarks == type(self).landmarks else ""
            raise InputError(
                f"landmarks={self.landmarks}{by_default}: they are drawn from the training rows of a split, "
                f"which may be only {n_train}: give at most {n_train}, or choose learner svm, which is exact"
            )

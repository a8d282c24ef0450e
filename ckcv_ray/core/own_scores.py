"""Scores that a user's function gives: known by its name and the digest of its source."""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.scores import LABEL, VALUE, Answers, Score
from ckcv_ray.errors import InputError

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class OwnScore:
    """A function of the true labels and the predicted ones, each (rows,), that returns a number: a loss.

    Attributes:
        name: that of the function.
        digest: SHA-256 of its source.
        function: the function itself; None where a folder is read, which does not keep it.
    """

    name: str
    digest: str
    function: Function | None = field(default=None, compare=False)

    @classmethod
    def of(cls, function: Any) -> "OwnScore":
        """Take a function.

        Raises:
            InputError: it is none, or has no name or no source to know it by.
        """
        name = getattr(function, "__name__", "")
        if not callable(function) or not name.isidentifier():
            raise InputError(
                f"measure={function!r} is neither the name of a measure nor a function with a name: write "
                "def my_loss(y, predicted): ..."
            )
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            raise InputError(
                f"measure={name}: its source cannot be found, by which its scores are known: define it in a "
                "file or a notebook"
            ) from None
        return cls(name, hashlib.sha256(source.encode()).hexdigest(), function)

    def score(self, kind: Kind, labelled: Callable[[Any], Any]) -> Score:
        """Return the score of the function on a task; ``labelled`` gives the original labels of classes."""

        def of_classes(y: Any, answers: Answers) -> float:
            assert answers.label is not None
            return self._number(labelled(y), labelled(np.maximum(answers.label, 0)))

        def of_numbers(y: Any, answers: Answers) -> float:
            return self._number(y, answers.value)

        numbers = kind is Kind.REGRESSION
        of = of_numbers if numbers else of_classes
        return Score(self.name, frozenset({kind}), VALUE if numbers else LABEL, False, of)

    def _number(self, y: Any, predicted: Any) -> float:
        if self.function is None:
            raise InputError(
                f"the function {self.name} is not kept in the folder: pass it again as a measure"
            )
        result = self.function(y, predicted)
        if not isinstance(result, Real | np.number) or isinstance(result, bool):
            raise ValueError(f"measure {self.name} returned {str(result)[:60]!r}: expected a number")
        return float(result)

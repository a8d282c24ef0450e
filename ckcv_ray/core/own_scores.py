"""Scores that a user's function gives: known by its name and the digest of its source."""

import hashlib
import inspect
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from ckcv_ray.core.measures import Kind
from ckcv_ray.core.scores import LABEL, PROBABILITY, VALUE, Outputs, Score, list_score_names
from ckcv_ray.errors import InputError
from ckcv_ray.validation import expect, quote

Function = Callable[..., Any]
PARAMETER = "probability"
DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class OwnScore:
    """A function of the true labels and the predicted ones, each (rows,), that returns a number: a loss.

    If it has a parameter ``probability``, that is the probability of each class, (rows, n_classes), in the
    order of the sorted labels of the table, 0 for a class without training rows.

    Attributes:
        name: that of the function.
        digest: SHA-256 of its source, and of the values that it keeps: defaults, and what it encloses.
        function: the function itself; None where a folder is read, which does not keep it.
    """

    name: str
    digest: str
    function: Function | None = field(default=None, compare=False)

    @classmethod
    def of(cls, function: Any) -> "OwnScore":
        """Take a function.

        Raises:
            InputError: it is none, has no name or no source to know it by, or has the name of another score.
        """
        name = getattr(function, "__name__", "")
        if not callable(function) or not name.isidentifier():
            raise InputError(
                f"measure={function!r} is neither the name of a measure nor a function with a name: write "
                "def my_loss(y, predicted): ..."
            )
        if str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
            raise _refuse_name(name)
        _check_name(name)
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            raise InputError(
                f"measure={name}: its source cannot be found, by which its scores are known: define it in a "
                "file or a notebook"
            ) from None
        try:
            kept = _digest_closure(function)
        except Exception as error:  # pickling raises errors of all kinds
            raise InputError(f"measure={name}: a value that it keeps cannot be pickled: {error}") from None
        return cls(name, hashlib.sha256(source.encode() + kept).hexdigest(), function)

    @classmethod
    def from_json(cls, described: Any) -> "OwnScore":
        """Take what a folder holds of a function: its name and its digest.

        Raises:
            InputError: the name is that of another score, or one that no function of a user can have.
        """
        expect("function", described, Mapping, "a mapping with name and sha256")
        name, digest = described.get("name"), described.get("sha256")
        if set(described) != {"name", "sha256"} or not (isinstance(name, str) and name.isidentifier()):
            raise InputError(f"function={quote(described)}: expected its name and its sha256")
        if not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
            raise InputError(f"function {name}: sha256={quote(digest)} is no SHA-256 in hexadecimal digits")
        _check_name(name)
        return cls(name, digest)

    @property
    def takes_probability(self) -> bool:
        """Whether the function has a parameter ``probability``; no where a folder is read."""
        return self.function is not None and PARAMETER in inspect.signature(self.function).parameters

    def score(self, kind: Kind, labelled: Callable[[Any], Any]) -> Score:
        """Return the score of the function on a task; ``labelled`` gives the original labels of classes.

        Raises:
            InputError: it takes probabilities, and numbers are predicted.
        """
        takes_probability = self.takes_probability
        if takes_probability and kind is Kind.REGRESSION:
            raise InputError(
                f"measure={self.name} has a parameter {PARAMETER}, of classes, and the learner predicts "
                "numbers: leave the parameter out"
            )

        def of_classes(y: Any, outputs: Outputs) -> float:
            assert outputs.label is not None
            given = {PARAMETER: np.array(outputs.probability)} if takes_probability else {}
            return self._number(labelled(y), labelled(np.maximum(outputs.label, 0)), **given)

        def of_numbers(y: Any, outputs: Outputs) -> float:
            return self._number(y, outputs.value)

        if kind is Kind.REGRESSION:
            return Score(self.name, frozenset({kind}), VALUE, False, of_numbers)
        return Score(
            self.name, frozenset({kind}), PROBABILITY if takes_probability else LABEL, False, of_classes
        )

    def _number(self, y: Any, predicted: Any, **given: Any) -> float:
        if self.function is None:
            raise InputError(
                f"the function {self.name} is not kept in the folder: pass it again as a measure"
            )
        result = self.function(y, predicted, **given)
        if not isinstance(result, Real | np.number) or isinstance(result, bool):
            raise ValueError(f"measure {self.name} returned {str(result)[:60]!r}: expected a number")
        return float(result)


def _check_name(name: str) -> None:
    """Raise InputError if a score has this name: figures under it would not be those of the function."""
    if name in list_score_names():
        raise _refuse_name(name)


def _refuse_name(name: str) -> InputError:
    return InputError(
        f"measure={name}: a function of yours is a loss, of which the smallest value is best, and needs a "
        "name of its own; name a measure of scikit-learn by text, such as 'f1_macro'"
    )


def _digest_closure(function: Any) -> bytes:
    """Return the values that a function keeps besides its source; functions among them by their source."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    defaults = getattr(function, "__defaults__", None) or ()
    named = sorted((getattr(function, "__kwdefaults__", None) or {}).items())
    values = [*cells, *defaults, *(value for _, value in named)]
    return b"".join(map(_content, values))


def _content(value: Any) -> bytes:
    if inspect.isfunction(value):
        return inspect.getsource(value).encode() + _digest_closure(value)
    return value.__name__.encode() if inspect.ismodule(value) else pickle.dumps(value, protocol=5)

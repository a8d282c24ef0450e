"""The time that a verification may take: a folder that somebody else made may ask for any fits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from ckcv_ray.errors import LackingError, pluralize
from ckcv_ray.tables.task import Task

SECONDS = 3600.0


@dataclass(frozen=True)
class Limit:
    """How long a verification may take.

    Attributes:
        seconds: the limit; it is looked at between fits.
        say: called with a sentence about the cost before anything is fitted; None if nobody listens.
        began: when the verification began, on the clock of ``monotonic``.
    """

    seconds: float = inf
    say: Callable[[str], object] | None = None
    began: float = field(default_factory=monotonic)

    def announce(self, fits: int, task: Task, execution: Mapping[str, Any]) -> None:
        """Say what is fitted again at most, and compare what it took in the run with the limit.

        Args:
            fits: the largest number of fits.
            task: the learning rows.
            execution: what the folder says of ``fits`` and of their ``worker_seconds``.

        Raises:
            LackingError: it is expected to take longer than allowed.
        """
        expected = fits * execution["worker_seconds"] / max(1, execution["fits"])
        rows, columns = task.X.shape
        cost = (
            f"at most {pluralize(fits, 'fit')} on up to {rows:,} rows and {pluralize(columns, 'column')}, "
            f"about {expected:,.1f} s by what the run took"
        )
        if self.say is not None:
            self.say(f"to verify: {cost}; limit {self.seconds:,.0f} s (--limit)")
        if expected > self.seconds:
            raise LackingError(f"it needs {cost}: more than the limit of {self.seconds:,.0f} s (--limit)")

    def check(self) -> None:
        """Raise LackingError if the time is over."""
        if monotonic() - self.began > self.seconds:
            raise LackingError(
                f"it was stopped after {self.seconds:,.0f} s, its limit: allow more with --limit"
            )

"""What a verification finds, how much of a run it computes again, and what errors say of the run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.progress import Listener
from ckcv_ray.errors import CKCVError, LackingError, counted, cut
from ckcv_ray.tables.task import Task

SECONDS = 3600.0  # that a verification may take: a folder that somebody else made may ask for any fits


@dataclass
class Verification:
    """What a verification found.

    Attributes:
        differences: everything that is not as it should be, one sentence each; empty if the run is verified.
        recomputed: what was computed again, from the data or from the log.
        trusted: what was taken on trust.
        unverified: what has to be computed and could not be here, one sentence each with its reason. A run
            with any is not verified, whatever else agrees.
        unchecked: number of evaluations whose results, which figures follow from, were taken on trust.
        assumed: what else figures rest on that was taken on trust, a phrase each.
        notes: what no figure rests on and is not as it was, or was not compared, a phrase each.
    """

    differences: list[str] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    unchecked: int = 0
    assumed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and nothing that has to be computed was left out."""
        return not self.differences and not self.unverified

    @property
    def verdict(self) -> str:
        """What the verification says of the figures, as a clause, if nothing differs."""
        evaluations = counted(self.unchecked, "evaluation")
        counts = [f"the results of {evaluations} (--refit)"] if self.unchecked else []
        on_trust = ", ".join([*counts, *self.assumed])
        says = f"nothing contradicts the files; taken on trust: {on_trust}"
        return "; ".join([says if on_trust else "every figure follows from the data", *self.notes])

    def add_inner(self, inner: "list[Verification]") -> None:
        """Add the verifications of the runs inside this one, one for each outer split."""
        self.differences += [
            f"outer split {i}: {sentence}" for i, found in enumerate(inner) for sentence in found.differences
        ]
        self.unchecked += sum(found.unchecked for found in inner)
        for name in ("recomputed", "trusted", "unverified", "assumed", "notes"):
            getattr(self, name).extend(_name_splits([getattr(found, name) for found in inner]))


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
            f"at most {counted(fits, 'fit')} on up to {rows:,} rows and {counted(columns, 'column')}, about "
            f"{expected:,.1f} s by what the run took"
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


@dataclass(frozen=True)
class Refit:
    """How much of what a run rests on is computed again, and by which backend.

    Attributes:
        share: share of the evaluations, in [0, 1]; below 1 a random sample of them.
        backend: creates a backend for each run; None if nothing is computed.
        listen, stop: as for ``run_job``.
        limit: how long it may take.
        inner: whether the run is inside another one, whose cost was said.
    """

    share: float = 0.0
    backend: Callable[[], Backend] | None = None
    listen: Listener | None = None
    stop: Stop = lambda: False
    limit: Limit = field(default_factory=Limit)
    inner: bool = False

    def is_stopped(self) -> bool:
        """Return whether to stop, as ``stop`` does.

        Raises:
            LackingError: the time is over.
        """
        self.limit.check()
        return self.stop()


@contextmanager
def note_errors(result: Verification, *passed: type[CKCVError]) -> Iterator[None]:
    """Note what is raised as a difference, or as what could not be verified; ``passed`` is raised."""
    try:
        yield
    except passed:
        raise
    except LackingError as error:
        result.unverified.append(str(error))
    except CKCVError as error:
        result.differences.append(str(error))
    except Exception as error:  # a stranger's models and learners may raise anything
        result.unverified.append(cut(f"the verification ended with {type(error).__name__}: {error}"))


def _name_splits(by_split: list[list[str]]) -> list[str]:
    """Return the sentences about several outer splits, each once, with the splits that it applies to."""
    splits: dict[str, list[int]] = {}
    for i, sentences in enumerate(by_split):
        for sentence in sentences:
            splits.setdefault(sentence, []).append(i)
    return [
        f"outer split{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}: {sentence}"
        for sentence, numbers in splits.items()
    ]

"""What a verification finds, how much of a run it computes again, and what errors say of the run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.progress import Listener
from ckcv_ray.errors import CKCVError, LackingError, cut, pluralize
from ckcv_ray.runs.limit import Limit


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
        evaluations = pluralize(self.unchecked, "evaluation")
        counts = [f"the results of {evaluations} (--refit)"] if self.unchecked else []
        on_trust = ", ".join([*counts, *self.assumed])
        says = f"nothing contradicts the files; taken on trust: {on_trust}"
        return "; ".join([says if on_trust else "every figure follows from the data", *self.notes])

    def add_inner(self, inner: "list[Verification]") -> None:
        """Add the verifications of the runs inside this one, one for each outer split."""
        self.differences += [
            f"outer split {i}: {sentence}" for i, one in enumerate(inner) for sentence in one.differences
        ]
        self.recomputed += _of_splits([one.recomputed for one in inner])
        self.trusted += _of_splits([one.trusted for one in inner])
        self.unverified += _of_splits([one.unverified for one in inner])
        self.unchecked += sum(one.unchecked for one in inner)
        self.assumed += _of_splits([one.assumed for one in inner])
        self.notes += _of_splits([one.notes for one in inner])


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


def _of_splits(by_split: list[list[str]]) -> list[str]:
    """Return the sentences about several outer splits, each once, with the splits that it applies to."""
    splits_of: dict[str, list[int]] = {}
    for i, sentences in enumerate(by_split):
        for sentence in sentences:
            splits_of.setdefault(sentence, []).append(i)
    return [
        f"outer split{'s' * (len(splits) > 1)} {', '.join(map(str, splits))}: {sentence}"
        for sentence, splits in splits_of.items()
    ]

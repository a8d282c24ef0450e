"""Shards: parts of a run that separate processes compute, such as the tasks of a batch system's array.

    shards.json             what each shard computes, as ranges of the study's work (``engine.shards``)
    log/shard-00007/        the log of shard 7, and its lock while a process computes it

The plan is written once. It holds whole numbers alone, and every machine counts the same work in the same
order, so that no two shards differ about where one ends.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

from ckcv_ray.errors import StoreError
from ckcv_ray.storage import formats
from ckcv_ray.storage.files import Files
from ckcv_ray.storage.locks import LOCK, unwritable
from ckcv_ray.storage.log import name_shard
from ckcv_ray.validation import STRICT, check_count

SHARDS = "shards.json"
MOST_SHARDS = 10_000

Piece = tuple[int, int, int]  # problem (0: the run itself), first, stop


@dataclass(frozen=True)
class ShardPlan:
    """Which work each shard of a run computes.

    Attributes:
        run_id: of the run that is divided.
        shards: for each shard the ranges of work that it computes, at least one.
    """

    __pydantic_config__: ClassVar[Any] = {**STRICT, "extra": "forbid"}

    run_id: str
    shards: tuple[tuple[Piece, ...], ...]

    @property
    def count(self) -> int:
        """Number of shards."""
        return len(self.shards)

    def list_stops(self) -> list[int]:
        """Return where the work of each problem ends: that of the run itself first."""
        stops: dict[int, int] = {}
        for problem, _, stop in self._pieces():
            stops[problem] = stop
        return list(stops.values())

    def check(self) -> None:
        """Raise ValueError unless the shards divide all the work: no piece twice, and none left out."""
        check_count(SHARDS, len(self.shards), MOST_SHARDS)
        if not self.shards or not all(self.shards):
            raise ValueError("a shard without work")
        for (before, _, end), (problem, first, stop) in pairwise([(-1, 0, 0), *self._pieces()]):
            begins = (before, end) if problem == before else (before + 1, 0)
            if (problem, first) != begins or stop <= first:
                raise ValueError(f"the work from {first} to {stop} does not follow that of the shard before")

    def _pieces(self) -> Iterator[Piece]:
        return (piece for pieces in self.shards for piece in pieces)


def write_plan(files: Files, plan: ShardPlan) -> None:
    """Write the plan of a run's shards."""
    formats.write_json(files, SHARDS, asdict(plan))


def read_plan(files: Files, run_id: str) -> ShardPlan | None:
    """Return the plan of a run's shards; None if it is not divided.

    Raises:
        StoreError: it is damaged, or that of another run.
    """
    plan = formats.read_checked(files, SHARDS, ShardPlan)
    if plan is not None and plan.run_id != run_id:
        raise StoreError(
            f"{files.path(SHARDS)} divides run {plan.run_id}, and the folder holds run {run_id}: a folder "
            "has the shards of one study, so submit each study to a folder of its own"
        )
    return plan


class ShardFolder:
    """The folder of one shard, which has one writer at a time: its log, and its lock.

    Args:
        run: files of the run folder that it is in.
        number: of the shard, from 1.
    """

    def __init__(self, run: Files, number: int) -> None:
        self.run, self.number = run, number
        self.name = name_shard(number)
        self.files = run.inside(self.name)

    @property
    def busy(self) -> bool:
        """Whether a living process computes the shard, as far as is known."""
        return self.files.exists(LOCK) and self.files.lock.busy

    def acquire(self) -> None:
        """Create the folder and lock it, until ``release`` or the end of this process.

        Raises:
            StoreError: another process computes the shard.
            InputError: the folder cannot be written.
        """
        try:
            self.run.make_folders(self.name)
            self._lock()
            for name in self.files.list("."):  # left by a killed process
                if name.endswith(".tmp"):
                    self.files.delete(name)
        except OSError as error:
            self.files.lock.release()
            raise unwritable(str(self.files), error) from None

    def _lock(self) -> None:
        try:
            self.files.lock.acquire()
        except StoreError:
            if not self.files.lock.busy:
                raise
            raise StoreError(
                f"shard {self.number} of {str(self.run)!r} is computed by another process: wait for it, or "
                "stop it"
            ) from None

    def release(self) -> None:
        """Unlock the folder and remove the lock file."""
        self.files.lock.release()

    def remove_left_lock(self) -> None:
        """Remove what a killed process has left, unless a living one computes the shard."""
        if self.files.exists(LOCK) and not self.files.lock.busy:
            self.acquire()
            self.release()

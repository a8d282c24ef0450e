"""What depends on the run and not on the study: ``execution.json``."""

from typing import Any

from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from ckcv_ray.validation import read_as


class Environment(TypedDict):
    """What may change bits: processor, operating system, versions, BLAS, the learner's own."""

    processor: str
    system: str
    python: str
    packages: dict[str, str]
    blas: dict[str, str]
    variables: dict[str, str]
    learner: dict[str, str]


class Evaluations(TypedDict):
    """Evaluations of the selection, and of those how many were computed, dropped as beaten, and failed."""

    planned: int
    computed: int
    dropped: int
    failed: int


class Metadata(TypedDict):
    """What a run has cost so far, in all its sessions, and what failed: (path, k, split, traceback)."""

    seconds: float
    fits: int
    worker_seconds: float
    solver_seconds: float
    worker_bytes: int
    environment: Environment
    damaged: list[str]
    failures: list[tuple[int, int, int, str]]
    evaluations: Evaluations
    not_converged: int


class Rates(TypedDict):
    """Error rates on test rows: of a random member, and of the majority."""

    error: float
    vote_error: float


class Tested(Rates):
    """Those of F*, on which rows, and those of the best candidate of each reported k."""

    rows: int
    digest: str
    reported: dict[str, Rates]


class FinalMetadata(Metadata):
    """That of a finished run."""

    package: str
    backend: str
    workers: int
    source: str
    test: Tested | None


def read_metadata(values: dict[str, Any], finished: bool) -> Metadata:
    """The metadata of a run that is finished, or is not, from JSON values.

    Raises:
        ValueError: an entry is missing, of another type, or against the others.
    """
    metadata = read_as(FinalMetadata if finished else Metadata, values)
    planned, *parts = (metadata["evaluations"][name] for name in ("planned", "computed", "dropped", "failed"))
    if planned < 1 or min(parts) < 0 or sum(parts) > planned:
        raise ValueError("evaluations: computed, dropped and failed are more than planned, or below 0")
    return metadata

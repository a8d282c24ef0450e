"""Executions, which hold what may differ from run to run without changing any result."""

from dataclasses import dataclass

from ckcv_ray.errors import InputError
from ckcv_ray.validation import MOST, check_choice, integer, number, quote

BACKENDS = ("auto", "ray", "serial")
LEAST_TIMEOUT = 0.1


@dataclass(frozen=True)
class Execution:
    """The way a study is run; nothing here changes a result.

    Attributes:
        backend: "ray", "serial" or "auto" (serial if little work is expected).
        workers: number of parallel processes; None for one per CPU of the machine or cluster.
        address: address of an existing Ray cluster; None for RAY_ADDRESS, else a private Ray on loopback.
        fit_timeout: seconds that one fit may take; None for any. The worker of a longer one is killed, and
            the fit counts as failed after a few attempts. It requires the ray backend; "auto" chooses it.
    """

    backend: str = "auto"
    workers: int | None = None
    address: str | None = None
    fit_timeout: float | None = None

    def __post_init__(self) -> None:
        check_choice("backend", self.backend, BACKENDS)
        if self.workers is not None:
            object.__setattr__(self, "workers", integer("workers", self.workers, least=1, most=MOST))
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            raise InputError(
                f"address={quote(self.address)}: expected host:port, or auto for the cluster on this machine"
            )
        if self.fit_timeout is not None:
            seconds = number("fit_timeout", self.fit_timeout)
            if not LEAST_TIMEOUT <= seconds <= MOST:
                raise InputError(f"fit_timeout={seconds!r}: expected seconds from {LEAST_TIMEOUT} to {MOST}")
            object.__setattr__(self, "fit_timeout", seconds)
        for name, value in (
            ("address", self.address),
            ("workers", self.workers),
            ("fit_timeout", self.fit_timeout),
        ):
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} requires the ray backend: leave out --backend serial")

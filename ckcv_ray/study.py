"""The frozen values that travel: what is asked for (Study), how it is run (Execution), and the names of
the pieces of work (Triple, Cell, Path, Size, Task).

A Study holds everything that decides the answer and nothing else; with the digest of the data it makes
the ``run_id``. An Execution holds what may differ from run to run without changing any result.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from ckcv_ray.core.bounds import BOUNDS, MOST_CHECKED, check_delta, reported_bound
from ckcv_ray.core.resampling import Split, complete_kfold, count_splits, randomisers, rotation
from ckcv_ray.errors import InputError
from ckcv_ray.learners.svm import SOLVERS
from ckcv_ray.validation import as_path, expect, number, told, whole

CHOICES = {
    "bound": BOUNDS,
    "scaling": ("standard", "none"),
    "solver": tuple(SOLVERS),
    "precision": ("float64",),
    "resampling": ("complete", "rotation"),
    "protocol": ("paper", "holdout", "nested"),
}
BACKENDS = ("auto", "ray", "serial")
MOST = 2**31 - 1
MOST_SPLITS = 1_000_000
LEAST_DELTA = 1e-12  # occam gives a triple as little as 1e-22 of it
MOST_SEED = 2**128 - 1
MOST_DIGITS = 18
MOST_VALUES = {"C": 10_000, "gamma": 10_000, "k": 100_000, "report_k": 100_000, "claims": 100_000}
MOST_TOML_BYTES = 1 << 24
OPTIONS = {"scale": "scaling", "certify": "protocol", "claim": "claims"}  # where they differ from the fields
N_SPLITS = 20
HOLDOUT_SHARE = 0.33
OUTER_SPLITS = 5
OUTER_K = 3
CLAIMS = ("random", "vote")


class Triple(NamedTuple):
    """What is selected."""

    C: float
    gamma: float
    k: int


class Cell(NamedTuple):
    """One evaluation, the smallest record's key."""

    C: float
    gamma: float
    k: int
    mc_index: int


class Path(NamedTuple):
    """The cells of one gamma and split, solved in ascending C."""

    gamma: float
    k: int
    mc_index: int


class Size(NamedTuple):
    """The values of k with one fold size floor(n / k): one procedure, computed under the smallest k."""

    k: int
    k_values: tuple[int, ...]
    n_select: int
    n_train: int
    n_splits: int


class Stage(StrEnum):
    """What a task is for.

    SELECT: fit on TR, count errors on MS. ESTIMATE: fit on TR + MS, count errors on EE. REFIT: as
    ESTIMATE for the largest C of each path alone, and hand back the model.
    """

    SELECT = "select"
    ESTIMATE = "estimate"
    REFIT = "refit"


class Task(NamedTuple):
    """One split and the paths wanted on it: how many of the ascending C, for each position of gamma."""

    stage: Stage
    k: int
    mc_index: int
    paths: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Study:
    """The question: grids, resampling, bound and solver. Hashed into the ``run_id``.

    Attributes:
        C: costs, positive; kept sorted, unique, rounded to 12 significant digits.
        gamma: kernel widths, as ``C``.
        k: numbers of folds, each in 3 .. n; None for every one of them.
        n_splits: Monte Carlo splits for each k (l_MC in the paper); all of them where there are fewer.
        delta: failure probability of each bound, inside (0, 1).
        bound: what l_ee is the mean of; the criterion is always Clopper-Pearson.
        seed: of the splits, non-negative.
        scaling: "standard" (fitted on the training rows of each split alone) or "none".
        solver: name of the machine's solver.
        tolerance: largest KKT violation of a converged fit.
        precision: floating point type of the kernel.
        max_iter: iterations after which a fit is capped, counted and shown.
        protocol: "paper": all rows serve Algorithm 1; "holdout": a share of them is never touched before
            the end, and certifies what it made; "nested": beside F* a second ensemble, whose members were
            each selected inside the training rows of an outer split, and are certified on the rest.
        holdout_share: that share, inside (0, 1); by default 0.33.
        claims: what the held-out rows certify, delta shared equally: "random" (the member of F* that
            ``predict`` draws for a row, by a hash of its values keyed with the seed; the default), "vote"
            (the majority), "member:7" (the member of split 7).
        outer_splits: outer splits of the protocol nested, each a third of the rows; by default 5.
        report_k: values of k whose own best triple and l_ee are reported beside the winner.
        resampling: "complete" as the paper's Algorithm 1, or "rotation": the k splits of one shuffle, in
            which folds take turns to select and to estimate; n_splits is not used then.
        exhaustive: compute every cell of both stages instead of dropping what is provably beaten.

    Raises:
        InputError: a field of the wrong type or outside its range.
    """

    C: tuple[float, ...] = tuple(10.0 ** (e / 2) for e in range(-4, 9))
    gamma: tuple[float, ...] = tuple(10.0 ** (e / 2) for e in range(-8, 3))
    k: tuple[int, ...] | None = None
    n_splits: int = N_SPLITS
    delta: float = 0.05
    bound: str = "clopper_pearson"
    seed: int = 0
    scaling: str = "standard"
    solver: str = "newton"
    tolerance: float = 1e-3
    precision: str = "float64"
    max_iter: int = 10_000_000
    protocol: str = "paper"
    holdout_share: float | None = None
    claims: tuple[str, ...] = ()
    outer_splits: int | None = None
    report_k: tuple[int, ...] = ()
    exhaustive: bool = False
    resampling: str = "complete"

    def __post_init__(self) -> None:
        checked = {
            "C": _grid("C", self.C),
            "gamma": _grid("gamma", self.gamma),
            "k": None if self.k is None else _folds("k", self.k, least=1),
            "report_k": _folds("report_k", self.report_k, least=0),
            "n_splits": whole("n_splits", self.n_splits, least=1, most=MOST_SPLITS),
            "seed": whole("seed", self.seed, least=0, most=MOST_SEED),
            "max_iter": whole("max_iter", self.max_iter, least=1, most=MOST),
            "delta": number("delta", self.delta),
            "tolerance": number("tolerance", self.tolerance),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        check_delta(self.delta)
        if self.delta < LEAST_DELTA:
            raise InputError(f"delta={self.delta!r} is below {LEAST_DELTA:g}, the least that is shared out")
        if not 0.0 < self.tolerance < 1.0:
            raise InputError(f"tolerance={self.tolerance!r} is outside (0, 1): LIBSVM's default is 0.001")
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        if not isinstance(self.exhaustive, bool):
            raise InputError(f"exhaustive={told(self.exhaustive)} is not true or false")
        if self.resampling == "rotation" and self.n_splits != N_SPLITS:
            raise InputError(f"n_splits={self.n_splits} does not go with the rotation, which has k splits")
        self._check_holdout()
        self._check_nested()

    def _check_nested(self) -> None:
        if self.protocol != "nested":
            if self.outer_splits is not None:
                raise InputError(
                    f"outer_splits={told(self.outer_splits)} goes with nested alone: --certify nested"
                )
            return
        if self.resampling != "complete":
            raise InputError(f"the protocol nested goes with complete splits, not {self.resampling!r}")
        outer = OUTER_SPLITS if self.outer_splits is None else self.outer_splits
        object.__setattr__(self, "outer_splits", whole("outer_splits", outer, least=1, most=MOST_SPLITS))

    def _check_holdout(self) -> None:
        listed = _sequence("claims", self.claims, least=0)
        claims = tuple(dict.fromkeys(str(c) if isinstance(c, str) else told(c) for c in listed))
        object.__setattr__(self, "claims", claims)
        if self.protocol != "holdout":
            for name in ("holdout_share", "claims"):
                if getattr(self, name) is not None and getattr(self, name) != ():
                    raise InputError(
                        f"{name}={told(getattr(self, name))} goes with holdout alone: --certify holdout"
                    )
            return
        share = HOLDOUT_SHARE if self.holdout_share is None else number("holdout_share", self.holdout_share)
        if not 0.0 < share < 1.0:
            raise InputError(f"holdout_share={share!r} is outside (0, 1): 0.33 holds out a third of the rows")
        object.__setattr__(self, "holdout_share", share)
        object.__setattr__(self, "claims", claims or CLAIMS[:1])
        for claim in claims:
            if claim not in CLAIMS and member_of(claim) < 0:
                raise InputError(
                    f"claims={claim!r} is not known: choose from {', '.join(CLAIMS)}, or member:0 for the "
                    "member of split 0"
                )

    def for_rows(self, n: int) -> "Study":
        """The same study in its one canonical form for n rows, with every k checked against them.

        Raises:
            InputError: a field does not go with n rows.
        """
        self._check_folds(n)
        if self.bound == "safe" and n // min(self.k or (3,)) > MOST_CHECKED:
            raise InputError(
                f"bound='safe' is checked for at most {MOST_CHECKED} rows in an estimate set, and k = "
                f"{min(self.k or (3,))} takes {n // min(self.k or (3,))}: use catoni"
            )
        fewest = min(size.n_splits for size in self.sizes(n)) if self.claims else 0
        for claim in self.claims:
            if member_of(claim) >= fewest:
                raise InputError(f"claims={claim!r} is outside member:0 to member:{fewest - 1}")
        if self.outer_splits is not None:
            self._check_inner(n)
        if self.k is None:
            return self
        for k in self.report_k:
            if k not in self.k:
                listed = ",".join(map(str, self.k))
                raise InputError(f"report_k={k} is not among k={listed}: add it to k to have it computed")
        return replace(self, k=None) if self.k == tuple(range(3, n + 1)) else self

    def _check_inner(self, n: int) -> None:
        try:
            self.inner().for_rows(inner_rows(n))
        except InputError as error:
            raise InputError(f"selecting inside {inner_rows(n)} of the {n} rows (nested): {error}") from None

    def _check_folds(self, n: int) -> None:
        beside = " beside those held out" if self.protocol == "holdout" else ""
        for name, values in (("k", self.k or ()), ("report_k", self.report_k)):
            if strange := [k for k in values if not 3 <= k <= n]:
                raise InputError(f"{name}={strange[0]} is outside 3..{n} (the table has {n} rows{beside})")

    def sizes(self, n: int) -> tuple[Size, ...]:
        """The distinct fold sizes of the study on n rows, the largest (smallest k) first.

        Raises:
            InputError: k is outside 3..n.
        """
        self._check_folds(n)
        every = self.k or range(3, n + 1)
        if self.resampling == "rotation":
            return tuple(Size(k, (k,), n // k, n - 2 * (n // k), k) for k in every)
        groups: dict[int, list[int]] = {}
        for k in every:
            groups.setdefault(n // k, []).append(k)
        return tuple(
            Size(ks[0], tuple(ks), m, n - 2 * m, count_splits(n, ks[0], self.n_splits))
            for m, ks in groups.items()
        )

    def cells(self, n: int) -> int:
        """Cells of the selection on n rows, those of inner selections aside."""
        return sum(size.n_splits for size in self.sizes(n)) * len(self.gamma) * len(self.C)

    def inner(self) -> "Study":
        """What is asked anew inside each outer split of the protocol nested."""
        return replace(self, protocol="paper", outer_splits=None, report_k=())

    def outer(self) -> "Study":
        """The study of the outer splits: three folds, the estimate sets of which certify."""
        assert self.outer_splits is not None
        return replace(self.inner(), k=(OUTER_K,), n_splits=self.outer_splits)

    def split(self, n: int, k: int, mc_index: int) -> Split:
        """Split number ``mc_index`` of k folds of n rows."""
        if self.resampling == "rotation":
            return rotation(n, k, mc_index, self.seed)
        return complete_kfold(n, k, mc_index, self.n_splits, self.seed)

    def mean_bound(self, errors: Sequence[int], m: int) -> float:
        """L_EE: the bound asked for over the errors on each split's estimate set of m rows."""
        draws = randomisers(m, len(errors), self.seed) if self.bound == "stevens" else ()
        return reported_bound(self.bound, errors, m, self.delta, draws)

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values; ``from_json`` reads them back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Study":
        """A study from field names and JSON or TOML values; grids may be strings such as log:-2:4:13.

        Raises:
            InputError: an unknown field, or a value a field refuses.
        """
        expect("values", values, Mapping, "a mapping from the fields of a study to their values")
        known = {field.name for field in fields(cls)}
        if unknown := [name for name in values if name not in known]:
            allowed = ", ".join(sorted(known))
            raise InputError(f"unknown field {told(unknown[0])} of a study: the fields are {allowed}")
        return cls(**{name: _listed(name, value) for name, value in values.items()})

    def differences(self, other: "Study") -> list[str]:
        """One line for each field in which this study differs from the ``other``, a folder's."""
        return [
            f"{f.name}: asked {_short(getattr(self, f.name))}, in the folder {_short(getattr(other, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(other, f.name)
        ]


@dataclass(frozen=True)
class Execution:
    """How to run: nothing here changes a result.

    Attributes:
        backend: "ray", "serial" or "auto" (serial where little work is expected).
        workers: processes at once; None for every CPU of the machine or cluster.
        address: of an existing Ray cluster; None for RAY_ADDRESS, else a Ray of our own on loopback.
    """

    backend: str = "auto"
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        check_choice("backend", self.backend, BACKENDS)
        if self.workers is not None:
            object.__setattr__(self, "workers", whole("workers", self.workers, least=1, most=MOST))
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            raise InputError(
                f"address={told(self.address)}: expected host:port, or auto for the cluster on this machine"
            )
        for name, value in (("address", self.address), ("workers", self.workers)):
            if self.backend == "serial" and value not in (None, 1):
                raise InputError(f"{name}={value!r} goes with the ray backend: leave --backend serial out")


def inner_rows(n: int) -> int:
    """Rows of an inner run of the protocol nested, on n rows: all but an outer split's estimate set."""
    return n - n // OUTER_K


def run_id(study: Study, data_digest: str) -> str:
    """Name of a run: 12 hexadecimal digits of the SHA-256 of study and data."""
    text = json.dumps({"study": study.to_json(), "data": data_digest}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def member_of(claim: str) -> int:
    """The split whose member ``claim`` speaks of; -1 where it speaks of none."""
    kind, _, digits = claim.partition(":")
    known = kind == "member" and digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
    return int(digits) if known else -1


def read_toml(path: str | FilePath) -> dict[str, Any]:
    """Fields of a study from a TOML file; or options of ckcv run, such as n-splits and certify.

    Raises:
        InputError: the file is missing, too large, not TOML, or says something twice.
    """
    path = as_path("path", path)
    try:
        if path.stat().st_size > MOST_TOML_BYTES:
            raise ValueError(f"it has more than {MOST_TOML_BYTES >> 20} MiB")
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        fields = {OPTIONS.get(name, name.replace("-", "_")): value for name, value in given.items()}
        if len(fields) < len(given):
            raise ValueError(f"two of {', '.join(given)} mean the same")
        return fields
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read the study file {str(path)!r}: {error}") from None


def parse_grid(text: str, name: str) -> tuple[float, ...]:
    """Numbers from ``0.1,1,10``, or ``log:a:b:count`` for powers of ten evenly spaced in the exponent.

    Raises:
        InputError: the text is neither.
    """
    form = f"{name}={text!r}: expected numbers like 0.1,1,10 or log:-2:4:13 (13 values from 10^-2 to 10^4)"
    try:
        _check_count(name, text.count(",") + 1)
        if not text.startswith("log:"):
            return tuple(float(part) for part in text.split(","))
        low, high, count = text[4:].split(":")
        first, last, steps = float(low), float(high), int(count)
        if steps < 1 or (steps == 1 and first != last) or steps > MOST_VALUES[name]:
            raise InputError(form)
        return tuple(10.0 ** (first + (last - first) * i / max(1, steps - 1)) for i in range(steps))
    except InputError:
        raise
    except (ValueError, OverflowError):
        raise InputError(form) from None


def parse_folds(text: str, name: str) -> tuple[int, ...] | None:
    """Whole numbers from ``3,4,5`` or a range ``3:20``; ``3:n`` gives None, for all of them.

    Raises:
        InputError: the text is neither.
    """
    every = ", or 3:n for all" if name == "k" else ""
    form = f"{name}={text!r}: expected whole numbers like 3,4,5,10, or a range like 3:20{every}"
    if text == "3:n" and name == "k":
        return None
    _check_count(name, text.count(",") + 1)
    try:
        if ":" not in text:
            return tuple(int(part) for part in text.split(","))
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise InputError(form) from None
    if not 0 <= first <= last or last - first >= MOST_VALUES[name]:
        raise InputError(form)
    return tuple(range(first, last + 1))


def check_choice(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise InputError unless value is one of the names allowed."""
    names = tuple(allowed)
    if not (isinstance(value, str) and value in names):
        raise InputError(f"{name}={told(value)} is not known: choose from {', '.join(names)}")


def _listed(name: str, value: Any) -> Any:
    if isinstance(value, str) and name in ("C", "gamma"):
        return parse_grid(value, name)
    if isinstance(value, str) and name in ("k", "report_k"):
        return parse_folds(value, name)
    if isinstance(value, str) and name == "claims":
        return tuple(value.split(","))
    if isinstance(value, int | float) and not isinstance(value, bool) and name in MOST_VALUES:
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _grid(name: str, values: Any) -> tuple[float, ...]:
    numbers = [number(name, value) for value in _sequence(name, values, least=1)]
    for found in numbers:
        if not (math.isfinite(found) and found > 0):
            raise InputError(f"{name}={found!r} is not allowed: values are positive and finite")
    return tuple(sorted({float(f"{found:.12g}") for found in numbers}))


def _folds(name: str, values: Any, least: int) -> tuple[int, ...]:
    return tuple(sorted({whole(name, value, least=0, most=MOST) for value in _sequence(name, values, least)}))


def _check_count(name: str, count: int) -> None:
    if count > (most := MOST_VALUES[name]):
        raise InputError(f"{name} has more than {most:,} values, the most allowed")


def _sequence(name: str, values: Any, least: int) -> tuple[Any, ...]:
    single = isinstance(values, str | bytes | bytearray | Mapping) or getattr(values, "ndim", 1) == 0
    if single or not isinstance(values, Iterable):
        kind = "names" if name == "claims" else "numbers"
        raise InputError(f"{name}={told(values)} is not a sequence: give a list of {kind}")
    listed = tuple(islice(values, MOST_VALUES[name] + 1))
    _check_count(name, len(listed))
    if len(listed) < least:
        raise InputError(f"{name} is empty: give at least one value")
    return listed


def _short(value: object) -> str:
    text = "3:n" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."

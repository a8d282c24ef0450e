"""F*: the machines refitted on TR + MS of every split at the winning triple, and how they predict.

Decision values are computed row by row, in an operation whose result for one row does not depend on the
others, so that a prediction and the count of errors it rests on are equal in every bit.
"""

import hashlib
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ckcv_ray.core.resampling import draw_members
from ckcv_ray.core.threads import one_thread
from ckcv_ray.learners.svm.decision import UNDECIDED
from ckcv_ray.learners.svm.kernels import gaussian, squared_distances
from ckcv_ray.learners.svm.scaling import Scaling

PICKLE_PROTOCOL = 5
PICKLES = "model-*.pkl"
BLOCK = 1 << 22

Rows = NDArray[np.float64]
Signs = NDArray[np.int8]


@dataclass(frozen=True)
class Member:
    """One machine of the ensemble.

    Attributes:
        k, mc_index: the split it was fitted on.
        C, gamma: its hyperparameters.
        scaling: centre and scale of its inputs, fitted on its training rows.
        support: row numbers of the support vectors in the learning set, ascending.
        vectors: those rows, unscaled, (n_support, d).
        dual_coef: y * alpha of each, (n_support,).
        offset: added to the weighted sum of kernels.
        errors: false positives and false negatives on its estimate set.
        n_estimate: rows of class -1 and of class +1 in its estimate set.
    """

    k: int
    mc_index: int
    C: float
    gamma: float
    scaling: Scaling
    support: NDArray[np.int64]
    vectors: Rows
    dual_coef: NDArray[np.float64]
    offset: float
    errors: tuple[int, int]
    n_estimate: tuple[int, int]

    def decision(self, X: Rows) -> NDArray[np.float64]:
        """Decision value of every row of X [rows, d], shape (rows,)."""
        vectors = self.scaling.apply(self.vectors)
        values = np.empty(len(X))
        step = max(1, BLOCK // max(1, len(vectors)))
        with one_thread():
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                K = gaussian(squared_distances(self.scaling.apply(X[rows]), vectors), self.gamma)
                values[rows] = np.vecdot(K, self.dual_coef) + self.offset
        return values

    def predict(self, X: Rows) -> Signs:
        """Class of every row, -1 or +1; a decision value within 1e-9 of zero gives -1."""
        return label(self.decision(X))


class Prediction(NamedTuple):
    """Per row: class -1 or +1, member that decided (-1: the majority), its score, and the share of F*
    that gives this class.
    """

    sign: Signs
    member: NDArray[np.int64]
    score: NDArray[np.float64]
    share: NDArray[np.float64]


@dataclass(frozen=True)
class Ensemble:
    """The members of F* in the order of their splits."""

    members: tuple[Member, ...]

    def decisions(self, X: Rows) -> NDArray[np.float64]:
        """Decision values (n_members, rows)."""
        return np.array([member.decision(X) for member in self.members])

    def keyed(self, X: Rows, key: int = 0) -> Prediction:
        """Classify each row by the member that a keyed hash of its values draws.

        Neither the order of the rows nor how they are divided into batches changes it. Equal rows meet the
        same member, so this is one fixed classifier.
        """
        return self._by(X, np.array([_draw(row, key, len(self.members)) for row in X], dtype=np.int64))

    def random(self, X: Rows, seed: int) -> Prediction:
        """Classify each row by a member drawn for it alone, as the paper and the mean risk suppose.

        The draws follow from the seed and the number of rows: the same seed repeats them.
        """
        return self._by(X, draw_members(len(self.members), len(X), seed))

    def _by(self, X: Rows, member: NDArray[np.int64]) -> Prediction:
        """Classify row i by the member at position ``member[i]``."""
        decisions = self.decisions(X)
        score = decisions[member, np.arange(len(X))]
        sign = label(score)
        return Prediction(sign, member, score, np.mean(label(decisions) == sign, axis=0))

    def vote(self, X: Rows) -> Prediction:
        """Each row by the majority of the members, a tie giving -1; score is the mean decision value.

        Where every member's error is bounded on average by r, the majority's is by 2 r.
        """
        decisions = self.decisions(X)
        positive = np.mean(label(decisions) > 0, axis=0)
        sign = label(positive - 0.5)
        share = np.where(sign > 0, positive, 1 - positive)
        mean = sum(decisions, np.zeros(len(X))) / len(decisions)  # in order: the same bits in any batch
        return Prediction(sign, np.full(len(X), -1), mean, share)

    def by_member(self, X: Rows, number: int) -> Prediction:
        """Every row by the one member of this split."""
        return self._by(X, np.full(len(X), number))

    def error_rates(self, X: Rows, y: Signs) -> tuple[float, float]:
        """Mean error of the members on X [rows, d], y [rows] (what a random member makes in
        expectation), and the error of the majority vote.
        """
        signs = label(self.decisions(X))
        vote = label(np.mean(signs > 0, axis=0) - 0.5)
        return float(np.mean(signs != y)), float(np.mean(vote != y))


def label(decision: NDArray[np.float64]) -> Signs:
    """Class -1 or +1 of decision values; the undecided get -1."""
    return np.where(decision > UNDECIDED, 1, -1).astype(np.int8)


def mistakes(decision: NDArray[np.float64], y: Signs) -> tuple[int, int]:
    """Errors among the rows of class -1 and among those of class +1; an undecided row is an error."""
    wrong = y * decision <= UNDECIDED
    return int(np.sum(wrong & (y < 0))), int(np.sum(wrong & (y > 0)))


SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("mc_index", pa.int64()),
        ("C", pa.float64()),
        ("gamma", pa.float64()),
        ("centre", pa.list_(pa.float64())),
        ("scale", pa.list_(pa.float64())),
        ("support", pa.list_(pa.int64())),
        ("dual_coef", pa.list_(pa.float64())),
        ("offset", pa.float64()),
        ("errors_negative", pa.int64()),
        ("errors_positive", pa.int64()),
        ("n_negative", pa.int64()),
        ("n_positive", pa.int64()),
    ]
)


def to_arrow(ensemble: Ensemble) -> pa.Table:
    """One row for each member; the support vectors as row numbers of the learning set."""
    rows = [
        {
            "k": m.k,
            "mc_index": m.mc_index,
            "C": m.C,
            "gamma": m.gamma,
            "centre": m.scaling.centre,
            "scale": m.scaling.scale,
            "support": m.support,
            "dual_coef": m.dual_coef,
            "offset": m.offset,
            "errors_negative": m.errors[0],
            "errors_positive": m.errors[1],
            "n_negative": m.n_estimate[0],
            "n_positive": m.n_estimate[1],
        }
        for m in ensemble.members
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_arrow(models: pa.Table, X: Rows) -> Ensemble:
    """The ensemble from its rows and the inputs X [n, d] it was learned from.

    Raises:
        ValueError: the rows are not those of models on X.
        IndexError: a support vector is not a row of X.
    """
    for name in models.column_names:
        listed = pa.types.is_list(models.schema.field(name).type)
        if models[name].null_count or (listed and pc.list_flatten(models[name]).null_count):
            raise ValueError(f"{name} has empty cells")
    return Ensemble(tuple(_member(row, X) for row in models.to_pylist()))


def pickle_name(member: Member) -> str:
    """The name of a member's file."""
    return PICKLES.replace("*", f"{member.mc_index:05d}")


def to_pickles(ensemble: Ensemble, X: Rows) -> dict[str, bytes]:
    """File name and content of each member as a pickle that stands alone.

    Of the members as read from Arrow: arrays that travelled through Ray pickle to other bytes.
    """
    return {
        pickle_name(m): pickle.dumps(m, protocol=PICKLE_PROTOCOL)
        for m in from_arrow(to_arrow(ensemble), X).members
    }


def from_pickles(contents: Iterable[bytes]) -> Ensemble:
    """The ensemble from the pickles of its members. Opening a pickle runs what is in it."""
    members = (pickle.loads(content) for content in contents)
    return Ensemble(tuple(sorted(members, key=lambda member: member.mc_index)))


def _member(row: dict[str, Any], X: Rows) -> Member:
    support = np.array(row["support"], dtype=np.int64)
    member = Member(
        k=row["k"],
        mc_index=row["mc_index"],
        C=row["C"],
        gamma=row["gamma"],
        scaling=Scaling(np.array(row["centre"]), np.array(row["scale"])),
        support=support,
        vectors=X[support].astype(np.float64),  # one dtype object: pickles the same wherever X came from
        dual_coef=np.array(row["dual_coef"], dtype=np.float64),
        offset=row["offset"],
        errors=(row["errors_negative"], row["errors_positive"]),
        n_estimate=(row["n_negative"], row["n_positive"]),
    )
    _check(member, X.shape[1])
    return member


def _check(member: Member, d: int) -> None:
    """Raise ValueError where a member could not have been fitted on d inputs."""
    scaling, support, told = member.scaling, member.support, f"model of split {member.mc_index}: "
    if scaling.centre.shape != (d,) or scaling.scale.shape != (d,):
        raise ValueError(f"{told}centre and scale do not have the {d} features")
    if member.dual_coef.shape != support.shape or np.any(np.diff(support, prepend=-1) <= 0):
        raise ValueError(f"{told}its support vectors do not ascend, or have no coefficient each")
    numbers = (*scaling, member.dual_coef, member.C, member.gamma, member.offset)
    if not all(np.isfinite(values).all() for values in numbers):
        raise ValueError(f"{told}it has numbers that are not finite")
    if not (np.all(scaling.scale > 0) and member.C > 0 and member.gamma > 0):
        raise ValueError(f"{told}scale, C and gamma have to be positive")
    if not all(0 <= wrong <= rows for wrong, rows in zip(member.errors, member.n_estimate, strict=True)):
        raise ValueError(f"{told}it has more errors than rows, or fewer than none")


def _draw(row: Rows, seed: int, n_members: int) -> int:
    key = hashlib.sha256(str(seed).encode()).digest()
    values = np.ascontiguousarray(row + 0.0, dtype="<f8").tobytes()  # -0.0 and 0.0 are one number
    return int.from_bytes(hashlib.blake2b(values, key=key, digest_size=16).digest(), "little") % n_members

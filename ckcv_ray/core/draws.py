"""Random draws: each has a key in addition to the seed, so that any worker can repeat it.

A known seed alone draws known positions, and a table could be sorted so that these are the easy rows; with a
salt, a digest of the rows whatever their order (``tables.task``), the draws are specific to one table. A key
is the ``spawn_key`` of a ``numpy.random.SeedSequence``. The splits of complete k-fold cross validation have
keys that begin with the size of a fold, which is never 0; all other keys begin with 0.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HELD_OUT, MEMBERS, PAIRS, PART = (0, 0, 2), (0, 0, 3), (0, 0, 6), (0, 0, 7)
PERMUTATIONS, BEST_OF_ROWS = (0, 0, 8), (0, 0, 9)
JUDGED = (0, 0, 12)  # order of judged rows on which runs are compared
TRIED = (0, 0, 13)  # order of the learning rows, from which a first look takes some
SPLITS = (0, 1)


class Draws(NamedTuple):
    """A source of random numbers.

    Attributes:
        seed: 0 .. 2**128 - 1.
        salt: the table's salt, 64 hexadecimal digits; "" where no table is involved.
        key: the first numbers of each key.
    """

    seed: int
    salt: str = ""
    key: tuple[int, ...] = SPLITS

    def make_generator(self, *more: int) -> np.random.Generator:
        """Return the generator of a key extended by numbers, such as that of a split: always the same one."""
        entropy: Any = self.seed
        if self.salt:
            content = bytes.fromhex(self.salt) + self.seed.to_bytes(16, "little")
            entropy = np.frombuffer(content, "<u4").tolist()
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(*self.key, *more)))

    def at(self, *key: int) -> "Draws":
        """Return the source with another key."""
        return self._replace(key=key)

    def inside(self, number: int) -> "Draws":
        """Return the source for dividing one part, such as the training set of a split."""
        return self._replace(key=(*self.key, number, 0))


def hold_out(n: int, share: float, draws: Draws) -> NDArray[np.intp]:
    """Draw the floor(share * n) rows to hold out, ascending; nothing uses them before the very end."""
    return np.sort(order_held_out(n, int(share * n), draws))


def order_held_out(n: int, held: int, draws: Draws) -> NDArray[np.intp]:
    """Return the rows that ``hold_out`` holds out in the order in which they are drawn, (held,)."""
    return draws.at(*HELD_OUT).make_generator().permutation(n)[:held]


def seed_members(seed: int) -> np.random.Generator:
    """Return the generator of the members that a seed draws; its state carries over from call to call."""
    return Draws(seed).at(*MEMBERS).make_generator()


def draw_pairs(y: NDArray[np.integer], draws: Draws) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw disjoint pairs of a row of class 0 and a row of class 1, as many as the rarer class has rows.

    Args:
        y: class numbers (rows,); the pairs depend only on the positions of the classes.
        draws: the table's draws.

    Returns:
        Positions of the rows of class 0 and of class 1, each (pairs,).
    """
    rng = draws.at(*PAIRS).make_generator(0)
    first, second = (rng.permutation(np.flatnonzero(y == c)) for c in (0, 1))
    pairs = min(len(first), len(second))
    return first[:pairs], second[:pairs]


def make_seed_sequence(train: NDArray[np.intp], *key: int) -> np.random.SeedSequence:
    """Return the source of seeds for a fit to the rows with these numbers: the same on every machine.

    Sources with other keys, the ``spawn_key``, are independent of it.
    """
    digest = hashlib.sha256(np.ascontiguousarray(train, dtype="<i8").tobytes()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "little"), spawn_key=key)


def draw_seeds(seeds: np.random.SeedSequence, count: int) -> list[int]:
    """Return the first seeds of a source."""
    return [int(seed) >> 1 for seed in seeds.generate_state(max(1, count))][:count]

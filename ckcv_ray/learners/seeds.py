"""Seeds of what is random in a fit: from the numbers of its training rows, so the same on every machine."""

import hashlib

import numpy as np

from ckcv_ray.core.arrays import Index


def make_seed_sequence(train: Index, *key: int) -> np.random.SeedSequence:
    """Return the source of seeds of a fit to the rows with these numbers: the same on every machine.

    Sources of other keys, the ``spawn_key``, are independent of it.
    """
    digest = hashlib.sha256(np.ascontiguousarray(train, dtype="<i8").tobytes()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "little"), spawn_key=key)


def draw_seeds(seeds: np.random.SeedSequence, count: int) -> list[int]:
    """Return the first seeds of a source."""
    return [int(seed) >> 1 for seed in seeds.generate_state(max(1, count))][:count]

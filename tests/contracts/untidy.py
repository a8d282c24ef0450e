"""A table as people have them: words, gaps, dates, truth values; some columns tell the label."""

import numpy as np
import pyarrow as pa

CITIES = ("Bern", "Oslo", "Paris", "Rome")


def untidy(n: int, seed: int = 0, classes: tuple[str, ...] = ("no", "yes")) -> pa.Table:
    """Draw a table with n rows and the target ``outcome``."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    y = np.arange(n) % len(classes)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 10, n) + 8 * y)
    at = np.where(rng.random(n) < 0.6, y % len(CITIES), rng.integers(0, len(CITIES), n))
    city = [None if rng.random() < 0.1 else CITIES[i] if rng.random() < 0.97 else f"village {i}" for i in at]
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, n) + 20 * y
    return pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "city": city,
            "admitted": pa.array(days, mask=rng.random(n) < 0.05),
            "smokes": (rng.random(n) < 0.3),
            "outcome": [classes[i] for i in y],
        }
    )

"""Made tables with text, gaps and dates, of which as many rows as wanted can be drawn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DAYS = 730
START = np.datetime64("2023-01-01")


@dataclass(frozen=True)
class Table:
    """A source of rows.

    Attributes:
        n: number of learning rows.
        numbers: number of numeric columns.
        levels: number of categories in each text column.
        gaps: share of the cells that are empty.
        telling: whether gaps are more frequent in rows of one class.
        season: weight of the time of the year.
        curved: weight of an interaction of numbers, which a linear learner cannot see.
    """

    n: int
    numbers: int
    levels: tuple[int, ...]
    gaps: float
    telling: bool = False
    season: float = 0.0
    curved: float = 0.0

    def draw(self, rows: int, seed: int, number: int) -> pa.Table:
        """Draw rows; those of one ``number`` have one source, those of another ``seed`` are independent."""
        source = np.random.default_rng(np.random.SeedSequence(number, spawn_key=(0,)))
        rng = np.random.default_rng(np.random.SeedSequence(number, spawn_key=(1, seed)))
        weight = source.normal(size=self.numbers)
        x = rng.normal(size=(rows, self.numbers))
        logit = x @ weight + self.curved * x[:, 0] * x[:, -1]
        columns: dict[str, Any] = {}
        for i, count in enumerate(self.levels):
            effect = source.normal(size=count)
            share = source.dirichlet(np.full(count, 0.7))
            level = rng.choice(count, rows, p=share)
            logit += effect[level]
            columns[f"word{i}"] = np.array([f"level {j:02}" for j in range(count)], dtype=object)[level]
        day = rng.integers(0, DAYS, rows)
        logit += self.season * np.sin(2 * np.pi * day / 365.25)
        y = (rng.random(rows) < 1 / (1 + np.exp(-1.5 * logit))).astype(int)
        for i in range(self.numbers):
            columns[f"number{i}"] = 10.0 ** (i % 4) * x[:, i] + 50
        table = {name: self._with_gaps(values, y, rng) for name, values in columns.items()}
        table["day"] = self._with_gaps((START + day).astype("datetime64[D]"), y, rng)
        return pa.table({**table, "outcome": np.array(["no", "yes"], dtype=object)[y]})

    def _with_gaps(self, values: NDArray[Any], y: NDArray[Any], rng: np.random.Generator) -> pa.Array:
        share = self.gaps * (np.where(y == 1, 1.6, 0.4) if self.telling else 1.0)
        return pa.array(values, mask=rng.random(len(values)) < share)


TABLES = (
    Table(400, 4, (3, 8), 0.05),
    Table(500, 2, (4, 4, 12), 0.1, telling=True),
    Table(600, 8, (25,), 0.15, curved=2.0),
    Table(800, 3, (5, 30), 0.05, season=1.5),
    Table(1000, 5, (2, 3, 4, 5), 0.2),
    Table(2000, 6, (6, 40), 0.1),
    Table(2000, 3, (10, 10, 10), 0.1, telling=True, season=1.0),
    Table(2000, 10, (4,), 0.05, curved=3.0),
    Table(2000, 4, (60,), 0.1, season=2.0),
    Table(2000, 6, (3, 5, 8), 0.3, telling=True, curved=1.0),
)

"""What coverage jobs count: how often something proven is false, and the exact test of that.

No cell may be false significantly more often than it may be: a one-sided exact binomial test at ``LEVEL``,
divided by the number of cells that are tested.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import typer
from scipy.stats import binomtest

LEVEL = 0.01


class Cell(NamedTuple):
    """How often something was proven but false, in how many runs, and how often it may be."""

    name: str  # what was proven, for which law and how many units
    false: int  # false proofs
    runs: int  # all runs
    allowed: float  # largest probability of a false proof; 1 where none can be false
    figures: dict[str, float]  # what else is measured

    def fails(self, level: float) -> bool:
        """Return whether it is false significantly more often than allowed."""
        if self.allowed == 1.0:
            return False
        return bool(binomtest(self.false, self.runs, self.allowed, "greater").pvalue < level)


def find_failing(cells: Sequence[Cell]) -> list[str]:
    """Return the names of the cells that are false significantly more often than they may be."""
    tested = [cell for cell in cells if cell.allowed < 1]
    return [cell.name for cell in tested if cell.fails(LEVEL / len(tested))]


def show_cells(cells: Sequence[Cell], as_json: bool) -> None:
    """Print every cell; exit with code 1 if one is false significantly more often than it may be."""
    for cell in () if as_json else cells:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in cell.figures.items())
        limit = f"false {cell.false} of {cell.runs} (at most {100 * cell.allowed:.3g} %)"
        print(f"{cell.name:48} {limit if cell.allowed < 1 else '':32} {figures}".rstrip())
    show_failing(cells, as_json)


def show_failing(cells: Sequence[Cell], as_json: bool) -> None:
    """Print what is false significantly more often than it may be, or all as JSON; exit with 1 if any is."""
    failing = find_failing(cells)
    if as_json:
        print(json.dumps({"cells": [cell._asdict() for cell in cells], "failing": failing}))
    else:
        print(f"{len(cells)} cells, {len(failing)} false more often than they may be", *failing, sep="\n")
    if failing:
        raise typer.Exit(1)

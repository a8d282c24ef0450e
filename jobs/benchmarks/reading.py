"""CPU time of reading a table of a million rows, by this code and by another commit in turns.

Two tables, each of five columns of numbers and a class: one complete, one with ``NA`` in 2 % of its cells.

    python jobs/benchmarks/reading.py --against 4cf5d811
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import typer

from jobs.benchmarks.commits import checked_out, compare

COLUMNS = 5


def write(file: Path, rows: int, gaps: float) -> None:
    """Write a table of three decimals, in which a share of the cells is NA."""
    draws = np.random.default_rng(0)
    cells = np.round(draws.normal(size=(rows, COLUMNS)), 3).astype(str)
    cells[draws.random(cells.shape) < gaps] = "NA"
    labels = draws.integers(0, 2, rows)
    lines = (",".join([*row, str(label)]) for row, label in zip(cells, labels, strict=True))
    file.write_text("\n".join(["a,b,c,d,e,y", *lines]) + "\n")


def main(
    against: Annotated[str, typer.Option(metavar="COMMIT", help="The other commit.")],
    rows: Annotated[int, typer.Option(min=100, help="Rows of each table.")] = 10**6,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each commit reads each table.")] = 6,
) -> None:
    """Print a line for each table; exit with 1 if both commits do not read the same."""
    same = True
    with checked_out(against) as tree, TemporaryDirectory(prefix="ckcv-") as folder:
        for gaps in (0.0, 0.02):
            file = Path(folder) / f"gaps{gaps:g}.csv"
            write(file, rows, gaps)
            read = compare(tree, ["read", str(file)], rounds)
            ratios = f"ratio {read.ratio:.3f} (medians {read.ratio_medians:.3f})"
            print(
                f"{gaps:4.0%} NA  {min(read.here):6.2f} s  {against[:8]} {min(read.there):6.2f} s  {ratios}"
            )
            same = same and read.same
    if not same:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

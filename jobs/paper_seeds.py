"""Realization 1 of five IDA sets over several seeds beside the paper's Table 1.

The difference of each median from the paper's mean is given in units of the paper's standard deviation
over ten realizations; ours is one realization, so single seeds may lie far out.

    python jobs/paper_seeds.py --seeds 5
"""

import sys
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ckcv_ray import data, driver
from ckcv_ray.study import Execution, Study

# Anguita et al., ESANN 2012, Table 1: k*, L_EE and test error of F*, mean and standard deviation.
PAPER = {
    "banana": ((3.9, 0.5), (15.9, 1.0), (11.0, 0.4)),
    "heart": ((3.4, 0.5), (27.8, 1.8), (17.5, 2.5)),
    "thyroid": ((3.3, 0.3), (12.4, 0.9), (5.2, 2.1)),
    "twonorm": ((3.2, 0.3), (6.3, 0.7), (2.7, 0.1)),
    "titanic": ((3.2, 0.4), (34.9, 1.8), (22.8, 0.4)),
}
COLUMNS = ("k*", "L_EE %", "test %")


def figures(name: str, seed: int) -> tuple[float, float, float]:
    """k*, L_EE and test error, the last two in percent, of one study with the default grids."""
    source = f"ida:{name}:1"
    columns = data.read(source)
    table = data.learning_table(columns.learn, source=source)
    study = Study(scaling="none", seed=seed)
    rows = data.rows_to_test(columns.test, table)
    result = driver.run_table(study, table, execution=Execution("ray"), test=rows)
    return float(result.k), 100 * result.l_ee, 100 * (result.test_error or 0.0)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from 0.")] = 5,
    sets: Annotated[str, typer.Option(help="Some of the sets: a,b,c.")] = ",".join(PAPER),
) -> None:
    """Print one line for each set and figure: ours by seed, median, the paper's, the difference."""
    print(f"{'set':<9}{'figure':<8}{'paper':>13}{'median':>9}{'difference':>12}   by seed")
    for name in sets.split(","):
        ours = list(zip(*(figures(name, seed) for seed in range(seeds)), strict=True))
        for column, values, (mean, deviation) in zip(COLUMNS, ours, PAPER[name], strict=True):
            middle = median(values)
            units = (middle - mean) / deviation
            listed = " ".join(f"{value:.1f}" for value in values)
            paper = f"{mean:.1f} ± {deviation:.1f}"
            print(f"{name:<9}{column:<8}{paper:>13}{middle:>9.1f}{units:>+9.1f} sd   {listed}")
        sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)

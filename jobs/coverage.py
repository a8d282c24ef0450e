"""Do the bounds hold? ``jobs/bound_coverage.py`` as a command.

    python jobs/coverage.py --runs 500

It stands apart because numba asks for the package ``coverage``, and a job's own folder comes first among the
places where Python looks: here it is told at once that this is not that package.
"""

import sys
from pathlib import Path

if __name__ == "coverage":
    raise ImportError("this is a job of ckcv_ray, not the package coverage")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import typer

from jobs.bound_coverage import main

if __name__ == "__main__":
    typer.run(main)

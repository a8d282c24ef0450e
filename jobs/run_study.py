"""``ckcv run`` as a script, for ``ray submit`` and ``ray job submit``, with the same options.

    ray job submit --working-dir . -- python jobs/run_study.py twonorm:400:0 --out /data/runs/twonorm

A job runs in an unpacked copy of the working directory: pass ``--out`` as an absolute path on the driver's
node.
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from ckcv_ray.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "run")
    main()

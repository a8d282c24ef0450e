"""Command copy."""

from typing import Annotated

import typer

from ckcv_ray.cli.options import Folder, JsonFlag, check_out
from ckcv_ray.cli.output import show
from ckcv_ray.errors import pluralize
from ckcv_ray.runs.copy import copy_run


def copy(
    folder: Folder,
    to: Annotated[
        str,
        typer.Argument(
            metavar="TO",
            help="Where to copy it: an empty place, or one that holds the same run.",
            show_default=False,
            callback=check_out,
        ),
    ],
    as_json: JsonFlag = False,
) -> None:
    """Copy a run to another place, a disk or an object store, and check every digest.

    Each file is compared with the manifest when it is read, and with what was read once it is written; the
    manifest comes last, so that a copy that was interrupted is not finished, and the same command completes
    it. A run that is being written is refused.

        ckcv copy runs/patients s3://bucket/runs/patients
        ckcv copy s3://bucket/runs/patients runs/patients
    """
    copied = copy_run(folder, to)
    text = f"run {copied.run_id}: {pluralize(copied.files, 'file')}, {copied.bytes:,} bytes, in {copied.to}"
    show(copied._asdict(), text, as_json)

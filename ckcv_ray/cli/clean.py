"""Command clean."""

from ckcv_ray.cli.options import Folder, JsonFlag
from ckcv_ray.cli.output import show
from ckcv_ray.errors import pluralize
from ckcv_ray.storage.folder import RunFolder


def clean(folder: Folder, as_json: JsonFlag = False) -> None:
    """Remove from a run folder what a run that was killed left and no run reads.

    On a disk these are temporary files, on an object store objects that no file has. Files of the run are
    never removed, and nothing is while a run writes there.

        ckcv clean runs/patients
        ckcv clean s3://bucket/runs/patients
    """
    run = RunFolder(folder)
    run.require()
    removed = run.clean()
    lines = [f"removed {pluralize(len(removed), 'object or file', 'objects or files')}", *removed]
    show({"folder": folder, "removed": removed}, "\n".join(lines), as_json)

"""Scripts for Slurm: an array with a task for each shard of a run, and a job that gathers them.

Whatever comes from a path or an option is quoted, and refused if it has a line break: a script is read line
by line, by Slurm and by a shell, and neither may find a line of somebody else's in it.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ckcv_ray.errors import InputError
from ckcv_ray.storage.files import make_folder, write_atomically
from ckcv_ray.validation import quote

WARNING_SECONDS = 60  # before the end of its time limit, after which a task stops and saves what it has
OWN_OPTIONS = (
    "--array",
    "-a",
    "--output",
    "-o",
    "--dependency",
    "-d",
    "--wrap",
)  # of sbatch, which scripts set


class Scripts(NamedTuple):
    """Scripts for sbatch.

    Attributes:
        shards: computes the shards, as an array.
        gather: joins them.
    """

    shards: Path
    gather: Path

    def describe_submission(self) -> str:
        """Return the line of shell that submits both."""
        shards, gather = (shlex.quote(str(script)) for script in self)
        return f"jobs=$(sbatch --parsable {shards}) && sbatch --dependency=afterany:${{jobs%%;*}} {gather}"


def parse_slurm(text: str) -> tuple[str, ...]:
    """Parse options of sbatch, such as --partition=long --time=2:00:00.

    Raises:
        InputError: they are no options, have a line break, or are those that the scripts set.
    """
    _check_line("slurm", text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"slurm={quote(text)}: {error}: close the quotation mark") from None
    if words and not words[0].startswith("-"):
        raise InputError(f"slurm={quote(text)}: expected options of sbatch, such as --partition=long")
    for word in words:
        if (name := word.partition("=")[0]) in OWN_OPTIONS:
            raise InputError(f"slurm={quote(text)}: {name} is set by the scripts: leave it out")
    return tuple(words)


def write_scripts(
    folder: Path, out: Path, run_id: str, shards: int, command: Sequence[str], slurm: Sequence[str] = ()
) -> Scripts:
    """Write the scripts that compute and gather the shards of a run.

    Args:
        folder: to write to, and for the output of the jobs; it is created.
        out: absolute path of the run folder.
        run_id: of the run.
        shards: number of shards.
        command: words that call ckcv on a node.
        slurm: options of sbatch; see ``parse_slurm``.

    Raises:
        InputError: the folder cannot be written, or a path has a line break.
    """
    for path in (folder, out):
        _check_line("out", str(path))
    name = f"--job-name=ckcv-{run_id}"
    array = [name, f"--array=1-{shards}", *_list_options(folder / "shard-%a.log")]
    single = [f"{name}-gather", *_list_options(folder / "gather.log")]
    shard, gather = [*command, "shard", str(out), "--number"], [*command, "gather", str(out)]
    texts = {
        "shards": _write_script(array, slurm, f'{shlex.join(shard)} "$SLURM_ARRAY_TASK_ID"'),
        "gather": _write_script(single, slurm, shlex.join(gather)),
    }
    try:
        make_folder(folder)
        for name, text in texts.items():
            write_atomically(folder / f"{name}.sbatch", text.encode())
    except OSError as error:
        raise InputError(f"cannot write to {str(folder)!r}: {error.strerror or error}") from None
    return Scripts(*(folder / f"{name}.sbatch" for name in texts))


def _list_options(output: Path) -> list[str]:
    """Return the options that every job has: a job that is preempted or requeued goes on where it was."""
    folder = str(output.parent).replace("\\", "\\\\").replace("%", "%%")  # Slurm fills in patterns
    return [
        f"--output={folder}/{output.name}",
        "--open-mode=append",
        "--requeue",
        "--ntasks=1",
        "--cpus-per-task=1",
        f"--signal=B:TERM@{WARNING_SECONDS}",
    ]


def _write_script(options: Sequence[str], slurm: Sequence[str], command: str) -> str:
    """Return a script; ``exec`` lets the signals of Slurm reach the command itself."""
    lines = [f"#SBATCH {shlex.quote(option)}" for option in options]
    lines += [f"#SBATCH {shlex.join(slurm)}"] if slurm else []
    head = ["#!/bin/bash", "# Written by ckcv. Submitted again, it computes what is missing."]
    return "\n".join([*head, *lines, f"exec {command}", ""])


def _check_line(name: str, text: str) -> None:
    """Raise InputError if a text is more than one line, or has a character that is no text."""
    if any(character < " " or character == "\x7f" or not character.isprintable() for character in text):
        raise InputError(
            f"{name}={quote(text)} has a line break or another control character, which cannot be written "
            "into a script: choose another"
        )

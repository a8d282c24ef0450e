"""The benchmark of every night: what is slower than before, and which answer is another.

A fixed set of studies, the solver, Algorithm 1 and whole runs on Ray, each measured against scikit-learn's
SVC in the same run, and held against the nights before on the same kind of machine (processor, cores,
system, Python, packages). An alarm is a ratio that is slower than the median of the last ten nights by more
than their spread explains, and at most by the threshold, when measured again too; or a winner, bound or count
that is not exactly that of the last night.

    python jobs/nightly --out runs/nightly
    python jobs/nightly --out runs/trial --plan tiny --night first --only studies,solver

In ``--out``: ``history/part-NIGHT.parquet``, a row for each figure, and ``nightly.html``, the night's page
with the trend. How to schedule it: docs/nightly.
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from ckcv_ray.cli.options import check_place
from ckcv_ray.errors import InputError, StoreError
from jobs.nightly.figures import GROUPS, PLANS, Role
from jobs.nightly.history import check_name
from jobs.nightly.night import PAGE, hold
from jobs.nightly.page import compared, headline, limit, pace
from jobs.nightly.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]


def commit_here() -> str:
    """The commit of this working copy, marked where files differ from it.

    Raises:
        InputError: git cannot tell.
    """
    if not (ROOT / ".git").exists():
        raise InputError(f"{ROOT} is no working copy of git: say what is measured with --commit")
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        raise InputError(f"git does not say the commit ({reason.strip()}): give --commit") from None


def quoted(verdict: Verdict, file: Path) -> dict[str, Any]:
    """The verdict as JSON values."""
    night = verdict.night
    return {
        "night": night.name,
        "commit": night.commit,
        "kind": night.kind,
        "plan": night.plan,
        "compared": list(verdict.compared),
        "alarms": list(verdict.alarms),
        "notes": list(verdict.notes),
        "figures": [
            {
                **line.figure._asdict(),
                "median": line.median,
                "slower": line.change,
                "threshold": line.threshold,
            }
            for line in verdict.lines
        ],
        "page": str(file),
    }


def text(verdict: Verdict, file: Path) -> str:
    """The verdict for people."""
    lines = [
        f"{line.figure.group:<10}{line.figure.case:<24}{line.figure.name:<24}{line.figure.value:8.4g} x"
        + (f"  median {line.median:8.4g} x  {pace(line.change)}" if line.median is not None else "")
        + f"  {limit(line)}"
        for line in verdict.lines
        if line.figure.role == Role.RATIO
    ]
    said = [*verdict.notes, compared(verdict), *(f"ALARM {alarm}" for alarm in verdict.alarms)]
    return "\n".join([*lines, *said, f"night {verdict.night.name}: {headline(verdict)}; page: {file}"])


@contextmanager
def exits() -> Iterator[None]:
    """Errors of ours as one message and an exit code."""
    try:
        yield
    except (InputError, StoreError) as error:
        print(f"nightly: {error}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, InputError) else 4) from None
    except OSError as error:
        print(f"nightly: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None


def main(
    out: Annotated[Path, typer.Option(help="Folder of the history and the page.")] = Path("runs/nightly"),
    night: Annotated[
        str | None, typer.Option(help="Name of the night.", show_default="the date, UTC")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0.0, help="Slower than the median by this share is an alarm in any case.")
    ] = 0.15,
    only: Annotated[str, typer.Option(help="Some of the benchmarks: a,b.")] = ",".join(GROUPS),
    plan: Annotated[
        str | None,
        typer.Option(
            help=f"What is measured: {', '.join(PLANS)}. ida adds sets of the archive; tiny is for a trial. "
            "A history keeps to one.",
            show_default="that of the history, else generators",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians count.")] = 5,
    commit: Annotated[
        str | None, typer.Option(help="Commit that is measured.", show_default="what git says")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a night, add it to the history, hold it against the nights before, and write its page.

    An alarm: a ratio to scikit-learn's SVC, measured in the same run, that is slower than the median of the
    last ten nights on this kind of machine by more than their spread explains: five times their standard
    deviation (by the median absolute deviation; more of fewer nights), at least 5 %, and never more than the
    threshold. It is judged once there are three nights, and what is suspect is measured again, with three
    times the repeats, which is what counts then. Or a winner, bound or count that is not exactly that of the
    last night. A night that is slow as a whole is none: the baseline is slow with it.
    What runs in one process is timed by what it computes; whole runs on Ray (overhead) by the wall clock, and
    those want a machine that does nothing else.

        python jobs/nightly --out runs/nightly

        python jobs/nightly --out runs/trial --plan tiny --night first --only studies,solver

    The page is nightly.html in --out; the history is read with any reader of Parquet (history/part-*.parquet,
    a row for each figure). Two nights at once in one folder are refused; a night that is there is not
    measured again, but judged and shown again. Where there is no git, as in a job's copy, give --commit.

    Exit codes: 0 quiet; 1 alarm; 2 bad input, or no room to write; 4 a damaged history, or one in use.
    """
    with exits():
        name = check_name(datetime.now(UTC).date().isoformat() if night is None else night)
        groups = only.split(",")
        if unknown := [group for group in groups if group not in GROUPS]:
            raise InputError(f"only={unknown[0]!r}: choose from {', '.join(GROUPS)}")
        check_place(out)
        verdict = hold(out, name, threshold, groups, plan, repeats, commit or commit_here())
    file = out / PAGE
    print(json.dumps(quoted(verdict, file)) if as_json else text(verdict, file))
    if verdict.alarms:
        raise typer.Exit(1)


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()

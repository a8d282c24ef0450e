"""The nightly benchmark: detects what has become slower, and which answers have changed.

A fixed set of studies, the solver, Algorithm 1 and complete runs on Ray, each measured against scikit-learn's
SVC in the same run, and compared with earlier nights on the same kind of machine (processor, cores, system,
Python, packages). An alarm is a ratio that is slower than the median of the last ten nights by more than
their spread explains (by more than the threshold in any case), and again when measured a second time; or a
winner, bound or count that differs from the last night's.

    python jobs/nightly --out runs/nightly
    python jobs/nightly --out runs/trial --plan tiny --night first --only studies,solver
    python jobs/nightly --out s3://bucket/nightly --copy page

Writes to ``--out``: ``history/part-NIGHT.parquet``, one row for each figure, and ``nightly.html``, the page
of the night with trends. To schedule it, see docs/nightly.
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from ckcv_ray.cli.options import check_out
from ckcv_ray.errors import CKCVError, InputError, StoreError
from ckcv_ray.storage.files import LocalFiles
from ckcv_ray.storage.objects import open_files
from jobs.nightly.figures import GROUPS, PLANS, Role
from jobs.nightly.history import PAGE, History, check_name
from jobs.nightly.night import run_night
from jobs.nightly.page import compared, headline, limit, pace
from jobs.nightly.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("boosting", "imblearn")  # which tests of the night need
RECIPES = ("mlflow-skinny>=3.5", "onnxruntime>=1.22", "skl2onnx>=1.19")  # and those of docs/guides/recipes.md
MOTO = ("moto[s3]>=5.2", "flask>=3.1.1", "flask-cors>=6.0.1")


def commit_here() -> str:
    """Return the commit of this working copy, marked as dirty if files differ from it.

    Raises:
        InputError: git cannot determine it.
    """
    if not (ROOT / ".git").exists():
        raise InputError(f"{ROOT} is not a git working copy: pass the commit measured with --commit")
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        raise InputError(f"git cannot determine the commit ({reason.strip()}): pass --commit") from None


def to_json(verdict: Verdict, file: str) -> dict[str, Any]:
    """Return the verdict as JSON values."""
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
        "page": file,
    }


def text(verdict: Verdict, file: str) -> str:
    """Format the verdict as text."""
    lines = [
        f"{line.figure.group:<10}{line.figure.case:<24}{line.figure.name:<24}{line.figure.value:8.4g} x"
        + (f"  median {line.median:8.4g} x  {pace(line.change)}" if line.median is not None else "")
        + f"  {limit(line)}"
        for line in verdict.lines
        if line.figure.role == Role.RATIO
    ]
    messages = [*verdict.notes, compared(verdict), *(f"ALARM {alarm}" for alarm in verdict.alarms)]
    return "\n".join([*lines, *messages, f"night {verdict.night.name}: {headline(verdict)}; page: {file}"])


def weekly_jobs(name: str) -> list[list[str]]:
    """Return the commands that a night runs in addition: on a Sunday, those of ``jobs/floors``."""
    try:
        sunday = date.fromisoformat(name).isoweekday() == 7
    except ValueError:  # a night may have any name
        return []
    floors = [sys.executable, str(ROOT / "jobs" / "floors")]
    return [floors, [*floors, "--newest"]] if sunday else []


def libraries_job() -> list[str]:
    """Return the command that installs the libraries that only tests of the night need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]
    options = ["--quiet", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "install", *options, *wanted, *RECIPES]


def server_job() -> list[str]:
    """Return the command that installs moto, a server that speaks S3, in a folder of its own.

    It is apart since it allows older versions of other packages only.
    """
    place = ROOT / "build" / "moto"
    options = ["--quiet", "--disable-pip-version-check", "--upgrade", "--target", str(place)]
    return [sys.executable, "-m", "pip", "install", *options, *MOTO]


def tests_job() -> list[str]:
    """Return the command that runs all tests, those that the daily check leaves to the night among them."""
    return ["bash", str(ROOT / "jobs" / "check"), "--night"]


def run_jobs(commands: list[list[str]]) -> list[str]:
    """Run commands of other jobs, and return those that failed, in words."""
    failed = [command for command in commands if subprocess.run(command, stdout=sys.stderr).returncode]
    return [" ".join(command[1:]).removeprefix(f"{ROOT}/") for command in failed]


@contextmanager
def exits() -> Iterator[None]:
    """Turn errors of the package into one message and an exit code."""
    try:
        yield
    except CKCVError as error:
        print(f"nightly: {error}", file=sys.stderr)
        raise typer.Exit(4 if isinstance(error, StoreError) else 2) from None
    except OSError as error:
        print(f"nightly: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None


def main(
    out: Annotated[
        str,
        typer.Option(
            help="Folder of the history and the page: a path, or an address as s3://bucket/nightly."
        ),
    ] = "runs/nightly",
    copy: Annotated[
        Path | None,
        typer.Option(help="Folder on a disk to copy history and page to, such as from an address."),
    ] = None,
    night: Annotated[
        str | None, typer.Option(help="Name of the night.", show_default="the date, UTC")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0.0, help="Slower than the median by this share is always an alarm.")
    ] = 0.15,
    only: Annotated[str, typer.Option(help="Benchmarks to run: a,b.")] = ",".join(GROUPS),
    plan: Annotated[
        str | None,
        typer.Option(
            help=f"What to measure: {', '.join(PLANS)}. ida adds sets of the archive; tiny is for trials. "
            "A history has a single plan.",
            show_default="the plan of the history, else generators",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians are compared.")] = 5,
    commit: Annotated[
        str | None, typer.Option(help="Commit that is measured.", show_default="from git")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    hostile: Annotated[
        int, typer.Option(help="Number of run folders to read that are made to attack their reader.")
    ] = 0,
    tests: Annotated[bool, typer.Option("--tests", help="Run jobs/check --night as well.")] = False,
    weekly: Annotated[
        bool,
        typer.Option(
            "--weekly", help="On the night of a Sunday, pass jobs/floors and jobs/floors --newest as well."
        ),
    ] = False,
) -> None:
    """Measure a night, add it to the history, compare it with earlier nights, and write its page.

    There are two alarms. First, a ratio to scikit-learn's SVC, measured in the same run, that is slower than
    the median of the last ten nights on this kind of machine by more than their spread explains: five times
    their standard deviation (from the median absolute deviation; more for fewer nights), at least 5 %, and
    never more than the threshold. This applies from three nights on; suspect ratios are measured again, with
    three times the repeats, and the second result counts. Second, a winner, bound or count that is not
    exactly that of the last night. A night on which everything is slow raises no alarm: the baseline is slow
    as well.

    What runs in one process is timed by CPU time; complete runs on Ray (overhead) by the wall clock, and
    these need a machine without other load.

        python jobs/nightly --out runs/nightly

        python jobs/nightly --out runs/trial --plan tiny --night first --only studies,solver

    The page is nightly.html in --out; any Parquet reader opens the history (history/part-*.parquet, one row
    for each figure). Two nights at once in one folder are refused; a night that already exists is not
    measured again, only compared and shown again. Without git, as in a job's copy, pass --commit.

    With an address, history and page outlive the machine; credentials come from the environment. --copy makes
    ordinary files of them, to look at the page.

    With --hostile 1000, a thousand run folders that are made to attack whoever opens them are read as well
    (jobs/faults/hostile.py); a finding is an alarm.

    With --tests, jobs/check --night runs as well: all tests, with those that the daily check leaves to the
    night; they need the packages of the group test, and install those of the group boosting from the package
    registry. A failure is an alarm.

    With --weekly, the night of a Sunday (by its name, a date) also installs the lower bounds of all
    dependencies, then their newest versions, and passes the commands with each (jobs/floors; needs the
    package registry). Their output is on standard error; a failure is an alarm.

    Exit codes: 0 no alarm; 1 alarm; 2 bad input, or the output cannot be written; 4 a damaged history, or one
    in use.
    """
    with exits():
        name = check_name(datetime.now(UTC).date().isoformat() if night is None else night)
        groups = only.split(",")
        if unknown := [group for group in groups if group not in GROUPS]:
            raise InputError(f"only={unknown[0]!r}: choose from {', '.join(GROUPS)}")
        files = open_files(check_out(out))
        verdict = run_night(files, name, threshold, groups, plan, repeats, commit or commit_here())
        if copy is not None:
            History(files).copy(LocalFiles(copy))
    file = str(files.path(PAGE))
    print(json.dumps(to_json(verdict, file)) if as_json else text(verdict, file))
    attacks = [sys.executable, str(ROOT / "jobs" / "faults" / "hostile.py"), "--folders", str(hostile)]
    others = [attacks] if hostile else []
    others += ([libraries_job(), server_job(), tests_job()] if tests else []) + (
        weekly_jobs(name) if weekly else []
    )
    failed = run_jobs(others)
    for job in failed:
        print(f"ALARM {job} failed", file=sys.stderr)
    if verdict.alarms or failed:
        raise typer.Exit(1)


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()

"""The nightly benchmark: detects what has become slower, and which answers have changed.

A fixed set of studies, the solver, Algorithm 1 and complete runs on Ray, each measured against scikit-learn's
SVC in the same run, and compared with earlier nights on the same kind of machine (processor, cores, system,
Python, packages). An alarm is a ratio that is slower than the median of the last ten nights by more than
their spread explains (by more than the threshold in any case), and again when measured a second time; or a
winner, bound or count that differs from the last night's.

    python jobs/nightly --out runs/nightly
    python jobs/nightly --out runs/trial --plan tiny --night first --only studies,solver

Writes to ``--out``: ``history/NIGHT.json`` with the figures, and ``nightly.html``, the page of the night with
trends. To schedule it, see docs/nightly.
"""

import sys
from pathlib import Path

if __name__ == "__main__":  # import from the repository, not from this folder
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import json
import subprocess
import tomllib
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from ckcv_ray.cli.options import check_out
from ckcv_ray.errors import CKCVError, InputError, StoreError
from ckcv_ray.storage.objects import open_files
from ckcv_ray.tables import named as data
from ckcv_ray.version import VERSION
from jobs.nightly.figures import GROUPS, PLANS, Role, measure, recount
from jobs.nightly.history import PAGE, Night, add_night, check_name, machine, read_nights
from jobs.nightly.page import compared, headline, limit, pace, page
from jobs.nightly.verdict import Verdict, judge, suspects

ROOT = Path(__file__).resolve().parents[2]
LONGER = 3  # times the repeats, of a suspect figure
EXTRAS = ("boosting", "imblearn")  # which tests of the night need
RECIPES = ("mlflow-skinny>=3.5", "onnxruntime>=1.22", "skl2onnx>=1.19")  # and those of docs/guides/recipes.md
MOTO = ("moto[s3]>=5.2", "flask>=3.1.1", "flask-cors>=6.0.1")


def commit_here() -> str:
    """Return the commit of this working copy, marked as dirty if files differ from it.

    Raises:
        InputError: git cannot determine it.
    """
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        raise InputError(f"git cannot determine the commit ({reason.strip()}): pass --commit") from None


def measure_night(
    nights: list[Night], name: str, groups: list[str], plan: str | None, repeats: int, commit: str
) -> Night | None:
    """Measure a night; None if it already exists.

    Raises:
        InputError: the night exists without some of the groups, or the history has another plan.
    """
    chosen = nights[-1].plan if nights else plan or "generators"
    if chosen != (plan or chosen):
        raise InputError(f"plan={plan!r}: this history has the plan {chosen!r}; choose another --out")
    if chosen not in PLANS:
        raise InputError(f"plan={chosen!r}: choose from {', '.join(PLANS)}")
    for existing in (night for night in nights if night.name == name):
        if missing := [group for group in groups if group not in existing.groups()]:
            raise InputError(f"night {name!r} exists without {', '.join(missing)}: choose another --night")
        print(f"night {name} already exists: it is not measured again", file=sys.stderr)
        return None
    for source in PLANS[chosen].sources():
        data.read(source)  # reports a missing archive before an hour of work
    began, here = datetime.now(UTC), machine()
    return Night(name, began, commit, VERSION, chosen, here, tuple(measure(PLANS[chosen], groups, repeats)))


def confirm(night: Night, nights: list[Night], threshold: float, repeats: int) -> Night:
    """Measure suspect figures again, for longer, before they raise an alarm."""
    suspected = sorted(suspects(judge([*nights, night], night.name, threshold)))
    for key in suspected:
        print(
            f"suspect: {', '.join(key)}; measuring its group again, repeats: {LONGER * repeats}",
            file=sys.stderr,
        )
    groups = list(dict.fromkeys(group for group, _, _ in suspected))
    again = measure(PLANS[night.plan], groups, LONGER * repeats) if groups else []
    return night._replace(figures=tuple(recount(night.figures, suspected, again)))


def to_json(verdict: Verdict, file: str) -> dict[str, Any]:
    """Return the verdict as JSON values."""
    night = verdict.night
    figures = [
        line.figure._asdict() | {"median": line.median, "slower": line.change, "threshold": line.threshold}
        for line in verdict.lines
    ]
    named = {name: getattr(night, name) for name in ("commit", "kind", "plan")}
    said = {name: list(getattr(verdict, name)) for name in ("compared", "alarms", "notes")}
    return {"night": night.name, **named, **said, "figures": figures, "page": file}


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


def tests_jobs() -> list[list[str]]:
    """Return the commands that install what only tests of the night need, and run all tests.

    moto, a server that speaks S3, is in a folder of its own: it allows older versions of other packages only.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    server = [*install, "--upgrade", "--target", str(ROOT / "build" / "moto"), *MOTO]
    return [[*install, *wanted, *RECIPES], server, ["bash", str(ROOT / "jobs" / "check"), "--night"]]


def run_jobs(commands: list[list[str]]) -> list[str]:
    """Run commands of other jobs, and return those that failed, in words."""
    failed = [
        command for command in commands if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode
    ]
    return [" ".join(command[1:]).removeprefix(f"{ROOT}/") for command in failed]


def main(
    out: Annotated[
        str,
        typer.Option(
            help="Folder of the history and the page: a path, or an address as s3://bucket/nightly."
        ),
    ] = "runs/nightly",
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

    What is an alarm, and what each option does, is on the page docs/guides/nightly.md.

    Exit codes: 0 no alarm; 1 alarm; 2 bad input, or the output cannot be written; 4 a damaged history, or one
    in use.
    """
    try:
        name = check_name(datetime.now(UTC).date().isoformat() if night is None else night)
        groups = only.split(",")
        if unknown := [group for group in groups if group not in GROUPS]:
            raise InputError(f"only={unknown[0]!r}: choose from {', '.join(GROUPS)}")
        files = open_files(check_out(out))
        files.lock.acquire()  # until the end, or this process's death
        try:
            nights = read_nights(files)
            commit = commit or commit_here()
            if measured := measure_night(nights, name, groups, plan, repeats, commit):
                add_night(files, confirm(measured, nights, threshold, repeats))
                nights = read_nights(files)
            verdict = judge(nights, name, threshold)
            files.write(PAGE, page(verdict).encode())
        finally:
            files.lock.release()
    except CKCVError as error:
        print(f"nightly: {error}", file=sys.stderr)
        raise typer.Exit(4 if isinstance(error, StoreError) else 2) from None
    except OSError as error:
        print(f"nightly: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None
    file = str(files.path(PAGE))
    print(json.dumps(to_json(verdict, file)) if as_json else text(verdict, file))
    attacks = [sys.executable, "-m", "jobs.faults.hostile", "--folders", str(hostile)]
    others = [attacks] if hostile else []
    others += (tests_jobs() if tests else []) + (weekly_jobs(name) if weekly else [])
    failed = run_jobs(others)
    for job in failed:
        print(f"ALARM {job} failed", file=sys.stderr)
    if verdict.alarms or failed:
        raise typer.Exit(1)


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()

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
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Any

import numpy as np
import typer
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

from ckcv_ray.cli.options import check_out
from ckcv_ray.errors import CKCVError, InputError, StoreError
from ckcv_ray.reports.facts import flatten
from ckcv_ray.reports.figures import BLUE, INK, RED, Chart, Mark, Scale, write_svg
from ckcv_ray.storage.files import open_files
from ckcv_ray.version import VERSION
from jobs.nightly.figures import GROUPS, PLANS, Role, measure
from jobs.nightly.nights import PAGE, Line, Night, Verdict, add_night, check_name, judge, machine, read_nights

ROOT = Path(__file__).resolve().parents[2]
LONGER = 3  # times the repeats, of a suspect figure
MAX_NIGHTS = 60  # of a trend


def commit_here() -> str:
    """Return the commit of this working copy, marked as dirty if files differ from it.

    Raises:
        InputError: git cannot determine it.
    """
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"git cannot determine the commit ({done.stderr.strip()}): pass --commit")
    return done.stdout.strip()


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
    began, here = datetime.now(UTC), machine()
    return Night(name, began, commit, VERSION, chosen, here, tuple(measure(PLANS[chosen], groups, repeats)))


def confirm(night: Night, nights: list[Night], threshold: float, repeats: int) -> Night:
    """Measure suspect figures again, for longer, before they raise an alarm."""
    lines = judge([*nights, night], night.name, threshold).lines
    suspects = [one.figure for one in lines if one.alarm and one.figure.role == Role.RATIO]
    for figure in suspects:
        again = f"measuring its group again, repeats: {LONGER * repeats}"
        print(f"suspect: {figure.label}; {again}", file=sys.stderr)
    groups = dict.fromkeys(figure.group for figure in suspects)
    longer = {one.key: one for one in measure(PLANS[night.plan], list(groups), LONGER * repeats)}
    figures = [longer.get(one.key, one) if one in suspects else one for one in night.figures]
    failed = [one for one in longer.values() if one.role == Role.FAILED]
    return night._replace(figures=(*figures, *failed))


def page(verdict: Verdict) -> str:
    """Render the page as HTML."""
    by_role: dict[Role, list[Line]] = {role: [] for role in Role}
    for line in verdict.lines:
        by_role[line.figure.role].append(line)
    ratios, shown = (
        [(group, [*lines]) for group, lines in groupby(by_role[role], key=lambda line: line.figure.group)]
        for role in (Role.RATIO, Role.SHOWN)
    )
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(Path(__file__).parent), PackageLoader("ckcv_ray.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "traceback": json.loads,
        "figure": lambda value: "–" if value is None else f"{value:.4g}",
        "pace": pace,
        "sentence": lambda text: f"{text[0].upper()}{text[1:]}.",
    }
    return environment.get_template("page.html").render(
        verdict=verdict,
        night=verdict.night,
        headline=headline(verdict),
        compared=compared(verdict),
        ratios=ratios,
        shown=shown,
        answers=sorted(by_role[Role.EXACT], key=lambda line: not line.alarm),
        failures=[line.figure for line in by_role[Role.FAILED]],
        machine=flatten(verdict.night.machine),
        draw=draw_trend,
    )


def headline(verdict: Verdict) -> str:
    """Summarize the verdict in a few words."""
    if alarms := len(verdict.alarms):
        return f"{alarms} alarm{'s' * (alarms > 1)}"
    if not verdict.compared:
        return "measured; no earlier night to compare with"
    if early := sum(line.early for line in verdict.lines):
        return f"no answer changed, {early} speeds with too few nights"
    return "no slowdown, no answer changed"


def compared(verdict: Verdict) -> str:
    """Name the nights that the night was compared with."""
    names = verdict.compared
    if not names:
        return "compared with no other night"
    which = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    nights = f"{len(names)} night{'s' * (len(names) > 1)}"
    return f"speeds compared with the median of {nights} ({which}), answers with night {names[-1]}"


def pace(change: float | None) -> str:
    """Format a change of time."""
    if change is None:
        return "–"
    return f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"


def draw_trend(line: Line) -> str:
    """Draw a figure over the nights as SVG, the median dashed, the limit of alarms in red."""
    least = line.median / (1 + line.threshold) if line.median and line.threshold is not None else None
    nights, values = line.nights[-MAX_NIGHTS:], np.array(line.values[-MAX_NIGHTS:])
    levels = [(level, colour) for level, colour in ((least, RED), (line.median, INK)) if level is not None]
    shown = [*values.tolist(), *(level for level, _ in levels)]
    margin = 0.15 * (max(shown) - min(shown)) or 0.1 * abs(shown[0]) or 1.0
    x = np.arange(len(values))
    parts = [Mark([-0.6, len(x) - 0.4], level, colour, width=0.8, dash=(4, 2)) for level, colour in levels]
    parts.append(Mark(x, values, BLUE, width=1.2, shape="o", size=3))
    parts.append(Mark(x[-1:], values[-1:], RED if line.alarm else BLUE, shape="o", size=7))
    median = f", median before {line.median:.4g}" if line.median is not None else ""
    label = f"{line.figure.label}: {values[-1]:.4g} in night {nights[-1]}{median}; {len(nights)} nights"
    y = Scale("", min(shown) - margin, max(shown) + margin)
    return write_svg(Chart(Scale(names=nights), y, parts, 140), label)


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
        + f"  {line.limit}"
        for line in verdict.lines
        if line.figure.role == Role.RATIO
    ]
    messages = [*verdict.notes, compared(verdict), *(f"ALARM {alarm}" for alarm in verdict.alarms)]
    return "\n".join([*lines, *messages, f"night {verdict.night.name}: {headline(verdict)}; page: {file}"])


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
            help=f"What to measure: {', '.join(PLANS)}; tiny is for trials. A history has a single plan.",
            show_default="the plan of the history, else generators",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; medians are compared.")] = 5,
    commit: Annotated[
        str | None, typer.Option(help="Commit that is measured.", show_default="from git")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
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
    file = str(files.path(PAGE))
    print(json.dumps(to_json(verdict, file)) if as_json else text(verdict, file))
    if verdict.alarms:
        raise typer.Exit(1)


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()

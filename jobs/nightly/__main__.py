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

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ckcv_ray.cli.options import check_place
from ckcv_ray.data import task as data
from ckcv_ray.errors import InputError, StoreError
from ckcv_ray.storage.files import write_whole
from ckcv_ray.version import VERSION
from jobs.nightly.figures import GROUPS, PLANS, Role, measure, recount
from jobs.nightly.history import History, Night, check_name, machine
from jobs.nightly.page import compared, headline, limit, pace, page
from jobs.nightly.verdict import Verdict, judge, suspects

LONGER = 3
PAGE = "nightly.html"
ROOT = Path(__file__).resolve().parent.parent


def settled(history: list[Night], night: str, groups: list[str], plan: str | None) -> tuple[bool, str]:
    """Whether this night is there already, and the plan.

    Raises:
        InputError: it is there without some of the groups, or the history is one of another plan.
    """
    own = history[-1].plan if history else plan or "generators"
    if own != (plan or own):
        raise InputError(f"plan={plan!r}: this history is one of the plan {own!r}; choose another --out")
    if own not in PLANS:
        raise InputError(f"plan={own!r}: choose from {', '.join(PLANS)}")
    there = next((one for one in history if one.name == night), None)
    if there is not None and (missing := [group for group in groups if group not in there.groups()]):
        raise InputError(f"night {night!r} is there, without {', '.join(missing)}: give another --night")
    return there is not None, own


def measured(night: str, commit: str, plan: str, groups: list[str], repeats: int) -> Night:
    """A night, measured now."""
    for source in PLANS[plan].sources():
        data.read(source)  # a missing archive is told before an hour of work
    began, place = datetime.now(UTC), machine()
    return Night(night, began, commit, VERSION, plan, place, tuple(measure(PLANS[plan], groups, repeats)))


def confirmed(night: Night, nights: list[Night], threshold: float, repeats: int) -> Night:
    """The night, with what is suspect in it measured again for longer before it is an alarm."""
    doubted = suspects(judge([*nights, night], night.name, threshold))
    if not doubted:
        return night
    longer = LONGER * repeats
    for key in sorted(doubted):
        print(f"suspect: {', '.join(key)}; its group is measured again, repeats: {longer}", file=sys.stderr)
    again = measure(PLANS[night.plan], list(dict.fromkeys(group for group, _, _ in sorted(doubted))), longer)
    return night._replace(figures=tuple(recount(night.figures, doubted, again)))


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


def hold(
    out: Path,
    name: str,
    threshold: float,
    groups: list[str],
    plan: str | None,
    repeats: int,
    commit: str,
) -> Verdict:
    """Measure a night that is not there yet, add it to the history, judge it, and write its page."""
    history = History(out / "history")
    with history.held():
        nights = history.nights()
        there, chosen = settled(nights, name, groups, plan)
        if there:
            print(f"night {name} is there: it is not measured again", file=sys.stderr)
        else:
            found = measured(name, commit, chosen, groups, repeats)
            history.add(confirmed(found, nights, threshold, repeats))
            nights = history.nights()
        verdict = judge(nights, name, threshold)
        write_whole(out / PAGE, page(verdict).encode())
    return verdict


def told(verdict: Verdict, file: Path) -> dict[str, Any]:
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
    last night. A night that is slow as a whole is none: the rival is slow with it.
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
    print(json.dumps(told(verdict, file)) if as_json else text(verdict, file))
    if verdict.alarms:
        raise typer.Exit(1)


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()

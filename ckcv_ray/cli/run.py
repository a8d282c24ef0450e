"""The commands run, plan and status."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ckcv_ray.cli.display import Display, duration
from ckcv_ray.cli.options import (
    Asked,
    asked,
    check_place,
    execution_of,
    flag,
    option,
    parse_workers,
    study_of,
    taking,
)
from ckcv_ray.cli.output import console, say, say_environment, show
from ckcv_ray.cli.restart import persist, without
from ckcv_ray.cli.signals import Signals
from ckcv_ray.data.task import count_repeats
from ckcv_ray.engine.aggregator import Aggregator
from ckcv_ray.engine.backend import choose_backend, ray_address
from ckcv_ray.engine.forecast import WORKERS as PLANNED
from ckcv_ray.engine.forecast import Estimate, estimate, plan_problem, wall_seconds
from ckcv_ray.errors import counted
from ckcv_ray.runs.load import load_run, reopen, replay
from ckcv_ray.runs.result import Result
from ckcv_ray.runs.run import Job, Work, checked, compute, found
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Problem, Study

HOUR = 3600.0
GO_ON = "give its ckcv run command again to go on"
STARTING: dict[str, Any] = {
    "run_id": None,
    "state": "starting",
    **dict.fromkeys(("setting", "k", "l_ms", "l_ee", "error", "proven")),
    "per_k": [],
    **dict.fromkeys(("rows", "repeats", "evaluations", "fits", "not_converged", "seconds", "test_error")),
}
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Folder = Annotated[Path, typer.Argument(help="Run folder.", show_default=False)]


@taking(study=study_of, given=asked, execution=execution_of)
def run(
    study: Study,
    given: Asked,
    execution: Execution,
    out: Annotated[str, typer.Option(metavar="PATH", help="Run folder to make, or to go on with.")],
    retry_failed: Annotated[
        bool, flag("--retry-failed", "Take up again what failed in a finished run.", "Execution")
    ] = False,
    resume_until_done: Annotated[
        int,
        typer.Option(
            min=0,
            help="Restart an interrupted or failed run up to N times; implies --yes.",
            rich_help_panel="Execution",
        ),
    ] = 0,
    yes: Annotated[bool, flag("--yes", "Do not ask before a long run.", "Execution")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Select C, gamma (or what another learner has) and k on labelled rows, bound the error, and keep F*.

    Given again with the same folder it goes on where it stopped, or returns the result that is there.

        ckcv run patients.csv --target outcome --out runs/patients

        ckcv run ida:titanic:1 --scale none --k 3,4,5,10 --out runs/titanic
    """
    place = check_place(out)
    if resume_until_done:
        words = [*without(sys.argv[1:], "--resume-until-done"), *([] if yes else ["--yes"])]
        raise typer.Exit(persist(words, resume_until_done, say))
    work = checked(Job(study, given.task, place, given.test))
    if retry_failed:
        reopen(work.problem, place)
    result = _run(work, place, execution, yes)
    show(result.to_json(), result.summary(), as_json)
    for name in result.execution.get("damaged", ()):
        say(f"{name} was damaged or missing: what it held was computed again")
    say(f"run folder: {place}")
    if failures := result.execution["failures"]:
        say(
            f"{counted(len(failures), 'path')} failed, see ckcv report; the same command with --retry-failed "
            "tries again"
        )
        raise typer.Exit(3)


@taking(study=study_of, given=asked)
def plan(
    study: Study,
    given: Asked,
    workers: Annotated[str, option("Numbers of workers to plan for: a,b,c.", "1,8,64,512")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Say what a study will take, without running it: evaluations, memory, and how long by how many workers.

    From a trial of about two seconds on the data itself. Takes the options of ckcv run.

        ckcv plan patients.csv --target outcome --certify nested

        ckcv plan twonorm:2000:0 --n-splits 500 --workers 1,16
    """
    counts = parse_workers(workers) if workers else PLANNED
    planned = plan_problem(Problem.of(study, given.task), counts)
    lines = [
        f"{counted(planned.evaluations, 'evaluation')} in {counted(planned.splits, 'split')} of "
        f"{counted(planned.sizes, 'fold size')}",
        f"memory         about {planned.bytes_per_worker >> 20:,} MiB for each worker",
        f"at most        {duration(planned.seconds_at_most)} for one worker, were nothing dropped",
    ]
    for count, seconds in planned.seconds_by_workers.items():
        lines.append(f"{count:>4} worker{'s' if count > 1 else ' '}   about {duration(seconds)}")
    show(planned.to_json(), "\n".join(lines), as_json)


def status(folder: Folder, as_json: JsonFlag = False) -> None:
    """Show the result of a finished run, or how far an unfinished one has come."""
    place = RunFolder(folder)
    if place.finished:
        result = load_run(folder)
        return show(result.to_json(), result.summary(), as_json)
    if place.starting:
        return show(STARTING, "a run is starting here: nothing is computed yet", as_json)
    aggregator = replay(folder)
    return show(*_unfinished(place, aggregator), as_json)


def _unfinished(folder: RunFolder, aggregator: Aggregator) -> tuple[dict[str, Any], str]:
    """How far an unfinished run has come, for programs and for people."""
    at, execution, problem = aggregator.progress(), folder.execution(), aggregator.problem
    best, l_ms = at.best or (None, None)
    counts = {name: getattr(at, name) for name in ("planned", "computed", "dropped", "failed")}
    content = STARTING | {
        "run_id": problem.run_id,
        "state": "unfinished",
        "setting": dict(best.setting) if best else None,
        "k": best.k if best else None,
        "l_ms": l_ms,
        "rows": problem.all_rows.n,
        "repeats": count_repeats(problem.all_rows),
        "evaluations": counts,
        "fits": execution.get("fits"),
        "not_converged": at.not_converged,
        "seconds": execution.get("seconds"),
    }
    leading = f"{best}, L_MS {100 * l_ms:.2f} %" if l_ms is not None else "no complete candidate"
    text = (
        f"run {problem.run_id} is not finished: {at.computed:,} of {at.planned:,} evaluations computed, "
        f"{at.dropped:,} dropped, {at.failed:,} failed\n{_inner_finished(folder, problem.study)}"
        f"best so far: {leading}\n"
        + ("it is running" if folder.files.lock.busy else f"{GO_ON}, if it runs on no other machine")
    )
    return content, text


def _run(work: Work, out: Path, execution: Execution, yes: bool) -> Result:
    as_given = work._replace(folder=str(out))  # messages name the folder as the user did
    if (result := found(as_given)) is not None:
        say(f"{out} holds this study, finished: here is its result")
        return result
    say_environment(out)
    signals = Signals()
    try:
        expected = estimate(work.problem)
        _tell_expected(expected, execution, yes)
        with signals, Display(console) as display:
            asked = work._replace(expected=expected, listen=display, stop=signals.stop)
            return compute(asked, execution)
    except KeyboardInterrupt:
        kept = f"what is done is kept in {out}; " if out.exists() else ""
        say(f"interrupted: {kept}give the same command again to go on")
        raise typer.Exit(128 + (signals.received or signal.SIGINT)) from None


def _inner_finished(folder: RunFolder, study: Study) -> str:
    """A line on the inner selections, where the certification has them."""
    if study.outer_splits is None:
        return ""
    finished = sum(folder.inner(i).finished for i in range(study.outer_splits))
    return f"inner selections: {finished} of {study.outer_splits} finished\n"


def _tell_expected(expected: Estimate, execution: Execution, yes: bool) -> None:
    """Say how long the run will take, and ask before a long one."""
    backend, seconds = choose_backend(execution, expected.seconds), expected.seconds
    if backend == "serial":
        where = "serial, workers: 1"
    elif execution.workers is None and (address := ray_address(execution)) != "local":
        where = f"one worker; those of the cluster at {address} share it"
    else:
        workers = execution.workers or os.cpu_count() or 1
        seconds, where = wall_seconds(seconds, workers), f"ray, workers: {workers}"
    told = f"about {duration(seconds)}" if seconds >= 1 else "less than a second"
    say(f"expected: {told} with {where}")
    if seconds > HOUR and not yes and sys.stdin.isatty() and console.is_terminal:
        typer.confirm("Go on?", abort=True, err=True)

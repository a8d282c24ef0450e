"""Studies in shards: the options of commands that divide them, scripts for Slurm, and processes here."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from shutil import which
from tempfile import TemporaryFile
from time import monotonic
from typing import Annotated, NamedTuple

import typer

from ckcv_ray.cli.display import Display
from ckcv_ray.cli.exits import NOT_YET_PROVEN
from ckcv_ray.cli.notes import say_columns, say_environment, show_result
from ckcv_ray.cli.options import flag, make_option
from ckcv_ray.cli.output import console, say, show
from ckcv_ray.cli.restart import PACKAGE, start
from ckcv_ray.cli.signals import say_what_is_saved
from ckcv_ray.engine.evaluate import memory
from ckcv_ray.engine.forecast import estimate, expect_everything
from ckcv_ray.engine.loop import Stop
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.engine.shards import check_divisible
from ckcv_ray.errors import InputError, RunError, plain, pluralize
from ckcv_ray.learners.sklearn.allowed import LIBRARY
from ckcv_ray.learners.sklearn.spec import list_trusted
from ckcv_ray.reports.progress_line import duration
from ckcv_ray.runs.run import Work, find_result, run_work
from ckcv_ray.runs.shards import ShardStates, count_recorded, divide_run, find_states, open_on_disk
from ckcv_ray.runs.slurm import Scripts, parse_slurm, write_scripts
from ckcv_ray.storage.shards import MOST_SHARDS
from ckcv_ray.study import Execution, Problem
from ckcv_ray.validation import check_choice, integer

SLURM, LOCAL = "slurm", "local"
BATCH_SYSTEM = "Batch system"
USUAL_ARRAY = 1_000  # tasks of an array that Slurm allows by default
LOOK_SECONDS, COUNT_SECONDS = 0.1, 2.0


class Sharding(NamedTuple):
    """Where shards are computed.

    Attributes:
        shards: their number; None if the study is not divided.
        to: "slurm" or "local".
        slurm: options of sbatch.
        is_started: whether sbatch is called.
    """

    shards: int | None
    to: str
    slurm: tuple[str, ...] = ()
    is_started: bool = False


def make_sharding(
    shards: Annotated[
        int | None,
        make_option("Number of shards, such as 50: parts that a process each computes.", panel=BATCH_SYSTEM),
    ] = None,
    to: Annotated[
        str | None,
        make_option(
            "slurm: write scripts for sbatch; local: compute the shards here, --workers at once.",
            "slurm",
            BATCH_SYSTEM,
        ),
    ] = None,
    slurm: Annotated[
        str | None,
        make_option("Options of sbatch, such as '--partition=long --time=2:00:00'.", panel=BATCH_SYSTEM),
    ] = None,
    call_sbatch: Annotated[
        bool, flag("--call-sbatch", "Submit the scripts too, where sbatch is installed.", BATCH_SYSTEM)
    ] = False,
) -> Sharding:
    """Collect how a study is divided.

    Raises:
        InputError: options do not go with each other, or sbatch is not installed.
    """
    chosen = check_choice("to", to or SLURM, (SLURM, LOCAL))
    for name, given in (("to", to), ("slurm", slurm), ("call_sbatch", call_sbatch)):
        if given and shards is None:
            raise InputError(
                f"{name}={given} is for a study in shards: give their number, such as --shards 50"
            )
        if given and chosen == LOCAL and name != "to":
            raise InputError(f"{name}={given} is for --to slurm: leave it out with --to local")
    if call_sbatch and which("sbatch") is None:
        raise InputError(
            "call_sbatch=True: there is no sbatch on this machine: leave it out, and submit the scripts on "
            "one that has it"
        )
    count = None if shards is None else integer("shards", shards, least=1, most=MOST_SHARDS)
    return Sharding(count, chosen, parse_slurm(slurm or ""), call_sbatch)


def submit_work(work: Work, out: str, sharding: Sharding, workers: int | None, as_json: bool) -> None:
    """Divide a checked job into shards, and write scripts that compute them, or compute them here."""
    open_on_disk(out)
    as_given = work._replace(folder=out)  # messages name the folder as the user did
    if (result := find_result(as_given)) is not None:
        say(f"{out} already holds the finished run of this study: showing its result")
        show_result(result, out, as_json)
        return
    problem, count = work.problem, sharding.shards or 1
    check_divisible(problem)
    say_environment(out)
    say_columns(problem)
    division = divide_run(problem, out, count)
    _say_cost(work, count, division.evaluations)
    if sharding.to == LOCAL:
        _compute_here(work, out, count, division.evaluations, workers, as_json)
    else:
        _write_scripts(work, out, sharding, division.evaluations, as_json)


def _write_scripts(work: Work, out: str, sharding: Sharding, evaluations: int, as_json: bool) -> None:
    """Write scripts for Slurm, submit them if asked to, and show what they are."""
    run_id, count = work.problem.run_id, sharding.shards or 1
    place = Path(out).absolute()
    folder = Path(f"{place}_slurm")
    command = ["env", f"PYTHONPATH={_list_places()}", sys.executable, "-m", PACKAGE.name, *_list_trust()]
    scripts = write_scripts(folder, place, run_id, count, command, sharding.slurm)
    if count > USUAL_ARRAY:
        say(
            f"{count:,} tasks are more than Slurm's usual MaxArraySize allows, {USUAL_ARRAY:,}: scontrol "
            "show config says what yours is"
        )
    jobs = _call_sbatch(scripts) if sharding.is_started else []
    content = {
        "run_id": run_id,
        "shards": count,
        "evaluations": evaluations,
        "scripts": list(map(str, scripts)),
        "submit": scripts.describe_submission(),
        "jobs": jobs,
    }
    lines = [f"run {run_id} is divided into {pluralize(count, 'shard')}, in {out}"]
    lines += [f"script         {script}" for script in scripts]
    lines += [f"job            {job}" for job in jobs] or [f"submit them    {content['submit']}"]
    show(content, "\n".join(lines), as_json)


def gather_shards(work: Work, out: str, execution: Execution, as_json: bool, details: bool = False) -> None:
    """Finish a run of which all shards are computed, and show its result; else say which are missing.

    Refits take one process, unless a backend is asked for.
    """
    states = find_states(out)
    if not states.complete:
        _show_missing(work, out, states, as_json)
    if execution == Execution():
        execution = Execution("serial")
    with say_what_is_saved(out) as signals, signals, Display(console) as display:
        result = run_work(work._replace(listen=display, stop=signals.stop), execution)
    show_result(result, out, as_json, details)


def _show_missing(work: Work, out: str, states: ShardStates, as_json: bool) -> None:
    """Say which shards are missing, and end with the code for it."""
    content = {
        "run_id": work.problem.run_id,
        "state": "unfinished",
        "shards": states.shards,
        "missing": list(states.missing),
        "running": list(states.running),
    }
    mend = f"compute each by ckcv shard {out} --number N, or submit again; then ckcv gather {out}"
    mend = mend if states.waiting else f"once they have ended: ckcv gather {out}"
    show(content, f"{states.describe()}\n{mend}", as_json)
    raise typer.Exit(NOT_YET_PROVEN)


def _say_cost(work: Work, count: int, evaluations: int) -> None:
    """Say how long a shard takes, and that a race on one worker computes less."""
    problem, expected = work.problem, estimate(work.problem)
    everything = expected.seconds if problem.scores else expect_everything(problem, expected)
    least = memory(problem) >> 20
    say(
        f"{pluralize(evaluations, 'evaluation')} in {pluralize(count, 'shard')}: about "
        f"{duration(everything / count)} and {least:,} MiB for each"
    )
    if not problem.scores and not problem.study.exhaustive:
        say(
            "shards compute every evaluation, since what may be dropped depends on the others; ckcv run on "
            f"one worker: about {duration(expected.seconds)}"
        )


def _call_sbatch(scripts: Scripts) -> list[str]:
    """Submit the scripts; return the numbers of their jobs.

    Raises:
        RunError: sbatch refuses one.
    """
    jobs: list[str] = []
    for script in scripts:
        after = [f"--dependency=afterany:{jobs[0]}"] if jobs else []
        done = subprocess.run(["sbatch", "--parsable", *after, str(script)], capture_output=True, text=True)
        if done.returncode:
            raise RunError(f"sbatch refused {script}: {done.stderr.strip()}; what was divided is kept")
        jobs.append(done.stdout.strip().partition(";")[0])
    return jobs


def _list_places() -> str:
    """Return where a node finds this package, and what it was started with."""
    places = (str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join(filter(None, dict.fromkeys(places)))


def _list_trust() -> list[str]:
    """Return the options by which another command trusts the packages that this one does."""
    return [word for package in list_trusted() if package != LIBRARY for word in ("--trust", package)]


def _compute_here(
    work: Work, out: str, count: int, evaluations: int, workers: int | None, as_json: bool
) -> None:
    """Compute the shards as processes of this machine, and gather them."""
    at_once = min(count, workers or os.cpu_count() or 1)
    with say_what_is_saved(out) as signals, signals, Display(console) as display:
        watch = LogWatch(work.problem, out, evaluations, at_once, display)
        compute_shards(out, find_states(out).waiting, at_once, watch.report, signals.stop)
    gather_shards(work, out, Execution("serial"), as_json)


class LogWatch:
    """Reports from time to time how many evaluations the logs of shards have, and the time left.

    Args:
        problem: the problem that is divided.
        out: run folder.
        evaluations: of all shards.
        workers: number of shards that are computed at once.
        listen: called with each Progress.
    """

    def __init__(self, problem: Problem, out: str, evaluations: int, workers: int, listen: Listener) -> None:
        self.problem, self.out, self.listen = problem, out, listen
        self.evaluations, self.workers = evaluations, workers
        self._first = count_recorded(problem, out)
        self._began = self._reported = monotonic()

    def report(self) -> None:
        """Report, unless it is too early."""
        if (now := monotonic()) - self._reported < COUNT_SECONDS:
            return
        self._reported = now
        computed = min(self.evaluations, count_recorded(self.problem, self.out))
        new = computed - self._first
        each = (now - self._began) * self.workers / new if new > 0 else inf
        left = (self.evaluations - computed) * each if computed < self.evaluations else 0.0
        self.listen(Progress(self.evaluations, computed, left=left, workers=self.workers))


def compute_shards(
    out: str, numbers: Sequence[int], at_once: int, report: Callable[[], None], stop: Stop
) -> None:
    """Compute shards as processes of this machine; what ends one is said, and the others go on.

    Args:
        out: run folder.
        numbers: of the shards.
        at_once: number of processes.
        report: called between looks at the processes.
        stop: once it returns True, the processes are asked to save what they have, and end.

    Raises:
        KeyboardInterrupt: it was stopped.
    """
    waiting, running = deque(numbers), dict[int, ShardProcess]()
    try:
        while waiting or running:
            if stop():
                raise KeyboardInterrupt
            while waiting and len(running) < at_once:
                number = waiting.popleft()
                running[number] = ShardProcess(out, number)
            next(iter(running.values())).look(LOOK_SECONDS)
            for number in [number for number, process in running.items() if process.look(0.0)]:
                running[number].say_end()
                running.pop(number).close()
            report()
    finally:
        for process in running.values():
            process.ask_to_end()
        for process in running.values():
            process.close()


class ShardProcess:
    """A process that computes one shard; what it says is kept until it ends.

    Args:
        out: run folder.
        number: of the shard.
    """

    def __init__(self, out: str, number: int) -> None:
        self.number = number
        self._said = TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        words = [*_list_trust(), "shard", out, "--number", str(number)]
        self._child = start(words, stderr=self._said)

    def look(self, seconds: float) -> bool:
        """Return whether it ends within a time."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(seconds)
        return self._child.returncode is not None

    def ask_to_end(self) -> None:
        """Ask it to save what it has, and to end."""
        self._child.terminate()

    def close(self) -> None:
        """Wait for its end, and forget what it said."""
        self._child.wait()
        self._said.close()

    def say_end(self) -> None:
        """Say how it ended, unless it has computed its shard."""
        self._said.seek(0)
        last = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        if code := self._child.returncode:
            say(plain(f"shard {self.number} ended with exit code {code}: {last or 'it was killed'}"))

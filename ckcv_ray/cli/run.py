"""Commands run, plan and evaluate."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ckcv_ray.claims.certificate import describe_held_share
from ckcv_ray.claims.certify import make_error, show_rows
from ckcv_ray.cli import data, options, output
from ckcv_ray.cli.options import DetailsFlag, JsonFlag, make_option, with_options
from ckcv_ray.cli.output import console, say
from ckcv_ray.core.quantities import parse_subgroup
from ckcv_ray.engine import forecast
from ckcv_ray.engine.backend import choose_backend, find_ray_address
from ckcv_ray.errors import InputError, duration, format_level, parse_folds, parse_seconds, plain, pluralize
from ckcv_ray.runs import run as running
from ckcv_ray.runs.finished import is_finished, reopen
from ckcv_ray.runs.result import Result, Scored, rank_entries
from ckcv_ray.runs.run import Job, Work, check_job, compute, find_result
from ckcv_ray.storage.files import locate
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.log import Log
from ckcv_ray.storage.pages import write_new
from ckcv_ray.study.parts import Budget, Race
from ckcv_ray.study.problem import Problem
from ckcv_ray.study.study import Execution, Procedure, Study, format_toml
from ckcv_ray.tables.named import is_named
from ckcv_ray.tables.questions import MAX_SURVEYED, list_row_numbers, survey
from ckcv_ray.tables.task import Task

SERIAL = Execution("serial")
HOUR, LONG = 3600.0, 600.0
MAX_TRIED = 6
MAX_SHOWN_COLUMNS = 40
LONGEST_NAME = 30
WORKERS = "1,8,64,512"
OF_PLAN = {"DATA", "--json", "--rows", "--try", "--workers", "--write-study"}  # not passed on to the run
TRY_FOR = typer.Option(
    None,
    "--try",
    help="Time for a first look at the rows to learn from, such as 30s: shows the best learner there, and "
    "the line that starts the run.",
)


@with_options(execution=options.make_execution, study=options.make_study, chosen=data.choose_columns)
def run(
    source: data.DataSource,
    study: Study,
    chosen: data.Chosen,
    execution: Execution,
    test: str | None = data.TEST,
    out: str | None = options.OUT,
    retry_failed: bool = options.make_flag(
        "--retry-failed", "Retry what failed in a finished run of --certify paper.", "Execution"
    ),
    budget: str | None = make_option("Time that the run may take, such as 10m or 2h."),
    yes: bool = options.make_flag("--yes", "Do not ask before a run of more than an hour.", "Execution"),
    details: DetailsFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Select hyperparameters and k on labelled rows, bound the error, and write a run folder.

    The run folder keeps the models and a certificate that says what is proven about their error. The same
    command resumes an interrupted run, and prints the result of a finished one.

        ckcv run patients.csv --target outcome
        ckcv run patients.csv --target outcome --claim sensitivity,specificity
        ckcv run houses.csv --target price --learner ridge --clip 50
    """
    if budget is not None:
        parse_seconds("budget", budget)  # refuses what is no time
        search = study.search
        fixed = f"search={search.name}" if isinstance(search, Race) else ""
        fixed = "exhaustive" if search.exhaustive else fixed
        fixed = f"effort={study.effort}" if study.effort is not None else fixed
        if fixed:
            raise InputError(f"budget={budget} limits what is computed, and {fixed} fixes it: leave one out")
        study = study.replace(search=Budget.name)
    task, rows = chosen.read(source, study, test)
    folder = out or options.choose_folder(task.source, "run", Problem.of(study, task).run_id)
    work = check_job(Job(study, task, folder, rows))
    if retry_failed:
        reopen(work.problem, folder)
    result = _run(work, folder, execution, yes, budget)
    data.show_result(result, folder, as_json, details)


@with_options(study=options.make_study, chosen=data.choose_columns)
def plan(
    study: Study,
    chosen: data.Chosen,
    ctx: typer.Context,
    source: Annotated[str | None, data.DATA] = None,
    test: str | None = data.TEST,
    try_for: str | None = TRY_FOR,
    rows: int | None = make_option(
        "With --try: rows to look at, such as 1000.", "all to learn from", "Execution"
    ),
    out: str | None = make_option(
        "With --try: folder of the run, beside which the try is recorded.",
        "named after the table",
        check=options.check_run_place,
    ),
    show: str | None = make_option(
        "Show how many rows it takes to prove this, such as sensitivity>=0.9. Without DATA."
    ),
    true: str | None = make_option(
        "True values to assume with --show: 0.95,0.97, or for ppv and npv 0.9:0.99 (both recalls).",
        "some that are better than --show asks for",
    ),
    workers: str = make_option(
        "Numbers of workers to estimate the time for, such as 1,16.", WORKERS, value=WORKERS
    ),
    write_study: Path | None = make_option(
        "TOML file to write, with every option of the study, for --study.", panel="Study"
    ),
    as_json: JsonFlag = False,
) -> None:
    """Estimate the evaluations, memory and time that a study needs, without running it.

    Measures a few fits on your data for about two seconds.
    Takes the data and study options of ckcv run.
    With --show, tells how many rows prove something, without data.

        ckcv plan patients.csv --target outcome --learner svm,forest
        ckcv plan --show "sensitivity>=0.9"
        ckcv plan twonorm:2000:0 --n-splits 500 --workers 1,16
        ckcv plan patients.csv --target outcome --write-study mine.toml
        ckcv plan patients.csv --target outcome --try 30s
    """
    counts, given = parse_folds(workers, "workers"), _read_given(ctx)
    if show is not None:
        return output.show(*show_rows(show, true, study.delta), as_json)
    task, _ = chosen.read(given["DATA"], study, test)
    tried, said = dict[str, Any](), list[str]()
    if try_for is not None:
        study, tried, said = _take_first_look(given, study, task, try_for, rows, out)
    problem = Problem.of(study, task)
    _say_columns(problem, surveyed=False)
    if write_study is not None:
        write_new("write_study", write_study, format_toml(study).encode())
        say(f"study file: {write_study}")
    planned = forecast.plan_problem(problem, counts)
    return output.show(planned.to_json() | tried, "\n".join(_describe_plan(problem, planned) + said), as_json)


def _read_given(ctx: typer.Context) -> dict[str, Any]:
    """Return the values that ``ckcv plan`` was given, by option name, or DATA, if they go together."""
    sources = {p: getattr(ctx.get_parameter_source(str(p.name)), "name", "") for p in ctx.command.params}
    listed = [parameter for parameter, source in sources.items() if source == "COMMANDLINE"]
    given = {"DATA" if p.name == "source" else p.opts[0]: ctx.params[str(p.name)] for p in listed}
    if "--show" in given and (others := given.keys() - {"--show", "--true", "--delta", "--json"}):
        raise InputError(
            "--show takes only --true, --delta and --json, and counts independent rows (judge one row "
            f"of a group, whose rows may be wrong together): leave out {', '.join(sorted(others))}"
        )
    if ("--show" in given) == ("DATA" in given) or ("--true" in given and "--show" not in given):
        raise InputError('give either DATA or --show "sensitivity>=0.9"; --true belongs to --show')
    if "--try" not in given and (of_try := given.keys() & {"--rows", "--out"}):
        raise InputError(f"{', '.join(sorted(of_try))} is for a first look: add --try 30s, or leave it out")
    return given


def _take_first_look(
    given: dict[str, Any], study: Study, task: Task, try_for: str, rows: int | None, out: str | None
) -> tuple[Study, dict[str, Any], list[str]]:
    """Try the learners named, or the usual ones, and record this beside the planned run.

    Returns:
        The study of that run, with the best learner if none was named; and what to say, as values and lines.
    """
    problem, seconds = Problem.of(study, task), parse_seconds("try_for", try_for)
    if problem.held is None:
        raise InputError(
            f"try_for={try_for} looks at rows to learn from, and certify={study.certify} judges every row: "
            "leave it out, or choose certify=holdout"
        )
    named = "--learner" in given or "--study" in given or study.learner != Study().learner
    asked = study if named else study.replace(learner=running.TRIED_LEARNERS)
    say(f"trying {', '.join(asked.learner.by_label)} for up to {duration(seconds)}")
    with data.end_if_interrupted(None) as signals, signals:
        work = running.look(asked, problem, seconds, rows, signals.stop)
        scored = cast(Scored, running.run_work(work, SERIAL))
        best = rank_entries(scored, scored.scores[0])[0][0].learner
        study = study if named else study.replace(learner=best)
        problem = Problem.of(study, task)
        beside = "" if out is None else out[: out.rfind("/") + 1]
        folder = options.number_folder(f"{beside}{running.TRY}{problem.run_id}", scored.run_id)
        running.run_work(work._replace(folder=locate("out", folder)), SERIAL)
    resolved, chosen = problem.study.options(), {} if named else {"--learner": best}
    fixed = {"--holdout-share": resolved["holdout_share"], "--seed": resolved["seed"]}
    words = ["ckcv", "run", given["DATA"]]
    for option, value in (given | chosen | fixed).items():
        for each in value if isinstance(value, list | tuple) else [value]:  # an option may be repeated
            if option not in OF_PLAN:
                words += [option] if each is True else [option, str(each)]
    line = shlex.join(words)
    late = [label for label in asked.learner.by_label if label not in scored.problem.learners]
    values, lines = _describe_try(scored, late, problem)
    lines += [f"recorded in    {folder}", f"start the run  {line}"]
    values |= {"folder": folder, "plans": problem.run_id}
    return study, {"line": line, "try": values}, lines


def _describe_try(scored: Scored, late: list[str], problem: Problem) -> tuple[dict[str, Any], list[str]]:
    """Return what a try has shown and what the run is expected to prove, as values and as lines."""
    score, (claims, constant) = scored.scores[0], running.expect_run(scored, problem)
    ranked = rank_entries(scored, score)
    wrong, error = problem.task.target.word("wrong", "off on average"), make_error(problem)
    means = {entry.name: of.mean for entry, of in ranked[:MAX_TRIED]} | {"a constant": constant}
    shown = {name: f"{error.format_measured(mean / score.largest)} {wrong}" for name, mean in means.items()}
    shown |= dict.fromkeys(late, "has not finished a split")
    width, splits = max(map(len, shown)), pluralize(scored.computed.n_splits, "split")
    best, expected = ranked[0][0].name, list[str]()
    for claim in claims:
        of = "" if claim.label is None else f" of class {claim.label!r}"
        seen = f"if {claim.errors or 0:,} of {claim.rows or 0:,} held-out rows{of} are wrong"
        seen = "or tighter, if rows held out are predicted as well" if problem.has_losses else seen
        sentence = claim.quantity.word(claim.quantity.quoted, claim, problem.task)
        if ranked[0][1].mean >= constant or (claim.gate is not None and not claim.gate.passed):
            sentence = "nothing can be quoted, since it is not proven better than a constant"
        expected.append(f"{sentence} ({format_level(claim.delta)}), {seen}")
    unknown = "unknown: a try counts wrong rows, and the study claims nothing about them"
    values = {"late": late, "constant": constant, "expected": [c.to_json() for c in claims]}
    return scored.to_json() | values, [
        f"tried          {scored.task.n:,} of {pluralize(problem.task.n, 'row')} to learn from, in {splits}",
        *(f"  {name:<{width}}  {figure}" for name, figure in shown.items()),
        f"stands best    {best}, {shown[best]}; no claim: nothing was judged",
        *(f"expected       {each}" for each in dict.fromkeys(expected or [unknown])),
    ]


def _describe_plan(problem: Problem, planned: forecast.Plan) -> list[str]:
    """Return lines that say what was decided where options did not, and what the study takes.

    The last are about the search, and options with which a long run ends sooner or searches more.
    """
    k, held, effort = [size.k for size in problem.sizes], problem.held, planned.effort
    rows = "" if held is None else f": {len(held):,} of {pluralize(problem.all_rows.n, 'row')} held out"
    folds = f"{pluralize(len(k), 'fold size')} from {k[0]} to {k[-1]:,}"
    kind = "exact race" if effort is None else f"rounds within a budget, effort {effort:,}"
    if effort is not None and effort >= problem.n_evaluations:
        kind = f"exact race, since an effort of {effort:,} pays for everything"
    lines = [
        f"certified by   {problem.study.certify}{rows}",
        f"selection      {kind}, {folds}",
        planned.counts,
        *(f"scaling        {sentence}" for sentence in problem.scaling),
        *(f"{name:<15}{text}" for name, text in planned.costs.items()),
    ]
    seconds = planned.seconds_by_workers.get(1, planned.seconds_at_most)
    if effort is not None:
        times = planned.seconds_by_effort.items()
        instead = "".join(f"; --effort {one}: about {duration(time)}" for one, time in times)
        lines.append(f"search         budget, effort {effort:,}{instead}")
    if effort is not None or seconds > LONG:
        few = ",".join(map(str, forecast.FEW_FOLDS))
        options = f"--search race --k {few} --n-splits {forecast.FEW_SPLITS}"
        lines.append(f"few folds      {options}: about {duration(planned.few_folds)}")
    if effort is None and seconds > LONG:
        lines.append(
            "in less time   --budget 10m: rounds within ten minutes, and what they left open is reported"
        )
    return lines + planned.list_needs()


def _run(work: Work, out: str, execution: Execution, yes: bool, budget: str | None) -> Result:
    folder, limited = RunFolder(out), budget is not None
    if budget is not None and (effort := folder.effort(work.problem)) is not None:
        kept = f"{out} has the effort of its study, {pluralize(effort, 'evaluation')}"
        say(f"{kept}: --budget {budget} is for a new run")
        budget = None
    if (result := find_result(work._replace(folder=out))) is not None:  # messages name it as the user did
        say(f"{out} already holds the finished run of this study: showing its result")
        return result
    if caution := folder.files.lock.caution:
        say(f"note: {caution}")
    if folder.files.exists():
        if recorded := Log(folder.files, work.problem).count_rows():
            say(f"resuming: {out} holds {pluralize(recorded, 'record')} of this study")
        data.say_environment(out)
    _say_columns(work.problem)
    with data.end_if_interrupted(out) as signals:
        limit, problem = 0.0 if budget is None else parse_seconds("budget", budget), work.problem
        with signals:
            expected = forecast.estimate(problem, limit, execution.fit_timeout)
        if signals.stop():
            raise KeyboardInterrupt
        if budget is not None:
            everything = expected.expect_selection(problem) + expected.refits
            serial = choose_backend(execution, min(limit, everything)) == "serial"
            workers = 1 if serial else execution.workers or os.cpu_count() or 1
            effort = expected.fit_effort(limit, workers)
            named = pluralize(effort, "evaluation")
            if effort < (least := problem.least_effort):
                needed, settings = expected.expect_rounds(least, workers), problem.n_settings
                raise InputError(
                    f"budget={budget} allows an effort of {named}, and to compare "
                    f"{pluralize(settings, 'setting')} and complete one candidate takes {least:,} or more, "
                    f"about {duration(max(1.0, needed))}: allow more time, or ask for fewer splits (n_splits)"
                )
            work = work._replace(problem=problem.with_effort(effort))
            if effort >= problem.n_evaluations:
                say(f"--budget {budget} allows all {named}: the exact race")
                expected = forecast.estimate(work.problem, fit_timeout=execution.fit_timeout)
            else:
                say(f"--budget {budget} allows an effort of {named}")
                expected = replace(expected, seconds=min(everything, limit * workers))
        backend, seconds = choose_backend(execution, expected.seconds), expected.seconds
        if backend == "serial":
            where = "serial, 1 worker"
        elif execution.workers is None and (address := find_ray_address(execution)) != "local":
            where = f"ray, for 1 worker; shared by all workers of the cluster at {address}"
        else:
            workers = execution.workers or os.cpu_count() or 1
            seconds = forecast.estimate_wall_seconds(seconds, workers)
            where = f"ray, {pluralize(workers, 'worker')}"
        time = duration(seconds) if seconds >= 1 else "less than 1 s"
        time = time if expected.is_known else "unknown, as every fit of the trial failed"
        say(f"estimated time: {time} ({where})")
        if seconds > LONG and not limited:
            say("--budget 10m ends within ten minutes instead; ckcv plan shows what other options take")
        if seconds > HOUR and not yes and sys.stdin.isatty() and console.is_terminal:
            typer.confirm("Continue?", abort=True, err=True)
        with signals, data.Display(console) as display:
            return compute(work._replace(expected=expected, listen=display, stop=signals.stop), execution)


def _say_columns(problem: Problem, surveyed: bool = True) -> None:
    """Say how columns are interpreted, what looks like a mistake, and if much is held out or a class rare.

    Words taken for gaps in a column without other gaps are said where it has subgroups. Columns are listed,
    if ``surveyed``, unless it is a named set or very large. Held-out rows must not be looked at.
    """
    task, every = problem.task, problem.all_rows
    subgroups = () if problem.scores else problem.certification.subgroups
    divided = {parse_subgroup(name).column for name in subgroups}
    words = (found for found in task.gap_words if len(found.rows) > 1 or found.column in divided)
    say(*list_row_numbers(task.row_numbers))
    say(*(f"column {found.column[:60]!r} is empty in {found.describe()}" for found in words))
    looked_at = surveyed and not is_named(task.source) and task.X.size <= MAX_SURVEYED
    if looked_at and (columns := survey(task)):
        shown = columns[:MAX_SHOWN_COLUMNS]
        width = min(max(len("column"), *(len(column.name) for column in shown)), LONGEST_NAME)
        say(f"{'column':<{width}}  {'kind':<8}  {'missing':>8}  {'distinct':>8}")
        for column in shown:
            figures = f"{column.kind:<8}  {column.missing:>8,}  {column.distinct:>8,}"
            say(f"{plain(column.name)[:width]:<{width}}  {figures}  {plain(column.note)}".rstrip())
        if more := len(columns) - len(shown):
            say(f"and {pluralize(more, 'more column')}")
        if every.n > task.n:
            rows = pluralize(task.n, "row")
            say(f"(of the {rows} to learn from: the held-out rows are not inspected)")
    held = every.n_units - task.n_units
    held_out = describe_held_share(held, every.n_units, every.unit)
    say(*map(plain, (*held_out, *forecast.describe_rare_classes(every, held))))


@with_options(execution=options.make_execution, study=options.make_procedure, chosen=data.choose_columns)
def evaluate(
    source: data.DataSource,
    study: Procedure,
    chosen: data.Chosen,
    execution: Execution,
    out: str | None = options.OUT,
    retry_failed: bool = options.make_flag(
        "--retry-failed", "Compute again what failed in a finished run.", "Execution"
    ),
    as_json: JsonFlag = False,
) -> None:
    """Score learners by a usual procedure of cross validation, without a certificate.

    Each learner is fitted and scored on every split of the resampling; several learners are compared on the
    same splits. A learner is taken with its usual values (an SVM: C = 1, gamma = 1 / number of columns), or
    at every value that you name. A nested resampling selects among its values inside each training set.
    With --refit best the best setting of all is fitted on all rows, for ckcv predict.
    Learners of numbers (ridge, forest_regressor and others) predict a column of numbers.

    Run the same command again to resume an interrupted run, or to print the scores of a finished one.

        ckcv evaluate patients.csv --target outcome --learner forest
        ckcv evaluate patients.csv --target outcome --resampling loo --out runs/loo
        ckcv evaluate patients.csv --target outcome --resampling nested:5:5
        ckcv evaluate patients.csv --target outcome --refit best --out runs/model
        ckcv evaluate houses.csv --target price --learner ridge --measure rmse,r2
    """
    task, _ = chosen.read(source, study)
    problem = Problem.of(study, task)
    folder = out or options.choose_folder(task.source, "scores", problem.run_id)
    is_finished(problem, RunFolder(folder))  # refuses a folder with something else before columns are shown
    data.say_environment(folder)
    _say_columns(problem)
    with data.end_if_interrupted(folder) as signals, signals, data.Display(console) as display:
        result = running.assess(study, task, folder, execution, display, signals.stop, retry_failed)
    data.show_result(result, folder, as_json)

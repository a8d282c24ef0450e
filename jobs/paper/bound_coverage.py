"""Coverage of the bounds: how often each fails, and how loose it is, on learning sets with a known truth.

Every certification is made on many learning sets of each setting, a source and a number of rows
(``jobs/paper/sources.py``): generated data, and sources made to break the bounds. The true error of what a
claim is about is computed exactly where the source has few patterns, else on 20 000 new ones. Settings that
violate the assumptions are marked; in all others no proven bound may fail significantly more often than its
delta: a one-sided exact binomial test at level 0.01 divided by the number of such bounds and settings.

The numbers of a run depend on its setting and its number alone. Runs are appended to ``--out`` as they
finish, one line of JSON each; those already there are not repeated. Files of several machines or settings can
be concatenated.

    python -m jobs.paper.bound_coverage --runs 500
    python -m jobs.paper.bound_coverage --settings ringnorm:200,eight:200 --runs 20 --json
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any

import typer
from scipy.stats import binomtest

from ckcv_ray import clopper_pearson
from jobs.paper.sources import DELTA, GENERATED, HOSTILE, SOURCES, Setting
from jobs.paper.trials import BY_CLASS, CLAIMS, CUT, L_EE, OF_CLASS, trial

LEVEL = 0.01
ROUNDING = 1e-12  # of a truth, a sum of many weights
SECONDS = 20.0  # between lines of progress
VERSION = 3  # of the bounds of claims: runs of others are not continued
Run = dict[str, Any]
Runs = dict[tuple[str, int], Run]
Cell = dict[str, Any]
Summaries = dict[Setting, dict[str, Cell]]
COLUMNS = {  # two lines above the column of each claim
    L_EE: ("L_EE", "not proven"),
    "paper": ("paper", "F*"),
    "holdout half refit": ("holdout", "half, refit"),
    "holdout half refit Stevens": ("holdout", "half, Stevens"),
    "holdout half sensitivity": ("holdout half", "sensitivity"),
    "holdout half specificity": ("holdout half", "specificity"),
    "holdout half by class": ("holdout half", "both"),
    "holdout half cut-off sensitivity": ("cut-off", "sensitivity"),
    "holdout half cut-off specificity": ("cut-off", "specificity"),
    "holdout half cut-off both": ("cut-off", "both"),
}


def chosen(text: str) -> list[Setting]:
    """Read settings such as ringnorm:200,eight:200."""
    settings = []
    for part in text.split(","):
        source, _, n = part.partition(":")
        if source not in SOURCES or not (n.isascii() and n.isdigit()):
            raise typer.BadParameter(f"{part!r} is not SOURCE:ROWS with one of {', '.join(SOURCES)}")
        settings.append(Setting(source, int(n)))
    return settings


def stored(file: Path | None) -> Runs:
    """Read the runs in a file, leaving out lines that were not finished."""
    runs: Runs = {}
    for line in file.read_text().splitlines() if file is not None and file.exists() else ():
        try:
            run = json.loads(line)
        except ValueError:
            continue
        if run.get("version") == VERSION:
            runs[run["setting"], run["run"]] = run
    return runs


def timed(setting: Setting, run: int) -> Run:
    """Compute a run, and its seconds of computing, whatever else the machine does."""
    start = process_time()
    claims = trial(setting, run)
    seconds = process_time() - start
    return {"setting": str(setting), "run": run, "version": VERSION, "seconds": seconds, "claims": claims}


def computed(missing: list[tuple[Setting, int]], workers: int) -> Iterator[Run]:
    """Yield runs as they finish, computed in ``workers`` processes, and report the progress."""
    start = shown = perf_counter()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            futures = [pool.submit(timed, *one) for one in missing]
            for done, future in enumerate(as_completed(futures), start=1):
                yield future.result()
                now = perf_counter()
                if now - shown > SECONDS or done == len(futures):
                    left = (now - start) / done * (len(futures) - done)
                    typer.echo(f"{done} of {len(futures)} runs, about {left / 60:.0f} min left", err=True)
                    shown = now
        finally:
            pool.shutdown(cancel_futures=True)


def collected(settings: list[Setting], numbers: range, workers: int, out: Path | None) -> Runs:
    """Return all runs, computing and storing those that the file lacks.

    Run 0 of every setting comes first, then run 1, so that the time spent shows the time left.
    """
    runs = stored(out)
    missing = [(one, i) for i, one in product(numbers, settings) if (str(one), i) not in runs]
    if not missing:
        return runs
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a") as file:
            file.write("\n" if out.stat().st_size else "")  # an unfinished last line stays apart
    for run in computed(missing, workers):
        runs[run["setting"], run["run"]] = run
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps(run) + "\n")
    return runs


def cell(claim: str, pairs: list[tuple[float, float]], n_runs: int) -> Cell:
    """Summarize the bounds and truths of a claim in a setting, in percent.

    Args:
        claim: its name.
        pairs: bound and truth of each run in which the claim was made.
        n_runs: runs in all; where a study was refused, nothing failed.
    """
    bound, truth = (100 * sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    failures = sum(true > above + ROUNDING for above, true in pairs)
    delta = DELTA / 2 if claim in (*OF_CLASS, *CUT) else DELTA  # the two recalls share it
    return {
        "bound": bound,
        "truth": truth,
        "slack": bound - truth,
        "failures": failures,
        "runs": n_runs,
        "made": len(pairs),
        "at_most": 100 * clopper_pearson(failures, n_runs, 0.05),
        "p": float(binomtest(failures, n_runs, delta, alternative="greater").pvalue),
    }


def summary(runs: list[Run]) -> dict[str, Cell]:
    """Summarize the runs of a setting by claim."""
    cells = {}
    for claim in CLAIMS:
        if pairs := [run["claims"][claim] for run in runs if claim in run["claims"]]:
            cells[claim] = cell(claim, pairs, len(runs))
    return cells


def held_to_delta(setting: Setting, claim: str) -> bool:
    """Return whether a bound is proven in a setting."""
    holds = SOURCES[setting.source].holds
    return claim != L_EE and (holds == "all" or (holds == "by class" and claim in BY_CLASS))


def rejected(summaries: Summaries) -> list[tuple[Setting, str]]:
    """Return the proven bounds that failed significantly more often than their delta."""
    proven = [(s, claim) for s, cells in summaries.items() for claim in cells if held_to_delta(s, claim)]
    return [(s, claim) for s, claim in proven if summaries[s][claim]["p"] < LEVEL / len(proven)]


def table(summaries: Summaries, show: Callable[[Cell], str], title: str) -> Iterator[str]:
    """Format a table with a line for each setting and a column for each claim."""
    claims = [claim for claim in COLUMNS if any(claim in cells for cells in summaries.values())]
    yield title
    for part, first in enumerate(("", "setting")):
        yield (f"{first:<18}" + "".join(f"{COLUMNS[claim][part]:>14}" for claim in claims)).rstrip()
    for one, cells in summaries.items():
        shown = (show(cells[claim]) if claim in cells else "" for claim in claims)
        yield (f"{label(one):<18}" + "".join(f"{text:>14}" for text in shown)).rstrip()


def label(setting: Setting) -> str:
    """Return the name of a setting, with a star if it violates an assumption."""
    return f"{setting}{'' if SOURCES[setting.source].holds == 'all' else ' *'}"


def failed(one: Cell) -> str:
    """Format the number of failures, and the upper limit of their frequency."""
    return f"{one['failures']} ({one['at_most']:.1f})"


def closeness(one: Cell) -> str:
    """Format the mean bound, and how many times the mean truth it is."""
    return (
        f"{one['bound']:.1f} ({one['bound'] / one['truth']:.2f})" if one["truth"] else f"{one['bound']:.1f}"
    )


def means(summaries: Summaries) -> dict[str, Cell]:
    """Average bound, truth and slack of each claim over settings."""
    averaged = {}
    for claim in CLAIMS:
        if not (cells := [one[claim] for one in summaries.values() if claim in one]):
            continue
        names = ("bound", "truth", "slack")
        averaged[claim] = {name: sum(cell[name] for cell in cells) / len(cells) for name in names}
    return averaged


def averages(summaries: Summaries) -> Iterator[str]:
    """Format the means over the generated data with 200 and 400 rows, if they are complete."""
    settings = [one for one in GENERATED if one.n >= 200]
    if not all(one in summaries for one in settings):
        return
    yield "\nMeans over the generated data with 200 and 400 rows, %: bound, truth, slack"
    for claim, one in means({one: summaries[one] for one in settings}).items():
        yield f"{claim:<38}{one['bound']:6.1f}{one['truth']:7.1f}{one['slack']:7.1f}"


def report(summaries: Summaries, runs: int) -> Iterator[str]:
    """Format all results. A star: the setting violates an assumption."""
    limits = f"Failures in {runs} runs, and a one-sided 95 % limit of their frequency in %"
    yield from table(summaries, failed, limits)
    yield from table(summaries, closeness, "\nMean bound in %, and how many times the mean truth it is")
    yield from averages(summaries)


def main(
    settings: Annotated[str, typer.Option(help="Settings to use: SOURCE:ROWS,...")] = ",".join(
        map(str, (*GENERATED, *HOSTILE))
    ),
    runs: Annotated[int, typer.Option(min=1, help="Learning sets for each setting.")] = 500,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = cpu_count() or 1,
    first: Annotated[
        int, typer.Option(min=0, help="Number of the first one; those before are left out.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="File of finished runs, continued.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print, for each setting and claim, how often the bound fails and how loose it is."""
    asked = chosen(settings)
    if first >= runs:
        raise typer.BadParameter(f"--first {first}: the number of the last run is {runs - 1}")
    numbers = range(first, runs)
    done = collected(asked, numbers, workers, out)
    by_setting = {one: [done[str(one), i] for i in numbers] for one in asked}
    summaries = {one: summary(rows) for one, rows in by_setting.items()}
    seconds = {str(one): sum(row["seconds"] for row in rows) / len(rows) for one, rows in by_setting.items()}
    failures = rejected(summaries)
    if as_json:
        named = {str(one): cells for one, cells in summaries.items()}
        refused = [[str(one), claim] for one, claim in failures]
        print(json.dumps({"settings": named, "seconds": seconds, "rejected": refused}))
    else:
        print(*report(summaries, len(numbers)), f"\n{verdict(failures)}", sep="\n")
    if failures:
        raise typer.Exit(1)


def verdict(failures: list[tuple[Setting, str]]) -> str:
    """Say whether all proven bounds held."""
    if not failures:
        return "No proven bound failed significantly more often than in 5 % of the runs."
    listed = ", ".join(f"{claim} on {setting}" for setting, claim in failures)
    return f"Failed significantly more often than in 5 % of the runs: {listed}."


if __name__ == "__main__":
    typer.run(main)

"""Coverage of the bounds: how often each fails, and how loose it is, on learning sets with a known truth.

Every certification is made on many learning sets of each setting, a source and a number of rows
(``jobs/paper/sources.py``): generated data, and sources made to break the bounds. The true error of what a
claim is about is computed exactly where the source has few patterns, else on 20 000 new ones. Settings that
violate the assumptions are marked; in all others no proven bound may fail significantly more often than its
delta.

The numbers of a run depend only on its setting and its number. Runs are appended to ``--out`` as they
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
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from ckcv_ray import clopper_pearson
from jobs.frame import AsJson
from jobs.paper.cells import Cell, show_failing
from jobs.paper.sources import DELTA, GENERATED, HOSTILE, SOURCES, Setting
from jobs.paper.trials import BY_CLASS, CLAIMS, CUT, L_EE, OF_CLASS, trial

ROUNDING = 1e-12  # in a truth, a sum of many weights
VERSION = 3  # of the claims' bounds: runs of other versions are not continued
Run = dict[str, Any]
Runs = dict[tuple[str, int], Run]
Summaries = dict[Setting, dict[str, Cell]]
COLUMNS = {  # two heading lines for the column of each claim
    L_EE: ("L_EE", "not proven"),
    "paper": ("paper", "F*"),
    "holdout half refit": ("holdout", "half, refit"),
    "judge": ("holdout half", "as a file"),
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


def compute_run(setting: Setting, run: int) -> Run:
    """Compute a run."""
    return {"setting": str(setting), "run": run, "version": VERSION, "claims": trial(setting, run)}


def computed(missing: list[tuple[Setting, int]], workers: int) -> Iterator[Run]:
    """Yield runs as they finish, computed in ``workers`` processes, and report the progress."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            finished = as_completed([pool.submit(compute_run, *one) for one in missing])
            for future in track(finished, "runs", len(missing), console=Console(stderr=True)):
                yield future.result()
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


def count(setting: Setting, claim: str, runs: list[Run]) -> Cell | None:
    """Count how often the bound of a claim fails in a setting; None if no run has the claim.

    Where a study was refused, nothing failed. Mean bound and truth are in percent.
    """
    if not (pairs := [run["claims"][claim] for run in runs if claim in run["claims"]]):
        return None
    bound, truth = (100 * sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    failures = sum(true > above + ROUNDING for above, true in pairs)
    holds = SOURCES[setting.source].holds
    proven = claim != L_EE and (holds == "all" or (holds == "by class" and claim in BY_CLASS))
    delta = DELTA / 2 if claim in (*OF_CLASS, *CUT) else DELTA  # the two recalls share it
    figures = {"bound": bound, "truth": truth}
    return Cell(f"{claim} on {setting}", failures, len(runs), delta if proven else 1.0, figures)


def summarize(setting: Setting, runs: list[Run]) -> dict[str, Cell]:
    """Count the failures in a setting by claim."""
    cells = {claim: count(setting, claim, runs) for claim in CLAIMS}
    return {claim: cell for claim, cell in cells.items() if cell is not None}


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
    return f"{one.false} ({100 * clopper_pearson(one.false, one.runs, 0.05):.1f})"


def closeness(one: Cell) -> str:
    """Format the mean bound, and how many times the mean truth it is."""
    bound, truth = one.figures.values()
    return f"{bound:.1f} ({bound / truth:.2f})" if truth else f"{bound:.1f}"


def averages(summaries: Summaries) -> Iterator[str]:
    """Format the means over the generated data with 200 and 400 rows, if they are complete."""
    settings = [one for one in GENERATED if one.n >= 200]
    if not all(one in summaries for one in settings):
        return
    yield "\nMeans over the generated data with 200 and 400 rows, %: bound, truth, slack"
    for claim in CLAIMS:
        cells = [summaries[one][claim] for one in settings if claim in summaries[one]]
        bound, truth = (sum(cell.figures[name] for cell in cells) / len(cells) for name in ("bound", "truth"))
        yield f"{claim:<38}{bound:6.1f}{truth:7.1f}{bound - truth:7.1f}"


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
    out: Annotated[Path | None, typer.Option(help="File of finished runs, continued.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print, for each setting and claim, how often the bound fails and how loose it is."""
    asked = chosen(settings)
    numbers = range(runs)
    done = collected(asked, numbers, workers, out)
    summaries = {one: summarize(one, [done[str(one), i] for i in numbers]) for one in asked}
    if not as_json:
        print(*report(summaries, len(numbers)), "", sep="\n")
    show_failing([cell for cells in summaries.values() for cell in cells.values()], as_json)


if __name__ == "__main__":
    typer.run(main)

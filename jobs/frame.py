"""What jobs share: sets of the archive, timing in turns, options, and figures as lines or as JSON.

A shared processor changes its speed by a third from one tenth of a second to the next, even in CPU time (the
other thread of the core, the clock frequency). Two pieces of work timed one after the other differ by that
much; cut into alternating steps of a few milliseconds (``take_turns``), they differ by 2 %.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import geometric_mean, median
from time import perf_counter
from typing import Annotated, Any

import typer

SETS = (
    "banana,breast_cancer,diabetis,flare_solar,german,heart,image,ringnorm,splice,thyroid,titanic,twonorm,"
    "waveform"
)
STANDARDISED = ("splice", "flare_solar")  # not standardised in the archive

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Repeats = Annotated[int, typer.Option(min=1, help="Rounds; medians are printed.")]
Sets = Annotated[str, typer.Option(help="Sets of the archive or sources: a,b,twonorm:2000:0.")]

Clock = Callable[[], float]
Work = Callable[[], Iterator[Any]]  # one pass over the work, cut into steps
Row = dict[str, Any]


def name_source(name: str) -> str:
    """Return the source of a set of the archive (realization 1), or a source unchanged."""
    return name if ":" in name else f"ida:{name}:1"


def choose_scale(name: str) -> str:
    """Return how the inputs of a set are scaled."""
    return "standard" if name in STANDARDISED else "none"


def show(rows: Iterable[tuple[str, Row]], line: str, ratios: Sequence[str], as_json: bool) -> dict[str, Row]:
    """Print each row as it comes, and the geometric means of these ratios, or all as JSON; return them.

    Args:
        rows: the rows, each with its name.
        line: format of a printed row, with its values by name, and ``name``.
        ratios: names of the values that are ratios.
        as_json: see above.
    """
    found: dict[str, Row] = {}
    for name, row in rows:
        found[name] = row
        if not as_json:
            print(line.format(name=name, **row), flush=True)
    means = {f"geomean_{ratio}": geometric_mean(row[ratio] for row in found.values()) for ratio in ratios}
    if as_json:
        print(json.dumps({"rows": found, **means}))
    elif means:
        print("  ".join(f"{name} {value:.3g}" for name, value in means.items()))
    return found


def time_rounds(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Call each in turn, several times; return its median seconds and its last result."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    found: dict[str, Any] = {}
    for _ in range(repeats):
        for name, call in calls.items():
            start = perf_counter()
            found[name] = call()
            seconds[name].append(perf_counter() - start)
    return {name: (median(times), found[name]) for name, times in seconds.items()}


def name_agreement(same: Iterable[bool]) -> str:
    """Return whether all are the same, in a word."""
    return "agree" if all(same) else "DIFFER"


def in_one_step(call: Callable[[], object]) -> Work:
    """Return work of one step, for what cannot be divided."""

    def steps() -> Iterator[None]:
        call()
        yield

    return steps


def take_turns(works: Sequence[Work], clock: Clock) -> list[float]:
    """Time one pass of each piece of work, in seconds.

    The next step is always of the work with the least time so far, until each has finished a pass;
    passes already started are finished.
    """
    timed = [_Timed(work, clock) for work in works]
    while waiting := [one for one in timed if one.under_way or not all(each.passes for each in timed)]:
        min(waiting, key=lambda one: one.spent).step()
    return [one.spent / one.passes for one in timed]


class _Timed:
    def __init__(self, work: Work, clock: Clock) -> None:
        self.work, self.clock = work, clock
        self.steps: Iterator[Any] = iter(())
        self.under_way, self.spent, self.passes = False, 0.0, 0

    def step(self) -> None:
        start = self.clock()
        if not self.under_way:
            self.steps = self.work()
        self.under_way = next(self.steps, self) is not self
        self.spent += self.clock() - start
        self.passes += not self.under_way

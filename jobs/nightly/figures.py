"""The figures of a night: fixed studies, small to large, and the benchmarks, each against scikit-learn's SVC.

A ratio is the baseline's time divided by ours. Where a benchmark has no baseline for the same work, the
baseline is a yardstick: ``SVC`` on one fixed set of fits. The two alternate in small steps, so
that a machine that is slow, for a night or a tenth of a second, gives about the same ratios. What runs in one
process is timed by CPU time, so that other load matters little; complete runs on Ray by the wall clock, and
these need a machine without other load.

An exact figure (winner, bound, count) is a pure function of the study; what depends on the run, such as the
number of evaluations computed, is only shown.
"""

import hashlib
import json
import traceback
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from ckcv_ray import Certified, Execution, Job, Study, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.engine.backend import session
from ckcv_ray.runs.run import run_job
from jobs.benchmarks import algorithm as bench_algorithm
from jobs.benchmarks import solver as bench_solver
from jobs.frame import Clock, in_one_step, take_turns

WORKERS = 2
T = TypeVar("T")
Key = tuple[str, str, str]
SMALL: dict[str, Any] = {"C": (0.1, 1.0, 10.0), "gamma": (0.01, 0.1), "k": (3, 4, 5), "n_splits": 4}
HOLDOUT = {"certify": "holdout", "holdout_share": 0.33, "holdout_bound": "stevens"}


class Role(StrEnum):
    """What a figure of a night is compared with."""

    RATIO = "ratio"  # with the median of the nights before; more is faster
    EXACT = "exact"  # with the last night
    SHOWN = "shown"  # with nothing
    FAILED = "failed"  # with nothing: the traceback that ended the benchmark


class Figure(NamedTuple):
    """One figure of one night: its benchmark, its data set, the quantity, and the value."""

    group: str
    case: str
    name: str
    role: Role
    value: float | None  # if it is a number
    text: str  # as JSON, to the last bit

    @property
    def key(self) -> Key:
        """Identity of the quantity: group, case and name."""
        return self.group, self.case, self.name

    @property
    def label(self) -> str:
        """The key as text."""
        return ", ".join(part for part in self.key if part)


class Plan(NamedTuple):
    """A fixed, named set of cases; a history holds nights of one plan."""

    yardstick: str
    studies: tuple[tuple[str, dict[str, Any]], ...]
    solver: tuple[str, ...]
    algorithm: tuple[str, ...]
    overhead: tuple[str, ...]
    splits: int = 20


PLANS = {
    "generators": Plan(
        yardstick="twonorm:400:0",
        studies=(
            ("twonorm:100:0", {}),
            ("ringnorm:400:0", {}),
            ("waveform:400:0", HOLDOUT),
            ("waveform:400:0", {}),
            ("twonorm:1000:0", {}),
            ("waveform:1000:0", {}),
        ),
        solver=("twonorm:400:0", "waveform:400:0", "ringnorm:1000:0"),
        algorithm=("twonorm:200:0", "waveform:200:0"),
        overhead=("ringnorm:400:0", "waveform:400:0", "twonorm:1000:0"),
    ),
    "tiny": Plan(
        yardstick="twonorm:40:0",
        studies=(("twonorm:60:0", SMALL), ("waveform:60:0", SMALL | {"certify": "holdout"})),
        solver=("twonorm:60:0",),
        algorithm=("twonorm:30:0",),
        overhead=("twonorm:60:0",),
        splits=2,
    ),
}


def measure(plan: Plan, groups: Iterable[str], repeats: int) -> list[Figure]:
    """Measure these groups; a group that fails adds its traceback as a figure and affects no other."""
    figures: list[Figure] = []
    for group in groups:
        try:
            figures += GROUPS[group](plan, repeats)
        except Exception:
            reason = json.dumps(traceback.format_exc())
            figures.append(Figure(group, "", "traceback", Role.FAILED, None, reason))
    return figures


def studies(plan: Plan, repeats: int) -> Iterator[Figure]:
    """Time complete studies in one process."""
    for source, options in plan.studies:
        study, (task, _) = Study.paper(**{"scale": "none", **options}), read_task(source)
        one = partial(run_job, Job(study, task), Execution("serial"))
        with one_thread():
            speed, seconds, result = against(plan.yardstick, one, repeats, process_time)
        case = source if study.certify == "paper" else f"{source} {study.certify}"
        yield from _figures("studies", case, {"speed": speed}, {"seconds": seconds}, answers(result))


def answers(result: Certified) -> dict[str, Any]:
    """Return what depends on study and data alone."""
    evaluations, table, sink = result.execution["evaluations"], result.candidates, pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
        writer.write_table(table.replace_schema_metadata(None).combine_chunks())
    return {
        "run_id": result.run_id,
        "winner": [*result.setting.values(), result.k],
        "L_MS": result.certificate.l_ms,
        "L_EE": result.l_ee,
        "proven": result.proven,
        "errors by split": list(result.certificate.errors),
        "evaluations planned": evaluations["planned"],
        "evaluations failed": evaluations["failed"],
        "table of candidates": hashlib.sha256(sink.getvalue()).hexdigest()[:16],
    }


def solver(plan: Plan, repeats: int) -> Iterator[Figure]:
    """Run ``benchmarks/solver``: fits against ``SVC`` on X and precomputed, and LIBSVM's answers."""
    for case in plan.solver:
        with one_thread():
            row = bench_solver.bench(case, repeats, process_time)
        yield from _figures(
            "solver",
            case,
            {"speed, SVC on X": row["ratio_svc"], "speed, SVC precomputed": row["ratio_precomputed"]},
            {"ms per fit": row["ms_per_fit"], "slowest fit, ms": row["max_ms"], "KKT": row["worst_kkt"]},
            {"iterations": row["n_iter"], "differing decisions": row["differing"], "near ones": row["near"]},
        )


def algorithm(plan: Plan, repeats: int) -> Iterator[Figure]:
    """Run ``benchmarks/algorithm``: Algorithm 1 against the plain loop."""
    for case in plan.algorithm:
        with one_thread():
            row = bench_algorithm.bench(case, repeats, process_time)
        bounds = {"L_MS": row["l_ms"], "L_EE": row["l_ee"]}
        answer = {"winner": row["candidate"], **bounds, "as the plain loop": row["same"]}
        yield from _figures("algorithm", case, {"speed": row["ratio"]}, {"seconds": row["seconds"]}, answer)


def overhead(plan: Plan, repeats: int) -> Iterator[Figure]:
    """Run ``benchmarks/overhead``: complete studies on two Ray workers."""
    from jobs.benchmarks import overhead as bench_overhead  # ray is slow to import, and only needed here

    with session(Execution("ray", WORKERS)):
        for case in plan.overhead:
            one = partial(bench_overhead.bench, case, WORKERS, plan.splits)
            with one_thread():
                speed, seconds, row = against(plan.yardstick, one, repeats, perf_counter)
            shares = {"busy share": row["busy_share"], "solver share": row["solver_share"]}
            shown = {"seconds": seconds, **shares, "worker MiB": row["worker_mib"]}
            exact = {"winner": row["candidate"]}
            exact |= {f"evaluations {of}": row[of] for of in ("planned", "failed")}
            yield from _figures("overhead", case, {"speed": speed}, shown, exact)


GROUPS: dict[str, Callable[[Plan, int], Iterable[Figure]]] = {
    one.__name__: one for one in (studies, solver, algorithm, overhead)
}


def against(yardstick: str, ours: Callable[[], T], repeats: int, clock: Clock) -> tuple[float, float, T]:
    """Time alternating rounds of ours and of the yardstick.

    Returns:
        The yardstick's time divided by ours, and our seconds, as medians over the rounds; and the first
        result of ours.
    """
    baseline = partial(bench_solver.svc, bench_solver.load(yardstick))
    result = ours()  # compiles, or reads the cache
    rounds = [take_turns((in_one_step(ours), baseline), clock) for _ in range(repeats)]
    return median(theirs / mine for mine, theirs in rounds), median(mine for mine, _ in rounds), result


def _figures(
    group: str, case: str, ratios: dict[str, float], shown: dict[str, float], exact: dict[str, Any]
) -> Iterator[Figure]:
    for role, values in ((Role.RATIO, ratios), (Role.SHOWN, shown), (Role.EXACT, exact)):
        for name, value in values.items():
            number = float(value) if isinstance(value, int | float) else None
            yield Figure(group, case, name, role, number, json.dumps(value))

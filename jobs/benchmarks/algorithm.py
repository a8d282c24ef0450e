"""Benchmark of Algorithm 1 in one process against the paper's plain loop with scikit-learn's SVC.

7 C x 7 gamma, k = 3, 4, 5, 10, ten splits: 3 920 fits for the plain loop, which fits every candidate on
TR and again on TR + MS. Ours is ``run_job`` with the serial backend: the same splits, all shortcuts, the
refits, the certificate. The two are timed in small alternating steps; medians are printed. ``same``: winner,
L_MS and L_EE are equal.

    python -m jobs.benchmarks.algorithm --sets banana,heart --repeats 5
"""

from collections.abc import Callable, Iterator
from math import isclose
from statistics import median
from time import perf_counter

import typer

from ckcv_ray import Execution, Job, Study, Task, read_task
from ckcv_ray.core.process import one_thread
from ckcv_ray.runs.run import run_job
from jobs.benchmarks.baselines import Answer, plain_loop
from jobs.frame import AsJson, Clock, Repeats, Row, Sets, Work, name_source, show, take_turns

LINE = (
    "{name:<10}{seconds:8.3f} s  plain {seconds_plain:7.2f} s  {ratio:5.0f} x  same {same}  "
    "C {candidate[0]:g}, gamma {candidate[1]:g}, k {candidate[2]}  L_MS {l_ms:.4f}  L_EE {l_ee:.4f}"
)


def ours(study: Study, task: Task) -> Iterator[Answer]:
    """Run Algorithm 1 with this package, in one step."""
    result = run_job(Job(study, task), Execution("serial"))
    setting, c = result.setting, result.certificate
    yield Answer((setting["C"], setting["gamma"], result.k), c.l_ms, result.l_ee)


def bench(name: str, repeats: int, clock: Clock = perf_counter) -> Row:
    """Time interleaved rounds on realization 1 of one set, or on a source such as waveform:200:0."""
    task, _ = read_task(name_source(name))
    study = Study.paper(C="log:-2:4:7", gamma="log:-4:1:7", k=(3, 4, 5, 10), n_splits=10, scale="none")
    answers: dict[str, Answer] = {}

    def keep(steps: Callable[[Study, Task], Iterator[Answer]]) -> Work:
        def work() -> Iterator[None]:
            for answer in steps(study, task):
                answers[steps.__name__] = answer
                yield

        return work

    package, plain = keep(ours), keep(plain_loop)
    list(package())  # compile, or read the cache
    rounds = [take_turns((package, plain), clock) for _ in range(repeats)]
    mine, theirs = answers["ours"], answers["plain_loop"]
    bounds = zip(mine[1:], theirs[1:], strict=True)
    return {
        "seconds": median(by_us for by_us, _ in rounds),
        "seconds_plain": median(by_loop for _, by_loop in rounds),
        "ratio": median(by_loop / by_us for by_us, by_loop in rounds),
        "same": mine.winner == theirs.winner and all(isclose(*pair) for pair in bounds),
        "candidate": list(mine.winner),
        "l_ms": mine.l_ms,
        "l_ee": mine.l_ee,
    }


def main(sets: Sets = "twonorm,banana,heart,german", repeats: Repeats = 5, as_json: AsJson = False) -> None:
    """Print one line for each set, and the geometric mean of the ratios."""
    with one_thread():
        show(((name, bench(name, repeats)) for name in sets.split(",")), LINE, ["ratio"], as_json)


if __name__ == "__main__":
    typer.run(main)

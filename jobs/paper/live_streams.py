"""Watched streams: how often alarms and limits are false, and how soon a rising risk is found.

Streams of losses are drawn, with known risks, and judged as ``ckcv watch`` judges them, against a
certified bound of 5 % that rests on 10 errors in 300 rows, each label a batch of its own:

    quiet         the risk equals the bound, in every label: each alarm is false
    below         the risk changes from label to label, at random, between half of the bound and the bound
    groups        shares of wrong rows of groups, Beta(1, 19) with a mean equal to the bound: likewise false
    at once       a risk of 10 % from the first label
    late          the bound for 2 000 labels, then 10 %
    near          a risk of 6.5 % from the first label

False alarms, and limits that ever exclude a risk that does not change, are held to delta. The numbers
of a stream depend only on its scene and its number.

    python -m jobs.paper.live_streams --streams 10000 --labels 5000
    python -m jobs.paper.live_streams --scenes quiet,late --streams 200 --json
"""

from collections.abc import Callable, Iterator
from math import log
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from ckcv_ray.core.bounds.betting import log_evidence, make_prior, trace_alarm
from jobs.frame import AsJson
from jobs.paper.cells import Cell, show_cells

BOUND = DELTA = 0.05
PRIOR = make_prior(10 / 300, 300)
BLOCK = 50  # streams at a time
SEED = 2026
RISEN, QUIET_LABELS = 0.1, 2000
Losses = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Losses]


class Scene(NamedTuple):
    """A source of streams."""

    draw: Draw  # of streams and labels: their losses, (streams, labels)
    risk: float | None  # the mean loss, if it is the same for every label
    rises: int | None  # labels before the risk is above the bound; None if it never is


def draw_constant(risk: float) -> Draw:
    """Return a source of wrong rows, each with this probability."""
    return lambda rng, streams, labels: (rng.random((streams, labels)) < risk).astype(np.float64)


def draw_below(rng: np.random.Generator, streams: int, labels: int) -> Losses:
    """Draw wrong rows with probabilities between half of the bound and the bound."""
    risks = BOUND * (1 + rng.random((streams, labels))) / 2
    return (rng.random((streams, labels)) < risks).astype(np.float64)


def draw_groups(rng: np.random.Generator, streams: int, labels: int) -> Losses:
    """Draw shares of wrong rows of groups."""
    return rng.beta(1.0, 1 / BOUND - 1, (streams, labels))


def draw_late(rng: np.random.Generator, streams: int, labels: int) -> Losses:
    """Draw wrong rows whose probability rises after a while."""
    risks = np.where(np.arange(labels) < QUIET_LABELS, BOUND, RISEN)
    return (rng.random((streams, labels)) < risks).astype(np.float64)


SCENES = {
    "quiet": Scene(draw_constant(BOUND), BOUND, None),
    "below": Scene(draw_below, None, None),
    "groups": Scene(draw_groups, BOUND, None),
    "at once": Scene(draw_constant(RISEN), RISEN, 0),
    "late": Scene(draw_late, None, QUIET_LABELS),
    "near": Scene(draw_constant(1.3 * BOUND), 1.3 * BOUND, 0),
}


def judge_block(name: str, number: int, labels: int) -> tuple[Losses, NDArray[np.bool_]]:
    """Judge the streams of a block.

    Returns:
        the label at which each raises an alarm, from 1, infinite for those that raise none; and whether the
        limits of each ever excluded its risk, where that does not change.
    """
    scene = SCENES[name]
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(list(SCENES).index(name), number)))
    losses = scene.draw(rng, BLOCK, labels)
    raised = trace_alarm(losses, BOUND, [1] * labels).log_evidence >= log(1 / DELTA)
    first = np.where(raised.any(axis=1), raised.argmax(axis=1) + 1.0, np.inf)
    excluded = np.zeros(BLOCK, np.bool_)
    if scene.risk is not None:
        against = log_evidence(np.cumsum(losses, axis=1), np.arange(1, labels + 1), scene.risk, PRIOR)
        excluded = np.any(against >= log(1 / DELTA), axis=1)
    return first, excluded


def judge_scene(name: str, streams: int, labels: int) -> Iterator[Cell]:
    """Judge the streams of a scene; yield false alarms, limits that failed, and when alarms came."""
    blocks = [judge_block(name, number, labels) for number in range(-(-streams // BLOCK))]
    first, excluded = (np.concatenate(parts)[:streams] for parts in zip(*blocks, strict=True))
    scene = SCENES[name]
    if scene.rises != 0:
        early = first <= (labels if scene.rises is None else scene.rises)
        yield Cell(f"{name}: alarms", int(early.sum()), streams, DELTA, {})
    if scene.risk is not None:
        yield Cell(f"{name}: limits", int(excluded.sum()), streams, DELTA, {})
    if scene.rises is not None:
        late = first[first > scene.rises] - scene.rises  # for alarms that were not false
        low, middle, high = np.quantile(late, (0.25, 0.5, 0.75), method="higher")
        found = {"alarms": float(np.mean(np.isfinite(first))), "labels": float(middle)}
        found |= {"half from": float(low), "to": float(high)}
        yield Cell(f"{name}: found after", 0, streams, 1.0, found)


def main(
    scenes: Annotated[str, typer.Option(help="Scenes, by comma.")] = ",".join(SCENES),
    streams: Annotated[int, typer.Option(min=1, help="Streams of each scene.")] = 1000,
    labels: Annotated[int, typer.Option(min=1, help="Labels of each stream.")] = 5000,
    as_json: AsJson = False,
) -> None:
    """Print, for each scene, how many alarms are false, and after how many labels a risen risk is found."""
    chosen = scenes.split(",")
    if unknown := [name for name in chosen if name not in SCENES]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(SCENES)}")
    show_cells([cell for name in chosen for cell in judge_scene(name, streams, labels)], as_json)


if __name__ == "__main__":
    typer.run(main)

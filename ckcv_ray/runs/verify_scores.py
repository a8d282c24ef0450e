"""Verification of the scores of a procedure: digests, summaries from the log, on request every score."""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.claims.percent import nearest
from ckcv_ray.core.schedule import Stage, Unit
from ckcv_ray.engine.backend import Backend
from ckcv_ray.engine.batches import Batch, batch_seconds, fill
from ckcv_ray.engine.collector import Collector
from ckcv_ray.engine.evaluate import share as share_inputs
from ckcv_ray.engine.loop import Stop, work
from ckcv_ray.engine.progress import Listener, Progress
from ckcv_ray.errors import CKCVError, RunError, StoreError, counted
from ckcv_ray.learners.ensemble import Outcome
from ckcv_ray.runs.assess import load_scores, replay_scores
from ckcv_ray.storage import formats
from ckcv_ray.storage.folder import MANIFEST, SCORES, SUMMARY, RunFolder
from ckcv_ray.study.assessment import Assessment


class Found(NamedTuple):
    """What a verification of scores found; see ``verify.Verification``."""

    differences: list[str]
    recomputed: list[str]
    trusted: list[str]
    unverified: list[str]


def verify_scores(
    folder: RunFolder,
    share: float,
    backend: Callable[[], Backend] | None,
    listen: Listener | None,
    stop: Stop,
) -> Found:
    """Check the folder of a finished procedure.

    Args:
        folder: the folder.
        share: share of the evaluations to compute again, those of whole splits drawn at random below 1.
        backend: creates a backend; None if nothing is computed.
        listen, stop: as for ``assess``.
    """
    found = Found([], [], [], [])
    differing = folder.differing()
    found.differences.extend(f"{name} does not match the manifest, or is missing" for name in differing)
    if differing == [MANIFEST]:
        return found
    found.recomputed.append(f"the SHA-256 of {counted(len(folder.manifest()), 'file')}")
    try:
        collector = replay_scores(folder.files.root)
        if not differing:
            found.differences.extend(_summaries(folder))
            found.recomputed.append("every figure of the summary, from the log")
        if not share or backend is None:
            found.trusted.append("the scores of every split: see --refit")
            return found
        found.differences.extend(_computed_again(collector, share, backend, listen, stop))
        of_some = f"the scores of {nearest(share)} of the splits"
        found.recomputed.append("every score, from the data" if share == 1 else of_some)
        if functions := collector.problem.study.functions:
            named = ", ".join(one.name for one in functions)
            found.trusted.append(f"the scores by {named}: the folder does not keep functions")
        if share < 1:
            found.trusted.append("the scores of the other splits")
    except CKCVError as error:
        found.differences.append(str(error))
    return found


def _summaries(folder: RunFolder) -> list[str]:
    """Return which of the two files with results are not what follows from the log."""
    result = load_scores(folder.files.root)
    table = formats.read_table(folder.files, SCORES, result.problem.run_id, None)
    content = formats.read_json(folder.files, SUMMARY)
    lost = [] if table.equals(result.table()) else [SCORES]
    lost += [] if content == json.loads(json.dumps(result.to_json())) else [SUMMARY]
    return [f"{name} does not follow from the log" for name in lost]


class Again:
    """Evaluations to compute again, compared with those there are."""

    def __init__(self, collector: Collector, units: Sequence[Unit]) -> None:
        self.collector, self.problem = collector, collector.problem
        self.trusted = _columns_of_functions(self.problem)
        self.n_units, self.units = len(units), iter(units)
        self.done, self.differences = 0, list[str]()

    def plan(self, workers: int, least: float) -> Batch:
        """Return the next batch of work."""
        rates = self.collector.rates
        seconds = batch_seconds(float("inf"), workers, least)
        return fill(self.units, lambda unit: rates.seconds_for(self.problem.cost_of_unit(unit)), seconds)

    def add(self, outcome: Outcome) -> None:
        """Compare what was computed again with what there is."""
        known = {(one.size, one.split, one.path) for one in self.collector.failures()}
        self.done += outcome.fits
        for failure in outcome.failures:
            if (failure.size, failure.split, failure.path) not in known:
                reason = " ".join(failure.traceback.splitlines()[-1:])
                self.differences.append(f"split {failure.split} failed, and had scores: {reason}")
        records = outcome.records.copy()
        for record in records if self.trusted else ():
            totals = self.collector.totals(record["size"])[record["split"], record["path"], record["step"]]
            record["totals"][self.trusted] = totals[self.trusted]
        try:
            self.collector.add(outcome._replace(records=records, failures=()))
        except RunError as error:
            self.differences.append(str(error))

    def progress(self) -> Progress:
        """Return the progress of the work."""
        return Progress(max(self.n_units, self.done), self.done, fits=self.done)


def _columns_of_functions(problem: Assessment) -> list[int]:
    """Return the positions of the totals that functions of the user gave."""
    names = {one.name for one in problem.study.functions}
    starts = np.cumsum([0, *problem.widths]).tolist()
    return [start for start, score in zip(starts, problem.scores, strict=False) if score.name in names]


def _without_functions(problem: Assessment) -> Assessment:
    """Return the assessment with functions that the folder does not keep giving no value."""
    names = {one.name for one in problem.study.functions}
    scores = (replace(one, of=_unknown) if one.name in names else one for one in problem.scores)
    return replace(problem, scores=tuple(scores))


def _unknown(y: Any, answers: Any) -> float:
    return nan


def _computed_again(
    collector: Collector,
    share: float,
    backend: Callable[[], Backend],
    listen: Listener | None,
    stop: Stop,
) -> list[str]:
    problem, rng = collector.problem, np.random.default_rng(secrets.randbits(64))
    units = []
    for size in range(len(problem.sizes)):
        held = ~np.isnan(collector.statuses(size))
        splits = np.flatnonzero(held.any(axis=(1, 2)))
        count = max(1, round(share * len(splits)))
        for split in np.sort(rng.choice(splits, count, replace=False)).tolist():
            lengths = held[split].sum(axis=1)
            paths = tuple((path, int(length)) for path, length in enumerate(lengths) if length)
            units.append(Unit(Stage.SELECT, size, split, paths))
    if not units:
        raise StoreError("there are no scores to compute again")
    again, opened = Again(collector, units), backend()
    try:
        opened.start(share_inputs(_without_functions(problem)))
        work(opened, again, listen, stop)
    finally:
        opened.close()
    return again.differences

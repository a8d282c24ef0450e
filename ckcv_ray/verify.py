"""Check a finished run from its Parquet and JSON files alone: nothing is unpickled, nothing is trusted.

Digests; sums, bounds, drops and winner from the log; splits drawn anew; errors counted anew from models
and data; the certificate made anew. What is not repeated is the fitting itself.
"""

import hashlib
from collections.abc import Iterator
from itertools import islice
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from ckcv_ray.aggregator import Aggregator
from ckcv_ray.archive import replay
from ckcv_ray.certificate import certify
from ckcv_ray.data import Table, fit_scaling
from ckcv_ray.ensemble import PICKLES, Ensemble, Member, mistakes, to_pickles
from ckcv_ray.errors import CKCVError, StoreError, cut, plain
from ckcv_ray.nested import inner_folder, inner_tables
from ckcv_ray.store import MANIFEST, REPORT, Finished, RunFolder
from ckcv_ray.study import OUTER_K, Stage, Study, Triple, run_id
from ckcv_ray.triples import triple_of
from ckcv_ray.worker import roles

SUM_TOLERANCE = 1e-9
MOST_SHOWN = 240


def verify(out: str | Path) -> list[str]:
    """Everything in the folder that is not as it should be, one sentence each; empty if all is well.

    Raises:
        StoreError: there is no run in the folder.
    """
    folder = RunFolder(out)
    if not folder.finished:
        folder.identity()
        raise StoreError(f"{str(out)!r} holds no finished run: there is nothing to verify yet")
    differences: list[str] = []
    try:
        differences.extend(map(plain, _digests(folder)))
        differences.extend(map(plain, _content(folder, folder.path)))
    except CKCVError as error:
        differences.append(str(error))
    return differences


def _digests(folder: RunFolder) -> Iterator[str]:
    if not folder.manifest_whole():
        yield f"{MANIFEST} is not as it was written"
    manifest, files = folder.manifest(), folder.files()
    for name in sorted(set(manifest) | set(files)):
        if name not in files:
            yield f"{name} is missing"
        elif name not in manifest:
            yield f"{name} is not in the manifest"
        elif folder.sha256(name) != manifest[name]:
            yield f"{name} is not the file the manifest names: its SHA-256 differs"
    if not folder.report_whole():
        yield f"{REPORT} is not as ckcv report wrote it: its last line does not name its SHA-256"


def _content(folder: RunFolder, out: Path) -> Iterator[str]:
    identity = folder.require()
    study, table = identity.study, folder.table(identity)
    finished = folder.results(identity, table)
    folder.execution()
    aggregator = replay(out)
    if not aggregator.triples().equals(finished.triples):
        yield "triples.parquet is not what the log of cells gives"
    leader = aggregator.selection.winner()
    if leader is None:
        yield "the log of cells has no complete triple"
        return
    winner, certificate = triple_of(study, aggregator.sizes, leader), finished.certificate
    if (certificate.C, certificate.gamma, certificate.k) != winner:
        yield f"the log of cells leads to {winner}, which is not the certificate's winner"
        return
    there = folder.files()
    pickles = {
        f"ensemble/{name}": content for name, content in to_pickles(finished.ensemble, table.X).items()
    }
    for file in there:
        if Path(file).parent == Path("ensemble") and Path(file).match(PICKLES) and file not in pickles:
            yield f"{file} is the pickle of no model in models.parquet"
    for file, content in pickles.items():
        if file in there and hashlib.sha256(content).hexdigest() != folder.sha256(file):
            yield f"{file} is not the pickle of the model in models.parquet"
    yield from _models(finished.ensemble, study, table, winner, aggregator)
    if study.outer_splits is not None:
        yield from _nested(out, finished.nested, study, table)
    yield from _certificate(folder, finished, study, table, winner, leader.l_ms)


def _models(
    ensemble: Ensemble, study: Study, table: Table, winner: Triple, aggregator: Aggregator
) -> Iterator[str]:
    for member in ensemble.members:
        for what in _member(member, study, table, winner, aggregator):
            yield f"model of split {member.mc_index}: {what}"


def _member(
    member: Member, study: Study, table: Table, winner: Triple, aggregator: Aggregator
) -> Iterator[str]:
    yield from _machine(member, study, table, winner)
    if member.errors != aggregator.ledger.errors_by_class(winner, member.mc_index):
        yield "its errors are not those in the log"


def _machine(member: Member, study: Study, table: Table, winner: Triple) -> Iterator[str]:
    """What a machine says of itself, against the split it belongs to."""
    if (member.C, member.gamma, member.k) != winner:
        yield f"fitted at {Triple(member.C, member.gamma, member.k)}, the winner is {winner}"
    split = study.split(table.n, winner.k, member.mc_index)
    train, score = roles(Stage.REFIT, split)
    if not np.isin(member.support, train).all():
        yield "a support vector is not among its training rows"
    scaling = fit_scaling(table.X[train], study.scaling)
    if not all(np.allclose(a, b, SUM_TOLERANCE, 0) for a, b in zip(scaling, member.scaling, strict=True)):
        yield "its scaling is not that of its training rows"
    if np.any(member.dual_coef * table.y[member.support] <= 0):
        yield "a dual variable does not have the sign of its label"
    size = np.abs(member.dual_coef)
    if (
        np.any(size > member.C * (1 + SUM_TOLERANCE))
        or abs(member.dual_coef.sum()) > SUM_TOLERANCE * size.sum()
    ):
        yield "its dual variables are outside the box or do not sum to zero"
    y = table.y[score]
    errors = mistakes(member.decision(table.X[score]), y)
    if errors != member.errors:
        yield f"makes {errors} errors on its estimate set, not those recorded"
    if member.n_estimate != (int(np.sum(y < 0)), int(np.sum(y > 0))):
        yield "the sizes of the classes in its estimate set differ"


def _nested(out: Path, nested: Ensemble | None, study: Study, table: Table) -> Iterator[str]:
    """Each inner run, verified as any run is; its data, its winner, and the machine made of it."""
    assert nested is not None
    tables, outer = inner_tables(study, table), study.outer()
    for i, (member, inner) in enumerate(zip(nested.members, tables, strict=True)):
        folder = inner_folder(out, i)
        if wrong := verify(folder):
            yield from (f"outer split {i}: {what}" for what in wrong)
            continue
        identity = RunFolder(folder).require()
        if identity.run_id != run_id(study.inner().for_rows(inner.n), inner.digest):
            yield f"outer split {i}: its run is not the selection on the rows of that split"
            continue
        certificate = RunFolder(folder).results(identity, inner).certificate
        winner = Triple(certificate.C, certificate.gamma, OUTER_K)
        for what in _machine(member, outer, table, winner):
            yield f"nested model of outer split {i}: {what}"


def _certificate(
    folder: RunFolder, finished: Finished, study: Study, table: Table, winner: Triple, l_ms: float
) -> Iterator[str]:
    provisional = "failed" in finished.triples["state"].to_pylist()
    digests = {"data": table.digest}
    digests |= folder.result_digests()
    name = run_id(study, table.digest)
    ensembles = finished.ensemble, finished.nested
    expected = certify(study, table, name, winner, l_ms, *ensembles, provisional, digests)
    theirs = finished.certificate.to_json()
    for field, value in expected.to_json().items():
        for where, was, anew in islice(_apart(field, theirs[field], value), 1):
            shown, made = (cut(repr(found), MOST_SHOWN) for found in (was, anew))
            yield f"certificate.json: {where} is {shown}, made anew it is {made}"


def _apart(name: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ, by dotted name, with what is there in each; numbers to within rounding:
    other processors round otherwise.
    """
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _apart(f"{name}.{key}", a[key], b[key])
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, pair in enumerate(zip(a, b, strict=True)):
            yield from _apart(f"{name}.{i}", *pair)
    elif a != b and not (
        isinstance(a, float) and isinstance(b, float) and isclose(a, b, rel_tol=SUM_TOLERANCE)
    ):
        yield name, a, b

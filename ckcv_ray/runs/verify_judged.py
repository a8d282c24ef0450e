"""Verification of judged rows: what the models in the folder make of the rows that certify, cell by cell."""

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from ckcv_ray.claims.certify import find_claims_version
from ckcv_ray.claims.claim import RANDOM
from ckcv_ray.claims.judge import Judge
from ckcv_ray.claims.judged_rows import tabulate_judged
from ckcv_ray.errors import cut, cut_list, pluralize
from ckcv_ray.records.judged import JUDGED_ROWS, OF_NO_SPLIT
from ckcv_ray.runs.verification import LONGEST_REASON, Verification
from ckcv_ray.storage.folder import Finished

ROUNDED = ("predicted", "score", "loss")  # of numbers and scores: processors round differently
VALUE_ROUNDING = 1e-9  # relative to the largest


def check_judged_rows(finished: Finished, judge: Judge, result: Verification) -> Iterator[str]:
    """Yield where judged rows are not what the models make of the table; note that they were judged again.

    A file is missing only where the run has none to write, whatever digests the certificate lists. A run of
    an earlier version has no rows of F* in it, and another order of the units of splits, which no claim of
    that version uses.
    """
    stored = finished.judged
    try:
        computed = tabulate_judged(judge)
    except Exception as error:  # of a stranger's model, of any kind
        yield cut(f"{JUDGED_ROWS}: it cannot be made again: {type(error).__name__}: {error}", LONGEST_REASON)
        return
    version = finished.certificate.origin.claims_version or 0
    earlier = judge.problem.has_losses and version < find_claims_version(judge.problem)
    if earlier and computed is not None:
        computed = computed.filter(pc.not_equal(computed["classifier"], RANDOM.name))
    if stored is None or computed is None or len(stored) != len(computed):
        has, made = (0 if table is None else len(table) for table in (stored, computed))
        if has or made:
            yield f"{JUDGED_ROWS} has {has:,} judged rows, computed again there are {made:,}"
        return
    differences = []
    of_split = computed["split"].to_numpy() != OF_NO_SPLIT
    for name in computed.column_names:
        was, again = (table[name].to_numpy() for table in (stored, computed))
        equal = was == again
        if earlier and name == "order":
            equal |= of_split
        if name in ROUNDED:
            scale = VALUE_ROUNDING * max(1.0, float(np.max(np.abs(again[~np.isnan(again)]), initial=0.0)))
            equal = np.isclose(was, again, VALUE_ROUNDING, scale, equal_nan=True)
        differences += [
            f"{JUDGED_ROWS}: {name} of judged row {at} is {was[at]}, computed again it is {again[at]}"
            for at in np.flatnonzero(~equal).tolist()
        ]
    yield from cut_list(differences, f"other values of {JUDGED_ROWS} differ")
    result.recomputed.append(f"{pluralize(len(computed), 'judged row')}, from the models")

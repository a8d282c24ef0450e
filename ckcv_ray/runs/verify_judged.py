"""Verification of judged rows: what the models in the folder make of the rows that certify, cell by cell."""

from collections.abc import Iterator

import numpy as np

from ckcv_ray.claims.judge import Judge
from ckcv_ray.claims.judged_rows import tabulate_judged
from ckcv_ray.errors import cut, cut_list, pluralize
from ckcv_ray.records.judged import JUDGED_ROWS
from ckcv_ray.runs.verification import LONGEST_REASON, Verification
from ckcv_ray.storage.folder import Finished

ROUNDED = ("predicted", "score", "loss")  # of numbers and scores: processors round differently
VALUE_ROUNDING = 1e-9  # relative to the largest


def check_judged_rows(finished: Finished, judge: Judge, result: Verification) -> Iterator[str]:
    """Yield where judged rows are not what the models make of the table; note that they were judged again.

    A file is missing only where the run has none to write, whatever digests the certificate lists.
    """
    stored = finished.judged
    try:
        computed = tabulate_judged(judge)
    except Exception as error:  # of a stranger's model, of any kind
        yield cut(f"{JUDGED_ROWS}: it cannot be made again: {type(error).__name__}: {error}", LONGEST_REASON)
        return
    if stored is None or computed is None or len(stored) != len(computed):
        has, made = (0 if table is None else len(table) for table in (stored, computed))
        if has or made:
            yield f"{JUDGED_ROWS} has {has:,} judged rows, computed again there are {made:,}"
        return
    differences = []
    for name in computed.column_names:
        was, again = (table[name].to_numpy() for table in (stored, computed))
        equal = was == again
        if name in ROUNDED:
            scale = VALUE_ROUNDING * max(1.0, float(np.max(np.abs(again[~np.isnan(again)]), initial=0.0)))
            equal = np.isclose(was, again, VALUE_ROUNDING, scale, equal_nan=True)
        differences += [
            f"{JUDGED_ROWS}: {name} of judged row {at} is {was[at]}, computed again it is {again[at]}"
            for at in np.flatnonzero(~equal).tolist()
        ]
    yield from cut_list(differences, f"other values of {JUDGED_ROWS} differ")
    result.recomputed.append(f"{pluralize(len(computed), 'judged row')}, from the models")

"""Growth of forests by scikit-learn's own compiled functions, without what it repeats for each tree.

Scikit-learn copies an estimator for every tree, and checks its parameters and the rows again: for a few
hundred rows that takes longer than growing the tree. Here it fits a forest of one tree, which checks
everything once, and the others are grown from the same seeds and rows. The first is grown again as well: if
it is not equal in every bit, as after a change in scikit-learn, or if the forest has an option that is not
known here, there is no growth, and scikit-learn fits the whole forest.

It is kept for what it gains. A whole run (k of 3, 5 and 10, five splits, one process, CPU seconds with and
without it in turns) takes 3.9 times less with ``forest`` and 4.4 with ``extra_trees`` on 150 rows (iris), 1.7
and 2.7 on 569 (breast_cancer); a search of jobs/benchmarks/search.py there 1.55 and 2.3; fits of 2,000 rows
1.2 and 1.6. Every value was equal in every bit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ckcv_ray.core.arrays import Classes
from ckcv_ray.tables.target import Rows

USUAL_OPTIONS = {  # options of a forest whose other values are left to scikit-learn
    "ccp_alpha": 0.0,
    "max_leaf_nodes": None,
    "max_samples": None,
    "min_impurity_decrease": 0.0,
    "min_weight_fraction_leaf": 0.0,
    "monotonic_cst": None,
    "oob_score": False,
    "warm_start": False,
}
SUBSAMPLE = "balanced_subsample"


class Growth(NamedTuple):
    """What all trees of a forest have in common.

    Attributes:
        forest: fitted with one tree.
        X: training rows [n, d] of single precision.
        y: their classes by position [n, 1].
    """

    forest: Any
    X: Rows
    y: Rows

    def trees(self, count: int) -> Iterator[Any]:
        """Grow the first ``count`` trees; each is a compiled tree of scikit-learn."""
        states = np.random.RandomState(self.forest.random_state)
        for _ in range(count):
            yield self._tree(states.randint(np.iinfo(np.int32).max))

    def _tree(self, seed: int) -> Any:
        from sklearn.tree._classes import CRITERIA_CLF, DENSE_SPLITTERS
        from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

        first = self.forest.estimators_[0]
        n_classes = np.array([first.n_classes_], dtype=np.intp)
        leaf, depth = first.min_samples_leaf, first.max_depth
        split = max(2, first.min_samples_split, 2 * leaf)
        criterion = CRITERIA_CLF[first.criterion](1, n_classes)
        splitter = DENSE_SPLITTERS[first.splitter](
            criterion, first.max_features_, leaf, 0.0, np.random.RandomState(seed), None
        )
        deepest = np.iinfo(np.int32).max if depth is None else depth
        builder = DepthFirstTreeBuilder(splitter, split, leaf, 0.0, deepest, 0.0)
        tree = Tree(self.X.shape[1], n_classes, 1)
        builder.build(tree, self.X, self.y, self._weights(seed), None)
        return tree

    def _weights(self, seed: int) -> Any:
        """Return how often each row is drawn, or its weight; None if all weigh the same."""
        from sklearn.ensemble._forest import _generate_sample_indices

        forest, n = self.forest, len(self.X)
        if not forest.bootstrap:
            return forest._sample_weight
        drawn = _generate_sample_indices(seed, n, forest._n_samples_bootstrap, forest._sample_weight)
        return np.bincount(drawn, minlength=n).astype(np.float64)


def growth(forest: Any, X: Rows, y: Classes) -> Growth | None:
    """Return the growth of a forest that was fitted with one tree; None if scikit-learn has to fit it.

    Args:
        forest: a RandomForestClassifier or ExtraTreesClassifier with an integer ``random_state``.
        X: the rows it was fitted to, [n, d]; scikit-learn has to fit sparse ones.
        y: their classes, [n].
    """
    from scipy.sparse import issparse

    first = forest.estimators_[0]
    whole = all(isinstance(v, int) for v in (first.min_samples_leaf, first.min_samples_split))
    usual = all(getattr(forest, name) == value for name, value in USUAL_OPTIONS.items())
    if not (usual and whole) or forest.class_weight == SUBSAMPLE or issparse(X) or np.isnan(X).any():
        return None
    position = np.searchsorted(forest.classes_, y)[:, None].astype(np.float64)
    found = Growth(forest, np.asarray(X, dtype=np.float32), position)
    try:
        again = next(found.trees(1))
        return found if _equal(again, first.tree_) else None
    except (AttributeError, ImportError, KeyError, TypeError, ValueError):  # another version of scikit-learn
        return None


def _equal(first: Any, second: Any) -> bool:
    a, b = first.__getstate__(), second.__getstate__()
    fields = a["nodes"].dtype.names
    same = all(np.array_equal(a["nodes"][name], b["nodes"][name], equal_nan=True) for name in fields)
    return same and np.array_equal(a["values"], b["values"])

"""Selection inside training sets: the setting with the best mean score, once or again in each split."""

from itertools import pairwise

import numpy as np

from ckcv_ray.core.arrays import Index, Values


def chosen_positions(losses: Values, starts: Index, learner_of_paths: Index, each: bool) -> Index:
    """Return the path and the step that is selected for each outer split and learner.

    Args:
        losses: of every inner split at every setting, (inner splits, paths, steps), nan where there is none:
            a setting with a gap among the splits that count is not selected.
        starts: number of the first inner split of each outer one, and last of all, (n_outer + 1,).
        learner_of_paths: position of each path's learner, (paths,).
        each: whether to select again in each outer split, instead of once by the mean over all of them.

    Returns:
        (n_outer, n_learners, 2); -1 where a learner has no complete setting. Of equal settings the one with
        the smaller step, then path, is selected.
    """
    means = np.array([losses[a:b].mean(axis=0) for a, b in pairwise(starts.tolist())])
    if not each:
        means = np.repeat(means.mean(axis=0, keepdims=True), len(means), axis=0)
    n_learners = int(learner_of_paths.max()) + 1
    chosen = np.full((len(means), n_learners, 2), -1)
    for learner in range(n_learners):
        paths = np.flatnonzero(learner_of_paths == learner)
        by_step = np.where(np.isnan(means[:, paths]), np.inf, means[:, paths]).transpose(0, 2, 1)
        flat = by_step.reshape(len(means), -1)
        best = flat.argmin(axis=1)
        step, path = np.unravel_index(best, by_step.shape[1:])
        found = np.isfinite(flat[np.arange(len(means)), best])
        chosen[found, learner] = np.stack([paths[path], step], axis=-1)[found]
    return chosen

"""What a study with a certification needs where numbers are predicted, and what it refuses there.

Models are compared by a bound on the mean absolute error, of which at most a clip counts: without one a
single row that is very far off could outweigh all others, and nothing could be proven.
"""

from collections.abc import Iterator, Mapping

from ckcv_ray.core.arrays import Index
from ckcv_ray.core.bounds.binomial import fewest_rows
from ckcv_ray.core.criteria import CLIP_IS, Criterion, MeanClippedError
from ckcv_ray.core.measures import Kind
from ckcv_ray.errors import InputError
from ckcv_ray.learners.base import Learner
from ckcv_ray.study.certification import CLAIMS, Certification, Holdout
from ckcv_ray.study.quantities import find_quantity, is_of_numbers, parse_within
from ckcv_ray.tables.task import Task

VOTE = CLAIMS[-1]


def check_numbers(
    learners: Mapping[str, Learner], criterion: Criterion, certification: Certification, task: Task
) -> None:
    """Raise InputError unless these parts of a study can predict the numbers of a task."""
    target = f"the target {task.target!r} has numbers"
    for label, learner in learners.items():
        if Kind.REGRESSION not in learner.kinds:
            raise InputError(
                f"{target}, and learner {label} is for {' or '.join(sorted(learner.kinds))}: choose one of "
                "numbers, such as ridge or forest_regressor"
            )
    if not isinstance(criterion, MeanClippedError):
        raise InputError(f"{target}, and criterion {criterion.name} is for classes: {CLIP_IS}")
    for option, why in _list_unfit(certification, task):
        raise InputError(f"{option} {why}, and {target}: leave it out")


def check_within(certification: Certification, delta: float, held: Index | None) -> None:
    """Raise InputError if the rows held out are too few for a claim about a share of new rows."""
    for claim in certification.claim:
        if held is None or (share := parse_within(claim)) is None:
            continue
        needed = fewest_rows(1 - share, 0, delta / certification.n_shares)
        if len(held) < needed:
            raise InputError(
                f"claim={claim} takes {needed:,} held-out rows at least, and {len(held):,} are held out: "
                "hold out more (holdout_share), claim a smaller share, or take more rows"
            )


def _list_unfit(certification: Certification, task: Task) -> Iterator[tuple[str, str]]:
    """Yield the options of a certification that are for classes, and why, the first to be refused."""
    for claim in certification.claim:
        if claim == VOTE:
            yield f"claim={claim}", "is a majority of predicted classes"
        quantity = find_quantity(claim)
        if quantity is not None and not quantity.of_numbers:
            yield certification.name_source(claim), "is about classes"
    for condition in certification.accepted:
        if not is_of_numbers(condition.name):
            yield f"accept={condition}", "is about rows that are right or wrong"
    if isinstance(certification, Holdout) and certification.holdout_bound != Holdout.holdout_bound:
        yield f"holdout_bound={certification.holdout_bound}", "is for rows that are right or wrong"

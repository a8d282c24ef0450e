"""What labels say of one quantity, and in which words."""

import numpy as np

from ckcv_ray.core.bounds.betting import make_prior
from ckcv_ray.runs.watch import UNKNOWN, Watched, judge_losses

PRIOR = make_prior(0.05, 100)


def judge(wrong: int, right: int, bound: float = 0.1):  # type: ignore[no-untyped-def]
    """A finding about a stream that begins with the right ones."""
    losses = np.concatenate([np.zeros(right), np.ones(wrong)])
    return judge_losses(Watched(None, bound, PRIOR, 0.05), losses, 10 * np.arange(len(losses)))


def test_a_decision_near_the_rate_is_foreseen_and_one_at_it_is_not() -> None:
    soon = judge(0, 20)
    assert soon.state == UNKNOWN
    assert soon.more is not None
    assert soon.describe("row")[1].endswith(
        f"at the rate so far, a decision takes about {soon.more} more rows"
    )
    often = np.tile([0.0, 0, 1, 0, 0], 6)  # for whose rate more labels bring an alarm
    worse = judge_losses(Watched(None, 0.1, make_prior(0.2, 50), 0.05), often, np.arange(30))
    assert worse.state == UNKNOWN
    assert worse.more is not None
    rate = PRIOR.update(2, 40)
    at_it = judge(2, 38, bound=rate)
    assert at_it.more is None
    assert at_it.describe("group")[1].endswith("at the rate so far, no decision is in sight")

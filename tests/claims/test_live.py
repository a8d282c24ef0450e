"""What labels say of one quantity, and in which words."""

import numpy as np

from ckcv_ray.core.bounds.betting import make_prior
from ckcv_ray.runs.watch import ALARM, HOLDS, UNCERTIFIED, UNKNOWN, Watched, judge_losses

PRIOR = make_prior(0.05, 100)


def judge(wrong: int, right: int, bound: float | None = 0.1, label: str | None = None):  # type: ignore[no-untyped-def]
    """A finding about a stream that begins with the right ones."""
    losses = np.concatenate([np.zeros(right), np.ones(wrong)])
    return judge_losses(Watched(label, bound, PRIOR, 0.05), losses, 10 * np.arange(len(losses)))


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


def test_an_alarm_names_the_batch_of_the_whole_stream() -> None:
    found = judge(60, 0)
    assert found.state == ALARM
    assert found.alarm_batch is not None
    assert found.alarm_batch % 10 == 1  # every tenth batch of the stream has a row of this quantity
    assert found.more is None
    assert found.evidence >= np.log(20)
    assert f"raised at the end of batch {found.alarm_batch}:" in found.describe("row")[1]
    assert judge(20_000, 0).to_json()["evidence"] < np.inf


def test_what_is_not_certified_has_limits_alone() -> None:
    found = judge(3, 50, bound=None, label="sick")
    (line,) = found.describe("row")
    assert (found.state, found.watched.bound) == (UNCERTIFIED, None)
    assert line.startswith("error on class 'sick': 5.66 % (3 of 53 rows); at all times from ")
    assert judge(0, 0).describe("row") == ["error: no label yet"]


def test_limits_are_rounded_outwards() -> None:
    found = judge(1, 400)
    assert found.state == HOLDS
    assert "the certificate holds: certified is at most 10.00 %" in found.describe("row")[1]
    between = found.describe("row")[0].split("from ")[1].split("to ")
    low, high = (float(text.split(" %")[0]) / 100 for text in between)
    assert low <= found.limits.low
    assert high >= found.limits.high

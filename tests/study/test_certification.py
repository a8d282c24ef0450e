"""Certifications as values: which rows they hold out, what they claim, what they go with."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckcv_ray.core.resampling import hold_out
from ckcv_ray.errors import InputError
from ckcv_ray.study import SLOTS, Holdout, Nested, Occam, inner_rows, member_of

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


def test_what_each_goes_with_is_known_to_a_study():
    for certification in (Occam, Holdout, Nested):
        assert SLOTS["certify"][certification.name] is certification
        assert certification.resamplings <= set(SLOTS["resampling"])
        assert certification.criteria <= set(SLOTS["criterion"])
        assert certification.resamplings
        assert certification.criteria
    assert Nested.resamplings == {"complete"}


# Rows held out


@given(st.integers(12, 200), st.floats(0.1, 0.9), st.integers(0, 2**40))
@repeatable
def test_holdout_holds_out_its_share_and_the_others_nothing(n, share, seed):
    held = Holdout(share).held_out(n, seed)
    assert len(held) == int(share * n)
    assert np.array_equal(held, hold_out(n, share, seed))
    assert Occam().held_out(n, seed) is None
    assert Nested().held_out(n, seed) is None


@given(st.integers(6, 10_000))
@repeatable
def test_an_inner_run_has_two_thirds_of_the_rows(n):
    assert inner_rows(n) == n - n // 3
    assert 2 * n <= 3 * inner_rows(n) <= 2 * n + 2


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, nan, inf, "0.3", True, None])
def test_a_share_lies_strictly_between_0_and_1(share):
    with pytest.raises(InputError, match=r"^holdout_share="):
        Holdout(share)


@pytest.mark.parametrize("splits", [0, -1, 1.5, "3", True, None, 1_000_001])
def test_outer_splits_are_counted_from_1(splits):
    with pytest.raises(InputError, match=r"^outer_splits="):
        Nested(splits)
    assert Nested(1).outer_splits == 1


# Claims


@pytest.mark.parametrize(
    ("asked", "claims"),
    [
        ("random", ("random",)),
        ("vote,random", ("vote", "random")),
        (["vote", "vote", "member:3"], ("vote", "member:3")),
        ((), ("random",)),
        (["member:0", "member:17"], ("member:0", "member:17")),
    ],
)
def test_claims_are_names_in_their_order_each_once(asked, claims):
    assert Holdout(claim=asked).claim == claims
    assert Holdout(claim=claims) == Holdout(claim=asked)


@pytest.mark.parametrize(
    "claim", ["best", "member", "member:", "member:-1", "member:x", "Vote", "", " vote", "member:" + "9" * 19]
)
def test_a_claim_that_is_not_known_is_answered_with_those_that_are(claim):
    for asked in (claim, [claim], ["vote", claim]):
        with pytest.raises(InputError) as refused:
            Holdout(claim=asked)
        told = str(refused.value)
        assert told.startswith(f"claim={claim!r} is not known: choose from random, vote, or member:0")


@pytest.mark.parametrize("claim", [1, {"vote": 1}, [1], [None], b"vote"])
def test_claims_are_text(claim):
    with pytest.raises(InputError, match=r"^claim="):
        Holdout(claim=claim)


@given(st.integers(0, 10**18 - 1))
@repeatable
def test_a_claim_on_a_member_names_its_split(split):
    assert member_of(f"member:{split}") == split


@pytest.mark.parametrize("claim", ["random", "vote", "member:", "member:-1", "member:²", "members:1"])
def test_other_claims_name_no_split(claim):
    assert member_of(claim) == -1

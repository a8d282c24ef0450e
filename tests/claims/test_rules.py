"""The rule applied is the rule that is claimed: what is said of predictions, and how they are drawn."""

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray.claims.rules import BY, Rule, parse_rule
from ckcv_ray.errors import InputError, ceil_percent


@pytest.fixture(scope="module")
def paper():
    return run(SMALL.replace(seed=2), blobs(60))


@pytest.fixture(scope="module")
def held():
    return run(SMALL.replace(certify="holdout", claim=("vote",)), blobs(60))


def test_predictions_are_told_with_the_claim_that_covers_them(paper, held):
    assert "twice the bound for a member drawn independently" in paper.claim_for(paper.rule(by="vote"))
    assert paper.claim_for(paper.rule(by="member:2")).endswith("nothing is proven for it alone")
    assert "nothing is proven of this model" in held.claim_for(held.rule(by="full"))
    (vote,) = held.certificate.claims
    assert f"at most {ceil_percent(vote.bound)} " in held.claim_for(held.rule(by="vote"))
    assert f"({vote.method}); " in held.claim_for(held.rule(by="vote"))
    assert vote.method.startswith(f"holdout: {vote.errors} of {vote.rows} previously unused rows wrong, ")
    assert held.rule() == held.rule(by="vote") == Rule("vote")
    assert "nothing is proven for it alone" in held.claim_for(held.rule(seed=1))
    assert held.rule(by="random", seed=4) == Rule("random", 4, repeats=True)
    assert f"({paper.certificate.first.method}); " in paper.claim_for(paper.rule(seed=1))


def test_members_are_drawn_from_all_of_f_star_and_a_seed_repeats_one_call(paper):
    (claim,), drawn, result = paper.certificate.claims, paper.rule(seed=4), paper
    assert drawn.classifier() in claim.statement
    for rule in (drawn, result.rule()):
        assert ("other calls with it repeat its draws" in result.claim_for(rule)) == (rule is drawn)
    X = np.zeros((200, 2))
    members = result.predictions(X, drawn).member.tolist()
    assert set(members) == set(range(5))
    assert members == result.predictions(X, result.rule("random", seed=4)).member.tolist()
    assert members != result.predictions(X, result.rule()).member.tolist()


def test_a_value_of_by_names_one_rule_and_nothing_else_does() -> None:
    assert len({parse_rule(by) for by in BY}) == len(BY)
    for by, rule in BY.items():
        assert by == rule.name
    assert parse_rule("member:7") == parse_rule("member:07") == Rule("member:7")
    for by in ["vote ", "keyed", "member", "", "member:-1", "member:1.0"]:
        with pytest.raises(InputError, match=r"is not known: choose from auto, vote, .*member:0"):
            parse_rule(by)

"""What is claimed: weights that sum to one, levels, rows held out, and words that match the numbers."""

import json
from dataclasses import replace
from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from conftest import blobs
from scipy import stats

from ckcv_ray.claims.certificate import ASSUMPTIONS, NOT_COVERED, at_most, certify, level_of, occam, weight
from ckcv_ray.claims.rules import Rule
from ckcv_ray.core.bounds import catoni, clopper_pearson, safe, stevens
from ckcv_ray.core.resampling import hold_out
from ckcv_ray.data.task import count_repeats, table_from_arrays
from ckcv_ray.errors import InputError
from ckcv_ray.reports.page import page
from ckcv_ray.runs.load import load_run
from ckcv_ray.runs.run import run_table
from ckcv_ray.runs.verify import verify
from ckcv_ray.study import Execution, Study, Triple

SERIAL = Execution("serial")
SMALL = Study(C=(0.1, 1.0, 10.0), gamma=(0.1, 1.0), n_splits=5)


def run(study, table, **more):
    return run_table(study, table, execution=SERIAL, **more)


# occam


def total_weight(study, n):
    triples = len(study.C) * len(study.gamma)
    return triples * sum(weight(study, n, size.k) for size in study.sizes(n))


STUDIES = {
    "every k": Study(),
    "one k": Study(k=(10,)),
    "equal fold sizes": Study(k=(3, 40, 41, 42, 43, 44, 45)),
    "rotation, equal fold sizes": Study(k=(3, 40, 41, 42, 43, 44, 45), resampling="rotation"),
    "rotation, every k": Study(resampling="rotation"),
    "one triple": Study(C=(1.0,), gamma=(1.0,), k=(7,)),
}


@pytest.mark.parametrize("n", [45, 50, 90, 400])
@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES.keys())
def test_weights_sum_to_one_over_the_candidates_of_the_study_and_never_to_more(study, n):
    assert 1 - Fraction(1, 10**30) < total_weight(study, n) <= 1


def test_weights_of_the_smallest_tables():
    assert weight(Study(), 3, 3) == Fraction(1, 143)
    assert weight(Study(resampling="rotation"), 4, 3) == pytest.approx(Fraction(3, 4 * 143), rel=1e-15)
    assert weight(Study(), 4, 3) == Fraction(1, 143)  # k = 4 has the fold size of k = 3


def test_weight_falls_with_k_as_it_did():
    study, n = Study(k=(3, 5, 10)), 400
    ratios = [weight(study, n, 3) / weight(study, n, k) for k in (5, 10)]
    assert ratios == [Fraction(4 * 3, 2), Fraction(9 * 8, 2)]


def test_weights_of_a_large_table_are_not_summed_as_fractions():
    """With every k up to n, each its own fold size, the sum is (n - 2) / (n - 1)."""
    n = 100_000
    found = weight(Study(resampling="rotation"), n, 10)
    exact = Fraction(1, 143 * 9 * 8) * Fraction(n - 1, n - 2)
    assert exact * (1 - Fraction(1, 10**30)) < found <= exact


@pytest.mark.parametrize(("k", "most"), [(10, 24.6), (5, 15.6)])
def test_occam_of_a_single_k_pays_for_the_pairs_alone(k, most):
    """At 400 rows, 143 pairs and an error rate of 0.03; with every k it would be 31 and 18 percent."""
    n = 400
    errors, study = [round(0.03 * n / k)] * 20, Study(k=(k,))
    bound = occam(study, Triple(1.0, 1.0, k), errors, n)["bound"]
    level = study.delta / 143
    assert bound == pytest.approx(safe(errors[0], n // k, level), rel=1e-12)
    assert 100 * bound < most


def test_occam_is_the_safe_bound_at_the_weighted_level():
    result = run(SMALL, blobs(60))
    c = result.certificate
    total = sum(Fraction(1, (size.k - 2) * (size.k - 1)) for size in SMALL.sizes(60))
    level = float(Fraction(1, 6 * (result.k - 2) * (result.k - 1)) / total * Fraction(SMALL.delta))
    expected = min(1.0, fsum(safe(np.array(c.errors), c.n_select, level)) / len(c.errors))
    assert c.proven["protocol"] == "occam"
    assert c.proven["bound"] == pytest.approx(expected, rel=1e-12)
    assert c.proven["bound"] > c.l_ee
    assert f"at most {at_most(expected)}" in c.proven["statement"]
    assert "occam over 6 x k triples" in c.proven["statement"]
    assert c.proven["statement"] in c.statements
    assert (c.assumptions, c.not_covered) == (ASSUMPTIONS, NOT_COVERED)


def test_occam_takes_catoni_where_the_safe_bound_is_not_checked():
    study = Study(C=(1.0,), gamma=(1.0,), k=(3,))
    claim = occam(study, Triple(1.0, 1.0, 3), [300, 320], 18_001)
    assert claim["bound"] == catoni(620 / 12000, 6000, 0.05)
    assert "Catoni" in claim["statement"]


def test_occam_holds_for_the_random_member_of_members_fixed_beforehand():
    """X_i ~ Bin(m, L_i), independent: the share of failures stays below delta by its stated tail."""
    rng = np.random.default_rng(5)
    study, triple, m, runs = Study(C=(1.0,), gamma=(1.0,), k=(3,), delta=0.3), Triple(1.0, 1.0, 3), 20, 400
    risks = np.array([0.1, 0.2, 0.3])
    failures = sum(
        risks.mean() > occam(study, triple, rng.binomial(m, risks).tolist(), 3 * m)["bound"]
        for _ in range(runs)
    )
    assert failures <= stats.binom.ppf(1 - 1e-6, runs, 0.3)


def test_bounds_are_rounded_up_in_words():
    assert at_most(0.42301) == "42.4 %"
    assert at_most(0.423) == "42.3 %"
    assert at_most(0.423, 2) == "42.30 %"
    assert at_most(1.0) == "100.0 %"


# holdout


def test_what_is_held_out_is_touched_by_nothing():
    """Other inputs and labels in the held-out rows: the same triple, l_ee and ensemble; other claims."""
    study = replace(SMALL, protocol="holdout", claims=("random", "vote", "member:2"))
    table = blobs(60)
    held = hold_out(60, study.holdout_share, study.seed)
    X, y = table.X.copy(), table.y.copy()
    X[held], y[held] = X[held][::-1], -y[held]
    one, other = run(study, table), run(study, table_from_arrays(X, y))
    assert len(held) == one.certificate.n_held == 19
    assert (one.l_ms, one.l_ee, one.certificate.errors) == (other.l_ms, other.l_ee, other.certificate.errors)
    for a, b in zip(one.ensemble.members, other.ensemble.members, strict=True):
        np.testing.assert_array_equal(a.dual_coef, b.dual_coef)
        np.testing.assert_array_equal(a.vectors, b.vectors)
    assert one.run_id != other.run_id
    assert one.certificate.claims[:3] != other.certificate.claims[:3]


def test_the_rest_is_a_study_of_the_rows_left():
    study, table = replace(SMALL, protocol="holdout", holdout_share=0.25), blobs(60)
    left = np.delete(np.arange(60), hold_out(60, 0.25, study.seed))
    plain = run(SMALL, table_from_arrays(table.X[left], table.y[left]))
    divided = run(study, table)
    assert (divided.C, divided.gamma, divided.k) == (plain.C, plain.gamma, plain.k)
    assert (divided.l_ms, divided.l_ee) == (plain.l_ms, plain.l_ee)
    assert divided.triples.equals(plain.triples)
    assert divided.certificate.claims[-1] == plain.certificate.proven  # occam is of those rows


def test_claims_count_errors_on_the_held_out_rows_and_share_delta():
    study = replace(SMALL, protocol="holdout", claims=("vote", "member:1", "random"))
    table = blobs(60)
    result = run(study, table)
    held = hold_out(60, study.holdout_share, study.seed)
    X, y = table.X[held], table.y[held]
    votes = np.array([m.predict(X) for m in result.ensemble.members])
    wrong = {
        "vote": np.where((votes > 0).sum(axis=0) * 2 > 5, 1, -1) != y,
        "member:1": votes[1] != y,
        "keyed": result.predict(X) != y,
    }
    claims = {
        claim["classifier"]: claim for claim in result.certificate.claims if claim["protocol"] == "holdout"
    }
    assert list(claims) == ["vote", "member:1", "keyed"]
    for name, claim in claims.items():
        assert claim["bound"] == clopper_pearson(int(wrong[name].sum()), len(held), 0.05 / 3)
        assert claim["delta"] == 0.05 / 3
        assert f"{int(wrong[name].sum())} of {len(held)} rows" in claim["statement"]
    assert result.certificate.proven == result.certificate.claims[0]
    assert result.to_json()["proven"] == result.certificate.proven


def test_a_divided_run_is_stored_loaded_and_verified(tmp_path):
    study, table = replace(SMALL, protocol="holdout"), blobs(60)
    result = run(study, table, out=tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert again.certificate == result.certificate == run(study, table, out=tmp_path / "run").certificate
    assert again.table.n == 41
    assert len(again.table.held.y) == 19
    assert again.table.digest == table.digest
    assert verify(tmp_path / "run").differences == []


@pytest.mark.parametrize(("field", "value"), [("bound", 0.01), ("delta", 0.2), ("statement", "All is well.")])
@pytest.mark.parametrize("protocol", ["paper", "holdout"])
def test_verify_notices_a_claim_that_was_touched_up(tmp_path, protocol, field, value):
    run(replace(SMALL, protocol=protocol), blobs(60), out=tmp_path / "run")
    file = tmp_path / "run" / "certificate.json"
    content = json.loads(file.read_text())
    content["proven"][field] = value
    file.write_text(json.dumps(content))
    assert any("proven is" in sentence for sentence in verify(tmp_path / "run").differences)


@pytest.mark.parametrize(
    ("delta", "told"),
    [
        (0.05, "95 %"),
        (0.05 / 7, "99.28 %"),
        (0.05 / 3, "98.33 %"),
        (1e-5, "99.999 %"),
        (7.14e-5, "99.9928 %"),
    ],
)
def test_a_level_is_never_rounded_up(delta, told):
    assert level_of(delta) == told
    assert float(told[:-2]) <= 100 * (1 - delta) * (1 + 1e-15)


# nested

NESTED = replace(SMALL, protocol="nested", outer_splits=3, k=(3, 4, 5))


def test_each_nested_member_is_selected_and_fitted_without_its_outer_rows():
    """Other labels in the rows that certify the first member: the same member, other errors."""
    table = blobs(60)
    away = NESTED.outer().split(60, 3, 0).estimate
    y = table.y.copy()
    y[away] = -y[away]
    one, other = run(NESTED, table).nested, run(NESTED, table_from_arrays(table.X, y)).nested
    a, b = one.members[0], other.members[0]
    assert (a.C, a.gamma, a.offset) == (b.C, b.gamma, b.offset)
    np.testing.assert_array_equal(a.dual_coef, b.dual_coef)
    assert sum(a.errors) == len(away) - sum(b.errors)
    assert not set(a.support.tolist()) & set(away.tolist())


def test_nested_selection_is_a_study_of_its_own_and_its_claim_the_safe_mean():
    table = blobs(60)
    result = run(NESTED, table)
    for i, member in enumerate(result.nested.members):
        split = NESTED.outer().split(60, 3, i)
        rows = np.sort(np.concatenate([split.train, split.select]))
        inner = run(NESTED.inner(), table_from_arrays(table.X[rows], table.y[rows]))
        assert (member.C, member.gamma) == (inner.C, inner.gamma)
        assert sum(member.errors) == np.sum(
            member.predict(table.X[split.estimate]) != table.y[split.estimate]
        )
    claim = result.certificate.proven
    errors = np.array([sum(member.errors) for member in result.nested.members])
    assert (claim["protocol"], claim["classifier"]) == ("nested", "nested")
    assert claim["bound"] == pytest.approx(np.mean(safe(errors, 20, 0.05)), rel=1e-12)
    assert result.certificate.claims[-1] == run(replace(SMALL, k=(3, 4, 5)), table).certificate.proven
    assert len(result.predict(table.X[:4], nested=True)) == 4


def test_a_nested_run_is_stored_taken_up_and_verified(tmp_path):
    out = tmp_path / "run"
    result = run(NESTED, blobs(60), out=out)
    assert load_run(out).certificate == result.certificate
    assert verify(out).differences == []
    (out / "manifest.json").unlink()  # as if it had been killed at the very end
    assert run(NESTED, blobs(60), out=out).certificate == result.certificate
    certificate = out / "nested" / "outer-001" / "certificate.json"
    content = json.loads(certificate.read_text())
    certificate.write_text(json.dumps(content | {"C": 10.0 if content["C"] < 1 else 0.1}))
    told = " ".join(verify(out).differences)
    assert "outer split 1: certificate.json is not the file the manifest names" in told
    assert "certificate.json is damaged: run_id, C, gamma, k are" in told


@pytest.mark.parametrize("after", [0, 3, 12])
def test_a_nested_run_stops_when_asked_and_goes_on_later(tmp_path, after):
    asked = iter([False] * after)
    with pytest.raises(KeyboardInterrupt):
        run(NESTED, blobs(60), out=tmp_path / "run", stop=lambda: next(asked, True))
    whole = run(NESTED, blobs(60), out=tmp_path / "whole")
    assert run(NESTED, blobs(60), out=tmp_path / "run").certificate == whole.certificate


def test_there_is_no_nested_ensemble_where_none_was_asked_for():
    with pytest.raises(InputError, match="--certify nested"):
        run(SMALL, blobs(60)).predict(np.zeros((1, 2)), nested=True)


# What is said of predictions


def test_predictions_are_told_with_the_claim_that_covers_them():
    occam = run(SMALL, blobs(60))
    held = run(replace(SMALL, protocol="holdout", claims=("vote",)), blobs(60))
    nested = run(NESTED, blobs(60))
    percent = f"at most {at_most(occam.certificate.proven['bound'])} "
    assert percent in occam.claim_for(occam.rule())
    assert "twice that of a member drawn afresh" in occam.claim_for(occam.rule(vote=True))
    vote, random = held.certificate.claims
    assert f"at most {at_most(vote['bound'])} " in held.claim_for(held.rule(vote=True))
    assert "(holdout)" in held.claim_for(held.rule(vote=True))
    assert f"at most {at_most(random['bound'])} " in held.claim_for(held.rule())
    assert "(occam)" in held.claim_for(held.rule())
    inside = nested.claim_for(nested.rule(nested=True), nested=True)
    assert f"at most {at_most(nested.certificate.proven['bound'])} " in inside
    assert "drawn afresh for each pattern" in inside
    assert "(occam)" in nested.claim_for(nested.rule())


def test_predict_applies_the_rule_that_the_held_out_rows_judged():
    """Equal rows meet one member: their claim is of that fixed rule; drawn afresh, of the mean risk."""
    table = blobs(60)
    held = run(replace(SMALL, protocol="holdout", seed=4), table)
    assert held.rule() == Rule("keyed", 4)
    keyed, occam = held.certificate.claims
    assert (keyed["classifier"], occam["classifier"]) == ("keyed", "random")
    assert held.rule().classifier() in keyed["statement"]
    assert "(by a hash of its values)" in keyed["statement"]
    assert held.claim_for(held.rule()).endswith("(holdout)")
    assert len(set(held.predictions(np.zeros((50, 2)), held.rule()).member.tolist())) == 1
    afresh = held.rule(seed=4)
    assert afresh == Rule("random", 4)
    assert afresh.classifier() in occam["statement"]
    assert held.claim_for(afresh).endswith("(occam)")
    assert len(set(held.predictions(np.zeros((50, 2)), afresh).member.tolist())) > 1


def test_predictions_without_a_certified_key_are_drawn_afresh_and_repeated_by_their_seed():
    table = blobs(60)
    for result, nested in ((run(SMALL, table), False), (run(NESTED, table), True)):
        one, other = result.rule(nested=nested), result.rule(nested=nested)
        assert one.name == other.name == "random"
        assert one.seed != other.seed
        X = np.zeros((200, 2))
        members = result.predictions(X, one, nested).member.tolist()
        again = result.predictions(X, result.rule(seed=one.seed, nested=nested), nested)
        assert members == again.member.tolist()
        assert members != result.predictions(X, other, nested).member.tolist()


# Repeats


def repeated() -> tuple[np.ndarray, np.ndarray]:
    """Fifty rows: twenty stand twice (with the sign of a zero for the only difference), ten once."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    X[:20, 0] = 0.0
    other = X[:20] * [-1.0, 1.0]
    return np.concatenate([X, other]), np.concatenate([y, y[:20]])


def test_rows_that_repeat_are_counted_wherever_a_claim_is_printed(tmp_path, capsys):
    X, y = repeated()
    told = "40 of 50 rows equal another row in every column"
    for protocol in ("paper", "holdout"):
        study = replace(SMALL, protocol=protocol)
        result = run(study, table_from_arrays(X, y), out=tmp_path / protocol)
        assert (result.certificate.repeats, result.certificate.n_rows) == (40, 50)
        assert (result.to_json()["repeats"], result.to_json()["rows"]) == (40, 50)
        assert any(told in statement for statement in result.certificate.statements)
        assert told in result.summary()
        assert told in page(tmp_path / protocol)
        assert verify(tmp_path / protocol).differences == []


def test_rows_that_differ_in_the_label_alone_are_no_repeats():
    X, y = repeated()
    y[30:] = 1 - y[30:]
    assert count_repeats(table_from_arrays(X, y)) == 0
    assert "equal another row" not in run(SMALL, table_from_arrays(X, y)).summary()


# The figure l_ee


def test_l_ee_is_the_mean_of_the_bound_asked_for_and_what_is_minimised_is_not():
    table = blobs(60)
    plain = run(SMALL, table)
    errors, m = np.array(plain.certificate.errors), plain.certificate.n_select
    keys = [(m, i, 1) for i in range(5)]
    v = [np.random.default_rng(np.random.SeedSequence(0, spawn_key=key)).uniform() for key in keys]
    expected = {
        "clopper_pearson": np.mean(clopper_pearson(errors, m)),
        "stevens": np.mean(stevens(errors, m, v)),
        "safe": min(1.0, np.mean(safe(errors, m))),
        "catoni": catoni(errors.mean() / m, m),
    }
    for bound, value in expected.items():
        result = run(replace(SMALL, bound=bound), table)
        assert (result.C, result.gamma, result.k, result.l_ms) == (plain.C, plain.gamma, plain.k, plain.l_ms)
        assert result.l_ee == pytest.approx(value, rel=1e-12)
        assert result.triples["l_ee"].drop_null().to_pylist() == [result.l_ee]
        assert ("paper's figure" in result.summary()) == (bound == "clopper_pearson")
        assert "not proven" in result.certificate.statements[0]


def test_what_failed_leaves_every_claim_as_it_is():
    """Each allows for any selection: the bound of occam is a union over what failed, too."""
    result = run(SMALL, blobs(60))
    triple = Triple(result.C, result.gamma, result.k)
    c = certify(SMALL, result.table, "x", triple, result.l_ms, result.ensemble, None, True, {})
    assert c.claims == result.certificate.claims
    assert "Provisional" in c.statements[-1]
    assert "Provisional" not in " ".join(result.certificate.statements)


# What is refused


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"holdout_share": 0.3}, "goes with holdout alone: --certify holdout"),
        ({"claims": ("vote",)}, "goes with holdout alone: --certify holdout"),
        ({"protocol": "holdout", "holdout_share": 0.0}, "outside (0, 1)"),
        ({"protocol": "holdout", "holdout_share": 1.0}, "outside (0, 1)"),
        ({"protocol": "holdout", "holdout_share": "a third"}, "is not a number"),
        ({"protocol": "holdout", "claims": ("best",)}, "choose from random, vote, or member:0"),
        ({"protocol": "holdout", "claims": ("member:x",)}, "or member:0"),
        ({"protocol": "holdout", "claims": ("member:-1",)}, "or member:0"),
        ({"resampling": "rotation", "n_splits": 5}, "the rotation, which has k splits"),
        ({"outer_splits": 3}, "goes with nested alone: --certify nested"),
        ({"protocol": "nested", "outer_splits": 0}, "below 1"),
        ({"protocol": "nested", "resampling": "rotation"}, "complete splits"),
        ({"protocol": "luck"}, "choose from paper, holdout, nested"),
        ({"bound": "mid-p"}, "choose from clopper_pearson, stevens, safe, catoni"),
    ],
)
def test_a_study_refuses_what_it_cannot_certify(values, told):
    with pytest.raises(InputError) as refused:
        Study(**values)
    assert told in str(refused.value)


@pytest.mark.parametrize("share", [0.001, 0.95])
def test_a_share_that_leaves_too_little_is_refused(share):
    with pytest.raises(InputError, match="holding out"):
        run(replace(SMALL, protocol="holdout", holdout_share=share), blobs(60))


@pytest.mark.parametrize(
    "study",
    [
        Study(protocol="holdout", claims=("member:20",)),
        Study(protocol="holdout", claims=("member:3",), resampling="rotation", k=(3, 5)),
    ],
)
def test_a_member_there_will_not_be_is_refused(study):
    with pytest.raises(InputError, match="outside member:0 to member:"):
        run(study, blobs(60))


def test_k_is_judged_by_the_rows_left():
    with pytest.raises(InputError, match=r"outside 3..41 \(the table has 41 rows beside those held out\)"):
        run(replace(SMALL, protocol="holdout", k=(3, 42)), blobs(60))


def test_the_safe_bound_is_refused_before_the_run_where_it_is_not_checked():
    with pytest.raises(InputError, match="use catoni"):
        Study(bound="safe").for_rows(20_000)
    assert Study(bound="safe", k=(5,)).for_rows(20_000)

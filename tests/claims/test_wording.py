"""Words that match the numbers, with what is and is not proven beside them."""

from pathlib import Path

import numpy as np
import pytest
from claimed import SMALL, run
from conftest import blobs

from ckcv_ray.core.bounds import catoni, clopper_pearson, safe, stevens
from ckcv_ray.data.repeats import count_repeats
from ckcv_ray.data.task import Task
from ckcv_ray.reports import report
from ckcv_ray.runs.verify import verify

# Repeats


def repeated() -> tuple[np.ndarray, np.ndarray]:
    """Fifty rows: twenty stand twice (with the sign of a zero for the only difference), ten once."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    X[:20, 0] = 0.0
    other = X[:20] * [-1.0, 1.0]
    return np.concatenate([X, other]), np.concatenate([y, y[:20]])


REPEATS = "40 of 50 rows equal another row in every column"


@pytest.mark.parametrize("certify", ["occam", "holdout"])
def test_rows_that_repeat_are_counted_wherever_a_claim_is_printed(tmp_path, certify):
    result = run(SMALL.replace(certify=certify), Task.of(*repeated()), out=tmp_path / "run")
    assert (result.certificate.repeats, result.certificate.n_rows) == (40, 50)
    assert (result.to_json()["repeats"], result.to_json()["rows"]) == (40, 50)
    assert any(REPEATS in statement for statement in result.certificate.statements)
    assert REPEATS in result.summary()
    assert REPEATS in result._repr_html_()
    assert verify(tmp_path / "run").differences == []


@pytest.mark.parametrize("certify", ["occam", "holdout"])
def test_rows_that_repeat_are_counted_on_the_page(tmp_path, certify):
    run(SMALL.replace(certify=certify), Task.of(*repeated()), out=tmp_path / "run")
    assert REPEATS in Path(report(tmp_path / "run")).read_text()


def test_rows_that_differ_in_the_label_alone_are_no_repeats():
    X, y = repeated()
    y[30:] = 1 - y[30:]
    assert count_repeats(Task.of(X, y)) == 0
    assert "equal another row" not in run(SMALL, Task.of(X, y)).summary()


# The figure l_ee


def test_l_ee_is_the_mean_of_the_bound_asked_for_and_what_is_minimised_is_not():
    task = blobs(60)
    plain = run(SMALL, task)
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
        result = run(SMALL.replace(bound=bound), task)
        assert (result.setting, result.k, result.l_ms) == (plain.setting, plain.k, plain.l_ms)
        assert result.l_ee == pytest.approx(value, rel=1e-12)
        assert result.candidates["l_ee"].drop_null().to_pylist() == [result.l_ee]
        assert ("paper's figure" in result.summary()) == (bound == "clopper_pearson")
        assert "not proven" in result.certificate.statements[0]

"""The models fitted on all rows that were not held out, and on all rows, of which nothing is proven."""

from dataclasses import replace
from pathlib import Path

from claimed import SMALL, run
from conftest import blobs
from forgery import rewrite_run
from pyarrow import csv

from ckcv_ray import load_run, verify
from ckcv_ray.learners.ensemble import Ensemble, judge

HELD = SMALL.replace(certify="holdout", holdout_share=0.4)
ROWS = blobs(60, shift=0.7)  # of two classes that overlap


def test_a_model_that_is_not_the_fit_of_its_rows_is_found(tmp_path: Path) -> None:
    """Consistent in itself: a forger may try many, and keep the one with the fewest errors on unused rows."""
    out = tmp_path / "run"
    run(HELD, ROWS, out)
    result = load_run(out)
    problem, made = result.problem, result.models
    (member,) = made.refit.members
    scored = problem.take_held_rows()
    forged = replace(member.model, dual_coef=0.5 * member.model.dual_coef, offset=0.5 * member.model.offset)
    errors = judge(forged, scored.X, scored.y, problem.measure(None), 2)
    models = replace(made, refit=Ensemble((replace(member, model=forged, errors=errors),)))
    rewrite_run(out, models=models)
    (difference,) = verify(out).differences
    assert "fitted again, it predicts all 60 rows alike" in difference


def test_the_model_on_all_rows_has_learned_from_the_rows_held_out(tmp_path: Path, ckcv) -> None:
    out = tmp_path / "run"
    result = run(HELD, ROWS, out)
    csv.write_csv(ROWS.columns(), tmp_path / "rows.csv")
    for option, learned in (("--full", 60), ("--vote", result.task.n)):
        _, _, said = ckcv("predict", str(out), str(tmp_path / "rows.csv"), option)
        assert f"; {learned} of them are learning rows" in said
        assert ("nothing is proven of this model; the bound is of the one" in said) == (option == "--full")

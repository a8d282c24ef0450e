"""The claim that the guide adds (docs/contributing/claims.md), from the code on the page to the report.

It is a separate package, installed where the import system finds it: the folder on the path has the file that
the page shows, and the entry point of the project file that it shows.
"""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from blocks import read_blocks
from conftest import blobs
from pyarrow import csv

from ckcv_ray import Study, load_run
from ckcv_ray.core import quantities
from ckcv_ray.errors import InputError
from jobs.check_certificate import main as check_certificate

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "contributing" / "claims.md"


def forget() -> None:
    """Forget what the package has registered, and that entry points were looked up."""
    quantities.QUANTITIES.pop("brier", None)
    quantities._find_installed.cache_clear()
    sys.modules.pop("brier_claim", None)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """A folder with the package of the page, as an installer lays it out; it is on no path yet."""
    texts = {block.language: block.text for block in read_blocks(GUIDE)}
    project = tomllib.loads(texts["text"])["project"]
    info = tmp_path / "site" / f"brier_claim-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info.parent / "brier_claim.py").write_text(texts["python"])
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata)
    groups = project["entry-points"].items()
    points = [line for group, named in groups for line in (f"[{group}]", *map(" = ".join, named.items()))]
    (info / "entry_points.txt").write_text("\n".join(points))
    forget()
    yield info.parent
    forget()


def test_the_claim_of_the_guide_is_run_verified_and_reported(
    site: Path, tmp_path: Path, ckcv, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out, table = tmp_path / "run", tmp_path / "t.csv"
    csv.write_csv(blobs(80, seed=1, shift=2.0).columns().rename_columns(["age", "dose", "outcome"]), table)
    options = ("--target", "outcome", "--learner", "naive_bayes", "--k", "3", "--n-splits", "4")
    study = ("run", table, *options, "--backend", "serial", "--claim", "refit,brier", "--out", out)
    code, _, said = ckcv(*study)
    assert code == 2
    assert "--claim 'brier' is not known: choose from refit" in said

    forget()
    with monkeypatch.context() as installed:
        installed.syspath_prepend(site)
        code, printed, said = ckcv(*study, "--accept", "brier<=0.2")
        assert code == 0, said
        assert "ACCEPTED: brier<=0.2: proven Brier score at most 0." in printed
        error, brier = load_run(out).certificate.claims
        assert (str(brier.quantity), brier.delta, error.delta) == ("brier", 0.025, 0.025)
        assert brier.measured < brier.bound <= 0.2
        assert "the Brier score of the model fitted on the learning rows is at most 0." in brier.statement
        assert ckcv("verify", out)[0] == 0
        assert ckcv("report", out)[0] == 0
        assert "Brier score at most" in (out / "report.html").read_text()
        code, _, said = ckcv("run", table, *options[:2], "--claim", "brier", "--out", tmp_path / "svm")
        assert code == 2
        assert "--claim brier needs probabilities, and learner svm gives none" in said

    capfd.readouterr()
    assert check_certificate(str(out)) == 2
    assert "not known: holdout refit brier" in capfd.readouterr().out

    forget()
    code, _, said = ckcv("report", out)
    assert code == 4
    assert "needs what is not here: claim='brier' is not known: choose from " in said


def test_a_package_that_cannot_be_loaded_is_in_the_way_of_its_own_claim_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = {"luck": EntryPoint("luck", "no_such_module:Luck", quantities.GROUP)}
    monkeypatch.setattr(quantities, "_find_installed", lambda: broken)
    assert Study.of(claim="refit,auc", require="sensitivity>=0.9").delta_of_claim == 0.05 / 3
    with pytest.raises(InputError, match="the quantity luck of no_such_module:Luck cannot be loaded"):
        Study.of(claim="refit,luck")

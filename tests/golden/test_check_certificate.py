"""The second computation of certificates: it agrees with every golden study, and detects forgeries."""

import ast
import json
import shutil
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from samples import cloud, clouds, lattice, visits
from studies import SMALL, STUDIES, run_golden

from ckcv_ray import Execution, Study, evaluate, run
from jobs import check_certificate

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "check_certificate",
    *(f"independent_{part}" for part in ("betting", "bounds", "claims", "judged", "run")),
)
FILES = [ROOT / "jobs" / f"{name}.py" for name in NAMES]
SERIAL = Execution("serial")
Folder = Callable[[str], Path]
Check = Callable[[Path], tuple[int, str]]
ONE_SETTING = SMALL.replace(C=(1.0,), gamma=(1.0,))
BY_ORDER = ONE_SETTING.replace(certify="holdout", holdout_bound="stevens")
TREE = Study.paper(learner="tree", k=(3, 5), n_splits=3)
LINEAR = Study.paper(learner="linear", k=(3,), n_splits=3)
HELD = LINEAR.replace(certify="holdout")
BY_COLUMN = ONE_SETTING.replace(certify="holdout", holdout_where="x0>=1")
COMPARED = HELD.replace(learner="svm,tree", C=(1.0,), gamma=(1.0,), claim="refit,better:tree")
MORE = {  # what neither golden studies nor the contract of quantities have
    "answered": (HELD.replace(answer="error<=0.3"), lattice(240)),
    "precision": (HELD.replace(claim=("refit", "precision", "sensitivity")), lattice(120)),
    "held out by a column": (
        BY_COLUMN.replace(claim=("refit", "vote", "auc", "specificity", "precision")),
        lattice(120),
    ),
    "weighted, repeats": (HELD.replace(claim="weighted_error:3,refit"), lattice(120)),
    "usual settings": (TREE, lattice(90)),
    "settings that are listed": (LINEAR.replace(param=("C=0.1,1,10",)), lattice(90)),
    "positions": (
        BY_ORDER.replace(holdout_share=0.6, claim=("refit", "vote", "sensitivity", "specificity")),
        lattice(120),
    ),
    "positions of pairs": (BY_ORDER.replace(claim=("refit", "auc")), lattice(90)),
    "better, groups": (COMPARED, visits(120)),
    "betting, rows held out": (ONE_SETTING.replace(k=(3,), certify="holdout"), visits(300)),
    "every split": (ONE_SETTING.replace(k=(3,), n_splits=100), cloud(6)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The run folder of a study, made once."""
    root, made = tmp_path_factory.mktemp("folders"), {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = out = root / str(len(made))
            if name in MORE:
                study, sample = MORE[name]
                X = np.round(sample.X) if sample.groups is not None else sample.X
                weights = np.resize([0.5, 3.0, 1.0], len(X)) if name.startswith("weighted") else None
                run(study, X, sample.y, out, SERIAL, groups=sample.groups, sample_weight=weights)
            else:
                run_golden(name, out)
        return made[name]

    return make


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Return the exit code of the job, and what it says about a folder."""
    return lambda out: (check_certificate.main(str(out)), capsys.readouterr().out)


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_of_a_golden_study_is_computed_again(name: str, folder: Folder, check: Check) -> None:
    code, said = check(folder(name))
    assert (code, "DIFFERS" in said, "not known" in said) == (0, False, False), said
    claims = json.loads((folder(name) / "certificate.json").read_text())["claims"]
    for claim in claims:
        assert f"{claim['certification']} {claim['classifier']} {claim['quantity']}" in said


@pytest.mark.parametrize("name", MORE)
def test_other_studies_agree_as_well(name: str, folder: Folder, check: Check) -> None:
    code, said = check(folder(name))
    assert (code, "not known: " in said) == ((2, True) if name == "every split" else (0, False)), said
    assert ("few possible splits" in said) == (name == "every split")
    if "settings" in name:
        assert ("taken as stored: the number of settings" in said) == name.startswith("usual settings")


def test_a_folder_without_a_certificate_is_not_known(tmp_path: Path, check: Check) -> None:
    X, y, _ = clouds(40, 2)
    evaluate(X, y, learner="constant", resampling="kfold:3", out=tmp_path / "run", execution=SERIAL)
    assert check(tmp_path / "run")[0] == 2
    assert check(tmp_path / "nothing")[0] == 2


def rewrite(file: Path, change: Callable[[Any], object]) -> None:
    """Change the content of a JSON file, or the rows of a table."""
    if file.suffix == ".json":
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))
        return
    table = parquet.read_table(file)
    rows = table.to_pylist()
    change(rows)
    parquet.write_table(pa.Table.from_pylist(rows, table.schema), file)


CERTIFICATE, MODELS, CANDIDATES = "certificate.json", "ensemble/models.parquet", "candidates.parquet"
OF_CERTIFICATE: list[Callable[[Any], object]] = [
    lambda content: [claim.update(bound=claim["bound"] * (1 - 1e-8)) for claim in content["claims"]],
    lambda content: content["claims"][0].update(errors=content["claims"][0]["errors"] - 1),
    lambda content: content["claims"][0].update(delta=0.06),
    *(lambda content, of=of: content.update({of: content[of] - 1e-6}) for of in ("l_ms", "l_ee")),
    lambda content: content["by_class"][0].update(bound=content["by_class"][0]["bound"] - 1e-6),
    lambda content: content.update(bound_without_copies=content["bound_without_copies"] + 1e-6),
    lambda content: content.update(repeats=2),
]
OF_ONE_FILE: list[tuple[str, Callable[[Any], object]]] = [
    (MODELS, lambda rows: rows[0]["errors"].reverse()),
    (MODELS, lambda rows: rows[0]["n_estimate"].__setitem__(0, 99)),
    (MODELS, lambda rows: rows[0]["errors"].__setitem__(0, 0)),
    (CANDIDATES, lambda rows: rows.pop()),
    (CANDIDATES, lambda rows: rows[0].update(lower_bound=rows[0]["lower_bound"] - 1e-6)),
]


def change_judged(column: str) -> Callable[[Any], object]:
    other = {"weight": 4}.get(column, 1)  # no row has half of it, which would stay
    return lambda rows: rows[0].update({column: other - rows[0][column]})


def change_gate(part: str) -> Callable[[Any], object]:
    def change(content: Any) -> None:
        gate = next(claim["gate"] for claim in content["claims"] if "gate" in claim)
        gate[part] = 1 - gate[part] if part == "predicted" else gate[part] / 2 + 0.1

    return change


JUDGED = ("row", "unit", "order", "label", "predicted", "loss", "weight")
GATED = product(["better, groups", "weighted, repeats"], ["predicted", "lost", "won", "bound", "least"])


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        *product(["plain", "holdout with two claims"], [CERTIFICATE], OF_CERTIFICATE),
        *(("fits that do not converge", *forged) for forged in OF_ONE_FILE),
        ("groups", MODELS, lambda rows: [row.update(offset=9.0) for row in rows]),  # who judges held-out rows
        *(
            (
                "weighted, repeats" if column == "weight" else "better, groups",
                "judged.parquet",
                change_judged(column),
            )
            for column in JUDGED
        ),
        *((name, CERTIFICATE, change_gate(part)) for name, part in GATED),
    ],
)
def test_what_is_forged_differs(
    name: str, file: str, change: Any, folder: Folder, tmp_path: Path, check: Check
) -> None:
    out = shutil.copytree(folder(name), tmp_path / "run")
    rewrite(out / file, change)
    code, said = check(out)
    assert (code, "DIFFERS" in said) == (1, True), said


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("positions of pairs", 2, "which rows or pairs are wrong, auc"),
        ("answered", 0, "taken as stored: the "),
    ],
)
def test_a_folder_without_judged_rows_is_checked_from_stored_counts(
    name: str, code: int, words: str, folder: Folder, tmp_path: Path, check: Check
) -> None:
    out = shutil.copytree(folder(name), tmp_path / "run")
    (out / "judged.parquet").unlink()
    found, said = check(out)
    assert (found, words in said) == (code, True), said


def test_an_evaluation_that_the_log_lacks_is_not_known(folder: Folder, tmp_path: Path, check: Check) -> None:
    out = shutil.copytree(folder("plain"), tmp_path / "run")
    for part in (out / "log").iterdir():
        rewrite(part, lambda rows: rows.clear() if len(rows) < 3 else rows.__delitem__(slice(0, 2)))
    code, said = check(out)
    assert (code, "not known: candidates: KeyError" in said) == (2, True)


# What it is made of


def test_it_imports_numpy_and_the_standard_library_and_parquet_to_read() -> None:
    imported = set()
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    assert imported - sys.stdlib_module_names == {"numpy", "pyarrow", "jobs"}

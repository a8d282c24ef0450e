"""The command compare: exit codes for a gate, what it prints, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command import Command, call
from conftest import unwrap
from pyarrow import csv

LEFT = " whose features were not learned from"  # of one feature a few values agree by chance
GRID = ("--C", "1", "--gamma", "0.1", "--k", "3", "--n-splits", "3")
RUN = ("--target", "outcome", "--certify", "holdout", *GRID)


def write_rows(file: Path, n: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    age, noise = rng.normal(size=(2, n)).round(4)
    ill = age + 0.3 * rng.normal(size=n) > 0
    nurse = np.where(rng.random(n) < 0.1, ~ill, ill)
    names = {name: np.where(x, "ill", "well") for name, x in (("outcome", ill), ("nurse", nurse))}
    csv.write_csv(pa.table({"age": age, "noise": noise, "patient": np.arange(n) // 2, **names}), file)
    return file


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of which one knows the age, and judged rows."""
    folder = tmp_path_factory.mktemp("gate")
    table = write_rows(folder / "learn.csv", 90, 0)
    write_rows(folder / "judged.csv", 150, 1)
    for name, feature in (("new", "age"), ("old", "noise")):
        words = ("--features", feature, "--out", folder / name, "--backend", "serial")
        assert call("run", table, *RUN, *words) == 0
    return folder


def compare(ckcv: Command, place: Path, *words: object, rows: str = "judged.csv") -> tuple[int, str, str]:
    runs = [place / word if word in ("new", "old") else word for word in words]
    ledger = place / f"{len(list(place.glob('*.json')))}.json"  # a new one: the rows are new again
    return ckcv("compare", *runs, "--rows", place / rows, "--ledger", ledger)


@pytest.mark.parametrize(
    ("words", "ends", "said"),
    [
        (("new", "old"), 0, "proven better: a new row is misclassified less often by"),
        (("new", "old"), 0, "the only use of these rows (SHA-256 "),
        (("old", "new"), 5, "proven worse"),
        (
            ("new", "--predictions", "nurse", "--no-worse", 0.005),
            6,
            "not yet proven: that a new row is misclassified at most 0.5 percentage points more often",
        ),
    ],
)
def test_the_exit_code_is_the_answer(
    words: tuple[object, ...], ends: int, said: str, ckcv: Command, place: Path
) -> None:
    code, shown, _ = compare(ckcv, place, *words)
    assert (code, said in unwrap(shown.replace(LEFT, ""))) == (ends, True), shown


def test_the_result_is_one_json_object(ckcv: Command, place: Path) -> None:
    code, shown, _ = compare(ckcv, place, "new", "old", "--group", "patient", "--json", "--uses", 2)
    content = json.loads(shown)
    assert (code, content["answer"], content["groups"]) == (0, "better", 75)
    assert content["use"]["shares"] == 2

"""What a message offers for a word that is nearly right, and how it names what it is about."""

from pathlib import Path

import pytest
from command import Command
from finished import Finished

from ckcv_ray.cli.main import name_options

TABLE = "".join(f"{i % 5},{i % 7},p{i // 2},{'ab'[i % 2]}\n" for i in range(40))


@pytest.fixture
def patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.csv").write_text(f"age,dose,patient,Outcome\n{TABLE}")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run patients.csv --target outcome", "'Outcome'"),
        ("run patients.csv --target Outcome --features age,dos", "'dose'"),
        ("run patients.csv --target Outcome --learner forrest", "forest"),
        ("run patient.csv", "'patients.csv'"),
        ("run twonrm:40:0", "twonorm"),
        ("evaluate patients.csv --target Outcome --measure acuracy", "accuracy"),
        ("evaluate patients.csv --target Outcome --resampling kfld:10", "kfold"),
    ],
)
def test_a_word_that_is_nearly_right_is_offered(
    words: str, offered: str, ckcv: Command, patients: Path
) -> None:
    code, shown, messages = ckcv(*words.split())
    assert (code, shown) == (2, "")
    assert messages.endswith(f"; did you mean {offered}?\n")
    assert messages.count("\n") == 1


@pytest.mark.parametrize("command", ["status", "report", "verify", "predict"])
def test_a_run_folder_that_is_nearly_right_is_offered(
    command: str, ckcv: Command, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished("held", to=tmp_path / "runs").rename("runs/patients")
    (tmp_path / "runs" / "patient").mkdir()  # of something else
    (tmp_path / "new.csv").write_text("x0\n1\n")
    for name in ("patients2", "patient"):
        code, _, messages = ckcv(command, f"runs/{name}", *["new.csv"] * (command == "predict"))
        assert code == 4
        assert messages.endswith("; did you mean 'runs/patients'?\n")
    assert "did you mean" not in ckcv(command, "elsewhere/patients", *["new.csv"] * (command == "predict"))[2]


def test_a_message_names_options_as_they_are_given() -> None:
    options = {"k": "--k", "n_splits": "--n-splits", "exhaustive": "--exhaustive", "row_id": "--id"}
    for argument, option in (
        ("n_splits=3 is too few", "--n-splits 3 is too few"),
        ("leave out exhaustive=True, or k=5", "leave out --exhaustive, or --k 5"),
        ("k=True is no number", "--k True is no number"),
        ("exhaustive=True requires k=3", "--exhaustive requires --k 3"),
        ("row_id='x' is no column", "--id 'x' is no column"),
        ("costs=k=1 and 'k=2', svm.k=3 and --k=4", "costs=k=1 and 'k=2', svm.k=3 and --k=4"),
    ):
        assert name_options(argument, options, {"exhaustive"}) == option


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('seed = 1\nn-splits = "x"\n', "'study.toml': --n-splits 'x' is not a whole number"),
        ("learner = 'svm,tree'\n[svm]\nC = 'x'\n", "'study.toml': --C 'x'"),
        ("seed = 1\nn-splits = [\n", "'study.toml': Invalid value (at end of document)"),
    ],
)
def test_a_mistake_in_a_study_file_is_said_of_it(text: str, said: str, ckcv: Command, patients: Path) -> None:
    (patients / "study.toml").write_text(text)
    words = ("run", "patients.csv", "--target", "Outcome", "--study", "study.toml", "--delta", "0.1")
    code, _, messages = ckcv(*words)
    assert (code, messages.count("\n")) == (2, 1)
    assert said in messages, messages

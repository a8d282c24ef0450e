"""Commands judge, compare and watch: exit codes, JSON and refusals; acceptance cases hold what they print."""

import json
from pathlib import Path

import pytest
from conftest import Command, unwrap
from finished import Finished
from tables import write_table


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows and somebody's predictions for them, half of which are wrong."""
    monkeypatch.chdir(tmp_path)
    write_table("judged.csv", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("condition", "code"), [("error<=0.9", 0), ("error<=0.1", 5), ("error<=0.5", 6)])
def test_what_has_to_be_proven_decides_the_exit_code(ckcv: Command, condition: str, code: int) -> None:
    asked = ("judge", "judged.csv", "--label", "kind", "--prediction", "theirs", "--json", "--out", "p.html")
    ended, shown, said = ckcv(*asked, "--accept", condition)
    values = json.loads(shown)
    assert (ended, values["rows"], "page: " in said, Path("p.html").exists()) == (code, 200, True, True)
    assert values["confusion"][0][0] + values["confusion"][1][1] == 200 - values["claims"][0]["errors"]
    assert [len(row) for row in values["confusion"]] == [len(values["labels"])] * 2


@pytest.mark.usefixtures("place")
def test_a_precision_stands_beside_the_ppv(ckcv: Command) -> None:
    asked = ("judge", "judged.csv", "--label", "kind", "--prediction", "theirs", "--details")
    shown = unwrap(ckcv(*asked, "--claim", "precision,sensitivity", "--delta", 0.1)[1])
    told = {
        name: shown.partition(f"{name}: ")[2][:90] for name in ("sensitivity", "PPV", "NPV", "specificity")
    }
    assert ["at least" in text.partition(":")[0] for text in told.values()] == [True, True, False, False]
    assert "Only what is ‘proven’ carries the 95 % statement." in shown


@pytest.mark.parametrize(
    ("words", "ends", "said"),
    [
        (("a", "b"), 0, "the only use of these rows (SHA-256 "),
        (("b", "a"), 5, "proven worse"),
        (
            ("b", "--predictions", "theirs", "--no-worse", 0.005),
            6,
            "not yet proven: that a new row is misclassified at most 0.5 percentage points more often",
        ),
    ],
)
def test_the_exit_code_is_the_answer(
    words: tuple[object, ...], ends: int, said: str, ckcv: Command, place: Path, finished: Finished
) -> None:
    for name in "ab":
        finished("compared", name, to=place)
    code, shown, _ = ckcv("compare", *words, "--rows", "judged.csv")
    assert (code, said in unwrap(shown)) == (ends, True), shown


NAMES = ("--id", "id", "--prediction", "theirs")


@pytest.fixture
def run(place: Path, finished: Finished) -> Path:
    """A finished run beside the rows."""
    return finished("watched", to=place)


def test_an_alarm_ends_with_5_whenever_it_is_looked_at(ckcv: Command, run: Path) -> None:
    head, *lines = Path("judged.csv").read_text().splitlines()
    for part in (lines[:40], lines[40:]):
        Path("part.csv").write_text("\n".join([head, *part]))
        code, shown, _ = ckcv("watch", run, "part.csv", *NAMES, "--json")
    found = json.loads(shown)
    assert (code, found["alarm"], found["rows"], found["added"]) == (5, True, 200, 160)
    assert found["findings"][0]["state"] == "alarm"
    assert [ckcv(command, run)[0] for command in ("watch", "verify", "status")] == [5, 0, 0]

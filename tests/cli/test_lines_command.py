"""Lines that are no rows, text tables separated by spaces, and doubtful numbers on the command line."""

from pathlib import Path

import numpy as np
import pytest
from command import Command

ONCE = ("--k", "3", "--n-splits", "3", "--C", "1", "--gamma", "0.1", "--backend", "serial")
UNITS = "years mg/dl -"


def write(path: Path, seed: int, total: bool = True) -> Path:
    """Write 24 rows with a line of units above them and one of totals below, separated by spaces."""
    x = np.random.default_rng(seed).normal(size=24)
    rows = (f"{40 + i}.5   {a:.2f}  {'ab'[int(a > 0)]}" for i, a in enumerate(x))
    path.write_text("\n".join(["age dose y", UNITS, *rows, *(["Total 7 -"] * total)]) + "\n")
    return path


@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_they_are_asked_about_and_left_out(ckcv: Command, command: str, tmp_path: Path) -> None:
    table = write(tmp_path / "table.dat", 0)
    options = ONCE if command == "run" else ("--learner", "tree")
    asked = (command, table, "--out", tmp_path / "run", *options)
    for given, parts in (
        ((), ("'mg/dl' in column 'dose' of line 2", "--skip-rows 2 to leave")),
        (("--skip-rows", "2"), ("line 27 of", "--skip-rows 2,last to leave")),
    ):
        code, _, said = ckcv(*asked, *given)
        assert code == 2
        assert all(part in said for part in parts)
    code, _, said = ckcv(*asked, "--skip-rows", "two")
    assert (code, "--skip-rows 'two': expected numbers of lines" in said) == (2, True)
    code, printed, said = ckcv(*asked, "--skip-rows", "2,last")
    assert (code, "24 rows" in printed) == (0, True), said


def test_files_of_new_rows_are_read_alike(ckcv: Command, tmp_path: Path) -> None:
    table, test, run = write(tmp_path / "table.dat", 0), write(tmp_path / "test.dat", 1), tmp_path / "run"
    skip = ("--skip-rows", "2,last")
    code, _, said = ckcv("run", table, "--out", run, *ONCE, "--test", test, *skip)
    assert code == 0, said
    assert ckcv("verify", run, "--test", test, *skip)[0] == 0
    code, _, said = ckcv("verify", run, *skip)
    assert (code, "skip_rows and encoding are for the file of --test" in said) == (2, True)
    code, _, said = ckcv("predict", run, test, "--vote")
    assert (code, "--skip-rows 2" in said) == (2, True)
    code, printed, _ = ckcv("predict", run, test, "--vote", *skip)
    assert (code, len(printed.splitlines())) == (0, 25)


def test_a_new_number_that_may_have_thousands_is_asked_about(ckcv: Command, tmp_path: Path) -> None:
    table, run, new = write(tmp_path / "table.dat", 0), tmp_path / "run", tmp_path / "new.csv"
    assert ckcv("run", table, "--out", run, *ONCE, "--skip-rows", "2,last")[0] == 0
    new.write_text("age,dose\n41.5,0.25\n1.250,0.5\n")
    code, printed, said = ckcv("predict", run, new, "--vote")
    assert (code, printed.splitlines()[2]) == (0, "2,,,,")
    assert "1 of 2 rows could not be judged: column 'age' has '1.250' in row 2" in said
    assert "say --thousands . if it is, --thousands , if it is that of decimals" in said
    for mark in ",.":
        code, printed, said = ckcv("predict", run, new, "--vote", "--thousands", mark)
        assert (code, "could not be judged" in said) == (0, False)
    code, _, said = ckcv("predict", run, new, "--thousands", ";")
    assert (code, "--thousands ';': expected a comma or a point" in said) == (2, True)


def test_folders_and_addresses_are_no_tables(ckcv: Command, tmp_path: Path) -> None:
    table, run = write(tmp_path / "table.dat", 0), tmp_path / "run"
    assert ckcv("run", table, "--out", run, *ONCE, "--skip-rows", "2,last")[0] == 0
    for source, message in (
        (run, "is a run folder, and no table"),
        (tmp_path, "is a folder, and no table: name a file, such as"),
        ("https://example.org/a.csv", "is an address: download the file first"),
    ):
        for asked in (("run", source, "--out", tmp_path / "other"), ("predict", run, source)):
            code, _, said = ckcv(*asked)
            assert (code, message in said) == (2, True)


def test_every_command_says_what_a_table_was_read_as(ckcv: Command, tmp_path: Path) -> None:
    """Each kind of command says it once, and with --encoding reads text that it asks about without."""

    def write_rows(name: str, seed: int, labels: tuple[str, str], encoding: str) -> Path:
        x = np.random.default_rng(seed).normal(size=60).round(4)
        rows = (f"{name}{i},{a},{labels[i % 2]},{labels[int(a > 0)]}\n" for i, a in enumerate(x))
        (tmp_path / f"{name}.csv").write_bytes(f"no,x,nurse,y\n{''.join(rows)}".encode(encoding))
        return tmp_path / f"{name}.csv"

    for labels, encoding in ((("für", "wider"), "cp1252"), (("за", "против"), "cp1251")):
        learned, new = (write_rows(name, seed, labels, encoding) for seed, name in enumerate("ab"))
        run, scores, stream, uses = (tmp_path / f"{name}-{encoding}" for name in ("r", "s", "t.jsonl", "u"))
        drop = ("--drop", "no,nurse")
        for command in (
            ("run", learned, "--out", run, "--certify", "holdout", *drop, *ONCE),
            ("evaluate", learned, "--out", scores, "--learner", "tree", *drop),
            ("predict", run, new),
            ("watch", run, new, "--id", "no", "--stream", stream),
            ("compare", run, "--rows", new, "--predictions", "nurse", "--ledger", uses),
        ):
            code, _, said = ckcv(*command)
            if encoding == "cp1252":
                assert code in (0, 6)
                assert said.count("is not UTF-8: read as cp1252, as in 'für'; say --encoding") == 1
                continue
            assert (code, "say --encoding cp1251 for 'за'" in said) == (2, True)
            code, _, said = ckcv(*command, "--encoding", encoding)
            assert (code in (0, 6), "UTF-8" in said) == (True, False), said
        assert ckcv("verify", run, "--table", learned)[0] == 0
    code, _, said = ckcv("predict", run, new, "--encoding", "no-such")
    assert (code, "--encoding 'no-such': expected one of text that Python knows" in said) == (2, True)

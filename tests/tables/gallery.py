"""A gallery of untidy tables: each kind of trouble alone, how it is interpreted, and what is said.

``python tests/tables/gallery.py docs/guides/gallery.md`` writes the page of the documentation that shows it.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from openpyxl import Workbook
from pyarrow import parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.columns import DeclaredTypes
from ckcv_ray.tables.named import read
from ckcv_ray.tables.questions import list_row_numbers, survey
from ckcv_ray.tables.read import Reading
from ckcv_ray.tables.roles import Roles
from ckcv_ray.tables.task import Task

N = 24
RNG = np.random.default_rng(np.random.SeedSequence(18))
Y = [("ill", "well")[i % 2] for i in range(N)]
X = [f"{value:.2f}" for value in RNG.normal(size=N) + np.arange(N) % 2]
DAYS = [datetime(2024, 1, 1) + timedelta(days=11 * i) for i in range(N)]
CASES = [("Ill", "well", "ill")[i % 3] for i in range(N)]
SPACED = [("type 1", "type 2", "type1")[i % 3] for i in range(N)]
NUMBERS = [("01", "2", "1")[i % 3] for i in range(N)]
WORDS = [("red", "green", "blue")[i % 3] for i in range(N)]
HIGH = ["high" if i == 9 else str(i % 7) for i in range(N)]
RUSSIAN = [("за", "против")[i // 2 % 2] for i in range(N)]
GAPS = ["NA", "?", "-", "n/a", "null", "nan", "3", "4"]
SEVENS = [str(i % 7) for i in range(N)]


Said = TypeVar("Said", Roles, DeclaredTypes, Reading)
LISTS = ("features", "drop", "numeric", "categorical")  # options of several names


@dataclass(frozen=True)
class Exhibit:
    """A table, and what becomes of it."""

    title: str  # what is untidy
    write: Callable[[Path], Any]  # writes it into a folder and returns the file, or the columns themselves
    option: str = ""  # what the user says, as on the command line
    target: str = "outcome"

    def parse(self, kind: type[Said]) -> Said:
        """Return what the option says, if it is of this kind."""
        name, _, value = self.option.removeprefix("--").partition(" ")
        if (field := name.replace("-", "_")) not in kind._fields:
            return kind()
        return kind(**{field: value.split(",") if field in LISTS else value or True})

    def task(self, folder: Path, say: Callable[[str], object] = str) -> Task:
        """Return the task made from it, and say what has to be said about how it was read."""
        roles = self.parse(Roles)._replace(target=self.target)
        return Task.from_table(self.read(folder, say), roles, self.parse(DeclaredTypes))

    def read(self, folder: Path, say: Callable[[str], object] = str) -> pa.Table:
        """Return its columns as they are read, and say what has to be said about that."""
        source = self.write(folder)
        return source if isinstance(source, pa.Table) else read(source, self.parse(Reading), say).learn


def settle(title: str, write: Callable[[Path], Any], how: str, option: str) -> tuple[Exhibit, Exhibit]:
    """Return an exhibit as it is, and with the option that settles it."""
    return Exhibit(title, write), Exhibit(f"{title}, {how}", write, option)


def text(
    cells: Callable[[int], str] | list[str] | None = None,
    name: str = "col",
    encoding: str = "utf-8",
    suffix: str = "csv",
    labels: list[str] = Y,
    first: str = "x",
    above: tuple[str, ...] = (),
    below: tuple[str, ...] = (),
    units: tuple[str, ...] = (),
) -> Callable[[Path], Any]:
    """Return a function that writes a text table of x, perhaps a column of cells, and the labels.

    Lines may stand above the names of the columns, between these and the rows, and below the rows.
    """
    column = [cells(i) for i in range(N)] if callable(cells) else cells

    def write(folder: Path) -> Path:
        columns = [[first, *X], *([[name, *column]] if column else []), ["outcome", *labels]]
        names, *lines = map(",".join, zip(*columns, strict=True))
        content = "\n".join([*above, names, *units, *lines, *below, ""])
        file = folder / f"table.{suffix}"
        file.write_bytes(content.encode(encoding))
        return file

    return write


def arrow(**columns: Any) -> Callable[[Path], Any]:
    """Return a function that makes a table of Arrow columns, with x and the labels."""
    return lambda folder: pa.table({"x": [float(one) for one in X], **columns, "outcome": Y})


def lists(folder: Path) -> Path:
    parquet.write_table(arrow(col=[[i] for i in range(N)])(folder), folder / "table.parquet")
    return folder / "table.parquet"


def excel(sheets: int = 1, formula: bool = False) -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        book = Workbook()
        for row in [["x", "col", "outcome"], *zip(map(float, X), DAYS, Y, strict=True)]:
            book.active.append(list(row))
        if formula:
            book.active["A3"] = "=A2+1"
        for i in range(1, sheets):
            book.create_sheet(f"Sheet{i + 1}")
        book.save(folder / "table.xlsx")
        return folder / "table.xlsx"

    return write


def svmlight(folder: Path) -> Path:
    rows = [f"{i % 2} 1:{X[i]}" + (f" 3:{i}" if i % 3 else "") for i in range(N)]
    file = folder / "table.svmlight"
    file.write_text("\n".join(rows))
    return file


GALLERY = (
    Exhibit("gaps written in six ways", text(lambda i: GAPS[i % 8])),
    Exhibit("amounts in several units", text(lambda i: f"{'$€'[i % 2]}{i % 7}")),
    *settle("a word among numbers", text(HIGH), "declared a gap", "--numeric col"),
    Exhibit("codes that look like numbers", text(lambda i: str(100 + i % 3)), "--categorical col"),
    Exhibit("infinity", text(lambda i: "inf" if i == 4 else str(i % 7))),
    Exhibit("an absurdly large number", text(lambda i: "1e+300" if i == 4 else str(i % 7))),
    Exhibit("words with gaps", text(lambda i: "" if i % 4 == 0 else WORDS[i])),
    *settle("another word in each row", text(lambda i: f"patient {i}"), "its identifier", "--id col"),
    Exhibit("booleans with gaps", text(lambda i: ("true", "false", "")[i % 3])),
    Exhibit("days with gaps", text(lambda i: "" if i % 6 == 0 else DAYS[i].strftime("%Y-%m-%d"))),
    Exhibit("months or days first", text(lambda i: f"0{i % 3 + 1}/0{i % 4 + 4}/2024")),
    Exhibit("an impossible day", text(lambda i: "2023-02-30" if i == 5 else DAYS[i].strftime("%Y-%m-%d"))),
    Exhibit("an empty column", text(lambda i: "")),
    Exhibit("a column that is the same in every row", text(lambda i: "7")),
    Exhibit("a copy of another column", text(X)),
    Exhibit("an unnamed index", text(str, name="")),
    Exhibit("patient numbers", text(lambda i: str(5000 + 13 * i), name="patient_id")),
    Exhibit("row numbers under another name", text(lambda i: str(i + 1), name="x1")),
    Exhibit("row numbers, wanted", text(str, name="dose"), "--features x,dose"),
    Exhibit("numbers, some repeated", text(lambda i: str(1001 + 37 * (i - i // 7 % 2)), name="sample")),
    Exhibit("a name with a space", text(lambda i: f"P{i // 3}", name="patient no")),
    Exhibit("patients' visits", text(lambda i: f"P{i // 3}", name="patient")),
    Exhibit("a column that gives the target away", text(lambda i: str(i % 2 * 100 + i % 5), "diagnosis")),
    Exhibit("two columns with one name that are identical", text(X, name="x")),
    Exhibit("two columns with one name", text(lambda i: str(i % 5), name="x")),
    Exhibit(
        "two columns with one name that are left out",
        lambda folder: arrow(col=WORDS)(folder).append_column("x", pa.array(range(N))),
        "--drop x",
    ),
    *settle("labels with a gap", text(labels=["", *Y[1:]]), "whose row is left out", "--drop-unlabelled"),
    *settle("labels that differ in case", text(labels=CASES), "of one class", "--labels join"),
    Exhibit("labels that differ in spaces", text(labels=SPACED)),
    *settle("labels that are the same number", text(labels=NUMBERS), "of several classes", "--labels apart"),
    *settle("a line of units", text(SEVENS, units=("m,mg/dl,",)), "left out", "--skip-rows 2"),
    Exhibit("a second header", text(SEVENS, units=("x,col,outcome",))),
    *settle("a line of totals", text(SEVENS, below=("Total,72,",)), "left out", "--skip-rows last"),
    *settle("a title", text(WORDS, above=("Ward 7, visits of 2024", "")), "left out", "--skip-rows 1-2"),
    Exhibit("a title in the first cell", text(SEVENS, above=("Ward 7,,",))),
    Exhibit("a label for each row", text(labels=[f"label {i}" for i in range(N)])),
    Exhibit("a single label", text(labels=["ill"] * N)),
    Exhibit("two kinds of separator", text(WORDS, first="a;x", labels=[f"{one};1" for one in Y])),
    Exhibit("Latin-1", text(lambda i: ("für", "wider")[i // 2 % 2], encoding="latin-1")),
    *settle("Russian from Windows", text(RUSSIAN, encoding="cp1251"), "declared", "--encoding cp1251"),
    Exhibit("text from a Mac", text(lambda i: ("für", "wider")[i // 2 % 2], encoding="mac_roman")),
    Exhibit("column names in a comment", text(WORDS, first="# x")),
    Exhibit("two files joined", text(WORDS, below=("x,col,outcome", "1.5,red,ill"))),
    Exhibit("row names, as R writes them", text(labels=[f"{one},{i % 3}" for i, one in enumerate(Y)])),
    Exhibit("not what its name says", text(WORDS, suffix="csv.gz")),
    Exhibit("Parquet with lists", lists),
    Exhibit("times with a zone", arrow(col=pa.array(DAYS, pa.timestamp("us", "Europe/Rome")))),
    Exhibit("an Excel workbook", excel()),
    *settle("an Excel workbook with two sheets", excel(2), "one named", "--sheet Sheet"),
    Exhibit("formulas in Excel", excel(formula=True)),
    Exhibit("sparse text", svmlight, target="y"),
)


def said_of(exhibit: Exhibit) -> tuple[str, str]:
    """Return how an exhibit's last column is interpreted, or why it is refused; and what is said about it."""
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            task = exhibit.task(Path(folder), lambda remark: notes.append(remark.replace(f"{folder}/", "")))
        except InputError as error:
            return "refused", str(error).replace(f"{folder}/", "")
    kinds = ", ".join(f"{one.name or '(no name)'} {one.kind}" for one in task.schema.columns[-2:])
    notes += [f"{one.name or '(no name)'} {one.note}" for one in survey(task) if one.note]
    notes += list_row_numbers(task.row_numbers)
    if task.units.question:
        notes.append(task.units.question)
    return kinds, "; ".join(notes)


def page() -> str:
    """Return the page of the documentation."""
    head = "# A gallery of untidy tables\n\n**What does `ckcv` make of an untidy table?** "
    lines = [head + "{source}`tests/tables/gallery.py` wrote this page.\n"]
    lines += ["| refused, or run with a remark | because | options |", "|---|---|---|"]
    settled: list[str] = []
    for exhibit in GALLERY:
        kinds, said = said_of(exhibit)
        if said:
            options = ", ".join(dict.fromkeys(one.strip(",;:") for one in said.split() if one[:2] == "--"))
            because = (said.rpartition(": ")[0] or said).split("; ")[0].split(". ")[0]
            lines.append(f"| {exhibit.title} | {'runs: ' * (kinds != 'refused')}{because} | {options} |")
        elif exhibit.option:
            settled.append(f"{exhibit.title} (`{exhibit.option}`)")
    return "\n".join(lines) + "\n\nUnderstood with an option: " + "; ".join(settled) + ".\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())

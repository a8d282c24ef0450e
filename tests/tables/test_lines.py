"""Lines that are no rows: titles, units, second headers and totals are left out as asked, or asked about."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from ckcv_ray.errors import InputError
from ckcv_ray.tables.named import read, read_task
from ckcv_ray.tables.read import LinesLeftOut, Reading, leave_out_lines, number_lines

HEAD = "name,age,dose,y"
ROWS = [f"P{i % 4},{40 + i},{i}.5,{'ab'[i % 2]}" for i in range(8)]
Write = Callable[[list[str]], Path]


@pytest.fixture(params=["table.csv", "table.xlsx", "crlf.csv", "cr.csv"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Return what writes lines as a text table, or as a workbook with numbers in its cells."""

    def write_lines(lines: list[str]) -> Path:
        path = tmp_path / request.param
        if path.suffix == ".xlsx":
            book = Workbook()
            for line in lines:
                cells = (line and line.split(",")) or []
                book.active.append([parse_cell(cell) for cell in cells])
            book.save(path)
        else:
            end = {"crlf.csv": "\r\n", "cr.csv": "\r"}.get(path.name, "\n")
            path.write_bytes((end.join(lines) + end).encode())
        return path

    return write_lines


def parse_cell(text: str) -> str | float | None:
    try:
        return float(text)
    except ValueError:
        return text or None


STRAYS = {  # lines, what is said, and the option that leaves them out
    "units": ([HEAD, ",years,mg/dl,", *ROWS], "'years' in column 'age' of line 2", "2"),
    "names again": ([HEAD, HEAD, *ROWS], "'age' in column 'age' of line 2", "2"),
    "units below a title": (["Ward 7,,,", HEAD, ",years,mg/dl,", *ROWS], "of line 3", "1,3"),
    "a total": ([HEAD, *ROWS, "Total,348,32,"], "line 10 of ", "last"),
    "a total with colon": ([HEAD, *ROWS, "Sum:,348,32,b"], "begins with 'Sum:'", "last"),
    "a total with its count": ([HEAD, *ROWS, "All (n = 8),,4.0,"], "begins with 'All (n = 8)'", "last"),
    "a grand total": ([HEAD, *ROWS, ",Grand total,32,b"], "begins with 'Grand total'", "last"),
    "blank lines": ([HEAD, "", ",years,mg/dl,", "", *ROWS, "", "Mean,43.5,4,", ""], "of line 3", "3,last"),
}


@pytest.mark.parametrize("name", STRAYS)
def test_what_is_no_row_is_asked_about_and_left_out(name: str, write: Write) -> None:
    lines, said, option = STRAYS[name]
    path = write(lines)
    expected = read(write([HEAD, *ROWS])).learn
    path = write(lines)
    title = option.startswith("1,")
    with pytest.raises(InputError) as refused:
        read(path, Reading(skip_rows="1" if title else None))
    assert said in str(refused.value)
    assert f"say --skip-rows {option.removesuffix(',last')}" in str(refused.value)
    assert f"--skip-rows {'1,' if title else ''}none" in str(refused.value)
    found = read(path, Reading(skip_rows=option)).learn
    assert found.to_pydict() == expected.to_pydict()
    kept = read(path, Reading(skip_rows="1,none" if title else "none")).learn
    assert kept.num_rows > len(ROWS)


def test_the_next_total_is_asked_about_by_its_line(write: Write) -> None:
    path = write([HEAD, *ROWS, "Sum,348,32,", "Mean,43.5,4,"])
    with pytest.raises(InputError, match=r"line 10 of .*--skip-rows last,10 to leave it out"):
        read(path, Reading(skip_rows="last"))
    assert read(path, Reading(skip_rows="last,10")).learn.num_rows == 8
    assert read(path, Reading(skip_rows="10-11")).learn.num_rows == 8


@pytest.mark.parametrize(
    "lines",
    [
        [HEAD, *ROWS],
        [HEAD, "P1,old,1.5,a", *ROWS],  # a word in a row, of which other cells are those of other rows
        [HEAD, "Q,41,mg,c", *ROWS],  # a number in the row
        [HEAD, *ROWS, "Total,1,2,a", *ROWS, "Total,3,4,b"],  # a name that others have
        [HEAD, *ROWS, "Alligator,1,2,a"],
        [HEAD, *ROWS, "All Saints,1,2,a"],
        [HEAD, *ROWS, "7,1,2,a"],
        [HEAD, ",years,mg/dl,", *ROWS[:4]],  # too few to tell
        ["a,b,y", *["u,v,w"], *(f"x{i % 3},z{i % 3},{'ab'[i % 2]}" for i in range(9))],  # no numbers at all
    ],
)
def test_other_rows_are_not_asked_about(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join(lines))
    assert read(tmp_path / "table.csv").learn.num_rows == len(lines) - 1


def test_numbers_with_commas_of_either_kind_are_numbers_below_units(tmp_path: Path) -> None:
    lines = ["a;y", "mg;", *(f"{i},500;{'ab'[i % 2]}" for i in range(1, 9))]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match="'mg' in column 'a' of line 2"):
        read(tmp_path / "table.csv")


def test_a_line_that_says_the_separator_counts(tmp_path: Path) -> None:
    lines = ["sep=;", HEAD.replace(",", ";"), ";years;mg/dl;", *(row.replace(",", ";") for row in ROWS)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match="of line 3"):
        read(tmp_path / "table.csv")
    assert read(tmp_path / "table.csv", Reading(skip_rows="3")).learn.num_rows == 8
    assert read(tmp_path / "table.csv", Reading(skip_rows="1,3")).learn.num_rows == 8


def test_a_title_is_left_out_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["Ward 7", "", "of 2024", HEAD, *ROWS, "a,b", *ROWS]))
    with pytest.raises(InputError, match=r"line \d+: .*which --skip-rows leaves out \(such as 1-2\)"):
        read(path)
    with pytest.raises(InputError, match=r"line 13: Expected 4 columns, got 2"):
        read(path, Reading(skip_rows="1-3"))
    assert read(path, Reading(skip_rows="1-3,13")).learn.num_rows == 16
    path.write_text(path.read_text().replace("P0", '"P 0"'))
    with pytest.raises(InputError, match=r"Row #10: Expected 4 columns, got 2"):
        read(path, Reading(skip_rows="1-3"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("", "expected numbers of lines, counted from 1"),
        ("0", "expected numbers"),
        ("3-2", "expected numbers"),
        ("first", "expected numbers"),
        ("-1", "expected numbers"),
        ("1;2", "expected numbers"),
        ("99999999999", "expected numbers"),
        ("2-30", r"skip_rows='2-30': .* has 9 lines, and no line 30"),
        ("1-9", "Empty|empty"),
    ],
)
def test_lines_that_are_not_there_are_refused(option: str, message: str, write: Write) -> None:
    with pytest.raises(InputError, match=message):
        read(write([HEAD, *ROWS]), Reading(skip_rows=option))


def test_numbers_of_lines_are_text_and_for_text_and_sheets(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join([HEAD, *ROWS]))
    with pytest.raises(InputError, match="expected numbers of lines"):
        read(tmp_path / "table.csv", Reading(skip_rows=2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"skip_rows is for \.csv .* leave it out"):
        read(tmp_path / "table.parquet", Reading(skip_rows="2"))
    assert Reading(";", "A", "2").adapt("a.parquet") == Reading()
    assert Reading(";", "A", "2").adapt("a.txt.gz") == Reading(";", None, "2")
    assert Reading(";", "A", "2").adapt("a.xlsx") == Reading(None, "A", "2")


def test_formulas_of_a_row_that_is_left_out_are_not_read(tmp_path: Path) -> None:
    book = Workbook()
    for row in [("x", "y"), *((i, i % 2) for i in range(8)), ("=SUM(A2:A9)", None)]:
        book.active.append(row)
    book.save(tmp_path / "table.xlsx")
    with pytest.raises(InputError, match=r"formula in cell A10 .* say --skip-rows last to leave the row out"):
        read(tmp_path / "table.xlsx")
    assert read(tmp_path / "table.xlsx", Reading(skip_rows="last")).learn.num_rows == 8


@given(
    st.lists(st.sampled_from(["", "a", "b,c", "  "]), max_size=12),
    st.sets(st.integers(1, 12)),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_lines_are_left_out_as_numbered(
    lines: list[str], numbers: set[int], last: bool, end: str, ended: bool
) -> None:
    """The lines that are kept are the others in their order, and their numbers are those of the file."""
    text = end.join(lines) + end * ended
    lines = text.splitlines()
    words = [str(number) for number in sorted(numbers)] + ["last"] * last
    asked = LinesLeftOut.parse(",".join(words) or "none")
    filled = [i for i, line in enumerate(lines, 1) if line.strip()]
    out = numbers | ({filled[-1]} if last and filled else set())
    if max(numbers, default=0) > len(lines):
        with pytest.raises(InputError):
            leave_out_lines(text.encode(), asked, "it")
        return
    kept = leave_out_lines(text.encode(), asked, "it").decode()
    assert kept.splitlines() == [line for i, line in enumerate(lines, 1) if i not in out]
    assert number_lines(text.encode(), asked, "it") == [i for i in filled if i not in out]


ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("tail", [[",,,"], ["   "], [",,,", "", " ", ";"], ["\x1a"], ["", ",,,", "\x1a\x1a"]])
def test_lines_of_blanks_and_the_end_of_a_file_of_dos_are_no_rows(
    end: str, tail: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(end.join([HEAD, *ROWS, *tail]).encode())
    assert read(path).learn.num_rows == 8
    path.write_bytes(end.join([HEAD, *ROWS, *tail, ""]).encode())
    assert read(path, Reading(skip_rows="10")).learn.num_rows == 8  # which is there, if it is no row
    path.write_bytes(end.join([HEAD, *ROWS, "Total,348,32,", *tail]).encode())
    with pytest.raises(InputError, match=r"line 10 of .*, the last, begins with 'Total'"):
        read(path)
    assert read(path, Reading(skip_rows="last")).learn.num_rows == 8


def test_an_end_of_a_file_of_dos_is_no_part_of_a_cell_and_a_row_of_gaps_among_others_is_a_row(
    tmp_path: Path,
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("\n".join([HEAD, *ROWS, ",,,", *ROWS, ROWS[0] + "\x1a"]))
    columns = read(path).learn
    assert (columns.num_rows, columns["y"][-1].as_py()) == (18, "a")
    path.write_text("\n".join([HEAD, *ROWS, "P9,,,"]))
    assert read(path).learn.num_rows == 9
    path.write_text("\n".join([HEAD, *ROWS, *[",,,"] * 2_000]))
    assert read(path).learn.num_rows == 8


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_names_that_are_repeated_are_named_by_their_lines(end: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(end.join([mark + "Ward 7", HEAD, *ROWS, "", mark + HEAD, *ROWS, HEAD, *ROWS]).encode())
    refused = f"line 12 of '{path}' repeats line 2, .*: if files were joined, say --skip-rows 1,12,21; if"
    with pytest.raises(InputError, match=refused):
        read(path, Reading(skip_rows="1"))
    assert read(path, Reading(skip_rows="1,12,21")).learn.num_rows == 24
    assert read(path, Reading(skip_rows="1,none")).learn.num_rows == 26
    with pytest.raises(InputError, match=r"repeats line 2, .* say --skip-rows 1,21,12;"):
        read(path, Reading(skip_rows="1,21"))


def test_other_lines_are_no_names(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for lines in (["1,2,0", "3,4,1", "1,2,0"], ["a,y", "a,yes", "a,no", "aa,y"], ["a,y", "aa,y", "b,y"]):
        path.write_text("\n".join(lines))
        assert read(path).learn.num_rows == len(lines) - 1


@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_a_comment_before_names_loses_its_mark_and_that_is_said(separator: str, tmp_path: Path) -> None:
    path, said = tmp_path / ("table.txt" if separator == " " else "table.csv"), list[str]()
    rows = [row.replace(",", separator) for row in ROWS]
    path.write_text("\n".join([f"# {HEAD.replace(',', separator)}", *rows]))
    assert read(path, say=said.append).learn.column_names == HEAD.split(",")
    assert said == [f"'{path}' has a # before its names: it is left out, and the first column is 'name'"]
    for name in ("#", "#name", "# of visits") if separator != " " else ("#",):  # these are names
        path.write_text("\n".join([separator.join([name, *HEAD.split(",")[1:]]), *rows]))
        assert read(path).learn.column_names[0] == name


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("quoted", [True, False])
def test_names_of_rows_without_a_name_are_asked_about(separator: str, quoted: bool, tmp_path: Path) -> None:
    path = tmp_path / ("table.txt" if separator == " " else "table.csv")
    lines = [HEAD, *(f"{i},{row}" for i, row in enumerate(ROWS, 1))]
    lines = [separator.join(f'"{cell}"' if quoted else cell for cell in line.split(",")) for line in lines]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        InputError, match=r"a cell more in every line .* row.names=FALSE, .* say --id row; if"
    ):
        read(path)
    path.write_text("\n".join([f"row{separator}{lines[0]}", *lines[1:]]) + "\n")
    assert read_task(path, "y", id="row")[0].features == ("name", "age", "dose")


def test_a_separator_at_the_end_of_lines_makes_no_names_of_rows(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join([HEAD, *(f"{row}," for row in ROWS)]))
    with pytest.raises(InputError, match="lines of different lengths"):
        read(tmp_path / "table.csv")

"""Small tables for the acceptance cases, by the name of their file; nothing in them is drawn."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

N = 120


def wave(i: int, step: int, span: int = 100) -> int:
    """Return the i-th of some numbers below ``span`` without a visible order."""
    return (i * i * step + 7 * i * step + i // 3) % span


def tumours(first: int = 0, n: int = N) -> Iterator[str]:
    """Two classes of numbers that overlap."""
    yield "size,texture,kind"
    for i in range(first, first + n):
        bad = wave(i, 13) < 45
        kind = "malignant" if bad else "benign"
        yield f"{10 + wave(i, 7) / 10 + 6 * bad},{wave(i, 11) / 5 + 8 * bad},{kind}"


def flowers() -> Iterator[str]:
    """Three classes, the last of them rare."""
    yield "length,width,species"
    for i in range(N):
        of = (0, 0, 0, 1, 1, 2)[wave(i, 17) % 6]
        species = ("setosa", "versicolor", "virginica")[of]
        yield f"{4 + of + wave(i, 7) / 60:.3f},{1 + of / 2 + wave(i, 19) / 100:.2f},{species}"


def houses() -> Iterator[str]:
    """Numbers to predict, of districts that are groups."""
    yield "rooms,age,district,price"
    for i in range(N):
        rooms, age = 1 + wave(i, 7) / 20, wave(i, 13)
        yield f"{rooms},{age},d{i // 3},{round(40 * rooms - age / 4 + wave(i, 29) / 10, 1)}"


def visits() -> Iterator[str]:
    """Patients with two visits each."""
    yield "patient,pulse,pressure,outcome"
    for i in range(N):
        ill = wave(i // 2, 13) < 50
        outcome = "ill" if ill else "well"
        yield f"p{i // 2},{60 + wave(i, 7) / 5 + 12 * ill},{110 + wave(i, 11) / 4 + 9 * ill},{outcome}"


def wards() -> Iterator[str]:
    """Text, dates, gaps, a decimal comma, and names of the rows."""
    yield "case;ward;admitted;dose;outcome"
    for i in range(N):
        ill = wave(i, 13) < 50
        ward = ("north", "south", "", "west")[wave(i, 7) % 4]
        dose = f"{wave(i, 11) / 10 + 3 * ill:.2f}".replace(".", ",") if i % 9 else ""
        day = f"2026-{1 + i % 12:02d}-{1 + wave(i, 5, 28):02d}"
        yield f"c{1000 + i};{ward};{day};{dose};{'ill' if ill else 'well'}"


def nullable() -> Iterator[str]:
    """Numbers, truth values, dates, words and numbers of categories, each with gaps."""
    yield "age,visits,smoker,seen,ward,level,outcome"
    for i in range(N):
        ill = wave(i, 13) < 50
        cells = [f"{20 + wave(i, 7) / 2 + 9 * ill}", f"{wave(i, 11, 9)}", f"{wave(i, 17) < 30}"]
        cells += [f"2026-03-{1 + wave(i, 5, 28):02d}", ("north", "south", "west")[wave(i, 19) % 3]]
        cells += [f"{1 + wave(i, 23) % 4}"]
        known = ("" if (i + 2 * j) % 11 == 4 else cell for j, cell in enumerate(cells))
        yield f"{','.join(known)},{'ill' if ill else 'well'}"


def costs() -> Iterator[str]:
    """Rows that weigh 1 to 4."""
    for i, line in enumerate(tumours()):
        yield f"{line},{'weight' if not i else 1 + wave(i, 3) % 4}"


def answers() -> Iterator[str]:
    """Labels in two forms of one class, and rows without a label."""
    for i, line in enumerate(tumours()):
        head, _, label = line.rpartition(",")
        yield f"{head},{label if not i or i % 3 else label.upper() if i % 10 else ''}"


def folds() -> Iterator[str]:
    """The fold of each row as a column."""
    for i, line in enumerate(tumours()):
        yield f"{line},{'fold' if not i else 'abc'[i % 3]}"


def constant() -> Iterator[str]:
    """One class."""
    for line in tumours():
        yield line.replace("malignant", "benign")


def judged() -> Iterator[str]:
    """Named rows that nothing has learned from, with somebody else's predictions."""
    for i, line in enumerate(tumours(500, 200)):
        size, texture, kind = line.split(",")
        if not i:
            yield f"id,{line},theirs"
            continue
        theirs = "malignant" if wave(i, 5) > 50 else "benign"
        yield f"n{i},{float(size) + i / 10_000:.4f},{texture},{kind},{theirs}"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "tumours.csv": tumours,
    "new.csv": lambda: tumours(500, 40),
    "judged.csv": judged,
    "few.csv": lambda: tumours(0, 14),
    "flowers.csv": flowers,
    "houses.csv": houses,
    "visits.csv": visits,
    "wards.csv": wards,
    "nullable.csv": nullable,
    "costs.csv": costs,
    "answers.csv": answers,
    "folds.csv": folds,
    "constant.csv": constant,
}


def write_table(name: str, folder: Path) -> None:
    """Write the table of a file's name, if there is one; ``tumours`` in another format too."""
    if name.endswith(".csv"):
        if name in TABLES:
            (folder / name).write_text("\n".join(TABLES[name]()) + "\n")
        return
    (folder / "tumours.csv").write_text("\n".join(tumours()) + "\n")
    table: pa.Table = csv.read_csv(folder / "tumours.csv")
    if name.endswith(".parquet"):
        parquet.write_table(table, folder / name)
    else:
        csv.write_csv(table, folder / name, csv.WriteOptions(delimiter="\t"))

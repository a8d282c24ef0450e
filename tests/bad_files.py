"""Files that tests of the command line read: one that is sound, and those with something wrong."""

import numpy as np

A = [f"{i}" for i in range(8)]
B = [f"{i * i % 7}.5" for i in range(8)]
Y = ["no", "yes"] * 4


def csv_text(a=A, b=B, y=Y, header="a,b,y"):
    rows = zip(*(values for values in (a, b, y) if values is not None), strict=True)
    return "\n".join([header, *(",".join(row) for row in rows)]) + "\n"


def swapped(values, **changed):
    """The values with row3="x" in the third row."""
    return [changed.get(f"row{i}", value) for i, value in enumerate(values, start=1)]


FILES = {
    "good.csv": csv_text(),
    "groups.csv": csv_text(
        header="a,b,id,y",
        a=[f"{i}" for i in range(16)],
        b=[f"{i % 7}.5,p{i // 2}" for i in range(16)],
        y=["no", "yes"] * 8,
    ),
    "numbered.csv": csv_text(y=["1", "2"] * 4),
    "other.csv": csv_text(a=[f"{i + 1}" for i in range(8)]),
    "nan.csv": csv_text(b=swapped(B, row5="nan")),
    "inf.csv": csv_text(b=swapped(B, row4="inf")),
    "text.csv": csv_text(b=swapped(B, row2="tall")),
    "blank.csv": csv_text(b=[""] * 8),
    "one class.csv": csv_text(y=["yes"] * 8),
    "no target.csv": csv_text(header="a,b,outcome"),
    "only target.csv": csv_text(a=None, b=None, header="y"),
    "test without a.csv": csv_text(a=None, header="b,y"),
    "test with maybe.csv": csv_text(y=swapped(Y, row3="maybe")),
    "test with 0.csv": csv_text(y=["0", "1"] * 4),
    "broken.toml": "C = [1",
    "unknown.toml": "cost = [1]",
    "scalar.toml": "C = true",
    "k.toml": "k = [3, 99]",
}


def write_all(folder):
    """Write every file into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    np.savez(folder / "no y.npz", X=np.arange(16.0).reshape(8, 2))

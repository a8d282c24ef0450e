"""Four file formats, one task; what cannot be read is named."""

import io
from dataclasses import replace

import numpy as np
import pytest
from plain import awkward_X
from pyarrow import parquet

from ckcv_ray.errors import InputError
from ckcv_ray.tables.readers import files
from ckcv_ray.tables.task import Task, read


def write_csv(path, X, y):
    header = [*(f"x{i}" for i in range(X.shape[1])), "y"]
    lines = [[repr(float(value)) for value in row] + [str(sign)] for row, sign in zip(X, y, strict=True)]
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n")


def write_parquet(path, X, y):
    parquet.write_table(files.from_matrix(X, y), path)


def write_npz(path, X, y):
    np.savez(path, X=X, y=y)


def write_svmlight(path, X, y):
    """Zeros left out, as svmlight files do; the last feature always stands in the first row."""
    lines = []
    for i, (row, sign) in enumerate(zip(X, y, strict=True)):
        kept = [(j, v) for j, v in enumerate(row, start=1) if v != 0 or (i == 0 and j == len(row))]
        lines.append(" ".join([f"{sign:+d}", *(f"{j}:{float(v)!r}" for j, v in kept)]))
    path.write_text("\n".join(lines) + "\n")


WRITERS = {
    "csv": write_csv,
    "parquet": write_parquet,
    "npz": write_npz,
    "svmlight": write_svmlight,
    "libsvm": write_svmlight,
    "svm": write_svmlight,
    "CSV": write_csv,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    X, y = awkward_X(), np.array([-1, 1, 1, -1, 1, -1, -1, 1])
    file = tmp_path / f"table.{suffix}"
    WRITERS[suffix](file, X, y)
    columns = read(str(file))
    task = Task.from_table(columns.learn)
    assert columns.test is None
    assert np.array_equal(task.X, X)  # -0.0 equals 0.0, as the digest has it
    assert np.array_equal(task.y, y > 0)
    assert task.classes == (-1, 1)
    first = 1 if WRITERS[suffix] is write_svmlight else 0  # svmlight names its columns by number, from 1
    assert task.features == tuple(f"x{first + i}" for i in range(3))


def test_the_digest_does_not_tell_csv_parquet_npz_and_arrays_apart(tmp_path):
    X, y = awkward_X(), np.array([3, 5] * 4)
    digests = set()
    for suffix in ("csv", "parquet", "npz"):
        file = tmp_path / f"table.{suffix}"
        WRITERS[suffix](file, X, y)
        digests.add(Task.from_table(read(str(file)).learn, source=str(file)).digest)
    digests.add(replace(Task.of(X, y), target="y").digest)
    assert len(digests) == 1


def test_an_npz_may_hold_other_arrays_and_text_labels(tmp_path):
    file = tmp_path / "table.npz"
    np.savez(file, X=np.arange(8)[:, None], y=np.array(["b", "a"] * 4), more=np.eye(3))
    task = Task.from_table(read(str(file)).learn)
    assert task.classes == ("a", "b")
    assert task.X.dtype == np.float64


def save(write, *arrays, **named):
    """What numpy writes to a file."""
    sink = io.BytesIO()
    write(sink, *arrays, **named)
    return sink.getvalue()


BROKEN = {
    "missing.csv": (None, "there is no file"),
    "table.doc": (b"a,y\n", "is neither a file ending in .csv, .tsv, .txt, .dat, .parquet"),
    "table": (b"a,y\n", "nor a named set (sklearn:NAME"),
    "empty.csv": (b"", "Empty CSV file"),
    "ragged.csv": (b"a,y\n1,2\n1\n", "Expected 2 columns, got 1"),
    "text.parquet": (b"a,y\n1,2\n", "cannot read"),
    "text.npz": (b"a,y\n1,2\n", "cannot read"),
    "empty.npz": (b"", "cannot read"),
    "half.npz": (save(np.savez, X=np.eye(8), y=np.arange(8) % 2)[:300], "cannot read"),
    "array.npz": (save(np.save, np.eye(3)), ""),
    "words.svmlight": (b"not a number\n", "cannot read"),
    "order.svmlight": (b"1 2:1 1:1\n", "cannot read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    content, expected = BROKEN[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        read(str(tmp_path / name))
    assert str(tmp_path / name) in str(refused.value)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"y": np.eye(8), "data": np.eye(8)}, "has no array 'X': it holds y, data"),
        ({"X": np.ones(8), "y": np.ones(8)}, "X has shape (8,) and y (8,): expected (n, d) and (n,)"),
        ({"X": np.eye(8), "y": np.ones(7)}, "X has shape (8, 8) and y (7,)"),
        ({"X": np.eye(8), "y": np.ones((8, 1))}, "y (8, 1)"),
        ({"X": np.eye(8, dtype=complex), "y": np.ones(8)}, "cannot read"),
        ({"X": np.array([[None]]), "y": np.ones(1)}, "cannot read"),
    ],
)
def test_an_npz_without_fitting_X_and_y_is_refused(tmp_path, arrays, expected):
    file = tmp_path / "odd.npz"
    np.savez(file, **arrays)
    with pytest.raises(InputError) as refused:
        read(str(file))
    assert "odd.npz" in str(refused.value)
    assert expected in str(refused.value)

"""The IDA archive in both of its forms: the sets read from it, and what is wrong with others."""

import hashlib

import numpy as np
import pytest
from scipy.io import savemat

from ckcv_paper import download
from ckcv_paper.archive import read
from ckcv_ray.errors import InputError
from ckcv_ray.tables import named as data
from ckcv_ray.tables.named import GENERATORS
from ckcv_ray.tables.task import Task


def tiny():
    """One set with two realizations, in the form of the real ones."""
    return {
        "x": np.arange(20.0).reshape(10, 2),
        "t": np.array([-1, 1] * 5, dtype=np.int8),
        "train": np.array([[6, 0, 1, 2, 3, 7], [9, 8, 7, 6, 5, 4]], dtype=np.int32),
        "test": np.array([[4, 5, 8, 9], [0, 1, 2, 3]], dtype=np.int32),
    }


def as_matlab(parts):
    """Labels in a column, rows counted from 1."""
    rows = {part: values + 1 for part, values in parts.items() if part in ("train", "test")}
    return parts | rows | {"t": parts["t"][:, None]}


def archive(path, sets, **options):
    """Sets of parts with rows counted from 0, in the form that the suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **{f"{name}/{part}": sets[name][part] for name in sets for part in sets[name]})
    else:
        names = np.array(sorted(sets), dtype=object)
        savemat(path, {"benchmarks": names} | {n: as_matlab(parts) for n, parts in sets.items()}, **options)
    return path


@pytest.mark.parametrize("source", ["ida", "ida:banana:x", "ida:banana:1:1"])
def test_a_name_that_does_not_parse_is_refused(source, cache):
    for call in (read, data.read):
        with pytest.raises(InputError, match=f"^'{source}'.* the form is ida:NAME:R"):
            call(source)


def test_realizations_count_from_1_and_rows_keep_their_order(tmp_path, monkeypatch):
    """And the package reads them through the entry point."""
    file = archive(tmp_path / "ida.npz", {"tiny": tiny()})
    monkeypatch.setenv("CKCV_IDA", str(file))
    learn, test = read("ida:tiny:1")
    assert learn["x0"].to_pylist() == [12, 0, 2, 4, 6, 14]
    assert learn["y"].to_pylist() == [-1, -1, 1, -1, 1, 1]
    assert test["x1"].to_pylist() == [9, 11, 17, 19]
    assert read("ida:tiny:2").learn["x0"].to_pylist() == [18, 16, 14, 12, 10, 8]
    assert learn.equals(read("ida:tiny:1", file).learn)
    task, rows = data.read_task("ida:tiny:1")
    assert (task.source, task.n, len(rows.y)) == ("ida:tiny:1", 6, 4)


def test_the_real_archive_as_mat_gives_the_same_tables_of_two_classes(ida, tmp_path, monkeypatch):
    with np.load(ida) as held:
        names = sorted({key.split("/")[0] for key in held.files})
        sets = {n: {part: held[f"{n}/{part}"] for part in ("x", "t", "train", "test")} for n in names}
    mat = archive(tmp_path / "ida.MAT", sets, appendmat=False)
    monkeypatch.setattr(download, "SHA256", hashlib.sha256(mat.read_bytes()).hexdigest())  # the public one
    assert len(names) == 13
    assert sum(len(parts["train"]) for parts in sets.values()) == 86
    for name, parts in sets.items():
        last = len(parts["train"])
        for i in range(1, last + 1):
            one, other = read(f"ida:{name}:{i}", ida), read(f"ida:{name}:{i}", mat)
            assert one.learn.equals(other.learn)
            assert one.test.equals(other.test)
        task = Task.from_table(one.learn)
        assert task.classes == (-1, 1)
        assert len(task.target.read(one.test)) == one.test.num_rows
        for file in (ida, mat):
            with pytest.raises(InputError, match=rf"outside 1\.\.{last}, the realizations in the archive"):
                read(f"ida:{name}:{last + 1}", file)


def test_without_an_archive_every_way_to_it_is_named(cache):
    with pytest.raises(InputError) as refused:
        read("ida:banana:1")
    assert all(way in str(refused.value) for way in ("`python -m ckcv_paper fetch`", "CKCV_IDA"))
    assert not cache.exists()


def save_half(path):
    archive(path, {"tiny": tiny()})
    path.write_bytes(path.read_bytes()[:200])


def save_odd(**changed):
    """Save the set with parts that were changed, without those that are None."""
    parts = {part: values for part, values in (tiny() | changed).items() if values is not None}
    return lambda path: archive(path, {"tiny": parts})


@pytest.mark.parametrize(
    ("save", "source", "said"),
    [
        (save_odd(), "ida:tiny:0", "ida:tiny:0 is outside 1..2"),
        (save_odd(), "ida:tiny:3", "ida:tiny:3 is outside 1..2"),
        (save_odd(), "ida:huge:1", "ida:huge is not in the archive: choose from tiny"),
        (
            save_odd(x=np.full((10, 2), {}, dtype=object)),
            "ida:tiny:2",
            "cannot read the IDA archive .*odd.npz': ",
        ),
        (
            save_odd(x=np.arange(10.0)),
            "ida:tiny:2",
            r"expected \(n, d\), \(n,\), \(R, n_train\), \(R, n_test\)",
        ),
        (save_odd(t=np.array([0, 1] * 5)), "ida:tiny:2", "tiny has labels other than -1 and 1"),
        (save_odd(train=tiny()["train"] - 1), "ida:tiny:2", "tiny has row numbers outside"),
        (save_odd(test=None), "ida:tiny:2", "tiny has no 'test'"),
        (save_half, "ida:tiny:1", r"odd\."),
        (lambda path: path.mkdir(), "ida:tiny:1", r"odd\."),
        (lambda path: None, "ida:tiny:1", r"odd\."),
    ],
)
def test_what_the_archive_does_not_hold_or_nobody_can_read_is_bad_input(tmp_path, save, source, said):
    save(tmp_path / "odd.npz")
    with pytest.raises(InputError, match=said):
        read(source, tmp_path / "odd.npz")


def test_a_mat_that_is_not_the_public_archive_is_refused_unread(tmp_path):
    file = archive(tmp_path / "ida.mat", {"tiny": tiny()})
    with pytest.raises(InputError, match=r"its SHA-256 is .* the public archive alone is read"):
        read("ida:tiny:1", file)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_generators_call_the_same_class_plus_1_as_the_archive(ida, name):
    """The class means (and for ringnorm the spread) of the IDA rows are those of the generator's."""
    with np.load(ida) as archive:
        x, t = archive[f"{name}/x"], archive[f"{name}/t"]
    X, y = GENERATORS[name](20_000, np.random.default_rng(7))
    # Inputs of the archive are standardised over the pool: so are ours.
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for sign in (-1, 1):
        apart = [np.abs(x[t == sign].mean(axis=0) - Z[y == s].mean(axis=0)).max() for s in (sign, -sign)]
        spread = [np.abs(x[t == sign].std(axis=0) - Z[y == s].std(axis=0)).max() for s in (sign, -sign)]
        assert apart[0] + spread[0] < 0.5 * (apart[1] + spread[1])

"""The IDA archive in both of its forms: the sets that are read from it, and what is wrong with others."""

import base64
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from ckcv_paper import archive as archive_module
from ckcv_paper.archive import read
from ckcv_paper.download import locate
from ckcv_ray.errors import InputError
from ckcv_ray.tables import named as data
from ckcv_ray.tables.named import GENERATORS
from ckcv_ray.tables.task import Task, number_classes

BOTH = pytest.mark.parametrize("form", [".npz", ".mat"])


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


@pytest.mark.parametrize(
    "source",
    ["ida", "ida:banana", "ida:banana:x", "ida:banana:-1", "ida:banana:1:1", "ida:banana:1.0", "ida::"],
)
def test_a_name_that_does_not_parse_is_refused(source, cache):
    for call in (read, data.read):
        with pytest.raises(InputError, match=f"^'{source}'.* the form is ida:NAME:R"):
            call(source)


def test_the_package_reads_them_through_the_entry_point(tmp_path, monkeypatch):
    monkeypatch.setenv("CKCV_IDA", str(archive(tmp_path / "ida.npz", {"tiny": tiny()})))
    assert data.read("ida:tiny:2").learn.equals(read("ida:tiny:2").learn)
    task, test = data.read_task("ida:tiny:1")
    assert (task.source, task.n, len(test.y)) == ("ida:tiny:1", 6, 4)


@BOTH
def test_realizations_count_from_1_and_rows_keep_their_order(tmp_path, monkeypatch, form):
    file = archive(tmp_path / f"ida{form}", {"tiny": tiny()})
    monkeypatch.setenv("CKCV_IDA", str(file))
    learn, test = read("ida:tiny:1")
    assert learn["x0"].to_pylist() == [12, 0, 2, 4, 6, 14]
    assert learn["y"].to_pylist() == [-1, -1, 1, -1, 1, 1]
    assert test["x1"].to_pylist() == [9, 11, 17, 19]
    assert read("ida:tiny:2").learn["x0"].to_pylist() == [18, 16, 14, 12, 10, 8]
    assert learn.equals(read("ida:tiny:1", file).learn)


def drawn(n, d, n_train, n_test, realizations, rng):
    """A set whose rows come in any order, repeated, and on both sides, as where patterns are kept once."""
    return {
        "x": rng.normal(size=(n, d)),
        "t": rng.choice(np.array([-1, 1], dtype=np.int8), size=n),
        "train": rng.integers(n, size=(realizations, n_train)),
        "test": rng.integers(n, size=(realizations, n_test)),
    }


def same_tables(npz, mat):
    """Both archives hold the same realizations, and give the same columns for each; how many there are."""
    with np.load(npz) as sets:
        held = {key.split("/")[0]: len(sets[key]) for key in sets.files if key.endswith("/train")}
    for name, realizations in held.items():
        for i in range(1, realizations + 1):
            one, other = read(f"ida:{name}:{i}", npz), read(f"ida:{name}:{i}", mat)
            assert one.learn.equals(other.learn)
            assert one.test.equals(other.test)
        for file in (npz, mat):
            with pytest.raises(
                InputError, match=rf"outside 1\.\.{realizations}, the realizations in the archive"
            ):
                read(f"ida:{name}:{realizations + 1}", file)
    return sum(held.values())


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.uint8, np.uint16, np.int32])
def test_a_mat_gives_the_tables_of_the_npz(tmp_path, kind, compressed):
    """MATLAB stores numbers as it likes: 255 rows counted from 1 just fit into 8 bits."""
    rng = np.random.default_rng(11)
    sets = {"wide": drawn(255, 7, 20, 30, 3, rng), "one": drawn(9, 1, 6, 1, 1, rng)}
    npz = archive(tmp_path / "ida.npz", sets)
    stored = {
        name: parts | {part: parts[part].astype(kind) for part in ("train", "test")}
        for name, parts in sets.items()
    }
    assert same_tables(npz, archive(tmp_path / "ida.mat", stored, do_compression=compressed)) == 4


def test_the_real_archive_as_mat_gives_the_same_tables(ida, tmp_path):
    with np.load(ida) as held:
        names = {key.split("/")[0] for key in held.files}
        sets = {n: {part: held[f"{n}/{part}"] for part in ("x", "t", "train", "test")} for n in names}
    assert same_tables(ida, archive(tmp_path / "ida.MAT", sets, appendmat=False)) == 86


@BOTH
def test_the_archive_given_comes_before_the_environments(tmp_path, monkeypatch, form):
    file = archive(tmp_path / f"ida{form}", {"tiny": tiny()})
    monkeypatch.setenv("CKCV_IDA", str(tmp_path / f"nowhere{form}"))
    assert read("ida:tiny:1", file).learn.num_rows == 6
    with pytest.raises(InputError, match=r"cannot read the IDA archive .*nowhere\..*No such file"):
        read("ida:tiny:1")


@pytest.mark.parametrize("value", [None, ""])
def test_without_an_archive_every_way_to_it_is_named(cache, monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("CKCV_IDA", value)
    with pytest.raises(InputError) as refused:
        read("ida:banana:1")
    assert all(way in str(refused.value) for way in ("`python -m ckcv_paper fetch`", "CKCV_IDA"))
    assert not cache.exists()


def test_the_fetched_archive_is_read_when_no_other_is_named(cache, tmp_path, monkeypatch):
    fetched = archive(locate(), {"tiny": tiny()})
    assert fetched.is_relative_to(cache)
    assert read("ida:tiny:2").learn.equals(read("ida:tiny:2", fetched).learn)
    other = archive(tmp_path / "other.npz", {"tiny": tiny() | {"x": np.zeros((10, 1))}})
    monkeypatch.setenv("CKCV_IDA", str(other))
    assert read("ida:tiny:2").learn.column_names == ["x0", "y"]
    assert read("ida:tiny:2", fetched).learn.column_names == ["x0", "x1", "y"]


@BOTH
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("ida:tiny:0", "ida:tiny:0 is outside 1..2"),
        ("ida:tiny:3", "ida:tiny:3 is outside 1..2"),
        ("ida:huge:1", "ida:huge is not in the archive: choose from tiny"),
        ("ida:benchmarks:1", "ida:benchmarks is not in the archive: choose from tiny"),
    ],
)
def test_what_the_archive_does_not_hold(tmp_path, source, expected, form):
    with pytest.raises(InputError) as refused:
        read(source, archive(tmp_path / f"ida{form}", {"tiny": tiny()}))
    assert expected in str(refused.value)


def rows(*of_the_first):
    """Rows to learn from, those of the first realization changed."""
    changed = tiny()["train"].astype(np.result_type(*of_the_first, np.int32))
    changed[0, : len(of_the_first)] = of_the_first
    return {"train": changed}


ODD = {
    "complex inputs": ({"x": np.full((10, 2), 1j)}, "'x' of tiny is not an array of numbers"),
    "inputs of text": ({"x": np.full((10, 2), "a")}, "'x' of tiny is not an array of numbers"),
    "inputs of objects": ({"x": np.full((10, 2), {}, dtype=object)}, ""),
    "inputs in a line": ({"x": np.arange(10.0)}, "expected (n, d), (n,), (R, n_train), (R, n_test)"),
    "too few labels": ({"t": np.ones(9)}, "expected (n, d), (n,), (R, n_train), (R, n_test)"),
    "a test set too few": ({"test": tiny()["test"][:1]}, "expected (n, d), (n,), (R, n_train), (R, n_test)"),
    "labels 0 and 1": ({"t": np.array([0, 1] * 5)}, "tiny has labels other than -1 and 1"),
    "labels with a gap": ({"t": np.array([-1, 1] * 4 + [1, np.nan])}, "labels other than -1 and 1"),
    "a row before the first": (rows(2, -1), "tiny has row numbers outside"),
    "a row behind the last": (rows(10), "tiny has row numbers outside"),
    "half a row": (rows(2.5), "tiny has row numbers outside"),
    "no row number": (rows(np.nan), "tiny has row numbers outside"),
    "an endless row number": (rows(np.inf), "tiny has row numbers outside"),
}


@BOTH
@pytest.mark.parametrize("name", ODD)
def test_an_archive_of_odd_content_is_bad_input(tmp_path, name, form):
    changed, messages = ODD[name]
    file = archive(tmp_path / f"odd{form}", {"tiny": tiny() | changed})
    with pytest.raises(InputError) as refused:
        read("ida:tiny:2", file)
    assert str(refused.value).startswith(f"cannot read the IDA archive {str(file)!r}: ")
    assert messages in str(refused.value)


@BOTH
@pytest.mark.parametrize("part", ["x", "t", "train", "test"])
def test_an_archive_without_a_part_is_bad_input(tmp_path, part, form):
    file = tmp_path / f"odd{form}"
    if form == ".npz":
        np.savez(file, **{f"tiny/{p}": values for p, values in tiny().items() if p != part})
    else:
        savemat(file, {"tiny": {p: values for p, values in as_matlab(tiny()).items() if p != part}})
    with pytest.raises(InputError, match=rf"odd\..*: tiny has no '{part}'"):
        read("ida:tiny:1", file)


def test_a_row_number_0_of_a_mat_does_not_wrap_around(tmp_path):
    parts = as_matlab(tiny())
    parts["test"] = parts["test"].astype(np.uint8)
    parts["test"][1, 3] = 0
    savemat(tmp_path / "odd.mat", {"tiny": parts})
    with pytest.raises(InputError, match=r"tiny has row numbers outside 1\.\.10"):
        read("ida:tiny:1", tmp_path / "odd.mat")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_mat_cut_short_is_bad_input_or_whole_in_what_counts(tmp_path, compressed):
    file = archive(tmp_path / "cut.mat", {"tiny": tiny()}, do_compression=compressed)
    content, whole = file.read_bytes(), read("ida:tiny:2", file)
    messages = []
    for size in range(0, len(content), 7):
        file.write_bytes(content[:size])
        try:
            assert read("ida:tiny:2", file).learn.equals(whole.learn)
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 0.9 * len(content) / 7
    assert all("is not in the archive" in line or "cannot read the IDA archive" in line for line in messages)


CRASHING = """eNrzdQzxcXRSMNUzUPB1DNFNy8xJVQjISSxJyy/KtVIoyC/OrNBRcC5KTSxJTVHIz7NSCC7NU/DLL1MwMlIwsLAyNbAyMFQw
MjAyYyADMHr68gOpJ0BcMWdrsCNfkwOPzgYd7yQO9/kPL86WqW1TmfTClWfSCvP5D4Rrm9zzb6VGa3onJfX4nrqwsCTtpipzQyXLAkHeNA69pFXN5W4X
rqU/Cb2evVPz2crXeXe3am63zljNPG3mXOkvxVslz6WubfgSdIb7R2G0xR5hO46FBQs4fA2rvsonim9trwuU/Pgp2fDWjIbiX0sS/t2+9SrG/kXbF59X
61xkBT890+rvt42rrnn08Zl7/JrTNq9PHVb/m7le/+OvnuvptTqt601kfk1qP19Uunul1KNP5yLkbfLVnm3s/+i/6EGE+WuZ915r4s/UmxoBACMqiS8="""


def test_a_mat_that_crashes_its_reader_is_bad_input(tmp_path):
    """scipy 1.17 ends with SIGSEGV on this one, found by jobs/faults/fuzz.py."""
    (tmp_path / "crash.mat").write_bytes(zlib.decompress(base64.b64decode(CRASHING)))
    with pytest.raises(InputError, match="cannot read the IDA archive"):
        read("ida:toy:1", tmp_path / "crash.mat")


@pytest.mark.parametrize(
    ("program", "messages"),
    [
        ("import os; os.kill(os.getpid(), 11)", "its reader ended with code -11"),
        ("raise MemoryError", "MemoryError"),
        ("while True: pass", "timed out"),
        ("pass", "good.mat"),
    ],
)
def test_whatever_becomes_of_the_reader_of_a_mat_is_bad_input(tmp_path, monkeypatch, program, messages):
    (tmp_path / "reader.py").write_text(program)
    monkeypatch.setattr(archive_module.matlab, "__file__", str(tmp_path / "reader.py"))
    monkeypatch.setattr(archive_module, "MATLAB_SECONDS", 1.0 if "while" in program else 60.0)
    with pytest.raises(InputError, match=f"cannot read the IDA archive .*{messages}"):
        read("ida:tiny:1", archive(tmp_path / "good.mat", {"tiny": tiny()}))


def test_what_a_mat_unfolds_to_is_bounded(tmp_path):
    file = archive(tmp_path / "good.mat", {"tiny": tiny()})
    code = "from ckcv_paper import matlab; matlab.MAX_WRITTEN = 100; matlab.main()"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, "-c", code, file], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode != 0  # 120 where the last of it fails as Python ends
    assert b"File too large" in done.stderr


PEAK = """
import sys
from pathlib import Path
from ckcv_paper.archive import read
from ckcv_ray import InputError

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

before = peak()
try:
    read("ida:tiny:1", Path(sys.argv[1]))
except InputError as error:
    print(error)
    print(peak() - before)
"""


def test_a_mat_that_unfolds_to_a_gigabyte_is_refused_in_bounded_memory(tmp_path):
    """Of version 5, with a variable of zeros, compressed."""
    squeeze, block = zlib.compressobj(1), bytes(1 << 24)
    content = b"".join([*(squeeze.compress(block) for _ in range(66)), squeeze.flush()])
    header = b" " * 124 + b"\x00\x01IM" + struct.pack("<II", 15, len(content))
    (tmp_path / "bomb.mat").write_bytes(header + content)
    words = [sys.executable, "-c", PEAK, tmp_path / "bomb.mat"]
    messages, mib = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "bomb.mat" in messages
    assert "a variable takes 1,040 MiB" in messages
    assert int(mib) <= 400
    assert [file.name for file in tmp_path.iterdir()] == ["bomb.mat"]


def save_half(path):
    archive(path, {"tiny": tiny()})
    path.write_bytes(path.read_bytes()[:200])


def save_one_array(path):
    with path.open("wb") as stream:
        savemat(stream, {"tiny": np.eye(3)}) if path.suffix == ".mat" else np.save(stream, np.eye(3))


def save_two_in_one(path):
    structs = np.zeros((1, 2), dtype=[(part, object) for part in ("x", "t", "train", "test")])
    savemat(path, {"tiny": structs}) if path.suffix == ".mat" else np.savez(path, tiny=np.eye(3))


@BOTH
@pytest.mark.parametrize(
    "damage",
    [
        save_half,
        save_one_array,
        save_two_in_one,
        lambda path: path.write_text("x,t\n"),
        lambda path: path.write_bytes(b""),
        lambda path: path.mkdir(),
        lambda path: archive(path.with_suffix(".npz" if path.suffix == ".mat" else ".mat"), {}).rename(path),
    ],
    ids=["half", "one array", "two in one", "text", "empty", "folder", "the other form"],
)
def test_an_archive_that_cannot_be_read_is_bad_input(tmp_path, damage, form):
    file = tmp_path / f"odd{form}"
    damage(file)
    with pytest.raises(InputError, match=r"odd\.|ida:tiny is not in the archive: choose from none"):
        read("ida:tiny:1", file)


@pytest.mark.parametrize(
    ("file", "source", "messages"),
    [
        ("", "ida:tiny:1", "`python -m ckcv_paper fetch` downloads it; or set CKCV_IDA"),
        ("nowhere.npz", "ida:tiny:1", "cannot read the IDA archive 'nowhere.npz': "),
        ("folder.npz", "ida:tiny:1", "cannot read the IDA archive 'folder.npz': "),
        ("half.npz", "ida:tiny:1", "cannot read the IDA archive 'half.npz': "),
        ("x" * 300, "ida:tiny:1", "File name too long"),
        ("ida.npz", "ida:apple:1", "ida:apple is not in the archive: choose from tiny"),
        ("ida.npz", "ida:tiny:0", "ida:tiny:0 is outside 1..2"),
        ("ida.npz", "ida:tiny:first", "'first' is not a whole number"),
    ],
    ids=lambda value: value[:20],
)
def test_at_the_command_line_it_is_one_message_and_nothing_is_left(
    tmp_path, cache, monkeypatch, ckcv, file, source, messages
):
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / "ida.npz", {"tiny": tiny()})
    save_half(tmp_path / "half.npz")
    (tmp_path / "folder.npz").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setenv("CKCV_IDA", file)
    code, shown, message = ckcv("run", source, "--out", tmp_path / "run")
    assert (code, shown, message.count("\n")) == (2, "", 1)
    assert message.startswith("ckcv: ")
    assert messages in message
    assert sorted(tmp_path.iterdir()) == before


def test_every_ida_set_is_a_learning_set(ida):
    with np.load(ida) as archive:
        names = sorted({key.split("/")[0] for key in archive.files})
    assert len(names) == 13
    for name in names:
        columns = read(f"ida:{name}:1", ida)
        task = Task.from_table(columns.learn)
        assert task.classes == (-1, 1)
        assert len(number_classes(columns.test["y"], task.classes, "y")) == columns.test.num_rows


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

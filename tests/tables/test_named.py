"""Named sets: the generators against their published definitions, the IDA rows against the archives.

Tolerances of the simulations: every statistic below is asymptotically normal and is compared in units of its
own standard deviation; |z| > LIMIT = 6 has probability 2e-9, and no test looks at more than 1000 of them.
The seeds are fixed, so the tests are deterministic.
"""

import base64
import subprocess
import sys
import zlib
from math import sqrt

import numpy as np
import pytest
from scipy.io import savemat
from scipy.stats import norm

from ckcv_ray.core.measures import Kind
from ckcv_ray.errors import InputError
from ckcv_ray.tables import ida as fetch
from ckcv_ray.tables import named as datasets
from ckcv_ray.tables.named import GENERATORS, is_named, load
from ckcv_ray.tables.readers.files import from_matrix
from ckcv_ray.tables.target import class_numbers
from ckcv_ray.tables.task import Task

LIMIT = 6.0
ROWS = 20_000
A = 2 / sqrt(20)
DIMENSIONS = {"twonorm": 20, "ringnorm": 20, "waveform": 21}


@pytest.fixture(scope="module")
def samples():
    """One large sample of each generator."""
    return {name: draw(ROWS, np.random.default_rng(7)) for name, draw in GENERATORS.items()}


def z_mean(values, mean, variance):
    """Deviations of column means in units of their standard deviation."""
    return (values.mean(axis=0) - mean) / np.sqrt(variance / len(values))


def z_variance(values, variance):
    """The same for variances, their standard deviation taken from the sample's fourth moment."""
    squares = (values - values.mean(axis=0)) ** 2
    return (squares.mean(axis=0) - variance) / (squares.std(axis=0) / sqrt(len(values)))


def z_share(hits, share):
    return (np.mean(hits) - share) / sqrt(share * (1 - share) / len(hits))


def z_uncorrelated(values):
    """Off-diagonal correlations of independent columns, in units of 1/sqrt(n)."""
    correlation = np.corrcoef(values, rowvar=False)
    return correlation[np.triu_indices_from(correlation, k=1)] * sqrt(len(values))


def along_the_diagonal(values):
    """Components along (1, ..., 1) / sqrt(20), where a mean of (a, ..., a) has length 2."""
    return values.sum(axis=1) / sqrt(values.shape[1])


def within(z):
    worst = np.max(np.abs(z))
    assert worst < LIMIT, f"|z| = {worst:.1f}"
    return True


# The generators' definitions


@pytest.mark.parametrize("name", GENERATORS)
def test_shapes_labels_and_types(samples, name):
    X, y = samples[name]
    assert X.shape == (ROWS, DIMENSIONS[name])
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert set(y.tolist()) == {-1, 1}


def test_twonorm_is_breimans(samples):
    """Report 460: unit normals in 20 dimensions, means (a, ..., a) and (-a, ..., -a), a = 2 / sqrt(20)."""
    X, y = samples["twonorm"]
    assert within(z_share(y > 0, 0.5))
    for sign in (-1, 1):
        Z = X[y == sign]
        assert within(z_mean(Z, sign * A, 1.0))
        assert within(z_mean(along_the_diagonal(Z), sign * 2.0, 1.0))
        assert within(z_variance(Z, 1.0))
        assert within(z_uncorrelated(Z))


def test_the_best_rule_for_twonorm_errs_as_often_as_it_must(samples):
    """The means are 2 from the plane between them, so the Bayes error is the normal tail beyond 2."""
    X, y = samples["twonorm"]
    assert within(z_share(np.sign(X.sum(axis=1)) != y, norm.sf(2.0)))


def test_ringnorm_is_breimans(samples):
    """Report 460: one class has mean zero and covariance 4 I, the other mean (a, ..., a) and covariance I."""
    X, y = samples["ringnorm"]
    wide, narrow = X[y > 0], X[y < 0]
    assert within(z_share(y > 0, 0.5))
    assert within(z_mean(wide, 0.0, 4.0))
    assert within(z_variance(wide, 4.0))
    assert within(z_mean(narrow, A, 1.0))
    assert within(z_mean(along_the_diagonal(narrow), 2.0, 1.0))
    assert within(z_variance(narrow, 1.0))
    assert within(z_uncorrelated(wide))
    assert within(z_uncorrelated(narrow))


def test_the_best_rule_for_ringnorm_errs_in_1_3_percent(samples):
    """Breiman prints the theoretical error as 1.3 %: at least 1.25 and at most 1.35."""
    X, y = samples["ringnorm"]
    log_ratio = norm.logpdf(X, 0, 2).sum(axis=1) - norm.logpdf(X, A, 1).sum(axis=1)
    wrong = np.sign(log_ratio) != y
    assert z_share(wrong, 0.0125) > -LIMIT
    assert z_share(wrong, 0.0135) < LIMIT


def waves():
    """CART, section 2.6.2: h1 peaks at 11 with height 6; h2(m) = h1(m - 4), h3(m) = h1(m + 4)."""

    def h1(m):
        return max(6 - abs(m - 11), 0)

    return np.array([[h1(m - shift) for m in range(1, 22)] for shift in (0, 4, -4)], dtype=float)


def mixture_moments(pairs):
    """Mean and covariance of u h + (1 - u) h' + unit noise, u uniform, the pair (h, h') drawn evenly.

    Given a pair the mean is (h + h') / 2, and u adds (h - h')(h - h')' / 12 to the covariance.
    """
    means = np.array([(h + g) / 2 for h, g in pairs])
    within_pair = np.mean([np.outer(h - g, h - g) / 12 for h, g in pairs], axis=0)
    between = np.cov(means, rowvar=False, bias=True)
    return means.mean(axis=0), np.eye(21) + within_pair + between


def test_waveform_is_that_of_cart(samples):
    """Class 2 of CART mixes h1 and h3; classes 1 (h1, h2) and 3 (h2, h3) are taken together."""
    X, y = samples["waveform"]
    h1, h2, h3 = waves()
    assert within(z_share(y > 0, 1 / 3))
    for sign, pairs in ((1, [(h1, h3)]), (-1, [(h1, h2), (h2, h3)])):
        mean, covariance = mixture_moments(pairs)
        Z = X[y == sign]
        assert within(z_mean(Z, mean, np.diag(covariance)))
        centred = Z - mean
        products = centred[:, :, None] * centred[:, None, :]
        deviation = products.std(axis=0) / sqrt(len(Z))
        assert within((products.mean(axis=0) - covariance) / deviation)


# Reproducible


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_is_a_function_of_n_and_seed(name):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    once, again = load(f"{name}:50:3"), load(f"{name}:50:3")
    assert once.learn.equals(again.learn)
    assert once.test.equals(again.test)
    assert not load(f"{name}:50:4").learn.equals(once.learn)
    assert load(f"{name}:60:3").learn.num_rows == 60
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("name", GENERATORS)
def test_the_rows_to_test_on_are_fresh(name):
    columns = load(f"{name}:200:0")
    assert columns.learn.column_names == columns.test.column_names
    assert columns.learn.column_names == [*(f"x{i}" for i in range(DIMENSIONS[name])), "y"]
    seen = set(columns.learn["x0"].to_pylist())
    assert len(seen) == 200
    assert columns.test.num_rows >= 10_000
    assert not seen & set(columns.test["x0"].to_pylist())
    as_many = load(f"{name}:{columns.test.num_rows}:0")
    assert not as_many.learn.equals(as_many.test)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_set_is_a_learning_set(name):
    task = Task.from_table(load(f"{name}:100:0").learn)
    assert task.classes == (-1, 1)
    assert task.n == 100


# Names


@pytest.mark.parametrize(
    "source", ["sklearn:wine", "ida:banana:1", "twonorm:9:0", "ringnorm:", "waveform", "sklearn", "ida"]
)
def test_what_names_a_set(source):
    assert is_named(source)


@pytest.mark.parametrize(
    "source", ["table.csv", "twonorm.csv", "Twonorm:9:0", "", "C:\\ida.csv", "./ida:1:1"]
)
def test_what_does_not_name_a_set(source):
    assert not is_named(source)


@pytest.mark.parametrize(
    "source",
    [
        *("sklearn", "sklearn:", "sklearn:nothing", "sklearn:iris:1"),
        *("ida", "ida:banana", "ida:banana:x", "ida:banana:-1", "ida:banana:1:1", "ida:banana:1.0"),
        *("twonorm", "twonorm:", "twonorm:400", "twonorm:400:0:0", "twonorm:x:0", "twonorm:400:x"),
        *("ringnorm:400:-1", "ringnorm:-400:0", "ringnorm:4e2:0", "ringnorm: 400:0", "ringnorm::"),
        *("waveform:5:0", "waveform:0:0", "waveform:99999999999999999999:0", "waveform:10000001:0"),
    ],
)
def test_a_name_that_does_not_parse_is_refused(source, cache):
    with pytest.raises(InputError) as refused:
        load(source)
    told = str(refused.value)
    assert source.split(":")[0] in told
    assert any(
        way in told for way in ("the forms are", "choose from", "outside 6..", "needs the IDA archive")
    )


def test_the_forms_are_shown():
    with pytest.raises(InputError) as refused:
        load("twonorm:400")
    assert all(form in str(refused.value) for form in ("sklearn:NAME", "ida:NAME:R", "waveform:n:seed"))


def test_an_unknown_set_of_sklearn_is_answered_with_those_there_are():
    with pytest.raises(
        InputError, match=r"sklearn:boston is not known: choose from breast_cancer, diabetes, digits"
    ):
        load("sklearn:boston")


def test_breast_cancer_of_sklearn():
    columns = load("sklearn:breast_cancer")
    task = Task.from_table(columns.learn)
    assert columns.test is None
    assert (task.n, len(task.features), task.target) == (569, 30, "target")
    assert task.classes == ("benign", "malignant")
    assert int(task.y.sum()) == 212
    assert "mean radius" in task.features


@pytest.mark.parametrize(("name", "classes"), [("iris", 3), ("wine", 3), ("digits", 10)])
def test_sets_of_more_classes_are_tasks_of_as_many(name, classes):
    columns = load(f"sklearn:{name}").learn
    task = Task.from_table(columns)
    assert (task.n_classes, task.kind) == (classes, Kind.MULTICLASS)
    assert set(task.y.tolist()) == set(range(classes))
    assert task.labelled(task.y).tolist() == columns["target"].to_pylist()


def test_from_matrix_names_columns():
    X = np.arange(6.0).reshape(3, 2)
    assert from_matrix(X, None).column_names == ["x0", "x1"]
    named = from_matrix(X, np.array([1, 2, 3]), ["a", "b"], "c")
    assert named.column_names == ["a", "b", "c"]
    assert named["b"].to_pylist() == [1.0, 3.0, 5.0]


# The IDA archive, in both forms


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


@BOTH
def test_realizations_count_from_1_and_rows_keep_their_order(tmp_path, monkeypatch, form):
    file = archive(tmp_path / f"ida{form}", {"tiny": tiny()})
    monkeypatch.setenv("CKCV_IDA", str(file))
    learn, test = load("ida:tiny:1")
    assert learn["x0"].to_pylist() == [12, 0, 2, 4, 6, 14]
    assert learn["y"].to_pylist() == [-1, -1, 1, -1, 1, 1]
    assert test["x1"].to_pylist() == [9, 11, 17, 19]
    assert load("ida:tiny:2").learn["x0"].to_pylist() == [18, 16, 14, 12, 10, 8]
    assert learn.equals(load("ida:tiny:1", file).learn)


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
            one, other = load(f"ida:{name}:{i}", npz), load(f"ida:{name}:{i}", mat)
            assert one.learn.equals(other.learn)
            assert one.test.equals(other.test)
        for file in (npz, mat):
            with pytest.raises(
                InputError, match=rf"outside 1\.\.{realizations}, the realizations in the archive"
            ):
                load(f"ida:{name}:{realizations + 1}", file)
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
    assert load("ida:tiny:1", file).learn.num_rows == 6
    with pytest.raises(InputError, match=r"cannot read the IDA archive .*nowhere\..*No such file"):
        load("ida:tiny:1")


@pytest.mark.parametrize("value", [None, ""])
def test_without_an_archive_every_way_to_it_is_named(cache, monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("CKCV_IDA", value)
    with pytest.raises(InputError) as refused:
        load("ida:banana:1")
    assert all(way in str(refused.value) for way in ("`ckcv fetch`", "--ida-file", "CKCV_IDA"))
    assert not cache.exists()


def test_the_fetched_archive_is_read_when_no_other_is_named(cache, tmp_path, monkeypatch):
    fetched = archive(fetch.cached(), {"tiny": tiny()})
    assert fetched.is_relative_to(cache)
    assert load("ida:tiny:2").learn.equals(load("ida:tiny:2", fetched).learn)
    other = archive(tmp_path / "other.npz", {"tiny": tiny() | {"x": np.zeros((10, 1))}})
    monkeypatch.setenv("CKCV_IDA", str(other))
    assert load("ida:tiny:2").learn.column_names == ["x0", "y"]
    assert load("ida:tiny:2", fetched).learn.column_names == ["x0", "x1", "y"]


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
        load(source, archive(tmp_path / f"ida{form}", {"tiny": tiny()}))
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
    changed, told = ODD[name]
    file = archive(tmp_path / f"odd{form}", {"tiny": tiny() | changed})
    with pytest.raises(InputError) as refused:
        load("ida:tiny:2", file)
    assert str(refused.value).startswith(f"cannot read the IDA archive {str(file)!r}: ")
    assert told in str(refused.value)


@BOTH
@pytest.mark.parametrize("part", ["x", "t", "train", "test"])
def test_an_archive_without_a_part_is_bad_input(tmp_path, part, form):
    file = tmp_path / f"odd{form}"
    if form == ".npz":
        np.savez(file, **{f"tiny/{p}": values for p, values in tiny().items() if p != part})
    else:
        savemat(file, {"tiny": {p: values for p, values in as_matlab(tiny()).items() if p != part}})
    with pytest.raises(InputError, match=rf"odd\..*: tiny has no '{part}'"):
        load("ida:tiny:1", file)


def test_a_row_number_0_of_a_mat_does_not_wrap_around(tmp_path):
    parts = as_matlab(tiny())
    parts["test"] = parts["test"].astype(np.uint8)
    parts["test"][1, 3] = 0
    savemat(tmp_path / "odd.mat", {"tiny": parts})
    with pytest.raises(InputError, match=r"tiny has row numbers outside 1\.\.10"):
        load("ida:tiny:1", tmp_path / "odd.mat")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_mat_cut_short_is_bad_input_or_whole_in_what_counts(tmp_path, compressed):
    file = archive(tmp_path / "cut.mat", {"tiny": tiny()}, do_compression=compressed)
    content, whole = file.read_bytes(), load("ida:tiny:2", file)
    told = []
    for size in range(0, len(content), 7):
        file.write_bytes(content[:size])
        try:
            assert load("ida:tiny:2", file).learn.equals(whole.learn)
        except InputError as error:
            told.append(str(error))
    assert len(told) > 0.9 * len(content) / 7
    assert all("is not in the archive" in line or "cannot read the IDA archive" in line for line in told)


CRASHING = """eNrzdQzxcXRSMNUzUPB1DNFNy8xJVQjISSxJyy/KtVIoyC/OrNBRcC5KTSxJTVHIz7NSCC7NU/DLL1MwMlIwsLAyNbAyMFQw
MjAyYyADMHr68gOpJ0BcMWdrsCNfkwOPzgYd7yQO9/kPL86WqW1TmfTClWfSCvP5D4Rrm9zzb6VGa3onJfX4nrqwsCTtpipzQyXLAkHeNA69pFXN5W4X
rqU/Cb2evVPz2crXeXe3am63zljNPG3mXOkvxVslz6WubfgSdIb7R2G0xR5hO46FBQs4fA2rvsonim9trwuU/Pgp2fDWjIbiX0sS/t2+9SrG/kXbF59X
61xkBT890+rvt42rrnn08Zl7/JrTNq9PHVb/m7le/+OvnuvptTqt601kfk1qP19Uunul1KNP5yLkbfLVnm3s/+i/6EGE+WuZ915r4s/UmxoBACMqiS8="""


def test_a_mat_that_crashes_its_reader_is_bad_input(tmp_path):
    """scipy 1.17 ends with SIGSEGV on this one, found by jobs/faults/fuzz.py."""
    (tmp_path / "crash.mat").write_bytes(zlib.decompress(base64.b64decode(CRASHING)))
    with pytest.raises(InputError, match="cannot read the IDA archive"):
        load("ida:toy:1", tmp_path / "crash.mat")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os; os.kill(os.getpid(), 11)", "its reader ended with code -11"),
        ("raise MemoryError", "MemoryError"),
        ("while True: pass", "timed out"),
        ("pass", "good.mat"),
    ],
)
def test_whatever_becomes_of_the_reader_of_a_mat_is_bad_input(tmp_path, monkeypatch, program, told):
    (tmp_path / "reader.py").write_text(program)
    monkeypatch.setattr(datasets.matlab, "__file__", str(tmp_path / "reader.py"))
    monkeypatch.setattr(datasets, "MATLAB_SECONDS", 1.0 if "while" in program else 60.0)
    with pytest.raises(InputError, match=f"cannot read the IDA archive .*{told}"):
        load("ida:tiny:1", archive(tmp_path / "good.mat", {"tiny": tiny()}))


def test_what_a_mat_unfolds_to_is_bounded(tmp_path):
    file = archive(tmp_path / "good.mat", {"tiny": tiny()})
    code = "from ckcv_ray.tables import matlab; matlab.MOST_WRITTEN = 100; matlab.main()"
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, "-c", code, file], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode != 0  # 120 where the last of it fails as Python ends
    assert b"File too large" in done.stderr


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
        load("ida:tiny:1", file)


@pytest.mark.parametrize("name", ["banana", "titanic", "thyroid", "twonorm", "heart"])
def test_ida_sets_are_the_rows_of_the_archive(ida, name):
    with np.load(ida) as archive:
        x, t, train, test = (archive[f"{name}/{part}"] for part in ("x", "t", "train", "test"))
    for realization in {1, len(train)}:
        columns = load(f"ida:{name}:{realization}", ida)
        for held, index in ((columns.learn, train), (columns.test, test)):
            rows = index[realization - 1]
            X = np.stack([held[f"x{i}"].to_numpy() for i in range(x.shape[1])], axis=1)
            assert np.array_equal(X, x[rows])
            assert np.array_equal(held["y"].to_numpy(), t[rows])
        assert columns.learn.num_rows + columns.test.num_rows == len(x)
    with pytest.raises(InputError, match=rf"ida:{name}:{len(train) + 1} is outside 1\.\.{len(train)}"):
        load(f"ida:{name}:{len(train) + 1}", ida)


def test_every_ida_set_is_a_learning_set(ida):
    with np.load(ida) as archive:
        names = sorted({key.split("/")[0] for key in archive.files})
    assert len(names) == 13
    for name in names:
        columns = load(f"ida:{name}:1", ida)
        task = Task.from_table(columns.learn)
        assert task.classes == (-1, 1)
        assert len(class_numbers(columns.test["y"], task.classes, "y")) == columns.test.num_rows


@pytest.mark.parametrize("name", GENERATORS)
def test_the_generators_call_the_same_class_plus_1_as_the_archive(ida, samples, name):
    """The class means (and for ringnorm the spread) of the IDA rows are those of the generator's."""
    with np.load(ida) as archive:
        x, t = archive[f"{name}/x"], archive[f"{name}/t"]
    X, y = samples[name]
    # Inputs of the archive are standardised over the pool: so are ours.
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for sign in (-1, 1):
        apart = [np.abs(x[t == sign].mean(axis=0) - Z[y == s].mean(axis=0)).max() for s in (sign, -sign)]
        spread = [np.abs(x[t == sign].std(axis=0) - Z[y == s].std(axis=0)).max() for s in (sign, -sign)]
        assert apart[0] + spread[0] < 0.5 * (apart[1] + spread[1])

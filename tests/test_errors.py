"""What is checked on entry; ``test_refusals`` tests that every entry point checks it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ckcv_ray import InputError, StoreError
from ckcv_ray.errors import (
    agree,
    as_array,
    as_path,
    integer,
    number,
    parse_folds,
    parse_grid,
    parse_seconds,
    quote,
)


def test_a_path_need_not_be_there_but_could_be(tmp_path):
    (tmp_path / "file").touch()
    for name in ("new", "new/below", "file", "file/below"):
        assert as_path("out", str(tmp_path / name)) == tmp_path / name
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("", "a\0b", "x" * 256, "a/" * 2040, "\ud800", str(tmp_path / "loop")):
        with pytest.raises(InputError, match=r"^out=.*no file can have this name"):
            as_path("out", name)
        with pytest.raises(StoreError):
            as_path("out", name, StoreError)


def test_a_message_holds_any_value():
    assert quote("a\n") == r"'a\n'"
    assert len(quote(list(range(1000)))) < 300


def test_numbers_come_back_in_python_own_types():
    assert type(integer("seed", np.int64(3), 0, 9)) is int
    assert type(number("delta", np.float32(0.5))) is float
    for value in (True, "3", None, 3.0, np.array(3)):
        with pytest.raises(InputError, match=r"^seed=.*is not a whole number"):
            integer("seed", value, 0, 9)


@pytest.mark.parametrize("values", [np.ma.masked_equal([1, 2], 1), csr_matrix([[1, 2]]), [[1], [2, 3]]])
def test_no_array_loses_a_mask_or_its_shape(values):
    with pytest.raises(InputError, match=r"^X is"):
        as_array("X", values)


# Grids and folds as text


GRIDS = {
    "1": (1.0,),
    "0.1,1,10": (0.1, 1.0, 10.0),
    " 1 , 2e-3": (1.0, 0.002),
    "log:0:0:1": (1.0,),
    "log:-1:1:3": (0.1, 1.0, 10.0),
    "log:1:-1:3": (10.0, 1.0, 0.1),
    "log:0:0.5:2": (1.0, 10**0.5),
}
FOLDS = {"3": (3,), "10,3,3": (10, 3, 3), " 3 , 4": (3, 4), "3:6": (3, 4, 5, 6), "7:7": (7,)}
NO_GRIDS = [
    *("", ",", "1,", "1,,2", "a", "1;2", "1 2", "3:n"),
    *("log:", "log:1", "log:1:2", "log:1:2:3:4", "log:a:2:3", "log:0:1:x", "log:0:1:2.5"),
    *("log:1:2:0", "log:1:2:-3", "log:1:2:1", "log:0:1:10001", "log:0:400:3"),
]
NO_FOLDS = ["", ",", "3,", "3.5", "a", "n", "5:3", "3:", ":5", ":", "3:4:5", "-2:3", "3:N", "1:99999999"]


@pytest.mark.parametrize(
    ("parse", "name", "read", "unread", "forms"),
    [
        (parse_grid, "C", GRIDS, NO_GRIDS, ("0.1,1,10", "log:-2:4:13")),
        (parse_folds, "k", FOLDS, NO_FOLDS, ("3,4,5,10", "3:20", "3:n")),
    ],
)
def test_lists_of_numbers_are_read_from_text_or_refused_with_every_form(parse, name, read, unread, forms):
    for text, values in read.items():
        assert parse(text, name) == pytest.approx(values, rel=1e-15)
    for text in unread:
        with pytest.raises(InputError) as refused:
            parse(text, name)
        assert all(part in str(refused.value) for part in (f"{name}={text!r}", *forms))


TIMES = {"90s": 90.0, "10m": 600.0, "1.5h": 5400.0, "1d": 86_400.0, " 2h": 7200.0}
NO_TIMES = ("", "10", "m", "10 minutes", "10M", "1h30m", "1,5h", "0s", "-5m", "nanm", "infh")


def test_a_time_is_a_positive_number_and_a_unit():
    assert [parse_seconds("budget", text) for text in TIMES] == [*TIMES.values()]
    for text in NO_TIMES:
        with pytest.raises(InputError, match=r"such as (90s, )?10m"):
            parse_seconds("budget", text)


# Whether models are the same in content: a unit in the last place of a number is, more is not


ROUNDING = 1e-9
FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(FLOATS, FLOATS)
def test_numbers_agree_within_a_multiple_of_the_larger_one_or_of_one(a: float, b: float) -> None:
    close = a == b or (np.isnan(a) and np.isnan(b))
    if np.isfinite([a, b]).all():
        close |= abs(a / 2 - b / 2) <= ROUNDING / 2 * max(1.0, abs(a), abs(b))
    assert agree({"a": [a]}, {"a": [b]}, ROUNDING) == close
    assert agree(a, b) == (a == b or (np.isnan(a) and np.isnan(b)))


DIFFERENT: list[tuple[Any, Any]] = [
    ([1, 2], [1, 2, 3]),
    ({"a": 1}, {"b": 1}),
    (10**10, 10**10 + 1),
    (np.arange(3), np.arange(3.0)),
    (b"a\0", b"a"),
    ("1", 1),
    (np.zeros(2), np.zeros((2, 1))),
    (np.zeros(2, [("a", "f8")]), np.zeros(2, [("b", "f8")])),
    (np.float16(1.0), 1.001),
    (None, 0),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_structure_words_and_integers_have_to_be_equal(a: Any, b: Any) -> None:
    for one, other in ((a, b), (b, a)):
        assert agree(one, one, ROUNDING)
        assert not agree(one, other, ROUNDING)

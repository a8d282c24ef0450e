"""Numbers by class label: one canonical text for every way to write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.measures import canonicalize, of_classes, parse_numbers_by_label
from ckcv_ray.errors import InputError

labels = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).map(str.strip).filter(bool)


@given(st.dictionaries(labels, st.floats(1e-300, 1e300), min_size=1, max_size=6), st.randoms())
def test_any_labels_in_any_order_come_back(numbers, random):
    items = list(numbers.items())
    random.shuffle(items)
    text = canonicalize("w", dict(items))
    assert text == canonicalize("w", numbers) == canonicalize("w", text)
    rounded = {label: float(f"{value:.12g}") for label, value in numbers.items()}
    assert parse_numbers_by_label(text) == rounded
    assert of_classes("w", text, sorted(numbers)) == [rounded[label] for label in sorted(numbers)]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("b=2, a = 0.5", "a=0.5,b=2"),
        ({1: 1 / 3, -1: 1e20}, "-1=1e+20,1=0.333333333333"),
        ({np.int64(3): np.float32(0.5), np.str_(" x "): 1}, "3=0.5,x=1"),
        ('"a, b=1", c=2', '"a, b=1",c=2'),
        ('a"b=1', '"a""b=1"'),
    ],
    ids=str,
)
def test_the_canonical_text(values, text):
    assert canonicalize("w", values) == text


REFUSED = ("", "sick=ten", '"sick"=1', " =1", "a=1,a=2", "sick=0", "sick=-1", {"sick": float("inf")}, {}, 3.0)


@pytest.mark.parametrize(
    "values", [*REFUSED, {1: 2, "1": 3}, {"sick": "10"}, {"": 1.0}, dict.fromkeys(range(1001), 1.0)], ids=repr
)
def test_what_is_refused(values):
    with pytest.raises(InputError, match=r"^w=.*: expected LABEL=NUMBER .* each number positive and finite"):
        canonicalize("w", values)


@pytest.mark.parametrize("number", ["-1e-300", "-1", "nan", "inf"])
def test_a_number_may_be_0_and_none_is_below_it_or_infinite(number):
    assert canonicalize("w", {"a": -0.0, "b": 0}, zero=True) == "a=0,b=0"
    with pytest.raises(InputError, match="each number 0 or more and finite"):
        canonicalize("w", f"a={number}", zero=True)


@pytest.mark.parametrize(
    ("text", "classes", "found"),
    [
        ("b=2", ("a", "b ", "c"), [None, 2, None]),
        ("1.0=2", (0, 1), [None, 2]),
        ("1=2,0=3", (0.0, 1.0), [3, 2]),
        ("1=2", ("0", "1"), [None, 2]),
        ("true=2,FALSE=3", (False, True), [3, 2]),
        ("1.0=3,1=2", (1, "1.0"), [2, 3]),
    ],
)
def test_labels_are_matched_by_their_text_and_numbers_by_value(text, classes, found):
    assert of_classes("w", text, classes) == found


@pytest.mark.parametrize(
    ("text", "classes", "message"),
    [
        ("B=2", ("a", "b"), "w names 'B', which is no label of the target: the labels are 'a', 'b'"),
        ("1=2", (False, True), "the labels are 'False', 'True'"),
        ("x=2", tuple(range(40)), r"'11', \.\.\. \(40 in all\)"),
        ("1=2,1.0=2", (0, 1), "names a label of the target twice"),
    ],
)
def test_labels_that_do_not_match_are_refused(text, classes, message):
    with pytest.raises(InputError, match=message):
        of_classes("w", text, classes)

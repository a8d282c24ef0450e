"""Numbers by class label: one canonical text for every way to write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckcv_ray.core.measures import canonicalize, of_classes, parse_numbers_by_label
from ckcv_ray.errors import InputError

labels = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
numbers = st.floats(1e-300, 1e300)


@given(st.dictionaries(labels, numbers, min_size=1, max_size=6), st.randoms())
def test_any_labels_in_any_order_come_back(given_numbers, random):
    items = list(given_numbers.items())
    random.shuffle(items)
    text = canonicalize("w", dict(items))
    assert text == canonicalize("w", given_numbers) == canonicalize("w", text)
    assert parse_numbers_by_label(text) == {
        label: float(f"{value:.12g}") for label, value in given_numbers.items()
    }
    assert of_classes("w", text, sorted(given_numbers)) == [
        parse_numbers_by_label(text)[one] for one in sorted(given_numbers)
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("b=2,a=0.5", "a=0.5,b=2"),
        ({"a": 1 / 3}, "a=0.333333333333"),
        ({1: 2, -1: 1e20}, "-1=1e+20,1=2"),
        ({np.int64(3): np.float32(0.5), np.str_("x"): 1}, "3=0.5,x=1"),
        ('"a, b=1", c=2', '"a, b=1",c=2'),
        ({' a"b': 1}, '" a""b=1"'),
        ({"b ": 1}, '"b =1"'),
        (' b = 2 , a\t= 5e-1,"c =1" ', 'a=0.5,b=2,"c =1"'),
        ('a"b=1', '"a""b=1"'),
    ],
    ids=str,
)
def test_the_canonical_text(values, text):
    assert canonicalize("w", values) == text


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ("", "w='' is empty: expected LABEL=NUMBER"),
        ("sick=ten", "expected LABEL=NUMBER"),
        ('"sick"=1', "expected LABEL=NUMBER"),
        (" =1", "expected LABEL=NUMBER"),
        ({1: 2, "1": 3}, "names '1' twice"),
        ("sick=0", "w of 'sick' is 0.0: it must be positive and finite"),
        ("sick=-1", "it must be positive and finite"),
        ({"sick": float("inf")}, "it must be positive and finite"),
        ({"sick": "10"}, "w of 'sick'='10' is not a number"),
        ({"sick": True}, "w of 'sick'=True is not a number"),
        ({None: 1.0}, "w names None: labels are text or numbers"),
        ({"": 1.0}, "labels are text or numbers"),
        ({}, "w={} is empty: expected LABEL=NUMBER"),
        (3.0, "w=3.0: expected LABEL=NUMBER .* or a mapping"),
        (dict.fromkeys(range(1001), 1.0), "w has more than 1,000 values"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_refused(values, messages):
    with pytest.raises(InputError, match=messages):
        canonicalize("w", values)


@pytest.mark.parametrize("number", ["-1e-300", "-1", "nan", "inf"])
def test_a_number_may_be_0_and_none_is_below_it_or_infinite(number):
    assert canonicalize("w", {"a": -0.0, "b": 0}, zero=True) == "a=0,b=0"
    with pytest.raises(InputError, match=r"w of 'a' is .*: it must be 0 or more, and finite"):
        canonicalize("w", f"a={number}", zero=True)


@pytest.mark.parametrize(
    ("text", "classes", "found"),
    [
        ("b=2", ("a", "b", "c"), [None, 2, None]),
        ("1=2", (0, 1), [None, 2]),
        ("1.0=2", (0, 1), [None, 2]),
        ("1=2,0=3", (0.0, 1.0), [3, 2]),
        ("1=2", ("0", "1"), [None, 2]),
        ("true=2,FALSE=3", (False, True), [3, 2]),
        ("01=3,1=2", ("01", "1"), [3, 2]),
        ("1.0=3,1=2", (1, "1.0"), [2, 3]),
    ],
)
def test_labels_are_matched_by_their_text_and_numbers_by_value(text, classes, found):
    assert of_classes("w", text, classes) == found


@pytest.mark.parametrize(
    ("text", "classes", "messages"),
    [
        ("B=2", ("a", "b"), "w names 'B', which is no label of the target: the labels are 'a', 'b'"),
        ("1.0=2", ("0", "1"), "the labels are '0', '1'"),
        ("1=2", (False, True), "the labels are 'False', 'True'"),
        ("x=2", tuple(range(40)), r"'11', \.\.\. \(40 in all\)"),
        ("true=1,True=2,false=3", (False, True), "names 'True' twice, as 'true' and as 'True'"),
        ("1=2,1.0=2", (0, 1), "w names '1' twice, as '1' and as '1.0': name each label once"),
    ],
)
def test_labels_that_do_not_match_are_refused(text, classes, messages):
    with pytest.raises(InputError, match=messages):
        of_classes("w", text, classes)

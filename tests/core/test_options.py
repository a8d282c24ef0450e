"""Options: fields that are declared once, checked when a part is made, and described for files."""

import json
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from ckcv_ray.core.options import Option, check_options, describe_part, get_values, option, options
from ckcv_ray.validation import folds, grid, integer

SIZE = Option(lambda name, value: integer(name, value, least=1, most=9), "How large.", int, "3", "Shape")
WIDTHS = Option(grid, "How wide.", default_text="1,2")


@dataclass(frozen=True)
class Part:
    name: ClassVar[str] = "part"

    widths: tuple[float, ...] = option((1.0, 2.0), WIDTHS)
    size: int = option(3, SIZE)
    made: list[int] = field(default_factory=list)

    def __post_init__(self):
        check_options(self)


def test_options_are_the_fields_that_are_declared_as_such_in_their_order():
    for part in (Part, Part()):
        assert list(options(part)) == ["widths", "size"]
        assert options(part)["size"].metadata["option"] is SIZE
        assert options(part)["size"].default == 3


def test_values_come_in_their_canonical_form():
    assert get_values(Part()) == {"widths": (1.0, 2.0), "size": 3}
    assert get_values(Part(widths=[2, 1, 2])) == get_values(Part(widths="1,2")) == get_values(Part())
    assert Part(widths=[2, 1]) == Part()


@pytest.mark.parametrize("one", [2, 2.0, np.int8(2), np.int64(2), np.float32(2)], ids=repr)
def test_a_single_number_is_a_list_of_one(one):
    assert Part(widths=one) == Part(widths=[2])
    assert type(Part(widths=one).widths[0]) is float
    if isinstance(one, int | np.integer):
        assert folds("k", one, least=1) == (2,)
        assert type(folds("k", one, least=1)[0]) is int


def test_a_part_is_described_in_json_by_its_name_and_options_alone():
    part = Part(size=4, made=[1])
    assert describe_part(part) == {"name": "part", "widths": [1.0, 2.0], "size": 4}
    read = json.loads(json.dumps(describe_part(part), allow_nan=False))
    assert read.pop("name") == "part"
    assert get_values(Part(**read)) == get_values(part)

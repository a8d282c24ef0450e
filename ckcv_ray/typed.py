"""JSON values of a declared type: what a file holds is checked before a reader relies on it."""

import json
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
STRICT = {"strict": True, "allow_inf_nan": False}


def read_as(kind: type[T], values: Any) -> T:
    """JSON values as a typed dict or a dataclass; nothing is converted but lists to tuples.

    Raises:
        ValueError: they are not of this type, or a number is not finite; the message names the first place.
    """
    from pydantic import ValidationError  # takes 40 ms, which workers need not pay

    try:
        (value,) = _adapter(kind).validate_json(json.dumps([values]))  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"][1:])) or "all of it"
        raise ValueError(f"{where}: {first['msg']}") from None
    result: T = value
    return result


@cache
def _adapter(kind: type) -> Any:
    """What checks values of this type; as the item of a tuple it hands its settings down to all within."""
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(tuple[kind], config=ConfigDict(**STRICT))  # type: ignore[valid-type, typeddict-item]

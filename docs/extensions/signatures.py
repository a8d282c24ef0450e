"""Signatures as they are written: NumPy's type aliases by their names, not by the unions they stand for."""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

ARRAY_LIKE = [stringify_annotation(ArrayLike, mode) for mode in ("smart", "fully-qualified-except-typing")]
ND_ARRAY = re.compile(
    r"~?numpy\.ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[([^\[\]]*)\]\]"
)


def named(text: str | None) -> str | None:
    """Replace the unions of a signature by the names of their aliases."""
    for union in ARRAY_LIKE:
        text = text and text.replace(union, "~numpy.typing.ArrayLike")
    return text and ND_ARRAY.sub(r"~numpy.typing.NDArray[\1]", text)


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str) -> Any:
    """Name the aliases of one signature."""
    return named(signature), named(returned)


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so for every signature."""
    app.connect("autodoc-process-signature", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

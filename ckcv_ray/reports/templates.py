"""Templates of jinja, and text that goes into them: whatever could be markup is escaped."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ckcv_ray.errors import printable

MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")


def divide_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines divide, each as one line."""
    parts = text.replace("\r\n", "\n").split("\n\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


def escape_markdown(text: str) -> str:
    """Return text in which nothing is markup of Markdown, nor HTML inside it."""
    return MARKUP.sub(r"\\\1", text)


@cache
def load_template(name: str, package: str, **filters: Callable[..., object]) -> Template:
    """Return a template of a package, compiled once; what it prints is escaped for the format of its name.

    Args:
        name: of its file.
        package: where the folder of templates is.
        filters: functions that it may call, beside "paragraphs".
    """
    escaped = {".md": lambda text: escape_markdown(printable(text)), ".html": printable}
    finalize = escaped.get(Path(name).suffix, str)
    environment = Environment(
        loader=PackageLoader(package),
        auto_reload=False,
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=lambda value: finalize(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"paragraphs": divide_paragraphs, **filters}
    return environment.get_template(name)

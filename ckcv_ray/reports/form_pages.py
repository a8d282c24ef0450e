"""A filled form as Markdown or HTML.

Names, labels and answers come from data and from people: whatever could be markup is escaped. The same run
and answers give the same bytes.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from ckcv_ray.reports.forms import NO_CONFORMITY, FilledForm, FilledItem

MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")


def write_markdown(filled: FilledForm) -> bytes:
    """Return a filled form as Markdown."""
    return "\n\n".join(_list_paragraphs(filled)).encode() + b"\n"


def write_html(filled: FilledForm) -> bytes:
    """Return a filled form as one HTML page that loads nothing."""
    environment = Environment(
        loader=PackageLoader("ckcv_ray.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page: str = environment.get_template("form.html").render(
        filled=filled, sections=_group_sections(filled), no_conformity=NO_CONFORMITY
    )
    return page.encode()


FORM_WRITERS: dict[str, Callable[[FilledForm], bytes]] = {".md": write_markdown, ".html": write_html}


def escape_markdown(text: str) -> str:
    """Return text in which nothing is markup of Markdown, nor HTML inside it."""
    return MARKUP.sub(r"\\\1", text)


def _group_sections(filled: FilledForm) -> list[tuple[str, list[FilledItem]]]:
    grouped = groupby(filled.items, key=lambda found: found.item.section)
    return [(section, list(items)) for section, items in grouped]


def _list_paragraphs(filled: FilledForm) -> Iterator[str]:
    form = filled.form
    yield f"# {escape_markdown(f'{form.title}: run {filled.run_id}')}"
    yield from map(escape_markdown, (NO_CONFORMITY, f"Source: {form.source}.", form.note, filled.counts))
    for section, items in _group_sections(filled):
        yield f"## {escape_markdown(section)}"
        for item in items:
            yield f"### {escape_markdown(f'{item.item.number}: {item.item.text}')}"
            for label, sentences in (
                ("From the run:", item.found),
                ("By a person:", item.answer),
                ("For a person to fill:", (item.item.ask,) if item.is_open else ()),
            ):
                if sentences:
                    yield f"**{label}**"
                    yield "\n".join(f"* {escape_markdown(sentence)}" for sentence in sentences)

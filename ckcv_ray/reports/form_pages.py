"""A filled form as Markdown, HTML or a Word document.

Names, labels and answers come from data and from people: in Markdown and HTML whatever could be markup is
escaped. The same run and answers give the same bytes.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from ckcv_ray.errors import InputError
from ckcv_ray.reports.forms import NO_CONFORMITY, FilledForm, FilledItem

MARKUP = re.compile(r"([\\`*_\[\]<>&|~#])")
FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # of the files in a Word document, which is an archive
FROM_RUN, FROM_PERSON, TO_FILL = "From the run:", "By a person:", "For a person to fill:"


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


def write_docx(filled: FilledForm) -> bytes:
    """Return a filled form as a Word document.

    Raises:
        InputError: python-docx is not installed.
    """
    try:
        from docx import Document
    except ImportError:
        raise InputError(
            "a .docx file needs python-docx: pip install python-docx, or write .md or .html instead"
        ) from None
    document = Document()
    document.core_properties.title, document.core_properties.author = _name(filled), "ckcv-ray"
    document.add_heading(_name(filled), 0)
    for paragraph in _introduce(filled):
        document.add_paragraph(paragraph)
    for section, items in _group_sections(filled):
        document.add_heading(section, 1)
        for item in items:
            document.add_heading(f"{item.item.number}: {item.item.text}", 2)
            for label, sentences in _list_parts(item):
                document.add_paragraph().add_run(label).bold = True
                for sentence in sentences:
                    document.add_paragraph(sentence)
    stream = io.BytesIO()
    document.save(stream)
    return _fix_dates(stream.getvalue())


FORM_WRITERS: dict[str, Callable[[FilledForm], bytes]] = {
    ".md": write_markdown,
    ".html": write_html,
    ".docx": write_docx,
}


def escape_markdown(text: str) -> str:
    """Return text in which nothing is markup of Markdown, nor HTML inside it."""
    return MARKUP.sub(r"\\\1", text)


def _name(filled: FilledForm) -> str:
    return f"{filled.form.title}: run {filled.run_id}"


def _introduce(filled: FilledForm) -> list[str]:
    return [NO_CONFORMITY, f"Source: {filled.form.source}.", filled.form.note, filled.counts]


def _group_sections(filled: FilledForm) -> list[tuple[str, list[FilledItem]]]:
    grouped = groupby(filled.items, key=lambda found: found.item.section)
    return [(section, list(items)) for section, items in grouped]


def _list_parts(filled: FilledItem) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the run, and a person, say or have to say, each with its label."""
    if filled.found:
        yield FROM_RUN, filled.found
    if filled.answer:
        yield FROM_PERSON, filled.answer
    if filled.is_open:
        yield TO_FILL, (filled.item.ask,)


def _list_paragraphs(filled: FilledForm) -> Iterator[str]:
    yield f"# {escape_markdown(_name(filled))}"
    yield from map(escape_markdown, _introduce(filled))
    for section, items in _group_sections(filled):
        yield f"## {escape_markdown(section)}"
        for item in items:
            yield f"### {escape_markdown(f'{item.item.number}: {item.item.text}')}"
            for label, sentences in _list_parts(item):
                yield f"**{label}**"
                yield "\n".join(f"* {escape_markdown(sentence)}" for sentence in sentences)


def _fix_dates(document: bytes) -> bytes:
    """Return an archive whose files have one fixed date, so that it depends on its content alone."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(document)) as old,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name, FIXED_DATE), old.read(name), zipfile.ZIP_DEFLATED)
    return stream.getvalue()

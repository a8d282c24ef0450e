"""The directive ``{commands}``: every command of ``ckcv`` with its options, from the program itself."""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ckcv_ray.cli.main import COMMANDS, load_command


def rows(command: Any) -> Iterator[tuple[str, str, str]]:
    """Yield panel, name and help of each argument and option, as ``--help`` groups them."""
    context = command.context_class(command, info_name=command.name)
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        record = parameter.get_help_record(context)
        if record is None:
            continue
        panel = "Options" if parameter.opts[0].startswith("-") else "Arguments"
        yield parameter.rich_help_panel or panel, record[0].strip(), record[1].strip()


def escaped(text: str) -> str:
    """Escape what Markdown would take as markup, and what would end a table's cell."""
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", " ".join(text.split()))


def page(name: str, command: Any) -> Iterator[str]:
    """Yield the Markdown of one command."""
    yield f"(ckcv-{name})="
    yield f"## ckcv {name}"
    yield ""
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph.startswith("    "):
            yield from ("```text", dedent(paragraph).strip(), "```", "")
        else:
            yield from (paragraph, "")
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, option, text in rows(command):
        panels.setdefault(panel, []).append((option, text))
    for panel, listed in sorted(panels.items(), key=lambda item: item[0] != "Arguments"):
        yield from (f"| {panel} | meaning |", "|---|---|")
        yield from (f"| `{option}` | {escaped(text)} |" for option, text in listed)
        yield ""


class Commands(SphinxDirective):
    """Every command of ``ckcv``, a section each."""

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown made of them as part of the page."""
        lines = [line for name in COMMANDS for line in page(name, load_command(name))]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The role ``{source}`` for a file or folder of the repository: shown as code, refused if it is missing."""

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
logger = logging.getLogger(__name__)


def source(
    name: str, raw: str, text: str, line: int, inliner: Inliner, *_: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Show a path from the root of the repository."""
    if not (ROOT / text).exists():
        settings = inliner.document.settings
        logger.warning("there is no file %r in the repository", text, location=(settings.env.docname, line))
    return [nodes.literal(raw, text, classes=["source-file"])], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role."""
    app.add_role("source", source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Configuration of the documentation site: nothing it builds loads anything from elsewhere."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.search(r'VERSION = "([^"]+)"', (ROOT / "ckcv_ray" / "version.py").read_text())
sys.path[:0] = [str(ROOT), str(Path(__file__).parent / "extensions")]

project = "ckcv_ray"
release = version = VERSION[1] if VERSION else ""
language = "en"
smartquotes = False  # options begin with two hyphens

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "command_line",
    "mathml",
    "notebooks",
    "signatures",
    "source_files",
    "typography",
]
exclude_patterns = ["nightly", "extensions", "templates", "_build"]
templates_path = ["templates"]
nitpicky = True
# Types of other packages and of the standard library: their documentation is elsewhere.
nitpick_ignore_regex = [
    ("py:.*", r"(?!ckcv_ray\.).*"),
    ("py:class", r"ckcv_ray\..*\.(Coded|Fitted|Kind|Registered|Shares|T)"),  # type variables
]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # no links: names of fields are many objects

html_theme = "pydata_sphinx_theme"
html_title = "ckcv_ray"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "ckcv_ray"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "tutorial": []}

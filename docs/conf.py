"""The documentation site: `make docs` builds it into docs/_build/html.

The site needs no network, neither to be built nor to be read: formulas become MathML when it is built, and
nothing is looked up in other sites.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import normalfan

project = "normalfan"
author = "the normalfan authors"
version = release = normalfan.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "api_pages",
    "borrowed_pages",
    "layers",
    "mathml",
    "offline",
]
exclude_patterns = ["_build", "_templates", "_extensions"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False  # options begin with two hyphens

# Docstrings. Types stand in their Parameters sections, so signatures are left short.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

# Pages are MyST Markdown. Those whose header says `file_format: mystnb` are run, always: a page that is only
# read from a cache would not notice that the package has changed.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove"

# The process that runs them has settings of its own, not those of whoever builds the site.
_profile = Path(__file__).parent / "_build" / "ipython" / "profile_default"
_profile.mkdir(parents=True, exist_ok=True)
(_profile / "ipython_kernel_config.py").write_text("""
c.IPKernelApp.log_level = "ERROR"
# ipykernel asks commands for colours; the site shows plain text, and half an escape would not be lexed.
c.IPKernelApp.exec_lines = ['import os; os.environ.update(FORCE_COLOR="", TERM="dumb")']
""")
os.environ["IPYTHONDIR"] = str(_profile.parent)
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # normalfan

html_theme = "pydata_sphinx_theme"
html_title = "normalfan"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_extra_path = ["../results/paper/fan.html"]  # shown by a page, and a page of its own
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "normalfan"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
copyright = "the normalfan authors, BSD 3-Clause"  # noqa: A001


def _keep_bars(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """In docstrings |x| is an absolute value; to reStructuredText it would be a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(`[^`]*`)|\|(?=\S)", lambda found: found[1] or r"\|", line)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _keep_bars)
    app.add_lexer("csv", TextLexer)  # what readers of the repository see coloured, Pygments does not know

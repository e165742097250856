"""From a template, data and texts to one file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from normalfan.errors import check_installed
from normalfan.files import written_atomically
from normalfan.text import as_script, printable


def check_page_packages() -> None:
    """Refuse to write a page where a package for it is missing; ask before any long work."""
    for package in ("jinja2", "plotly"):
        check_installed(package, "a report page needs it", "report")


def write_page(path: str | Path, template: str, data: dict[str, Any], **texts: Any) -> None:
    """Render a template of the package with its data embedded; text is printable and escaped throughout."""
    check_page_packages()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    def asset(name: str) -> Markup:
        """A style sheet or script of the package, to be embedded as it is."""
        source = resources.files("normalfan.report") / "assets" / name
        return Markup(source.read_text(encoding="utf-8"))  # noqa: S704

    environment = Environment(
        loader=PackageLoader("normalfan.report", "assets"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    scripts = {"plotly": Markup(get_plotlyjs()), "data": Markup(as_script(data))}  # noqa: S704
    page = environment.get_template(template).render(**texts, **scripts, asset=asset)
    with written_atomically(path) as file:
        file.write(page.encode())

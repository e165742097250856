"""From a template, data and words to one file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from normalfan.errors import InputError
from normalfan.files import written_atomically
from normalfan.report.charts import as_script


def write_page(path: str | Path, template: str, data: dict[str, Any], **words: Any) -> None:
    """Render a template of the package with its data embedded; text is escaped throughout."""
    from markupsafe import Markup

    scripts = {"plotly": Markup(_plotly_script()), "data": Markup(as_script(data))}  # noqa: S704
    page = _environment().get_template(template).render(**words, **scripts, asset=_asset)
    with written_atomically(path) as file:
        file.write(page.encode())


def _asset(name: str) -> Any:
    """A style sheet or script of the package, to be embedded as it is."""
    from markupsafe import Markup

    source = resources.files("normalfan.report") / "assets" / name
    return Markup(source.read_text(encoding="utf-8"))  # noqa: S704


def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise _missing("jinja2") from None
    return Environment(
        loader=PackageLoader("normalfan.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _plotly_script() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise _missing("plotly") from None
    script: str = get_plotlyjs()
    return script


def _missing(package: str) -> InputError:
    return InputError(f"{package} is not installed, but a report needs it: pip install 'normalfan[report]'.")

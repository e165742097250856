"""The pages of the API reference, written from each package's `__all__` before autosummary looks for them.

Nothing public can be forgotten, and nothing else is listed. Names are grouped by the package that defines
them.
"""

from __future__ import annotations

import inspect
import shutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.config import Config

FOLDER = Path(__file__).resolve().parents[1] / "api"

PACKAGES = (
    "normalfan",
    "normalfan.battery",
    "normalfan.io",
    "normalfan.jobs",
    "normalfan.learners",
    "normalfan.replan",
    "normalfan.report",
    "normalfan.watch",
)

GROUPS = {
    "normalfan.problem": "Problems and losses",
    "normalfan.geometry": "Faces and cones",
    "normalfan.pricing": "Prices",
    "normalfan.ranges": "Ranges",
    "normalfan.exact": "Certificates",
    "normalfan.regret": "Learners' regret",
    "": "The rest",
}


def _table(module: str, names: list[str]) -> str:
    listed = "\n".join(f"   {name}" for name in names)
    return f".. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: generated\n\n{listed}\n"


def _tables(module: ModuleType) -> list[str]:
    groups: dict[str, list[str]] = {prefix: [] for prefix in GROUPS}
    for name in module.__all__:
        public = getattr(module, name)
        if not inspect.ismodule(public):
            home = getattr(public, "__module__", "")
            groups[next(prefix for prefix in GROUPS if home.startswith(prefix))].append(name)
    given = {GROUPS[prefix]: names for prefix, names in groups.items() if names}
    if len(given) == 1:
        return [_table(module.__name__, *given.values())]
    return [
        f"{title}\n{'-' * len(title)}\n\n{_table(module.__name__, names)}" for title, names in given.items()
    ]


def _page(module: ModuleType) -> str:
    about = (inspect.getdoc(module) or "").split("\n\n")[0]
    title = module.__name__
    return "\n".join([title, "=" * len(title), "", f"{about}\n", *_tables(module)])


def _write(_app: Sphinx, _config: Config) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)  # pages of names that are gone
    FOLDER.mkdir()
    for name in PACKAGES:
        (FOLDER / f"{name}.rst").write_text(_page(import_module(name)), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

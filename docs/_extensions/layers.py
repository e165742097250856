"""The architecture as a picture, drawn from the import contracts in pyproject.toml when the site is built.

    ```{layers} Data flows one way
    ```

draws one contract and lists its packages, each with the first sentence of its docstring. Without a name the
directive draws every contract about the inside of a package.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]

WIDTH, BOX, GAP, EDGE = 440, 34, 8, 1
MOST_ON_A_LINE = 3


@dataclass(frozen=True)
class Contract:
    """Layers of modules, the highest first; a module imports only from layers below its own."""

    name: str
    container: str  # the package whose modules they are, or nothing
    layers: tuple[tuple[str, ...], ...]


def contracts() -> list[Contract]:
    """The contracts of type "layers", as import-linter reads them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        tables = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [
        Contract(table["name"], *table.get("containers", [""]), tuple(map(_modules, table["layers"])))
        for table in tables
        if table["type"] == "layers"
    ]


def _modules(layer: str) -> tuple[str, ...]:
    """The modules of "(a) | b", where brackets mark one that may be missing."""
    return tuple(name.strip(" ()") for name in layer.split("|"))


def first_sentence(module: str) -> str:
    """What a module says of itself, up to the first full stop or colon."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ").replace("`", "")


def drawing(contract: Contract) -> str:
    """The contract as an SVG: a band for each layer, a box for each module."""
    lines, y = [], EDGE
    for layer in contract.layers:
        rows = [layer[i : i + MOST_ON_A_LINE] for i in range(0, len(layer), MOST_ON_A_LINE)]
        height = len(rows) * (BOX + GAP) + GAP
        lines.append(
            f'<rect class="band" x="{EDGE}" y="{y}" width="{WIDTH - 2 * EDGE}" height="{height}" rx="6"/>'
        )
        for i, row in enumerate(rows):
            width = (WIDTH - 2 * EDGE - GAP * (len(row) + 1)) / len(row)
            for j, module in enumerate(row):
                x, top = EDGE + GAP + j * (width + GAP), y + GAP + i * (BOX + GAP)
                lines.append(
                    f'<rect class="box" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BOX}" rx="4"/>'
                )
                name = escape(module.removeprefix("normalfan."))
                lines.append(f'<text x="{x + width / 2:.1f}" y="{top + BOX / 2 + 5:.1f}">{name}</text>')
        y += height + GAP
    listed = "; ".join(map(", ".join, contract.layers))
    about = f"{contract.name}: layers from the highest to the lowest, {listed}."
    size = f'viewBox="0 0 {WIDTH} {y - GAP + EDGE}"'
    return f'<svg class="layers" {size} role="img" aria-label="{escape(about)}">{"".join(lines)}</svg>'


class Layers(Directive):
    """See the module's docstring."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        known = contracts()
        if not self.arguments:
            return [_picture(*(contract for contract in known if contract.container))]
        found = [contract for contract in known if contract.name == self.arguments[0]]
        if not found:
            raise self.error(f"no contract is called {self.arguments[0]!r}: {[one.name for one in known]}")
        return [_picture(*found), _descriptions(found[0])]


def _picture(*several: Contract) -> nodes.raw:
    figures = (
        f"<figure><figcaption>{escape(one.container or one.name)}</figcaption>{drawing(one)}</figure>"
        for one in several
    )
    return nodes.raw("", f'<div class="layers">{"".join(figures)}</div>', format="html")


def _descriptions(contract: Contract) -> nodes.definition_list:
    modules = [module for layer in contract.layers for module in layer]
    return nodes.definition_list(
        "",
        *(
            nodes.definition_list_item(
                "",
                nodes.term("", "", nodes.literal("", module)),
                nodes.definition("", nodes.paragraph("", first_sentence(module))),
            )
            for module in modules
        ),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

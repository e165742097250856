"""What the documents show is what the package does; the tutorials are run by `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from normalfan.cli.app import app
from normalfan_paper.command import app as companion

ROOT = Path(__file__).parents[1]
PAGES = [
    page
    for folder in (".", "benchmarks", "docs", "docs/*")
    for page in sorted(ROOT.glob(f"{folder}/*.md"))
    if "_build" not in page.parts
]
WITH_EXAMPLES = [
    "README.md",
    "docs/how-to/files.md",
    "docs/how-to/learners.md",
    "docs/how-to/moving.md",
    "docs/how-to/questions.md",
    "docs/how-to/ranging.md",
    "docs/how-to/report.md",
    "docs/contributing/add-a-command.md",
    "docs/contributing/add-a-learner.md",
]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_run_and_print_what_they_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    for example in examples:
        exec(compile(example, page, "exec"), namespace)  # noqa: S102
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", "\n".join(examples), flags=re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert examples
    for line, promise in zip(printed, promised, strict=True):
        assert promise.startswith(line)


def test_relative_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_and_their_options_exist() -> None:
    commands = typer.main.get_command(app).commands | {"reproduce": typer.main.get_command(companion)}  # type: ignore[attr-defined]
    for page in PAGES:
        joined = page.read_text().replace("\\\n", " ")
        for name, rest in re.findall(
            r"^(?: {4})?normalfan +([a-z]+)\b([^\n#|]*)", joined, flags=re.MULTILINE
        ):
            assert name in commands, f"{page.name} calls normalfan {name}"
            known = {option for parameter in commands[name].params for option in parameter.opts}
            asked = set(re.findall(r"(?<!\S)--[a-z-]+", rest))
            assert asked <= known | {"--help"}, f"{page.name} calls normalfan {name} with {asked - known}"

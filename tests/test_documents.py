"""What the documents show is what the package does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_readme_example_prints_what_it_says(capsys) -> None:  # type: ignore[no-untyped-def]
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    promised = re.findall(r"print\(.*?\)\s*# (\[.*?\])", example)
    assert capsys.readouterr().out.splitlines() == promised


def test_relative_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_examples_of_the_learners_page_run(capsys) -> None:  # type: ignore[no-untyped-def]
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/learners.md").read_text(), flags=re.DOTALL)
    namespace: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "learners.md", "exec"), namespace)  # noqa: S102
    total, parts = map(float, capsys.readouterr().out.split())
    assert abs(total - parts) < 1e-9
    assert namespace["paid"].shape == (4, 200)  # type: ignore[attr-defined]


def test_the_example_of_the_report_page_runs(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/report.md").read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "report.md", "exec"), {})  # noqa: S102
    assert (tmp_path / "battery.html").read_text().startswith("<!doctype html>")

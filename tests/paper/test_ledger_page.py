"""The ledger's pages keep their shape, whatever a row says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from normalfan_paper.experiment import LedgerRow, Verdict
from normalfan_paper.ledger import Ledger, Section
from normalfan_paper.ledger_page import to_html, to_markdown


def doctored(*verdicts: Verdict) -> Ledger:
    rows = tuple(
        LedgerRow(
            f"x/{i}", "<b>a</b> | b", "1 * 2_3\nnext", verdict, "why", {"inf": float("inf"), "one": 1.0}
        )
        for i, verdict in enumerate(verdicts)
    )
    section = Section("x", "X & Y", rows, (), (), 3, 1, 7200.0, 90.0, ("cell: <oops> | \n broken",))
    return Ledger("normalfan reproduce x", 4, True, "one process", {"Python": "3"}, (section,))


def test_pages_hold_their_shape_whatever_a_row_says() -> None:
    ledger = doctored(*Verdict, Verdict.FALSE)
    page = to_markdown(ledger)
    rows = [line for line in page.splitlines() if line.startswith("| x/")]
    assert len(rows) == len(Verdict) + 1
    assert all(line.replace("\\|", "").count("|") == 5 for line in rows)
    assert "| ✗ false as written | 2 |" in page
    assert "2.0 h" in page
    assert "1.5 min" in page
    html = to_html(ledger, Path())
    assert "<oops>" not in html
    assert "<b>a</b>" not in html
    assert "X &amp; Y" in html
    assert html.count("<table>") == html.count("</table>") == 3


def test_rows_beyond_the_paper_stand_apart_and_are_not_counted() -> None:
    ledger = doctored(Verdict.HOLDS, Verdict.FALSE)
    (section,) = ledger.sections
    rows = section.rows[0], replace(section.rows[1], beyond=True, seeds="32; alternatives 4")
    ledger = replace(ledger, sections=(replace(section, rows=rows),))
    assert ledger.counts()[Verdict.FALSE] == 0
    page, web = to_markdown(ledger), to_html(ledger, Path())
    assert page.index("| x/0") < page.index("### Beyond the paper: x") < page.index("| x/1")
    assert web.index("<td>x/0") < web.index("<h3>Beyond the paper</h3>") < web.index("<td>x/1")
    assert "| 32; alternatives 4 |" in page


def test_the_document_is_strict_json() -> None:
    document = doctored(Verdict.HOLDS).to_document()
    text = json.dumps(document, allow_nan=False)
    assert json.loads(text)["sections"][0]["rows"][0]["numbers"] == {"inf": None, "one": 1.0}
    assert document["counts"]["holds"] == 1

"""The table of records: rows, sorting, columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.viewing import selections

from .conftest import Open, rows_shown, until, wait_for_count

pytestmark = pytest.mark.slow


def test_a_table_of_many_records_is_sorted_and_scrolls(tmp_path: Path, open_page: Open) -> None:
    count = 200_000
    order = np.random.default_rng(1).permutation(count)
    with rs.ShardWriter(tmp_path / "many.tfrecord") as writer:
        names = [f"item {number:06}" for number in order.tolist()]
        writer.write_columns({"number": order, "label": order % 3, "text": names})
    page = open_page(tmp_path / "many.tfrecord")
    wait_for_count(page, "200,000 records")
    page.keyboard.press("t")
    page.wait_for_selector("#row-0:not(.loading)")
    assert len(rows_shown(page)) < 100
    assert rows_shown(page)[0] == ["0", str(order[0] % 3), str(order[0]), names[0]]
    headers = page.locator("#table [role=columnheader]")
    assert headers.all_text_contents() == ["record", "label", "number", "text"]
    headers.nth(2).locator("button").click()
    until(page, "document.querySelector('#row-0')?.children[2]?.textContent === '0'")
    wait_for_count(page, "200,000 records")
    assert headers.nth(2).get_attribute("aria-sort") == "ascending"
    headers.nth(2).locator("button").click()
    until(page, "document.querySelector('#row-0')?.children[2]?.textContent === '199999'")
    page.focus("#table")
    page.keyboard.press("End")
    page.wait_for_selector("#row-199999:not(.loading)")
    last = page.locator("#row-199999 .cell").all_text_contents()
    assert (last[0], last[2]) == (f"{int(np.argmin(order)):,}", "0")
    page.keyboard.press("x")
    assert page.get_attribute("#row-199999", "aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_selector("#record .features")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "table"
    page.click("#columns")
    page.uncheck("#dialog label:has-text('number')")
    page.click("#dialog button:has-text('Close')")
    until(page, "document.querySelectorAll('#table .header .cell').length === 3")
    page.reload()
    page.wait_for_selector("#row-0:not(.loading)")
    assert headers.all_text_contents() == ["record", "label", "text"]
    page.keyboard.press("t")
    page.wait_for_selector(".tile:not(.loading)")


def test_what_is_sorted_is_said_if_it_is_not_everything(
    tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "_MAX_SORTED", 1000)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(40_000):  # more than a block
            writer.write(rs.encode_example({"n": 40_000 - number, "pad": bytes(100)}))
    page = open_page(tmp_path / "a.tfrecord")
    page.keyboard.press("t")
    page.locator("#table [role=columnheader] button").first.click()
    until(page, "document.getElementById('notice').textContent.includes('are sorted')")
    page.wait_for_selector("#row-0:not(.loading)")
    total = int(re.sub(r"\D", "", re.search(r"first ([\d,]+)", page.text_content("#notice"))[1]))
    assert 1000 < total < 40_000
    assert rows_shown(page)[0][0] == f"{total - 1:,}"
    assert page.text_content("#count") == f"sorted: the first {total:,} of 40,000"

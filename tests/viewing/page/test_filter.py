"""The filter box and the facets that write into it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..conftest import write
from .conftest import NAMES, Open, condition, rows_shown, until, wait_for_count

pytestmark = pytest.mark.slow


def test_the_filter_completes_applies_and_reports_errors(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    page.keyboard.press("/")
    page.keyboard.type("image/class/l")
    page.wait_for_selector("#completions li")
    page.keyboard.press("ArrowDown")
    until(
        page,
        "document.getElementById('where').getAttribute('aria-activedescendant') === 'completion-0'",
    )
    page.keyboard.press("Enter")
    assert condition(page).strip() == "image/class/label"
    page.keyboard.type(" == 2" if not condition(page).endswith(" ") else "== 2")
    page.keyboard.press("Enter")
    wait_for_count(page, "30 of 120")
    assert {page.text_content(f"#tile-{place} .label") for place in (0, 1, 2)} == {"rose"}
    page.fill("#where", "image/class/label === 2")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('filter-error').textContent.length > 10")
    assert page.get_attribute("#where", "aria-invalid") == "true"
    page.click("#clear")
    wait_for_count(page, "120 records")
    assert page.text_content("#filter-error") == ""
    page.fill("#where", "score > 1000")
    page.keyboard.press("Enter")
    wait_for_count(page, "0 of 120")
    assert page.get_attribute("#gallery", "data-empty") == "No record matches."


def test_the_filter_says_how_many_records_it_could_read(tmp_path: Path, open_page: Open) -> None:
    path = write(tmp_path / "a.tfrecord", [{"id": number} for number in range(100)])
    page = open_page(path)
    wait_for_count(page, "100 records")
    path.write_bytes(path.read_bytes()[: 31 * 50])
    page.fill("#where", "id >= 10")
    page.press("#where", "Enter")
    wait_for_count(page, "40 in the readable 50 of 100")


def test_facets_write_the_filter(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    facet = page.locator(
        "#facets details", has=page.locator("summary", has_text=re.compile("^image/class/text$"))
    )
    facet.locator(".value").first.wait_for()
    values = facet.locator(".value").all_text_contents()
    assert sorted(values) == sorted(f"{name}30" for name in NAMES)
    facet.locator(".value", has_text="rose").click()
    wait_for_count(page, "30 of 120")
    assert condition(page) == 'image/class/text == "rose"'
    facet.locator(".value", has_text="tulip").click()
    wait_for_count(page, "60 of 120")
    assert condition(page) == 'image/class/text in ("rose", "tulip")'
    histogram = page.locator(
        "#facets details", has=page.locator("summary", has_text=re.compile("^score$"))
    ).locator(".histogram")
    page.wait_for_selector("#facets .histogram .whole", state="attached")
    page.wait_for_timeout(300)
    histogram.scroll_into_view_if_needed()
    box = histogram.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + 20, steps=4)
    page.mouse.up()
    found = re.fullmatch(
        r'image/class/text in \("rose", "tulip"\) and (\S+) <= score < (\S+)', condition(page)
    )
    assert found
    low, high = map(float, found.groups())
    assert low == 0
    assert 20 < high < 26
    expected = sum(number % 50 < high and number % 4 in (1, 2) for number in range(120))
    wait_for_count(page, f"{expected} of 120")
    page.fill("[aria-label='score from']", "5")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('where').value.includes('5 <= score <=')")
    facet.locator("button", has_text="Remove the condition").click()
    assert re.fullmatch(r"5 <= score <= \S+", condition(page))
    page.go_back()
    assert "rose" in condition(page)


def test_a_click_on_a_facet_counts_while_its_values_change(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    facet = page.locator(
        "#facets details", has=page.locator("summary", has_text=re.compile("^image/class/text$"))
    )
    value = facet.locator(".value", has_text="tulip")
    value.hover()
    page.mouse.down()
    page.evaluate("location.hash = 'where=score+%3E+10'")
    wait_for_count(page, "87 of 120")
    page.wait_for_timeout(300)
    page.mouse.up()
    wait_for_count(page, "21 of 120")
    assert condition(page) == 'score > 10 and image/class/text == "tulip"'


def test_classes_have_names_in_the_table_and_in_the_filter(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    facet = page.locator("#facets details", has=page.locator("summary", has_text="class/label"))
    facet.first.locator(".value", has_text="rose").click()
    wait_for_count(page, "30 of 120")
    assert condition(page) == "image/class/label == 2"
    assert page.text_content("#filter-names") == "image/class/label: rose"
    page.keyboard.press("t")
    page.wait_for_selector("#row-0:not(.loading)")
    assert "2 rose" in rows_shown(page)[0]


@pytest.mark.parametrize("layout", ["", "table"])
def test_a_wrong_filter_keeps_what_is_shown(meadows: Path, open_page: Open, layout: str) -> None:
    page = open_page(meadows)
    first = "#row-0" if layout else "#tile-0"
    if layout:
        page.keyboard.press("t")
    page.wait_for_selector(f"{first}:not(.loading)")
    for text, named in [("scorre > 3", "score"), ('score == "a"', "score"), ("score >", ">")]:
        page.fill("#where", text)
        page.press("#where", "Enter")
        until(page, "document.getElementById('filter-error').textContent.length > 10")
        assert named in str(page.text_content("#filter-error"))
        assert page.locator(f"{first}:not(.loading)").count() == 1
        wait_for_count(page, "120 records")
    page.reload()  # with the wrong filter in the address
    page.wait_for_selector(f"{first}:not(.loading)")
    wait_for_count(page, "120 records")
    assert page.get_attribute("#where", "aria-invalid") == "true"
    page.click("#clear")
    until(page, "document.getElementById('filter-error').textContent === ''")

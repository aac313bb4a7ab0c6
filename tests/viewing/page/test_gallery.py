"""Thumbnails: what they show, any number of them, sizes, sorting and groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from .conftest import Open, screenshot, shown, until, wait_for_count

pytestmark = pytest.mark.slow


def test_the_gallery_shows_images_with_boxes_masks_and_names(
    meadows: Path, open_page: Open
) -> None:
    page = open_page(meadows)
    wait_for_count(page, "120 records")
    until(page, "document.querySelectorAll('.tile.loading').length === 0")
    until(page, "[...document.querySelectorAll('canvas.mask')].every(c => c.width !== 300)")
    first = page.locator("#tile-0")
    assert first.locator(".name").text_content() == "meadow 000.jpg"
    assert first.locator(".label").text_content() == "daisy"
    assert first.locator("rect.box").count() == 2
    assert first.locator("rect.box title").all_text_contents() == ["daisy", "rose"]
    # the small object is not hidden by a name
    tags = [tag.bounding_box() for tag in first.locator("rect.tag").all()]
    small = min(
        (box.bounding_box() for box in first.locator("rect.box").all()),
        key=lambda box: box["width"],
    )
    assert tags
    for tag in tags:
        assert (
            tag["x"] >= small["x"] + small["width"] - 3
            or tag["x"] + tag["width"] <= small["x"] + 3
            or (
                tag["y"] >= small["y"] + small["height"] - 3
                or tag["y"] + tag["height"] <= small["y"] + 3
            )
        )
    # no thumbnail is of one colour, and the mask has the colour of its class
    for number in shown(page)[:12]:
        pixels = screenshot(page.locator(f"#tile-{number} .stage"))
        assert pixels.std() > 10, number
    palette = page.evaluate("async () => (await (await fetch('api/dataset')).json()).palette")
    mask = page.evaluate(
        "() => { const c = document.querySelector('#tile-0 canvas.mask'); "
        "return [...c.getContext('2d').getImageData(c.width * 0.3, c.height / 2, 1, 1).data]; }"
    )
    assert np.abs(np.subtract(mask[:3], palette[1])).max() <= 2
    assert mask[3] == 128


def test_sorting_and_groups(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    assert page.locator("#direction").is_hidden()
    page.select_option("#sort", "score")
    page.click("#direction")
    until(page, "document.querySelector('#tile-0 .name')?.textContent === 'meadow 049.jpg'")
    page.select_option("#sort", "image/class/label")
    page.check("#group")
    page.wait_for_selector(".head")
    assert page.locator(".head").first.text_content() == "1 30"
    page.focus("#gallery")
    page.keyboard.press("End")
    page.wait_for_selector(".head:has-text('4 30')")
    page.wait_for_selector("#tile-119:not(.loading)")
    assert page.text_content("#tile-119 .label") == "fern"
    # the first of a group begins a row
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    page.wait_for_selector("#tile-30")
    assert page.evaluate("document.getElementById('tile-30').style.left") == "8px"


def test_tiles_have_no_marks_on_a_phone(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows, 390, has_touch=True, is_mobile=True)
    shown = "getComputedStyle(document.querySelector('#tile-0 .mark')).opacity"
    assert page.evaluate(shown) == "0"
    page.focus("#gallery")
    page.keyboard.press("x")
    assert page.evaluate(shown) == "1"
    page.keyboard.press("t")
    page.wait_for_selector("#row-0:not(.loading)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('#table').scrollWidth") > 390


def test_any_number_of_records_scrolls(tmp_path: Path, open_page: Open) -> None:
    count = 500_000
    with rs.ShardWriter(tmp_path / "many.tfrecord") as writer:
        writer.write_columns({"number": np.arange(count), "kind": np.arange(count) % 5})
    page = open_page(tmp_path / "many.tfrecord")
    wait_for_count(page, "500,000 records")
    # higher than browsers draw, so the bar stands for more pixels than it has
    assert page.evaluate("document.getElementById('gallery').scrollHeight") <= 8_000_000
    assert len(shown(page)) < 100
    before = shown(page)[-1]
    page.mouse.move(700, 500)
    page.mouse.wheel(0, 1500)
    page.wait_for_timeout(400)
    after = shown(page)
    assert before < after[-1] < before + 100  # the wheel moves by pixels
    page.wait_for_selector(f"#tile-{after[20]}:not(.loading)")
    assert f"number: {after[20]}" in str(page.text_content(f"#tile-{after[20]} .stage"))
    page.evaluate("document.getElementById('gallery').scrollTop = 4_000_000")
    page.wait_for_timeout(400)
    middle = shown(page)
    assert 240_000 < middle[0] < 260_000
    page.wait_for_selector(f"#tile-{middle[20]}:not(.loading)")
    page.focus("#gallery")
    page.keyboard.press("End")
    page.wait_for_selector("#tile-499999:not(.loading)")
    assert page.locator("#tile-499999").bounding_box()["y"] < 800
    assert len(shown(page)) < 100


def test_thumbnails_have_any_size(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    widths = []
    for size in (80, 320):
        page.locator("#size").fill(str(size))
        page.wait_for_selector("#tile-0:not(.loading)")
        widths.append(page.locator("#tile-0").bounding_box()["width"])
    assert 80 <= widths[0] < 110
    assert 320 <= widths[1] < 480
    until(page, "document.querySelector('#tile-0 img').naturalHeight > 200")


def test_a_record_opens_before_its_tile_is_there(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    held: list[Any] = []
    is_held = True

    def answer(route: Any) -> None:
        held.append(route) if is_held else route.continue_()

    page.route("**/tiles?*", answer)
    page.reload()
    page.click("#tile-3.loading")
    page.click("#tile-1.loading", modifiers=["Control"])
    page.click("#tile-2.loading")
    until(page, "document.querySelector('#tile-2').classList.contains('current')")
    page.wait_for_timeout(100)
    assert len(held) >= 4
    assert page.locator("#record").is_hidden()
    is_held = False
    for route in held:
        route.continue_()
    page.wait_for_selector("#record rect.box")
    assert page.get_attribute("#record", "aria-label") == "Record 2"
    assert page.text_content("#save") == "Save (1)"
    assert page.get_attribute("#tile-1", "aria-selected") == "true"

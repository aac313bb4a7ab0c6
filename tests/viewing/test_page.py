"""The page of the viewer in a real browser: clicks, keys, what is drawn, accessibility."""

from __future__ import annotations

import io
import math
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import recordsmith as rs
from recordsmith.dataset import KeypointClass, read_findings
from recordsmith.viewing import redirecting_file, reports, selections

from ..images import encode, smooth
from ..keypoints import set_keypoint_classes
from .conftest import Client, write

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow

NAMES = ("daisy", "rose", "tulip", "fern")
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
Open = Callable[..., Any]


def meadow(number: int) -> dict[str, Any]:
    """An example with two objects, one of them small, and a mask of both."""
    width, height = (320, 240) if number % 2 else (240, 320)
    image, mask = smooth(width, height), Image.new("L", (width, height))
    first, second = number % 4 + 1, (number + 1) % 4 + 1
    boxes = [(0.25, 0.125, 0.75, 0.625), (0.8, 0.8, 0.84, 0.84)]
    for (ymin, xmin, ymax, xmax), label in zip(boxes, (first, second), strict=True):
        area = (xmin * width, ymin * height, xmax * width, ymax * height)
        ImageDraw.Draw(mask).rectangle(area, label)
    return {
        "image/encoded": encode(image, "JPEG", quality=92),
        "image/filename": f"meadow {number:03}.jpg",
        "image/class/label": first,
        "image/class/text": NAMES[first - 1],
        "image/height": height,
        "score": float(number % 50),
        "image/segmentation/class/encoded": encode(mask, "PNG"),
        **{
            f"image/object/bbox/{side}": list(values)
            for side, values in zip(
                ("ymin", "xmin", "ymax", "xmax"), zip(*boxes, strict=True), strict=True
            )
        },
        "image/object/class/label": [first, second],
        "image/object/class/text": [NAMES[first - 1], NAMES[second - 1]],
    }


@pytest.fixture(scope="module")
def meadows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "meadow.tfrecord"
    return write(path, [meadow(number) for number in range(120)])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if _CHROMIUM is None:
        pytest.skip("needs chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, open_viewer: Callable[..., Client]) -> Iterator[Open]:
    """Open the page of a dataset; the test fails if it writes errors to the console."""
    contexts: list[Any] = []
    errors: list[str] = []

    def run(path: Any, width: int = 1280, fragment: str = "", **options: Any) -> Any:
        client = open_viewer(path)
        size = {"width": width, "height": 800}
        grants = ["clipboard-read", "clipboard-write"]
        context = browser.new_context(viewport=size, permissions=grants, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda line: errors.extend([line.text] * (line.type == "error")))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto(client.viewer.url)
        page.wait_for_url(f"{client.address}**")
        page.wait_for_selector("#gallery", state="attached")
        if fragment:
            page.wait_for_selector(".tile")
            page.goto(f"{client.address}#{fragment}")
            page.reload()
        if "record=" not in fragment and "view=" not in fragment:
            page.wait_for_selector(".tile:not(.loading)")
        return page

    yield run
    for context in contexts:
        context.close()
    assert not errors


def shown(page: Any) -> list[int]:
    """The places of the tiles on the page."""
    places = page.eval_on_selector_all(".tile", "nodes => nodes.map(n => +n.dataset.place)")
    return sorted(places)


def wait_for_count(page: Any, text: str) -> None:
    sync_api.expect(page.locator("#count")).to_have_text(text, timeout=60_000)


def until(page: Any, expression: str) -> None:
    """Wait until an expression is true; the policy of the page forbids `wait_for_function`."""
    for _ in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def condition(page: Any) -> str:
    return str(page.input_value("#where"))


def screenshot(page: Any, **options: Any) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(page.screenshot(**options))).convert("RGB"))


def test_a_private_file_leads_to_an_address_without_the_token(
    meadows: Path, browser: Any, open_viewer: Callable[..., Client]
) -> None:
    """Although browsers send no strict cookie with a redirect that a file began."""
    client = open_viewer(meadows)
    context = browser.new_context()
    page = context.new_page()
    with redirecting_file(client.viewer.url) as address:
        page.goto(address)
        page.wait_for_selector(".tile:not(.loading)")
    assert page.url.partition("#")[0] == client.address
    port = int(client.host.rpartition(":")[2])
    client.viewer.close()
    again = open_viewer(meadows, port=port)
    page.goto(again.viewer.url)  # the new token
    page.wait_for_selector(".tile:not(.loading)")
    bookmark = f"{client.address}#where=score+%3C+3"
    page.goto(bookmark)
    wait_for_count(page, "9 of 120")
    context.close()


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


def test_overlays_are_switched_as_a_whole_and_by_class(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    page.wait_for_selector("#tile-0 rect.box")
    until(page, f"document.querySelectorAll('.classes .class').length === {len(NAMES)}")
    assert page.locator(".classes .class").all_text_contents() == list(NAMES)
    page.click(".classes .class:has-text('daisy')")
    until(page, "document.querySelectorAll('#tile-0 rect.box').length === 1")
    alpha = (
        "() => { const c = document.querySelector('#tile-0 canvas.mask'); return c.hidden ? -1 : "
        "c.getContext('2d').getImageData(c.width * 0.3, c.height * 0.5, 1, 1).data[3]; }"
    )
    assert page.evaluate(alpha) == 0
    page.click("text=Show all")
    assert page.evaluate(alpha) == 128
    page.locator("input[type=range]").nth(1).fill("1")
    assert page.evaluate(alpha) == 255
    page.uncheck("text=Labels")
    assert page.locator("rect.tag").count() == 0
    page.uncheck("text=Boxes")
    assert page.locator("rect.box").count() == 0
    page.keyboard.press("m")
    assert page.evaluate(alpha) == -1
    page.click("text=Hide all")
    page.reload()  # switches are kept, hidden classes are not
    page.wait_for_selector(".tile:not(.loading)")
    assert not page.is_checked("text=Boxes")
    assert page.locator(".class[aria-pressed=false]").count() == 0


def test_keys_choose_open_mark_and_close(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    current = "document.getElementById('gallery').getAttribute('aria-activedescendant')"
    columns = page.evaluate(
        "() => new Set([...document.querySelectorAll('.tile')].map(n => n.style.left)).size"
    )
    for key, place in [
        ("ArrowRight", 1),
        ("ArrowDown", 1 + columns),
        ("ArrowLeft", columns),
        ("ArrowUp", 0),
        ("ArrowUp", 0),
    ]:
        page.keyboard.press(key)
        assert page.evaluate(current) == f"tile-{place}"
    page.keyboard.press("End")
    assert page.evaluate(current) == "tile-119"
    page.wait_for_selector("#tile-119:not(.loading)")
    page.keyboard.press("x")
    assert page.locator("#tile-119").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_selector("#record h2:has-text('meadow 119.jpg')")
    assert "record=119" in page.url
    page.keyboard.press("ArrowRight")  # the last one
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#record h2:has-text('meadow 118.jpg')")
    page.keyboard.press("x")
    assert page.text_content("#record .marker") == "✓ Marked"
    page.keyboard.press("Escape")
    assert page.locator("#record").is_hidden()
    assert page.evaluate(current) == "tile-118"
    assert page.evaluate("document.activeElement.id") == "gallery"
    page.keyboard.press("?")
    assert "previous and next record" in str(page.text_content("#dialog"))
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "where"
    page.keyboard.press("Escape")
    assert page.text_content("#save") == "Save (2)"
    page.click("#save")
    assert (
        page.locator("#dialog code").first.text_content()
        == f"recordsmith view {meadows} --at 118,119"
    )
    page.click("#dialog button:has-text('Copy') >> nth=0")
    page.wait_for_selector("#dialog button:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()").endswith("--at 118,119")
    with page.expect_download() as download:
        page.click("text=Download marked.jsonl")
    assert download.value.suggested_filename == "marked.jsonl"
    places = [*read_findings(str(download.value.path()))]
    assert [(place.check, place.position) for place in places] == [("marked", 118), ("marked", 119)]
    new = meadows.parent / "without marked"
    rs.reshard(meadows, new, without=f"@{download.value.path()}", overwrite=True)
    assert len(rs.open(new)) == 118
    page.click("#dialog button:has-text('Unmark all')")
    assert page.text_content("#save") == "Save"


def test_links_open_the_same_view_and_record(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows, fragment="where=score+%3C+3&sort=-score&record=52&place=1")
    page.wait_for_selector("#record h2:has-text('meadow 052.jpg')")
    assert condition(page) == "score < 3"
    wait_for_count(page, "9 of 120")
    page.keyboard.press("ArrowLeft")
    until(page, "!document.querySelector('#record h2').textContent.includes('052')")
    assert "place=0" in page.url
    page.go_back()
    page.wait_for_selector("#record h2:has-text('meadow 052.jpg')")
    page.click("#record button:has-text('Link')")
    page.wait_for_selector("#record button:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


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


def test_keypoints_and_rotated_boxes_are_drawn(tmp_path: Path, open_page: Open) -> None:
    """In thumbnails and records: a disc, a ring, a line; switched on and off by p."""
    points = {"x": [0.25, 0.5, 0] + [0.0] * 3, "y": [0.5, 0.5, 0] + [0.0] * 3}
    points["visibility"] = [2, 1, 0] + [0] * 3
    corners = {"x": [0.5, 0.75, 0.5, 0.25] * 2, "y": [0.25, 0.5, 0.75, 0.5] * 2}
    objects = {f"image/object/corner/{axis}": values for axis, values in corners.items()}
    objects |= {f"image/object/keypoint/{axis}": values for axis, values in points.items()}
    write(tmp_path / "a.tfrecord", [meadow(0) | objects])
    rs.reshard(tmp_path / "a.tfrecord", tmp_path / "out")
    names = ("<b>nose", "eye", "ear")
    set_keypoint_classes(tmp_path / "out", {1: KeypointClass(names, ((0, 1), (1, 2)))})
    page = open_page(tmp_path / "out")
    page.wait_for_selector("#tile-0 .point")
    page.locator("#tile-0").click()
    page.keyboard.press("Enter")
    for root in (page.locator("#tile-0"), page.locator("#record")):
        root.locator(".point").first.wait_for()
        assert root.locator("polygon.box").count() == 2
        assert root.locator(".point title").all_text_contents() == ["<b>nose", "eye"]
        disc, ring = root.locator(".point").all()
        line = root.locator("line.bone").bounding_box()
        assert root.locator("line.bone").get_attribute("stroke-dasharray")
        assert disc.get_attribute("fill") == ring.get_attribute("stroke")
        centres = [
            (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            for box in (disc.bounding_box(), ring.bounding_box())
        ]
        assert centres[0] == pytest.approx((line["x"], line["y"]), abs=2)
        assert centres[1] == pytest.approx((line["x"] + line["width"], line["y"]), abs=2)
    page.keyboard.press("p")
    until(page, "document.querySelectorAll('.point').length === 0")
    assert page.locator("#record polygon.box").count() == 2
    page.keyboard.press("p")
    page.keyboard.press("b")
    until(page, "document.querySelectorAll('#record .point').length === 2")
    assert page.locator("#record polygon.box").count() == 0


def test_boxes_and_masks_fit_images_with_an_orientation(tmp_path: Path, open_page: Open) -> None:
    """In the record page, as in the gallery: a browser would turn the image alone."""
    image, mask = Image.new("RGB", (320, 200), (90, 140, 190)), Image.new("L", (320, 200))
    area = (32, 20, 127, 79)
    ImageDraw.Draw(image).rectangle(area, (220, 40, 40))
    ImageDraw.Draw(mask).rectangle(area, 1)
    examples = []
    for orientation in (3, 6):
        exif = Image.Exif()
        exif[0x112] = orientation
        example = {"image/encoded": encode(image, "JPEG", exif=exif, quality=95)}
        example["image/segmentation/class/encoded"] = encode(mask, "PNG")
        for side, value in zip(("ymin", "xmin", "ymax", "xmax"), (0.1, 0.1, 0.4, 0.4), strict=True):
            example[f"image/object/bbox/{side}"] = [value]
        examples.append({**example, "image/object/class/label": [1]})
    path = write(tmp_path / "a.tfrecord", examples)
    for position in (0, 1):
        page = open_page(path, fragment=f"record={position}")
        page.wait_for_selector("#record rect.box")
        until(page, "document.querySelector('#record canvas.mask').width === 320")
        whole = page.locator("#record .left img").bounding_box()
        assert math.isclose(whole["width"] / whole["height"], 1.6, rel_tol=0.01)
        for name in ("Boxes", "Masks"):
            page.click(f"#record .zoom button:has-text('{name}')")
        assert page.locator("#record rect.box").count() == 0
        pixels = screenshot(page.locator("#record .viewport")).astype(int)
        rows, columns = np.nonzero(np.abs(pixels - (220, 40, 40)).max(axis=2) < 25)
        stage = page.locator("#record .viewport").bounding_box()
        left, top = whole["x"] - stage["x"], whole["y"] - stage["y"]
        found = [(rows.min() - top) / whole["height"], (columns.min() - left) / whole["width"]]
        found += [(rows.max() - top) / whole["height"], (columns.max() - left) / whole["width"]]
        assert np.allclose(found, [0.1, 0.1, 0.4, 0.4], atol=0.01)
        assert f"orientation {examples and (3, 6)[position]}" in page.text_content(".facts")
        page.keyboard.press("b")
        page.keyboard.press("m")
        box = page.locator("#record rect.box").bounding_box()
        assert math.isclose((box["x"] - whole["x"]) / whole["width"], 0.1, abs_tol=0.01)


def test_the_overlays_of_a_record_are_switched(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows, fragment="record=1&place=1")
    page.wait_for_selector("#record rect.tag")
    buttons = page.locator("#record [aria-label=Overlays] button")
    assert buttons.all_text_contents() == ["Boxes", "Labels", "Masks"]
    for number, (key, seen) in enumerate(
        [("b", "rect.box"), ("l", "rect.tag"), ("m", "canvas.mask:visible")]
    ):
        before = page.locator(f"#record {seen}").count()
        buttons.nth(number).click()
        assert buttons.nth(number).get_attribute("aria-pressed") == "false"
        assert page.locator(f"#record {seen}").count() == 0
        page.keyboard.press(key)
        assert buttons.nth(number).get_attribute("aria-pressed") == "true"
        assert page.locator(f"#record {seen}").count() == before


def rows_shown(page: Any) -> list[list[str]]:
    """The texts of the rows of the table, from the first one."""
    return list(
        page.eval_on_selector_all(
            "#table .row[data-place]",
            "rows => rows.sort((a, b) => a.dataset.place - b.dataset.place)"
            ".map(row => [...row.children].map(cell => cell.textContent))",
        )
    )


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


def test_what_was_found_while_opening_is_a_page(
    tmp_path: Path, meadows: Path, open_page: Open
) -> None:
    data = meadows.read_bytes()
    (tmp_path / "cut.tfrecord").write_bytes(data[: len(data) // 2 - 5])
    page = open_page(tmp_path / "cut.tfrecord")
    damage = page.locator("#views button[data-view=verify]")
    until(page, "/[1-9]/.test(document.querySelector('[data-view=verify]').textContent)")
    assert page.text_content("#notice") == ""
    damage.click()
    frame = page.frame_locator("#panel iframe")
    frame.locator("code", has_text="truncated").first.wait_for()


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


def test_the_record_view_zooms_with_its_boxes_and_mask(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    page.click("#tile-1")
    page.wait_for_selector("#record rect.box")
    until(page, "document.querySelector('#record .zoom output').textContent !== ''")
    until(page, "document.querySelector('#record canvas.mask').width === 320")

    def shares() -> list[float]:
        """Where the first box and the mask are, relative to the image."""
        image = page.locator("#record .left img").bounding_box()
        box = page.locator("#record rect.box").first.bounding_box()
        mask = page.locator("#record canvas.mask").bounding_box()
        return [
            (box["x"] - image["x"]) / image["width"],
            (box["y"] - image["y"]) / image["height"],
            (mask["x"] - image["x"]) / image["width"],
            mask["width"] / image["width"],
        ]

    fitted = page.locator("#record .left img").bounding_box()
    first = fitted["width"]
    assert np.allclose(shares(), [0.125, 0.25, 0, 1], atol=0.01)
    stage = page.locator("#record .viewport").bounding_box()
    page.mouse.move(stage["x"] + 300, stage["y"] + 200)
    page.mouse.wheel(0, -600)
    page.wait_for_timeout(100)
    zoomed = page.locator("#record .left img").bounding_box()
    assert zoomed["width"] > 2 * first
    for side, extent, place in (
        ("x", "width", 300),
        ("y", "height", 200),
    ):  # what is under the pointer
        before = (stage[side] + place - fitted[side]) / fitted[extent]
        after = (stage[side] + place - zoomed[side]) / zoomed[extent]
        assert math.isclose(before, after, abs_tol=0.01)
    assert np.allclose(shares(), [0.125, 0.25, 0, 1], atol=0.01)
    page.mouse.down()
    page.mouse.move(stage["x"] + 340, stage["y"] + 210, steps=3)
    page.mouse.up()
    moved = page.locator("#record .left img").bounding_box()
    assert math.isclose(moved["x"] - zoomed["x"], 40, abs_tol=1)
    assert math.isclose(moved["y"] - zoomed["y"], 10, abs_tol=1)
    page.keyboard.press("1")
    assert math.isclose(page.locator("#record .left img").bounding_box()["width"], 320, abs_tol=1)
    page.keyboard.press("+")
    assert page.text_content("#record .zoom output") == "125 %"
    page.keyboard.press("0")
    assert math.isclose(page.locator("#record .left img").bounding_box()["width"], first, abs_tol=1)
    page.click("summary:has-text('Histogram of the pixels')")
    sync_api.expect(page.locator("#record .histogram path")).to_have_count(3)
    page.click("summary:has-text('Bytes')")
    page.wait_for_selector(".hex")
    until(page, "/^00000000  0a /.test(document.querySelector('.hex').textContent)")
    page.click("#record summary:has-text('File')")
    page.wait_for_selector("dt:has-text('byte offset')")
    facts = str(page.text_content("#record .facts"))
    assert f"recordsmith view {meadows} --at 1shard" in facts
    data = meadows.read_bytes()
    start = int.from_bytes(data[:8], "little") + 16
    stop = start + int.from_bytes(data[start : start + 8], "little") + 16
    assert f"byte offset{start:,}" in facts
    assert f"checksum of the length{data[start + 8 : start + 12].hex()}" in facts
    assert f"checksum of the payload{data[stop - 4 : stop].hex()}" in facts


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


def test_two_fingers_zoom_the_image(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows, 400, has_touch=True)
    page.click("#tile-1")
    page.wait_for_selector("#record rect.box")
    until(page, "document.querySelector('#record .zoom output').textContent !== ''")
    stage = page.locator("#record .viewport").bounding_box()
    image = page.locator("#record .left img")
    before = image.bounding_box()
    touches = page.context.new_cdp_session(page)
    middle = stage["x"] + 160, stage["y"] + 120

    def touch(kind: str, gap: float | None) -> None:
        sides = [] if gap is None else [-gap / 2, gap / 2]
        points = [{"x": middle[0] + side, "y": middle[1], "id": k} for k, side in enumerate(sides)]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 60)
    for gap in (80, 100, 120):
        touch("touchMove", gap)
    touch("touchEnd", None)
    after = image.bounding_box()
    assert math.isclose(after["width"], 2 * before["width"], rel_tol=0.02)
    shares = [  # what is under the fingers stays there
        (middle[0] - box["x"]) / box["width"] for box in (before, after)
    ]
    assert math.isclose(shares[0], shares[1], abs_tol=0.05)


def test_long_values_are_loaded_on_demand(tmp_path: Path, open_page: Open) -> None:
    values = [math.sin(number / 50) for number in range(3000)]
    example = {"signal": values, "id": 12_345_678, "text": "long " * 5000}
    page = open_page(write(tmp_path / "long.tfrecord", [example]))
    assert page.locator("#tile-0 .curve").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("#record .features")
    facts = page.locator("#record .facts")
    assert "12345678" in str(facts.text_content())
    assert "float \u00d7 3,000" in str(facts.text_content())
    line = "document.querySelector('#record .curve path').getAttribute('d')"
    assert page.evaluate(f"{line}.match(/[ML]/g).length") == 600
    page.click("text=Show all 3,000 values")
    page.click("text=Show more (2,000 left)")
    page.click("text=Show more (1,000 left)")
    last = f"{np.float32(values[-1]):.6g}"
    until(page, f"[...document.querySelectorAll('dd pre')][1].textContent.endsWith(', {last}')")
    page.click("dd:has-text('long') >> text=Show all")
    until(page, "[...document.querySelectorAll('dd pre')][2].textContent.length >= 25000")


def test_episodes_have_film_strips_steps_and_curves(tmp_path: Path, open_page: Open) -> None:
    frames = [[encode(smooth(64, 48).rotate(10 * step), "JPEG")] for step in range(5)]
    rewards = [[float(step * step)] for step in range(5)]
    record = rs.encode_sequence_example({"id": [7]}, {"frame": frames, "reward": rewards})
    page = open_page(write(tmp_path / "episode.tfrecord", [record, record]))
    assert "5 frames" in str(page.text_content("#tile-0 .badge"))
    stage = page.locator("#tile-0 .stage").bounding_box()
    before = page.get_attribute("#tile-0 img", "src")
    page.mouse.move(stage["x"] + stage["width"] - 4, stage["y"] + 30)
    assert page.get_attribute("#tile-0 img", "src") != before
    page.keyboard.press("Enter")
    page.wait_for_selector("#record .strip img")
    assert page.locator("#record .strip img").count() == 5
    page.click("#record .strip button >> nth=4")
    until(page, "document.querySelector('.left img').src.includes('index=4')")
    rows = page.locator("#record tbody tr").all_text_contents()
    assert len(rows) == 5
    assert rows[3].endswith("9")
    assert page.locator("#record figure .curve").count() == 1


def test_long_episodes_are_shown_in_parts(tmp_path: Path, open_page: Open) -> None:
    frames = [[encode(smooth(16, 12).rotate(step), "PNG")] for step in range(70)]
    lists: Any = {"frame": frames, "step": [[step * step] for step in range(300)]}
    tokens = np.random.default_rng(1).integers(0, 50_000, 100)
    record = rs.encode_sequence_example({"tokens": tokens}, lists)
    page = open_page(write(tmp_path / "episode.tfrecord", [record]), fragment="record=0")
    rows = page.locator("#record tbody tr")
    expect = sync_api.expect
    expect(rows).to_have_count(64)
    part = page.locator("#record .parts", has_text="Steps")
    assert "to 63 of 300" in str(part.text_content())
    part.locator("text=→").click()
    expect(rows.first.locator("th")).to_have_text("64")
    assert str(rows.nth(3).text_content()).endswith(str(67 * 67))
    part.locator("input").fill("290")
    part.locator("input").press("Enter")
    expect(rows).to_have_count(10)
    assert "to 299 of 300" in str(part.text_content())
    assert part.locator("text=→").is_disabled()
    assert str(rows.last.text_content()).endswith(str(299 * 299))
    assert page.locator("#record .strip img").count() == 64
    page.locator("#record .parts", has_text="Images").locator("text=→").click()
    expect(page.locator("#record .strip img")).to_have_count(6)
    page.click("#record .strip button >> nth=5")
    until(page, "document.querySelector('.left img').src.includes('index=69')")
    # the steps are a curve, the tokens are not
    assert page.locator("#record .curve").count() == 1
    assert ", ".join(map(str, tokens[:48])) in str(page.text_content("#record .features"))


def test_the_commands_save_the_records(
    tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    image = encode(smooth(16, 12), "PNG")
    classes = {number: {"image/class/label": number % 3} for number in range(30)}
    examples = [{"id": n, "image/encoded": image, **classes[n]} for n in range(30)]
    for split, part in (("test", examples[:10]), ("train", examples[10:])):
        write(folder / f"{split}-00000-of-00001.tfrecord", part)
    monkeypatch.chdir(tmp_path)

    def saved(page: Any, name: str) -> list[int]:
        """Run the commands of a section; return the ids in the new dataset."""
        page.click("#save")
        section = f"#dialog h3:has-text('{name}') ~ .command"
        lines = page.locator(f"{section} code").all_text_contents()[:4]
        for line in lines[1:]:
            if line.startswith("rs."):
                exec(line, {"rs": rs, "dataset": dataset})
            else:
                command = [sys.executable, "-m", *shlex.split(line)]
                subprocess.run(command, check=True, capture_output=True)
        page.keyboard.press("Escape")
        (out,) = {path.parent for path in tmp_path.glob("*/dataset.json")}
        assert out.with_name(f"{out.name}.png").exists()
        assert out.with_name(f"{out.name}-files").is_dir()
        found = sorted(int(example["id"][0]) for example in rs.open(out))
        for path in tmp_path.glob(f"{out.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return found

    page = open_page(folder)
    page.click("#tile-3 .mark")
    page.click("#tile-20 .mark")
    assert saved(page, "marked") == [3, 20]
    page = open_page(folder, fragment="split=train&where=image/class/label+==+1")
    wait_for_count(page, "7 of 20")
    matching = [number for number in range(10, 30) if classes[number] == {"image/class/label": 1}]
    assert saved(page, "Records of this view") == matching
    dataset = rs.open(folder)[5:25]
    page = open_page(dataset)
    page.click("#tile-4 .mark")
    assert saved(page, "marked") == [9]


def test_a_report_is_stopped_and_read_again(
    meadows: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    compute = reports.stats

    def held(*arguments: Any, progress: Any) -> Any:
        def advance(done: int, total: int) -> None:
            progress(1, 4)
            goes_on.wait(30)
            progress(done, total)

        return compute(*arguments, progress=advance)

    monkeypatch.setattr(reports, "stats", held)
    page = open_page(meadows)
    page.click("#views button:has-text('Statistics')")
    until(page, "document.querySelector('#panel progress').value === 1")
    page.click("#panel button:has-text('Stop')")
    page.wait_for_selector("#panel :text('Stopped')")
    goes_on.set()
    page.click("#panel button:has-text('Read again')")
    page.frame_locator("#panel iframe").locator("main").wait_for()


def test_damaged_and_foreign_records_are_described(
    tmp_path: Path, meadows: Path, open_page: Open
) -> None:
    data = bytearray(meadows.read_bytes())
    data[len(data) // 40] ^= 255
    (tmp_path / "damaged.tfrecord").write_bytes(data)
    page = open_page(tmp_path / "damaged.tfrecord")
    page.wait_for_selector(".tile .badge.bad")
    assert page.locator(".tile .badge.bad").all_text_contents() == ["payload-crc-mismatch"]
    page.click(".tile:has(.badge.bad)")
    page.wait_for_selector("#record .error")
    assert "checksum" in str(page.text_content("#record .error"))
    page.keyboard.press("Escape")
    page.click("#views button:has-text('Damage')")
    frame = page.frame_locator("#panel iframe")
    frame.locator("code", has_text="payload-crc-mismatch").first.wait_for()
    frame.locator("a", has_text="payload-crc-mismatch").click()
    page.wait_for_selector("#record .error")


def test_other_messages_show_their_fields(tmp_path: Path, open_page: Open) -> None:
    payload = b"\x08\x96\x01\x12\x07testing\x1a\x04\x08\x05\x10\x06"
    page = open_page(write(tmp_path / "other.tfrecord", [payload]), fragment="record=0")
    page.wait_for_selector("#record .fields")
    text = str(page.text_content("#record .fields"))
    assert "150" in text
    assert "testing" in text
    assert page.locator("#record .fields .fields li").count() == 2


def test_statistics_and_batches_are_shown(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows)
    page.click("#views button:has-text('Statistics')")
    frame = page.frame_locator("#panel iframe")
    assert "image/class/label" in str(frame.locator("main").text_content())
    page.click("#views button:has-text('Loader')")
    image = "document.querySelector('#panel > img')"
    until(page, f"{image}?.naturalWidth > 100")
    first = page.evaluate(f"{image}.src")
    assert screenshot(page.locator("#panel > img")).std() > 10
    page.click("text=Next seed")
    until(page, f"{image}.src.includes('seed=1') && {image}.complete")
    assert page.evaluate(f"{image}.src") != first
    page.select_option("[name=crop]", "center")
    until(page, f"{image}.src.includes('crop=center') && {image}.naturalWidth > 100")
    page.click("#views button:has-text('Records')")
    page.wait_for_selector(".tile:not(.loading)")


HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>\"'`"


@pytest.mark.parametrize("is_image", [True, False])
def test_a_record_may_be_closed_before_its_image_is_there(
    is_image: bool, meadows: Path, open_page: Open
) -> None:
    page = open_page(meadows)
    held: list[Any] = []
    page.route("**/image/*", lambda route: held.append(route))  # noqa: PLW0108 - it gets marks
    page.click("#tile-0")
    page.wait_for_selector("#record .features")
    page.evaluate("window.img = document.querySelector('#record img')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#record", state="hidden")
    while not held:
        page.wait_for_timeout(50)
    if is_image:
        held[0].continue_()
    else:
        held[0].fulfill(body="no image", content_type="image/png")
    until(page, "window.img.complete")
    page.wait_for_timeout(50)  # for its handlers; `open_page` asserts that none failed


def test_names_and_values_are_never_markup(tmp_path: Path, open_page: Open) -> None:
    example = {
        HOSTILE: HOSTILE * 3,
        f"{HOSTILE} number": 3,
        "image/encoded": encode(smooth(64, 48), "PNG"),
        "image/filename": HOSTILE,
        "image/class/label": 1,
        "image/class/text": HOSTILE,
        **{
            f"image/object/bbox/{side}": [0.2 if side[1:] == "min" else 0.8]
            for side in ("ymin", "xmin", "ymax", "xmax")
        },
        "image/object/class/label": [1],
        "image/object/class/text": [HOSTILE],
    }
    folder = tmp_path / "<b onclick=alert(1)>bold"
    folder.mkdir()
    page = open_page(write(folder / "a.tfrecord", [example] * 5))
    page.wait_for_selector("#facets .value")
    assert HOSTILE in str(page.text_content("#facets"))
    page.locator("#facets .value", has_text="onerror").first.click()
    wait_for_count(page, "5 of 5")
    page.keyboard.press("/")
    page.keyboard.press("End")
    page.keyboard.type(" and ")
    page.wait_for_selector("#completions li")
    page.keyboard.press("Escape")
    page.click("#tile-0")
    page.wait_for_selector("#record .features")
    assert HOSTILE in str(page.text_content("#record .features"))
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    page.click("#save")
    page.click("#dialog button:has-text('Close')")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#room script, #room b[onclick], #room img[onerror], [src=x]").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_page_is_accessible_and_fits(
    width: int, scheme: str, meadows: Path, open_page: Open, tmp_path: Path
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # axe adds a script, which the policy of the page forbids
    page = open_page(meadows, width, color_scheme=scheme, bypass_csp=True)

    def check(name: str) -> None:
        found = axe.run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, name
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.wait_for_selector("#facets .value", state="attached")
    if width < 700:
        assert page.locator("#side").is_hidden()
        check("gallery")
        page.click("#toggle-side")
    page.wait_for_selector(".classes .class")
    check("gallery with facets")
    if width < 700:
        page.keyboard.press("f")
    page.fill("#where", "score")
    page.wait_for_timeout(300)
    check("completions")
    page.keyboard.press("Escape")
    page.click("#tile-1")
    page.wait_for_selector("#record rect.box")
    for title in ("Histogram of the pixels", "File", "Bytes"):
        page.click(f"#record summary:has-text('{title}')")
    check("record")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    check("help")
    page.keyboard.press("Escape")
    page.click("#views button:has-text('Loader')")
    page.wait_for_timeout(300)
    check("loader")
    page.click("#views button:has-text('Records')")
    page.keyboard.press("t")
    page.wait_for_selector("#row-0:not(.loading)")
    check("table")
    page.click("#columns")
    check("columns")


def test_the_colour_scheme_is_chosen(meadows: Path, open_page: Open) -> None:
    page = open_page(meadows, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.keyboard.press("d")
    dark = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == dark
    page.click("#theme")
    assert page.evaluate(background) == light


def test_files_of_all_kinds_open(zoo: Path, open_page: Open) -> None:
    opened = 0
    for path in sorted(zoo.glob("*/*")):
        try:
            page = open_page(path)
        except rs.CorruptDataError:
            continue
        for number in shown(page)[:4]:
            page.wait_for_selector(f"#tile-{number}:not(.loading)")
            drawn = page.evaluate(
                f"document.querySelector('#tile-{number} .stage').textContent.length > 0"
                f" || document.querySelector('#tile-{number} .stage').children.length > 1"
            )
            assert drawn, path
        page.keyboard.press("Enter")
        page.wait_for_selector("#record .facts details")
        page.context.close()
        opened += 1
    assert opened > 20

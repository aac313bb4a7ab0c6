"""One record: its image with zoom, values, episodes, and the fields of other messages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...images import encode, smooth
from ..conftest import write
from .conftest import Open, expect, until

pytestmark = pytest.mark.slow


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
    expect(page.locator("#record .histogram path")).to_have_count(3)
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


def test_other_messages_show_their_fields(tmp_path: Path, open_page: Open) -> None:
    payload = b"\x08\x96\x01\x12\x07testing\x1a\x04\x08\x05\x10\x06"
    page = open_page(write(tmp_path / "other.tfrecord", [payload]), fragment="record=0")
    page.wait_for_selector("#record .fields")
    text = str(page.text_content("#record .fields"))
    assert "150" in text
    assert "testing" in text
    assert page.locator("#record .fields .fields li").count() == 2


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

"""Boxes, masks and keypoints over images of the gallery and of a record, and their switches."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

import recordsmith as rs
from recordsmith.dataset import KeypointClass

from ...images import encode
from ...keypoints import set_keypoint_classes
from ..conftest import write
from .conftest import NAMES, Open, meadow, screenshot, until

pytestmark = pytest.mark.slow


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

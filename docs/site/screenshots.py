"""Draw the image of the README, and take the screenshots of docs/how-to/view.md in Chromium.

    python docs/site/screenshots.py

Needs the extra `interop`, and Chromium. The records are those of `recordsmith demo`,
and meadows of the same flowers with boxes and masks.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

import recordsmith as rs
from recordsmith.cli.demo import demo
from recordsmith.dataset import LABELS_NAME, labels_to_bytes
from recordsmith.image import SPECIES, draw_flower

OUT = Path(__file__).parent.parent / "how-to"
_MOST_BYTES = 150_000
_COUNT = 120
_NAMES = ("background", *SPECIES)


def meadow(number: int) -> dict[str, Any]:
    """An example with up to six flowers, their boxes, and a mask of their classes."""
    rng = random.Random(number)
    image = draw_flower("daisy", rng.randrange(1000)).resize((480, 360))
    image = image.crop((0, 0, 480, 1)).resize((480, 360))  # its sky
    ground = Image.linear_gradient("L").resize(image.size)
    image.paste((62, 98, 52), mask=ground)
    mask = Image.new("L", image.size)
    boxes, labels = [], []
    for _ in range(rng.randrange(2, 7)):
        label, radius = rng.randrange(1, len(_NAMES)), rng.uniform(18, 62)
        centre = rng.uniform(60, 420), rng.uniform(70, 290)
        layer = Image.new("RGB", image.size)
        SPECIES[_NAMES[label]](ImageDraw.Draw(layer), rng, centre, radius)
        area = layer.convert("L").point([0] + [255] * 255)
        stem = [centre, (centre[0], image.height)]
        ImageDraw.Draw(image).line(stem, (70, 125, 56), max(2, round(radius / 9)))
        image.paste(layer, mask=area)
        mask.paste(label, mask=area)
        left, top, right, bottom = area.getbbox() or (0, 0, 1, 1)
        boxes.append((top / 360, left / 480, bottom / 360, right / 480))
        labels.append(label)
    sides = zip(("ymin", "xmin", "ymax", "xmax"), zip(*boxes, strict=True), strict=True)
    return {
        "image/encoded": _encode(image, "JPEG"),
        "image/filename": f"meadow-{number:03}.jpg",
        "image/height": image.height,
        "image/width": image.width,
        "image/segmentation/class/encoded": _encode(mask, "PNG"),
        "image/object/class/label": labels,
        "image/object/class/text": [_NAMES[label] for label in labels],
        "flower/count": len(labels),
        "flower/area": sum((box[2] - box[0]) * (box[3] - box[1]) for box in boxes),
        **{f"image/object/bbox/{side}": list(values) for side, values in sides},
    }


def _encode(image: Image.Image, kind: str) -> bytes:
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def write_meadows(folder: Path) -> Path:
    """Write the dataset of meadows, with class names."""
    folder.mkdir()
    with rs.ShardWriter(folder / "train-00000-of-00001.tfrecord") as writer:
        for number in range(_COUNT):
            writer.write_example(meadow(number))
    (folder / LABELS_NAME).write_bytes(labels_to_bytes(_NAMES))
    return folder


def damage(source: Path, out: Path) -> Path:
    """Copy a shard with three changed bytes, cut off before its end."""
    data = bytearray(source.read_bytes())
    for share in (0.04, 0.13, 0.5):
        data[int(share * len(data))] ^= 255
    out.write_bytes(data[: len(data) * 3 // 4])
    return out


def take_all(browser: Any, folder: Path) -> None:
    meadows = write_meadows(folder / "meadows")

    def take(path: Path, name: str, act: Callable[[Any], None], fragment: str = "") -> None:
        with rs.view(path) as viewer:
            page = browser.new_page(viewport={"width": 1200, "height": 720})
            page.goto(viewer.url)
            page.wait_for_url(f"{viewer.url.partition('?')[0]}**")
            page.wait_for_selector(".tile:not(.loading)")
            if fragment:
                page.goto(f"{viewer.url.partition('?')[0]}#{fragment}")
                page.reload()
            act(page)
            page.wait_for_timeout(1500)
            _save(page.screenshot(), name)
            page.close()

    def open_record(page: Any) -> None:
        page.wait_for_selector("#record rect.box")
        page.click("summary:has-text('Histogram of the pixels')")

    def open_report(page: Any) -> None:
        page.frame_locator("#panel iframe").locator("main").wait_for(timeout=60_000)

    def wait(page: Any) -> None:
        page.wait_for_selector("#facets .histogram .whole", state="attached")

    take(meadows, "gallery", lambda page: page.wait_for_selector("#tile-8 rect.box"))
    take(meadows, "record", open_record, "record=7&place=7")
    dataset = folder / "demo" / "dataset"
    facets = "where=image%2Fclass%2Ftext+in+(%22rose%22%2C+%22tulip%22)&sort=image/width&group=1"
    take(dataset, "facets", lambda page: page.wait_for_selector(".head"), facets)
    take(meadows, "statistics", open_report, "view=stats")
    shard = damage(meadows / "train-00000-of-00001.tfrecord", folder / "damaged.tfrecord")
    take(shard, "damage", lambda page: page.wait_for_selector(".badge.bad"))


def _save(data: bytes, name: str) -> None:
    """Write a screenshot as a JPEG of limited size."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    for quality in (85, 75, 65, 50):
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality, optimize=True, progressive=True)
        if len(out.getvalue()) < _MOST_BYTES:
            break
    (OUT / f"view-{name}.jpg").write_bytes(out.getvalue())
    print(f"view-{name}.jpg  {len(out.getvalue()):,} bytes")


def draw_demo(folder: Path) -> None:
    """Run the demo, and write its preview of a batch for the README."""
    demo(str(folder))
    with Image.open(folder / "contact-sheet.png") as sheet:
        size = (900, round(900 * sheet.height / sheet.width))
        small = sheet.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.save(OUT.parent / "contact-sheet.jpg", quality=88, optimize=True, progressive=True)


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("needs Chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        os.chdir(folder)  # for short paths on the pages
        draw_demo(Path("demo"))
        take_all(browser, Path())
        browser.close()


if __name__ == "__main__":
    main()

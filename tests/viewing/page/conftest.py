"""The page of the viewer in a real browser: a dataset, the page of it, and what the page shows."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from ...images import encode, smooth
from ..conftest import Client, write

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
Open = Callable[..., Any]

NAMES = ("daisy", "rose", "tulip", "fern")


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
    sync_api = pytest.importorskip("playwright.sync_api")
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


def rows_shown(page: Any) -> list[list[str]]:
    """The texts of the rows of the table, from the first one."""
    return list(
        page.eval_on_selector_all(
            "#table .row[data-place]",
            "rows => rows.sort((a, b) => a.dataset.place - b.dataset.place)"
            ".map(row => [...row.children].map(cell => cell.textContent))",
        )
    )


def expect(locator: Any) -> Any:
    """Return Playwright's assertions, which wait until they hold."""
    from playwright.sync_api import expect as assertions_of

    return assertions_of(locator)


def wait_for_count(page: Any, text: str) -> None:
    expect(page.locator("#count")).to_have_text(text, timeout=60_000)


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

"""The documentation site: hits of search differ, and no page is cut, as built by `make docs`."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent
SITE = REPOSITORY / "build" / "site"
MAX_HEIGHT = 6000
"""Of the pages of tables in pixels, at a width of 1440."""
MEASURE = """() => {
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isInside = (element) => element && (scrolls(element) || isInside(element.parentElement));
  const cut = [...document.querySelectorAll(".md-header *, article *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width && box.right > innerWidth + 1 && !isInside(element.parentElement);
  });
  const clipped = [...document.querySelectorAll(".md-ellipsis")].filter((element) =>
    element.getClientRects().length && element.scrollWidth > element.clientWidth + 1 &&
    getComputedStyle(element).overflow === "hidden");
  const root = document.documentElement;
  return {
    width: root.scrollWidth,
    cut: [...cut, ...clipped].map((element) => element.textContent.trim().slice(0, 60)),
    boxes: [...document.querySelectorAll("article .md-typeset__scrollwrap")].filter(
      (element) => element.scrollWidth > element.clientWidth + 1).length,
  };
}"""


def load_pages() -> Any:
    spec = importlib.util.spec_from_file_location("pages", REPOSITORY / "docs/site/pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_hits_of_search_differ() -> None:
    titles = {
        "a.html": "Pack",
        "a.html#options": "Options",
        "a.html#only-here": "Only here",
        "b.html": "Verify",
        "b.html#options": "Options",
        "c.html#pkg.Loader.close": "close",
        "c.html#pkg.Dataset.close": "close",
        "c.html": "Train",
        "how-to/grain.html": "grain",
        "grain.html": "grain",
    }
    items = [{"location": location, "title": title} for location, title in titles.items()]
    load_pages().name_hits(items)
    found = {item["location"]: item["title"] for item in items}
    assert len({*found.values()}) == len(titles)
    assert found["a.html#options"] == "Pack: Options"
    assert found["a.html#only-here"] == "Only here"
    assert found["c.html#pkg.Loader.close"] == "Loader: close"
    assert found["how-to/grain.html"] == "how-to: grain"


@pytest.fixture(scope="module")
def browser() -> Any:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or not SITE.is_dir():
        pytest.skip("needs Chromium, and the site of `make docs`")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_is_cut(browser: Any, width: int) -> None:
    """Wide tables and code scroll in boxes of their own; at 1440 pixels, no table has to.

    Nor does one that a reader unfolds.
    """
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.route("**/search.js", lambda route: route.abort())  # of megabytes, for each page
    for path in sorted(SITE.rglob("*.html")):
        page.goto(path.as_uri())
        height = page.evaluate("document.documentElement.scrollHeight")
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        found = page.evaluate(MEASURE)
        name = path.relative_to(SITE).as_posix()
        assert found["width"] <= width, name
        assert found["cut"] == [], name
        if width == 1440:
            assert found["boxes"] == 0, name
            if name.startswith(("performance", "comparison")):
                assert height <= MAX_HEIGHT, name
    page.close()


HITS = """() => {
  const hits = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      if (root !== document && element.tagName === "LI") {
        hits.push(element.innerText.trim().split("\\n")[0]);
      }
    }
  };
  walk(document);
  return hits;
}"""


@pytest.mark.slow
def test_search_works_in_files(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto((SITE / "index.html").as_uri())
    page.wait_for_timeout(500)
    page.keyboard.press("Control+k")
    page.wait_for_timeout(500)
    page.keyboard.type("state_dict")
    page.wait_for_function(f"() => ({HITS})().includes('JaxBatches: state_dict')", timeout=20_000)
    page.close()

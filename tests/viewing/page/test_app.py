"""The page as a whole: keys, links, reports, damage, accessibility, and no markup from files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import read_findings
from recordsmith.viewing import redirecting_file, reports

from ...images import encode, smooth
from ..conftest import Client, write
from .conftest import Open, condition, screenshot, shown, until, wait_for_count

pytestmark = pytest.mark.slow


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

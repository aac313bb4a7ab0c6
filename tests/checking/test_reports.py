"""The model of reports, printed and as a page: of statistics, which has all that it can show."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.checking.statistics.findings import Finding, group_findings
from recordsmith.cli import report_text
from recordsmith.format.example.keys import BOX, HEIGHT, MASK, WIDTH
from recordsmith.stores import Location
from recordsmith.support.reports import (
    Bar,
    Example,
    Histogram,
    ReportContent,
    ReportTable,
    ShownFinding,
    SourceLocation,
    Strip,
    show_command,
)
from recordsmith.viewing.drawing import report_page

from ..raising import raises

EVIL = "<script>alert('x')</script>\x1b[2J\"'&"
LABEL, TEXT = "image/class/label", "image/class/text"
CONTENT = ReportContent(
    summary=f"3 {EVIL} in 1 shard",
    verdict="2 findings",
    level="note",
    figures=[("7", EVIL)],
    tables=[
        ReportTable(
            EVIL,
            ("name", "count", "", "spread", "only wide"),
            [
                (EVIL, "1", Bar(1), Histogram([0, 1, 2], [3, 1]), "a"),
                ("few", "22", Bar(0.25), Histogram([], []), "wide"),
            ],
            numbers=("count",),
            wide=("only wide",),
            note=f"a note on `code` and {EVIL}",
        ),
        ReportTable(
            "files",
            ("file", "where"),
            [("a", Strip("bad", [(0.5, "defect"), (0.5, "other"), (0.9, "last")], 0.95))],
            terminal_rows=0,
        ),
        ReportTable("", ("row",), [(f"row {number}",) for number in range(40)], terminal_rows=30),
    ],
    findings=[
        ShownFinding(
            "odd", "`x` is odd.", "Fix it.", EVIL, places=[SourceLocation("a.tfrecord", 3)]
        ),
        ShownFinding(
            "drawn",
            "it is `drawn`.",
            severity="error",
            level="bad",
            count=1234,
            examples=[
                *(Example(f"{EVIL} drawn {n}", lambda: [b"jpeg", b"other"]) for n in range(2)),
                *(Example(f"{EVIL} {number}") for number in range(9)),
            ],
        ),
    ],
    notes=["more notes"],
)


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Any], tuple[str, str]]:
    """Returns what is printed of a report, and its page."""

    def show_report(report: Any) -> tuple[str, str]:
        report_text.print_report(report.content())
        page = rs.save_html(report, tmp_path / "page.html", title=EVIL, overwrite=True)
        return capsys.readouterr().out, page.read().decode()

    return show_report


def test_a_page_is_complete_and_text_stays_text() -> None:
    page = Page(report_page.content_page(CONTENT, EVIL))
    assert page.open == []
    assert not {"script", "link", "iframe", "a"} & set(page.tags)
    assert {name for name, _ in page.attributes} <= {
        "class", "width", "height", "x", "y", "role", "src", "alt",
        "lang", "charset", "http-equiv", "content", "name",
    }  # fmt: skip
    shown = "<script>alert('x')</script>\\x1b[2J\"'&"
    assert page.words.count(shown) == 8 + 11
    assert page.tags.count("rect") == 4 + 4
    for words in (
        "only wide", "row 39", " a.tfrecord --at 3", "0 to 1", "error, 1,234", "and 1,223 more",
        "defect and 1 more", "skipped",
    ):  # fmt: skip
        assert words in page.words
    assert page.tags.count("code") == 6  # two kinds, three texts in backticks, a command
    assert page.tags.count("figure") == 2
    assert any(name == "alt" and shown in (value or "") for name, value in page.attributes)
    sources = {value for name, value in page.attributes if name == "src"}
    assert sources == {
        f"data:image/jpeg;base64,{base64.b64encode(data).decode()}" for data in (b"jpeg", b"other")
    }


def test_a_terminal_has_what_fits(capsys: pytest.CaptureFixture[str]) -> None:
    report_text.print_report(CONTENT)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert "\x1b" not in shown
    assert lines[0].startswith("3 <script>")
    assert ["few", "22", "██████"] in [line.split() for line in lines]
    assert any(line.endswith("█▃") for line in lines)
    assert "row 29" in lines
    assert "  … and 10 more (all of them with --json)" in lines
    assert not any(words in shown for words in ("only wide", "row 30"))
    assert any(re.match(r"odd: .*: `x` is odd\.", line) for line in lines)
    assert {"  Fix it.", f"  show it: `{show_command(['a.tfrecord'], [3])}`"} <= {*lines}
    assert {"error: drawn (1,234): it is `drawn`."} <= {*lines}
    assert "  … and 1,224 more (the first 11 with --json)" in lines
    assert "files" not in lines


def test_findings_are_grouped() -> None:
    findings = [Finding("constant", f"f{n}", "same", "") for n in range(7)]
    findings[3:3] = [Finding("nan", "x", "one", ""), Finding("constant", "g", "other", "")]
    findings += [Finding("sparse", f"f{n}", f"in {n}", "") for n in range(9)]
    groups = [(found.kind, found.about, found.text) for found in group_findings(findings, 3, 2)]
    assert groups[:5] == [
        ("constant", "f0, f1, f2 and 4 more", "same"),
        ("nan", "x", "one"),
        ("constant", "g", "other"),
        ("sparse", "f0", "in 0"),
        ("sparse", "f1", "in 1"),
    ]
    assert re.search("7 more", groups[5][2])


def test_statistics_have_all_tables(
    write: Any, tmp_path: Path, images: ModuleType, show: Any
) -> None:
    sides = zip(BOX, (0.25, 0.0, 0.75, 0.25), strict=True)
    mask = images.encode(Image.new("L", (64, 64), 1), "PNG")
    boxes = {key: [value, value] for key, value in sides} | {MASK: mask, HEIGHT: 64, WIDTH: 64}
    rows = [
        {"image/encoded": images.jpeg(n, 10, 9), LABEL: n % 3, TEXT: "one", EVIL: ["a", EVIL]}
        | {"x": np.array([n / 4, np.nan], np.float32), "many": list(range(n)) or [0]}
        | (boxes if n == 1 else {})
        for n in range(30)
    ]
    write(tmp_path / "train-00000-of-00002.tfrecord", rows)
    write(tmp_path / "train-00001-of-00002.tfrecord", rows[:3])
    (tmp_path / "labels.txt").write_text(f"0:ant\n1:bee\n2:{EVIL}\n")
    report = rs.stats(tmp_path)
    printed, page = show(report)
    for shown in (printed, Page(page).words):
        for words in (
            "33 records in 2 shards", "smallest shard", f"3 classes in {LABEL}",
            f"1 class in {TEXT}", "0 ant", f"2 masks in {MASK}", "100.00%", "boxes per record",
            "4 small (below 32 x 32 pixels)", "images in image/encoded", "10 x 9 (33)", "12.50%",
            "not-finite", "33 NaN", "most frequent", "\\x1b[2J",
        ):  # fmt: skip
            assert words in shown, words
        assert "\x1b" not in shown
    for finding in report.findings:
        assert finding.kind in printed
    assert "url(" not in page
    assert "Content-Security-Policy" in page


@pytest.mark.parametrize(("text", "is_shown"), [("bee", False), ("wasp", True)])
def test_texts_that_repeat_the_names_of_labels_are_not_shown(
    write: Any, tmp_path: Path, show: Any, text: str, is_shown: bool
) -> None:
    pairs = [(0, "ant"), (0, "ant"), (1, text)]
    write(tmp_path / "a.tfrecord", [{LABEL: number, TEXT: name} for number, name in pairs])
    (tmp_path / "labels.txt").write_text("0:ant\n1:bee\n")
    report = rs.stats(tmp_path)
    assert report.classes.keys() == {LABEL, TEXT}
    for shown in show(report):
        assert f"classes in {LABEL}" in shown
        assert (f"classes in {TEXT}" in shown) == is_shown


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([1.0, 2.0, 2.0], "2"),
        ([1.0, float("nan")], "1 finite"),
        ([float("inf")], "0 finite"),
    ],
)
def test_distinct_numbers_are_finite(tmp_path: Path, numbers: list[float], text: str) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"x": np.array(numbers, np.float32)})
    tables = rs.stats(tmp_path / "a.tfrecord").content().tables
    assert [t.rows[0][t.heads.index("distinct")] for t in tables if "distinct" in t.heads] == [text]


def test_what_has_no_statistics(
    write: Any, tmp_path: Path, show: Any, reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.checking.statistics.record_builder.MAX_FEATURES", 3)
    monkeypatch.setattr("recordsmith.checking.statistics.stats_report.MAX_LEFT_OUT", 9)
    ranking = reference.delimited(1, rs.encode_example({"x": 1}))
    path = write(tmp_path / "a.tfrecord", [{f"f{key}": 1 for key in range(9)}, ranking, b"\x01?"])
    for shown in show(rs.stats(path)):
        for words in (
            "1 record that is not an Example", "1 ranking list (ELWC)", "only sizes are shown",
            "6 more features have no",
        ):  # fmt: skip
            assert words in shown
        assert "at least 6" not in shown


def test_differences_have_a_page(write: Any, tmp_path: Path, show: Any) -> None:
    a = write(tmp_path / "a.tfrecord", [{"id": n, "x": 1} for n in range(5)])
    b = write(tmp_path / "b.tfrecord", [{"id": n, "x": n // 4 + 1} for n in (9, 1, 2, 3, 4)])
    printed, page = show(rs.diff(a, b))
    for shown in (printed, Page(page).words):
        for words in ("different", "3 records in both, 1 changed", "only in A", "x: 1 -> 2"):
            assert words in shown


def test_an_existing_page_is_kept_without_overwrite(
    write: Any, place: Location, tmp_path: Path
) -> None:
    report = rs.stats(write(tmp_path / "a.tfrecord", [{"x": 1}]))
    path = place / "page.html"
    path.put(b"mine")
    for out, option in ((path, "overwrite"), (place / "report.txt", "out")):
        with raises(rs.OptionError, option=option):
            rs.save_html(report, out)
    assert path.read() == b"mine"
    rs.save_html(report, path, overwrite=True)
    assert path.read().startswith(b"<!doctype html>")
    with pytest.raises(rs.FileAccessError):
        rs.save_html(report, tmp_path / "none" / "page.html")

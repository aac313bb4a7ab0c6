"""The page of statistics: everything is on it, it needs nothing else, and text stays text."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.cli.stats_tables import print_stats
from recordsmith.stores import Location

EVIL = "<script>alert('x')</script>\x1b[2J\"'&"


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
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def dataset(tmp_path: Path, images: ModuleType) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in (("train", 30), ("validation", 6)):
        with rs.ShardWriter(folder / f"{split}-00000-of-00001.tfrecord") as writer:
            for number in range(count):
                example: dict[str, Any] = {
                    "image/encoded": images.jpeg(number, 10 + number % 3, 9),
                    "image/class/label": number % 3,
                    "image/class/text": "one",
                    EVIL: [EVIL, "a"],
                    "x": [number / 4, math.nan],
                    "many": list(range(number)) or [0],
                }
                writer.write_example(example)
    (folder / "labels.txt").write_text(f"0:ant\n1:bee\n2:{EVIL}\n")
    return folder


def test_page_is_complete_and_self_contained(dataset: Path, tmp_path: Path) -> None:
    report = rs.stats(dataset)
    path = rs.save_html(report, tmp_path / "page.html", title=EVIL)
    text = path.read().decode()
    page = Page(text)
    assert "3 classes in image/class/label" in page.words
    assert "1 class in image/class/text" in page.words
    assert f"{len(rs.open(dataset))} records (Examples) in" in page.words
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "a"} & set(page.tags)
    assert not {"src", "href", "onload", "onclick"} & {name for name, _ in page.attributes}
    assert "url(" not in text
    assert "@import" not in text
    assert "\x1b" not in text
    assert (
        page.words.count("<script>alert('x')</script>\\x1b[2J\"'&") >= 4
    )  # title, key, class, value
    for feature in ("image/encoded", "image/class/label", "x", "many"):
        assert feature in page.words
    for finding in report.findings:
        assert finding.kind in page.words
    assert {"leakage", "not-finite"} <= {finding.kind for finding in report.findings}
    assert "0 ant" in page.words
    assert "10 x 9" in page.words


def draw(tmp_path: Path, examples: list[dict[str, Any]]) -> str:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for example in examples:
            writer.write_example(example)
    found = rs.stats(tmp_path / "a.tfrecord")
    return rs.save_html(found, tmp_path / "page.html", overwrite=True).read().decode()


def test_equally_frequent_values_are_not_listed(tmp_path: Path, images: ModuleType) -> None:
    same = [
        {"id": n, "twice": [n, n], "name": f"n{n}", "image": images.jpeg(n, 10 + n, 9)}
        for n in range(12)
    ]
    assert "most frequent" not in draw(tmp_path, same)
    (tmp_path / "a.tfrecord").unlink()
    text = draw(tmp_path, [{"id": number} for number in [7, 7, 8, 8, 8, *range(20, 29)]])
    assert text.count("most frequent") == 1
    assert re.findall(r'<td>(\d+)</td><td class="number">(\d+)</td>', text) == [
        ("8", "3"),
        ("7", "2"),
    ]


def test_figures_wrap(tmp_path: Path) -> None:
    numbers = np.array([0.123456789, 12345.6789, math.nan, math.inf], np.float32)
    text = draw(tmp_path, [{"label": 3, "x": numbers}])
    (figures,) = re.findall(r'<dl class="figures">(.*?)</dl>', text.split("<h3>x</h3>")[1])
    cells = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", figures))
    assert (cells["NaN"], cells["infinite"]) == ("1", "1")
    assert (cells["1%"], cells["99%"]) == ("0.1235", "12,346")
    assert re.search(r"dl\.figures \{[^}]*flex-wrap: wrap", text)
    assert "<h2>1 class in label</h2>" in text
    assert "largest shard" in text


def test_existing_file_is_kept_without_overwrite(
    dataset: Path, place: Location, tmp_path: Path
) -> None:
    report = rs.stats(dataset)
    path = place / "page.html"
    path.put(b"mine")
    with pytest.raises(rs.OptionError) as caught:
        rs.save_html(report, path)
    assert caught.value.option == "overwrite"
    assert path.read() == b"mine"
    rs.save_html(report, path, overwrite=True)
    assert path.read().startswith(b"<!doctype html>")
    with pytest.raises(rs.FileAccessError):
        rs.save_html(report, tmp_path / "none" / "page.html")


def test_nothing_to_draw(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\x01other")
    page = Page(rs.save_html(rs.stats(tmp_path), tmp_path / "p.html").read().decode())
    assert re.search(r"\b1 record \(.* Example\) in 1 shard", page.words)
    assert "no findings" in page.words


@pytest.mark.parametrize("count", [9, 65_536])
def test_estimated_counts_are_marked(
    tmp_path: Path, numbered: SimpleNamespace, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    """The search for names stops at 65,536: there may be more."""
    found = rs.stats(numbered.write_shard(tmp_path / "a.tfrecord", [1]))
    found = replace(found, left_out=count)
    page = rs.save_html(found, tmp_path / "page.html").read().decode()
    print_stats(found)
    shown = capsys.readouterr().out
    is_least = count == 65_536
    for words in (page, shown):
        assert f"{count:,} more features" in words
        assert ("at least 65,536 " in words) == is_least

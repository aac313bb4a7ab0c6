"""The page of a verification: all that was found is on it, and nothing of it can do harm."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.examining.verification import VerifyReport
from recordsmith.stores import Location

_VOID = {"meta"}


class _Reader(HTMLParser):
    """What is in a page: its tags, well nested; its attributes; its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _read(path: Location) -> _Reader:
    reader = _Reader()
    reader.feed(path.read().decode())
    assert reader.open == []
    return reader


def _marks(path: Location) -> list[float]:
    """The places of the marks in the bars of files, in percent."""
    places = re.findall(r'<rect class="mark" x="([\d.]+)"', path.read().decode())
    return [float(place) / 4.8 for place in places]


@pytest.fixture
def damaged(tmp_path: Path, numbered: SimpleNamespace) -> Path:
    folder = numbered.packed(tmp_path / "set", {"train": [40, 30, 20], "test": [10]})
    one, two, three = sorted(folder.glob("train-*"))
    at = records_of(rs.open(one)).locate_record(20).offset + 14
    data = bytearray(one.read_bytes())
    data[at] ^= 1
    one.write_bytes(data)
    two.write_bytes(two.read_bytes()[:-9])
    three.unlink()
    return folder


def test_page_is_complete(place: Location, damaged: Path) -> None:
    report = rs.verify(damaged)
    path = rs.save_html(report, place / "report.html", title="My flowers")
    assert str(path) == str(place / "report.html")
    page = _read(path)
    assert f"{report.defect_count} defects" in page.text
    assert "My flowers" in page.text
    for error in report.defects:
        assert error.detail in page.text
        assert str(error.defect) in page.text
        assert Path(error.path or "").name in page.text
    for shard in report.shards:
        assert f"{shard.record_count:,} records" in page.text
    assert "one bit of" in page.text
    assert "Grey: skipped" in page.text
    assert any(40 < mark < 60 for mark in _marks(path))  # where the bit was flipped


def test_offsets_of_compressed_files_are_explained(
    tmp_path: Path, numbered: SimpleNamespace
) -> None:
    message = "offsets count decompressed bytes"
    path = tmp_path / "a.tfrecord.gz"
    plain = numbered.write_shard(tmp_path / "plain.tfrecord", range(200))
    at = [records_of(rs.open(plain)).locate_record(number).offset for number in (20, 100)]
    data = bytearray(plain.read_bytes())
    for offset in at:
        data[offset + 14] ^= 1
    path.write_bytes(gzip.compress(bytes(data)))
    report = rs.verify(path)
    assert [error.offset for error in report.defects] == at
    assert at[0] < report.shards[0].size_bytes < at[1]
    out = rs.save_html(report, tmp_path / "report.html")
    assert _read(out).text.count(message) == 1
    assert _marks(out) == pytest.approx(
        [10, 50], abs=1
    )  # by records: bytes would put the first too far
    plain.write_bytes(data)
    out = rs.save_html(rs.verify(plain), tmp_path / "of_plain.html")
    assert "decompressed data" not in _read(out).text


def test_a_good_dataset(tmp_path: Path, numbered: SimpleNamespace) -> None:
    report = rs.verify(numbered.packed(tmp_path / "set", {"train": [3]}), deep=True)
    page = _read(rs.save_html(report, tmp_path / "report.html"))
    assert "good" in page.text
    assert "Grey" not in page.text  # nothing lies anywhere
    assert "image was checked." in page.text
    assert "Defects" not in page.text


def test_page_does_not_claim_checks_that_were_not_made(tmp_path: Path, damaged: Path) -> None:
    page = _read(rs.save_html(rs.verify(damaged, deep=True), tmp_path / "damaged.html"))
    assert "image was checked." not in page.text
    assert "reached was checked." in page.text
    path = tmp_path / "notes.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(b"some notes")
    page = _read(rs.save_html(rs.verify(path, deep=True), tmp_path / "notes.html"))
    assert "image was checked." not in page.text
    assert "with exceptions:" in page.text
    assert "not Examples" in page.text


def test_text_from_files_is_escaped(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>\x1b[31m\u202e\ud800'
    error = rs.CorruptDataError(rs.Defect.FEATURE_VALUE, evil, path=f'/a/"><img src=x>{evil}')
    report = VerifyReport(defects=[error], defect_count=1, notices=[error], unchecked=[evil])
    path = rs.save_html(report, tmp_path / "report.html", title=evil)
    page = _read(path)
    assert not page.tags & {"script", "img"}
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    assert '<script>alert("x")</script>' in page.text


def test_files_with_the_same_name_are_distinguished(tmp_path: Path) -> None:
    folders = [tmp_path / place for place in ("a/x", "b/x", "c")]
    for folder in folders:
        folder.mkdir(parents=True)
        with rs.ShardWriter(folder / "same.tfrecord") as writer:
            writer.write(b"some notes")
        with (folder / "same.tfrecord").open("ab") as file:
            file.write(b"cut")
    report = rs.verify([folder / "same.tfrecord" for folder in folders])
    text = rs.save_html(report, tmp_path / "report.html").read().decode()
    names = re.findall(r"<tr><td>([^<]*)</td>", text)
    assert names == ["a/x/same.tfrecord", "b/x/same.tfrecord", "c/same.tfrecord"] * 2


def test_file_that_is_not_a_tfrecord_is_marked_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"
    )
    report = rs.verify(path)
    text = rs.save_html(report, tmp_path / "report.html").read().decode()
    (bar,) = re.findall(r"<svg.*?</svg>", text)
    assert re.findall(r'class="(\w+)" x="0.0" y="0.0" width="(\d+)', bar) == [("mark", "480")]
    assert "`" in report.defects[0].detail
    assert "`" not in text
    assert "<code>git lfs pull</code>" in text


def test_many_defects_keep_the_page_small(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    error = rs.CorruptDataError(rs.Defect.PAYLOAD_CRC, "x" * 100_000, path=path, record=1, offset=5)
    report = VerifyReport(defects=[error] * 5000, defect_count=70_000)
    out = rs.save_html(report, tmp_path / "report.html")
    assert out.size() < 5_000_000
    assert "69,500 more" in _read(out).text

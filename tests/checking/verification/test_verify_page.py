"""The page of a verification: all that was found, and where; names of files are short."""

from __future__ import annotations

import gzip
import html
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.checking import VerifyReport
from recordsmith.checking.verification.verify_report import distinct_names
from recordsmith.dataset import records_of

from ...places import flip

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def _page(report: VerifyReport, folder: Path) -> str:
    page = rs.save_html(report, folder / "report.html", overwrite=True)
    return html.unescape(page.read().decode())


def _marks(page: str) -> list[float]:
    """The places of the marks in the bars of files, in percent."""
    return [float(place) / 4.8 for place in re.findall(r'<rect class="mark" x="([\d.]+)"', page)]


def test_a_damaged_dataset(tmp_path: Path, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(tmp_path / "set", {"train": [40, 30, 20], "test": [10]})
    one, two, three = sorted(folder.glob("train-*"))
    flip(one, records_of(rs.open(one)).locate_record(20).offset + 14)
    two.write_bytes(two.read_bytes()[:-9])
    three.unlink()
    report = rs.verify(folder, deep=True)
    page = _page(report, tmp_path)
    assert f"{report.defect_count} defects" in page
    for error in report.defects:
        for text in (error.detail, str(error.defect), Path(error.path or "").name):
            assert re.sub("`([^`]+)`", r"<code>\1</code>", text) in page
    for shard in report.shards:
        assert f"{shard.record_count:,} records" in page
    assert "Grey: skipped" in page
    assert "reached was checked." in page
    assert any(40 < mark < 60 for mark in _marks(page))  # where the bit was flipped


def test_offsets_of_compressed_files(tmp_path: Path, numbered: SimpleNamespace) -> None:
    plain = numbered.write_shard(tmp_path / "plain.tfrecord", range(200))
    at = [records_of(rs.open(plain)).locate_record(number).offset for number in (20, 100)]
    data = bytearray(plain.read_bytes())
    for offset in at:
        data[offset + 14] ^= 1
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(bytes(data)))
    report = rs.verify(tmp_path / "a.tfrecord.gz")
    assert [error.offset for error in report.defects] == at
    page = _page(report, tmp_path)
    assert page.count("offsets count decompressed bytes") == 1
    assert _marks(page) == pytest.approx([10, 50], abs=1)  # by records, not by bytes


def test_what_was_checked_is_stated(tmp_path: Path, numbered: SimpleNamespace) -> None:
    good = numbered.packed(tmp_path / "set", {"train": [3]})
    page = _page(rs.verify(good, deep=True), tmp_path)
    assert "image was checked." in page
    assert "Grey" not in page
    with rs.ShardWriter(tmp_path / "notes.tfrecord") as writer:
        writer.write(b"some notes")
    page = _page(rs.verify(tmp_path / "notes.tfrecord", deep=True), tmp_path)
    assert "with exceptions:" in page
    assert "not Examples" in page


def test_a_file_that_is_not_a_tfrecord_is_marked_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{0:064}\nsize 9\n")
    page = _page(rs.verify(path), tmp_path)
    assert re.findall(r'class="(\w+)" x="0.0" y="0.0" width="(\d+)', page) == [("mark", "480")]
    assert "<code>git lfs pull</code>" in page


def test_untrusted_text_and_many_defects(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>\x1b[31m\u202e\ud800' + "x" * 100_000
    error = rs.CorruptDataError(rs.Defect.PAYLOAD_CRC, evil, path=f'/a/"><img src=x>{evil[:99]}')
    report = VerifyReport(defects=[error] * 5000, defect_count=70_000, unchecked=[evil])
    out = rs.save_html(report, tmp_path / "report.html", title=evil)
    page = out.read().decode()
    assert len(page) < 5_000_000
    assert not any(text in page for text in ("<script", "<img", "\x1b", "\u202e"))
    assert "69,500 more" in page


@given(st.sets(PATHS | PATHS.map("/{}".format) | PATHS.map("memory://{}".format)))
def test_names_of_files_are_unique(paths: set[str]) -> None:
    names = distinct_names(paths)
    assert names.keys() == paths
    assert len(set(names.values())) == len(paths)
    assert all(path.endswith(name) for path, name in names.items())

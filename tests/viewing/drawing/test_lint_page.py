"""The page of `lint`: small images of what is wrong, nothing loaded, untrusted text escaped."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image

import recordsmith as rs
from recordsmith.stores import Location
from recordsmith.viewing.drawing import report_page

from ...checking.linting.planted import LAYOUTS, fruit_folders, photo, save, voc_pets, write_xml


def _images(page: str) -> list[Image.Image]:
    found = re.findall(r'<img src="data:image/jpeg;base64,([^"]+)"', page)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in found]


def _page(report: object, place: Location) -> str:
    return rs.save_html(report, place / "lint.html").read().decode()  # type: ignore[arg-type]


def test_each_layout_has_a_page(tmp_path: Path, place: Location) -> None:
    for name, layout in LAYOUTS.items():
        source = layout.make(tmp_path / name)
        for fault in layout.faults:
            fault.plant(tmp_path / name)
        report = rs.lint(source)
        page = _page(report, place / name)
        for found in report.findings:
            assert f"<code>{found.check}</code>" in page
        images = _images(page)
        assert images
        assert all(max(image.size) <= 200 for image in images)
        assert len(page) < 1_000_000


def test_duplicates_are_next_to_each_other(tmp_path: Path, place: Location) -> None:
    source = fruit_folders(tmp_path / "fruit")
    save(tmp_path / "fruit/train/apple/x.jpg", photo(1))
    page = _page(rs.lint(source), place)
    assert page.count('<figure class="pair">') == 1
    one, other = (np.asarray(image.resize((24, 16)), np.int64) for image in _images(page))
    assert abs(one - other).mean() < 8


def test_the_box_at_fault_is_red(tmp_path: Path, place: Location) -> None:
    source = voc_pets(tmp_path / "pets")
    write_xml(tmp_path / "pets", "00", [("cat", 24, 16, 120, 48)])
    (image,) = _images(_page(rs.lint(source), place))
    edge = np.asarray(image)[40:60, 30:60].reshape(-1, 3).astype(int)
    assert ((edge[:, 0] > 150) & (edge[:, 1] < 120) & (edge[:, 2] < 120)).any()


def test_the_page_is_bounded(tmp_path: Path, place: Location, monkeypatch: object) -> None:
    for number in range(60):
        save(tmp_path / "many/a" / f"{number}.jpg", photo(7))
    report = rs.lint(rs.ImageFolder(tmp_path / "many"))
    assert len(_images(_page(report, place))) == 2 * report_page._DRAWN_EXAMPLES


def test_a_page_of_files_that_are_gone_has_no_images(tmp_path: Path, place: Location) -> None:
    source = fruit_folders(tmp_path / "fruit")
    save(tmp_path / "fruit/train/apple/x.jpg", photo(1))
    report = rs.lint(source)
    (tmp_path / "fruit/train/apple/x.jpg").unlink()
    (tmp_path / "fruit/train/apple/00.jpg").unlink()
    page = _page(report, place)
    assert not _images(page)
    assert "train/apple/x.jpg" in page

"""The plot and the page of a forecast: well-formed, complete, and inside their frame."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.forecasting import ForecastReport, save_plot

from ..raising import raises

HOSTILE = "<script>alert(1)</script>\x1b[31m & name"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(photos: Path) -> ForecastReport:
    return rs.forecast(
        rs.ImageFolder(photos), sample_count=30, qualities=(95, 60), measure_speed=False
    )


def test_svg_has_every_variant_inside_its_frame(report: ForecastReport, tmp_path: Path) -> None:
    path = save_plot(report, tmp_path / "plot.svg", title=HOSTILE)
    root = ET.fromstring(path.read())
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {variant.label for variant in report.variants} <= set(texts)
    assert any("script" in (text or "") for text in texts)
    assert not list(root.iter(f"{SVG}script"))
    for element in root.iter(f"{SVG}rect"):
        sides = [float(element.attrib[name]) for name in ("x", "y", "width", "height")]
        assert 0 <= sides[0] <= sides[0] + sides[2] <= width
        assert 0 <= sides[1] <= sides[1] + sides[3] <= height
    bars = [element for element in root.iter(f"{SVG}rect") if element.attrib["height"] == "18.0"]
    lengths = [float(bar.attrib["width"]) for bar in bars]
    values = [variant.size_bytes.value for variant in report.variants]
    np.testing.assert_allclose(
        np.array(lengths) / max(lengths), np.array(values) / max(values), atol=2e-3
    )
    dots = list(root.iter(f"{SVG}circle"))
    lossy = [v for v in report.variants if v.lossy_count and "shorter_side" not in v.options]  # type: ignore[operator]
    assert len(dots) == 3 + 4 * len(lossy)  # legend; mean and lowest of two measures


def test_png_has_the_shapes_of_the_svg(report: ForecastReport, tmp_path: Path) -> None:
    path = save_plot(report, tmp_path / "plot.png")
    with Image.open(str(path)) as image:
        assert image.width == 2400
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or ()}
    assert {(0x15, 0x70, 0x49), (0xB9, 0xCD, 0xE2), (255, 255, 255)} <= colours


def test_plots_without_images_have_no_charts(tmp_path: Path) -> None:
    report = rs.forecast(rs.Rows([{"a": number} for number in range(20)]))
    root = ET.fromstring(save_plot(report, tmp_path / "plot.svg").read())
    assert not list(root.iter(f"{SVG}circle"))


@pytest.mark.parametrize("name", ["plot.jpg", "plot"])
def test_other_suffixes_are_refused(report: ForecastReport, tmp_path: Path, name: str) -> None:
    with raises(rs.OptionError, option="out", value=tmp_path / name):
        save_plot(report, tmp_path / name)


def test_files_are_only_replaced_on_request(report: ForecastReport, tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_text("mine")
    with raises(rs.OptionError):
        save_plot(report, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text() == "mine"
    save_plot(report, tmp_path / "plot.svg", overwrite=True)


def test_the_page_has_the_table_and_escapes_text(report: ForecastReport, tmp_path: Path) -> None:
    path = rs.save_html(report, tmp_path / "page.html", title=HOSTILE)
    page = path.read().decode()
    assert "<script" not in page
    for variant in report.variants:
        assert page.count(f">{variant.label}<") >= 2  # in the plot and the table


def test_reports_are_json_and_short(report: ForecastReport) -> None:
    import json

    document: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    assert document["samples"] == 240
    assert [each["name"] for each in document["variants"]] == [v.name for v in report.variants]
    value, low, high = report.variants[1].size_bytes
    assert document["variants"][1]["size_bytes"] == {"value": value, "low": low, "high": high}
    assert len(repr(report)) < 400
    assert "<table>" in report._repr_html_()

"""The plot and the page of a forecast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.forecasting import ForecastReport, save_plot

from ..raising import raises

HOSTILE = "<script>alert(1)</script>\x1b[31m & name"


@pytest.fixture(scope="module")
def report(photos: Path) -> ForecastReport:
    return rs.forecast(rs.ImageFolder(photos), sample_count=30, qualities=(95, 60))


def test_the_plot_has_a_bar_for_each_variant(report: ForecastReport, tmp_path: Path) -> None:
    path = save_plot(report, tmp_path / "plot.png", title=HOSTILE)
    with Image.open(str(path)) as image:
        pixels = np.asarray(image.convert("RGB"))
    is_bar = np.logical_or.reduce(
        [(pixels == colour).all(axis=2) for colour in ((0x4A, 0x7F, 0xB5), (0xB9, 0xCD, 0xE2))]
    )
    lengths = is_bar.sum(axis=1)
    starts = np.flatnonzero((lengths[1:] > 0) & (lengths[:-1] == 0)) + 2
    values = np.array([variant.size_bytes.value for variant in report.variants])
    np.testing.assert_allclose(lengths[starts] / lengths.max(), values / values.max(), atol=0.005)


@pytest.mark.parametrize("name", ["plot.jpg", "plot"])
def test_other_suffixes_are_refused(report: ForecastReport, tmp_path: Path, name: str) -> None:
    with raises(rs.OptionError, option="out", value=tmp_path / name):
        save_plot(report, tmp_path / name)


def test_files_are_only_replaced_on_request(report: ForecastReport, tmp_path: Path) -> None:
    (tmp_path / "plot.png").write_text("mine")
    with raises(rs.OptionError):
        save_plot(report, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_text() == "mine"
    save_plot(report, tmp_path / "plot.png", overwrite=True)


def test_the_page_has_the_table_and_escapes_text(report: ForecastReport, tmp_path: Path) -> None:
    path = rs.save_html(report, tmp_path / "page.html", title=HOSTILE)
    page = path.read().decode()
    assert "<script" not in page
    for variant in report.variants:
        assert f">{variant.label}<" in page


def test_reports_are_json_and_short(report: ForecastReport) -> None:
    document: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    assert document["samples"] == 240
    assert [each["name"] for each in document["variants"]] == [v.name for v in report.variants]
    value, low, high = report.variants[1].size_bytes
    assert document["variants"][1]["size_bytes"] == {"value": value, "low": low, "high": high}
    assert len(repr(report)) < 400
    assert "<table>" in report._repr_html_()

"""`rs.bench`: it loads what was asked for, reports its stages, and raises as a loader does.

How fast anything is is not tested.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.loading import BenchReport
from recordsmith.loading.loader_stats import LoaderStats

from ...raising import raises


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, images: Any) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(20):
            image = images.jpeg(number, width=80, height=60)
            writer.write_example({"image/encoded": image, "label": number})
    return path


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordsmith.loading.loader.processor_count", lambda: 2)


def test_images_are_measured(large: Path) -> None:
    reports: list[BenchReport] = []
    report = rs.bench(large, batch_size=4, size=8, seconds=0.6, on_update=reports.append)
    assert (report.image_key, report.image) == ("image/encoded", "8x8, fit=resize")
    assert (report.record_count, report.size_bytes) == (20, large.stat().st_size)
    assert (report.measured.thread_count, report.order, report.skipped) == (2, "shuffled", ())
    measured = report.measured
    assert measured.record_count == 4 * measured.batch_count >= 4
    assert measured.decoding_seconds > 0
    assert report.cpu_seconds > 0
    record_bytes = measured.byte_count / measured.record_count
    assert record_bytes == pytest.approx(large.stat().st_size / 20 - 16, rel=0.1)
    assert sum(report.shares.values()) == pytest.approx(1)
    assert reports[0].measured.batch_count == 0
    assert reports[-1] == report
    assert [each.is_complete for each in reports] == [False] * (len(reports) - 1) + [True]
    assert report.advice


def test_a_batch_is_measured_however_short_the_time(large: Path) -> None:
    report = rs.bench(large, batch_size=4, size=8, seconds=1e-9)
    assert report.measured.batch_count >= 1
    assert report.is_complete


def test_damaged_records(tmp_path: Path, images: Any) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        for number in range(6):
            image = images.jpeg(number, width=40, height=30)
            writer.write_example({"image/encoded": image[:150] if number == 3 else image})
    with raises(rs.CorruptDataError, defect=rs.Defect.UNREADABLE_IMAGE, record=3):
        rs.bench(tmp_path / "x.tfrecord", batch_size=2, size=8, seconds=0.2)
    report = rs.bench(tmp_path / "x.tfrecord", batch_size=2, size=8, seconds=0.5, skip_errors=1)
    (skipped,) = report.skipped
    assert skipped.record == 3
    (finding,) = report.content().findings
    assert [place.record for place in finding.places] == [3]


def test_choice_of_images(tmp_path: Path, images: Any, large: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        big, small = images.jpeg(width=40, height=30), images.jpeg()
        writer.write_example({"a": small, "z": big, "z_mask": big + bytes(9999), "word": "x"})
    assert rs.bench(path, size=8, seconds=0.05).image_key == "z"
    assert rs.bench(path, size=8, seconds=0.05, key="a").image_key == "a"
    for key in ("word", "b"):
        with pytest.raises(rs.OptionError) as caught:
            rs.bench(path, key=key)
        assert (caught.value.option, caught.value.value) == ("key", repr(key))
        assert "'a', 'z'" in caught.value.remedy
    assert rs.bench(large, size=8, fit="pad", seconds=0.05).image.startswith("longer side 8")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "9"])
def test_invalid_seconds(large: Path, seconds: Any) -> None:
    with raises(rs.OptionError, option="seconds", value=seconds):
        rs.bench(large, seconds=seconds)


def test_no_records(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord"):
        pass
    with pytest.raises(rs.OptionError, match="no records"):
        rs.bench(tmp_path / "x.tfrecord")


def example_report(**changes: Any) -> BenchReport:
    measured = LoaderStats(
        elapsed_seconds=1.0,
        waited_seconds=1.0,
        decoding_seconds=1.5,
        batch_count=10,
        record_count=1000,
        thread_count=2,
        processor_count=2,
    )
    report = BenchReport(
        record_count=5000,
        size_bytes=10**8,
        batch_size=32,
        image_key="image/encoded",
        image="224x224, fit=resize",
        order="shuffled",
        total_seconds=10.0,
        measured=measured,
    )
    return replace(report, **changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Decoding records is the bottleneck: the loop waited 100% of the time"),
        ({}, "batch of 32 that takes longer than 32 ms will not wait"),
        ({"record_count": 20}, "batch of 20 that takes longer than 20 ms will not wait"),
        ({}, "Files in the page cache are read from memory"),
    ],
)
def test_advice_names_what_limits_the_loader(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in " ".join(example_report(**changes).advice)


def test_advice_needs_a_measurement() -> None:
    report = example_report(measured=LoaderStats())
    assert report.advice == ()
    assert report.to_json()["measured"]["records_per_second"] == 0
    assert report.content().tables

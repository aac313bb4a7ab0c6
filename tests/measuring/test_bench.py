"""`rs.bench`: it tries what it says, in the time that it has, and tells faults as a loader does.

How fast anything is is not tested.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import Shard
from recordsmith.image import store_image
from recordsmith.measuring import BenchReport
from recordsmith.measuring.alternatives import Alternative, alternatives_to
from recordsmith.measuring.page_cache import cached_share


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, images: Any) -> Path:
    """Images that are worth packing at a smaller side for 8 pixels, and labels."""
    path = tmp_path_factory.mktemp("large") / "large.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(20):
            image = images.jpeg(number, width=80, height=60)
            writer.write_example({"image/encoded": image, "label": number})
    return path


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordsmith.loading.loader.processor_count", lambda: 2)


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is tried, however slow the machine is."""
    module = sys.modules["recordsmith.measuring.bench"]
    monkeypatch.setattr(module, "_SHORTEST_SECONDS", float("-inf"))


@pytest.mark.usefixtures("_patient")
def test_everything_is_measured_twice(large: Path) -> None:
    report = rs.bench(large, batch_size=4, size=8, seconds=1.0)
    assert [(trial.name, trial.thread_count, trial.order) for trial in report.trials] == [
        ("requested", 2, "shuffled"),
        ("threads", 1, "shuffled"),
        ("order", 2, "in order"),
        ("sample", 2, "shuffled"),
        ("smaller", 2, "shuffled"),
    ]
    for trial in report.trials:
        assert len(trial.rounds) == 2
        for measured in trial.rounds:
            assert measured.batch_count >= 1
            assert measured.record_count == 4 * measured.batch_count
            assert measured.decoding_seconds > 0
    assert (report.image_key, report.image) == ("image/encoded", "8x8, fit=resize")
    assert (report.record_count, report.size_bytes) == (20, large.stat().st_size)
    assert (report.activity, report.skipped) == ("", ())
    assert report.advice
    requested = report.requested.total
    assert requested.byte_count / requested.record_count == pytest.approx(
        large.stat().st_size / 20 - 16, rel=0.1
    )


@pytest.mark.usefixtures("_patient")
def test_sample_is_smaller_and_removed_afterwards(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = rs.bench(large, batch_size=4, size=14, seconds=0.5)
    smaller = report.trials[-1]
    assert (smaller.name, smaller.shorter_side) == ("smaller", 16)
    assert report.sample is not None
    assert report.sample.smaller_byte_count < report.sample.byte_count
    assert report.sample.count <= 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_patient")
def test_tiles_are_tried_for_crops(tmp_path: Path, images: Any) -> None:
    """They are measured where the feature crops, the files are JPEGs, and have no tiles yet."""
    files = [images.jpeg(number, width=400, height=320) for number in range(8)]
    tiled = [store_image(data, rs.ImageOptions(tiles=True)).data for data in files]
    pngs = [images.encode(images.noise(40, 30), "PNG")] * 8
    for name, those in (("files", files), ("tiled", tiled), ("png", pngs)):
        with rs.ShardWriter(tmp_path / name) as writer:
            for data in those:
                writer.write_example({"image/encoded": data})
    report = rs.bench(tmp_path / "files", batch_size=4, size=64, fit="crop-or-pad", seconds=1.0)
    trials = {trial.name: trial for trial in report.trials}
    assert [trial.name for trial in report.trials[-3:]] == ["sample", "tiles", "smaller"]
    assert report.sample is not None
    count = report.sample.count  # as many as there was time for
    assert report.sample.byte_count == sum(map(len, files[:count]))
    assert report.sample.tiles_byte_count == sum(map(len, tiled[:count]))
    shares = [trials[name].decoded_share for name in ("requested", "sample", "tiles")]
    assert 1 > shares[0] == shares[1] >= shares[2] > 0
    assert trials["requested"].cpu_microseconds > 0
    for name, fit in (("files", "resize"), ("tiled", "crop-or-pad"), ("png", "crop-or-pad")):
        report = rs.bench(tmp_path / name, batch_size=4, size=260, fit=fit, seconds=0.2)
        assert report.sample is None
        assert (report.requested.decoded_share == 1) is (name != "tiled")


def test_without_time_only_the_requested_options_are_measured(large: Path) -> None:
    report = rs.bench(large, batch_size=4, size=8, seconds=1e-9)
    assert [(trial.name, len(trial.rounds)) for trial in report.trials] == [("requested", 1)]
    assert report.requested.total.batch_count >= 1


def test_small_images_are_not_packed_smaller(large: Path) -> None:
    report = rs.bench(large, batch_size=4, size=50, seconds=0.2)
    assert report.sample is None
    assert {"sample", "smaller"}.isdisjoint(trial.name for trial in report.trials)


@pytest.mark.usefixtures("_patient")
def test_progress_is_reported(large: Path) -> None:
    reports: list[BenchReport] = []
    report = rs.bench(large, batch_size=4, size=8, seconds=0.5, on_update=reports.append)
    assert reports[-1] == report
    assert reports[0].trials == ()
    assert [one.elapsed_seconds for one in reports] == sorted(
        one.elapsed_seconds for one in reports
    )
    activities = list(dict.fromkeys(one.activity for one in reports))
    assert activities[0] == "as given"
    assert {"1 thread", "in order", "converting some images", ""} <= {*activities}
    counts = [sum(len(trial.rounds) for trial in one.trials) for one in reports]
    assert counts == sorted(counts)


@pytest.mark.usefixtures("_patient")
def test_results_survive_an_interruption(large: Path) -> None:
    reports: list[BenchReport] = []

    def stop(report: BenchReport) -> None:
        reports.append(report)
        if len(report.trials) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.bench(large, batch_size=4, size=8, seconds=0.5, on_update=stop)
    assert reports[-1].requested.records_per_second > 0
    assert reports[-1].activity == "1 thread"
    assert not reports[-1].to_json()["is_complete"]


def test_columns(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        for number in range(40):
            kind = {"either": 1} if number % 2 else {"either": "word"}
            writer.write_example({"id": number, "list": list(range(number % 3)), **kind})
    report = rs.bench(tmp_path / "x.tfrecord", batch_size=8, seconds=0.2)
    assert (report.image_key, report.image) == (None, "")
    assert "records/s" in " ".join(report.advice)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.usefixtures("_patient")
def test_compressed_shards(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "x"
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in range(40):
            writer.write_example({"id": number})
    report = rs.bench(path, batch_size=8, seconds=0.2)
    assert report.compression == compression
    assert report.requested.order == "buffer"
    assert {trial.order for trial in report.trials if trial.name == "order"} == {"in order"}
    in_order = rs.bench(path, batch_size=8, shuffle=False, seconds=0.2)
    assert {trial.order for trial in in_order.trials if trial.name == "order"} == {"buffer"}
    with pytest.raises(rs.OptionError) as caught:
        rs.bench(path, batch_size=8, shuffle=True)
    assert caught.value.option == "shuffle"


def test_one_record_and_batches_larger_than_the_dataset(tmp_path: Path, images: Any) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({"image/encoded": images.jpeg()})
    report = rs.bench(tmp_path / "x.tfrecord", batch_size=1000, size=8, seconds=0.1)
    measured = report.requested.total
    assert measured.record_count == measured.batch_count >= 1
    assert "each batch was an epoch of 1" in " ".join(report.advice)


def test_no_records(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord"):
        pass
    with pytest.raises(rs.OptionError, match="no records"):
        rs.bench(tmp_path / "x.tfrecord")


def test_damaged_records(tmp_path: Path, images: Any) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        for number in range(6):
            image = images.jpeg(number, width=40, height=30)
            writer.write_example({"image/encoded": image[:150] if number == 3 else image})
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.bench(tmp_path / "x.tfrecord", batch_size=2, size=8, seconds=0.2)
    assert (caught.value.defect, caught.value.record) == (rs.Defect.UNREADABLE_IMAGE, 3)
    report = rs.bench(tmp_path / "x.tfrecord", batch_size=2, size=8, seconds=0.5, skip_errors=1)
    (skipped,) = report.skipped
    assert skipped.record == 3
    assert report.sample is None or report.sample.count == 5


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
    with pytest.raises(rs.OptionError) as caught:
        rs.bench(large, seconds=seconds)
    assert (caught.value.option, caught.value.value) == ("seconds", repr(seconds))


def test_other_ways(monkeypatch: pytest.MonkeyPatch, large: Path) -> None:
    dataset = rs.open(large)
    requested = Alternative(rs.bench(large, size=8, seconds=0.05).requested, dataset)

    def tried(processor_count: int) -> list[tuple[int, str]]:
        return [
            (alternative.trial.thread_count, alternative.trial.order)
            for alternative in alternatives_to(requested, processor_count)
        ]

    assert tried(6) == [
        (1, "shuffled"), (4, "shuffled"), (6, "shuffled"), (2, "in order"),
    ]  # fmt: skip
    assert tried(1) == [(1, "shuffled"), (2, "in order")]
    monkeypatch.setattr(rs.Dataset, "__len__", lambda _: 1_000_000)
    assert (2, "blocks") in tried(2)


def test_page_cache_is_queried_without_reading(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1 << 20))
    (tmp_path / "empty").write_bytes(b"")
    shards = [Shard(tmp_path / name, "") for name in ("x", "empty")]
    assert cached_share(shards) in (1.0, None)  # it was written just now
    assert cached_share(shards[1:]) is None

"""`rs.forecast`: the figures of every variant are those of packing everything so."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import ImageOptions
from recordsmith.support.errors import MissingExtraError
from recordsmith.writing.forecasting.fidelity import structural_similarity
from recordsmith.writing.forecasting.forecast_report import ForecastReport
from recordsmith.writing.forecasting.stored_sample import SampleStorage

from ...raising import raises
from .conftest import COUNT

QUICK: dict[str, Any] = {"qualities": (80,), "shorter_sides": (48,)}
TUTORIAL = {"original": 1_206, "jpeg-100": 579.5, "jpeg-95": 402.4}
"""KB of TFRecord files, by https://medium.com/ymedialabs-innovation (August 2018)."""


def packed_bytes(source: Any, out: Path, options: dict[str, Any], **others: Any) -> int:
    """The bytes of all shards that `pack` writes."""
    shutil.rmtree(out, ignore_errors=True)
    return rs.pack(source, out, image_options=ImageOptions(**options), **others).bytes_out


def names(report: ForecastReport) -> list[str]:
    return [variant.name for variant in report.variants]


def check_against_packing(report: ForecastReport, source: Any, out: Path, **others: Any) -> None:
    """Every variant of a forecast of everything has the size that `pack` writes."""
    assert report.is_exact
    for variant in report.variants:
        expected = packed_bytes(source, out, dict(variant.options), **others)
        assert variant.size_bytes == (expected,) * 3, variant.name


# -- sizes -----------------------------------------------------------------------------------------


def test_a_forecast_of_everything_is_what_pack_writes(photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("oxipng")
    pytest.importorskip("mozjpeg_lossless_optimization")
    source = rs.ImageFolder(photos)
    report = rs.forecast(source, sample_count=COUNT, **QUICK)
    assert names(report) == [
        *("original", "raw", "png", "shrunk", "tiles", "jpeg-80", "jpeg-80-all", "side-48")
    ]
    assert (report.sample_count, report.sampled_count, report.image_count) == (COUNT,) * 3
    assert report.source_bytes == sum(path.stat().st_size for path in photos.rglob("*.*"))
    check_against_packing(report, source, tmp_path / "out")
    sizes = {variant.name: variant.size_bytes.value for variant in report.variants}
    assert report.variant("raw").ratio == sizes["raw"] / sizes["original"]


def test_95_of_100_seeds_are_within_their_intervals(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = rs.ImageFolder(photos)
    stored: dict[str, Any] = {}
    store = SampleStorage.store

    def remembered(self: SampleStorage, item: Any) -> Any:
        name = item.sample.name
        if name not in stored:
            stored[name] = store(self, item)
        return stored[name]

    monkeypatch.setattr(SampleStorage, "store", remembered)
    exact = rs.forecast(source, sample_count=COUNT, **QUICK)
    hits = dict.fromkeys(names(exact), 0)
    for seed in range(100):
        report = rs.forecast(source, sample_count=120, seed=seed, **QUICK)
        assert report.sampled_count == 120
        for variant in report.variants:
            low, high = variant.size_bytes[1:]
            hits[variant.name] += low <= exact.variant(variant.name).size_bytes.value <= high
    assert {name: hit for name, hit in hits.items() if hit < 95} == {}


def test_sizes_are_those_of_the_tutorial(shared_data: Path) -> None:
    source = rs.ImageFiles(
        shared_data / "sources" / "Prasad9+TFRecord_Images" / "Images", class_pattern="^[a-z]+"
    )
    report = rs.forecast(source, qualities=(100, 95), shorter_sides=(), keys="rows-cols")
    for name, expected in TUTORIAL.items():
        assert report.variant(name).size_bytes.value / 1000 == pytest.approx(expected, rel=0.005)


# -- fidelity --------------------------------------------------------------------------------------


def test_fidelity_is_that_of_the_packed_images(photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("oxipng")
    pytest.importorskip("mozjpeg_lossless_optimization")
    source = rs.ImageFolder(photos)
    report = rs.forecast(source, sample_count=COUNT, **QUICK)
    options = ImageOptions("jpeg", quality=80)
    rs.pack(source, tmp_path / "out", image_options=options, shuffle=False)
    found = []
    for example in rs.open(tmp_path / "out"):
        path = photos / example["image/filename"][0].decode()
        if path.suffix == ".png":
            stored = Image.open(io.BytesIO(example["image/encoded"][0]))
            found.append(structural_similarity(*map(np.asarray, (Image.open(path), stored))))
    variant = report.variant("jpeg-80")
    assert variant.lossy_count == len(found) == COUNT // 5
    found += [1.0] * (COUNT - len(found))  # JPEGs, which are kept
    assert variant.ssim == pytest.approx(np.mean(found), abs=0.01)  # decoders differ
    assert variant.lowest_ssim == pytest.approx(min(found), abs=0.01)
    assert min(found) < np.mean(found) < 1
    again = report.variant("jpeg-80-all")
    assert again.lossy_count == COUNT
    assert again.ssim is not None
    assert variant.ssim is not None
    assert again.ssim < variant.ssim
    lossless = ("original", "raw", "png", "shrunk", "tiles")
    assert [report.variant(name).lossy_count for name in lossless] == [0] * 5


# -- variants --------------------------------------------------------------------------------------


def test_shrinking_is_left_out_without_its_packages(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(data: bytes) -> bytes:
        raise MissingExtraError("shrink", "pyoxipng")

    for function in ("shrink_jpeg", "shrink_png"):
        monkeypatch.setattr(f"recordsmith.image.storing.store.{function}", missing)
    report = rs.forecast(rs.ImageFolder(photos), sample_count=20, **QUICK)
    assert "shrunk" not in names(report)
    assert [notice for notice in report.notices if "pyoxipng" in notice]


def test_alpha_is_dropped_and_the_option_is_named(images: Any, tmp_path: Path) -> None:
    for number in range(12):
        image = images.noise(30, 20, "RGBA", seed=number)
        image.putalpha(100)
        (tmp_path / "in" / "a").mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / "in" / "a" / f"{number}.png")
    source = rs.ImageFolder(tmp_path / "in")
    report = rs.forecast(source, **QUICK)
    assert report.variant("jpeg-80").options == {"store": "jpeg", "quality": 80, "drop_alpha": True}
    check_against_packing(report, source, tmp_path / "out")


def test_images_that_cannot_be_stored_so_count_as_left_out(images: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    for number in range(12):
        images.noise(30, 20, seed=number).save(folder / f"{number}.png")
    Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30)).save(folder / "deep.png")
    source = rs.ImageFolder(tmp_path / "in")
    report = rs.forecast(source, **QUICK)
    jpeg = report.variant("jpeg-80")
    assert (jpeg.refused_count, bool(jpeg.refusal)) == (1, True)
    assert report.unreadable_count == report.original.refused_count == 0
    assert report.recommended is not jpeg
    out = tmp_path / "out"
    assert jpeg.size_bytes.value == packed_bytes(source, out, {**jpeg.options}, skip_errors=True)  # type: ignore[dict-item]
    (folder / "deep.png").unlink()
    alike = rs.forecast(source, **QUICK)
    assert jpeg.ratio == alike.variant("jpeg-80").ratio
    assert jpeg.ssim == alike.variant("jpeg-80").ssim


def test_unreadable_images_are_named_and_not_fatal(images: Any, tmp_path: Path) -> None:
    root = images.make_folder(tmp_path / "in", {"a": 10, "b": 5})
    (root / "a" / "words.jpg").write_text("words, no image")
    whole = images.encode(images.noise(40, 30), "PNG")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    (root / "b" / "damaged.png").write_bytes(damaged)
    source = rs.ImageFolder(root)
    report = rs.forecast(source, **QUICK)
    assert report.unreadable_count == 2
    assert [each.partition(":")[0] for each in report.unreadable] == [
        *("a/words.jpg", "b/damaged.png")
    ]
    out = tmp_path / "out"
    assert report.original.size_bytes.value == packed_bytes(source, out, {}, skip_errors=True)


# -- sources ---------------------------------------------------------------------------------------


def test_without_images_only_the_size_is_forecast(tmp_path: Path) -> None:
    rows = [{"number": number, "text": "x" * (number % 50)} for number in range(400)]
    report = rs.forecast(rs.Rows(rows), sample_count=50)
    assert names(report) == ["original"]
    assert report.image_count == 0
    written = rs.pack(rs.Rows(rows), tmp_path / "out").bytes_out
    assert report.original.size_bytes.value == pytest.approx(written, rel=0.01)
    assert report.original.size_bytes.low <= written <= report.original.size_bytes.high


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("sample_count", 9),
        ("sample_count", "many"),
        ("seed", -1),
        ("qualities", (101,)),
        ("qualities", 90),
        ("qualities", "90"),
        ("shorter_sides", (0,)),
        ("threads", 0),
    ],
)
def test_invalid_options_are_reported(photos: Path, option: str, value: Any) -> None:
    with raises(rs.OptionError, option=option):
        rs.forecast(rs.ImageFolder(photos), **{option: value})


def test_a_source_without_a_readable_sample_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "words.jpg").write_text("words")
    with raises(rs.SourceError, problem_count=1):
        rs.forecast(rs.ImageFolder(tmp_path))


def test_progress_reaches_its_total(photos: Path) -> None:
    seen: list[tuple[int, int]] = []
    rs.forecast(
        rs.ImageFolder(photos),
        sample_count=20,
        progress=lambda done, total: seen.append((done, total)),
        **QUICK,
    )
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)

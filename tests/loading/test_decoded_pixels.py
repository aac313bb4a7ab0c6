"""What part of the images a loader decodes, and how many threads decode one image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from tests.reading import written

import recordsmith as rs
from recordsmith.loading.loader_stats import LoaderStats

SIDE = 512


def write(path: Path, files: list[bytes]) -> rs.Dataset:
    return written(path, [{"image/encoded": data} for data in files])


def grey_tiles(side: int = SIDE) -> bytes:
    """Tiles of 8 rows and 64 columns; grey images need no margin."""
    ramp = np.add.outer(np.arange(side), np.arange(side)).astype(np.uint8)
    return cv2.imencode(".jpg", ramp, [cv2.IMWRITE_JPEG_RST_INTERVAL, 8])[1].tobytes()


def stats_of(dataset: rs.Dataset, **options: Any) -> LoaderStats:
    with rs.Loader(dataset, {"image": rs.Image(**options)}, batch_size=2, shuffle=False) as loader:
        list(loader)
        return loader.stats()


def test_share_of_the_pixels(tmp_path: Path, images: Any) -> None:
    """The central 64 x 64 pixels lie in two columns of tiles: 64 x 128 of 512 x 512."""
    tiled = write(tmp_path / "tiled.tfrecord", [grey_tiles()] * 3)
    for size, expected in ((SIDE, 1.0), (64, 1 / 32)):
        stats = stats_of(tiled, size=size, fit="crop-or-pad")
        assert stats.image_pixel_count == 3 * SIDE * SIDE
        assert stats.decoded_pixel_count == expected * stats.image_pixel_count
        assert stats.decoded_share == stats.to_json()["decoded_share"] == expected
    assert "decoded 3% of the pixels" in str(stats)
    assert stats_of(tiled, size=64).decoded_share == 1.0  # at a reduced size
    assert "decoded <1% of the pixels" in str(replace(stats, decoded_pixel_count=1))
    png = write(tmp_path / "png.tfrecord", [images.encode(images.noise(40, 30), "PNG")])
    assert stats_of(png, size=8, fit="crop-or-pad").decoded_share == 19 / 30  # down to the last row
    assert stats_of(png, size=8).decoded_share == 1.0


def test_masks_raw_pixels_and_damaged_rows_are_not_counted(tmp_path: Path) -> None:
    good, bad = grey_tiles(), grey_tiles()[:900]
    dataset = write(tmp_path / "damaged.tfrecord", [good, bad, good])
    features = {"image": rs.Image(size=64)}
    with rs.Loader(dataset, features, batch_size=3, skip_errors=1) as loader:
        list(loader)
        assert loader.stats().image_pixel_count == 2 * SIDE * SIDE
    raw = write(tmp_path / "raw.tfrecord", [bytes(8 * 8 * 3)])
    assert stats_of(raw, size=8, raw_shape=(8, 8, 3)).decoded_share is None
    assert "pixels of the images" not in str(stats_of(raw, size=8, raw_shape=(8, 8, 3)))

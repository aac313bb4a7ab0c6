"""Batches are the same whether parts of images are decoded or the whole images."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image.decoding.parts import PartFile
from recordsmith.loading.features.images import stored_pixels

from ....images import encode, noise, sampled_jpeg

SIDES = [(300, 420), (263, 181), (95, 330), (130, 90)]
FITS: list[dict[str, Any]] = [
    {"fit": "random-crop", "size": 48},
    {"fit": "random-crop", "size": (40, 64), "crop_area": (0.01, 0.05)},
    {"fit": "center-crop", "size": 64},
    {"fit": "center-crop", "size": (30, 60), "shorter_side": 200},
    {"fit": "crop-or-pad", "size": (120, 100)},
    {"fit": "resize", "size": 70},
    {"fit": "contain", "size": 70},
]
FORMATS: dict[str, Any] = {
    "tiled": lambda image: encode(image, "JPEG", restart_marker_blocks=1),
    "rows": lambda image: encode(image, "JPEG", restart_marker_rows=1, subsampling=0),
    "plain": lambda image: encode(image, "JPEG", quality=95),
    "4:2:2": lambda image: encode(image, "JPEG", subsampling=1),
    "grey": lambda image: encode(image.convert("L"), "JPEG", restart_marker_blocks=1),
    "png": lambda image: encode(image, "PNG"),
    "progressive": lambda image: encode(image, "JPEG", progressive=True),
    "cmyk": lambda image: encode(image.convert("CMYK"), "JPEG", restart_marker_blocks=1),
    "4:1:0": lambda image: sampled_jpeg(
        image.height, image.width, [(4, 2), (1, 1), (1, 1)], interval=1
    ),
}
CUT_FORMATS = 6  # the first ones


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    path = tmp_path_factory.mktemp("parts") / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number, (height, width) in enumerate(SIDES):
            blurred = noise(width // 6, height // 6, seed=number).resize((width, height))
            for make in FORMATS.values():
                writer.write_example({"image/encoded": make(blurred)})
    return rs.open(path)


def _batches(dataset: rs.Dataset, image: rs.Image, threads: int = 0) -> list[Any]:
    loader = rs.Loader(dataset, {"image": image}, batch_size=9, seed=5, threads=threads)
    return [batch["image"] for batch in loader]


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("fit", FITS, ids=lambda fit: "-".join(map(str, fit.values())))
@pytest.mark.parametrize(
    "pixels",
    [
        {},
        {"channels": 1, "flip": "both"},
        {"channels": 4, "dtype": "uint16"},
        {"dtype": "float32", "layout": "CHW"},
    ],
    ids=["RGB", "grey", "RGBA", "float32"],
)
def test_parts_give_the_same_batches(
    dataset: rs.Dataset,
    fit: dict[str, Any],
    pixels: dict[str, Any],
    exact: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = rs.Image(**fit, **pixels, exact=exact)
    cut = []

    def find(*arguments: Any, **options: Any) -> PartFile:
        part = find_part(*arguments, **options)
        cut.append(part.whole is not None)
        return part

    find_part = stored_pixels.find_part
    monkeypatch.setattr(stored_pixels, "find_part", find)
    found = _batches(dataset, image)
    crops = fit["fit"] not in ("resize", "contain")
    assert len(cut) == len(SIDES) * len(FORMATS)
    assert not any(one for number, one in enumerate(cut) if number % len(FORMATS) >= CUT_FORMATS)
    assert (sum(cut) >= len(SIDES) * CUT_FORMATS // 2) == crops
    assert crops or not any(cut)
    monkeypatch.setattr(
        stored_pixels, "find_part", lambda data, head, *_, **__: PartFile(data, head)
    )
    np.testing.assert_array_equal(found, _batches(dataset, image))


def test_threads_give_the_same_batches(dataset: rs.Dataset) -> None:
    image = rs.Image(**FITS[0], exact=True)
    np.testing.assert_array_equal(_batches(dataset, image), _batches(dataset, image, threads=2))


def test_crops_are_those_of_pillow(tmp_path: Path) -> None:
    """The centre of grey images without chroma, by an independent decoder."""
    image = noise(40, 30).resize((400, 300)).convert("L")
    coded = encode(image, "JPEG", restart_marker_blocks=5)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"image/encoded": coded})
    features = {"image": rs.Image(size=(100, 120), fit="crop-or-pad", channels=1)}
    (batch,) = rs.Loader(rs.open(tmp_path / "a.tfrecord"), features, batch_size=1, threads=0)
    with Image.open(io.BytesIO(coded)) as opened:
        expected = np.array(opened)[100:200, 140:260].astype(int)
    # the loader uses the fast DCT, as TensorFlow does; Pillow the accurate one
    assert np.abs(batch["image"][0, :, :, 0] - expected).max() <= 3

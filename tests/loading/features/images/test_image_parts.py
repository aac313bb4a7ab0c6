"""Batches are the same whether parts of images are decoded or the whole images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reading import written

import recordsmith as rs
from recordsmith.image import PartFile
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
    blurred = [
        noise(width // 6, height // 6, seed=number).resize((width, height))
        for number, (height, width) in enumerate(SIDES)
    ]
    examples = [{"image/encoded": make(one)} for one in blurred for make in FORMATS.values()]
    return written(tmp_path_factory.mktemp("parts"), examples)


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

"""Copies of an image have close hashes, other images do not, and flat images have none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from recordsmith.image import decode_image
from recordsmith.linting.image_hash import hashes_of, have_detail, low_frequencies
from recordsmith.linting.near_hashes import MAX_DIFFERENT

from .planted import encoded, photo

COUNT = 60
PHOTOS = [photo(seed, (160, 120)) for seed in range(COUNT)]


def _frequencies(images: list[Image.Image], quality: int = 90) -> np.ndarray:
    return np.stack([low_frequencies(decode_image(encoded(i, quality))) for i in images])


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    bits = (one[:, None] ^ other[None]).view(np.uint8).reshape(len(one), len(other), 8)
    return np.unpackbits(bits, axis=2).sum(axis=2)


def _cropped(image: Image.Image, share: float) -> Image.Image:
    x, y = (round(side * share) for side in image.size)
    return image.crop((x, y, image.width - x, image.height - y))


@pytest.mark.parametrize(
    ("name", "change", "quality", "least"),
    [
        ("encoded again", lambda i: i, 70, 1.0),
        ("half the size", lambda i: i.resize((80, 60), Image.Resampling.BOX), 90, 1.0),
        ("twice the size", lambda i: i.resize((320, 240), Image.Resampling.BICUBIC), 90, 1.0),
        ("brighter", lambda i: ImageEnhance.Brightness(i).enhance(1.1), 90, 0.9),
        ("less contrast", lambda i: ImageEnhance.Contrast(i).enhance(0.8), 90, 0.95),
        ("cropped by 1 %", lambda i: _cropped(i, 0.01), 90, 0.95),
        ("cropped by 2 %", lambda i: _cropped(i, 0.02), 90, 0.7),
    ],
)
def test_copies_are_close(
    name: str, change: Callable[[Image.Image], Image.Image], quality: int, least: float
) -> None:
    originals = hashes_of(_frequencies(PHOTOS))
    copies = hashes_of(_frequencies([change(image) for image in PHOTOS], quality))
    near = np.diag(_distances(originals, copies)) <= MAX_DIFFERENT
    assert near.mean() >= least


def test_other_images_are_far() -> None:
    hashes = hashes_of(_frequencies(PHOTOS))
    distances = _distances(hashes, hashes)[np.triu_indices(COUNT, 1)]
    assert distances.min() > MAX_DIFFERENT
    assert 28 < distances.mean() < 35


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (7, 5), (640, 3)])
def test_images_of_any_size_have_frequencies(size: tuple[int, int]) -> None:
    pixels = np.asarray(photo(1, size))
    assert np.isfinite(low_frequencies(pixels)).all()
    assert np.isfinite(low_frequencies(pixels[:, :, :1])).all()


def test_frequencies_are_those_of_the_cosine_transform() -> None:
    """Against OpenCV's, of an image whose pixels are all sampled."""
    import cv2

    pixels = np.asarray(photo(3, (64, 64)))
    scale = np.full((8, 8), 64 / 2.0)
    scale[0] *= 2**0.5
    scale[:, 0] *= 2**0.5
    expected = cv2.dct(pixels[:, :, 1].astype(np.float32))[:8, :8] / scale
    np.testing.assert_allclose(low_frequencies(pixels), expected, atol=1e-3)


def test_flat_images_have_no_detail() -> None:
    rng = np.random.default_rng(0)
    page = np.full((60, 80, 3), 250, np.uint8)
    grain = np.clip(page + rng.normal(0, 3, page.shape), 0, 255).astype(np.uint8)
    flat = np.stack([low_frequencies(image) for image in (page, grain, page // 9)])
    assert not have_detail(flat).any()
    assert have_detail(_frequencies(PHOTOS)).all()

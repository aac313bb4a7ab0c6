"""Copies of an image are found and other images are not; flat images show nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from recordsmith.checking.linting.similar_images import SHAPE_BYTES, find_similar, shape_of
from recordsmith.image import decode_image

from .planted import encoded, photo

COUNT = 60
PHOTOS = [photo(seed, (160, 120)) for seed in range(COUNT)]


def _shapes(images: Iterable[Image.Image], quality: int = 90) -> np.ndarray:
    shapes = b"".join(shape_of(decode_image(encoded(image, quality))) for image in images)
    return np.frombuffer(shapes, np.int8).reshape(-1, SHAPE_BYTES)


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
def test_copies_are_found_and_nothing_else(
    name: str, change: Callable[[Image.Image], Image.Image], quality: int, least: float
) -> None:
    copies = _shapes(map(change, PHOTOS), quality)
    shapes = np.concatenate([_shapes(PHOTOS), copies])
    for splits, row in ((np.zeros(2 * COUNT, np.int64), 0), (np.arange(2 * COUNT) // COUNT, 1)):
        others, left_out_count = find_similar(shapes, splits)
        numbers = others[row, COUNT:]
        assert (numbers == np.arange(COUNT)).mean() >= least
        assert set(numbers - np.arange(COUNT)) <= {0, *range(-1 - COUNT, 0)}
        assert (others[:, :COUNT] == -1).all()
        assert (others[1 - row] == -1).all()
        assert left_out_count == 0


def test_planted_copies_among_many_images_are_all_found() -> None:
    rng = np.random.default_rng(1)
    count, planted = 50_000, 500
    vectors = rng.normal(0, 1, (count, SHAPE_BYTES))
    vectors[:, 0] = 0
    vectors[-planted:] = vectors[:planted] + rng.normal(0, 0.05, (planted, SHAPE_BYTES))
    vectors *= 127 / np.linalg.norm(vectors, axis=1, keepdims=True)
    others, _ = find_similar(np.rint(vectors).astype(np.int8), np.arange(count) % 2)
    assert (others.max(axis=0)[-planted:] == np.arange(planted)).all()
    assert (others >= 0).sum() == planted


@pytest.mark.parametrize("kinds", [1, 20])
def test_equal_shapes_are_similar(kinds: int) -> None:
    """The closest earlier one, in both splits, also if all of them are next to each other."""
    rng = np.random.default_rng(2)
    shapes = np.rint(30 * rng.normal(0, 1, (kinds, SHAPE_BYTES))).clip(-99, 99).astype(np.int8)
    kind, splits = rng.integers(kinds, size=2000), rng.integers(2, size=2000)
    others, _ = find_similar(shapes[kind], splits)
    for row, is_across in ((0, False), (1, True)):
        (late,) = np.nonzero(others[row] >= 0)
        early = others[row, late]
        assert (early < late).all()
        assert (kind[early] == kind[late]).all()
        assert ((splits[early] != splits[late]) == is_across).all()
    later = {*range(2000)} - {*np.unique(kind, return_index=True)[1]}
    assert {*np.nonzero(others.max(axis=0) >= 0)[0]} == later


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33])
def test_few_images(count: int) -> None:
    shapes = _shapes([PHOTOS[0]] * count) if count else np.zeros((0, SHAPE_BYTES), np.int8)
    others, _ = find_similar(shapes, np.zeros(count, np.int64))
    assert (others[0] >= 0).sum() == max(0, count - 1)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (7, 5), (640, 3)])
def test_images_of_any_size_have_shapes(size: tuple[int, int]) -> None:
    pixels = np.asarray(photo(1, size))
    assert len(shape_of(pixels)) == len(shape_of(pixels[:, :, :1])) == SHAPE_BYTES


def test_shapes_are_those_of_the_cosine_transform() -> None:
    """Against OpenCV's, of an image whose pixels are all sampled."""
    import cv2

    pixels = np.asarray(photo(3, (64, 64)))
    expected = cv2.dct(pixels[:, :, 1].astype(np.float32))[:8, :8]
    expected[0] /= 2**0.5
    expected[:, 0] /= 2**0.5
    expected[0, 0] = 0
    expected *= 127 / np.linalg.norm(expected)
    for same in (pixels, pixels.astype(np.uint16) * 257):
        shape = np.frombuffer(shape_of(same), np.int8).reshape(8, 8)
        np.testing.assert_allclose(shape, expected, atol=0.51)


def test_flat_images_show_nothing() -> None:
    rng = np.random.default_rng(0)
    page = np.full((60, 80, 3), 250, np.uint8)
    grain = np.clip(page + rng.normal(0, 3, page.shape), 0, 255).astype(np.uint8)
    shapes = b"".join(map(shape_of, (page, grain, page // 9, grain.astype(np.uint16) * 257)))
    assert not any(shapes)
    others, left_out_count = find_similar(
        np.frombuffer(shapes, np.int8).reshape(-1, SHAPE_BYTES), np.zeros(4, np.int64)
    )
    assert (others == -1).all()
    assert left_out_count == 0

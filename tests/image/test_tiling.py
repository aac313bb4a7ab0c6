"""Tiles cover an image, and joining them restores it."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.raising import raises

from recordsmith import CorruptDataError, OptionError, tile_image, untile
from recordsmith.image import decode_image
from recordsmith.image.decoding import parts
from recordsmith.image.geometry import tiling

SIDES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def numbered(shape: tuple[int, ...], dtype: Any = np.int64) -> Any:
    """An array in which each value says where it is."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Any, tuple[int, int], tuple[int, int], int | None]:
    """An image, the size and overlap of its tiles, and the size of batches."""
    more = draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    dtype = draw(st.sampled_from(["int64", "uint16", "float32"]))
    size = draw(SIDES)
    overlap = tuple(draw(st.integers(0, side - 1)) for side in size)
    image = numbered((*draw(SIDES), *(more if len(more) < 2 else ())), dtype)
    return image, size, overlap, draw(st.none() | st.integers(1, 7))  # type: ignore[return-value]


@given(layouts())
def test_each_tile_is_the_part_at_its_offset_and_untile_restores_the_image(layout: Any) -> None:
    image, size, overlap, batch_size = layout
    sides = image.shape[:2]
    tiles, offsets = tile_image(image, size, overlap=overlap, batch_size=batch_size)
    if batch_size is not None:
        batches = list(tiles)
        assert {len(batch) for batch in batches[:-1]} <= {batch_size}
        assert 1 <= len(batches[-1]) <= batch_size
        tiles = np.concatenate(batches)
    assert tiles.shape == (len(offsets), *size, *image.shape[2:])
    assert (offsets.dtype, tiles.dtype) == (np.int64, image.dtype)
    padding = [(0, max(0, tile - side)) for tile, side in zip(size, sides, strict=True)]
    padded = np.pad(image, [*padding, (0, 0)][: image.ndim])
    for tile, (top, left) in zip(tiles, offsets, strict=True):
        np.testing.assert_array_equal(tile, padded[top : top + size[0], left : left + size[1]])
    assert (offsets + size <= padded.shape[:2]).all()  # the last ones are shifted inwards
    joined = untile(tiles, offsets, sides)
    assert joined.dtype == image.dtype
    np.testing.assert_array_equal(joined, image)
    unsigned = offsets.astype(np.uint64)
    np.testing.assert_array_equal(untile(tiles, unsigned), padded)  # as far as the tiles reach
    order = np.random.default_rng(0).permutation(len(tiles))
    np.testing.assert_array_equal(untile(tiles[order], offsets[order], sides), image)


@given(SIDES, SIDES, st.integers(0, 39))
def test_starts_are_a_grid_with_the_last_one_shifted(
    sides: tuple[int, int], size: tuple[int, int], overlap: int
) -> None:
    shared = tuple(min(overlap, side - 1) for side in size)
    _, offsets = tile_image(numbered(sides), size, overlap=shared)  # type: ignore[arg-type]
    for axis in range(2):
        starts = np.unique(offsets[:, axis]).tolist()
        side, tile, stride = sides[axis], size[axis], size[axis] - shared[axis]
        assert starts[0] == 0
        assert all(after - before == stride for before, after in itertools.pairwise(starts[:-1]))
        if len(starts) > 1:
            assert starts[-1] + tile == side
            assert 0 < starts[-1] - starts[-2] <= stride
        assert starts[-1] + tile >= side


def test_mean_averages_what_overlaps() -> None:
    tiles = np.array([[[1.0, 2.0, 3.0]], [[10.0, 20.0, 30.0]]], np.float32)
    offsets = np.array([[0, 0], [0, 1]])
    joined = untile(tiles, offsets, (1, 4), blend="mean")
    np.testing.assert_array_equal(joined, np.array([[1, 6, 11.5, 30]], np.float32))
    assert joined.dtype == np.float32
    # scores of several classes, in batches, half precision
    scores = np.stack([tiles, -tiles], axis=-1).astype(np.float16)
    joined = untile(iter(scores[:, np.newaxis]), offsets, (1, 4), blend="mean")
    assert joined.dtype == np.float16
    np.testing.assert_array_equal(joined[..., 1], [[-1, -6, -11.5, -30]])


def test_center_takes_each_pixel_from_where_it_is_farthest_from_the_edge() -> None:
    tiles = np.arange(1, 4)[:, np.newaxis, np.newaxis] * np.ones((5, 6), int)
    offsets = np.array([[0, 0], [0, 4], [0, 6]])
    joined = untile(tiles, offsets, (5, 12))
    assert joined.tolist() == 5 * [[1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]]
    joined = untile(tiles.swapaxes(1, 2), offsets[:, ::-1], (12, 5))
    assert joined.T.tolist() == 5 * [[1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]]


@given(layouts())
def test_mean_of_equal_tiles_is_the_image(layout: Any) -> None:
    image, size, overlap, _ = layout
    tiles, offsets = tile_image(image.astype(np.float64), size, overlap=overlap)
    np.testing.assert_allclose(untile(tiles, offsets, image.shape[:2], blend="mean"), image)


def encoded(shape: tuple[int, ...], form: str, **options: Any) -> bytes:
    pixels = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, **options)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "BMP"])
@pytest.mark.parametrize("batch_size", [None, 5])
def test_encoded_images_are_cut_as_if_decoded_before(form: str, batch_size: int | None) -> None:
    data = encoded((150, 210, 3), form)
    expected, places = tile_image(decode_image(data), (64, 48), overlap=(8, 0))
    tiles, offsets = tile_image(data, (64, 48), overlap=(8, 0), batch_size=batch_size)
    np.testing.assert_array_equal(offsets, places)
    found = tiles if batch_size is None else np.concatenate(list(tiles))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("options", "tops"),
    [
        ({}, [0]),
        ({"progressive": True, "restart_marker_blocks": 5}, [0]),
        ({"restart_marker_blocks": 5}, [0, 56, 112, 168, 224, 280, 336]),
        ({"restart_marker_rows": 1}, [0, 56, 112, 168, 224, 280, 336]),
    ],
)
def test_jpegs_with_tiles_are_decoded_band_by_band_and_others_once(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, int], tops: list[int]
) -> None:
    windows = []

    def decode_part(data: Any, head: Any, window: Any, **more: Any) -> Any:
        windows.append(window)
        return parts.decode_part(data, head, window, **more)

    monkeypatch.setattr(tiling, "decode_part", decode_part)
    data = encoded((400, 320, 3), "JPEG", **options)
    tiles, offsets = tile_image(data, 64, overlap=8, batch_size=3)
    assert not windows
    np.testing.assert_array_equal(untile(tiles, offsets, (400, 320)), decode_image(data))
    assert [window.top for window in windows] == tops
    if len(tops) > 1:
        assert {window[2:] for window in windows} == {(64, 320)}


def test_damage_is_reported_when_the_tiles_are_needed() -> None:
    data = encoded((64, 64, 3), "JPEG")
    with raises(CorruptDataError):
        tile_image(b"no image", 16)
    batches, offsets = tile_image(data[: len(data) // 2], 16, batch_size=2)
    assert len(offsets) == 16
    with raises(CorruptDataError):
        next(batches)


ONE: Any = [[0, 0]]


@pytest.mark.parametrize(
    ("option", "arguments", "options"),
    [
        ("image", (numbered((1, 4, 4, 3)), 2), {}),
        ("size", (numbered((4, 4)), 0), {}),
        ("size", (numbered((4, 4)), (2, 2, 2)), {}),
        ("size", (numbered((4, 4)), True), {}),
        ("overlap", (numbered((4, 4)), 2), {"overlap": 2}),
        ("overlap", (numbered((4, 4)), (2, 4)), {"overlap": -1}),
        ("batch_size", (numbered((4, 4)), 2), {"batch_size": 0}),
        ("image", (numbered((4,)), 2), {}),
        ("image", ("image.png", 2), {}),
        ("channels", (encoded((4, 4), "PNG"), 2), {"channels": 2}),
    ],
)
def test_invalid_arguments_of_tile_image(
    option: str, arguments: tuple[Any, Any], options: dict[str, Any]
) -> None:
    with raises(OptionError, option=option):
        tile_image(*arguments, **options)


@pytest.mark.parametrize(
    ("option", "tiles", "offsets", "size", "blend"),
    [
        ("blend", numbered((1, 4, 4)), ONE, (4, 4), "max"),
        ("offsets", numbered((1, 4, 4)), [0, 0], (4, 4), "center"),
        ("offsets", numbered((1, 4, 4)), [[0.0, 0]], (4, 4), "center"),
        ("offsets", numbered((1, 4, 4)), [[0, -1]], (4, 4), "center"),
        ("offsets", numbered((1, 4, 4)), [[4, 0]], (4, 4), "center"),
        ("offsets", numbered((1, 4, 4)), [[0, -1]], None, "center"),
        ("tiles", numbered((1, 4, 4)), ONE, (4, 5), "center"),
        ("tiles", np.ones((1, 4, 4)), ONE, (4, 5), "mean"),
        ("tiles", np.ones((1, 0, 4)), ONE, (4, 4), "center"),
        ("tiles", np.ones((2, 2, 4, 4)), [[0, 0], [0, 4]], (4, 8), "center"),
        ("size", numbered((1, 4, 4)), ONE, 0, "center"),
        ("tiles", numbered((2, 4, 4)), ONE, (4, 4), "center"),
        ("tiles", numbered((1, 4, 4)), [[0, 0], [0, 2]], (4, 4), "center"),
        ("tiles", [], ONE, (4, 4), "center"),
        ("tiles", numbered((1, 4)), ONE, (4, 4), "center"),
        ("tiles", numbered((1, 4, 4)), ONE, (4, 4), "mean"),
        ("tiles", [np.ones((1, 4, 2)), np.ones((1, 4, 3))], 2 * ONE, (4, 4), "center"),
    ],
)
def test_invalid_arguments_of_untile(
    option: str, tiles: Any, offsets: Any, size: Any, blend: Any
) -> None:
    with raises(OptionError, option=option):
        untile(tiles, offsets, size, blend=blend)

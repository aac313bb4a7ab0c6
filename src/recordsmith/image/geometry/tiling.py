"""Cut an image into overlapping tiles of one size, and join what a model makes of them.

The tiles are a grid that starts at the top left; the last row and the last column are shifted
inwards, so that they end with the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.parts import Window, decode_part, has_bands
from recordsmith.image.decoding.probe import read_image_header
from recordsmith.image.formats.header import ImageHeader
from recordsmith.image.image_options import HIGHEST_MAX_PIXELS, check_number
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_word

Blend = Literal["center", "mean"]
Array: TypeAlias = npt.NDArray[Any]
_Size: TypeAlias = tuple[int, int]
_Rows: TypeAlias = Callable[[int, int], Array]
"""Returns the pixels from one row to another."""

_LONGEST_SIDE = 1 << 31
_TILES = "arrays, (count, height, width, …)"


@overload
def tile_image(
    image: Array | BytesLike,
    size: _Size | int,
    *,
    overlap: _Size | int = ...,
    batch_size: None = ...,
    channels: int = ...,
) -> tuple[Array, Int64Array]: ...


@overload
def tile_image(
    image: Array | BytesLike,
    size: _Size | int,
    *,
    overlap: _Size | int = ...,
    batch_size: int,
    channels: int = ...,
) -> tuple[Iterator[Array], Int64Array]: ...


def tile_image(
    image: Array | BytesLike,
    size: _Size | int,
    *,
    overlap: _Size | int = 0,
    batch_size: int | None = None,
    channels: int = 3,
) -> tuple[Array | Iterator[Array], Int64Array]:
    """Cut an image into tiles of one size that cover it.

    The last tiles are shifted inwards to end with the image, and overlap more. An image that is
    smaller than a tile is padded with zeros at the bottom and right.

    Args:
        image: pixels, (height, width) or (height, width, channels), as `numpy.asarray` takes them;
            or an encoded image, which is decoded to uint8. Its EXIF orientation is not applied, as
            in a loader.
        size: height and width of the tiles; one number for both.
        overlap: how many rows and columns neighbouring tiles share, at least; one number for both.
        batch_size: return an iterator of batches of this many tiles. An encoded image is decoded
            when the first batch is needed; a JPEG with tiles (`pack --tiles`) band by band, so that
            it need not fit into memory.
        channels: of an encoded image: 1 for grey, 3 for RGB, 4 for RGBA.

    Returns:
        (tiles, offsets): the tiles in order of rows, (count, height, width) or (count, height,
        width, channels), or batches of them; and int64, (count, 2), top and left of all tiles in
        pixels of the image.

    Raises:
        OptionError: an argument is invalid.
        CorruptDataError: unreadable-image: the encoded image is damaged or too large.

    Example:
        >>> image = np.arange(35).reshape(5, 7)
        >>> tiles, offsets = rs.tile_image(image, (5, 4), overlap=2)
        >>> tiles.shape, offsets.tolist()
        ((3, 5, 4), [[0, 0], [0, 2], [0, 3]])
        >>> bool((rs.untile(tiles, offsets) == image).all())
        True
    """
    tile = _sides("size", size, 1)
    shared = _sides("overlap", overlap, 0)
    if any(part >= side for part, side in zip(shared, tile, strict=True)):
        raise OptionError(
            option="overlap", value=overlap, expected=f"less than {option('size')}, {tile}"
        )
    if batch_size is not None:
        check_number("batch_size", batch_size, 1, _LONGEST_SIDE)
    rows: _Rows
    if isinstance(image, (bytes, bytearray, memoryview)):
        head = read_image_header(image)
        sides, rows = (head.height, head.width), _Encoded(image, head, channels, tile[0]).rows
    else:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3):
            raise OptionError(
                option="image",
                value=pixels.shape or type(image).__name__,
                expected=(
                    "an encoded image, or pixels: (height, width) or (height, width, channels)"
                ),
            )
        sides, rows = pixels.shape[:2], lambda top, bottom: pixels[top:bottom]
    tops, lefts = (
        _starts(side, length, length - part)
        for side, length, part in zip(sides, tile, shared, strict=True)
    )
    offsets = np.stack(np.meshgrid(tops, lefts, indexing="ij"), axis=-1).reshape(-1, 2)
    batches = _batches(rows, offsets, tile, batch_size or len(offsets))
    return (next(batches) if batch_size is None else batches), offsets


def untile(
    tiles: Array | Iterable[Array],
    offsets: Array,
    size: _Size | None = None,
    *,
    blend: Blend = "center",
) -> Array:
    """Join tiles to one image; undoes `tile_image`.

    Args:
        tiles: (count, height, width, …) of any dtype, such as the scores of each class, which come
            last; or batches of them, which are read one at a time.
        offsets: integers, (count, 2): top and left of each tile, from `tile_image`.
        size: height and width of the image. Tiles may reach beyond its bottom and right edge.
            Default: as far as the tiles reach. Pass it if the image may be smaller than a tile, to
            cut off the padding.
        blend: where tiles overlap: `center` takes each pixel from the tile in which it is farthest
            from the edge, `mean` averages floats. In addition to the result, both take up to 4
            bytes for each pixel of the image. For float16, `mean` adds in float32.

    Returns:
        (height, width, …), with the dtype of the tiles.

    Raises:
        OptionError: the tiles do not cover the image, or do not match `offsets`; or an option is
            invalid.

    Example:
        >>> batches, offsets = rs.tile_image(np.zeros((90, 120, 3)), 32, overlap=8, batch_size=4)
        >>> scores = (batch.mean(axis=3, keepdims=True) for batch in batches)
        >>> rs.untile(scores, offsets, (90, 120), blend="mean").shape
        (90, 120, 1)
    """
    check_word("blend", blend, get_args(Blend))
    sides = None if size is None else _sides("size", size, 1)
    places = np.asarray(offsets)
    if places.ndim != 2 or places.shape[1] != 2 or places.dtype.kind not in "iu":
        raise OptionError(
            option="offsets",
            value=f"{places.dtype} {places.shape}",
            expected="integers, (count, 2): top and left of each tile",
        )
    places = places.astype(np.int64)
    outside = (places < 0).any(axis=1) | (places >= (sides or np.inf)).any(axis=1)
    if outside.any():
        raise OptionError(
            f"a tile at {places[outside][0].tolist()} lies outside the image",
            option="offsets",
            value=places[outside][0].tolist(),
            expected="row and column " + (f"below {sides}" if sides else "of at least 0"),
        )
    joined: _Centers | _Mean | None = None
    done = 0
    for batch in [tiles] if hasattr(tiles, "ndim") else tiles:
        part = np.asarray(batch)
        if joined is None:
            if part.ndim < 3:
                raise OptionError(option="tiles", value=part.shape, expected=_TILES)
            height, width = places.max(axis=0, initial=0) + part.shape[1:3]
            joined = (_Mean if blend == "mean" else _Centers)(part, sides or (height, width))
        if done + len(part) > len(places) or part.shape[1:] != joined.shape:
            raise _other_tiles(f"{done + len(part)} or more of {part.shape[1:]}", places, joined)
        corners = places[done : done + len(part)].tolist()
        for numbers, (top, left) in zip(part, corners, strict=True):
            joined.add(numbers, top, left)
        done += len(part)
    if joined is None or done < len(places):
        raise _other_tiles(str(done), places, joined)
    return joined.finish()


class _Encoded:
    """An encoded image that is decoded by bands of rows if they can be decoded alone, else once."""

    def __init__(self, data: BytesLike, head: ImageHeader, channels: int, height: int) -> None:
        """`height`: of the bands."""
        if channels not in (1, 3, 4):
            raise OptionError(option="channels", value=channels, expected="1, 3 or 4")
        self._data, self._head, self._channels = data, head, channels
        self._has_bands = has_bands(data, head, height)
        self._pixels: Array | None = None  # of the whole image

    def rows(self, top: int, bottom: int) -> Array:
        if self._pixels is not None:
            return self._pixels[top:bottom]
        sides = self._head.height, self._head.width
        window = Window(0, 0, *sides)
        if self._has_bands:
            window = Window(top, 0, min(bottom, sides[0]) - top, sides[1])
        part = decode_part(
            self._data, self._head, window, channels=self._channels, max_pixels=HIGHEST_MAX_PIXELS
        )
        if part.pixels.shape[:2] == sides:  # also if the band is damaged
            self._pixels = part.pixels
        return part.pixels[top - part.top : bottom - part.top]


def _batches(rows: _Rows, offsets: Int64Array, size: _Size, batch_size: int) -> Iterator[Array]:
    height, width = size
    band, band_top = None, -1
    for start in range(0, len(offsets), batch_size):
        places = offsets[start : start + batch_size].tolist()
        tiles: Array | None = None
        for number, (top, left) in enumerate(places):
            if band is None or top != band_top:
                band = None  # free it before the next one is decoded
                band, band_top = rows(top, top + height), top
            part = band[:, left : left + width]
            if tiles is None:
                tiles = np.zeros((len(places), height, width, *band.shape[2:]), band.dtype)
            tiles[number, : part.shape[0], : part.shape[1]] = part
        assert tiles is not None
        yield tiles


class _Centers:
    """Takes each pixel from the tile in which it is farthest from the edge."""

    def __init__(self, tiles: Array, sides: _Size) -> None:
        self.shape = tiles.shape[1:]
        self._out = np.empty((*sides, *self.shape[2:]), tiles.dtype)
        down, across = (
            np.minimum(np.arange(1, side + 1), np.arange(side, 0, -1)) for side in self.shape[:2]
        )
        depth = np.multiply.outer(down, across)
        few_bytes = np.min_scalar_type(depth.max(initial=1))
        self._depth = depth.astype(few_bytes)
        self._best = np.zeros(sides, few_bytes)

    def add(self, tile: Array, top: int, left: int) -> None:
        height, width = self.shape[:2]
        window = np.s_[top : top + height, left : left + width]
        best = self._best[window]
        here = np.s_[: best.shape[0], : best.shape[1]]
        is_better = self._depth[here] > best
        self._out[window][is_better] = tile[here][is_better]
        np.maximum(best, self._depth[here], out=best)

    def finish(self) -> Array:
        _check_cover(self._best, self.shape)
        return self._out


class _Mean:
    """Averages all tiles of a pixel."""

    def __init__(self, tiles: Array, sides: _Size) -> None:
        self.shape = tiles.shape[1:]
        if tiles.dtype.kind != "f":
            raise OptionError(
                f"{option('blend', 'mean')} averages floats",
                option="tiles",
                value=f"{tiles.dtype} {tiles.shape}",
                expected="floats",
                remedy=f"Pass {option('blend', 'center')} for class numbers.",
            )
        self._dtype = tiles.dtype
        self._sums = np.zeros((*sides, *self.shape[2:]), np.result_type(tiles.dtype, np.float32))
        self._counts = np.zeros(sides, np.int32)

    def add(self, tile: Array, top: int, left: int) -> None:
        height, width = self.shape[:2]
        window = np.s_[top : top + height, left : left + width]
        counts = self._counts[window]
        counts += 1
        self._sums[window] += tile[: counts.shape[0], : counts.shape[1]]

    def finish(self) -> Array:
        _check_cover(self._counts, self.shape)
        counts = self._counts.reshape(*self._counts.shape, *[1] * (self._sums.ndim - 2))
        np.divide(self._sums, counts, out=self._sums)
        return self._sums.astype(self._dtype, copy=False)


def _check_cover(counts: Array, shape: tuple[int, ...]) -> None:
    if not counts.all():
        top, left = np.argwhere(counts == 0)[0].tolist()
        raise OptionError(
            f"the tiles do not cover the image: none of {shape[0]} x {shape[1]} pixels (axes 1 and "
            f"2 of the tiles) has row {top}, column {left}",
            option="tiles",
            value=("count", *shape),
            expected=f"{_TILES}, for all offsets from tile_image",
            remedy=(
                "If channels come first, move them to the end: np.moveaxis(tiles, 1, -1), or "
                "tiles.movedim(1, -1) in PyTorch."
            ),
        )


def _other_tiles(found: str, places: Array, joined: _Centers | _Mean | None) -> OptionError:
    shape = "" if joined is None else f" of {joined.shape}"
    return OptionError(
        f"{option('tiles')} and {option('offsets')} do not match",
        option="tiles",
        value=found,
        expected=f"{len(places)} tiles{shape}, one for each of {option('offsets')}",
    )


def _starts(side: int, length: int, stride: int) -> Int64Array:
    last = max(0, side - length)
    return np.append(np.arange(0, last, stride), last).astype(np.int64)


def _sides(name: str, value: object, lowest: int) -> _Size:
    sides = value if isinstance(value, (tuple, list)) else (value, value)
    is_size = len(sides) == 2 and all(
        isinstance(side, (int, np.integer))
        and not isinstance(side, bool)
        and lowest <= side < _LONGEST_SIDE
        for side in sides
    )
    if not is_size:
        raise OptionError(
            option=name,
            value=value,
            expected="height and width in pixels, such as (512, 512), or one number for both",
        )
    height, width = sides
    return int(height), int(width)

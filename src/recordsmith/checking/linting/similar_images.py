"""Finds copies of images that were encoded again, resized or cropped by a little.

The shape of an image is a vector of the 63 lowest frequencies of its brightness; how far apart two
images are is 1 minus the correlation of their shapes. The signs of a copy's frequencies are mostly
those of its original. So images are sorted once for each pair of bytes of their signs, and each is
compared with those next to it: n log n work, whatever the images show.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array

_SIDE = 8
SHAPE_BYTES = _SIDE * _SIDE
_LENGTH = 127  # of shapes, whose values are bytes
_SAMPLED = 96  # rows or columns, at least, of images that have as many
_MIN_CONTRAST = 9  # length of the frequencies, of brightness from 0 to 255
_MIN_APART = 0.0005  # bytes cannot tell closer ones from equal ones
_MAX_APART = 0.1  # copies of photos, also cropped ones
_MAX_OTHER_SIGNS = 6
_BLOCK = 32
_AT_ONCE = 128
_MEASURED_IMAGES = 2000
_MAX_FALSE, _FALSE_SHARE = 0.05, 0.1  # of the similar images that are reported
_MIN_GROWTH = 4.0  # images that differ in two ways at least

Shapes = npt.NDArray[np.int8]
"""(images, SHAPE_BYTES); 0 for images that show too little, such as blank pages."""


def shape_of(pixels: npt.NDArray[np.uint8 | np.uint16]) -> bytes:
    """The shape of an image, (height, width, channels)."""
    (step_y, rows), (step_x, columns) = map(_waves, pixels.shape[:2])
    channel = 1 if pixels.shape[2] > 2 else 0  # green
    sampled: Any = pixels[step_y // 2 :: step_y, step_x // 2 :: step_x, channel]
    frequencies: npt.NDArray[np.float32] = rows @ sampled.astype(np.float32) @ columns.T
    frequencies[0, 0] = 0  # the mean
    contrast = float(np.linalg.norm(frequencies))
    if contrast * 255 < _MIN_CONTRAST * np.iinfo(pixels.dtype).max:
        return bytes(SHAPE_BYTES)
    shape: npt.NDArray[np.float32] = np.rint(frequencies * (_LENGTH / contrast))
    return shape.astype(np.int8).tobytes()


@lru_cache(maxsize=1024)
def _waves(length: int) -> tuple[int, npt.NDArray[np.float32]]:
    """The step between sampled rows of an image, and the cosines that project them."""
    step = max(1, length // _SAMPLED)
    places = np.arange(step // 2, length, step)
    waves = np.cos(np.pi * np.arange(_SIDE)[:, np.newaxis] * (places + 0.5) / length) / len(places)
    waves[1:] *= 2
    return step, waves.astype(np.float32)


def find_similar(shapes: Shapes, splits: Int64Array) -> tuple[Int64Array, int]:
    """For each image a similar earlier one in its split and in another, -1 for none: (2, images).

    And how many images have one that is not returned, as different images are as similar.
    """
    apart, others = _closest(shapes, splits)
    nearest = np.sort(apart.min(axis=0))
    nearest = nearest[nearest <= _MAX_APART]
    limit = _reliable_distance(shapes, nearest) if len(nearest) else 0.0
    return np.where(apart <= limit, others, -1), int((nearest > limit).sum())


def _closest(shapes: Shapes, splits: Int64Array) -> tuple[npt.NDArray[np.float32], Int64Array]:
    """How far the closest earlier image is, and its number, in the split and in another."""
    count = len(shapes)
    shapes = np.concatenate([shapes, np.zeros((1, SHAPE_BYTES), np.int8)])  # of no image
    splits = np.append(splits, -1)
    signs = np.packbits(shapes > 0, axis=1)
    closest, others = np.zeros((2, count + 1), np.float32), np.full((2, count + 1), -1, np.int64)
    least = (1 - _MAX_APART) * _LENGTH**2
    (shown,) = np.nonzero(shapes[:count].any(axis=1))
    for pair in combinations(range(8), 2):
        columns = [*pair, *(column for column in range(8) if column not in pair)]
        keys = np.take(signs[shown], columns, axis=1).view(">u8")[:, 0].astype(np.uint64)
        order = shown[np.argsort(keys, kind="stable")]
        ends = np.full(_BLOCK, count), np.full(_BLOCK - len(order) % _BLOCK + _BLOCK, count)
        blocks = np.concatenate([ends[0], order, ends[1]]).reshape(-1, _BLOCK)
        for start in range(1, len(blocks) - 1, _AT_ONCE):
            middle = np.arange(start, min(start + _AT_ONCE, len(blocks) - 1))
            around = np.concatenate([blocks[middle + shift] for shift in (-1, 0, 1)], axis=1)
            near = shapes[blocks[middle]].astype(np.float32) @ (
                shapes[around].astype(np.float32).transpose(0, 2, 1)
            )
            block, row = np.nonzero((near > least).sum(axis=2) > 1)  # not only the image itself
            number, around, near = blocks[middle][block, row], around[block], near[block, row]
            near[(around >= number[:, np.newaxis])] = 0
            is_across = splits[around] != splits[number][:, np.newaxis]
            for kind in (0, 1):
                chosen = np.where(is_across == kind, near, 0)
                best = chosen.argmax(axis=1)[:, np.newaxis]
                value = np.take_along_axis(chosen, best, axis=1)[:, 0]
                is_closer = value > np.maximum(closest[kind, number], least)
                closer = number[is_closer]
                closest[kind, closer] = value[is_closer]
                others[kind, closer] = np.take_along_axis(around, best, axis=1)[is_closer, 0]
    differ = np.unpackbits(signs[others] ^ signs, axis=2).sum(axis=2) > _MAX_OTHER_SIGNS
    lengths = np.sqrt(np.einsum("ij,ij->i", shapes, shapes, dtype=np.float32))
    apart = np.maximum(_MIN_APART, 1 - closest / (lengths * lengths[others] + 1e-9))
    apart[differ | (others < 0)] = np.inf
    return apart[:, :count], others[:, :count]


def _reliable_distance(shapes: Shapes, nearest: npt.NDArray[np.float32]) -> float:
    """How far apart images may be, so that most of those that are as close are copies.

    Handwritten digits, icons and other images with few details are similar by chance. How many
    pairs are, is extrapolated from the pairs that are further apart than copies: in independent
    images, the number of pairs is a power of the distance. `nearest` are the distances of images
    with a similar one, in ascending order.
    """
    total = len(shapes)
    measured = shapes
    if total > _MEASURED_IMAGES:
        rng = np.random.default_rng(0)
        measured = shapes[rng.choice(total, _MEASURED_IMAGES, replace=False)]
    values = measured.astype(np.float32) / _LENGTH
    apart = 1 - values @ values.T
    ring, wider_ring = (
        int(((apart > low) & (apart <= 2 * low)).sum()) / 2 for low in (_MAX_APART, 2 * _MAX_APART)
    )
    if not ring:
        return _MAX_APART
    pairs = total * (total - 1) / (len(values) * (len(values) - 1))
    growth = max(wider_ring / ring, _MIN_GROWTH)  # from one distance to its double
    by_chance = pairs * ring / (growth - 1) * (nearest / _MAX_APART) ** np.log2(growth)
    allowed = np.maximum(_MAX_FALSE, _FALSE_SHARE * np.arange(1, len(nearest) + 1))
    (reliable,) = np.nonzero(by_chance <= allowed)
    return float(nearest[reliable[-1]]) if len(reliable) else -1.0

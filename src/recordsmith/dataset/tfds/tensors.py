"""Tensors that TFDS stores as bytes, plain or compressed, and the kinds of features in records."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordsmith.dataset.tfds.features import BOX, CLASS_LABEL, SCALAR, TENSOR, Leaf
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import FeatureValue, Kind

_NUMBERS = {
    "bool": "u1",
    **{
        f"{sign}int{8 * size}": f"<{sign or 'i'}{size}"
        for sign in ("", "u")
        for size in (1, 2, 4, 8)
    },
    "float16": "<f2",
    "float32": "<f4",
}
"""The types of stored bytes that a feature holds exactly as numbers."""

MOST_BYTES = 1 << 31
"""The maximum size of a compressed tensor after decompression."""

_NUMERIC = (TENSOR, SCALAR, BOX, CLASS_LABEL)


def kind_of(leaf: Leaf, *, is_stored: bool = True) -> Kind:
    """The kind of the values of a leaf, as TFDS stores them or as they are packed."""
    dtype = leaf.feature.dtype
    if is_stored and leaf.is_encoded:
        return "bytes"
    if leaf.feature.type not in _NUMERIC or (leaf.is_encoded and not is_decodable(leaf)):
        return "bytes"
    if dtype.startswith(("float", "bfloat")):
        return "float"
    return "int64" if dtype.startswith(("int", "uint", "bool")) else "bytes"


def is_decodable(leaf: Leaf) -> bool:
    """Whether the bytes of a tensor become a list of numbers without losing anything."""
    is_divisible = not leaf.lengths or None not in leaf.feature.shape
    return leaf.feature.dtype in _NUMBERS and is_divisible


def decode_tensors(leaf: Leaf, items: Sequence[bytes], shape: Sequence[int]) -> FeatureValue:
    """The numbers in the bytes of tensors, or their bytes without compression.

    Args:
        items: the bytes of each tensor.
        shape: of the tensor, if it is stored next to it; otherwise empty.
    """
    known = [length for length in (*(shape or leaf.feature.shape),) if length is not None]
    is_whole = len(known) == len(leaf.feature.shape)
    if not is_decodable(leaf):
        is_packed = leaf.feature.encoding == "zlib"
        return [_inflate(leaf, item, MOST_BYTES) for item in items] if is_packed else list(items)
    dtype = np.dtype(_NUMBERS[leaf.feature.dtype])
    unit = math.prod(known) * dtype.itemsize
    if leaf.feature.encoding == "zlib":
        most = min(MOST_BYTES, unit) if is_whole else MOST_BYTES
        items = [_inflate(leaf, item, most) for item in items]
    for item in items:
        if len(item) != unit if is_whole else (len(item) % unit if unit else len(item)):
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                "the bytes of a tensor do not match its shape",
                found=f"{len(item)} bytes",
                expected=f"{'' if is_whole else 'a multiple of '}{unit} bytes",
                feature=leaf.path,
            )
    numbers = np.frombuffer(b"".join(items), dtype)
    if dtype.kind == "f":
        return numbers.astype(np.float32)
    return numbers.view("<i8") if dtype == np.dtype("<u8") else numbers.astype(np.int64)


def encode_tensors(leaf: Leaf, values: Any) -> list[bytes]:
    """The inverse of `decode_tensors`."""
    if is_decodable(leaf):
        dtype = np.dtype(_NUMBERS[leaf.feature.dtype])
        numbers = np.asarray(values).ravel()
        numbers = numbers.astype(np.int64).view("<u8") if dtype == "<u8" else numbers.astype(dtype)
        unit = math.prod(length for length in leaf.feature.shape if length is not None)
        if unit and len(numbers) % unit:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                "the values are not whole tensors",
                found=f"{len(numbers)} values",
                expected=f"a multiple of {unit}",
                feature=leaf.path,
            )
        if leaf.lengths:
            items = [part.tobytes() for part in numbers.reshape(-1, unit)] if unit else []
        else:
            items = [numbers.tobytes()]
    else:
        items = [values] if isinstance(values, bytes) else list(values)
    return [zlib.compress(item) for item in items] if leaf.feature.encoding == "zlib" else items


def _inflate(leaf: Leaf, item: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(item, most + 1)
    except zlib.error as error:
        raise CorruptDataError(
            Defect.FEATURE_VALUE, f"cannot decompress a tensor: {error}", feature=leaf.path
        ) from None
    if not inflater.eof or len(data) > most:
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            "a compressed tensor is truncated or too large",
            expected=f"at most {most} bytes",
            feature=leaf.path,
        )
    return data

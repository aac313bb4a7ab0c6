"""Converts records that TFDS stores to those with standard keys.

Tensors that TFDS stores as bytes become numbers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordsmith.dataset.tfds.features import BOX as BOX_FEATURE
from recordsmith.dataset.tfds.features import (
    BOX_FORMAT,
    LABELED_IMAGE,
    SCALAR,
    TENSOR,
    TEXT,
    Leaf,
)
from recordsmith.dataset.tfds.features import CLASS_LABEL as LABEL_FEATURE
from recordsmith.format.example import Features, FeatureValue, Kind
from recordsmith.format.example.keys import (
    BOX,
    CLASS_LABEL,
    CLASS_TEXT,
    FILENAME,
    FORMAT,
    HEIGHT,
    IMAGE,
    MASK,
    MASK_FORMAT,
    OBJECT_DIFFICULT,
    OBJECT_IS_CROWD,
    OBJECT_LABEL,
    OBJECT_TEXT,
    OBJECT_TRUNCATED,
    WIDTH,
    is_mask_key,
)
from recordsmith.image import probe_image
from recordsmith.support.errors import CorruptDataError, DataError, Defect

BOXES = BOX[0].rpartition("/")[0]
"""Stands for the four keys of boxes, which TFDS stores as one feature."""

TEXT_KEYS = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}
"""The keys of the names of classes, by those of their labels."""

_KIND_TYPES = {"int64": np.int64, "float": np.float32}
_OBJECT_KEYS = {
    "is_crowd": OBJECT_IS_CROWD,
    "is_difficult": OBJECT_DIFFICULT,
    "is_truncated": OBJECT_TRUNCATED,
}
_FILE_NAMES = ("image/filename", "file_name", "filename")
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

_MAX_TENSOR_BYTES = 1 << 31
"""The maximum size of a compressed tensor after decompression."""

_NUMERIC = (TENSOR, SCALAR, BOX_FEATURE, LABEL_FEATURE)


@dataclass(frozen=True)
class TfdsRecords:
    """How records of TFDS become records with standard keys.

    keys: the standard keys of features, by path; other features have their keys in the records.
    class_names: of labels and labeled images, by path.
    """

    leaves: list[Leaf]
    keys: dict[str, str]
    class_names: dict[str, tuple[str, ...]]

    def read(self, record: Features) -> dict[str, Any]:
        """Convert one record."""
        features: dict[str, Any] = {}
        for leaf in self.leaves:
            values = stored_values(record, leaf)
            if values is None:
                continue
            for key in leaf.other_keys:
                features[key] = _of_kind(record, key, "int64", leaf)
            if leaf.is_encoded:
                shape = features[leaf.shape_key].tolist() if leaf.has_shape_key else ()
                values = decode_tensors(leaf, values, shape)  # type: ignore[arg-type]
            key = self.keys.get(leaf.path, leaf.value_key)
            if key == BOXES:
                features |= dict(zip(BOX, np.reshape(values, (-1, 4)).T, strict=True))
                continue
            features[key] = values
            if key in TEXT_KEYS and leaf.path in self.class_names:
                features[TEXT_KEYS[key]] = _names_of(values, self.class_names[leaf.path])
            elif key == IMAGE:
                info = probe_image(values[0])
                features |= {FORMAT: info.format, HEIGHT: info.height, WIDTH: info.width}
            elif key == MASK:
                features[MASK_FORMAT] = probe_image(values[0]).format
        return features

    def kinds(self) -> dict[str, Kind]:
        """The kinds of the features that `read` returns."""
        kinds: dict[str, Kind] = {}
        for leaf in self.leaves:
            key = self.keys.get(leaf.path, leaf.value_key)
            if key == BOXES:
                kinds |= dict.fromkeys(BOX, "float")
                continue
            kinds[key] = kind_of(leaf, is_stored=False)
            kinds |= dict.fromkeys(leaf.other_keys, "int64")
            if key in TEXT_KEYS and leaf.path in self.class_names:
                kinds[TEXT_KEYS[key]] = "bytes"
        return kinds


def standard_keys(leaves: Sequence[Leaf], supervised: Sequence[str] = ()) -> dict[str, str]:
    """Map the paths of features to standard keys, where their role is unambiguous."""
    single = {leaf.path: leaf for leaf in leaves if not leaf.lengths}
    keys: dict[str, str] = {}

    def choose(key: str, paths: Sequence[str], *usual: str) -> None:
        candidates = [path for path in (*supervised, *usual) if path in paths]
        if not candidates and len(paths) == 1:
            candidates = [paths[0]]
        if candidates and candidates[0] not in keys:
            keys[candidates[0]] = key

    images = [path for path, leaf in single.items() if leaf.has_pixels]
    masks = [path for path in images if _is_mask(single[path])]
    choose(IMAGE, [path for path in images if path not in masks], "image")
    if IMAGE in keys.values():
        choose(MASK, masks, "segmentation_mask", "mask")
        labels = [path for path, leaf in single.items() if leaf.type == LABEL_FEATURE]
        choose(CLASS_LABEL, labels, "label")
        names = [path for path, leaf in single.items() if leaf.type == TEXT]
        if usual := [path for path in _FILE_NAMES if path in names]:
            keys[usual[0]] = FILENAME
        keys |= _object_keys(leaves)
    return keys


def _is_mask(leaf: Leaf) -> bool:
    is_named = is_mask_key(leaf.path) or leaf.has_colors
    return leaf.type == LABELED_IMAGE or (leaf.shape[-1] == 1 and is_named)


def _object_keys(leaves: Sequence[Leaf]) -> dict[str, str]:
    """The keys of objects, if exactly one sequence of dicts has boxes."""
    pairs = [leaf for leaf in leaves if len(leaf.parts) == 2]
    boxes = [leaf for leaf in pairs if leaf.type == BOX_FEATURE and len(leaf.lengths) == 1]
    if len(boxes) != 1:
        return {}
    name = boxes[0].parts[0]
    is_of_dicts = boxes[0].depths == (1,) and not boxes[0].in_steps
    if not is_of_dicts or boxes[0].box_format != BOX_FORMAT:
        return {}
    keys = {boxes[0].path: BOXES}
    inner = [leaf for leaf in pairs if leaf.parts[0] == name]
    labels = [leaf.path for leaf in inner if leaf.type == LABEL_FEATURE]
    if f"{name}/label" in labels or len(labels) == 1:
        keys[f"{name}/label" if f"{name}/label" in labels else labels[0]] = OBJECT_LABEL
    for leaf in inner:
        key = _OBJECT_KEYS.get(leaf.parts[1])
        if key is not None and not leaf.shape and leaf.dtype in ("bool", "int64"):
            keys[leaf.path] = key
    return keys


def stored_values(record: Features, leaf: Leaf) -> FeatureValue | None:
    """The values of a leaf in a record; None if it may be missing and is."""
    if leaf.value_key not in record and leaf.optional:
        return None
    values = _of_kind(record, leaf.value_key, kind_of(leaf), leaf)
    if leaf.is_fixed and leaf.item_size is not None:
        expected: object = math.prod(length or 0 for length in leaf.lengths) * leaf.item_size
        if len(values) != expected:
            raise _shape_error(leaf, "the number of values is wrong", len(values), expected)
    elif len(values) % max(1, leaf.least_size):
        expected = f"a multiple of {leaf.least_size}"
        raise _shape_error(leaf, "the values do not fill whole items", len(values), expected)
    return values


def _shape_error(leaf: Leaf, problem: str, actual: object, expected: object) -> DataError:
    return CorruptDataError(
        Defect.FEATURE_SHAPE,
        problem,
        found=str(actual),
        expected=str(expected),
        feature=leaf.path,
    )


def _of_kind(record: Features, key: str, kind: Kind, leaf: Leaf) -> FeatureValue:
    values = record.get(key)
    if values is None or (isinstance(values, list) and not values):  # also a list without kind
        if values is None and leaf.is_fixed:
            raise CorruptDataError(Defect.MISSING_FEATURE, "the feature is missing", feature=key)
        return [] if kind == "bytes" else np.zeros(0, _KIND_TYPES[kind])
    stored_kind = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
    if stored_kind != kind:
        raise CorruptDataError(
            Defect.FEATURE_KIND,
            "the values have another kind than features.json states",
            found=stored_kind,
            expected=kind,
            feature=key,
        )
    return values


def _names_of(labels: Any, names: Sequence[str]) -> list[bytes]:
    """The names of classes; empty for a class without a name, such as -1 for an unknown class."""
    return [names[label].encode() if 0 <= label < len(names) else b"" for label in labels.tolist()]


# -- tensors ---------------------------------------------------------------------------------------


def kind_of(leaf: Leaf, *, is_stored: bool = True) -> Kind:
    """The kind of the values of a leaf, as TFDS stores them or as they are packed."""
    dtype = leaf.dtype
    if is_stored and leaf.is_encoded:
        return "bytes"
    if leaf.type not in _NUMERIC or (leaf.is_encoded and not is_decodable(leaf)):
        return "bytes"
    if dtype.startswith(("float", "bfloat")):
        return "float"
    return "int64" if dtype.startswith(("int", "uint", "bool")) else "bytes"


def is_decodable(leaf: Leaf) -> bool:
    """Whether the bytes of a tensor become a list of numbers without losing anything."""
    is_divisible = not leaf.lengths or None not in leaf.shape
    return leaf.dtype in _NUMBERS and is_divisible


def decode_tensors(leaf: Leaf, items: Sequence[bytes], shape: Sequence[int]) -> FeatureValue:
    """The numbers in the bytes of tensors, or their bytes without compression."""
    known = [length for length in (shape or leaf.shape) if length is not None]
    is_numeric = is_decodable(leaf)
    is_whole = is_numeric and len(known) == len(leaf.shape)
    dtype = np.dtype(_NUMBERS[leaf.dtype] if is_numeric else "u1")
    unit = math.prod(known) * dtype.itemsize
    if leaf.encoding == "zlib":
        max_bytes = min(_MAX_TENSOR_BYTES, unit) if is_whole else _MAX_TENSOR_BYTES
        items = [_inflate(leaf, item, max_bytes) for item in items]
    if not is_numeric:
        return list(items)
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


def _inflate(leaf: Leaf, item: bytes, max_bytes: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(item, max_bytes + 1)
    except zlib.error as error:
        raise CorruptDataError(
            Defect.FEATURE_VALUE, f"cannot decompress a tensor: {error}", feature=leaf.path
        ) from None
    if not inflater.eof or len(data) > max_bytes:
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            "a compressed tensor is truncated or too large",
            expected=f"at most {max_bytes} bytes",
            feature=leaf.path,
        )
    return data

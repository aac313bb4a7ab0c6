"""Converts records between the features that TFDS stores and those with standard keys.

Tensors that TFDS stores as bytes become numbers, and episodes are cut into windows of steps.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.tfds.features import BOX as BOX_FEATURE
from recordsmith.dataset.tfds.features import CLASS_LABEL as LABEL_FEATURE
from recordsmith.dataset.tfds.features import (
    DATASET,
    SCALAR,
    TENSOR,
    Leaf,
    TfdsDescription,
    TfdsFeature,
)
from recordsmith.dataset.tfds.roles import BOXES
from recordsmith.errors import CorruptDataError, DataError, Defect, OptionError, SourceError
from recordsmith.example import Features, FeatureValue, Kind
from recordsmith.example.keys import (
    BOX,
    CLASS_LABEL,
    CLASS_TEXT,
    FORMAT,
    HEIGHT,
    IMAGE,
    MASK,
    MASK_FORMAT,
    OBJECT_LABEL,
    OBJECT_TEXT,
    WIDTH,
)
from recordsmith.image import decode_mask, encode_mask, probe_image, probe_mask, read_image_header

OBJECTS = "objects"
DECODABLE = ("jpeg", "png", "bmp")
"""Formats of images that TensorFlow decodes to one image."""

_KIND_TYPES = {"int64": np.int64, "float": np.float32}
_TEXT_KEYS = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}
_PATHS = {IMAGE: "image", MASK: "mask", CLASS_LABEL: "label", BOXES: f"{OBJECTS}/bbox"}
_OBJECT_PREFIX = OBJECT_LABEL.removesuffix("class/label")
_IMPLIED = {
    IMAGE: (FORMAT, HEIGHT, WIDTH),
    MASK: (MASK_FORMAT,),
    **{key: (text,) for key, text in _TEXT_KEYS.items()},
}
"""Features that TFDS does not store, because another one implies them."""
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


def read_record(
    record: Features,
    leaves: Sequence[Leaf],
    keys: Mapping[str, str],
    class_names: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Convert one record of TFDS to features with standard keys."""
    features: dict[str, Any] = {}
    for leaf in leaves:
        values = stored_values(record, leaf)
        if values is None:
            continue
        for key in leaf.keys[1:]:
            features[key] = _of_kind(record, key, "int64", leaf)
        if leaf.is_encoded:
            shape = features[leaf.shape_key].tolist() if leaf.has_shape_key else ()
            values = decode_tensors(leaf, values, shape)  # type: ignore[arg-type]
        key = keys.get(leaf.path, leaf.value_key)
        if key == BOXES:
            features |= dict(zip(BOX, np.reshape(values, (-1, 4)).T, strict=True))
            continue
        features[key] = values
        if key in _TEXT_KEYS and leaf.path in class_names:
            features[_TEXT_KEYS[key]] = _names_of(values, class_names[leaf.path])
        elif key == IMAGE:
            info = probe_image(values[0])
            features |= {FORMAT: info.format, HEIGHT: info.height, WIDTH: info.width}
        elif key == MASK:
            features[MASK_FORMAT] = probe_image(values[0]).format
    return features


def kinds_of(
    leaves: Sequence[Leaf], keys: Mapping[str, str], class_names: Mapping[str, Sequence[str]]
) -> dict[str, Kind]:
    """The kinds of the features that `read_record` returns."""
    kinds: dict[str, Kind] = {}
    for leaf in leaves:
        key = keys.get(leaf.path, leaf.value_key)
        if key == BOXES:
            kinds |= dict.fromkeys(BOX, "float")
            continue
        kinds[key] = kind_of(leaf, is_stored=False)
        kinds |= dict.fromkeys(leaf.keys[1:], "int64")
        if key in _TEXT_KEYS and leaf.path in class_names:
            kinds[_TEXT_KEYS[key]] = "bytes"
    return kinds


def stored_values(record: Features, leaf: Leaf) -> FeatureValue | None:
    """The values of a leaf in a record; None if it may be missing and is."""
    if leaf.value_key not in record and leaf.feature.optional:
        return None
    values = _of_kind(record, leaf.value_key, kind_of(leaf), leaf)
    if leaf.is_fixed and leaf.item_size is not None:
        expected = math.prod(length or 0 for length in leaf.lengths) * leaf.item_size
        if len(values) != expected:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                "the number of values is wrong",
                found=str(len(values)),
                expected=str(expected),
                feature=leaf.path,
            )
    elif len(values) % max(1, leaf.least_size):
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            "the values do not fill whole items",
            found=str(len(values)),
            expected=f"a multiple of {leaf.least_size}",
            feature=leaf.path,
        )
    return values


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


def unique_names(class_names: ClassNames | None) -> tuple[str, ...] | None:
    """A name for each class, as TFDS needs them; None if there are none, or some are equal.

    A class without a name is named by its number.
    """
    names = tuple(
        str(number) if name is None or not name.strip() else name.strip()
        for number, name in enumerate(class_names or ())
    )
    return names if names and len(set(names)) == len(names) else None


class RecordConverter:
    """Converts records with standard keys to those that TFDS stores. Thread-safe.

    paths: the paths that standard keys become; other features keep their keys.
    class_names: by path, of the labels that are converted.
    """

    def __init__(self, class_names: ClassNames | None, known: TfdsDescription | None) -> None:
        self.known = known or TfdsDescription()
        self.is_stored = self.known.is_stored
        self.paths: dict[str, str] = {}
        self.class_names = dict(self.known.class_names)
        self._encoded = {}
        if self.is_stored:  # the records have been converted before
            return
        leaves = self.known.features.leaves()
        self._encoded = {leaf.value_key: leaf for leaf in leaves if leaf.is_encoded}
        known_keys = {key for leaf in leaves for key in leaf.keys}
        self.paths = {key: path for path, key in self.known.keys.items()}
        for key, path in _PATHS.items():
            if path not in known_keys:
                self.paths.setdefault(key, path)
        names = unique_names(class_names)
        for key in (CLASS_LABEL, OBJECT_LABEL):
            if names and (path := self.path_of(key)) not in self.class_names:
                self.class_names[path] = names

    def path_of(self, key: str) -> str:
        """The path of a feature in TFDS."""
        path = self.paths.get(key)
        if path is None and key.startswith(_OBJECT_PREFIX) and not self.is_stored:
            return f"{OBJECTS}/{key.removeprefix(_OBJECT_PREFIX).removeprefix('class/')}"
        return key if path is None else path

    def convert(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Convert one record."""
        if self.is_stored:
            return dict(features)
        implied = {key for given in features for key in self._implied_by(given)}
        converted: dict[str, Any] = {}
        if any(key in features for key in BOX):
            converted[self.path_of(BOXES)] = _joined_boxes(features)
        for key, value in features.items():
            if key in BOX or key in implied:
                continue
            path = self.path_of(key)
            if path in converted:
                raise OptionError(f"two features would have the path {path!r} in TFDS", value=path)
            converted[path] = self._value(key, path, value)
        return converted

    def _implied_by(self, key: str) -> Sequence[str]:
        if key in (CLASS_LABEL, OBJECT_LABEL) and self.path_of(key) not in self.class_names:
            return ()
        return _IMPLIED.get(key, ())

    def _value(self, key: str, path: str, value: Any) -> Any:
        if path in self._encoded:
            return encode_tensors(self._encoded[path], value)
        if key in (IMAGE, MASK):
            for data in bytes_in(value):
                check_decodable(key, data)
        if key == MASK:
            return list(map(_plain_mask, bytes_in(value)))
        if key in (CLASS_LABEL, OBJECT_LABEL) and path in self.class_names:
            labels = np.atleast_1d(np.asarray(value if np.size(value) else (), np.int64))
            count = len(self.class_names[path])
            wrong = labels[(labels < -1) | (labels >= count)]
            if len(wrong):
                raise SourceError(
                    f"class {wrong[0]} has no name: there are {count} class names",
                    remedy="Complete the names of the classes.",
                )
        return value


def bytes_in(value: Any) -> list[bytes]:
    """The byte strings of a feature; none if it has numbers or is missing."""
    if isinstance(value, bytes):
        return [value]
    return [item for item in value if isinstance(item, bytes)] if isinstance(value, list) else []


def check_decodable(key: str, data: bytes) -> None:
    """Raise SourceError for an image that TensorFlow Datasets cannot decode."""
    header = read_image_header(data)
    if header is None or header.format not in DECODABLE:
        format_name = "unsupported" if header is None else header.format
        raise SourceError(
            f"TensorFlow Datasets cannot decode {key!r}: its format is {format_name}",
            remedy="Store the images as PNG or JPEG.",
        )


def _joined_boxes(features: Mapping[str, Any]) -> Any:
    """Boxes as TFDS stores them: ymin, xmin, ymax and xmax of each."""
    missing = [key for key in BOX if key not in features]
    if missing:
        raise SourceError(f"its boxes lack {missing[0]}")
    edges = [np.atleast_1d(np.asarray(features[key], np.float32)) for key in BOX]
    if len({len(edge) for edge in edges}) > 1:
        raise SourceError("the edges of its boxes differ in number")
    return np.stack(edges, axis=1).ravel()


def _plain_mask(data: bytes) -> bytes:
    """A mask that TensorFlow decodes to class numbers: a greyscale PNG of 8 or 16 bits."""
    info = probe_mask(data)
    is_plain = info.kind == "grey" and info.bits >= 8 and not info.has_alpha
    if info.kind not in ("grey", "palette") or (is_plain and info.format == "png"):
        return data
    return encode_mask(decode_mask(data))


# -- tensors ---------------------------------------------------------------------------------------


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
    """The numbers in the bytes of tensors, or their bytes without compression."""
    known = [length for length in (*(shape or leaf.feature.shape),) if length is not None]
    is_whole = len(known) == len(leaf.feature.shape)
    if not is_decodable(leaf):
        is_packed = leaf.feature.encoding == "zlib"
        return (
            [_inflate(leaf, item, _MAX_TENSOR_BYTES) for item in items]
            if is_packed
            else list(items)
        )
    dtype = np.dtype(_NUMBERS[leaf.feature.dtype])
    unit = math.prod(known) * dtype.itemsize
    if leaf.feature.encoding == "zlib":
        max_bytes = min(_MAX_TENSOR_BYTES, unit) if is_whole else _MAX_TENSOR_BYTES
        items = [_inflate(leaf, item, max_bytes) for item in items]
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


# -- windows of steps ------------------------------------------------------------------------------


def with_any_length(features: TfdsFeature) -> TfdsFeature:
    """The features with any number of steps, for windows of steps."""
    items = {
        name: replace(item, length=None) if item.type == DATASET else item
        for name, item in features.items.items()
    }
    return replace(features, items=items)


def cut_steps(record: Features, leaves: Sequence[Leaf], start: int, stop: int) -> Features:
    """A record with only some steps of its episode; other features are kept."""
    cut = dict(record)
    for leaf in leaves:
        if not leaf.in_steps or stored_values(record, leaf) is None:
            continue
        inner = len(leaf.lengths) - 1
        size = leaf.item_size
        if size is None:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                "the number of values of a step is unknown",
                expected=f"at most one unknown length, found {len(leaf.lengths) + 1}",
                feature=leaf.path,
            )
        _cut(cut, record, leaf.length_keys[:inner], leaf.value_key, (start, stop, size), leaf)
        if leaf.has_shape_key:
            rank = len(leaf.feature.shape)
            _cut(cut, record, leaf.length_keys[inner:], leaf.shape_key, (start, stop, rank), leaf)
    return cut


def _cut(
    cut: Features,
    record: Features,
    length_keys: Sequence[str],
    key: str,
    part: tuple[int, int, int],
    leaf: Leaf,
) -> None:
    start, stop, size = part
    for length_key in length_keys:
        lengths: Any = record.get(length_key, np.zeros(0, np.int64))
        if len(lengths) < stop or (lengths < 0).any():
            raise _too_short(leaf, len(lengths), stop)
        cut[length_key] = lengths[start:stop]
        ends = np.concatenate(([0], np.cumsum(lengths)))
        start, stop = int(ends[start]), int(ends[stop])
    values = record.get(key, [])
    if len(values) < stop * size:
        raise _too_short(leaf, len(values) // max(1, size), stop)
    cut[key] = values[start * size : stop * size]


def _too_short(leaf: Leaf, found: int, expected: int) -> DataError:
    return CorruptDataError(
        Defect.FEATURE_SHAPE,
        "the features of an episode have different numbers of steps",
        found=str(found),
        expected=f"at least {expected}",
        feature=leaf.path,
    )

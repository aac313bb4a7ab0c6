"""Converts features with standard keys to records as TFDS stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.tfds.description import TfdsDescription
from recordsmith.dataset.tfds.roles import BOXES
from recordsmith.dataset.tfds.tensors import encode_tensors, kind_of
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
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
from recordsmith.image import decode_mask, encode_mask, probe_mask, read_image_header

OBJECTS = "objects"
DECODABLE = ("jpeg", "png", "bmp")
"""Formats of images that TensorFlow decodes to one image."""

_PATHS = {IMAGE: "image", MASK: "mask", CLASS_LABEL: "label", BOXES: f"{OBJECTS}/bbox"}
_OBJECT_PREFIX = OBJECT_LABEL.removesuffix("class/label")
_IMPLIED = {
    IMAGE: (FORMAT, HEIGHT, WIDTH),
    MASK: (MASK_FORMAT,),
    CLASS_LABEL: (CLASS_TEXT,),
    OBJECT_LABEL: (OBJECT_TEXT,),
}
"""Features that TFDS does not store, because another one implies them."""


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
    """Converts records. Thread-safe.

    paths: the paths that standard keys become; other features keep their keys.
    class_names: by path, of the labels that are converted.
    """

    def __init__(self, class_names: ClassNames | None, known: TfdsDescription | None) -> None:
        """
        Args:
            class_names: those of the dataset; None if it has none.
            known: how TFDS described the dataset that these records come from.
        """
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
        """Convert one record.

        Raises:
            SourceError: a label has no name, or boxes lack an edge.
            OptionError: two features would have the same path.
            CorruptDataError: a mask cannot be decoded.
        """
        if self.is_stored:
            return dict(features)
        implied = {key for given in features for key in self._implied_by(given)}
        found: dict[str, Any] = {}
        if any(key in features for key in BOX):
            found[self.path_of(BOXES)] = _joined_boxes(features)
        for key, value in features.items():
            if key in BOX or key in implied:
                continue
            path = self.path_of(key)
            if path in found:
                raise OptionError(f"two features would have the path {path!r} in TFDS", value=path)
            found[path] = self._value(key, path, value)
        return found

    def kinds(self, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
        """The kinds of converted features, from those with standard keys."""
        found: dict[str, Kind] = {
            self.path_of(BOXES if key in BOX else key): kind for key, kind in kinds.items()
        }
        return found | {key: kind_of(leaf) for key, leaf in self._encoded.items() if key in found}

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
    return [each for each in value if isinstance(each, bytes)] if isinstance(value, list) else []


def check_decodable(key: str, data: bytes) -> None:
    """Raise SourceError for an image that TensorFlow Datasets cannot decode."""
    header = read_image_header(data)
    if header is None or header.format not in DECODABLE:
        found = "unsupported" if header is None else header.format
        raise SourceError(
            f"TensorFlow Datasets cannot decode {key!r}: its format is {found}",
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

"""Converts records as TFDS stores them to features with standard keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset.tfds.features import Leaf
from recordsmith.dataset.tfds.roles import BOXES
from recordsmith.dataset.tfds.tensors import decode_tensors, kind_of
from recordsmith.errors import CorruptDataError, Defect
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
from recordsmith.image import probe_image

_KIND_TYPES = {"int64": np.int64, "float": np.float32}
_TEXT_KEYS = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}


def read_record(
    record: Features,
    leaves: Sequence[Leaf],
    keys: Mapping[str, str],
    class_names: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Convert one record.

    Args:
        record: as `decode_example` returns it.
        keys: standard keys of leaves, by path.
        class_names: of labels, by path.

    Raises:
        CorruptDataError: a feature is missing or has another kind or number of values.
    """
    found: dict[str, Any] = {}
    for leaf in leaves:
        values = stored_values(record, leaf)
        if values is None:
            continue
        for key in leaf.keys[1:]:
            found[key] = _of_kind(record, key, "int64", leaf)
        if leaf.is_encoded:
            shape = found[leaf.shape_key].tolist() if leaf.has_shape_key else ()
            values = decode_tensors(leaf, values, shape)  # type: ignore[arg-type]
        key = keys.get(leaf.path, leaf.value_key)
        if key == BOXES:
            found |= dict(zip(BOX, np.reshape(values, (-1, 4)).T, strict=True))
            continue
        found[key] = values
        if key in _TEXT_KEYS and leaf.path in class_names:
            found[_TEXT_KEYS[key]] = _names_of(values, class_names[leaf.path])
        elif key == IMAGE:
            info = probe_image(values[0])
            found |= {FORMAT: info.format, HEIGHT: info.height, WIDTH: info.width}
        elif key == MASK:
            found[MASK_FORMAT] = probe_image(values[0]).format
    return found


def kinds_of(
    leaves: Sequence[Leaf], keys: Mapping[str, str], class_names: Mapping[str, Sequence[str]]
) -> dict[str, Kind]:
    """The kinds of the features that `read_record` returns."""
    found: dict[str, Kind] = {}
    for leaf in leaves:
        key = keys.get(leaf.path, leaf.value_key)
        if key == BOXES:
            found |= dict.fromkeys(BOX, "float")
            continue
        found[key] = kind_of(leaf, is_stored=False)
        found |= dict.fromkeys(leaf.keys[1:], "int64")
        if key in _TEXT_KEYS and leaf.path in class_names:
            found[_TEXT_KEYS[key]] = "bytes"
    return found


def stored_values(record: Features, leaf: Leaf) -> FeatureValue | None:
    """The values of a leaf in a record; None if it may be missing and is.

    Raises:
        CorruptDataError: missing-feature, feature-kind-mismatch, feature-shape-mismatch.
    """
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
    found = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
    if found != kind:
        raise CorruptDataError(
            Defect.FEATURE_KIND,
            "the values have another kind than features.json states",
            found=found,
            expected=kind,
            feature=key,
        )
    return values


def _names_of(labels: Any, names: Sequence[str]) -> list[bytes]:
    """The names of classes; empty for a class without a name, such as -1 for an unknown class."""
    return [names[label].encode() if 0 <= label < len(names) else b"" for label in labels.tolist()]

"""Images in the columns of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recordsmith.arrow.library import import_pyarrow
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Features, FeatureSchema, FeatureValue
from recordsmith.example.keys import HEIGHT, IMAGE, MASK, SOURCE_ID
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.images import IMAGE_KEYS, MASK_KEYS

_DESCRIPTION = IMAGE_KEYS | {SOURCE_ID}


def image_keys(features: Mapping[str, FeatureSchema]) -> list[str]:
    """Return the features with one image in each record; the main image is first."""
    found = [
        key
        for key, feature in features.items()
        if feature.kind == "bytes"
        and feature.max_length == 1
        and (feature.content == "image" or (key == IMAGE and HEIGHT in features))
    ]
    return sorted(found, key=lambda key: key != IMAGE)


def description_keys(images: Iterable[str]) -> frozenset[str]:
    """Return the features that need no column, as they describe these images."""
    hidden = frozenset[str]()
    if IMAGE in images:
        hidden |= IMAGE_KEYS - {IMAGE}
    if MASK in images:
        hidden |= MASK_KEYS - {MASK}
    return hidden


def check_names(columns: Iterable[str]) -> None:
    """Raise OptionError if two columns have the same name."""
    names = list(columns)
    if len(set(names)) < len(names):
        raise OptionError(
            "two features would become columns with the same name",
            remedy="Rename one of them, or choose another format.",
        )


def convert_images(
    batch: Any,
    images: list[str],
    out: ExportWriter,
    position: Callable[[int], int],
    convert: Callable[[Features, str], Any],
) -> tuple[Any, dict[str, list[Any]]]:
    """Convert the images of a pyarrow.RecordBatch.

    Returns:
        The rows without the skipped ones, and the results by key; None for missing images.
    """
    keys = [name for name in batch.schema.names if name in _DESCRIPTION or name in images]
    converted: dict[str, list[Any]] = {key: [] for key in images}
    kept = []
    for row, values in enumerate(batch.select(keys).to_pylist()):
        example = {key: _feature(value) for key, value in values.items() if value is not None}
        out.position = position(row)
        try:
            results = [
                convert(example, key) if len(example.get(key, ())) else None for key in images
            ]
        except SourceError as error:
            out.skip(error)
            continue
        kept.append(row)
        for key, result in zip(images, results, strict=True):
            converted[key].append(result)
    if len(kept) < len(batch):
        batch = batch.take(import_pyarrow().array(kept, "int64"))
    return batch, converted


def _feature(value: Any) -> FeatureValue:
    """Return the value of a cell as it is in a decoded example."""
    values = value if isinstance(value, list) else [value]
    if not values or isinstance(values[0], (bytes, str)):
        return [item.encode() if isinstance(item, str) else item for item in values]
    if isinstance(values[0], int):
        return np.array(values, np.int64)
    return np.array(values, np.float32)

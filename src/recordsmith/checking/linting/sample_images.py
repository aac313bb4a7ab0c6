"""The features of a sample, and the image of a sample whose annotations cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.format.example import decode_payload, keys
from recordsmith.format.example.feature_values import first_bytes, first_value, values_of
from recordsmith.image import Box, find_image_header, starts_like_image
from recordsmith.sources import Content, Sample, has_image_name, image_features
from recordsmith.stores import Location
from recordsmith.support.errors import DataError, RecordsmithError

RAW = (b"raw", "raw")
"""The format of pixels without a header."""


def decode_content(content: Content) -> Content:
    """Decode a payload; other content is returned as it is."""
    if isinstance(content, bytes):
        try:
            return decode_payload(content)
        except DataError:  # a record of another type, which is packed unchanged
            return {}
    return content


def features_of(content: Content) -> Mapping[str, Any]:
    """The features of a sample; of a sequence, those of its context."""
    content = decode_content(content)
    if isinstance(content, bytes):
        return {}
    found = content if isinstance(content, Mapping) else content.context
    return found if isinstance(found, Mapping) else {}


def place_of(reader: object, sample: Sample) -> tuple[str, str]:
    """How people find a sample: its image or file, and its row in a table, where it has one."""
    reference = sample.reference or {}
    if "fault" in reference:
        path = str(reference["fault"].get("path") or sample.name)
        return path.removeprefix(f"{getattr(reader, 'root', None)}/"), ""
    from recordsmith.sources import TableReader

    row = reader.place_of(sample) if isinstance(reader, TableReader) else ""
    image = reference.get("image") if row else sample.name
    return (image, row) if image else (row, "")


def image_of(reader: object, sample: Sample) -> Mapping[str, Any]:
    """The features of the image of a sample, read without its annotations; {} if unknown."""
    root = getattr(reader, "root", None)  # of readers of files that name samples after images
    if not isinstance(root, Location) or not has_image_name(sample.name):
        return {}
    try:
        return image_features((root / sample.name).read(), sample.name)
    except RecordsmithError:
        return {}


def image_in(features: Mapping[str, Any]) -> bytes | None:
    """The encoded image of a sample: under the usual key, or the first value that is one."""
    if first_value(features, keys.FORMAT) in RAW:
        return None
    usual = first_bytes(features, keys.IMAGE)
    if usual is not None:
        return usual
    for key in features:
        data = first_bytes(features, key)
        if key != keys.MASK and data is not None and find_image_header(data) is not None:
            return data
    return None


def masks_in(features: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the masks of a sample: under the usual key, or images with the name of a mask."""
    for key in features:
        data = first_bytes(features, key)
        if data is None or key == keys.OBJECT_MASK:
            continue
        if key == keys.MASK:
            if first_value(features, keys.MASK_FORMAT) not in RAW:
                yield key, data
        elif keys.is_mask_key(key) and starts_like_image(data):
            yield key, data


def boxes_of(features: Mapping[str, Any]) -> list[Box]:
    """(ymin, xmin, ymax, xmax) of each object."""
    sides = (map(float, values_of(features.get(key))) for key in keys.BOX)
    return [(top, left, bottom, right) for top, left, bottom, right in zip(*sides, strict=False)]

"""The features of a sample, and the image of a sample whose annotations cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recordsmith.errors import RecordsmithError
from recordsmith.example import decode_payload
from recordsmith.sources import Content, Sample
from recordsmith.sources.files.folders import is_file
from recordsmith.sources.files.images import has_image_name, image_features
from recordsmith.stores import Location


def features_of(content: Content) -> Mapping[str, Any]:
    """The features of a sample; of a sequence, those of its context."""
    if isinstance(content, bytes):
        content = decode_payload(content)
    found = content if isinstance(content, Mapping) else content.context
    return found if isinstance(found, Mapping) else {}


def image_of(reader: object, sample: Sample) -> Mapping[str, Any]:
    """The features of the image of a sample, read without its annotations; {} if unknown."""
    location = location_of(reader, sample)
    if location is None:
        return {}
    try:
        return image_features(location.read(), sample.name)
    except RecordsmithError:
        return {}


def location_of(reader: object, sample: Sample) -> Location | None:
    """Where the image of a sample is, for readers of files that name samples after images."""
    root = getattr(reader, "root", None)
    if not isinstance(root, Location) or not has_image_name(sample.name):
        return None
    location = root / sample.name
    return location if is_file(location) else None

"""Recognize and read image files.

A file counts as an image if its content or its suffix is that of an image.
"""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from recordsmith.format.example import Kind, keys
from recordsmith.format.wire import HEAD_BYTES, detect_other_format
from recordsmith.image import IMAGE_SUFFIXES, ImageHeader, is_image, probe_image
from recordsmith.stores import FolderEntry, Location
from recordsmith.support.errors import CorruptDataError, located

IMAGE_FOLDERS = (
    *("jpegimages", "images", "image", "imgs", "img", "pictures", "photos", "picture", "photo"),
    *("pics", "pic"),
)
"""Common names of folders of images, in lower case, the most likely first."""

_IMAGE_WORDS = frozenset(
    (
        *IMAGE_FOLDERS,
        *("rgb", "input", "inputs", "original", "originals", "orig"),
        *("sat", "frame", "frames", "source", "raw", "leftimg8bit"),
    )
)


def read_image(location: Location, name: str) -> dict[str, Any]:
    """Read the features of an image file; `name` becomes `image/filename`."""
    data = location.read()
    with located(location):
        return image_features(data, name)


def image_features(data: bytes, name: str) -> dict[str, Any]:
    info = _probe(data)
    return {
        keys.IMAGE: data,
        keys.FILENAME: os.fsencode(name),
        keys.FORMAT: info.format,
        keys.HEIGHT: info.height,
        keys.WIDTH: info.width,
    }


LABEL_KINDS: Mapping[str, Kind] = {
    keys.CLASS_LABEL: "int64",
    keys.CLASS_TEXT: "bytes",
    keys.CLASS_CONFIDENCE: "float",
}
"""Those of the classes of an image that may have several, or none."""


def class_features(
    label: int | None,
    class_names: Sequence[str | None] | None,
    lists: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The features of the class of an image, or of several; empty if it is not known.

    lists: if images may have several, the reference with their `labels` and perhaps `confidence`.
    """
    labels = None if lists is None else lists.get("labels")
    if labels is not None:
        texts = [os.fsencode((class_names or ())[number] or "") for number in labels]
        features: dict[str, Any] = {keys.CLASS_LABEL: [*labels], keys.CLASS_TEXT: texts}
        known = (lists or {}).get("confidence")
        return features if known is None else {**features, keys.CLASS_CONFIDENCE: [*known]}
    if label is None or class_names is None:
        return {}
    return {keys.CLASS_LABEL: label, keys.CLASS_TEXT: os.fsencode(class_names[label] or "")}


def is_image_file(folder: Location, entry: FolderEntry) -> bool:
    """Whether a file is an image, by suffix or content; a broken link counts by its suffix."""
    if has_image_name(entry.name):
        return entry.kind in ("object", "broken")
    if entry.kind != "object":
        return False
    with io.BufferedReader((folder / entry.name).open_read()) as file:
        return is_image(file)


def has_image_name(name: str) -> bool:
    stem, _, suffix = name.rpartition(".")  # as `os.path.splitext`, in half the time
    return f".{suffix.lower()}" in IMAGE_SUFFIXES and not stem.endswith("/") and bool(stem)


def without_suffix(path: str) -> str:
    """A path without its image suffix; other suffixes stay."""
    return os.path.splitext(path)[0] if has_image_name(path) else path


def stem_of(path: str) -> str:
    """The name of a file without its suffix: `val/x.JPEG` -> x."""
    return posixpath.splitext(posixpath.basename(path))[0]


def is_image_word(name: str) -> bool:
    """Whether a folder has a common name of folders of images, which is not a class."""
    return name.lower() in _IMAGE_WORDS


def is_mask_word(name: str) -> bool:
    """Whether a folder is named like a folder of masks, and never like one of images."""
    return name.lower() in ("mask", "masks", "segmentationclass", "trimaps", "annotation_masks")


def _probe(data: bytes) -> ImageHeader:
    try:
        return probe_image(data)
    except CorruptDataError as error:
        foreign = detect_other_format(data[:HEAD_BYTES])
        if foreign is not None and not foreign.name.endswith("image"):
            error.problem, error.remedy = f"this is {foreign.name}, not an image", foreign.advice
        raise

"""Recognize and read image files.

A file counts as an image if its content or its suffix is that of an image.
"""

from __future__ import annotations

import io
import itertools
import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Kind, RaggedArray, keys
from recordsmith.format.example.class_lists import positive_values, rarest_classes
from recordsmith.format.wire import HEAD_BYTES, detect_other_format
from recordsmith.image import IMAGE_SUFFIXES, ImageHeader, is_image, probe_image
from recordsmith.stores import FolderEntry, Location
from recordsmith.support.buffers import offsets_from_lengths
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


LIST_KINDS: Mapping[str, Kind] = {
    keys.CLASS_LABEL: "int64",
    keys.CLASS_TEXT: "bytes",
    keys.CLASS_CONFIDENCE: "float",
}
"""The features of the classes of an image that may have several."""


def list_reference(labels: Mapping[int, float], *, has_confidence: bool) -> dict[str, Any]:
    """The labels of an image that may have several, as a part of its reference."""
    known = {keys.CLASS_LABEL: [*labels]}
    return known | ({keys.CLASS_CONFIDENCE: [*labels.values()]} if has_confidence else {})


def rarest_labels(references: Iterable[Mapping[str, Any]]) -> npt.NDArray[np.int32]:
    """The rarest label of each image; -1 for an image without labels."""
    positive = [positive_values(of, keys.CLASS_LABEL) for of in references]
    labels = np.fromiter(itertools.chain.from_iterable(positive), np.int64)
    lengths = offsets_from_lengths([*map(len, positive)])
    return rarest_classes(RaggedArray(labels, lengths)).astype(np.int32)


def class_features(
    label: int | None,
    class_names: Sequence[str | None] | None,
    reference: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The features of the class of an image, or of those in its reference; empty if not known."""
    if class_names is None:
        return {}
    if label is not None:
        return {keys.CLASS_LABEL: label, keys.CLASS_TEXT: os.fsencode(class_names[label] or "")}
    if reference is None or keys.CLASS_LABEL not in reference:
        return {}
    lists = {key: reference[key] for key in LIST_KINDS if key in reference}
    names = [class_names[number] or "" for number in lists[keys.CLASS_LABEL]]
    return {**lists, keys.CLASS_TEXT: [*map(os.fsencode, names)]}


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

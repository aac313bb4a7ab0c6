"""WebDataset: tar files whose members are grouped by the name before their first dot.

    <split>-000000.tar, <split>-000001.tar, …, each with
    <key>.jpg        the image, with the suffix of its format
    <key>.mask.png   its mask
    <key>.cls        its label
    <key>.<feature>.jpg, <key>.<feature>.0.jpg, <key>.<feature>.1.jpg, …
                     images of other features
    <key>.json       every other feature

In the JSON, a feature with one value is that value, others are lists. An image in a member of its
own is `{"member": "<feature>.jpg"}`, and other bytes that are not UTF-8 are `{"base64": …}`. NaN
and infinities are written as Python does. `recordsmith/empty` has the kinds of empty lists of
numbers, and the name of an unnamed image is null, so that packing the files restores the same
features, except that the main image, its mask and its class have standard keys, and that the format
and size of an image come from its header. The output is deterministic: members have no owner and no
time. Names of members have at most 255 bytes.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any, BinaryIO

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.exporting.boxes import shortest_float
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import RecordFiles
from recordsmith.exporting.images import ExportedImage, read_image, read_mask
from recordsmith.format.example import Features, FeatureValue, keys
from recordsmith.format.example.feature_values import first_bytes
from recordsmith.image import IMAGE_SUFFIXES, find_image_header, starts_like_image
from recordsmith.sources import EMPTY_KINDS, EXACT, MEMBER, text_or_base64

_FROM_IMAGE = frozenset((keys.IMAGE, keys.FORMAT, keys.HEIGHT, keys.WIDTH))
_FROM_RAW = frozenset((keys.DEPTH, keys.DTYPE))
_FROM_MASK = frozenset((keys.MASK, keys.MASK_FORMAT))
_LONGEST_NAME = 40  # of a feature, in a member
_LONGEST_SUFFIX = f".{'x' * _LONGEST_NAME}.0000000.jpeg2000"
_NO_NAME = re.compile(r"[^a-z0-9_-]+")
_RESERVED = ("mask", "seg")  # which readers take for masks


class WebDatasetShards(RecordFiles):
    options = (*RecordFiles.options, "image_key")
    suffix = ".tar"
    overhead_bytes = 2 * 1024  # a header for each of two members, and about as much padding

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out

    def file_names(self, split: str, count: int) -> Sequence[str]:
        return [f"{split}-{number:06d}{self.suffix}" for number in range(count)]

    def open(self, file: BinaryIO, split: str) -> None:
        self._split = split
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def add(self, record: Features) -> None:
        members, used = self._images(record)
        rest: dict[str, FeatureValue | None] = {
            key: value for key, value in record.items() if key not in used
        }
        references = _other_images(rest, members)
        if members:
            rest.setdefault(keys.FILENAME, None)
        label = rest.get(keys.CLASS_LABEL)
        if isinstance(label, np.ndarray) and label.dtype == np.int64 and len(label) == 1:
            members.append((".cls", str(int(label[0])).encode()))
            del rest[keys.CLASS_LABEL]
        if rest or not members:
            members.append((".json", _document(rest, references)))
        name = self._out.name_key(record, self._split, _LONGEST_SUFFIX)
        for suffix, data in members:
            member = tarfile.TarInfo(name + suffix)  # no owner, time 0, mode 644
            member.size = len(data)
            self._tar.addfile(member, io.BytesIO(data))

    def close(self) -> None:
        self._tar.close()

    def _images(self, example: Features) -> tuple[list[tuple[str, bytes]], set[str]]:
        """The members for the image and its mask, and the feature keys that they replace."""
        members: list[tuple[str, bytes]] = []
        used: set[str] = set()
        if not _has_one(example, keys.IMAGE):
            return members, used
        image = read_image(example, self._out.warn)
        if not (suffix := _suffix(image)):
            return members, used
        members.append((suffix, image.data))
        used |= _FROM_IMAGE
        if image.data is not first_bytes(example, keys.IMAGE):
            used |= _FROM_RAW
        mask = read_mask(example, image, self._out.warn) if _has_one(example, keys.MASK) else None
        if mask is not None and (suffix := _suffix(mask)):
            members.append((f".mask{suffix}", mask.data))
            used |= _FROM_MASK
            if mask.data is not first_bytes(example, keys.MASK):
                used.add(keys.MASK_DTYPE)
        return members, used


def _has_one(example: Features, key: str) -> bool:
    """Whether the feature is a single bytes value."""
    value = example.get(key)
    return isinstance(value, list) and len(value) == 1


def _suffix(image: ExportedImage) -> str:
    """The suffix of its member; empty if readers would not detect an image."""
    suffix = image.split_name("x")[1]
    return suffix if suffix in IMAGE_SUFFIXES else ""


def _other_images(
    features: Mapping[str, FeatureValue | None], members: list[tuple[str, bytes]]
) -> dict[str, list[Any]]:
    """Add members for the images of other features; return what stands for them in the JSON."""
    references: dict[str, list[Any]] = {}
    names = set(_RESERVED)
    for key, value in sorted(features.items()):
        if not isinstance(value, list) or not any(map(starts_like_image, value)):
            continue
        stem = _NO_NAME.sub("_", key.lower())[:_LONGEST_NAME]
        copies = (f"{stem[: _LONGEST_NAME - 5]}_{number}" for number in count(2))
        name = next(name for name in chain([stem], copies) if name not in names)
        names.add(name)
        items: list[Any] = []
        for number, data in enumerate(value):
            header = find_image_header(data)
            item = text_or_base64(data)
            if header is not None or isinstance(item, dict):
                suffix = "" if header is None else _suffix(ExportedImage(data, *header[:3]))
                extension = f"{name}.{number}" if len(value) > 1 else name
                extension += suffix or ".bin"
                members.append((f".{extension}", data))
                item = {MEMBER: extension}
            items.append(item)
        references[key] = items
    return references


def _document(
    features: Mapping[str, FeatureValue | None], references: Mapping[str, list[Any]]
) -> bytes:
    document: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for key in sorted(features):
        value = features[key]
        values = references.get(key) or (None if value is None else _values(value))
        document[key] = values[0] if values and len(values) == 1 else values
        if isinstance(value, np.ndarray) and not values:
            kinds[key] = "int64" if value.dtype == np.int64 else "float"
    if kinds:
        document.setdefault(EMPTY_KINDS, kinds)
    return json.dumps(document, ensure_ascii=True).encode()


def _values(value: FeatureValue) -> list[Any]:
    if isinstance(value, list):
        return [text_or_base64(item) for item in value]
    if value.dtype == np.int64:
        return list(value.tolist())
    # large numbers in full: read as integers, the shortest digits would differ
    return [
        exact if abs(exact) > EXACT else shortest_float(short)
        for exact, short in zip(value.tolist(), value, strict=True)
    ]

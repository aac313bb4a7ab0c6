"""The document of one record, with everything that is known of it, for the page."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from recordsmith.dataset import contents_of, feature_document, key_text, section_documents
from recordsmith.format.example import classify
from recordsmith.format.example.keys import may_be_mask
from recordsmith.format.wire import masked_crc32c
from recordsmith.image import (
    COLOUR_COUNT,
    MAX_PIXELS,
    MaskValues,
    check_size,
    decode_image,
    decode_mask,
    draw_mask,
    encode_png,
    exif_orientation,
    probe_image,
    reserve_for_decoding,
)
from recordsmith.support.errors import DataError, OptionError, RecordsmithError
from recordsmith.viewing.compressed_stream import Payload
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.tiles import (
    SIZES,
    TileMaker,
    boxes_of,
    encode_label_map,
    exact,
    is_series,
    problem_of,
    shortened_series,
    visible,
)
from recordsmith.viewing.wire_fields import wire_fields

_MAX_VALUES = 64
_MAX_FEATURES = 2000
_MAX_BOXES = 2000  # as many as the page draws
_MAX_TEXT = 1000
_MAX_IMAGES = 64  # of a feature, in one answer
_MAX_LISTED_IMAGES = 1024
_MAX_CURVES = 40
_CURVE_FROM = 16  # values
_CURVE_POINTS = 600
_HEX_BYTES = 4096
_LISTS = ("feature_lists", "examples")
_ENCODING = 6  # bytes per pixel, of an image with more contrast and of its file
_SAMPLED = 1 << 20  # pixels of a mask whose numbers are counted
_PASSED_THROUGH = {"jpeg": "image/jpeg", "png": "image/png"}


class RecordDetails:
    def __init__(self, records: ViewedRecords, tiles: TileMaker) -> None:
        self._records = records
        self._tiles = tiles

    def describe(self, position: int) -> dict[str, Any]:
        shard, number, offset = self._records.locate(position)
        payload = self._payload(position)
        count = len(self._records)
        document: dict[str, Any] = {
            "position": position,
            "shard": str(shard.location),
            "split": shard.split,
            "record": number,
            "offset": offset,
            "size_bytes": None,
            "payload": None,
            "name": "",
            "caption": "",
            "label": None,
            "sections": {},
            "boxes": [],
            "orientation": 1,
            "has_mask": False,
            "left_out": {},
            "step_count": 0,
            "curves": {},
            "images": [],
            "image_counts": {},
            "fields": [],
            "defect": None,
            "previous": position - 1 if position else None,
            "next": position + 1 if position + 1 < count else None,
        }
        if isinstance(payload, RecordsmithError):
            return document | {"defect": problem_of(payload)}
        document |= {"size_bytes": len(payload), "payload": classify(payload)}
        # those of the file, which were verified when it was read
        own = payload
        if shard.layers:
            with suppress(RecordsmithError):
                own = payload[: int(shard.own_sizes(np.array([number]))[0])]
            document["layers"] = [str(layer.location) for layer in shard.layers]
        parts = {"length": len(own).to_bytes(8, "little"), "payload": own}
        document["checksums"] = {
            name: masked_crc32c(data).to_bytes(4, "little").hex() for name, data in parts.items()
        }
        try:
            self._add_contents(document, payload)
        except DataError as error:
            document["fields"] = wire_fields(payload)
            if document["payload"] == "Example" or not document["fields"]:
                document["defect"] = problem_of(error)
        return document

    def _add_contents(self, document: dict[str, Any], payload: bytes) -> None:
        contents = contents_of(payload)
        document |= {
            "sections": _section_documents(contents),
            "left_out": {
                name: len(section) - _MAX_FEATURES
                for name, section in contents.items()
                if isinstance(section, dict) and len(section) > _MAX_FEATURES
            },
            "step_count": _step_count(contents),
            "curves": _curves(contents),
        }
        document["images"], document["image_counts"] = _images(contents)
        example = contents.get("features")
        if example is None:
            return
        reader = self._tiles.reader_for(example)
        label, caption = reader.read_class(example)
        document |= {
            "name": reader.name(example)[:_MAX_TEXT],
            "caption": caption[:_MAX_TEXT],
            "label": exact(label),
        }
        if not reader.is_drawable(example):
            return
        try:
            scene = reader.read(example, SIZES[0])  # only its boxes and its mask are needed
        except DataError as error:
            document["defect"] = problem_of(error)
            return
        document["boxes"] = boxes_of(scene, _MAX_BOXES)
        if len(scene.boxes) > _MAX_BOXES:
            document["left_out"]["boxes"] = len(scene.boxes) - _MAX_BOXES
        document["has_mask"] = scene.mask is not None and reader.image_key is not None
        if reader.image_key is not None and example[reader.image_key]:
            document["orientation"] = exif_orientation(example[reader.image_key][0])
        first = key_text(str(reader.image_key or reader.mask_key))
        if not any(image["key"] == first for image in document["images"]):  # raw pixels
            raw = {"key": first, "index": 0, "format": "raw"}
            document["images"].insert(0, raw | {"height": scene.height, "width": scene.width})
        document["images"].sort(key=lambda image: image["key"] != first)

    def steps(self, position: int, start: int) -> dict[str, Any]:
        """Return some steps of all lists, or Examples of a ranking list, and how many there are."""
        contents = contents_of(self._readable(position))
        lists = {name: contents[name] for name in _LISTS if name in contents}
        return {"sections": _section_documents(lists, start), "step_count": _step_count(contents)}

    def images(self, position: int, key: str, start: int) -> dict[str, Any]:
        """Return some images of a feature, and how many values it has."""
        images, counts = _images(contents_of(self._readable(position)), key, start)
        return {"images": images, "count": counts.get(key, 0)}

    def values(self, position: int, key: str, start: int, count: int) -> dict[str, Any]:
        value = self._feature(position, key)
        document: dict[str, Any] = exact(feature_document(value, count, start))
        return document | {"key": key, "start": start, "count": len(value)}

    def hex(self, position: int, start: int) -> str:
        """Return bytes of the payload as lines of hexadecimal numbers and text."""
        payload = self._readable(position)
        lines = []
        for place in range(start, min(start + _HEX_BYTES, len(payload)), 16):
            row = payload[place : place + 16]
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            lines.append(f"{place:08x}  {row.hex(' '):47}  {shown}")
        return "\n".join(lines)

    def image(self, position: int, key: str, index: int) -> tuple[str, bytes]:
        """Return the content type and the bytes of an image.

        JPEG and PNG files are passed on as they are stored. Masks have the colours of classes.
        """
        payload = self._readable(position)
        contents = contents_of(payload)
        data = _find(contents, key, index)
        mask = _class_map(key, data)
        if mask is not None:
            return "image/png", encode_png(draw_mask(mask))
        try:
            header = probe_image(data)
        except DataError:
            example = contents.get("features", {})
            reader = self._tiles.reader_for(example)
            if (
                key_text(str(reader.mask_key)) == key
                and (mask := reader.read(example).mask) is not None
            ):
                return "image/png", encode_png(draw_mask(mask))
            if key_text(str(reader.image_key)) != key:
                raise
            pixels, _ = visible(reader.read(example).pixels)
            return "image/png", encode_png(
                np.zeros((1, 1, 3), np.uint8) if pixels is None else pixels
            )
        known = _PASSED_THROUGH.get(header.format)
        if known is not None and header.variant != "16-bit" and data[:2] in (b"\xff\xd8", b"\x89P"):
            check_size(header.height, header.width, MAX_PIXELS, is_fixed=True)
            return known, data
        with reserve_for_decoding(data, header, max_pixels=None, extra=_ENCODING):
            pixels = decode_image(data, max_pixels=None)
            shown, _ = visible(pixels)
            return "image/png", encode_png(pixels if shown is None else shown)

    def mask(self, position: int) -> bytes:
        """Return the mask of a record as a PNG of class numbers, modulo 256."""
        example = contents_of(self._readable(position)).get("features", {})
        scene = self._tiles.reader_for(example).read(example)
        if scene.mask is None:
            raise OptionError("the record has no mask", option="position", value=position)
        return encode_label_map(scene.mask)

    def _payload(self, position: int) -> Payload:
        return self._records.read([position])[0]

    def _readable(self, position: int) -> bytes:
        payload = self._payload(position)
        if isinstance(payload, RecordsmithError):
            raise payload
        return payload

    def _feature(self, position: int, key: str) -> Any:
        contents = contents_of(self._readable(position))
        for section in ("features", "context"):
            for name, value in contents.get(section, {}).items():
                if key_text(name) == key:
                    return value
        raise OptionError(f"the record has no feature {key!r}", option="key", value=key)


def _class_map(key: str, data: bytes) -> MaskValues | None:
    """Return the mask of a feature that is named like one, and has few different numbers."""
    if not may_be_mask(key):
        return None
    with suppress(DataError):
        mask = decode_mask(data, max_pixels=None)
        some = mask.ravel()[:: 1 + mask.size // _SAMPLED]
        if len(np.unique(some)) <= COLOUR_COUNT:
            return mask
    return None


def _section_documents(contents: dict[str, Any], start: int = 0) -> dict[str, Any]:
    """The sections for the page: the first features; steps and Examples from `start`."""
    first = {
        name: dict(sorted(section.items())[:_MAX_FEATURES])
        if isinstance(section, dict)
        else section
        for name, section in contents.items()
    }
    document: dict[str, Any] = exact(section_documents(first, _MAX_VALUES, start))
    return document


def _step_count(contents: dict[str, Any]) -> int:
    lists = contents.get("feature_lists", {}).values()
    return max(map(len, [*lists, contents.get("examples", ())]))


def _curves(contents: dict[str, Any]) -> dict[str, dict[str, list[float | None]]]:
    """The curves of long features and of steps with one number each, by section."""
    curves: dict[str, dict[str, list[float | None]]] = {}
    left = _MAX_CURVES
    for section, features in contents.items():
        for key, value in sorted(features.items()) if section != "examples" else ():
            numbers = value
            if section == "feature_lists":
                if len(value) < 3 or any(isinstance(v, list) or len(v) != 1 for v in value):
                    continue
                numbers = np.concatenate(value)
            elif isinstance(value, list) or len(value) < _CURVE_FROM or "/object/" in key:
                continue
            if left and is_series(numbers):
                left -= 1
                of_section = curves.setdefault(section, {})
                of_section[key_text(key)] = shortened_series(numbers, _CURVE_POINTS)
    return curves


def _images(
    contents: dict[str, Any], only: str | None = None, start: int = 0
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The images of features from `start`: which values they are, and their headers; and how many
    values each of these features has.
    """
    from recordsmith.dataset import probe

    images: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for section, features in contents.items():
        for key in sorted(features) if section != "examples" else ():
            name = key_text(key)
            items = _items(section, features[key]) if only in (None, name) else []
            for index, item in enumerate(items[start : start + _MAX_IMAGES], start):
                header = probe(item)
                if header is not None and len(images) < _MAX_LISTED_IMAGES:
                    image = {"key": name, "index": index, "format": header.format}
                    images.append(image | {"height": header.height, "width": header.width})
                    counts[name] = len(items)
    return images, counts


def _items(section: str, value: Any) -> list[bytes]:
    """The bytes values of a feature, or those of all steps of a list."""
    if section == "feature_lists":
        return [item for step in value if isinstance(step, list) for item in step]
    return value if isinstance(value, list) else []


def _find(contents: dict[str, Any], key: str, index: int) -> bytes:
    for section, features in contents.items():
        if section == "examples":
            continue
        for name, value in features.items():
            if key_text(name) != key:
                continue
            items = _items(section, value)
            if index < len(items):
                return items[index]
    raise OptionError(f"the record has no image {index} of {key!r}", option="key", value=key)

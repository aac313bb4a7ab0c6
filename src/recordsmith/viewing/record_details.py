"""The document of one record, with everything that is known of it, for the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.dataset.record_document import contents_of, feature_document, key_text, to_document
from recordsmith.errors import CorruptDataError, DataError, Defect, OptionError, RecordsmithError
from recordsmith.example import classify
from recordsmith.image import MAX_PIXELS, decode_image, encode_png, probe_image
from recordsmith.viewing.compressed_stream import Payload
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.tiles import (
    SIZES,
    TileMaker,
    boxes_of,
    encode_label_map,
    exact,
    problem_of,
    visible,
)
from recordsmith.viewing.wire_fields import wire_fields
from recordsmith.wire import encode_record

_MAX_VALUES = 64
_MAX_FEATURES = 2000
_MAX_BOXES = 5000
_MAX_TEXT = 1000
_MAX_IMAGES = 64
_HEX_BYTES = 4096
_PASSED_THROUGH = {"jpeg": "image/jpeg", "png": "image/png"}


class RecordDetails:
    """Describes records one by one."""

    def __init__(self, records: ViewedRecords, tiles: TileMaker) -> None:
        self._records = records
        self._tiles = tiles

    def describe(self, position: int) -> dict[str, Any]:
        """Return the document of a record."""
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
            "has_mask": False,
            "images": [],
            "fields": [],
            "defect": None,
            "previous": position - 1 if position else None,
            "next": position + 1 if position + 1 < count else None,
        }
        if isinstance(payload, RecordsmithError):
            return document | {"defect": problem_of(payload)}
        document |= {"size_bytes": len(payload), "payload": classify(payload)}
        frame = encode_record(payload)  # whose checksums were those of the file when it was read
        document["checksums"] = {"length": frame[8:12].hex(), "payload": frame[-4:].hex()}
        try:
            self._add_contents(document, payload)
        except DataError as error:
            document["fields"] = wire_fields(payload)
            if document["payload"] == "Example" or not document["fields"]:
                document["defect"] = problem_of(error)
        return document

    def _add_contents(self, document: dict[str, Any], payload: bytes) -> None:
        sections = to_document(payload, _MAX_VALUES)
        for name in ("size_bytes", "payload", "error", "begins"):
            sections.pop(name, None)
        contents = contents_of(payload)
        document["sections"] = {
            name: _first(section, _MAX_FEATURES) for name, section in exact(sections).items()
        }
        document["images"] = _images(contents)
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
        if reader.image_key not in example:
            return
        try:
            scene = reader.read(example, SIZES[0])  # only its boxes and its mask are needed
        except DataError as error:
            document["defect"] = problem_of(error)
            return
        document["boxes"] = boxes_of(scene, _MAX_BOXES)
        document["has_mask"] = scene.mask is not None
        if not any(image["key"] == reader.image_key for image in document["images"]):  # raw pixels
            raw = {"key": reader.image_key, "index": 0, "format": "raw"}
            document["images"].insert(0, raw | {"height": scene.height, "width": scene.width})
        first = key_text(str(reader.image_key))
        document["images"].sort(key=lambda image: image["key"] != first)

    def values(self, position: int, key: str, start: int, count: int) -> dict[str, Any]:
        """Return some values of a feature."""
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
        """Return the content type and the bytes of an image; JPEG and PNG as they are stored."""
        payload = self._readable(position)
        contents = contents_of(payload)
        data = _find(contents, key, index)
        try:
            header = probe_image(data)
        except DataError:
            example = contents.get("features", {})
            reader = self._tiles.reader_for(example)
            if key_text(str(reader.image_key)) != key:
                raise
            pixels, _ = visible(reader.read(example).pixels)
            return "image/png", encode_png(
                np.zeros((1, 1, 3), np.uint8) if pixels is None else pixels
            )
        if header.height * header.width > MAX_PIXELS:
            raise CorruptDataError(
                Defect.UNREADABLE_IMAGE,
                "the image is too large to show",
                found=f"{header.width:,} x {header.height:,} pixels",
                expected=f"at most {MAX_PIXELS:,}",
            )
        known = _PASSED_THROUGH.get(header.format)
        if known is not None and header.variant != "16-bit" and data[:2] in (b"\xff\xd8", b"\x89P"):
            return known, data
        pixels, _ = visible(decode_image(data))
        return "image/png", encode_png(decode_image(data) if pixels is None else pixels)

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


def _images(contents: dict[str, Any]) -> list[dict[str, Any]]:
    """The images in a record: their keys, which values they are, and their headers."""
    from recordsmith.dataset.examples import probe

    images: list[dict[str, Any]] = []
    for section, features in contents.items():
        if section == "examples":
            continue
        for key in sorted(features):
            for index, item in enumerate(_items(section, features[key])):
                if len(images) >= _MAX_IMAGES:
                    return images
                header = probe(item)
                if header is not None:
                    image = {"key": key_text(key), "index": index, "format": header.format}
                    images.append(image | {"height": header.height, "width": header.width})
    return images


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


def _first(section: Any, most: int) -> Any:
    if isinstance(section, dict) and len(section) > most:
        return dict(list(section.items())[:most])
    return section

"""The fields of a payload of any kind, as protobuf's wire format has them."""

from __future__ import annotations

import struct
from typing import Any

from recordsmith.dataset import begin_of
from recordsmith.format.example.payload import as_text

_MAX_DEPTH = 6
_MAX_FIELDS = 400
_MAX_TEXT = 200


def wire_fields(payload: bytes) -> list[dict[str, Any]]:
    """Return the fields of a message: numbers, texts, bytes, and fields of inner messages.

    Returns an empty list if the bytes are not a message.
    """
    return _parse(memoryview(payload), 0, [_MAX_FIELDS]) or []


def describe_fields(payload: bytes, most: int) -> list[str]:
    """Describe the first fields of a message, one line each."""
    lines: list[str] = []
    _describe(wire_fields(payload), "", most, lines)
    return lines


def _describe(fields: list[dict[str, Any]], prefix: str, most: int, lines: list[str]) -> None:
    for field in fields:
        if len(lines) >= most:
            return
        name = f"{prefix}{field['number']}"
        if "fields" in field:
            _describe(field["fields"], f"{name}.", most, lines)
        else:
            shown = next(field[key] for key in ("value", "text", "begins") if key in field)
            lines.append(f"{name}: {shown}")


def _parse(data: memoryview, depth: int, left: list[int]) -> list[dict[str, Any]] | None:
    fields: list[dict[str, Any]] = []
    place = 0
    while place < len(data):
        if left[0] <= 0:
            break
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if place < 0 or not 0 < number < 1 << 29:
            return None
        left[0] -= 1
        field: dict[str, Any] = {"number": number}
        if kind == 0:
            value, place = _varint(data, place)
            if place < 0:
                return None
            field |= {"type": "varint", "value": value if value < 1 << 53 else str(value)}
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if place + size > len(data):
                return None
            value = struct.unpack("<d" if kind == 1 else "<f", data[place : place + size])[0]
            field |= {"type": "double" if kind == 1 else "float", "value": f"{value:.6g}"}
            place += size
        elif kind == 2:
            size, place = _varint(data, place)
            if place < 0 or place + size > len(data):
                return None
            field |= _content(data[place : place + size], depth, left)
            place += size
        else:
            return None
        fields.append(field)
    return fields


def _content(data: memoryview, depth: int, left: list[int]) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "bytes", "size": len(data)}
    text = as_text(bytes(data[:_MAX_TEXT]))
    if text is not None and len(data) <= _MAX_TEXT:
        return content | {"type": "text", "text": text}
    before = left[0]
    inner = _parse(data, depth + 1, left) if depth < _MAX_DEPTH and len(data) else None
    if inner:
        return content | {"type": "message", "fields": inner}
    left[0] = before
    if text is not None:
        return content | {"type": "text", "text": text}
    return content | {"begins": begin_of(bytes(data[:32]))}


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return a number and the place after it; a negative place if there is none."""
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    return 0, -1

"""The fields of a payload of any kind, as protobuf's wire format has them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

from recordsmith.dataset import begin_of
from recordsmith.format.example.payload import as_text
from recordsmith.format.example.spans import read_varint

_MAX_DEPTH = 6
_MAX_FIELDS = 400
_MAX_TEXT = 200
_FLOATS = {1: ("double", "<d", 8), 5: ("float", "<f", 4)}  # by wire type


def wire_fields(payload: bytes) -> list[dict[str, Any]]:
    """Return the fields of a message: numbers, texts, bytes, and fields of inner messages.

    Returns an empty list if the bytes are not a message.
    """
    return _parse(memoryview(payload), 0, [_MAX_FIELDS]) or []


def describe_fields(payload: bytes, most: int) -> list[str]:
    """Describe the first fields of a message, one line each."""
    return list(islice(_lines(wire_fields(payload)), most))


def _lines(fields: list[dict[str, Any]], prefix: str = "") -> Iterator[str]:
    for field in fields:
        name = f"{prefix}{field['number']}"
        if "fields" in field:
            yield from _lines(field["fields"], f"{name}.")
        else:
            shown = next(field[key] for key in ("value", "text", "begins") if key in field)
            yield f"{name}: {shown}"


def _parse(data: memoryview, depth: int, left: list[int]) -> list[dict[str, Any]] | None:
    fields: list[dict[str, Any]] = []
    offset = 0
    try:
        while offset < len(data) and left[0] > 0:
            tag, offset = read_varint(data, offset)
            number, kind = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                return None
            left[0] -= 1
            field: dict[str, Any] = {"number": number}
            if kind == 0:
                value, offset = read_varint(data, offset)
                field |= {"type": "varint", "value": value if value < 1 << 53 else str(value)}
            elif kind in _FLOATS:
                name, code, size = _FLOATS[kind]
                (value,) = struct.unpack_from(code, data, offset)
                field |= {"type": name, "value": f"{value:.6g}"}
                offset += size
            elif kind == 2:
                size, offset = read_varint(data, offset)
                if offset + size > len(data):
                    return None
                field |= _content(data[offset : offset + size], depth, left)
                offset += size
            else:
                return None
            fields.append(field)
    except (IndexError, struct.error):  # cut off
        return None
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

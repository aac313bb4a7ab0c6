"""Descriptions of single values, as text and for JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from recordsmith.cli import console
from recordsmith.errors import CorruptDataError
from recordsmith.example.raw_fields import as_text
from recordsmith.image import ImageInfo, probe_image

_TEXT_SHOWN = 60
_BYTES_SHOWN = 16


def bytes_text(value: bytes) -> str:
    """Describe bytes: an image, text, or their number and the first ones."""
    info = _probe(value)
    if info is not None:
        return f"{info.format} image, {info.width}x{info.height}, {console.size(len(value))}"
    text = as_text(value)
    if text is None:
        return f"{console.size(len(value))}: {begin_of(value)}"
    quoted = console.printable(json.dumps(text[:_TEXT_SHOWN], ensure_ascii=False))
    return quoted + (f" … {console.size(len(value))}" if len(text) > _TEXT_SHOWN else "")


def bytes_document(value: bytes) -> str | dict[str, Any]:
    """Return text as a string, and a summary of other bytes."""
    info = _probe(value)
    if info is not None:
        return {"size_bytes": len(value), "image": info._asdict()}
    text = as_text(value)
    return {"size_bytes": len(value), "begins": begin_of(value)} if text is None else text


def number_document(value: float) -> float | str:
    """Return a float for JSON, which lacks NaN and infinity."""
    return value if math.isfinite(value) else json.dumps(value)


def _probe(value: bytes) -> ImageInfo | None:
    if len(value) < _BYTES_SHOWN or as_text(value) is not None:
        return None
    try:
        return probe_image(value)
    except CorruptDataError:
        return None


def begin_of(value: bytes) -> str:
    """Return the first bytes, in hexadecimal."""
    return value[:_BYTES_SHOWN].hex(" ") + (" …" if len(value) > _BYTES_SHOWN else "")

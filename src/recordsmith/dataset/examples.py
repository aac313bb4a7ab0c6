"""Decoded examples, and descriptions of their bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recordsmith.format.example import FeatureValue
from recordsmith.format.example.payload import as_text
from recordsmith.format.example.serialized_tensor import describe_tensor
from recordsmith.support.errors import DataError
from recordsmith.support.words import printable, size

if TYPE_CHECKING:
    from recordsmith.image import ImageHeader

_TEXT_SHOWN = 60
_BYTES_SHOWN = 16
_ITEMS_SHOWN = 6


class DecodedExample(dict[str, FeatureValue]):
    """The features of an example by name; its `repr` describes long bytes instead of showing them.

    Example:
        >>> DecodedExample({"name": [b"a.jpg"], "data": [bytes(2000)]})
        {'name': [b'a.jpg'], 'data': [<2.0 kB: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 …>]}
    """

    __slots__ = ()

    def __repr__(self) -> str:
        items = ", ".join(f"{key!r}: {_shown(value)}" for key, value in self.items())
        return f"{{{items}}}"


def _shown(value: Any) -> str:
    if not isinstance(value, list):
        return repr(value)
    items = [
        f"<{bytes_text(item)}>"
        if isinstance(item, bytes) and len(item) > _TEXT_SHOWN
        else repr(item)
        for item in value[:_ITEMS_SHOWN]
    ]
    if len(value) > _ITEMS_SHOWN:
        items.append(f"… {len(value):,} values")
    return f"[{', '.join(items)}]"


def bytes_text(value: bytes) -> str:
    """Describe bytes: an image, text, or their number and the first ones."""
    info = probe(value)
    if info is not None:
        return f"{info.format} image, {info.width}x{info.height}, {size(len(value))}"
    text = as_text(value)
    if text is None:
        tensor = describe_tensor(value)
        return (
            f"{tensor}, {size(len(value))}" if tensor else f"{size(len(value))}: {begin_of(value)}"
        )
    quoted = printable(json.dumps(text[:_TEXT_SHOWN], ensure_ascii=False))
    return quoted + (f" … {size(len(value))}" if len(text) > _TEXT_SHOWN else "")


def probe(value: bytes) -> ImageHeader | None:
    """Return the header of an image; None for other bytes."""
    if len(value) < _BYTES_SHOWN or as_text(value) is not None:
        return None
    from recordsmith.image import probe_image  # loads all formats

    try:
        return probe_image(value)
    except DataError:
        return None


def begin_of(value: bytes) -> str:
    """Return the first bytes, in hexadecimal."""
    return value[:_BYTES_SHOWN].hex(" ") + (" …" if len(value) > _BYTES_SHOWN else "")

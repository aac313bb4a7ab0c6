"""Pillow, which reads what is not read here by hand; what it raises becomes words.

Its plugins raise anything on bad files, and name the object that they were given instead of the
file. Whoever asks Pillow about bytes that somebody else wrote does it through here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recordsmith.errors import CorruptDataError, Defect, RecordsmithError

if TYPE_CHECKING:
    from PIL import Image

_SIGNATURES = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"RIFF", "WebP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)


@contextmanager
def read_by_pillow(data: bytes, noun: str = "picture") -> Iterator[Image.Image]:
    """Pillow's view of an encoded picture, open while the block runs.

    Args:
        noun: what it is in messages, such as mask.

    Raises:
        CorruptDataError: unreadable-image: Pillow does not know it, or finds it damaged within the
            block.
    """
    from PIL import Image

    name = None
    try:
        with Image.open(io.BytesIO(data)) as image:
            name = format_of(image)
            yield image
    except RecordsmithError:
        raise
    except Image.DecompressionBombError as error:
        raise unreadable(f"the {noun} is larger than is ever decoded: {error}") from None
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise unreadable(_reason(data, noun, name, error)) from None


def format_of(image: Image.Image) -> str:
    """The format of a picture that Pillow has opened, as TensorFlow names it: jpeg, png, …"""
    return (image.format or "unknown").lower()


def unreadable(detail: str) -> CorruptDataError:
    """The error for bytes that are no picture, or not the one that is expected."""
    return CorruptDataError(Defect.UNREADABLE_IMAGE, detail)


def _reason(data: bytes, noun: str, name: str | None, error: Exception) -> str:
    if name is not None:
        return f"the {name} {noun} is damaged or was cut off: {error}"
    for signature, known in _SIGNATURES:
        if data.startswith(signature):
            return f"it begins like a {known} file, but is damaged or was cut off"
    return f"it is no picture of a known format; it begins with {data[:16]!r}"

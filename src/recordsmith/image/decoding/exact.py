"""Decode images without loss, with every channel and bit, so that they can be stored again.

Grey stays one channel, alpha and a transparent colour become alpha, 16 bits stay 16. Palettes, CMYK
and other colour spaces become RGB; 1-bit pixels become 0 and 255.
"""

from __future__ import annotations

from recordsmith.image.decoding.decoders import Decoded
from recordsmith.image.decoding.jpeg_pixels import OnDamage
from recordsmith.image.formats.registry import find_format


def decode_exact(data: bytes, *, max_pixels: int, on_damage: OnDamage | None = None) -> Decoded:
    """Decode an image as stored, with all its channels and bits.

    Args:
        on_damage: called with a description of damage that does not stop TensorFlow from decoding.

    Raises:
        CorruptDataError: unreadable-image: the image cannot be decoded, has more pixels than
            `max_pixels`, or has values that are not colours.
    """
    return find_format(data).decode(data, max_pixels, on_damage)

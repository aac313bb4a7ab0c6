"""What are the values of this mask? Its format, size and kind, from its header.

A mask is a picture whose pixels are class numbers. Grey and palette pictures hold numbers; a
coloured one holds colours, which are numbers only for whoever has their table. PNG, nearly all of
what masks are, is read here by hand; other formats are opened by Pillow. No pixels are decoded.
"""

from __future__ import annotations

import io
import struct
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.image.probe import probe_image

MaskKind: TypeAlias = Literal["grey", "palette", "colour", "float"]
Palette: TypeAlias = tuple[tuple[int, int, int], ...]

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KINDS: dict[int, MaskKind] = {0: "grey", 2: "colour", 3: "palette", 4: "grey", 6: "colour"}
_PILLOW_KINDS: dict[str, MaskKind] = {
    **dict.fromkeys(("1", "L", "LA", "La", "I"), "grey"),
    **dict.fromkeys(("P", "PA"), "palette"),
    "F": "float",
}


class MaskInfo(NamedTuple):
    """What the header of a mask says.

    format: as `probe_image` names it.
    height, width: in pixels, as stored.
    kind: grey or palette: its pixels are numbers; colour; float.
    bits: of one number: 1, 2, 4, 8, 16, or 32 where a format has such.
    has_alpha: whether there is a channel of transparency beside.
    is_lossy: its pixels are not those that were drawn, as in JPEG.
    """

    format: str
    height: int
    width: int
    kind: MaskKind
    bits: int = 8
    has_alpha: bool = False
    is_lossy: bool = False


def probe_mask(data: bytes) -> MaskInfo:
    """Read the header of an encoded mask.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, or ends before it should.
    """
    info = probe_image(data)
    if info.format == "jpeg":
        return MaskInfo(*info, "colour", is_lossy=True)
    if info.format != "png" or not data.startswith(_PNG_SIGNATURE):
        return _probe_with_pillow(data)
    bits, colour_type = data[24], data[25]  # PNG, 11.2.2: behind width and height
    kind = _KINDS.get(colour_type)
    if kind is None or bits not in (1, 2, 4, 8, 16):
        raise CorruptDataError(
            Defect.UNREADABLE_IMAGE,
            f"the PNG file has the colour type {colour_type} with {bits} bits, which there is not",
        )
    return MaskInfo(*info, kind, bits, has_alpha=colour_type in (4, 6))


def png_palette(data: bytes) -> Palette:
    """The colours of a palette PNG in the order of their numbers; none of another PNG."""
    at = len(_PNG_SIGNATURE)
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        if name == b"PLTE":
            entries = data[at + 8 : at + 8 + length]
            return tuple(zip(entries[::3], entries[1::3], entries[2::3], strict=False))
        if name == b"IDAT":
            break
        at += 12 + length
    return ()


def _probe_with_pillow(data: bytes) -> MaskInfo:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            mode, (width, height) = image.mode, image.size
            name = (image.format or "unknown").lower()
            is_lossy = name in ("jpeg", "mpo") or image.info.get("compression") == "jpeg"
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise CorruptDataError(
            Defect.UNREADABLE_IMAGE, f"the mask cannot be opened ({error})"
        ) from None
    bits = {"1": 1, "I": 32}.get(mode, 16 if mode.startswith("I;16") else 8)
    kind = _PILLOW_KINDS.get(mode.partition(";16")[0], "colour")
    has_alpha = mode.endswith(("A", "a"))
    return MaskInfo(name, height, width, kind, bits, has_alpha, is_lossy)

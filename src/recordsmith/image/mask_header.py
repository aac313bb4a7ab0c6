"""What are the values of this mask? Its format, size and kind, from its header.

A mask is a picture whose pixels are class numbers. Grey and palette pictures hold numbers; a
coloured one holds colours, which are numbers only for whoever has their table. PNG, nearly all of
what masks are, is read here by hand; other formats are opened by Pillow. No pixels are decoded.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from recordsmith.image.pillow import format_of, read_by_pillow, unreadable
from recordsmith.image.png import (
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    read_header,
)
from recordsmith.image.probe import probe_image

MaskKind: TypeAlias = Literal["grey", "palette", "colour", "float"]

_KINDS: dict[int, MaskKind] = {
    GREY: "grey",
    RGB: "colour",
    PALETTE: "palette",
    GREY_ALPHA: "grey",
    RGBA: "colour",
}
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
    header = read_header(data)
    if header is None:
        return _probe_with_pillow(data)
    kind = _KINDS.get(header.colour_type)
    if kind is None or header.bits not in (1, 2, 4, 8, 16):
        raise unreadable(
            f"the PNG file has the colour type {header.colour_type} with {header.bits} bits, which "
            "there is not"
        )
    return MaskInfo(*info, kind, header.bits, has_alpha=header.colour_type in (GREY_ALPHA, RGBA))


def _probe_with_pillow(data: bytes) -> MaskInfo:
    with read_by_pillow(data, "mask") as image:
        mode, (width, height) = image.mode, image.size
        name = format_of(image)
        is_lossy = name in ("jpeg", "mpo") or image.info.get("compression") == "jpeg"
    bits = {"1": 1, "I": 32}.get(mode, 16 if mode.startswith("I;16") else 8)
    kind = _PILLOW_KINDS.get(mode.partition(";16")[0], "colour")
    has_alpha = mode.endswith(("A", "a"))
    return MaskInfo(name, height, width, kind, bits, has_alpha, is_lossy)

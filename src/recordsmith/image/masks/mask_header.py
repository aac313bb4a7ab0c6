"""Read the format, size and kind of a mask from its header, without decoding pixels.

PNG headers are parsed here; Pillow opens the other formats.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from recordsmith.image.formats.pillow import pillow_format, read_by_pillow, unreadable
from recordsmith.image.formats.png import (
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    read_header,
)
from recordsmith.image.formats.probe import probe_image

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
    """The header of a mask.

    Attributes:
        format: as `probe_image` names it.
        height, width: in pixels, as stored.
        kind: `grey` and `palette` store class numbers; `colour` and `float` do not.
        bits: per value: 1, 2, 4, 8, 16 or 32.
        has_alpha: whether the mask also has an alpha channel.
        is_lossy: whether compression may have changed the values, as in JPEG.
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
        CorruptDataError: unreadable-image: `data` is not an image, or is truncated.
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
            "the PNG file has an invalid header",
            found=f"colour type {header.colour_type} with {header.bits} bits",
        )
    return MaskInfo(*info, kind, header.bits, has_alpha=header.colour_type in (GREY_ALPHA, RGBA))


def _probe_with_pillow(data: bytes) -> MaskInfo:
    with read_by_pillow(data, "mask") as image:
        mode, (width, height) = image.mode, image.size
        name = pillow_format(image)
        is_lossy = name in ("jpeg", "mpo") or image.info.get("compression") == "jpeg"
    bits = {"1": 1, "I": 32}.get(mode, 16 if mode.startswith("I;16") else 8)
    kind = _PILLOW_KINDS.get(mode.partition(";16")[0], "colour")
    has_alpha = mode.endswith(("A", "a"))
    return MaskInfo(name, height, width, kind, bits, has_alpha, is_lossy)

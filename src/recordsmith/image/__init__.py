"""Picture bytes <-> pixels: look at the header, decode, resize, draw. Knows no datasets."""

from recordsmith.image.decode import decode_image, resize_image
from recordsmith.image.orientation import (
    UPRIGHT,
    exif_orientation,
    swaps_sides,
    turn_box,
    undone_by,
)
from recordsmith.image.probe import PICTURE_SUFFIXES, ImageInfo, is_picture, probe_image

__all__ = [
    "PICTURE_SUFFIXES",
    "UPRIGHT",
    "ImageInfo",
    "decode_image",
    "exif_orientation",
    "is_picture",
    "probe_image",
    "resize_image",
    "swaps_sides",
    "turn_box",
    "undone_by",
]

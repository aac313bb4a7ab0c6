"""Picture bytes <-> pixels: look at the header, decode, resize, draw. Knows no datasets."""

from recordsmith.image.decode import decode_image, resize_image
from recordsmith.image.orientation import (
    SWAPS_SIZE_FROM,
    UPRIGHT,
    RelativeBox,
    exif_orientation,
    turn_box,
    turn_box_back,
)
from recordsmith.image.probe import PICTURE_SUFFIXES, ImageInfo, is_picture, probe_image

__all__ = [
    "PICTURE_SUFFIXES",
    "SWAPS_SIZE_FROM",
    "UPRIGHT",
    "ImageInfo",
    "RelativeBox",
    "decode_image",
    "exif_orientation",
    "is_picture",
    "probe_image",
    "resize_image",
    "turn_box",
    "turn_box_back",
]

"""Picture bytes <-> pixels: look at the header, decode, resize, store, draw. Knows no datasets."""

from recordsmith.image.colours import Colour
from recordsmith.image.decode import Pixels, decode_image, resize_image
from recordsmith.image.encode import encode_png
from recordsmith.image.jpeg import is_progressive
from recordsmith.image.mask import MaskValues, decode_mask, encode_mask, resize_nearest
from recordsmith.image.mask_header import MaskInfo, probe_mask
from recordsmith.image.options import MAX_PIXELS, PictureOptions
from recordsmith.image.orientation import UPRIGHT, exif_orientation, look_at_jpeg
from recordsmith.image.pillow import read_by_pillow
from recordsmith.image.png import palette_colours
from recordsmith.image.probe import (
    PICTURE_SUFFIXES,
    ImageInfo,
    channel_count,
    is_picture,
    probe_image,
    read_picture_header,
)
from recordsmith.image.store import StoredPicture, store_picture
from recordsmith.image.stored_mask import StoredMask, store_mask
from recordsmith.image.turning import Box, swaps_sides, turn, turn_box, undone_by

__all__ = [
    "MAX_PIXELS",
    "PICTURE_SUFFIXES",
    "UPRIGHT",
    "Box",
    "Colour",
    "ImageInfo",
    "MaskInfo",
    "MaskValues",
    "PictureOptions",
    "Pixels",
    "StoredMask",
    "StoredPicture",
    "channel_count",
    "decode_image",
    "decode_mask",
    "encode_mask",
    "encode_png",
    "exif_orientation",
    "is_picture",
    "is_progressive",
    "look_at_jpeg",
    "palette_colours",
    "probe_image",
    "probe_mask",
    "read_by_pillow",
    "read_picture_header",
    "resize_image",
    "resize_nearest",
    "store_mask",
    "store_picture",
    "swaps_sides",
    "turn",
    "turn_box",
    "undone_by",
]

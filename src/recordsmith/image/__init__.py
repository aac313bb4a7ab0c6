"""Picture bytes <-> pixels: look at the header, decode, resize, store, draw. Knows no datasets."""

from recordsmith.image.decode import decode_image, resize_image
from recordsmith.image.jpeg import is_progressive
from recordsmith.image.mask import decode_mask
from recordsmith.image.options import MAX_PIXELS, PictureOptions
from recordsmith.image.orientation import UPRIGHT, exif_orientation, look_at_jpeg
from recordsmith.image.probe import PICTURE_SUFFIXES, ImageInfo, is_picture, probe_image
from recordsmith.image.store import StoredPicture, store_picture
from recordsmith.image.stored_mask import StoredMask, store_mask
from recordsmith.image.turning import swaps_sides, turn, turn_box, undone_by

__all__ = [
    "MAX_PIXELS",
    "PICTURE_SUFFIXES",
    "UPRIGHT",
    "ImageInfo",
    "PictureOptions",
    "StoredMask",
    "StoredPicture",
    "decode_image",
    "decode_mask",
    "exif_orientation",
    "is_picture",
    "is_progressive",
    "look_at_jpeg",
    "probe_image",
    "resize_image",
    "store_mask",
    "store_picture",
    "swaps_sides",
    "turn",
    "turn_box",
    "undone_by",
]

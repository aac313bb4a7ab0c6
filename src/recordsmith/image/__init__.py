"""Picture bytes <-> pixels: look at the header, decode, resize, draw. Knows no datasets."""

from recordsmith.image.decode import decode_image, resize_image
from recordsmith.image.mask import decode_mask
from recordsmith.image.probe import PICTURE_SUFFIXES, ImageInfo, is_picture, probe_image

__all__ = [
    "PICTURE_SUFFIXES",
    "ImageInfo",
    "decode_image",
    "decode_mask",
    "is_picture",
    "probe_image",
    "resize_image",
]

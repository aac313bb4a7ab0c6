"""Read image headers, and decode, resize, encode and draw images. Independent of datasets."""

from recordsmith.image.decoding.pixels import Pixels, decode_image, resize_image
from recordsmith.image.formats.header import ImageHeader
from recordsmith.image.formats.orientation import UPRIGHT, read_jpeg_info
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import check_chunks, palette_colours
from recordsmith.image.formats.probe import (
    exif_orientation,
    find_image_header,
    is_image,
    probe_image,
    read_image_header,
)
from recordsmith.image.formats.registry import (
    IMAGE_SUFFIXES,
    ImageFormat,
    find_format,
    named_format,
    starts_like_image,
    usual_name,
)
from recordsmith.image.geometry.rotation import (
    Box,
    apply_orientation,
    inverse_orientation,
    orient_box,
    swaps_sides,
)
from recordsmith.image.geometry.tiling import tile_image, untile
from recordsmith.image.masks.colours import Colour
from recordsmith.image.masks.mask import (
    MaskInfo,
    MaskValues,
    StoredMask,
    decode_mask,
    encode_mask,
    probe_mask,
    resize_nearest,
    store_mask,
)
from recordsmith.image.storing.encode import encode_png
from recordsmith.image.storing.image_options import MAX_PIXELS, ImageOptions
from recordsmith.image.storing.store import StoredImage, store_image
from recordsmith.jpeg.header import is_progressive

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "UPRIGHT",
    "Box",
    "Colour",
    "ImageFormat",
    "ImageHeader",
    "ImageOptions",
    "MaskInfo",
    "MaskValues",
    "Pixels",
    "StoredImage",
    "StoredMask",
    "apply_orientation",
    "check_chunks",
    "decode_image",
    "decode_mask",
    "encode_mask",
    "encode_png",
    "exif_orientation",
    "find_format",
    "find_image_header",
    "inverse_orientation",
    "is_image",
    "is_progressive",
    "named_format",
    "orient_box",
    "palette_colours",
    "probe_image",
    "probe_mask",
    "read_by_pillow",
    "read_image_header",
    "read_jpeg_info",
    "resize_image",
    "resize_nearest",
    "starts_like_image",
    "store_image",
    "store_mask",
    "swaps_sides",
    "tile_image",
    "untile",
    "usual_name",
]

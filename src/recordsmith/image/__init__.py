"""Read image headers, and decode, resize, encode and draw images. Independent of datasets."""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "decoding.pixels": "Pixels decode_image resize_image",
        "formats.header": "ImageHeader",
        "formats.orientation": "UPRIGHT read_jpeg_info",
        "formats.pillow": "read_by_pillow",
        "formats.png": "check_chunks palette_colours",
        "decoding.probe": (
            "exif_orientation find_image_header is_image probe_image read_image_header"
        ),
        "formats.registry": (
            "IMAGE_SUFFIXES ImageFormat find_format named_format starts_like_image usual_name"
        ),
        "geometry.rotation": "Box apply_orientation inverse_orientation orient_box swaps_sides",
        "geometry.tiling": "tile_image untile",
        "colours": "Colour",
        "masks.mask": (
            "MaskInfo MaskValues StoredMask decode_mask encode_mask probe_mask resize_nearest "
            "store_mask"
        ),
        "storing.encode": "encode_png",
        "image_options": "MAX_PIXELS ImageOptions",
        "storing.store": "StoredImage store_image",
    },
)

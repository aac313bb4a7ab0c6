"""Read image headers, and decode, resize, encode and draw images. Independent of datasets."""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "colours": (
            "Colour LARGEST_NUMBER UnknownColours colours_to_numbers distinct_colours "
            "grey_colours voc_colours"
        ),
        "decoding.decoders": "Decoded",
        "decoding.jpeg_pixels": "jpeg_decoder",
        "decoding.memory": "check_size reserve_for_decoding reserve_memory",
        "decoding.parts": (
            "Part PartFile Window covering decode_part find_part find_parts find_rows"
        ),
        "decoding.pixels": (
            "Pixels convert_pixels decode_exact decode_image decode_pixels resize_image"
        ),
        "decoding.probe": (
            "exif_orientation find_image_header is_image probe_image read_image_header"
        ),
        "drawing.contact_sheet": "Tile contact_sheet",
        "drawing.flowers": "SPECIES draw_flower",
        "drawing.overlay": (
            "COLOUR_COUNT blend_mask class_numbers draw_boxes draw_mask fit_to_tile "
            "label_colour message_tile"
        ),
        "formats.header": "ImageHeader",
        "formats.orientation": "UPRIGHT read_jpeg_info",
        "formats.pillow": "read_by_pillow",
        "formats.png": "SIGNATURE check_chunks palette_colours",
        "formats.registry": (
            "IMAGE_SUFFIXES find_format named_format starts_like_image usual_name"
        ),
        "geometry.fit": "CROP_AREA CROP_RATIO Fit FitKind Flip Placement in_frame",
        "geometry.normalising": "Layout Normaliser",
        "geometry.placing": "Interpolation divisor_for place_image place_mask",
        "geometry.rotation": (
            "Box apply_orientation box_corners inverse_orientation orient_box "
            "orient_corners orient_points swaps_sides"
        ),
        "geometry.tiling": "tile_image untile",
        "image_options": "HIGHEST_MAX_PIXELS ImageOptions MAX_PIXELS check_number",
        "kernel.augmenting": "jitter mix",
        "masks.mask": (
            "MaskInfo MaskValues StoredMask decode_mask encode_mask probe_mask "
            "resize_nearest store_mask"
        ),
        "storing.encode": "encode_jpeg encode_png",
        "storing.store": "DROPPED REQUESTED StoredImage store_image",
    },
)

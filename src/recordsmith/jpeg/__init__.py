"""The structure of JPEG files, without their pixels: segments and headers, parts that are cut out
by walking the Huffman codes, restart intervals that make tiles.

Follows ITU T.81. Plain Python and compiled kernels over bytes: imports no other room, and NumPy at
most.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "cutting": "cut_cost cut_jpeg",
        "header": (
            "APP0 APP1 APP15 APP2 COMMENT END EXIF PROGRESSIVE PROGRESSIVE_HUFFMAN SCAN "
            "START all_segments bytes_per_pixel find_frame has_end is_progressive "
            "read_frame read_head sampling_factors segments unfinished_segment "
            "with_plain_header"
        ),
        "tiling": "DAMAGED DONE LEFT_OVER TOO_LARGE can_be_cut read_mcus with_interval",
    },
)

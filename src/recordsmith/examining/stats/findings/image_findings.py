"""Findings on images, masks and boxes: unreadable ones, wrong sizes, and uncommon formats."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.findings.finding import Finding, are, have
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.example.keys import BOX
from recordsmith.words import count

_LARGER = 16
_EASY_PIXELS = 4_000_000

_DEEP = "16-bit png"
# By format, or by variant and format. Checked with TensorFlow 2.21 and DALI 2.4 (decoders.image on
# the CPU); CMYK JPEGs, palette, alpha and animated PNGs are not here, as both decode them like
# Pillow. Sources:
# - https://www.tensorflow.org/api_docs/python/tf/io/decode_image: BMP, GIF, JPEG, PNG (2.13), later
#   also WebP; the shapes of GIF; decode_gif: no JPEG, PNG or BMP
# - https://www.tensorflow.org/api_docs/python/tf/io/decode_webp: animations only as RGBA
# - https://docs.nvidia.com/deeplearning/dali/user-guide/docs/operations/
#   nvidia.dali.fn.decoders.image.html: JPEG, BMP, PNG, TIFF, PNM, JPEG 2000, WebP ("simple file
#   format"), and https://github.com/NVIDIA/DALI/issues/5151: no GIF
# - 16 bits: the argument `dtype` of both decoders
_HARD_TO_READ = {
    "tiff": "TensorFlow cannot decode them.",
    "gif": (
        "DALI cannot decode them, and tf.io.decode_image returns four dimensions unless "
        "expand_animations=False."
    ),
    "animated gif": "tf.io.decode_jpeg and decode_png cannot decode them.",
    "webp": (
        "tf.io.decode_image returns four dimensions unless expand_animations=False, and cannot "
        "decode them at all in older versions, such as TensorFlow 2.13."
    ),
    "animated webp": (
        "tf.io.decode_webp supports only 4 channels, and DALI decodes only the first frame."
    ),
    "bmp": (
        "tf.io.decode_jpeg and decode_png cannot decode them, and tf.io.decode_image returns the "
        "indices of a palette instead of colours."
    ),
    _DEEP: (
        "TensorFlow and DALI drop the lower 8 bits unless you pass dtype=tf.uint16 or "
        "dtype=types.UINT16."
    ),
}
_CONVERT = (
    "If you use these readers, pack the dataset again with `--store jpeg` or `--store png`, or "
    "decode with recordsmith."
)


def image_problems(key: str, images: ImageStats) -> Iterator[Finding]:
    """Yield images that cannot be read everywhere, have wrong sizes, or are very large."""
    if images.unreadable:
        begin = "begins" if images.unreadable == 1 else "begin"
        yield Finding(
            "unreadable-images",
            key,
            f"{count(images.unreadable, 'value')} {begin} like an image but cannot be read: "
            "run `recordsmith verify --deep` to list the records.",
        )
    found = images.formats | images.variants
    problems = [
        f"{count(found[name], 'image')} {are(found[name])} {name}: {problem}"
        for name, problem in _HARD_TO_READ.items()
        if found.get(name)
    ]
    if problems:
        convert = "" if found.keys() & _HARD_TO_READ.keys() == {_DEEP} else f" {_CONVERT}"
        yield Finding("image-format", key, " ".join(problems) + convert)
    if images.differing:
        swapped = (
            f" ({images.turned:,} with height and width swapped, as after an EXIF rotation)"
            if images.turned
            else ""
        )
        yield Finding(
            "declared-size",
            key,
            f"the declared height or width of {count(images.differing, 'image')} in "
            f"{images.declared:,} differs from the image header{swapped}. First image: "
            f"{images.differing_place}. Fix the declared values.",
            () if images.differing_place is None else (images.differing_place,),
        )
    largest = images.pixels.max
    if largest is not None and largest >= max(_EASY_PIXELS, _LARGER * images.pixels.quantiles[0.5]):
        times = largest / max(1, images.pixels.quantiles[0.5])
        yield Finding(
            "large-images",
            key,
            f"the largest image has {largest:,} pixels, {times:,.0f} times the median: "
            f"{images.largest_place}. Such images slow down batches; resize them when packing.",
            () if images.largest_place is None else (images.largest_place,),
        )


def odd_masks(key: str, masks: MaskStats) -> Iterator[Finding]:
    """Yield masks that cannot be decoded to class numbers, and masks scaled to 255."""
    decoded = f" of {masks.sampled:,} decoded" if masks.sampled < masks.count else ""
    if masks.unreadable:
        yield Finding(
            "unreadable-masks",
            key,
            f"{count(masks.unreadable, 'mask')}{decoded} cannot be read as class numbers: "
            "damaged, or with colours instead of grey levels or palette indices. Run `recordsmith "
            "verify --deep` to list the records.",
        )
    if {found.label for found in masks.classes} in ({255}, {0, 255}):
        yield Finding(
            "mask-0-255",
            key,
            f"all masks{decoded} hold only 0 and 255, as if drawn for viewing: a loss with class "
            "numbers needs 0 and 1, and many programs ignore pixels with 255. Read them with "
            "`rs.Mask(values={255: 1})`, or replace 255 by 1 and pack them again.",
        )


def odd_boxes(boxes: BoxStats) -> Iterator[Finding]:
    """Yield boxes without area, outside of their image, or without one of their sides."""
    problems = []
    if boxes.degenerate:
        problems.append(f"{boxes.degenerate:,} {have(boxes.degenerate)} no area")
    if boxes.outside:
        reach = "reaches" if boxes.outside == 1 else "reach"
        problems.append(
            f"{boxes.outside:,} {reach} beyond the image (below 0 or above 1, as in pixels)"
        )
    if boxes.mismatched:
        problems.append(
            f"{count(boxes.mismatched, 'record')} {have(boxes.mismatched)} different numbers of "
            "ymin, xmin, ymax and xmax"
        )
    if problems:
        yield Finding(
            "invalid-boxes",
            BOX[0].rpartition("/")[0],
            f"of {count(boxes.count, 'box', 'boxes')}, {'; '.join(problems)}. First record: "
            f"{boxes.place}. Losses become NaN or wrong on such boxes: fix or drop them.",
            () if boxes.place is None else (boxes.place,),
        )

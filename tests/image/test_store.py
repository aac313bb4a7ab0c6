"""Storing images: every rule, compared with Pillow, NumPy and TensorFlow."""

from __future__ import annotations

import io
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from recordsmith.image import (
    DROPPED,
    ImageOptions,
    StoredImage,
    exif_orientation,
    probe_image,
    store_image,
)
from recordsmith.image.formats.png import GREY, GREY_ALPHA, RGB, RGBA, Chunk, encode_png_values
from recordsmith.image.storing.encode import flatten_alpha
from recordsmith.image.storing.store import (
    ENCODED,
    FIRST_FRAME,
    FROM_CMYK,
    NO_ORIENTATION,
    NO_PROFILE,
    ON_BACKGROUND,
    OPAQUE,
    RESIZED,
    TURNED,
)
from recordsmith.support.errors import CorruptDataError, Defect, SourceError

RAW = ImageOptions(store="raw")
PNG = ImageOptions(store="png")
JPEG = ImageOptions(store="jpeg")
RANDOM = np.random.default_rng(11)


def by_pillow(data: bytes, mode: str | None = None) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image if mode is None else image.convert(mode))


def raw_pixels(stored: StoredImage) -> np.ndarray:
    assert stored.format == "raw"
    assert stored.depth is not None
    shape = (stored.height, stored.width, stored.depth)
    return np.frombuffer(stored.data, stored.dtype).reshape(shape)


# -- unchanged images ------------------------------------------------------------------------------


def test_default_options_keep_the_bytes(images: ModuleType) -> None:
    for data in images.odd().values():
        stored = store_image(data, ImageOptions())
        assert stored.data is data
        assert stored.changes == ()
        assert stored[1:4] == probe_image(data)[:3]


@pytest.mark.parametrize(
    "options",
    [
        ImageOptions(shorter_side=9),
        ImageOptions(longer_side=13),
        ImageOptions(longer_side=4000),
        ImageOptions(store="jpeg", quality=50, shorter_side=9),
        ImageOptions(store="png"),
    ],
)
def test_images_in_the_requested_form_keep_their_bytes(
    images: ModuleType, options: ImageOptions
) -> None:
    for name, data in images.odd().items():
        if options.store in ("original", probe_image(data).format):
            assert store_image(data, options).data is data, name


def test_recompress_encodes_all_images(images: ModuleType) -> None:
    data = images.encode(images.smooth(64, 48), "JPEG", quality=95)
    stored = store_image(data, ImageOptions(store="jpeg", quality=50, recompress=True))
    assert stored.changes == (ENCODED["jpeg"],)
    assert len(stored.data) < len(data)


# -- channels and bits -----------------------------------------------------------------------------

LOSSLESS = {
    "png": "RGB", "grey png": "L", "palette png": "RGB", "rgba png": "RGBA", "1-bit png": "L",
    "grey alpha png": "LA", "gif": "RGB", "bmp": "RGB", "lossless webp": "RGB", "tiff": "RGB",
    "ppm": "RGB", "png with text": "RGB", "animated gif": "RGB",
}  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), LOSSLESS.items())
def test_raw_and_png_hold_every_channel(images: ModuleType, name: str, mode: str) -> None:
    data = images.odd()[name]
    expected = by_pillow(data, mode).reshape(9, 13, -1)
    stored = store_image(data, RAW)
    assert (stored.depth, stored.dtype) == (expected.shape[2], "uint8")
    np.testing.assert_array_equal(raw_pixels(stored), expected)
    options = ImageOptions(store="png", recompress=True)
    np.testing.assert_array_equal(
        by_pillow(store_image(data, options).data).reshape(9, 13, -1), expected
    )


@pytest.mark.parametrize("name", ["jpeg", "grey jpeg", "progressive jpeg", "cmyk jpeg"])
def test_raw_of_jpeg_matches_tensorflow(tf: Any, images: ModuleType, name: str) -> None:
    data = images.odd()[name]
    expected = tf.io.decode_jpeg(data).numpy()
    np.testing.assert_array_equal(raw_pixels(store_image(data, RAW)), expected)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("colour_type", "key"),
    [(GREY, False), (GREY, True), (RGB, False), (RGB, True), (GREY_ALPHA, False), (RGBA, False)],
)
def test_png_of_every_kind(colour_type: int, bits: int, key: bool) -> None:
    channel_count = {GREY: 1, RGB: 3, GREY_ALPHA: 2, RGBA: 4}[colour_type]
    values: Any = RANDOM.integers(0, 2**bits, (9, 13, channel_count))
    values = values.astype(np.uint16 if bits == 16 else np.uint8)
    chunks = []
    expected = values
    if key:
        chunks = [Chunk(b"tRNS", values[4, 5].astype(">u2").tobytes())]
        alpha = np.full((9, 13, 1), 2**bits - 1, values.dtype)
        alpha[(values == values[4, 5]).all(axis=2)] = 0
        expected = np.concatenate((values, alpha), axis=2)
    data = encode_png_values(values, bits=bits, colour_type=colour_type, chunks=chunks)
    stored = store_image(data, RAW)
    np.testing.assert_array_equal(raw_pixels(stored), expected)
    assert raw_pixels(stored).dtype == values.dtype
    again = store_image(data, ImageOptions(store="png", recompress=True))
    np.testing.assert_array_equal(raw_pixels(store_image(again.data, RAW)), expected)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_stay_16(tf: Any, kind: str) -> None:
    levels = RANDOM.integers(0, 65536, (20, 30), np.uint16)
    out = io.BytesIO()
    Image.fromarray(levels).save(out, kind)
    stored = store_image(out.getvalue(), RAW)
    assert stored.dtype == "uint16"
    np.testing.assert_array_equal(raw_pixels(stored)[:, :, 0], levels)
    png = store_image(out.getvalue(), ImageOptions(store="png", recompress=True)).data
    decoded = tf.io.decode_png(png, dtype=tf.uint16).numpy()
    np.testing.assert_array_equal(decoded[:, :, 0], levels)
    with pytest.raises(SourceError, match="16 bits"):
        store_image(out.getvalue(), JPEG)


def test_float_images_are_rejected(images: ModuleType) -> None:
    heights = Image.fromarray(np.full((4, 4), 0.5, np.float32))
    with pytest.raises(CorruptDataError) as caught:
        store_image(images.encode(heights, "TIFF"), RAW)
    assert "float32" in caught.value.found


def test_16_bits_with_alpha_are_not_composited() -> None:
    data = encode_png_values(np.zeros((4, 4, 4), np.uint16), bits=16, colour_type=RGBA)
    with pytest.raises(SourceError, match="16 bits"):
        store_image(data, ImageOptions(store="jpeg", background=(0, 0, 0)))


# -- JPEG ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quality", [1, 50, 95, 100])
def test_quality_matches_libjpeg(images: ModuleType, quality: int) -> None:
    image = images.smooth(64, 48)
    data = images.encode(image, "PNG")
    stored = store_image(data, ImageOptions(store="jpeg", quality=quality))
    reference = images.encode(image, "JPEG", quality=quality)
    with (
        Image.open(io.BytesIO(stored.data)) as one,
        Image.open(io.BytesIO(reference)) as other,
    ):
        assert one.quantization == other.quantization  # type: ignore[attr-defined]
    assert stored.changes == (ENCODED["jpeg"],)


def test_alpha_is_composited_on_the_background(images: ModuleType) -> None:
    image = images.smooth(32, 24, "RGBA")
    image.putalpha(Image.linear_gradient("L").resize((32, 24)))
    data = images.encode(image, "PNG")
    colour = (10, 200, 60)
    expected = Image.alpha_composite(Image.new("RGBA", image.size, (*colour, 255)), image)
    stored = store_image(data, ImageOptions(store="jpeg", quality=100, background=colour))
    assert stored.changes == (ON_BACKGROUND, ENCODED["jpeg"])
    wanted = np.array(expected.convert("RGB")).astype(int)
    assert np.abs(flatten_alpha(np.array(image), colour) - wanted).max() <= 1
    like_pillow = by_pillow(images.encode(expected.convert("RGB"), "JPEG", quality=100))
    assert np.abs(by_pillow(stored.data).astype(int) - like_pillow).max() <= 3
    with pytest.raises(SourceError, match=r"transparent .* background"):
        store_image(data, JPEG)
    assert store_image(data, ImageOptions(shorter_side=8)).format == "png"


def test_grey_with_alpha_on_a_background(images: ModuleType) -> None:
    image = Image.new("LA", (16, 16), (200, 0))
    data = images.encode(image, "PNG")
    on_grey = store_image(data, ImageOptions(store="jpeg", background=(90, 90, 90)))
    assert by_pillow(on_grey.data).shape == (16, 16)
    assert np.abs(by_pillow(on_grey.data).astype(int) - 90).max() <= 1
    on_red = store_image(data, ImageOptions(store="jpeg", background=(255, 0, 0)))
    assert by_pillow(on_red.data)[8, 8, 0] > 250


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_drop_alpha_keeps_colours(tf: Any, images: ModuleType, mode: str) -> None:
    image = images.noise(32, 24, mode)
    image.putalpha(Image.linear_gradient("L").resize((32, 24)))
    data = images.encode(image, "PNG")
    under = tf.io.decode_png(data, channels=len(mode) - 1).numpy()
    raw = store_image(data, ImageOptions(store="raw", drop_alpha=True))
    assert raw.changes == (DROPPED, ENCODED["raw"])
    assert (raw.height, raw.width, raw.depth, raw.dtype) == (*under.shape, "uint8")
    assert raw.data == under.tobytes()
    stored = store_image(data, ImageOptions(store="jpeg", quality=100, drop_alpha=True))
    assert stored.changes == (DROPPED, ENCODED["jpeg"])
    reference = tf.io.encode_jpeg(under, quality=100).numpy()
    np.testing.assert_array_equal(by_pillow(stored.data), by_pillow(reference))


def test_16_bits_of_alpha_are_dropped_or_opaque() -> None:
    values = np.arange(4 * 4 * 4, dtype=np.uint16).reshape(4, 4, 4) * 1000
    for alpha, change in ((255, DROPPED), (65_535, OPAQUE)):  # 255 of 65,535 is nearly nothing
        values[:, :, 3] = alpha
        data = encode_png_values(values, bits=16, colour_type=RGBA)
        stored = store_image(data, ImageOptions(store="raw", drop_alpha=True))
        assert stored.changes == (change, ENCODED["raw"])
        assert stored.data == values[:, :, :3].tobytes()


def test_too_large_for_jpeg(images: ModuleType) -> None:
    data = images.encode(Image.new("L", (65_600, 1)), "PNG")
    with pytest.raises(SourceError, match="65,500"):
        store_image(data, JPEG)


def test_cmyk_and_animations_are_reported(images: ModuleType) -> None:
    odd = images.odd()
    assert FROM_CMYK in store_image(odd["cmyk jpeg"], PNG).changes
    assert FIRST_FRAME in store_image(odd["animated gif"], JPEG).changes
    assert FIRST_FRAME not in store_image(odd["gif"], JPEG).changes


# -- size ------------------------------------------------------------------------------------------


@given(
    height=st.integers(1, 300),
    width=st.integers(1, 300),
    side=st.integers(1, 400),
    is_shorter=st.booleans(),
)
def test_resizing_keeps_the_aspect_ratio_and_never_enlarges(
    height: int, width: int, side: int, is_shorter: bool
) -> None:
    data = encode_png_values(np.zeros((height, width), np.uint8), bits=8, colour_type=GREY)
    options = ImageOptions(**{"shorter_side" if is_shorter else "longer_side": side})  # type: ignore[arg-type]
    stored = store_image(data, options)
    assert (stored.height, stored.width) == Image.open(io.BytesIO(stored.data)).size[::-1]
    given_side = min(height, width) if is_shorter else max(height, width)
    if given_side <= side:
        assert stored.data is data
        return
    assert stored.changes == (RESIZED, ENCODED["png"])
    assert (min if is_shorter else max)(stored.height, stored.width) == side
    assert abs(stored.height - height * side / given_side) <= max(0.5, 1 - side / given_side)
    assert abs(stored.width - width * side / given_side) <= max(0.5, 1 - side / given_side)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channel_count", [1, 3])
def test_resizing_by_area(channel_count: int, dtype: Any) -> None:
    values = RANDOM.integers(0, np.iinfo(dtype).max, (12, 20, channel_count)).astype(dtype)
    data = encode_png_values(
        values, bits=8 * values.itemsize, colour_type=GREY if channel_count == 1 else RGB
    )
    stored = store_image(data, ImageOptions(store="raw", shorter_side=3))
    means = values.astype(float).reshape(3, 4, 5, 4, channel_count).mean((1, 3))
    np.testing.assert_allclose(raw_pixels(stored), means, atol=1)


def test_transparent_pixels_do_not_affect_colours() -> None:
    values = np.zeros((4, 4, 4), np.uint8)
    values[:, :, 0] = 255  # red, but transparent
    values[:, ::2] = (0, 0, 200, 255)
    data = encode_png_values(values, bits=8, colour_type=RGBA)
    stored = store_image(data, ImageOptions(store="raw", shorter_side=2))
    assert (raw_pixels(stored) == (0, 0, 200, 128)).all()


# -- orientation, profile --------------------------------------------------------------------------


def _with_exif(image: Image.Image, orientation: int, kind: str, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    image.save(out, kind, exif=exif, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_applied(images: ModuleType, orientation: int, kind: str) -> None:
    data = _with_exif(images.noise(13, 9), orientation, kind)
    with Image.open(io.BytesIO(data)) as image:
        upright = np.array(ImageOps.exif_transpose(image))
    options = ImageOptions(store="raw", orientation="apply")
    stored = store_image(data, options)
    np.testing.assert_array_equal(raw_pixels(stored), upright)
    assert stored.orientation_applied == (orientation if kind == "PNG" else 1)
    kept = store_image(data, ImageOptions(orientation="apply"))
    if kind == "PNG":
        np.testing.assert_array_equal(by_pillow(kept.data), upright)
        assert exif_orientation(kept.data) == 1
        assert (TURNED in kept.changes) == (orientation != 1)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_jpeg_rotated_upright(images: ModuleType, orientation: int) -> None:
    data = _with_exif(images.smooth(40, 24), orientation, "JPEG", quality=95)
    with Image.open(io.BytesIO(data)) as image:
        upright = np.array(ImageOps.exif_transpose(image)).astype(int)
    stored = store_image(data, ImageOptions(orientation="apply", quality=100))
    assert stored.format == "jpeg"
    assert (stored.height, stored.width) == upright.shape[:2]
    assert np.abs(by_pillow(stored.data) - upright).max() <= 8  # of the fast DCT, and encoding
    assert exif_orientation(stored.data) == 1


@pytest.mark.parametrize("target", ["jpeg", "png"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_metadata_is_copied(images: ModuleType, kind: str, target: Any) -> None:
    profile = bytes(16) + b"RGB " + bytes(range(256)) * 600
    data = _with_exif(images.noise(40, 24), 6, kind, icc_profile=profile)
    options = ImageOptions(store=target, longer_side=20)
    stored = store_image(data, options)
    assert exif_orientation(stored.data) == 6
    assert stored.orientation_applied == 1
    assert (stored.height, stored.width) == (12, 20)
    assert NO_PROFILE not in stored.changes
    with Image.open(io.BytesIO(stored.data)) as image:
        image.load()
        assert image.info["icc_profile"] == profile
        assert image.getexif()[0x0112] == 6
    raw = store_image(data, RAW)
    assert {NO_PROFILE, NO_ORIENTATION} <= set(raw.changes)


# -- bombs and damage ------------------------------------------------------------------------------


def test_image_bombs_are_rejected(images: ModuleType) -> None:
    options = ImageOptions(store="raw", max_pixels=116)
    for data in images.odd().values():
        with pytest.raises(CorruptDataError) as caught:
            store_image(data, options)
        _check_too_large(caught.value)
        exact = ImageOptions(store="raw", max_pixels=117)
        assert store_image(data, exact).height == 9


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rgba png", ImageOptions(shrink=True, max_pixels=116)),
        ("jpeg", ImageOptions(shrink=True, max_pixels=116)),
        ("progressive jpeg", ImageOptions(baseline=True, max_pixels=116)),
        ("jpeg", ImageOptions(shrink=True, baseline=True, max_pixels=116)),
    ],
)
def test_image_bombs_are_not_recompressed(
    images: ModuleType, name: str, options: ImageOptions
) -> None:
    with pytest.raises(CorruptDataError) as caught:
        store_image(images.odd()[name], options)
    _check_too_large(caught.value)


def _check_too_large(error: CorruptDataError) -> None:
    assert error.defect is Defect.UNREADABLE_IMAGE
    assert (error.found, error.expected) == ("13 x 9 pixels", "at most 116")
    assert "max_pixels" in error.remedy


def test_huge_image_is_stored_if_unchanged(images: ModuleType) -> None:
    data = images.odd()["jpeg"]
    assert store_image(data, ImageOptions(baseline=True, max_pixels=116)).data is data


def test_huge_image_in_a_hundred_bytes_is_not_decoded() -> None:
    def chunk(name: bytes, body: bytes) -> bytes:
        checksum = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    data += chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    with pytest.raises(CorruptDataError) as caught:
        store_image(data, JPEG)
    assert caught.value.found == "60,000 x 60,000 pixels"
    assert store_image(data, ImageOptions()).data is data


EVERY_WAY = [
    RAW,
    PNG,
    ImageOptions(store="jpeg", background=(255, 255, 255), shorter_side=6),
    ImageOptions(longer_side=7, orientation="apply"),
    ImageOptions(store="png", recompress=True),
]


def test_storing_is_deterministic_in_threads(images: ModuleType) -> None:
    jobs = [
        (data, options)
        for data in images.odd().values()
        for options in EVERY_WAY
        if data != images.odd()["16-bit png"]
    ]
    alone = [store_image(data, options) for data, options in jobs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(lambda job: store_image(*job), jobs))
            assert together == alone


def test_lossless_rewriting_is_deterministic_in_threads(images: ModuleType) -> None:
    for package in ("jpeglib", "mozjpeg_lossless_optimization", "oxipng"):
        pytest.importorskip(package)
    exif = Image.Exif()
    exif[0x010E] = "words"
    jobs = [
        (data, options)
        for seed in range(12)
        for data in (
            images.encode(
                images.noise(50 + seed, 40, seed=seed), "JPEG", progressive=True, exif=exif
            ),
            images.encode(images.noise(20, 10 + seed), "PNG"),
        )
        for options in (ImageOptions(shrink=True), ImageOptions(baseline=True))
    ]
    alone = [store_image(data, options) for data, options in jobs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(lambda job: store_image(*job), jobs)) == alone

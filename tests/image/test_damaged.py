"""Damaged images are accepted, rejected and decoded as in TensorFlow, without output on stderr.

`tests/soak/damaged_images.py` does the same with many more; its drawing and damaging is used here.
"""

from __future__ import annotations

import importlib.util
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from recordsmith.checking import check_example_images
from recordsmith.image import (
    ImageOptions,
    decode_exact,
    decode_pixels,
    read_image_header,
    store_image,
)
from recordsmith.image.formats.png import encode_chunk
from recordsmith.support.errors import CorruptDataError, Defect

SOAK = Path(__file__).parent.parent / "soak" / "damaged_images.py"


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    specification = importlib.util.spec_from_file_location("damaged_images", SOAK)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "gif", "bmp"])
def test_damaged_images_match_tensorflow(tf: Any, soak: ModuleType, kind: str) -> None:
    refused = 0
    for number in range(10):
        whole = soak.draw(kind, number, 40)
        rng = random.Random(number)
        assert list(soak.disagreements(kind, whole)) == []
        for _ in range(10):
            data = soak.damage(whole, kind, rng)
            if not soak.is_safe(data):
                continue
            assert list(soak.disagreements(kind, data)) == [], data
            refused += soak.by_loader(data, 3) is None
    assert 10 < refused < 100


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_marker_within_the_pixels_of_a_jpeg(tf: Any, images: ModuleType) -> None:
    """libjpeg first warns and then fails; the rows decoded so far are not an image."""
    data = images.encode(images.noise(200, 150), "JPEG")
    at = len(data) // 2
    damaged = data[:at] + b"\xff\xc5" + data[at + 2 :]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_image(damaged)
    for function in (
        lambda: decode_pixels(damaged, read_image_header(damaged)),
        lambda: decode_pixels(damaged, read_image_header(damaged), divisor=2),
        lambda: store_image(damaged, ImageOptions(store="jpeg", recompress=True)),
    ):
        with pytest.raises(CorruptDataError) as caught:
            function()
        assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert _defects(damaged) == [Defect.UNREADABLE_IMAGE]


@pytest.mark.parametrize("name", ["4:4:4", "grey jpeg", "cmyk jpeg", "jpeg", "progressive jpeg"])
def test_headers_with_libjpeg_warnings(
    tf: Any, soak: ModuleType, images: ModuleType, each_jpeg_decoder: str, name: str
) -> None:
    if each_jpeg_decoder == "Pillow" and name in ("jpeg", "progressive jpeg"):
        pytest.skip("Pillow decodes interpolated colours a few levels off")
    data = images.odd().get(name) or images.encode(images.noise(13, 9), "JPEG", subsampling=0)
    odd = [data[:2] + b"???" + data[2:], data[:2] + b"\xff\0\xff\xff" + data[2:]]
    for marker, field, values in ((b"JFIF\0", 5, (0, 9)), (b"Adobe", 11, (0, 1, 2, 9))):
        at = data.find(marker) + field
        if at >= field:
            odd += [data[:at] + bytes((value,)) + data[at + 1 :] for value in values]
    odd += [one[:2] + b"?" + one[2:] for one in odd]
    adobe = b"\xff\xee\0\x0eAdobe\0d\0\0\0\0\7"
    odd += [data[:2] + adobe + data[2:], data[:2] + adobe + b"?" + data[2:]]
    for one in odd:
        assert list(soak.disagreements("jpeg", one)) == [], one


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_a_segment_without_a_length_is_decoded_alike_everywhere(images: ModuleType) -> None:
    data = images.odd()["jpeg"]
    odd = data[:4] + b"\0\0" + data[6:]
    loaded = decode_pixels(odd, read_image_header(odd))
    assert np.array_equal(decode_exact(odd, read_image_header(odd)).pixels, loaded)


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_harmless_damage_is_reported(tf: Any, images: ModuleType) -> None:
    jpeg = images.encode(images.noise(200, 150), "JPEG", subsampling=0)
    at = len(jpeg) // 2
    changed = jpeg[:at] + b"\xff\xd9" + jpeg[at + 2 :]
    assert _defects(jpeg) == []
    assert _defects(changed) == [Defect.DAMAGED_IMAGE]
    np.testing.assert_array_equal(
        decode_pixels(changed, read_image_header(changed)), tf.io.decode_image(changed).numpy()
    )
    png = images.odd()["png with text"]
    at = png.index(b"tEXt") + 9
    changed = png[:at] + b"?" + png[at + 1 :]
    assert _defects(png) == []
    assert _defects(changed) == [Defect.DAMAGED_IMAGE]
    _, errors = check_example_images({"image/encoded": [changed], "height": [1]}, ["image/encoded"])
    assert [error.defect for error in errors] == [Defect.DAMAGED_IMAGE, Defect.IMAGE_SIZE]


def _chunks(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(encode_chunk(*chunk) for chunk in chunks)


_HEADER = (b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 0))
_ROWS = bytes(3 * 13)
_PIXELS = (b"IDAT", zlib.compress(_ROWS))
_END = (b"IEND", b"")
_PALETTE = (b"PLTE", bytes(range(12)))


@pytest.mark.parametrize(
    "chunks",
    [
        (_HEADER, _PIXELS, _END),
        (_HEADER, _PIXELS),
        (_HEADER, _END),
        (_PIXELS, _HEADER, _END),
        (_HEADER, _HEADER, _PIXELS, _END),
        (_HEADER, (b"IDAT", _PIXELS[1][:5]), (b"IDAT", _PIXELS[1][5:]), _END),
        (_HEADER, (b"IDAT", _PIXELS[1][:5]), (b"tEXt", b"a\0b"), (b"IDAT", _PIXELS[1][5:]), _END),
        (_HEADER, _PIXELS, _PIXELS, _END),
        (_HEADER, _PIXELS, (b"tEXt", b"a\0b"), _PIXELS, _END),
        (_HEADER, _PALETTE, _PIXELS, _END),
        (_HEADER, _PALETTE, _PALETTE, _PIXELS, _END),
        (_HEADER, (b"ABCD", b"?"), _PIXELS, _END),
        (_HEADER, (b"abCd", b"?"), _PIXELS, _END),
        (_HEADER, (b"a_Cd", b"?"), _PIXELS, _END),
        (_HEADER, (b"iCCP", b"?"), (b"sBIT", b"12345"), _PIXELS, _END),
        (_HEADER, (b"tRNS", b"\0" * 6), _PIXELS, _END),
        (_HEADER, (b"tRNS", b"\0" * 5), _PIXELS, _END),
        (_HEADER, _PIXELS, (b"tRNS", b"\0" * 6), _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 4, 3, 4, 2, 0, 0, 0)), _PIXELS, _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 5, 0, 0, 0)), _PIXELS, _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 2, 1, 0, 0)), _PIXELS, _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 2)), _PIXELS, _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 3, 0, 0, 0)), _PIXELS, _END),
        ((b"IHDR", struct.pack(">IIBBBBB", 12, 3, 8, 3, 0, 0, 0)), _PALETTE, _PIXELS, _END),
        (
            (b"IHDR", struct.pack(">IIBBBBB", 12, 3, 8, 3, 0, 0, 0)),
            _PALETTE,
            (b"tRNS", bytes(5)),
            _PIXELS,
            _END,
        ),
        (
            (b"IHDR", struct.pack(">IIBBBBB", 12, 3, 8, 3, 0, 0, 0)),
            (b"PLTE", bytes(13)),
            _PIXELS,
            _END,
        ),
    ],
)
def test_png_chunks_are_validated_like_libpng(
    tf: Any, soak: ModuleType, chunks: tuple[tuple[bytes, bytes], ...]
) -> None:
    assert list(soak.disagreements("png", _chunks(*chunks))) == []


def test_libraries_print_nothing_about_damaged_images(soak: ModuleType, tmp_path: Path) -> None:
    rng = random.Random(5)
    for kind in ("jpeg", "png", "webp", "gif", "bmp"):
        for number in range(10):
            whole = soak.draw(kind, number, 40)
            for copy in range(4):
                # damage behind a checksum that is right is only met while libpng inflates
                damaged = soak.damage(whole, "any", rng)
                (tmp_path / f"{number}-{copy}.{kind}").write_bytes(damaged)
    program = (
        "import sys; from pathlib import Path\n"
        "from recordsmith.image.decoding.pixels import decode_exact\n"
        "from recordsmith.checking.verification.image_check import check_example_images\n"
        "for path in Path(sys.argv[1]).iterdir():\n"
        "    check_example_images({'image/encoded': [path.read_bytes()]}, ['image/encoded'])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def _defects(data: bytes) -> list[Defect]:
    return [
        error.defect
        for error in check_example_images({"image/encoded": [data]}, ["image/encoded"])[1]
    ]

"""Checks of images in `pack`: checksums inside PNGs always, every pixel on request."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.format.example import encode_sequence_example
from recordsmith.image import ImageOptions, check_chunks
from recordsmith.support.errors import CorruptDataError, Defect
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.shard_assignment import assign_shards


def _noise(format_: str, seed: int = 0, **options: Any) -> bytes:
    numbers = np.random.default_rng(seed).integers(0, 256, (90, 70, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(numbers).save(file, format_, **options)
    return file.getvalue()


PNG, JPEG = _noise("PNG"), _noise("JPEG", quality=95)


def _damaged(data: bytes, at: int, count: int) -> bytes:
    return data[:at] + np.random.default_rng(1).bytes(count) + data[at + count :]


DAMAGED_PNG = _damaged(PNG, len(PNG) // 2, 2000)
# the pixels end in the middle, and the end mark is there
DAMAGED_JPEG = JPEG[: len(JPEG) // 2] + b"\xff\xd9"


def _chunks(data: bytes) -> list[tuple[bytes, int, int]]:
    """Name, start and stop of each chunk, parsed independently."""
    found, at = [], 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        found.append((data[at + 4 : at + 8], at, at + 12 + length))
        at += 12 + length
    return found


@pytest.mark.parametrize("name", [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"])
@pytest.mark.parametrize("part", ["first of body", "last of body", "checksum"])
def test_damage_is_found_in_every_chunk(name: bytes, part: str) -> None:
    image = Image.new("P", (40, 30))
    image.putpalette(range(30))
    file = io.BytesIO()
    image.save(file, "PNG", transparency=3)
    data = file.getvalue()
    check_chunks(data)
    check_chunks(data + b"what follows is not of the image")
    _, start, stop = next(chunk for chunk in _chunks(data) if chunk[0] == name)
    at = {"first of body": start + 8, "last of body": stop - 5, "checksum": stop - 1}[part]
    with pytest.raises(CorruptDataError) as caught:
        check_chunks(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
    assert caught.value.defect == Defect.UNREADABLE_IMAGE
    if name != b"IEND" or part == "checksum":  # elsewhere its name changed
        assert repr(name) in str(caught.value)
        assert f"byte {start:,}" in str(caught.value)


def test_every_truncation_is_found() -> None:
    for stop in (*range(8, len(PNG), 97), len(PNG) - 12):
        with pytest.raises(CorruptDataError) as caught:
            check_chunks(PNG[:stop])
        assert caught.value.defect is Defect.UNREADABLE_IMAGE


def test_chunks_are_those_of_zlib() -> None:
    for name, start, stop in _chunks(PNG):
        assert zlib.crc32(PNG[start + 4 : stop - 4]) == int.from_bytes(PNG[stop - 4 : stop], "big")
        assert name in (b"IHDR", b"IDAT", b"IEND")


@pytest.mark.parametrize("image_options", [None, ImageOptions(store="jpeg")])
def test_png_with_wrong_checksums_is_not_packed(
    image_options: ImageOptions | None, tmp_path: Path
) -> None:
    source = rs.ImageFolder(_folder(tmp_path, {"bad.png": DAMAGED_PNG, "good.png": PNG}))
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(source, tmp_path / "out", image_options=image_options)
    (problem,) = caught.value.problems
    assert problem.startswith("roses/bad.png: unreadable-image")
    assert "b'IDAT'" in problem
    report = rs.pack(source, tmp_path / "out", image_options=image_options, skip_errors=True)
    assert (report.sample_count, len(report.skipped)) == (1, 1)


def test_masks_are_checked_like_images(tmp_path: Path) -> None:
    row = {"image/encoded": JPEG, "image/segmentation/class/encoded": DAMAGED_PNG}
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.Rows([row]), tmp_path / "out", keys={"image/encoded": "jpg"})
    assert "b'IDAT'" in caught.value.problems[0]


def _folder(tmp_path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = tmp_path / "images" / "roses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "images"


@pytest.mark.parametrize("keys", [None, {"image/encoded": "jpg"}])
def test_check_images_decodes_all_of_them(
    tmp_path: Path, keys: dict[str, str | None] | None
) -> None:
    source = rs.ImageFolder(_folder(tmp_path, {"a.jpg": JPEG, "b.jpg": DAMAGED_JPEG, "c.png": PNG}))
    plain = rs.pack(source, tmp_path / "plain", keys=keys)
    assert (plain.sample_count, plain.images_are_checked) == (3, False)
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(source, tmp_path / "out", keys=keys, check_images=True)
    (problem,) = caught.value.problems
    assert problem.startswith("roses/b.jpg: damaged-image")
    report = rs.pack(source, tmp_path / "out", keys=keys, check_images=True, skip_errors=True)
    assert (report.sample_count, report.images_are_checked) == (2, True)
    deep = rs.verify(tmp_path / "plain", deep=True)
    assert [error.defect for error in deep.defects] == [Defect.DAMAGED_IMAGE]


@pytest.mark.parametrize("kind", ["example", "sequence", "other key"])
def test_check_images_decodes_images_of_repacked_records(kind: str, tmp_path: Path) -> None:
    shard = tmp_path / "old.tfrecord"
    with rs.ShardWriter(shard) as writer:
        for data in (JPEG, DAMAGED_JPEG):
            if kind == "sequence":
                message = encode_sequence_example({"n": 1}, {"frames": [[JPEG], [data]]})
                writer.write(message)
            else:
                writer.write_example({"image/encoded" if kind == "example" else "x": data})
    source = rs.Shards(shard)
    assert rs.pack(source, tmp_path / "plain").sample_count == 2
    report = rs.pack(source, tmp_path / "out", check_images=True, skip_errors=True)
    assert (report.sample_count, len(report.skipped)) == (1, 1)
    assert "damaged-image" in report.skipped[0]


def test_check_images_changes_the_fingerprint(tmp_path: Path) -> None:
    source = rs.ImageFolder(_folder(tmp_path, {"a.jpg": JPEG}))
    without, checked = (
        assign_shards(
            source.list_samples(), PackOptions(check_images=check_images), source.describe()
        )
        for check_images in (False, True)
    )
    assert without.fingerprint != checked.fingerprint
    with pytest.raises(rs.OptionError):
        rs.pack(source, tmp_path / "out", check_images="yes")  # type: ignore[arg-type]

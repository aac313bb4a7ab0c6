"""Large images and large records take no more memory than documented, over all threads."""

from __future__ import annotations

import struct
import threading
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import decode_mask
from recordsmith.image.decoding import memory
from recordsmith.viewing import records
from recordsmith.viewing.drawing.scene import SceneReader
from recordsmith.viewing.records import ViewedRecords

from ..images import encode
from .conftest import write

SIZES = [100, 5000, 100, 100, 5000, 5000, 100]
"""Bytes of the records; those of 5000 are large below."""


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_LARGE_BYTES", 1000)
    monkeypatch.setattr(records, "_TOGETHER_BYTES", 2000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "a.tfrecord", [{"id": n, "x": bytes(s)} for n, s in enumerate(SIZES)])


def _png(height: int, width: int, colour_type: int, bits: int = 8) -> bytes:
    """The header of a PNG file, and few of its pixels."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1 << 20))), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(("colour_type", "bits"), [(6, 8), (2, 16), (2, 8)])
def test_an_image_takes_at_most_4_bytes_for_each_of_the_most_pixels(
    open_viewer: Any, tmp_path: Path, colour_type: int, bits: int
) -> None:
    example = {"image/encoded": _png(9400, 9400, colour_type, bits)}
    path = write(tmp_path / "a.tfrecord", [example])
    client = open_viewer(path)
    (tile,) = client.tiles(count=1)
    assert "at most 341 MiB" in tile["problem"]["message"]
    assert "max_pixels" not in tile["problem"]["message"]  # the viewer has no such option
    assert client.json("/api/record/0")["defect"]["message"] == tile["problem"]["message"]
    if bits == 16:
        assert client.get("/api/image/0", key="image/encoded").status_code == 422


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_mask_takes_at_most_as_much() -> None:
    with pytest.raises(rs.CorruptDataError) as caught:
        decode_mask(_png(12_000, 12_000, 0), max_pixels=None)
    assert (caught.value.expected, caught.value.remedy) == ("at most 89,478,485", "")


def test_masks_in_colours_are_numbered_by_their_values() -> None:
    rng = np.random.default_rng(1)
    colours = rng.integers(0, 256, (300, 3), np.uint8)
    pixels = colours[rng.integers(0, 300, (150, 70))]
    mask = encode(Image.fromarray(pixels), "PNG")
    codes = pixels.astype(np.int64) @ (1 << 16, 1 << 8, 1)
    expected = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    reader = SceneReader({})
    reader.image_key, reader.mask_key = "image", "mask"
    found = reader.read({"image": [mask], "mask": [mask]}).mask
    assert found is not None
    assert (found.dtype.itemsize, found.tolist()) == (2, expected.tolist())


def test_a_reservation_does_not_lift_the_limit_of_an_image() -> None:
    header = memory.ImageHeader("png", 9400, 9400, 4, "")
    data = _png(9400, 9400, 6)
    with memory.reserve_memory(1 << 25), pytest.raises(rs.CorruptDataError):
        memory.reserve_for_decoding(data, header, max_pixels=None)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((32,), [[0], [1], [2, 3], [4], [5], [6]]),
        ((1,), [[0], [1], [2], [3], [4], [5], [6]]),
    ],
)
def test_large_records_are_read_alone(
    path: Path, counts: Sequence[int], expected: list[list[int]]
) -> None:
    opened = ViewedRecords(path)
    opened.wait_counted(1)
    assert opened.chunks(range(len(SIZES)), counts) == expected
    assert opened.chunks([]) == []


def test_few_bytes_are_read_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_TOGETHER_BYTES", 6000)
    opened = ViewedRecords(path)
    opened.wait_counted(1)
    assert opened.chunks(range(len(SIZES))) == [[0, 1, 2, 3], [4], [5, 6]]
    assert opened.chunks(range(4), (1, 2)) == [[0], [1, 2], [3]]


@pytest.mark.usefixtures("small_limits")
def test_scans_reserve_the_memory_of_large_records(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved: list[int] = []
    monkeypatch.setattr(
        records, "reserve_memory", lambda size: reserved.append(size) or nullcontext()
    )
    opened = ViewedRecords(path)
    opened.wait_counted(1)
    reserved.clear()
    positions = [at for places, _ in opened.blocks() for at in places.tolist()]
    assert positions == [*range(len(SIZES))]
    assert [size > 3 * 5000 for size in reserved] == [False, True, False, True, True, False]


def test_threads_share_the_memory_of_large_records(
    open_viewer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2 << 20
    monkeypatch.setattr(records, "_LARGE_BYTES", size // 2)
    monkeypatch.setattr(memory, "_memory", memory.Memory(4 * size))
    client = open_viewer(write(tmp_path / "a.tfrecord", [{"x": bytes(size)}] * 4 + [{"id": 1}]))
    client.poll("/api/view")
    active: list[int] = []
    most: list[int] = []
    lock, read = threading.Lock(), ViewedRecords.read

    def slow(self: Any, positions: Any) -> Any:
        with lock:
            active.append(1)
            most.append(len(active))
        time.sleep(0.05)  # so that others could come
        try:
            return read(self, positions)
        finally:
            with lock:
                active.pop()

    monkeypatch.setattr(ViewedRecords, "read", slow)
    paths = [f"/api/{kind}/{at}" for kind in ("record", "hex", "steps") for at in range(4)]
    with ThreadPoolExecutor(16) as pool:
        answers = [*pool.map(client.get, [*paths, *["/api/tiles?count=4"] * 4])]
    assert {answer.status_code for answer in answers} == {200}
    assert max(most) == 1

"""The memory limits of decoding: per image and for all threads."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

import recordsmith as rs
from recordsmith.image import (
    MAX_PIXELS,
    SIGNATURE,
    ImageOptions,
    decode_image,
    decode_mask,
    probe_image,
    read_image_header,
    reserve_for_decoding,
    reserve_memory,
    store_image,
)
from recordsmith.image.decoding import memory
from recordsmith.image.decoding.memory import Memory, convert_rows, reserve_more
from recordsmith.image.formats.png import encode_chunk, encode_png_values
from recordsmith.support.errors import CorruptDataError, Defect, SourceError

from ..raising import raises

SIDE = 2500
MIB = 1 << 20

# Prints by how many bytes the peak of the process grows when each file is decoded.
_MEASURE = """
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from recordsmith.image.decoding.memory import peak_bytes
from recordsmith.image.decoding.pixels import decode_pixels
from recordsmith.image.decoding.probe import read_image_header

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

def decode(data):
    head = read_image_header(data)
    return decode_pixels(data, head), peak_bytes(data, head)

small = Path(sys.argv[1])
for path in (small, small, *sorted(small.parent.glob("large*"))):
    data = path.read_bytes()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    pixels, estimate = decode(data)
    print(path.name, peak() - before, estimate, pixels.shape[0])
    del pixels
"""


def _saved(image: Image.Image, format_: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def _png_head(height: int, width: int) -> bytes:
    """A PNG with a header but without pixels."""
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    return SIGNATURE + encode_chunk(b"IHDR", head) + encode_chunk(b"IEND", b"")


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_decoding_takes_no_more_than_estimated(tmp_path: Path) -> None:
    plain = Image.new("RGB", (SIDE, SIDE), (10, 20, 30))
    see_through = Image.new("RGBA", (SIDE, SIDE), (10, 20, 30, 99))
    cases = {
        "jpeg": _saved(plain, "JPEG"),
        "cmyk jpeg": _saved(plain.convert("CMYK"), "JPEG"),
        "progressive jpeg": _saved(plain, "JPEG", progressive=True, subsampling=0),
        "png": _saved(plain, "PNG"),
        "rgba png": _saved(see_through, "PNG"),
        "grey-alpha png": _saved(see_through.convert("LA"), "PNG"),
        "palette png": _saved(plain.convert("P"), "PNG"),
        "colour-key png": _saved(plain, "PNG", transparency=(10, 20, 30)),
        "16-bit png": encode_png_values(
            np.zeros((SIDE, SIDE, 3), np.uint16), bits=16, colour_type=2
        ),
        "gif": _saved(plain.convert("P"), "GIF"),
        "bmp": _saved(plain, "BMP"),
        "tiff": _saved(plain, "TIFF", compression="tiff_deflate"),
        "lossy webp": _saved(plain, "WEBP", quality=10, method=0),
        "webp": _saved(see_through, "WEBP", lossless=True, method=0),
    }
    if features.check("avif"):
        cases["avif"] = _saved(plain, "AVIF", speed=10)
    small = tmp_path / "small.png"
    small.write_bytes(_saved(plain.crop((0, 0, 9, 9)), "PNG"))
    for name, data in cases.items():
        (tmp_path / f"large {name}").write_bytes(data)
    returned = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed goes back to the system
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, small],
        env=os.environ | returned,
        capture_output=True,
        text=True,
        check=True,
    )
    measured = [line.rsplit(maxsplit=3) for line in done.stdout.splitlines()][2:]
    assert len(measured) == len(cases)
    for name, peak, estimate, rows in measured:
        assert int(rows) == SIDE
        assert int(peak) < 1.1 * int(estimate) + 20 * MIB, name  # strips take some megabytes
        assert int(estimate) < 2 * int(peak) + 20 * MIB, name


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_saved(Image.new("P", (9000, 9000)), "GIF"), id="gif"),
        pytest.param(_png_head(13_300, 13_300), id="png"),
        pytest.param(_png_head(9400, 9400), id="png that takes 6 bytes a pixel"),
    ],
)
def test_every_job_rejects_images_over_the_limit(data: bytes, tmp_path: Path) -> None:
    shard = tmp_path / "a.tfrecord"
    with rs.ShardWriter(shard) as writer:
        writer.write_example({"image/encoded": data})
    (defect,) = rs.verify(shard, deep=True).defects
    with pytest.raises(CorruptDataError) as of_loader:
        next(iter(rs.Loader(rs.open(shard), {"image": rs.Image(size=8)}, batch_size=1)))
    for error in (defect, of_loader.value):
        assert error.defect == Defect.UNREADABLE_IMAGE
        assert "max_pixels" in str(error)
    with pytest.raises(SourceError, match="max_pixels"):
        rs.pack(
            rs.Rows([{"image/encoded": data}]),
            tmp_path / "out",
            image_options=ImageOptions(store="jpeg"),
        )


def test_the_limit_follows_max_pixels() -> None:
    data = _png_head(9000, 9000)  # RGB: 6 bytes a pixel
    large = read_image_header(data)
    small = large._replace(height=2000, width=2000)
    with raises(CorruptDataError, defect="unreadable-image", match="max_pixels"):
        reserve_for_decoding(data, large, max_pixels=MAX_PIXELS)
    reserve_for_decoding(data, large, max_pixels=2 * MAX_PIXELS)
    reserve_for_decoding(data, small, max_pixels=4_000_000)  # its pixels are few enough
    with raises(CorruptDataError, defect="unreadable-image", match="max_pixels"):
        reserve_for_decoding(data, small, max_pixels=3_999_999)


def test_threads_share_memory_without_starving() -> None:
    shared = Memory(100)
    held, most, done = [], [], []
    lock = threading.Lock()

    def work(number: int) -> None:
        for turn in range(50):
            taken = shared.take((number * 37 + turn * 11) % 130)
            with lock:
                held.append(taken)
                most.append(sum(held))
            with lock:
                held.remove(taken)
            shared.give_back(taken)
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(done) == list(range(16))
    assert 50 < max(most) <= 100
    assert shared.take(100) == 100  # all was given back


def test_memory_is_first_come_first_served() -> None:
    shared = Memory(10)
    shared.take(6)
    order: list[int] = []

    def take(byte_count: int) -> None:
        order.append(shared.take(byte_count))

    large = threading.Thread(target=take, args=(10,))
    large.start()
    while not shared._queue:
        pass
    little = threading.Thread(target=take, args=(1,))
    little.start()
    while len(shared._queue) < 2:
        pass
    assert order == []  # 4 are free, but the one who asked for 10 came first
    shared.give_back(6)
    large.join(60)
    shared.give_back(10)
    little.join(60)
    assert order == [10, 1]


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Memory for exactly one large image."""
    shared = Memory(10 * MIB)
    monkeypatch.setattr(memory, "_memory", shared)
    return shared


def test_memory_is_reserved_once_and_released_after_an_error(shared: Memory) -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), reserve_memory(9 * MIB):
            assert shared._free == MIB
            with reserve_memory(9 * MIB):  # of the same image: it would wait for itself
                reserve_more(10 * MIB)
                assert shared._free == 0
            raise ZeroDivisionError
        assert shared._free == 10 * MIB


@pytest.mark.posix
def test_forked_process_starts_with_all_memory() -> None:
    code = """
import os, threading
from recordsmith.image import decode_image, decode_mask, probe_image, read_image_header, store_image
from recordsmith.image.decoding import memory
is_held, may_end = threading.Event(), threading.Event()
def work():
    with memory.reserve_memory(memory.MAX_BYTES):
        is_held.set()
        may_end.wait(60)
thread = threading.Thread(target=work)
thread.start()
is_held.wait(60)
with memory._memory._changed:  # as if another thread had it at the fork
    child = os.fork()
if not child:
    with memory.reserve_memory(memory.MAX_BYTES):
        os._exit(7)
may_end.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["7"]


@pytest.mark.parametrize("strip", [1, 7, 50, 1000])
@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda rows: rows[:, :, :3].copy(), id="fewer channels"),
        pytest.param(lambda rows: rows[:, :, 1:3], id="views"),
        pytest.param(lambda rows: (rows >> 8).astype(np.uint8), id="fewer bits"),
        pytest.param(lambda rows: rows.astype(np.uint32), id="more bits"),
        pytest.param(lambda rows: rows[:, :2, :1].astype(np.float32), id="narrower"),
        pytest.param(lambda rows: np.concatenate((rows, rows), axis=2), id="more channels"),
    ],
)
def test_convert_rows_matches_converting_at_once(
    strip: int, convert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(strip).integers(0, 1 << 16, (11, 5, 4), np.uint16)
    expected = convert(pixels.copy()).copy()
    untouched = pixels.copy()
    untouched.setflags(write=False)
    monkeypatch.setattr(memory, "UNCOUNTED_PIXELS", 1)
    monkeypatch.setattr(memory, "_STRIP", strip)
    for given in (untouched, pixels):
        converted = convert_rows(given, convert)
        np.testing.assert_array_equal(converted, expected)
        assert converted.dtype == expected.dtype


@pytest.mark.parametrize(
    "job", ["load", "load a mask", "verify", "decode", "mask", "store", "probe"]
)
def test_every_job_reserves_and_releases_memory(
    job: str, shared: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: list[int] = []
    take = shared.take
    monkeypatch.setattr(shared, "take", lambda count: taken.append(count) or take(count))
    data = _saved(Image.new("L", (1200, 1000), 3), "BMP" if job == "probe" else "PNG")
    row = {"image/encoded": data, "image/segmentation/class/encoded": data}
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(row)
    if job.startswith("load"):
        features: Any = {"image": rs.Image(size=8)}
        if job == "load a mask":
            features = {"mask": rs.Mask("image/segmentation/class/encoded", of=None, size=8)}
        next(iter(rs.Loader(rs.open(tmp_path / "a.tfrecord"), features, batch_size=1)))
    elif job == "verify":
        assert rs.verify(tmp_path / "a.tfrecord", deep=True).defects == []
    elif job == "decode":
        decode_image(data)
    elif job == "mask":
        decode_mask(data)
    elif job == "store":
        store_image(data, ImageOptions(store="jpeg"))
    else:
        probe_image(data)
    assert taken
    assert min(taken) >= 4 * 1_200_000
    assert shared._free == 10 * MIB

"""Malicious records: each is shown, and none ends the server or fills its memory."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.wire import encode_record
from recordsmith.viewing.compressed_stream import CompressedStream
from recordsmith.viewing.wire_fields import wire_fields

from ..images import encode, noise
from .conftest import write

MARKUP = "</script><img src=x onerror=alert(1)>'\"`{{7*7}}"


def _bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes with many pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1 << 20))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


IMAGE = encode(noise(20, 10), "JPEG")
FILES = Path(__file__).parent.parent / "conformance" / "files"
CORPUS: dict[str, dict[str, Any]] = json.loads((FILES.parent / "cases.json").read_text())
HOSTILE: dict[str, Any] = {
    "markup": {MARKUP: MARKUP, "image/filename": MARKUP, "image/class/text": MARKUP},
    "bomb": {"image/encoded": _bomb(50_000, 50_000)},
    "wide bomb": {"image/encoded": _bomb(2**31 - 1, 1)},
    "many features": {f"feature {number}": number for number in range(10_000)},
    "many values": {"n": np.arange(2_000_000)},
    "long text": {"text": "x" * 5_000_000},
    "no utf-8": {b"\xff\xfe".decode("utf-8", "surrogateescape"): b"\xff\xfe\x00"},
    "infinite": {"x": np.float32([np.nan, np.inf, -np.inf] * 10)},
    "many boxes": {
        "image/encoded": IMAGE,
        **{
            f"image/object/bbox/{side}": np.full(100_000, 0.5, np.float32)
            for side in ("ymin", "xmin", "ymax", "xmax")
        },
        "image/object/class/label": np.full(100_000, -(2**63)),
    },
    "unequal boxes": {
        "image/encoded": IMAGE,
        "image/object/bbox/ymin": np.float32([0.1, np.nan]),
        "image/object/bbox/xmin": np.float32([1e30, 2]),
        "image/object/bbox/ymax": np.float32([-1e30]),
        "image/object/bbox/xmax": np.float32([5]),
    },
    "raw of no size": {"image_raw": b"abc", "height": 2**62, "width": 2**62},
    "raw of negative size": {"image_raw": b"abc", "height": -3, "width": -1},
    "large label": {"image/encoded": IMAGE, "image/class/label": 2**63 - 1},
    "mask of another size": {
        "image/encoded": IMAGE,
        "image/segmentation/class/encoded": encode(noise(3, 99, "L"), "PNG"),
    },
    "mask that is a bomb": {
        "image/encoded": IMAGE,
        "image/segmentation/class/encoded": _bomb(50_000, 50_000),
    },
    "svg": {"image/encoded": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"},
    "html": {"image/encoded": b"<html><script>alert(1)</script>"},
    "jpeg with html": {"image/encoded": b"\xff\xd8\xff<script>alert(1)</script>"},
    "nested message": b"\x0a" * 400 + b"\x00",
    "deep message": b"",
    "zeros": bytes(100_000),
    "lists": rs.encode_sequence_example({}, {"a": [[b""]] * 3000, MARKUP: [[IMAGE]] * 500}),
}
_inner = b""
for _ in range(200):
    _inner = b"\x2a" + struct.pack("B", len(_inner) & 127) + _inner
HOSTILE["deep message"] = _inner


@pytest.mark.parametrize("name", HOSTILE)
def test_each_is_shown(open_viewer: Any, tmp_path: Path, name: str) -> None:
    client = open_viewer(write(tmp_path / "a.tfrecord", [HOSTILE[name], {"id": 1}]))
    first, second = client.tiles(count=2)
    assert (first["position"], second["text"]) == (0, "id: 1")
    assert len(str(first)) < 200_000
    for path in ("/api/dataset", "/api/facets", "/api/record/0"):
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.content) < 2_000_000
    for image in client.json("/api/record/0")["images"][:3]:
        answer = client.get("/api/image/0", key=image["key"], index=image["index"])
        if answer.status_code == 200:
            assert answer.headers["content-type"] in ("image/jpeg", "image/png")
            assert answer.content[:2] in (b"\xff\xd8", b"\x89P")
    assert client.get("/api/mask/0").status_code in (200, 400, 422)
    assert client.poll("/api/view", where="has(id)")["count"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
def test_files_of_the_corpus(open_viewer: Any, name: str) -> None:
    """What is readable is shown, and a wrong checksum in its place."""
    case, path = CORPUS[name], FILES / name
    defect, position = case["defect"], case["position"]
    if defect is not None and not case["records"] and not case.get("behind"):
        with pytest.raises(rs.CorruptDataError) as caught:
            open_viewer(path)
        assert str(caught.value.defect) == defect
        return
    client = open_viewer(path)
    count = client.poll("/api/view")["count"]
    assert count == case["records"] if defect is None else count >= case["records"]
    tiles = client.tiles(count=8)
    assert [tile["position"] for tile in tiles] == [*range(min(8, count))]
    for tile in tiles:
        assert any(tile[key] for key in ("image", "text", "frames", "series", "problem")), tile
        assert client.json(f"/api/record/{tile['position']}")["record"] == tile["position"]
    if defect == "payload-crc-mismatch" and position < len(tiles):
        problem = tiles[position]["problem"]
        assert problem["defect"] == defect
        assert f", record {position}, byte {case['offset']}:" in problem["message"]


def test_empty_records_of_a_compressed_shard_are_not_kept_without_end(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tfrecord.gz", "wb", 1) as file:
        file.write(bytes(encode_record(b"")) * 4_000_000)
    stream = CompressedStream(rs.open(tmp_path / "a.tfrecord.gz").shards[0])
    assert stream.read([*range(0, 4_000_000, 10_000)]) == [b""] * 400
    assert sum(map(len, stream._kept.values())) < 2_500_000


def test_raw_pixels_of_the_widest_range_are_shown(open_viewer: Any, tmp_path: Path) -> None:
    pixels = np.float32([3e38, -3e38] * 6)
    raw = {"image_raw": pixels.tobytes(), "height": 2, "width": 2, "depth": 3}
    image = {"image_raw": encode(noise(9, 9), "PNG")}
    tile = open_viewer(write(tmp_path / "a.tfrecord", [image, raw])).tiles()[1]
    assert (tile["kind"], tile["problem"]) == ("image", None)


def test_images_that_are_not_are_refused(open_viewer: Any, tmp_path: Path) -> None:
    names = ["bomb", "svg", "html", "jpeg with html"]
    client = open_viewer(write(tmp_path / "a.tfrecord", [HOSTILE[name] for name in names]))
    for position in range(len(names)):
        answer = client.get(f"/api/image/{position}", key="image/encoded")
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/json")


def test_a_reader_that_leaves_stops_the_tiles(open_viewer: Any, tmp_path: Path) -> None:
    image = encode(noise(600, 600), "PNG")
    examples = [{"image/encoded": image, "n": number} for number in range(300)]
    client = open_viewer(write(tmp_path / "a.tfrecord", examples))
    for _ in range(5):
        with client.http.stream("GET", "/api/tiles", params={"count": 300}) as answer:
            next(answer.iter_lines())
    assert client.tiles(count=1)[0]["kind"] == "image"


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        (b"\x08\x96\x01", [{"number": 1, "type": "varint", "value": 150}]),
        (b"\x12\x02hi", [{"number": 2, "type": "text", "size": 2, "text": "hi"}]),
        (
            b"\x1a\x03\x08\x96\x01",
            [
                {
                    "number": 3,
                    "type": "message",
                    "size": 3,
                    "fields": [{"number": 1, "type": "varint", "value": 150}],
                }
            ],
        ),
        (b"\x25" + struct.pack("<f", 0.5), [{"number": 4, "type": "float", "value": "0.5"}]),
        (b"\x29" + struct.pack("<d", 2.5), [{"number": 5, "type": "double", "value": "2.5"}]),
        (b"\x08", []),
        (b"\x12\x05hi", []),
        (b"\x00\x00", []),
        (b"\x0b", []),
        (b"\x08" + b"\xff" * 11, []),
    ],
)
def test_wire_fields(payload: bytes, fields: Any) -> None:
    assert wire_fields(payload) == fields


def test_wire_fields_of_random_bytes_are_bounded() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        text = io.StringIO()
        print(wire_fields(rng.bytes(int(rng.integers(0, 5000)))), file=text)
        assert len(text.getvalue()) < 200_000

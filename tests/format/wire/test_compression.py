"""GZIP and ZLIB: detected by their bytes, decompressed as a stream."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any, BinaryIO, Literal, cast

import pytest

from recordsmith.format.wire import check_compression, encode_record
from recordsmith.format.wire.compression import HEAD_BYTES, Deflater, Inflater, detect_compression
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

from ...raising import raises

Packed = Literal["gzip", "zlib"]
DATA = b"some bytes, some bytes, and some more of them " * 100


def pack(data: bytes, compression: str) -> bytes:
    return gzip.compress(data) if compression == "gzip" else zlib.compress(data)


@pytest.mark.parametrize("level", range(10))
def test_detected_at_every_level(level: int) -> None:
    frame = encode_record(b"payload")
    assert detect_compression(zlib.compress(frame, level)[:HEAD_BYTES]) == "zlib"
    assert detect_compression(gzip.compress(frame, level)[:HEAD_BYTES]) == "gzip"
    assert detect_compression(frame) == "none"


@pytest.mark.parametrize("window_bits", range(9, 16))
def test_detected_with_every_window(window_bits: int) -> None:
    engine = zlib.compressobj(wbits=window_bits)
    assert detect_compression(engine.compress(DATA) + engine.flush()) == "zlib"


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"\x78\x9c", b"\x78\x01", b"\x78\xda"])
def test_a_length_that_looks_like_magic_bytes(magic: bytes, reference: Any) -> None:
    """The first bytes of a plain file are a length, which may be any number."""
    length = int.from_bytes(magic, "little")
    head = reference.header(length) + bytes(HEAD_BYTES - 12)
    assert head.startswith(magic)
    assert detect_compression(head) == "none"


@pytest.mark.parametrize("head", [b"", b"\x78", b"x^2 + y^2 = z^2", b"\x78\x9c" + b"\xff" * 30])
def test_magic_bytes_alone_are_not_enough(head: bytes) -> None:
    assert detect_compression(head) == "none"


def test_a_gzip_with_a_name_in_its_header(reference: Any) -> None:
    stream = io.BytesIO()
    with gzip.GzipFile("a-very-long-name" * 40, "wb", fileobj=stream) as file:
        file.write(reference.frame(b"one"))
    assert detect_compression(stream.getvalue()[:HEAD_BYTES]) == "gzip"
    assert Inflater(io.BytesIO(stream.getvalue()), "gzip").read(-1) == reference.frame(b"one")


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("size", [1, 2, 7, 1000, 10**6])
def test_inflates_in_pieces_of_any_size(compression: Packed, size: int) -> None:
    inflater = Inflater(io.BytesIO(pack(DATA, compression)), compression)
    pieces = list(iter(lambda: inflater.read(size), b""))
    assert b"".join(cast(list[bytes], pieces)) == DATA
    assert max(map(len, cast(list[bytes], pieces))) <= size
    assert inflater.is_complete


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_missing_end_mark_is_detected(compression: Packed) -> None:
    inflater = Inflater(io.BytesIO(pack(DATA, compression)[:-1]), compression)
    assert inflater.read(-1) == DATA
    assert not inflater.is_complete


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_damaged_data_is_reported_with_its_byte(compression: Packed) -> None:
    data = pack(DATA, compression) + pack(DATA, compression)[:10] + b"\xff" * 20
    with pytest.raises(CorruptDataError, match=rf"{compression}.*byte \d+") as caught:
        Inflater(io.BytesIO(data), compression).read(-1)
    assert caught.value.defect is Defect.BROKEN_COMPRESSION


@pytest.mark.parametrize("size", [1, 2, 13])
def test_data_before_damage_does_not_depend_on_the_read_size(size: int) -> None:
    """Small reads lost one byte more than large ones in some damaged files."""
    good = zlib.compress(bytes(range(100)) + b"text, " * 30 + bytes(range(100, 200)), 9)
    breaks = 0
    for stop in range(20, len(good)):
        data = good[:stop] + bytes([stop * 7 % 256]) * 60
        (small, large), ends = zip(
            *(read_to_the_end(data, n) for n in (size, 1 << 16)), strict=True
        )
        assert small == large
        assert ends[0] == ends[1]
        assert len(small) + 1 >= len(zlib.decompressobj().decompress(good[:stop]))
        breaks += ends[0]
    assert breaks > 20


def read_to_the_end(data: bytes, size: int) -> tuple[bytes, bool]:
    """Return the data, and whether it is damaged."""
    inflater = Inflater(io.BytesIO(data), "zlib")
    found, buffer = bytearray(), bytearray(size)
    try:
        while count := inflater.readinto(buffer):
            found += buffer[:count]
    except CorruptDataError:
        return bytes(found), True
    return bytes(found), False


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_the_limit_counts_all_members(compression: Packed) -> None:
    data = pack(DATA, compression) * 3
    whole = Inflater(io.BytesIO(data), compression, max_bytes=3 * len(DATA))
    assert whole.read(-1) == 3 * DATA
    limited = Inflater(io.BytesIO(data), compression, max_bytes=3 * len(DATA) - 1)
    with pytest.raises(CorruptDataError) as caught:
        limited.read(-1)
    assert caught.value.defect is Defect.DECOMPRESSION_LIMIT


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_deflated_bytes_depend_on_the_input_alone(compression: Packed) -> None:
    """Without time stamp and name, the same records give the same file."""
    written = []
    for _ in range(2):
        stream = io.BytesIO()
        deflater = Deflater(cast(BinaryIO, stream), compression)
        deflater.write(DATA[:1000])
        deflater.write(memoryview(DATA)[1000:])
        deflater.finish()
        written.append(stream.getvalue())
    assert written[0] == written[1]
    if compression == "gzip":
        assert written[0][4:8] == bytes(4)  # RFC 1952: no modification time
        assert gzip.decompress(written[0]) == DATA
    else:
        assert zlib.decompress(written[0]) == DATA


@pytest.mark.parametrize("name", ["gz", "snappy", " gzip", "zstd"])
def test_unknown_names_are_refused(name: str) -> None:
    with raises(OptionError, option="compression", value=name, expected="one of none, gzip, zlib"):
        check_compression(name)

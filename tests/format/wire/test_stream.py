"""Records in streams, with reads of any size and damage of any kind."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.format.wire import (
    FRAME_BYTES,
    HEADER_BYTES,
    RecordWriter,
    encode_records,
    read_blocks,
    read_records,
)
from recordsmith.format.wire.stream import BLOCK_BYTES
from recordsmith.support.errors import CorruptDataError, Defect

PAYLOADS = [b"first", b"", bytes(range(256)), b"the last one"]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zlib": zlib.compress,
}
MIB = 1 << 20


class ShortReads:
    """A stream that returns a few bytes at a time and has only `read`, like a socket."""

    def __init__(self, data: bytes, sizes: Callable[[], int]) -> None:
        self._rest = io.BytesIO(data)
        self._sizes = sizes

    def read(self, size: int = -1) -> bytes:
        return self._rest.read(min(size, self._sizes()))


class ShortReadinto(io.RawIOBase):
    """A stream that fills only the first bytes of a buffer, like a pipe."""

    def __init__(self, data: bytes, sizes: Callable[[], int]) -> None:
        self._rest = io.BytesIO(data)
        self._sizes = sizes

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        return self._rest.readinto(memoryview(target)[: self._sizes()])


def stream_of(data: bytes, kind: str = "whole") -> BinaryIO:
    if kind == "whole":
        return io.BytesIO(data)
    if kind == "random":
        dice = random.Random(len(data))
        return cast(BinaryIO, ShortReads(data, lambda: dice.randint(1, 9)))
    reader = ShortReads if kind == "bytes" else ShortReadinto
    return cast(BinaryIO, reader(data, lambda: 1))


def read_until_defect(stream: BinaryIO, **options: Any) -> tuple[list[bytes], Any]:
    """Return the records, and the defect that ended them."""
    payloads: list[bytes] = []
    try:
        payloads.extend(read_records(stream, **options))  # keeps the records before an exception
    except CorruptDataError as error:
        return payloads, error
    return payloads, None


def read_past_defects(stream: BinaryIO) -> tuple[list[bytes], list[CorruptDataError]]:
    defects: list[CorruptDataError] = []
    blocks = read_blocks(stream, on_defect=defects.append)
    return [bytes(payload) for block in blocks for payload in block.payloads()], defects


@contextmanager
def memory_peak_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit


# ---- whole streams -----------------------------------------------------------------------------


def test_an_empty_stream_has_no_records() -> None:
    assert read_until_defect(io.BytesIO()) == ([], None)
    assert read_until_defect(io.BytesIO(gzip.compress(b""))) == ([], None)
    assert read_until_defect(io.BytesIO(zlib.compress(b""))) == ([], None)


@pytest.mark.parametrize("delta", [*range(-34, 35), -1000, 1000])
def test_records_around_the_end_of_a_block(delta: int) -> None:
    """The block may end anywhere: in a header, a payload, a footer, or between two records."""
    payloads = [b"a", bytes(BLOCK_BYTES - 2 * FRAME_BYTES - 1 + delta), b"b" * 10, b"", b"c"]
    assert list(read_records(io.BytesIO(encode_records(payloads)))) == payloads


@pytest.mark.parametrize("compression", PACKERS)
def test_records_longer_than_a_block(compression: str) -> None:
    dice = random.Random(3)
    sizes = (0, 5, 3 * BLOCK_BYTES + 5, 2, BLOCK_BYTES, BLOCK_BYTES - FRAME_BYTES, 7)
    payloads = [dice.randbytes(size) for size in sizes]
    data = PACKERS[compression](encode_records(payloads))
    assert list(read_records(io.BytesIO(data))) == payloads


def test_blocks_have_the_positions_of_their_records() -> None:
    dice = random.Random(4)
    payloads = [dice.randbytes(dice.choice([0, 10, 3000, 200_000])) for _ in range(100)]
    data = encode_records(payloads)
    position = 0
    for block in read_blocks(io.BytesIO(data)):
        assert block.position == position
        assert len(block) == len(list(block.payloads())) > 0
        for start, length in zip(block.starts.tolist(), block.lengths.tolist(), strict=True):
            at = block.offset + start
            assert data[at : at + length] == payloads[position]
            position += 1
        assert block.buffer.readonly
        assert block.frames() == encode_records(list(block.payloads()))
    assert position == len(payloads)


@given(payloads=st.lists(st.binary(max_size=50), max_size=8), data=st.data())
def test_members_and_flushes_anywhere(payloads: list[bytes], data: Any) -> None:
    """Compressed in pieces of any size, each flushed or a separate member."""
    frames = encode_records(payloads)
    cuts = data.draw(st.lists(st.integers(0, len(frames)), max_size=3).map(sorted))
    pieces = [frames[a:b] for a, b in zip([0, *cuts], [*cuts, len(frames)], strict=True)]
    window_bits = data.draw(st.sampled_from([15, 31]))
    flush = data.draw(st.sampled_from([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_FINISH]))
    stored, engine = b"", zlib.compressobj(wbits=window_bits)
    for piece in pieces:
        stored += engine.compress(piece) + engine.flush(flush)
        if flush == zlib.Z_FINISH:
            engine = zlib.compressobj(wbits=window_bits)
    kind = data.draw(st.sampled_from(["whole", "bytes", "readinto"]))
    assert read_until_defect(stream_of(stored, kind)) == (payloads, None)


# ---- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", PACKERS)
def test_truncated_at_every_byte(compression: str, reference: Any) -> None:
    """An intact prefix; then the end if it is a possible one, else a defect."""
    frames = reference.frames(PAYLOADS)
    bounds = [len(reference.frames(PAYLOADS[:count])) for count in range(len(PAYLOADS) + 1)]
    data = PACKERS[compression](frames)
    for size in range(len(data)):
        cut = data[:size]
        payloads, error = read_until_defect(io.BytesIO(cut))
        assert payloads == PAYLOADS[: len(payloads)]
        if error is not None:
            assert error.defect in (
                Defect.TRUNCATED_HEADER,
                Defect.TRUNCATED_PAYLOAD,
                Defect.NOT_A_TFRECORD,
            )
        if compression == "none":
            assert (error is None) == (size in bounds)
            assert len(payloads) == sum(bound <= size for bound in bounds) - 1
        elif size >= 20:
            engine = zlib.decompressobj(wbits=31 if compression == "gzip" else 15)
            came = len(engine.decompress(cut))
            assert (error is None) == (came in bounds)
            assert len(payloads) == sum(bound <= came for bound in bounds) - 1
            lenient, defects = read_past_defects(io.BytesIO(cut))
            assert lenient == payloads
            assert len(defects) == 1
            if error is None:
                assert defects[0].defect is Defect.TRUNCATED_COMPRESSION
                assert f"{len(payloads)} complete records" in str(defects[0])


@pytest.mark.slow
@pytest.mark.parametrize("compression", PACKERS)
def test_every_flipped_bit(compression: str, reference: Any) -> None:
    """Never a wrong payload, and never a lost one without a reported defect."""
    intact = PACKERS[compression](reference.frames(PAYLOADS))
    for bit in range(8 * len(intact)):
        data = bytearray(intact)
        data[bit // 8] ^= 1 << bit % 8
        payloads, error = read_until_defect(io.BytesIO(data))
        assert payloads == PAYLOADS[: len(payloads)]
        rest, defects = read_past_defects(io.BytesIO(data))
        if compression == "none":
            assert error is not None
        assert payloads == PAYLOADS or error is not None or defects
        assert rest[: len(payloads)] == payloads
        assert all(payload in PAYLOADS for payload in rest)


def test_records_after_a_damaged_payload_are_read(reference: Any) -> None:
    """One by one, for each bit of each payload and its checksum."""
    intact = reference.frames(PAYLOADS)
    for number, payload in enumerate(PAYLOADS):
        offset = len(reference.frames(PAYLOADS[:number]))
        begin = offset + HEADER_BYTES
        for bit in range(8 * begin, 8 * (begin + len(payload) + 4)):
            data = bytearray(intact)
            data[bit // 8] ^= 1 << bit % 8
            payloads, defects = read_past_defects(io.BytesIO(data))
            assert payloads == PAYLOADS[:number] + PAYLOADS[number + 1 :]
            (error,) = defects
            assert error.defect is Defect.PAYLOAD_CRC
            assert (error.record, error.offset) == (number, offset)


def test_damage_far_after_the_first_block() -> None:
    """Position and offset count from the start of the stream, not of the block."""
    payloads = [random.Random(number).randbytes(40_000) for number in range(100)]
    data = bytearray(encode_records(payloads))
    damaged = [30, 31, 77]
    for number in damaged:
        data[number * (40_000 + FRAME_BYTES) + 5000] ^= 1
    found, defects = read_past_defects(io.BytesIO(data))
    assert found == [p for number, p in enumerate(payloads) if number not in damaged]
    assert [error.record for error in defects] == damaged
    assert [error.offset for error in defects] == [n * (40_000 + FRAME_BYTES) for n in damaged]
    data[90 * (40_000 + FRAME_BYTES)] ^= 1
    found, defects = read_past_defects(io.BytesIO(data))
    assert found == [p for n, p in enumerate(payloads[:90]) if n not in damaged]
    assert [error.record for error in defects] == [*damaged, 90]
    assert defects[-1].defect is Defect.LENGTH_CRC


def test_unchecked_payloads_are_returned_unchanged(reference: Any) -> None:
    data = bytearray(reference.frames([b"aaa", b"bbb"]))
    data[HEADER_BYTES] = ord("X")
    assert list(read_records(io.BytesIO(data), check_payloads=False)) == [b"Xaa", b"bbb"]


@pytest.mark.parametrize("damage", [b"\0" * 12, b"\xff" * 50, b"garbage", b"\0" * 5])
def test_bytes_after_the_last_record(damage: bytes, reference: Any) -> None:
    frames = reference.frames(PAYLOADS)
    payloads, error = read_until_defect(io.BytesIO(frames + damage))
    assert payloads == PAYLOADS
    assert error.defect is (
        Defect.TRUNCATED_HEADER if len(damage) < HEADER_BYTES else Defect.LENGTH_CRC
    )
    assert (error.record, error.offset) == (len(PAYLOADS), len(frames))


@pytest.mark.parametrize("length", [10**6, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1])
@pytest.mark.parametrize("compression", PACKERS)
@pytest.mark.parametrize("is_checksum_right", [True, False])
def test_a_wrong_length_takes_no_memory(
    length: int, compression: str, is_checksum_right: bool, reference: Any
) -> None:
    good = reference.frame(b"good")
    header = bytearray(reference.header(length))
    header[11] ^= not is_checksum_right
    data = PACKERS[compression](good + bytes(header) + bytes(1000))
    with memory_peak_below(5 * MIB):
        payloads, error = read_until_defect(io.BytesIO(data))
    assert payloads == [b"good"]
    if not is_checksum_right:
        assert error.defect is Defect.LENGTH_CRC
    else:
        assert error.defect is Defect.TRUNCATED_PAYLOAD
    assert (error.record, error.offset) == (1, len(good))


def test_memory_grows_with_received_bytes_not_with_the_length(reference: Any) -> None:
    data = reference.header(2**40) + bytes(5 * MIB)
    with memory_peak_below(4 * len(data)):
        payloads, error = read_until_defect(io.BytesIO(data))
    assert (payloads, error.defect) == ([], Defect.TRUNCATED_PAYLOAD)


# ---- compressed streams ------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_bomb_stops_at_the_limit(compression: str) -> None:
    data = PACKERS[compression](encode_records([bytes(1000)] * 32_000))
    assert len(data) < MIB // 4
    with memory_peak_below(8 * MIB):
        payloads = 0
        with pytest.raises(CorruptDataError) as caught:
            for payload in read_records(io.BytesIO(data), max_decompressed_bytes=4_000_000):
                payloads += len(payload) == 1000
    assert caught.value.defect is Defect.DECOMPRESSION_LIMIT
    assert "4000000" in caught.value.expected
    assert 2000 < payloads <= 4_000_000 // 1016


def test_a_bomb_in_one_record(reference: Any) -> None:
    length = 500 * MIB
    data = gzip.compress(reference.header(length) + bytes(32 * MIB), 1)
    with memory_peak_below(24 * MIB):
        payloads, error = read_until_defect(io.BytesIO(data), max_decompressed_bytes=4 * MIB)
    assert (payloads, error.defect) == ([], Defect.DECOMPRESSION_LIMIT)


@pytest.mark.parametrize("length", [2**30 - FRAME_BYTES + 1, 2**40, 2**64 - 1])
def test_a_compressed_record_too_long_for_memory(length: int, reference: Any) -> None:
    """Reported as soon as the length is read, not when the memory is full."""
    good = reference.frame(b"good")
    data = zlib.compress(good + reference.header(length) + bytes(8 * MIB))
    with memory_peak_below(5 * MIB):
        payloads, error = read_until_defect(io.BytesIO(data))
    assert (payloads, error.defect) == ([b"good"], Defect.DECOMPRESSION_LIMIT)
    assert (error.record, error.offset) == (1, len(good))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_the_limit_itself_is_allowed(compression: str) -> None:
    frames = encode_records([b"x" * 1000] * 50)
    data = PACKERS[compression](frames)
    intact = read_until_defect(io.BytesIO(data), max_decompressed_bytes=len(frames))
    assert intact == ([b"x" * 1000] * 50, None)
    _, error = read_until_defect(io.BytesIO(data), max_decompressed_bytes=len(frames) - 1)
    assert error.defect is Defect.DECOMPRESSION_LIMIT


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_flushed_stream_without_end_mark(compression: str, reference: Any) -> None:
    """Flushed data of a running writer: read completely, and reported on request."""
    engine = zlib.compressobj(wbits=31 if compression == "gzip" else 15)
    data = engine.compress(reference.frames(PAYLOADS)) + engine.flush(zlib.Z_SYNC_FLUSH)
    assert read_until_defect(io.BytesIO(data)) == (PAYLOADS, None)
    payloads, (error,) = read_past_defects(io.BytesIO(data))
    assert payloads == PAYLOADS
    assert error.defect is Defect.TRUNCATED_COMPRESSION
    assert error.offset == len(reference.frames(PAYLOADS))


@pytest.mark.parametrize("kind", ["whole", "bytes", "readinto"])
@pytest.mark.parametrize("padding", [b"", b"\0", b"\0" * 511])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_zero_padding_after_and_between_members(
    compression: str, padding: bytes, kind: str, reference: Any
) -> None:
    member = PACKERS[compression]
    data = member(reference.frame(b"a")) + padding + member(reference.frame(b"b")) + padding
    assert read_past_defects(stream_of(data, kind)) == ([b"a", b"b"], [])


@pytest.mark.parametrize("kind", ["whole", "bytes"])
def test_garbage_after_a_gzip(kind: str, reference: Any) -> None:
    data = gzip.compress(reference.frames(PAYLOADS)) + b"garbage"
    payloads, error = read_until_defect(stream_of(data, kind))
    assert payloads == PAYLOADS
    assert error.defect is Defect.BROKEN_COMPRESSION
    assert error.record == len(PAYLOADS)


@pytest.mark.parametrize("block_count", [1, 2])
def test_garbage_at_the_end_of_a_block(block_count: int) -> None:
    """The defect is reported even if no byte of a record is left in the buffer."""
    payload = bytes(block_count * BLOCK_BYTES - FRAME_BYTES)
    data = gzip.compress(encode_records([payload])) + b"garbage"
    payloads, error = read_until_defect(io.BytesIO(data))
    assert payloads == [payload]
    assert error.defect is Defect.BROKEN_COMPRESSION
    assert error.record == 1


@pytest.mark.parametrize("kind", ["whole", "bytes"])
def test_bytes_after_a_zlib_stream_are_ignored(kind: str, reference: Any) -> None:
    data = zlib.compress(reference.frames(PAYLOADS)) + b"garbage"
    assert read_until_defect(stream_of(data, kind)) == (PAYLOADS, None)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_records_are_read_before_a_wrong_checksum_at_the_end(
    compression: str, reference: Any
) -> None:
    """All records, each with its own checksum, are read before that of the stream."""
    data = bytearray(PACKERS[compression](reference.frames(PAYLOADS)))
    data[-8 if compression == "gzip" else -1] ^= 1
    payloads, error = read_until_defect(io.BytesIO(data))
    assert error.defect is Defect.BROKEN_COMPRESSION
    assert payloads == PAYLOADS
    assert error.record == len(PAYLOADS)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_records_before_damage_are_read(compression: str) -> None:
    """Returns every record that a byte-by-byte decompressor can read."""
    dice = random.Random(5)
    payloads = [dice.randbytes(450).hex().encode() for _ in range(300)]
    data = bytearray(PACKERS[compression](encode_records(payloads)))
    data[len(data) // 2 : len(data) // 2 + 64] = b"\xff" * 64
    engine = zlib.decompressobj(wbits=31 if compression == "gzip" else 15)
    came = b""
    try:
        for byte in data:
            came += engine.decompress(bytes([byte]))
    except zlib.error:
        pass
    expected, _ = read_until_defect(io.BytesIO(came), compression="none")
    assert 100 < len(expected) < 200  # otherwise the test shows nothing
    found, error = read_until_defect(io.BytesIO(data))
    assert error is not None
    assert found == expected


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_file_cut_in_its_first_record_is_still_a_tfrecord(compression: str) -> None:
    """The checksum of its length is valid, unlike in any other format."""
    data = PACKERS[compression](encode_records([random.Random(6).randbytes(5000)]))
    _, error = read_until_defect(io.BytesIO(data[:3000]))
    assert error.defect is Defect.TRUNCATED_PAYLOAD
    assert (error.record, error.offset) == (0, 0)


# ---- what is no TFRecord -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs"),
        (gzip.compress(b"this holds no records at all, only text", mtime=0), "gzip"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
    ],
)
def test_another_format_is_reported(data: bytes, word: str) -> None:
    payloads, error = read_until_defect(io.BytesIO(data))
    assert payloads == []
    assert error.defect is Defect.NOT_A_TFRECORD
    assert word in str(error)
    assert error.offset == 0


def test_unknown_bytes_are_not_another_format() -> None:
    _, error = read_until_defect(io.BytesIO(bytes(range(200, 255)) * 3))
    assert (error.defect, error.record, error.offset) == (Defect.LENGTH_CRC, 0, 0)


@given(data=st.binary(max_size=300))
def test_any_bytes_give_records_or_a_defect(data: bytes) -> None:
    for packer in PACKERS.values():
        read_until_defect(io.BytesIO(packer(data)))
        read_past_defects(io.BytesIO(packer(data)))
        read_until_defect(io.BytesIO(packer(data)), check_payloads=False)
    for compression in PACKERS:
        read_until_defect(io.BytesIO(data), compression=compression)


# ---- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, "", "none", "gzip", "GZIP", "zlib", "ZLIB"])
def test_written_bytes_follow_the_format(compression: str | None, reference: Any) -> None:
    written = []
    for _ in range(2):
        stream = io.BytesIO()
        writer = RecordWriter(stream, compression=compression)
        writer.write(PAYLOADS[0])
        writer.write_frames(reference.frames(PAYLOADS[1:3]))
        writer.write(memoryview(PAYLOADS[3]))
        writer.finish()
        assert not stream.closed
        written.append(stream.getvalue())
    assert written[0] == written[1]
    name = (compression or "none").lower()
    unpacked = {"none": bytes, "gzip": gzip.decompress, "zlib": zlib.decompress}[name](written[0])
    assert unpacked == reference.frames(PAYLOADS)

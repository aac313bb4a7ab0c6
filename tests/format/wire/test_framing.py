"""Frames in memory: golden bytes, scans, and errors of damaged frames."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.format.wire import (
    HEADER_BYTES,
    Frames,
    encode_record,
    encode_record_into,
    encode_records,
    encode_slices,
    scan,
)
from recordsmith.format.wire.framing import describe_defect
from recordsmith.support.errors import CorruptDataError, Defect

# length, its checksum, payload, its checksum; the same bytes as TensorFlow writes
GOLDEN = {
    b"": "0000000000000000 29039807 d8ea82a2",
    b"one": "0300000000000000 b099490e 6f6e65 01405508",
    b"\x00": "0100000000000000 0175de41 00 d28f2549",
}
PAYLOADS = [b"first", b"", b"x" * 300, b"\xff\x00last"]

payload_lists = st.lists(st.binary(max_size=60), max_size=12)


def payload_views(buffer: bytes, frames: Frames) -> list[bytes]:
    return [
        bytes(buffer[start : start + length])
        for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("payload", "golden"), GOLDEN.items())
def test_golden_frame(payload: bytes, golden: str) -> None:
    assert encode_record(payload).hex() == golden.replace(" ", "")


@given(payloads=payload_lists)
def test_encoders_agree_with_the_format(reference: Any, payloads: list[bytes]) -> None:
    expected = reference.frames(payloads)
    assert encode_records(payloads) == expected
    assert encode_records(iter(payloads)) == expected
    assert b"".join(map(encode_record, payloads)) == expected
    offsets = np.cumsum([0, *map(len, payloads)])
    assert encode_slices(b"".join(payloads), offsets).tobytes() == expected


@pytest.mark.parametrize(
    ("offsets", "why"),
    [([0, 9], "past the end"), ([-1, 3], "before the start"), ([0, 3, 2, 4], "falling")],
)
def test_encode_slices_refuses_offsets_outside(offsets: list[int], why: str) -> None:
    with pytest.raises(ValueError, match="offsets"):
        encode_slices(b"12345678", np.array(offsets))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_any_buffer_is_accepted(kind: Any, reference: Any) -> None:
    frames = reference.frames(PAYLOADS)
    buffer = kind(frames, np.uint8) if kind is np.frombuffer else kind(frames)
    payload = kind(b"abc", np.uint8) if kind is np.frombuffer else kind(b"abc")
    assert encode_record(payload) == reference.frame(b"abc")
    assert payload_views(frames, scan(buffer)) == PAYLOADS


@given(payloads=payload_lists)
def test_scan_finds_what_was_framed(reference: Any, payloads: list[bytes]) -> None:
    buffer = reference.frames(payloads)
    frames = scan(buffer)
    assert payload_views(buffer, frames) == payloads
    assert (frames.stop, frames.defect) == (len(buffer), None)
    assert frames.starts.dtype == frames.lengths.dtype == np.int64


def test_scan_from_a_record_in_the_middle(reference: Any) -> None:
    buffer = reference.frames(PAYLOADS)
    start = len(reference.frames(PAYLOADS[:2]))
    assert payload_views(buffer, scan(buffer, start)) == PAYLOADS[2:]
    assert scan(buffer, len(buffer)).stop == len(buffer)


@pytest.mark.parametrize("count", [1023, 1024, 1025, 5000])
def test_scan_of_more_records_than_the_first_arrays_hold(count: int) -> None:
    payloads = [str(number).encode() for number in range(count)]
    buffer = encode_records(payloads)
    assert payload_views(buffer, scan(buffer)) == payloads
    for expected in (1, 64, count - 1, count, 2 * count):
        assert payload_views(buffer, scan(buffer, expected=expected)) == payloads


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 1024, 4999, 5000, 5001])
def test_scan_stops_at_the_limit(limit: int) -> None:
    payloads = [str(number).encode() for number in range(5000)]
    buffer = encode_records(payloads)
    frames = scan(buffer, limit=limit)
    assert payload_views(buffer, frames) == payloads[:limit]
    assert frames.stop == len(encode_records(payloads[:limit]))
    assert frames.defect is None


def test_truncated_at_every_byte(reference: Any) -> None:
    """The records before the cut are found, and the defect shows which part is cut."""
    buffer = reference.frames(PAYLOADS)
    bounds = [len(reference.frames(PAYLOADS[:count])) for count in range(len(PAYLOADS) + 1)]
    for size in range(len(buffer) + 1):
        frames = scan(buffer[:size])
        whole = sum(bound <= size for bound in bounds) - 1
        assert payload_views(buffer, frames) == PAYLOADS[:whole]
        assert frames.stop == bounds[whole]
        left = size - bounds[whole]
        if left == 0:
            assert frames.defect is None
        elif left < HEADER_BYTES:
            assert frames.defect is Defect.TRUNCATED_HEADER
        else:
            assert frames.defect is Defect.TRUNCATED_PAYLOAD


@pytest.mark.parametrize("check_payloads", [True, False])
def test_every_bit_is_protected(check_payloads: bool, reference: Any) -> None:
    """A flipped bit is detected; without checks, only those in payloads and footers pass."""
    intact = reference.frames(PAYLOADS)
    bounds = [len(reference.frames(PAYLOADS[:count])) for count in range(len(PAYLOADS) + 1)]
    for bit in range(8 * len(intact)):
        buffer = bytearray(intact)
        buffer[bit // 8] ^= 1 << bit % 8
        frames = scan(buffer, check_payloads=check_payloads)
        record = sum(bound <= bit // 8 for bound in bounds) - 1
        in_header = bit // 8 - bounds[record] < HEADER_BYTES
        if in_header or check_payloads:
            assert frames.defect is (Defect.LENGTH_CRC if in_header else Defect.PAYLOAD_CRC)
            assert frames.stop == bounds[record]
            assert payload_views(intact, frames) == PAYLOADS[:record]
        else:
            assert frames.defect is None
            assert len(frames.starts) == len(PAYLOADS)


@pytest.mark.parametrize(
    "length",
    [
        18,
        2**31 - 1,
        2**32,
        2**63 - 29,
        2**63 - 28,
        2**63 - 1,
        2**63,
        2**64 - 28,
        2**64 - 16,
        2**64 - 12,
        2**64 - 1,
    ],
)
@pytest.mark.parametrize("is_checksum_right", [True, False])
def test_a_wrong_length_takes_no_memory(
    length: int, is_checksum_right: bool, reference: Any
) -> None:
    """Also with lengths that overflow in additions."""
    good = reference.frame(b"good")
    header = bytearray(reference.header(length))
    header[8] ^= not is_checksum_right
    buffer = good + bytes(header) + b"rest of the file\0"
    tracemalloc.start()
    frames = scan(buffer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert frames.defect is (Defect.TRUNCATED_PAYLOAD if is_checksum_right else Defect.LENGTH_CRC)
    assert (frames.starts.tolist(), frames.stop) == ([HEADER_BYTES], len(good))
    assert peak < 1 << 20


@given(data=st.binary(max_size=200), start=st.integers(0, 200))
def test_any_bytes_give_frames_inside_the_buffer(data: bytes, start: int) -> None:
    if start > len(data):
        return
    frames = scan(data, start, check_payloads=False)
    assert start <= frames.stop <= len(data)
    assert (frames.defect is None) == (frames.stop == len(data))
    assert all(
        start + HEADER_BYTES <= at <= at + length <= frames.stop
        for at, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)
    )


def damaged(buffer: bytes, at: int) -> bytes:
    return buffer[:at] + bytes([buffer[at] ^ 0x10]) + buffer[at + 1 :]


@pytest.mark.parametrize(
    ("buffer", "defect", "found", "expected", "word"),
    [
        (
            encode_record(b"abc")[:7],
            Defect.TRUNCATED_HEADER,
            "7 bytes",
            "12",
            "header",
        ),
        (
            encode_record(b"abc")[:17],
            Defect.TRUNCATED_PAYLOAD,
            "17 bytes",
            "19",
            "record",
        ),
        (damaged(encode_record(b"abc"), 0), Defect.LENGTH_CRC, "b099490e", None, "length 19"),
        (bytes(40), Defect.LENGTH_CRC, "00000000", None, "zeros"),
        (damaged(encode_record(b"one"), 12), Defect.PAYLOAD_CRC, "01405508", None, "3 bytes"),
    ],
)
def test_errors_have_the_place_and_what_was_found(
    buffer: bytes, defect: Defect, found: str, expected: str | None, word: str
) -> None:
    error = describe_defect(scan(buffer), buffer, record=4, offset=99)
    assert isinstance(error, CorruptDataError)
    assert (error.defect, error.record, error.offset) == (defect, 4, 99)
    assert error.found == found
    if expected is not None:
        assert error.expected == expected
    else:
        assert len(error.expected) == 8
        assert error.expected != found
    assert word in error.detail


def test_framing_into_a_buffer_is_the_same_and_stays_inside() -> None:
    payloads = [b"", b"a", bytes(range(256)) * 3]
    frames = bytearray(b"\xee" * 900)
    at = 5
    for payload in payloads:
        stop = encode_record_into(payload, frames, at)
        assert stop is not None
        assert bytes(frames[at:stop]) == encode_record(payload)
        at = stop
    assert bytes(frames[:5]) == b"\xee" * 5
    left = len(frames) - at
    before = bytes(frames)
    assert encode_record_into(bytes(left - 15), frames, at) is None
    assert bytes(frames) == before
    assert encode_record_into(bytes(left - 16), frames, at) == len(frames)
    for outside in (-1, len(frames) + 1):
        with pytest.raises(IndexError):
            encode_record_into(b"", frames, outside)

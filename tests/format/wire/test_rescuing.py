"""Intact records are rescued byte for byte, damaged ones never."""

from __future__ import annotations

import io
import random
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recordsmith.format.wire import (
    IntactFrames,
    LostBytes,
    Repair,
    encode_record,
    encode_records,
    recover,
)
from recordsmith.format.wire.kernel import find_header
from recordsmith.format.wire.recovery import BLOCK_BYTES, LONGEST_HELD_BYTES
from recordsmith.support.errors import Defect

HEADER, FRAME = 12, 16


class Rescued(NamedTuple):
    data: bytes
    payloads: list[bytes]
    lost: list[LostBytes]
    repairs: list[Repair]


def rescued(data: bytes, stream: Any = None) -> Rescued:
    """Return all findings, after checking what must hold for any bytes."""
    whole, lengths, lost, repairs = bytearray(), [], [], []
    copied = []
    at = 0
    for finding in recover(stream or io.BytesIO(data)):
        if isinstance(finding, IntactFrames):
            assert finding.offset == at  # everything is reported, in order
            copied.append((finding.offset, bytes(finding.frames)))
            whole += finding.frames
            lengths += finding.lengths.tolist()
            at += len(finding.frames)
        elif isinstance(finding, Repair):
            repairs.append(finding)
        else:
            assert finding.start == at < finding.stop
            lost.append(finding)
            at = finding.stop
    assert at == len(data)
    mended = bytearray(data)
    for repair in repairs:
        mended[repair.offset] ^= 1 << repair.bit
    for offset, piece in copied:  # verbatim, except for reported repairs
        assert mended[offset : offset + len(piece)] == piece
    payloads, place = [], 0
    for length in lengths:
        payloads.append(bytes(whole[place + HEADER : place + HEADER + length]))
        place += length + FRAME
    assert place == len(whole)
    assert encode_records(payloads) == whole  # every checksum is valid
    return Rescued(bytes(whole), payloads, lost, repairs)


def payload_views(count: int, seed: int = 0) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.choice((0, 1, 30, 300))) for _ in range(count)]


def borders(payloads: list[bytes]) -> list[int]:
    return np.cumsum([0, *(len(payload) + FRAME for payload in payloads)]).tolist()


def test_intact_files_are_unchanged() -> None:
    payloads = [*payload_views(200), bytes(BLOCK_BYTES + 5), b"", *payload_views(50, 1)]
    data = encode_records(payloads)
    assert rescued(data) == (data, payloads, [], [])
    assert rescued(b"") == (b"", [], [], [])


@pytest.mark.parametrize("bit", range(8 * (HEADER + 5 + 4)))
def test_each_flipped_bit_of_a_frame(bit: int) -> None:
    """In the header and footer the bit is corrected; in the payload the record is lost."""
    payloads = [b"before", b"12345", b"behind"]
    start, stop = borders(payloads)[1:3]
    whole = encode_records(payloads)
    data = bytearray(whole)
    data[start + bit // 8] ^= 1 << bit % 8
    result = rescued(bytes(data))
    if HEADER <= bit // 8 < HEADER + 5:
        assert result.payloads == [b"before", b"behind"]
        assert result.lost == [LostBytes(start, stop, Defect.PAYLOAD_CRC)]
        assert not result.repairs
    else:
        field = "length" if bit < 64 else "length-crc" if bit < 96 else "payload-crc"
        assert result == (whole, payloads, [], [Repair(start + bit // 8, bit % 8, field)])


@pytest.mark.parametrize("at", [0, 3, 9])
def test_two_flipped_bits_are_not_repaired(at: int) -> None:
    payloads = [b"first", b"second"]
    data = bytearray(encode_records(payloads))
    data[at] ^= 0b11
    result = rescued(bytes(data))
    assert result.payloads == [b"second"]
    assert result.lost == [LostBytes(0, len(b"first") + FRAME, Defect.LENGTH_CRC)]


def test_a_repaired_length_needs_a_valid_payload() -> None:
    payloads = [b"first", b"second", b"third"]
    data = bytearray(encode_records(payloads))
    data[0] ^= 1
    data[HEADER] ^= 1
    result = rescued(bytes(data))
    assert result.payloads == [b"second", b"third"]
    assert not result.repairs


def test_a_flipped_header_after_a_damaged_payload() -> None:
    """Its repair shows where the damaged record ends."""
    inner = encode_records([b"inside", b"of it"])
    payloads = [b"first" + inner, b"second", b"third"]
    data = bytearray(encode_records(payloads))
    start = borders(payloads)[1]
    data[HEADER] ^= 1
    data[start] ^= 64
    result = rescued(bytes(data))
    assert result.payloads == [b"second", b"third"]
    assert result.repairs == [Repair(start, 6, "length")]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_frames_inside_a_damaged_record_are_its_content(place: int) -> None:
    payloads = [b"first", b"last"]
    inner = [b"inside", b"", b"of it"]
    payloads.insert(place, b"other" + encode_records(inner) + b"bytes")
    data = bytearray(encode_records(payloads))
    data[borders(payloads)[place] + HEADER] ^= 1
    result = rescued(bytes(data))
    assert result.payloads == [b"first", b"last"]


def test_records_that_seem_to_be_inside_another_but_lead_to_its_end() -> None:
    """With missing bytes, a frame can begin exactly where the damaged one claims to end."""
    payloads = [bytes(range(200)), b"", b"", b"", b"", b"", b"last"]
    data = encode_records(payloads)
    at = borders(payloads)[1] - 50  # in the first payload, three empty frames' worth is missing
    damaged = data[: at - 3 * FRAME] + data[at:]
    result = rescued(damaged)
    assert result.payloads == payloads[1:]
    # and with one frame that ends after it
    payloads = [bytes(range(200)), b"", encode_record(b"") * 3, b"last"]
    data = encode_records(payloads)
    at = borders(payloads)[1] - 50
    damaged = data[: at - 3 * FRAME - HEADER] + data[at:]
    assert rescued(damaged).payloads == payloads[1:]


def test_a_piece_of_a_frame_before_those_that_lead_to_its_end(reference: Any) -> None:
    """The rest of the damaged payload may end in bytes that look like a header."""
    payloads = [bytes(60) + reference.header(8) + bytes(200), b"", b"", b"", b"", b"last"]
    data = encode_records(payloads)
    at = HEADER + 60 + HEADER
    end = borders(payloads)[1]
    # instead of the missing bytes, frames that end where the damaged one claims to end
    others = [b""] * 11 + [bytes(end - at - 12 * FRAME)]
    damaged = data[:at] + encode_records(others) + data[end:]
    assert len(damaged) == len(data)
    assert rescued(damaged).payloads == others + payloads[1:]


@pytest.mark.parametrize("behind", [[b""], [b"b"], [b"", b"b"], [b"12345678"], [bytes(300), b"b"]])
@pytest.mark.parametrize("before", [[], [b"a"], [b"12345678"]])
def test_two_headers_are_not_a_record(
    reference: Any, before: list[bytes], behind: list[bytes]
) -> None:
    """A header looks like eight bytes with their checksum."""
    start = encode_records(before)
    data = start + reference.header(8) + encode_records(behind)
    result = rescued(data)
    assert result.payloads == before + behind
    assert result.lost == [LostBytes(len(start), len(start) + HEADER, Defect.TRUNCATED_PAYLOAD)]


def test_a_missing_byte_that_looks_like_a_flipped_bit() -> None:
    """The first byte of the next record must not count as the last byte of a checksum."""
    payload = next(
        payload
        for payload in (number.to_bytes(6, "little") for number in range(1000))
        if encode_record(payload)[-1] == 3
    )
    payloads = [payload, b"1", b"last"]  # 1 and 3 differ in one bit
    data = encode_records(payloads)
    border = borders(payloads)[1]
    assert rescued(data[: border - 1] + data[border:]).payloads == payloads[1:]


@pytest.mark.parametrize("cut", range(1, FRAME + 5))
def test_a_tail_that_is_cut_off(cut: int) -> None:
    payloads = [b"first", b"last!"]
    data = encode_records(payloads)[:-cut]
    result = rescued(data)
    defect = Defect.TRUNCATED_HEADER if cut > 4 + 5 else Defect.TRUNCATED_PAYLOAD
    assert result.payloads == [b"first"]
    assert result.lost == [LostBytes(FRAME + 5, len(data), defect)]


def test_a_record_is_never_assembled_from_two() -> None:
    payloads = [bytes([number]) * 100 for number in range(10)]
    data = encode_records(payloads)
    for start in range(0, 300, 7):
        damaged = data[:start] + data[start + 100 + FRAME :]  # a record's length is missing
        result = rescued(damaged)
        assert set(result.payloads) <= set(payloads)
        assert len(result.payloads) >= 8


def test_a_wrong_length() -> None:
    def lying(length: int, reference: Any = encode_record) -> bytes:
        size = length.to_bytes(8, "little")
        return size + encode_record(size)[-4:]

    behind = encode_records([b"a", b"b"])
    for length in (1 << 60, (1 << 64) - 1, len(behind), len(behind) + 1, 1, 3 << 30):
        result = rescued(lying(length) + behind)
        assert result.payloads == [b"a", b"b"], length
    # so many that reading the claimed range of each would take forever
    count = 3_000
    many = b"".join(lying(HEADER * (count - number) + 50) for number in range(count))
    result = rescued(many + bytes(100) + behind)
    assert result.payloads == [b"a", b"b"]


def test_wrong_lengths_cost_a_bounded_number_of_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(io.BytesIO):
        count = 0

        def readinto(self, buffer: Any) -> int:
            count = super().readinto(buffer)
            Counted.count += count
            return count

    monkeypatch.setattr("recordsmith.format.wire.recovery.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("recordsmith.format.wire.recovery.LONGEST_HELD_BYTES", 1 << 13)
    monkeypatch.setattr("recordsmith.format.wire.recovery._MIN_WASTED_BYTES", 0)
    size = 40_000
    data = b""
    while len(data) < size:
        length = (size - len(data)).to_bytes(8, "little")
        data += length + encode_record(length)[-4:]
    data += bytes(100)
    rescued(data, Counted(data))
    assert Counted.count < 40 * len(data)
    # the same with a flipped bit in each, after an intact frame
    data = b""
    while len(data) < size:
        length = (size - len(data)).to_bytes(8, "little")
        data += encode_record(b"") + bytes([length[0] ^ 1]) + length[1:]
        data += encode_record(length)[-4:]
    data += bytes(100)
    Counted.count = 0
    rescued(data, Counted(data))
    assert Counted.count < 40 * len(data)


def test_a_long_record_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordsmith.format.wire.recovery.LONGEST_HELD_BYTES", BLOCK_BYTES)
    long = bytes(8 * BLOCK_BYTES) + b"x"
    data = bytearray(encode_records([b"a", long, b"b"]))
    stream = io.BytesIO(data)
    tracemalloc.start()
    found = [
        finding.lengths.tolist() if isinstance(finding, IntactFrames) else finding
        for finding in recover(stream)
    ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [length for lengths in found for length in lengths] == [1, len(long), 1]
    assert peak < 3 * BLOCK_BYTES
    result = rescued(bytes(data))
    assert result.payloads == [b"a", long, b"b"]
    for at, kept in ((len(b"a") + FRAME, 3), (-FRAME - 2, 3), (1000, 2)):
        data = bytearray(encode_records([b"a", long, b"b"]))
        data[at] ^= 8
        assert len(rescued(bytes(data)).payloads) == kept
    assert LONGEST_HELD_BYTES > BLOCK_BYTES


def test_a_file_that_shrinks_while_it_is_read() -> None:
    """Never half a record: either earlier data or an error."""
    payloads = payload_views(100)
    data = encode_records(payloads)

    class Shrinking(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            self.truncate(len(data) // 2)
            return super().readinto(buffer)

    findings = list(recover(Shrinking(data)))
    (whole, lost) = findings
    assert isinstance(whole, IntactFrames)
    assert encode_records(payloads[: len(whole.lengths)]) == whole.frames
    assert isinstance(lost, LostBytes)


FRAMES = st.lists(st.binary(max_size=40), max_size=8).map(encode_records)
PIECES = st.one_of(
    st.binary(max_size=40),
    FRAMES,
    FRAMES.map(encode_record),
    st.integers(0, (1 << 64) - 1).map(lambda n: n.to_bytes(8, "little")).map(
        lambda size: size + encode_record(size)[-4:]
    ),
    st.integers(0, 200).map(lambda n: n.to_bytes(8, "little")).map(
        lambda size: size + encode_record(size)[-4:]
    ),
    st.integers(0, 60).map(bytes),
)  # fmt: skip


@given(st.lists(PIECES, max_size=8).map(b"".join), st.data())
@settings(max_examples=100)
def test_any_bytes(data: bytes, choice: st.DataObject) -> None:
    if data:
        mutable = bytearray(data)
        for _ in range(choice.draw(st.integers(0, 3))):
            mutable[choice.draw(st.integers(0, len(data) - 1))] ^= choice.draw(
                st.sampled_from((1, 2, 64, 128, 255))
            )
        data = bytes(mutable)
    rescued(data)


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=12),
    st.integers(0, 300),
    st.integers(0, 300),
    st.binary(max_size=60),
)
@settings(max_examples=100)
@example([b"", b"", b""], 20, 4, b"")
def test_everything_outside_the_damage_is_rescued(
    payloads: list[bytes], start: int, size: int, put: bytes
) -> None:
    """All frames without damaged bytes are rescued in order."""
    data = encode_records(payloads)
    start, stop = min(start, len(data)), min(start + size, len(data))
    result = rescued(data[:start] + put + data[stop:])
    ends = borders(payloads)
    before = [payload for payload, end in zip(payloads, ends[1:], strict=True) if end <= start]
    behind = [payload for payload, at in zip(payloads, ends, strict=False) if at >= stop]
    if start == stop:  # an empty range
        behind = behind[: len(payloads) - len(before)]
    assert result.payloads[: len(before)] == before
    assert result.payloads[len(result.payloads) - len(behind) :] == behind


def places_by_hand(data: bytes, start: int, stop: int, end: int, reference: Any) -> int:
    for at in range(start, stop):
        header = data[at : at + HEADER]
        length = int.from_bytes(header[:8], "little")
        if (
            len(header) == HEADER
            and reference.masked_crc32c(header[:8]) == header[8:]
            and at + FRAME + length <= end
        ):
            return at
    return stop


@given(st.lists(PIECES, max_size=5).map(b"".join), st.data())
@settings(max_examples=200)
def test_the_search_finds_what_a_plain_one_finds(
    reference: Any, data: bytes, choice: st.DataObject
) -> None:
    start = choice.draw(st.integers(0, len(data)))
    stop = choice.draw(st.integers(start, len(data)))
    end = choice.draw(
        st.one_of(st.integers(-5, 3 * len(data)), st.sampled_from((1 << 32, 1 << 56, 1 << 62)))
    )
    assert find_header(data, start, stop, end) == places_by_hand(data, start, stop, end, reference)


def test_positions_outside_the_buffer_are_refused() -> None:
    for start, stop in ((-1, 3), (2, 1), (0, 4)):
        with pytest.raises(IndexError):
            find_header(b"abc", start, stop, 100)
    assert find_header(b"", 0, 0, 100) == 0

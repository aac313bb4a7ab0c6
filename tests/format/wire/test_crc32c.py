"""CRC-32C against the vectors of RFC 3720 and a plain implementation, at every length and start."""

from __future__ import annotations

import ctypes
import functools
import mmap
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.format.wire import crc32c, kernel

# RFC 3720, appendix B.4; the last is the check value that every catalogue of CRCs lists
ISCSI_READ_PDU = bytes.fromhex(
    "01c00000"
    + "00" * 12
    + "14000000"
    + "00000400"
    + "00000014"
    + "00000018"
    + "28000000"
    + "00" * 4
    + "02000000"
    + "00" * 4
)
VECTORS = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (ISCSI_READ_PDU, 0xD9963A56),
    (b"123456789", 0xE3069283),
    (b"", 0),
]
Checksum = Callable[..., int]

# each implementation on this processor: a table, its instruction, its widest registers
IMPLEMENTATIONS: list[Checksum] = [
    functools.partial(kernel.crc32c_by, way) for way in range(kernel.WAY_COUNT)
]


@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_published_vectors(checksum: Checksum, data: bytes, expected: int) -> None:
    assert checksum(data) == expected


@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
def test_every_length_across_the_block_sizes(checksum: Checksum, reference: Any) -> None:
    """Blocks have 192, 256 and 3072 bytes: check all lengths around them."""
    data = random.Random(7).randbytes(7000)
    lengths = [*range(1100), *range(3000, 3350), *range(6100, 6200), 6999, 7000]
    expected, done, value = {}, 0, 0
    for length in lengths:
        value = reference.crc32c(data[done:length], value)
        expected[length], done = value, length
    assert {length: checksum(data[:length]) for length in lengths} == expected


@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
@pytest.mark.parametrize("size", [230, 700])
def test_every_alignment(checksum: Checksum, size: int, reference: Any) -> None:
    data = random.Random(8).randbytes(800)
    for start in range(67):
        view = memoryview(data)[start : start + size]
        assert checksum(view) == reference.crc32c(bytes(view))


@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
@given(seed=st.integers(0, 99), size=st.integers(0, 2000), cut=st.integers(0, 2000))
def test_continues_a_checksum(checksum: Checksum, seed: int, size: int, cut: int) -> None:
    data = random.Random(seed).randbytes(size)
    whole = crc32c(data)
    assert checksum(data[cut:], checksum(data[:cut])) == whole
    assert checksum(data) == whole


def test_masked_as_frames_store_it(reference: Any) -> None:
    for data in (b"", bytes(8), b"payload", b"\xff" * 100):
        stored = kernel.masked_crc32c(data).to_bytes(4, "little")
        assert stored == reference.masked_crc32c(data)


@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
@pytest.mark.parametrize("size", [*range(40), 63, 64, 65, 255, 256, 257])
def test_any_short_length_at_any_place(checksum: Checksum, size: int, reference: Any) -> None:
    """The last bytes are processed in one step, which must ignore the bytes around them."""
    memory = random.Random(9).randbytes(400)
    for start in range(9):
        piece = memory[start : start + size]
        for value in (0, 0xFFFFFFFF, 0x12345678):
            assert checksum(memoryview(memory)[start : start + size], value) == (
                reference.crc32c(piece, value)
            )


@pytest.mark.posix
@pytest.mark.parametrize("checksum", IMPLEMENTATIONS)
def test_reads_nothing_outside_the_bytes(checksum: Checksum, reference: Any) -> None:
    """Check at both edges of a page between unreadable pages."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    memory[page : 2 * page] = random.Random(10).randbytes(page)
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for neighbour in (address, address + 2 * page):
        assert libc.mprotect(ctypes.c_void_p(neighbour), page, 0) == 0
    inner = memoryview(memory)[page : 2 * page]
    for size in (*range(1, 80), 200, 255, 256, 257, 600, page):
        assert checksum(inner[:size]) == reference.crc32c(bytes(inner[:size]))
        assert checksum(inner[-size:]) == reference.crc32c(bytes(inner[-size:]))

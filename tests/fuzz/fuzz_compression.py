"""Compressed streams: Inflater, and the detection of compressions.

The invariant: any bytes give bytes, or a CorruptDataError (broken-compression, decompression-
limit). What comes out does not depend on how much is asked for at a time, nor on the pieces in
which the stream comes; it is what zlib gives for the members before the damage, and never more than
allowed. A stream that was only cut gives a beginning of what the whole one gave.
"""

from __future__ import annotations

import io
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from harness import corpus_files, mutated

from recordsmith.format.wire.compression import COMPRESSIONS, Inflater, detect_compression
from recordsmith.support.errors import CorruptDataError, Defect

Name = Literal["gzip", "zlib"]
WINDOW_BITS: dict[Name, int] = {"gzip": 31, "zlib": 15}
MOST = 1 << 20


class Pieces(io.RawIOBase):
    """A stream that gives fewer bytes than it is asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self._rest = io.BytesIO(data)
        self._size = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._rest.read(min(size, self._size) if size >= 0 else self._size)


class Fuzz:
    watches_memory = False  # zlib is Python's
    reached = ("whole", "broken", "without end mark", "past the limit")

    def __init__(self, _: Path) -> None:
        self.last = b""
        files = corpus_files()
        self.seeds: dict[Name, list[bytes]] = {}
        for name, bits in WINDOW_BITS.items():
            self.seeds[name] = [data for data in files if detect_compression(data[:512]) == name]
            for data in (b"", b"a", bytes(5000), bytes(range(256)) * 30):
                for level in (0, 1, 9):
                    engine = zlib.compressobj(level, wbits=bits)
                    half = engine.compress(data) + engine.flush(zlib.Z_FULL_FLUSH)
                    self.seeds[name].append(half + engine.flush())

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        name: Name = dice.choice(("gzip", "zlib"))
        seeds = self.seeds[name]
        original = b"".join(dice.choice(seeds) for _ in range(dice.choice((1, 1, 1, 2, 3))))
        is_cut = dice.random() < 0.2
        if is_cut:
            data = original[: dice.randrange(len(original) + 1)]
        else:
            data = mutated(original, seeds, dice)
        self.last = data
        assert detect_compression(data[:512]) in COMPRESSIONS
        most = dice.choice((MOST, MOST, MOST, 100))
        found, error, is_complete = inflate(io.BytesIO(data), name, most, 1 << 16)
        again, same, _ = inflate(
            Pieces(data, dice.choice((1, 3, 100))), name, most, dice.choice((1, 2, 13, 1000))
        )
        assert len(found) <= most + (1 << 16)
        if error is None or error.defect is not Defect.DECOMPRESSION_LIMIT:
            assert found == again
            assert (error is None) == (same is None)
        if error is None:
            counts["whole" if is_complete else "without end mark"] += 1
        elif error.defect is Defect.DECOMPRESSION_LIMIT:
            counts["past the limit"] += 1
        else:
            assert error.defect is Defect.BROKEN_COMPRESSION
            counts["broken"] += 1
        first = zlib.decompressobj(WINDOW_BITS[name])
        try:
            expected = first.decompress(data, most)
        except zlib.error:
            return
        if first.eof or error is None:
            assert found[: len(expected)] == expected[: len(found)]
        if is_cut and error is None:
            whole, _, _ = inflate(io.BytesIO(original), name, 1 << 30, 1 << 16)
            assert whole.startswith(found)


def inflate(
    stream: Any, name: Name, most: int, size: int
) -> tuple[bytes, CorruptDataError | None, bool]:
    """All that comes, what ended it, and whether there was an end mark."""
    inflater = Inflater(stream, name, max_bytes=most)
    found = bytearray()
    piece = bytearray(size)
    try:
        while count := inflater.readinto(piece):
            assert 0 < count <= size
            found += piece[:count]
    except CorruptDataError as error:
        return bytes(found), error, False
    return bytes(found), None, inflater.is_complete

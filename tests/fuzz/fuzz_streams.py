"""Records read from streams, plain ones.

The invariant: any bytes give records or a CorruptDataError. Payloads are slices of the input, in
order, with a right checksum before and behind them; frames and the place of the first defect leave
no gap; and the size of the pieces in which a stream comes changes nothing. Where reading goes on
behind damaged payloads, every record is there that is there otherwise, and more.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path
from typing import Any

from harness import corpus_files, mutated

from recordsmith.format.wire import encode_record, read_blocks
from recordsmith.format.wire.kernel import masked_crc32c
from recordsmith.support.errors import CorruptDataError, Defect


class Pieces(io.RawIOBase):
    """A stream that gives as much as it likes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._rest = io.BytesIO(data)
        self._sizes = sizes
        self._turn = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        self._turn += 1
        return self._rest.readinto(memoryview(target)[: self._sizes[self._turn % len(self._sizes)]])


class Fuzz:
    watches_memory = False  # the kernel's own harness does, with less around it
    reached = ("records", "defects", "whole files", "records behind damage")

    def __init__(self, _: Path) -> None:
        self.last = b""
        self.seeds = corpus_files()

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        data = mutated(dice.choice(self.seeds), self.seeds, dice)
        if dice.random() < 0.3:
            data += encode_record(dice.randbytes(dice.randrange(30)))
        self.last = data
        found, error = read(io.BytesIO(data))
        sizes = [dice.choice((1, 2, 7, 12, 100, 5000)) for _ in range(3)]
        again, same = read(Pieces(data, sizes))
        assert found == again
        assert str(error) == str(same)
        at = 0
        for offset, payload in found:
            assert offset == at + 12
            frame = data[at : offset + len(payload) + 4]
            assert frame[12:-4] == payload
            assert int.from_bytes(frame[:8], "little") == len(payload)
            assert int.from_bytes(frame[8:12], "little") == masked_crc32c(frame[:8])
            assert int.from_bytes(frame[-4:], "little") == masked_crc32c(payload)
            at += len(frame)
        if error is None:
            assert at == len(data)
            counts["whole files"] += 1
        else:
            assert error.offset == at
            assert error.record in (len(found), None)
            counts["defects"] += 1
        counts["records"] += len(found)
        defects: list[CorruptDataError] = []
        blocks = read_blocks(io.BytesIO(data), compression="none", on_defect=defects.append)
        all_found = [bytes(payload) for block in blocks for payload in block.payloads()]
        assert all_found[: len(found)] == [payload for _, payload in found]
        assert (not defects) == (error is None)
        places = [defect.offset or 0 for defect in defects]
        assert places == sorted(set(places))
        assert all(defect.defect is Defect.PAYLOAD_CRC for defect in defects[:-1])
        counts["records behind damage"] += len(all_found) - len(found)


def read(stream: Any) -> tuple[list[tuple[int, bytes]], CorruptDataError | None]:
    """Where each payload begins in the stream, and what it is; and what ended them."""
    found = []
    try:
        for block in read_blocks(stream, compression="none"):
            for start, payload in zip(block.starts.tolist(), block.payloads(), strict=True):
                found.append((block.offset + start, bytes(payload)))
    except CorruptDataError as error:
        return found, error
    return found, None

"""Files of a cache: heads, tables and blocks.

The invariant: whatever the file contains, the bytes of a range that are not reported as missing are
those of the object, and the object never looks shorter than it is. Nothing is written outside the
place of a piece.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

from harness import mutated

from recordsmith.stores.local import cache_kernel as kernel
from recordsmith.stores.local.cache_file import CacheFile

KEY = (7, 8)
CONTENT = random.Random(0).randbytes(2 * kernel.PART_BYTES + 5 * kernel.BLOCK_BYTES + 1000)
NOW = 10_000


class Fuzz:
    watches_memory = True
    reached = ("found", "partly missing", "all missing")

    def __init__(self, folder: Path) -> None:
        self.last = b""
        cache = CacheFile(str(folder / "cache"), 5 << 20)  # one group
        self.file = os.open(folder / "cache" / "blocks", os.O_RDWR)
        for part in range(3):
            start = part * kernel.PART_BYTES
            data = CONTENT[start : start + kernel.PART_BYTES]
            assert kernel.claim(self.file, 0, 2 * part, *KEY, part, NOW) == 0
            assert kernel.write_blocks(self.file, 0, 2 * part, *KEY, part, 0, data) == 0
        cache.close()
        self.head = os.pread(self.file, kernel.HEAD_BYTES + kernel.TABLE_BYTES, 0)

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        choice = dice.random()
        table = kernel.HEAD_BYTES
        if choice < 0.5:  # one byte of an entry in use, or few
            data = bytearray(self.head)
            for _ in range(dice.choice((0, 1, 1, 3))):
                at = table + 304 * dice.randrange(3) + dice.randrange(152)
                data[at] = dice.choice((0, 1, 255, data[at] ^ 1 << dice.randrange(8)))
            self.last = bytes(data)
        elif choice < 0.8:  # entries, and parts of them, in other places
            data = bytearray(self.head)
            for _ in range(3):
                size = dice.choice((8, 152))
                start, target = (
                    table + size * dice.randrange(40 if size == 8 else 16) for _ in "ab"
                )
                data[target : target + size] = data[start : start + size]
            self.last = bytes(data)
        else:
            self.last = mutated(self.head, [self.head], dice)[: len(self.head)]
        os.pwrite(self.file, self.last, 0)
        start = dice.randrange(len(CONTENT))
        stop = min(len(CONTENT), start + dice.choice((1, 100, 20_000, 110_000, 600_000)))
        data_found, first, last = kernel.read(self.file, *KEY, start, stop, NOW, 99)
        self.check(data_found, start, stop, first, last, counts)
        os.pwrite(self.file, self.head, 0)

    @staticmethod
    def check(
        data: bytes, start: int, stop: int, first: int, last: int, counts: Counter[str]
    ) -> None:
        expected = CONTENT[start:stop]
        if first < 0:
            assert data == expected
            counts["found"] += 1
            return
        assert start <= first < last <= stop
        assert data[: first - start] == expected[: first - start]
        assert data[last - start :] == expected[last - start :]
        counts["all missing" if (first, last) == (start, stop) else "partly missing"] += 1

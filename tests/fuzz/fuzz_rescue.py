"""What a rescue finds in damaged files.

The invariant: any bytes end. What is handed out lies in the file in order, and covers it together
with what is lost: nothing twice, nothing unsaid. Whole frames are slices of the file but for the
bits that were told to be turned back; each has both checksums right. A file that is good gives all
its records and loses nothing.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path

from harness import corpus_files, mutated

from recordsmith.format.wire import encode_record, recover, scan
from recordsmith.format.wire.recovery import IntactFrames, LostBytes, Repair


class Fuzz:
    watches_memory = True
    reached = ("records", "lost ranges", "repairs", "good files")

    def __init__(self, _: Path) -> None:
        self.last = b""
        self.seeds = corpus_files()

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        data = b"".join(
            encode_record(dice.randbytes(dice.choice((0, 1, 8, 30, 300))))
            for _ in range(dice.randrange(1, 6))
        )
        mode = dice.random()
        if mode < 0.4:
            data = mutated(data, self.seeds, dice)
        elif mode < 0.6:
            data = mutated(dice.choice(self.seeds), self.seeds, dice)
        elif mode < 0.8:
            flipped = bytearray(data)
            flipped[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            data = bytes(flipped)
        self.last = data
        expected = bytearray(data)
        rescued = bytearray()
        places, lost, lengths = [], [], []
        for finding in recover(io.BytesIO(data)):
            if isinstance(finding, IntactFrames):
                places.append((finding.offset, finding.offset + len(finding.frames)))
                rescued += finding.frames
                lengths += finding.lengths.tolist()
            elif isinstance(finding, LostBytes):
                assert finding.start < finding.stop
                lost.append((finding.start, finding.stop))
            else:
                assert isinstance(finding, Repair)
                assert (
                    data[finding.offset] >> finding.bit & 1
                    == expected[finding.offset] >> (finding.bit) & 1
                )
                expected[finding.offset] ^= 1 << finding.bit
                counts["repairs"] += 1
        assert rescued == b"".join(expected[start:stop] for start, stop in places)
        covered = sorted(places + lost)
        assert [start for start, _ in covered] == [0, *(stop for _, stop in covered)][:-1]
        assert (covered[-1][1] if covered else 0) == len(data)
        frames = scan(rescued)
        assert frames.defect is None
        assert frames.lengths.tolist() == lengths
        if scan(data).defect is None:
            assert rescued == data
            counts["good files"] += 1
        counts["records"] += len(lengths)
        counts["lost ranges"] += len(lost)

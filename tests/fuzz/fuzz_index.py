"""Index files next to a shard.

The invariant: any index file gives no index, or one whose offsets ascend by whole frames from 0 and
end where the shard does (of a compressed one: not past what it could hold). Whatever the index
says, a record that is read by its position is a whole frame of the shard with both checksums right,
or there is an error of ours; and reading in order does not ask the index.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import numpy as np
from harness import HUGE, mutated

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.dataset.shard_index import index_locations, index_pieces, load_index
from recordsmith.format.wire import crc32c, encode_records

PAYLOADS = [bytes([65 + number]) * (number * 7 % 40) for number in range(12)]


class Fuzz:
    watches_memory = False
    reached = ("indexes", "refused", "right records", "errors")

    def __init__(self, folder: Path) -> None:
        self.last = b""
        self.shards = []
        for name in ("plain", "gzip"):
            path = folder / f"{name}.tfrecord"
            with rs.ShardWriter(path, compression="none" if name == "plain" else name) as writer:
                for payload in PAYLOADS:
                    writer.write(payload)
            index = rs.open(path).shards[0].index
            Path(index_locations(path)[0]).parent.mkdir(exist_ok=True)
            self.shards.append((path, b"".join(index_pieces(path, index, is_own=True))))
        assert self.shards[0][0].read_bytes() == encode_records(PAYLOADS)

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        path, good = dice.choice(self.shards)
        data = self.changed(good, dice) if dice.random() < 0.7 else mutated(good, [good], dice)
        self.last = data
        Path(index_locations(path)[0]).write_bytes(data)
        saved = load_index(path)
        if saved is None:
            counts["refused"] += 1
            return
        index, _ = saved
        counts["indexes"] += 1
        size = path.stat().st_size
        assert index.offsets[0] == 0
        assert (np.diff(index.offsets) >= 16).all()
        assert (index.offsets >= 0).all()
        assert index.offsets[-1] == size if index.compression == "none" else True
        assert index.offsets[-1] <= 1032 * size
        dataset = rs.open(path)
        for position in {0, dice.randrange(20), -1}:
            try:
                payload = records_of(dataset).read_record(position)
            except (rs.RecordsmithError, IndexError):
                counts["errors"] += 1
                continue
            assert payload in PAYLOADS
            if data == good:
                assert payload == PAYLOADS[position]
            counts["right records"] += 1
        try:
            records = dataset.read_records(range(min(3, len(dataset)))).tolist()
            assert all(record in PAYLOADS for record in records)
        except (rs.RecordsmithError, IndexError):
            counts["errors"] += 1
        assert list(rs.open(path).records()) == PAYLOADS or len(dataset) != len(PAYLOADS)

    @staticmethod
    def changed(good: bytes, dice: random.Random) -> bytes:
        """Fields and offsets that lie, with checksums that are right."""
        data = bytearray(good[:36] + good[44:])
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            choice = dice.randrange(6)
            at = 36 + 8 * dice.randrange((len(data) - 36) // 8)
            if choice == 0:
                struct.pack_into("<I", data, 24, dice.choice((0, 1, 2, 3, 2**32 - 1)))
            elif choice == 1:
                wild = (0, 16, 20, -1, 2**40, 2**63 - 1, -(2**63), -(2**63) + 20, len(good))
                struct.pack_into("<q", data, at, dice.choice(wild))
            elif choice == 2:
                (value,) = struct.unpack_from("<q", data, at)
                moved = value + dice.choice((-16, -1, 1, 16, 100))
                struct.pack_into("<Q", data, at, moved % 2**64)
            elif choice == 3:  # one more, or one fewer
                (count,) = struct.unpack_from("<Q", data, 28)
                count = max(0, count + dice.choice((-1, 1)))
                struct.pack_into("<Q", data, 28, count)
                if dice.random() < 0.7:
                    data = data[: 36 + 8 * (count + 1)] or data
                    data += data[-8:] * ((36 + 8 * (count + 1) - len(data)) // 8)
            elif choice == 4:
                data[at : at + 8] = dice.choice(HUGE)[:8].ljust(8, b"\0")
            else:
                del data[at : at + 8]
            if len(data) < 52:
                break
        head = bytes(data[:36]) + struct.pack("<I", crc32c(bytes(data[36:])))
        return head + struct.pack("<I", crc32c(head)) + bytes(data[36:])

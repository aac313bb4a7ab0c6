"""Damage a dataset in every way, salvage it, and count: `python benchmarks/salvage_damage.py`.

For each way of damage, so many times: a shard of 1,000 records is damaged at random, salvaged, and
read back. Every record whose frame is byte for byte what it was must be there again, and nothing
that was not in the shard. The records are of 0 bytes to 200 KiB, some of them equal.

Prints a table; exits with 1 if one record too few or too many came back.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import recordsmith as rs

_FRAME_BYTES = 16
_ZEROED_BYTES = 4096
_MAX_BYTES = 1 << 16


class Shard:
    """The undamaged bytes, and where each frame lies."""

    def __init__(self, records: int, seed: int) -> None:
        rng = random.Random(seed)
        self.payloads = _payloads(records, rng)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "shard")
            with rs.ShardWriter(path) as writer:
                for payload in self.payloads:
                    writer.write(payload)
            self.data = path.read_bytes()
        self.borders = [0]
        for payload in self.payloads:
            self.borders.append(self.borders[-1] + len(payload) + _FRAME_BYTES)
        assert self.borders[-1] == len(self.data)


def _payloads(count: int, rng: random.Random) -> list[bytes]:
    """Of all lengths, also none; Examples, noise, zeros; runs of equal ones; a few large ones."""
    payloads: list[bytes] = []
    while len(payloads) < count:
        kind = rng.randrange(5)
        if kind == 0:
            payloads += [b""] * rng.randint(1, 4)
        elif kind == 1:
            payloads += [rng.randbytes(rng.randint(1, 200))] * rng.randint(2, 5)
        elif kind == 2:
            payloads.append(rs.encode_example({"label": len(payloads), "name": f"no {kind}"}))
        elif kind == 3:
            payloads.append(bytes(rng.randint(1, 300)))
        else:
            payloads.append(rng.randbytes(rng.randint(1, 2000)))
    del payloads[count:]
    for place in rng.sample(range(count), max(1, count // 250)):
        payloads[place] = rng.randbytes(200 << 10)
    return payloads


@dataclass(frozen=True)
class Damage:
    """What happens to bytes [start, stop), which become `put`."""

    start: int
    stop: int
    put: bytes


Way = Callable[[random.Random, bytes, int, int], Damage]
"""From a place, and the next one that is damaged, to the damage."""


def _flip(rng: random.Random, data: bytes, start: int, _: int) -> Damage:
    return Damage(start, start + 1, bytes([data[start] ^ 1 << rng.randrange(8)]))


def _zero(_rng: random.Random, _data: bytes, start: int, room: int) -> Damage:
    count = min(_ZEROED_BYTES, room)
    return Damage(start, start + count, bytes(count))


def _remove(rng: random.Random, _data: bytes, start: int, room: int) -> Damage:
    return Damage(start, start + rng.randint(1, min(_MAX_BYTES, room)), b"")


def _insert(rng: random.Random, data: bytes, start: int, _: int) -> Damage:
    count = rng.randint(1, _MAX_BYTES)
    other = rng.randrange(len(data))
    # noise, zeros, or a piece of the same file without a whole frame in it
    put = (rng.randbytes(count), bytes(count), data[other : other + 15])[rng.randrange(3)]
    return Damage(start, start, put)


def _truncate(_rng: random.Random, data: bytes, start: int, _: int) -> Damage:
    return Damage(start, len(data), b"")


WAYS: dict[str, Way] = {
    "flipped bit": _flip,
    "zeroed 4 KiB": _zero,
    "removed range": _remove,
    "inserted range": _insert,
    "truncated tail": _truncate,
}


@dataclass
class Tally:
    """What was counted over all damages of one way."""

    files: int = 0
    intact: int = 0
    rescued: int = 0
    repaired: int = 0
    missed: int = 0
    foreign: int = 0


def _place(shard: Shard, rng: random.Random) -> int:
    """Any byte; or any byte of any frame, as most bytes are those of the large ones."""
    if rng.random() < 0.5:
        return rng.randrange(len(shard.data))
    frame = rng.randrange(len(shard.payloads))
    return rng.randrange(shard.borders[frame], shard.borders[frame + 1])


def damaged(
    shard: Shard, way: str, at_once: int, rng: random.Random
) -> tuple[bytes, Counter[bytes]]:
    """The damaged bytes, and the payloads of the frames that are whole in them."""
    count = 1 if way == "truncated tail" else at_once
    places = sorted({_place(shard, rng) for _ in range(count)})
    ends = [*places[1:], len(shard.data)]
    damages = [
        WAYS[way](rng, shard.data, place, end - place)
        for place, end in zip(places, ends, strict=True)
    ]
    data = bytearray(shard.data)
    for change in reversed(damages):
        data[change.start : change.stop] = change.put
    intact: Counter[bytes] = Counter()
    left = iter(damages)
    damage: Damage | None = next(left, None)
    for payload, (start, stop) in zip(shard.payloads, pairwise(shard.borders), strict=True):
        is_intact = True
        while damage is not None and damage.start < stop:
            touched = shard.data[max(start, damage.start) : min(stop, damage.stop)]
            is_same = damage.put and len(damage.put) == damage.stop - damage.start
            put = damage.put[max(0, start - damage.start) :][: len(touched)] if is_same else b""
            # inserted at the border of a frame, it leaves the frame whole
            splits = damage.start == damage.stop and start < damage.start
            is_intact = is_intact and touched == put and not splits
            if damage.stop > stop:
                break
            damage = next(left, None)
        intact[payload] += is_intact
    return bytes(data), +intact


def salvaged(data: bytes, folder: Path) -> tuple[Counter[bytes], int]:
    """The records recovered from these bytes, and the number of repairs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "train-00000-of-00001.tfrecord"
    path.write_bytes(data)
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    try:
        report = rs.salvage(path, out)
    except rs.CorruptDataError:  # nothing is left
        return Counter(), 0
    with (out / path.name).open("rb") as file:
        records = Counter(rs.read_records(file))
    assert records.total() == report.record_count
    return records, report.repair_count


def tally(shard: Shard, way: str, files: int, at_once: int, seed: int, folder: Path) -> Tally:
    """Damage and salvage so many files."""
    rng = random.Random(f"{seed} {way} {at_once}")
    everything = Counter(shard.payloads)
    result = Tally()
    for _ in range(files):
        data, intact = damaged(shard, way, at_once, rng)
        records, repaired = salvaged(data, folder)
        result.files += 1
        result.intact += intact.total()
        result.rescued += records.total()
        result.repaired += repaired
        result.missed += (intact - records).total()
        result.foreign += (records - everything).total()
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1000, help="in the shard")
    parser.add_argument("--damages", type=int, default=500, help="of each way")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    shard = Shard(options.records, options.seed)
    print(f"{options.records:,} records, {len(shard.data):,} bytes\n")
    print("| damage | files | whole records in them | came back | repaired | missed | foreign |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for at_once in (1, 20):
            for way in WAYS:
                if at_once > 1 and way == "truncated tail":
                    continue
                files = -(-options.damages // at_once)
                result = tally(shard, way, files, at_once, options.seed, Path(folder))
                name = way if at_once == 1 else f"{way}, {at_once} in each file"
                numbers = vars(result).values()
                print(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)
                wrong += result.missed + result.foreign
    print("\nnothing is missing, nothing is foreign" if not wrong else f"\n{wrong:,} are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

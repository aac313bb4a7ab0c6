"""Small datasets of numbered Examples, damage to them, and a feature that paints."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import ShardWriter, records_of
from recordsmith.loading import BatchRows, ColumnRequest
from recordsmith.loading.features.feature import BatchBuffer, RowFeature
from recordsmith.stores import as_folder
from recordsmith.support.errors import CorruptDataError, Defect

from ..places import AnyPlace


def features(number: int) -> dict[str, Any]:
    """Example `number`."""
    return {
        "id": number,
        "score": number / 4,
        "corner": [number, -number],
        "name": f"näm {number}",
    }


def write(
    place: AnyPlace, counts: Sequence[int], changed: Mapping[int, Any] | None = None
) -> AnyPlace:
    """A folder of shards with so many Examples each; `changed` has payloads, or other features."""
    folder = as_folder(place)
    folder.make_folder()
    number = 0
    for at, count in enumerate(counts):
        name = f"train-{at:05}-of-{len(counts):05}.tfrecord"
        with ShardWriter(folder / name) as writer:
            for _ in range(count):
                instead = (changed or {}).get(number, features(number))
                if isinstance(instead, bytes):
                    writer.write(instead)
                else:
                    writer.write_example(instead)
                number += 1
    return place


def damage(dataset: rs.Dataset, positions: Sequence[int]) -> None:
    """Turn a bit in the payload of some records, in the shards."""
    locations = {str(shard.location): shard.location for shard in dataset.shards}
    for position in positions:
        where = records_of(dataset).locate_record(position)
        location = locations[where.path]
        data = location.read()
        at = where.offset + 12 + 3
        location.put([data[:at], bytes([data[at] ^ 4]), data[at + 1 :]])


@dataclass(frozen=True)
class Painted(RowFeature):
    """An image of one colour, the record's id; `bad` ones cannot be painted."""

    key: str = "id"
    side: int = 6
    bad: tuple[int, ...] = ()

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(("int64", "float"))}

    def begin(self, name: str, rows: BatchRows) -> BatchBuffer:
        ids: Any = rows.columns[self.key]
        pixels = rows.allocate(name, (rows.count, self.side, self.side), np.float32)
        pixels.fill(-1)
        return Painting({name: pixels}, ids, self.bad)


class Painting(BatchBuffer):
    def __init__(self, entries: dict[str, Any], ids: Any, bad: tuple[int, ...]) -> None:
        super().__init__(entries)
        (self.pixels,), self.ids, self.bad = entries.values(), ids, bad

    def fill(self, row: int) -> None:
        if self.ids[row] in self.bad:
            raise CorruptDataError(Defect.UNREADABLE_IMAGE, f"no paint for {self.ids[row]}")
        self.pixels[row] = self.ids[row]


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)


def own_threads() -> list[str]:
    """Threads of engines; those that read over a network are of the process, and stay."""
    return [
        thread.name for thread in threading.enumerate()
        if re.fullmatch(r"recordsmith-\d+", thread.name)
    ]  # fmt: skip


@pytest.fixture
def _nothing_stays() -> Iterator[None]:
    """After the test no thread is left."""
    yield
    wait_until(lambda: not own_threads())


@pytest.fixture(scope="session")
def numbered() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        features=features, write=write, damage=damage, Painted=Painted,
        wait_until=wait_until, own_threads=own_threads,
    )  # fmt: skip

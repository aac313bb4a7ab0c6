"""Samples are read ahead over a network: the same ones, in order, never too many at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import Sample, SamplesAhead, ignore_note
from recordsmith.stores import Location, MemoryStore
from recordsmith.support.errors import SourceError

from ..places import visible
from ..stores.delayed import DelayedStore
from ..stores.rounds import RoundStore

CONCURRENCY = DelayedStore.concurrency


@dataclass(frozen=True)
class Reader:
    """Notes and fails for some samples; counts how many are read and not used."""

    root: Location
    sizes: list[int] = field(default_factory=list)

    def read(self, sample: Sample, note: Any = ignore_note) -> Mapping[str, Any]:
        self.sizes.append(sample.size_bytes)
        number = int(sample.name)
        note("read", sample.name)
        if number % 7 == 3:
            raise SourceError("cannot be read", sample=sample.name)
        return {"number": number}

    def kinds(self) -> Mapping[str, Any]:
        return {}


REMOTE, LOCAL = Location(DelayedStore(0), "x"), Location(MemoryStore(), "x")


def _samples(count: int, size_bytes: int = 10) -> list[Sample]:
    return [Sample(str(number), size_bytes=size_bytes, version=0) for number in range(count)]


@pytest.mark.parametrize("place", [REMOTE, LOCAL])
@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_contents_notes_and_errors(place: Location, count: int) -> None:
    found = []
    with SamplesAhead(Reader(place), 1) as ahead:
        for sample, read in ahead.each(_samples(count)):
            notes: list[Any] = []
            try:
                content: Any = read(lambda what, where, notes=notes: notes.append((what, where)))
            except SourceError as error:
                content = error.sample
            found.append((sample.name, content, notes))
    assert found == [
        (str(n), str(n) if n % 7 == 3 else {"number": n}, [("read", str(n))]) for n in range(count)
    ]


@pytest.mark.parametrize(
    ("place", "size_bytes", "users", "most"),
    [
        (LOCAL, 10, 1, 0),
        (REMOTE, 10, 1, 2 * CONCURRENCY),
        (REMOTE, 16 << 20, 1, 4),
        (REMOTE, 16 << 20, 4, 1),
        (REMOTE, 1 << 30, 1, 1),
    ],
)
def test_how_many_are_read_ahead(place: Location, size_bytes: int, users: int, most: int) -> None:
    reader = Reader(place)
    with SamplesAhead(reader, users) as ahead:
        items = ahead.each(_samples(100, size_bytes))
        for _ in range(20):
            next(items)
        ahead._pool and [ahead._pool.submit(bool).result() for _ in range(200)]
        assert len(reader.sizes) <= (20 + most if most else 0)
        assert len(reader.sizes) >= (20 if most else 0)
        items.close()


def test_threads_end() -> None:
    with SamplesAhead(Reader(REMOTE), 1) as ahead:
        next(ahead.each(_samples(50)))
    assert not [one for one in threading.enumerate() if one.name.startswith("recordsmith-sample")]


JOBS = {
    "pack": lambda source, out: rs.pack(source, out, shards=2, threads=1),
    "pack smaller": lambda source, out: rs.pack(
        source, out, image_options=rs.ImageOptions("png"), threads=1
    ),
    "lint": lambda source, out: out.put(str(rs.lint(source, threads=1).to_json()).encode()),
    "forecast": lambda source, out: out.put(str(rs.forecast(source, threads=1).to_json()).encode()),
}


@pytest.mark.parametrize("name", JOBS)
def test_jobs_read_many_samples_at_the_same_time(images: Any, name: str) -> None:
    local, remote = Location(MemoryStore(), "data"), Location(RoundStore(0.005), "data")
    for place in (local, remote):
        for number in range(40):
            data = images.encode(images.noise(9 + number, 8), "PNG")
            (place / f"in/{'ab'[number % 2]}/{number:02}.png").put(data)
        JOBS[name](rs.ImageFolder(place / "in"), place / "out")
    assert visible(remote / "out").keys() == visible(local / "out").keys()
    if name.startswith("pack"):
        expected = visible(local / "out")
        assert {n: d for n, d in visible(remote / "out").items() if n.endswith("d")} == {
            n: d for n, d in expected.items() if n.endswith("d")
        }
    else:
        assert (remote / "out").read() == (local / "out").read()
    assert CONCURRENCY >= remote.store.most_at_once > CONCURRENCY // 4  # type: ignore[attr-defined]

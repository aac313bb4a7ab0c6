"""`CachedStore` keeps the contract of stores, and makes no request for what it has."""

from __future__ import annotations

import errno
import os
import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.stores import CachedStore, Location, MemoryStore, ObjectInfo, Range, Store
from recordsmith.stores.local.block_files import PAGE_BYTES, BlockFiles
from recordsmith.support.errors import FileAccessError, OptionError

from ...raising import raises
from ..contract import StoreContract
from ..delayed import DelayedStore
from ..rounds import RoundStore

LIMIT = 40 << 20


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


class CachedContract(StoreContract):
    def test_an_object_that_is_replaced_while_it_is_open(self, store: Store) -> None:
        """What is cached of the old version is still read, and nothing of the new one."""
        old = noise(3 * PAGE_BYTES)
        store.put("x", old)
        version = store.info("x").version
        assert store.read("x", 0, 5, version) == old[:5]
        assert isinstance(store, CachedStore)
        assert store.flush()
        with store.open_read("x") as file:
            assert file.read_at(0, 5) == old[:5]
            store.put("x", bytes(2000))
            assert file.read_at(0, 5) == old[:5]
            with raises(FileAccessError, errno=errno.ESTALE):
                file.read_at(0, len(old))
        assert store.read("x", 0, 5) == bytes(5)
        with store.open_read("x") as file:
            assert file.read() == bytes(2000)


class TestAroundDelayedStore(CachedContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return CachedStore(DelayedStore(0.0001), str(tmp_path), LIMIT)


@pytest.fixture
def inner() -> RoundStore:
    return RoundStore()


@pytest.fixture
def cached(inner: RoundStore, tmp_path: Path) -> CachedStore:
    return CachedStore(inner, str(tmp_path / "cache"), LIMIT)


def test_what_was_read_needs_no_request(inner: RoundStore, cached: CachedStore) -> None:
    data = noise(5_000_000)
    inner.put("x", data)
    version = cached.info("x").version
    dice = random.Random(1)
    starts = [dice.randrange(len(data)) for _ in range(40)]
    ranges = [Range("x", start, start + dice.randrange(300_000), version) for start in starts]
    expected = [data[start:stop] for _, start, stop, _ in ranges]
    assert [cached.read(*wanted) for wanted in ranges[:20]] == expected[:20]
    assert dict(cached.read_many(ranges[20:])) == dict(enumerate(expected[20:]))
    assert cached.flush()
    assert inner.requests() > 0
    infos = inner.infos
    assert [cached.read(*wanted) for wanted in ranges] == expected
    assert dict(cached.read_many(ranges)) == dict(enumerate(expected))
    again = CachedStore(inner, cached.folder)
    assert [again.read(*wanted) for wanted in ranges] == expected
    assert (inner.requests(), inner.infos) == (0, infos)


def test_misses_of_many_ranges_are_one_round(inner: RoundStore, cached: CachedStore) -> None:
    data = noise(9_000_000)
    inner.put("x", data)
    version = cached.info("x").version
    ranges = [Range("x", at, at + 1000, version) for at in range(0, 9_000_000, 300_000)]
    list(cached.read_many(ranges[::2]))
    assert cached.flush()
    assert len(inner.rounds) == 1
    inner.requests()
    found = dict(cached.read_many(ranges))
    assert found == {index: data[one.start : one.stop] for index, one in enumerate(ranges)}
    assert len(inner.rounds) == 2
    assert {wanted.start // 300_000 % 2 for wanted in inner.sent} <= {0, 1}
    assert inner.requests() == len(ranges) // 2


def test_only_what_is_missing_is_read(inner: RoundStore, cached: CachedStore) -> None:
    data = noise(8 * PAGE_BYTES)
    inner.put("x", data)
    version = cached.info("x").version
    cached.read("x", 0, 4 * PAGE_BYTES, version)
    assert cached.flush()
    inner.requests()
    assert cached.read("x", 100, 6 * PAGE_BYTES, version) == data[100 : 6 * PAGE_BYTES]
    assert inner.sent == [Range("x", 4 * PAGE_BYTES, 6 * PAGE_BYTES, version)]


def test_a_replaced_object_is_noticed(inner: RoundStore, cached: CachedStore) -> None:
    inner.put("x", b"a" * 100_000)
    assert cached.read("x") == b"a" * 100_000
    assert cached.flush()
    inner.put("x", b"b" * 100_000)
    assert cached.read("x") == b"b" * 100_000
    assert cached.read("x", 5, 10) == b"bbbbb"
    assert [*cached.read_many([Range("x", 5, 10)])] == [(0, b"bbbbb")]


def test_a_store_without_versions_is_not_cached(tmp_path: Path) -> None:
    class VersionlessStore(DelayedStore):
        def info(self, key: str) -> ObjectInfo:
            return super().info(key)._replace(version="")

        def read(
            self,
            key: str,
            start: int = 0,
            stop: int | None = None,
            version: str | None = None,  # noqa: ARG002
        ) -> bytes:
            return super().read(key, start, stop)

    inner = VersionlessStore()
    cached = CachedStore(inner, str(tmp_path), LIMIT)
    for data in (b"1" * 70_000, b"2" * 70_000):
        inner.put("x", data)
        assert cached.read("x") == data
        with cached.open_read("x") as file:
            assert file.read() == data
        assert cached.flush()


def test_a_short_read_is_not_the_end(inner: RoundStore, cached: CachedStore) -> None:
    """A server that sends too little does not shorten an object for good."""
    data = noise(PAGE_BYTES // 2)
    inner.put("x", data)
    version = inner.info("x").version
    whole, inner.objects["x"] = inner.objects["x"], (data[:100], version)
    assert cached.read("x", 0, len(data), version) == data[:100]
    assert cached.flush()
    inner.objects["x"] = whole
    assert cached.read("x", 0, len(data), version) == data


def test_reading_past_the_cache_replaces_it(inner: RoundStore, cached: CachedStore) -> None:
    data = noise(3 * PAGE_BYTES)
    inner.put("x", data)
    version = inner.info("x").version
    good, inner.objects["x"] = inner.objects["x"], (bytes(len(data)), version)  # a proxy lies
    with cached.open_read("x") as file:
        assert file.read_at(0, len(data)) == bytes(len(data))
        assert cached.flush()
        inner.objects["x"] = good
        assert file.read_at(0, 10) == bytes(10)
        assert (
            file.read_uncached(PAGE_BYTES + 1, PAGE_BYTES + 10)
            == data[PAGE_BYTES + 1 : PAGE_BYTES + 10]
        )
        assert cached.flush()
        assert file.read_at(PAGE_BYTES, 2 * PAGE_BYTES) == data[PAGE_BYTES : 2 * PAGE_BYTES]


def test_writing_goes_to_the_store(inner: RoundStore, cached: CachedStore) -> None:
    place = Location(cached, "a") / "b"
    place.put(b"1")
    assert inner.objects["a/b"][0] == b"1"
    assert str(place) == inner.name_of("a/b")
    assert place == Location(CachedStore(inner, cached.folder), "a/b")
    assert place != Location(inner, "a/b")
    assert place.relative_to(Location(CachedStore(inner, cached.folder), "a")) == "b"


def test_a_pickled_store_uses_the_same_folder(tmp_path: Path) -> None:
    inner = MemoryStore()
    inner.put("x", noise(100_000))
    cached = CachedStore(inner, str(tmp_path), LIMIT)
    assert cached.read("x") == noise(100_000)
    CachedStore(inner, str(tmp_path), 20 << 20)
    again = pickle.loads(pickle.dumps(cached))
    assert again == cached
    assert again.read("x") == noise(100_000)
    assert BlockFiles(str(tmp_path)).max_bytes == 20 << 20  # the last limit stays


def test_the_last_block_of_a_listed_object_is_kept(tmp_path: Path) -> None:
    inner = MemoryStore()
    inner.put("a/x", noise(1000))
    cached = CachedStore(inner, str(tmp_path), LIMIT)
    (entry,) = cached.list_entries("a")
    store = pickle.loads(pickle.dumps(cached))  # as for a process that is spawned
    assert store.read("a/x", 990, 1000, entry.version) == noise(1000)[990:]
    assert store.flush()
    inner.delete("a/x")
    assert store.read("a/x", 0, 1000, entry.version) == noise(1000)


@pytest.mark.posix
def test_a_forked_process_reads_and_writes(inner: RoundStore, cached: CachedStore) -> None:
    data = noise(4 * PAGE_BYTES)
    inner.put("x", data)
    version = cached.info("x").version
    cached.read("x", 0, PAGE_BYTES, version)
    assert cached.flush()
    child = os.fork()
    if child == 0:
        is_right = cached.read("x", version=version) == data
        os._exit(0 if is_right and cached.flush() else 1)
    assert os.waitpid(child, 0)[1] == 0
    inner.requests()
    assert cached.read("x", 0, len(data), version) == data
    assert inner.requests() == 0


@pytest.mark.parametrize("most_bytes", [-1, 0, 1 << 20])
def test_limits_that_are_too_small(tmp_path: Path, most_bytes: int) -> None:
    with raises(OptionError, option="cache_bytes", value=most_bytes):
        CachedStore(MemoryStore(), str(tmp_path / "x"), most_bytes)
    assert not (tmp_path / "x").exists()


@st.composite
def _steps(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Reads, replacements and other limits: kind, object, start, length."""
    one = st.tuples(
        st.sampled_from(["read", "read", "many", "open", "put", "limit"]),
        st.integers(0, 2),
        st.integers(0, 3 * PAGE_BYTES),
        st.integers(0, 2 * PAGE_BYTES),
    )
    return draw(st.lists(one, max_size=12))


def test_any_sequence_reads_what_the_store_has(tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(deadline=None, max_examples=60)
    @given(_steps())
    def check(steps: list[tuple[str, int, int, int]]) -> None:
        inner = RoundStore()
        cached = CachedStore(inner, str(tmp_path_factory.mktemp("cache")), 9 << 20)
        contents = [noise(2 * PAGE_BYTES + 1000 * number, number) for number in range(3)]
        for number, data in enumerate(contents):
            inner.put(str(number), data)
        for step, (kind, number, start, length) in enumerate(steps):
            key, data = str(number), contents[number]
            version = inner.info(key).version
            if kind == "put":
                contents[number] = noise(length, step)
                inner.put(key, contents[number])
            elif kind == "read":
                expected = data[start : start + length]
                assert cached.read(key, start, start + length) == expected
                assert cached.read(key, start, start + length, version) == expected
                assert cached.read(key, start, None, version) == data[start:]
            elif kind == "many":
                ranges = [Range(key, at, at + length, version) for at in (0, start, start // 2)]
                found = dict(cached.read_many(ranges))
                assert found == {
                    index: data[one.start : one.stop] for index, one in enumerate(ranges)
                }
            elif kind == "open":
                with cached.open_read(key) as file:
                    assert file.read_at(start, start + length) == data[start : start + length]
                    assert file.read() == data
            else:
                CachedStore(inner, cached.folder, (9 + length % 10) << 20)
            if step % 2:
                assert cached.flush()

    check()

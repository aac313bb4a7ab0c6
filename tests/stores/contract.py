"""What every store promises: subclass `StoreContract` and return an empty store from `store`.

`ReadingContract` is for stores that are read by name, and written in another way; `ListingContract`
for those that list as well.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.stores import Location, Range, Store, write_folder
from recordsmith.stores.local.store import LocalStore
from recordsmith.support.errors import FileAccessError, MissingFileError, OptionError

from ..places import new_folder
from ..raising import raises

DATA = bytes(range(256)) * 20
EDGES = (0, 1, 2, 255, 256, len(DATA) - 1, len(DATA), len(DATA) + 1, 10 * len(DATA))
ODD_NAMES = ["a b", "é", "e\u0301", "a\nb", "%2F", "-", "...", "..a", "*?[x]", "#", "~", "a:b"]
OUTSIDE = ["", ".", "..", "../x", "a/../../x", "/x", "a//b", "a/", "a/.", "x\0y"]


class ReadingContract:
    """The tests of a store that is read; they write by `put` and `delete`.

    refused: the odd names that it refuses.
    many: how many objects are listed.
    """

    refused: Collection[str] = ()
    many = 1_200  # more than a page of a bucket

    @pytest.fixture
    def store(self) -> Store:
        """Return an empty store."""
        raise NotImplementedError

    def fill(self, store: Store, keys: Collection[str]) -> None:
        """Write many objects, whose content is the start of their key."""
        for key in keys:
            store.put(key, key.encode()[:3])

    # -- reading -----------------------------------------------------------------------------------

    @pytest.mark.parametrize("start", EDGES)
    def test_ranges_are_slices(self, store: Store, start: int) -> None:
        store.put("x", DATA)
        for stop in (None, *EDGES):
            if stop is None or stop >= start:
                assert store.read("x", start, stop) == DATA[start:stop]
            else:
                with pytest.raises(ValueError):
                    store.read("x", start, stop)

    def test_negative_ranges_are_refused(self, store: Store) -> None:
        store.put("x", DATA)
        for start, stop in ((-1, None), (0, -1), (-2, -1)):
            with pytest.raises(ValueError):
                store.read("x", start, stop)

    def test_empty_objects(self, store: Store) -> None:
        store.put("a/empty", b"")
        store.put("none", [])
        for key in ("a/empty", "none"):
            assert store.exists(key)
            assert (store.size(key), store.read(key), store.read(key, 0, 9)) == (0, b"", b"")
        if store.can_list:
            assert sorted(info.key for info in store.list()) == ["a/empty", "none"]

    def test_missing_objects(self, store: Store) -> None:
        store.put("a/b", b"x")
        for key in ("x", "a/x", "y/x", "a/b/x"):
            assert not store.exists(key)
            with raises(FileAccessError, path=store.name_of(key), operation="read"):
                store.read(key)
        with pytest.raises(FileAccessError):
            store.read("a")
        with pytest.raises(MissingFileError):
            store.info("x")
        store.delete("x")

    def test_many_ranges_have_their_index(self, store: Store) -> None:
        keys = [f"part/{number}" for number in range(5)]
        for number, key in enumerate(keys):
            store.put(key, DATA[number:])
        ranges = [
            Range(keys[number % 5], number, None if number % 7 == 0 else 3 * number)
            for number in range(200)
        ]
        found = dict(store.read_many(ranges))
        assert len(found) == 200
        assert all(
            found[index] == DATA[index % 5 :][wanted.start : wanted.stop]
            for index, wanted in enumerate(ranges)
        )
        assert list(store.read_many([])) == []

    def test_a_range_that_fails_ends_many(self, store: Store) -> None:
        store.put("x", DATA)
        with pytest.raises(MissingFileError):
            list(store.read_many([Range("x"), Range("missing"), Range("x")]))
        reading = store.read_many([Range("x")] * 100)
        assert next(reading)[1] == DATA
        reading.close()  # type: ignore[attr-defined]

    def test_an_open_object_is_a_file(self, store: Store) -> None:
        store.put("a/x", DATA)
        with store.open_read("a/x") as file:
            assert (file.size_bytes, file.readable(), file.seekable()) == (len(DATA), True, True)
            assert file.read(100) == DATA[:100]
            assert file.read_at(7, 9) == DATA[7:9]
            assert file.tell() == 100
            target = bytearray(50)
            assert file.readinto(target) == 50
            assert target == DATA[100:150]
            assert file.seek(-20, os.SEEK_END) == len(DATA) - 20
            assert file.seek(5, os.SEEK_CUR) == len(DATA) - 15
            assert file.read() == DATA[-15:]
            assert (file.read(), file.read(5), file.readinto(target)) == (b"", b"", 0)
            with pytest.raises(OSError):
                file.seek(-1)
        assert file.closed
        with pytest.raises(FileAccessError):
            store.open_read("a/missing")

    def test_pieces_go_to_their_places(self, store: Store) -> None:
        store.put("x", DATA)
        begins = np.array([5000, 0, 17, 17, 40, len(DATA) - 1])
        ends = np.array([5003, 0, 18, 30, 41, len(DATA)])
        places = np.array([4, 0, 0, 20, 19, 7])
        out = np.zeros(40, np.uint8)
        expected = bytearray(40)
        for begin, end, place in zip(begins, ends, places, strict=True):
            expected[place : place + end - begin] = DATA[begin:end]
        with store.open_read("x") as file:
            assert file.read_pieces(begins, ends, places, out)
            assert out.tobytes() == expected
            beyond = np.array([len(DATA) + 1])
            assert not file.read_pieces(beyond - 2, beyond, places[:1], out)
            assert file.read_at(len(DATA) - 2, len(DATA) + 9) == DATA[-2:]
            assert file.read_at(len(DATA) + 2, len(DATA) + 9) == b""

    @pytest.mark.parametrize("gap", [0, 4])
    def test_headers_are_followed(self, store: Store, gap: int) -> None:
        sizes = [3, 0, 500, 70_000, 1]
        data = b"".join(
            size.to_bytes(8, "little") + bytes([number]) * 4 + bytes(size + gap)
            for number, size in enumerate(sizes)
        )
        store.put("x", data)
        out = np.zeros((9, 12), np.uint8)
        with store.open_read("x") as file:
            assert file.read_headers(0, len(data), gap, out) == 5
            assert out[:5, :8].copy().view("<u8").ravel().tolist() == sizes
            assert out[:5, 8].tolist() == [0, 1, 2, 3, 4]
            assert file.read_headers(15 + gap, len(data), gap, out[:2]) == 2
            assert out[:2, 8].tolist() == [1, 2]
            assert file.read_headers(0, len(data) - 1 - gap - 1, gap, out) == 4
        store.put("long", b"\xff" * 8 + bytes(50))
        with store.open_read("long") as file:
            assert file.read_headers(0, 58, gap, out) == 1

    def test_an_object_that_is_replaced_while_it_is_open(self, store: Store) -> None:
        """A reader has the old object to its end, or reports that it changed."""
        store.put("x", b"a" * 1000)
        version = store.info("x").version
        assert store.read("x", 0, 5, version) == b"aaaaa"
        with store.open_read("x") as file:
            assert file.read(10) == b"a" * 10
            store.put("x", b"b" * 2000)
            if isinstance(store, LocalStore):
                assert file.read_at(0, 1000) == b"a" * 1000
            else:
                with raises(FileAccessError, errno=errno.ESTALE):
                    file.read_at(0, 1000)
        with raises(FileAccessError, errno=errno.ESTALE):
            store.read("x", 0, 5, version)


class ListingContract(ReadingContract):
    """The tests of a store that lists its objects."""

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("a/*.tar", ["a/1.tar", "a/2.tar"]),
            ("*/[2-9].tar", ["a/2.tar"]),
            ("a/?.t*", ["a/1.tar", "a/2.tar"]),
            ("**/*.tar", ["0.tar", "a/1.tar", "a/2.tar", "a/b/3.tar"]),
            ("a/**/3.tar", ["a/b/3.tar"]),
            ("a/.*.tar", ["a/.0.tar"]),
            ("a/1.tar", ["a/1.tar"]),
            ("x/*", []),
        ],
    )
    def test_patterns_match_as_in_glob(
        self, store: Store, pattern: str, expected: list[str]
    ) -> None:
        for key in ("0.tar", "a/1.tar", "a/2.tar", "a/.0.tar", "a/b/3.tar", "a/x"):
            store.put(key, b"")
        root = Location(store, "")
        found = Location(store, pattern).glob()
        assert [location.relative_to(root) for location in found] == expected
        assert all(location.read() == b"" for location in found)

    def test_what_lies_below_a_folder(self, store: Store) -> None:
        folder, below = Location(store, "a/b"), Location(store, "a/b/c/d")
        assert below.relative_to(folder) == "c/d"
        assert folder.relative_to(folder) == ""
        assert Location(store, "a/bc").relative_to(folder) is None
        assert folder.relative_to(below) is None
        store.put("a/b/c/d", b"x")
        assert below.absolute().read() == b"x"
        assert str(below.absolute()) == str(below)

    def test_what_lies_directly_in_a_folder(self, store: Store) -> None:
        for key in ("b", "a/2", "a/.1", "a/deep/x", "a/deep/y", "c/d/e"):
            store.put(key, key.encode())
        version = store.info("a/.1").version
        number = store.version_number(version)
        assert 0 <= number < 1 << 63
        first, second, deep = store.list_entries("a")
        assert first[:5] == (".1", "object", 4, number, False)
        assert first.version in ("", version)
        assert second[:2] == ("2", "object")
        assert deep == ("deep", "folder", 0, 0, False, "")
        kinds = [("a", "folder"), ("b", "object"), ("c", "folder")]
        assert [entry[:2] for entry in store.list_entries()] == kinds
        assert [store.is_folder(key) for key in ("", "a", "a/deep", "a/2", "d", "x/y")] == [
            *[True] * 3,
            *[False] * 3,
        ]
        time.sleep(0.01)  # the clock of a file system may have steps
        store.put("a/.1", b"new")
        assert store.version_number(store.info("a/.1").version) != number

    def test_listing_of_many_keys(self, store: Store) -> None:
        keys = {f"{number % 7}/{number:05d}.bin" for number in range(self.many)}
        self.fill(store, keys)
        found = [*store.list()]
        assert {info.key for info in found} == keys
        assert len(found) == len(keys)
        assert {info.size_bytes for info in found} == {3}
        for prefix in ("3/", "3/0", "3/00003.bin", "3", "9", "3/00003.bin/", "x/y/z"):
            expected = {key for key in keys if key.startswith(prefix)}
            assert {info.key for info in store.list(prefix)} == expected
        some = store.list()
        assert next(some).key in keys
        some.close()  # type: ignore[attr-defined]

    def test_objects_that_are_deleted_while_they_are_listed(self, store: Store) -> None:
        keys = {f"{folder}/{number}" for folder in "ab" for number in range(20)}
        deleted = {key for key in keys if int(key[2:]) % 2}
        self.fill(store, keys)
        listing = store.list()
        found = {next(listing).key}
        for key in deleted:
            store.delete(key)
        found |= {info.key for info in listing}
        assert keys - deleted <= found <= keys
        assert {info.key for info in store.list()} == keys - deleted

    @pytest.mark.posix
    def test_odd_names(self, store: Store) -> None:
        for name in self.refused:
            with raises(OptionError, value=name):
                store.put(name, b"")
        names = [name for name in ODD_NAMES if name not in self.refused]
        keys = [*names, *(f"d/{name}/{name}" for name in names)]
        keys = [key for key in keys if "/" in key or f"d/{key}" not in keys]
        for key in keys:
            store.put(key, key.encode())
        assert {info.key: info.size_bytes for info in store.list()} == {
            key: len(key.encode()) for key in keys
        }
        for key in keys:
            assert store.read(key) == key.encode()
            assert key in {info.key for info in store.list(key)}
            store.delete(key)
        assert not any(store.list())

    def test_information_is_the_same_in_a_listing(self, store: Store) -> None:
        store.put("a/x", b"1")
        store.put("y", b"22")
        assert {info.key: info for info in store.list()} == {
            key: store.info(key) for key in ("a/x", "y")
        }


class StoreContract(ListingContract):
    """The tests of a store."""

    # -- writing -----------------------------------------------------------------------------------

    def test_a_written_object_replaces_the_older_one(self, store: Store) -> None:
        versions = set()
        for data in (b"1", b"22", b"", [b"3", memoryview(b"45")], b"23"):
            store.put("a/x", data)
            versions.add(store.info("a/x").version)
            assert store.read("a/x") == (data if isinstance(data, bytes) else b"345")
        assert len(versions) == 5

    def test_an_object_appears_at_the_end(self, store: Store) -> None:
        store.put("old", b"old")
        for key in ("old", "new", "deep/er/new"):
            with store.open_write(key) as file:
                file.write(DATA)
                file.flush()
                assert file.tell() == len(DATA)
                assert [(info.key, info.size_bytes) for info in store.list(key)] == (
                    [("old", 3)] if key == "old" else []
                )
                assert store.exists(key) == (key == "old")
            assert store.read(key) == DATA

    def test_memory_is_reused_after_it_was_written(self, store: Store) -> None:
        size, memory = 3 << 20, bytearray(3 << 20)
        with store.open_write("x") as file:
            for number in range(5):
                memory[:] = bytes([number]) * size
                file.write(memory)
        assert store.read("x") == b"".join(bytes([number]) * size for number in range(5))

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, GeneratorExit])
    def test_an_abandoned_write_changes_nothing(
        self, store: Store, error: type[BaseException]
    ) -> None:
        store.put("old", b"old")

        def fail(key: str) -> None:
            with store.open_write(key) as file:
                file.write(DATA)
                raise error

        for key in ("old", "new"):
            with pytest.raises(error):
                fail(key)
        assert [info.key for info in store.list()] == ["old"]
        assert store.read("old") == b"old"

    def test_a_sealed_object_can_be_read(self, store: Store) -> None:
        """Under its own name only where the store cannot rename."""
        store.put("old", b"old")
        for key in ("old", "new"):
            writer = store.open_write(key)
            writer.write(DATA[:5])
            writer.write(memoryview(DATA)[5:])
            sealed = writer.seal()
            assert (sealed == key) == (not store.can_rename)
            assert store.read(sealed) == DATA
            assert store.read("old") == (DATA if sealed == "old" else b"old")
            assert writer.seal() == sealed
            writer.publish()
            writer.discard()
            assert store.read(key) == DATA
            store.put("old", b"old")

    def test_a_sealed_object_can_be_discarded(self, store: Store) -> None:
        writer = store.open_write("x")
        writer.write(DATA)
        sealed = writer.seal()
        writer.discard()
        writer.discard()
        assert not store.exists("x")
        assert not store.exists(sealed)

    def test_an_object_that_must_not_be_replaced(self, store: Store) -> None:
        with store.open_write("x", overwrite=False) as file:
            file.write(b"1")
        with (
            raises(OptionError, option="overwrite"),
            store.open_write("x", overwrite=False) as file,
        ):
            file.write(b"2")
        assert store.read("x") == b"1"
        assert [info.key for info in store.list()] == ["x"]

    def test_an_object_moves(self, store: Store) -> None:
        store.put("a/old", DATA)
        store.put("new", b"")
        for new in ("new", "b/c"):
            store.move("a/old", new)
            assert store.read(new) == DATA
            assert not store.exists("a/old")
            store.put("a/old", DATA)
        with pytest.raises(FileAccessError):
            store.move("missing", "new")
        assert store.read("new") == DATA

    def test_targets_are_checked(self, store: Store) -> None:
        store.put("a/x", b"")
        store.check_target("new", overwrite=False)
        store.check_target("a/x", overwrite=True)
        with raises(OptionError, option="overwrite"):
            store.check_target("a/x", overwrite=False)
        for overwrite in (True, False):
            with raises(OptionError, value=store.name_of("a")):
                store.check_target("a", overwrite=overwrite)

    # -- folders -----------------------------------------------------------------------------------

    def write_folder(
        self,
        store: Store,
        names: Collection[str],
        fails: type[BaseException] | None = None,
        **options: Any,
    ) -> None:
        """Write `f` with objects that hold their names, or fail after the last one."""
        with new_folder(Location(store, "f"), **options) as folder:
            for name in names:
                file = folder.open(name)
                file.write(name.encode())
                assert folder.close(name) == len(name.encode())
            if fails is not None:
                folder.open("open").write(DATA)
                raise fails

    def folder_contents(self, store: Store) -> dict[str, bytes]:
        return {info.key: store.read(info.key) for info in store.list("f")}

    def test_a_folder_has_a_note_at_the_end(self, store: Store) -> None:
        with write_folder(
            Location(store, "f"), {"number": 1}, overwrite=False, keeping={}, report=pytest.fail
        ) as folder:
            first, second = folder.open("b/1"), folder.open("a")
            scratch = folder.temporary_file()
            for number in range(3):
                first.write(b"%d" % number)
                second.write(DATA)
                scratch.write(b"x")
            assert folder.close("b/1") == 3
            assert (first.closed, second.tell()) == (True, 3 * len(DATA))
            folder.close("a")
            scratch.seek(0)
            assert scratch.read() == b"xxx"
            assert not store.exists("f/.export.json")
        found = self.folder_contents(store)
        assert json.loads(found.pop("f/.export.json")) == {"number": 1, "entries": ["a", "b"]}
        assert found == {"f/b/1": b"012", "f/a": 3 * DATA}

    @pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
    def test_a_folder_that_fails_is_not_there(
        self, store: Store, error: type[BaseException]
    ) -> None:
        store.put("fx", b"")
        with pytest.raises(error):
            self.write_folder(store, ["a", "b/c"], error)
        assert self.folder_contents(store) == {"fx": b""}
        assert not store.is_folder("f")
        self.write_folder(store, ["a"])
        assert {*self.folder_contents(store)} == {"fx", "f/a", "f/.export.json"}

    def test_folders_in_the_way(self, store: Store) -> None:
        with pytest.raises(OptionError):
            self.write_folder(store, ["../x"])
        store.put("f/mine", b"")
        store.put("f/b/old", b"")
        with raises(OptionError, option="out", value=store.name_of("f"), match="1 more"):
            self.write_folder(store, ["a"])
        keeping = {store.identity("f/b/old"): "old"}
        with raises(OptionError, option="out", match="contains old"):
            self.write_folder(store, ["b"], overwrite=True, keeping=keeping)
        assert {*self.folder_contents(store)} == {"f/mine", "f/b/old"}
        self.write_folder(store, ["b", "c/d"], overwrite=True)
        self.write_folder(store, ["a", "c/e"], overwrite=True)
        assert {*self.folder_contents(store)} == {
            f"f/{name}" for name in ("mine", "a", "c/e", ".export.json")
        }
        with raises(OptionError, option="out", match="contains mine"):
            self.write_folder(
                store, ["mine"], overwrite=True, keeping={store.identity("f/mine"): "mine"}
            )
        store.put("g", b"")
        with (
            raises(OptionError, option="out", value=store.name_of("g"), match="is a file"),
            new_folder(Location(store, "g"), overwrite=True),
        ):
            pass

    def test_one_of_many_writers_finds_it_absent(self, store: Store) -> None:
        barrier = threading.Barrier(8)

        def write(number: int) -> list[int]:
            won = []
            for place in range(20):
                barrier.wait()
                if store.put_if_absent(f"begun/{place}", [b"%d" % number] * 1000):
                    won.append(place)
            return won

        with ThreadPoolExecutor(8) as pool:
            won = [*pool.map(write, range(8))]
        assert sorted(place for places in won for place in places) == list(range(20))
        for number, places in enumerate(won):
            for place in places:
                assert store.read(f"begun/{place}") == b"%d" % number * 1000
        assert len([*store.list()]) == 20

    def test_no_update_is_lost(self, store: Store) -> None:
        store.put("count", b"0")

        def add(_: int) -> None:
            for _ in range(15):
                while True:
                    version = store.info("count").version
                    try:
                        count = int(store.read("count"))
                    except FileAccessError:  # it was replaced too often meanwhile
                        continue
                    if store.put_if_match("count", b"%d" % (count + 1), version):
                        break

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(4)))
        assert store.read("count") == b"60"

    def test_an_older_version_does_not_match(self, store: Store) -> None:
        store.put("a/b", b"x")
        assert not store.put_if_match("missing", b"new", store.info("a/b").version)
        assert not store.exists("missing")
        store.put("x", b"1")
        version = store.info("x").version
        store.put("x", b"2")
        assert not store.put_if_match("x", b"3", version)
        for start, stop in () if store.keeps_reads else ((0, 0), (0, 1), (1, 9)):
            with raises(FileAccessError, errno=errno.ESTALE):
                store.read("x", start, stop, version)
        assert store.put_if_match("x", b"4", store.info("x").version)
        store.delete("x")
        store.delete("x")
        assert not store.put_if_match("x", b"5", version)
        assert store.put_if_absent("x", b"6")
        assert not store.put_if_absent("x", b"7")
        assert store.read("x") == b"6"

    def test_delete_if_match(self, store: Store) -> None:
        assert not store.delete_if_match("x", "")
        store.put("x", b"1")
        version = store.info("x").version
        store.put("x", b"2")
        assert not store.delete_if_match("x", version)
        assert store.read("x") == b"2"
        assert store.delete_if_match("x", store.info("x").version)
        assert not store.exists("x")

    def test_a_reader_gets_one_version(self, store: Store) -> None:
        texts = [bytes([number]) * 100_000 * number for number in range(1, 6)]
        store.put("x", texts[0])
        ended = threading.Event()

        def write() -> None:
            for number in range(60):
                store.put("x", texts[number % 5])
            ended.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            read = set()
            while not ended.is_set() and not writing.done():
                read.add(store.read("x"))
            writing.result()
        assert read <= set(texts)

    # -- keys --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("key", OUTSIDE)
    def test_names_that_lead_out_are_refused(self, store: Store, key: str) -> None:
        calls = [
            lambda: store.info(key),
            lambda: store.read(key),
            lambda: store.put(key, b""),
            lambda: store.put_if_absent(key, b""),
            lambda: store.put_if_match(key, b"", "1"),
            lambda: store.delete(key),
            lambda: Location(store, "a") / key,
        ]
        for call in calls:
            with raises(OptionError, value=key):
                call()
        assert not any(store.list())

    @pytest.mark.posix
    def test_a_store_behaves_like_a_dict(self, store: Store) -> None:
        @settings(deadline=None, max_examples=50)
        @given(
            st.lists(st.text("ab./\n\\", min_size=1, max_size=6), max_size=5),
            st.text("ab./", max_size=4),
        )
        def check(keys: list[str], prefix: str) -> None:
            for info in [*store.list()]:
                store.delete(info.key)
            expected: dict[str, bytes] = {}
            for number, key in enumerate(keys):
                try:
                    store.put(key, b"%d" % number)
                except (OptionError, FileAccessError):  # invalid, or a folder has this name
                    continue
                expected[key] = b"%d" % number
            assert {info.key: store.read(info.key) for info in store.list()} == expected
            if {"", ".", ".."}.isdisjoint(prefix.split("/")[:-1]):
                assert {info.key for info in store.list(prefix)} == {
                    key for key in expected if key.startswith(prefix)
                }

        check()

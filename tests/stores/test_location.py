"""Locations: paths and URLs as a store and a key."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

import recordsmith as rs
from recordsmith.checking.schema_file import SchemaFile
from recordsmith.stores import (
    Location,
    MemoryStore,
    Store,
    as_folder,
    as_location,
    read_document,
    write_atomically,
)
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.location import STORES
from recordsmith.stores.network.store_options import PassedOptions
from recordsmith.support.errors import FileAccessError, OptionError

from ..places import new_folder
from ..raising import raises


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("x.json", "x.json"),
        ("a/b/x.json", "a/b/x.json"),
        ("../x", "../x"),
        ("/dev/stdin", "/dev/stdin"),
        (Path("a") / "x", "a/x"),
        ("a/\udcff", "a/\udcff"),
        ("memory://a/b.json", "memory://a/b.json"),
    ],
)
def test_a_location_shows_what_was_given(given: str, shown: str) -> None:
    location = as_location(given)
    assert str(location) == shown
    assert as_location(location) is location
    assert location == as_location(given)
    assert hash(location) == hash(as_location(given))


@pytest.mark.parametrize(
    "given",
    ["", ".", "..", "a/..", "/", "s3://", "s3://bucket", "memory://", "memory://../x", "a\0", 5],
)
def test_what_is_no_object(given: object) -> None:
    if str(given).startswith("s3:"):
        pytest.importorskip("obstore")
    with pytest.raises(OptionError):
        as_location(given)


def test_names_of_locations() -> None:
    location = Location(MemoryStore(), "a/b.tar.gz")
    assert (location.name, location.suffix) == ("b.tar.gz", ".gz")
    assert location.with_name("c").key == "a/c"
    assert (location / "c/d").key == "a/b.tar.gz/c/d"
    root = Location(location.store, "")
    assert (root / "x").key == "x"
    assert (root / "x").with_name("y").key == "y"
    for name in ("", "..", "a/../.."):
        with pytest.raises(OptionError):
            location.with_name(name)
        with pytest.raises(OptionError):
            location / name


def test_a_location_reads_and_writes_its_object(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore()):
        place = Location(store, "a") / "x"
        assert not place.exists()
        place.put(b"123")
        version = place.info().version
        assert (place.read(), place.read(1, 2), place.info().size_bytes) == (b"123", b"2", 3)
        assert [*Location(store, "a").list()] == [*Location(store, "").list()] == [place]
        assert [*place.list()] == []
        with place.open_write() as file:
            file.write(b"4")
        assert not place.put_if_match(b"5", version)
        assert place.put_if_match(b"5", place.info().version)
        assert not place.put_if_absent(b"6")
        place.delete()
        assert place.put_if_absent(b"7")
        assert store.read("a/x") == b"7"


def test_every_way_to_a_url_finds_the_store_of_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shelf(MemoryStore):
        @classmethod
        def from_url(cls, url: str, passed: PassedOptions) -> tuple[Store, str]:
            assert dict(passed.options) in ({}, {"width": 2})
            return shelf, url.removeprefix("shelf://")

    monkeypatch.setenv("RECORDSMITH_CACHE", "/nowhere")  # only of what is behind a network
    shelf, STORES["shelf"] = Shelf(), Shelf
    try:
        place = rs.remote("shelf://a/b", store_options={"width": 2})
        assert place == as_location("shelf://a/b") == as_folder("shelf://a/b")
        rows = rs.Rows([{"x": 1}])
        assert rs.pack(rows, "shelf://out").sample_count == len(rs.open("shelf://out")) == 1
    finally:
        del STORES["shelf"]
    assert rs.remote("memory://a") == as_folder("memory://a") == as_location("MEMORY://a")
    with raises(OptionError, option="store_options"):
        rs.remote("memory://a", store_options={"width": 2})


def test_documents_in_memory(tmp_path: Path, numbered: SimpleNamespace) -> None:
    """Documents that users name can be in any store."""
    place = "memory://test_documents_in_memory/schema.json"
    folder = numbered.packed(tmp_path, {"train": [3]})
    rules = rs.schema(folder)
    with pytest.raises(FileAccessError) as caught:
        SchemaFile.load(place)
    assert (caught.value.errno, caught.value.path) == (errno.ENOENT, place)
    rules.save(place)
    assert SchemaFile.load(place) == rules
    assert rs.verify(folder, schema=place).is_good
    with pytest.raises(OptionError) as refused:
        rules.save(place)
    assert refused.value.option == "overwrite"
    rules.save(place, overwrite=True)
    with pytest.raises(FileAccessError) as caught:
        read_document(place, 10)
    assert (caught.value.errno, caught.value.path) == (errno.EFBIG, place)
    as_location(place).delete()


def test_written_documents_are_read(tmp_path: Path) -> None:
    for place in (tmp_path / "x", Location(MemoryStore(), "x")):
        write_atomically(place, [b"12", memoryview(b"3")], overwrite=False)
        assert read_document(place) == b"123"
        with pytest.raises(OptionError) as caught:
            write_atomically(place, b"4", overwrite=False)
        assert caught.value.option == "overwrite"
        write_atomically(place, b"5")
        assert read_document(place) == b"5"


def test_nothing_is_written_to_a_store_that_cannot() -> None:
    class ReadOnlyStore(MemoryStore):
        is_writable = False

    place = Location(ReadOnlyStore(), "x")
    for overwrite in (True, False):
        with raises(OptionError, value=str(place)):
            write_atomically(place, b"data", overwrite=overwrite)
        with raises(OptionError, value=str(place)):
            as_location(place).check_target(overwrite=overwrite)
        with raises(OptionError, value=str(place)), new_folder(place, overwrite=overwrite):
            pass
    assert not place.exists()


def test_a_url_with_one_slash() -> None:
    with raises(OptionError, value="s3:/bucket/x") as caught:
        as_location("s3:/bucket/x")
    assert caught.value.remedy == "Did you mean s3://bucket/x?"

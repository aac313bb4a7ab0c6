"""Over a network, each request costs a way to the server and back: how many are made, and why."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import MANIFEST_NAME, BegunNote, begun_location, records_of
from recordsmith.dataset.shard_index import (
    ShardIndex,
    cache_index,
    index_locations,
    index_pieces,
    load_index,
)
from recordsmith.format.wire import encode_records
from recordsmith.stores import FolderEntry, Location, ObjectInfo
from recordsmith.support.errors import CorruptDataError, Defect, FileAccessError

from .. import numbered_examples as numbered
from ..images import jpeg
from ..raising import raises
from ..servers.s3 import S3
from ..stores.counting import CountingStore

OPENED = {"list": 1, "read": 2}
"""A listing, the manifest, and the note that a job has begun, which is missing."""

OPENED_WITHOUT_MANIFEST = {"list": 1, "read": 3}
"""In addition, `labels.txt`."""

SHARDS = 100


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def folder(store: CountingStore) -> Location:
    return Location(store, "bucket/out")


@pytest.fixture
def packed(store: CountingStore, folder: Location) -> Location:
    """SHARDS shards of 3 records, with a manifest."""
    numbered.packed(folder, {"train": [3] * SHARDS})
    store.reset()
    return folder


def without_manifest(folder: Location) -> Location:
    (folder / MANIFEST_NAME).delete()
    folder.store.reset()  # type: ignore[attr-defined]
    return folder


def counted(store: CountingStore, function: Callable[[], Any]) -> dict[str, int]:
    store.reset()
    function()
    assert not store.written
    return store.counts


# -- opening ---------------------------------------------------------------------------------------


def test_open_and_inspect_of_1000_shards(store: CountingStore, folder: Location) -> None:
    """One page of a listing shows 1,000 names, so two are needed for the shards and documents."""
    numbered.packed(folder, {"train": [1] * 1000})
    expected = {"list": 2, "read": 2}
    assert counted(store, lambda: rs.open(folder)) == expected
    assert store.rounds == 4
    assert counted(store, lambda: rs.inspect(folder)) == expected
    assert counted(store, lambda: len(rs.open(folder, "train"))) == expected


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train-00000-of-00100.tfrecord", {"info": 1, "read": 2}),  # labels.txt, the manifest
        ("train-*", {"info": 1, "list": 1, "read": 2}),
    ],
)
def test_open_files(
    store: CountingStore, packed: Location, name: str, expected: dict[str, int]
) -> None:
    assert counted(store, lambda: rs.open(packed / name)) == expected
    dataset = rs.open(packed / name)
    assert counted(store, lambda: [shard.size_bytes for shard in dataset.shards]) == {}


def test_a_missing_place(store: CountingStore, packed: Location) -> None:
    """A listing of its own keys, one question for the object, and a listing of similar names."""

    def open_missing() -> None:
        with raises(FileAccessError, errno=errno.ENOENT):
            rs.open(packed.parent / "owt")

    assert counted(store, open_missing) == {"list": 2, "info": 1}


# -- commands --------------------------------------------------------------------------------------

EACH = SHARDS
COMMANDS: dict[str, tuple[Callable[[Location], Any], dict[str, int]]] = {
    # the manifest has counts, sizes, schema and class names
    "inspect": (rs.inspect, OPENED),
    "len": (lambda place: len(rs.open(place)), OPENED),
    # each shard is one range
    "records": (lambda place: list(rs.open(place).records()), {"list": 1, "read": 2 + EACH}),
    "stats": (rs.stats, {"list": 1, "read": 2 + EACH}),
    # `labels.txt` as well
    "verify": (rs.verify, {"list": 1, "read": 3 + EACH}),
    "verify --deep": (lambda place: rs.verify(place, deep=True), {"list": 1, "read": 3 + EACH}),
    # both sides
    "diff": (lambda place: rs.diff(place, place), {"list": 2, "read": 4 + 2 * EACH}),
    # an index and a record
    "one record": (lambda place: rs.open(place)[SHARDS], {"list": 1, "read": 4}),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_requests_of_commands(store: CountingStore, packed: Location, name: str) -> None:
    command, expected = COMMANDS[name]
    rs.index(packed)
    assert counted(store, lambda: command(packed)) == expected


WITHOUT_MANIFEST: dict[str, tuple[Callable[[Location], Any], int]] = {
    "inspect": (rs.inspect, EACH),
    "records": (lambda place: list(rs.open(place).records()), EACH),
    "verify": (rs.verify, EACH),
    "len": (lambda place: len(rs.open(place)), EACH),
}


@pytest.mark.parametrize("name", WITHOUT_MANIFEST)
def test_requests_without_manifest(store: CountingStore, packed: Location, name: str) -> None:
    command, expected = WITHOUT_MANIFEST[name]
    without_manifest(packed)
    found = counted(store, lambda: command(packed))
    assert found == {"list": 1, "read": OPENED_WITHOUT_MANIFEST["read"] + expected}


# -- rounds ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_first_batch_comes_after_few_rounds() -> None:
    """A listing, the manifest, the note; the indexes of all shards; the records of the batch."""
    store = CountingStore(0.05)
    store.concurrency = 32
    folder = numbered.packed(Location(store, "out"), {"train": [2] * 16})
    rs.index(folder)
    store.reset()
    batch = next(iter(rs.Loader(rs.open(folder), ["id"], batch_size=32, shuffle=True, seed=1)))
    assert sorted(batch["id"].ravel().tolist()) == [*range(32)]
    assert store.requests == 3 + 16 + 16
    assert 5 <= store.rounds <= 8


# -- jobs at the same time -------------------------------------------------------------------------


class ChangingStore(CountingStore):
    """Calls a function before a request."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[tuple[str, str], Callable[[], Any]] = {}

    def before_request(self, kind: str, key: str) -> None:
        change = self.before.pop((kind, key.rstrip("/").rpartition("/")[2]), None)
        if change is not None:
            change()


@pytest.mark.parametrize("begins", ["begun.json", "dataset.json"])
def test_a_job_that_ends_while_its_folder_is_opened(begins: str) -> None:
    """The listing is older than the manifest, so it is made again."""
    store = ChangingStore()
    folder = numbered.packed(Location(store, "out"), {"train": [1] * 4})
    whole = dict(store.objects)
    for name in ("train-00002-of-00004.tfrecord", "train-00003-of-00004.tfrecord"):
        del store.objects[f"out/{name}"]
    if begins == "begun.json":
        del store.objects["out/dataset.json"]
        begun_location(folder).put(BegunNote("plan").to_bytes())

    def end() -> None:
        store.objects.clear()
        store.objects.update(whole)

    store.before["read", begins] = end
    assert len(rs.open(folder)) == 4
    assert not store.before


def test_a_job_that_begins_after_the_listing() -> None:
    store = ChangingStore()
    folder = numbered.packed(Location(store, "out"), {"train": [1] * 4})
    note = BegunNote("another plan").to_bytes()
    store.before["read", "dataset.json"] = lambda: begun_location(folder).put(note)
    with raises(CorruptDataError, defect=Defect.UNFINISHED_DATASET):
        rs.open(folder)


def test_a_missing_shard_is_reported_after_a_second_listing(
    store: CountingStore, packed: Location
) -> None:
    (packed / "train-00007-of-00100.tfrecord").delete()
    store.reset()
    with raises(CorruptDataError, defect=Defect.MISSING_SHARD):
        rs.open(packed)
    assert store.counts == {"list": 2, "read": 2}


def test_a_shard_that_is_replaced_after_opening(store: CountingStore, packed: Location) -> None:
    """It is read in the version that was listed, never half old and half new."""
    dataset = rs.open(packed)
    store.set(f"{packed.key}/train-00000-of-00100.tfrecord", encode_records([b"other"]))
    for read in (lambda: list(dataset.records()), lambda: dataset[0]):
        with raises(FileAccessError, errno=errno.ESTALE):
            read()


# -- indexes ---------------------------------------------------------------------------------------


def big_shard(store: CountingStore, count: int = 30, size: int = 50_000) -> Location:
    location = Location(store, "bucket/big.tfrecord")
    location.put(encode_records([bytes([number % 256]) * size for number in range(count)]))
    store.reset()
    return location


def test_an_index_is_cached_for_a_version(store: CountingStore) -> None:
    """Nothing is written next to the shard, and a second process needs no request for it."""
    location = big_shard(store)
    _, cached = index_locations(location, location.info().version)
    assert bytes(records_of(rs.open(location)).read_record(7)) == bytes([7]) * 50_000
    assert not store.written
    assert cached.exists()

    dataset = rs.open(location)
    assert counted(store, lambda: dataset.read_records([3])) == {"read": 1}
    location.put(encode_records([bytes([9]) * 50_000] * 30))  # the same size
    dataset = rs.open(location)
    assert bytes(dataset.read_records([3])[0]) == bytes([9]) * 50_000
    assert index_locations(location, location.info().version)[1] != cached


def test_recordsmith_index_writes_next_to_the_shard(store: CountingStore) -> None:
    location = big_shard(store)
    len(rs.open(location))  # has written it to the cache
    near, _ = index_locations(location)
    (file,) = rs.index(location).files
    assert (file.path, file.is_new) == (str(near), True)
    assert store.written == [near.key]
    (file,) = rs.index(location).files
    assert not file.is_new


@pytest.mark.parametrize(("record_count", "requests"), [(1000, 1), (130_000, 1), (140_000, 2)])
def test_an_index_is_one_request_unless_it_is_longer_than_1_mib(
    store: CountingStore, record_count: int, requests: int
) -> None:
    location = Location(store, "bucket/small.tfrecord")
    location.put(encode_records([b""] * record_count))
    rs.index(location)
    store.reset()
    saved = load_index(location, location.info())
    assert saved is not None
    assert saved[0].record_count == record_count
    assert store.counts["read"] == requests


def test_a_wrong_index_is_an_error_until_it_is_replaced(store: CountingStore) -> None:
    """Its size matches, and its samples are not read: the frames show that it is wrong."""
    location = big_shard(store)
    payloads = [bytes([number]) * 50_000 for number in range(30)]
    lengths = np.array([len(payload) for payload in payloads])
    lengths[2:4] += (1, -1)
    near, _ = index_locations(location)
    wrong = ShardIndex.from_lengths(lengths, "none")
    near.put(index_pieces(location, wrong))
    cache_index(location, wrong, location.info())  # as a store does that keeps what it reads
    for positions in ([2], [2, 3]):
        with raises(CorruptDataError, defect=Defect.SHARD_SIZE):
            rs.open(location).read_records(positions)
    rs.index(location, overwrite=True)
    found = rs.open(location).read_records([2, 3, 29])
    assert [bytes(payload) for payload in found] == [payloads[2], payloads[3], payloads[29]]


# -- without listings ------------------------------------------------------------------------------


class UnlistedStore(CountingStore):
    """A web server."""

    can_list = False

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        raise FileAccessError(errno.EOPNOTSUPP, "it cannot be listed", self.name_of(key))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        raise FileAccessError(errno.EOPNOTSUPP, "it cannot be listed", self.name_of(prefix))

    def is_folder(self, key: str) -> bool:
        return not key


@pytest.fixture
def unlisted(packed: Location) -> UnlistedStore:
    store = UnlistedStore()
    store._objects = packed.store.objects  # type: ignore[attr-defined]
    return store


def test_a_manifest_is_enough(unlisted: UnlistedStore, packed: Location) -> None:
    """Sizes are those of the manifest until a shard is opened."""
    folder = Location(unlisted, packed.key)
    assert counted(unlisted, lambda: rs.inspect(folder)) == {"read": 2}
    assert rs.inspect(folder).size_bytes == rs.inspect(packed).size_bytes
    expected = [*rs.open(packed).records()]
    unlisted.reset()
    dataset = rs.open(folder)
    assert [*dataset.records()] == expected
    assert unlisted.counts == {"read": 2 + SHARDS, "info": SHARDS}
    report = rs.verify(folder)
    assert (report.is_good, report.record_count) == (True, 3 * SHARDS)


def test_a_shard_of_another_size_than_in_the_manifest(
    unlisted: UnlistedStore, packed: Location
) -> None:
    unlisted.set(f"{packed.key}/train-00001-of-00100.tfrecord", encode_records([b"other"]))
    dataset = rs.open(Location(unlisted, packed.key))
    assert dataset[0]["id"] == 0
    with raises(CorruptDataError, defect=Defect.SHARD_SIZE):
        dataset[3]


def test_an_unfinished_job_without_listing(unlisted: UnlistedStore, packed: Location) -> None:
    begun_location(packed).put(BegunNote("another plan").to_bytes())
    with raises(CorruptDataError, defect=Defect.UNFINISHED_DATASET):
        rs.open(Location(unlisted, packed.key))


def test_no_manifest_and_no_listing(unlisted: UnlistedStore, packed: Location) -> None:
    without_manifest(packed)
    with raises(FileAccessError, errno=errno.ENOENT) as caught:
        rs.open(Location(unlisted, packed.key))
    assert caught.value.remedy
    with raises(FileAccessError, errno=errno.EOPNOTSUPP):
        rs.open(Location(unlisted, ""))
    assert len(rs.open(Location(unlisted, f"{packed.key}/train-00001-of-00100.tfrecord"))) == 3


# -- the manifest and the listing ------------------------------------------------------------------


def test_packing_reads_each_image_of_a_bucket_once(store: CountingStore, tmp_path: Path) -> None:
    for number in range(60):
        key = f"bucket/flowers/{'abc'[number % 3]}/{number}.jpg"
        store.objects[key] = jpeg(number), "1"
    source = rs.ImageFolder(Location(store, "bucket/flowers"))
    store.reset()
    rs.pack(source, tmp_path / "out")
    # whether it is a folder, what is in it, and the classes
    assert store.counts == {"list": 1 + 1 + 3, "read": 60}


# -- a real server ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_jobs_make_as_many_requests_as_the_page_states(s3: S3, tmp_path: Path) -> None:
    """`docs/how-to/cloud.md`, for the command line, where a source is 60 images."""
    for number in range(60):
        path = tmp_path / "flowers" / "abc"[number % 3] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(number))
    rs.pack(rs.ImageFolder(tmp_path / "flowers"), tmp_path / "local")
    environment = {**os.environ, **s3.variables("bucket")}

    def count(*arguments: object) -> int:
        command = [sys.executable, "-m", "recordsmith", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, env=environment)
        return len(s3.requests())

    def pack(shards: int) -> int:
        out = f"s3://bucket/packed-{shards}"
        return count("pack", tmp_path / "flowers", out, "--shards", shards)

    def reshard(shards: int) -> int:
        out = f"s3://bucket/new-{shards}"
        return count("reshard", "s3://bucket/packed-2", out, "--shards", shards)

    few, many = pack(2), pack(6)
    assert (many - few, few - 2 * 21) == (4 * 21, pytest.approx(33, abs=3))
    assert count("inspect", "s3://bucket/packed-6") == 3
    assert count("verify", "s3://bucket/packed-6") == 3 + 1 + 6  # and labels.txt
    few, many = reshard(1), reshard(5)
    assert (many - few) / 4 == pytest.approx(18.5, abs=1)
    assert few - 18.5 - 2 * 2 == pytest.approx(48, abs=5)
    few, many = (count("append", tmp_path / "local", f"s3://bucket/packed-{n}") for n in (2, 6))
    assert (many - few, few - 19 - 2 * 40) == (4 * 40, pytest.approx(62, abs=8))
    # shards of more than 1 MiB, and of more than 8 MiB
    noise = np.random.default_rng(0)
    for number in range(180):
        cv2.imwrite(
            str(tmp_path / "flowers" / "a" / f"{number}.png"),
            noise.integers(0, 256, (180, 200, 3), np.uint8),
        )
    mib = sum(path.stat().st_size for path in tmp_path.glob("flowers/*/*")) / 2**20
    assert pack(1) == pytest.approx(33 + 21 + mib + mib / 8 + 1, rel=0.1)
    assert pack(3) == pytest.approx(33 + 3 * 21 + mib, rel=0.1)
    for old, new, inside in ((3, 1, 0), (1, 4, 3)):
        found = count(
            "reshard", f"s3://bucket/packed-{old}", f"s3://bucket/s{new}", "--shards", new
        )
        parts = mib / 8 + 1 if new == 1 else 0
        expected = 45 + 2 * old + mib + new * 17 + parts + 10 * inside
        assert found == pytest.approx(expected, rel=0.1)

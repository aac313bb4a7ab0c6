"""Without renaming, a job that is killed at any change leaves nothing that reads as a dataset.

The same command finishes it with the bytes of an undisturbed run, and another plan can take over
with `overwrite`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, MemoryStore
from recordsmith.support.errors import CorruptDataError, MissingFileError, OptionError, SourceError

from .disturbed_stores import DyingStore, Killed, content

Job = Callable[[MemoryStore], Any]
_ALL = {"all": 1.0}


def rows(first: int, count: int) -> rs.Rows:
    return rs.Rows(
        [{"id": n, "name": f"name {n % 7}" * 3} for n in range(first, first + count)], label="name"
    )


def pack(store: MemoryStore, out: str = "out", *, first: int = 0, **options: Any) -> None:
    defaults = {"splits": {"train": 0.6, "val": 0.4}, "shards": {"train": 2, "val": 1}, "seed": 1}
    defaults["numbers_of"] = ["id"]
    rs.pack(rows(first, 40), Location(store, out), threads=1, **(defaults | options))


def pack_other(store: MemoryStore) -> None:
    """Fewer and more shards of the same splits, and some names of the first plan."""
    pack(store, shards={"train": 2, "val": 2}, seed=2, overwrite=True)


NEW = rs.Rows([{"id": n, "name": f"new {n}"} for n in (2, 31)])


def damage(store: MemoryStore) -> None:
    """A bit in the middle of a shard."""
    shard = next(
        info for info in store.list("in/") if info.key.endswith("train-00001-of-00002.tfrecord")
    )
    data = bytearray(store.read(shard.key))
    data[len(data) // 2] ^= 1
    store.put(shard.key, bytes(data))


def prepared(*steps: Job) -> MemoryStore:
    store = MemoryStore()
    for step in steps:
        step(store)
    return store


def copied(store: MemoryStore) -> MemoryStore:
    copy = MemoryStore()
    copy._objects, copy._versions = dict(store._objects), store._versions
    return copy


def ids(store: MemoryStore, out: str = "out") -> dict[str, list[int]] | None:
    """The records of each split; None if it is refused."""
    try:
        dataset = rs.open(Location(store, out))
        return {name: [row["id"][0] for row in part] for name, part in dataset.splits.items()}
    except (CorruptDataError, MissingFileError, OptionError):
        return None


def reshard(store: MemoryStore, **options: Any) -> None:
    rs.reshard(
        Location(store, "in"), Location(store, "out"), shards={"train": 3, "val": 1}, threads=1,
        shuffle=True, **options,
    )  # fmt: skip


def append(store: MemoryStore) -> None:
    rs.append(Location(store, "in"), Location(store, "out"), threads=1)


def salvage(store: MemoryStore, **options: Any) -> None:
    rs.salvage(Location(store, "in"), Location(store, "out"), threads=1, **options)


def source(store: MemoryStore) -> None:
    pack(store, "in", first=100)


def compressed_source(store: MemoryStore) -> None:
    pack(store, "in", first=100, compression="gzip")


def edit(store: MemoryStore) -> None:
    rs.edit(Location(store, "in"), Location(store, "out"), rename={"name": "title"}, threads=1)


def remove(store: MemoryStore) -> None:
    rs.edit_in_place(Location(store, "out"), where="id not in (3, 7, 20)", threads=1)


def replace(store: MemoryStore) -> None:
    rs.edit_in_place(
        Location(store, "out"), replace=Location(store, "in"), on="id", threads=1
    )  # fmt: skip


JOBS: dict[str, tuple[Job, list[Job]]] = {
    "pack": (pack, []),
    "pack over the same plan": (lambda store: pack(store, overwrite=True), [pack]),
    "pack over another plan": (pack_other, [pack]),
    "pack over other names": (
        lambda store: pack(store, overwrite=True),
        [lambda store: pack(store, shard_names="{split}_{shard}.tfrecord", splits=_ALL, shards=1)],
    ),
    "reshard": (reshard, [source]),
    "reshard compressed": (reshard, [compressed_source]),
    "reshard over another dataset": (lambda store: reshard(store, overwrite=True), [source, pack]),
    "edit": (edit, [source]),
    "append": (append, [source, pack]),
    "append compressed": (
        append,
        [compressed_source, lambda store: pack(store, compression="zlib")],
    ),
    "remove": (remove, [pack]),
    "replace": (replace, [lambda store: rs.pack(NEW, Location(store, "in")), pack]),
    "salvage": (salvage, [source, damage]),
    "salvage over another dataset": (
        lambda store: salvage(store, overwrite=True),
        [source, damage, pack],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_killed_at_every_change(name: str) -> None:
    job, steps = JOBS[name]
    before = prepared(*steps)
    undisturbed = copied(before)
    job(undisturbed)
    wanted = content(undisturbed, "out")
    listed = {entry.file for entry in _manifest(undisturbed).shards}
    assert {key for key in wanted if "/" not in key} == {*listed, "labels.txt", "dataset.json"}
    kept = {key for key in wanted if "/" in key}
    assert kept <= {
        f".recordsmith/{file}{end}" for file in listed for end in (".index", ".columns")
    }
    assert sum(key.endswith(".index") for key in kept) == len(listed)
    # only pack writes columns; the others keep those of the shards that stay
    column_counts = {"pack": len(listed), "append": 3, "remove": 1, "replace": 1}
    column_count = column_counts.get(name.split(" ", maxsplit=1)[0], 0)
    assert sum(key.endswith(".columns") for key in kept) == column_count
    complete = [None, ids(before), ids(undisturbed)]
    taken_over = copied(before)
    pack(taken_over, seed=3, shards=1, overwrite=True)
    other = content(taken_over, "out")
    for changes in count():
        killed = copied(before)
        dying = DyingStore(killed, changes)
        with suppress(Killed):
            job(dying)
        if not dying.is_dead:
            break
        assert ids(killed) in complete, changes
        again = copied(killed)
        job(again)
        assert content(again, "out") == wanted, changes
        if name.split(maxsplit=1)[0] in ("append", "remove", "replace"):
            again = copied(killed)
            report = rs.recover(Location(again, "out"))
            assert content(again, "out") in (content(before, "out"), wanted), changes
            assert report.record_count == sum(map(len, (ids(again) or {}).values()))
        again = copied(killed)
        pack(again, seed=3, shards=1, overwrite=True)
        found = content(again, "out")
        assert found == other, changes
    assert changes > 8


def test_a_late_manifest() -> None:
    """A job writes its manifest after another plan has taken over, and that one is killed."""
    before = prepared(pack)
    killed = copied(before)
    with suppress(Killed):
        pack_other(DyingStore(killed, 12))
    assert ids(killed) is None
    killed.put("out/dataset.json", before.read("out/dataset.json"))
    assert ids(killed) is None
    with pytest.raises(OptionError):
        pack(killed)
    for job in (pack_other, lambda store: pack(store, overwrite=True)):
        again, wanted = copied(killed), MemoryStore()
        job(again)
        job(wanted)
        assert content(again, "out") == content(wanted, "out")


def test_failed_jobs() -> None:
    """They leave nothing that a rerun does not need, and no note that keeps others out."""
    bad = rs.Rows([*({"id": n} for n in range(30)), {"id": {}}])

    def pack_bad(store: MemoryStore, **options: Any) -> None:
        rs.pack(bad, Location(store, "out"), shards=3, threads=1, **options)

    store = MemoryStore()
    with pytest.raises(SourceError):
        pack_bad(store)
    assert content(store, "out") == {}
    for before in (prepared(source, damage, pack), prepared(source, damage)):
        failed = copied(before)
        with pytest.raises(CorruptDataError):
            append(failed) if ids(before) else reshard(failed)
        assert content(failed, "out") == content(before, "out")
    store = prepared(pack)
    with pytest.raises(SourceError):
        pack_bad(store, overwrite=True)
    assert ids(store) is None  # its manifest was removed first
    pack(store, overwrite=True)
    assert content(store, "out") == content(prepared(pack), "out")


def test_killed_exports() -> None:
    """They are not complete, and `overwrite` leaves nothing of them, but what users put there."""

    def export(store: MemoryStore, **options: Any) -> None:
        rs.export(Location(store, "in"), Location(store, "out"), "csv", **options)

    def export_other(store: MemoryStore) -> None:
        rs.export(Location(store, "in"), Location(store, "out"), "webdataset", overwrite=True)

    def over(store: MemoryStore) -> None:
        export(store, overwrite=True)

    new = prepared(source)
    exported = copied(new)
    export(exported)
    exported.put("out/user.txt", b"keep")
    for before, job in ((new, export), (exported, export_other), (exported, over)):
        undisturbed = copied(before)
        job(undisturbed)
        complete = [content(before, "out"), content(undisturbed, "out")]
        for changes in count():
            killed = copied(before)
            dying = DyingStore(killed, changes)
            with suppress(Killed):
                job(dying)
            if not dying.is_dead:
                break
            found = content(killed, "out")
            found.pop(".export.begun.json", None)
            assert ".export.json" not in found or found in complete
            for last in (over, export_other):
                again, wanted = copied(killed), copied(before)
                last(again)
                last(wanted)
                assert content(again, "out") == content(wanted, "out"), changes
        assert changes > 4


def _manifest(store: MemoryStore) -> Any:
    from recordsmith.dataset import read_manifest

    return read_manifest(Location(store, "out"))
